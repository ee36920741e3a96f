/* t_normalizer.c - a user's normaliser, far from softmax: in every family, forward and backward,
 * where wgmma and decode take keys in parts, and where parts are combined.
 *
 * `rooted` is one file put beside softmax.lua: it has three states, no trial and another base, and
 * its gradient another form than softmax's. */
#include "odd_case.h"
#include "scratch.h"
#include "templates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FOLDER "attention/normalizers"

/* Puts the normaliser of tests/kernels/normalizers into the copy of the templates. */
static void enter(void) {
  static char text[8192];
  FILE *f = fopen("tests/kernels/normalizers/rooted.lua", "r");
  ck_assert_ptr_nonnull(f);
  const size_t n = fread(text, 1, sizeof text, f);
  fclose(f);
  templates_enter();
  scratch_put("t/" FOLDER "/rooted.lua", text, n);
}

/* ---- specs ---- */

static double s_alone(double s, double bias) { return s + bias; }
static double slope_1(double s) { return 1 + 0 * s; }
static double square(double s, double bias) { return 0.5 * s * s + bias; }
static double slope_of_square(double s) { return s; }
static double soft(double s, double bias) { return 3 * tanh(s / 3) + bias; }
static double slope_of_soft(double s) { return 1 - tanh(s / 3) * tanh(s / 3); }

static bool sees_all(int64_t q, int64_t k, int64_t nq, int64_t nk) { return q < nq && k < nk; }
static bool sees_before(int64_t q, int64_t k, int64_t nq, int64_t nk) { return k <= q + nk - nq; }
static bool sees_window(int64_t q, int64_t k, int64_t nq, int64_t nk) {
  return k <= q + nk - nq && k >= q + nk - nq - 40;
}
static bool sees_some(int64_t q, int64_t k, int64_t nq, int64_t nk) {
  return sees_all(q, k, nq, nk) && (q + k) % 3 != 1;
}

/* The score itself and with a bias, of which wgmma and mma hold tiles; capped; another multiple for
 * each pair; masks that leave rows without keys, tiles out, and holes. */
static const odd_spec specs[] = {
    {"mask=full", s_alone, slope_1, sees_all},
    {"mask=causal", s_alone, slope_1, sees_before},
    {"mask=window(40,0) bias=grad bias_dims=[h,q,k]", s_alone, slope_1, sees_window},
    {"mask=(q+k)%3!=1 bias=grad bias_dims=[h,q,k]", s_alone, slope_1, sees_some},
    {"mask=(q+k)%3!=1 score=softcap(3.0)", soft, slope_of_soft, sees_some},
    {"mask=causal score=0.5*s*s bias=grad bias_dims=[h,q,k]", square, slope_of_square, sees_before},
};
enum { SPECS = sizeof specs / sizeof *specs };

/* More rows than keys, and fewer; the second with a negative scale. */
static void check_all(kernels made, const odd_spec *spec) {
  for (int i = 0; i < made.n; i++) {
    odd_check(&made.list[i], spec, (fg_shape)SHAPE(2, 2, 1, 150, 97, 0), 0, 1);
    odd_check(&made.list[i], spec, (fg_shape)SHAPE(1, 2, 2, 70, 260, 0), -0.3f, 2);
  }
  kernels_free(&made);
}

static void check_family(int i, const char *family, const char *pass, const char *words) {
  check_all(kernels_first_of("t", "pass=%s family=%s normalizer=rooted head_dim=40/72 %s %s", pass,
                             family, specs[i].words, words),
            &specs[i]);
}

TEST_TENTH(simt, SPECS) { check_family(_i, "simt", "forward,backward", ""); }
TEST_TENTH(mma, SPECS) { check_family(_i, "mma", "forward,backward", ""); }
TEST_TENTH(mma_deterministic, SPECS) { check_family(_i, "mma", "backward", "deterministic=true"); }
TEST_TENTH(wgmma, SPECS) { check_family(_i, "wgmma", "forward", ""); }
TEST_TENTH(decode, SPECS) { check_family(_i, "decode", "forward", ""); }

/* Two warps for the same keys, each of which has some of the rows. */
TEST_TENTH(mma_warps_share_keys, SPECS) { check_family(_i, "mma", "backward", "warps_per_key=2"); }

/* Keys in parts, which are merged: one tile of rows on several blocks, and tiles that blocks have
 * keys of two of. */
TEST_TENTH(wgmma_in_parts, 1) {
  static const fg_shape shapes[] = {SHAPE(1, 1, 1, 70, 2700, 0), SHAPE(1, 2, 1, 9, 5000, 0)};
  const odd_spec *spec = &specs[0]; /* where plans have parts */
  kernels made = kernels_first_of(
      "t", "family=wgmma normalizer=rooted head_dim=16/104 key_parts=16 %s", spec->words);
  for (int i = 0; i < 2; i++)
    for (uint64_t seed = 1; seed < 4; seed++) odd_check(made.list, spec, shapes[i], 0, seed);
  kernels_free(&made);
}

/* The same of few rows: parts of one tile, and stretches that have keys of two. */
TEST_TENTH(decode_in_parts, 2) {
  static const fg_shape shapes[] = {SHAPE(1, 4, 1, 2, 2700, 0), SHAPE(2, 6, 2, 1, 1200, 0)};
  const odd_spec *spec = &specs[0];
  kernels made =
      kernels_first_of("t", "family=decode normalizer=rooted head_dim=16/104 block_q=%d %s",
                       _i ? 16 : 8, spec->words);
  for (int i = 0; i < 2; i++)
    for (uint64_t seed = 1; seed < 4; seed++) odd_check(made.list, spec, shapes[i], 0, seed);
  kernels_free(&made);
}

/* Row number `row` over its parts: what is kept of it, and column d. */
static double combined(int parts, int rows, int row, const float *kept, const float *o_parts,
                       int width, int d, double *whole) {
  double squares = 0, o = 0;
  for (int i = 0; i < parts; i++) squares += exp(2 * (double)kept[i * rows + row]);
  *whole = 0.5 * log(squares);
  for (int i = 0; i < parts; i++)
    o += exp((double)kept[i * rows + row] - *whole) * (double)o_parts[(i * rows + row) * width + d];
  return o;
}

/* Parts that are finished, combined: a row for a part of a warp and for a warp; of the second row
 * all parts but one are without keys, of the third all. Of one head, so that rows of o and of what
 * is kept have one order. */
TEST_TENTH(combine, 1) {
  enum { PARTS = 11, ROWS = 5, WIDTH = 24 };
  kernels made;
  GOOD(kernels_make("t", "kernel=combine normalizer=rooted head_dim=24 dtype=f16", &made));
  ck_assert_int_eq(made.n, 3);
  for (int n = 0; n < made.n; n++) {
    launch l = launch_new(&made.list[n], (fg_shape){.parts = PARTS, .b = 1, .h = 1, .nq = ROWS}, 4);
    float *o_parts = launch_get(&l, "o_parts"), *kept = launch_get(&l, "lse_parts");
    for (int i = 0; i < PARTS; i++)
      for (int row = 1; row < 3; row++)
        if (row == 2 || i != 7) {
          kept[i * ROWS + row] = -INFINITY;
          for (int d = 0; d < WIDTH; d++) o_parts[(i * ROWS + row) * WIDTH + d] = NAN;
        }
    launch_set(&l, "o_parts", o_parts);
    launch_set(&l, "lse_parts", kept);
    launch_run(&l, 1);
    float *o = launch_get(&l, "o"), *lse = launch_get(&l, "lse");
    for (int row = 0; row < ROWS; row++)
      for (int d = 0; d < WIDTH; d++) {
        double whole;
        const double is = (double)o[row * WIDTH + d];
        const bool empty = row == 2;
        for (int i = 0; i < PARTS; i++) /* 0 times NaN is no part of a sum here */
          if (isnan(o_parts[(i * ROWS + row) * WIDTH + d]))
            o_parts[(i * ROWS + row) * WIDTH + d] = 0;
        const double should = combined(PARTS, ROWS, row, kept, o_parts, WIDTH, d, &whole);
        ck_assert_double_eq_tol(is, empty ? 0 : should, 3e-3 * (1 + fabs(empty ? 0 : should)));
        const double of_row = (double)lse[row];
        ck_assert_msg(empty ? isinf(of_row) && of_row < 0 : fabs(of_row - whole) < 1e-5,
                      "row %d: %g", row, of_row);
      }
    free(o_parts), free(kept), free(o), free(lse);
    launch_free(&l);
  }
  kernels_free(&made);
}

TEST_FIXTURE(enter, templates_leave)
