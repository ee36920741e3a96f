/* t_api_wisdom.c - which plan wisdom makes the library take: whose lines count, in which class, and
 * what happens when they are of no use. */
#include "api_case.h"
#include "scratch.h"
#include "templates.h"
#include "wisdom/wisdom.h"
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS "head_dim=8 family=mma"
#define SPEC  "attn_fwd-bf16-d8."
static const fg_shape shape = {
    .size = sizeof shape, .b = 2, .h = 4, .hk = 4, .nq = 1000, .nk = 1000, .align = 16};

static const fg_shape small = {
    .size = sizeof small, .b = 2, .h = 4, .hk = 4, .nq = 8, .nk = 8, .align = 16};

/* Plans that the model alone does not take for these shapes, and the one that it does for the
 * first.
 */
static char A[64], B[64], C[64], modelled[64];

static int generation; /* of these kernels */

static fg_measured line_of(const char *plan, double ms) {
  fg_measured m = {
      .shape = shape, .generation = generation, .ms = ms, .verified = true, .when = 1000};
  snprintf(m.name, sizeof m.name, SPEC "%s.host", plan);
  strcpy(m.device, "host");
  return m;
}

static void put_in(const char *file, fg_measured m) { GOOD(fg_wisdom_append(file, &m)); }
static void put(const char *plan, double ms) { put_in("w.txt", line_of(plan, ms)); }

static fg_context *open_with(int n, const char *const *files) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.n_wisdom = n, config.wisdom = files;
  GOOD(fg_open(&config, &context));
  return context;
}

static const char *const usual[] = {"w.txt"};

/* The plan that is chosen for the shape; nothing is compiled. */
static const char *chosen_of(fg_context *context, const char *words, fg_shape of) {
  static char name[64];
  int index;
  fg_op *op = api_define(context, words);
  GOOD(fg_op_candidates(op));
  GOOD(fg_op_choose(op, &of, &index));
  fg_plan_name(&op->candidate[index].plan, sizeof name, name);
  fg_close(context);
  return name;
}

static const char *chosen_at(fg_shape of) { return chosen_of(open_with(1, usual), WORDS, of); }
static const char *chosen(void) { return chosen_at(shape); }

TEST(least_time_wins) {
  put(A, 2), put(B, 1), put(modelled, 3);
  ck_assert_str_eq(chosen(), B);
  put(A, 0.5); /* measured again */
  ck_assert_str_eq(chosen(), A);
  fg_measured old = line_of(B, 0.1);
  old.when = 999; /* before the line that is there */
  put_in("w.txt", old);
  ck_assert_str_eq(chosen(), A);
}

/* D3, D4: lines that say nothing of this device and these kernels, and times that are none. */
TEST(lines_that_do_not_count) {
  fg_measured m = line_of(A, 0.001);
  strcpy(m.device, "NVIDIA H200");
  put_in("w.txt", m);
  m = line_of(A, 0.001);
  snprintf(m.name, sizeof m.name, SPEC "%s.sm_90a", A);
  put_in("w.txt", m);
  m = line_of(A, 0.001);
  m.generation = generation + 1; /* of a flashgen that is newer than this one */
  put_in("w.txt", m);
  m = line_of(A, 0.001);
  m.verified = false;
  put_in("w.txt", m);
  m = line_of(A, 0.001);
  strcpy(m.expression, "mask=k < 7");
  put_in("w.txt", m);
  m = line_of(A, 0.001);
  snprintf(m.name, sizeof m.name, "attn_fwd-bf16-d80.%s.host", A);
  put_in("w.txt", m);
  const double times[] = {0, -1, NAN, INFINITY, 1e300};
  for (int i = 0; i < 5; i++) {
    m = line_of(A, times[i]);
    m.shape.b = 2;
    put_in("w.txt", m);
  }
  FILE *f = fopen("w.txt", "a");
  fputs("rubbish\nw2\tof tomorrow\nw1\ttorn", f);
  fclose(f);
  ck_assert_str_eq(chosen(), modelled);
  put(B, 5); /* however slow, it is all that was measured */
  ck_assert_str_eq(chosen(), B);
}

static fg_measured line_on(const char *device, int multiprocessors, const char *plan, double ms) {
  fg_measured m = line_of(plan, ms);
  snprintf(m.device, sizeof m.device, "%s", device);
  m.multiprocessors = multiprocessors;
  return m;
}

/* The words of FLASHGEN_VERBOSE=dispatch for the plan that is taken. */
static void chosen_and_told(char words[512]) {
  FILE *kept = stderr, *told = tmpfile();
  char line[512];
  *words = 0;
  ck_assert_ptr_nonnull(told);
  setenv("FLASHGEN_VERBOSE", "dispatch", 1);
  stderr = told;
  chosen();
  stderr = kept;
  unsetenv("FLASHGEN_VERBOSE");
  rewind(told);
  while (fgets(line, sizeof line, told))
    if (strstr(line, ": taken, ")) snprintf(words, 512, "%s", strstr(line, ": taken, "));
  fclose(told);
}

/* Lines of the spec without batch_invariant serve until it has some of its own, for the shape by
 * which its plan is chosen. */
TEST(invariant_is_chosen_as_others) {
  const char *words = WORDS " batch_invariant=true";
  fg_measured m = line_of(B, 2), own = line_of(A, 3);
  m.shape.b = 16, m.shape.nk = 8192;
  put_in("w.txt", m);
  ck_assert_str_eq(chosen_of(open_with(1, usual), words, shape), B);
  own.shape = m.shape;
  snprintf(own.name, sizeof own.name, "attn_fwd-bf16-d8-inv.%s.host", A);
  put_in("w.txt", own);
  ck_assert_str_eq(chosen_of(open_with(1, usual), words, shape), A);
}

/* The shape by which it is chosen has pages for its own sequences, not those of the launch. */
TEST(invariant_pages) {
  fg_measured m = line_of(B, 2);
  fg_shape few = shape;
  few.page = 16, few.pages = 2 * 63;
  m.shape.b = 16, m.shape.nk = 8192, m.shape.page = 16, m.shape.pages = 8192;
  snprintf(m.name, sizeof m.name, "attn_fwd-bf16-d8-kvpaged.%s.host", B);
  put_in("w.txt", m);
  const char *words = WORDS " kv_layout=paged batch_invariant=true";
  ck_assert_str_eq(chosen_of(open_with(1, usual), words, few), B);
}

/* A device of as many multiprocessors speaks where this one has nothing to say. Two that are near
 * are not mixed: their times say nothing of each other. */
TEST(near_devices) {
  char words[512];
  put_in("w.txt", line_on("far away", 2, B, 0.01));
  ck_assert_str_eq(chosen(), modelled);
  put_in("w.txt", line_on("the other", 6, A, 2));
  put_in("w.txt", line_on("the other", 6, modelled, 3));
  put_in("w.txt", line_on("a third", 6, B, 2.5));
  put_in("w.txt", line_on("a third", 6, A, 9));
  ck_assert_str_eq(chosen(), A);
  chosen_and_told(words);
  ck_assert_str_eq(words, ": taken, 2 ms, 1 times the least, at b2 h4/4 1000x1000 on the other\n");
  put(B, 7); /* however slow, it is this one's */
  ck_assert_str_eq(chosen(), B);
  chosen_and_told(words);
  ck_assert_str_eq(words, ": taken, 7 ms, 1 times the least, at b2 h4/4 1000x1000\n");
}

/* Wrong numbers there are believed until they have been right here. */
TEST(near_devices_that_were_wrong) {
  fg_measured m = line_on("the other", 6, modelled, 1);
  m.status = FG_MEASURED_WRONG, m.verified = false, m.when = 2000;
  put_in("w.txt", m);
  ck_assert(strcmp(chosen(), modelled) != 0);
  put(modelled, 1); /* earlier */
  ck_assert_str_eq(chosen(), modelled);
}

/* The first file counts most, whatever the times of its lines. */
TEST(files_in_order) {
  static const char *const files[] = {"mine.txt", "theirs.txt"};
  fg_measured m = line_of(A, 1);
  put_in("theirs.txt", m);
  m.ms = 9, m.when = 1;
  put_in("mine.txt", m);
  put_in("theirs.txt", line_of(B, 5));
  ck_assert_str_eq(chosen_of(open_with(2, files), WORDS, shape), B);
  ck_assert_str_eq(chosen_of(open_with(1, files + 1), WORDS, shape), A);
  setenv("FLASHGEN_WISDOM", "mine.txt:theirs.txt", 1);
  ck_assert_str_eq(chosen_of(open_with(0, NULL), WORDS, shape), B);
  setenv("FLASHGEN_WISDOM", "not_made_yet.txt:theirs.txt:", 1);
  ck_assert_str_eq(chosen_of(open_with(0, NULL), WORDS, shape), A);
  ck_assert_str_eq(chosen_of(open_with(1, files), WORDS, shape), A); /* the field goes first */
  setenv("FLASHGEN_WISDOM", "none", 1);
  ck_assert_str_eq(chosen_of(open_with(0, NULL), WORDS, shape), modelled);
}

TEST(files_that_are_none) {
  static const char *const missing[] = {"nowhere.txt"}, *const directory[] = {"t"};
  fg_config config = api_config("cache");
  fg_context *context = NULL;
  config.n_wisdom = 1, config.wisdom = missing;
  FAILS(FG_EIO, "nowhere.txt cannot be read: No such file", fg_open(&config, &context));
  config.wisdom = directory;
  FAILS(FG_EIO, "t is no regular file", fg_open(&config, &context));
  config.wisdom = NULL;
  FAILS(FG_EARGUMENT, "n_wisdom is 1, wisdom is NULL", fg_open(&config, &context));
  config.n_wisdom = -2;
  FAILS(FG_EARGUMENT, "n_wisdom is -2", fg_open(&config, &context));
  ck_assert_ptr_null(context);
}

/* A line of a newer flashgen is said once, and the rest is used. */
TEST(newer_file) {
  fg_config config = api_config("cache");
  fg_context *context;
  FILE *f = fopen("w.txt", "w");
  fputs("w2\tof tomorrow\nw10\tof the day after\n", f);
  fclose(f);
  put(A, 1);
  config.n_wisdom = 1, config.wisdom = usual, config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  ck_assert_str_eq(chosen_of(context, WORDS, shape), A);
  ck_assert_int_eq(api_warnings, 1);
  ck_assert_str_eq(api_warned,
                   "w.txt: 2 lines are of a newer flashgen and not used; this one reads "
                   "format 1");
}

/* So is that the file is another one. */
TEST(other_file) {
  fg_config config = api_config("cache");
  fg_context *context;
  scratch_put("w.txt", "# of mine\n<html>\n</html>\n", 25);
  config.n_wisdom = 1, config.wisdom = usual, config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  ck_assert_str_eq(chosen_of(context, WORDS, shape), modelled);
  ck_assert_int_eq(api_warnings, 1);
  ck_assert_str_eq(api_warned, "w.txt: none of its 2 lines is of wisdom");
  scratch_put("w.txt", "# of mine\n\n", 11);
  GOOD(fg_open(&config, &context));
  fg_close(context);
  ck_assert_int_eq(api_warnings, 1);
}

/* The class of the shape, else the nearest; too far away is nowhere. */
TEST(nearest_class) {
  fg_measured m = line_of(A, 1);
  fg_shape asked = shape;
  put_in("w.txt", m); /* 1000 x 1000 */
  m = line_of(B, 1);
  m.shape.nq = m.shape.nk = 4000;
  put_in("w.txt", m);
  asked.nq = asked.nk = 1010;
  ck_assert_str_eq(chosen_at(asked), A);
  asked.nq = asked.nk = 1300;
  ck_assert_str_eq(chosen_at(asked), A);
  asked.nq = asked.nk = 3000;
  ck_assert_str_eq(chosen_at(asked), B);
  asked.nq = asked.nk = 5500;
  ck_assert_str_eq(chosen_at(asked), B);
  asked.nq = asked.nk = 15000;
  ck_assert_str_eq(chosen_at(asked), chosen_of(open_with(-1, NULL), WORDS, asked));
  ck_assert_str_ne(chosen_at(small), A);
  char far[64];
  snprintf(far, sizeof far, "%s", chosen_at(small));
  ck_assert_str_eq(far, chosen_of(open_with(-1, NULL), WORDS, small));
}

/* Two shapes of one class: the plan that is good at both. */
TEST(shapes_of_a_class) {
  for (int i = 0; i < 2; i++) {
    fg_measured a = line_of(A, i ? 10 : 1), b = line_of(B, i ? 20 : 3),
                c = line_of(C, i ? 12 : 1.1);
    a.shape.nq = b.shape.nq = c.shape.nq = 1000 + i;
    if (i) a.ms = 15;
    put_in("w.txt", a), put_in("w.txt", b), put_in("w.txt", c);
  }
  ck_assert_str_eq(chosen(), C);
}

/* Numbers that were wrong and launches that broke keep a plan out, until it is measured again. */
TEST(bad_plans) {
  const char *first = modelled;
  fg_measured m = line_of(first, 0);
  m.status = FG_MEASURED_WRONG, m.verified = false;
  put_in("w.txt", m);
  const char *second = chosen();
  ck_assert_str_ne(second, first);
  m.status = FG_MEASURED_FAULT, m.when++;
  put_in("w.txt", m);
  ck_assert_str_ne(chosen(), first);
  m = line_of(first, 1);
  m.when += 10;
  put_in("w.txt", m);
  ck_assert_str_eq(chosen(), first);
}

/* It is what forces a plan that has the last word, and alignment. */
TEST(what_goes_before_wisdom) {
  char both[160];
  snprintf(both, sizeof both, "%s,%s", C, B);
  fg_config config = api_config("cache");
  fg_context *context;
  put(A, 1), put(B, 2);
  config.n_wisdom = 1, config.wisdom = usual, config.plan = "mma-q64-*";
  GOOD(fg_open(&config, &context));
  ck_assert_ptr_nonnull(strstr(chosen_of(context, WORDS, shape), "mma-q64-"));
  config.plan = both;
  GOOD(fg_open(&config, &context));
  ck_assert_str_eq(chosen_of(context, WORDS, shape), B); /* the measured one of two */
  fg_shape odd = shape;
  odd.align = 2;
  ck_assert_ptr_nonnull(
      strstr(chosen_of(open_with(1, usual), "head_dim=8 block_kv=64,32", odd), "simt-"));
}

/* D6: the winner no longer compiles: the next best of those that were measured. */
TEST(winner_is_refused) {
  fg_config config = api_config("cache");
  fg_context *context;
  fg_variant winner;
  char name[FG_NAME_MAX], broken[512];
  snprintf(name, sizeof name, SPEC "%s.host", A);
  GOOD(fg_variant_parse(name, &winner));
  const int *v = winner.plan.value;
  snprintf(broken, sizeof broken,
           "$(kernel(\"attn_fwd\")) {\n@ if plan.block_q == %d and plan.block_kv == %d and "
           "plan.stages == %d and plan.warps == %d then\n  broken;\n@ end\n",
           v[1], v[2], v[3], v[4]);
  templates_change("attention/mma/forward.cut", "$(kernel(\"attn_fwd\")) {\n", broken);
  setenv("FLASHGEN_TEMPLATES", "t", 1);
  put(A, 1), put(B, 2), put(C, 3);
  config.n_wisdom = 1, config.wisdom = usual, config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  fg_op *op = api_define(context, WORDS);
  fg_kernel *kernel = api_select(op, shape);
  snprintf(name, sizeof name, SPEC "%s.host", B);
  ck_assert_str_eq(kernel->name, name);
  ck_assert_int_eq(api_warnings, 1);
  snprintf(name, sizeof name, "another plan is taken: " SPEC "%s", A);
  ck_assert_msg(!strncmp(api_warned, name, strlen(name)), "%s", api_warned);
  api_counts(context, 0, 1, 1, 1);
  ck_assert_ptr_eq(api_select(op, shape), kernel); /* remembered */
  api_counts(context, 0, 1, 1, 1);
  fg_close(context);
}

/* Chooses A, B and C. */
static void find_plans(void) {
  char *const names[] = {A, B, C};
  fg_context *context = open_with(-1, NULL);
  fg_op *op = api_define(context, WORDS);
  int model, far, n = 0;
  GOOD(fg_op_candidates(op));
  GOOD(fg_op_choose(op, &shape, &model));
  GOOD(fg_op_choose(op, &small, &far));
  fg_plan_name(&op->candidate[model].plan, sizeof modelled, modelled);
  for (int i = op->n_candidates - 1; i >= 0 && n < 3; i--)
    if (i != model && i != far) fg_plan_name(&op->candidate[i].plan, sizeof A, names[n++]);
  ck_assert_int_eq(n, 3);
  fg_close(context);
}

static void enter(void) {
  templates_enter();
  api_reset();
  find_plans();
  generation = words_generation(WORDS);
}

TEST_FIXTURE(enter, templates_leave)
