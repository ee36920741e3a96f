/* process.h - runs a program to its end and keeps what it printed. No shell is ever involved. */
#ifndef FG_PROCESS_H
#define FG_PROCESS_H

#include "base/error.h"

/* Runs argv to its end. argv[0] is the program, looked up in PATH; argv ends in NULL. stdout and
 * stderr go together into `output`, cut to size - 1 bytes and always terminated, in English
 * whatever the locale. *exit_code: its exit status, or 128 + the signal that killed it.
 * FG_EENVIRONMENT: it cannot be started. */
fg_status fg_process_run(const char *const *argv, size_t size, char *output, int *exit_code);

/* The same with TMPDIR set, NULL = as it is: a compiler that is interrupted may leave files
 * there. */
fg_status fg_process_run_in(const char *tmpdir, const char *const *argv, size_t size, char *output,
                            int *exit_code);

#endif
