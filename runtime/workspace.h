/* workspace.h - where the regions of a recipe lie in the scratch memory of a launch. */
#ifndef FG_WORKSPACE_H
#define FG_WORKSPACE_H

#include "recipe/recipe.h"

enum { FG_WORKSPACE_ALIGN = 256 };

/* Bytes of workspace, a multiple of FG_WORKSPACE_ALIGN; where a region starts in it; and what a
 * step of the recipe fills with zero bytes. */
fg_status fg_workspace_size(const fg_recipe *recipe, const fg_shape *shape, int64_t *bytes);
fg_status fg_workspace_region(const fg_recipe *recipe, const fg_shape *shape, int region,
                              int64_t *offset, int64_t *bytes);
fg_status fg_workspace_fill(const fg_recipe *recipe, const fg_shape *shape, const fg_step *step,
                            int64_t *offset, int64_t *bytes);

#endif
