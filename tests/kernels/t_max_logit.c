/* t_max_logit.c - the largest scaled product of a head, of every family: beside masks, scores,
 * biases, normalisers and layouts, scales of both signs, and of heads that see nothing. */
#include "kernel_case.h"

static const char *const specs[] = {
    "head_dim=64 mask=causal",
    "head_dim=40 dtype=f16 mask=window(20,3) normalizer=none",
    "head_dim=128 score=softcap(5.0)",
    "head_dim=192/128 mask=causal score=alibi sink=true",
    "head_dim=64 bias=true bias_dims=[h,q,k]",
    "head_dim=256 mask=chunked(48) bias=true bias_dims=[h,k] bias_dtype=f32",
    "head_dim=64 mask=causal q_layout=packed kv_layout=packed",
    "head_dim=64 mask=dilated(3) q_layout=packed kv_layout=paged",
    "head_dim=72 mask=k<=p&&ids[k]==0 inputs.ids=i32[k] score=s*s+tanh(s)",
    "head_dim=256 mask=causal normalizer=logsoftmax",
    "head_dim=64 normalizer=sigmoid kv_layout=cached",
    "head_dim=128 dropout=true mask=causal normalizer=softmax",
};
enum { SPECS = sizeof specs / sizeof *specs };

TEST_TENTH(in_every_family, SPECS) {
  static const fg_shape shapes[] = {SHAPE(2, 4, 2, 70, 150, 0), SHAPE(1, 2, 1, 33, 0, 0),
                                    SHAPE(2, 4, 1, 1, 70, 0), SHAPE(1, 2, 2, 90, 1, 0),
                                    SHAPE(3, 2, 2, 139, 339, 0)};
  static const float scales[] = {0.125F, 1, -0.25F, 0, -1};
  kernels made = kernels_of_families(_i, "max_logit=true %s", specs[_i]);
  ck_assert_int_gt(made.n, 1);
  for (int n = 0; n < made.n; n++)
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
      kernel_verify(&made.list[n], &(verify_case){.shape = shapes[i],
                                                  .given = FG_GIVEN_SCALE,
                                                  .scale = scales[i],
                                                  .again = 1,
                                                  .style = (verify_style)(i % VERIFY_STYLES),
                                                  .seed = 1 + (uint64_t)i});
  kernels_free(&made);
}

/* Tiles of keys in parts, of which each has its own. */
TEST_TENTH(in_parts, 1) {
  kernels made = kernels_new("max_logit=true head_dim=64 family=wgmma key_parts=16");
  ck_assert_int_gt(made.n, 0);
  for (int n = 0; n < made.n; n++)
    kernel_verify(&made.list[n], &(verify_case){.shape = SHAPE(1, 1, 1, 100, 4000, 0), .seed = 3});
  kernels_free(&made);
}
