/* t_api_select.c - fg_select: which kernel a shape gets, what is remembered of it, and which shapes
 * and streams are refused. */
#include "api_case.h"
#include "launch.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "head_dim=8 block_q=4" /* one plan, the fastest to compile */

/* One class, one choice; another class, another choice, and a compile only for another plan. */
TEST(test_classes) {
  static const fg_shape same[] = {SHAPE(1, 2, 1, 21, 39, 0), SHAPE(1, 2, 1, 20, 37, 16),
                                  SHAPE(1, 3, 1, 23, 36, 32)};
  static const fg_shape other[] = {SHAPE(1, 2, 1, 24, 37, 0), SHAPE(1, 2, 1, 20, 40, 0),
                                   SHAPE(2, 2, 1, 20, 37, 0), SHAPE(1, 2, 1, 20, 37, 4),
                                   SHAPE(1, 2, 2, 20, 37, 0), SHAPE(1, 2, 1, 0, 37, 0)};
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, SMALL);
  fg_kernel *kernel = api_select(op, api_shape);
  api_counts(context, 0, 1, 1, 1);
  for (int i = 0; i < 3; i++) ck_assert_ptr_eq(api_select(op, same[i]), kernel);
  api_counts(context, 0, 1, 1, 1);
  for (int i = 0; i < 6; i++) {
    ck_assert_ptr_eq(api_select(op, other[i]), kernel);
    api_counts(context, 0, 2 + i, 1, 1);
    ck_assert_ptr_eq(api_select(op, other[i]), kernel);
    api_counts(context, 0, 2 + i, 1, 1);
  }
  fg_close(context);
}

/* A batch that some plans have no blocks for goes to one that has, though a plan was taken for as
 * many heads before; where none has, the launch says it. */
TEST(test_large_batches) {
  static const fg_shape below = SHAPE(40000, 2, 2, 1, 1, 0), beyond = SHAPE(70000, 1, 1, 1, 1, 0);
  uint32_t grid[3];
  bool empty;
  for (int backward = 0; backward < 2; backward++) {
    fg_context *context = api_open("cache");
    fg_op *op = api_define(context, backward ? "head_dim=8 pass=backward" : "head_dim=8");
    api_select(op, below);
    const fg_kernel *kernel = api_select(op, beyond);
    const fg_recipe *r = &kernel->source->recipe;
    for (int i = 0; i < r->n_steps; i++)
      if (r->step[i].kind == FG_STEP_LAUNCH) GOOD(fg_step_grid(&r->step[i], &beyond, grid, &empty));
    fg_close(context);
  }
  fg_config config = api_config("cache");
  fg_context *context;
  config.plan = "mma-*";
  GOOD(fg_open(&config, &context));
  fg_kernel *kernel = api_select(api_define(context, "head_dim=8"), beyond);
  fg_problem *problem = api_problem(kernel, beyond, 1);
  FAILS(FG_EARGUMENT, "the shape needs 70000 blocks; at most 65535", api_launch(kernel, problem));
  fg_problem_free(problem);
  fg_close(context);
}

/* Of n classes the ith: 30 lengths of q, 28 of k, 6 batches. */
static fg_shape class_of(int i) {
  return (fg_shape)SHAPE((int64_t)1 << (i / 840 * 2), 1, 1, (int64_t)1 << i % 30,
                         (int64_t)1 << i / 30 % 28, 0);
}

/* Many classes are remembered each; beyond what the memo holds they still work. */
TEST(test_many_classes) {
  enum { REMEMBERED = 200, CLASSES = 5040 };
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, SMALL);
  fg_kernel *kernel = api_select(op, class_of(0));
  for (int again = 0; again < 2; again++)
    for (int i = 0; i < REMEMBERED; i++) ck_assert_ptr_eq(api_select(op, class_of(i)), kernel);
  api_counts(context, 0, REMEMBERED, 1, 1);
  for (int i = REMEMBERED; i < CLASSES; i++) ck_assert_ptr_eq(api_select(op, class_of(i)), kernel);
  api_counts(context, 0, CLASSES, 1, 1);
  for (int i = 0; i < REMEMBERED; i++) ck_assert_ptr_eq(api_select(op, class_of(i)), kernel);
  api_counts(context, 0, CLASSES, 1, 1);
  fg_close(context);
}

/* The name of the kernel that a context of this plan chooses; by the variable if `variable`. */
static void expect_plan(const char *plan, int variable, const char *words, const char *name) {
  fg_config config = api_config("cache");
  fg_context *context;
  fg_info info = FG_INIT(fg_info);
  if (variable) {
    setenv("FLASHGEN_PLAN", plan, 1);
  } else {
    setenv("FLASHGEN_PLAN", "simt-q16-*", 1); /* the field goes first */
    config.plan = plan;
  }
  GOOD(fg_open(&config, &context));
  GOOD(fg_kernel_info(api_kernel(context, words), &info));
  ck_assert_msg(strstr(info.name, name) != NULL, "%s: %s, not %s", plan, info.name, name);
  fg_close(context);
}

TEST(test_forced_plan) {
  const char *four = "simt-q4-k32-w4", *sixteen = "simt-q16-k32-w4";
  for (int variable = 0; variable < 2; variable++) {
    expect_plan("simt-q16-*", variable, "head_dim=8", sixteen);
    expect_plan("simt-q4-k32-w4", variable, "head_dim=8", four);
    expect_plan("other-*,s*-q16-*", variable, "head_dim=8", sixteen);
    expect_plan("*-q512-*,other-q4-*", variable, "head_dim=8", ".mma-"); /* none: as usual */
    expect_plan("*-q512-*,other-q4-*", variable, "head_dim=8 family=simt", four);
    expect_plan("mma-q64-k32-*", variable, "head_dim=8", "mma-q64-k32-s2-w4");
    expect_plan("mma-q64-k32-*,simt-q4-*", variable, "head_dim=8", "mma-q64-k32-s2-w4");
    expect_plan("simt-q4-*", variable, "head_dim=8 family=simt block_q=16",
                sixteen); /* the spec's own limit */
  }
}

/* A plan that matches nothing may be meant for another spec: one warning, whatever is asked for. */
TEST(test_forced_in_vain) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.plan = "mma-q46-*", config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  api_kernel(context, "head_dim=8");
  ck_assert_str_eq(api_warned,
                   "attn_fwd-bf16-d8: none of its plans is \"mma-q46-*\" (FLASHGEN_PLAN or "
                   "config.plan): one is chosen as usual");
  api_kernel(context, "head_dim=8 dtype=f16");
  ck_assert_int_eq(api_warnings, 1);
  fg_close(context);
  config.plan = "mma-q64-*";
  GOOD(fg_open(&config, &context));
  api_kernel(context, "head_dim=8");
  ck_assert_int_eq(api_warnings, 1);
  fg_close(context);
}

static const char *name_of(fg_kernel *kernel) {
  fg_info info = FG_INIT(fg_info);
  GOOD(fg_kernel_info(kernel, &info));
  return info.name;
}

/* One row sees all keys under the causal mask, and a window as long as all of them hides none: the
 * kernel may be one without a mask. It computes what the other does, and is refused elsewhere. */
TEST(test_mask_hides_nothing) {
  fg_context *context = api_open("cache");
  fg_op *causal = api_define(context, SMALL " mask=causal");
  const fg_shape one = SHAPE(2, 2, 1, 1, 37, 0), two = SHAPE(2, 2, 1, 2, 37, 0);
  fg_kernel *whole = api_select(causal, one), *masked = api_select(causal, two);
  ck_assert_str_eq(name_of(whole), "attn_fwd-bf16-d8.simt-q4-k32-w4.host");
  ck_assert_str_eq(name_of(masked), "attn_fwd-bf16-d8-causal.simt-q4-k32-w4.host");
  ck_assert_ptr_eq(api_select(causal, one), whole);
  ck_assert_ptr_ne(api_select(api_define(context, SMALL), one), whole); /* which takes any shape */
  fg_problem *p = api_problem(whole, one, 3), *q = api_problem(masked, one, 3);
  GOOD(api_launch(whole, p));
  GOOD(api_launch(masked, q));
  api_same_outputs(p, q);
  fg_problem_free(p);
  fg_problem_free(q);
  p = api_problem(whole, two, 3);
  FAILS(FG_EARGUMENT, "the kernel was selected for a shape at which the mask hides nothing",
        api_launch(whole, p));
  fg_problem_free(p);
  fg_op *window = api_define(context, SMALL " mask=window(47,100)");
  const fg_shape within = SHAPE(1, 1, 1, 20, 45, 0); /* of its class 47 is the longest */
  ck_assert_str_eq(name_of(api_select(window, within)), "attn_fwd-bf16-d8.simt-q4-k32-w4.host");
  const fg_shape beyond = SHAPE(1, 1, 1, 20, 48, 0);
  ck_assert_ptr_null(strstr(name_of(api_select(window, beyond)), "-d8.simt"));
  fg_release(causal);
  fg_close(context);
}

/* The same of caches, whose sequences may have any number of keys up to the shape's. Of packed rows
 * nothing is known. */
TEST(test_mask_hides_nothing_of_caches) {
  fg_context *context = api_open("cache");
  const fg_shape one = SHAPE(2, 2, 1, 1, 37, 0), two = SHAPE(2, 2, 1, 2, 37, 0);
  fg_op *causal = api_define(context, SMALL " mask=causal kv_layout=cached");
  fg_op *near = api_define(context, SMALL " mask=k+30>=nk kv_layout=cached");
  fg_kernel *whole = api_select(causal, one);
  ck_assert_str_eq(name_of(whole), "attn_fwd-bf16-d8-kvcached.simt-q4-k32-w4.host");
  ck_assert_str_eq(name_of(api_select(causal, two)),
                   "attn_fwd-bf16-d8-causal-kvcached.simt-q4-k32-w4.host");
  ck_assert_ptr_nonnull(strstr(name_of(api_select(near, one)), "-mask_"));
  ck_assert_ptr_nonnull(
      strstr(name_of(api_select(api_define(context, SMALL " mask=causal q_layout=packed"), one)),
             "-causal-"));
  fg_close(context);
}

/* Where only what is there may be taken, nothing else is looked for. */
TEST(test_mask_without_compiler) {
  const fg_shape one = SHAPE(1, 1, 1, 1, 37, 0), two = SHAPE(1, 1, 1, 2, 37, 0);
  fg_context *context = api_open("cache");
  api_select(api_define(context, SMALL " mask=causal"), two);
  fg_close(context);
  setenv("FLASHGEN_JIT", "0", 1);
  context = api_open("cache");
  ck_assert_str_eq(name_of(api_select(api_define(context, SMALL " mask=causal"), one)),
                   "attn_fwd-bf16-d8-causal.simt-q4-k32-w4.host");
  fg_close(context);
}

TEST(test_no_fallback) {
  fg_config config = api_config("cache");
  fg_kernel *untouched = (fg_kernel *)1, *kernel = untouched;
  fg_context *context;
  config.no_fallback = 1;
  GOOD(fg_open(&config, &context));
  FAILS(FG_ESPEC, "attn_fwd-bf16-d8: only simt computes it, and no_fallback is set",
        fg_select(api_define(context, SMALL), &api_shape, NULL, &kernel));
  FAILS(FG_ESPEC, "attn_fwd-bf16-d8: no plan fits",
        fg_select(api_define(context, "head_dim=8 block_q=5"), &api_shape, NULL, &kernel));
  ck_assert_ptr_eq(kernel, untouched);
  api_counts(context, 0, 0, 0, 0);
  api_kernel(context, SMALL " family=simt"); /* named, it is no fallback */
  api_counts(context, 0, 1, 1, 1);
  fg_close(context);
  config.plan = "simt-*";
  GOOD(fg_open(&config, &context));
  api_kernel(context, SMALL);
  fg_close(context);
}

TEST(test_refused_shapes) {
  static const struct {
    fg_shape shape;
    const char *why;
  } wrong[] = {
      {SHAPE(-1, 2, 1, 20, 37, 0), "b = -1: expected 0 to 2^30 - 1"},
      {SHAPE(1, -2, 1, 20, 37, 0), "h = -2"},
      {SHAPE(1, 2, -1, 20, 37, 0), "hk = -1"},
      {SHAPE(1, 2, 1, 1 << 30, 37, 0), "nq = 1073741824: expected 0 to 2^30 - 1"},
      {SHAPE(1, 2, 1, 20, INT64_MAX, 0), "nk = 9223372036854775807"},
      {SHAPE(1, 3, 2, 20, 37, 0), "h = 3 is not a multiple of hk = 2"},
      {SHAPE(1, 2, 0, 20, 37, 0), "h = 2 is not a multiple of hk = 0"},
      {SHAPE(1, 2, 1, 20, 37, -16), "align = -16: expected 0 or more"},
  };
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, SMALL);
  fg_kernel *kernel = api_select(op, api_shape), *untouched = kernel;
  fg_args args = FG_INIT(fg_args);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    FAILS(FG_EARGUMENT, wrong[i].why, fg_select(op, &wrong[i].shape, NULL, &kernel));
    FAILS(FG_EARGUMENT, wrong[i].why, fg_launch(kernel, &wrong[i].shape, &args, NULL, NULL));
    ck_assert_uint_eq(fg_workspace_bytes(kernel, &wrong[i].shape), 0);
  }
  fg_shape sized = api_shape; /* of no header, or within a member */
  for (sized.size = 0; sized.size < 24; sized.size += 9) {
    FAILS(FG_EARGUMENT, "shape: its size is", fg_select(op, &sized, NULL, &kernel));
    FAILS(FG_EARGUMENT, "shape: its size is", fg_launch(kernel, &sized, &args, NULL, NULL));
    ck_assert_uint_eq(fg_workspace_bytes(kernel, &sized), 0);
  }
  ck_assert_ptr_eq(kernel, untouched);
  sized.align = 3; /* an older header's, which does not count what lies behind it */
  sized.size = offsetof(fg_shape, align);
  GOOD(fg_select(op, &sized, NULL, &kernel));
  ck_assert_ptr_eq(kernel, untouched);
  fg_close(context);
}

/* A stream under capture, on a device that says so. */
static bool always(fg_device *device, void *stream) { return (void)device, stream != NULL; }

TEST(test_capture) {
  fg_context *context = api_open("cache");
  fg_device_class class = *context->device->class;
  fg_op *op = api_define(context, "head_dim=8 family=simt");
  fg_kernel *untouched = (fg_kernel *)1, *kernel = untouched;
  fg_shape near = api_shape, large = api_shape;
  near.nk = 64;
  large.nq = 1 << 20; /* another plan is better */
  class.capturing = always;
  context->device->class = &class;
  FAILS(FG_ECAPTURE, "select it before the capture", fg_select(op, &api_shape, op, &kernel));
  api_counts(context, 0, 0, 0, 0);
  fg_kernel *warm = api_select(op, api_shape);
  FAILS(FG_ECAPTURE, "select it before the capture", fg_select(op, &large, op, &kernel));
  ck_assert_ptr_eq(kernel, untouched);
  GOOD(fg_select(op, &api_shape, op, &kernel));
  ck_assert_ptr_eq(kernel, warm);
  GOOD(fg_select(op, &near, op, &kernel)); /* another class, but nothing to load */
  ck_assert_ptr_eq(kernel, warm);
  api_counts(context, 0, 2, 1, 1);
  ck_assert_ptr_ne(api_select(op, large), warm);
  GOOD(fg_select(op, &large, op, &kernel));
  api_counts(context, 0, 3, 2, 2);
  fg_close(context);
}

TEST_FIXTURE(api_enter, api_leave)
