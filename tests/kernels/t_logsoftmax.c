/* t_logsoftmax.c - log-softmax of rows on a device: every plan, forward and backward, against the
 * oracle; and what the kernels may not touch. */
#include "launch_case.h"

#include <math.h>
#include <stdlib.h>

#define PASSES "kernel=logsoftmax pass=forward,backward "

/* One column; a few lanes a row; a warp; several warps; blocks of a cluster, and a row that is read
 * twice. Those that are no multiple of 8 begin and end within a chunk. */
#define WIDTHS "width=1,33,1000,1021,5000,20001%s "

/* No row, one, as many as a block has, one more, and many. */
static const int64_t rows[] = {0, 1, 4, 5, 23};
enum { ROWS = sizeof rows / sizeof *rows };

/* Wide rows few times. */
static void verify_all(const kernel *k) {
  const bool on_host = fg_arch_is_host(kernel_device()->arch); /* where it needs no memory */
  const bool is_wide = k->variant.point.width > 10000;
  for (int r = 0; r < ROWS - 2 * is_wide; r++)
    for (int style = 0; style < VERIFY_STYLES; style++)
      if ((!is_wide && r == 4) || style == r % VERIFY_STYLES)
        kernel_verify(k, &(verify_case){.shape = {.rows = rows[r]},
                                        .style = (verify_style)style,
                                        .contiguous = r % 2,
                                        .far = r == 3 && on_host,
                                        .again = r == 4,
                                        .seed = 90 + (uint64_t)(7 * r + style)});
}

TEST_TENTH(every_plan, 6) {
  static const char *const dtype[] = {"bf16", "f16", "f32"};
  kernels made = kernels_new(PASSES WIDTHS "dtype=%s target=%s", _i ? "" : ",70000", dtype[_i / 2],
                             _i % 2 ? "true" : "false");
  ck_assert_int_ge(made.n, 2 * 6); /* passes, widths */
  for (int n = 0; n < made.n; n++) verify_all(&made.list[n]);
  kernels_free(&made);
}

/* A NaN or an infinity in a row is that row's alone. */
static void check_rows(launch *l, const char *input, const char *output, float value) {
  const int64_t width = l->kernel->variant.point.width, n = launch_count(l, input);
  float *x = launch_get(l, input);
  for (int64_t i = 0; i < n; i++) x[i] = -1.0f - (float)(i % 5);
  x[2 * width + 1] = value;
  launch_set(l, input, x);
  free(x);
  launch_run(l, 3);
  x = launch_get(l, output);
  int odd = 0;
  for (int64_t i = 0; i < n; i++) {
    const bool in_row = i / width == 2;
    ck_assert_msg(in_row || isfinite(x[i]), "%s: %s, row %d, column %d: %g", l->kernel->name,
                  output, (int)(i / width), (int)(i % width), (double)x[i]);
    odd += in_row && !isfinite(x[i]);
  }
  ck_assert_msg(odd > 0, "%s: %s shows nothing of it", l->kernel->name, output);
  free(x);
}

TEST(nonfinite) {
  kernels made = kernels_new(PASSES "width=33");
  for (int n = 0; n < made.n; n++) {
    const bool backward = made.list[n].variant.point.pass == FG_PASS_BACKWARD;
    for (int i = 0; i < 2; i++) {
      launch l = launch_new(&made.list[n], (fg_shape){.rows = 6}, 5);
      check_rows(&l, backward ? "dy" : "x", backward ? "dx" : "y", i ? NAN : INFINITY);
      launch_free(&l);
    }
  }
  kernels_free(&made);
}

TEST_TIMEOUT(300)
