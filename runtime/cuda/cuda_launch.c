/* cuda_launch.c - encodes tensor maps and launches kernels through the CUDA driver. */
#include "cuda_launch.h"

#include "device/tensor_map.h"

#include <stdio.h>

/* No map is of other elements. */
static int type_of(fg_elem elem) {
  if (elem == FG_ELEM_E4M3) return CU_TENSOR_MAP_U8;
  return elem == FG_ELEM_F16 ? CU_TENSOR_MAP_F16 : CU_TENSOR_MAP_BF16;
}

/* Encodes one map of FG_MAP_BYTES bytes. The driver refuses a map only for what the caller gave:
 * FG_EARGUMENT. */
static fg_status encode(const fg_cuda *cuda, const fg_map_view *v, void *map) {
  const cu_uint32 steps[5] = {1, 1, 1, 1, 1};
  cu_uint64 extent[5], stride[4];
  char what[64];
  for (int i = 0; i < v->rank; i++) {
    extent[i] = v->extent[i] ? v->extent[i] : 1; /* no kernel loads an empty axis */
    if (i) stride[i - 1] = v->stride[i];
  }
  CUresult result = cuda->cuTensorMapEncodeTiled(
      map, type_of(v->elem), (unsigned)v->rank, v->base, extent, stride, v->box, steps, 0,
      v->swizzle ? __builtin_ctz((unsigned)v->swizzle) - 4 : 0, CU_TENSOR_MAP_L2_256, 0);
  if (result == 0) return FG_OK;
  snprintf(what, sizeof what, "%s: a tensor map of it", v->name);
  fg_status status = fg_cuda_check_before(cuda, result, what);
  return status == FG_ECUDA && !fg_cuda_lost(result) ? FG_EARGUMENT : status;
}

static int has_elements(const fg_map_view *v) {
  int some = 1;
  for (int i = 0; i < v->rank; i++) some &= v->extent[i] > 0;
  return some;
}

/* A GPU looks up the address of a map even for a box outside of the tensor. A tensor without
 * elements may have no address, so its map gets the address of another tensor. */
fg_status fg_cuda_encode_maps(const fg_cuda *cuda, const fg_recipe *r, const fg_shape *shape,
                              const fg_args *args, void *workspace, void *params) {
  fg_map_view view[FG_MAP_MAX];
  void *base = NULL;
  for (int i = 0; i < r->n_maps; i++) {
    view[i].rank = 0;
    if (!fg_map_possible(r, &r->map[i], shape, args)) continue;
    TRY(fg_map_view_of(r, &r->map[i], shape, args, workspace, &view[i]));
    if (has_elements(&view[i])) base = view[i].base;
  }
  for (int i = 0; i < r->n_maps; i++) {
    if (!view[i].rank) continue;
    if (base && !has_elements(&view[i])) view[i].base = base;
    TRY(encode(cuda, &view[i], (char *)params + i * FG_MAP_BYTES));
  }
  return FG_OK;
}

fg_status fg_cuda_clusters(const fg_cuda *cuda, CUfunction function, const fg_step *step,
                           int *clusters) {
  const unsigned blocks = (unsigned)step->cluster;
  cu_launch_attribute attribute = {.id = CU_LAUNCH_CLUSTER, .value.cluster = {blocks, 1, 1}};
  const cu_launch_config config = {{blocks, 1, 1},
                                   {(unsigned)step->threads, 1, 1},
                                   (unsigned)step->shared_bytes,
                                   NULL,
                                   &attribute,
                                   1};
  const CUresult result = cuda->cuOccupancyMaxActiveClusters(clusters, function, &config);
  const fg_status status = fg_cuda_check_before(cuda, result, step->entry);
  if (status == FG_ECUDA && !fg_cuda_lost(result)) return FG_ECOMPILER;
  if (status == FG_OK && *clusters < 1)
    return fg_fail(FG_ECOMPILER, "%s: the GPU has no room for a cluster of %u of its blocks",
                   step->entry, blocks);
  return status;
}

/* The first driver whose graphs have edges to kernels that start early. */
enum { CAPTURES_EARLY = 12030 };

/* Without attributes cuLaunchKernel is used: every driver has it, and it is the shortest path. */
fg_status fg_cuda_launch(const fg_cuda *cuda, CUfunction function, const fg_step *step,
                         const uint32_t grid[3], CUstream stream, void *params) {
  void *list[] = {params};
  cu_launch_attribute attribute[2];
  unsigned n = 0, threads = (unsigned)step->threads, shared = (unsigned)step->shared_bytes;
  if (step->cluster > 1)
    attribute[n++] = (cu_launch_attribute){.id = CU_LAUNCH_CLUSTER,
                                           .value.cluster = {(unsigned)step->cluster, 1, 1}};
  if (step->early && cuda->version >= CAPTURES_EARLY)
    attribute[n++] = (cu_launch_attribute){.id = CU_LAUNCH_EARLY, .value.allow = 1};
  if (!n)
    return fg_cuda_check_before(cuda,
                                cuda->cuLaunchKernel(function, grid[0], grid[1], grid[2], threads,
                                                     1, 1, shared, stream, list, NULL),
                                step->entry);
  const cu_launch_config config = {
      {grid[0], grid[1], grid[2]}, {threads, 1, 1}, shared, stream, attribute, n};
  return fg_cuda_check_before(cuda, cuda->cuLaunchKernelEx(&config, function, list, NULL),
                              step->entry);
}
