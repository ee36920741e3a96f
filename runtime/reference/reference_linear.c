/* reference_linear.c - cases of a linear layer: what is drawn, and what is right. */
#include "reference.h"

#include "base/random.h"
#include "oracle.h"
#include "oracle_linear.h"
#include "oracle_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What an output should be. */
typedef struct {
  const char *name;
  double *ref, *rss;
} result;
enum { RESULTS = 6 };

/* Of a backward h and bias are this file's own: the kernel is given what forward keeps of them. */
typedef struct {
  oracle_linear problem;
  oracle_norm norm;
  double *z, *z_rss; /* [rows, out], of a norm: what is normalised; backward: its gradient */
  double worst;      /* the largest mean of a row, in deviations */
  int64_t columns, words;
  double *h, *h_rss, *bias; /* [rows, columns], [columns] */
  double *kept, *kept_rss;  /* [rows, columns]: factors of dy */
  result of[RESULTS];
} linear;

/* A sum beside which float32 cannot tell the sign of h, as a share of its terms. */
static const double blur = 1e-5;

static bool is_backward(const reference_case *c) {
  return c->variant->point.pass == FG_PASS_BACKWARD;
}

/* Forward keeps [rows, words], a bit for each column, else [rows, columns]. */
static bool keeps_bits(const linear *s) {
  return s->problem.epilogue->is_test && !s->problem.epilogue->is_gated;
}

static double *array(int64_t n) { return calloc((size_t)n + 1, sizeof(double)); }

static fg_status start(reference_case *c) {
  const fg_point *point = &c->variant->point;
  const fg_recipe *r = c->problem->recipe;
  linear *s = c->own = calloc(1, sizeof *s);
  if (!s) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  const oracle_epilogue *epilogue = oracle_epilogue_find(point->epilogue);
  if (!epilogue)
    return fg_fail(FG_ESPEC, "epilogue=%s: there is nothing to compare it with", point->epilogue);
  s->problem = (oracle_linear){.epilogue = epilogue,
                               .rows = c->problem->shape.rows,
                               .in = point->width,
                               .out = point->width_out};
  s->columns = oracle_linear_columns(&s->problem), s->words = (s->problem.out + 31) / 32;
  const int64_t n = s->problem.rows * s->columns, rows = s->problem.rows;
  s->norm = (oracle_norm){.is_rms = epilogue->is_rms,
                          .rows = rows,
                          .width = s->problem.out,
                          .mean = array(rows),
                          .rstd = array(rows)};
  bool all = s->norm.mean && s->norm.rstd && (s->z = array(rows * s->problem.out)) &&
             (s->z_rss = array(rows * s->problem.out)) && (s->h = array(n)) &&
             (s->h_rss = array(n)) && (s->bias = array(s->columns)) && (s->kept = array(n)) &&
             (s->kept_rss = array(n));
  for (int i = 0, k = 0; i < r->n_tensors; i++) {
    if (!r->tensor[i].output) continue;
    const int64_t count = fg_problem_count(c->problem, i);
    result *x = &s->of[k++];
    x->name = r->tensor[i].name;
    all = all && (x->ref = array(count)) && (x->rss = array(count));
  }
  return all ? FG_OK : fg_fail(FG_EMEMORY, "no memory for the oracle");
}

/* Normal numbers, weights such that h is of their size; x large; or every third row of x 0, where h
 * is exactly bias. */
static void draw(const reference_case *c, int tensor, double *values) {
  const int64_t in = ((const linear *)c->own)->problem.in;
  const char *name = c->problem->recipe->tensor[tensor].name;
  const bool is_norm = ((const linear *)c->own)->problem.epilogue->is_norm;
  const bool is_term = !strcmp(name, "x") || !strcmp(name, "bias") || !strcmp(name, "residual");
  const bool is_x = !strcmp(name, "x"), is_w = !strcmp(name, "w"),
             is_gamma = !strcmp(name, "gamma");
  const verify_style style = c->which->style;
  uint64_t state = c->which->seed * 1000003 + (uint64_t)tensor;
  for (int64_t i = 0; i < fg_problem_count(c->problem, tensor); i++) {
    values[i] = fg_random_normal(&state);
    if (is_w) values[i] /= sqrt((double)in);
    if (is_gamma) values[i] += 1;
    if (is_norm && is_term) values[i] *= reference_size_of_terms(c);
    if (is_x && style == VERIFY_LARGE) values[i] *= 30;
    if (is_x && style == VERIFY_ABSENT && i / in % 3 == 1) values[i] = 0;
  }
}

/* ---- what is right ---- */

static result find_result(const reference_case *c, const char *name) {
  const linear *s = c->own;
  for (int i = 0; i < RESULTS; i++)
    if (s->of[i].name && !strcmp(s->of[i].name, name)) return s->of[i];
  return (result){0};
}

/* Words of 32 columns, as the integers that they are. */
static void put_bits(const linear *s, double *words) {
  const int64_t out = s->problem.out;
  for (int64_t i = 0; i < s->problem.rows * s->words; i++) {
    const int64_t row = i / s->words, first = i % s->words * 32;
    uint32_t word = 0;
    for (int64_t j = first; j < first + 32 && j < out; j++)
      word |= (uint32_t)(s->h[row * out + j] > 0) << j % 32;
    words[i] = (double)(int32_t)word;
  }
}

/* What forward leaves for backward. */
static void put_kept(const linear *s, double *to) {
  if (keeps_bits(s))
    put_bits(s, to);
  else
    memcpy(to, s->kept, (size_t)(s->problem.rows * s->columns) * sizeof *to);
}

static void copy(result to, const double *ref, const double *rss, int64_t n) {
  if (!to.ref) return;
  memcpy(to.ref, ref, (size_t)n * sizeof *ref);
  memcpy(to.rss, rss, (size_t)n * sizeof *rss);
}

/* What normalises the rows of z. */
static oracle_norm *norm_of(const reference_case *c, const double *z, const double *z_rss) {
  linear *s = c->own;
  oracle_norm *p = &s->norm;
  p->eps = reference_eps(c), p->z = z, p->z_rss = z_rss;
  p->gamma = reference_value(c, "gamma"), p->beta = reference_value(c, "beta");
  p->dout = reference_value(c, "dout"), p->dz = reference_value(c, "dz");
  s->worst = oracle_norm_statistics(p, find_result(c, "mean").rss);
  return p;
}

static void normalise(const reference_case *c) {
  const linear *s = c->own;
  const result out = find_result(c, "out"), mean = find_result(c, "mean");
  oracle_linear_y(&s->problem, s->h, s->h_rss, s->z, s->z_rss);
  const oracle_norm *p = norm_of(c, s->z, s->z_rss);
  copy(find_result(c, "z"), s->z, s->z_rss, p->rows * p->width);
  copy(find_result(c, "rstd"), p->rstd, p->rstd, p->rows);
  if (mean.ref) memcpy(mean.ref, p->mean, (size_t)p->rows * sizeof(double));
  oracle_norm_out(p, out.ref, out.rss);
}

static void forward(const reference_case *c) {
  const linear *s = c->own;
  if (s->problem.epilogue->is_norm) {
    normalise(c);
    return;
  }
  const result y = find_result(c, "y"), keep = find_result(c, "keep");
  oracle_linear_y(&s->problem, s->h, s->h_rss, y.ref, y.rss);
  if (!keep.ref) return;
  put_kept(s, keep.ref);
  if (!keeps_bits(s))
    memcpy(keep.rss, s->kept_rss, (size_t)(s->problem.rows * s->columns) * sizeof *keep.rss);
}

/* The gradient of z takes the place of dy. */
static fg_status backward_norm(reference_case *c, result *dbias) {
  linear *s = c->own;
  const oracle_norm *p = norm_of(c, reference_value(c, "z"), NULL);
  TRY(reference_put_rows(c, "mean", p->mean));
  TRY(reference_put_rows(c, "rstd", p->rstd));
  const result dgamma = find_result(c, "dgamma"), dbeta = find_result(c, "dbeta");
  const oracle_norm_gradients to = {s->z,      s->z_rss,  dgamma.ref, dgamma.rss,
                                    dbeta.ref, dbeta.rss, dbias->ref, dbias->rss};
  oracle_norm_backward(p, &to);
  copy(find_result(c, "dresidual"), s->z, s->z_rss, p->rows * p->width);
  s->problem.dy = s->z;
  *dbias = (result){0};
  return FG_OK;
}

/* Judged from the factors that the kernel is given, rounded by reference_put. */
static fg_status backward(reference_case *c) {
  linear *s = c->own;
  double *keep = reference_value(c, "keep");
  if (keep) {
    put_kept(s, keep);
    TRY(reference_put(c, fg_problem_find(c->problem, "keep"), keep));
  }
  const result dx = find_result(c, "dx"), dw = find_result(c, "dw");
  result dbias = find_result(c, "dbias");
  if (s->problem.epilogue->is_norm) TRY(backward_norm(c, &dbias));
  s->problem.kept = keep && !keeps_bits(s) ? keep : s->kept;
  s->problem.round = oracle_round(fg_point_elem(&c->variant->point));
  s->problem.dx_more = reference_value(c, "dx_more");
  const oracle_linear_gradients to = {dx.ref, dx.rss, dw.ref, dw.rss, dbias.ref, dbias.rss};
  oracle_linear_backward(&s->problem, &to);
  return FG_OK;
}

/* That of a backward is one that its kernel does not see. */
static void make_bias(const reference_case *c) {
  const linear *s = c->own;
  const double *given = reference_value(c, "bias");
  uint64_t state = c->which->seed * 7919 + 1;
  for (int64_t j = 0; j < s->columns && c->variant->point.bias; j++)
    s->bias[j] = given ? given[j] : fg_random_normal(&state);
}

static fg_status solve(reference_case *c, int plain) {
  linear *s = c->own;
  (void)plain; /* there is no unfused result */
  make_bias(c);
  s->problem.x = reference_value(c, "x"), s->problem.w = reference_value(c, "w");
  s->problem.residual = reference_value(c, "residual"), s->problem.dy = reference_value(c, "dy");
  s->problem.bias = s->bias;
  oracle_linear_h(&s->problem, s->h, s->h_rss);
  oracle_linear_kept(&s->problem, s->h, s->h_rss, s->kept, s->kept_rss);
  if (is_backward(c)) return backward(c);
  forward(c);
  return FG_OK;
}

static reference_values find(const reference_case *c, const char *name) {
  const result x = find_result(c, name);
  const bool has_bits = !strcmp(name, "keep") && keeps_bits(c->own);
  const bool is_statistic = !strcmp(name, "mean") || !strcmp(name, "rstd");
  const double limit = is_statistic ? 1e-5 + 2e-7 * ((const linear *)c->own)->worst : 0;
  return (reference_values){.ref = x.ref, .rss = has_bits ? NULL : x.rss, .limit = limit};
}

/* Not of rows of zeros, whose sums are exact. */
static bool is_nothing(const linear *s, int64_t i) {
  return s->h_rss[i] > 0 && fabs(s->h[i]) <= blur * s->h_rss[i];
}

/* The word with the right bits where h is as good as 0. */
static double forgive_bits(const linear *s, int64_t i, double is, double should) {
  const int64_t out = s->problem.out, row = i / s->words, first = i % s->words * 32;
  uint32_t bits = (uint32_t)(int32_t)is;
  for (int64_t j = first; j < first + 32 && j < out; j++) {
    const uint32_t mask = 1u << j % 32;
    if (is_nothing(s, row * out + j)) bits = (bits & ~mask) | ((uint32_t)(int32_t)should & mask);
  }
  return (double)(int32_t)bits;
}

/* Where h is as good as 0 a derivative that jumps there may be either. */
static void forgive(const reference_case *c, int tensor, double *values) {
  const linear *s = c->own;
  const result x = find_result(c, c->problem->recipe->tensor[tensor].name);
  if (strcmp(x.name, "keep") || !s->problem.epilogue->is_test) return;
  const int64_t n = s->problem.rows * (keeps_bits(s) ? s->words : s->columns);
  for (int64_t i = 0; i < n; i++)
    if (keeps_bits(s))
      values[i] = forgive_bits(s, i, values[i], x.ref[i]);
    else if (i % s->columns < s->problem.out && is_nothing(s, i))
      values[i] = x.ref[i];
}

/* There are no pairs. */
static void tell(const reference_case *c, verify_verdict *verdict) { (void)c, (void)verdict; }

static void free_own(reference_case *c) {
  linear *s = c->own;
  if (!s) return;
  for (int i = 0; i < RESULTS; i++) {
    free(s->of[i].ref);
    free(s->of[i].rss);
  }
  double *const own[] = {s->h, s->h_rss, s->bias,      s->kept,     s->kept_rss,
                         s->z, s->z_rss, s->norm.mean, s->norm.rstd};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) free(own[i]);
  free(s);
}

static const char *const saved[] = {"keep", "mean", "rstd", NULL};
const reference reference_linear = {saved, start, draw, solve, find, tell, free_own, forgive};
