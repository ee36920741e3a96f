/* workspace.c - regions of scratch lie one behind the other. */
#include "workspace.h"

fg_status fg_workspace_region(const fg_recipe *recipe, const fg_shape *shape, int region,
                              int64_t *offset, int64_t *bytes) {
  int64_t at = 0;
  for (int i = 0; i <= region; i++) {
    int64_t count;
    at = (at + FG_WORKSPACE_ALIGN - 1) / FG_WORKSPACE_ALIGN * FG_WORKSPACE_ALIGN;
    *offset = at;
    TRY(fg_expr_eval(&recipe->region[i].count, shape, &count));
    if (count < 0 || count > INT64_MAX / 16)
      return fg_fail(FG_EARGUMENT, "workspace region %s is too large", recipe->region[i].name);
    *bytes = count * (int64_t)fg_elem_size(recipe->region[i].elem);
    if (__builtin_add_overflow(at, *bytes, &at))
      return fg_fail(FG_EARGUMENT, "the workspace is too large");
  }
  return FG_OK;
}

fg_status fg_workspace_fill(const fg_recipe *recipe, const fg_shape *shape, const fg_step *step,
                            int64_t *offset, int64_t *bytes) {
  int64_t first = 0, last = 0, size = 0;
  TRY(fg_workspace_region(recipe, shape, step->region, &first, &size));
  TRY(fg_workspace_region(recipe, shape, step->region + step->regions - 1, &last, &size));
  *offset = first;
  *bytes = last + size - first;
  return FG_OK;
}

fg_status fg_workspace_size(const fg_recipe *recipe, const fg_shape *shape, int64_t *bytes) {
  int64_t offset = 0, size = 0;
  if (recipe->n_regions)
    TRY(fg_workspace_region(recipe, shape, recipe->n_regions - 1, &offset, &size));
  *bytes = (offset + size + FG_WORKSPACE_ALIGN - 1) / FG_WORKSPACE_ALIGN * FG_WORKSPACE_ALIGN;
  return FG_OK;
}
