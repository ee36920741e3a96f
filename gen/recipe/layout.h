/* layout.h - how the sequences of a launch lie in memory: what it does to the axes of tensors, and
 * which extents it has besides those of dense ones. Axes as in recipe.h. */
#ifndef FG_LAYOUT_H
#define FG_LAYOUT_H

#include "flashgen.h"

#include <stdbool.h>

/* Of queries and their like, and of keys; the values of the spec fields q_layout and kv_layout.
 * Queries are dense or packed. */
enum { FG_DENSE, FG_PACKED, FG_CACHED, FG_PAGED, FG_LAYOUTS };
typedef struct fg_layout {
  int q, kv;
  int slices; /* 1: pairs are those of a list of slices; all tokens are dense, of one batch */
  int shard; /* 1: the launch has parts of sequences, and is told where they are; not with slices */
  int latent; /* 1: v is the first columns of k, and lies there */
} fg_layout;
extern const char *const fg_layout_words[FG_LAYOUTS + 1]; /* "dense"; NULL-terminated */

/* The letters of the extents that only such a launch has. */
enum { FG_LAYOUT_EXTENTS = 4 };
const char *fg_layout_extents(fg_layout layout, char letters[FG_LAYOUT_EXTENTS + 1]);

/* The axes of a tensor whose axes are these where sequences are dense. Packed rows or keys have
 * tokens in place of batch and length: "bqhd" becomes "shd". A tensor that has both keeps its
 * batch, which the spec broadcasts. Keys of pages are pages of keys, "yzgd". */
void fg_layout_axes(fg_layout layout, const char *axes, char *laid_out);

/* Gives a shape the extents of the layout that it lacks: packed sequences are nq and nk long, and
 * there are pages for all keys. False: it has an extent that the layout does not have, or no size
 * of a page. */
bool fg_layout_fill(fg_layout layout, fg_shape *shape);

#endif
