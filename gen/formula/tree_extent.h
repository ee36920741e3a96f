/* tree_extent.h - between what values a node of an expression lies, from what launches may have:
 * positions and lengths below 2^30, ints of at most that size, i32 tensors of any, floats of any.
 *
 * Ints are exact, of up to 64 bits: what fits in 32 is made in 32. */
#ifndef FG_TREE_EXTENT_H
#define FG_TREE_EXTENT_H

#include "tree.h"

typedef struct fg_extent {
  double lo, hi;   /* rounded outwards where that is simpler; of a test 0 */
  bool known, big; /* big: an int that 32 bits may not hold */
  bool wide;       /* its C text is one of 64 bits: it is big, or made of what is */
  bool fits;       /* no int of it, nor it, can exceed 64 bits */
} fg_extent;

/* `known`: an extent for each node, zero at first, which the call fills in. */
fg_extent fg_tree_extent(const fg_tree *tree, int node, fg_extent *known);

/* Has it an int that may exceed 64 bits? Without memory it has, and the tree is marked. */
bool fg_tree_fits(fg_tree *tree, int node);
/* That int, none of whose operands is one; 0 = there is none. `extent` (may be NULL) gets its own.
 */
int fg_tree_misfit(fg_tree *tree, int node, fg_extent *extent);
/* Is the node's C text one of 64 bits? */
bool fg_tree_wide(fg_tree *tree, int node);

#endif
