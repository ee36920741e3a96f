/* formula_type.c - the types of an expression's nodes: which operators take them, and what becomes
 * a float. */
#include "formula_parser.h"

fg_type fg_parse_type(const fg_parser *p, int node) { return (fg_type)p->f->tree.node[node].type; }

const char *fg_parse_type_name(const fg_parser *p, int node) {
  static const char *const names[] = {"a test", "an int", "a float"};
  return names[fg_parse_type(p, node)];
}

fg_status fg_parse_made(const fg_parser *p, const char *where, int node, int *out) {
  if (node) {
    *out = node;
    return FG_OK;
  }
  fg_status status = fg_tree_check(&p->f->tree, 0);
  return status == FG_EMEMORY ? status : fg_parse_bad(p, where, "%s", fg_error());
}

int fg_parse_float(fg_parser *p, int node) {
  return fg_tree_unary(&p->f->tree, FG_NODE_FLOAT, node);
}

void fg_parse_promote(fg_parser *p, int *a, int *b) {
  if (fg_parse_type(p, *a) == fg_parse_type(p, *b)) return;
  if (fg_parse_type(p, *a) == FG_TYPE_INT) *a = fg_parse_float(p, *a);
  if (*a && fg_parse_type(p, *b) == FG_TYPE_INT) *b = fg_parse_float(p, *b);
}

fg_status fg_parse_combine(fg_parser *p, const char *where, const char *symbol, fg_node_op op,
                           int a, int b, int *out) {
  bool logic = op == FG_NODE_AND || op == FG_NODE_OR;
  bool tests = fg_parse_type(p, a) == FG_TYPE_BOOL || fg_parse_type(p, b) == FG_TYPE_BOOL;
  if (logic && (fg_parse_type(p, a) != FG_TYPE_BOOL || fg_parse_type(p, b) != FG_TYPE_BOOL))
    return fg_parse_bad(p, where, "%s takes two tests, found %s and %s", symbol,
                        fg_parse_type_name(p, a), fg_parse_type_name(p, b));
  if (!logic && tests)
    return fg_parse_bad(p, where, "%s takes two numbers, found %s and %s", symbol,
                        fg_parse_type_name(p, a), fg_parse_type_name(p, b));
  if (!logic) fg_parse_promote(p, &a, &b);
  if (op == FG_NODE_MODULO && a && fg_parse_type(p, a) == FG_TYPE_FLOAT)
    return fg_parse_bad(p, where, "%% takes two ints, found a float");
  const fg_node *divisor = &p->f->tree.node[b];
  if ((op == FG_NODE_DIVIDE || op == FG_NODE_MODULO) && divisor->op == FG_NODE_CONSTANT &&
      !(divisor->number < 0 || divisor->number > 0))
    return fg_parse_bad(p, where, "%s by a constant 0", op == FG_NODE_DIVIDE ? "division" : "%");
  return fg_parse_made(p, where, fg_tree_binary(&p->f->tree, op, a, b), out);
}
