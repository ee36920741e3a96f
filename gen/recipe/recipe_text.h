/* recipe_text.h - helpers that write the texts of a recipe and of its Params struct. */
#ifndef FG_RECIPE_TEXT_H
#define FG_RECIPE_TEXT_H

#include "recipe.h"

enum { FG_RECIPE_LINE = 4096 }; /* bytes a line may have */

/* A text that grows by whole pieces; `full` once one did not fit, which is then left out. */
typedef struct fg_lines {
  char *text;
  size_t size;
  int n;
  bool full;
} fg_lines;
void fg_lines_add(fg_lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As fg_axes_print, but the recipe's head dims as numbers: "[b, nq, h, 128]". */
void fg_recipe_shape_print(const fg_recipe *recipe, const char *axes, size_t size, char *text);

#endif
