/* oracle_row.c - one query row of the oracle: its scores, its weights, and sums of vectors.
 *
 * The inner loops are blocked by hand since -O2 vectorises nothing else. */
#include "oracle_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- vectors ---- */

/* Elements per unrolled step: four SSE2 registers, enough to hide the latency of an add. */
enum { STEP = 8 };

double oracle_dot(int64_t n, const double *restrict x, const double *restrict y) {
  double part[STEP] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + STEP <= n; i += STEP)
    for (int e = 0; e < STEP; e++) part[e] += x[i + e] * y[i + e];
  for (; i < n; i++) sum += x[i] * y[i];
  for (int e = 0; e < STEP; e++) sum += part[e];
  return sum;
}

/* sum |x y| */
static double dot_of_sizes(int64_t n, const double *restrict x, const double *restrict y) {
  double part[STEP] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + STEP <= n; i += STEP)
    for (int e = 0; e < STEP; e++) part[e] += fabs(x[i + e] * y[i + e]);
  for (; i < n; i++) sum += fabs(x[i] * y[i]);
  for (int e = 0; e < STEP; e++) sum += part[e];
  return sum;
}

/* sum += w x ; squares += (w_abs x)^2. The two weights differ where terms cancel. */
void oracle_accumulate(int64_t n, double w, double w_abs, const double *restrict x,
                       double *restrict sum, double *restrict squares) {
  double w2 = w_abs * w_abs;
  int64_t i = 0;
  for (; i + STEP <= n; i += STEP)
    for (int e = 0; e < STEP; e++) {
      sum[i + e] += w * x[i + e];
      squares[i + e] += w2 * (x[i + e] * x[i + e]);
    }
  for (; i < n; i++) {
    sum[i] += w * x[i];
    squares[i] += w2 * (x[i] * x[i]);
  }
}

/* Replaces *x by n zeros. */
int oracle_renew(double **x, int64_t n) {
  free(*x);
  *x = calloc(n ? (size_t)n : 1, sizeof **x);
  return *x != NULL;
}

double oracle_rounded(const oracle_problem *x, double value) {
  return x->round ? x->round(value) : value;
}

/* The end of an output: squares become their roots, sums take the dtype. */
void oracle_finish(const oracle_problem *x, int64_t n, double *sum, double *squares) {
  for (int64_t i = 0; i < n; i++) {
    sum[i] = oracle_rounded(x, sum[i]);
    squares[i] = sqrt(squares[i]);
  }
}

/* ---- rows ---- */

oracle_place oracle_place_of(const oracle_problem *x, int64_t row) {
  oracle_place at = {
      .row = row, .q = row % x->nq, .h = row / x->nq % x->h, .b = row / x->nq / x->h};
  at.kv = at.b * x->hk + at.h / (x->h / x->hk);
  return at;
}

/* Where the bias of (at, k) lies; an axis of extent 1 is broadcast. */
int64_t oracle_bias_index(const oracle_problem *x, oracle_place at, int64_t k) {
  const int64_t *n = x->bias_extent, coordinate[4] = {at.b, at.h, at.q, k};
  int64_t index = 0;
  for (int a = 0; a < 4; a++)
    index = index * n[a] + (n[a] == 1 ? 0 : x->bias_first[a] + coordinate[a]);
  return index;
}

/* What expressions name at a pair, which is of a slice where there are slices, or of the sequence
 * that the problem is a part of. */
void oracle_name_pair(const oracle_problem *x, oracle_place at, int64_t k, double s,
                      double name[ORACLE_VALUES]) {
  oracle_slice of = x->whole ? *x->whole : (oracle_slice){0, 0, x->nq, x->nk};
  if (x->slice_of) of = x->slices[x->slice_of[at.q * x->nk + k]];
  const int64_t q = at.q - of.q;
  const double values[ORACLE_VALUES] = {s,
                                        (double)q,
                                        (double)(k - of.k),
                                        (double)(q + of.nk - of.nq),
                                        (double)(x->first_b + at.b),
                                        (double)at.h,
                                        (double)(at.kv % x->hk),
                                        (double)of.nq,
                                        (double)of.nk,
                                        (double)x->h,
                                        [ORACLE_FIRST_Q] = (double)of.q,
                                        [ORACLE_FIRST_K] = (double)of.k};
  memcpy(name, values, sizeof values);
}

int oracle_is_visible(const oracle_problem *x, oracle_place at, int64_t k) {
  double name[ORACLE_VALUES];
  if (x->slice_of && x->slice_of[at.q * x->nk + k] < 0) return 0;
  if (x->visible && !x->visible(x, at.b, at.h, at.q, k)) return 0;
  if (!x->mask) return 1;
  oracle_name_pair(x, at, k, 0, name);
  return oracle_formula_value(x->mask, name) != 0;
}

/* The score after bias and mask, mathematics.md section 1. */
static double score(const oracle_problem *x, oracle_place at, int64_t k, oracle_tally *tally) {
  if (!oracle_is_visible(x, at, k)) return -INFINITY;
  double s = x->scale * oracle_dot(x->d, x->q + at.row * x->d, x->k + (at.kv * x->nk + k) * x->d);
  tally->seen++, tally->max_logit = fmax(tally->max_logit, s);
  if (x->score) {
    double name[ORACLE_VALUES];
    oracle_name_pair(x, at, k, oracle_rounded(x, s), name);
    s = oracle_formula_value(x->score, name);
  }
  if (x->bias) s += x->bias[oracle_bias_index(x, at, k)];
  return oracle_rounded(x, s);
}

const oracle_normalizer *oracle_normalizer_of(const oracle_problem *x) {
  return x->normalizer ? x->normalizer : oracle_normalizer_find(NULL);
}

static double own_of(const oracle_problem *x, oracle_place at) {
  if (oracle_normalizer_of(x)->own == OWN_BIAS)
    return x->sigmoid_bias ? *x->sigmoid_bias : -log((double)(x->whole ? x->whole->nk : x->nk));
  return x->sink ? x->sink[at.h] : -INFINITY;
}

double oracle_weigh_row(const oracle_problem *x, oracle_place at, double *p, char *hidden,
                        oracle_tally *tally) {
  const oracle_normalizer *n = oracle_normalizer_of(x);
  for (int64_t k = 0; k < x->nk; k++) {
    p[k] = score(x, at, k, tally);
    hidden[k] = p[k] == -INFINITY;
  }
  const double second = n->weigh(x->nk, p, own_of(x, at), x->round);
  for (int64_t k = 0; n->skips_no_weight && k < x->nk; k++) hidden[k] = p[k] == 0;
  return second;
}

oracle_row_size oracle_size_row(const oracle_problem *x, oracle_place at) {
  oracle_row_size row = {0};
  for (int64_t k = 0; k < x->nk; k++) {
    const double *q_row = x->q + at.row * x->d, *k_row = x->k + (at.kv * x->nk + k) * x->d;
    oracle_slopes slopes = {.s = 1};
    if (!oracle_is_visible(x, at, k)) continue;
    const double product = fabs(x->scale) * dot_of_sizes(x->d, q_row, k_row);
    if (x->score) {
      double name[ORACLE_VALUES];
      oracle_name_pair(x, at, k, x->scale * oracle_dot(x->d, q_row, k_row), name);
      oracle_formula_value(x->score, name);
      slopes = oracle_formula_slopes(x->score, 0, NULL, NULL);
    }
    const double bias = x->bias ? x->bias[oracle_bias_index(x, at, k)] : 0;
    const double terms = slopes.terms + (isfinite(bias) ? fabs(bias) : 0);
    const double own = fabs(slopes.s) * product;
    row.all = fmax(row.all, own + terms);
    row.lse_cut = fmax(row.lse_cut, x->formats.product * own + x->formats.term * terms +
                                        x->formats.slope * slopes.position);
    row.max_logit_cut = fmax(row.max_logit_cut, x->formats.product * product);
  }
  return row;
}

/* What a pair's weight is multiplied with: 1, or of dropout 0 or what makes up for it. */
double oracle_dropped(const oracle_problem *x, oracle_place at, int64_t k) {
  if (!x->dropout) return 1;
  const int64_t head = (x->first_b + at.b) * x->h + at.h;
  const int64_t q = at.q - (x->whole ? x->whole->q : 0), own = k - (x->whole ? x->whole->k : 0);
  return oracle_dropout_keeps(x->dropout, head, q, own) ? 65536.0 / x->dropout->below : 0;
}
