/* extent.h - the extents of a launch: one row each. Words, files, expressions, axes of tensors, and
 * the members of a kernel's Params derive from it. */
#ifndef FG_EXTENT_H
#define FG_EXTENT_H

#include "flashgen.h"

typedef struct fg_extent_row {
  const char *name;  /* in words, files, kernels, and expressions over a shape: "nq" */
  const char *axis;  /* as an axis of a declared input: "q" */
  char letter;       /* as an axis of an argument: 'q' */
  const char *title; /* for people: "query length" */
  size_t place;      /* in fg_shape, an int64_t */
} fg_extent_row;
enum { FG_EXTENTS = 5 };
extern const fg_extent_row fg_extents[FG_EXTENTS];

/* The row of a name, of a letter; NULL: it is no extent of a launch. */
const fg_extent_row *fg_extent_find(const char *name);
const fg_extent_row *fg_extent_of(char letter);
/* The row of an axis of a declared input, n bytes long; NULL: it is none. */
const fg_extent_row *fg_extent_of_axis(const char *axis, size_t n);

int64_t fg_extent_get(const fg_extent_row *extent, const fg_shape *shape);
void fg_extent_set(const fg_extent_row *extent, fg_shape *shape, int64_t value);

/* "b, h, hk, nq, nk"; returns the length. */
int fg_extent_names(const char *separator, size_t size, char *text);

#endif
