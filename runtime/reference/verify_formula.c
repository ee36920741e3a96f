/* verify_formula.c - inputs of expressions, and the oracle's reading of them. */
#include "verify_formula.h"
#include "base/random.h"

#include "spec/point_formula.h"
#include "verify_use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What indices permit; 0 where they permit nothing. */
static double within(const verify_use *use, double x) {
  if (use->least > use->most) return 0;
  return fmax(use->least, fmin(use->most, x));
}

/* A number of the launch: about as large as lengths are, or as scores; an index is in its tensor.
 */
static double draw_number(const verify_formula *f, const fg_problem *problem,
                          const verify_case *which, int slot, const double *numbers) {
  const fg_input *input = &f->formula.input[slot];
  uint64_t state = which->seed * 7919 + (uint64_t)slot;
  for (int i = 0; i < which->n_numbers; i++)
    if (!strcmp(which->number[i].name, input->name)) return which->number[i].value;
  if (input->type != FG_TYPE_INT) return (double)(float)(1 + 4 * fg_random_uniform(&state));
  const verify_use use =
      verify_use_of(&f->formula, slot, problem->recipe, &problem->shape, numbers);
  return within(&use, floor(1 + fg_random_uniform(&state) * 60));
}

void verify_formula_draw_numbers(verify_formula *f, fg_problem *problem, const verify_case *which) {
  for (int i = 0; i < f->n_inputs; i++) {
    if (f->formula.input[i].tensor) continue;
    f->number[i] = draw_number(f, problem, which, i, f->number);
    problem->input[i].number = f->inputs[i].number = f->number[i];
  }
}

static fg_status read_text(const char *text, const verify_formula *f, oracle_formula **out) {
  int column = 0;
  if (!text) return FG_OK;
  *out = oracle_formula_new(text, f->n_inputs, f->inputs, &column);
  return *out ? FG_OK
              : fg_fail(FG_EBUG, "the oracle cannot read \"%.200s\", column %d", text, column);
}

fg_status verify_formula_new(const fg_point *point, fg_problem *problem, const verify_case *which,
                             verify_formula *f) {
  fg_point plain = *point;
  plain.bias = FG_BIAS_OFF; /* the oracle's own */
  TRY(fg_point_formula(&plain, &f->formula));
  f->n_inputs = f->formula.n_inputs;
  for (int i = 0; i < f->n_inputs; i++) {
    const fg_input *x = &f->formula.input[i];
    f->inputs[i] = (oracle_input){
        .name = x->name, .is_int = x->type == FG_TYPE_INT, .rank = x->tensor ? x->rank : -1};
    f->grad[i] = x->grad;
  }
  verify_formula_draw_numbers(f, problem, which);
  TRY(read_text(point->mask, f, &f->mask));
  return read_text(point->score, f, &f->score);
}

void verify_formula_bind(verify_formula *f, const fg_problem *problem, double *const *values) {
  for (int i = 0; i < f->n_inputs; i++) {
    const int tensor = fg_recipe_input(problem->recipe, i, false);
    if (tensor < 0) continue;
    f->inputs[i].values = values[tensor];
    for (int a = 0; a < f->inputs[i].rank; a++)
      f->inputs[i].extent[a] = fg_recipe_extent(
          problem->recipe, problem->recipe->tensor[tensor].axes[a], &problem->shape);
  }
}

/* ---- tensors ---- */

static int plan_field(const fg_plan *plan, const char *name) {
  const int i = (int)(fg_field_find(name) - fg_fields) - FG_SPEC_FIELDS;
  return plan->value[i] > 0 ? plan->value[i] : 16;
}

/* Between the values at which tests change: the ends, at edges of tiles or one off, anything. The
 * i-th of a tensor: neighbours are on different sides of an edge. */
static double draw_compared(const verify_use *use, const int tile[2], int64_t i, uint64_t *state) {
  const double low = use->low > 0 ? use->low - 1 : use->low, high = use->high + 1;
  const double kind = fg_random_uniform(state), where = fg_random_uniform(state),
               edge = tile[fg_random_uniform(state) < 0.75];
  if (kind < 0.05) return low;
  if (kind < 0.15) return high;
  const double x = floor(low + where * (high - low + 1));
  if (kind > 0.8) return x;
  return fmax(low, fmin(high, edge * round(x / edge) + (double)(i % 3 - 1)));
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* A row of n integers: about what they are compared with, in their tensor, or runs of ids, which
 * need not grow unless they are declared to. */
static void draw_row(const verify_use *use, bool monotone, const int tile[2], uint64_t seed,
                     int64_t n, uint64_t *state, double *row) {
  const bool index =
      !use->is_compared && !use->is_id && isfinite(use->least) && isfinite(use->most);
  double run = use->is_compared && fg_random_uniform(state) < 0.5 ? fmin(use->low - 1, 0) : 0;
  for (int64_t i = 0; i < n; i++) {
    run += fg_random_uniform(state) < 0.05;
    if (index)
      row[i] = floor(use->least + fg_random_uniform(state) * (use->most - use->least + 1));
    else if (use->is_compared && !use->is_id)
      row[i] = draw_compared(use, tile, (int64_t)(seed % 3) + i, state);
    else
      row[i] = seed % 3 == 1 && !monotone ? floor(4 * fg_random_uniform(state)) : run;
    row[i] = within(use, row[i]);
  }
  if (monotone) qsort(row, (size_t)n, sizeof *row, by_value);
}

void verify_formula_draw(const verify_formula *f, const fg_problem *problem,
                         const verify_case *which, const fg_plan *plan, int tensor,
                         double *values) {
  const fg_recipe_tensor *t = &problem->recipe->tensor[tensor];
  const int64_t n = fg_problem_count(problem, tensor);
  const int64_t last =
      *t->axes ? fg_recipe_extent(problem->recipe, t->axes[strlen(t->axes) - 1], &problem->shape)
               : 1;
  const int tile[2] = {plan_field(plan, "block_q"), plan_field(plan, "block_kv")};
  uint64_t state = which->seed * 1000003 + (uint64_t)tensor;
  if (t->elem != FG_ELEM_I32) {
    for (int64_t i = 0; i < n; i++) values[i] = fg_random_normal(&state);
    return;
  }
  const verify_use use =
      verify_use_of(&f->formula, t->slot, problem->recipe, &problem->shape, f->number);
  for (int64_t i = 0; last && i < n; i += last)
    draw_row(&use, f->formula.input[t->slot].monotone, tile, which->seed, last, &state, values + i);
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
