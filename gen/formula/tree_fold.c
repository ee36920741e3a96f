/* tree_fold.c - what operators make of constants. */
#include "tree_fold.h"

#include <math.h>

static int64_t floor_divide(int64_t a, int64_t b) {
  return b ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
}

/* For ints of at most FG_INT_MOST: what is larger than that comes out so, and not exact. */
static double fold_integers(fg_node_op op, double x, double y) {
  int64_t a = (int64_t)x, b = (int64_t)y;
  switch (op) {
  case FG_NODE_ADD:
    return x + y;
  case FG_NODE_SUBTRACT:
    return x - y;
  case FG_NODE_MULTIPLY:
    return x * y;
  case FG_NODE_DIVIDE:
    return (double)floor_divide(a, b);
  default:
    return b ? (double)(a - b * floor_divide(a, b)) : 0; /* modulo */
  }
}

static double fold_floats(fg_node_op op, double a, double b) {
  switch (op) {
  case FG_NODE_ADD:
    return a + b;
  case FG_NODE_SUBTRACT:
    return a - b;
  case FG_NODE_MULTIPLY:
    return a * b;
  default:
    return a / b;
  }
}

/* The function of a constant; an operation that is none gives it back. */
static double fold_unary(fg_node_op op, double a) {
  switch (op) {
  case FG_NODE_ABS:
    return fabs(a);
  case FG_NODE_EXP:
    return exp(a);
  case FG_NODE_LOG:
    return log(a);
  case FG_NODE_TANH:
    return tanh(a);
  case FG_NODE_SQRT:
    return sqrt(a);
  case FG_NODE_SIGMOID:
    return 1 / (1 + exp(-a));
  default:
    return a;
  }
}

static double saturate(double x) {
  return isnan(x) ? 0 : x >= 0x1p31 ? 0x1p31 - 1 : x < -0x1p31 ? -0x1p31 : x;
}

/* As IEEE compares: a NaN is different from all, and nothing else. */
static bool compare(fg_node_op op, double a, double b) {
  switch (op) {
  case FG_NODE_LESS:
    return a < b;
  case FG_NODE_AT_MOST:
    return a <= b;
  case FG_NODE_EQUAL:
    return a >= b && a <= b;
  default:
    return a < b || a > b;
  }
}

int fg_tree_fold(fg_tree *t, fg_node_op op, int a, int b) {
  fg_type type = (fg_type)t->node[a].type;
  double x = t->node[a].number, y = b ? t->node[b].number : 0, z;
  if (op >= FG_NODE_LESS && op <= FG_NODE_DIFFERENT)
    return fg_tree_constant(t, FG_TYPE_BOOL, compare(op, x, y));
  if (op == FG_NODE_FLOOR) return fg_tree_constant(t, FG_TYPE_INT, saturate(floor(x)));
  if (op == FG_NODE_FLOAT) return fg_tree_constant(t, FG_TYPE_FLOAT, x);
  if (op == FG_NODE_MIN || op == FG_NODE_MAX)
    z = op == FG_NODE_MIN ? fmin(x, y) : fmax(x, y);
  else if (op >= FG_NODE_ADD && op <= FG_NODE_MODULO)
    z = type == FG_TYPE_INT ? fold_integers(op, x, y) : fold_floats(op, x, y);
  else
    z = fold_unary(op, x);
  if (type == FG_TYPE_INT && fabs(z) > FG_INT_MOST) return 0;
  return isfinite(z) && fabs(z) < 1e38 ? fg_tree_constant(t, type, z) : 0;
}
