/* t_api_align.c - fg_select by what tensors are aligned to: which family computes them, and which
 * launches are refused. */
#include "api_case.h"
#include "launch.h"

#include <stdlib.h>
#include <string.h>

static const char *family_of(const fg_kernel *kernel) {
  return fg_plan_family(&kernel->variant.plan);
}

/* What is aligned goes to tensor cores, for any shape; what is not goes to simt, as far as the
 * restrictions let it. */
TEST(test_alignment) {
  static const struct {
    int64_t align;
    int simt;
  } rows[] = {{0, 0}, {16, 0}, {32, 0}, {48, 0}, {1 << 20, 0}, {2, 1}, {4, 1}, {8, 1}, {24, 1}};
  static const char *const words[] = {"head_dim=8", "head_dim=8 pass=backward",
                                      "head_dim=8 pass=backward deterministic=true"};
  fg_context *context = api_open("cache");
  for (int w = 0; w < 3; w++) {
    fg_op *op = api_define(context, words[w]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      fg_shape shape = api_shape;
      shape.align = rows[i].align;
      fg_kernel *kernel = api_select(op, shape);
      ck_assert_msg((strcmp(family_of(kernel), "simt") == 0) == rows[i].simt, "align %d: %s",
                    (int)rows[i].align, kernel->name);
    }
  }
  fg_close(context);
}

/* The kernel for what is not aligned computes it; the other one says which tensor is wrong. */
TEST(test_misaligned_launch) {
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, "head_dim=8");
  fg_shape shape = api_shape;
  fg_kernel *aligned = api_select(op, shape);
  shape.align = 2;
  fg_kernel *any = api_select(op, shape);
  fg_problem *p = api_problem(aligned, (fg_shape)SHAPE(2, 2, 1, 20, 37, 0), 1);
  p->args.k.stride[0] -= 4; /* batches overlap: of an input they may */
  GOOD(api_launch(any, p));
  FAILS(FG_EARGUMENT, "k: a stride of 292 elements is not a multiple of 16 bytes",
        api_launch(aligned, p));
  fg_problem_free(p);
  fg_close(context);
}

TEST(test_alignment_refused) {
  fg_kernel *untouched = (fg_kernel *)1, *kernel = untouched;
  fg_shape shape = api_shape;
  fg_context *context = api_open("cache");
  shape.align = 2;
  FAILS(FG_EARGUMENT,
        "attn_fwd-bf16-d8: no plan that may be taken computes tensors aligned to 2 bytes",
        fg_select(api_define(context, "head_dim=8 family=mma"), &shape, NULL, &kernel));
  api_kernel(context, "head_dim=8 family=mma"); /* the same op for another shape */
  fg_close(context);
  setenv("FLASHGEN_PLAN", "mma-*", 1);
  context = api_open("cache");
  shape.align = 8;
  FAILS(FG_EARGUMENT, "computes tensors aligned to 8 bytes",
        fg_select(api_define(context, "head_dim=8"), &shape, NULL, &kernel));
  fg_close(context);
  ck_assert_ptr_eq(kernel, untouched);
}

/* Where another family computes it, simt is not missed; where only the tensors are in the way, it
 * is. */
TEST(test_no_fallback_needed) {
  fg_config config = api_config("cache");
  fg_kernel *kernel = NULL;
  fg_context *context;
  fg_shape shape = api_shape;
  config.no_fallback = 1;
  GOOD(fg_open(&config, &context));
  fg_op *op = api_define(context, "head_dim=8");
  ck_assert_str_eq(family_of(api_select(op, shape)), "mma");
  shape.align = 2;
  FAILS(FG_ESPEC, "attn_fwd-bf16-d8: only simt computes it, and no_fallback is set",
        fg_select(op, &shape, NULL, &kernel));
  ck_assert_ptr_null(kernel);
  fg_close(context);
}

TEST_FIXTURE(api_enter, api_leave)
