/* work_layernorm.c - layer and RMS norm of rows: shapes and operations. */
#include "work.h"

/* Forward two sums, a difference, a square, and the result's product, product and sum; backward
 * twice as many. */
static double flops(const cli *c, const fg_point *point, const fg_shape *shape) {
  const int each = point->pass == FG_PASS_BACKWARD ? 14 : 7;
  (void)c;
  return (double)each * (double)shape->rows * point->width;
}

static bool flops_known(const cli *c, const fg_point *point) {
  (void)c, (void)point;
  return true;
}

/* 2^27 elements, and an eighth of them. */
static int bench(const fg_point *point, bool host, fg_shape shapes[CLI_BENCH_SHAPES]) {
  for (int i = 0; i < CLI_BENCH_SHAPES; i++)
    shapes[i] = (fg_shape){.rows = ((1 << 24) << 3 * i) / point->width + 1};
  if (host) shapes[0].rows = 8;
  return host ? 1 : CLI_BENCH_SHAPES;
}

const cli_work cli_work_layernorm = {
    .check = {{.rows = 37}, {.rows = 8}, {.rows = 64}, {.rows = 1}, {.rows = 3}},
    .one = {.rows = 64},
    .many = {.rows = 129},
    .far = {.rows = 5},
    .tune = {.rows = 41},
    .bench = bench,
    .flops = flops,
    .flops_known = flops_known,
    .shape_words = "A shape of a norm of rows reads 4096 rows.",
    .operation_words = "A norm of rows does seven operations for each element, 14 backward."};
