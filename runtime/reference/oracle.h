/* oracle.h - the attention that kernels are judged by: plain float64, and the measures of error.
 *
 * Written from mathematics.md sections 1 to 3 (softmax) and 6 alone; it shares nothing with the
 * templates.
 * One thread, O(nq nk (d + dv)) time, O(nk) memory beside the results. A row with no visible key,
 * or whose visible scores are all -inf, has O = 0, LSE = -inf and gradients 0; nk = 0 is every row.
 * All arrays are contiguous. */
#ifndef FG_TESTS_ORACLE_H
#define FG_TESTS_ORACLE_H

#include "base/elem.h"
#include "oracle_dropout.h"
#include "oracle_formula.h"
#include "oracle_normalizer.h"

#include <stdint.h>

enum { ORACLE_INPUTS = 8 };
struct oracle_problem;

/* Nonzero where query q may see key k. */
typedef int oracle_predicate(const struct oracle_problem *, int64_t b, int64_t h, int64_t q,
                             int64_t k);

/* Rows [q, q + nq) and keys [k, k + nk) of the problem. */
typedef struct oracle_slice {
  int64_t q, k, nq, nk;
} oracle_slice;

/* What number formats cost, mathematics.md section 6: 0 costs nothing. */
typedef struct oracle_formats {
  double operand; /* what P, S and dS count as at least in products of tensor cores: of f16 2^-14 */
  double tanh;    /* what 1 - tanh^2 counts as at least in the size of a gradient */
  /* LSE and the largest logit may be off by `product` of the size of the products of q and k, by
   * `term` of the size of the terms added to them, and by `slope` of run-time slopes. */
  double product, term, slope;
} oracle_formats;

typedef struct oracle_problem {
  int64_t b, h, hk, nq, nk, d, dv; /* h is a multiple of hk */
  double scale;
  const double *q;                     /* [b, h, nq, d] */
  const double *k;                     /* [b, hk, nk, d] */
  const double *v;                     /* [b, hk, nk, dv] */
  const double *bias;                  /* bias_extent, or NULL */
  const double *sink;                  /* [h]; NULL = none: -inf */
  const double *sigmoid_bias;          /* NULL: -log nk, of the whole */
  const oracle_dropout *dropout;       /* NULL: there is none */
  const oracle_normalizer *normalizer; /* NULL = softmax */
  const double *dout;                  /* [b, h, nq, dv]; NULL = 0 */
  const double *dlse; /* [b, h, nq], the gradient of the normaliser's second output; NULL = 0 */
  /* [b, h, nq, dv]: the o that backward is given, or the u, of which Delta is made: its rounding is
   * no error of backward's, and where few keys are visible it exceeds all others. NULL = the exact
   * one. */
  const double *o;
  int64_t bias_extent[4];    /* b h q k: each 1 or the full extent */
  int64_t bias_first[4];     /* where the sequence begins along each that is not 1 */
  int64_t first_b;           /* the batch that expressions are told for batch 0 */
  oracle_predicate *visible; /* NULL = full */
  /* [nq, nk]: the slice that a pair is of, whose positions and lengths expressions are told; -1: it
   * is of none, and hidden. NULL: the problem is one sequence. */
  const int *slice_of;
  const oracle_slice *slices;
  /* The sequence of which this is a part: it begins at a row and key before 0, and its positions
   * and lengths are what expressions and dropout are told. NULL: the problem is all of it. */
  const oracle_slice *whole;
  /* A mask and a score as expressions; NULL = none. Their inputs, and which of them take gradients.
   */
  oracle_formula *mask, *score;
  int n_inputs;
  const oracle_input *inputs;
  const int *grad;
  /* NULL = exact. Else applied to S, P, dP, dS and every output but LSE (float32 in every dtype):
   * what a plain unfused computation in that dtype gives, overflow and all. */
  double (*round)(double);
  /* Products are of e4m3: weights alone are rounded, beside the row's largest one, times a power of
   * 2 (mathematics.md section 7). */
  int is_e4m3;
  oracle_formats formats;
} oracle_problem;

/* Zero-initialised by the caller; each array has the shape of what it belongs to. `_rss` is the
 * size of the terms behind each element, mathematics.md section 6. */
typedef struct oracle_result {
  double *o, *lse, *dq, *dk, *dv, *dbias; /* lse: the normaliser's second output */
  double *max_logit;                      /* [b, h]: the largest scaled product of visible pairs */
  double *lse_cut, *max_logit_cut;        /* [b, h, nq], [b, h]: how far formats may put them off */
  double *u, *u_rss; /* [b, h, nq, dv]: the sum of the values that a row sees */
  double *o_rss, *dq_rss, *dk_rss, *dv_rss, *dbias_rss;
  double *dsink, *dsink_rss; /* [h] */
  double *dinput[ORACLE_INPUTS], *dinput_rss[ORACLE_INPUTS];
  double largest_ds; /* |dS| of all pairs, at the score and through it to s */
  int64_t seen;      /* by forward: pairs of a row and a key that the mask shows */
  /* By forward, of a score with tanh: some visible pairs, and those of them in which each factor
   * 1 - tanh^2 is above 1/16. */
  int64_t sampled, steep;
} oracle_result;

/* o, lse, o_rss, max_logit, and u, u_rss of a normaliser that sums values. 0, or -1 when memory ran
 * out; what a former call left there is replaced. */
int oracle_forward(const oracle_problem *problem, oracle_result *result);

/* dq, dk, dv, dbias (only with a bias), dsink (only with a sink) and their rss; needs no forward
 * first. Returns as above. */
int oracle_backward(const oracle_problem *problem, oracle_result *result);

/* How many pairs of every `step`th head the mask shows; evaluates the mask alone. */
int64_t oracle_count_visible(const oracle_problem *problem, int64_t step);

/* Frees every array and zeroes the result. */
void oracle_free(oracle_result *result);

/* The predicate of "full" or "causal" (bottom-right), NULL if the name is unknown. */
oracle_predicate *oracle_visible(const char *mask);

/* The rounding of a dtype, for oracle_problem.round: through float32, in which it accumulates. */
double (*oracle_round(fg_elem dtype))(double);

/* ||x - ref|| / max(||ref||, ||rss||) over all but equal infinities; 0 / 0 = 0, NaN if x has one.
 * Judge it by !(error <= limit), which a NaN fails. Numbers too small for a float32, and
 * differences, count as 0. */
double oracle_error(int64_t n, const double *x, const double *ref, const double *rss);

/* The same where each element that has terms counts as at least `least`. */
double oracle_error_of(int64_t n, const double *x, const double *ref, const double *rss,
                       double least);

/* What an element stored in that type counts as at least, 2^-14 of f16: below it numbers have an
 * absolute error. */
double oracle_least(fg_elem elem);

/* |x - ref| where it is worst beside its limit there, 1e-4 + relative |ref| + cut, both in the unit
 * of the numbers themselves; cut NULL: 0. Equal infinities count 0, any other value that is not
 * finite gives INFINITY. */
double oracle_near_error(int64_t n, const double *x, const double *ref, double relative,
                         const double *cut, double *limit);

/* The same of log-sum-exps: 1e-4 + 1e-6 |ref|. */
double oracle_lse_error(int64_t n, const double *x, const double *ref, double *limit);

/* The largest error that counts as right, by the dtype of the *spec*: a gradient kept in float32
 * was still made from 16-bit P and dS. With e4m3 few numbers may be off by more, where rounding
 * their weights alone costs as much: what that costs counts 1.2 times. */
double oracle_limit(fg_elem dtype);

#endif
