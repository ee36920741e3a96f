/* launch.h - a recipe, a shape and arguments to what a device launches: one table-driven path.
 *
 * Knows no device. The caller's tensors are checked against the recipe, the Params struct is filled
 * from its parameter table. */
#ifndef FG_LAUNCH_H
#define FG_LAUNCH_H

#include "recipe/recipe.h"
#include "workspace.h"

enum { FG_PARAMS_MAX = 2048 };

/* FG_EARGUMENT naming the field: extents negative, h no multiple of hk, a length >= 2^30, a tensor
 * that is missing or misaligned, whose last stride is not 1 or whose offsets overflow, an input or
 * a number that is not given, an output that lies over another tensor. */
fg_status fg_shape_check(const fg_shape *shape);
/* The shape has no extent but the kind's, so far as they are not 0; FG_EARGUMENT names another. */
fg_status fg_shape_fits(const fg_kind *kind, const fg_shape *shape);
/* Both. */
fg_status fg_shape_check_of(const fg_kind *kind, const fg_shape *shape);
/* The same of a number of the spec's inputs: an int, or real. */
fg_status fg_number_check(const char *name, bool real, double value);
/* FG_EARGUMENT unless a launch may have that value of it. */
fg_status fg_launch_number_check(const fg_launch_number *number, double value);
/* The same of the scale, which is given. */
fg_status fg_scale_check(double scale);
fg_status fg_launch_check(const fg_recipe *recipe, const fg_shape *shape, const fg_args *args);
/* FG_EARGUMENT: a margin (fg_args.sm_margin) below 0, or of all the multiprocessors. */
fg_status fg_margin_check(int64_t margin, int multiprocessors);

/* Elements of a recipe's tensor for a shape. */
int64_t fg_tensor_count(const fg_recipe *recipe, const fg_recipe_tensor *tensor,
                        const fg_shape *shape);

/* Bytes that its address and strides must be multiples of: a power of 2. */
uint64_t fg_tensor_align(const fg_recipe *recipe, const fg_recipe_tensor *tensor);

/* Fills the Params struct (params_bytes of the recipe, at most FG_PARAMS_MAX), but for the tensor
 * maps, which are the device's. */
fg_status fg_params_fill(const fg_recipe *recipe, const fg_shape *shape, const fg_args *args,
                         void *workspace, void *params);

/* The blocks of a launch step; *empty when it has none. And those of them that are launched where
 * there are so many multiprocessors, and room for so many clusters at a time (0: as many as
 * multiprocessors have room for): whole clusters. */
fg_status fg_step_grid(const fg_step *step, const fg_shape *shape, uint32_t grid[3], bool *empty);
void fg_step_limit(const fg_step *step, int multiprocessors, int clusters, uint32_t grid[3]);

#endif
