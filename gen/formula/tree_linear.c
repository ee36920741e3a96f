/* tree_linear.c - linear forms: from trees, and back. */
#include "tree_linear.h"

#include <math.h>

/* Adds factor * atom; a form that grows too large has n < 0 from then on. */
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

/* The nodes whose sum p is, the last one subtracted: q, nk, nq. */
enum { PLACE = 3 };

/* l += factor * node; p is the sum of `place`, or an atom where that is NULL. */
static void gather(const fg_tree *t, const int *place, fg_linear *l, int node, double factor) {
  if (!node) l->n = -1;
  if (l->n < 0) return;
  const fg_node *x = &t->node[node], *y = &t->node[x->arg[1]];
  switch (x->op) {
  case FG_NODE_CONSTANT:
    l->constant += factor * x->number;
    if (fabs(factor * x->number) > FG_INT_MOST || fabs(l->constant) > FG_INT_MOST) l->n = -1;
    return;
  case FG_NODE_ADD:
  case FG_NODE_SUBTRACT:
    gather(t, place, l, x->arg[0], factor);
    gather(t, place, l, x->arg[1], x->op == FG_NODE_ADD ? factor : -factor);
    return;
  case FG_NODE_NEGATE:
    gather(t, place, l, x->arg[0], -factor);
    return;
  case FG_NODE_MULTIPLY:
    if (y->op != FG_NODE_CONSTANT || fabs(factor * y->number) > FG_INT_MOST) break;
    gather(t, place, l, x->arg[0], factor * y->number);
    return;
  case FG_NODE_NAME:
    if (!place || x->which != FG_NAME_P) break;
    for (int i = 0; i < PLACE; i++) add_term(l, place[i], i < PLACE - 1 ? factor : -factor);
    return;
  default:
    break;
  }
  add_term(l, node, factor);
}

fg_linear fg_linear_of(const fg_tree *t, int node) {
  fg_linear l = {0};
  gather(t, NULL, &l, node, 1);
  return l;
}

void fg_linear_add(fg_tree *t, fg_linear *l, int node, double factor) {
  const int place[PLACE] = {fg_tree_name(t, FG_NAME_Q), fg_tree_name(t, FG_NAME_NK),
                            fg_tree_name(t, FG_NAME_NQ)};
  gather(t, place, l, node, factor);
}

/* The terms of one sign as a sum of positive factors, the constant included. */
static int side(fg_tree *t, const fg_linear *l, double sign) {
  int sum = 0;
  for (int i = 0; i < l->n; i++) {
    double factor = sign * l->factor[i];
    if (!(factor > 0)) continue;
    int term =
        fg_tree_binary(t, FG_NODE_MULTIPLY, l->atom[i], fg_tree_constant(t, FG_TYPE_INT, factor));
    sum = sum ? fg_tree_binary(t, FG_NODE_ADD, sum, term) : term;
  }
  if (sign * l->constant > 0) {
    int constant = fg_tree_constant(t, FG_TYPE_INT, sign * l->constant);
    sum = sum ? fg_tree_binary(t, FG_NODE_ADD, sum, constant) : constant;
  }
  return sum ? sum : fg_tree_constant(t, FG_TYPE_INT, 0);
}

/* l >= 0, its negative terms on the other side. */
int fg_linear_not_negative(fg_tree *t, const fg_linear *l) {
  return fg_tree_binary(t, FG_NODE_AT_MOST, side(t, l, -1), side(t, l, 1));
}

int fg_linear_sum(fg_tree *t, const fg_linear *l) {
  int positive = side(t, l, 1), negative = side(t, l, -1);
  return fg_tree_binary(t, FG_NODE_SUBTRACT, positive, negative);
}

/* The difference that a comparison is about: >= 0 where it holds. */
fg_linear fg_linear_difference(fg_tree *t, const fg_node *x, bool strict) {
  fg_linear l = {.constant = strict ? -1 : 0};
  fg_linear_add(t, &l, x->arg[1], 1);
  fg_linear_add(t, &l, x->arg[0], -1);
  return l;
}

/* ---- questions ---- */

/* Sums the factors of k and, where q is asked for, of q and p; false where another atom depends on
 * one of these. */
static bool find_factors(const fg_tree *t, int node, double *q, double *k) {
  const unsigned rows = q ? 1u << FG_NAME_Q | 1u << FG_NAME_P : 0;
  const unsigned asked = rows | 1u << FG_NAME_K;
  if (!(t->node[node].uses & asked)) return true;
  fg_linear l = fg_linear_of(t, node);
  for (int i = 0; i < l.n; i++) {
    const fg_node *x = &t->node[l.atom[i]];
    if (!(x->uses & asked)) continue;
    if (x->op != FG_NODE_NAME) return false;
    *(x->which == FG_NAME_K ? k : q) += l.factor[i];
  }
  return l.n >= 0;
}

bool fg_linear_in_q_and_k(const fg_tree *t, int node, double *q, double *k) {
  double own_q = 0, own_k = 0;
  if (!find_factors(t, node, &own_q, &own_k) || fabs(own_q) > FG_INT_MOST) return false;
  *q = own_q, *k = own_k;
  return true;
}

bool fg_linear_in_k(const fg_tree *t, int node, double *factor) {
  double k = 0;
  if (!find_factors(t, node, NULL, &k) || !(fabs(k) < 0x1p20)) return false;
  *factor = k;
  return true;
}

/* The sum of the factors of q and k: 0 where only their distance counts. False: it is not linear.
 */
static bool find_drift(const fg_tree *t, int node, double *drift) {
  double q, k;
  if (!fg_linear_in_q_and_k(t, node, &q, &k)) return false;
  *drift = q + k;
  return true;
}

bool fg_tree_by_distance(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node];
  double left, right;
  if (fg_tree_uses(t, node, FG_NAME_S)) return false;
  if (find_drift(t, node, &left)) return fabs(left) <= 0;
  if (x->op >= FG_NODE_LESS && x->op <= FG_NODE_DIFFERENT) /* the sides' difference counts */
    if (find_drift(t, x->arg[0], &left) && find_drift(t, x->arg[1], &right))
      return fabs(left - right) <= 0;
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++)
    if (!fg_tree_by_distance(t, x->arg[i])) return false;
  return true;
}
