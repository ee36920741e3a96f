/* suite.c - chooses the cases of a Check suite and runs them. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "suite.h"

#include "scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check reads the variable when a test case is created, hence before main(). */
__attribute__((constructor)) static void set_timeout(void) {
  setenv("CK_DEFAULT_TIMEOUT", "120", 0);
}

bool suite_is_quick(void) {
  const char *text = getenv("FLASHGEN_TEST_QUICK");
  return text && *text == '1';
}

/* ---- which cases run ---- */

static int cases_all, cases_rare, cases_chosen; /* so far: of the suite; rare; that the tenth has */

/* FLASHGEN_TENTH; -1: all ten. */
static int tenth(void) {
  const char *text = getenv("FLASHGEN_TENTH");
  return text && *text >= '0' && *text <= '9' ? *text - '0' : -1;
}

static bool is_in_tenth(int number) { return tenth() < 0 || number % 10 == tenth(); }

/* Suites of few rare cases begin with different tenths, by their names. */
static int first_tenth(void) {
  int sum = 0;
  for (const char *c = program_invocation_short_name; *c; c++) sum += *c;
  return sum % 10;
}

/* Does FLASHGEN_TEST_CASES leave the case in, the nth of those that are chosen? */
static bool is_in_part(int nth, int number) {
  const char *text = getenv("FLASHGEN_TEST_CASES");
  int first, last;
  if (!text) return true;
  if (sscanf(text, "%d%%%d", &first, &last) == 2 && last > 0) return nth % last == first;
  const int n = sscanf(text, "%d-%d", &first, &last);
  return n < 1 || (number >= first && number <= (n == 2 ? last : first));
}

static void add(TCase *cases, const TTest *test, int n, bool is_rare) {
  for (int i = 0; i < n; i++) {
    const int number = cases_all++;
    if (is_rare && !is_in_tenth(first_tenth() + cases_rare++)) continue;
    if (is_in_part(cases_chosen++, number)) tcase_add_loop_test(cases, test, i, i + 1);
  }
}

void suite_add(TCase *cases, const TTest *test) { add(cases, test, 1, false); }
void suite_loop(TCase *cases, const TTest *test, int n) { add(cases, test, n, false); }
void suite_tenth(TCase *cases, const TTest *test, int n) { add(cases, test, n, true); }

/* ---- tests that register themselves ---- */

enum { TESTS = 256, FIXTURES = 4 };

static struct {
  const TTest *test;
  int n;
  bool is_rare;
} registered[TESTS];
static int n_registered, n_fixtures;
typedef struct fixture {
  void (*enter)(void), (*leave)(void);
} fixture;
static fixture fixtures[FIXTURES], once;
static double timeout;
static void (*before)(void);

void suite_register(const TTest *test, int n, bool is_rare) {
  if (n_registered == TESTS) abort();
  registered[n_registered].test = test;
  registered[n_registered].n = n;
  registered[n_registered++].is_rare = is_rare;
}

void suite_fixture(void (*enter)(void), void (*leave)(void)) {
  if (n_fixtures == FIXTURES) abort();
  fixtures[n_fixtures++] = (fixture){enter, leave};
}

void suite_once(void (*enter)(void), void (*leave)(void)) { once = (fixture){enter, leave}; }

void suite_timeout(double seconds) { timeout = seconds; }
void suite_before(void (*begin)(void)) { before = begin; }

void suite_skip(const char *label, const char *why) {
  enum { SKIPPED = 77 };
  const char *required = getenv("FLASHGEN_REQUIRE");
  fprintf(stderr, "nothing is run: %s\n", why);
  exit(required && strstr(required, label) ? EXIT_FAILURE : SKIPPED);
}

int suite_main(void) {
  Suite *suite = suite_create(program_invocation_short_name);
  TCase *cases = tcase_create(program_invocation_short_name);
  if (before) before();
  if (timeout > 0) tcase_set_timeout(cases, timeout);
  if (once.enter) tcase_add_unchecked_fixture(cases, once.enter, once.leave);
  for (int i = 0; i < n_fixtures; i++)
    tcase_add_checked_fixture(cases, fixtures[i].enter, fixtures[i].leave);
  for (int i = 0; i < n_registered; i++)
    add(cases, registered[i].test, registered[i].n, registered[i].is_rare);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}

int suite_run(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  scratch_begin();
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  scratch_end();
  return failed != 0;
}
