/* design_case.c - runs the rows of a design's file against the oracle.
 *
 * Rows with equal words of spec and plan share a kernel, because compiling takes longer than most
 * rows. A row of a known fault must fail. */
#include "design_case.h"

#include "design_rules.h"
#include "kernel_case.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4000, SECONDS = 600 };

static char *line[ROWS];
static int first[ROWS + 1], n_kernels; /* row of each kernel; then the end */
static int n_core;                     /* kernels before the others: they have every level */
static design_known known[DESIGN_KNOWN];
static int n_known;

/* Bytes of the line before the words of the launch. */
static size_t kernel_size(const char *text) {
  const char *launch = strstr(text, " b=");
  return launch ? (size_t)(launch - text) : strlen(text);
}

static float scale_of(const char *text) {
  const char *at = strstr(text, " scale=");
  return at ? strtof(at + strlen(" scale="), NULL) : 0;
}

/* A seed's parity says whether optional tensors are given, and at which end buffers lie; its other
 * bits whether the launch's numbers are the usual ones, whether a multiprocessor is left free, and
 * whether equal launches are looked at. */
static verify_case case_of(const char *text, const fg_recipe *recipe) {
  const int seed = design_number(text, "seed", 0);
  verify_case which = {.shape = {.b = design_number(text, "b", 1),
                                 .h = design_number(text, "h", 1),
                                 .hk = design_number(text, "hk", 1),
                                 .nq = design_number(text, "nq", 0),
                                 .nk = design_number(text, "nk", 0),
                                 .positions = design_number(text, "positions", 0)},
                       .given = scale_of(text) != 0 ? FG_GIVEN_SCALE : 0,
                       .scale = scale_of(text),
                       .style = strstr(text, " style=large")    ? VERIFY_LARGE
                                : strstr(text, " style=absent") ? VERIFY_ABSENT
                                                                : VERIFY_PLAIN,
                       .sm_margin = seed / 2 % 4 == 1,
                       .again = seed / 2 % 8 == 3,
                       .seed = (uint64_t)seed};
  if (seed / 2 % 2) fg_launch_values_fill(recipe, 1, &which.launch);
  return which;
}

/* The kernel of the line. Another arch than the host may lack the plan: then its first plan, or
 * none, where the family does not take the spec there. */
static fg_status make(const char *text, kernels *made) {
  char words[DESIGN_TEXT];
  snprintf(words, sizeof words, "%.*s", (int)kernel_size(text), text);
  fg_status status = kernels_make(NULL, words, made);
  if (status != FG_ESPEC || kernel_device_is_host()) return status;
  kernels_free(made);
  char *plan = strstr(words, " block_q=");
  if (plan) *plan = 0;
  fprintf(stderr, "%s: another plan than on the host\n", words);
  status = kernels_make(NULL, words, made);
  if (status == FG_ESPEC) fprintf(stderr, "%s: %s\n", words, fg_error());
  return status == FG_ESPEC ? FG_OK : status;
}

/* Each row fails whose words have the fault. */
static void test_known(int from, int to) {
  kernels made;
  const fg_status status = make(line[from], &made);
  for (int i = from; i < to && status == FG_OK && made.n; i++) {
    const design_known *fault = design_known_find(n_known, known, line[i]);
    const verify_case which = case_of(line[i], &made.list->source->recipe);
    char errors[512];
    int right = 0;
    if (kernel_judge(made.list, &which, &right, sizeof errors, errors) != FG_OK) right = 0;
    ck_assert_msg(!fault || !right, "fault %s is mended: take its line from known.txt: %s",
                  fault->fault, line[i]);
    ck_assert_msg(fault || right, "%s: wrong:%s", line[i], errors);
  }
  kernels_free(&made);
}

/* A plan that spills on a GPU is the known fault 56.9: the library takes the next one. */
static bool is_spilled(fg_status status) {
  if (status == FG_OK || kernel_device_is_host() || !strstr(fg_error(), " spills ")) return false;
  fprintf(stderr, "fault 56.9: %s\n", fg_error());
  return true;
}

static void run_kernel(int number) {
  const int from = first[number], to = first[number + 1];
  kernels made;
  for (int i = from; i < to; i++)
    if (design_known_find(n_known, known, line[i])) {
      test_known(from, to);
      return;
    }
  const fg_status status = make(line[from], &made);
  if (is_spilled(status)) {
    kernels_free(&made);
    return;
  }
  ck_assert_msg(status == FG_OK, "%s: %s", line[from], fg_error());
  ck_assert_int_eq(made.n, kernel_device_is_host() ? 1 : made.n);
  for (int i = from; i < to && made.n; i++) {
    const verify_case which = case_of(line[i], &made.list->source->recipe);
    kernel_verify(made.list, &which);
  }
  kernels_free(&made);
}

START_TEST(test_core) { run_kernel(_i); }
END_TEST

START_TEST(test_other) { run_kernel(n_core + _i); }
END_TEST

/* Check takes assertions in a test only, and the rows are read before the first. */
static void need(bool good, const char *path) {
  if (good) return;
  fprintf(stderr, "%s: it cannot be read\n", path);
  exit(EXIT_FAILURE);
}

static void read_rows(const char *path) {
  char text[DESIGN_TEXT];
  int n = 0;
  FILE *f = fopen(path, "r");
  need(f != NULL, path);
  while (fgets(text, sizeof text, f)) {
    text[strcspn(text, "\n")] = 0;
    if (!strcmp(text, "# the other pairs")) n_core = n_kernels;
    if (!*text || *text == '#') continue;
    need(n < ROWS && (line[n] = strdup(text)) != NULL, path);
    const size_t size = kernel_size(text);
    if (!n || size != kernel_size(line[n - 1]) || strncmp(line[n - 1], text, size))
      first[n_kernels++] = n;
    first[n_kernels] = ++n;
  }
  fclose(f);
  need(n_core > 0, path);
}

Suite *design_suite(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "tests/design/%s.txt", name);
  read_rows(path);
  n_known = design_known_read("tests/design/known.txt", known);
  need(n_known >= 0, "tests/design/known.txt");
  Suite *suite = suite_create(name);
  TCase *core = tcase_create("every level"), *others = tcase_create("the other pairs");
  tcase_set_timeout(core, SECONDS);
  tcase_set_timeout(others, SECONDS);
  suite_loop(core, test_core, n_core);
  suite_tenth(others, test_other, n_kernels - n_core);
  suite_add_tcase(suite, core);
  suite_add_tcase(suite, others);
  return suite;
}
