/* tree_bound.h - what a mask is over a tile: tests and ranges derived from its tree.
 *
 * A tile is rows q0 to q1 and keys k0 to k1, the ends not included, none of them empty. What might
 * exceed 64 bits is not claimed. */
#ifndef FG_TREE_BOUND_H
#define FG_TREE_BOUND_H

#include "formula.h"

/* Nodes of tests of the tile: `never` holds only where no pair is visible, `always` only where all
 * are. */
typedef struct fg_tile_test {
  int never, always;
} fg_tile_test;
fg_tile_test fg_formula_tile(fg_formula *formula);
/* Where `always` is that the tile's keys end before a sum of its other bounds and constants: that
 * sum; else 0. */
int fg_formula_always_end(fg_formula *formula);

/* Keys that the rows q0 to q1 may see, or (of_queries) rows that may see the keys k0 to k1: first
 * and end, nodes of ints that may lie outside the tensor; 0 = there is no bound. `exact`: the range
 * is all that there is to know of which tiles are empty. `exact_for_one`: of one row (key) it is
 * what that one sees and nothing else; not where an end is a remainder or a choice, of which only
 * an interval is known. */
typedef struct fg_visible {
  int first, end;
  bool exact, exact_for_one;
} fg_visible;
fg_visible fg_formula_visible(fg_formula *formula, bool of_queries);

/* Keys that all of the rows q0 to q1 see; the same, but `exact`: the range is known, else nothing
 * is. */
fg_visible fg_formula_seen_by_all(fg_formula *formula);

/* The first key of these, whether or not bounds are claimed of the formula: where tiles may begin.
 */
int fg_formula_first_key(fg_formula *formula);

/* tree_whole.c. An expression of nq and nk that is not negative where the mask hides nothing of all
 * rows and keys; returns its length, 0: there is none, or the mask uses an input. It is the least
 * of sums of lengths, so that over ranges of both it is nowhere less than at their ends. */
int fg_formula_whole(fg_formula *formula, size_t size, char *text);

/* Is anything known of the tiles of a mask that is not the same for all pairs? */
bool fg_formula_bounds(fg_formula *formula);

#endif
