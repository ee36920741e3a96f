/* verify_again.c - that equal launches give equal bits. */
#include "verify_again.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kinds that no spec has to ask for it always promise it. */
bool verify_again_promised(const fg_variant *v) {
  const bool may_differ = fg_kind_has_field(fg_point_kind(&v->point), FG_FIELD_DETERMINISTIC);
  return v->point.pass == FG_PASS_FORWARD || v->point.deterministic || !may_differ;
}

static void compare(const fg_recipe_tensor *t, int64_t n, const float *first, const float *second,
                    const char *launch, size_t size, char *text) {
  int64_t differing = 0, at = 0;
  for (int64_t i = n - 1; i >= 0; i--)
    if (memcmp(&first[i], &second[i], sizeof *first)) differing++, at = i;
  if (differing)
    snprintf(text, size,
             "%s: %" PRId64 " of %" PRId64 " elements are others in %s, the first at %" PRId64
             ": %.9g, not %.9g",
             t->name, differing, n, launch, at, (double)second[at], (double)first[at]);
}

/* An output's values; of integers the bits, each in the place of a float. */
static fg_status get(const fg_problem *p, int tensor, float *values) {
  const int64_t n = fg_problem_count(p, tensor);
  if (p->recipe->tensor[tensor].elem != FG_ELEM_I32) return fg_problem_get(p, tensor, values);
  int64_t *whole = malloc(((size_t)n + 1) * sizeof *whole);
  if (!whole) return fg_fail(FG_EMEMORY, "no memory for outputs");
  fg_status status = fg_problem_get_ints(p, tensor, whole);
  for (int64_t i = 0; i < n; i++) {
    const int32_t bits = (int32_t)whole[i];
    memcpy(&values[i], &bits, sizeof bits);
  }
  free(whole);
  return status;
}

/* The tokens of the first sequence where sequences are packed. */
typedef struct {
  int64_t begin, end;
} tokens;

/* Takes an output's values of all sequences but the first from another launch: tokens of no
 * sequence are written as 0. */
static void take_others(const fg_problem *p, int tensor, const tokens *own, const float *from,
                        float *values) {
  const fg_recipe_tensor *t = &p->recipe->tensor[tensor];
  const int64_t n = fg_problem_count(p, tensor);
  int64_t inner = n;
  for (const char *axis = t->axes; *axis; axis++) {
    const int64_t extent = fg_recipe_extent(p->recipe, *axis, &p->shape);
    inner = extent ? inner / extent : 0;
    for (int64_t i = 0; i < n; i++) {
      const int64_t at = i / inner % extent;
      if ((*axis == 'b' && at > 0) || (*axis == 's' && (at < own->begin || at >= own->end)))
        values[i] = from[i];
    }
  }
}

/* alone: of a launch of the first sequence alone, whose tokens these are; NULL: it is of all. */
static fg_status compare_all(fg_problem *p, float *const *first, const tokens *alone, size_t size,
                             char *text) {
  const char *launch = alone ? "the first sequence alone" : "a second launch";
  for (int i = 0; i < p->recipe->n_tensors && !*text; i++) {
    const int64_t n = fg_problem_count(p, i);
    if (!first[i]) continue;
    float *second = malloc(((size_t)n + 1) * sizeof *second);
    if (!second) return fg_fail(FG_EMEMORY, "no memory for outputs");
    fg_status status = get(p, i, second);
    if (alone) take_others(p, i, alone, first[i], second);
    if (status == FG_OK) compare(&p->recipe->tensor[i], n, first[i], second, launch, size, text);
    free(second);
    TRY(status);
  }
  return FG_OK;
}

/* Keeps an output's values, and takes them from the device unless it keeps them: what is not
 * written shows. */
static fg_status take(fg_problem *p, int tensor, float **values) {
  const size_t n = (size_t)fg_problem_count(p, tensor);
  float *nothing = malloc((n + 1) * sizeof *nothing);
  fg_status status = FG_OK;
  *values = malloc((n + 1) * sizeof **values);
  if (!*values || !nothing) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for outputs"));
  memset(nothing, 0xff, n * sizeof *nothing); /* NaN */
  TRY_OUT(get(p, tensor, *values));
  if (!p->recipe->tensor[tensor].kept) TRY_OUT(fg_problem_set(p, tensor, nothing));
out:
  free(nothing);
  return status;
}

static void free_all(const fg_problem *p, float **values) {
  for (int i = 0; i < p->recipe->n_tensors; i++) free(values[i]);
}

/* Do the bits depend on how many blocks share the work, which the host device's seed says modulo
 * its multiprocessors? So do those of kernels that leave parts of rows in memory. */
static bool depends_on_blocks(const fg_variant *v, const fg_recipe *recipe) {
  if (v->point.batch_invariant) return false;
  for (int i = 0; i < recipe->n_regions; i++)
    if (!strcmp(recipe->region[i].name, "parts")) return true;
  return false;
}

fg_status verify_again(fg_problem *p, const fg_variant *v, fg_module *module, size_t size,
                       char *text) {
  float *first[FG_TENSOR_MAX] = {NULL};
  fg_status status = FG_OK;
  *text = 0;
  for (int i = 0; i < p->recipe->n_tensors; i++)
    if (p->recipe->tensor[i].output && fg_args_tensor(&p->args, &p->recipe->tensor[i])->data)
      TRY_OUT(take(p, i, &first[i]));
  const int blocks_run = module->device->multiprocessors - (int)p->args.sm_margin;
  module->device->seed += depends_on_blocks(v, p->recipe) ? (uint64_t)blocks_run : 1;
  TRY_OUT(fg_problem_run(p, module));
  TRY_OUT(compare_all(p, first, NULL, size, text));
out:
  free_all(p, first);
  return status;
}

static fg_status first_tokens(const fg_problem *p, tokens *own) {
  const int starts = fg_problem_find(p, "starts_q");
  *own = (tokens){0, 0};
  if (starts < 0) return FG_OK;
  int64_t *values = malloc(((size_t)fg_problem_count(p, starts) + 1) * sizeof *values);
  if (!values) return fg_fail(FG_EMEMORY, "no memory for starts");
  fg_status status = fg_problem_get_ints(p, starts, values);
  if (status == FG_OK) *own = (tokens){values[0], values[1]};
  free(values);
  return status;
}

/* The first sequence has index 0 alone, too: nothing but the batch is another. */
fg_status verify_alone(fg_problem *p, fg_module *module, size_t size, char *text) {
  const fg_shape all = p->shape;
  float *among[FG_TENSOR_MAX] = {NULL};
  fg_status status = FG_OK;
  tokens own;
  *text = 0;
  TRY(first_tokens(p, &own));
  for (int i = 0; i < p->recipe->n_tensors; i++) {
    if (!p->recipe->tensor[i].output || !fg_args_tensor(&p->args, &p->recipe->tensor[i])->data)
      continue;
    among[i] = malloc(((size_t)fg_problem_count(p, i) + 1) * sizeof **among);
    if (!among[i]) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for outputs"));
    TRY_OUT(get(p, i, among[i]));
  }
  p->shape.b = 1;
  status = fg_problem_room(p);
  if (status == FG_OK) status = fg_problem_run(p, module);
  p->shape = all;
  TRY_OUT(status);
  TRY_OUT(compare_all(p, among, &own, size, text));
out:
  free_all(p, among);
  return status;
}
