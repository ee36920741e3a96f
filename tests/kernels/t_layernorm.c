/* t_layernorm.c - layer and RMS norm of rows on a device: every plan, forward and backward, against
 * the oracle; the gradients against differences; and what the kernels may not touch. */
#include "launch_case.h"

#include <math.h>
#include <stdlib.h>

#define PASSES "kernel=layernorm pass=forward,backward "

/* One lane a row; a warp, full and not; several warps; more columns than a block has the sums of.
 */
#define NARROW "width=8,520,1000 "
#define WIDE   "width=4104,9000 "

/* No row, one, as many as a warp has, one more, and many. */
static const int64_t rows[] = {0, 1, 4, 5, 23};
enum { ROWS = sizeof rows / sizeof *rows };

static void verify_all(const kernel *k) {
  const bool on_host = fg_arch_is_host(kernel_device()->arch); /* where it needs no memory */
  const bool is_wide = k->variant.point.width > 4000;
  for (int r = 0; r < ROWS - is_wide; r++)
    for (int style = 0; style < VERIFY_STYLES; style++)
      if (r == 4 - is_wide || style == r % VERIFY_STYLES)
        for (int seed = 0; seed < 1 + (r > 0); seed++) /* optional tensors are given, and are not */
          kernel_verify(
              k, &(verify_case){.shape = {.rows = rows[r]},
                                .style = (verify_style)style,
                                .contiguous = (r + seed) % 2,
                                .far = r == 3 && on_host,
                                .again = r == 4,
                                .launch = {seed ? FG_GIVEN_EPS : 0, {[FG_NUMBER_EPS] = 0.5f}},
                                .seed = 90 + (uint64_t)(14 * r + 2 * style + seed)});
}

TEST_TENTH(every_plan, 2) {
  kernels made = kernels_new(PASSES NARROW "dtype=%s bias=grad residual=true",
                             _i ? "f32 norm=rms" : "bf16 norm=layer");
  ck_assert_int_ge(made.n, 2 * 3 * 2); /* passes, widths, plans */
  for (int n = 0; n < made.n; n++) verify_all(&made.list[n]);
  kernels_free(&made);
}

/* A backward of the widest ones has several blocks for a row. */
TEST_TENTH(wide_rows, 2) {
  kernels made = kernels_first(PASSES WIDE "dtype=%s bias=grad", _i ? "f32 norm=rms" : "bf16");
  for (int n = 0; n < made.n; n++) verify_all(&made.list[n]);
  kernels_free(&made);
}

/* So many rows that a block takes more of them than it has stages. */
TEST_TENTH(many_rows, 2) {
  const bool on_host = fg_arch_is_host(kernel_device()->arch);
  kernels made = kernels_new("kernel=layernorm pass=backward width=1024 dtype=%s bias=grad",
                             _i ? "f32" : "bf16");
  for (int n = 0; n < made.n; n++)
    for (int seed = 0; seed < 2; seed++)
      kernel_verify(&made.list[n], &(verify_case){.shape = {.rows = on_host ? 301 : 9001},
                                                  .contiguous = seed,
                                                  .again = true,
                                                  .seed = 70 + (uint64_t)seed});
  kernels_free(&made);
}

/* What a spec has not changes nothing else. */
TEST_TENTH(every_spec, 1) {
  kernels made = kernels_first(PASSES "width=72 dtype=f16 norm=layer,rms bias=false,true,grad "
                                      "residual=false,true");
  ck_assert_int_eq(made.n, 2 * (2 + 3) * 2); /* a forward has no bias=grad */
  for (int n = 0; n < made.n; n++) verify_all(&made.list[n]);
  kernels_free(&made);
}

/* Differences ------------------------------------------------------------------------------------
 */

static float *copy(const launch *l, const char *name) {
  return launch_has(l, name) ? launch_get(l, name) : NULL;
}

static double dot(int64_t n, const float *a, const float *b) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
  return sum;
}

/* <dout, out> of the launch where the input is moved by `step` along `way`; leaves it where it was.
 */
static double loss_at(launch *l, const char *input, const float *way, float step,
                      const float *dout) {
  const int64_t n = launch_count(l, input);
  float *x = launch_get(l, input), *moved = launch_get(l, input);
  for (int64_t i = 0; i < n; i++) moved[i] += step * way[i];
  launch_set(l, input, moved);
  launch_run(l, 1);
  float *out = launch_get(l, "out");
  const double loss = dot(launch_count(l, "out"), dout, out);
  launch_set(l, input, x);
  free(x), free(moved), free(out);
  return loss;
}

/* The backward is given what the forward was, and what it left. */
static void hand_over(const launch *forward, launch *backward) {
  static const char *const names[] = {"x", "gamma", "bias", "residual", "mean", "rstd"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    float *values = copy(forward, names[i]);
    if (values && launch_has(backward, names[i])) launch_set(backward, names[i], values);
    free(values);
  }
  if (launch_has(backward, "z")) launch_drop(backward, "z");
  launch_drop(backward, "dz");
}

TEST_TENTH(differences, 2) {
  static const char *const inputs[] = {"x", "residual", "gamma", "beta", "bias"};
  static const char *const grads[] = {"dx", "dx", "dgamma", "dbeta", "dbias"};
  kernels made = kernels_first(PASSES "width=40 dtype=f32 bias=grad residual=true norm=%s",
                               _i ? "rms" : "layer");
  const fg_shape shape = {.rows = 3};
  launch forward = launch_new(&made.list[0], shape, 3),
         backward = launch_new(&made.list[1], shape, 3);
  launch_run(&forward, 1);
  hand_over(&forward, &backward);
  launch_run(&backward, 1);
  float *dout = launch_get(&backward, "dout");
  for (int i = 0; i < 5; i++) {
    if (!launch_has(&forward, inputs[i])) continue; /* RMS norm has no beta */
    const int64_t n = launch_count(&forward, inputs[i]);
    float *way = launch_get(&forward, inputs[i]), *gradient = launch_get(&backward, grads[i]);
    for (int64_t k = 0; k < n; k++) way[k] = sinf((float)(7 * k + i));
    const double step = 0x1p-6, expected = dot(n, gradient, way);
    const double found = (loss_at(&forward, inputs[i], way, (float)step, dout) -
                          loss_at(&forward, inputs[i], way, (float)-step, dout)) /
                         (2 * step);
    ck_assert_msg(fabs(found - expected) <= 2e-3 * (1 + fabs(expected)),
                  "%s: %g, by differences %g", grads[i], expected, found);
    free(way), free(gradient);
  }
  free(dout);
  launch_free(&forward), launch_free(&backward);
  kernels_free(&made);
}

/* Rows -------------------------------------------------------------------------------------------
 */

/* A NaN in a row is that row's alone. */
TEST(nonfinite) {
  kernels made = kernels_new(PASSES "width=64");
  for (int n = 0; n < made.n; n++) {
    const bool backward = made.list[n].variant.point.pass == FG_PASS_BACKWARD;
    const char *input = backward ? "dout" : "x", *output = backward ? "dx" : "out";
    launch l = launch_new(&made.list[n], (fg_shape){.rows = 6}, 5);
    float *x = launch_get(&l, input);
    x[2 * 64 + 9] = NAN;
    launch_set(&l, input, x);
    free(x);
    launch_run(&l, 3);
    x = launch_get(&l, output);
    for (int i = 0; i < 6 * 64; i++)
      ck_assert_msg(isnan(x[i]) == (i / 64 == 2), "%s: %s, row %d, column %d: %g",
                    made.list[n].name, output, i / 64, i % 64, (double)x[i]);
    free(x);
    launch_free(&l);
  }
  kernels_free(&made);
}

/* A row of equal columns, whose mean is rounded, is beta: nothing is left to be told from the mean.
 */
TEST(equal_columns) {
  enum { WIDTH = 1000, ROWS_OF_IT = 5 };
  kernels made = kernels_new("kernel=layernorm width=%d dtype=f32", WIDTH);
  for (int n = 0; n < made.n; n++) {
    launch l = launch_new(&made.list[n], (fg_shape){.rows = ROWS_OF_IT}, 5);
    float *x = launch_get(&l, "x"), *beta = launch_get(&l, "beta");
    for (int i = 0; i < ROWS_OF_IT * WIDTH; i++) x[i] = 1e3f / (float)(3 + i / WIDTH);
    launch_set(&l, "x", x);
    launch_run(&l, 3);
    float *out = launch_get(&l, "out");
    for (int i = 0; i < ROWS_OF_IT * WIDTH; i++)
      ck_assert_msg(fabsf(out[i] - beta[i % WIDTH]) <= 1e-6f, "%s: row %d, column %d: %g, beta %g",
                    made.list[n].name, i / WIDTH, i % WIDTH, (double)out[i],
                    (double)beta[i % WIDTH]);
    free(x), free(beta), free(out);
    launch_free(&l);
  }
  kernels_free(&made);
}

/* Forward leaves out what it is not asked for; backward is given z, or what it is made of. */
TEST(left_out) {
  kernels made = kernels_first(PASSES "width=64 residual=true");
  launch forward = launch_new(&made.list[0], (fg_shape){.rows = 5}, 5);
  launch_run(&forward, 3);
  launch few = launch_new(&made.list[0], (fg_shape){.rows = 5}, 5);
  static const char *const optional[] = {"z", "mean", "rstd"};
  for (int i = 0; i < 3; i++) launch_drop(&few, optional[i]);
  launch_run(&few, 3);
  launch_same(&few, &forward, "out");
  launch backward = launch_new(&made.list[1], (fg_shape){.rows = 5}, 5);
  launch_drop(&backward, "x");
  launch_drop(&backward, "residual");
  launch_run(&backward, 3);
  launch_drop(&backward, "z");
  ck_assert_int_eq(fg_problem_run(backward.problem, backward.kernel->module), FG_EARGUMENT);
  ck_assert_str_eq(fg_error(), "x is missing: it is needed where z is not given");
  launch_free(&forward), launch_free(&few), launch_free(&backward);
  kernels_free(&made);
}

TEST_TIMEOUT(300)
