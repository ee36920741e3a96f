/* t_oracle_error.c - the measures of error, the limits, and the masks' names. */
#include "oracle.h"
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
  ck_assert(isnan(oracle_error(2, nan, ref, rss)));
  ck_assert(isnan(oracle_error(2, nan, zero, zero)));
}
END_TEST

START_TEST(test_lse_excess) {
  const double ref[] = {1000, -INFINITY}, off[] = {1000 + 2.2e-3, -INFINITY};
  const double finite[] = {1000, -1e30}, other[] = {1000, INFINITY}, nan[] = {NAN, -INFINITY};
  ck_assert_double_eq(oracle_lse_excess(2, ref, ref), 0);
  ck_assert_double_eq_tol(oracle_lse_excess(2, off, ref), 2, 1e-8);
  ck_assert_double_eq(oracle_lse_excess(2, finite, ref), INFINITY);
  ck_assert_double_eq(oracle_lse_excess(2, ref, finite), INFINITY);
  ck_assert_double_eq(oracle_lse_excess(2, other, ref), INFINITY);
  ck_assert_double_eq(oracle_lse_excess(2, nan, ref), INFINITY);
  ck_assert_double_eq(oracle_lse_excess(2, nan, nan), INFINITY);
}
END_TEST

START_TEST(test_limits) {
  ck_assert_double_eq(oracle_limit(FG_ELEM_BF16), 4e-3);
  ck_assert_double_eq(oracle_limit(FG_ELEM_F16), 7e-4);
  ck_assert_double_eq(oracle_limit(FG_ELEM_F32), 7e-4);
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
  tcase_add_test(cases, test_error);
  tcase_add_test(cases, test_lse_excess);
  tcase_add_test(cases, test_limits);
  tcase_add_test(cases, test_round);
  tcase_add_test(cases, test_mask_names);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
