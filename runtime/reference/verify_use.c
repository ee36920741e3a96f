/* verify_use.c - finds what integer inputs are used for, by evaluating parts of the trees. */
#include "verify_use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  SAMPLES = 48,
  SIZE = 4096, /* nodes of an expression that is evaluated so often */
  STEP = 64    /* over which an expression's slope is taken, so that division shows one */
};

/* One position, and the value that the input has at it; elements of others are 0. */
typedef struct view {
  const fg_tree *tree;
  const double *number;
  int input;
  double x, name[FG_NAMES];
} view;

typedef struct search {
  const fg_formula *f;
  int input;
  const fg_recipe *recipe;
  const fg_shape *shape;
  const double *number;
  verify_use use;
} search;

/* ---- values ---- */

static double of_pair(fg_node_op op, double a, double b) {
  switch (op) {
  case FG_NODE_ADD:
    return a + b;
  case FG_NODE_SUBTRACT:
    return a - b;
  case FG_NODE_MULTIPLY:
    return a * b;
  case FG_NODE_DIVIDE:
    return b < 0 || b > 0 ? floor(a / b) : 0;
  case FG_NODE_MODULO:
    return b < 0 || b > 0 ? a - b * floor(a / b) : 0;
  case FG_NODE_MIN:
    return fmin(a, b);
  case FG_NODE_MAX:
    return fmax(a, b);
  default:
    return 0;
  }
}

/* Integer expressions; of tests and floats within them nothing is known, and 0 does. */
static double value(const view *v, int node) {
  const fg_node *x = &v->tree->node[node];
  switch ((fg_node_op)x->op) {
  case FG_NODE_CONSTANT:
    return x->number;
  case FG_NODE_NAME:
    return v->name[x->which];
  case FG_NODE_SCALAR:
  case FG_NODE_READ:
    return x->which == v->input ? v->x : x->op == FG_NODE_SCALAR ? v->number[x->which] : 0;
  case FG_NODE_NEGATE:
    return -value(v, x->arg[0]);
  case FG_NODE_ABS:
    return fabs(value(v, x->arg[0]));
  case FG_NODE_CHOOSE:
    return value(v, x->arg[1]);
  case FG_NODE_ADD:
  case FG_NODE_SUBTRACT:
  case FG_NODE_MULTIPLY:
  case FG_NODE_DIVIDE:
  case FG_NODE_MODULO:
  case FG_NODE_MIN:
  case FG_NODE_MAX:
    return of_pair((fg_node_op)x->op, value(v, x->arg[0]), value(v, x->arg[1]));
  default:
    return 0;
  }
}

/* What stands in an expression's value, not in indices: elements of this input and of others, and
 * positions. */
typedef struct parts {
  int own, others, positions;
} parts;

static void count_parts(const fg_tree *t, int node, int input, parts *n) {
  const fg_node *x = &t->node[node];
  if (x->op == FG_NODE_READ || (x->op == FG_NODE_SCALAR && x->which == input))
    ++*(x->which == input ? &n->own : &n->others);
  n->positions += x->op == FG_NODE_NAME && x->which >= FG_NAME_Q && x->which <= FG_NAME_P;
  if (x->op == FG_NODE_READ) return;
  for (int a = 0; a < FG_NODE_ARGS && x->arg[a]; a++) count_parts(t, x->arg[a], input, n);
}

/* The corners of all positions first, then some between them. */
static void go_to(const search *s, int sample, view *v) {
  const fg_shape *n = s->shape;
  const int64_t extent[4] = {n->nq, n->nk, n->b, n->h};
  double at[4];
  uint64_t random = (uint64_t)sample * 0x9e3779b97f4a7c15u;
  for (int a = 0; a < 4; a++) {
    const int64_t last = extent[a] > 0 ? extent[a] - 1 : 0;
    random = (random ^ random >> 29) * 0xbf58476d1ce4e5b9u;
    at[a] = (double)(sample < 16 ? (sample >> a & 1) * last
                                 : (int64_t)((random >> 33) % (uint64_t)(last + 1)));
  }
  const double group = n->hk > 0 ? (double)(n->h / n->hk) : 1;
  const double names[FG_NAMES] = {[FG_NAME_Q] = at[0],
                                  [FG_NAME_K] = at[1],
                                  [FG_NAME_P] = at[0] + (double)(n->nk - n->nq),
                                  [FG_NAME_B] = at[2],
                                  [FG_NAME_H] = at[3],
                                  [FG_NAME_HK] = floor(at[3] / group),
                                  [FG_NAME_NQ] = (double)n->nq,
                                  [FG_NAME_NK] = (double)n->nk,
                                  [FG_NAME_NH] = (double)n->h};
  memcpy(v->name, names, sizeof names);
}

/* An expression as a line: where the input is 0, and its slope; a slope of 0 counts as 1. */
static void line_of(view *v, int left, int right, double *at_zero, double *slope) {
  v->x = 0;
  *at_zero = value(v, left) - (right ? value(v, right) : 0);
  v->x = STEP;
  *slope = (value(v, left) - (right ? value(v, right) : 0) - *at_zero) / STEP;
  if (!(fabs(*slope) > 0)) *slope = 1;
}

/* ---- uses ---- */

static void compared(search *s, const fg_node *x) {
  view v = {.tree = &s->f->tree, .number = s->number, .input = s->input};
  parts n = {0};
  if (s->f->tree.node[x->arg[0]].type != FG_TYPE_INT || x->size > SIZE) return;
  count_parts(v.tree, x->arg[0], s->input, &n);
  count_parts(v.tree, x->arg[1], s->input, &n);
  if (!n.own) return;
  if (!n.positions && (n.own > 1 || n.others)) {
    s->use.is_id = true;
    return;
  }
  for (int i = 0; i < SAMPLES; i++) {
    double at_zero, slope;
    go_to(s, i, &v);
    line_of(&v, x->arg[0], x->arg[1], &at_zero, &slope);
    const double crossing = round(-at_zero / slope);
    s->use.low = s->use.is_compared ? fmin(s->use.low, crossing) : crossing;
    s->use.high = s->use.is_compared ? fmax(s->use.high, crossing) : crossing;
    s->use.is_compared = true;
  }
}

static int64_t extent_of(const search *s, int input, int axis) {
  const fg_recipe *r = s->recipe;
  const int i = fg_recipe_input(r, input, false);
  return i < 0 ? INT64_MAX /* of a tensor that this pass does not take */
               : fg_recipe_extent(r, r->tensor[i].axes[axis], s->shape);
}

/* Two elements in one index share its room. */
static void indexed(search *s, const fg_node *read) {
  for (int a = 0; a < FG_NODE_ARGS && read->arg[a]; a++) {
    view v = {.tree = &s->f->tree, .number = s->number, .input = s->input};
    parts n = {0};
    if (v.tree->node[read->arg[a]].size > SIZE) continue;
    count_parts(v.tree, read->arg[a], s->input, &n);
    if (!n.own) continue;
    const double last = (double)extent_of(s, read->which, a) - 1;
    for (int i = 0; i < SAMPLES; i++) {
      double at_zero, slope;
      go_to(s, i, &v);
      line_of(&v, read->arg[a], 0, &at_zero, &slope);
      const double one = -at_zero / slope, other = (last - at_zero) / slope;
      s->use.least = fmax(s->use.least, ceil(fmin(one, other) / (n.own + n.others)));
      s->use.most = fmin(s->use.most, floor(fmax(one, other) / (n.own + n.others)));
    }
  }
}

static void visit(search *s, int node, bool *seen) {
  const fg_node *x = &s->f->tree.node[node];
  if (seen[node]) return;
  seen[node] = true;
  if (x->op >= FG_NODE_LESS && x->op <= FG_NODE_DIFFERENT) compared(s, x);
  if (x->op == FG_NODE_READ) indexed(s, x);
  for (int a = 0; a < FG_NODE_ARGS && x->arg[a]; a++) visit(s, x->arg[a], seen);
}

verify_use verify_use_of(const fg_formula *formula, int input, const fg_recipe *recipe,
                         const fg_shape *shape, const double *number) {
  search s = {formula, input, recipe, shape, number, {.least = -INFINITY, .most = INFINITY}};
  bool *seen = calloc((size_t)formula->tree.n + 1, sizeof *seen);
  if (seen) {
    visit(&s, formula->mask, seen);
    visit(&s, formula->score, seen);
  }
  free(seen);
  return s.use;
}
