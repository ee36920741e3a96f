/* recipe_name.c - names of a recipe's tensors: those of arguments, and those of declared inputs. */
#include "recipe.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "inputs.";

const char *fg_input_bare(const char *name) {
  const size_t n = sizeof prefix - 1;
  return strncmp(name, prefix, n) ? name : name + n;
}

bool fg_argument_belongs(const fg_argument *a, fg_layout layout, bool dropout,
                         const char *normalizer) {
  const bool is_dense = !layout.q && !layout.kv && !layout.slices && !layout.shard;
  if (a->elem == FG_RULE_I32 && is_dense) return false;
  if (a->elem == FG_RULE_WORDS && !dropout) return false;
  return !a->normalizer || !strcmp(a->normalizer, normalizer ? normalizer : "softmax");
}

void fg_recipe_name(fg_recipe_tensor *t) {
  t->slot = -1;
  t->optional |= t->argument->optional;
  snprintf(t->name, sizeof t->name, "%s", t->argument->name);
  snprintf(t->ident, sizeof t->ident, "%s", t->argument->ident);
}

void fg_recipe_name_input(fg_recipe_tensor *t, const char *input, bool gradient, bool is_shared) {
  enum { LONGEST = FG_NAME_SIZE - sizeof "inputs.d" };
  const char *d = gradient ? "d" : "";
  t->argument = fg_argument_input(gradient);
  snprintf(t->name, sizeof t->name, "%s%s%.*s", is_shared ? prefix : "", d, LONGEST, input);
  snprintf(t->ident, sizeof t->ident, "%sin_%.*s", d, LONGEST, input);
}

bool fg_recipe_tensor_is(const fg_recipe_tensor *t, const char *name) {
  const char *bare = fg_input_bare(name);
  return !strcmp(t->name, name) ||
         (t->slot >= 0 && bare != name && !strcmp(fg_input_bare(t->name), bare));
}

int fg_recipe_input(const fg_recipe *r, int slot, bool gradient) {
  for (int i = 0; i < r->n_tensors; i++)
    if (r->tensor[i].slot == slot && r->tensor[i].argument == fg_argument_input(gradient)) return i;
  return -1;
}
