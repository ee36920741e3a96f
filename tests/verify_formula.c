/* verify_formula.c - inputs of expressions, and the oracle's reading of them. */
#include "verify_formula.h"

#include "point_formula.h"

#include <math.h>
#include <string.h>

static double uniform(uint64_t *state) {
  uint64_t x = *state += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return ((double)((x ^ x >> 31) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state) {
  return sqrt(-2 * log(uniform(state))) * cos(6.283185307179586 * uniform(state));
}

void verify_formula_draw(const fg_recipe *recipe, int tensor, const fg_shape *shape,
                         uint64_t *state, double *values) {
  const fg_recipe_tensor *t = &recipe->tensor[tensor];
  int64_t n = fg_tensor_count(recipe, t, shape), last = 1, run = 0;
  if (*t->axes) last = fg_recipe_extent(recipe, t->axes[strlen(t->axes) - 1], shape);
  for (int64_t i = 0; i < n; i++) {
    if (i % last == 0) run = 0;
    run += uniform(state) < 0.05;
    values[i] = t->elem == FG_ELEM_I32 ? (double)run : normal(state);
  }
}

/* A number of the launch: about as large as lengths are, or as scores. */
static double draw_number(const fg_input *input, const verify_case *which, int slot) {
  uint64_t state = which->seed * 7919 + (uint64_t)slot;
  for (int i = 0; i < which->n_numbers; i++)
    if (!strcmp(which->number[i].name, input->name)) return which->number[i].value;
  if (input->type == FG_TYPE_INT) return floor(1 + uniform(&state) * 60);
  return (double)(float)(1 + 4 * uniform(&state));
}

static fg_status read_text(const char *text, const verify_formula *f, oracle_formula **out) {
  int column = 0;
  if (!text) return FG_OK;
  *out = oracle_formula_new(text, f->n_inputs, f->inputs, &column);
  return *out ? FG_OK
              : fg_fail(FG_EBUG, "the oracle cannot read \"%.200s\", column %d", text, column);
}

fg_status verify_formula_new(const fg_point *point, fg_problem *problem, double *const *values,
                             const verify_case *which, verify_formula *f) {
  fg_point plain = *point;
  plain.bias = FG_BIAS_OFF; /* the oracle's own */
  TRY(fg_point_formula(&plain, &f->formula));
  f->n_inputs = f->formula.n_inputs;
  for (int i = 0; i < f->n_inputs; i++) {
    const fg_input *x = &f->formula.input[i];
    int tensor = x->tensor ? fg_problem_find(problem, x->name) : -1;
    f->inputs[i] = (oracle_input){
        .name = x->name, .is_int = x->type == FG_TYPE_INT, .rank = x->tensor ? x->rank : -1};
    f->grad[i] = x->grad;
    if (!x->tensor) problem->input[i].number = f->inputs[i].number = draw_number(x, which, i);
    if (tensor < 0) continue;
    f->inputs[i].values = values[tensor];
    for (int a = 0; a < x->rank; a++)
      f->inputs[i].extent[a] = fg_recipe_extent(
          problem->recipe, problem->recipe->tensor[tensor].axes[a], &problem->shape);
  }
  TRY(read_text(point->mask, f, &f->mask));
  return read_text(point->score, f, &f->score);
}

void verify_formula_free(verify_formula *f) {
  oracle_formula_free(f->mask);
  oracle_formula_free(f->score);
  fg_formula_free(&f->formula);
}

fg_status verify_formula_check(const verify_formula *f) {
  const oracle_formula *both[] = {f->mask, f->score};
  for (int i = 0; i < 2; i++) {
    const char *fault = both[i] ? oracle_formula_fault(both[i]) : NULL;
    if (fault)
      return fg_fail(FG_ESPEC, "%s: an index leaves its tensor: %s", i ? "score" : "mask", fault);
  }
  return FG_OK;
}
