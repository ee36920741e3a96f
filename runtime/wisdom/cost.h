/* cost.h - the time that a plan is expected to take, for shapes and GPUs without a measurement:
 * computed from the work that its recipe states and from constants fitted to measurements. */
#ifndef FG_COST_H
#define FG_COST_H

#include "recipe/recipe.h"
#include "spec/variant.h"

/* The constants of the model, in thousandths except `block`. */
typedef struct fg_cost_terms {
  int scale; /* of the plan's time, relative to other plans of its spec */
  int block; /* added to the work of each block, in units of that work */
  int tail;  /* how much of the empty part of the last wave counts as time */
  int hide;  /* warps on a multiprocessor at which it has half its full speed */
} fg_cost_terms;

/* The terms of a family that was not measured, and of all plans on the host device, which is no
 * GPU: they leave the stated work as it is. */
extern const fg_cost_terms fg_cost_plain;

/* A plan has one scale for heads up to 64 wide, one up to 128, one for wider heads: 0, 1, 2. */
enum { FG_COST_WIDTHS = 3 };
int fg_cost_width(const fg_point *point);

/* The fitted rows, each for one kind of kernel, whose families state work in units of their own,
 * and one pass (FG_PASS_...). The `scale` of a family counts for plans that were not measured; a
 * plan has scale 0 for widths of heads that it was not measured at. */
typedef struct fg_cost_family {
  const char *kernel, *name;
  int pass;
  fg_cost_terms terms;
} fg_cost_family;
typedef struct fg_cost_plan {
  const char *kernel, *name; /* "attention", "mma-q64-k32-s1-w4" */
  int pass, scale[FG_COST_WIDTHS];
} fg_cost_plan;
extern const fg_cost_family fg_cost_families[]; /* cost_table.c; a NULL name ends each list */
extern const fg_cost_plan fg_cost_plans[];

/* The terms of a variant's plan. */
fg_cost_terms fg_cost_terms_of(const fg_variant *variant);

/* The cost of a launch. It has no unit: it ranks the plans of one spec on one device. */
double fg_cost(const fg_recipe *recipe, const fg_cost_terms *terms, const fg_shape *shape,
               const char *arch, int multiprocessors);

#endif
