/* grid_formula.h - the expressions of one table of a grid: its inputs and definitions, joined with
 * those of the words, and what they make of each mask and score. */
#ifndef FG_GRID_FORMULA_H
#define FG_GRID_FORMULA_H

#include "point_formula.h"
#include "table.h"

typedef struct fg_names {
  char *text;
  fg_pair *pair;
  bool *unused; /* by any point so far */
  int n;
} fg_names;

typedef struct fg_grid_formulas {
  fg_names inputs, definitions;
  const char *mask, *score; /* that `last` was made of */
  fg_point last;
} fg_grid_formulas;

/* Names of the words replace equal ones of the table. */
fg_status fg_grid_formulas_new(const fg_table *own, const fg_table *words,
                               fg_grid_formulas *formulas);
void fg_grid_formulas_free(fg_grid_formulas *formulas);

/* Reports what is wrong with declarations, and with each mask and score beside a plain other. Lists
 * that are not the table's own are of the words. */
void fg_grid_formulas_check(const fg_grid_formulas *formulas, const fg_texts *const *field,
                            const fg_table *own, const char *where, fg_report *errors);

/* Sets a point's mask, score and inputs; its pass is set. */
fg_status fg_grid_formulas_set(fg_grid_formulas *formulas, const char *mask, const char *score,
                               fg_point *point);

/* Reports inputs that no point has used. */
void fg_grid_formulas_unused(const fg_grid_formulas *formulas, const char *where,
                             fg_report *errors);

#endif
