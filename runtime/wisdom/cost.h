/* cost.h - what a plan is expected to take, for shapes and GPUs that nothing was measured on: from
 * the work that its recipe states, and constants that were fitted to measurements. */
#ifndef FG_COST_H
#define FG_COST_H

#include "recipe/recipe.h"
#include "spec/variant.h"

/* What the model makes of the work, in thousandths but for `block`. */
typedef struct fg_cost_terms {
  int scale; /* of the plan, to others of its spec */
  int block; /* added to the work of a block */
  int tail;  /* share of a last wave that is not full which is waited for */
  int hide;  /* warps in which a multiprocessor loses half its speed */
} fg_cost_terms;

/* The work as it is stated: the terms of a family that was not measured, and of all plans on the
 * host device, which is no GPU. */
extern const fg_cost_terms fg_cost_plain;

/* Wider heads are other kernels: plans have a scale for heads up to 64, 128 and 256 wide. */
enum { FG_COST_WIDTHS = 3 };
int fg_cost_width(const fg_point *point); /* from 0 */

/* What was fitted, of one pass (FG_PASS_...): for a family, whose `scale` counts for plans that
 * were not measured, and for a plan, scale 0 where it was not measured for heads of that width. */
typedef struct fg_cost_family {
  const char *name;
  int pass;
  fg_cost_terms terms;
} fg_cost_family;
typedef struct fg_cost_plan {
  const char *name; /* "mma-q64-k32-s1-w4" */
  int pass, scale[FG_COST_WIDTHS];
} fg_cost_plan;
extern const fg_cost_family fg_cost_families[]; /* cost_table.c; a NULL name ends each list */
extern const fg_cost_plan fg_cost_plans[];

/* The terms of a variant's plan. */
fg_cost_terms fg_cost_terms_of(const fg_variant *variant);

/* It has no unit: it ranks the plans of one spec on one device. */
double fg_cost(const fg_recipe *recipe, const fg_cost_terms *terms, const fg_shape *shape,
               const char *arch, int multiprocessors);

#endif
