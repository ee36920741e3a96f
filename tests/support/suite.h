/* suite.h - what every Check suite shares: the timeout, and how main() runs it.
 *
 * Check's default timeout is 4 s, too short for a test that compiles or runs a kernel on the host
 * device: linking suite.c makes it 120 s, unless CK_DEFAULT_TIMEOUT is set. */
#ifndef FG_TESTS_SUITE_H
#define FG_TESTS_SUITE_H

#include <check.h>
#include <stdbool.h>

/* An fg_shape of so many b, h, hk, nq, nk and align. */
#define SHAPE(B, H, HK, NQ, NK, ALIGN)                                                             \
  { .size = sizeof(fg_shape), .b = B, .h = H, .hk = HK, .nq = NQ, .nk = NK, .align = ALIGN }

/* Is this the selection for the inner loop, FLASHGEN_TEST_QUICK=1? Then one kernel stands for all
 * that a case is about, and two seeds for many. */
bool suite_is_quick(void);

/* The one way to add tests. A case is a test, or a number below n of a loop's test; a suite counts its
 * cases in the order in which they are added.
 *
 * suite_add and suite_loop: cases that a merge needs. suite_tenth: rare cases, of which a merge runs a
 * tenth, by FLASHGEN_TENTH (tests/begin.cmake), and `nightly` all. Where the variable is not set, as
 * for a suite that is run by hand, all cases run.
 *
 * FLASHGEN_TEST_CASES leaves out more: I%N takes each Nth case of the chosen ones, from the Ith on, so
 * that a long suite is several tests; FIRST-LAST takes cases by their numbers. */
void suite_add(TCase *cases, const TTest *test);
void suite_loop(TCase *cases, const TTest *test, int n);
void suite_tenth(TCase *cases, const TTest *test, int n);

/* Is the number, of what a case divides itself, in this run's tenth? */
bool suite_has_tenth(int number);

/* Runs and frees the suite; returns the exit code, 0 if every test passed, else 1. */
int suite_run(Suite *suite);

#endif
