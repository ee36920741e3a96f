/* tree_diff.h - derivatives of scores. */
#ifndef FG_TREE_DIFF_H
#define FG_TREE_DIFF_H

#include "tree.h"

/* d root / d x, x being the score's s or a read: a float, 0.0 where x does not occur. What is not
 * smooth has a derivative of one side; tests, indices and floor have none. */
int fg_tree_diff(fg_tree *tree, int root, int x);

#endif
