/* verify_formula.h - what verify does for a spec's expressions: inputs drawn by their types and
 * uses, and the oracle's reading of mask and score. */
#ifndef FG_TESTS_VERIFY_FORMULA_H
#define FG_TESTS_VERIFY_FORMULA_H

#include "formula/formula.h"
#include "oracle.h"
#include "problem.h"
#include "verify.h"

typedef struct verify_formula {
  int n_inputs;
  oracle_input inputs[ORACLE_INPUTS];
  int grad[ORACLE_INPUTS];
  double number[ORACLE_INPUTS]; /* of those that are no tensor */
  fg_formula formula;
  oracle_formula *mask, *score; /* NULL: full, s */
} verify_formula;

/* The oracle's side of the point; numbers are drawn, unless the case sets them, and given to the
 * launch. FG_EBUG: the oracle cannot read the canonical text. */
fg_status verify_formula_new(const fg_point *point, fg_problem *problem, const verify_case *which,
                             verify_formula *formula);

/* Draws its numbers, unless the case sets them, and gives them to the launch. */
void verify_formula_draw_numbers(verify_formula *formula, fg_problem *problem,
                                 const verify_case *which);

/* Draws a declared input: normal numbers; an i32 by what it is used for (verify_use.h), in order
 * where it is declared so. Lengths lie at edges of the plan's tiles more often than not. */
void verify_formula_draw(const verify_formula *formula, const fg_problem *problem,
                         const verify_case *which, const fg_plan *plan, int tensor, double *values);

/* The oracle reads the values of the problem's tensors from here on. */
void verify_formula_bind(verify_formula *formula, const fg_problem *problem, double *const *values);
void verify_formula_free(verify_formula *formula);

/* FG_ESPEC when an index left its tensor. */
fg_status verify_formula_check(const verify_formula *formula);

#endif
