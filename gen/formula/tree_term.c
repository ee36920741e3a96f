/* tree_term.c - levels of nodes, multiples of s and of k, and the terms of sums. */
#include "tree_term.h"

#include "tree_linear.h"

#include <math.h>

fg_level fg_tree_level(const fg_tree *t, int node) {
  unsigned uses = t->node[node].uses;
  if ((uses >> FG_NAME_S | uses >> FG_NAME_K) & 1) return PAIR;
  return (uses >> FG_NAME_Q | uses >> FG_NAME_P) & 1 ? ROW : HEAD;
}

bool fg_tree_reads_of_row(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node];
  if (x->op == FG_NODE_READ && fg_tree_level(t, node) == ROW) return true;
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++)
    if (fg_tree_reads_of_row(t, x->arg[i])) return true;
  return false;
}

bool fg_tree_is_scaled_s(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node];
  if (x->op == FG_NODE_NAME) return x->which == FG_NAME_S;
  if (x->op != FG_NODE_MULTIPLY && x->op != FG_NODE_DIVIDE) return false;
  bool first = fg_tree_is_scaled_s(t, x->arg[0]) && fg_tree_level(t, x->arg[1]) == HEAD;
  bool second = fg_tree_is_scaled_s(t, x->arg[1]) && fg_tree_level(t, x->arg[0]) == HEAD;
  return first || (second && x->op == FG_NODE_MULTIPLY);
}

bool fg_tree_multiple_of_k(const fg_tree *t, int node, fg_multiple_of_k *multiple) {
  const fg_node *x = &t->node[node];
  fg_multiple_of_k m = {.number = node};
  if (x->op == FG_NODE_MULTIPLY) {
    int first = t->node[x->arg[0]].op == FG_NODE_FLOAT;
    m.by = x->arg[first], m.number = x->arg[!first];
    if (fg_tree_level(t, m.by) == PAIR) return false;
  }
  if (t->node[m.number].op != FG_NODE_FLOAT ||
      !fg_linear_in_k(t, t->node[m.number].arg[0], &m.step) || !(fabs(m.step) > 0))
    return false;
  *multiple = m;
  return true;
}

bool fg_goes_by_increments(const fg_tree *t, const fg_multiple_of_k *m) {
  const fg_node *by = &t->node[m->by];
  return by->op != FG_NODE_CONSTANT || !fg_is_steep(m->step * by->number);
}

void fg_tree_each_term(const fg_tree *t, int node, double factor, fg_take_term *take, void *to) {
  const fg_node *x = &t->node[node], *y = &t->node[x->arg[1]];
  if (x->op == FG_NODE_ADD || x->op == FG_NODE_SUBTRACT) {
    fg_tree_each_term(t, x->arg[0], factor, take, to);
    fg_tree_each_term(t, x->arg[1], x->op == FG_NODE_ADD ? factor : -factor, take, to);
  } else if (x->op == FG_NODE_NEGATE) {
    fg_tree_each_term(t, x->arg[0], -factor, take, to);
  } else if (x->op == FG_NODE_MULTIPLY && y->op == FG_NODE_CONSTANT) {
    fg_tree_each_term(t, x->arg[0], factor * y->number, take, to);
  } else if (x->op == FG_NODE_DIVIDE && y->op == FG_NODE_CONSTANT) {
    fg_tree_each_term(t, x->arg[0], factor / y->number, take, to);
  } else {
    take(to, node, factor);
  }
}

int fg_tree_terms_of_pair(fg_tree *t, int node) {
  if (fg_tree_level(t, node) == HEAD) return fg_tree_constant(t, FG_TYPE_FLOAT, 0);
  const fg_node x = t->node[node]; /* the tree may move */
  const bool is_sum = x.op == FG_NODE_ADD || x.op == FG_NODE_SUBTRACT;
  const bool is_scaled = (x.op == FG_NODE_MULTIPLY || x.op == FG_NODE_DIVIDE) &&
                         t->node[x.arg[1]].op == FG_NODE_CONSTANT;
  if (!is_sum && !is_scaled && x.op != FG_NODE_NEGATE) return node;
  const int first = fg_tree_terms_of_pair(t, x.arg[0]);
  if (x.op == FG_NODE_NEGATE) return fg_tree_unary(t, FG_NODE_NEGATE, first);
  const int second = is_scaled ? x.arg[1] : fg_tree_terms_of_pair(t, x.arg[1]);
  return fg_tree_binary(t, (fg_node_op)x.op, first, second);
}
