/* t_linear.c - linear layers on a device: forward and backward of both families against the oracle,
 * whose gradients finite differences judge; and what the kernels may not touch. */
#include "launch_case.h"
#include "reference/oracle_linear.h"

#include <math.h>
#include <stdlib.h>

static const char *const dtypes[] = {"bf16", "f16"};
static const char *const epilogues[] = {"none",  "relu",  "gelu",   "gelu_erf",  "silu",
                                        "reglu", "geglu", "swiglu", "layernorm", "rmsnorm"};
enum { EPILOGUES = sizeof epilogues / sizeof *epilogues };

/* Less than a tile of every plan, in both directions; no multiple of one; more than one. */
static const char *const widths[] = {"8", "24/200", "72/40", "200/136"};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* No row, one, less than a tile, more than the rows whose columns a block sums. */
static const int64_t rows[] = {0, 1, 7, 130};
enum { ROWS = sizeof rows / sizeof *rows };

static void verify_all(kernels *made) {
  const bool on_host = fg_arch_is_host(kernel_device()->arch); /* where it needs no memory */
  for (int n = 0; n < made->n; n++)
    for (int r = 0; r < ROWS; r++)
      kernel_verify(&made->list[n], &(verify_case){.shape = {.rows = rows[r]},
                                                   .style = (verify_style)((n + r) % VERIFY_STYLES),
                                                   .contiguous = r == 2,
                                                   .far = r == 2 && n % 4 == 1 && on_host,
                                                   .again = r == 3,
                                                   .seed = 90 + (uint64_t)(7 * r + n)});
  kernels_free(made);
}

/* Every epilogue in either dtype, with and without bias and residual, by both families; widths and
 * sizes of tiles take turns. */
TEST_TENTH(every_epilogue, 2 * EPILOGUES) {
  const int epilogue = _i % EPILOGUES, dtype = _i / EPILOGUES;
  const char *width = widths[(epilogue + 2 * dtype) % WIDTHS];
  const int tile = _i % 2 ? 32 : 64;
  kernels made = kernels_some(_i,
                              "kernel=linear dtype=%s epilogue=%s width=%s bias=false,true "
                              "residual=false,true block_q=%d",
                              dtypes[dtype], epilogues[epilogue], width, tile);
  ck_assert_int_eq(made.n, 4 * 2); /* points, and plans of each */
  verify_all(&made);
  made = kernels_some(_i,
                      "kernel=linear pass=backward dtype=%s epilogue=%s width=%s bias=false,grad "
                      "block_q=%d",
                      dtypes[dtype], epilogues[epilogue], width, tile);
  ck_assert_int_eq(made.n, 2 * 2);
  verify_all(&made);
}

/* Every plan of mma, with tiles of a gate and of what it is multiplied with, and with words of
 * bits. */
TEST_TENTH(every_plan, 2) {
  kernels made = kernels_new("kernel=linear family=mma pass=forward,backward bias=grad "
                             "residual=true width=72/136 epilogue=%s",
                             _i ? "relu" : "swiglu");
  ck_assert_int_eq(made.n, 2 * 6);
  for (int n = 0; n < made.n; n++)
    kernel_verify(&made.list[n], &(verify_case){.shape = {.rows = 150}, .seed = 7});
  kernels_free(&made);
}

/* So many rows that blocks share the sums of dw, and that dbias has many parts: equal launches give
 * equal bits, whatever the order of blocks. */
TEST_TENTH(many_rows, 2) {
  kernels made = kernels_new("kernel=linear family=mma block_q=64 block_kv=64 pass=backward "
                             "width=16/24 bias=grad epilogue=%s",
                             _i ? "gelu" : "none");
  ck_assert_int_eq(made.n, 1);
  kernel_verify(&made.list[0], &(verify_case){.shape = {.rows = 2500}, .seed = 5});
  launch_repeats(&made.list[0], (fg_shape){.rows = 2500}, 5);
  kernels_free(&made);
}

/* What backward needs is not written where it is not asked for; y is the same. */
TEST(keep_is_optional) {
  kernels made = kernels_some(0, "kernel=linear width=40/72 epilogue=relu,gelu,swiglu bias=true");
  for (int n = 0; n < made.n; n++) {
    launch l = launch_new(&made.list[n], (fg_shape){.rows = 9}, 3);
    launch without = launch_new(&made.list[n], (fg_shape){.rows = 9}, 3);
    launch_drop(&without, "keep");
    launch_run(&l, 1), launch_run(&without, 1);
    launch_same(&l, &without, "y");
    launch_free(&l), launch_free(&without);
  }
  kernels_free(&made);
}

/* A gradient that is not asked for changes no other one. */
TEST_TENTH(gradients_are_optional, 2) {
  static const char *const names[] = {"dx", "dw"};
  kernels made = kernels_of_families(0,
                                     "kernel=linear pass=backward width=40/72 bias=grad "
                                     "epilogue=%s",
                                     _i ? "layernorm" : "relu");
  ck_assert_int_eq(made.n, 3);
  for (int n = 0; n < made.n; n++)
    for (int i = 0; i < 2; i++) {
      launch l = launch_new(&made.list[n], (fg_shape){.rows = 9}, 3);
      launch without = launch_new(&made.list[n], (fg_shape){.rows = 9}, 3);
      launch_drop(&without, names[i]);
      launch_run(&l, 1), launch_run(&without, 1);
      launch_same(&l, &without, names[!i]);
      launch_same(&l, &without, "dbias");
      launch_free(&l), launch_free(&without);
    }
  kernels_free(&made);
}

/* A NaN or an infinity in a row is that row's alone. */
TEST(nonfinite) {
  kernels made = kernels_some(0, "kernel=linear pass=forward,backward width=40/24 "
                                 "epilogue=none,relu,geglu bias=grad");
  for (int n = 0; n < made.n; n++) {
    const bool backward = made.list[n].variant.point.pass == FG_PASS_BACKWARD;
    const char *input = backward ? "dy" : "x", *output = backward ? "dx" : "y";
    launch l = launch_new(&made.list[n], (fg_shape){.rows = 6}, 5);
    const int64_t width = launch_count(&l, input) / 6, wide = launch_count(&l, output) / 6;
    float *x = launch_get(&l, input);
    x[2 * width + 1] = n % 2 ? NAN : INFINITY;
    launch_set(&l, input, x);
    if (launch_has(&l, "keep") && made.list[n].source->recipe.tensor[3].elem == FG_ELEM_I32) {
      int64_t bits[6] = {-1, -1, -1, -1, -1, -1};
      launch_set_ints(&l, "keep", bits);
    }
    launch_run(&l, 3);
    float *y = launch_get(&l, output);
    int odd = 0;
    for (int64_t i = 0; i < 6 * wide; i++) {
      ck_assert_msg(i / wide == 2 || isfinite(y[i]), "%s: row %d is not finite", l.kernel->name,
                    (int)(i / wide));
      odd += !isfinite(y[i]);
    }
    ck_assert_msg(odd > 0, "%s: %s shows nothing of it", l.kernel->name, output);
    free(x), free(y);
    launch_free(&l);
  }
  kernels_free(&made);
}

TEST(unaligned_rows_are_refused) {
  kernels made = kernels_new("kernel=linear family=mma block_q=32 width=24");
  launch l = launch_new(&made.list[0], (fg_shape){.rows = 5}, 5);
  launch_layout(&l, "y", "nd", 4);
  launch_refused(&l, "y", "a stride of 28 elements is not a multiple of 16 bytes");
  launch_free(&l);
  kernels_free(&made);
  made = kernels_new("kernel=linear family=simt block_q=32 width=24");
  l = launch_new(&made.list[0], (fg_shape){.rows = 5}, 5);
  launch_layout(&l, "y", "nd", 3);
  launch_run(&l, 1);
  launch_free(&l);
  kernels_free(&made);
}

/* ---- the oracle's gradients ---- */

enum { R = 3, IN = 5, OUT = 4, COLUMNS = 2 * OUT };

typedef struct {
  oracle_linear problem;
  double x[R * IN], w[COLUMNS * IN], bias[COLUMNS], residual[R * OUT], dy[R * OUT];
} layer;

static void draw(double *x, int n, uint64_t *state) {
  for (int i = 0; i < n; i++) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    x[i] = (double)(*state >> 11) * 0x1p-52 - 1;
  }
}

/* The sum of y dy. */
static double loss(const layer *a) {
  double h[R * COLUMNS], h_rss[R * COLUMNS], y[R * OUT], y_rss[R * OUT], sum = 0;
  oracle_linear_h(&a->problem, h, h_rss);
  oracle_linear_y(&a->problem, h, h_rss, y, y_rss);
  for (int i = 0; i < R * OUT; i++) sum += y[i] * a->dy[i];
  return sum;
}

/* The derivative of the loss by each number is the gradient's. */
static void agree(const layer *a, double *numbers, int n, const double *gradient) {
  for (int i = 0; i < n; i++) {
    const double step = 1e-5, was = numbers[i];
    numbers[i] = was + step;
    const double above = loss(a);
    numbers[i] = was - step;
    const double slope = (above - loss(a)) / (2 * step);
    numbers[i] = was;
    ck_assert_msg(fabs(slope - gradient[i]) < 1e-7, "%s, number %d of %d: %.12g, not %.12g",
                  a->problem.epilogue->name, i, n, gradient[i], slope);
  }
}

TEST_TENTH(oracle_gradients, EPILOGUES) {
  static layer a;
  double h[R * COLUMNS], h_rss[R * COLUMNS], kept[R * COLUMNS], kept_rss[R * COLUMNS];
  double dx[R * IN], dw[COLUMNS * IN], dbias[COLUMNS], rss[COLUMNS * IN], other[COLUMNS * IN];
  double more[COLUMNS];
  uint64_t state = 77;
  a.problem = (oracle_linear){.epilogue = oracle_epilogue_find(epilogues[_i]),
                              .rows = R,
                              .in = IN,
                              .out = OUT,
                              .x = a.x,
                              .w = a.w,
                              .bias = a.bias,
                              .residual = a.residual,
                              .dy = a.dy,
                              .kept = kept};
  draw(a.x, R * IN, &state), draw(a.w, COLUMNS * IN, &state), draw(a.bias, COLUMNS, &state);
  draw(a.residual, R * OUT, &state), draw(a.dy, R * OUT, &state);
  oracle_linear_h(&a.problem, h, h_rss);
  oracle_linear_kept(&a.problem, h, h_rss, kept, kept_rss);
  const oracle_linear_gradients to = {dx, rss, dw, other, dbias, more};
  oracle_linear_backward(&a.problem, &to);
  const int columns = (int)oracle_linear_columns(&a.problem);
  agree(&a, a.x, R * IN, dx);
  agree(&a, a.w, columns * IN, dw);
  agree(&a, a.bias, columns, dbias);
  agree(&a, a.residual, R * OUT, a.dy);
}

TEST_TIMEOUT(300)
