/* tree_recipe.c - nodes as expressions of a recipe. */
#include "tree_recipe.h"

#include "formula_parse.h"

/* Is it, but for a negative constant that is added, of the language of recipes? */
static bool is_of_recipes(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node], *last = &t->node[x->arg[1]];
  switch (x->op) {
  case FG_NODE_CONSTANT:
    return x->type == FG_TYPE_INT && x->number >= 0;
  case FG_NODE_NAME:
    return x->which == FG_NAME_NQ || x->which == FG_NAME_NK;
  case FG_NODE_ADD: /* a + -1 is written a - 1 */
    if (last->op == FG_NODE_CONSTANT && last->type == FG_TYPE_INT)
      return is_of_recipes(t, x->arg[0]);
    break;
  case FG_NODE_SUBTRACT:
  case FG_NODE_MULTIPLY:
  case FG_NODE_DIVIDE:
  case FG_NODE_MODULO:
  case FG_NODE_MIN:
  case FG_NODE_MAX:
    break;
  default:
    return false;
  }
  return is_of_recipes(t, x->arg[0]) && is_of_recipes(t, x->arg[1]);
}

bool fg_formula_recipe(fg_formula *f, int node, int n, const fg_node_text *names, size_t size,
                       char *text) {
  static const fg_definitions none[2];
  for (int i = 0; i < n && node; i++) {
    int lengths, name = fg_tree_name(&f->tree, names[i].name);
    if (fg_formula_parse(f, none, "recipe", FG_IN_EXTENT, names[i].text, &lengths) != FG_OK)
      return false;
    node = fg_tree_replace(&f->tree, node, name, lengths);
  }
  return node && is_of_recipes(&f->tree, node) &&
         (size_t)fg_tree_print(&f->tree, node, NULL, size, text) < size;
}
