/* tree_diff.c - the rules of differentiation. */
#include "tree_diff.h"

static int number(fg_tree *t, double x) { return fg_tree_constant(t, FG_TYPE_FLOAT, x); }
static bool is_zero(const fg_tree *t, int i) {
  return t->node[i].op == FG_NODE_CONSTANT && !(t->node[i].number > 0) && !(t->node[i].number < 0);
}

static int add(fg_tree *t, int a, int b) {
  if (is_zero(t, a)) return b;
  return fg_tree_binary(t, FG_NODE_ADD, a, b);
}
static int subtract(fg_tree *t, int a, int b) {
  return is_zero(t, b) ? a : fg_tree_binary(t, FG_NODE_SUBTRACT, a, b);
}
static bool is_number(const fg_tree *t, int i) { return t->node[i].op == FG_NODE_CONSTANT; }

/* Numbers of a product of products become one: in what a cap makes of s / cap they cancel. */
static int times(fg_tree *t, int a, int b) {
  if (!a || !b) return 0;
  if (is_zero(t, a)) return a;
  if (is_zero(t, b)) return b;
  if (is_number(t, a)) {
    int number = a;
    a = b, b = number;
  }
  const fg_node x = t->node[a];
  if (is_number(t, b) && x.op == FG_NODE_MULTIPLY)
    for (int i = 0; i < 2; i++)
      if (is_number(t, x.arg[i])) return times(t, x.arg[!i], times(t, x.arg[i], b));
  return fg_tree_binary(t, FG_NODE_MULTIPLY, a, b);
}
static int over(fg_tree *t, int a, int b) {
  return !a || is_zero(t, a) ? a : fg_tree_binary(t, FG_NODE_DIVIDE, a, b);
}
static int choose(fg_tree *t, fg_node_op op, int x, int y, int a, int b) {
  return a == b ? a : fg_tree_make(t, FG_NODE_CHOOSE, fg_tree_binary(t, op, x, y), a, b);
}

/* Is it a number for every value of what it names? */
static bool is_never_nan(const fg_tree *t, int i) {
  return is_number(t, i) || t->node[i].op == FG_NODE_FLOAT;
}

/* The slope of min(a, b) or max(a, b), which of the two it takes. A NaN loses, so that the other
 * has the slope; of two that are equal, b has. */
static int pick(fg_tree *t, fg_node_op op, int a, int b, int da, int db) {
  int first = op == FG_NODE_MIN ? a : b, second = op == FG_NODE_MIN ? b : a;
  if (da == db) return da;
  if (is_never_nan(t, a) && !is_never_nan(t, b))
    return fg_tree_make(t, FG_NODE_CHOOSE, fg_tree_binary(t, FG_NODE_AT_MOST, second, first), db,
                        da);
  int takes_a = fg_tree_binary(t, FG_NODE_LESS, first, second);
  if (!is_never_nan(t, b))
    takes_a = fg_tree_binary(t, FG_NODE_OR, takes_a, fg_tree_binary(t, FG_NODE_DIFFERENT, b, b));
  return fg_tree_make(t, FG_NODE_CHOOSE, takes_a, da, db);
}

/* x, or 2^-100 where it is 0. */
static int beside_zero(fg_tree *t, int x) {
  return is_number(t, x)
             ? x
             : fg_tree_make(t, FG_NODE_CHOOSE, fg_tree_binary(t, FG_NODE_EQUAL, x, number(t, 0)),
                            number(t, 0x1p-100), x);
}

/* f'(a) of a function of one float, whose value is `value`. */
static int slope(fg_tree *t, fg_node_op op, int a, int value) {
  int zero = number(t, 0), one = number(t, 1);
  switch (op) {
  case FG_NODE_EXP:
    return value;
  case FG_NODE_LOG:
    return over(t, one, beside_zero(t, a));
  case FG_NODE_TANH:
    return fg_tree_binary(t, FG_NODE_SUBTRACT, one, times(t, value, value));
  case FG_NODE_SQRT:
    return over(t, number(t, 0.5), value);
  case FG_NODE_SIGMOID:
    return times(t, value, fg_tree_binary(t, FG_NODE_SUBTRACT, one, value));
  case FG_NODE_ABS:
    return choose(t, FG_NODE_LESS, zero, a, one,
                  choose(t, FG_NODE_LESS, a, zero, number(t, -1), zero));
  default:
    return zero;
  }
}

int fg_tree_diff(fg_tree *t, int root, int x) {
  if (!root) return 0;
  if (root == x) return number(t, 1);
  const fg_node n = t->node[root];
  if (n.type != FG_TYPE_FLOAT || n.op <= FG_NODE_READ || n.op == FG_NODE_FLOAT) return number(t, 0);
  bool test = n.op == FG_NODE_CHOOSE;
  int a = test ? n.arg[1] : n.arg[0], b = test ? n.arg[2] : n.arg[1];
  int da = fg_tree_diff(t, a, x), db = b ? fg_tree_diff(t, b, x) : 0;
  if (!da || (b && !db)) return 0;
  switch (n.op) {
  case FG_NODE_NEGATE:
    return is_zero(t, da) ? da : fg_tree_unary(t, FG_NODE_NEGATE, da);
  case FG_NODE_ADD:
    return add(t, da, db);
  case FG_NODE_SUBTRACT:
    return subtract(t, da, db);
  case FG_NODE_MULTIPLY:
    return add(t, times(t, da, b), times(t, a, db));
  case FG_NODE_DIVIDE:
    return subtract(t, over(t, da, b), over(t, times(t, root, db), b));
  case FG_NODE_CHOOSE:
    return da == db ? da : fg_tree_make(t, FG_NODE_CHOOSE, n.arg[0], da, db);
  case FG_NODE_MIN:
  case FG_NODE_MAX:
    return pick(t, (fg_node_op)n.op, a, b, da, db);
  default:
    return is_zero(t, da) ? da : times(t, slope(t, (fg_node_op)n.op, a, root), da);
  }
}

/* Is there a derivative by something in it? */
static bool has_slope(const fg_formula *f, int node) {
  if (fg_tree_uses(&f->tree, node, FG_NAME_S)) return true;
  for (int i = 0; i < f->n_inputs; i++)
    if (f->input[i].grad && fg_tree_takes(&f->tree, node, i)) return true;
  return false;
}

/* The node with its logs taken beside 0. */
static int beside_zeros(fg_formula *f, int node) {
  fg_node x = f->tree.node[node];
  if (x.op <= FG_NODE_READ || !has_slope(f, node)) return node;
  for (int i = 0; i < FG_NODE_ARGS && x.arg[i]; i++)
    if (!(x.arg[i] = beside_zeros(f, x.arg[i]))) return 0;
  if (x.op == FG_NODE_LOG) x.arg[0] = beside_zero(&f->tree, x.arg[0]);
  return fg_tree_make(&f->tree, (fg_node_op)x.op, x.arg[0], x.arg[1], x.arg[2]);
}

int fg_formula_backward_score(fg_formula *f) {
  for (int i = 1; i < f->tree.n; i++)
    if (f->tree.node[i].op == FG_NODE_LOG) return beside_zeros(f, f->score);
  return f->score;
}
