/* t_gradcheck.c - gradients of wgmma's backward, a case of each hook, against central differences
 * of the float64 forward: no derivative that anyone wrote is asked. So are the oracle's own
 * gradients of the case, which judge kernels in the other suites.
 *
 * All values of a tensor move at once, each up or down at random. The loss changes by what the
 * gradient says but for the sum of its elements' errors with these signs. The mean square of this
 * sum over all signs is the square of the errors' norm; a few directions estimate it. */
#include "base/random.h"
#include "kernel_case.h"
#include "reference/oracle.h"
#include "reference/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIRECTIONS = 8 };

/* The step balances its error, step^2, with that of rounding, 1e-16 / step. */
static const double step = 1e-5;

typedef struct hook {
  const char *words;
  int64_t nq, nk;
} hook;

static const hook hooks[] = {
    {"head_dim=64 mask=full dtype=f16", 140, 150},
    {"head_dim=64 mask=causal", 140, 150},
    {"head_dim=128/64 mask=window(40,3)", 150, 140},
    {"head_dim=72/40 mask=causal", 140, 150},
    {"head_dim=40 mask=document(ids) inputs.ids=i32[b,nk]", 140, 150},
    {"head_dim=64 mask=full score=softcap(5.0)", 70, 150},
    {"head_dim=32 mask=causal score=s/(1.0+s*s)+0.1*tanh(s)", 70, 150},
    {"head_dim=64 mask=causal score=alibi", 140, 150},
    {"head_dim=64 mask=causal sink=grad", 140, 150},
    {"head_dim=192/128 mask=full score=softcap(5.0) sink=grad", 70, 20},
    {"head_dim=64 mask=causal normalizer=retention", 140, 150},
    {"head_dim=64 mask=causal normalizer=retention score=decay(rate) inputs.rate=f32[h]grad", 70,
     150},
    {"head_dim=40 mask=full normalizer=none score=softcap(5.0) bias=grad", 70, 150},
    {"head_dim=64 mask=causal normalizer=sigmoid", 140, 150},
    {"head_dim=128/64 mask=window(40,3) normalizer=sigmoid score=alibi bias=grad bias_dims=[h,k]",
     70, 150},
    {"head_dim=64 mask=causal dropout=true", 140, 150},
    {"head_dim=64/32 mask=window(40,3) dropout=true sink=grad score=alibi", 140, 150},
    {"head_dim=64 mask=causal normalizer=logsoftmax", 140, 150},
    {"head_dim=128/64 mask=window(40,3) normalizer=logsoftmax score=softcap(5.0) bias=grad", 70,
     150},
    {"head_dim=128 mask=full normalizer=logsoftmax score=s*w[h] inputs.w=f32[h]grad", 70, 20},
    {"head_dim=64 mask=full bias=true bias_dims=[h,q,k]", 70, 150},
    {"head_dim=64 mask=causal bias=grad", 70, 150},
    {"head_dim=64 mask=full bias=grad bias_dims=[h,k] bias_dtype=f32", 70, 150},
    {"head_dim=64 mask=full bias=grad bias_dims=[q]", 70, 150},
    {"head_dim=64 mask=causal score=relative(t) inputs.t=f32[h,nq+nk-1]grad", 70, 150},
    {"head_dim=64 mask=causal score=s*w[h] inputs.w=f32[h]grad", 70, 150},
    {"head_dim=64 mask=full score=tanh(s*w[h])*5.0 inputs.w=f32[h]grad dtype=f16", 70, 150},
    {"head_dim=192/128 mask=causal", 140, 150},
    {"head_dim=192/128 mask=full score=softcap(5.0)", 70, 150},
    {"head_dim=256 mask=window(40,3) score=alibi", 70, 150},
    {"head_dim=192 mask=causal bias=grad bias_dims=[h,q,k]", 70, 150},
    {"head_dim=160 mask=full score=relative(t) inputs.t=f32[h,nq+nk-1]grad", 70, 150},
};

typedef struct gradcheck {
  const kernel *kernel;
  reference_case made;
  oracle_problem problem; /* of its exact forward, and of the gradients that this has */
  oracle_result exact, moved;
  uint64_t state; /* of the directions */
} gradcheck;

/* What the gradients differentiate: sum dO O + sum dLSE LSE, over rows that see a key. */
static double loss(gradcheck *g) {
  const oracle_problem *x = &g->problem;
  double sum = 0;
  ck_assert_int_eq(oracle_forward(x, &g->moved), 0);
  for (int64_t i = 0; i < x->b * x->h * x->nq * x->dv; i++) sum += x->dout[i] * g->moved.o[i];
  for (int64_t i = 0; x->dlse && i < x->b * x->h * x->nq; i++)
    if (g->moved.lse[i] > -INFINITY) sum += x->dlse[i] * g->moved.lse[i];
  return sum;
}

/* The slope of the loss along the signs of an input's values, which are as before afterwards. */
static double slope(gradcheck *g, int64_t n, double *values, const double *sign) {
  double *was = malloc((size_t)n * sizeof *was);
  double end[2];
  ck_assert_ptr_nonnull(was);
  memcpy(was, values, (size_t)n * sizeof *was);
  for (int side = 0; side < 2; side++) {
    for (int64_t i = 0; i < n; i++) values[i] = was[i] + (side ? -step : step) * sign[i];
    end[side] = loss(g);
  }
  memcpy(values, was, (size_t)n * sizeof *was);
  free(was);
  return (end[0] - end[1]) / (2 * step);
}

static double norm(int64_t n, const double *x) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

static double along(int64_t n, const double *gradient, const double *sign) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += gradient[i] * sign[i];
  return sum;
}

/* The exact gradient of an input and the size of the terms behind it, as oracle_result has them. */
static const double *exact_of(const gradcheck *g, const char *output, const double **rss) {
  const oracle_result *r = &g->exact;
  const struct {
    const char *name;
    const double *exact, *rss;
  } rows[] = {{"dq", r->dq, r->dq_rss},
              {"dk", r->dk, r->dk_rss},
              {"dv", r->dv, r->dv_rss},
              {"dbias", r->dbias, r->dbias_rss},
              {"dsink", r->dsink, r->dsink_rss}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, output)) return *rss = rows[i].rss, rows[i].exact;
  for (int i = 0; i < g->problem.n_inputs; i++)
    if (!strcmp(g->problem.inputs[i].name, output + 1))
      return *rss = r->dinput_rss[i], r->dinput[i];
  ck_abort_msg("%s: the oracle has no %s", g->kernel->name, output);
}

/* The kernel's output, in the oracle's order. */
static double *output_of(gradcheck *g, int tensor, int64_t n) {
  float *stored = malloc(((size_t)n + 1) * sizeof *stored);
  double *ordered = malloc(((size_t)n + 1) * sizeof *ordered);
  ck_assert(stored && ordered);
  GOOD(fg_problem_get(g->made.problem, tensor, stored));
  reference_reorder(&g->made, tensor, 1, stored, ordered);
  free(stored);
  return ordered;
}

/* One gradient, of both. An estimate of the norm of the kernel's errors may exceed it. */
static void check_gradient(gradcheck *g, int tensor) {
  const fg_recipe_tensor *t = &g->made.problem->recipe->tensor[tensor];
  const int64_t n = fg_problem_count(g->made.problem, tensor);
  double *values = reference_value(&g->made, t->name + 1), *given = output_of(g, tensor, n);
  double *sign = malloc((size_t)n * sizeof *sign), of_kernel = 0, of_oracle = 0;
  const double *rss, *exact = exact_of(g, t->name, &rss);
  ck_assert(values && sign);
  for (int i = 0; i < DIRECTIONS; i++) {
    for (int64_t e = 0; e < n; e++) sign[e] = fg_random_uniform(&g->state) < 0.5 ? -1 : 1;
    const double numeric = slope(g, n, values, sign);
    of_kernel += pow(along(n, given, sign) - numeric, 2) / DIRECTIONS;
    of_oracle += pow(along(n, exact, sign) - numeric, 2) / DIRECTIONS;
  }
  const double size = fmax(norm(n, exact), norm(n, rss));
  const double limit =
      2 * fmax(oracle_limit(fg_point_elem(&g->kernel->variant.point)), oracle_limit(t->elem));
  ck_assert_msg(sqrt(of_oracle) <= 1e-8 * size, "%s: the oracle's %s is off by %.3g of its size",
                g->kernel->name, t->name, sqrt(of_oracle) / size);
  ck_assert_msg(sqrt(of_kernel) <= limit * size, "%s: %s is off by %.3g of its size, at most %.3g",
                g->kernel->name, t->name, sqrt(of_kernel) / size, limit);
  free(sign);
  free(given);
}

/* Draws the inputs of the case, solves it, and lets the kernel run. */
static gradcheck gradcheck_new(const kernel *k, const verify_case *which) {
  gradcheck g = {.kernel = k, .made = {.variant = &k->variant, .which = which}, .state = 1};
  reference_case *c = &g.made;
  const fg_recipe *r = &k->source->recipe;
  GOOD(fg_problem_new(kernel_device(), r, &which->shape, 0, which->seed, &c->problem));
  GOOD(reference_attention.start(c));
  for (int i = 0; i < r->n_tensors; i++) {
    ck_assert_ptr_nonnull(c->value[i] =
                              calloc((size_t)fg_problem_count(c->problem, i) + 1, sizeof(double)));
    if (r->tensor[i].output || reference_is_saved(&reference_attention, &r->tensor[i])) continue;
    reference_attention.draw(c, i, c->value[i]);
    GOOD(reference_put(c, i, c->value[i]));
  }
  GOOD(reference_attention.solve(c, 0));
  fg_launch_values_give(&which->launch, &c->problem->args);
  GOOD(fg_problem_run(c->problem, k->module));
  g.problem = *reference_attention_problem(c);
  g.problem.o = NULL; /* the exact one */
  ck_assert_int_eq(oracle_backward(&g.problem, &g.exact), 0);
  return g;
}

static void gradcheck_free(gradcheck *g) {
  for (int i = 0; i < g->made.problem->recipe->n_tensors; i++) free(g->made.value[i]);
  reference_attention.free(&g->made);
  fg_problem_free(g->made.problem);
  oracle_free(&g->exact);
  oracle_free(&g->moved);
}

TEST_TENTH(differences, sizeof hooks / sizeof *hooks) {
  const hook *h = &hooks[_i];
  kernels made = kernels_first("pass=backward family=wgmma %s", h->words);
  verify_case which = {.shape = SHAPE(1, 2, 1, h->nq, h->nk, 0), .seed = 6};
  fg_launch_values_fill(&made.list->source->recipe, 0, &which.launch);
  gradcheck g = gradcheck_new(made.list, &which);
  const fg_recipe *r = g.made.problem->recipe;
  ck_assert_int_eq(made.n, 1);
  for (int i = 0; i < r->n_tensors; i++)
    if (r->tensor[i].output) check_gradient(&g, i);
  gradcheck_free(&g);
  kernels_free(&made);
}

TEST_BEGIN { kernel_device_of_wgmma(); }
