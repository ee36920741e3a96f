/* oracle.c - float64 attention, forward and backward, one query row at a time.
 *
 * Every row is recomputed from q, k, bias and mask in both passes; only pairs with P != 0 do work
 * over d and dv. The inner loops are blocked by hand since -O2 vectorises nothing else. */
#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- vectors ---- */

/* Elements per unrolled step: four SSE2 registers, enough to hide the latency of an add. */
enum { STEP = 8 };

static double dot(int64_t n, const double *restrict x, const double *restrict y) {
  double part[STEP] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + STEP <= n; i += STEP)
    for (int e = 0; e < STEP; e++) part[e] += x[i + e] * y[i + e];
  for (; i < n; i++) sum += x[i] * y[i];
  for (int e = 0; e < STEP; e++) sum += part[e];
  return sum;
}

/* sum += w x ; squares += (w_abs x)^2. The two weights differ where terms cancel. */
static void accumulate(int64_t n, double w, double w_abs, const double *restrict x,
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
static int renew(double **x, int64_t n) {
  free(*x);
  *x = calloc(n ? (size_t)n : 1, sizeof **x);
  return *x != NULL;
}

static double rounded(const oracle_problem *x, double value) {
  return x->round ? x->round(value) : value;
}

/* The end of an output: squares become their roots, sums take the dtype. */
static void finish(const oracle_problem *x, int64_t n, double *sum, double *squares) {
  for (int64_t i = 0; i < n; i++) {
    sum[i] = rounded(x, sum[i]);
    squares[i] = sqrt(squares[i]);
  }
}

/* ---- rows ---- */

/* One query row: its coordinates, its index in [b, h, nq], and its key/value head's in [b, hk]. */
typedef struct place {
  int64_t b, h, q, row, kv;
} place;

static place place_of(const oracle_problem *x, int64_t row) {
  place at = {.row = row, .q = row % x->nq, .h = row / x->nq % x->h, .b = row / x->nq / x->h};
  at.kv = at.b * x->hk + at.h / (x->h / x->hk);
  return at;
}

/* Where the bias of (at, k) lies; an axis of extent 1 is broadcast. */
static int64_t bias_index(const oracle_problem *x, place at, int64_t k) {
  const int64_t *n = x->bias_extent, coordinate[4] = {at.b, at.h, at.q, k};
  int64_t index = 0;
  for (int a = 0; a < 4; a++)
    index = index * n[a] + (n[a] == 1 ? 0 : x->bias_first[a] + coordinate[a]);
  return index;
}

/* What expressions name at a pair, which is of a slice where there are slices, or of the sequence
 * that the problem is a part of. */
static void name_pair(const oracle_problem *x, place at, int64_t k, double s,
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

static int is_visible(const oracle_problem *x, place at, int64_t k) {
  double name[ORACLE_VALUES];
  if (x->slice_of && x->slice_of[at.q * x->nk + k] < 0) return 0;
  if (x->visible && !x->visible(x, at.b, at.h, at.q, k)) return 0;
  if (!x->mask) return 1;
  name_pair(x, at, k, 0, name);
  return oracle_formula_value(x->mask, name) != 0;
}

/* The score after bias and mask, math.md section 1. Counts what the mask shows. */
static double score(const oracle_problem *x, place at, int64_t k, int64_t *seen) {
  if (!is_visible(x, at, k)) return -INFINITY;
  ++*seen;
  double s = x->scale * dot(x->d, x->q + at.row * x->d, x->k + (at.kv * x->nk + k) * x->d);
  if (x->score) {
    double name[ORACLE_VALUES];
    name_pair(x, at, k, rounded(x, s), name);
    s = oracle_formula_value(x->score, name);
  }
  if (x->bias) s += x->bias[bias_index(x, at, k)];
  return rounded(x, s);
}

static const oracle_normalizer *normalizer_of(const oracle_problem *x) {
  return x->normalizer ? x->normalizer : oracle_normalizer_find(NULL);
}

static double own_of(const oracle_problem *x, place at) {
  if (normalizer_of(x)->own == OWN_BIAS)
    return x->sigmoid_bias ? *x->sigmoid_bias : -log((double)(x->whole ? x->whole->nk : x->nk));
  return x->sink ? x->sink[at.h] : -INFINITY;
}

/* p[0..nk) = the row's weights; returns its second output, such as LSE. Adds the keys that it sees
 * to *seen. hidden, unless NULL: of which pairs no gradient comes. */
static double weigh_row(const oracle_problem *x, place at, double *p, char *hidden, int64_t *seen) {
  const oracle_normalizer *n = normalizer_of(x);
  for (int64_t k = 0; k < x->nk; k++) {
    p[k] = score(x, at, k, seen);
    if (hidden) hidden[k] = p[k] == -INFINITY;
  }
  const double second = n->weigh(x->nk, p, own_of(x, at), x->round);
  for (int64_t k = 0; hidden && n->skips_no_weight && k < x->nk; k++) hidden[k] = p[k] == 0;
  return second;
}

/* What a pair's weight is multiplied with: 1, or of dropout 0 or what makes up for it. */
static double dropped(const oracle_problem *x, place at, int64_t k) {
  if (!x->dropout) return 1;
  const int64_t head = (x->first_b + at.b) * x->h + at.h;
  const int64_t q = at.q - (x->whole ? x->whole->q : 0), own = k - (x->whole ? x->whole->k : 0);
  return oracle_dropout_keeps(x->dropout, head, q, own) ? 65536.0 / x->dropout->below : 0;
}

/* ---- forward ---- */

/* The weights that a product of e4m3 has in their place. */
static void round_weights(const oracle_problem *x, double *p) {
  double most = 0;
  for (int64_t k = 0; k < x->nk; k++) most = fmax(most, p[k]);
  if (most == 0) return;
  for (int64_t k = 0; k < x->nk; k++)
    p[k] = oracle_round(FG_ELEM_E4M3)(256 * p[k] / most) * most / 256;
}

static void no_term(void *context, int input, int64_t element, double slope) {
  (void)context, (void)input, (void)element, (void)slope;
}

/* How large the terms of the row's scores are. */
static void size_scores(const oracle_problem *x, place at, oracle_result *r) {
  double *most = r->max_logit_size + at.b * x->h + at.h, *own = r->lse_size + at.row;
  for (int64_t k = 0; k < x->nk; k++) {
    const double *q_row = x->q + at.row * x->d, *k_row = x->k + (at.kv * x->nk + k) * x->d;
    double size = 0, name[ORACLE_VALUES], slope = 1;
    if (!is_visible(x, at, k)) continue;
    for (int64_t c = 0; c < x->d; c++) size += fabs(x->scale * q_row[c] * k_row[c]);
    if (x->score) {
      name_pair(x, at, k, x->scale * dot(x->d, q_row, k_row), name);
      oracle_formula_value(x->score, name);
      slope = oracle_formula_slope(x->score, no_term, NULL);
    }
    *most = fmax(*most, size);
    *own = fmax(*own, fabs(slope) * size);
  }
}

static void forward_row(const oracle_problem *x, place at, double *p, char *hidden,
                        oracle_result *r) {
  const oracle_normalizer *n = normalizer_of(x);
  const int64_t out = at.row * x->dv;
  double *most = r->max_logit + at.b * x->h + at.h;
  for (int64_t k = 0; k < x->nk; k++)
    if (is_visible(x, at, k))
      *most = fmax(*most,
                   x->scale * dot(x->d, x->q + at.row * x->d, x->k + (at.kv * x->nk + k) * x->d));
  const double lse = weigh_row(x, at, p, hidden, &r->seen);
  r->lse[at.row] = lse;
  if (x->is_e4m3) size_scores(x, at, r), round_weights(x, p);
  for (int64_t k = 0; k < x->nk; k++) {
    const double *v = x->v + (at.kv * x->nk + k) * x->dv;
    if (hidden[k]) continue;
    p[k] *= dropped(x, at, k);
    accumulate(x->dv, p[k], n->size ? n->size(p[k], lse) : p[k], v, r->o + out, r->o_rss + out);
    if (n->sums_values) accumulate(x->dv, 1, 1, v, r->u + out, r->u_rss + out);
  }
}

int oracle_forward(const oracle_problem *x, oracle_result *r) {
  int64_t rows = x->b * x->h * x->nq, sums = normalizer_of(x)->sums_values ? rows * x->dv : 0;
  double *p = NULL;
  char *hidden = malloc((size_t)x->nk + 1);
  int ok = hidden && renew(&p, x->nk) && renew(&r->o, rows * x->dv) &&
           renew(&r->o_rss, rows * x->dv) && renew(&r->lse, rows);
  ok = ok && renew(&r->max_logit, x->b * x->h) && renew(&r->lse_size, rows) &&
       renew(&r->max_logit_size, x->b * x->h);
  for (int64_t i = 0; ok && i < x->b * x->h; i++) r->max_logit[i] = -INFINITY;
  if (ok && sums) ok = renew(&r->u, sums) && renew(&r->u_rss, sums);
  if (ok) {
    r->seen = 0;
    for (int64_t row = 0; row < rows; row++) forward_row(x, place_of(x, row), p, hidden, r);
    finish(x, rows * x->dv, r->o, r->o_rss);
    for (int64_t i = 0; i < sums; i++) r->u_rss[i] = sqrt(r->u_rss[i]);
  }
  free(p), free(hidden);
  return ok ? 0 : -1;
}

/* ---- backward ---- */

/* A row's probabilities and dP, [nk] each, and the zeros [dv] that stand for a missing dout. */
typedef struct scratch {
  double *p, *dp, *zero;
  char *hidden;
} scratch;

/* Fills p, hidden and dp; returns Delta: without an o as sum_k p dP, which equals dO . O (without a
 * u as sum_k dP) and is what an unfused softmax backward computes, so that it also holds in a
 * rounded dtype. */
static double delta_row(const oracle_problem *x, place at, const double *dout, scratch *t,
                        double *second) {
  double delta = x->o ? dot(x->dv, dout, x->o + at.row * x->dv) : 0;
  int64_t seen = 0;
  *second = weigh_row(x, at, t->p, t->hidden, &seen);
  for (int64_t k = 0; k < x->nk; k++) {
    if (t->hidden[k]) continue;
    t->dp[k] = rounded(x, dot(x->dv, dout, x->v + (at.kv * x->nk + k) * x->dv));
    t->dp[k] *= dropped(x, at, k);
    if (!x->o) delta += (normalizer_of(x)->sums_values ? 1 : t->p[k]) * t->dp[k];
  }
  return x->dlse ? delta - x->dlse[at.row] : delta;
}

/* dbias of one row. Its rss is over rows, of the absolute sum within a row: the keys of a row
 * cancel among themselves (their dS sum to dLSE), rows do not. */
static void bias_row(const oracle_problem *x, place at, const scratch *t, double delta,
                     double second, oracle_result *r) {
  double within = 0, size;
  for (int64_t k = 0; k < x->nk; k++) {
    if (t->hidden[k]) continue;
    int64_t i = bias_index(x, at, k);
    r->dbias[i] += rounded(x, normalizer_of(x)->slope(t->p[k], t->dp[k], delta, second, &size));
    if (x->bias_extent[3] == 1)
      within += size;
    else
      r->dbias_rss[i] += size * size;
  }
  if (x->bias_extent[3] == 1) r->dbias_rss[bias_index(x, at, 0)] += within * within;
}

/* dsink of one row: no key's value stands against the sink's, so that its dP is 0. */
static void sink_row(const oracle_problem *x, place at, double delta, double lse,
                     oracle_result *r) {
  const double p = lse > -INFINITY ? exp(x->sink[at.h] - lse) : 0;
  const double dlse = x->dlse ? x->dlse[at.row] : 0, size = p * (fabs(dlse) + fabs(delta + dlse));
  if (!r->dsink) return;
  r->dsink[at.h] -= p * delta;
  r->dsink_rss[at.h] += size * size;
}

/* Where a row's terms of the inputs' gradients go: sums at once, sizes row by row. */
typedef struct gradient {
  const oracle_problem *x;
  oracle_result *r;
  double *within[ORACLE_INPUTS];
  double ds, size; /* of the pair */
} gradient;

static void add_term(void *context, int input, int64_t element, double slope) {
  gradient *g = context;
  if (!g->x->grad[input]) return;
  g->r->dinput[input][element] += rounded(g->x, g->ds * slope);
  g->within[input][element] += g->size * fabs(slope);
}

/* d score / d s of the pair; adds its terms to the inputs' gradients. */
static double through_score(gradient *g, place at, int64_t k) {
  double name[ORACLE_VALUES];
  const oracle_problem *x = g->x;
  if (!x->score) return 1;
  double s = x->scale * dot(x->d, x->q + at.row * x->d, x->k + (at.kv * x->nk + k) * x->d);
  name_pair(x, at, k, rounded(x, s), name);
  oracle_formula_value(x->score, name);
  return oracle_formula_slope(x->score, add_term, g);
}

static int64_t elements(const oracle_input *in) {
  int64_t n = 1;
  for (int i = 0; i < in->rank; i++) n *= in->extent[i];
  return in->rank < 0 ? 0 : n;
}

static void end_row(gradient *g) {
  for (int i = 0; i < g->x->n_inputs; i++) {
    int64_t n = g->x->grad[i] ? elements(&g->x->inputs[i]) : 0;
    for (int64_t e = 0; e < n; e++) {
      g->r->dinput_rss[i][e] += g->within[i][e] * g->within[i][e];
      g->within[i][e] = 0;
    }
  }
}

/* The size of a weight that is a difference, s - LSE: of float32 numbers, which end 2^-23 below
 * their own size, so that 0 is not judged by itself. */
static double weight_size(const oracle_problem *x, double p, double second) {
  const oracle_normalizer *n = normalizer_of(x);
  return n->size ? fabs(p) + 0x1p-11 * n->size(p, second) : p;
}

static void backward_row(const oracle_problem *x, place at, scratch *t, gradient *g,
                         oracle_result *r) {
  const double *dout = x->dout ? x->dout + at.row * x->dv : t->zero;
  const double *q = x->q + at.row * x->d;
  double *dq = r->dq + at.row * x->d, *dq_rss = r->dq_rss + at.row * x->d;
  double second;
  double delta = delta_row(x, at, dout, t, &second);
  if (x->sink) sink_row(x, at, delta, second, r);
  for (int64_t k = 0; k < x->nk; k++) {
    double p = t->p[k], dp = t->dp[k];
    if (t->hidden[k]) continue;
    g->ds = rounded(x, normalizer_of(x)->slope(p, dp, delta, second, &g->size));
    double slope = through_score(g, at, k);
    double ds = x->scale * rounded(x, g->ds * slope);
    r->largest_ds = fmax(r->largest_ds, fabs(g->ds) * fmax(1, fabs(slope)));
    double size = x->scale * g->size * fabs(slope);
    int64_t key = (at.kv * x->nk + k) * x->d, value = (at.kv * x->nk + k) * x->dv;
    accumulate(x->d, ds, size, x->k + key, dq, dq_rss);
    accumulate(x->d, ds, size, q, r->dk + key, r->dk_rss + key);
    const double z = dropped(x, at, k);
    accumulate(x->dv, p * z, weight_size(x, p, second) * z, dout, r->dv + value, r->dv_rss + value);
  }
  if (x->bias) bias_row(x, at, t, delta, second, r);
  end_row(g);
}

static int renew_inputs(const oracle_problem *x, gradient *g, oracle_result *r) {
  int ok = 1;
  for (int i = 0; i < x->n_inputs; i++) {
    int64_t n = elements(&x->inputs[i]);
    if (x->grad[i])
      ok &= renew(&r->dinput[i], n) && renew(&r->dinput_rss[i], n) && renew(&g->within[i], n);
  }
  return ok;
}

int oracle_backward(const oracle_problem *x, oracle_result *r) {
  const int64_t *e = x->bias_extent;
  int64_t rows = x->b * x->h * x->nq, keys = x->b * x->hk * x->nk;
  int64_t biases = x->bias ? e[0] * e[1] * e[2] * e[3] : 0;
  scratch t = {0};
  t.hidden = malloc((size_t)x->nk + 1);
  int ok = t.hidden && renew(&t.p, x->nk) && renew(&t.dp, x->nk) && renew(&t.zero, x->dv) &&
           renew(&r->dq, rows * x->d) && renew(&r->dq_rss, rows * x->d) &&
           renew(&r->dk, keys * x->d) && renew(&r->dk_rss, keys * x->d) &&
           renew(&r->dv, keys * x->dv) && renew(&r->dv_rss, keys * x->dv);
  if (ok && x->bias) ok = renew(&r->dbias, biases) && renew(&r->dbias_rss, biases);
  if (ok && x->sink) ok = renew(&r->dsink, x->h) && renew(&r->dsink_rss, x->h);
  gradient g = {.x = x, .r = r};
  r->largest_ds = 0;
  ok = ok && renew_inputs(x, &g, r);
  if (ok) {
    for (int64_t row = 0; row < rows; row++) backward_row(x, place_of(x, row), &t, &g, r);
    for (int i = 0; i < x->n_inputs; i++)
      if (x->grad[i]) finish(x, elements(&x->inputs[i]), r->dinput[i], r->dinput_rss[i]);
    finish(x, rows * x->d, r->dq, r->dq_rss);
    finish(x, keys * x->d, r->dk, r->dk_rss);
    finish(x, keys * x->dv, r->dv, r->dv_rss);
    finish(x, biases, r->dbias, r->dbias_rss);
    finish(x, x->sink ? x->h : 0, r->dsink, r->dsink_rss);
  }
  for (int i = 0; i < ORACLE_INPUTS; i++) free(g.within[i]);
  free(t.p), free(t.dp), free(t.zero), free(t.hidden);
  return ok ? 0 : -1;
}

void oracle_free(oracle_result *r) {
  free(r->o), free(r->lse), free(r->u), free(r->u_rss), free(r->dq), free(r->dk), free(r->dv),
      free(r->dbias);
  free(r->o_rss), free(r->dq_rss), free(r->dk_rss), free(r->dv_rss), free(r->dbias_rss);
  free(r->dsink), free(r->dsink_rss), free(r->max_logit), free(r->lse_size),
      free(r->max_logit_size);
  for (int i = 0; i < ORACLE_INPUTS; i++) free(r->dinput[i]), free(r->dinput_rss[i]);
  memset(r, 0, sizeof *r);
}
