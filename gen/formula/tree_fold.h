/* tree_fold.h - operators on constants, for the constructors of tree.c. */
#ifndef FG_TREE_FOLD_H
#define FG_TREE_FOLD_H

#include "tree.h"

/* A node of constants alone; 0 when its value is none that a text can give: infinite, a NaN, an int
 * above FG_INT_MOST. */
int fg_tree_fold(fg_tree *tree, fg_node_op op, int a, int b);

#endif
