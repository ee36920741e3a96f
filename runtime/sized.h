/* sized.h - structs that callers fill: whose header they were built with shows in their size.
 *
 * A smaller one is of an older header, and what it lacks is 0. */
#ifndef FG_SIZED_H
#define FG_SIZED_H

#include "base/error.h"

/* FG_EARGUMENT unless `size` can be that of a struct, of which this library knows `known` bytes:
 * whole words, at most so many. */
fg_status fg_size_check(const char *what, size_t size, size_t known);

/* The same of fg_args, whose tensors are more than a word each: none is cut in two. */
fg_status fg_args_size_check(size_t size);

/* A shape of an older header as one of this. FG_EARGUMENT for its size alone. */
fg_status fg_shape_copy(const fg_shape *given, fg_shape *own);

/* The caller's shape, or its copy in *own where it is of an older header. */
static inline fg_status fg_shape_read(const fg_shape *given, fg_shape *own,
                                      const fg_shape **shape) {
  *shape = given;
  if (given->size == sizeof *given) return FG_OK;
  *shape = own;
  return fg_shape_copy(given, own);
}

#endif
