/* tools.h - what the program `flashgen` knows of contexts and kernels besides the public functions:
 * which plan is taken before its kernel is made, kernels of plans by name, and what they consist
 * of. Their structs stay the library's own. */
#ifndef FG_TOOLS_H
#define FG_TOOLS_H

#include "device/device.h"
#include "expand/expand.h"

/* The context's device. */
fg_device *fg_context_device(const fg_context *context);

/* May the context compile what no zoo or cache has? */
bool fg_context_compiles(const fg_context *context);

/* From now on the context says all that FLASHGEN_VERBOSE may ask for. */
void fg_context_tell_all(fg_context *context);

/* A plan of a spec, before there is a kernel of it. op and recipe are the context's. */
typedef struct fg_pick {
  fg_op *op;
  fg_plan plan;
  const fg_recipe *recipe;
} fg_pick;

/* The first plan of the point within the limits whose name the glob matches; FG_ESPEC: there is
 * none. glob = NULL: the plan that the library would choose for the shape. */
fg_status fg_pick_plan(fg_context *context, const fg_point *point, const fg_limits *limits,
                       const fg_shape *shape, const char *glob, fg_pick *pick);

/* Kernels of a plan, whether dispatch would choose it or not: from a zoo, from the cache or
 * compiled into it, and loaded. The caller's, for fg_kernel_free. */
fg_status fg_pick_kernel(const fg_pick *pick, fg_kernel **kernel);
fg_status fg_variant_kernel(fg_context *context, const fg_variant *variant, fg_kernel **kernel);
void fg_kernel_free(fg_kernel *kernel); /* NULL is legal */

/* What the kernel consists of; they live as long as it does. Only a kernel that was compiled by
 * this context has its text. */
const fg_recipe *fg_kernel_recipe(const fg_kernel *kernel);
const fg_source *fg_kernel_source(const fg_kernel *kernel);
fg_module *fg_kernel_module(const fg_kernel *kernel);

#endif
