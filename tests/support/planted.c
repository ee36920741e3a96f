/* planted.c - copies templates, plants a bug, runs the kernels made of them. */
#include "planted.h"

#include "expand/embedded.h"
#include "scratch.h"
#include "words.h"

#include <ctype.h>
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

void planted_copy(void) {
  for (const fg_embedded *f = fg_embedded_templates; f->name; f++)
    scratch_put(f->name, f->text, f->size);
}

static int count(const char *text, const char *what) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
  return n;
}

static const fg_embedded *file_of(const char *name) {
  const fg_embedded *f = fg_embedded_find(fg_embedded_templates, name);
  if (!f) ck_abort_msg("no template %s", name); /* no ck_assert: suites count before they run */
  return f;
}

int planted_count(const char *file, const char *text) { return count(file_of(file)->text, text); }

/* The nth occurrence of the text in the template as built in. */
static const char *find(const fg_embedded *f, const char *text, int nth) {
  int n = count(f->text, text);
  ck_assert_msg(nth < n, "%s has %d of \"%s\", not %d", f->name, n, text, nth + 1);
  const char *at = strstr(f->text, text);
  for (; nth > 0; nth--) at = strstr(at + strlen(text), text);
  return at;
}

int planted_line(const char *file, const char *text, int nth) {
  const fg_embedded *f = file_of(file);
  int line = 1;
  for (const char *at = find(f, text, nth), *c = f->text; c < at; c++) line += *c == '\n';
  return line;
}

void planted_plant(const planted_bug *bug) {
  const fg_embedded *f = file_of(bug->file);
  const char *at = find(f, bug->text, bug->nth), *rest = at + strlen(bug->text);
  size_t size = f->size - strlen(bug->text) + strlen(bug->instead);
  char *made = malloc(size + 1);
  ck_assert_ptr_nonnull(made);
  snprintf(made, size + 1, "%.*s%s%s", (int)(at - f->text), f->text, bug->instead, rest);
  scratch_put(bug->file, made, size);
  free(made);
}

void planted_in_t(const char *file, const char *text, const char *instead) {
  const planted_bug bug = {.file = file, .text = text, .instead = instead};
  mkdir("t", 0777); /* it may be there */
  ck_assert_int_eq(chdir("t"), 0);
  planted_copy();
  planted_plant(&bug);
  ck_assert_int_eq(chdir(".."), 0);
}

fg_status planted_make(const planted_bug *bug, kernels *made) {
  return kernels_make(".", words_of(bug), made);
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

/* A bug changes no line's number: its `instead` has as many lines as its text. */
static int at_place(const planted_bug *bug, const char *said) {
  char want[128];
  if (!bug->place[0].file) {
    snprintf(want, sizeof want, "%s:", bug->file);
    return strstr(said, want) != NULL;
  }
  for (size_t i = 0; i < PLACES && bug->place[i].file; i++) {
    const planted_place *p = &bug->place[i];
    int n = snprintf(want, sizeof want, "%s:", p->file);
    if (p->text)
      snprintf(want + n, sizeof want - (size_t)n, "%d", planted_line(p->file, p->text, 0));
    const char *at = strstr(said, want);
    if (at && (!p->text || !isdigit((unsigned char)at[strlen(want)]))) return 1;
  }
  return 0;
}

void planted_said(const planted_bug *bug, const char *where) {
  ck_assert_msg(matches(bug->fault, fg_error()), "%s: expected \"%s\", got: %s", where, bug->fault,
                fg_error());
  ck_assert_msg(at_place(bug, fg_error()), "%s: another place than expected: %s", where,
                fg_error());
}

/* ---- runs ---- */

/* Does the case show the bug? A fault must be the one expected. */
static int caught(const planted_bug *bug, const kernel *k, const verify_case *which) {
  char errors[512], where[256];
  int right = 1;
  fg_status status = kernel_judge(k, which, &right, sizeof errors, errors);
  if (status == FG_OK) return !right && (!bug->fault || matches(bug->fault, "wrong numbers"));
  snprintf(where, sizeof where, "%s[%d], %s, seed %d", bug->text, bug->nth, k->name,
           (int)which->seed);
  ck_assert_msg(bug->fault && status == FG_ETEMPLATE, "%s: expected %s, got: %s", where,
                bug->fault ? "a fault" : "wrong numbers", fg_error());
  planted_said(bug, where);
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
  ck_assert_msg(found, "%s[%d], line %d, %s, seed %d: not caught", bug->text, bug->nth,
                planted_line(bug->file, bug->text, bug->nth), k->name, (int)seed);
}

/* Under FLASHGEN_TEST_QUICK two seeds and one kernel a bug have to do. */
static int seeds_of(const planted_bug *bug) {
  const int seeds = bug->seeds ? bug->seeds : PLANTED_SEEDS;
  return suite_is_quick() && seeds > 2 ? 2 : seeds;
}

/* Runs the variant if the bug changes its text; then 1. */
static int try_variant(const planted_bug *bug, const fg_variant *v, fg_gen *clean, fg_gen *bugged) {
  fg_source *before, *after;
  kernel k;
  GOOD(fg_gen_expand(clean, v, &before));
  GOOD(fg_gen_expand(bugged, v, &after));
  int changed = strcmp(before->text, after->text) != 0;
  fg_source_free(before);
  fg_source_free(after);
  if (!changed) return 0;
  GOOD(kernel_make(bugged, v, true, &k));
  for (int seed = 0; seed < seeds_of(bug); seed++) expect(bug, &k, (uint64_t)seed);
  kernel_free(&k);
  return 1;
}

void planted_try(const planted_bug *bug) {
  fg_gen *clean, *bugged;
  fg_variant *list;
  int n, changed = 0;
  planted_copy();
  planted_plant(bug);
  GOOD(fg_gen_new(NULL, &clean));
  GOOD(fg_gen_new(".", &bugged));
  GOOD(words_variants(clean, words_of(bug), kernel_device()->arch, 0, &list, &n));
  for (int i = 0; i < n && !(changed && suite_is_quick()); i++)
    changed += try_variant(bug, &list[i], clean, bugged);
  ck_assert_msg(changed > 0, "%s[%d]: no kernel has it", bug->text, bug->nth);
  fg_gen_free(clean);
  fg_gen_free(bugged);
  free(list);
}

void planted_try_none(const planted_bug *bug) {
  kernels made;
  planted_copy();
  GOOD(planted_make(bug, &made));
  for (int i = 0; i < made.n && !(i && suite_is_quick()); i++)
    for (const verify_case *which = cases_of(bug); which->shape.b; which++)
      for (int seed = 0; seed < seeds_of(bug); seed++) {
        verify_case seeded = *which;
        seeded.seed += (uint64_t)seed;
        kernel_verify(&made.list[i], &seeded);
      }
  kernels_free(&made);
}
