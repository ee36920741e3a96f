/* t_linear_wgmma.c - linear layers on warpgroup products: each epilogue in each form against the
 * oracle, tiles that are not whole, several of them in turn, and sums in parts. */
#include "launch_case.h"

static const char *const epilogues[] = {"none", "relu",  "gelu",  "gelu_erf",
                                        "silu", "reglu", "geglu", "swiglu"};
enum { EPILOGUES = sizeof epilogues / sizeof *epilogues };

static void verify(kernels made, int expected, int64_t rows) {
  ck_assert_int_eq(made.n, expected);
  for (int n = 0; n < made.n; n++)
    kernel_verify(&made.list[n], &(verify_case){.shape = {.rows = rows},
                                                .style = (verify_style)(n % VERIFY_STYLES),
                                                .seed = 11 + (uint64_t)n});
  kernels_free(&made);
}

/* Widths of less than a step of the sums and of more than the ring has; columns of a part of a
 * tile, and of more than one. Gated pairs are 64 values at a time. */
TEST_TENTH(every_epilogue, 2 * EPILOGUES) {
  static const char *const widths[] = {"24/128", "456/328"}, *const gated[] = {"24/64", "456/192"};
  static const char *const dtypes[] = {"bf16", "f16"};
  const char *width = (_i % EPILOGUES < 5 ? widths : gated)[_i / EPILOGUES];
  verify(kernels_first("kernel=linear family=wgmma dtype=%s epilogue=%s width=%s bias=false,true "
                       "residual=false,true",
                       dtypes[_i % 2], epilogues[_i % EPILOGUES], width),
         4, _i < EPILOGUES ? 130 : 300);
  verify(kernels_first("kernel=linear family=wgmma pass=backward dtype=%s epilogue=%s width=%s "
                       "bias=false,grad",
                       dtypes[_i % 2], epilogues[_i % EPILOGUES], width),
         2, _i < EPILOGUES ? 130 : 300);
}

/* Clusters of two, four and eight blocks that have all columns of a row: the last one whole tiles
 * of them, a part, or none; sums of one step, of fewer than the ring has, and of more; several
 * tiles in turn. */
TEST_TENTH(norms, 5) {
  static const char *const widths[] = {"456/328", "40/512", "24/744", "16/1480", "16/1288"};
  verify(kernels_first("kernel=linear family=wgmma dtype=%s epilogue=layernorm,rmsnorm width=%s "
                       "bias=false,true residual=false,true",
                       _i % 2 ? "f16" : "bf16", widths[_i]),
         8, 130);
  verify(kernels_first("kernel=linear family=wgmma epilogue=layernorm width=%s bias=true "
                       "residual=true block_q=64",
                       widths[_i]),
         1, 500);
  verify(kernels_first("kernel=linear family=wgmma pass=backward dtype=%s width=%s bias=grad "
                       "epilogue=layernorm,rmsnorm",
                       _i % 2 ? "f16" : "bf16", widths[_i]),
         2, 130);
}

/* Rows that no cluster holds: their norm is a step of its own, which adds bias and residual. */
TEST_TENTH(wide_norms, 1) {
  verify(kernels_first("kernel=linear family=wgmma epilogue=layernorm,rmsnorm width=16/2056 "
                       "bias=false,true residual=false,true"),
         8, 130);
}

/* Blocks merge parts in one order: equal launches give equal bits. */
TEST_TENTH(norm_repeats, 1) {
  kernels made = kernels_first("kernel=linear family=wgmma width=72/744 epilogue=layernorm "
                               "bias=true residual=true");
  ck_assert_int_eq(made.n, 1);
  launch_repeats(&made.list[0], (fg_shape){.rows = 300}, 5);
  kernels_free(&made);
}

/* Every plan; no row, one, and rows of more tiles than the device has blocks. */
TEST_TENTH(every_plan, 3) {
  static const int64_t rows[] = {0, 1, 1900};
  verify(kernels_new("kernel=linear family=wgmma width=72/136 epilogue=relu bias=true"), 2,
         rows[_i]);
  verify(kernels_new("kernel=linear family=wgmma pass=backward width=72/136 epilogue=relu "
                     "bias=grad"),
         1, rows[_i]);
}

/* Blocks share the sums of dw: equal launches give equal bits, whatever the order of blocks. */
TEST_TENTH(parts_in_order, 1) {
  kernels made =
      kernels_new("kernel=linear family=wgmma pass=backward width=16/24 bias=grad epilogue=gelu");
  ck_assert_int_eq(made.n, 1);
  launch_repeats(&made.list[0], (fg_shape){.rows = 2500}, 5);
  kernels_free(&made);
}

/* What backward needs is not written where it is not asked for; y is the same. Rows of y and of a
 * residual lie apart, as in a view of more columns. */
TEST(keep_is_optional) {
  kernels made = kernels_first("kernel=linear family=wgmma width=72/192 epilogue=relu,gelu,swiglu "
                               "bias=true residual=true");
  for (int n = 0; n < made.n; n++) {
    launch l = launch_new(&made.list[n], (fg_shape){.rows = 140}, 3);
    launch without = launch_new(&made.list[n], (fg_shape){.rows = 140}, 3);
    launch_drop(&without, "keep");
    launch_layout(&without, "y", "nd", 8);
    launch_run(&l, 1), launch_run(&without, 1);
    launch_same(&l, &without, "y");
    launch_free(&l), launch_free(&without);
  }
  kernels_free(&made);
}
