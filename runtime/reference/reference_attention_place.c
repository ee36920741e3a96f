/* reference_attention_place.c - a case's normalizer, and the place of a sequence in its inputs. */
#include "reference_attention.h"

#include <string.h>

const oracle_normalizer *attention_normalizer(const reference_case *c) {
  return oracle_normalizer_find(c->variant->point.normalizer);
}

void attention_set_first(attention *a, const fg_problem *p, const reference_sequence *s) {
  const fg_layout layout = p->recipe->layout;
  const int64_t q = layout.q == FG_PACKED ? s->first_q : 0;
  const int64_t k = layout.kv == FG_PACKED ? s->first_k : 0;
  const int64_t first[4] = {s->b, 0, q, k};
  memcpy(a->oracle.bias_first, first, sizeof first);
  a->oracle.first_b = s->b;
  a->whole = (oracle_slice){-s->pos_q, -s->pos_k, s->whole_q, s->whole_k};
  if (layout.shard) a->oracle.whole = &a->whole;
  for (int i = 0; i < a->formula.n_inputs; i++) {
    const int tensor = fg_recipe_input(p->recipe, i, false);
    for (int x = 0; tensor >= 0 && x < a->formula.inputs[i].rank; x++) {
      const char axis = p->recipe->tensor[tensor].axes[x];
      a->formula.inputs[i].first[x] = axis == 's' ? q : axis == 't' ? k : 0;
      const char own = axis == 's' ? 'q' : axis == 't' ? 'k' : axis;
      a->formula.inputs[i].slice_axis[x] =
          (layout.slices || layout.shard) && strchr("qk", own) ? own : 0;
    }
  }
}
