/* work_linear.c - linear layers: shapes and operations. */
#include "work.h"

#include "reference/oracle_epilogue.h"

/* A product and a sum for each weight and row; backward for x and for w. */
static double flops(const cli *c, const fg_point *point, const fg_shape *shape) {
  const oracle_epilogue *epilogue = oracle_epilogue_find(point->epilogue);
  const double columns = (double)point->width_out * (epilogue && epilogue->is_gated ? 2 : 1);
  const int products = point->pass == FG_PASS_BACKWARD ? 2 : 1;
  (void)c;
  return 2.0 * products * (double)shape->rows * point->width * columns;
}

static bool flops_known(const cli *c, const fg_point *point) {
  (void)c;
  return oracle_epilogue_find(point->epilogue) != NULL;
}

/* Rows of a batch of training, and four such batches. */
static int bench(const fg_point *point, bool host, fg_shape shapes[CLI_BENCH_SHAPES]) {
  (void)point;
  for (int i = 0; i < CLI_BENCH_SHAPES; i++) shapes[i] = (fg_shape){.rows = 4096 << 2 * i};
  if (host) shapes[0].rows = 8;
  return host ? 1 : CLI_BENCH_SHAPES;
}

const cli_work cli_work_linear = {
    .check = {{.rows = 37}, {.rows = 8}, {.rows = 130}, {.rows = 1}, {.rows = 0}},
    .one = {.rows = 64},
    .many = {.rows = 129},
    .far = {.rows = 5},
    .tune = {.rows = 41},
    .bench = bench,
    .flops = flops,
    .flops_known = flops_known,
    .shape_words = "A shape of a linear layer reads 4096 rows.",
    .operation_words =
        "A linear layer does two operations for each row and weight, four backward."};
