/* tree_diff.h - derivatives of scores. */
#ifndef FG_TREE_DIFF_H
#define FG_TREE_DIFF_H

#include "formula.h"

/* d root / d x, x being the score's s or a read: a float, 0.0 where x does not occur. What is not
 * smooth has a derivative of one side; tests, indices and floor have none. */
int fg_tree_diff(fg_tree *tree, int root, int x);

/* The score as backward takes it. A key with log(x) in its score, x = 0, has no weight and an
 * infinite slope, of whose product there is a limit: with 2^-100 for that 0, in slopes too, it
 * comes out, and the key's weight still adds nothing elsewhere. */
int fg_formula_backward_score(fg_formula *formula);

#endif
