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

/* A test for each number below n. FLASHGEN_TEST_CASES=FIRST-LAST, or I/N for the Ith of N parts,
 * leaves others out: a kernel that faults on a GPU takes all later tests of its process with it.
 * I%N takes each Nth number from I on. */
void suite_loop(TCase *cases, const TTest *test, int n);

/* Runs and frees the suite; returns the exit code, 0 if every test passed, else 1. */
int suite_run(Suite *suite);

#endif
