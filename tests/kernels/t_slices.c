/* t_slices.c - slices=true: random lists of slices of every family against the oracle, in which a
 * pair is of the first slice that shows it. Lists of a seed are as reference_slices.h says. */
#include "kernel_case.h"

#define BACKWARD "pass=backward "

static const char *const specs[] = {
    "head_dim=64 mask=window(20,3) dropout=true",
    "head_dim=40/24 mask=p-k<9 score=alibi sink=true",
    "head_dim=128 score=softcap(5.0) dtype=f16 max_logit=true",
    "head_dim=192/128 mask=chunked(48) bias=true bias_dims=[h,q,k]",
    "head_dim=72 mask=k<=p&&ids[k]!=own[q] inputs.ids=i32[k] inputs.own=i32[q] score=s*x[q]+nk-k "
    "inputs.x=f32[q]",
    "head_dim=256 mask=causal normalizer=logsoftmax",
    "head_dim=32 normalizer=retention mask=causal",
    BACKWARD "head_dim=16 mask=causal deterministic=true",
    BACKWARD "head_dim=64 mask=window(20,3) dropout=true",
    BACKWARD "head_dim=40/24 mask=p-k<9 score=alibi sink=grad",
    BACKWARD "head_dim=128 score=softcap(5.0) dtype=f16 mask=causal deterministic=true",
    BACKWARD "head_dim=64 bias=grad bias_dims=[h,q] mask=k%3==0 normalizer=sigmoid",
    BACKWARD "head_dim=64 score=s+t[q-k+300] inputs.t=f32[600]grad mask=causal",
    BACKWARD "head_dim=256",
};
enum { SPECS = sizeof specs / sizeof *specs, LISTS = 6 };

static const fg_shape shapes[] = {SHAPE(1, 2, 1, 40, 70, 0),  SHAPE(1, 1, 1, 139, 203, 0),
                                  SHAPE(1, 2, 2, 203, 37, 0), SHAPE(1, 1, 1, 1, 300, 0),
                                  SHAPE(1, 4, 2, 70, 70, 0),  SHAPE(1, 1, 1, 33, 1, 0)};
enum { SHAPES = sizeof shapes / sizeof *shapes };

TEST_TENTH(lists_of_any_shape, SPECS) {
  kernels made = kernels_of_families(_i, "slices=true %s", specs[_i]);
  ck_assert_int_gt(made.n, 0);
  for (int n = 0; n < made.n; n++)
    for (uint64_t i = 0; i < LISTS; i++)
      kernel_verify(&made.list[n], &(verify_case){.shape = shapes[i % SHAPES],
                                                  .again = i % 5 == 0,
                                                  .style = (verify_style)(i / 2 % VERIFY_STYLES),
                                                  .seed = 1 + i + 1000 * (uint64_t)_i});
  kernels_free(&made);
}

/* Many small problems, of the families in turn. */
TEST_TENTH(thousands, 2) {
  static const char *const passes[] = {"mask=window(6,2) max_logit=true", BACKWARD "mask=causal"};
  kernels made = kernels_of_families(_i, "slices=true head_dim=16 %s", passes[_i]);
  for (uint64_t i = 0; i < (_i ? 400 : 1000); i++)
    kernel_verify(&made.list[i % (uint64_t)made.n],
                  &(verify_case){.shape = SHAPE(1, 2, 1, 12 + (int64_t)(i * 7 % 40),
                                                12 + (int64_t)(i * 11 % 50), 0),
                                 .seed = (uint64_t)_i * 10007 + i});
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
