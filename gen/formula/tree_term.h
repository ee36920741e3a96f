/* tree_term.h - what the terms of a score are: how often they change, and which are multiples of s
 * or of k. Text is made by these (tree_emitter.h), and traits are found by them (tree_traits.h). */
#ifndef FG_TREE_TERM_H
#define FG_TREE_TERM_H

#include "tree.h"

/* How often a value changes: once a head, a row, or a pair. */
typedef enum { HEAD, ROW, PAIR } fg_level;
fg_level fg_tree_level(const fg_tree *tree, int node);

/* Does it read an element that differs from row to row, and not from pair to pair? */
bool fg_tree_reads_of_row(const fg_tree *tree, int node);

/* Is it s, or a product or quotient of s and values of a head? */
bool fg_tree_is_scaled_s(const fg_tree *tree, int node);

/* by * float(number): the number is an int that grows by `step` from key to key; `by` is the same
 * for a row, 0 = it is 1. */
typedef struct fg_multiple_of_k {
  int by, number;
  double step;
} fg_multiple_of_k;
bool fg_tree_multiple_of_k(const fg_tree *tree, int node, fg_multiple_of_k *multiple);

/* Is a slope by k too steep to be taken as a tile's base and increments? Their sum would lose what
 * the two have in common: 129 * slope * 2^-24, which lse may be off by 1e-4 (mathematics.md section
 * 6). */
static inline bool fg_is_steep(double slope) { return slope > 4 || slope < -4; }

/* Is the multiple taken by increments where it stands alone? A number alone is exact so. */
bool fg_goes_by_increments(const fg_tree *tree, const fg_multiple_of_k *multiple);

/* What a rough tanh may be multiplied by. Off by 1e-7 of 1, or where it is that of small numbers by
 * 2.2e-6 of itself, it leaves 9e-5 in the score. Caps of models are 30 and 50. */
enum { FG_ROUGH_TANH_MOST = 70 };

/* Calls take(to, term, its factor) for each term of factor * node, the first one first: sums are
 * taken apart, and constant factors. */
typedef void fg_take_term(void *to, int node, double factor);
void fg_tree_each_term(const fg_tree *tree, int node, double factor, fg_take_term *take, void *to);

/* The node, a float, without those of its terms that are the same for a head. */
int fg_tree_terms_of_pair(fg_tree *tree, int node);

#endif
