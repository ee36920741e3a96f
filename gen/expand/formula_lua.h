/* formula_lua.h - a formula as templates see it: the table `formula`. */
#ifndef FG_FORMULA_LUA_H
#define FG_FORMULA_LUA_H

#include "formula/formula.h"
#include "state.h"

/* Inside fg_lua_run: pushes the table, whose functions use the formula as long as they live. Raises
 * FG_ESPEC where a derivative is too large, FG_EMEMORY.
 *
 * Nodes are integers. Members that are nodes:
 *
 *   mask, score    the score as the pass takes it; slope: of d score / d s; terms_of_pair: without
 *                  those of its terms that are the same for a head
 *   never, always  tests of a tile; always_end: nil, or `always` is that k1 is at most this
 *   keys, queries  { first =, last =, exact =, exact_for_one = }, nodes or nil (fg_visible)
 *   seen_by_all    the same of keys
 *   first_key      keys.first, of a kernel that skips no tile too
 *
 * Others:
 *
 *   traits         what both are: the members of fg_traits; tanh_count and cap are nil for none
 *   inputs         a list of { name =, type =, elem =, tensor =, grad =, extents =, lengths =,
 *                  reads = }: the texts of its extents, the same with nodes for those that are no
 *                  axis's, and where the score reads it
 *
 * A read is { node =, slope =, index = nodes, axis =, is_by_distance =, linear =, affine =,
 * affine_axis = }:
 *
 *   axis           for each index "b", "h", "q" or "k" for that very one, "1" for a broadcast one,
 *                  else "other"
 *   is_by_distance indices depend on q and k by their distance alone
 *   linear         nil, or each index is linear in q and k, and these are their factors { q =, k =
 * } affine         1 or -1 where the index at affine_axis is that times k - q and something without
 *                  q and k, and the others are those of b and h, each once, or broadcast
 *
 * Functions that ask:
 *
 *   uses(node, name)    does the name occur?
 *   takes(node, i)      does input i occur?
 *   reads(node)         does a test or value read memory?
 *   reads_or_calls(node)  does a pair read memory for it, or call a function of floats?
 *   known(node)         true or false for a test that is known, else nil
 *   wide(node)          is its text one of 64 bits?
 *   far(node)           that, or may a bound lie further from a position than 32 bits hold?
 *   tanhs(node)         the nodes that tanh is taken of in it
 *
 * and functions that write:
 *
 *   emit(nodes, names)  { head =, row =, row_reads =, values = {...}, reads = {...} }: fg_emitted
 *
 * (names: of the language to C text, and the members of fg_emit_names)
 *
 *   unit(node, names)   the factor of s_raw in a multiple of s: fg_formula_emit_unit
 *   address(i, gradient, texts)  of an element of input i by the texts of its indices
 *   text(node)          the canonical text
 *   recipe(node, names)  an expression of a recipe, nil where the node is none: fg_formula_recipe
 *
 * (names: of bounds of a tile to texts in nq and nk)
 *
 *   entries(text)       of an expression of a recipe: how long its code is, nil: too long */
void fg_formula_push(lua_State *L, fg_formula *formula, bool backward);

#endif
