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

/* A test says itself when it runs:
 *
 *   TEST(name) { ... }            a case that each merge needs
 *   TEST_LOOP(name, n) { ... }    n of them, numbers _i below n
 *   TEST_TENTH(name, n) { ... }   n rare ones: a merge runs a tenth, by FLASHGEN_TENTH
 *                                 (tests/begin.cmake), and `nightly` all
 *
 * A suite counts its cases in the order in which they stand. Where FLASHGEN_TENTH is not set, as
 * for a suite that is run by hand, all cases run. FLASHGEN_TEST_CASES leaves out more: I%N takes
 * each Nth case of the chosen ones, from the Ith on, so that a long suite is several tests;
 * FIRST-LAST takes cases by their numbers. */
#define TEST(NAME)          SUITE_TEST(NAME, 1, false)
#define TEST_LOOP(NAME, N)  SUITE_TEST(NAME, N, false)
#define TEST_TENTH(NAME, N) SUITE_TEST(NAME, N, true)

#define SUITE_TEST(NAME, N, IS_RARE)                                                               \
  static void NAME##_fn(int);                                                                      \
  __attribute__((constructor)) static void NAME##_register(void) {                                 \
    static const TTest test = {#NAME, NAME##_fn, __FILE__, __LINE__};                              \
    suite_register(&test, N, IS_RARE);                                                             \
  }                                                                                                \
  static void NAME##_fn(int _i CK_ATTRIBUTE_UNUSED)

/* Each test of the suite begins with one call and ends with the other. */
#define TEST_FIXTURE(ENTER, LEAVE)                                                                 \
  __attribute__((constructor)) static void suite_register_##ENTER(void) {                          \
    suite_fixture(ENTER, LEAVE);                                                                   \
  }

/* The suite begins with one call and ends with the other, in the process that forks. */
#define TEST_ONCE(ENTER, LEAVE)                                                                    \
  __attribute__((constructor)) static void suite_register_##ENTER(void) {                          \
    suite_once(ENTER, LEAVE);                                                                      \
  }

/* Seconds that a test may take; the suite's default is above. */
#define TEST_TIMEOUT(SECONDS)                                                                      \
  __attribute__((constructor)) static void suite_register_timeout(void) { suite_timeout(SECONDS); }

/* TEST_BEGIN { ... } runs before the first test, in the process that forks for each. */
#define TEST_BEGIN                                                                                 \
  static void suite_begin(void);                                                                   \
  __attribute__((constructor)) static void suite_register_begin(void) {                            \
    suite_before(suite_begin);                                                                     \
  }                                                                                                \
  static void suite_begin(void)

void suite_register(const TTest *test, int n, bool is_rare);
void suite_fixture(void (*enter)(void), void (*leave)(void));
void suite_once(void (*enter)(void), void (*leave)(void));
void suite_timeout(double seconds);
void suite_before(void (*begin)(void));

/* Ends the program where what its tests need is not there: skipped, or failed if FLASHGEN_REQUIRE
 * names the label. `why` is printed. */
_Noreturn void suite_skip(const char *label, const char *why);

/* The program of a suite that has no main() of its own: runs the tests that are registered. */
int suite_main(void);

/* A suite whose cases are known only when it runs has a main(), adds tests to Check's cases by
 * these and ends with suite_run: cases that a merge needs; rare ones. */
void suite_add(TCase *cases, const TTest *test);
void suite_loop(TCase *cases, const TTest *test, int n);
void suite_tenth(TCase *cases, const TTest *test, int n);

/* Runs and frees the suite; returns the exit code, 0 if every test passed, else 1. */
int suite_run(Suite *suite);

#endif
