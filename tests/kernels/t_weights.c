/* t_weights.c - normalisers beside softmax in every family: retention, none, sigmoid,
 * log-softmax; with masks,
 * scores, biases, head dims and layouts, lengths from 0. */
#include "kernel_case.h"
#include "words.h"

static const char *const normalizers[] = {"retention", "none", "sigmoid", "logsoftmax"};
enum { NORMALIZERS = sizeof normalizers / sizeof *normalizers };

static const char *const hooks[] = {
    "head_dim=64 mask=causal",
    "head_dim=40 dtype=f16 mask=window(20,3)",
    "head_dim=128 score=softcap(5.0)",
    "head_dim=192/128 mask=causal score=alibi",
    "head_dim=64 bias=grad bias_dims=[h,q,k]",
    "head_dim=256 mask=chunked(48) bias=grad bias_dims=[h,k] bias_dtype=f32",
    "head_dim=64 mask=causal q_layout=packed kv_layout=packed",
    "head_dim=72 mask=causal score=s*w[h] inputs.w=f32[h]grad",
    "head_dim=128 mask=causal score=s*m[h,q,k] inputs.m=bf16[h,q,k]grad",
    "head_dim=64 dtype=f16 mask=causal score=s*exp(float(k-p)*abs(w[h])*0.02) inputs.w=f32[h]grad",
};
enum { HOOKS = sizeof hooks / sizeof *hooks };

/* All of one kernel: a launch's own bias too, which what has none does not take. */
static void verify(const kernel *k) {
  static const fg_shape shapes[] = {SHAPE(2, 4, 2, 70, 150, 0), SHAPE(1, 2, 1, 33, 0, 0),
                                    SHAPE(1, 3, 3, 0, 9, 0), SHAPE(2, 4, 1, 1, 70, 0),
                                    SHAPE(1, 2, 2, 90, 1, 0)};
  for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
    verify_case which = {.shape = shapes[i], .style = (verify_style)(i % VERIFY_STYLES)};
    which.seed = 1 + (uint64_t)i;
    kernel_verify(k, &which);
    if (i || !k->source->recipe.takes) continue;
    which.launch = (fg_launch_values){FG_GIVEN_SIGMOID_BIAS, {0.75f}};
    kernel_verify(k, &which);
  }
}

/* Each hook has two of the normalisers, one in each pass, and log-softmax, whose accumulators are
 * two. */
TEST_TENTH(in_every_family, 4 * HOOKS) {
  const int hook = _i / 4, pass = _i % 2, own = _i / 2 % 2;
  const char *normalizer = own ? "logsoftmax" : normalizers[(hook + pass) % (NORMALIZERS - 1)];
  kernels made = kernels_of_families(_i, "pass=%s normalizer=%s %s", pass ? "backward" : "forward",
                                     normalizer, hooks[hook]);
  ck_assert_int_gt(made.n, 1);
  for (int i = 0; i < made.n; i++) verify(&made.list[i]);
  kernels_free(&made);
}

static const char *const caches[] = {"kv_layout=cached", "kv_layout=paged",
                                     "q_layout=packed kv_layout=paged"};
enum { CACHES = sizeof caches / sizeof *caches };

TEST_TENTH(in_caches, NORMALIZERS) {
  kernels made = kernels_of_families(_i, "normalizer=%s head_dim=64 mask=causal %s",
                                     normalizers[_i], caches[_i % CACHES]);
  for (int i = 0; i < made.n; i++) verify(&made.list[i]);
  kernels_free(&made);
}
