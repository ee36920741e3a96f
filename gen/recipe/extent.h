/* extent.h - the extents of a launch: one row each. Words, files, expressions, axes of tensors, and
 * the members of a kernel's Params derive from it. A kind of kernel has some of them: a form. */
#ifndef FG_EXTENT_H
#define FG_EXTENT_H

#include "flashgen.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fg_extent_row {
  const char *name;  /* in words, files, kernels, and expressions over a shape: "nq" */
  const char *axis;  /* as an axis of a declared input: "q"; NULL: it is none */
  char letter;       /* as an axis of an argument: 'q' */
  const char *title; /* for people: "query length" */
  char fellow;       /* the extent that it equals where a command line gives only that; 0: none */
  size_t place;      /* in fg_shape, an int64_t */
  int64_t least;     /* in a shape that has it */
  int64_t most;      /* the same; 0: FG_LENGTH_MAX - 1 */
} fg_extent_row;
enum { FG_EXTENTS = 13 };
enum { FG_LENGTH_MAX = 1 << 30 }; /* a length is less */
extern const fg_extent_row fg_extents[FG_EXTENTS];

/* Which extents a shape has. Kinds of kernels share forms. */
typedef struct fg_shape_form {
  const char *letters; /* of its extents, in the order of Params */
  const char *layout;  /* of extents that only some layouts of sequences have; others have 0 */
  const char *brief;   /* a shape in a word, with $ before letters: "b$b h$h/$g $qx$k" */
  char length;         /* the extent by which shapes are put in order, on axes of charts */
} fg_shape_form;
/* Sequences, of pairs of which expressions speak; rows; rows of parts; rows for
 * caches. */
enum { FG_FORM_PAIRS, FG_FORM_ROWS, FG_FORM_PARTS, FG_FORM_APPEND, FG_SHAPE_FORMS };
extern const fg_shape_form fg_shape_forms[FG_SHAPE_FORMS];

/* The form that has all extents of the shape that are not 0; the first one where all are. */
const fg_shape_form *fg_shape_form_of(const fg_shape *shape);
/* Has the form the extent of that letter, in some layout? */
bool fg_form_has(const fg_shape_form *form, char letter);

/* A form as hot calls ask about it, without a letter; made once for an op and once for a recipe. */
typedef struct fg_form_rule {
  uint64_t wrong[FG_EXTENTS];   /* by row: the bits that its numbers do not have */
  const fg_extent_row *bounded; /* the extent with bounds of its own; NULL: there is none */
  bool has_hk;
} fg_form_rule;
fg_form_rule fg_form_rule_of(const fg_shape_form *form);

/* Is the shape one that launches of such a form may have? Where this says no, fg_shape_check_of has
 * the reason, or allows the shape after all. */
bool fg_shape_is_good(const fg_form_rule *rule, const fg_shape *shape);

/* Is no extent of the shape's form 0, but for those of layouts? */
bool fg_shape_is_full(const fg_shape *shape);

/* A shape as words, "b=4 h=16 hk=16 nq=1024 nk=1024": the form's extents, those of layouts only
 * where they are not 0. Returns the length. Nine extents at most, each a name of 9 letters, a
 * number of 20 characters, and 2 signs. */
enum { FG_SHAPE_WORDS = 9 * (9 + 20 + 2) + 1 };
int fg_shape_words(const fg_shape_form *form, const fg_shape *shape, size_t size, char *text);

/* A shape for programs, {"b": 4, "h": 16, "hk": 16, "nq": 1024, "nk": 1024, "align": 16}: the
 * form's extents, those of layouts and align only where they are not 0. Returns the length. */
enum { FG_SHAPE_JSON = 10 * (9 + 20 + 6) + 2 };
int fg_shape_json(const fg_shape_form *form, const fg_shape *shape, size_t size, char *text);

/* A shape for people, "b4 h16/16 1024x1024"; returns the length. */
enum { FG_BRIEF_MAX = FG_SHAPE_WORDS };
int fg_shape_brief(const fg_shape *shape, size_t size, char *text);

/* The row of a name, of a letter; NULL: it is no extent of a launch. */
const fg_extent_row *fg_extent_find(const char *name);
const fg_extent_row *fg_extent_of(char letter);
/* The row of an axis of a declared input, n bytes long; NULL: it is none. */
const fg_extent_row *fg_extent_of_axis(const char *axis, size_t n);

static inline int64_t fg_extent_get(const fg_extent_row *extent, const fg_shape *shape) {
  return *(const int64_t *)(const void *)((const char *)shape + extent->place);
}
void fg_extent_set(const fg_extent_row *extent, fg_shape *shape, int64_t value);

/* "b, h, hk, nq, nk" for the letters "bhgqk", NULL: all; returns the length. */
int fg_extent_names(const char *letters, const char *separator, size_t size, char *text);

#endif
