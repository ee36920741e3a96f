/* reference_layout.c - draws layouts: where sequences are, at edges of tiles and off them, empty
 * ones, one that has all there is. */
#include "reference_sequence.h"

#include "base/random.h"
#include "reference_slices.h"

#include <stdlib.h>
#include <string.h>

fg_shape reference_lay_out(const fg_recipe *recipe, const fg_shape *shape, uint64_t seed) {
  static const int64_t pages[] = {16, 1, 64, 3}; /* odd seeds leave first_k out */
  const fg_layout layout = recipe->layout;
  const int64_t gap = (int64_t)(seed % 3) * 5;
  fg_shape s = *shape;
  if (layout.q == FG_PACKED && !s.tokens_q) s.nq = s.tokens_q = s.b * s.nq + gap;
  if (layout.kv == FG_PACKED && !s.tokens_k) s.nk = s.tokens_k = s.b * s.nk + gap;
  if (layout.slices && s.b != 1) s.nq *= s.b, s.nk *= s.b, s.b = 1;
  if (layout.slices && !s.slices) s.slices = reference_count_slices(seed);
  if (layout.kv == FG_CACHED && !s.pages) s.pages = s.b + 1;
  if (layout.kv == FG_PAGED && !s.page) s.page = pages[seed % 4];
  if (layout.kv == FG_PAGED && !s.pages) s.pages = s.b * ((s.nk + s.page - 1) / s.page) + 2;
  return s;
}

static int64_t below(uint64_t *state, int64_t n) {
  return n > 0 ? (int64_t)(fg_random_next(state) % (uint64_t)n) : 0;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Starts of n sequences in so many tokens: anywhere, at edges of tiles, as long as each other, or
 * all tokens in one. */
static void draw_starts(int64_t n, int64_t tokens, uint64_t seed, uint64_t *state, double *starts) {
  const int64_t lucky = below(state, n);
  for (int64_t i = 0; i <= n; i++) {
    const int64_t any = below(state, tokens + 1);
    switch (seed / 2 % 4) {
    case 0:
      starts[i] = (double)any;
      break;
    case 1:
      starts[i] = (double)(any / 64 * 64);
      break;
    case 2:
      starts[i] = (double)(n ? i * (tokens / n) : 0);
      break;
    default:
      starts[i] = (double)(i <= lucky ? 0 : tokens);
    }
  }
  qsort(starts, (size_t)n + 1, sizeof *starts, by_value);
}

/* Lengths up to `most` each: all, none, any, and now and then more than there are. Of some caches
 * one has no keys. */
static void draw_used(const reference_case *c, const double *starts, int64_t most, uint64_t *state,
                      double *used) {
  for (int64_t b = 0; b < c->problem->shape.b; b++) {
    const int64_t rows = starts ? (int64_t)(starts[b + 1] - starts[b]) : most;
    const int64_t kind = below(state, 8);
    used[b] = (double)(kind == 0   ? rows + 3
                       : kind < 3  ? rows
                       : kind == 3 ? 0
                                   : below(state, rows + 1));
  }
  if (!starts && c->problem->shape.b > 2) used[c->which->seed % (uint64_t)c->problem->shape.b] = 0;
}

/* The first rows that count: 0, any, and such as lie beyond the last. That of the longest sequence
 * begins no page. */
static void draw_first(const reference_case *c, uint64_t *state, double *first) {
  const fg_shape *s = &c->problem->shape;
  const double *used = reference_value(c, "used_k");
  int64_t longest = 0;
  for (int64_t b = 0; b < s->b; b++) {
    const int64_t own = (int64_t)used[b], kind = below(state, 8);
    const int64_t beyond = own + below(state, s->nk - own + 1), any = below(state, own + 2);
    first[b] = (double)(kind < 4 ? 0 : kind == 4 ? beyond : any);
    if (used[b] > used[longest]) longest = b;
  }
  const int64_t own = (int64_t)used[longest], page = s->page, row = below(state, own / 2);
  if (page > 1 && own > 2) first[longest] = (double)(row % page ? row : row + 1);
}

/* Pages of keys that count are any, and may be those of another sequence; others are no pages. */
static void draw_table(const reference_case *c, uint64_t *state, double *table) {
  const fg_shape *shape = &c->problem->shape;
  const int64_t columns = (shape->nk + shape->page - 1) / shape->page;
  for (int64_t b = 0; b < shape->b; b++) {
    const reference_sequence s = reference_sequence_of(c, b);
    for (int64_t i = 0; i < columns; i++) {
      const bool counts =
          s.nk > 0 && i >= s.first_k / shape->page && i <= (s.first_k + s.nk - 1) / shape->page;
      const int64_t wild = below(state, 2) ? INT32_MAX : -7;
      table[b * columns + i] = (double)(counts ? below(state, shape->pages) : wild);
    }
  }
}

/* Where the rows (or keys) of a sequence's part begin, and how many the whole sequence has. Equal
 * parts at edges of tiles; any; of rows and keys that are the same; and such as pass the whole. */
static void draw_part(const reference_case *c, bool of_q, bool of_pos, double *values) {
  for (int64_t b = 0; b < c->problem->shape.b; b++) {
    const reference_sequence s = reference_sequence_of(c, b);
    const int64_t own = of_q ? s.nq : s.nk, shape = (int64_t)(c->which->seed / 2 % 4);
    uint64_t both = c->which->seed * 6700417 + (uint64_t)b, state = both + (of_q ? 977U : 1954U);
    const int64_t parts = 1 + below(&both, 3), anyhow = below(&state, 140);
    int64_t whole = own + anyhow, pos = below(&state, anyhow + 1);
    if (shape == 1) whole = parts * own, pos = below(&state, parts) * own;
    if (shape == 2) whole = 3 * s.nq / 2 + s.nk, pos = below(&state, whole - own + 1);
    if (shape == 3) whole = below(&state, 200), pos = 32 * below(&state, 4);
    values[b] = (double)(of_pos ? pos : whole);
  }
}

bool reference_draw_layout(const reference_case *c, int tensor, double *values) {
  const fg_shape *shape = &c->problem->shape;
  const char *name = c->problem->recipe->tensor[tensor].name;
  uint64_t state = c->which->seed * 7368787 + (uint64_t)tensor;
  if (c->problem->recipe->tensor[tensor].slot >= 0)
    return false; /* a declared input of that name */
  if (!strcmp(name, "starts_q"))
    draw_starts(shape->b, shape->tokens_q, c->which->seed, &state, values);
  else if (!strcmp(name, "starts_k"))
    draw_starts(shape->b, shape->tokens_k, c->which->seed, &state, values);
  else if (!strcmp(name, "used_q"))
    draw_used(c, reference_value(c, "starts_q"), 0, &state, values);
  else if (!strcmp(name, "used_k"))
    draw_used(c, reference_value(c, "starts_k"), shape->nk, &state, values);
  else if (!strcmp(name, "first_k"))
    draw_first(c, &state, values);
  else if (!strcmp(name, "rows"))
    for (int64_t b = 0; b < shape->b; b++) values[b] = (double)below(&state, shape->pages);
  else if (!strcmp(name, "table"))
    draw_table(c, &state, values);
  else if (!strncmp(name, "pos_", 4) || !strncmp(name, "whole_", 6))
    draw_part(c, name[strlen(name) - 1] == 'q', *name == 'p', values);
  else
    return reference_draw_slices(c, name, values);
  return true;
}
