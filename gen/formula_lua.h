/* formula_lua.h - a formula as templates see it: the table `formula`. */
#ifndef FG_FORMULA_LUA_H
#define FG_FORMULA_LUA_H

#include "formula.h"
#include "state.h"

/* Inside fg_lua_run: pushes the table, whose functions use the formula as long as they live.
 *
 *   mask, score         nodes, the score as the pass takes it; slope: of d score / d s; linear: the
 *                       score is s
 *   never, always       tests of a tile; keys, queries: { first =, last =, exact =, by_one = },
 *                       nodes or nil; seen_by_all: the same of keys
 *   first_key           keys.first, of a kernel that skips no tile too
 *   inputs              in order: { name =, type =, elem =, tensor =, grad =, extents = {...}, wide =
 *                       {may each exceed 32 bits?}, reads = {...} }: where the score reads it, each { node =, slope =,
 *                       index = {nodes}, axis = {...}, diagonal = }: an axis is "b", "h", "q" or
 *                       "k" for that very index, "1" for a broadcast one, else "other"; diagonal:
 *                       indices depend on q and k by their distance alone; linear, where each
 *                       index is so in them, = their factors { q =, k = }; affine = 1 or -1 and
 *                       affine_axis where one index is that times k - q and something without q
 *                       and k, and the others are those of b and h, each once, or broadcast
 *   uses(node, name)    does the name occur?
 *   emit(nodes, names)  { head =, row =, values = {...} }; names: of the language to C text, and
 *                       k_base, k_offset, s_unit, s_raw, staged = { name = text }, hoist, log2,
 *                       origin, reach, join (tree_emit.h)
 *   wide(node)          is its text one of 64 bits?
 *   far(node)           that, or may a bound lie further from a position than 32 bits hold?
 *   address(i, gradient, texts)  of an element of input i by the texts of its indices
 *   text(node)          the canonical text
 *   tanhs(node)         what tanh is taken of in it: nodes */
void fg_formula_push(lua_State *L, fg_formula *formula, bool backward);

#endif
