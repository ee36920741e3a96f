/* tensor_map.c - a recipe's tensor map for a shape and arguments. */
#include "tensor_map.h"

#include "launch.h"

#include <inttypes.h>

static void add_axis(fg_map_view *v, int64_t extent, uint64_t stride, int box) {
  v->extent[v->rank] = (uint64_t)extent;
  v->stride[v->rank] = stride;
  v->box[v->rank++] = (uint32_t)box;
}

/* The stride of an axis of one element is nobody's concern: the row's width is always legal. */
static fg_status add_strided(fg_map_view *v, const fg_tensor *tensor, int index, int64_t extent,
                             int box) {
  uint64_t elem = v->stride[0], stride = (uint64_t)tensor->stride[index] * elem;
  if (extent <= 1) stride = (uint64_t)v->box[0] * elem;
  if (stride >> 40)
    return fg_fail(FG_EARGUMENT, "%s: a stride of %" PRIu64 " bytes is beyond TMA's 2^40", v->name,
                   stride);
  add_axis(v, extent, stride, box);
  return FG_OK;
}

fg_status fg_map_view_of(const fg_recipe *r, const fg_map *map, const fg_shape *shape,
                         const fg_args *args, fg_map_view *view) {
  const fg_recipe_tensor *t = &r->tensor[map->tensor];
  const fg_tensor *tensor = fg_args_tensor(args, t->argument);
  /* a tensor without elements may have no address; TMA's own unit is as good as any */
  fg_map_view v = {.name = t->argument->name,
                   .base = tensor->data ? tensor->data : (void *)(uintptr_t)FG_MAP_BYTES,
                   .elem = t->elem,
                   .swizzle = map->swizzle};
  int64_t extent[4];
  for (int i = 0; i < 4; i++) /* batch, head, row, column: as the strides of fg_tensor */
    extent[fg_axis_index(t->argument->axes, t->axes[i])] = fg_recipe_extent(r, t->axes[i], shape);
  uint64_t elem = fg_elem_size(t->elem);
  add_axis(&v, map->blocks ? map->columns : extent[3], elem, map->columns);
  TRY(add_strided(&v, tensor, 2, extent[2], map->rows));
  if (map->blocks)
    add_axis(&v, extent[3] / map->columns, (uint64_t)map->columns * elem, map->blocks);
  TRY(add_strided(&v, tensor, 1, extent[1], 1));
  TRY(add_strided(&v, tensor, 0, extent[0], 1));
  *view = v;
  return FG_OK;
}
