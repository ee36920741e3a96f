/* oracle_normalizer.h - what turns a row's scores into weights, in float64: mathematics.md sections
 * 2
 * to 4. */
#ifndef FG_ORACLE_NORMALIZER_H
#define FG_ORACLE_NORMALIZER_H

#include <stdint.h>

/* The number that a row of weights takes beside its scores: the head's sink, -inf for none;
 * sigmoid's bias, -log of the keys unless it is given. */
typedef enum oracle_own { OWN_NOTHING, OWN_SINK, OWN_BIAS } oracle_own;

/* Of a row: n scores, -inf where a pair is hidden. */
typedef struct oracle_normalizer {
  const char *name;
  const char *second; /* the output that keeps the row for backward; NULL: there is none */
  double empty;       /* its value of a row that no sequence has */
  oracle_own own;
  int skips_no_weight; /* a pair without weight has no gradient */
  int hides_inf;       /* a score of -inf counts as hidden; else it has no right result */
  int sums_values;     /* a second accumulator has the sum of the values that a row sees: u */
  /* Scores become weights, through `round` unless it is NULL; returns the second output. A
   * hidden pair has the weight 0. */
  double (*weigh)(int64_t n, double *p, double own, double (*round)(double));
  /* dS of a pair from its weight, dP and delta = dO . O (dO . u) less the gradient of the second
   * output; *size: the absolute terms of it. */
  double (*slope)(double p, double dp, double delta, double second, double *size);
  /* The size of what a value is multiplied with in O, of which a product takes what counts as at
   * least `least`; NULL: the weight. */
  double (*size)(double p, double second, double least);
  /* The weight of an operand of 1 in O, from the row's largest weight; NULL: 1. */
  double (*unit)(double top, double second);
} oracle_normalizer;

/* The row of that name, NULL for softmax; NULL: there is none. */
const oracle_normalizer *oracle_normalizer_find(const char *name);

#endif
