/* tree_print.c - the canonical text of an expression. */
#include "tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const fg_tree *tree;
  const char *const *inputs;
  char *text;
  size_t size;
  int n;
} printer;

/* How tight an operator binds; operands that bind less are put in parentheses. */
enum { LOOSE, CHOOSE, OR, AND, EQUAL, ORDER, SUM, PRODUCT, UNARY, PRIMARY };
static const struct {
  const char *text;
  int rank;
} ops[FG_NODE_OPS] = {
    [FG_NODE_NEGATE] = {"-", UNARY},       [FG_NODE_NOT] = {"!", UNARY},
    [FG_NODE_ADD] = {" + ", SUM},          [FG_NODE_SUBTRACT] = {" - ", SUM},
    [FG_NODE_MULTIPLY] = {" * ", PRODUCT}, [FG_NODE_DIVIDE] = {" / ", PRODUCT},
    [FG_NODE_MODULO] = {" % ", PRODUCT},   [FG_NODE_LESS] = {" < ", ORDER},
    [FG_NODE_AT_MOST] = {" <= ", ORDER},   [FG_NODE_EQUAL] = {" == ", EQUAL},
    [FG_NODE_DIFFERENT] = {" != ", EQUAL}, [FG_NODE_AND] = {" && ", AND},
    [FG_NODE_OR] = {" || ", OR},           [FG_NODE_CHOOSE] = {" ? ", CHOOSE},
    [FG_NODE_MIN] = {"min", PRIMARY},      [FG_NODE_MAX] = {"max", PRIMARY},
    [FG_NODE_ABS] = {"abs", PRIMARY},      [FG_NODE_EXP] = {"exp", PRIMARY},
    [FG_NODE_LOG] = {"log", PRIMARY},      [FG_NODE_TANH] = {"tanh", PRIMARY},
    [FG_NODE_SQRT] = {"sqrt", PRIMARY},    [FG_NODE_SIGMOID] = {"sigmoid", PRIMARY},
    [FG_NODE_FLOOR] = {"floor", PRIMARY},  [FG_NODE_FLOAT] = {"float", PRIMARY},
    [FG_NODE_GIVEN] = {"given", PRIMARY},
};

static void put(printer *p, const char *text) {
  size_t n = strlen(text);
  if (p->size > (size_t)p->n) {
    size_t room = p->size - (size_t)p->n - 1;
    memcpy(p->text + p->n, text, n < room ? n : room);
    p->text[(size_t)p->n + (n < room ? n : room)] = 0;
  }
  p->n += (int)n;
}

/* The shortest text that reads back as the same number, with a point or an exponent in a float. */
static void put_constant(printer *p, const fg_node *x) {
  char text[40];
  int digits = 1;
  if (x->type == FG_TYPE_BOOL) {
    put(p, x->number > 0 ? "true" : "false");
    return;
  }
  if (x->type == FG_TYPE_INT) {
    snprintf(text, sizeof text, "%.0f", x->number);
    put(p, text);
    return;
  }
  if (x->number >= -1e15 && x->number <= 1e15 && floor(x->number) >= x->number) {
    snprintf(text, sizeof text, "%.1f", x->number);
    put(p, text);
    return;
  }
  do {
    snprintf(text, sizeof text, "%.*g", digits, x->number);
  } while (digits++ < 17 && fabs(strtod(text, NULL) - x->number) > 0);
  put(p, text);
  if (!strpbrk(text, ".e")) put(p, ".0");
}

static int rank_of(const fg_node *x) {
  if (x->op == FG_NODE_CONSTANT) return x->number < 0 ? UNARY : PRIMARY;
  return x->op <= FG_NODE_READ ? PRIMARY : ops[x->op].rank;
}

static void print(printer *p, int root, int rank);

static void put_list(printer *p, const fg_node *x, const char *open, const char *close) {
  put(p, open);
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++) {
    put(p, i ? ", " : "");
    print(p, x->arg[i], LOOSE);
  }
  put(p, close);
}

/* "a - 1" for a + -1 */
static bool put_difference(printer *p, const fg_node *x) {
  const fg_node *b = &p->tree->node[x->arg[1]];
  if (x->op != FG_NODE_ADD || b->op != FG_NODE_CONSTANT || !(b->number < 0)) return false;
  fg_node positive = *b;
  positive.number = -b->number;
  print(p, x->arg[0], SUM);
  put(p, " - ");
  put_constant(p, &positive);
  return true;
}

static void print_bare(printer *p, const fg_node *x) {
  switch (x->op) {
  case FG_NODE_CONSTANT:
    put_constant(p, x);
    return;
  case FG_NODE_NAME:
    put(p, fg_name_text[x->which]);
    return;
  case FG_NODE_SCALAR:
    put(p, p->inputs[x->which]);
    return;
  case FG_NODE_READ:
    put(p, p->inputs[x->which]);
    put_list(p, x, "[", "]");
    return;
  case FG_NODE_NEGATE:
  case FG_NODE_NOT:
    put(p, ops[x->op].text);
    print(p, x->arg[0], PRIMARY);
    return;
  case FG_NODE_CHOOSE:
    print(p, x->arg[0], OR);
    put(p, " ? ");
    print(p, x->arg[1], CHOOSE);
    put(p, " : ");
    print(p, x->arg[2], CHOOSE);
    return;
  default:
    break;
  }
  int rank = ops[x->op].rank;
  bool right = x->op == FG_NODE_AND || x->op == FG_NODE_OR; /* chains nest to the right */
  if (rank == PRIMARY) {
    put(p, ops[x->op].text);
    put_list(p, x, "(", ")");
  } else if (!put_difference(p, x)) {
    print(p, x->arg[0], right ? rank + 1 : rank);
    put(p, ops[x->op].text);
    print(p, x->arg[1], right ? rank : rank + 1);
  }
}

static void print(printer *p, int root, int rank) {
  const fg_node *x = &p->tree->node[root];
  bool bare = rank_of(x) >= rank;
  if (!bare) put(p, "(");
  print_bare(p, x);
  if (!bare) put(p, ")");
}

int fg_tree_print(const fg_tree *tree, int root, const char *const *inputs, size_t size,
                  char *text) {
  printer p = {tree, inputs, text, size, 0};
  if (size) *text = 0;
  print(&p, root, LOOSE);
  return p.n;
}
