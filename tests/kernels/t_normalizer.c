/* t_normalizer.c - normalisers of a user's own, each one file that is put beside softmax.lua: in
 * every family, forward and backward, and where wgmma takes keys in parts.
 *
 * `none` has no state and keeps nothing of a row; `rooted` has three states, no trial and another
 * base, and its gradient another form than softmax's. */
#include "odd_case.h"
#include "scratch.h"
#include "templates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "attention/normalizers"

/* Puts the normalisers of tests/kernels/normalizers into the copy of the templates. */
static void enter(void) {
  static const char *const name[] = {"none", "rooted"};
  enum { FILES = sizeof name / sizeof *name };
  static char text[FILES][8192];
  size_t n[FILES];
  for (int i = 0; i < FILES; i++) {
    char path[64];
    snprintf(path, sizeof path, "tests/kernels/normalizers/%s.lua", name[i]);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    n[i] = fread(text[i], 1, sizeof text[i], f);
    fclose(f);
  }
  templates_enter();
  for (int i = 0; i < FILES; i++) {
    char path[64];
    snprintf(path, sizeof path, "t/" FOLDER "/%s.lua", name[i]);
    scratch_put(path, text[i], n[i]);
  }
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
enum { SPECS = sizeof specs / sizeof *specs, NORMALIZERS = 2 };

static const odd_normalizer *normalizer(int i) { return i ? &odd_rooted : &odd_none; }

/* More rows than keys, and fewer; the second with a negative scale. */
static void check_all(kernels made, const odd_normalizer *n, const odd_spec *spec) {
  for (int i = 0; i < made.n; i++) {
    odd_check(&made.list[i], n, spec, (fg_shape)SHAPE(2, 2, 1, 150, 97, 0), 0, 1);
    odd_check(&made.list[i], n, spec, (fg_shape)SHAPE(1, 2, 2, 70, 260, 0), -0.3f, 2);
  }
  kernels_free(&made);
}

static void check_family(int i, const char *family, const char *pass, const char *words) {
  const odd_normalizer *n = normalizer(i % NORMALIZERS);
  const odd_spec *spec = &specs[i / NORMALIZERS];
  check_all(kernels_first_of("t", "pass=%s family=%s normalizer=%s head_dim=40/72 %s %s", pass,
                             family, n->name, spec->words, words),
            n, spec);
}

START_TEST(simt) { check_family(_i, "simt", "forward,backward", ""); }
END_TEST
START_TEST(mma) { check_family(_i, "mma", "forward,backward", ""); }
END_TEST
START_TEST(mma_deterministic) { check_family(_i, "mma", "backward", "deterministic=true"); }
END_TEST
START_TEST(wgmma) { check_family(_i, "wgmma", "forward", ""); }
END_TEST

/* Two warps for the same keys, each of which has some of the rows. */
START_TEST(mma_warps_share_keys) { check_family(_i, "mma", "backward", "warps_per_key=2"); }
END_TEST

/* Keys in parts, which are merged: one tile of rows on several blocks, and tiles that blocks have
 * keys of two of. */
START_TEST(wgmma_in_parts) {
  static const fg_shape shapes[] = {SHAPE(1, 1, 1, 70, 2700, 0), SHAPE(1, 2, 1, 9, 5000, 0)};
  const odd_normalizer *n = normalizer(_i);
  const odd_spec *spec = &specs[0]; /* where plans have parts */
  kernels made = kernels_first_of("t", "family=wgmma normalizer=%s head_dim=16/104 key_parts=16 %s",
                                  n->name, spec->words);
  for (int i = 0; i < 2; i++)
    for (uint64_t seed = 1; seed < 4; seed++) odd_check(made.list, n, spec, shapes[i], 0, seed);
  kernels_free(&made);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("normalizer");
  TCase *cases = tcase_create("normalizer");
  tcase_add_checked_fixture(cases, enter, templates_leave);
  suite_loop(cases, simt, SPECS * NORMALIZERS);
  suite_loop(cases, mma, SPECS * NORMALIZERS);
  suite_loop(cases, mma_deterministic, SPECS * NORMALIZERS);
  suite_loop(cases, mma_warps_share_keys, SPECS * NORMALIZERS);
  suite_loop(cases, wgmma, SPECS * NORMALIZERS);
  suite_loop(cases, wgmma_in_parts, NORMALIZERS);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
