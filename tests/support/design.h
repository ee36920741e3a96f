/* design.h - the covering design of the numeric suites: its axes, its rows and their text.
 *
 * A design belongs to one family and pass. An axis has levels, each of which is words of a spec, of
 * a plan or of a launch ("q_layout=packed kv_layout=packed"). A row takes one level of each axis,
 * and its text is the words of all of them: one line of tests/design/NAME.txt. A level without
 * words is the default. */
#ifndef FG_TESTS_DESIGN_H
#define FG_TESTS_DESIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DESIGN_AXES = 40, DESIGN_LEVELS = 48, DESIGN_TEXT = 1024, DESIGN_PLAN = 128 };

/* Which part of a row an axis gives. Axes of the kind of lengths have no words: they follow from
 * the lengths. */
typedef enum design_part {
  DESIGN_SPEC,
  DESIGN_PLANS,
  DESIGN_SHAPE,
  DESIGN_KIND,
  DESIGN_SEED
} design_part;

typedef struct design_axis {
  const char *name;
  design_part part;
  int n;
  const char *level[DESIGN_LEVELS];
  const char *needs; /* a part of the spec's words without which the axis has no meaning, or NULL */
} design_axis;

typedef struct design_row {
  signed char level[DESIGN_AXES]; /* -1: the axis has no meaning here */
  int seed;                       /* its parity is a level */
} design_row;

typedef struct design {
  const char *name, *words; /* of the file; of the family and pass */
  int n;
  design_axis axis[DESIGN_AXES];
  int plan, heads, nq, nk, q_kind, k_kind, seed;        /* numbers of these axes; -1: none */
  int q_length[DESIGN_LEVELS], k_length[DESIGN_LEVELS]; /* of each level */
  int q_kinds[DESIGN_LEVELS], k_kinds[DESIGN_LEVELS];   /* the kind of each length */
  int some, several;                      /* lengths from which a row shows a mistake */
  int64_t most;                           /* of the cost of a row */
  char plans[DESIGN_LEVELS][DESIGN_PLAN]; /* the words of levels of plans, in order of discovery */
} design;

extern const char *const design_names[]; /* "mma_forward", ...; the last is NULL */

/* The design of that name; NULL if there is none. It has no plans yet. The caller frees it. */
design *design_new(const char *name);

/* The level of the plan with these words, which is added if it is new. */
int design_plan_level(design *d, const char *words);

/* The words of the row's axes of these parts in the order of axes, a space before each. */
void design_spec_words(const design *d, const design_row *row, size_t size, char *text);
void design_line(const design *d, const design_row *row, size_t size, char *text);

/* Reads a line. False where it has words that no level has. */
bool design_read_line(design *d, const char *line, design_row *row);

/* Do the rows share a kernel? */
bool design_same_kernel(const design *d, const design_row *a, const design_row *b);

/* Sets the levels that follow from others: kinds of lengths, -1 where an axis has no meaning. */
void design_settle(const design *d, design_row *row);

/* Is a pair of levels of the axes wanted? Each length meets each plan and mask; the other axes meet
 * the kinds of lengths. */
bool design_wanted(const design *d, int a, int b);

/* Are the row's lengths such that a mistake in the pair of axes shows? Few rows or keys hide most
 * mistakes. */
bool design_shows(const design *d, const design_row *row, int a, int b);

/* Work of the row: elements of Q K^T, each by what it takes. */
int64_t design_cost(const design *d, const design_row *row);

/* The number after "name=" in the words; the fallback where there is none. */
int design_number(const char *words, const char *name, int fallback);

/* Has `text` all the words of `words`, each as a whole word? */
bool design_has_words(const char *text, const char *words);

#endif
