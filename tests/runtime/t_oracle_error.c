/* t_oracle_error.c - the measures of error, the limits, and the masks' names. */
#include "reference/oracle.h"
#include "suite.h"

#include <math.h>

START_TEST(test_error) {
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
END_TEST

/* The error, where it is what counts as right so many times. */
static double lse_error(const double *x, const double *ref, double times) {
  double limit, error = oracle_lse_error(2, x, ref, &limit);
  if (times > 0) ck_assert_double_eq_tol(error / limit, times, 1e-8);
  return error;
}

START_TEST(test_lse_error) {
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
END_TEST

START_TEST(test_limits) {
  ck_assert_double_eq(oracle_limit(FG_ELEM_BF16), 4e-3);
  ck_assert_double_eq(oracle_limit(FG_ELEM_F16), 7e-4);
  ck_assert_double_eq(oracle_limit(FG_ELEM_F32), 1e-5);
}
END_TEST

START_TEST(test_round) {
  ck_assert_double_eq(oracle_round(FG_ELEM_BF16)(1.0 / 3), 0x1.56p-2);
  ck_assert_double_eq(oracle_round(FG_ELEM_F16)(1.0 / 3), 0x1.554p-2);
  ck_assert_double_eq(oracle_round(FG_ELEM_F32)(1.0 / 3), (double)(1.0f / 3));
}
END_TEST

START_TEST(test_mask_names) {
  ck_assert_ptr_nonnull(oracle_visible("full"));
  ck_assert_ptr_null(oracle_visible("causal_top_left"));
  ck_assert(oracle_visible("full")(NULL, 0, 0, 0, 0));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oracle_error");
  TCase *cases = tcase_create("oracle_error");
  suite_add(cases, test_error);
  suite_add(cases, test_lse_error);
  suite_add(cases, test_limits);
  suite_add(cases, test_round);
  suite_add(cases, test_mask_names);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
