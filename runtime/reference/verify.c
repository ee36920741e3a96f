/* verify.c - draws inputs, runs a variant, compares every output with the oracle. */
#include "reference.h"

#include "oracle.h"
#include "reference_sequence.h"
#include "verify_again.h"
#include "verify_skip.h"
#include "verify_wrong.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that a stride exceeds its contiguous value by, at most. */
#define PADDING(which) ((which)->contiguous ? 0 : 24)

typedef reference_case bench;

static fg_status wrong_axis(const fg_recipe *recipe, const fg_recipe_tensor *t, int axis,
                            int64_t extent, int64_t want) {
  char words[64];
  fg_extent_names(fg_recipe_kind(recipe)->form->letters, "= ", sizeof words, words);
  return fg_fail(FG_EARGUMENT,
                 "%s: axis %d of its file has %" PRId64 ", the shape %" PRId64
                 " (%s= choose another)",
                 t->name, axis, extent, want, words);
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
    if (array->extent[a] != want) return wrong_axis(recipe, t, a, array->extent[a], want);
  }
  return FG_OK;
}

static const fg_array *given(const bench *b, const fg_recipe_tensor *t) {
  for (int i = 0; i < b->which->n_arrays; i++)
    if (fg_recipe_tensor_is(t, b->which->array[i].name)) return b->which->array[i].array;
  return NULL;
}

/* Values of the case, which are in the order in which tensors are stored. */
static fg_status copy_given(bench *b, int tensor, const fg_array *array) {
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  TRY(verify_array_check(b->problem->recipe, t, &b->problem->shape, array));
  if (array->integer) {
    for (int64_t i = 0; i < array->count; i++) b->value[tensor][i] = (double)array->integer[i];
  } else {
    reference_reorder(b, tensor, 1, array->real, b->value[tensor]);
  }
  return FG_OK;
}

static const reference *row_of(const bench *b) {
  return reference_of(fg_point_kind(&b->variant->point));
}

/* Is an optional input left out? Odd seeds have none of them, but for some of those that say where
 * parts of sequences are; of even ones half leave out what another tensor stands for, too. */
static bool is_dropped(const bench *b, int tensor) {
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  const uint64_t seed = b->which->seed;
  if (t->unless) return b->value[t->unless - 1] && seed % 4 == 0;
  const bool of_parts =
      t->slot < 0 && (!strncmp(t->name, "pos_", 4) || !strncmp(t->name, "whole_", 6));
  if (strstr(t->name, "_descale") && b->which->style == VERIFY_PLAIN) return false;
  if (of_parts && seed / 2 >> tensor % 4 & 1) return false;
  return t->optional && seed % 2;
}

/* The launch is not given half of what it need not write, with the next seed the other half. */
static void leave_out(bench *b) {
  const fg_recipe *r = b->problem->recipe;
  uint64_t turn = b->which->seed;
  for (int i = 0; i < r->n_tensors; i++)
    if (r->tensor[i].output && r->tensor[i].optional && turn++ % 2) fg_problem_drop(b->problem, i);
}

/* Draws the inputs that are free; those that a forward leaves come from the oracle later. */
static fg_status draw_inputs(bench *b) {
  const fg_recipe *r = b->problem->recipe;
  for (int i = 0; i < r->n_tensors; i++) {
    const fg_array *array = given(b, &r->tensor[i]);
    int64_t count = fg_problem_count(b->problem, i);
    if (!(b->value[i] = calloc((size_t)count + 1, sizeof(double))))
      return fg_fail(FG_EMEMORY, "no memory for inputs");
    if ((r->tensor[i].output && !r->tensor[i].kept) || reference_is_saved(row_of(b), &r->tensor[i]))
      continue;
    if (!array && is_dropped(b, i)) {
      fg_problem_drop(b->problem, i);
      free(b->value[i]);
      b->value[i] = NULL;
      continue;
    }
    if (array)
      TRY(copy_given(b, i, array));
    else
      row_of(b)->draw(b, i, b->value[i]);
    TRY(reference_put(b, i, b->value[i]));
  }
  return FG_OK;
}

static reference_values find_result(const bench *b, int tensor) {
  return row_of(b)->find(b, b->problem->recipe->tensor[tensor].name);
}

/* By the spec's dtype, in which P and dS were made, unless the output itself is kept in a coarser
 * one. */
static double limit_of(const fg_variant *v, fg_elem elem) {
  double spec = oracle_limit(fg_point_elem(&v->point)), own = oracle_limit(elem);
  return own > spec ? own : spec;
}

/* The type of the weights in an output's sums: what float16 rounds to 0 there is 0 in float32 too.
 */
static fg_elem made_in(const fg_variant *v, const fg_recipe_tensor *t) {
  const fg_elem_rule rule = t->argument->elem;
  return rule == FG_RULE_O || rule == FG_RULE_DQKV ? fg_point_elem(&v->point) : t->elem;
}

/* What no kernel can have more exactly is what is exact. Behind the last float16, 65504, infinity
 * is right. A scale of 0 is launched as 2^-120, and gradients are what is left of it. */
static void settle(const bench *b, int tensor, double *x) {
  const double *ref = find_result(b, tensor).ref;
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  const bool is_f16 = t->elem == FG_ELEM_F16;
  const bool zero = b->which->given & FG_GIVEN_SCALE && !(fabsf(b->which->scale) > 0);
  const double near = zero ? 0x1p-90 : 0;
  const int64_t n = is_f16 || zero ? fg_problem_count(b->problem, tensor) : 0;
  for (int64_t i = 0; i < n; i++) {
    const bool is_beyond = is_f16 && fabs(ref[i]) > 65504;
    if (fabs(x[i] - ref[i]) <= near || (is_beyond && isinf(x[i]) && x[i] * ref[i] > 0))
      x[i] = ref[i];
  }
}

/* Integers, which a float would round. */
static fg_status get_integers(bench *b, int tensor) {
  const int64_t n = fg_problem_count(b->problem, tensor);
  int64_t *stored = malloc(((size_t)n + 1) * sizeof *stored);
  if (!stored) return fg_fail(FG_EMEMORY, "no memory for outputs");
  fg_status status = fg_problem_get_ints(b->problem, tensor, stored);
  for (int64_t i = 0; i < n; i++) b->value[tensor][i] = (double)stored[i];
  free(stored);
  return status;
}

/* An output's values, in the oracle's order. */
static fg_status get(bench *b, int tensor) {
  const int64_t n = fg_problem_count(b->problem, tensor);
  if (b->problem->recipe->tensor[tensor].elem == FG_ELEM_I32) return get_integers(b, tensor);
  float *stored = malloc(((size_t)n + 1) * sizeof *stored);
  if (!stored) return fg_fail(FG_EMEMORY, "no memory for outputs");
  fg_status status = fg_problem_get(b->problem, tensor, stored);
  reference_reorder(b, tensor, 1, stored, b->value[tensor]);
  settle(b, tensor, b->value[tensor]);
  free(stored);
  return status;
}

/* Integers are right or wrong: the share that is wrong, of which less than one counts as right. */
static void measure_integers(int64_t n, const double *x, const double *ref, verify_error *e) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; i++) wrong += !(x[i] >= ref[i] && x[i] <= ref[i]);
  e->error = n ? (double)wrong / (double)n : 0;
  e->limit = n ? 0.5 / (double)n : 1;
}

/* An output's error, from values in the oracle's order. */
static verify_error measure(const bench *b, const fg_variant *v, int tensor, const double *x) {
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  const int64_t n = fg_problem_count(b->problem, tensor);
  const reference_values y = find_result(b, tensor);
  verify_error e = {.own_unit = !y.rss, .limit = y.limit > 0 ? y.limit : limit_of(v, t->elem)};
  snprintf(e.name, sizeof e.name, "%s", t->name);
  if (t->elem == FG_ELEM_I32) {
    measure_integers(n, x, y.ref, &e);
    return e;
  }
  e.error = y.rss ? oracle_error_of(n, x, y.ref, y.rss, oracle_least(t->elem))
                  : oracle_near_error(n, x, y.ref, y.limit > 0 ? y.limit : 1e-6, y.cut, &e.limit);
  if (y.rss && verify_wrong_blank(n, made_in(v, t), x, y.ref, y.rss))
    e.error = 1; /* of what it should be */
  e.plain = y.plain ? oracle_error(n, y.plain, y.ref, y.rss) : 0;
  return e;
}

/* Are all 0, or below what that type holds with full precision? */
static bool is_nothing(int64_t n, const double *x, fg_elem elem) {
  const double least = oracle_least(elem);
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(x[i]) < least || (x[i] >= 0 && x[i] <= 0))) return false;
  return true;
}

static bool has_nan(int64_t n, const double *x) {
  for (int64_t i = 0; i < n; i++)
    if (isnan(x[i])) return true;
  return false;
}

/* An optional output of some elements that the launch is not given. */
static bool is_left_out(const bench *b, int tensor) {
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  return t->optional && !fg_args_tensor(&b->problem->args, t)->data &&
         fg_problem_count(b->problem, tensor) > 0;
}

static fg_status judge(bench *b, const fg_variant *v, verify_verdict *verdict) {
  const fg_recipe *r = b->problem->recipe;
  *verdict = (verify_verdict){.pass = 1, .nothing = true};
  for (int i = 0; i < r->n_tensors; i++) {
    const reference_values y = find_result(b, i);
    if (!r->tensor[i].output || is_left_out(b, i)) continue;
    TRY(get(b, i));
    if (row_of(b)->forgive) row_of(b)->forgive(b, i, b->value[i]);
    verify_error *e = &verdict->tensor[verdict->n++];
    *e = measure(b, v, i, b->value[i]);
    verdict->nothing &=
        !y.rss || is_nothing(fg_problem_count(b->problem, i), y.ref, made_in(v, &r->tensor[i]));
    verdict->undefined |= has_nan(fg_problem_count(b->problem, i), y.ref);
    if (e->error <= e->limit) continue;
    verdict->pass = 0;
    if (!*verdict->wrong)
      verify_wrong_tell(r, i, &b->problem->shape, b->value[i], y.ref, sizeof verdict->wrong,
                        verdict->wrong);
  }
  return FG_OK;
}

/* Is what the kernel without tile skipping gives wrong too? Then no bound is to blame. */
static fg_status wrong_without(const bench *b, const fg_variant *v, int tensor, float *whole,
                               bool *wrong) {
  double *x = malloc(((size_t)fg_problem_count(b->problem, tensor) + 1) * sizeof *x);
  if (!x) return fg_fail(FG_EMEMORY, "no memory for outputs");
  reference_reorder(b, tensor, 1, whole, x);
  settle(b, tensor, x);
  const verify_error e = measure(b, v, tensor, x);
  *wrong = !(e.error <= e.limit);
  free(x);
  return FG_OK;
}

static fg_status compare_tensor(bench *b, const fg_variant *v, const fg_problem *again, int tensor,
                                verify_verdict *verdict) {
  const fg_recipe_tensor *t = &b->problem->recipe->tensor[tensor];
  int64_t n = fg_problem_count(b->problem, tensor);
  float *ours = malloc(((size_t)n + 1) * sizeof *ours),
        *whole = malloc(((size_t)n + 1) * sizeof *whole);
  fg_status status = FG_OK;
  if (!ours || !whole) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for outputs"));
  TRY_OUT(fg_problem_get(b->problem, tensor, ours));
  TRY_OUT(fg_problem_get(again, fg_problem_find(again, t->name), whole));
  bool wrong = false;
  if (!verdict->pass) TRY_OUT(wrong_without(b, v, tensor, whole, &wrong));
  if (!wrong &&
      !verify_skip_equal(t->name, n, ours, whole, find_result(b, tensor).rss, limit_of(v, t->elem),
                         verify_skip_exact(v), sizeof verdict->skipping, verdict->skipping))
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
    if (b->problem->recipe->tensor[i].output && !is_left_out(b, i))
      TRY_OUT(compare_tensor(b, v, again, i, verdict));
out:
  fg_problem_free(again);
  return status;
}

fg_status verify_run(const fg_variant *variant, const fg_source *source, fg_module *module,
                     const verify_case *given_case, int plain, verify_verdict *verdict) {
  verify_case own = *given_case;
  const verify_case *which = &own;
  bench b = {.variant = variant, .which = which};
  const reference *row = row_of(&b);
  fg_status status = FG_OK;
  fg_launch_values_fill(&source->recipe, 0, &own.launch);
  module->device->seed = which->seed;
  const fg_shape shape = reference_lay_out(&source->recipe, &which->shape, which->seed);
  TRY(fg_problem_new(module->device, &source->recipe, &shape,
                     which->far ? FG_PROBLEM_FAR : PADDING(which), which->seed, &b.problem));
  if (which->leaves_out) leave_out(&b);
  TRY_OUT(row->start(&b));
  TRY_OUT(draw_inputs(&b));
  TRY_OUT(row->solve(&b, plain));
  b.problem->args.given = which->given, b.problem->args.scale = which->scale;
  fg_launch_values_give(&which->launch, &b.problem->args);
  b.problem->args.sm_margin = which->sm_margin;
  TRY_OUT(fg_problem_run(b.problem, module));
  TRY_OUT(judge(&b, variant, verdict));
  row->tell(&b, verdict);
  if (which->again && verify_again_promised(variant))
    TRY_OUT(verify_again(b.problem, variant, module, sizeof verdict->order, verdict->order));
  if (which->unskipped) TRY_OUT(compare_unskipped(&b, variant, verdict));
  if (variant->point.batch_invariant && shape.b > 1 && verdict->pass)
    TRY_OUT(verify_alone(b.problem, module, sizeof verdict->order, verdict->order));
  if (*verdict->order) verdict->pass = 0;
  if (*verdict->claim) verdict->pass = 0;
out:
  for (int i = 0; i < source->recipe.n_tensors; i++) free(b.value[i]);
  row->free(&b);
  fg_problem_free(b.problem);
  return status;
}
