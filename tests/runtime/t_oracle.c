/* t_oracle.c - the oracle against answers known by hand, finite differences and properties.
 *
 * The forward is checked by hand and by properties, the backward by central differences of it. */
#include "base/random.h"
#include "reference/oracle.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- problems ---- */

/* The same numbers each run: the tolerances below are those of float64, with room. */
static uint64_t state;

/* Uniform in [-1, 1). */
static double next(void) { return (double)(fg_random_next(&state) >> 11) * 0x1p-52 - 1; }

static double *fresh(int64_t n) {
  double *x = malloc((size_t)(n ? n : 1) * sizeof *x);
  ck_assert_ptr_nonnull(x);
  for (int64_t i = 0; i < n; i++) x[i] = next();
  return x;
}

/* A problem with random tensors, freed at the end of each test. */
static oracle_problem x;
static oracle_result r;

static void make(int64_t b, int64_t h, int64_t hk, int64_t nq, int64_t nk, int64_t d, int64_t dv) {
  x = (oracle_problem){.b = b, .h = h, .hk = hk, .nq = nq, .nk = nk, .d = d, .dv = dv};
  x.scale = 0.7;
  x.q = fresh(b * h * nq * d), x.k = fresh(b * hk * nk * d), x.v = fresh(b * hk * nk * dv);
  x.dout = fresh(b * h * nq * dv), x.dlse = fresh(b * h * nq);
}

static int64_t biases(void) {
  const int64_t *n = x.bias_extent;
  return n[0] * n[1] * n[2] * n[3];
}

/* A bias whose axis a is full where bit a of `axes` is set (b = 1, h = 2, q = 4, k = 8). */
static double *add_bias(int axes) {
  const int64_t full[] = {x.b, x.h, x.nq, x.nk};
  for (int a = 0; a < 4; a++) x.bias_extent[a] = axes >> a & 1 ? full[a] : 1;
  double *bias = fresh(biases());
  x.bias = bias;
  return bias;
}

static double *mutable(const double *p) { return (double *)(uintptr_t)p; }

static void setup(void) { state = 1; }

static void discard(void) {
  free(mutable(x.q)), free(mutable(x.k)), free(mutable(x.v)), free(mutable(x.bias));
  free(mutable(x.dout)), free(mutable(x.dlse));
  memset(&x, 0, sizeof x);
  oracle_free(&r);
}

static void forward(void) { ck_assert_int_eq(oracle_forward(&x, &r), 0); }
static void backward(void) { ck_assert_int_eq(oracle_backward(&x, &r), 0); }

static void fill(const double *p, int64_t n, double value) {
  for (int64_t i = 0; i < n; i++) mutable(p)[i] = value;
}

static void equal(int64_t n, const double *a, const double *b, double tolerance) {
  for (int64_t i = 0; i < n; i++)
    ck_assert_msg(a[i] == b[i] || fabs(a[i] - b[i]) <= tolerance, "element %ld: %.17g, %.17g",
                  (long)i, a[i], b[i]);
}

/* ---- forward ---- */

/* Scores 0 and log 3: P = 1/4, 3/4. */
TEST(test_by_hand) {
  make(1, 1, 1, 1, 2, 1, 1);
  x.scale = 0.5;
  mutable(x.q)[0] = 2, mutable(x.k)[0] = 0, mutable(x.k)[1] = log(3);
  mutable(x.v)[0] = 8, mutable(x.v)[1] = -4;
  forward();
  equal(1, r.o, (double[]){-1}, 1e-14);
  equal(1, r.lse, (double[]){log(4)}, 1e-14);
  equal(1, r.o_rss, (double[]){sqrt(13)}, 1e-14);
}

/* q = 0: O is the mean of the visible V, and V_j = j. Row i sees i + nk - nq + 1 keys. */
TEST_LOOP(test_causal, 5) {
  static const int64_t length[][2] = {{5, 5}, {3, 7}, {7, 3}, {1, 4}, {4, 1}};
  int64_t nq = length[_i][0], nk = length[_i][1];
  make(1, 2, 1, nq, nk, 3, 1);
  x.visible = oracle_visible("causal");
  fill(x.q, 2 * nq * 3, 0);
  for (int64_t k = 0; k < nk; k++) mutable(x.v)[k] = (double)k;
  forward();
  for (int64_t row = 0; row < 2 * nq; row++) {
    double keys = (double)(row % nq + nk - nq + 1);
    if (keys < 0) keys = 0;
    ck_assert_double_eq_tol(r.o[row], keys > 0 ? (keys - 1) / 2 : 0, 1e-13);
    equal(1, r.lse + row, (double[]){log(keys)}, 1e-13);
  }
}

TEST(test_v_of_ones) {
  make(2, 4, 2, 5, 113, 19, 11);
  add_bias(15);
  fill(x.v, 2 * 2 * 113 * 11, 1);
  forward();
  for (int64_t i = 0; i < 2 * 4 * 5 * 11; i++) ck_assert_double_eq_tol(r.o[i], 1, 1e-14);
}

/* O is linear in V and each P is exp(s - LSE): V = one key's indicator gives that key's P. */
TEST(test_lse_and_score) {
  int64_t nk = 6, d = 10;
  make(2, 4, 2, 3, nk, d, 6);
  add_bias(15);
  for (int64_t i = 0; i < 2 * 2 * nk * nk; i++) mutable(x.v)[i] = i / nk % nk == i % nk;
  forward();
  for (int64_t row = 0; row < 2 * 4 * 3; row++) {
    int64_t head = row / 12 * 2 + row / 3 % 4 / 2; /* of K: two query heads share one */
    for (int64_t k = 0; k < nk; k++) {
      double s = 0;
      for (int64_t c = 0; c < d; c++) s += x.q[row * d + c] * x.k[(head * nk + k) * d + c];
      s = s * 0.7 + x.bias[row * nk + k];
      ck_assert_double_eq_tol(r.o[row * nk + k], exp(s - r.lse[row]), 1e-14);
    }
  }
}

/* exp of these scores overflows by far. */
TEST(test_large_scores) {
  make(1, 1, 1, 2, 3, 1, 1);
  double *bias = add_bias(8);
  bias[0] = 1e6, bias[1] = -1e300, bias[2] = 1e6;
  fill(x.q, 2, 0);
  forward();
  equal(1, r.o, (double[]){(x.v[0] + x.v[2]) / 2}, 1e-14);
  equal(1, r.lse, (double[]){1e6 + log(2)}, 1e-9);
}

/* A bias of -inf is a mask, in every result. */
TEST(test_infinite_bias) {
  make(1, 2, 1, 4, 6, 3, 2);
  double *bias = add_bias(12);
  fill(bias, 24, 0);
  for (int64_t i = 0; i < 24; i++)
    if (i % 6 > i / 6 + 2) bias[i] = -INFINITY;
  forward(), backward();
  oracle_problem masked = x;
  oracle_result want = {0};
  masked.bias = NULL, masked.visible = oracle_visible("causal");
  ck_assert_int_eq(oracle_forward(&masked, &want) | oracle_backward(&masked, &want), 0);
  equal(16, r.o, want.o, 0), equal(8, r.lse, want.lse, 0), equal(24, r.dq, want.dq, 0);
  equal(18, r.dk, want.dk, 0), equal(12, r.dv, want.dv, 0);
  for (int64_t i = 0; i < 24; i++) ck_assert((r.dbias[i] != 0) == (bias[i] == 0));
  oracle_free(&want);
}

static int none(const oracle_problem *p, int64_t b, int64_t h, int64_t q, int64_t k) {
  (void)p, (void)b, (void)h, (void)q, (void)k;
  return 0;
}

/* No key, no visible key, and visible keys all at -inf are the same. */
TEST_LOOP(test_empty_rows, 3) {
  int64_t nk = _i == 0 ? 0 : 3;
  make(2, 2, 1, 3, nk, 4, 5);
  if (_i == 1) x.visible = none;
  if (_i == 2) fill(add_bias(8), nk, -INFINITY);
  forward(), backward();
  for (int64_t i = 0; i < 12; i++) ck_assert_double_eq(r.lse[i], -INFINITY);
  for (int64_t i = 0; i < 12 * 5; i++) ck_assert(r.o[i] == 0 && r.o_rss[i] == 0);
  for (int64_t i = 0; i < 12 * 4; i++) ck_assert(r.dq[i] == 0 && r.dq_rss[i] == 0);
  for (int64_t i = 0; i < 2 * nk * 4; i++) ck_assert(r.dk[i] == 0 && r.dk_rss[i] == 0);
  for (int64_t i = 0; i < 2 * nk * 5; i++) ck_assert(r.dv[i] == 0 && r.dv_rss[i] == 0);
  for (int64_t i = 0; _i == 2 && i < nk; i++) ck_assert(r.dbias[i] == 0 && r.dbias_rss[i] == 0);
}

/* ---- backward ---- */

/* What the gradients differentiate: sum dout O + sum dlse LSE, over rows that see a key. */
static double loss(void) {
  double sum = 0;
  forward();
  for (int64_t i = 0; i < x.b * x.h * x.nq * x.dv; i++) sum += x.dout ? x.dout[i] * r.o[i] : 0;
  for (int64_t i = 0; x.dlse && i < x.b * x.h * x.nq; i++)
    if (r.lse[i] > -INFINITY) sum += x.dlse[i] * r.lse[i];
  return sum;
}

/* grad against the central difference by each element of p. The step balances its error, step^2,
 * with that of rounding, 1e-16 / step. */
static void differences(const char *what, const double *p, int64_t n, const double *grad) {
  const double step = 1e-5;
  for (int64_t i = 0; i < n; i++) {
    double was = p[i];
    mutable(p)[i] = was + step;
    double up = loss();
    mutable(p)[i] = was - step;
    double numeric = (up - loss()) / (2 * step);
    mutable(p)[i] = was;
    ck_assert_msg(fabs(numeric - grad[i]) <= 1e-8 * (1 + fabs(numeric)),
                  "%s, element %ld: %.12g, by differences %.12g", what, (long)i, grad[i], numeric);
  }
}

static void check_gradients(void) {
  backward();
  differences("dq", x.q, x.b * x.h * x.nq * x.d, r.dq);
  differences("dk", x.k, x.b * x.hk * x.nk * x.d, r.dk);
  differences("dv", x.v, x.b * x.hk * x.nk * x.dv, r.dv);
  if (x.bias) differences("dbias", x.bias, biases(), r.dbias);
}

/* _i: which axes of the bias are full. */
TEST_LOOP(test_bias_extents, 16) {
  make(2, 4, 2, 3, 5, 9, 3);
  add_bias(_i);
  check_gradients();
}

TEST_LOOP(test_gradients, 7) {
  static const struct {
    int64_t h, hk, nq, nk, d, dv;
    const char *mask;
    int dout, dlse;
  } problem[] = {
      {1, 1, 4, 4, 3, 3, "full", 1, 0},    {3, 1, 3, 5, 2, 4, "full", 1, 1},
      {4, 2, 5, 5, 9, 17, "causal", 1, 1}, {2, 1, 3, 8, 4, 2, "causal", 1, 1},
      {2, 2, 8, 3, 4, 2, "causal", 1, 1},  {2, 2, 3, 4, 4, 2, "full", 0, 1},
      {1, 1, 1, 1, 2, 2, "full", 1, 1},
  };
  make(2, problem[_i].h, problem[_i].hk, problem[_i].nq, problem[_i].nk, problem[_i].d,
       problem[_i].dv);
  x.visible = oracle_visible(problem[_i].mask);
  if (!problem[_i].dout) free(mutable(x.dout)), x.dout = NULL;
  if (!problem[_i].dlse) free(mutable(x.dlse)), x.dlse = NULL;
  check_gradients();
}

/* nk = 1: P = 1 whatever the score, so dQ = dK = 0; what rounding may leave is judged by the terms.
 */
TEST(test_one_key) {
  make(1, 1, 1, 3, 1, 4, 4);
  free(mutable(x.dlse)), x.dlse = NULL;
  backward();
  for (int64_t i = 0; i < 12; i++) ck_assert(r.dq[i] == 0 && r.dq_rss[i] > 0);
  for (int64_t i = 0; i < 4; i++) ck_assert(r.dk[i] == 0 && r.dk_rss[i] > 0);
}

/* The definition, by hand: two keys, P = 1/4 and 3/4, dP = 8 and -4, Delta = -1. */
TEST(test_rss) {
  make(1, 1, 1, 1, 2, 1, 1);
  free(mutable(x.dlse)), x.dlse = NULL;
  x.scale = 0.5;
  mutable(x.q)[0] = 2, mutable(x.k)[0] = 0, mutable(x.k)[1] = log(3);
  mutable(x.v)[0] = 8, mutable(x.v)[1] = -4, mutable(x.dout)[0] = 1;
  fill(add_bias(0), 1, 0);
  backward();
  double size[] = {9.0 / 4, 3.0 / 4 * 5}; /* p (|dP| + |Delta|) */
  equal(1, r.dq, (double[]){0.5 * 0.75 * -3 * log(3)}, 1e-14);
  equal(1, r.dq_rss, (double[]){0.5 * size[1] * log(3)}, 1e-14);
  equal(2, r.dk_rss, size, 1e-14); /* times scale q, which is 1 */
  equal(2, r.dv_rss, (double[]){0.25, 0.75}, 1e-14);
  equal(1, r.dbias, (double[]){0}, 1e-14);
  equal(1, r.dbias_rss, (double[]){size[0] + size[1]}, 1e-14); /* one row: absolute sum */
  free(mutable(x.bias));
  fill(add_bias(8), 2, 0);
  backward();
  equal(2, r.dbias_rss, size, 1e-14);
}

/* ---- rounding ---- */

static double quarters(double value) { return nearbyint(value * 4) / 4; }

/* Every intermediate is rounded to quarters: S = .1, 0, -.1 to 0; P = 1/3 to 1/4; O = 5.7/4 to 1.5;
 * dP = 1, 1.9, 2.8 to 1, 2, 2.75, hence Delta = 5.75/4; dS = -.11, .14, .33 to 0, .25, .25. */
TEST(test_rounding) {
  make(1, 1, 1, 1, 3, 1, 1);
  free(mutable(x.dlse)), x.dlse = NULL;
  x.scale = 1, x.round = quarters;
  mutable(x.q)[0] = 0.1;
  for (int k = 0; k < 3; k++) mutable(x.k)[k] = 1 - k, mutable(x.v)[k] = 1 + 0.9 * k;
  mutable(x.dout)[0] = 1;
  fill(add_bias(0), 1, 0);
  forward(), backward();
  equal(1, r.o, (double[]){1.5}, 0);
  equal(1, r.lse, (double[]){log(3)}, 1e-14); /* not rounded */
  equal(3, r.dv, (double[]){.25, .25, .25}, 0);
  equal(1, r.dq, (double[]){-.25}, 0);
  equal(3, r.dk, (double[]){0, 0, 0}, 0); /* from .025 */
  equal(1, r.dbias, (double[]){.5}, 0);
}

/* The unfused computation in 16 bits is off by about the type's precision, and not by nothing. */
TEST_LOOP(test_unfused, 2) {
  static const fg_elem elem[] = {FG_ELEM_BF16, FG_ELEM_F16};
  static const double precision[] = {0x1p-9, 0x1p-12};
  oracle_result plain = {0};
  make(1, 2, 1, 16, 64, 32, 32);
  forward(), backward();
  x.round = oracle_round(elem[_i]);
  ck_assert_int_eq(oracle_forward(&x, &plain) | oracle_backward(&x, &plain), 0);
  double error[] = {oracle_error(2 * 16 * 32, plain.o, r.o, r.o_rss),
                    oracle_error(2 * 16 * 32, plain.dq, r.dq, r.dq_rss),
                    oracle_error(64 * 32, plain.dk, r.dk, r.dk_rss),
                    oracle_error(64 * 32, plain.dv, r.dv, r.dv_rss)};
  for (int i = 0; i < 4; i++) {
    ck_assert_double_gt(error[i], precision[_i] / 4);
    ck_assert_double_lt(error[i], precision[_i] * 4);
  }
  oracle_free(&plain);
}

static int all_but_one(const oracle_problem *p, int64_t b, int64_t h, int64_t q, int64_t k) {
  (void)p, (void)b, (void)h, (void)q;
  return k != 400;
}

/* The limits are tight: one dropped key of 799 fails them. */
TEST(test_limits) {
  oracle_result wrong = {0};
  make(1, 1, 1, 16, 799, 64, 64);
  forward();
  x.visible = all_but_one;
  ck_assert_int_eq(oracle_forward(&x, &wrong), 0);
  ck_assert_double_gt(oracle_error(16 * 64, wrong.o, r.o, r.o_rss), oracle_limit(FG_ELEM_BF16));
  double limit, error = oracle_lse_error(16, wrong.lse, r.lse, &limit);
  ck_assert_double_gt(error, limit);
  oracle_free(&wrong);
}

TEST_FIXTURE(setup, discard)
