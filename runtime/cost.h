/* cost.h - what a plan is expected to take, from its recipe alone: for shapes and GPUs that nothing
 * was measured on. */
#ifndef FG_COST_H
#define FG_COST_H

#include "recipe.h"

/* It has no unit: it ranks the plans of one spec on one device. */
double fg_cost(const fg_recipe *recipe, const fg_shape *shape, const char *arch,
               int multiprocessors);

#endif
