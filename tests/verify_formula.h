/* verify_formula.h - what verify does for a spec's expressions: inputs drawn by their types, and
 * the oracle's reading of mask and score. */
#ifndef FG_TESTS_VERIFY_FORMULA_H
#define FG_TESTS_VERIFY_FORMULA_H

#include "formula.h"
#include "oracle.h"
#include "problem.h"
#include "verify.h"

typedef struct verify_formula {
  int n_inputs;
  oracle_input inputs[ORACLE_INPUTS];
  int grad[ORACLE_INPUTS];
  fg_formula formula;
  oracle_formula *mask, *score; /* NULL: full, s */
} verify_formula;

/* Values of a declared input: normal numbers; of an i32 a few runs of equal numbers that grow along
 * the last axis, so that a declared order holds. */
void verify_formula_draw(const fg_recipe *recipe, int tensor, const fg_shape *shape,
                         uint64_t *state, double *values);

/* The oracle's side of the point, over values of the problem's tensors; numbers are drawn, unless
 * the case sets them, and given to the launch. FG_EBUG: the oracle cannot read the canonical text.
 */
fg_status verify_formula_new(const fg_point *point, fg_problem *problem, double *const *values,
                             const verify_case *which, verify_formula *formula);
void verify_formula_free(verify_formula *formula);

/* FG_ESPEC when an index left its tensor. */
fg_status verify_formula_check(const verify_formula *formula);

#endif
