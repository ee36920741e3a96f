/* launch_sequences.c - draws layouts of single launches as the oracle's cases have them. */
#include "launch_sequences.h"

#include "base/random.h"
#include "reference/reference_sequence.h"

#include <stdlib.h>

const char *launch_draw_layout(bool backward, uint64_t *state) {
  static const char *const layouts[] = {"",
                                        " q_layout=packed kv_layout=packed",
                                        " q_layout=packed",
                                        " kv_layout=packed",
                                        " kv_layout=cached",
                                        " kv_layout=paged",
                                        " q_layout=packed kv_layout=cached",
                                        " q_layout=packed kv_layout=paged"};
  const uint64_t n = sizeof layouts / sizeof *layouts;
  return layouts[(fg_random_next(state) >> 33) % (backward ? 4 : n)];
}

/* The values of a tensor as the oracle has them; of integers that say where sequences are, drawn,
 * or NULL and not given. */
static double *values_of(const reference_case *c, launch *l, int tensor, uint64_t *state) {
  const fg_recipe_tensor *t = &c->problem->recipe->tensor[tensor];
  const bool has_places = t->slot < 0 && t->argument->elem == FG_RULE_I32;
  double *values = calloc((size_t)fg_problem_count(c->problem, tensor) + 1, sizeof *values);
  ck_assert_ptr_nonnull(values);
  if (has_places && t->optional && fg_random_next(state) >> 62 == 0) {
    fg_problem_drop(c->problem, tensor);
    free(values);
    return NULL;
  }
  if (has_places) {
    ck_assert_msg(reference_draw_layout(c, tensor, values), "%s", t->name);
    return values;
  }
  float *stored = launch_get(l, t->name);
  reference_reorder(c, tensor, 1, stored, values);
  free(stored);
  return values;
}

launch launch_new_sequences(const kernel *k, fg_shape shape, uint64_t draw) {
  const fg_recipe *r = &k->source->recipe;
  const verify_case which = {.seed = draw};
  uint64_t state = draw;
  launch l = launch_new(k, reference_lay_out(r, &shape, draw), draw);
  reference_case c = {.variant = &k->variant, .which = &which, .problem = l.problem};
  if (!r->layout.q && !r->layout.kv) return l;
  for (int i = 0; i < r->n_tensors; i++) {
    if (r->tensor[i].output) continue;
    c.value[i] = values_of(&c, &l, i, &state);
    if (c.value[i] && r->tensor[i].argument->elem == FG_RULE_I32)
      GOOD(reference_put(&c, i, c.value[i]));
  }
  GOOD(reference_poison(&c));
  for (int i = 0; i < r->n_tensors; i++) free(c.value[i]);
  return l;
}
