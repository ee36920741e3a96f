/* oracle_error.c - masks by name, dtypes as roundings, and the measures of error of mathematics.md
 * section 6. */
#include "oracle.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- masks ---- */

static int full(const oracle_problem *x, int64_t b, int64_t h, int64_t q, int64_t k) {
  (void)x, (void)b, (void)h, (void)q, (void)k;
  return 1;
}

static int causal(const oracle_problem *x, int64_t b, int64_t h, int64_t q, int64_t k) {
  (void)b, (void)h;
  return k <= q + x->nk - x->nq;
}

oracle_predicate *oracle_visible(const char *mask) {
  if (!strcmp(mask, "full")) return full;
  if (!strcmp(mask, "causal")) return causal;
  return NULL;
}

/* ---- dtypes ---- */

static double through(fg_elem elem, double x) {
  float slot;
  fg_elem_store(elem, &slot, 0, (float)x);
  return (double)fg_elem_load(elem, &slot, 0);
}

static double round_bf16(double x) { return through(FG_ELEM_BF16, x); }
static double round_f16(double x) { return through(FG_ELEM_F16, x); }
static double round_f32(double x) { return through(FG_ELEM_F32, x); }
static double round_e4m3(double x) { return through(FG_ELEM_E4M3, x); }

double (*oracle_round(fg_elem dtype))(double) {
  if (dtype == FG_ELEM_E4M3) return round_e4m3;
  return dtype == FG_ELEM_BF16 ? round_bf16 : dtype == FG_ELEM_F16 ? round_f16 : round_f32;
}

double oracle_limit(fg_elem dtype) {
  if (dtype == FG_ELEM_E4M3) return 3.2e-2;
  return dtype == FG_ELEM_BF16 ? 4e-3 : dtype == FG_ELEM_F16 ? 7e-4 : 1e-5;
}

/* ---- errors ---- */

/* Too small for a float32, in which kernels add up: as good as 0. */
static bool is_nothing(double x) { return fabs(x) < (double)FLT_MIN; }
static bool is_same(double x, double y) {
  return is_nothing(x - y) || (is_nothing(x) && is_nothing(y));
}

double oracle_error_of(int64_t n, const double *x, const double *ref, const double *rss,
                       double least) {
  double difference = 0, norm = 0, terms = 0;
  for (int64_t i = 0; i < n; i++) {
    if (isinf(ref[i]) && x[i] == ref[i]) continue;
    if (!is_same(x[i], ref[i])) difference += (x[i] - ref[i]) * (x[i] - ref[i]);
    norm += ref[i] * ref[i];
    const double size = rss[i] > 0 ? fmax(rss[i], least) : rss[i];
    terms += size * size;
  }
  return difference == 0 ? 0 : sqrt(difference / fmax(norm, terms));
}

double oracle_error(int64_t n, const double *x, const double *ref, const double *rss) {
  return oracle_error_of(n, x, ref, rss, 0);
}

double oracle_least(fg_elem elem) { return elem == FG_ELEM_F16 ? 0x1p-14 : 0; }

double oracle_near_error(int64_t n, const double *x, const double *ref, double relative,
                         const double *cut, double *limit) {
  double error = 0;
  *limit = 1e-4;
  for (int64_t i = 0; i < n; i++) {
    if (isinf(x[i]) && x[i] == ref[i]) continue;
    if (!isfinite(x[i]) || !isfinite(ref[i])) return INFINITY;
    double own = fabs(x[i] - ref[i]), most = 1e-4 + relative * fabs(ref[i]) + (cut ? cut[i] : 0);
    if (own / most > error / *limit) error = own, *limit = most;
  }
  return error;
}

double oracle_lse_error(int64_t n, const double *x, const double *ref, double *limit) {
  return oracle_near_error(n, x, ref, 1e-6, NULL, limit);
}
