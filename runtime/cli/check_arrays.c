/* check_arrays.c - the files of `flashgen check --in`. */
#include "check.h"

#include "reference/reference.h"

#include <stdlib.h>
#include <string.h>

/* The input of that name; of what a backward is given, the oracle makes o and lse. */
static const fg_recipe_tensor *find(const fg_recipe *r, const char *name) {
  for (int i = 0; i < r->n_tensors; i++)
    if (!r->tensor[i].output && fg_recipe_tensor_is(&r->tensor[i], name)) return &r->tensor[i];
  return NULL;
}

static fg_status check_fit(const cli *c, const fg_point *point, const fg_recipe *recipe,
                           const check_arrays *a, bool *taken) {
  fg_shape shapes[CLI_CHECK_SHAPES];
  int n_shapes;
  TRY(check_shapes(c, point, &n_shapes, shapes));
  for (int i = 0; i < a->n; i++) {
    const fg_recipe_tensor *t = find(recipe, a->array[i].name);
    taken[i] |= t != NULL;
    if (t && reference_is_saved(&reference_attention, t))
      return fg_fail(FG_EARGUMENT, "--in %s: check computes it", t->name);
    for (int s = 0; t && s < n_shapes; s++)
      TRY(verify_array_check(recipe, t, &shapes[s], &a->file[i]));
  }
  return FG_OK;
}

static fg_status check_all(const cli *c, const cli_variants *v, const check_arrays *a) {
  bool taken[16] = {false};
  fg_recipe *recipe = malloc(sizeof *recipe);
  fg_status status = FG_OK;
  if (!recipe) return fg_fail(FG_EMEMORY, "no memory for a recipe");
  for (int i = 0; i < v->n; i++) {
    TRY_OUT(fg_gen_recipe(v->gen, &v->variant[i], recipe));
    TRY_OUT(check_fit(c, &v->variant[i].point, recipe, a, taken));
  }
  for (int i = 0; i < a->n; i++)
    if (!taken[i])
      TRY_OUT(fg_fail(FG_EARGUMENT, "--in %s: no variant has such an input", a->array[i].name));
out:
  free(recipe);
  return status;
}

fg_status check_arrays_read(const cli *c, const cli_variants *variants, check_arrays *a) {
  for (int i = 0; i < c->n_in; i++) {
    const char *name = c->in[i].name;
    if (!strcmp(name, "o") || !strcmp(name, "lse"))
      return fg_fail(FG_EARGUMENT, "--in %s: check computes it", name);
    TRY(fg_npy_read(name, c->in[i].path, &a->file[i]));
    a->array[a->n++] = (verify_array){.name = name, .array = &a->file[i]};
  }
  return a->n ? check_all(c, variants, a) : FG_OK;
}

void check_arrays_free(check_arrays *a) {
  for (int i = 0; i < a->n; i++) fg_array_free(&a->file[i]);
}
