/* odd_case.c - attention by an odd normaliser, in float64, after mathematics.md sections 1 to 3 and
 * 6. */
#include "odd_case.h"

#include "reference/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the normaliser ---- */

/* P = exp(S - L), L = log(sqrt(sum of exp(2 S))). */
static double weigh(int64_t n, const double *score, double *p) {
  double most = -INFINITY, squares = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, score[i]);
  for (int64_t i = 0; i < n; i++) squares += exp(2 * (score[i] - most));
  const double kept = most + 0.5 * log(squares);
  for (int64_t i = 0; i < n; i++) p[i] = exp(score[i] - kept);
  return n > 0 ? kept : -INFINITY;
}

/* dL / dS = P^2. */
static double slope(double p, double dp, double dot, double dkept, double *size) {
  *size = p * (fabs(dp) + p * fabs(dot - dkept));
  return p * (dp - p * (dot - dkept));
}

/* ---- attention ---- */

typedef enum { Q, K, V, BIAS, O, DOUT, LSE, DLSE, DQ, DK, DV, DBIAS, TENSORS } tensor;
static const char *const names[TENSORS] = {"q",   "k",    "v",  "bias", "o",  "do",
                                           "lse", "dlse", "dq", "dk",   "dv", "dbias"};

/* rss: the sums of squares of the terms of each element. */
typedef struct {
  const odd_spec *spec;
  fg_shape shape;
  int d, dv;
  double scale;
  int64_t count[TENSORS];
  double *value[TENSORS], *rss[TENSORS];
  double *score, *p;
  int64_t *seen;
} attention;

/* Element i of row n of head h of batch b, of a tensor [b, n, h, d]. */
static int64_t place(int64_t b, int64_t n, int64_t h, int64_t i, int64_t rows, int64_t heads,
                     int64_t width) {
  return ((b * rows + n) * heads + h) * width + i;
}

static double dot(int64_t n, const double *x, const double *y) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

static void add(attention *a, tensor t, int64_t i, double x, double term) {
  if (!a->value[t]) return;
  a->value[t][i] += x;
  a->rss[t][i] += term * term;
}

/* Where a row of q or o, and of k or v, begins. */
static int64_t row_at(const attention *a, int64_t b, int64_t h, int64_t q, int width) {
  return place(b, q, h, 0, a->shape.nq, a->shape.h, width);
}
static int64_t key_at(const attention *a, int64_t b, int64_t h, int64_t k, int width) {
  return place(b, k, h / (a->shape.h / a->shape.hk), 0, a->shape.nk, a->shape.hk, width);
}

/* The bias has an element for each head, row and key. */
static int64_t bias_at(const attention *a, int64_t h, int64_t q, int64_t k) {
  return (h * a->shape.nq + q) * a->shape.nk + k;
}

static double product(const attention *a, int64_t b, int64_t h, int64_t q, int64_t k) {
  return a->scale *
         dot(a->d, a->value[Q] + row_at(a, b, h, q, a->d), a->value[K] + key_at(a, b, h, k, a->d));
}

/* The keys that a row sees, their scores and weights; returns their number. */
static int64_t weigh_row(attention *a, int64_t b, int64_t h, int64_t q, double *kept) {
  int64_t n = 0;
  for (int64_t k = 0; k < a->shape.nk; k++) {
    if (!a->spec->sees(q, k, a->shape.nq, a->shape.nk)) continue;
    const double bias = a->value[BIAS] ? a->value[BIAS][bias_at(a, h, q, k)] : 0;
    a->score[n] = a->spec->score(product(a, b, h, q, k), bias);
    a->seen[n++] = k;
  }
  *kept = weigh(n, a->score, a->p);
  return n;
}

static void forward_row(attention *a, int64_t b, int64_t h, int64_t q) {
  double kept;
  const int64_t n = weigh_row(a, b, h, q, &kept), o = row_at(a, b, h, q, a->dv);
  for (int64_t j = 0; j < n; j++) {
    const double *v = a->value[V] + key_at(a, b, h, a->seen[j], a->dv);
    for (int i = 0; i < a->dv; i++) add(a, O, o + i, a->p[j] * v[i], a->p[j] * v[i]);
  }
  if (a->value[LSE]) a->value[LSE][(b * a->shape.h + h) * a->shape.nq + q] = kept;
}

/* dS of the j-th key that the row sees goes to all gradients. */
static void add_gradients(attention *a, int64_t b, int64_t h, int64_t q, int64_t j, double of_row,
                          double dkept) {
  const int64_t k = a->seen[j], q_at = row_at(a, b, h, q, a->d), k_at = key_at(a, b, h, k, a->d);
  const int64_t o_at = row_at(a, b, h, q, a->dv), v_at = key_at(a, b, h, k, a->dv);
  double size;
  const double dp = dot(a->dv, a->value[DOUT] + o_at, a->value[V] + v_at);
  const double ds = slope(a->p[j], dp, of_row, dkept, &size);
  const double slope = a->spec->score_slope(product(a, b, h, q, k));
  for (int i = 0; i < a->d; i++) {
    const double of_q = a->scale * slope * a->value[K][k_at + i];
    const double of_k = a->scale * slope * a->value[Q][q_at + i];
    add(a, DQ, q_at + i, ds * of_q, size * of_q);
    add(a, DK, k_at + i, ds * of_k, size * of_k);
  }
  for (int i = 0; i < a->dv; i++) {
    const double term = a->p[j] * a->value[DOUT][o_at + i];
    add(a, DV, v_at + i, term, term);
  }
  add(a, DBIAS, bias_at(a, h, q, k), ds, size);
}

/* dO . O is made of the o that the kernel is given. */
static void backward_row(attention *a, int64_t b, int64_t h, int64_t q) {
  double kept;
  const int64_t n = weigh_row(a, b, h, q, &kept), o = row_at(a, b, h, q, a->dv);
  const double of_row = a->value[O] ? dot(a->dv, a->value[DOUT] + o, a->value[O] + o) : 0;
  const int64_t row = (b * a->shape.h + h) * a->shape.nq + q;
  const double dkept = a->value[DLSE] ? a->value[DLSE][row] : 0;
  for (int64_t j = 0; j < n; j++) add_gradients(a, b, h, q, j, of_row, dkept);
}

static void each_row(attention *a, void (*row)(attention *, int64_t, int64_t, int64_t)) {
  for (int64_t b = 0; b < a->shape.b; b++)
    for (int64_t h = 0; h < a->shape.h; h++)
      for (int64_t q = 0; q < a->shape.nq; q++) row(a, b, h, q);
}

/* ---- a launch ---- */

static double *zeros(int64_t n) {
  double *values = calloc((size_t)n + 1, sizeof *values);
  ck_assert_ptr_nonnull(values);
  return values;
}

/* What a tensor of the launch holds, in its dtype. */
static void take(attention *a, const launch *l, tensor t) {
  float *values = launch_get(l, names[t]);
  for (int64_t i = 0; i < a->count[t]; i++) a->value[t][i] = (double)values[i];
  free(values);
}

static void put(attention *a, launch *l, tensor t) {
  float *values = malloc((size_t)a->count[t] * sizeof *values + 1);
  ck_assert_ptr_nonnull(values);
  for (int64_t i = 0; i < a->count[t]; i++) values[i] = (float)a->value[t][i];
  launch_set(l, names[t], values);
  free(values);
  take(a, l, t);
}

static attention attention_new(const odd_spec *spec, const launch *l) {
  const fg_point *point = &l->kernel->variant.point;
  attention a = {.spec = spec, .shape = l->problem->shape, .d = point->d, .dv = point->dv};
  for (tensor t = 0; t < TENSORS; t++) {
    if (!launch_has(l, names[t])) continue;
    a.count[t] = launch_count(l, names[t]);
    a.value[t] = zeros(a.count[t]), a.rss[t] = zeros(a.count[t]);
  }
  a.score = zeros(a.shape.nk), a.p = zeros(a.shape.nk);
  ck_assert_ptr_nonnull(a.seen = calloc((size_t)a.shape.nk + 1, sizeof *a.seen));
  return a;
}

static void attention_free(attention *a) {
  for (tensor t = 0; t < TENSORS; t++) free(a->value[t]), free(a->rss[t]);
  free(a->score), free(a->p), free(a->seen);
}

/* The output is near enough to what it should be. */
static void check(const attention *a, const launch *l, tensor t) {
  double *found = zeros(a->count[t]), error, limit;
  float *values = launch_get(l, names[t]);
  for (int64_t i = 0; i < a->count[t]; i++) found[i] = (double)values[i];
  for (int64_t i = 0; i < a->count[t]; i++) a->rss[t][i] = sqrt(a->rss[t][i]);
  if (t == LSE) {
    error = oracle_lse_error(a->count[t], found, a->value[t], &limit);
  } else {
    error = oracle_error(a->count[t], found, a->value[t], a->rss[t]);
    limit = oracle_limit(fg_point_elem(&l->kernel->variant.point));
  }
  ck_assert_msg(error <= limit, "%s: %s: error %.3g of %.3g", l->kernel->name, names[t], error,
                limit);
  free(found);
  free(values);
}

void odd_check(const kernel *k, const odd_spec *spec, fg_shape shape, float scale, uint64_t seed) {
  launch l = launch_new(k, shape, seed);
  attention a = attention_new(spec, &l);
  const bool is_backward = launch_has(&l, "dq");
  if (scale != 0) l.problem->args.given |= FG_GIVEN_SCALE, l.problem->args.scale = scale;
  a.scale = (double)(scale != 0 ? scale : 1 / sqrtf((float)a.d));
  for (tensor t = Q; t <= BIAS; t++)
    if (a.value[t]) take(&a, &l, t);
  if (!is_backward || a.value[O]) each_row(&a, forward_row);
  if (is_backward) {
    take(&a, &l, DOUT);
    if (a.value[DLSE]) take(&a, &l, DLSE);
    if (a.value[O]) put(&a, &l, O);
    if (a.value[LSE]) put(&a, &l, LSE);
    each_row(&a, backward_row);
  }
  launch_run(&l, seed);
  for (tensor t = is_backward ? DQ : O; t < TENSORS; t++)
    if (a.value[t]) check(&a, &l, t);
  attention_free(&a);
  launch_free(&l);
}
