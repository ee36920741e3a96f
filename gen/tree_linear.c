/* tree_linear.c - linear forms: from trees, and back. */
#include "tree_linear.h"

#include <math.h>

static void add_term(fg_linear *l, int atom, double factor) {
  for (int i = 0; i < l->n; i++) {
    if (l->atom[i] != atom) continue;
    l->factor[i] += factor;
    if (fabs(l->factor[i]) > FG_INT_MOST) l->n = -1;
    return;
  }
  if (l->n < 0 || l->n == FG_LINEAR_TERMS || fabs(factor) > FG_INT_MOST) {
    l->n = -1;
    return;
  }
  l->atom[l->n] = atom;
  l->factor[l->n++] = factor;
}

/* l += factor * node; p is taken apart, so that it meets q. */
void fg_linear_add(fg_bounder *b, fg_linear *l, int node, double factor) {
  if (!node) l->n = -1;
  if (l->n < 0) return;
  const fg_node x = b->t->node[node];
  const fg_node y = b->t->node[x.arg[1]];
  switch (x.op) {
  case FG_NODE_CONSTANT:
    l->constant += factor * x.number;
    if (fabs(factor * x.number) > FG_INT_MOST || fabs(l->constant) > FG_INT_MOST) l->n = -1;
    return;
  case FG_NODE_ADD:
  case FG_NODE_SUBTRACT:
    fg_linear_add(b, l, x.arg[0], factor);
    fg_linear_add(b, l, x.arg[1], x.op == FG_NODE_ADD ? factor : -factor);
    return;
  case FG_NODE_NEGATE:
    fg_linear_add(b, l, x.arg[0], -factor);
    return;
  case FG_NODE_MULTIPLY:
    if (y.op != FG_NODE_CONSTANT || fabs(factor * y.number) > FG_INT_MOST) break;
    fg_linear_add(b, l, x.arg[0], factor * y.number);
    return;
  case FG_NODE_NAME:
    if (x.which != FG_NAME_P) break;
    add_term(l, name(b, FG_NAME_Q), factor);
    add_term(l, name(b, FG_NAME_NK), factor);
    add_term(l, name(b, FG_NAME_NQ), -factor);
    return;
  default:
    break;
  }
  add_term(l, node, factor);
}

/* The terms of one sign as a sum of positive factors, NULL constant included. */
static int side(fg_bounder *b, const fg_linear *l, double sign) {
  int sum = 0;
  for (int i = 0; i < l->n; i++) {
    double factor = sign * l->factor[i];
    if (!(factor > 0)) continue;
    int term = make(b, FG_NODE_MULTIPLY, l->atom[i], integer(b, factor));
    sum = sum ? make(b, FG_NODE_ADD, sum, term) : term;
  }
  if (sign * l->constant > 0) {
    int constant = integer(b, sign * l->constant);
    sum = sum ? make(b, FG_NODE_ADD, sum, constant) : constant;
  }
  return sum ? sum : integer(b, 0);
}

/* l >= 0, its negative terms on the other side. */
int fg_linear_not_negative(fg_bounder *b, const fg_linear *l) {
  return make(b, FG_NODE_AT_MOST, side(b, l, -1), side(b, l, 1));
}

int fg_linear_sum(fg_bounder *b, const fg_linear *l) {
  int positive = side(b, l, 1), negative = side(b, l, -1);
  return make(b, FG_NODE_SUBTRACT, positive, negative);
}

/* The difference that a comparison is about: >= 0 where it holds. */
fg_linear fg_linear_difference(fg_bounder *b, const fg_node *x, bool strict) {
  fg_linear l = {.constant = strict ? -1 : 0};
  fg_linear_add(b, &l, x->arg[1], 1);
  fg_linear_add(b, &l, x->arg[0], -1);
  return l;
}
