/* problem.c - buffers of a launch. */
#include "problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* An axis without a stride of its own is the last one. */
static void set_stride(const fg_recipe_tensor *t, fg_tensor *tensor, int axis, int64_t stride) {
  const int place = fg_tensor_axis(t, axis);
  if (place < FG_STRIDES) tensor->stride[place] = stride;
}

/* Strides of a tensor whose axes from the last to the first lie `gap` elements further apart than
 * they need to, caches whole rows; returns the elements it spans. */
static int64_t lay_out(const fg_problem *p, const fg_recipe_tensor *t, int gap, fg_tensor *tensor) {
  int64_t span = 1;
  for (int a = (int)strlen(t->axes) - 1; a >= 0; a--) {
    int64_t extent = fg_recipe_extent(p->recipe, t->axes[a], &p->shape);
    const int64_t row = t->axes[a] == 'y' ? tensor->stride[2] : 1;
    if (row > 1) span = (span + row - 1) / row * row;
    set_stride(t, tensor, a, span);
    span *= extent;
    if (!t->argument->contiguous) span += gap;
  }
  return span;
}

/* The axis of a tensor that is laid out far apart behind n others, inside of the rest: the longest
 * one, whose extent is 0 once it is laid out. Caches lie outside of their rows and heads; pages
 * that TMA loads between these. */
static int axis_inside(const int64_t *extent, int axes, int n, bool has_caches, bool has_pages) {
  static const int rows_then_pages[] = {1, 0, 2};
  if (has_pages) return rows_then_pages[n];
  int longest = has_caches && n < axes - 1;
  for (int a = 1; a < axes; a++)
    if (extent[a] > extent[longest]) longest = a;
  return longest;
}

/* The same of one whose axes but the last reach 2^33 elements each. Pages that TMA loads do so
 * together with their rows: it takes no rows that lie further apart than 2^33. */
static int64_t lay_out_far(const fg_problem *p, const fg_recipe_tensor *t, fg_tensor *tensor) {
  const int last = (int)strlen(t->axes) - 1;
  const bool is_cache = t->axes[0] == 'y', is_paged = p->recipe->layout.kv == FG_PAGED;
  const bool has_caches = is_cache && !is_paged;
  const bool has_pages = is_cache && is_paged && p->recipe->n_maps > 0;
  int64_t extent[FG_AXES_MAX], span = fg_recipe_extent(p->recipe, t->axes[last], &p->shape);
  for (int a = 0; a < last; a++) extent[a] = fg_recipe_extent(p->recipe, t->axes[a], &p->shape);
  set_stride(t, tensor, last, 1);
  for (int n = 0; n < last; n++) {
    const int axis = axis_inside(extent, last, n, has_caches, has_pages);
    const int64_t steps = extent[axis] - 1,
                  all = has_pages && n == 0 ? extent[0] * extent[1] : steps;
    const bool is_unit = has_pages ? n == 1 : has_caches && n == last - 1;
    const int64_t unit = is_unit ? tensor->stride[2] : 64;
    const int64_t far = has_pages && n == 1 ? 0 : ((int64_t)1 << 33) / (all > 0 ? all : 1);
    const int64_t stride = ((span > far ? span : far) / unit + 1) * unit;
    set_stride(t, tensor, axis, stride);
    span += stride * steps;
    if (!has_pages) extent[axis] = 0;
  }
  return span;
}

/* Addresses without memory behind them, until they are touched. */
static fg_status reserve(fg_problem *p, int i, int64_t span) {
  const fg_recipe_tensor *t = &p->recipe->tensor[i];
  p->bytes[i] = (size_t)span * fg_elem_size(t->elem);
  void *all = mmap(NULL, p->bytes[i], PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    return fg_fail(FG_EMEMORY, "no addresses for %s, %zu bytes apart", t->name, p->bytes[i]);
  p->far[i] = true;
  p->buffer[i] = p->staged[i] = all;
  return FG_OK;
}

static uint64_t mix(uint64_t seed, int i) {
  uint64_t x = seed + 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  return x ^ x >> 31;
}

/* Goes over a tensor in storage order: index i of the row-major array is element `at` of the
 * buffer. */
typedef struct {
  int rank;
  int64_t extent[FG_AXES_MAX], stride[FG_AXES_MAX], index[FG_AXES_MAX], at;
} walk;

static walk walk_new(const fg_problem *p, int tensor) {
  const fg_recipe_tensor *t = &p->recipe->tensor[tensor];
  const fg_tensor *place = fg_args_tensor(&p->args, t);
  walk w = {.rank = (int)strlen(t->axes)};
  for (int a = 0; a < w.rank; a++) {
    w.extent[a] = fg_recipe_extent(p->recipe, t->axes[a], &p->shape);
    w.stride[a] = fg_tensor_stride(t, place, a);
  }
  return w;
}

static void walk_next(walk *w) {
  for (int a = w->rank - 1; a >= 0; a--) {
    w->at += w->stride[a];
    if (++w->index[a] < w->extent[a]) return;
    w->at -= w->stride[a] * w->extent[a];
    w->index[a] = 0;
  }
}

/* NaN in every dtype. */
static void poison(const fg_problem *p, int tensor) {
  const size_t size = fg_elem_size(p->recipe->tensor[tensor].elem);
  const int64_t count = fg_problem_count(p, tensor);
  walk w = walk_new(p, tensor);
  for (int64_t i = 0; i < count; i++, walk_next(&w))
    memset(p->staged[tensor] + (size_t)w.at * size, 0xff, size);
}

/* v of latent keys has no buffer of its own. */
static bool share_buffer(fg_problem *p, int i) {
  const fg_recipe_tensor *t = &p->recipe->tensor[i];
  for (int j = 0; j < i && t->slot < 0; j++) {
    if (p->recipe->tensor[j].slot >= 0 ||
        p->recipe->tensor[j].argument->place != t->argument->place)
      continue;
    p->buffer[i] = p->buffer[j], p->staged[i] = p->staged[j], p->bytes[i] = p->bytes[j];
    p->far[i] = p->far[j];
    p->shares[i] = true;
  }
  return p->shares[i];
}

static fg_status add_buffer(fg_problem *p, int i, int padding, uint64_t seed) {
  const fg_recipe_tensor *t = &p->recipe->tensor[i];
  if (share_buffer(p, i)) return FG_OK;
  fg_tensor *tensor = fg_args_tensor_of(&p->args, t);
  uint64_t random = mix(seed, i);
  int gap = padding > 0 ? (int)(random % (uint64_t)(padding + 1)) : 0;
  gap -= gap % (int)(fg_tensor_align(p->recipe, t) / fg_elem_size(t->elem));
  if (random >> 32 & 1) gap -= gap % 8; /* else few are aligned that need not be */
  int64_t count = fg_tensor_count(p->recipe, t, &p->shape);
  if (count > INT64_MAX / 64) return fg_fail(FG_EARGUMENT, "%s: the shape is too large", t->name);
  if (count == 0) return FG_OK;
  if (padding == FG_PROBLEM_FAR && !t->argument->contiguous && *t->axes) {
    TRY(reserve(p, i, lay_out_far(p, t, tensor)));
    tensor->data = p->buffer[i];
    poison(p, i);
    return FG_OK;
  }
  int64_t span = lay_out(p, t, gap, tensor);
  p->bytes[i] = (size_t)(span - (t->argument->contiguous ? 0 : gap)) * fg_elem_size(t->elem);
  TRY(p->device->class->allocate(p->device, p->bytes[i], &p->buffer[i]));
  if (!(p->staged[i] = malloc(p->bytes[i])))
    return fg_fail(FG_EMEMORY, "no memory for %s", t->name);
  memset(p->staged[i], 0xff, p->bytes[i]); /* NaN in every dtype */
  tensor->data = p->buffer[i];
  return FG_OK;
}

/* Places in fg_args.inputs. */
static int count_inputs(const fg_recipe *recipe) {
  int n = 0;
  for (int i = 0; i < recipe->n_tensors; i++)
    if (recipe->tensor[i].slot >= n) n = recipe->tensor[i].slot + 1;
  for (int i = 0; i < recipe->n_numbers; i++)
    if (recipe->number[i].slot >= n) n = recipe->number[i].slot + 1;
  return n;
}

fg_status fg_problem_new(fg_device *device, const fg_recipe *recipe, const fg_shape *shape,
                         int padding, uint64_t seed, fg_problem **problem) {
  fg_status status = FG_OK;
  TRY(fg_shape_check_of(fg_recipe_kind(recipe), shape));
  fg_problem *p = calloc(1, sizeof *p);
  if (!p) return fg_fail(FG_EMEMORY, "no memory for a problem");
  *p = (fg_problem){.device = device, .recipe = recipe, .shape = *shape, .args = FG_INIT(fg_args)};
  p->shape.size = sizeof p->shape;
  for (int i = 0; i < FG_INPUT_SLOTS; i++) p->input[i].size = sizeof p->input[i];
  p->args.inputs = p->input, p->args.n_inputs = count_inputs(recipe);
  for (int i = 0; i < recipe->n_tensors; i++) TRY_OUT(add_buffer(p, i, padding, seed));
  TRY_OUT(fg_problem_room(p));
  *problem = p;
  p = NULL;
out:
  fg_problem_free(p);
  return status;
}

void fg_problem_free(fg_problem *p) {
  if (!p) return;
  for (int i = 0; i < p->recipe->n_tensors; i++) {
    if (p->shares[i]) continue;
    if (p->far[i]) {
      munmap(p->buffer[i], p->bytes[i]);
      continue;
    }
    p->device->class->release(p->device, p->buffer[i], p->bytes[i]);
    free(p->staged[i]);
  }
  p->device->class->release(p->device, p->workspace, p->workspace_bytes);
  free(p);
}

int fg_problem_find(const fg_problem *p, const char *name) {
  for (int i = 0; i < p->recipe->n_tensors; i++)
    if (!strcmp(p->recipe->tensor[i].name, name)) return i;
  return -1;
}

int64_t fg_problem_count(const fg_problem *p, int tensor) {
  return fg_tensor_count(p->recipe, &p->recipe->tensor[tensor], &p->shape);
}

static fg_status upload(fg_problem *p, int tensor) {
  if (p->far[tensor]) return FG_OK;
  return p->device->class->upload(p->device, p->buffer[tensor], p->staged[tensor],
                                  p->bytes[tensor]);
}

fg_status fg_problem_set(fg_problem *p, int tensor, const float *values) {
  const fg_recipe_tensor *t = &p->recipe->tensor[tensor];
  int64_t count = fg_problem_count(p, tensor);
  walk w = walk_new(p, tensor);
  for (int64_t i = 0; i < count; i++, walk_next(&w)) {
    fg_elem_store(t->elem, p->staged[tensor], w.at, values[i]);
    if (isfinite(values[i]) && !isfinite(fg_elem_load(t->elem, p->staged[tensor], w.at)))
      return fg_fail(FG_EARGUMENT, "%s: %g overflows %s", t->name, (double)values[i],
                     fg_elem_name(t->elem));
  }
  return count ? upload(p, tensor) : FG_OK;
}

fg_status fg_problem_set_ints(fg_problem *p, int tensor, const int64_t *values) {
  const fg_recipe_tensor *t = &p->recipe->tensor[tensor];
  int64_t count = fg_problem_count(p, tensor);
  walk w = walk_new(p, tensor);
  for (int64_t i = 0; i < count; i++, walk_next(&w)) {
    if (values[i] != (int32_t)values[i])
      return fg_fail(FG_EARGUMENT, "%s: %" PRId64 " overflows i32", t->name, values[i]);
    ((int32_t *)(void *)p->staged[tensor])[w.at] = (int32_t)values[i];
  }
  return count ? upload(p, tensor) : FG_OK;
}

static fg_status download(const fg_problem *p, int tensor) {
  if (p->far[tensor] || !fg_problem_count(p, tensor)) return FG_OK;
  return p->device->class->download(p->device, p->staged[tensor], p->buffer[tensor],
                                    p->bytes[tensor]);
}

fg_status fg_problem_get_ints(const fg_problem *p, int tensor, int64_t *values) {
  const int64_t count = fg_problem_count(p, tensor);
  walk w = walk_new(p, tensor);
  TRY(download(p, tensor));
  for (int64_t i = 0; i < count; i++, walk_next(&w))
    values[i] = ((const int32_t *)(const void *)p->staged[tensor])[w.at];
  return FG_OK;
}

fg_status fg_problem_get(const fg_problem *p, int tensor, float *values) {
  int64_t count = fg_problem_count(p, tensor);
  walk w = walk_new(p, tensor);
  TRY(download(p, tensor));
  for (int64_t i = 0; i < count; i++, walk_next(&w))
    values[i] = fg_elem_load(p->recipe->tensor[tensor].elem, p->staged[tensor], w.at);
  return FG_OK;
}

fg_status fg_problem_room(fg_problem *p) {
  int64_t bytes;
  TRY(fg_workspace_size(p->recipe, &p->shape, &bytes));
  if ((size_t)bytes <= p->workspace_bytes) return FG_OK;
  p->device->class->release(p->device, p->workspace, p->workspace_bytes);
  p->workspace_bytes = 0, p->workspace = NULL;
  TRY(p->device->class->allocate(p->device, (size_t)bytes, &p->workspace));
  p->workspace_bytes = (size_t)bytes;
  return FG_OK;
}

fg_status fg_problem_run(fg_problem *p, fg_module *module) {
  TRY(fg_module_launch(module, &p->shape, &p->args, p->workspace, NULL));
  return p->device->class->synchronize(p->device);
}

void fg_problem_drop(fg_problem *p, int tensor) {
  fg_args_tensor_of(&p->args, &p->recipe->tensor[tensor])->data = NULL;
}
