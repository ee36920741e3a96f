/* tensor_map.h - describes tensor maps of a recipe for a shape and arguments; devices encode
 * them. */
#ifndef FG_TENSOR_MAP_H
#define FG_TENSOR_MAP_H

#include "recipe/recipe.h"

/* Axis 0 is dense: its elements are contiguous. */
typedef struct fg_map_view {
  const char *name; /* the tensor's */
  void *base;       /* not NULL, even where the tensor has no elements */
  fg_elem elem;
  int rank, swizzle; /* swizzle: bytes, 0 = none */
  uint64_t extent[5];
  uint64_t stride[5]; /* bytes */
  uint32_t box[5];
} fg_map_view;

/* Whether TMA can reach the tensor. Tensors of the spec's dtype are always aligned to what the
 * recipe needs; an input of the score may not be. The arguments have passed fg_launch_check. */
bool fg_map_possible(const fg_recipe *recipe, const fg_map *map, const fg_shape *shape,
                     const fg_args *args);

/* The number of rows from a cache of the tensor, or a page, to the next one, as a ragged map counts
 * them. */
int64_t fg_map_cache_rows(const fg_recipe *recipe, const fg_recipe_tensor *tensor,
                          const fg_shape *shape, const fg_args *args);

/* Describes a map that is possible; workspace: the launch's, of which regions are parts.
 * FG_EARGUMENT: a stride is longer than TMA can do. */
fg_status fg_map_view_of(const fg_recipe *recipe, const fg_map *map, const fg_shape *shape,
                         const fg_args *args, void *workspace, fg_map_view *view);

#endif
