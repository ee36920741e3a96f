/* reference_combine.c - parts of attention combined, in float64 (mathematics.md section 2). */
#include "reference.h"

#include "base/random.h"
#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Arrays in the oracle's order: o [b, h, nq, dv], lse [b, h, nq]. Parts are as stored, o_parts [s,
 * b, nq, h, dv] and lse_parts [s, b, h, nq]. */
typedef struct {
  int64_t parts, b, h, nq, width;
  double *o, *rss, *plain, *lse; /* lse: the normaliser's second output */
  double *u, *u_rss;             /* of one that sums values */
  const oracle_normalizer *normalizer;
} combine;

static double *array(int64_t n) { return malloc(((size_t)n + 1) * sizeof(double)); }

static fg_status start(reference_case *c) {
  const fg_shape *s = &c->problem->shape;
  TRY(reference_check_normalizer(c));
  combine *x = c->own = calloc(1, sizeof *x);
  if (!x) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  *x = (combine){.parts = s->parts,
                 .b = s->b,
                 .h = s->h,
                 .nq = s->nq,
                 .width = c->variant->point.dv,
                 .normalizer = oracle_normalizer_find(c->variant->point.normalizer)};
  const int64_t rows = x->b * x->h * x->nq, n = rows * x->width;
  x->o = array(n), x->rss = array(n), x->plain = array(n), x->lse = array(rows);
  x->u = array(n), x->u_rss = array(n);
  return x->o && x->rss && x->plain && x->lse && x->u && x->u_rss
             ? FG_OK
             : fg_fail(FG_EMEMORY, "no memory for the oracle");
}

/* The LSE of a part of a row: normal numbers; large ones, whose exp overflows; or, of many, -inf,
 * every seventh row nothing else. */
static double draw_lse(const reference_case *c, int64_t row, uint64_t *state) {
  const double x = fg_random_normal(state);
  const bool is_absent = fg_random_uniform(state) < 0.4 || row % 7 == 3;
  if (c->which->style == VERIFY_LARGE) return 300 * x;
  return c->which->style == VERIFY_ABSENT && is_absent ? -INFINITY : x;
}

/* Where a part is empty, which the tensor before this one says, its O is no number. */
static void draw(const reference_case *c, int tensor, double *values) {
  const combine *x = c->own;
  const fg_recipe_tensor *t = &c->problem->recipe->tensor[tensor];
  const int64_t rows = x->b * x->h * x->nq, count = fg_problem_count(c->problem, tensor);
  uint64_t state = c->which->seed * 1000003 + (uint64_t)tensor;
  const bool is_lse = !strcmp(t->name, "lse_parts"), is_r = !strcmp(t->name, "r_parts");
  for (int64_t i = 0; i < count; i++) {
    values[i] = is_lse ? draw_lse(c, i % rows, &state) : fg_random_normal(&state);
    if (is_r) values[i] = fabs(values[i]);
  }
}

static int64_t lse_at(const combine *x, int64_t part, int64_t b, int64_t h, int64_t q) {
  return ((part * x->b + b) * x->h + h) * x->nq + q;
}

static int64_t o_at(const combine *x, int64_t part, int64_t b, int64_t h, int64_t q) {
  return (((part * x->b + b) * x->nq + q) * x->h + h) * x->width;
}

static bool keeps_lse(const combine *x) {
  return x->normalizer->second && !strcmp(x->normalizer->second, "lse");
}

/* The second output of a row, and what part i counts in its o; `kept`: of the parts. */
static double second_of(const combine *x, const double *kept, double sink, int64_t b, int64_t h,
                        int64_t q) {
  double most = sink, sum = 0;
  for (int64_t i = 0; kept && i < x->parts; i++) {
    const double own = kept[lse_at(x, i, b, h, q)];
    most = fmax(most, own), sum += own;
  }
  if (!keeps_lse(x)) return sum;
  if (!(most > -INFINITY)) return -INFINITY;
  sum = exp(sink - most);
  for (int64_t i = 0; i < x->parts; i++) sum += exp(kept[lse_at(x, i, b, h, q)] - most);
  return most + log(sum);
}

static double weight_of(const combine *x, double second, double whole) {
  if (x->normalizer->sums_values) return second > -INFINITY;
  if (keeps_lse(x)) return second > -INFINITY ? exp(second - whole) : 0;
  return x->normalizer->second ? fmax(second, 1) / fmax(whole, 1) : 1;
}

/* u_parts: NULL, or the parts' sums of values, by which log-softmax takes what each part was finished
 * with for the LSE of all. plain: weights are rounded, and so is each sum. */
static void solve_row(combine *x, const double *o_parts, const double *u_parts, const double *kept,
                      double sink, int64_t b, int64_t h, int64_t q, double (*round)(double)) {
  const int64_t row = lse_at(x, 0, b, h, q);
  x->lse[row] = second_of(x, kept, sink, b, h, q);
  for (int64_t d = 0; d < x->width; d++) {
    double o = 0, squares = 0, plain = 0, u = 0, u_squares = 0;
    for (int64_t i = 0; i < x->parts; i++) {
      const double second = kept ? kept[lse_at(x, i, b, h, q)] : 0;
      const double weight = weight_of(x, second, x->lse[row]);
      const int64_t at = o_at(x, i, b, h, q) + d;
      if (weight == 0) continue;
      const double shift = u_parts ? (second - x->lse[row]) * u_parts[at] : 0;
      const double term = weight * o_parts[at] + shift;
      o += term, squares += term * term;
      plain = round(plain + round(round(weight) * o_parts[at] + shift));
      if (!u_parts) continue;
      u += u_parts[at], u_squares += u_parts[at] * u_parts[at];
    }
    x->u[row * x->width + d] = u;
    x->u_rss[row * x->width + d] = sqrt(u_squares);
    x->o[row * x->width + d] = o;
    x->rss[row * x->width + d] = sqrt(squares);
    x->plain[row * x->width + d] = plain;
  }
}

/* The O of parts without keys is none of the result's business: it is NaN by now. */
static fg_status poison(reference_case *c, const char *name, double *parts,
                        const double *lse_parts) {
  const combine *x = c->own;
  for (int64_t i = 0; i < x->parts; i++)
    for (int64_t b = 0; b < x->b; b++)
      for (int64_t h = 0; h < x->h; h++)
        for (int64_t q = 0; q < x->nq; q++)
          for (int64_t d = 0; d < x->width && !(lse_parts[lse_at(x, i, b, h, q)] > -INFINITY); d++)
            parts[o_at(x, i, b, h, q) + d] = NAN;
  return reference_put(c, fg_problem_find(c->problem, name), parts);
}

static fg_status solve(reference_case *c, int plain) {
  combine *x = c->own;
  double *o_parts = reference_value(c, "o_parts"), *lse_parts = reference_value(c, "lse_parts");
  double *u_parts = reference_value(c, "u_parts");
  const double *kept = lse_parts ? lse_parts : reference_value(c, "r_parts");
  const double *sinks = reference_value(c, "sink");
  double (*round)(double) = oracle_round(fg_point_elem(&c->variant->point));
  (void)plain; /* it costs nothing here */
  if (lse_parts) TRY(poison(c, "o_parts", o_parts, lse_parts));
  if (u_parts) TRY(poison(c, "u_parts", u_parts, lse_parts));
  for (int64_t b = 0; b < x->b; b++)
    for (int64_t h = 0; h < x->h; h++)
      for (int64_t q = 0; q < x->nq; q++)
        solve_row(x, o_parts, u_parts, kept, sinks ? sinks[h] : -INFINITY, b, h, q, round);
  return FG_OK;
}

static reference_values find(const reference_case *c, const char *name) {
  const combine *x = c->own;
  if (!strcmp(name, "o")) return (reference_values){.ref = x->o, .rss = x->rss, .plain = x->plain};
  if (!strcmp(name, "u")) return (reference_values){.ref = x->u, .rss = x->u_rss, .limit = 1e-4};
  const char *second = x->normalizer->second;
  if (!second || strcmp(name, second)) return (reference_values){0};
  return (reference_values){.ref = x->lse, .limit = keeps_lse(x) ? 0 : 1e-5};
}

/* There are no pairs. */
static void tell(const reference_case *c, verify_verdict *verdict) { (void)c, (void)verdict; }

static void free_own(reference_case *c) {
  combine *x = c->own;
  if (!x) return;
  free(x->o);
  free(x->rss);
  free(x->plain);
  free(x->lse);
  free(x->u);
  free(x->u_rss);
  free(x);
}

static const char *const saved[] = {NULL};
const reference reference_combine = {saved, start, draw, solve, find, tell, free_own, NULL};
