/* zoo_case.h - what the suites of zoos as files share: the zoo "zoo" of three variants whose code
 * is made up. Failures in here fail the test. */
#ifndef FG_TESTS_ZOO_CASE_H
#define FG_TESTS_ZOO_CASE_H

#include "zoo/zoo_make.h"

enum { ZOO_ITEMS = 3, ZOO_CODE = 5000, ZOO_TEXT = 1 << 15 };
#define ZOO_RECIPE                                                                                 \
  "head_dim 8 8\nalign 2\ntensor q in bf16 [b, nq, h, 8]\n"                                        \
  "launch f grid 1, 1, 1 threads 32 shared 0 registers 80 work nk\n"

extern const char *const zoo_names[ZOO_ITEMS];
extern const volatile int zoo_never; /* set */

fg_zoo_make *zoo_open_make(void);
fg_code zoo_code(int i);
fg_zoo_item zoo_item(int i);

/* Gives item i, made or recalled; whether it was recalled. */
int zoo_give(fg_zoo_make *make, int i, fg_zoo_record *record);

/* Makes the zoo of all items; returns how many were recalled. */
int zoo_made(int expect_removed);
extern bool zoo_changed; /* by the last of it */

/* The bytes of a file, ended by a NUL. */
size_t zoo_slurp(const char *path, char text[ZOO_TEXT]);

/* How many files the zoo has. */
int zoo_files(void);

#endif
