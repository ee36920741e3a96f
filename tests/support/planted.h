/* planted.h - bugs planted in the templates, and what must be said of them. */
#ifndef FG_TESTS_PLANTED_H
#define FG_TESTS_PLANTED_H

#include "kernel_case.h"

/* Where a fault may show: the first line of a spot, or of a file, with the text; NULL: any line. */
typedef struct planted_place {
  const char *where, *text;
} planted_place;

/* One bug: in the lines that a spot marks, `text`, which is there once, becomes `instead`. Bugs of
 * meetings and waits name a file and a call of a primitive, and are planted in each of its calls in
 * turn: the nth (0 = the first). A bug is caught as `fault`, patterns of fnmatch separated by "|",
 * and at one of the places; or, where fault is NULL or has "wrong numbers" among them, as wrong
 * numbers. `words` describe the kernels, NULL = planted_forward; of each point of their grids the
 * first kernel whose text the bug changes must catch it, under each seed. Of several cases, whose
 * seeds are added, each seed needs one. */
typedef struct planted_bug {
  const char *where, *text, *instead, *words, *fault;
  planted_place place[12];   /* none: any line of the bug's file */
  const verify_case *cases; /* up to one without rows; NULL = a small one */
  const char *switches;     /* FLASHGEN_SWITCH; NULL = none */
  fg_status refused;        /* no kernel comes of it: with this status and the `fault` */
  int nth;
  int seeds; /* 0 = PLANTED_SEEDS, or 1 where only the numbers may show it, in any order */
} planted_bug;

/* Orders of threads that a fault must show in: two, so that it is not one order's luck. */
enum { PLANTED_SEEDS = 2 };
extern const char planted_forward[], planted_backward[];

/* Opens what the tests of a run inherit; before the first of them. */
void planted_begin(void);

/* How many calls the bug is planted in; 1 where it names a spot. */
int planted_count(const planted_bug *bug);

/* Puts the one file with the bug into the current directory, for a gen that uses the directory. */
void planted_plant(const planted_bug *bug);

/* Makes "t" the directory with the one file that has this change. */
void planted_in_t(const char *where, const char *text, const char *instead);

/* Plants the bug and runs those kernels: the bug is caught as it should be. */
void planted_try(const planted_bug *bug);

/* Runs the first kernel of each point of a bug's words on its cases, without the bug: nothing is
 * wrong. */
void planted_try_none(const planted_bug *bug);

#endif
