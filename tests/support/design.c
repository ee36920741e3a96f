/* design.c - rows of the design: their words, what pairs they show, what they cost. */
#include "design.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int design_number(const char *words, const char *name, int fallback) {
  const size_t size = strlen(name);
  for (const char *at = words; at; at = strchr(at, ' ')) {
    at += *at == ' ';
    if (!strncmp(at, name, size) && at[size] == '=') return atoi(at + size + 1);
  }
  return fallback;
}

/* Is the word, of so many bytes, a whole word of the text? */
static bool has_word(const char *text, const char *word, size_t size) {
  for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
    if ((at == text || at[-1] == ' ') && (!at[size] || at[size] == ' ')) return true;
  return false;
}

bool design_has_words(const char *text, const char *words) {
  char copy[DESIGN_TEXT], *rest;
  snprintf(copy, sizeof copy, "%s", words);
  for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
    if (!has_word(text, w, strlen(w))) return false;
  return true;
}

static int count_words(const char *words) {
  int n = *words != 0;
  for (const char *at = words; *at; at++) n += *at == ' ';
  return n;
}

int design_plan_level(design *d, const char *words) {
  design_axis *axis = &d->axis[d->plan];
  for (int i = 0; i < axis->n; i++)
    if (!strcmp(axis->level[i], words)) return i;
  if (axis->n == DESIGN_LEVELS) return -1;
  snprintf(d->plans[axis->n], sizeof d->plans[axis->n], "%s", words);
  axis->level[axis->n] = d->plans[axis->n];
  return axis->n++;
}

/* Appends the words of axes of a part; returns the new length. */
static size_t add_words(const design *d, const design_row *row, design_part part, size_t n,
                        size_t size, char *text) {
  for (int a = 0; a < d->n; a++) {
    const int level = row->level[a];
    if (d->axis[a].part != part || level < 0 || !*d->axis[a].level[level]) continue;
    n += (size_t)snprintf(text + n, n < size ? size - n : 0, " %s", d->axis[a].level[level]);
  }
  return n;
}

void design_spec_words(const design *d, const design_row *row, size_t size, char *text) {
  add_words(d, row, DESIGN_SPEC, (size_t)snprintf(text, size, "%s", d->words), size, text);
}

static void kernel_words(const design *d, const design_row *row, size_t size, char *text) {
  design_spec_words(d, row, size, text);
  add_words(d, row, DESIGN_PLANS, strlen(text), size, text);
}

void design_line(const design *d, const design_row *row, size_t size, char *text) {
  kernel_words(d, row, size, text);
  const size_t n = add_words(d, row, DESIGN_SHAPE, strlen(text), size, text);
  snprintf(text + n, size - n, " seed=%d", row->seed);
}

/* The words of the line that are fields of plans, as a level of the plan's axis has them. */
static void read_plan(const char *line, char words[DESIGN_PLAN]) {
  static const char *const fields[] = {
      "block_q=", "block_kv=", "stages=", "warps=", "warps_per_key=", "key_parts="};
  char copy[DESIGN_TEXT], *rest;
  size_t n = 0;
  snprintf(copy, sizeof copy, "%s", line);
  words[0] = 0;
  for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
      if (!strncmp(w, fields[i], strlen(fields[i])) && n < DESIGN_PLAN)
        n += (size_t)snprintf(words + n, DESIGN_PLAN - n, "%s%s", n ? " " : "", w);
}

bool design_read_line(design *d, const char *line, design_row *row) {
  char again[DESIGN_TEXT], plan[DESIGN_PLAN];
  memset(row->level, 0, sizeof row->level);
  read_plan(line, plan);
  row->seed = design_number(line, "seed", 0);
  row->level[d->plan] = (signed char)design_plan_level(d, plan);
  row->level[d->seed] = (signed char)(row->seed % 2);
  for (int a = 0; a < d->n; a++) {
    if (d->axis[a].part != DESIGN_SPEC && d->axis[a].part != DESIGN_SHAPE) continue;
    for (int x = 1, most = 0; x < d->axis[a].n; x++) {
      const char *words = d->axis[a].level[x];
      if (count_words(words) <= most || !design_has_words(line, words)) continue;
      most = count_words(words);
      row->level[a] = (signed char)x;
    }
  }
  design_settle(d, row);
  design_line(d, row, sizeof again, again);
  return row->level[d->plan] >= 0 && !strcmp(again, line);
}

bool design_same_kernel(const design *d, const design_row *a, const design_row *b) {
  for (int i = 0; i < d->n; i++)
    if (d->axis[i].part <= DESIGN_PLANS && a->level[i] != b->level[i]) return false;
  return true;
}

/* Does another axis of the row have the words that this axis needs? */
static bool is_needed(const design *d, const design_row *row, int axis) {
  for (int a = 0; a < d->n; a++)
    if (a != axis && d->axis[a].part == DESIGN_SPEC && row->level[a] >= 0 &&
        strstr(d->axis[a].level[row->level[a]], d->axis[axis].needs))
      return true;
  return false;
}

void design_settle(const design *d, design_row *row) {
  for (int a = 0; a < d->n; a++) {
    if (!d->axis[a].needs) continue;
    const bool needed = is_needed(d, row, a);
    if (!needed) row->level[a] = -1;
    if (needed && row->level[a] < 0) row->level[a] = 0;
  }
  if (d->q_kind < 0) return;
  row->level[d->q_kind] = (signed char)d->q_kinds[row->level[d->nq]];
  row->level[d->k_kind] = (signed char)d->k_kinds[row->level[d->nk]];
}

static bool is_q(const design *d, int a) { return a == d->nq || a == d->q_kind; }
static bool is_k(const design *d, int a) { return a == d->nk || a == d->k_kind; }

bool design_wanted(const design *d, int a, int b) {
  if (d->q_kind < 0) return a != b;
  if (a == b || (is_q(d, a) && is_q(d, b)) || (is_k(d, a) && is_k(d, b))) return false;
  const bool a_is_length = a == d->nq || a == d->nk, b_is_length = b == d->nq || b == d->nk;
  const int other = a_is_length ? b : a;
  return (!a_is_length && !b_is_length) || other == d->plan || !strcmp(d->axis[other].name, "mask");
}

/* A group that is wider than a tile shows in one row of queries. */
static bool is_wide_group(const design *d, const design_row *row, int a) {
  return a == d->heads && row->level[a] == d->axis[a].n - 1;
}

bool design_shows(const design *d, const design_row *row, int a, int b) {
  if (d->q_kind < 0) return d->q_length[row->level[d->nq]] > 0 || a == d->nq || b == d->nq;
  const bool q = is_q(d, a) || is_q(d, b), k = is_k(d, a) || is_k(d, b);
  const bool wide = is_wide_group(d, row, a) || is_wide_group(d, row, b);
  const int nq = d->q_length[row->level[d->nq]], nk = d->k_length[row->level[d->nk]];
  return (q || nq >= (wide ? 1
                      : k  ? d->some
                           : d->several)) &&
         (k || nk >= (q ? d->some : d->several));
}

/* An element takes some work whatever its width, and with slices once for each of several. Heads
 * wider than 256/256 count as these, so that they meet the same lengths. */
int64_t design_cost(const design *d, const design_row *row) {
  enum { COUNTED = 512, EACH = 48, SLICES = 8 };
  const char *heads = d->axis[d->heads].level[row->level[d->heads]];
  int width = 2 * COUNTED, times = 1;
  for (int a = 0; a < d->n; a++) {
    if (row->level[a] > 0 && !strcmp(d->axis[a].name, "slices")) times = SLICES;
    const char *dims = row->level[a] >= 0 && !strcmp(d->axis[a].name, "head_dim")
                           ? strchr(d->axis[a].level[row->level[a]], '=')
                           : NULL;
    if (!dims) continue;
    const char *slash = strchr(dims, '/');
    width = atoi(dims + 1) + atoi(slash ? slash + 1 : dims + 1);
  }
  return (int64_t)times * design_number(heads, "b", 1) * design_number(heads, "h", 1) *
         d->q_length[row->level[d->nq]] * d->k_length[row->level[d->nk]] *
         ((width < COUNTED ? width : COUNTED) + EACH);
}
