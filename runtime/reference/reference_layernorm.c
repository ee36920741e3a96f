/* reference_layernorm.c - layer and RMS norm of rows in float64 (math.md section 5). */
#include "reference.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What an output should be. */
typedef struct {
  const char *name;
  double *ref, *rss;
} result;
enum { RESULTS = 4 };

/* Arrays are [rows, width]; a row's numbers are [rows]. */
typedef struct {
  int64_t rows, width;
  double *z, *mean, *rstd;
  double worst; /* the largest mean of a row, in deviations */
  result of[RESULTS];
} layernorm;

static bool is_backward(const reference_case *c) {
  return c->variant->point.pass == FG_PASS_BACKWARD;
}
static bool is_rms(const reference_case *c) { return c->variant->point.norm == FG_NORM_RMS; }

static double *array(int64_t n) { return calloc((size_t)n + 1, sizeof(double)); }

/* Room for the kernel's outputs. */
static fg_status start(reference_case *c) {
  const fg_recipe *r = c->problem->recipe;
  layernorm *s = c->own = calloc(1, sizeof *s);
  if (!s) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  s->rows = c->problem->shape.rows, s->width = c->variant->point.width;
  bool all = (s->z = array(s->rows * s->width)) && (s->mean = array(s->rows)) &&
             (s->rstd = array(s->rows));
  for (int i = 0, n = 0; i < r->n_tensors; i++) {
    if (!r->tensor[i].output) continue;
    result *x = &s->of[n++];
    const int64_t count = fg_problem_count(c->problem, i);
    x->name = r->tensor[i].name;
    all = all && (x->ref = array(count)) && (x->rss = array(count));
  }
  return all ? FG_OK : fg_fail(FG_EMEMORY, "no memory for the oracle");
}

/* ---- what is drawn ---- */

/* How far the rows of the style VERIFY_LARGE lie from 0, in deviations: as far as 16 bits leave
 * columns that differ. */
static double distance(const reference_case *c) {
  return fg_point_elem(&c->variant->point) == FG_ELEM_F32 ? 1e4 : 30;
}

/* Normal numbers; far from 0; or rows of very different sizes, every fifth constant and every
 * seventh 0. */
static void draw_rows(const reference_case *c, uint64_t state, double *x) {
  const layernorm *s = c->own;
  for (int64_t i = 0; i < s->rows * s->width; i++) {
    const int64_t row = i / s->width;
    const double normal = fg_random_normal(&state);
    x[i] = normal;
    if (c->which->style == VERIFY_LARGE) x[i] += row % 2 ? distance(c) : -distance(c);
    if (c->which->style != VERIFY_ABSENT) continue;
    x[i] = row % 7 == 3 ? 0 : row % 5 == 2 ? 3.5 : normal * ldexp(1, (int)(row % 11) - 6);
  }
}

static void draw(const reference_case *c, int tensor, double *values) {
  const char *name = c->problem->recipe->tensor[tensor].name;
  uint64_t state = c->which->seed * 1000003 + (uint64_t)tensor;
  if (!strcmp(name, "x") || !strcmp(name, "z")) {
    draw_rows(c, state, values);
    return;
  }
  const double about = !strcmp(name, "gamma") ? 1 : 0;
  for (int64_t i = 0; i < fg_problem_count(c->problem, tensor); i++)
    values[i] = about + fg_random_normal(&state);
}

/* ---- what is right ---- */

static const result *find_result(const reference_case *c, const char *name) {
  const layernorm *s = c->own;
  for (int i = 0; i < RESULTS; i++)
    if (s->of[i].name && !strcmp(s->of[i].name, name)) return &s->of[i];
  return NULL;
}

static void set(const reference_case *c, const char *name, int64_t i, double ref, double rss) {
  const result *x = find_result(c, name);
  if (x) x->ref[i] = ref, x->rss[i] = rss;
}

/* A sum, and the root of the sum of the squares of what was added. */
static void add(const reference_case *c, const char *name, int64_t i, double term, double size) {
  const result *x = find_result(c, name);
  if (!x) return;
  x->ref[i] += term;
  x->rss[i] = hypot(x->rss[i], size);
}

/* z: as it is given, or of x, bias and residual. */
static void make_z(const reference_case *c) {
  layernorm *s = c->own;
  const double *z = is_backward(c) ? reference_value(c, "z") : NULL;
  const double *x = reference_value(c, "x"), *residual = reference_value(c, "residual");
  const double *bias = reference_value(c, "bias");
  for (int64_t i = 0; i < s->rows * s->width; i++) {
    const double b = bias ? bias[i % s->width] : 0, r = residual ? residual[i] : 0;
    s->z[i] = z ? z[i] : x[i] + b + r;
    if (!is_backward(c)) set(c, "z", i, s->z[i], hypot(x[i], hypot(b, r)));
  }
}

static double eps_of(const reference_case *c) {
  const fg_launch_values *launch = &c->which->launch;
  return launch->given & FG_GIVEN_EPS ? (double)launch->value[FG_NUMBER_EPS] : 1e-5;
}

/* Mean (of layer norm) and inverse deviation of each row. */
static void make_statistics(const reference_case *c) {
  layernorm *s = c->own;
  for (int64_t r = 0; r < s->rows; r++) {
    const double *z = s->z + r * s->width;
    double sum = 0, squares = 0, sizes = 0;
    for (int64_t i = 0; i < s->width; i++) sum += z[i];
    const double mean = is_rms(c) ? 0 : sum / (double)s->width;
    for (int64_t i = 0; i < s->width; i++) squares += (z[i] - mean) * (z[i] - mean);
    for (int64_t i = 0; i < s->width; i++) sizes += z[i] * z[i];
    s->mean[r] = mean;
    s->rstd[r] = 1 / sqrt(squares / (double)s->width + eps_of(c));
    s->worst = fmax(s->worst, fabs(mean) * s->rstd[r]);
    if (is_backward(c)) continue;
    set(c, "mean", r, mean, sqrt(sizes) / (double)s->width);
    set(c, "rstd", r, s->rstd[r], s->rstd[r]);
  }
}

static void forward(const reference_case *c) {
  const layernorm *s = c->own;
  const double *gamma = reference_value(c, "gamma"), *beta = reference_value(c, "beta");
  for (int64_t i = 0; i < s->rows * s->width; i++) {
    const int64_t row = i / s->width, column = i % s->width;
    const double scaled = (s->z[i] - s->mean[row]) * s->rstd[row] * gamma[column];
    const double b = beta ? beta[column] : 0;
    set(c, "out", i, scaled + b, hypot(scaled, b));
  }
}

/* One row's gradients. */
static void backward_row(const reference_case *c, int64_t row) {
  const layernorm *s = c->own;
  const int64_t first = row * s->width;
  const double *gamma = reference_value(c, "gamma"), *dz = reference_value(c, "dz");
  const double *dout = reference_value(c, "dout") + first;
  const double rstd = s->rstd[row];
  double mean_gy = 0, mean_product = 0;
  for (int64_t i = 0; i < s->width; i++) {
    const double gy = dout[i] * gamma[i], xhat = (s->z[first + i] - s->mean[row]) * rstd;
    mean_gy += is_rms(c) ? 0 : gy / (double)s->width;
    mean_product += gy * xhat / (double)s->width;
  }
  for (int64_t i = 0; i < s->width; i++) {
    const double gy = dout[i] * gamma[i], xhat = (s->z[first + i] - s->mean[row]) * rstd;
    const double in = dz ? dz[first + i] : 0;
    const double dx = rstd * (gy - mean_gy - xhat * mean_product) + in;
    const double size = rstd * (fabs(gy) + fabs(mean_gy) + fabs(xhat * mean_product)) + fabs(in);
    set(c, "dx", first + i, dx, size);
    add(c, "dgamma", i, dout[i] * xhat, dout[i] * xhat);
    add(c, "dbeta", i, dout[i], dout[i]);
    add(c, "dbias", i, dx, size);
  }
}

/* A backward is given the row's numbers of its forward. */
static fg_status put_rows(reference_case *c, const char *name, const double *from) {
  const layernorm *s = c->own;
  double *values = reference_value(c, name);
  if (!values) return FG_OK; /* RMS norm has no mean */
  memcpy(values, from, (size_t)s->rows * sizeof *values);
  return reference_put(c, fg_problem_find(c->problem, name), values);
}

static fg_status solve(reference_case *c, int plain) {
  layernorm *s = c->own;
  (void)plain; /* there is no unfused result */
  make_z(c);
  make_statistics(c);
  if (is_backward(c)) {
    TRY(put_rows(c, "mean", s->mean));
    TRY(put_rows(c, "rstd", s->rstd));
    for (int64_t r = 0; r < s->rows; r++) backward_row(c, r);
  } else {
    forward(c);
  }
  return FG_OK;
}

/* Of float32, in which z is made, its rounding shows where a mean is large beside the deviation. */
static reference_values find(const reference_case *c, const char *name) {
  const layernorm *s = c->own;
  const result *x = find_result(c, name);
  if (!x) return (reference_values){0};
  const bool is_statistic = !strcmp(name, "mean") || !strcmp(name, "rstd");
  const bool is_f32 = fg_point_elem(&c->variant->point) == FG_ELEM_F32;
  const double limit = is_statistic || is_f32 ? 1e-5 + 2e-7 * s->worst : 0;
  return (reference_values){x->ref, x->rss, NULL, limit};
}

/* There are no pairs. */
static void tell(const reference_case *c, verify_verdict *verdict) { (void)c, (void)verdict; }

static void free_own(reference_case *c) {
  layernorm *s = c->own;
  if (!s) return;
  for (int i = 0; i < RESULTS; i++) {
    free(s->of[i].ref);
    free(s->of[i].rss);
  }
  free(s->z);
  free(s->mean);
  free(s->rstd);
  free(s);
}

static const char *const saved[] = {"mean", "rstd", NULL};
const reference reference_layernorm = {saved, start, draw, solve, find, tell, free_own, NULL};
