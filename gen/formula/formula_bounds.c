/* formula_bounds.c - what tests of a tile and ranges of keys and queries say together. */
#include "tree_bound.h"

int fg_formula_first_key(fg_formula *f) {
  bool unskipped = f->unskipped;
  f->unskipped = false;
  int first = fg_formula_visible(f, false).first;
  f->unskipped = unskipped;
  return first;
}

bool fg_formula_bounds(fg_formula *f) {
  int no = fg_tree_constant(&f->tree, FG_TYPE_BOOL, false);
  if (f->tree.node[f->mask].op == FG_NODE_CONSTANT) return false;
  fg_tile_test t = fg_formula_tile(f);
  fg_visible k = fg_formula_visible(f, false), q = fg_formula_visible(f, true);
  return t.never != no || t.always != no || k.first || k.end || q.first || q.end;
}
