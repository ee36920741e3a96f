/* tree_bound.c - interval arithmetic over a tile, and ranges from fg_linear comparisons. */
#include "tree_bounder.h"
#include "tree_extent.h"

#include <math.h>
#include <string.h>

typedef struct {
  int lo, hi; /* 0 = not known */
} interval;

bool fg_varies(const fg_bounder *b, int node) {
  return fg_tree_uses(b->t, node, FG_NAME_Q) || fg_tree_uses(b->t, node, FG_NAME_K) ||
         fg_tree_uses(b->t, node, FG_NAME_P) || fg_tree_uses(b->t, node, FG_NAME_S);
}

/* ---- intervals ---- */

static interval bound(fg_bounder *b, int node);

static interval unknown(void) { return (interval){0, 0}; }

static interval scaled(fg_bounder *b, interval x, double factor) {
  int f = integer(b, factor);
  if (!x.lo) return x;
  int lo = make(b, FG_NODE_MULTIPLY, x.lo, f), hi = make(b, FG_NODE_MULTIPLY, x.hi, f);
  return factor < 0 ? (interval){hi, lo} : (interval){lo, hi};
}

bool fg_linear_extreme(fg_bounder *b, const fg_linear *l, bool least, fg_linear *out) {
  *out = (fg_linear){.constant = l->constant};
  if (l->n < 0) return false;
  for (int i = 0; i < l->n; i++) {
    if (!(l->factor[i] < 0) && !(l->factor[i] > 0)) continue;
    interval x = bound(b, l->atom[i]);
    if (!x.lo) return false;
    fg_linear_add(b->t, out, (l->factor[i] > 0) == least ? x.lo : x.hi, l->factor[i]);
  }
  return out->n >= 0;
}

static interval bound_linear(fg_bounder *b, int node) {
  fg_linear l = {0}, lo, hi;
  fg_linear_add(b->t, &l, node, 1);
  if (!fg_linear_extreme(b, &l, true, &lo) || !fg_linear_extreme(b, &l, false, &hi))
    return unknown();
  return (interval){fg_linear_sum(b->t, &lo), fg_linear_sum(b->t, &hi)};
}

static interval bound_product(fg_bounder *b, interval x, interval y) {
  int z[4] = {make(b, FG_NODE_MULTIPLY, x.lo, y.lo), make(b, FG_NODE_MULTIPLY, x.lo, y.hi),
              make(b, FG_NODE_MULTIPLY, x.hi, y.lo), make(b, FG_NODE_MULTIPLY, x.hi, y.hi)};
  interval r = {z[0], z[0]};
  for (int i = 1; i < 4; i++)
    r = (interval){make(b, FG_NODE_MIN, r.lo, z[i]), make(b, FG_NODE_MAX, r.hi, z[i])};
  return r;
}

/* x / m or x % m for a divisor that is the same all over the tile. */
static interval bound_quotient(fg_bounder *b, fg_node_op op, interval x, int m) {
  int zero = integer(b, 0), positive = make(b, FG_NODE_LESS, zero, m);
  if (op == FG_NODE_MODULO)
    return (interval){make(b, FG_NODE_MIN, make(b, FG_NODE_ADD, m, integer(b, 1)), zero),
                      make(b, FG_NODE_MAX, make(b, FG_NODE_SUBTRACT, m, integer(b, 1)), zero)};
  int lo = make(b, FG_NODE_DIVIDE, x.lo, m), hi = make(b, FG_NODE_DIVIDE, x.hi, m);
  return (interval){fg_tree_make(b->t, FG_NODE_CHOOSE, positive, lo, hi),
                    fg_tree_make(b->t, FG_NODE_CHOOSE, positive, hi, lo)};
}

/* The last axis's length as a node; 0 where it is none of a sequence. */
static int length_of(fg_bounder *b, const fg_input *x) {
  const char *extent = x->extent[x->rank - 1];
  return !strcmp(extent, "q")   ? name(b, FG_NAME_NQ)
         : !strcmp(extent, "k") ? name(b, FG_NAME_NK)
                                : 0;
}

/* An element at one end of the range of its last index, which is moved into the tensor. */
static int element_at(fg_bounder *b, const fg_node *read, int last, int length) {
  int index[FG_NODE_ARGS], n = b->f->input[read->which].rank, zero = integer(b, 0);
  memcpy(index, read->arg, sizeof index);
  int most = make(b, FG_NODE_SUBTRACT, length, integer(b, 1));
  index[n - 1] = make(b, FG_NODE_MAX, make(b, FG_NODE_MIN, last, most), zero);
  int element = fg_tree_read(b->t, read->which, FG_TYPE_INT, n, index);
  return fg_tree_make(b->t, FG_NODE_CHOOSE, make(b, FG_NODE_LESS, zero, length), element, zero);
}

/* The bounds of a tensor that grows along its last axis. */
static interval bound_monotone(fg_bounder *b, const fg_node *read) {
  const fg_input *x = &b->f->input[read->which];
  int length = x->monotone ? length_of(b, x) : 0;
  for (int i = 0; i < x->rank - 1; i++)
    if (fg_varies(b, read->arg[i])) return unknown();
  if (!length) return unknown();
  interval last = bound(b, read->arg[x->rank - 1]);
  if (!last.lo) return last;
  return (interval){element_at(b, read, last.lo, length), element_at(b, read, last.hi, length)};
}

static interval bound_name(fg_bounder *b, fg_name which) {
  int one = integer(b, 1);
  if (which == FG_NAME_Q)
    return (interval){name(b, FG_NAME_Q0), make(b, FG_NODE_SUBTRACT, name(b, FG_NAME_Q1), one)};
  return (interval){name(b, FG_NAME_K0), make(b, FG_NODE_SUBTRACT, name(b, FG_NAME_K1), one)};
}

static interval bound_pair(fg_bounder *b, const fg_node *x) {
  if (x->op == FG_NODE_MULTIPLY && fg_varies(b, x->arg[0]) && fg_varies(b, x->arg[1]))
    return unknown();
  interval y = bound(b, x->arg[0]), z = bound(b, x->arg[1]);
  if (!y.lo || !z.lo) return unknown();
  if (x->op == FG_NODE_MULTIPLY) return bound_product(b, y, z);
  if (x->op == FG_NODE_MIN || x->op == FG_NODE_MAX)
    return (interval){make(b, (fg_node_op)x->op, y.lo, z.lo),
                      make(b, (fg_node_op)x->op, y.hi, z.hi)};
  return fg_varies(b, x->arg[1]) ? unknown() : bound_quotient(b, (fg_node_op)x->op, y, x->arg[1]);
}

/* The least and the greatest value of an int over the tile. */
static interval bound(fg_bounder *b, int node) {
  const fg_node x = b->t->node[node];
  if (!fg_varies(b, node)) return (interval){node, node};
  if (x.type != FG_TYPE_INT) return unknown();
  interval y, z;
  switch (x.op) {
  case FG_NODE_NAME:
    return x.which == FG_NAME_P ? bound_linear(b, node) : bound_name(b, (fg_name)x.which);
  case FG_NODE_ADD:
  case FG_NODE_SUBTRACT:
  case FG_NODE_NEGATE:
    return bound_linear(b, node);
  case FG_NODE_MULTIPLY:
    if (b->t->node[x.arg[1]].op != FG_NODE_CONSTANT) return bound_pair(b, &x);
    return scaled(b, bound(b, x.arg[0]), b->t->node[x.arg[1]].number);
  case FG_NODE_DIVIDE:
  case FG_NODE_MODULO:
  case FG_NODE_MIN:
  case FG_NODE_MAX:
    return bound_pair(b, &x);
  case FG_NODE_ABS:
    y = bound(b, x.arg[0]);
    if (!y.lo) return y;
    z = scaled(b, y, -1);
    return (interval){make(b, FG_NODE_MAX, make(b, FG_NODE_MAX, y.lo, z.lo), integer(b, 0)),
                      make(b, FG_NODE_MAX, y.hi, z.hi)};
  case FG_NODE_CHOOSE:
    y = bound(b, x.arg[1]), z = bound(b, x.arg[2]);
    if (!y.lo || !z.lo) return unknown();
    return (interval){make(b, FG_NODE_MIN, y.lo, z.lo), make(b, FG_NODE_MAX, y.hi, z.hi)};
  case FG_NODE_READ:
    return bound_monotone(b, &x);
  default:
    return unknown();
  }
}

/* ---- tests of a tile ---- */

typedef struct {
  int can, must;
} truth;

static int invert(fg_bounder *b, int x) { return fg_tree_unary(b->t, FG_NODE_NOT, x); }
static truth opposite(fg_bounder *b, truth x) {
  return (truth){invert(b, x.must), invert(b, x.can)};
}

/* x <= y or x < y of integers. */
static truth ordered(fg_bounder *b, const fg_node *x, bool strict) {
  fg_linear l = fg_linear_difference(b->t, x, strict), end;
  truth r = {boolean(b, true), boolean(b, false)};
  if (fg_linear_extreme(b, &l, false, &end)) r.can = fg_linear_not_negative(b->t, &end);
  if (fg_linear_extreme(b, &l, true, &end)) r.must = fg_linear_not_negative(b->t, &end);
  return r;
}

static truth both(fg_bounder *b, truth x, truth y) {
  return (truth){make(b, FG_NODE_AND, x.can, y.can), make(b, FG_NODE_AND, x.must, y.must)};
}

static truth equal(fg_bounder *b, const fg_node *x) {
  fg_node turned = *x;
  turned.arg[0] = x->arg[1], turned.arg[1] = x->arg[0];
  return both(b, ordered(b, x, false), ordered(b, &turned, false));
}

static truth test(fg_bounder *b, int node);

static truth test_choice(fg_bounder *b, const fg_node *x) {
  truth t = test(b, x->arg[0]), y = test(b, x->arg[1]), z = test(b, x->arg[2]);
  truth first = both(b, t, y), second = both(b, opposite(b, t), z);
  int either = make(b, FG_NODE_AND, y.must, z.must);
  return (truth){make(b, FG_NODE_OR, first.can, second.can),
                 make(b, FG_NODE_OR, either, make(b, FG_NODE_OR, first.must, second.must))};
}

static truth test(fg_bounder *b, int node) {
  const fg_node x = b->t->node[node];
  truth unsure = {boolean(b, true), boolean(b, false)}, y, z;
  if (!fg_varies(b, node)) return (truth){node, node};
  bool integers = x.arg[0] && b->t->node[x.arg[0]].type == FG_TYPE_INT;
  switch (x.op) {
  case FG_NODE_NOT:
    return opposite(b, test(b, x.arg[0]));
  case FG_NODE_LESS:
  case FG_NODE_AT_MOST:
    return integers ? ordered(b, &x, x.op == FG_NODE_LESS) : unsure;
  case FG_NODE_EQUAL:
    return integers ? equal(b, &x) : unsure;
  case FG_NODE_DIFFERENT:
    return integers ? opposite(b, equal(b, &x)) : unsure;
  case FG_NODE_AND:
    return both(b, test(b, x.arg[0]), test(b, x.arg[1]));
  case FG_NODE_OR:
    y = test(b, x.arg[0]), z = test(b, x.arg[1]);
    return (truth){make(b, FG_NODE_OR, y.can, z.can), make(b, FG_NODE_OR, y.must, z.must)};
  case FG_NODE_CHOOSE:
    return test_choice(b, &x);
  case FG_NODE_GIVEN:
    y = test(b, x.arg[0]), z = test(b, x.arg[1]);
    return (truth){make(b, FG_NODE_AND, y.can, z.can), z.must};
  default:
    return unsure;
  }
}

fg_tile_test fg_formula_tile(fg_formula *f) {
  fg_bounder b = {f, &f->tree, .for_all = false};
  truth t = test(&b, f->mask);
  fg_tile_test r = {invert(&b, t.can), t.must}, none = {boolean(&b, false), boolean(&b, false)};
  if (!fg_bound_whole(f)) return none;
  if (!fg_tree_fits(&f->tree, r.never)) r.never = none.never;
  if (!fg_tree_fits(&f->tree, r.always)) r.always = none.always;
  return fg_bound_whole(f) ? r : none;
}

/* Sums of a tile's bounds and of constants that are not negative. */
static bool is_sum_of_bounds(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node];
  if (x->op == FG_NODE_CONSTANT) return x->number >= 0;
  if (x->op == FG_NODE_NAME) return x->which >= FG_NAME_Q0 && x->which <= FG_NAME_K1;
  return x->op == FG_NODE_ADD && is_sum_of_bounds(t, x->arg[0]) && is_sum_of_bounds(t, x->arg[1]);
}

int fg_formula_always_end(fg_formula *f) {
  int end = fg_tree_name(&f->tree, FG_NAME_K1), always = fg_formula_tile(f).always;
  const fg_node *x = &f->tree.node[always];
  bool ends = x->op == FG_NODE_AT_MOST && x->arg[0] == end;
  return ends && is_sum_of_bounds(&f->tree, x->arg[1]) ? x->arg[1] : 0;
}
