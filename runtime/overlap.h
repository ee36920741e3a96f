/* overlap.h - outputs that lie over other tensors of a launch. */
#ifndef FG_OVERLAP_H
#define FG_OVERLAP_H

#include "recipe/recipe.h"

/* FG_EARGUMENT where the first element of a tensor is also an element of another and one of the two
 * is an output. Tensors whose elements lie between each other's, as slices of one buffer do, are
 * no fault. reach[i]: elements from the first to the last of the recipe's tensor i, -1 for one that
 * is not there or empty. */
fg_status fg_overlap_check(const fg_recipe *recipe, const fg_shape *shape, const fg_args *args,
                           const int64_t *reach);

#endif
