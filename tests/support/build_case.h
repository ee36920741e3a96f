/* build_case.h - what the suites of `flashgen build` share: a compiler that counts and can be made
 * to misbehave, and zoos compared byte by byte. */
#ifndef FG_TESTS_BUILD_CASE_H
#define FG_TESTS_BUILD_CASE_H

#include "program.h"

/* A checked fixture: a directory of the test's own, with cc.sh in it. */
void build_enter(void);
void build_leave(void);

/* "FLASHGEN_CC=<here>/cc.sh": counts its compiles; kernels whose name holds "d24" it refuses, of d56
 * the first plan, and with those whose name holds "d32" it kills the process that has called it. */
const char *build_cc(void);

/* Compiles that cc.sh has started since the last call. */
int build_compiles(void);

/* `flashgen WORDS`, with cc.sh; ends the test unless it exits so. */
program_result build_gives(int code, const char *words);

/* The zoos hold the same files with the same bytes. */
void build_same(const char *a, const char *b);

/* The whole zoo of the words, whatever the directory held before, opens and all its code reads. */
void build_is_whole(const char *dir, int n);

/* Names in the directory, and whether one is there. */
int build_files(const char *dir);
int build_has(const char *dir, const char *file);

#endif
