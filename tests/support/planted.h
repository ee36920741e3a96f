/* planted.h - bugs planted in the templates, and what must be said of them. */
#ifndef FG_TESTS_PLANTED_H
#define FG_TESTS_PLANTED_H

#include "kernel_case.h"

/* Where a fault may show: a line of a template, known by a text in it; NULL: any. */
typedef struct planted_place {
  const char *file, *text;
} planted_place;

/* One bug: the nth occurrence (0 = the first) of `text` in `file` becomes `instead`. It is caught
 * as `fault`, patterns of fnmatch parted by "|", and at one of the places; or, where fault is NULL
 * or has "wrong numbers" among them, as these. `words` describe the kernels, NULL =
 * planted_forward; those whose text the bug changes must catch it. Of several cases, whose seeds are
 * added, each seed needs one. */
typedef struct planted_bug {
  const char *file, *text, *instead, *words, *fault;
  planted_place place[3];   /* none: any line of `file` */
  const verify_case *cases; /* up to one without rows; NULL = a small one */
  int nth;
  int seeds; /* 0 = PLANTED_SEEDS */
} planted_bug;

enum { PLANTED_SEEDS = 10 };
extern const char planted_forward[], planted_backward[];

/* The built-in templates to the current directory. */
void planted_copy(void);

/* How often a text occurs in a built-in template, and the line of its nth occurrence. */
int planted_count(const char *file, const char *text);
int planted_line(const char *file, const char *text, int nth);

/* Plants the bug there. */
void planted_plant(const planted_bug *bug);

/* The directory "t": the built-in templates with this one change. */
void planted_in_t(const char *file, const char *text, const char *instead);

/* The kernels of the templates there. */
fg_status planted_make(const planted_bug *bug, kernels *made);

/* Copies, plants, and runs every kernel that the bug changes, under each seed: it is caught as it
 * should be. */
void planted_try(const planted_bug *bug);

/* Runs the kernels of a bug's words on its cases, without the bug: nothing is wrong. */
void planted_try_none(const planted_bug *bug);

/* fg_error() matches one of the patterns. */
void planted_said(const planted_bug *bug, const char *where);

#endif
