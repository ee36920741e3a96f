/* reference_attention.c - attention, judged by the oracle (math.md sections 1 to 3). */
#include "reference.h"

#include "base/random.h"
#include "oracle.h"
#include "verify_formula.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  oracle_problem oracle;
  oracle_result exact, plain;
  verify_formula formula;
} attention;

/* The oracle knows the default normaliser alone. */
static fg_status start(reference_case *c) {
  const char *normalizer = c->variant->point.normalizer;
  if (normalizer)
    return fg_fail(FG_ESPEC, "normalizer=%s: there is nothing to compare it with, only for %s",
                   normalizer, fg_field_find("normalizer")->fallback);
  attention *a = c->own = calloc(1, sizeof *a);
  if (!a) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  return verify_formula_new(&c->variant->point, c->problem, c->which, &a->formula);
}

/* One value of a tensor that is no declared input. */
static double draw_value(const verify_case *which, const char *name, uint64_t *state) {
  double x = fg_random_normal(state);
  if (which->style == VERIFY_LARGE && !strcmp(name, "q")) return 40 * x;
  if (which->style != VERIFY_ABSENT || strcmp(name, "bias")) return x;
  double kind = fg_random_uniform(state);
  return kind < 0.4 ? -INFINITY : kind < 0.5 ? 3000 * x : x;
}

static void draw(const reference_case *c, int tensor, double *values) {
  const attention *a = c->own;
  const fg_recipe_tensor *t = &c->problem->recipe->tensor[tensor];
  const int64_t count = fg_problem_count(c->problem, tensor);
  uint64_t state = c->which->seed * 1000003 + (uint64_t)tensor;
  if (t->slot >= 0)
    verify_formula_draw(&a->formula, c->problem, c->which, &c->variant->plan, tensor, values);
  else
    for (int64_t i = 0; i < count; i++) values[i] = draw_value(c->which, t->name, &state);
}

static void set_oracle(reference_case *c) {
  attention *a = c->own;
  const fg_shape *s = &c->problem->shape;
  const fg_recipe *r = c->problem->recipe;
  const int d = c->variant->point.d, dv = c->variant->point.dv;
  const bool given = c->which->given & FG_GIVEN_SCALE;
  a->oracle = (oracle_problem){.b = s->b,
                               .h = s->h,
                               .hk = s->hk,
                               .nq = s->nq,
                               .nk = s->nk,
                               .d = d,
                               .dv = dv,
                               .scale = (double)(given ? c->which->scale : 1 / sqrtf((float)d))};
  a->oracle.q = reference_value(c, "q"), a->oracle.k = reference_value(c, "k");
  a->oracle.v = reference_value(c, "v"), a->oracle.bias = reference_value(c, "bias");
  a->oracle.dout = reference_value(c, "do"), a->oracle.dlse = reference_value(c, "dlse");
  const int bias = fg_problem_find(c->problem, "bias");
  for (int axis = 0; axis < 4 && bias >= 0; axis++)
    a->oracle.bias_extent[axis] = fg_recipe_extent(r, r->tensor[bias].axes[axis], s);
  a->oracle.mask = a->formula.mask, a->oracle.score = a->formula.score;
  a->oracle.n_inputs = a->formula.n_inputs;
  a->oracle.inputs = a->formula.inputs, a->oracle.grad = a->formula.grad;
}

/* Backward is judged from the o and lse that the kernel is given: rounded by reference_put. */
static fg_status solve(reference_case *c, int plain) {
  attention *a = c->own;
  int (*oracle)(const oracle_problem *, oracle_result *) = oracle_forward;
  verify_formula_bind(&a->formula, c->problem, c->value);
  set_oracle(c);
  int failed = oracle_forward(&a->oracle, &a->exact);
  if (c->variant->point.pass == FG_PASS_BACKWARD && !failed) {
    TRY(reference_put(c, fg_problem_find(c->problem, "o"), a->exact.o));
    TRY(reference_put(c, fg_problem_find(c->problem, "lse"), a->exact.lse));
    a->oracle.o = a->exact.o;
    oracle = oracle_backward;
    failed = oracle_backward(&a->oracle, &a->exact);
  }
  oracle_problem rounded = a->oracle;
  rounded.round = oracle_round(fg_point_elem(&c->variant->point));
  if (plain && !failed) failed = oracle(&rounded, &a->plain);
  TRY(verify_formula_check(&a->formula));
  return failed ? fg_fail(FG_EMEMORY, "no memory for the oracle") : FG_OK;
}

static reference_values find(const reference_case *c, const char *name) {
  const attention *a = c->own;
  const struct {
    const char *name;
    reference_values values;
  } rows[] = {{"o", {a->exact.o, a->exact.o_rss, a->plain.o}},
              {"lse", {a->exact.lse, NULL, NULL}},
              {"dq", {a->exact.dq, a->exact.dq_rss, a->plain.dq}},
              {"dk", {a->exact.dk, a->exact.dk_rss, a->plain.dk}},
              {"dv", {a->exact.dv, a->exact.dv_rss, a->plain.dv}},
              {"dbias", {a->exact.dbias, a->exact.dbias_rss, a->plain.dbias}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name)) return rows[i].values;
  for (int i = 0; i < a->formula.n_inputs && *name == 'd'; i++)
    if (!strcmp(a->formula.inputs[i].name, name + 1))
      return (reference_values){a->exact.dinput[i], a->exact.dinput_rss[i], a->plain.dinput[i]};
  return (reference_values){0};
}

/* dS goes to the products of dQ and dK in the spec's dtype. */
static void tell(const reference_case *c, verify_verdict *verdict) {
  const attention *a = c->own;
  const fg_shape *s = &c->which->shape;
  const double most = a->exact.largest_ds;
  if (!verdict->pass && fg_point_elem(&c->variant->point) == FG_ELEM_F16 && most > 65504)
    snprintf(verdict->reason, sizeof verdict->reason,
             "dS reaches %.3g, beyond f16's range of 65504", most);
  verdict->pairs = s->b * s->h * s->nq * s->nk;
  verdict->seen = a->exact.seen;
}

static void free_own(reference_case *c) {
  attention *a = c->own;
  if (!a) return;
  verify_formula_free(&a->formula);
  oracle_free(&a->exact);
  oracle_free(&a->plain);
  free(a);
}

static const char *const saved[] = {"o", "lse", NULL};
const reference reference_attention = {saved, start, draw, solve, find, tell, free_own};
