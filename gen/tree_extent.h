/* tree_extent.h - between what values an int of an expression lies, from what launches may have:
 * positions and lengths below 2^30, numbers of at most that size. */
#ifndef FG_TREE_EXTENT_H
#define FG_TREE_EXTENT_H

#include "tree.h"

typedef struct fg_extent {
  double lo, hi; /* rounded outwards where that is simpler */
  bool known;
} fg_extent;

/* `known`: an extent for each node, zero at first, which the call fills in. */
fg_extent fg_tree_extent(const fg_tree *tree, int node, fg_extent *known);

#endif
