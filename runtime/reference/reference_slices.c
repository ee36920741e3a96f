/* reference_slices.c - lists of slices: how they are drawn, and which slice a pair is of. */
#include "reference_slices.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t below(uint64_t *state, int64_t n) {
  return n > 0 ? (int64_t)(fg_random_next(state) % (uint64_t)n) : 0;
}

/* ---- drawing ---- */

/* How the ranges of a list lie. */
enum { ANYHOW, DOCUMENTS, EDGES, SHORT, WILD, ALL_ROWS, SHAPES };

int64_t reference_count_slices(uint64_t seed) {
  static const int64_t counts[] = {5, 33, 1, 0, 70, 12, 2, 40};
  return counts[seed % (sizeof counts / sizeof *counts)];
}

/* A range of tokens; now and then one that is reversed, or leaves the tokens. */
static void draw_range(int shape, int64_t tokens, uint64_t *state, double range[2]) {
  int64_t first = below(state, tokens + 1), end = below(state, tokens + 1);
  if (first > end && below(state, 8)) {
    const int64_t swapped = first;
    first = end, end = swapped;
  }
  if (shape == EDGES) first = first / 32 * 32, end = end / 32 * 32;
  if (shape == SHORT) end = first + below(state, 9);
  if (shape == WILD) first -= below(state, 99), end += below(state, 99);
  if (shape == WILD && !below(state, 4)) end = below(state, 2) ? INT32_MAX : INT32_MIN;
  if (shape == WILD && !below(state, 4)) first = below(state, 2) ? INT32_MAX : INT32_MIN;
  if (shape == ALL_ROWS && below(state, 2)) first = 0, end = tokens;
  range[0] = (double)first, range[1] = (double)end;
}

/* Slice i of n, of as many tokens each. */
static void draw_document(int64_t i, int64_t n, int64_t tokens, double range[2]) {
  range[0] = (double)(tokens * i / n), range[1] = (double)(tokens * (i + 1) / n);
}

/* Fewer keys than rows: bi_causal shows none of their pairs. */
static void shorten(const double *q_range, double *k_range) {
  const double rows = q_range[1] - q_range[0];
  if (rows > 1 && k_range[1] - k_range[0] >= rows) k_range[1] = k_range[0] + floor(rows / 2);
}

bool reference_draw_slices(const reference_case *c, const char *name, double *values) {
  const fg_shape *s = &c->problem->shape;
  const bool of_q = !strcmp(name, "q_ranges"), of_k = !strcmp(name, "k_ranges");
  const int shape = (int)(c->which->seed / 3 % SHAPES);
  if (!of_q && !of_k && strcmp(name, "kinds")) return false;
  uint64_t state = c->which->seed * 15485863 + (uint64_t)(of_q ? 1 : of_k ? 2 : 3);
  for (int64_t i = 0; i < s->slices; i++) {
    const int64_t tokens = of_q ? s->nq : s->nk;
    double *own = values + (of_q || of_k ? 2 * i : i);
    if (!of_q && !of_k)
      *own = (double)below(&state, 4);
    else if (shape == DOCUMENTS)
      draw_document(i, s->slices, tokens, own);
    else if (i && !below(&state, 6))
      memcpy(own, own - 2, 2 * sizeof *own);
    else
      draw_range(shape, tokens, &state, own);
    if (i > 0 || s->slices < 2 || shape == WILD || shape == DOCUMENTS) continue;
    if (of_k) shorten(reference_value(c, "q_ranges"), own);
    if (!of_q && !of_k) *own = 3;
  }
  return true;
}

/* ---- which slice a pair is of ---- */

static int64_t within(double x, int64_t most) {
  return x < 0 ? 0 : x > (double)most ? most : (int64_t)x;
}

/* mathematics.md section 1; i and j are the slice's own. */
static bool shows(int kind, const oracle_slice *s, int64_t i, int64_t j) {
  if (i < 0 || i >= s->nq || j < 0 || j >= s->nk) return false;
  return !((kind & 1 && j > i + s->nk - s->nq) || (kind & 2 && j < i));
}

fg_status reference_slices_new(const reference_case *c, reference_slices *x) {
  const fg_shape *shape = &c->problem->shape;
  const double *q = reference_value(c, "q_ranges"), *k = reference_value(c, "k_ranges");
  const double *kinds = reference_value(c, "kinds");
  x->slice = calloc((size_t)shape->slices + 1, sizeof *x->slice);
  x->slice_of = malloc(((size_t)(shape->nq * shape->nk) + 1) * sizeof *x->slice_of);
  if (!x->slice || !x->slice_of) return fg_fail(FG_EMEMORY, "no memory for slices");
  for (int64_t p = 0; p < shape->nq * shape->nk; p++) x->slice_of[p] = -1;
  for (int64_t n = shape->slices - 1; n >= 0; n--) {
    oracle_slice *s = &x->slice[n];
    s->q = within(q[2 * n], shape->nq), s->k = within(k[2 * n], shape->nk);
    s->nq = within(q[2 * n + 1], shape->nq) - s->q, s->nk = within(k[2 * n + 1], shape->nk) - s->k;
    for (int64_t i = 0; i < s->nq; i++)
      for (int64_t j = 0; j < s->nk; j++)
        if (shows(kinds ? (int)kinds[n] : 0, s, i, j))
          x->slice_of[(s->q + i) * shape->nk + s->k + j] = (int)n;
  }
  return FG_OK;
}

void reference_slices_free(reference_slices *x) {
  free(x->slice), free(x->slice_of);
  *x = (reference_slices){0};
}
