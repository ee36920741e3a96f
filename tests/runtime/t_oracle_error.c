/* t_oracle_error.c - the measures of error of mathematics.md section 6: limits, what number formats
 * widen,
 * and the masks' names. */
#include "reference/oracle.h"
#include "reference/oracle_norm.h"
#include "suite.h"

#include <math.h>

TEST(test_error) {
  const double zero[] = {0, 0}, ref[] = {3, 4}, off[] = {3, 4.5}, rss[] = {30, 40};
  const double nan[] = {3, NAN}, infinite[] = {3, INFINITY};
  ck_assert_double_eq(oracle_error(2, ref, ref, zero), 0);
  ck_assert_double_eq(oracle_error(2, zero, zero, zero), 0);
  ck_assert_double_eq(oracle_error(0, zero, zero, zero), 0);
  ck_assert_double_eq_tol(oracle_error(2, off, ref, zero), 0.1, 1e-15);
  ck_assert_double_eq_tol(oracle_error(2, off, ref, rss), 0.01, 1e-15);
  ck_assert_double_eq(oracle_error(2, off, zero, zero), INFINITY);
  ck_assert_double_eq(oracle_error(2, infinite, ref, rss), INFINITY);
  /* a term that no float32 holds is lost, one that it holds is not */
  const double tiny[] = {4e-37, 0}, lost[] = {4e-37 - 1e-38, 1.1e-38}, wrong[] = {4e-37 - 2e-38, 0};
  ck_assert_double_eq(oracle_error(2, lost, tiny, zero), 0);
  ck_assert_double_eq_tol(oracle_error(2, wrong, tiny, zero), 0.05, 1e-9);
  ck_assert(isnan(oracle_error(2, nan, ref, rss)));
  ck_assert(isnan(oracle_error(2, nan, zero, zero)));
}

/* The error, where it is what counts as right so many times. */
static double lse_error(const double *x, const double *ref, double times) {
  double limit, error = oracle_lse_error(2, x, ref, &limit);
  if (times > 0) ck_assert_double_eq_tol(error / limit, times, 1e-8);
  return error;
}

TEST(test_lse_error) {
  const double ref[] = {1000, -INFINITY}, off[] = {1000 + 2.2e-3, -INFINITY};
  const double finite[] = {1000, -1e30}, other[] = {1000, INFINITY}, nan[] = {NAN, -INFINITY};
  const double twice[] = {1000 + 3.3e-3, 0}, small[] = {1000, 0};
  ck_assert_double_eq(lse_error(ref, ref, 0), 0);
  ck_assert_double_eq_tol(lse_error(off, ref, 2), 2.2e-3, 1e-12);
  ck_assert_double_eq_tol(lse_error(twice, small, 3), 3.3e-3, 1e-12);
  ck_assert_double_eq(lse_error(finite, ref, 0), INFINITY);
  ck_assert_double_eq(lse_error(ref, finite, 0), INFINITY);
  ck_assert_double_eq(lse_error(other, ref, 0), INFINITY);
  ck_assert_double_eq(lse_error(nan, ref, 0), INFINITY);
  ck_assert_double_eq(lse_error(nan, nan, 0), INFINITY);
}

TEST(test_limits) {
  ck_assert_double_eq(oracle_limit(FG_ELEM_BF16), 4e-3);
  ck_assert_double_eq(oracle_limit(FG_ELEM_F16), 7e-4);
  ck_assert_double_eq(oracle_limit(FG_ELEM_F32), 1e-5);
}

TEST(test_round) {
  ck_assert_double_eq(oracle_round(FG_ELEM_BF16)(1.0 / 3), 0x1.56p-2);
  ck_assert_double_eq(oracle_round(FG_ELEM_F16)(1.0 / 3), 0x1.554p-2);
  ck_assert_double_eq(oracle_round(FG_ELEM_F32)(1.0 / 3), (double)(1.0f / 3));
}

TEST(test_mask_names) {
  ck_assert_ptr_nonnull(oracle_visible("full"));
  ck_assert_ptr_null(oracle_visible("causal_top_left"));
  ck_assert(oracle_visible("full")(NULL, 0, 0, 0, 0));
}

/* ---- number formats ---- */

/* One row of one column against two keys, a score expression with one input, dO = 1; scale 1/2. */
static double q[1], k[2], v[2], dout[1] = {1}, bias[2], slope[1];
static oracle_input input = {.name = "slope", .rank = 1, .extent = {1}, .values = slope};
static oracle_result r;

static oracle_problem problem_of(const char *normalizer, const char *score,
                                 oracle_formats formats) {
  static int grad = 1;
  oracle_problem x = {.b = 1, .h = 1, .hk = 1, .nq = 1, .nk = 2, .d = 1, .dv = 1, .scale = 0.5};
  x.q = q, x.k = k, x.v = v, x.dout = dout, x.formats = formats;
  x.normalizer = oracle_normalizer_find(normalizer);
  x.n_inputs = 1, x.inputs = &input, x.grad = &grad;
  if (score) x.score = oracle_formula_new(score, 1, &input, NULL);
  ck_assert(!score || x.score);
  return x;
}

/* Values of the tensors; scores are q k / 2. */
static void set(double q0, double k0, double k1, double v0, double v1, double own) {
  q[0] = q0, k[0] = k0, k[1] = k1, v[0] = v0, v[1] = v1, slope[0] = own;
}

static void solve(const oracle_problem *x) {
  ck_assert_int_eq(oracle_forward(x, &r) | oracle_backward(x, &r), 0);
  oracle_formula_free(x->score);
}

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-12 * fabs((double)(b)))

/* LSE may be off by the size of a score's terms, the largest logit by that of its product. */
TEST(test_sizes_of_scores) {
  const oracle_formats formats = {.product = 0x1p-12, .term = 0x1p-22, .slope = 1e-5};
  oracle_problem x = problem_of(NULL, "s + slope[h] * float(k - p)", formats);
  set(2, -3, 0.25, 1, 1, 5); /* products of 3 and 1/4; terms of 5 x (k - p): p = 1 */
  x.bias = bias, bias[0] = -7, bias[1] = 100;
  for (int i = 0; i < 4; i++) x.bias_extent[i] = i == 3 ? 2 : 1;
  solve(&x);
  NEAR(r.lse_cut[0], 0x1p-12 * 3 + 0x1p-22 * (5 + 7) + 1e-5 * 5);
  NEAR(r.max_logit_cut[0], 0x1p-12 * 3);
  /* of a cap what goes through it; no term, and no slope that is known to the compiler */
  x = problem_of(NULL, "2.0 * tanh(s / 4.0) + 3.0 * float(k - p)", formats);
  solve(&x);
  const double slope_of_cap = 0.5 * (1 - tanh(-3 / 4.0) * tanh(-3 / 4.0));
  NEAR(r.lse_cut[0], 0x1p-12 * 3 * slope_of_cap + 0x1p-22 * 3);
}

/* What O adds up counts as at least an operand of 2^-14, in the unit of each normaliser. */
TEST_LOOP(test_operands_of_o, 5) {
  const double a = exp(-30) / (1 + exp(-30)), least = 0x1p-14;
  const double sigmoid = 1 / (1 + exp(30) * 2);
  static const char *const names[] = {"softmax", "retention", "sigmoid", "none", "logsoftmax"};
  const double first[] = {1, 30 / 30.0, sigmoid, 30, 30 + 30};
  const double second[] = {least, least / 30, 0.5 / 1.5, least, least + 30};
  const double top[] = {1 - a, 1, 1, 1, 1};
  oracle_problem x = problem_of(names[_i], NULL, (oracle_formats){.operand = least});
  const int is_softmax = _i == 0, is_logsoftmax = _i == 4;
  set(2, is_softmax || is_logsoftmax ? 30 : -30, 0, 1, 1, 0);
  solve(&x);
  const double small = _i == 2 ? fmax(sigmoid, least) : first[_i] * top[_i];
  ck_assert_double_eq_tol(r.o_rss[0], hypot(small, second[_i] * top[_i]), 1e-9);
}

/* In backward P and dS do; dQ = scale dS k, dK = scale dS q. */
TEST(test_operands_of_gradients) {
  const double least = 0x1p-14;
  oracle_problem x = problem_of(NULL, NULL, (oracle_formats){.operand = least});
  set(2, 30, 0.5, 3, -4, 0); /* the second key's p and dS are about exp(-29.5) */
  solve(&x);
  ck_assert_double_eq_tol(r.dv_rss[0], 1, 1e-9);
  NEAR(r.dv_rss[1], least);
  ck_assert_double_eq_tol(r.dk_rss[0], 0.5 * 6 * 2, 1e-9); /* |dP| + |Delta| = 6 */
  NEAR(r.dk_rss[1], 0.5 * least * 2);
  ck_assert_double_eq_tol(r.dq_rss[0], 0.5 * hypot(6 * 30, least * 0.5), 1e-6);
}

/* A factor 1 - tanh^2 counts as at least 2^-9, for what it multiplies alone. */
TEST(test_slopes_of_caps) {
  oracle_problem x = problem_of("none", "4.0 * tanh((s + slope[h]) / 4.0) + slope[h]",
                                (oracle_formats){.tanh = 0x1p-9});
  set(2, 50, 0, 3, 5, 0.5);
  solve(&x);
  const double open = 1 - tanh(0.125) * tanh(0.125);
  NEAR(r.dk_rss[0], 0.5 * 2 * 3 * 0x1p-9);
  NEAR(r.dk_rss[1], 0.5 * 2 * 5 * open);
  NEAR(r.dq_rss[0], 0.5 * 50 * 3 * 0x1p-9);
  ck_assert_double_eq_tol(r.dinput_rss[0][0], 3 * (1 + 0x1p-9) + 5 * (1 + open), 1e-9);
  ck_assert_double_lt(fabs(r.dk[0]), 1e-8);
  ck_assert(r.sampled == 1 && r.steep == 0); /* of the first pair */
  x = problem_of("none", "4.0 * tanh(s / 4.0)", (oracle_formats){0});
  set(2, 1, 0, 3, 5, 0);
  solve(&x);
  ck_assert(r.sampled == 1 && r.steep == 1);
}

/* The weight of log-softmax is as far off as its LSE; 1 - a of sigmoid is no more than it is. */
TEST(test_sizes_of_weights) {
  oracle_problem x = problem_of("logsoftmax", "s - slope[h]", (oracle_formats){0});
  set(2, 30, 30, 1, 1, 29);
  solve(&x);
  NEAR(r.dv_rss[0], log(2) + (30 + 29) / 2900.0);
  x = problem_of("sigmoid", NULL, (oracle_formats){0});
  solve(&x);
  const double a = 1 / (1 + exp(-30) * 2); /* of s = 30, c = -log 2 */
  ck_assert_double_eq_tol(r.dk_rss[0] / (a * (1 - a)), 1, 1e-9);
}

/* A number stored in f16 counts as at least 2^-14 where there are terms; one without is 0. */
TEST(test_stored_f16) {
  const double ref[] = {0x1p-20, 0}, off[] = {0x1p-20 + 0x1p-25, 0}, rss[] = {0x1p-20, 0};
  const double alien[] = {0x1p-20, 0x1p-25}, none[] = {0, 0};
  ck_assert_double_eq(oracle_least(FG_ELEM_F16), 0x1p-14);
  ck_assert_double_eq(oracle_least(FG_ELEM_BF16) + oracle_least(FG_ELEM_F32), 0);
  NEAR(oracle_error_of(2, off, ref, rss, 0x1p-14), 0x1p-11);
  NEAR(oracle_error_of(2, off, ref, rss, 0), 0x1p-5);
  ck_assert_double_eq(oracle_error_of(2, alien, none, none, 0x1p-14), INFINITY);
}

/* A row that a product made is judged by what the norm adds up, as any other row. */
TEST(test_rows_of_norms) {
  double mean[1], rstd[1], out[2], out_rss[2];
  const oracle_norm p = {.rows = 1,
                         .width = 2,
                         .eps = 0.75,
                         .z = (double[]){1, 2},
                         .z_rss = (double[]){100, 100},
                         .gamma = (double[]){2, 4},
                         .beta = (double[]){0, 3},
                         .mean = mean,
                         .rstd = rstd};
  oracle_norm_statistics(&p, NULL); /* a deviation of 1/2: rstd = 1 */
  oracle_norm_out(&p, out, out_rss);
  NEAR(out[0], -1);
  NEAR(out_rss[0], 1);
  NEAR(out_rss[1], hypot(2, 3));
}

static void forget(void) { oracle_free(&r); }

TEST_FIXTURE(NULL, forget)
