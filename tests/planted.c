/* planted.c - copies templates, plants a bug, runs the kernels made of them. */
#include "planted.h"

#include "embedded.h"
#include "scratch.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char planted_forward[] = "head_dim=40 mask=causal bias=true";
const char planted_backward[] =
    "pass=backward head_dim=40/24 mask=causal bias=grad bias_dims=[h,k]";

/* Several tiles of keys and of rows, the last of each partly empty; two blocks' heads side by side.
 */
static verify_case case_of(uint64_t seed) {
  return (verify_case){.shape = {.b = 3, .h = 2, .hk = 1, .nq = 47, .nk = 77}, .seed = seed};
}

static void put(const char *name, const char *text, size_t size) {
  char dir[64];
  const char *slash = strchr(name, '/');
  snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - name) : 0, name);
  if (slash) mkdir(dir, 0777); /* it may be there */
  scratch_put(name, text, size);
}

void planted_copy(void) {
  for (const fg_embedded *f = fg_embedded_templates; f->name; f++) put(f->name, f->text, f->size);
}

static int count(const char *text, const char *what) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
  return n;
}

static const fg_embedded *file_of(const char *name) {
  const fg_embedded *f = fg_embedded_find(fg_embedded_templates, name);
  ck_assert_msg(f != NULL, "no template %s", name);
  return f;
}

int planted_plant(const planted_bug *bug) {
  const fg_embedded *f = file_of(bug->file);
  int n = count(f->text, bug->text);
  ck_assert_msg(bug->nth < n, "%s has %d of \"%s\", not %d", bug->file, n, bug->text, bug->nth + 1);
  const char *at = strstr(f->text, bug->text);
  for (int i = 0; i < bug->nth; i++) at = strstr(at + strlen(bug->text), bug->text);
  const char *rest = at + strlen(bug->text);
  size_t size = f->size - strlen(bug->text) + strlen(bug->instead);
  char *made = malloc(size + 1);
  ck_assert_ptr_nonnull(made);
  snprintf(made, size + 1, "%.*s%s%s", (int)(at - f->text), f->text, bug->instead, rest);
  scratch_put(bug->file, made, size);
  free(made);
  return n;
}

fg_status planted_make(const planted_bug *bug, kernels *made) {
  return kernels_make(".", bug->words ? bug->words : planted_forward, made);
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

/* Line of the first text in the file as built in: a bug changes no line's number, its `instead`
 * has as many lines as its text. */
static int line_of(planted_place place) {
  const fg_embedded *f = file_of(place.file);
  const char *at = strstr(f->text, place.text);
  ck_assert_msg(at != NULL, "%s has no \"%s\"", place.file, place.text);
  int line = 1;
  for (const char *c = f->text; c < at; c++) line += *c == '\n';
  return line;
}

static int at_place(const planted_bug *bug, const char *said) {
  char want[128];
  if (!bug->place[0].file) {
    snprintf(want, sizeof want, "%s:", bug->file);
    return strstr(said, want) != NULL;
  }
  for (int i = 0; i < 2 && bug->place[i].file; i++) {
    snprintf(want, sizeof want, "%s:%d", bug->place[i].file, line_of(bug->place[i]));
    const char *at = strstr(said, want);
    if (at && !isdigit((unsigned char)at[strlen(want)])) return 1;
  }
  return 0;
}

void planted_said(const planted_bug *bug, const char *where) {
  ck_assert_msg(matches(bug->fault, fg_error()), "%s: expected \"%s\", got: %s", where, bug->fault,
                fg_error());
  ck_assert_msg(at_place(bug, fg_error()), "%s: another place than expected: %s", where,
                fg_error());
}

static void expect(const planted_bug *bug, const kernel *k, uint64_t seed) {
  char errors[512], where[256];
  int right = 1;
  verify_case which = case_of(seed);
  fg_status status = kernel_judge(k, &which, &right, sizeof errors, errors);
  snprintf(where, sizeof where, "%s[%d], %s, seed %d", bug->text, bug->nth, k->name, (int)seed);
  if (!bug->fault) {
    ck_assert_msg(status == FG_OK, "%s: expected wrong numbers, got: %s", where, fg_error());
    ck_assert_msg(!right, "%s: not caught:%s", where, errors);
    return;
  }
  ck_assert_msg(status != FG_OK, "%s: not caught, numbers %s:%s", where, right ? "right" : "wrong",
                errors);
  ck_assert_msg(status == FG_ETEMPLATE, "%s: %s", where, fg_error());
  planted_said(bug, where);
}

void planted_expect(const planted_bug *bug, const kernels *made) {
  int seeds = bug->seeds ? bug->seeds : PLANTED_SEEDS;
  for (int i = 0; i < made->n; i++)
    for (int seed = 0; seed < seeds; seed++) expect(bug, &made->list[i], (uint64_t)seed);
}

void planted_expect_none(const kernels *made) {
  for (int i = 0; i < made->n; i++)
    for (int seed = 0; seed < PLANTED_SEEDS; seed++) {
      verify_case which = case_of((uint64_t)seed);
      kernel_verify(&made->list[i], &which);
    }
}
