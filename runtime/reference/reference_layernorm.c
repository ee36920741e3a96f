/* reference_layernorm.c - layer and RMS norm of rows in float64 (mathematics.md section 5). */
#include "reference.h"

#include "base/random.h"
#include "oracle_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What an output should be. */
typedef struct {
  const char *name;
  double *ref, *rss;
} result;
enum { RESULTS = 4 };

/* z and the row's numbers are this file's own. */
typedef struct {
  oracle_norm problem;
  double *z, *z_rss; /* [rows, width] */
  double worst;      /* the largest mean of a row, in deviations */
  result of[RESULTS];
} layernorm;

static bool is_backward(const reference_case *c) {
  return c->variant->point.pass == FG_PASS_BACKWARD;
}

static double *array(int64_t n) { return calloc((size_t)n + 1, sizeof(double)); }

/* Room for the kernel's outputs. */
static fg_status start(reference_case *c) {
  const fg_recipe *r = c->problem->recipe;
  layernorm *s = c->own = calloc(1, sizeof *s);
  if (!s) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  const int64_t rows = c->problem->shape.rows, width = c->variant->point.width;
  s->problem = (oracle_norm){.is_rms = c->variant->point.norm == FG_NORM_RMS,
                             .rows = rows,
                             .width = width,
                             .mean = array(rows),
                             .rstd = array(rows)};
  bool all = s->problem.mean && s->problem.rstd && (s->z = array(rows * width)) &&
             (s->z_rss = array(rows * width));
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
  const oracle_norm *p = &((const layernorm *)c->own)->problem;
  for (int64_t i = 0; i < p->rows * p->width; i++) {
    const int64_t row = i / p->width;
    const double normal = fg_random_normal(&state) * reference_size_of_terms(c);
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
  const bool is_term = !strcmp(name, "bias") || !strcmp(name, "residual");
  const double size = is_term ? reference_size_of_terms(c) : 1;
  for (int64_t i = 0; i < fg_problem_count(c->problem, tensor); i++)
    values[i] = about + size * fg_random_normal(&state);
}

/* ---- what is right ---- */

static result find_result(const reference_case *c, const char *name) {
  const layernorm *s = c->own;
  for (int i = 0; i < RESULTS; i++)
    if (s->of[i].name && !strcmp(s->of[i].name, name)) return s->of[i];
  return (result){0};
}

/* As it is given, or of x, bias and residual. */
static void make_z(const reference_case *c) {
  const layernorm *s = c->own;
  const int64_t width = s->problem.width;
  const double *z = is_backward(c) ? reference_value(c, "z") : NULL;
  const double *x = reference_value(c, "x"), *residual = reference_value(c, "residual");
  const double *bias = reference_value(c, "bias");
  for (int64_t i = 0; i < s->problem.rows * width; i++) {
    const double b = bias ? bias[i % width] : 0, r = residual ? residual[i] : 0;
    s->z[i] = z ? z[i] : x[i] + b + r;
    s->z_rss[i] = z ? fabs(z[i]) : hypot(x[i], hypot(b, r));
  }
}

static void copy(const result *to, const double *ref, const double *rss, int64_t n) {
  if (!to->ref) return;
  memcpy(to->ref, ref, (size_t)n * sizeof *ref);
  memcpy(to->rss, rss, (size_t)n * sizeof *rss);
}

static void forward(const reference_case *c) {
  const layernorm *s = c->own;
  const oracle_norm *p = &s->problem;
  const result z = find_result(c, "z"), mean = find_result(c, "mean");
  const result rstd = find_result(c, "rstd"), out = find_result(c, "out");
  copy(&z, s->z, s->z_rss, p->rows * p->width);
  if (mean.ref) memcpy(mean.ref, p->mean, (size_t)p->rows * sizeof(double));
  copy(&rstd, p->rstd, p->rstd, p->rows);
  oracle_norm_out(p, out.ref, out.rss);
}

static void backward(const reference_case *c) {
  const result dz = find_result(c, "dx"), dgamma = find_result(c, "dgamma");
  const result dbeta = find_result(c, "dbeta"), dbias = find_result(c, "dbias");
  const oracle_norm_gradients to = {dz.ref,    dz.rss,    dgamma.ref, dgamma.rss,
                                    dbeta.ref, dbeta.rss, dbias.ref,  dbias.rss};
  oracle_norm_backward(&((const layernorm *)c->own)->problem, &to);
}

static fg_status solve(reference_case *c, int plain) {
  layernorm *s = c->own;
  oracle_norm *p = &s->problem;
  (void)plain; /* there is no unfused result */
  make_z(c);
  p->z = s->z, p->eps = reference_eps(c);
  p->gamma = reference_value(c, "gamma"), p->beta = reference_value(c, "beta");
  p->dout = reference_value(c, "dout"), p->dz = reference_value(c, "dz");
  s->worst = oracle_norm_statistics(p, find_result(c, "mean").rss);
  if (is_backward(c)) {
    TRY(reference_put_rows(c, "mean", p->mean));
    TRY(reference_put_rows(c, "rstd", p->rstd));
    backward(c);
  } else {
    forward(c);
  }
  return FG_OK;
}

/* Of float32, in which z is made, its rounding shows where a mean is large beside the deviation. */
static reference_values find(const reference_case *c, const char *name) {
  const layernorm *s = c->own;
  const result x = find_result(c, name);
  const bool is_statistic = !strcmp(name, "mean") || !strcmp(name, "rstd");
  const bool is_f32 = fg_point_elem(&c->variant->point) == FG_ELEM_F32;
  const double limit = is_statistic || is_f32 ? 1e-5 + 2e-7 * s->worst : 0;
  return (reference_values){.ref = x.ref, .rss = x.rss, .limit = limit};
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
  free(s->problem.mean);
  free(s->problem.rstd);
  free(s->z);
  free(s->z_rss);
  free(s);
}

static const char *const saved[] = {"mean", "rstd", NULL};
const reference reference_layernorm = {saved, start, draw, solve, find, tell, free_own, NULL};
