/* planted.h - bugs planted in the templates, and what must be said of them. */
#ifndef FG_TESTS_PLANTED_H
#define FG_TESTS_PLANTED_H

#include "kernel_case.h"

/* Where a fault may show: a line of a template, known by a text in it. */
typedef struct planted_place {
  const char *file, *text;
} planted_place;

/* One bug: the nth occurrence (0 = the first) of `text` in `file` becomes `instead`. It is caught
 * as `fault`, patterns of fnmatch parted by "|", and at one of the places; or, where fault is NULL,
 * as wrong numbers. `words` describe the kernel, NULL = planted_forward. */
typedef struct planted_bug {
  const char *file, *text, *instead, *words, *fault;
  planted_place place[2]; /* none: any line of `file` */
  int nth;
  int seeds; /* 0 = PLANTED_SEEDS */
} planted_bug;

enum { PLANTED_SEEDS = 10 };
extern const char planted_forward[], planted_backward[];

/* The built-in templates to the current directory. */
void planted_copy(void);

/* Plants the bug there; how often its text occurs in the file is returned. */
int planted_plant(const planted_bug *bug);

/* The kernels of the templates there. */
fg_status planted_make(const planted_bug *bug, kernels *made);

/* Runs every plan's kernel under each seed: the bug is caught as it should be. */
void planted_expect(const planted_bug *bug, const kernels *made);

/* Runs them: nothing is wrong. */
void planted_expect_none(const kernels *made);

/* fg_error() matches one of the patterns. */
void planted_said(const planted_bug *bug, const char *where);

#endif
