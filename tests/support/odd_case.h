/* odd_case.h - attention by normalisers of tests/kernels/normalizers, in float64: what a launch of
 * one of their kernels gives, and how far it is from that. */
#ifndef FG_TESTS_ODD_CASE_H
#define FG_TESTS_ODD_CASE_H

#include "launch_case.h"

/* Of n scores of one row, those that the mask shows: the weights p; returns the number that is
 * kept. */
typedef double odd_weigh(int64_t n, const double *score, double *p);

/* The gradient at a score, from its weight, its dP, dO . O of the row and the gradient of what is
 * kept; `size`: that of the terms that make it. */
typedef double odd_slope(double p, double dp, double dot, double dkept, double *size);

typedef struct odd_normalizer {
  const char *name;
  odd_weigh *weigh;
  odd_slope *slope;
} odd_normalizer;
extern const odd_normalizer odd_none, odd_rooted;

/* What a spec computes besides. bias: 0 where the kernel takes none. */
typedef struct odd_spec {
  const char *words;
  double (*score)(double s, double bias);
  double (*score_slope)(double s);
  bool (*sees)(int64_t q, int64_t k, int64_t nq, int64_t nk);
} odd_spec;

/* Draws inputs, a backward's o and lse among them; launches the kernel on the shape with the scale,
 * 0: the default; and checks every output. */
void odd_check(const kernel *k, const odd_normalizer *normalizer, const odd_spec *spec,
               fg_shape shape, float scale, uint64_t seed);

#endif
