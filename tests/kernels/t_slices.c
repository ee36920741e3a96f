/* t_slices.c - slices=true: thousands of random lists of slices against the oracle, and long ones.
 * Lists of a seed are as reference_slices.h says. */
#include "kernel_case.h"

#define BACKWARD "pass=backward "

/* Many small problems, of the families in turn, a hundred a case: of forward, then of backward. */
enum { HUNDREDS = 14, OF_FORWARD = 10 };
TEST_TENTH(thousands, HUNDREDS) {
  static const char *const passes[] = {"mask=window(6,2) max_logit=true", BACKWARD "mask=causal"};
  const int pass = _i >= OF_FORWARD;
  const uint64_t first = 100 * (uint64_t)(pass ? _i - OF_FORWARD : _i);
  kernels made = kernels_of_families(pass, "slices=true head_dim=16 %s", passes[pass]);
  for (uint64_t i = first; i < first + 100; i++)
    kernel_verify(&made.list[i % (uint64_t)made.n],
                  &(verify_case){.shape = SHAPE(1, 2, 1, 12 + (int64_t)(i * 7 % 40),
                                                12 + (int64_t)(i * 11 % 50), 0),
                                 .seed = (uint64_t)pass * 10007 + i});
  kernels_free(&made);
}

/* More slices than a warp looks through at once, side by side; most have no tokens. */
TEST_TENTH(long_lists, 2) {
  static const char *const passes[] = {"mask=causal", BACKWARD "mask=causal"};
  kernels made = kernels_of_families(_i, "slices=true head_dim=16 %s", passes[_i]);
  for (int n = 0; n < made.n; n++) {
    fg_shape shape = SHAPE(1, 1, 1, 40, 90, 0);
    shape.slices = 1300;
    kernel_verify(&made.list[n], &(verify_case){.shape = shape, .seed = 4});
  }
  kernels_free(&made);
}
