/* work_append.c - new rows of a cache: shapes and operations. */
#include "work.h"

/* Two products and a sum for each column that turns. */
static double flops(const cli *c, const fg_point *point, const fg_shape *s) {
  const int turning = !point->rotary ? 0 : point->rotary_dim ? point->rotary_dim : point->d;
  (void)c;
  return 3.0 * (double)(s->b * s->nq * (s->h + s->hk)) * turning;
}

static bool flops_known(const cli *c, const fg_point *point) {
  (void)c, (void)point;
  return true;
}

/* New rows of all that the cache has. */
static double written(const fg_shape *s) {
  const double most = (double)(s->page ? s->pages * s->page : (s->pages ? s->pages : s->b) * s->nk);
  return most > 0 ? (double)(s->tokens_q ? s->tokens_q : s->b * s->nq) / most : 1;
}

/* A prompt of 4 sequences; one token of 64. */
static int bench(const fg_point *point, bool host, fg_shape shapes[CLI_BENCH_SHAPES]) {
  shapes[0] = (fg_shape){.b = 4, .h = 32, .hk = 8, .nq = host ? 8 : 4096, .nk = host ? 64 : 8192};
  shapes[1] = (fg_shape){.b = 64, .h = 32, .hk = 8, .nq = 1, .nk = 4096};
  (void)point;
  for (int i = 0; i < CLI_BENCH_SHAPES; i++) shapes[i].positions = shapes[i].nk;
  return host ? 1 : CLI_BENCH_SHAPES;
}

/* Rows that blocks are full of, and not; one head, one row, no row. */
const cli_work cli_work_append = {
    .check = {{.b = 3, .h = 4, .hk = 2, .nq = 7, .nk = 40, .positions = 48},
              {.b = 2, .h = 5, .hk = 5, .nq = 4, .nk = 20, .positions = 20},
              {.b = 5, .h = 33, .hk = 33, .nq = 1, .nk = 9, .positions = 7},
              {.b = 1, .h = 1, .hk = 1, .nq = 13, .nk = 12, .positions = 30},
              {.b = 3, .h = 2, .hk = 1, .nq = 0, .nk = 12, .positions = 12}},
    .one = {.b = 2, .h = 2, .hk = 2, .nq = 4, .nk = 64, .positions = 64},
    .many = {.b = 9, .h = 2, .hk = 1, .nq = 3, .nk = 20, .positions = 24},
    .far = {.b = 2, .h = 2, .hk = 2, .nq = 3, .nk = 10, .positions = 12},
    .tune = {.b = 3, .h = 4, .hk = 2, .nq = 7, .nk = 40, .positions = 48},
    .bench = bench,
    .flops = flops,
    .flops_known = flops_known,
    .shape_words =
        "A shape of append reads b4 h32/8 16 to 8192: 16 rows for each of 4 caches of at "
        "most 8192.",
    .operation_words = "Append does three operations for each column that turns.",
    .written = written};
