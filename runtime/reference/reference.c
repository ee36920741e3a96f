/* reference.c - values of tensors between a launch and an oracle. */
#include "reference.h"

#include "oracle_normalizer.h"
#include "verify_wrong.h"

#include <stdlib.h>
#include <string.h>

double *reference_value(const reference_case *c, const char *name) {
  const int i = fg_problem_find(c->problem, name);
  return i < 0 ? NULL : c->value[i];
}

fg_status reference_check_normalizer(const reference_case *c) {
  const char *normalizer = c->variant->point.normalizer;
  if (oracle_normalizer_find(normalizer)) return FG_OK;
  return fg_fail(FG_ESPEC, "normalizer=%s: there is nothing to compare it with", normalizer);
}

/* Tensors are stored b n h d, the oracle's arrays b h n d: copies one to the other, whichever way.
 * Those without a head axis behind the rows are alike. */
void reference_reorder(const reference_case *c, int tensor, int to_oracle, float *stored,
                       double *ordered) {
  int64_t e[FG_AXES_MAX];
  const bool swap = verify_wrong_swapped(c->problem->recipe, tensor, &c->problem->shape, e);
  if (!swap) e[0] = 1, e[1] = 1, e[2] = 1, e[3] = fg_problem_count(c->problem, tensor);
  for (int64_t i = 0; i < e[0]; i++)
    for (int64_t j = 0; j < e[1]; j++)
      for (int64_t k = 0; k < e[2]; k++) {
        float *s = stored + ((i * e[1] + j) * e[2] + k) * e[3];
        double *o = ordered + ((i * e[2] + k) * e[1] + j) * e[3];
        for (int64_t l = 0; l < e[3]; l++) {
          if (to_oracle)
            o[l] = (double)s[l];
          else
            s[l] = (float)o[l];
        }
      }
}

/* Integers are exact in the launch as in the oracle. */
static fg_status put_integers(reference_case *c, int tensor, const double *values) {
  const int64_t count = fg_problem_count(c->problem, tensor);
  int64_t *whole = malloc(((size_t)count + 1) * sizeof *whole);
  if (!whole) return fg_fail(FG_EMEMORY, "no memory for inputs");
  for (int64_t i = 0; i < count; i++) whole[i] = (int64_t)values[i];
  fg_status status = fg_problem_set_ints(c->problem, tensor, whole);
  free(whole);
  return status;
}

fg_status reference_put(reference_case *c, int tensor, double *values) {
  if (c->problem->recipe->tensor[tensor].elem == FG_ELEM_I32)
    return put_integers(c, tensor, values);
  size_t count = (size_t)fg_problem_count(c->problem, tensor);
  float *stored = malloc((count + 1) * sizeof *stored);
  if (!stored) return fg_fail(FG_EMEMORY, "no memory for inputs");
  reference_reorder(c, tensor, 0, stored, values);
  fg_status status = fg_problem_set(c->problem, tensor, stored);
  if (status == FG_OK) /* rounded, as the kernel sees them */
    status = fg_problem_get(c->problem, tensor, stored);
  reference_reorder(c, tensor, 1, stored, values);
  free(stored);
  return status;
}

double reference_eps(const reference_case *c) {
  const fg_launch_values *launch = &c->which->launch;
  return launch->given & FG_GIVEN_EPS ? (double)launch->value[FG_NUMBER_EPS] : 1e-5;
}

double reference_size_of_terms(const reference_case *c) {
  const bool shows_eps = c->which->style == VERIFY_PLAIN && c->which->launch.given & FG_GIVEN_EPS;
  return shows_eps ? 0x1p-5 : 1;
}

fg_status reference_put_rows(reference_case *c, const char *name, const double *from) {
  double *values = reference_value(c, name);
  if (!values) return FG_OK; /* RMS norm has no mean */
  memcpy(values, from, (size_t)c->problem->shape.rows * sizeof *values);
  return reference_put(c, fg_problem_find(c->problem, name), values);
}
