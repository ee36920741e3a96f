/* reference_attention_draw.c - the inputs of a case of attention. */
#include "reference_attention.h"

#include "base/random.h"
#include "reference_sequence.h"

#include <math.h>
#include <string.h>

/* One value of a tensor that is no declared input. */
static double draw_value(const reference_case *c, const char *name, uint64_t *state) {
  const verify_case *which = c->which;
  double x = fg_random_normal(state);
  if (strstr(name, "_descale")) return 0.5 + fg_random_uniform(state);
  if (which->style == VERIFY_LARGE && !strcmp(name, "q")) return 40 * x;
  if (which->style == VERIFY_LARGE && !strcmp(name, "sink")) return 40 * x;
  if (which->style != VERIFY_ABSENT || (strcmp(name, "bias") && strcmp(name, "sink"))) return x;
  double kind = fg_random_uniform(state);
  return kind < 0.4 && attention_normalizer(c)->hides_inf ? -INFINITY : kind < 0.5 ? 3000 * x : x;
}

/* v of latent keys: the first columns of k, which is drawn before it. */
static bool draw_latent(const reference_case *c, int tensor, double *values) {
  const int d = c->variant->point.d, dv = c->variant->point.dv;
  const int64_t rows = fg_problem_count(c->problem, tensor) / dv;
  if (!c->problem->shares[tensor]) return false;
  const double *k = reference_value(c, "k");
  for (int64_t i = 0; i < rows; i++) memcpy(values + i * dv, k + i * d, (size_t)dv * sizeof *k);
  return true;
}

/* Values that fall upon places: every seventh row of a bias of nothing but -inf, the last sink and
 * descale of their tensors: a sink of -inf, or one whose power is 0 by the reference of a capped
 * score, a descale of 0. */
static void draw_places(const reference_case *c, const fg_recipe_tensor *t, int64_t count,
                        double *values) {
  const bool is_absent = c->which->style == VERIFY_ABSENT;
  const char last = t->axes[strlen(t->axes) - 1];
  if (count < 2) return;
  if (!strcmp(t->name, "bias") && is_absent && attention_normalizer(c)->hides_inf) {
    const int64_t keys =
        strchr("kt", last) ? fg_recipe_extent(c->problem->recipe, last, &c->problem->shape) : 1;
    for (int64_t i = 0; keys > 1 && i < count; i++)
      if (i / keys % 7 == 3) values[i] = -INFINITY;
  }
  if (!strcmp(t->name, "sink") && c->which->style == VERIFY_LARGE)
    values[count - 1] = c->which->seed % 2 ? -80 : -INFINITY;
  const bool of_values = !strcmp(t->name, "v_descale");
  if (strstr(t->name, "_descale") && c->which->style == VERIFY_PLAIN &&
      (!of_values || c->which->seed % 2))
    values[of_values ? 0 : count - 1] = 0;
}

void attention_draw(const reference_case *c, int tensor, double *values) {
  const attention *a = c->own;
  const fg_recipe_tensor *t = &c->problem->recipe->tensor[tensor];
  const int64_t count = fg_problem_count(c->problem, tensor);
  uint64_t state = c->which->seed * 1000003 + (uint64_t)tensor;
  if (reference_draw_layout(c, tensor, values) || draw_latent(c, tensor, values)) return;
  if (t->argument->elem == FG_RULE_WORDS) {
    for (int64_t i = 0; i < count; i++) values[i] = (double)(int32_t)fg_random_next(&state);
    return;
  }
  if (t->slot >= 0)
    verify_formula_draw(&a->formula, c->problem, c->which, &c->variant->plan, tensor, values);
  else
    for (int64_t i = 0; i < count; i++) values[i] = draw_value(c, t->name, &state);
  if (t->slot < 0) draw_places(c, t, count, values);
}
