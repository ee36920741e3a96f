/* tree_bounder.h - what tree_bound.c and tree_range.c share. */
#ifndef FG_TREE_BOUNDER_H
#define FG_TREE_BOUNDER_H

#include "tree_bound.h"
#include "tree_linear.h"

typedef struct fg_bounder {
  fg_formula *f;
  fg_tree *t;
  bool for_all; /* ranges: what holds with all of the other side, not with some of it */
} fg_bounder;

static inline int integer(fg_bounder *b, double x) {
  return fg_tree_constant(b->t, FG_TYPE_INT, x);
}
static inline int boolean(fg_bounder *b, bool x) { return fg_tree_constant(b->t, FG_TYPE_BOOL, x); }
static inline int name(fg_bounder *b, fg_name n) { return fg_tree_name(b->t, n); }
static inline int make(fg_bounder *b, fg_node_op op, int x, int y) {
  return fg_tree_binary(b->t, op, x, y);
}

/* Does it differ from pair to pair of a tile? */
bool fg_varies(const fg_bounder *b, int node);

/* May bounds be claimed? One of which a part could not be made is none. */
static inline bool fg_bound_whole(const fg_formula *f) {
  return !f->unskipped && !f->tree.no_memory && !f->tree.too_large;
}

/* The least (or greatest) value of a form over the tile, as a form; false: not known. */
bool fg_linear_extreme(fg_bounder *b, const fg_linear *form, bool least, fg_linear *out);

#endif
