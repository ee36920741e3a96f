/* tree_extent.c - between what values the nodes of an expression lie. */
#include "tree_extent.h"

#include <math.h>
#include <stdlib.h>

/* What 64 bits hold, less what sums of doubles may have lost. */
static const double MOST_64 = 0x1p63 - 0x1p34;

static fg_extent between(double lo, double hi) { return (fg_extent){.lo = lo, .hi = hi}; }
static fg_extent symmetric(double most) { return between(-most, most); }
static fg_extent any(void) { return symmetric(INFINITY); }

/* Positions and integers of the launch are below 2^30 in size, elements of tensors fit 32 bits;
 * floats have no bound. */
static fg_extent leaf_extent(const fg_node *x) {
  if (x->op == FG_NODE_CONSTANT) return between(x->number, x->number);
  if (x->type != FG_TYPE_INT) return any();
  if (x->op == FG_NODE_NAME) return between(x->which == FG_NAME_P ? -0x1p30 : 0, 0x1p30 - 1);
  return x->op == FG_NODE_SCALAR ? symmetric(0x1p30) : between(-0x1p31, 0x1p31 - 1);
}

static double size_of(fg_extent a) { return fmax(fabs(a.lo), fabs(a.hi)); }

/* 0 times what has no bound is 0. */
static double times(double a, double b) { return a < 0 || a > 0 ? b < 0 || b > 0 ? a * b : 0 : 0; }

/* The least and most of the four products of ends. */
static fg_extent product(fg_extent a, fg_extent b) {
  double z[4] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
  return between(fmin(fmin(z[0], z[1]), fmin(z[2], z[3])),
                 fmax(fmax(z[0], z[1]), fmax(z[2], z[3])));
}

static fg_extent absolute(fg_extent a) {
  return between(a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0, size_of(a));
}

/* The range of floats, but for what they round to; NaN has no part in it. */
static fg_extent float_extent(const fg_node *x, fg_extent a, fg_extent b) {
  switch (x->op) {
  case FG_NODE_MULTIPLY:
    return product(a, b);
  case FG_NODE_DIVIDE:
    return b.lo > 0 || b.hi < 0 ? product(a, between(1 / b.hi, 1 / b.lo)) : any();
  case FG_NODE_EXP:
    return between(exp(a.lo), exp(a.hi));
  case FG_NODE_LOG:
    return between(a.lo > 0 ? log(a.lo) : -INFINITY, a.hi > 0 ? log(a.hi) : INFINITY);
  case FG_NODE_TANH:
    return symmetric(1);
  case FG_NODE_SIGMOID:
    return between(0, 1);
  case FG_NODE_SQRT:
    return between(0, a.hi > 0 ? sqrt(a.hi) : INFINITY);
  case FG_NODE_FLOAT:
    return a;
  default:
    return any();
  }
}

/* The range of the integer of a float, 0 for a NaN: kept within 32 bits. Functions of floats are
 * off by less than this. */
static fg_extent floor_extent(fg_extent a) {
  double lo = floor(a.lo - 1 - 1e-4 * fabs(a.lo)), hi = floor(a.hi + 1 + 1e-4 * fabs(a.hi));
  return between(fmin(0, fmax(lo, -0x1p31)), fmax(0, fmin(hi, 0x1p31 - 1)));
}

/* The interval of a node by those of its arguments. */
static fg_extent value_extent(const fg_node *x, fg_extent a, fg_extent b, fg_extent c) {
  switch (x->op) {
  case FG_NODE_NEGATE:
    return between(-a.hi, -a.lo);
  case FG_NODE_ADD:
    return between(a.lo + b.lo, a.hi + b.hi);
  case FG_NODE_SUBTRACT:
    return between(a.lo - b.hi, a.hi - b.lo);
  case FG_NODE_CHOOSE:
    return between(fmin(b.lo, c.lo), fmax(b.hi, c.hi));
  case FG_NODE_MIN: /* a NaN may lose in it */
    return x->type == FG_TYPE_INT ? between(fmin(a.lo, b.lo), fmin(a.hi, b.hi))
                                  : between(fmin(a.lo, b.lo), fmax(a.hi, b.hi));
  case FG_NODE_MAX:
    return x->type == FG_TYPE_INT ? between(fmax(a.lo, b.lo), fmax(a.hi, b.hi))
                                  : between(fmin(a.lo, b.lo), fmax(a.hi, b.hi));
  case FG_NODE_ABS:
    return absolute(a);
  case FG_NODE_FLOOR:
    return floor_extent(a);
  default:
    break;
  }
  if (x->type == FG_TYPE_FLOAT) return float_extent(x, a, b);
  if (x->op == FG_NODE_MULTIPLY) return symmetric(size_of(a) * size_of(b));
  return symmetric(size_of(x->op == FG_NODE_MODULO ? b : a));
}

/* The first value of a choice: in x < y ? x : z it is below y. */
static fg_extent chosen(const fg_tree *t, const fg_node *x, fg_extent first, fg_extent *known) {
  const fg_node *test = &t->node[x->arg[0]];
  if (test->op != FG_NODE_LESS || test->arg[0] != x->arg[1]) return first;
  return between(first.lo, fmin(first.hi, fg_tree_extent(t, test->arg[1], known).hi));
}

/* Besides the interval: does an int fit 32 bits, need 64 in some part, fit 64? */
static fg_extent find_extent(const fg_tree *t, const fg_node *x, fg_extent *known) {
  fg_extent part[FG_NODE_ARGS] = {{.lo = 0}}, r = {.lo = 0};
  bool fits = true, wide = false, integer = x->type == FG_TYPE_INT;
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++) {
    part[i] = fg_tree_extent(t, x->arg[i], known);
    fits = fits && part[i].fits, wide = wide || part[i].wide;
  }
  fg_extent first = x->op == FG_NODE_CHOOSE ? chosen(t, x, part[1], known) : part[1];
  if (x->op <= FG_NODE_READ)
    r = leaf_extent(x);
  else if (x->type != FG_TYPE_BOOL)
    r = value_extent(x, part[0], first, part[2]);
  if (isnan(r.lo) || isnan(r.hi)) r = any(); /* of what has no bound */
  r.known = true;
  r.big = integer && (r.hi > 0x1p31 - 1 || r.lo < -0x1p31);
  if (x->op == FG_NODE_READ) wide = false;
  if (x->op == FG_NODE_CHOOSE) wide = part[1].wide || part[2].wide;
  r.wide = integer && x->op != FG_NODE_FLOOR && (r.big || wide);
  r.fits = fits && !(integer && size_of(r) > MOST_64);
  return r;
}

fg_extent fg_tree_extent(const fg_tree *t, int node, fg_extent *known) {
  if (!known[node].known) known[node] = find_extent(t, &t->node[node], known);
  return known[node];
}

int fg_tree_misfit(fg_tree *t, int node, fg_extent *extent) {
  fg_extent *known = calloc((size_t)t->n + 1, sizeof *known);
  if (!known) t->no_memory = true;
  if (!known || fg_tree_extent(t, node, known).fits) {
    free(known);
    return known ? 0 : node;
  }
  for (int i = 0; i < FG_NODE_ARGS && t->node[node].arg[i]; i++)
    if (!fg_tree_extent(t, t->node[node].arg[i], known).fits) node = t->node[node].arg[i], i = -1;
  if (extent) *extent = known[node];
  free(known);
  return node;
}

bool fg_tree_fits(fg_tree *t, int node) { return !fg_tree_misfit(t, node, NULL); }

bool fg_tree_wide(fg_tree *t, int node) {
  fg_extent *known = calloc((size_t)t->n + 1, sizeof *known);
  if (!known) t->no_memory = true;
  bool wide = known && fg_tree_extent(t, node, known).wide;
  free(known);
  return wide;
}
