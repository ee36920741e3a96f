/* verify_use.h - what a spec's mask and score use an integer input for, so that it is drawn where
 * something depends on it: lengths about the positions that they are compared with, indices within
 * the tensor, ids in runs. */
#ifndef FG_TESTS_VERIFY_USE_H
#define FG_TESTS_VERIFY_USE_H

#include "formula/formula.h"
#include "launch.h"

typedef struct verify_use {
  bool is_compared; /* with positions or numbers: tests change between low and high */
  bool is_id;       /* compared with another element, of this input or of another one, alone */
  double low, high;
  double least, most; /* what indices permit; infinite: anything */
} verify_use;

/* How one integer input of the formula is used at a shape. number[i]: the value of input i, where
 * it is a number. Positions are sampled; expressions that are too large to evaluate often say
 * nothing. */
verify_use verify_use_of(const fg_formula *formula, int input, const fg_recipe *recipe,
                         const fg_shape *shape, const double *number);

#endif
