/* tree_linear.h - linear forms: sums of multiples, from trees and back. Bounds, ranges, texts by
 * increments and the elements that pairs read are all found by them. */
#ifndef FG_TREE_LINEAR_H
#define FG_TREE_LINEAR_H

#include "tree.h"

enum { FG_LINEAR_TERMS = 24 };
/* The sum of factor[i] * atom[i] + constant; n < 0: it has too many terms, or a number above
 * FG_INT_MOST. An atom is a node that is no sum and no multiple by a constant. */
typedef struct fg_linear {
  int n, atom[FG_LINEAR_TERMS];
  double factor[FG_LINEAR_TERMS], constant;
} fg_linear;

/* The form of a node as it is written: p is an atom. */
fg_linear fg_linear_of(const fg_tree *tree, int node);

/* form += factor * node; p is taken apart, so that it meets q. */
void fg_linear_add(fg_tree *tree, fg_linear *form, int node, double factor);

/* Nodes: the form as an int, and the test that it is not negative, which has sums alone. */
int fg_linear_sum(fg_tree *tree, const fg_linear *form);
int fg_linear_not_negative(fg_tree *tree, const fg_linear *form);

/* What the comparison x <= y, or x < y, is about: it holds where the form is not negative. The node
 * is a copy, as the tree may grow. */
fg_linear fg_linear_difference(fg_tree *tree, const fg_node *x, bool strict);

/* The factors of q and k in a node that is linear in them, p taken as q; false: it is not, and
 * they are not set. */
bool fg_linear_in_q_and_k(const fg_tree *tree, int node, double *q, double *k);

/* The factor of k, below 2^20, in a node that is linear in it; false: it is not. */
bool fg_linear_in_k(const fg_tree *tree, int node, double *factor);

/* Does the node depend on q and k by k - q alone, and not on s? */
bool fg_tree_by_distance(const fg_tree *tree, int node);

#endif
