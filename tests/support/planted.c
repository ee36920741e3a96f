/* planted.c - plants a bug, runs the kernels made of the templates that have it. */
#include "planted.h"

#include "scratch.h"
#include "spot.h"
#include "words.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = sizeof((planted_bug *)0)->place / sizeof(planted_place) };

const char planted_forward[] = "family=simt head_dim=40 mask=causal bias=true";
const char planted_backward[] =
    "family=simt pass=backward head_dim=40/24 mask=causal bias=grad bias_dims=[h,k]";

/* Several tiles of keys and of rows, the last of each partly empty; two blocks' heads side by side.
 */
static const verify_case small[] = {{.shape = {.b = 3, .h = 2, .hk = 1, .nq = 47, .nk = 77}},
                                    {.seed = 0}};

static const char *words_of(const planted_bug *bug) {
  return bug->words ? bug->words : planted_forward;
}

static const verify_case *cases_of(const planted_bug *bug) {
  return bug->cases ? bug->cases : small;
}

/* One for the templates as they are, one for those of a directory; each has compiled what most
 * kernels have. */
static fg_gen *clean, *bugged;

static void expand_first(fg_gen *gen) {
  fg_variant *list;
  fg_source *source;
  int n;
  if (words_variants(gen, planted_forward, "host", 1, &list, &n) != FG_OK ||
      fg_gen_expand(gen, list, &source) != FG_OK)
    ck_abort_msg("%s", fg_error());
  fg_source_free(source);
  free(list);
}

void planted_begin(void) {
  if (fg_gen_new(NULL, &clean) != FG_OK || fg_gen_new(NULL, &bugged) != FG_OK)
    ck_abort_msg("%s", fg_error());
  expand_first(clean);
  expand_first(bugged);
}

int planted_count(const planted_bug *bug) {
  if (!spot_is_file(bug->where)) return 1;
  const spot at = spot_of(bug->where);
  return spot_count(&at, bug->text);
}

/* Where the bug's text stands. */
static const char *find(const planted_bug *bug, const spot *at) {
  const int n = spot_count(at, bug->text);
  ck_assert_msg(n == 1 || spot_is_file(bug->where), "%s has %d of \"%s\"", bug->where, n,
                bug->text);
  return spot_find(at, bug->text, bug->nth);
}

static int line_of(const char *where, const char *text, int nth) {
  const spot at = spot_of(where);
  return spot_line(&at, spot_find(&at, text, nth));
}

void planted_plant(const planted_bug *bug) {
  const spot where = spot_of(bug->where);
  const fg_embedded *f = where.file;
  const char *at = find(bug, &where), *rest = at + strlen(bug->text);
  size_t size = f->size - strlen(bug->text) + strlen(bug->instead);
  char *made = malloc(size + 1);
  ck_assert_ptr_nonnull(made);
  ck_assert_str_ne(bug->text, bug->instead);
  snprintf(made, size + 1, "%.*s%s%s", (int)(at - f->text), f->text, bug->instead, rest);
  scratch_put(f->name, made, size);
  free(made);
}

void planted_in_t(const char *where, const char *text, const char *instead) {
  static char path[256]; /* of the last one */
  const planted_bug bug = {.where = where, .text = text, .instead = instead};
  if (*path) remove(path); /* it may be gone with its test's directory */
  mkdir("t", 0777);        /* it may be there */
  ck_assert_int_eq(chdir("t"), 0);
  planted_plant(&bug);
  ck_assert_int_eq(chdir(".."), 0);
  snprintf(path, sizeof path, "t/%s", spot_of(where).file->name);
}

/* ---- what was said ---- */

static int matches(const char *patterns, const char *text) {
  char one[256], whole[300];
  for (const char *at = patterns; *at; at += strcspn(at, "|"), at += *at == '|') {
    snprintf(one, sizeof one, "%.*s", (int)strcspn(at, "|"), at);
    snprintf(whole, sizeof whole, "*%s*", one);
    if (!fnmatch(whole, text, 0)) return 1;
  }
  return 0;
}

/* Does what was said name a line of the place? */
static int names(const char *said, const planted_place *p) {
  const spot where = spot_of(p->where);
  char want[128];
  snprintf(want, sizeof want, "%s:", where.file->name);
  const char *first = p->text ? spot_find(&where, p->text, 0) : where.text;
  const char *last = p->text ? first : where.text + where.size - 1;
  const int from = spot_line(&where, first), to = spot_line(&where, last);
  for (const char *at = said; (at = strstr(at, want)); at += strlen(want)) {
    const int line = atoi(at + strlen(want));
    if (line >= from && line <= to) return 1;
  }
  return 0;
}

/* A bug changes no line's number: its `instead` has as many lines as its text. */
static int at_place(const planted_bug *bug, const char *said) {
  if (!bug->place[0].where) return strstr(said, spot_of(bug->where).file->name) != NULL;
  for (size_t i = 0; i < PLACES && bug->place[i].where; i++)
    if (names(said, &bug->place[i])) return 1;
  return 0;
}

static void must_say(const planted_bug *bug, const char *where) {
  ck_assert_msg(matches(bug->fault, fg_error()), "%s: expected \"%s\", got: %s", where, bug->fault,
                fg_error());
  ck_assert_msg(at_place(bug, fg_error()), "%s: another place than expected: %s", where,
                fg_error());
}

/* ---- runs ---- */

/* Does the case show the bug? A fault must be the one expected. */
static int caught(const planted_bug *bug, const kernel *k, const verify_case *which) {
  char errors[512], where[512];
  int right = 1;
  fg_status status = kernel_judge(k, which, &right, sizeof errors, errors);
  if (status == FG_OK) return !right && (!bug->fault || matches(bug->fault, "wrong numbers"));
  snprintf(where, sizeof where, "%s, \"%s\"[%d], %s, seed %d", bug->where, bug->text, bug->nth,
           k->name, (int)which->seed);
  ck_assert_msg(bug->fault && status == FG_ETEMPLATE, "%s: expected %s, got: %s", where,
                bug->fault ? "a fault" : "wrong numbers", fg_error());
  must_say(bug, where);
  return 1;
}

static void expect(const planted_bug *bug, const kernel *k, uint64_t seed) {
  const verify_case *which = cases_of(bug);
  int found = 0;
  for (; which->shape.b && !found; which++) {
    verify_case seeded = *which;
    seeded.seed += seed;
    found = caught(bug, k, &seeded);
  }
  ck_assert_msg(found, "%s, \"%s\"[%d], line %d, %s, seed %d: not caught", bug->where, bug->text,
                bug->nth, line_of(bug->where, bug->text, bug->nth), k->name, (int)seed);
}

/* Numbers are wrong in every order of threads, so that one shows it. Under FLASHGEN_TEST_QUICK two
 * have to do for many. */
static int seeds_of(const planted_bug *bug) {
  if (bug->seeds) return suite_is_quick() && bug->seeds > 2 ? 2 : bug->seeds;
  return bug->fault ? PLANTED_SEEDS : 1;
}

/* Runs the variant if the bug changes its text; then 1. */
static int try_variant(const planted_bug *bug, const fg_variant *v) {
  fg_source *before, *after;
  kernel k;
  GOOD(fg_gen_expand(clean, v, &before));
  GOOD(fg_gen_expand(bugged, v, &after));
  const int changed = strcmp(before->text, after->text) != 0;
  fg_source_free(before);
  if (!changed) {
    fg_source_free(after);
    return 0;
  }
  GOOD(kernel_compile(after, v, true, &k));
  for (int seed = 0; seed < seeds_of(bug); seed++) expect(bug, &k, (uint64_t)seed);
  kernel_free(&k);
  return 1;
}

/* Of each point of a grid the first kernel that has the bug; of all of them one under
 * FLASHGEN_TEST_QUICK. Returns how many were run. */
static int try_grid(const planted_bug *bug, const char *words) {
  fg_variant *list;
  int n, sum = 0, has_run = 0;
  GOOD(words_variants(clean, words, kernel_device()->arch, 0, &list, &n));
  for (int i = 0; i < n && !(sum && suite_is_quick()); i++) {
    if (i && !fg_point_equal(&list[i].point, &list[i - 1].point)) has_run = 0;
    if (!has_run) sum += has_run = try_variant(bug, &list[i]);
  }
  free(list);
  return sum;
}

static void try_grids(const planted_bug *bug) {
  int tried = 0;
  char *words = strdup(words_of(bug)), *rest;
  ck_assert_ptr_nonnull(words);
  GOOD(fg_gen_use(bugged, "."));
  for (char *grid = strtok_r(words, ";", &rest); grid && !(tried && suite_is_quick());
       grid = strtok_r(NULL, ";", &rest))
    tried += try_grid(bug, grid);
  ck_assert_msg(tried, "%s, \"%s\"[%d]: no kernel has it", bug->where, bug->text, bug->nth);
  free(words);
}

static void try_refused(const planted_bug *bug) {
  kernels made;
  ck_assert_int_eq(kernels_make(".", words_of(bug), &made), bug->refused);
  must_say(bug, bug->where);
  kernels_free(&made);
}

void planted_try(const planted_bug *bug) {
  planted_plant(bug);
  if (bug->refused)
    try_refused(bug);
  else
    try_grids(bug);
}

/* Verifies the kernel in all cases, under each seed. */
static void verify_all(const planted_bug *bug, const kernel *k) {
  for (const verify_case *which = cases_of(bug); which->shape.b; which++)
    for (int seed = 0; seed < seeds_of(bug); seed++) {
      verify_case seeded = *which;
      seeded.seed += (uint64_t)seed;
      kernel_verify(k, &seeded);
    }
}

void planted_try_none(const planted_bug *bug) {
  fg_variant *list;
  kernel k;
  int n;
  GOOD(words_variants(clean, words_of(bug), kernel_device()->arch, 1, &list, &n));
  for (int i = 0; i < n && !(i && suite_is_quick()); i++) {
    GOOD(kernel_make(clean, &list[i], true, &k));
    verify_all(bug, &k);
    kernel_free(&k);
  }
  free(list);
}
