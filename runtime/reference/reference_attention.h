/* reference_attention.h - a case of attention under way, for the files that draw and solve it. */
#ifndef FG_REFERENCE_ATTENTION_H
#define FG_REFERENCE_ATTENTION_H

#include "oracle.h"
#include "reference.h"
#include "reference_slices.h"
#include "verify_formula.h"

typedef struct {
  oracle_problem oracle;
  oracle_result exact, plain;
  verify_formula formula;
  double sigmoid_bias;
  oracle_dropout dropout;
  reference_slices slices;
  oracle_slice whole; /* of parts of sequences, the one at hand */
  double o_limit;     /* of dtype=e4m3; 0: that of the dtype */
} attention;

const oracle_normalizer *attention_normalizer(const reference_case *c);

/* The values of an input, before its dtype rounds them. */
void attention_draw(const reference_case *c, int tensor, double *values);

#endif
