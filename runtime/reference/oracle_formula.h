/* oracle_formula.h - the oracle's own reading of masks and scores: float64, shares nothing with
 * gen.
 *
 * Reads the language of own_formula.md without definitions, but for the few names that points
 * keep; evaluates a pair, and its derivatives by s and by every element that was read. */
#ifndef FG_TESTS_ORACLE_FORMULA_H
#define FG_TESTS_ORACLE_FORMULA_H

#include <stdint.h>

enum { ORACLE_RANK = 4, ORACLE_NAMES = 14 };

/* What an expression may name, and the bounds of a tile: s q k p b h hk nq nk nh q0 q1 k0 k1. */
enum {
  ORACLE_S,
  ORACLE_Q,
  ORACLE_K,
  ORACLE_P,
  ORACLE_B,
  ORACLE_H,
  ORACLE_HK,
  ORACLE_NQ,
  ORACLE_NK,
  ORACLE_NH,
  ORACLE_Q0,
  ORACLE_Q1,
  ORACLE_K0,
  ORACLE_K1,
  /* no names: the token of row 0 and of key 0, where a sequence is a slice of the tokens; of parts
   * of sequences they lie before the first one */
  ORACLE_FIRST_Q,
  ORACLE_FIRST_K,
  ORACLE_VALUES
};

/* An input: rank < 0 is a number. Tensors are contiguous. */
typedef struct oracle_input {
  const char *name;
  int is_int, rank;
  double number;
  int64_t extent[ORACLE_RANK];
  const double *values;
  int64_t first[ORACLE_RANK]; /* what is added to an index: where a sequence begins along an axis */
  char slice_axis[ORACLE_RANK]; /* 'q', 'k': the pair's ORACLE_FIRST_Q or _K is added; else 0 */
} oracle_input;

typedef struct oracle_formula oracle_formula;

/* NULL when the text is no expression of the language; *column (may be NULL) then says where. */
oracle_formula *oracle_formula_new(const char *text, int n_inputs, const oracle_input *inputs,
                                   int *column);
void oracle_formula_free(oracle_formula *formula);

/* The value at a pair: a test is 0 or 1. An index that leaves its tensor is remembered. */
double oracle_formula_value(oracle_formula *formula, const double name[ORACLE_NAMES]);

/* Is there a tanh in it? */
int oracle_formula_has_tanh(const oracle_formula *formula);

/* Derivatives of a value, and the sizes by which it is judged (mathematics.md section 6). */
typedef struct oracle_slopes {
  double s;        /* d value / d s */
  double s_size;   /* its size, in which a factor 1 - tanh^2 counts as at least `least_tanh` */
  double flattest; /* the least factor 1 - tanh^2 of a tanh that was taken; 1: there is none */
  double terms;    /* the size of the terms that are added to s */
  double position; /* the size of the run-time factors of positions in these terms */
} oracle_slopes;

/* Each element that the value read, with its derivative and the size of that. */
typedef void oracle_slope(void *context, int input, int64_t element, double slope, double size);

/* After the value. each: NULL, or called for each element. */
oracle_slopes oracle_formula_slopes(oracle_formula *formula, double least_tanh, oracle_slope *each,
                                    void *context);

/* "at b=0 h=0 q=3 k=7" once the range of a given(range, test) did not hold where its test did, else
 * NULL. */
const char *oracle_formula_claim(const oracle_formula *formula);

/* "ids[b, p]: index 2 is -3, not in 0 to 63" once an index has left its tensor, else NULL. */
const char *oracle_formula_fault(const oracle_formula *formula);

#endif
