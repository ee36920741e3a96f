/* scratch.h - a directory of the test's own, for suites that make files.
 *
 * scratch_enter and scratch_leave are a checked fixture: each test starts in a new empty directory,
 * which is removed after it. A failure in here fails the test. All lie in one directory of the run,
 * which is its TMPDIR too and goes with it: what a test that failed or was killed leaves behind. */
#ifndef FG_TESTS_SCRATCH_H
#define FG_TESTS_SCRATCH_H

#include <stddef.h>

/* suite_run makes the directory of the run, and removes it. */
void scratch_begin(void);
void scratch_end(void);

/* Makes the directory and makes it the current one. */
void scratch_enter(void);

/* Removes it with all that it holds. */
void scratch_leave(void);

/* Writes n bytes to the file `path`, whose folders are made where they are not there. */
void scratch_put(const char *path, const void *bytes, size_t n);

/* The folder of kernels that tests have compiled: of all suites under ctest, of this run by hand.
 * NULL: there is none. */
const char *scratch_kernels(void);

/* How many names the current directory holds, hidden ones too. */
int scratch_files(void);

#endif
