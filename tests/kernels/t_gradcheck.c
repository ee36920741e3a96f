/* t_gradcheck.c - the oracle's gradients, a case of each hook, against central differences of its
 * float64 forward: no derivative that anyone wrote is asked. The designs judge kernels by them.
 *
 * All values of a tensor move at once, each up or down at random. The loss changes by what the
 * gradient says but for the sum of its elements' errors with these signs. The mean square of this
 * sum over all signs is the square of the errors' norm; a few directions estimate it. */
#include "base/random.h"
#include "kernel_case.h"
#include "reference/oracle.h"
#include "reference/reference.h"
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIRECTIONS = 8 };

/* The step balances its error, step^2, with that of rounding, 1e-16 / step. */
static const double step = 1e-5;

static const char *const hooks[] = {
    "dtype=f16",
    "mask=causal",
    "mask=window(40,3)",
    "mask=document(ids) inputs.ids=i32[b,nk]",
    "mask=window(5,3) score=softcap(5.0) sink=grad",
    "mask=causal score=s/(1.0+s*s)+0.1*tanh(s)",
    "mask=causal score=alibi",
    "mask=causal sink=grad",
    "mask=causal normalizer=retention score=decay(rate) inputs.rate=f32[h]grad",
    "normalizer=none score=softcap(5.0) bias=grad",
    "mask=causal normalizer=sigmoid",
    "mask=window(40,3) normalizer=sigmoid score=alibi bias=grad bias_dims=[h,k]",
    "mask=window(40,3) dropout=true sink=grad score=alibi",
    "mask=window(40,3) normalizer=logsoftmax score=softcap(5.0) bias=grad",
    "normalizer=logsoftmax score=s*w[h] inputs.w=f32[h]grad",
    "bias=grad bias_dims=[h,k] bias_dtype=f32",
    "bias=grad bias_dims=[q]",
    "mask=causal score=relative(t) inputs.t=f32[h,nq+nk-1]grad",
    "score=tanh(s*w[h])*5.0 inputs.w=f32[h]grad",
};

typedef struct gradcheck {
  fg_variant variant;
  fg_recipe recipe;
  verify_case which;
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
  ck_abort_msg("the oracle has no %s", output);
}

static void check_gradient(gradcheck *g, const char *words, int tensor) {
  const char *name = g->recipe.tensor[tensor].name;
  const int64_t n = fg_problem_count(g->made.problem, tensor);
  double *values = reference_value(&g->made, name + 1), *sign = malloc((size_t)n * sizeof *sign);
  const double *rss, *exact = exact_of(g, name, &rss);
  double error = 0;
  ck_assert(values && sign);
  for (int i = 0; i < DIRECTIONS; i++) {
    for (int64_t e = 0; e < n; e++) sign[e] = fg_random_uniform(&g->state) < 0.5 ? -1 : 1;
    error += pow(along(n, exact, sign) - slope(g, n, values, sign), 2) / DIRECTIONS;
  }
  const double size = fmax(norm(n, exact), norm(n, rss));
  ck_assert_msg(sqrt(error) <= 1e-8 * size, "%s: %s is off by %.3g of its size", words, name,
                sqrt(error) / size);
  free(sign);
}

/* The variant that the words describe. */
static void read_words(gradcheck *g, const char *words) {
  char all[256];
  fg_gen *gen;
  fg_variant *list;
  int n;
  snprintf(all, sizeof all, "pass=backward family=simt head_dim=16/24 %s", words);
  GOOD(fg_gen_new(NULL, &gen));
  GOOD(words_variants(gen, all, kernel_device()->arch, 1, &list, &n));
  ck_assert_int_eq(n, 1);
  g->variant = *list;
  GOOD(fg_gen_recipe(gen, list, &g->recipe));
  free(list);
  fg_gen_free(gen);
}

/* Draws the inputs of the case and solves it. */
static void solve(gradcheck *g) {
  reference_case *c = &g->made;
  const fg_recipe *r = &g->recipe;
  *c = (reference_case){.variant = &g->variant, .which = &g->which};
  fg_launch_values_fill(r, 0, &g->which.launch);
  GOOD(fg_problem_new(kernel_device(), r, &g->which.shape, 0, g->which.seed, &c->problem));
  GOOD(reference_attention.start(c));
  for (int i = 0; i < r->n_tensors; i++) {
    ck_assert_ptr_nonnull(c->value[i] =
                              calloc((size_t)fg_problem_count(c->problem, i) + 1, sizeof(double)));
    if (r->tensor[i].output || reference_is_saved(&reference_attention, &r->tensor[i])) continue;
    reference_attention.draw(c, i, c->value[i]);
    GOOD(reference_put(c, i, c->value[i]));
  }
  GOOD(reference_attention.solve(c, 0));
  g->problem = *reference_attention_problem(c);
  g->problem.o = NULL; /* the exact one */
  ck_assert_int_eq(oracle_backward(&g->problem, &g->exact), 0);
}

static void gradcheck_free(gradcheck *g) {
  for (int i = 0; i < g->recipe.n_tensors; i++) free(g->made.value[i]);
  reference_attention.free(&g->made);
  fg_problem_free(g->made.problem);
  oracle_free(&g->exact);
  oracle_free(&g->moved);
}

TEST_TENTH(differences, sizeof hooks / sizeof *hooks) {
  static gradcheck g = {.which = {.shape = SHAPE(2, 2, 1, 40, 50, 0), .seed = 6}, .state = 1};
  read_words(&g, hooks[_i]);
  solve(&g);
  for (int i = 0; i < g.recipe.n_tensors; i++)
    if (g.recipe.tensor[i].output) check_gradient(&g, hooks[_i], i);
  gradcheck_free(&g);
}
