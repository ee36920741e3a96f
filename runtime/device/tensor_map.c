/* tensor_map.c - a recipe's tensor map for a shape and arguments. */
#include "tensor_map.h"

#include "workspace.h"

#include <inttypes.h>
#include <string.h>

static void add_axis(fg_map_view *v, int64_t extent, uint64_t stride, int box) {
  v->extent[v->rank] = (uint64_t)extent;
  v->stride[v->rank] = stride;
  v->box[v->rank++] = (uint32_t)box;
}

/* The tensor's axes in the order of a map: batch, head, row, column. */
typedef struct {
  int64_t extent[4], stride[4]; /* in elements */
} axes;

/* An axis that the tensor does not have, or has of extent 1, gets extent 1 and stride 0. */
static axes axes_of(const fg_recipe_tensor *t, const fg_tensor *tensor, const fg_recipe *r,
                    const fg_shape *shape) {
  axes a = {{1, 1, 1, 1}, {0, 0, 0, 0}};
  int n = (int)strlen(t->axes);
  for (int i = 0; i < n; i++) {
    int place = i + 4 - n; /* an input's last two axes are row and column */
    if (fg_tensor_aligned(t))
      place = t->stride[i];
    else if (place < 2)
      place = t->axes[i] == 'h';
    if (t->axes[i] == '1') continue;
    a.extent[place] = fg_recipe_extent(r, t->axes[i], shape);
    a.stride[place] = tensor->stride[t->stride[i]];
  }
  return a;
}

bool fg_map_possible(const fg_recipe *r, const fg_map *map, const fg_shape *shape,
                     const fg_args *args) {
  enum { UNIT = 16 };
  const fg_recipe_tensor *t = &r->tensor[map->tensor];
  if (fg_map_is_aligned(r, map)) return true;
  const fg_tensor *tensor = fg_args_tensor(args, t);
  const axes a = axes_of(t, tensor, r, shape);
  int unit = UNIT / (int)fg_elem_size(t->elem);
  bool good = (uintptr_t)tensor->data % UNIT == 0;
  for (int i = 0; i < 3; i++) /* a stride may be 0, which TMA cannot do */
    good &= a.extent[i] <= 1 || (a.stride[i] > 0 && a.stride[i] % unit == 0);
  return good;
}

/* Adds axis `index`. An axis of one element may have any stride, so the row's width, which is
 * always legal, is used. */
static fg_status add_strided(fg_map_view *v, const axes *a, int index, int box) {
  uint64_t elem = v->stride[0], stride = (uint64_t)a->stride[index] * elem;
  int64_t extent = a->extent[index];
  if (extent <= 1) stride = (uint64_t)v->box[0] * elem;
  if (stride >> 40)
    return fg_fail(FG_EARGUMENT, "%s: a stride of %" PRIu64 " bytes is beyond TMA's 2^40", v->name,
                   stride);
  add_axis(v, extent, stride, box);
  return FG_OK;
}

/* Rows of a box. All rows of a box of pages lie in one page. */
static int box_rows(const fg_recipe *r, const fg_map *map, const fg_shape *shape) {
  if (!fg_map_has_pages(r, map)) return map->rows;
  const int64_t either = shape->page | map->rows;
  return (int)(either & -either);
}

/* Elements from a row to the next. Where each cache has one row, that is the first one of the next
 * cache: an axis of one element may have any stride. */
static int64_t row_stride(const axes *a) { return a->stride[a->extent[2] > 1 ? 2 : 0]; }

int64_t fg_map_cache_rows(const fg_recipe *r, const fg_recipe_tensor *t, const fg_shape *shape,
                          const fg_args *args) {
  const axes a = axes_of(t, fg_args_tensor(args, t), r, shape);
  return row_stride(&a) > 0 ? a.stride[0] / row_stride(&a) : 0;
}

/* Bytes from a row of a ragged map's tensor to the next, and how many rows there are: of all caches
 * or pages where it has some. FG_EARGUMENT where the distance of two caches or pages is no multiple
 * of that of two rows. */
static fg_status ragged_rows(const fg_map_view *v, const axes *a, uint64_t *stride, int64_t *rows) {
  const uint64_t elem = v->stride[0];
  const bool has_caches = a->extent[0] > 1;
  const bool has_stride = a->extent[2] > 1 || has_caches;
  *stride = (uint64_t)(has_stride ? row_stride(a) : (int64_t)v->box[0]) * elem;
  *rows = a->extent[0] ? a->extent[2] : 0;
  if (*stride >> 34)
    return fg_fail(FG_EARGUMENT, "%s: a stride of %" PRIu64 " bytes is beyond 2^34", v->name,
                   *stride);
  if (!has_caches || !*rows) return FG_OK;
  const uint64_t outer = (uint64_t)a->stride[0] * elem;
  const uint64_t apart = *stride && outer % *stride == 0 ? outer / *stride : FG_WINDOW;
  if (apart >= FG_WINDOW || (a->extent[0] - 1) * (int64_t)apart + *rows >= FG_WINDOW)
    return fg_fail(FG_EARGUMENT,
                   "%s: its first stride is no multiple of its third, or too long; "
                   "family=mma,decode,simt asks for a kernel that takes it",
                   v->name);
  *rows += (a->extent[0] - 1) * (int64_t)apart;
  return FG_OK;
}

static fg_status add_ragged(fg_map_view *v, const axes *a, int box) {
  uint64_t stride;
  int64_t rows;
  TRY(ragged_rows(v, a, &stride, &rows));
  add_axis(v, FG_WINDOW, stride, box);
  add_axis(v, rows ? rows + 1 : 0, stride, 1);
  add_axis(v, (int64_t)2 * FG_WINDOW, ((uint64_t)1 << 34) - stride, 1);
  return add_strided(v, a, 1, 1);
}

/* A region is a matrix whose rows follow each other. */
static fg_status view_of_region(const fg_recipe *r, const fg_map *map, const fg_shape *shape,
                                void *workspace, fg_map_view *view) {
  const fg_region *region = &r->region[map->region - 1];
  const uint64_t elem = fg_elem_size(region->elem), row = (uint64_t)region->width * elem;
  int64_t offset, bytes;
  TRY(fg_workspace_region(r, shape, map->region - 1, &offset, &bytes));
  fg_map_view v = {.name = region->name,
                   .base = workspace ? (char *)workspace + offset : (void *)(uintptr_t)FG_MAP_BYTES,
                   .elem = region->elem,
                   .swizzle = map->swizzle};
  add_axis(&v, region->width, elem, map->columns);
  add_axis(&v, bytes / (int64_t)row, row, map->rows);
  add_axis(&v, 1, row, 1);
  add_axis(&v, 1, row, 1);
  *view = v;
  return FG_OK;
}

fg_status fg_map_view_of(const fg_recipe *r, const fg_map *map, const fg_shape *shape,
                         const fg_args *args, void *workspace, fg_map_view *view) {
  if (map->region) return view_of_region(r, map, shape, workspace, view);
  const fg_recipe_tensor *t = &r->tensor[map->tensor];
  const fg_tensor *tensor = fg_args_tensor(args, t);
  /* a tensor without elements may have no address; TMA's own unit is as good as any */
  fg_map_view v = {.name = t->name,
                   .base = tensor->data ? tensor->data : (void *)(uintptr_t)FG_MAP_BYTES,
                   .elem = t->elem,
                   .swizzle = map->swizzle};
  const axes a = axes_of(t, tensor, r, shape);
  uint64_t elem = fg_elem_size(t->elem);
  add_axis(&v, map->blocks ? map->columns : a.extent[3], elem, map->columns);
  if (map->ragged) {
    TRY(add_ragged(&v, &a, box_rows(r, map, shape)));
    *view = v;
    return FG_OK;
  }
  TRY(add_strided(&v, &a, 2, map->rows));
  if (map->blocks)
    add_axis(&v, a.extent[3] / map->columns, (uint64_t)map->columns * elem, map->blocks);
  TRY(add_strided(&v, &a, 1, 1));
  TRY(add_strided(&v, &a, 0, 1));
  *view = v;
  return FG_OK;
}
