/* verify.c - draws inputs, runs a variant, compares every output with the oracle. */
#include "verify.h"
#include "base/random.h"

#include "oracle.h"
#include "problem.h"
#include "verify_again.h"
#include "verify_formula.h"
#include "verify_skip.h"
#include "verify_wrong.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that a stride exceeds its contiguous value by, at most. */
#define PADDING(which) ((which)->packed ? 0 : 24)

typedef struct {
  const verify_case *which;
  fg_problem *problem;
  double *value[FG_TENSOR_MAX]; /* of each tensor, in the oracle's order */
  oracle_problem oracle;
  oracle_result exact, plain;
  verify_formula formula;
} bench;

static double draw(const bench *b, const char *name, uint64_t *state) {
  double x = fg_random_normal(state);
  if (b->which->style == VERIFY_LARGE && !strcmp(name, "q")) return 40 * x;
  if (b->which->style != VERIFY_ABSENT || strcmp(name, "bias")) return x;
  double kind = fg_random_uniform(state);
  return kind < 0.4 ? -INFINITY : kind < 0.5 ? 3000 * x : x;
}

/* Tensors are stored b n h d, the oracle's arrays b h n d: copies one to the other, whichever way.
 * Those without a head axis behind the rows are alike. */
static void reorder(const bench *b, int tensor, int to_oracle, float *stored, double *ordered) {
  int64_t e[4];
  const bool swap = verify_wrong_swapped(b->problem->recipe, tensor, &b->problem->shape, e);
  for (int64_t i = 0; i < e[0]; i++)
    for (int64_t j = 0; j < e[1]; j++)
      for (int64_t k = 0; k < e[2]; k++) {
        float *s = stored + ((i * e[1] + j) * e[2] + k) * e[3];
        double *o = ordered + (swap ? (i * e[2] + k) * e[1] + j : (i * e[1] + j) * e[2] + k) * e[3];
        for (int64_t l = 0; l < e[3]; l++) {
          if (to_oracle)
            o[l] = (double)s[l];
          else
            s[l] = (float)o[l];
        }
      }
}

/* Integers are exact in the launch as in the oracle. */
static fg_status put_integers(bench *b, int tensor, const double *values) {
  const int64_t count = fg_problem_count(b->problem, tensor);
  int64_t *whole = malloc(((size_t)count + 1) * sizeof *whole);
  if (!whole) return fg_fail(FG_EMEMORY, "no memory for inputs");
  for (int64_t i = 0; i < count; i++) whole[i] = (int64_t)values[i];
  fg_status status = fg_problem_set_ints(b->problem, tensor, whole);
  free(whole);
  return status;
}

static fg_status put(bench *b, int tensor, double *values) {
  if (b->problem->recipe->tensor[tensor].elem == FG_ELEM_I32)
    return put_integers(b, tensor, values);
  size_t count = (size_t)fg_problem_count(b->problem, tensor);
  float *stored = malloc((count + 1) * sizeof *stored);
  if (!stored) return fg_fail(FG_EMEMORY, "no memory for inputs");
  reorder(b, tensor, 0, stored, values);
  fg_status status = fg_problem_set(b->problem, tensor, stored);
  if (status == FG_OK) /* rounded, as the kernel sees them */
    status = fg_problem_get(b->problem, tensor, stored);
  reorder(b, tensor, 1, stored, values);
  free(stored);
  return status;
}

fg_status verify_array_check(const fg_recipe *recipe, const fg_recipe_tensor *t,
                             const fg_shape *shape, const fg_array *array) {
  const bool integers = t->elem == FG_ELEM_I32;
  if (integers != (array->integer != NULL))
    return fg_fail(FG_EARGUMENT, "%s: its file holds %s (%s), expected %s", t->name,
                   integers ? "floats" : "integers", array->type, integers ? "integers" : "floats");
  if (array->rank != (int)strlen(t->axes))
    return fg_fail(FG_EARGUMENT, "%s: its file has %d axes, expected %d", t->name, array->rank,
                   (int)strlen(t->axes));
  for (int a = 0; a < array->rank; a++) {
    const int64_t want = fg_recipe_extent(recipe, t->axes[a], shape);
    if (array->extent[a] != want)
      return fg_fail(FG_EARGUMENT,
                     "%s: axis %d of its file has %" PRId64 ", the shape %" PRId64
                     " (b= h= hk= nq= nk= choose another)",
                     t->name, a, array->extent[a], want);
  }
  return FG_OK;
}

static const fg_array *given(const bench *b, const char *name) {
  for (int i = 0; i < b->which->n_arrays; i++)
    if (!strcmp(b->which->array[i].name, name)) return b->which->array[i].array;
  return NULL;
}

/* Values of the case, which are in the order in which tensors are stored. */
static fg_status copy_given(bench *b, int tensor, const fg_array *array) {
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  TRY(verify_array_check(b->problem->recipe, t, &b->problem->shape, array));
  if (array->integer) {
    for (int64_t i = 0; i < array->count; i++) b->value[tensor][i] = (double)array->integer[i];
  } else {
    reorder(b, tensor, 1, array->real, b->value[tensor]);
  }
  return FG_OK;
}

/* Draws the inputs that are free; o and lse of a backward come from the oracle later. */
static fg_status draw_inputs(bench *b, const fg_plan *plan) {
  const fg_recipe *r = b->problem->recipe;
  for (int i = 0; i < r->n_tensors; i++) {
    const char *name = r->tensor[i].name;
    const fg_array *array = given(b, name);
    int64_t count = fg_problem_count(b->problem, i);
    if (!(b->value[i] = malloc(((size_t)count + 1) * sizeof(double))))
      return fg_fail(FG_EMEMORY, "no memory for inputs");
    if (r->tensor[i].output || !strcmp(name, "o") || !strcmp(name, "lse")) continue;
    if (r->tensor[i].argument->optional && b->which->seed % 2 && !array) {
      fg_problem_drop(b->problem, i);
      free(b->value[i]);
      b->value[i] = NULL;
      continue;
    }
    uint64_t state = b->which->seed * 1000003 + (uint64_t)i;
    if (array)
      TRY(copy_given(b, i, array));
    else if (r->tensor[i].slot >= 0)
      verify_formula_draw(&b->formula, b->problem, b->which, plan, i, b->value[i]);
    else
      for (int64_t j = 0; j < count; j++) b->value[i][j] = draw(b, name, &state);
    TRY(put(b, i, b->value[i]));
  }
  verify_formula_bind(&b->formula, b->problem, b->value);
  return FG_OK;
}

static const double *value(const bench *b, const char *name) {
  int i = fg_problem_find(b->problem, name);
  return i < 0 ? NULL : b->value[i];
}

static void set_oracle(bench *b, const fg_variant *v) {
  const fg_shape *s = &b->problem->shape;
  const bool given = b->which->given & FG_GIVEN_SCALE;
  const double scale = (double)(given ? b->which->scale : 1 / sqrtf((float)v->point.d));
  b->oracle = (oracle_problem){.b = s->b,
                               .h = s->h,
                               .hk = s->hk,
                               .nq = s->nq,
                               .nk = s->nk,
                               .d = v->point.d,
                               .dv = v->point.dv,
                               .scale = scale};
  b->oracle.q = value(b, "q"), b->oracle.k = value(b, "k"), b->oracle.v = value(b, "v");
  b->oracle.bias = value(b, "bias");
  b->oracle.dout = value(b, "do"), b->oracle.dlse = value(b, "dlse");
  int bias = fg_problem_find(b->problem, "bias");
  for (int a = 0; a < 4 && bias >= 0; a++)
    b->oracle.bias_extent[a] =
        fg_recipe_extent(b->problem->recipe, b->problem->recipe->tensor[bias].axes[a], s);
  b->oracle.mask = b->formula.mask, b->oracle.score = b->formula.score;
  b->oracle.n_inputs = b->formula.n_inputs;
  b->oracle.inputs = b->formula.inputs, b->oracle.grad = b->formula.grad;
}

/* Backward is judged from the o and lse that the kernel is given: rounded by `put`. */
static fg_status run_oracle(bench *b, const fg_variant *v, int plain) {
  int (*oracle)(const oracle_problem *, oracle_result *) = oracle_forward;
  int failed = oracle_forward(&b->oracle, &b->exact);
  if (v->point.pass == FG_PASS_BACKWARD && !failed) {
    TRY(put(b, fg_problem_find(b->problem, "o"), b->exact.o));
    TRY(put(b, fg_problem_find(b->problem, "lse"), b->exact.lse));
    b->oracle.o = b->exact.o;
    oracle = oracle_backward;
    failed = oracle_backward(&b->oracle, &b->exact);
  }
  oracle_problem rounded = b->oracle;
  rounded.round = oracle_round(fg_point_elem(&v->point));
  if (plain && !failed) failed = oracle(&rounded, &b->plain);
  TRY(verify_formula_check(&b->formula));
  return failed ? fg_fail(FG_EMEMORY, "no memory for the oracle") : FG_OK;
}

/* Where the oracle has an output, its rss and the unfused one. */
static void find_result(const bench *b, const char *name, const double **ref, const double **rss,
                        const double **plain) {
  const struct {
    const char *name;
    const double *ref, *rss, *plain;
  } rows[] = {{"o", b->exact.o, b->exact.o_rss, b->plain.o},
              {"lse", b->exact.lse, NULL, NULL},
              {"dq", b->exact.dq, b->exact.dq_rss, b->plain.dq},
              {"dk", b->exact.dk, b->exact.dk_rss, b->plain.dk},
              {"dv", b->exact.dv, b->exact.dv_rss, b->plain.dv},
              {"dbias", b->exact.dbias, b->exact.dbias_rss, b->plain.dbias}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name)) *ref = rows[i].ref, *rss = rows[i].rss, *plain = rows[i].plain;
  for (int i = 0; i < b->formula.n_inputs && *name == 'd'; i++)
    if (!strcmp(b->formula.inputs[i].name, name + 1))
      *ref = b->exact.dinput[i], *rss = b->exact.dinput_rss[i], *plain = b->plain.dinput[i];
}

/* By the spec's dtype, in which P and dS were made, unless the output itself is kept in a coarser
 * one. */
static double limit_of(const fg_variant *v, fg_elem elem) {
  double spec = oracle_limit(fg_point_elem(&v->point)), own = oracle_limit(elem);
  return own > spec ? own : spec;
}

/* What no kernel can have more exactly is what is exact. Subnormal float16s are 2^-24 apart: a
 * value that is rounded to the nearest is right. A scale of 0 is launched as 2^-120, and gradients
 * are what is left of it. */
static void settle(const bench *b, int tensor, double *x) {
  const double *ref = NULL, *rss, *plain;
  const bool coarse = b->problem->recipe->tensor[tensor].elem == FG_ELEM_F16;
  const bool zero = b->which->given & FG_GIVEN_SCALE && !(fabsf(b->which->scale) > 0);
  const double near = coarse ? 0x1p-25 : zero ? 0x1p-90 : 0;
  find_result(b, b->problem->recipe->tensor[tensor].name, &ref, &rss, &plain);
  for (int64_t i = 0, n = near > 0 ? fg_problem_count(b->problem, tensor) : 0; i < n; i++)
    if (fabs(x[i] - ref[i]) <= near) x[i] = ref[i];
}

/* An output's values, in the oracle's order. */
static fg_status get(bench *b, int tensor) {
  const int64_t n = fg_problem_count(b->problem, tensor);
  float *stored = malloc(((size_t)n + 1) * sizeof *stored);
  if (!stored) return fg_fail(FG_EMEMORY, "no memory for outputs");
  fg_status status = fg_problem_get(b->problem, tensor, stored);
  reorder(b, tensor, 1, stored, b->value[tensor]);
  settle(b, tensor, b->value[tensor]);
  free(stored);
  return status;
}

/* An output's error, from values in the oracle's order. */
static verify_error measure(const bench *b, const fg_variant *v, int tensor, const double *x) {
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  const double *ref = NULL, *rss = NULL, *plain = NULL;
  const int64_t n = fg_problem_count(b->problem, tensor);
  find_result(b, t->name, &ref, &rss, &plain);
  verify_error e = {.own_unit = !rss, .limit = limit_of(v, t->elem)};
  snprintf(e.name, sizeof e.name, "%s", t->name);
  e.error = rss ? oracle_error(n, x, ref, rss) : oracle_lse_error(n, x, ref, &e.limit);
  if (rss && verify_wrong_blank(n, t->elem, x, ref, rss)) e.error = 1; /* of what it should be */
  e.plain = plain ? oracle_error(n, plain, ref, rss) : 0;
  return e;
}

static bool is_zero(int64_t n, const double *x) {
  for (int64_t i = 0; i < n; i++)
    if (!(x[i] >= 0 && x[i] <= 0)) return false;
  return true;
}

static bool has_nan(int64_t n, const double *x) {
  for (int64_t i = 0; i < n; i++)
    if (isnan(x[i])) return true;
  return false;
}

static fg_status judge(bench *b, const fg_variant *v, verify_verdict *verdict) {
  const fg_recipe *r = b->problem->recipe;
  *verdict = (verify_verdict){.pass = 1, .nothing = true};
  for (int i = 0; i < r->n_tensors; i++) {
    const double *ref = NULL, *rss = NULL, *plain;
    if (!r->tensor[i].output) continue;
    TRY(get(b, i));
    verify_error *e = &verdict->tensor[verdict->n++];
    *e = measure(b, v, i, b->value[i]);
    find_result(b, e->name, &ref, &rss, &plain);
    verdict->nothing &= !rss || is_zero(fg_problem_count(b->problem, i), ref);
    verdict->undefined |= has_nan(fg_problem_count(b->problem, i), ref);
    if (e->error <= e->limit) continue;
    verdict->pass = 0;
    if (!*verdict->wrong)
      verify_wrong_tell(r, i, &b->problem->shape, b->value[i], ref, sizeof verdict->wrong,
                        verdict->wrong);
  }
  return FG_OK;
}

/* dS goes to the products of dQ and dK in the spec's dtype. */
static void find_reason(const bench *b, const fg_variant *v, verify_verdict *verdict) {
  double most = b->exact.largest_ds;
  if (!verdict->pass && fg_point_elem(&v->point) == FG_ELEM_F16 && most > 65504)
    snprintf(verdict->reason, sizeof verdict->reason,
             "dS reaches %.3g, beyond f16's range of 65504", most);
}

/* Is what the kernel without tile skipping gives wrong too? Then no bound is to blame. */
static fg_status wrong_without(const bench *b, const fg_variant *v, int tensor, float *whole,
                               bool *wrong) {
  double *x = malloc(((size_t)fg_problem_count(b->problem, tensor) + 1) * sizeof *x);
  if (!x) return fg_fail(FG_EMEMORY, "no memory for outputs");
  reorder(b, tensor, 1, whole, x);
  settle(b, tensor, x);
  const verify_error e = measure(b, v, tensor, x);
  *wrong = !(e.error <= e.limit);
  free(x);
  return FG_OK;
}

static fg_status compare_tensor(bench *b, const fg_variant *v, const fg_problem *again, int tensor,
                                verify_verdict *verdict) {
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  const double *ref = NULL, *rss = NULL, *plain = NULL;
  int64_t n = fg_problem_count(b->problem, tensor);
  float *ours = malloc(((size_t)n + 1) * sizeof *ours),
        *whole = malloc(((size_t)n + 1) * sizeof *whole);
  fg_status status = FG_OK;
  if (!ours || !whole) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for outputs"));
  find_result(b, t->name, &ref, &rss, &plain);
  TRY_OUT(fg_problem_get(b->problem, tensor, ours));
  TRY_OUT(fg_problem_get(again, fg_problem_find(again, t->name), whole));
  bool wrong = false;
  if (!verdict->pass) TRY_OUT(wrong_without(b, v, tensor, whole, &wrong));
  if (!wrong &&
      !verify_skip_equal(t->name, n, ours, whole, rss, limit_of(v, t->elem), verify_skip_exact(v),
                         sizeof verdict->skipping, verdict->skipping))
    verdict->pass = 0;
out:
  free(ours);
  free(whole);
  return status;
}

/* The same inputs through the kernel without tile skipping; told of the first output that differs.
 */
static fg_status compare_unskipped(bench *b, const fg_variant *v, verify_verdict *verdict) {
  const verify_case *w = b->which;
  fg_problem *again = NULL;
  fg_status status = FG_OK;
  TRY_OUT(
      verify_skip_run(b->problem, w->unskipped, w->unskipped_module, PADDING(w), w->seed, &again));
  for (int i = 0; i < b->problem->recipe->n_tensors && !*verdict->skipping; i++)
    if (b->problem->recipe->tensor[i].output) TRY_OUT(compare_tensor(b, v, again, i, verdict));
out:
  fg_problem_free(again);
  return status;
}

fg_status verify_run(const fg_variant *variant, const fg_source *source, fg_module *module,
                     const verify_case *which, int plain, verify_verdict *verdict) {
  bench b = {.which = which};
  fg_status status = FG_OK;
  module->device->seed = which->seed;
  TRY(fg_problem_new(module->device, &source->recipe, &which->shape,
                     which->far ? FG_PROBLEM_FAR : PADDING(which), which->seed, &b.problem));
  TRY_OUT(verify_formula_new(&variant->point, b.problem, which, &b.formula));
  TRY_OUT(draw_inputs(&b, &variant->plan));
  set_oracle(&b, variant);
  TRY_OUT(run_oracle(&b, variant, plain));
  b.problem->args.given = which->given, b.problem->args.scale = which->scale;
  TRY_OUT(fg_problem_run(b.problem, module));
  TRY_OUT(judge(&b, variant, verdict));
  find_reason(&b, variant, verdict);
  verdict->pairs = which->shape.b * which->shape.h * which->shape.nq * which->shape.nk;
  verdict->seen = b.exact.seen;
  if (which->again && verify_again_promised(variant))
    TRY_OUT(
        verify_again(b.problem, module, which->seed + 1, sizeof verdict->order, verdict->order));
  if (*verdict->order) verdict->pass = 0;
  if (which->unskipped) TRY_OUT(compare_unskipped(&b, variant, verdict));
out:
  for (int i = 0; i < source->recipe.n_tensors; i++) free(b.value[i]);
  verify_formula_free(&b.formula);
  fg_problem_free(b.problem);
  oracle_free(&b.exact);
  oracle_free(&b.plain);
  return status;
}
