/* odd_case.h - attention by the normaliser `rooted` of tests/kernels/normalizers, in float64: what
 * a launch of one of its kernels gives, and how far it is from that. */
#ifndef FG_TESTS_ODD_CASE_H
#define FG_TESTS_ODD_CASE_H

#include "launch_case.h"

/* What a spec computes besides. bias: 0 where the kernel takes none. */
typedef struct odd_spec {
  const char *words;
  double (*score)(double s, double bias);
  double (*score_slope)(double s);
  bool (*sees)(int64_t q, int64_t k, int64_t nq, int64_t nk);
} odd_spec;

/* Draws inputs, a backward's o and lse among them; launches the kernel on the shape with the scale,
 * 0: the default; and checks every output. */
void odd_check(const kernel *k, const odd_spec *spec, fg_shape shape, float scale, uint64_t seed);

#endif
