/* process.h - runs a program to its end and keeps what it printed. No shell is ever involved. */
#ifndef FG_PROCESS_H
#define FG_PROCESS_H

#include "base/error.h"

/* Messages of programs come in English whatever the locale.
 *
 * Runs argv (looked up in PATH; argv[0] is the program), with its stdout and stderr together in
 * `output` (cut to size - 1 bytes, always terminated). *exit_code: its exit status, 128 + the
 * signal that killed it. FG_EENVIRONMENT when it cannot be started. */
fg_status fg_process_run(const char *const *argv, size_t size, char *output, int *exit_code);

/* The same with TMPDIR set to a directory of the caller's: a compiler that is interrupted may leave
 * files there. NULL = as it is. */
fg_status fg_process_run_in(const char *tmpdir, const char *const *argv, size_t size, char *output,
                            int *exit_code);

#endif
