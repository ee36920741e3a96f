/* run_case.h - tensors in .npy files for `flashgen run`, and its outputs judged by the oracle. */
#ifndef FG_TESTS_RUN_CASE_H
#define FG_TESTS_RUN_CASE_H

#include "base/elem.h"

#include <stdint.h>

/* One problem. The files hold [b, n, h, d], lse and dlse [b, h, nq]. */
typedef struct run_case {
  int64_t b, h, hk, nq, nk, d, dv;
  fg_elem dtype;
  const char *mask;      /* "full" or "causal" */
  const char *bias_axes; /* those of "bhqk" that are not broadcast; NULL = no bias */
  double scale;          /* 0 = 1/sqrt(d) */
  int dlse;              /* is given */
} run_case;

/* The case that most tests begin with, and the words that name its files to `flashgen run`. */
extern const run_case run_case_usual;
#define FORWARD   "--in q=q.npy --in k=k.npy --in v=v.npy"
#define BACKWARD  FORWARD " --in do=do.npy"
#define GRADIENTS "--out dq=dq.npy --out dk=dk.npy --out dv=dv.npy"

/* An .npy file of format 1.0; order: "False" or "True" (Fortran). */
void run_case_file(const char *path, const char *descr, const char *order, int rank,
                   const int64_t *extent, const void *data, size_t bytes);

/* The file NAME.npy of zeros, f4, with these extents ("2,3,4,8"). */
void run_case_zeros(const char *name, const char *extents);
void run_case_fill(const char *name, const char *extents, float value);

/* Draws q k v bias do dlse and writes NAME.npy for each, as "f4" or "f2". */
void run_case_put(const run_case *c, const char *type);

/* Writes the forward's results, o (rounded to dtype) and lse, as inputs of a backward. */
void run_case_put_forward(const run_case *c);

/* NAME.npy is float32, has the tensor's shape and the oracle's values. */
void run_case_judge(const run_case *c, const char *name);
void run_case_judge_gradients(const run_case *c); /* dq, dk, dv */

/* Do the two files hold the same bytes? */
int run_case_equal(const char *a, const char *b);

#endif
