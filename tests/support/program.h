/* program.h - the program `flashgen` run from outside: arguments in; exit code, stdout, stderr out.
 *
 * Its environment is the test's without any FLASHGEN_ variable but FLASHGEN_DEVICE = host, and with
 * TMPDIR = "tmp" in the current directory, which must be empty when it has ended. A failure in here
 * fails the test. */
#ifndef FG_TESTS_PROGRAM_H
#define FG_TESTS_PROGRAM_H

#include "suite.h"

enum { PROGRAM_ENV = 5 };

/* Where stdout goes. */
typedef enum program_stdout {
  PROGRAM_KEPT, /* to program_result.out */
  PROGRAM_CLOSED,
  PROGRAM_FULL, /* /dev/full */
  PROGRAM_LEFT, /* a pipe whose reader has left */
} program_stdout;

/* How it is run; all zero is the usual way. */
typedef struct program_setup {
  const char *env[PROGRAM_ENV]; /* "NAME=VALUE", or "NAME" to unset it */
  program_stdout out;
  int terminal; /* columns of the terminal that stderr is; 0 = none */
  int closed_stdin, interrupts_ignored;
  int group; /* a process group of its own, which is interrupted as a terminal does it */
} program_setup;

/* Texts end with a zero; they live until the next program starts. */
typedef struct program_result {
  int code; /* 128 + signal when one ended it */
  const char *out, *err;
} program_result;

/* Runs `flashgen WORD ...`, the words parted by spaces; setup may be NULL. */
program_result program_run(const program_setup *setup, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, but once stdout holds `text`, or with NULL once the C compiler is at work on a kernel,
 * the signal is sent `times` times. Ends after the processes that the program may have left. */
program_result program_interrupted(const program_setup *setup, const char *text, int signal,
                                   int times, const char *words);

/* Runs it as usual, and fails the test unless the exit code is this one. */
program_result program_gives(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The usual run ends with exit code 2 or what is given, prints nothing on stdout, and on stderr
 * first "flashgen: ", then exactly this sentence and a line's end. */
void program_refuses(int code, const char *sentence, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A C compiler that runs these lines of shell before cc: "cc.sh" in the current directory, as a
 * variable for program_setup. Its text lives until the next one is made. */
const char *program_compiler(const char *lines);

/* The text has the part, n times where n is given. */
void program_says(const char *text, const char *part);
int program_count(const char *text, const char *part);

/* The text of a file, of 4 MiB at most, until the next one is read. */
char *program_text(const char *path);
/* As program_says, of a text that is too long to be shown. */
void program_page_says(const char *page, const char *part);

#endif
