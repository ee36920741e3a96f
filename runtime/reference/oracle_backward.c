/* oracle_backward.c - gradients of attention in float64, one query row at a time. */
#include "oracle_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- backward ---- */

/* A row's probabilities and dP, [nk] each, and the zeros [dv] that stand for a missing dout. */
typedef struct scratch {
  double *p, *dp, *zero;
  char *hidden;
} scratch;

/* Fills p, hidden and dp; returns Delta: without an o as sum_k p dP, which equals dO . O (without a
 * u as sum_k dP) and is what an unfused softmax backward computes, so that it also holds in a
 * rounded dtype. */
static double delta_row(const oracle_problem *x, oracle_place at, const double *dout, scratch *t,
                        double *second) {
  double delta = x->o ? oracle_dot(x->dv, dout, x->o + at.row * x->dv) : 0;
  oracle_tally tally = {0, -INFINITY};
  *second = oracle_weigh_row(x, at, t->p, t->hidden, &tally);
  for (int64_t k = 0; k < x->nk; k++) {
    if (t->hidden[k]) continue;
    t->dp[k] = oracle_rounded(x, oracle_dot(x->dv, dout, x->v + (at.kv * x->nk + k) * x->dv));
    t->dp[k] *= oracle_dropped(x, at, k);
    if (!x->o) delta += (oracle_normalizer_of(x)->sums_values ? 1 : t->p[k]) * t->dp[k];
  }
  return x->dlse ? delta - x->dlse[at.row] : delta;
}

/* dbias of one row. Its rss is over rows, of the absolute sum within a row: the keys of a row
 * cancel among themselves (their dS sum to dLSE), rows do not. */
static void bias_row(const oracle_problem *x, oracle_place at, const scratch *t, double delta,
                     double second, oracle_result *r) {
  double within = 0, size;
  for (int64_t k = 0; k < x->nk; k++) {
    if (t->hidden[k]) continue;
    int64_t i = oracle_bias_index(x, at, k);
    r->dbias[i] +=
        oracle_rounded(x, oracle_normalizer_of(x)->slope(t->p[k], t->dp[k], delta, second, &size));
    if (x->bias_extent[3] == 1)
      within += size;
    else
      r->dbias_rss[i] += size * size;
  }
  if (x->bias_extent[3] == 1) r->dbias_rss[oracle_bias_index(x, at, 0)] += within * within;
}

/* dsink of one row: no key's value stands against the sink's, so that its dP is 0. */
static void sink_row(const oracle_problem *x, oracle_place at, double delta, double lse,
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

static void add_term(void *context, int input, int64_t element, double slope, double size) {
  gradient *g = context;
  if (!g->x->grad[input]) return;
  g->r->dinput[input][element] += oracle_rounded(g->x, g->ds * slope);
  g->within[input][element] += g->size * size;
}

/* The pair's score by s; adds its terms to the inputs' gradients. */
static oracle_slopes through_score(gradient *g, oracle_place at, int64_t k) {
  double name[ORACLE_VALUES];
  const oracle_problem *x = g->x;
  if (!x->score) return (oracle_slopes){.s = 1, .s_size = 1};
  double s = x->scale * oracle_dot(x->d, x->q + at.row * x->d, x->k + (at.kv * x->nk + k) * x->d);
  oracle_name_pair(x, at, k, oracle_rounded(x, s), name);
  oracle_formula_value(x->score, name);
  return oracle_formula_slopes(x->score, x->formats.tanh, add_term, g);
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

/* 7e-4 / 2^-22: what is as far off as a row's LSE may be counts in dV as so much less. */
static const double lse_share = 2900;

/* The size of a weight in dV; one that is a difference of a score and LSE is off as these are. */
static double weight_size(const oracle_problem *x, double p, const oracle_row_size *row) {
  const double size = fmax(fabs(p), x->formats.operand);
  return oracle_normalizer_of(x)->size ? size + row->all / lse_share : size;
}

/* A weight is a float32, and one below 2^-126 is 0: it is off by as much, which is right for one of
 * 2^-115, as an error of 7e-4 is. */
static const double least_weight = 0x1p-115;

static void backward_row(const oracle_problem *x, oracle_place at, scratch *t, gradient *g,
                         oracle_result *r) {
  const double *dout = x->dout ? x->dout + at.row * x->dv : t->zero;
  const double *q = x->q + at.row * x->d;
  double *dq = r->dq + at.row * x->d, *dq_rss = r->dq_rss + at.row * x->d;
  double second;
  double delta = delta_row(x, at, dout, t, &second);
  oracle_row_size row = {0};
  if (oracle_normalizer_of(x)->size) row = oracle_size_row(x, at);
  if (x->sink) sink_row(x, at, delta, second, r);
  for (int64_t k = 0; k < x->nk; k++) {
    double p = t->p[k], dp = t->dp[k];
    if (t->hidden[k]) continue;
    g->ds = oracle_rounded(x, oracle_normalizer_of(x)->slope(p, dp, delta, second, &g->size));
    g->size = fmax(g->size, least_weight * fabs(dp));
    const oracle_slopes slopes = through_score(g, at, k);
    double ds = x->scale * oracle_rounded(x, g->ds * slopes.s);
    r->largest_ds = fmax(r->largest_ds, fabs(g->ds) * fmax(1, fabs(slopes.s)));
    double size = x->scale * fmax(g->size * slopes.s_size, x->formats.operand);
    int64_t key = (at.kv * x->nk + k) * x->d, value = (at.kv * x->nk + k) * x->dv;
    oracle_accumulate(x->d, ds, size, x->k + key, dq, dq_rss);
    oracle_accumulate(x->d, ds, size, q, r->dk + key, r->dk_rss + key);
    const double z = oracle_dropped(x, at, k);
    oracle_accumulate(x->dv, p * z, weight_size(x, p, &row) * z, dout, r->dv + value,
                      r->dv_rss + value);
  }
  if (x->bias) bias_row(x, at, t, delta, second, r);
  end_row(g);
}

static int renew_inputs(const oracle_problem *x, gradient *g, oracle_result *r) {
  int ok = 1;
  for (int i = 0; i < x->n_inputs; i++) {
    int64_t n = elements(&x->inputs[i]);
    if (x->grad[i])
      ok &= oracle_renew(&r->dinput[i], n) && oracle_renew(&r->dinput_rss[i], n) &&
            oracle_renew(&g->within[i], n);
  }
  return ok;
}

int oracle_backward(const oracle_problem *x, oracle_result *r) {
  const int64_t *e = x->bias_extent;
  int64_t rows = x->b * x->h * x->nq, keys = x->b * x->hk * x->nk;
  int64_t biases = x->bias ? e[0] * e[1] * e[2] * e[3] : 0;
  scratch t = {0};
  t.hidden = malloc((size_t)x->nk + 1);
  int ok = t.hidden && oracle_renew(&t.p, x->nk) && oracle_renew(&t.dp, x->nk) &&
           oracle_renew(&t.zero, x->dv) && oracle_renew(&r->dq, rows * x->d) &&
           oracle_renew(&r->dq_rss, rows * x->d) && oracle_renew(&r->dk, keys * x->d) &&
           oracle_renew(&r->dk_rss, keys * x->d) && oracle_renew(&r->dv, keys * x->dv) &&
           oracle_renew(&r->dv_rss, keys * x->dv);
  if (ok && x->bias) ok = oracle_renew(&r->dbias, biases) && oracle_renew(&r->dbias_rss, biases);
  if (ok && x->sink) ok = oracle_renew(&r->dsink, x->h) && oracle_renew(&r->dsink_rss, x->h);
  gradient g = {.x = x, .r = r};
  r->largest_ds = 0;
  ok = ok && renew_inputs(x, &g, r);
  if (ok) {
    for (int64_t row = 0; row < rows; row++) backward_row(x, oracle_place_of(x, row), &t, &g, r);
    for (int i = 0; i < x->n_inputs; i++)
      if (x->grad[i]) oracle_finish(x, elements(&x->inputs[i]), r->dinput[i], r->dinput_rss[i]);
    oracle_finish(x, rows * x->d, r->dq, r->dq_rss);
    oracle_finish(x, keys * x->d, r->dk, r->dk_rss);
    oracle_finish(x, keys * x->dv, r->dv, r->dv_rss);
    oracle_finish(x, biases, r->dbias, r->dbias_rss);
    oracle_finish(x, x->sink ? x->h : 0, r->dsink, r->dsink_rss);
  }
  for (int i = 0; i < ORACLE_INPUTS; i++) free(g.within[i]);
  free(t.p), free(t.dp), free(t.zero), free(t.hidden);
  return ok ? 0 : -1;
}
