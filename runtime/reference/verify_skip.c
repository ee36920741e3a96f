/* verify_skip.c - that skipping tiles changes no result. */
#include "verify_skip.h"

#include "recipe/arch.h"

#include "oracle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fg_status copy_tensor(const fg_problem *from, int tensor, fg_problem *to, int twin) {
  const size_t n = (size_t)fg_problem_count(from, tensor) + 1;
  const bool is_whole = from->recipe->tensor[tensor].elem == FG_ELEM_I32;
  float *values = malloc(n * sizeof *values);
  int64_t *whole = malloc(n * sizeof *whole);
  fg_status status = FG_OK;
  if (!values || !whole) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for inputs"));
  if (is_whole) {
    TRY_OUT(fg_problem_get_ints(from, tensor, whole));
    TRY_OUT(fg_problem_set_ints(to, twin, whole));
  } else {
    TRY_OUT(fg_problem_get(from, tensor, values));
    TRY_OUT(fg_problem_set(to, twin, values));
  }
out:
  free(values);
  free(whole);
  return status;
}

fg_status verify_skip_run(const fg_problem *done, const fg_source *twin, fg_module *module,
                          int padding, uint64_t seed, fg_problem **again) {
  TRY(fg_problem_new(done->device, &twin->recipe, &done->shape, padding, seed, again));
  for (int i = 0; i < twin->recipe.n_tensors; i++) {
    const fg_recipe_tensor *t = &twin->recipe.tensor[i];
    int from = fg_problem_find(done, t->name);
    if (t->output) continue;
    if (from < 0)
      return fg_fail(FG_EBUG, "%s: only the kernel without tile skipping takes it", t->name);
    if (fg_args_tensor(&done->args, t)->data)
      TRY(copy_tensor(done, from, *again, i));
    else
      fg_problem_drop(*again, i);
  }
  (*again)->args.given = done->args.given, (*again)->args.scale = done->args.scale;
  fg_launch_numbers_copy(&done->args, &(*again)->args);
  (*again)->args.sm_margin = done->args.sm_margin;
  for (int i = 0; i < FG_INPUT_SLOTS; i++) (*again)->input[i].number = done->input[i].number;
  return fg_problem_run(*again, module);
}

bool verify_skip_exact(const fg_variant *v) {
  bool ordered = v->point.pass == FG_PASS_FORWARD || v->point.deterministic;
  const char *family = fg_plan_family(&v->plan);
  bool one_division = strcmp(family, "wgmma") != 0 && strcmp(family, "decode") != 0;
  return ordered && one_division && fg_arch_is_host(v->arch);
}

/* What is a NaN in both counts as equal: it says nothing of tiles. */
static bool near(int64_t n, const float *skipping, const float *whole, const double *rss,
                 double limit) {
  double *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y), error = 0;
  for (int64_t i = 0; x && y && i < n; i++) {
    const bool both_nan = skipping[i] != skipping[i] && whole[i] != whole[i];
    x[i] = both_nan ? 0 : (double)skipping[i], y[i] = both_nan ? 0 : (double)whole[i];
  }
  if (x && y) error = rss ? oracle_error(n, x, y, rss) : oracle_lse_error(n, x, y, &limit);
  free(x);
  free(y);
  return error <= limit;
}

bool verify_skip_equal(const char *name, int64_t n, const float *skipping, const float *whole,
                       const double *rss, double limit, bool exact, size_t size, char *text) {
  int64_t differing = 0, first = 0;
  for (int64_t i = n - 1; i >= 0; i--) {
    bool both_nan = skipping[i] != skipping[i] && whole[i] != whole[i];
    if (both_nan || !(skipping[i] < whole[i] || skipping[i] > whole[i] || skipping[i] != whole[i]))
      continue;
    differing++, first = i;
  }
  if (!differing) return true;
  if (!exact && near(n, skipping, whole, rss, limit)) return true;
  snprintf(text, size,
           "%s: %" PRId64 " of %" PRId64 " elements differ from those of the same kernel without "
           "tile skipping, the first at %" PRId64 ": %g, not %g",
           name, differing, n, first, (double)skipping[first], (double)whole[first]);
  return false;
}
