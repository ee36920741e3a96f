/* tensor_map.h - what a device makes a tensor map of: a recipe's map for a shape and arguments. */
#ifndef FG_TENSOR_MAP_H
#define FG_TENSOR_MAP_H

#include "recipe/recipe.h"

/* Axis 0 is the fastest and dense. */
typedef struct fg_map_view {
  const char *name; /* the tensor's */
  void *base;       /* not null, even where there is no element */
  fg_elem elem;
  int rank, swizzle; /* swizzle: bytes, 0 = none */
  uint64_t extent[5];
  uint64_t stride[5]; /* bytes */
  uint32_t box[5];
} fg_map_view;

/* Can TMA reach the tensor? One of the spec's dtype is aligned to what the recipe needs; an input
 * of the score may not be. The arguments have passed fg_launch_check. */
bool fg_map_possible(const fg_recipe *recipe, const fg_map *map, const fg_shape *shape,
                     const fg_args *args);

/* FG_EARGUMENT when a stride is beyond what TMA can do. The map is possible.
 */
fg_status fg_map_view_of(const fg_recipe *recipe, const fg_map *map, const fg_shape *shape,
                         const fg_args *args, fg_map_view *view);

#endif
