/* work_combine.c - combining parts of attention: shapes and operations. */
#include "work.h"

/* A product and a sum for each element of each part. */
static double flops(const cli *c, const fg_point *point, const fg_shape *s) {
  (void)c;
  return 2.0 * (double)(s->parts * s->b * s->nq * s->h) * point->dv;
}

static bool flops_known(const cli *c, const fg_point *point) {
  (void)c, (void)point;
  return true;
}

/* 2^27 elements in 4 parts, as a ring of GPUs leaves them; one token of 64 sequences in 32 parts.
 */
static int bench(const fg_point *point, bool host, fg_shape shapes[CLI_BENCH_SHAPES]) {
  shapes[0] = (fg_shape){.parts = 4, .b = 4, .h = 16, .nq = host ? 8 : (1 << 19) / point->dv + 1};
  shapes[1] = (fg_shape){.parts = 32, .b = 64, .h = 32, .nq = 1};
  return host ? 1 : CLI_BENCH_SHAPES;
}

/* Shapes of a check: as many parts as lanes and more, of which some are cut off at both edges; one;
 * as many as there may be; rows that no block is full of. */
const cli_work cli_work_combine = {
    .check = {{.parts = 5, .b = 2, .h = 3, .nq = 7},
              {.parts = 33, .b = 1, .h = 2, .nq = 5},
              {.parts = 1, .b = 3, .h = 1, .nq = 4},
              {.parts = 256, .b = 1, .h = 1, .nq = 3},
              {.parts = 8, .b = 1, .h = 5, .nq = 1}},
    .one = {.parts = 4, .b = 1, .h = 2, .nq = 64},
    .many = {.parts = 3, .b = 7, .h = 1, .nq = 5},
    .far = {.parts = 3, .b = 2, .h = 2, .nq = 5},
    .tune = {.parts = 21, .b = 2, .h = 3, .nq = 7},
    .bench = bench,
    .flops = flops,
    .flops_known = flops_known,
    .shape_words =
        "A shape of combine reads 8 parts b4 h32 1024: 8 parts of 4 sequences, 32 heads, "
        "1024 rows.",
    .operation_words = "Combine does two operations for each element of each part."};
