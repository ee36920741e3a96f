/* reference_attention.h - a case of attention under way, for the files that draw and solve it. */
#ifndef FG_REFERENCE_ATTENTION_H
#define FG_REFERENCE_ATTENTION_H

#include "oracle.h"
#include "reference.h"
#include "reference_sequence.h"
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

/* Tells the oracle where a sequence begins along the axes of inputs. */
void attention_set_first(attention *a, const fg_problem *p, const reference_sequence *s);

/* Puts what a sequence has into the results of all: its own rows, and its share of sums. */
void attention_keep(const reference_case *c, const reference_sequence *s, const oracle_result *part,
                    oracle_result *all);

/* After forward is solved: is too little visible for most of what a kernel does to show? Every
 * fourth seed keeps what was drawn. */
bool attention_sees_little(const reference_case *c);

/* Draws the integers of expressions and the slices again, unless the case gives them; the oracle's
 * results are former ones then. */
fg_status attention_draw_again(reference_case *c, int turn);

/* By which power of 2 to divide q, 0: it stays: until half of the slopes of a tanh are above 1/16,
 * and until the sums r of retention are below 1, in cases whose style is VERIFY_PLAIN. */
int attention_shift_of_q(const reference_case *c);

/* By which power of 2 to multiply dO: gradients of f16 that are below 2^-14 judge nothing. */
int attention_shift_of_gradients(const reference_case *c);

/* Multiplies an input by 2^shift, unless the case gives it or there is none. */
fg_status attention_scale(reference_case *c, const char *name, int shift);

/* Where a given(range, test) of the mask is false, at the case's integers or at others: "mask:
 * ...". Leaves the text empty where none is. */
void attention_find_claim(const reference_case *c, size_t size, char *text);

#endif
