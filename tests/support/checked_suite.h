/* checked_suite.h - the whole program of a suite of bugs that `flashgen check` must see.
 *
 * Each is planted by FLASHGEN_TEMPLATES, alone; then the command runs in the test's own process,
 * or, of one bug a kind, as the program. A merge tries a tenth, `nightly` all; --list prints them.
 */
#ifndef FG_TESTS_CHECKED_SUITE_H
#define FG_TESTS_CHECKED_SUITE_H

typedef struct checked_bug {
  const char *where, *text, *instead; /* as of a planted_bug that names a spot */
  const char *words;                  /* of the command */
  int code; /* how it ends: a fault of the order 1, wrong numbers 4; BY_PROGRAM is added, or not */
} checked_bug;
enum { BY_PROGRAM = 100 };

/* Runs or lists the suite; returns the exit code. */
int checked_suite_run(const char *name, int n, const checked_bug *bugs, int argc, char **argv);

#endif
