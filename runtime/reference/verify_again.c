/* verify_again.c - that equal launches give equal bits. */
#include "verify_again.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kinds that no spec has to ask for it always promise it. */
bool verify_again_promised(const fg_variant *v) {
  const bool may_differ = fg_kind_has_field(fg_point_kind(&v->point), "deterministic");
  return v->point.pass == FG_PASS_FORWARD || v->point.deterministic || !may_differ;
}

static void compare(const fg_recipe_tensor *t, int64_t n, const float *first, const float *second,
                    size_t size, char *text) {
  int64_t differing = 0, at = 0;
  for (int64_t i = n - 1; i >= 0; i--)
    if (memcmp(&first[i], &second[i], sizeof *first)) differing++, at = i;
  if (differing)
    snprintf(text, size,
             "%s: %" PRId64 " of %" PRId64 " elements are others in a second launch, the first at "
             "%" PRId64 ": %.9g, not %.9g",
             t->name, differing, n, at, (double)second[at], (double)first[at]);
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

static fg_status compare_all(fg_problem *p, float *const *first, size_t size, char *text) {
  for (int i = 0; i < p->recipe->n_tensors && !*text; i++) {
    const int64_t n = fg_problem_count(p, i);
    if (!first[i]) continue;
    float *second = malloc(((size_t)n + 1) * sizeof *second);
    if (!second) return fg_fail(FG_EMEMORY, "no memory for outputs");
    fg_status status = get(p, i, second);
    if (status == FG_OK) compare(&p->recipe->tensor[i], n, first[i], second, size, text);
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
  TRY_OUT(compare_all(p, first, size, text));
out:
  for (int i = 0; i < p->recipe->n_tensors; i++) free(first[i]);
  return status;
}
