/* reference_attention_look.c - inputs of attention under which something is judged: what is drawn
 * again or scaled once the oracle has solved a case, and false claims of a mask. */
#include "reference_attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_given(const reference_case *c, int tensor) {
  const fg_recipe_tensor *t = &c->problem->recipe->tensor[tensor];
  for (int i = 0; i < c->which->n_arrays; i++)
    if (fg_recipe_tensor_is(t, c->which->array[i].name)) return true;
  return false;
}

/* ---- visible pairs ---- */

/* A tensor of integers by which pairs are hidden. */
static bool hides(const reference_case *c, int tensor) {
  const fg_recipe_tensor *t = &c->problem->recipe->tensor[tensor];
  const bool of_slices =
      !strcmp(t->name, "q_ranges") || !strcmp(t->name, "k_ranges") || !strcmp(t->name, "kinds");
  return !t->output && t->elem == FG_ELEM_I32 && c->value[tensor] && !is_given(c, tensor) &&
         (t->slot >= 0 || of_slices);
}

static bool draws_numbers(const reference_case *c) {
  const attention *a = c->own;
  for (int i = 0; i < a->formula.n_inputs; i++)
    if (!a->formula.formula.input[i].tensor && a->formula.formula.input[i].type == FG_TYPE_INT)
      return true;
  return false;
}

static bool draws_integers(const reference_case *c) {
  bool any = draws_numbers(c);
  for (int i = 0; i < c->problem->recipe->n_tensors; i++) any |= hides(c, i);
  return any;
}

bool attention_sees_little(const reference_case *c) {
  const attention *a = c->own;
  int64_t pairs = 0;
  if (c->which->seed % 4 == 3 || !draws_integers(c)) return false;
  for (int64_t b = 0; b < c->problem->shape.b; b++) {
    const reference_sequence s = reference_sequence_of(c, b);
    pairs += c->problem->shape.h * s.nq * s.nk;
  }
  return a->exact.seen * (c->problem->recipe->layout.slices ? 10 : 50) < pairs;
}

fg_status attention_draw_again(reference_case *c, int turn) {
  attention *a = c->own;
  const verify_case *const as_given = c->which;
  verify_case other = *as_given;
  fg_status status = FG_OK;
  other.seed += (uint64_t)turn * 0x9e3779b9;
  c->which = &other;
  verify_formula_draw_numbers(&a->formula, c->problem, &other);
  for (int i = 0; i < c->problem->recipe->n_tensors && status == FG_OK; i++) {
    if (!hides(c, i)) continue;
    attention_draw(c, i, c->value[i]);
    status = reference_put(c, i, c->value[i]);
  }
  c->which = as_given;
  return status;
}

/* ---- sizes ---- */

int attention_shift_of_q(const reference_case *c) {
  const attention *a = c->own;
  const int q = fg_problem_find(c->problem, "q");
  const int64_t rows = fg_problem_count(c->problem, q) / c->variant->point.d;
  double most = 0;
  if (c->which->style != VERIFY_PLAIN || is_given(c, q)) return 0;
  if (2 * a->exact.steep < a->exact.sampled) return 2;
  if (strcmp(attention_normalizer(c)->name, "retention") || c->which->seed % 2) return 0;
  for (int64_t i = 0; i < rows; i++) most = fmax(most, a->exact.lse[i]);
  return most > 0.9 ? (int)ceil(log2(most / 0.9)) : 0;
}

fg_status attention_scale(reference_case *c, const char *name, int shift) {
  const int tensor = fg_problem_find(c->problem, name);
  if (tensor < 0 || !c->value[tensor] || is_given(c, tensor)) return FG_OK;
  const int64_t n = fg_problem_count(c->problem, tensor);
  for (int64_t i = 0; i < n; i++) c->value[tensor][i] = ldexp(c->value[tensor][i], shift);
  return reference_put(c, tensor, c->value[tensor]);
}

static double largest(const reference_case *c, const char *name, const double *values) {
  const int tensor = fg_problem_find(c->problem, name);
  const int64_t n = tensor < 0 ? 0 : fg_problem_count(c->problem, tensor);
  double most = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(values[i]));
  return most;
}

int attention_shift_of_gradients(const reference_case *c) {
  /* The least largest element that is well above 2^-14; where scaled gradients, dS and dO end. */
  static const double enough = 0x1p-6, wanted = 0x1p-2, room = 0x1p12;
  enum { MOST = 12 };
  const oracle_result *r = &((const attention *)c->own)->exact;
  const double each[] = {largest(c, "dq", r->dq), largest(c, "dk", r->dk), largest(c, "dv", r->dv)};
  double least = INFINITY, most = r->largest_ds;
  if (fg_point_elem(&c->variant->point) != FG_ELEM_F16 ||
      is_given(c, fg_problem_find(c->problem, "do")))
    return 0;
  for (int i = 0; i < 3; i++) {
    if (each[i] > 0) least = fmin(least, each[i]);
    most = fmax(most, each[i]);
  }
  if (!(least < enough) || !isfinite(most)) return 0;
  const double shift = fmin(ceil(log2(wanted / least)), floor(log2(room / most)));
  return shift <= 0 ? 0 : shift < MOST ? (int)shift : MOST;
}

/* ---- claims ---- */

/* Evaluates the mask at every pair of some heads. */
static void visit_pairs(const reference_case *c) {
  attention *a = c->own;
  for (int64_t b = 0; b < c->problem->shape.b; b++) {
    const reference_sequence s = reference_sequence_of(c, b);
    attention_set_first(a, c->problem, &s);
    a->oracle.nq = s.nq, a->oracle.nk = s.nk;
    oracle_count_visible(&a->oracle, 2);
  }
}

/* Inputs of a case that are replaced for a while. */
typedef struct {
  double *value[FG_TENSOR_MAX], number[ORACLE_INPUTS];
} kept_inputs;

static bool is_declared(const reference_case *c, int tensor) {
  return hides(c, tensor) && c->problem->recipe->tensor[tensor].slot >= 0;
}

static void keep_inputs(const reference_case *c, kept_inputs *kept) {
  const attention *a = c->own;
  memcpy(kept->number, a->formula.number, sizeof kept->number);
  for (int i = 0; i < c->problem->recipe->n_tensors; i++) {
    const size_t size = ((size_t)fg_problem_count(c->problem, i) + 1) * sizeof *c->value[i];
    kept->value[i] = is_declared(c, i) ? malloc(size) : NULL;
    if (kept->value[i]) memcpy(kept->value[i], c->value[i], size);
  }
}

static void restore_inputs(const reference_case *c, kept_inputs *kept) {
  attention *a = c->own;
  for (int i = 0; i < a->formula.n_inputs; i++) {
    if (a->formula.formula.input[i].tensor) continue;
    a->formula.number[i] = a->formula.inputs[i].number = kept->number[i];
    c->problem->input[i].number = kept->number[i];
  }
  for (int i = 0; i < c->problem->recipe->n_tensors; i++) {
    const size_t n = (size_t)fg_problem_count(c->problem, i);
    if (kept->value[i]) memcpy(c->value[i], kept->value[i], n * sizeof *c->value[i]);
    free(kept->value[i]);
  }
}

/* Evaluates the mask at integers that the kernel was not given: a claim may be true at those of
 * the case. */
static void visit_others(const reference_case *c) {
  enum { TURNS = 6 };
  attention *a = c->own;
  kept_inputs kept;
  verify_case which = *c->which;
  reference_case other = *c;
  other.which = &which;
  keep_inputs(c, &kept);
  for (int turn = 1; turn <= TURNS && !oracle_formula_claim(a->formula.mask); turn++) {
    which.seed = c->which->seed + (uint64_t)turn * 0x9e3779b9;
    verify_formula_draw_numbers(&a->formula, c->problem, &which);
    for (int i = 0; i < c->problem->recipe->n_tensors; i++)
      if (kept.value[i]) attention_draw(&other, i, c->value[i]);
    visit_pairs(c);
  }
  restore_inputs(c, &kept);
}

void attention_find_claim(const reference_case *c, size_t size, char *text) {
  const attention *a = c->own;
  const char *mask = c->variant->point.mask;
  if (!mask || !strstr(mask, "given(")) return;
  if (!oracle_formula_claim(a->formula.mask) && draws_integers(c)) visit_others(c);
  const char *claim = oracle_formula_claim(a->formula.mask);
  if (claim) snprintf(text, size, "%s", claim);
}
