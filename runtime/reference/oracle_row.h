/* oracle_row.h - what forward and backward of the oracle share: one query row at a time. */
#ifndef FG_ORACLE_ROW_H
#define FG_ORACLE_ROW_H

#include "oracle.h"

/* ---- vectors of n elements ---- */

double oracle_dot(int64_t n, const double *restrict x, const double *restrict y);

/* sum += w x ; squares += (w_abs x)^2. The two weights differ where terms cancel. */
void oracle_accumulate(int64_t n, double w, double w_abs, const double *restrict x,
                       double *restrict sum, double *restrict squares);

/* Replaces *x by n zeros; 0: no memory. */
int oracle_renew(double **x, int64_t n);

/* A value in the dtype of the unfused computation. */
double oracle_rounded(const oracle_problem *x, double value);

/* The end of an output: squares become their roots, sums take the dtype. */
void oracle_finish(const oracle_problem *x, int64_t n, double *sum, double *squares);

/* ---- rows ---- */

/* One query row: its coordinates, its index in [b, h, nq], and its key/value head's in [b, hk]. */
typedef struct oracle_place {
  int64_t b, h, q, row, kv;
} oracle_place;

oracle_place oracle_place_of(const oracle_problem *x, int64_t row);
const oracle_normalizer *oracle_normalizer_of(const oracle_problem *x);

/* The index of the bias of (at, k); an axis of extent 1 is broadcast. */
int64_t oracle_bias_index(const oracle_problem *x, oracle_place at, int64_t k);

/* The names of an expression at a pair, which belongs to a slice where there are slices, or to the
 * sequence that the problem is a part of. */
void oracle_name_pair(const oracle_problem *x, oracle_place at, int64_t k, double s,
                      double name[ORACLE_VALUES]);
int oracle_is_visible(const oracle_problem *x, oracle_place at, int64_t k);

/* Of the pairs of a row that its mask shows: how many, and the largest scaled product. */
typedef struct oracle_tally {
  int64_t seen;
  double max_logit;
} oracle_tally;

/* p[0..nk) = the row's weights; returns its second output, such as LSE. hidden[k]: no gradient
 * comes from the pair. Adds the row's pairs to *tally. */
double oracle_weigh_row(const oracle_problem *x, oracle_place at, double *p, char *hidden,
                        oracle_tally *tally);

/* The size of the terms of a row's scores, at the visible key where it is largest: `all` in the
 * scores' own unit (T of mathematics.md section 6), as what formats may put LSE off by, and as what
 * they
 * may put the largest logit off by. */
typedef struct oracle_row_size {
  double all, lse_cut, max_logit_cut;
} oracle_row_size;

oracle_row_size oracle_size_row(const oracle_problem *x, oracle_place at);

/* The factor of a pair's weight: 1; with dropout 0, or 1 / keep. */
double oracle_dropped(const oracle_problem *x, oracle_place at, int64_t k);

#endif
