/* tree_whole.c - where a mask hides nothing of all rows and keys, as an expression of lengths. */
#include "recipe/recipe.h"
#include "tree_bound.h"
#include "tree_linear.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Is it a sum of multiples of lengths? Such sums lie between their values at the ends of ranges. */
static bool is_sum_of_lengths(const fg_tree *t, int node) {
  fg_linear form = fg_linear_of(t, node);
  for (int i = 0; i < form.n; i++) {
    const fg_node *x = &t->node[form.atom[i]];
    if (x->op != FG_NODE_NAME || (x->which != FG_NAME_NQ && x->which != FG_NAME_NK)) return false;
  }
  return form.n >= 0;
}

/* Appends what is not negative where the test holds, "min(min(a, b), c)" of all that it joins;
 * false: it has none. */
static bool print_slack(fg_formula *f, int test, size_t size, char *text) {
  fg_tree *t = &f->tree;
  const fg_node x = t->node[test];
  size_t n = strlen(text);
  if (x.op == FG_NODE_AND) {
    if (n + 8 > size) return false;
    strcat(text, "min(");
    if (!print_slack(f, x.arg[0], size, text) || strlen(text) + 8 > size) return false;
    strcat(text, ", ");
    if (!print_slack(f, x.arg[1], size, text) || strlen(text) + 8 > size) return false;
    return strcat(text, ")") != NULL;
  }
  if (x.op == FG_NODE_CONSTANT)
    return x.number != 0 && fg_append(size, text, (int)n, "0") < (int)(size - n);
  if (x.op != FG_NODE_AT_MOST && x.op != FG_NODE_LESS) return false;
  if (!is_sum_of_lengths(t, x.arg[0]) || !is_sum_of_lengths(t, x.arg[1])) return false;
  int more = fg_tree_binary(t, FG_NODE_SUBTRACT, x.arg[1], x.arg[0]);
  if (x.op == FG_NODE_LESS)
    more = fg_tree_binary(t, FG_NODE_SUBTRACT, more, fg_tree_constant(t, FG_TYPE_INT, 1));
  return more && fg_tree_print(t, more, NULL, size - n, text + n) < (int)(size - n);
}

int fg_formula_whole(fg_formula *f, size_t size, char *text) {
  static const fg_name ends[][2] = {{FG_NAME_Q1, FG_NAME_NQ}, {FG_NAME_K1, FG_NAME_NK}};
  fg_tree *t = &f->tree;
  fg_expr expr;
  *text = 0;
  for (int i = 0; i < f->n_inputs; i++)
    if (fg_tree_takes(t, f->mask, i)) return 0;
  int always = fg_formula_tile(f).always, zero = fg_tree_constant(t, FG_TYPE_INT, 0);
  if (!always || t->node[f->mask].op == FG_NODE_CONSTANT) return 0;
  always = fg_tree_replace(t, always, fg_tree_name(t, FG_NAME_Q0), zero);
  always = fg_tree_replace(t, always, fg_tree_name(t, FG_NAME_K0), zero);
  for (int i = 0; i < 2; i++)
    always = fg_tree_replace(t, always, fg_tree_name(t, ends[i][0]), fg_tree_name(t, ends[i][1]));
  if (!always || !print_slack(f, always, size, text) ||
      fg_expr_compile(text, fg_shape_forms[FG_FORM_PAIRS].letters, &expr) != FG_OK)
    *text = 0;
  return (int)strlen(text);
}
