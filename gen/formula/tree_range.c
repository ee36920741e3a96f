/* tree_range.c - ranges of keys and rows from comparisons that are linear in them. */
#include "tree_bounder.h"
#include "tree_extent.h"

#include <math.h>

static fg_visible no_range(bool exact) { return (fg_visible){0, 0, exact, exact}; }

/* Is the interval of a node over one row and one key its value? */
static bool is_point(const fg_bounder *b, int node) {
  const fg_node *x = &b->t->node[node];
  if (!fg_varies(b, node)) return true;
  switch (x->op) {
  case FG_NODE_NAME:
    return true;
  case FG_NODE_ADD:
  case FG_NODE_SUBTRACT:
  case FG_NODE_NEGATE:
  case FG_NODE_MULTIPLY:
  case FG_NODE_DIVIDE:
  case FG_NODE_MIN:
  case FG_NODE_MAX:
  case FG_NODE_ABS:
  case FG_NODE_READ:
    for (int i = 0; i < FG_NODE_ARGS; i++)
      if (x->arg[i] && !is_point(b, x->arg[i])) return false;
    return true;
  default:
    return false;
  }
}

static bool are_points(const fg_bounder *b, const fg_linear *l) {
  for (int i = 0; i < l->n; i++)
    if ((l->factor[i] < 0 || l->factor[i] > 0) && !is_point(b, l->atom[i])) return false;
  return true;
}

/* The one term of l that has the variable, -1 if there is not exactly one. */
static int only_term(const fg_bounder *b, const fg_linear *l, fg_name v) {
  int found = -1;
  for (int i = 0; i < l->n; i++) {
    bool has = fg_tree_uses(b->t, l->atom[i], v) ||
               (v == FG_NAME_Q && fg_tree_uses(b->t, l->atom[i], FG_NAME_P));
    if (!has || !(l->factor[i] < 0 || l->factor[i] > 0)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* Where l >= 0 can hold somewhere in the tile: bounds of the variable v, over all of the other; or
 * with b->for_all where it holds for all of that. A quotient by m is at least x where its dividend
 * is at least x * m, for m > 0. */
static fg_visible solve(fg_bounder *b, fg_linear l, fg_name v) {
  int i = l.n < 0 ? -1 : only_term(b, &l, v);
  fg_linear rest = l, most;
  if (i < 0) return no_range(false);
  double factor = l.factor[i];
  const fg_node atom = b->t->node[l.atom[i]];
  rest.factor[i] = 0;
  if (!fg_linear_extreme(b, &rest, b->for_all, &most)) return no_range(false);
  const bool exact_for_one = are_points(b, &rest);
  if (atom.op == FG_NODE_NAME && atom.which == (int)v && fabs(factor) <= 1) {
    fg_linear least = most, behind = most;
    for (int j = 0; j < least.n; j++) least.factor[j] = -least.factor[j];
    least.constant = -least.constant;
    behind.constant += 1;
    return factor > 0 ? (fg_visible){fg_linear_sum(b->t, &least), 0, true, exact_for_one}
                      : (fg_visible){0, fg_linear_sum(b->t, &behind), true, exact_for_one};
  }
  int limit = fg_linear_sum(b->t, &most), size = integer(b, fabs(factor));
  int end = make(b, FG_NODE_DIVIDE, limit, size); /* the atom is at most this, or at least - this */
  if (factor > 0) end = fg_tree_unary(b->t, FG_NODE_NEGATE, end);
  if (!end) return no_range(false);
  if (atom.op == FG_NODE_NAME && atom.which == (int)v) {
    if (factor > 0) return (fg_visible){end, 0, true, exact_for_one};
    return (fg_visible){0, make(b, FG_NODE_ADD, end, integer(b, 1)), true, exact_for_one};
  }
  if (atom.op != FG_NODE_DIVIDE || b->t->node[atom.arg[1]].op != FG_NODE_CONSTANT ||
      !(b->t->node[atom.arg[1]].number > 0))
    return no_range(false);
  int m = atom.arg[1], scaled_end = make(b, FG_NODE_MULTIPLY, end, m);
  fg_linear inner = {.constant = factor > 0 ? 0 : b->t->node[m].number - 1};
  fg_linear_add(b->t, &inner, atom.arg[0], factor > 0 ? 1 : -1);
  fg_linear_add(b->t, &inner, scaled_end, factor > 0 ? -1 : 1);
  fg_visible r = solve(b, inner, v);
  r.exact_for_one = r.exact_for_one && exact_for_one;
  return r;
}

static int tighter(fg_bounder *b, fg_node_op op, int x, int y) {
  return !x ? y : !y ? x : make(b, op, x, y);
}
static int looser(fg_bounder *b, fg_node_op op, int x, int y) {
  return x && y ? make(b, op, x, y) : 0;
}

static fg_visible meet(fg_bounder *b, fg_visible x, fg_visible y) {
  return (fg_visible){tighter(b, FG_NODE_MAX, x.first, y.first),
                      tighter(b, FG_NODE_MIN, x.end, y.end), x.exact && y.exact,
                      x.exact_for_one && y.exact_for_one};
}

/* The range of name v outside of which the test of a node fails, whatever the other names are. 0
 * stands for no bound. */
static fg_visible range(fg_bounder *b, int node, fg_name v) {
  const fg_node x = b->t->node[node];
  fg_node turned = x;
  fg_visible y, z;
  bool integers = x.arg[0] && b->t->node[x.arg[0]].type == FG_TYPE_INT;
  switch (x.op) {
  case FG_NODE_CONSTANT:
    return no_range(x.number > 0);
  case FG_NODE_LESS:
  case FG_NODE_AT_MOST:
    return integers ? solve(b, fg_linear_difference(b->t, &x, x.op == FG_NODE_LESS), v)
                    : no_range(false);
  case FG_NODE_EQUAL:
    if (!integers) return no_range(false);
    turned.arg[0] = x.arg[1], turned.arg[1] = x.arg[0];
    y = meet(b, solve(b, fg_linear_difference(b->t, &x, false), v),
             solve(b, fg_linear_difference(b->t, &turned, false), v));
    y.exact = y.exact_for_one = false;
    return y;
  case FG_NODE_GIVEN:
    if (b->for_all) return range(b, x.arg[1], v);
    return meet(b, range(b, x.arg[0], v), range(b, x.arg[1], v));
  case FG_NODE_AND:
    return meet(b, range(b, x.arg[0], v), range(b, x.arg[1], v));
  case FG_NODE_OR:
    y = range(b, x.arg[0], v), z = range(b, x.arg[1], v);
    return (fg_visible){looser(b, FG_NODE_MIN, y.first, z.first),
                        looser(b, FG_NODE_MAX, y.end, z.end), false, false};
  case FG_NODE_CHOOSE:
    y = range(b, x.arg[1], v), z = range(b, x.arg[2], v);
    return (fg_visible){looser(b, FG_NODE_MIN, y.first, z.first),
                        looser(b, FG_NODE_MAX, y.end, z.end), false, false};
  default:
    return no_range(false);
  }
}

/* The range, less an end that 64 bits may not hold. */
static fg_visible fitting(fg_formula *f, fg_visible r) {
  bool first = !r.first || fg_tree_fits(&f->tree, r.first);
  bool end = !r.end || fg_tree_fits(&f->tree, r.end);
  if (!first || !end) r.exact = r.exact_for_one = false;
  if (!first) r.first = 0;
  if (!end) r.end = 0;
  return fg_bound_whole(f) ? r : no_range(false);
}

fg_visible fg_formula_seen_by_all(fg_formula *f) {
  fg_bounder b = {f, &f->tree, .for_all = true};
  fg_visible r = range(&b, f->mask, FG_NAME_K);
  if (fg_bound_whole(f)) r = fitting(f, r);
  return r.exact && fg_bound_whole(f) ? r : no_range(false);
}

fg_visible fg_formula_visible(fg_formula *f, bool of_queries) {
  fg_bounder b = {f, &f->tree, .for_all = false};
  fg_visible r = range(&b, f->mask, of_queries ? FG_NAME_Q : FG_NAME_K);
  return fg_bound_whole(f) ? fitting(f, r) : no_range(false);
}
