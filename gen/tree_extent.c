/* tree_extent.c - between what values an int of an expression lies. */
#include "tree_extent.h"

#include <math.h>

static fg_extent symmetric(double most) { return (fg_extent){-most, most, true}; }

/* Positions and lengths are below 2^30, numbers of a launch at most that. */
static fg_extent leaf_extent(const fg_node *x) {
  switch (x->op) {
  case FG_NODE_CONSTANT:
    return (fg_extent){x->number, x->number, true};
  case FG_NODE_NAME:
    return (fg_extent){x->which == FG_NAME_P ? -0x1p30 : 0, 0x1p30 - 1, true};
  case FG_NODE_SCALAR:
    return symmetric(0x1p30);
  default:
    return symmetric(0x1p31 - 1);
  }
}

static fg_extent find_extent(const fg_tree *t, const fg_node *x, fg_extent *known) {
  if (x->op <= FG_NODE_READ || x->op == FG_NODE_FLOOR) return leaf_extent(x);
  fg_extent a = fg_tree_extent(t, x->arg[0], known), b = {0}, c;
  if (x->arg[1]) b = fg_tree_extent(t, x->arg[1], known);
  double size = fmax(fabs(a.lo), fabs(a.hi)), other = fmax(fabs(b.lo), fabs(b.hi));
  switch (x->op) {
  case FG_NODE_NEGATE:
    return (fg_extent){-a.hi, -a.lo, true};
  case FG_NODE_ADD:
    return (fg_extent){a.lo + b.lo, a.hi + b.hi, true};
  case FG_NODE_SUBTRACT:
    return (fg_extent){a.lo - b.hi, a.hi - b.lo, true};
  case FG_NODE_MULTIPLY:
    return symmetric(size * other);
  case FG_NODE_MODULO:
    return symmetric(other);
  case FG_NODE_CHOOSE:
    c = fg_tree_extent(t, x->arg[2], known);
    return (fg_extent){fmin(b.lo, c.lo), fmax(b.hi, c.hi), true};
  case FG_NODE_MIN:
  case FG_NODE_MAX:
    return (fg_extent){fmin(a.lo, b.lo), fmax(a.hi, b.hi), true};
  default:
    return symmetric(size);
  }
}

fg_extent fg_tree_extent(const fg_tree *t, int node, fg_extent *known) {
  if (!known[node].known) known[node] = find_extent(t, &t->node[node], known);
  return known[node];
}
