/* reference_logsoftmax.c - log-softmax of rows in float64, and the loss of a target (mathematics.md
 * section 5). */
#include "reference.h"

#include "base/random.h"
#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Arrays are [rows, width]. Of a backward without a target x is this file's own: the kernel is
 * given y. */
typedef struct {
  int64_t rows, width;
  double *x, *result, *rss, *plain; /* result: y, then dx */
  double *lse, *loss, *loss_rss;    /* [rows] */
} logsoftmax;

static bool is_backward(const reference_case *c) {
  return c->variant->point.pass == FG_PASS_BACKWARD;
}

static bool has_target(const reference_case *c) { return c->variant->point.target; }

static fg_status start(reference_case *c) {
  logsoftmax *s = c->own = calloc(1, sizeof *s);
  if (!s) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  s->rows = c->problem->shape.rows, s->width = c->variant->point.width;
  const size_t bytes = ((size_t)(s->rows * s->width) + 1) * sizeof(double);
  s->x = malloc(bytes), s->result = malloc(bytes), s->rss = malloc(bytes), s->plain = malloc(bytes);
  const size_t few = ((size_t)s->rows + 1) * sizeof(double);
  s->lse = malloc(few), s->loss = malloc(few), s->loss_rss = malloc(few);
  const bool all = s->x && s->result && s->rss && s->plain && s->lse && s->loss && s->loss_rss;
  return all ? FG_OK : fg_fail(FG_EMEMORY, "no memory for the oracle");
}

/* Normal numbers; large ones; or many of -inf, every seventh row nothing else. */
static void draw_x(const reference_case *c, uint64_t state, double *x) {
  const logsoftmax *s = c->own;
  const verify_style style = c->which->style;
  for (int64_t i = 0; i < s->rows * s->width; i++) {
    x[i] = fg_random_normal(&state) * (style == VERIFY_LARGE ? 40 : 1);
    const bool absent = fg_random_uniform(&state) < 0.4 || i / s->width % 7 == 3;
    if (style == VERIFY_ABSENT && absent) x[i] = -INFINITY;
  }
}

/* Columns, of which some are not there. */
static void draw_target(const reference_case *c, uint64_t state, double *target) {
  const logsoftmax *s = c->own;
  const int64_t wild[] = {-100, -1, INT32_MIN, s->width, INT32_MAX};
  for (int64_t r = 0; r < s->rows; r++) {
    const uint64_t random = fg_random_next(&state);
    const int64_t column = (int64_t)((random >> 8) % (uint64_t)s->width);
    target[r] = (double)(random % 4 ? column : wild[(random >> 8) % 5]);
  }
}

static void draw(const reference_case *c, int tensor, double *values) {
  const char *name = c->problem->recipe->tensor[tensor].name;
  const bool is_weight = !strcmp(name, "weight");
  uint64_t state = c->which->seed * 1000003 + (uint64_t)tensor;
  if (!strcmp(name, "x"))
    draw_x(c, state, values);
  else if (!strcmp(name, "target"))
    draw_target(c, state, values);
  else
    for (int64_t i = 0; i < fg_problem_count(c->problem, tensor); i++) {
      const double normal = fg_random_normal(&state);
      values[i] = is_weight ? fabs(normal) + 0.1 : normal;
    }
}

static double log_sum_exp(const double *x, int64_t n) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, x[i]);
  for (int64_t i = 0; i < n && most > -INFINITY; i++) sum += exp(x[i] - most);
  return most > -INFINITY ? most + log(sum) : -INFINITY;
}

static void forward(logsoftmax *s, double (*round)(double)) {
  for (int64_t r = 0; r < s->rows; r++) {
    const double *x = s->x + r * s->width, lse = log_sum_exp(x, s->width);
    s->lse[r] = lse;
    for (int64_t i = 0, at = r * s->width; i < s->width; i++, at++) {
      const bool finite = x[i] > -INFINITY;
      s->result[at] = finite ? x[i] - lse : -INFINITY;
      s->rss[at] = finite ? fabs(x[i]) + fabs(lse) : 0;
      s->plain[at] = finite ? round(round(x[i]) - round(lse)) : -INFINITY;
    }
  }
}

/* y is what the kernel is given. */
static void backward(logsoftmax *s, const double *y, const double *dy, double (*round)(double)) {
  for (int64_t r = 0; r < s->rows; r++) {
    double sum = 0;
    const int64_t first = r * s->width;
    for (int64_t at = first; at < first + s->width; at++)
      if (y[at] > -INFINITY) sum += dy[at];
    for (int64_t at = first; at < first + s->width; at++) {
      const bool finite = y[at] > -INFINITY;
      const double p = finite ? exp(y[at]) : 0;
      s->result[at] = finite ? dy[at] - p * sum : 0;
      s->rss[at] = finite ? fabs(dy[at]) + p * fabs(sum) : 0;
      s->plain[at] = finite ? round(dy[at] - round(round(p) * round(sum))) : 0;
    }
  }
}

/* The loss of each row; a row counts whose target is a column. */
static void solve_loss(reference_case *c) {
  logsoftmax *s = c->own;
  const double *target = reference_value(c, "target"), *weight = reference_value(c, "weight");
  for (int64_t r = 0; r < s->rows; r++) {
    s->loss[r] = s->loss_rss[r] = 0;
    if (target[r] < 0 || target[r] >= (double)s->width) continue;
    const int64_t t = (int64_t)target[r];
    const double w = weight ? weight[t] : 1, x = s->x[r * s->width + t];
    s->loss[r] = isinf(x) ? INFINITY : w * (s->lse[r] - x);
    s->loss_rss[r] = isinf(x) ? 0 : w * (fabs(s->lse[r]) + fabs(x));
  }
}

/* Its gradient, from the lse that the kernel is given. */
static void solve_loss_backward(reference_case *c) {
  logsoftmax *s = c->own;
  const double *target = reference_value(c, "target"), *weight = reference_value(c, "weight");
  const double *lse = reference_value(c, "lse"), *dloss = reference_value(c, "dloss");
  for (int64_t i = 0; i < s->rows * s->width; i++) {
    const int64_t r = i / s->width, t = (int64_t)target[r];
    const bool counts = t >= 0 && t < s->width, is_target = t == i % s->width;
    const double factor = counts ? dloss[r] * (weight ? weight[t] : 1) : 0;
    const double p = isinf(s->x[i]) ? 0 : exp(s->x[i] - lse[r]);
    s->result[i] = factor * (p - is_target);
    s->rss[i] = fabs(factor) * (p + is_target);
  }
}

static fg_status solve_target(reference_case *c, double (*round)(double)) {
  logsoftmax *s = c->own;
  memcpy(s->x, reference_value(c, "x"), (size_t)(s->rows * s->width) * sizeof *s->x);
  forward(s, round);
  if (!is_backward(c)) {
    solve_loss(c);
    return FG_OK;
  }
  double *lse = reference_value(c, "lse");
  memcpy(lse, s->lse, (size_t)s->rows * sizeof *lse);
  TRY(reference_put(c, fg_problem_find(c->problem, "lse"), lse));
  solve_loss_backward(c);
  return FG_OK;
}

/* Backward is judged from the y that the kernel is given: rounded by reference_put. */
static fg_status solve(reference_case *c, int plain) {
  logsoftmax *s = c->own;
  double (*round)(double) = oracle_round(fg_point_elem(&c->variant->point));
  (void)plain; /* it costs nothing here */
  if (has_target(c)) return solve_target(c, round);
  if (is_backward(c)) {
    draw_x(c, c->which->seed * 7919 + 1, s->x);
  } else {
    memcpy(s->x, reference_value(c, "x"), (size_t)(s->rows * s->width) * sizeof *s->x);
  }
  forward(s, round);
  if (!is_backward(c)) return FG_OK;
  double *y = reference_value(c, "y");
  memcpy(y, s->result, (size_t)(s->rows * s->width) * sizeof *y);
  TRY(reference_put(c, fg_problem_find(c->problem, "y"), y));
  backward(s, y, reference_value(c, "dy"), round);
  return FG_OK;
}

static reference_values find(const reference_case *c, const char *name) {
  const logsoftmax *s = c->own;
  const bool is_output = !strcmp(name, is_backward(c) ? "dx" : "y");
  if (!strcmp(name, "loss"))
    return (reference_values){.ref = s->loss, .rss = s->loss_rss, .limit = 1e-5};
  if (!strcmp(name, "lse")) return (reference_values){.ref = s->lse};
  if (!is_output) return (reference_values){0};
  return (reference_values){
      .ref = s->result, .rss = s->rss, .plain = has_target(c) ? NULL : s->plain};
}

/* There are no pairs. */
static void tell(const reference_case *c, verify_verdict *verdict) { (void)c, (void)verdict; }

static void free_own(reference_case *c) {
  logsoftmax *s = c->own;
  if (!s) return;
  free(s->x);
  free(s->result);
  free(s->rss);
  free(s->plain);
  free(s->lse);
  free(s->loss);
  free(s->loss_rss);
  free(s);
}

static const char *const saved[] = {"y", "lse", NULL};
const reference reference_logsoftmax = {saved, start, draw, solve, find, tell, free_own, NULL};
