/* work_logsoftmax.c - log-softmax of rows: shapes and operations. */
#include "work.h"

/* Forward a maximum, a difference, an exponential, a sum and a difference an element; backward a
 * sum, an exponential, a product and a difference. */
static double flops(const cli *c, const fg_point *point, const fg_shape *shape) {
  const int each = point->pass == FG_PASS_BACKWARD ? 4 : 5;
  (void)c;
  return (double)each * (double)shape->rows * point->width;
}

static bool flops_known(const cli *c, const fg_point *point) {
  (void)c, (void)point;
  return true;
}

/* 2^27 elements, and a quarter of them. */
static int bench(const fg_point *point, bool host, fg_shape shapes[CLI_BENCH_SHAPES]) {
  for (int i = 0; i < CLI_BENCH_SHAPES; i++)
    shapes[i] = (fg_shape){.rows = ((1 << 25) << 2 * i) / point->width + 1};
  if (host) shapes[0].rows = 8;
  return host ? 1 : CLI_BENCH_SHAPES;
}

const cli_work cli_work_logsoftmax = {
    .check = {{.rows = 37}, {.rows = 8}, {.rows = 64}, {.rows = 1}, {.rows = 3}},
    .one = {.rows = 64},
    .many = {.rows = 129},
    .far = {.rows = 5},
    .tune = {.rows = 41},
    .bench = bench,
    .flops = flops,
    .flops_known = flops_known,
    .shape_words = "A shape of log-softmax reads 4096 rows.",
    .operation_words = "Log-softmax does five operations for each element, four backward."};
