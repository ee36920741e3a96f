/* planted_suite.h - the whole program of a suite of planted bugs.
 *
 * Each bug is planted alone, a bug that names a file in each of its calls in turn. A merge tries a
 * tenth of them, `nightly` all. With --list the program prints them, a line each, and tries none.
 */
#ifndef FG_TESTS_PLANTED_SUITE_H
#define FG_TESTS_PLANTED_SUITE_H

#include "planted.h"

/* An array, as a list's number and first row. */
#define PLANTED(ROWS)                                                                              \
  { sizeof ROWS / sizeof *ROWS, ROWS }

typedef struct planted_list {
  int n;
  const planted_bug *bug;
} planted_list;

typedef struct planted_suite {
  const char *name;
  planted_list bugs[4];
  planted_list whole;       /* name no bug: nothing is wrong with their words and cases, */
  int whole_seeds;          /* in so many orders of threads */
  const verify_case *cases; /* of all rows that have none */
  planted_place place[12];   /* of bugs that have none */
} planted_suite;

/* Runs or lists the suite; returns the exit code. PLANTED_SUITE(.name = ...) is the whole main().
 */
int planted_suite_run(const planted_suite *suite, int argc, char **argv);
#define PLANTED_SUITE(...)                                                                         \
  int main(int argc, char **argv) {                                                                \
    static const planted_suite suite = {__VA_ARGS__};                                              \
    return planted_suite_run(&suite, argc, argv);                                                  \
  }

/* Prints bug number `number` of a suite on a line: suite, number, spot, text, what it becomes,
 * words, and what is expected, parted by tabs. */
void planted_print(const char *suite, int number, const planted_bug *bug);

/* Do the arguments ask for the list? */
bool planted_lists(int argc, char **argv);

#endif
