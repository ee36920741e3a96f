/* tree_recipe.h - nodes as expressions of a recipe: integers made of the lengths of a launch. */
#ifndef FG_TREE_RECIPE_H
#define FG_TREE_RECIPE_H

#include "formula.h"

enum { FG_LENGTHS_TEXT = 1024 };

/* What a name stands for, in lengths: q0 for "nq / 2". */
typedef struct fg_node_text {
  fg_name name;
  const char *text;
} fg_node_text;

/* Writes the node, its names replaced by n texts, in the language of recipes (expr.c). False: it is
 * not made of nq, nk and integers by + - * / % min max alone, it has a negative operand, which that
 * language cannot write, or it is too long. */
bool fg_formula_recipe(fg_formula *formula, int node, int n, const fg_node_text *names, size_t size,
                       char *text);

#endif
