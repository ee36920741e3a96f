/* launch.c - checks arguments and fills Params from the recipe's tables. */
#include "launch.h"

#include "device/tensor_map.h"
#include "overlap.h"
#include "recipe/extent.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The extents of a shape that is of the form. */
static fg_status check_form(const fg_shape_form *form, const fg_shape *s) {
  for (int i = 0; i < FG_EXTENTS; i++) {
    const fg_extent_row *x = &fg_extents[i];
    const int64_t n = fg_extent_get(x, s);
    if (n < 0 || n >= FG_LENGTH_MAX)
      return fg_fail(FG_EARGUMENT, "%s = %" PRId64 ": expected 0 to 2^30 - 1", x->name, n);
    if (fg_form_has(form, x->letter) && (n < x->least || (x->most && n > x->most)))
      return fg_fail(FG_EARGUMENT, "%s = %" PRId64 ": expected %" PRId64 " to %" PRId64, x->name, n,
                     x->least, x->most);
  }
  if (s->align < 0)
    return fg_fail(FG_EARGUMENT, "align = %" PRId64 ": expected 0 or more", s->align);
  if (fg_form_has(form, 'g') && s->h > 0 && (s->hk == 0 || s->h % s->hk))
    return fg_fail(FG_EARGUMENT, "h = %" PRId64 " is not a multiple of hk = %" PRId64, s->h, s->hk);
  return FG_OK;
}

fg_status fg_shape_check(const fg_shape *s) { return check_form(fg_shape_form_of(s), s); }

fg_status fg_shape_fits(const fg_kind *kind, const fg_shape *s) {
  for (int i = 0; i < FG_EXTENTS; i++) {
    const int64_t n = fg_extent_get(&fg_extents[i], s);
    if (n && !fg_form_has(kind->form, fg_extents[i].letter))
      return fg_fail(FG_EARGUMENT, "%s = %" PRId64 ": kernel=%s has no such extent",
                     fg_extents[i].name, n, kind->name);
  }
  return FG_OK;
}

fg_status fg_shape_check_of(const fg_kind *kind, const fg_shape *shape) {
  TRY(fg_shape_fits(kind, shape));
  return check_form(kind->form, shape);
}

uint64_t fg_tensor_align(const fg_recipe *recipe, const fg_recipe_tensor *tensor) {
  uint64_t elem = fg_elem_size(tensor->elem);
  bool ours = fg_tensor_aligned(tensor) && (uint64_t)recipe->align > elem;
  return ours ? (uint64_t)recipe->align : elem;
}

int64_t fg_tensor_count(const fg_recipe *recipe, const fg_recipe_tensor *tensor,
                        const fg_shape *shape) {
  int64_t count = 1;
  for (const char *a = tensor->axes; *a; a++) {
    if (__builtin_mul_overflow(count, fg_recipe_extent(recipe, *a, shape), &count))
      return INT64_MAX; /* no such tensor can exist: the checks of its offsets say so */
  }
  return count;
}

/* The furthest element of the tensor, which is so many behind the first, lies within 63 bits of
 * bytes. */
static fg_status check_strides(const fg_recipe *recipe, const fg_recipe_tensor *t,
                               const fg_shape *shape, const fg_tensor *tensor, int64_t *furthest) {
  int64_t last = 0;
  bool empty = fg_tensor_count(recipe, t, shape) == 0; /* a contiguous one has strides of 0 */
  for (const char *a = t->axes; *a; a++) {
    int64_t extent = fg_recipe_extent(recipe, *a, shape), reach;
    int64_t stride = fg_tensor_stride(t, tensor, (int)(a - t->axes));
    if (*a == '1' || extent <= 1) continue;
    if (!a[1] && stride != 1 && !t->argument->has_strides)
      return fg_fail(FG_EARGUMENT, "%s: its last stride is %" PRId64 ", not 1", t->name, stride);
    if (stride < 0) return fg_fail(FG_EARGUMENT, "%s: a stride is negative", t->name);
    if (stride == 0 && t->output && !empty)
      return fg_fail(FG_EARGUMENT, "%s: a stride is 0: its elements would be written twice",
                     t->name);
    if (a[1] && ((uint64_t)stride * fg_elem_size(t->elem) & (fg_tensor_align(recipe, t) - 1)))
      return fg_fail(FG_EARGUMENT,
                     "%s: a stride of %" PRId64 " elements is not a multiple of %d bytes", t->name,
                     stride, (int)fg_tensor_align(recipe, t));
    if (__builtin_mul_overflow(extent - 1, stride, &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > INT64_MAX / 8)
      return fg_fail(FG_EARGUMENT, "%s: its strides reach beyond 64 bits", t->name);
  }
  if (!empty) *furthest = last;
  return FG_OK;
}

/* reach: as overlap.h has it. */
static fg_status check_tensor(const fg_recipe *recipe, const fg_recipe_tensor *t,
                              const fg_shape *shape, const fg_args *args, int64_t *reach) {
  *reach = -1;
  const fg_tensor *tensor = fg_args_tensor(args, t);
  if (!tensor->data) {
    if (fg_tensor_count(recipe, t, shape) == 0) return FG_OK;
    const fg_recipe_tensor *other = t->unless ? &recipe->tensor[t->unless - 1] : NULL;
    if (other && !fg_args_tensor(args, other)->data && fg_tensor_count(recipe, other, shape))
      return fg_fail(FG_EARGUMENT, "%s is missing: it is needed where %s is not given", t->name,
                     other->name);
    return t->optional ? FG_OK : fg_fail(FG_EARGUMENT, "%s is missing", t->name);
  }
  uint64_t align = fg_tensor_align(recipe, t);
  if ((uintptr_t)tensor->data & (align - 1))
    return fg_fail(FG_EARGUMENT, "%s: its address is not a multiple of %d", t->name, (int)align);
  if (!t->argument->contiguous) return check_strides(recipe, t, shape, tensor, reach);
  *reach = fg_tensor_count(recipe, t, shape) - 1;
  return FG_OK;
}

/* Sums of positions and numbers stay within 32 bits. */
fg_status fg_number_check(const char *name, bool real, double value) {
  if (real && (isinf(value) || fabs(value) <= (double)FLT_MAX)) return FG_OK;
  if (real) return fg_fail(FG_EARGUMENT, "%s = %g: expected what a float32 can hold", name, value);
  if (value >= -0x1p30 && value <= 0x1p30 && value <= floor(value)) return FG_OK;
  return fg_fail(FG_EARGUMENT, "%s = %g: expected a whole number of at most 2^30 in size", name,
                 value);
}

/* Beyond it products of 16-bit values would overflow float32 before any weight is made of them. */
fg_status fg_scale_check(double scale) {
  if (fabs(scale) <= 0x1p64) return FG_OK;
  return fg_fail(FG_EARGUMENT, "scale = %g: expected a number of at most 2^64 in size", scale);
}

fg_status fg_launch_number_check(const fg_launch_number *number, double value) {
  const double least = (double)number->least, most = (double)number->most;
  if (value >= least && value <= most) return FG_OK;
  if (most >= (double)FLT_MAX && least >= 0)
    return fg_fail(FG_EARGUMENT, "%s = %g: expected a finite number of at least %g", number->name,
                   value, least);
  if (most >= (double)FLT_MAX)
    return fg_fail(FG_EARGUMENT, "%s = %g: expected a finite number", number->name, value);
  return fg_fail(FG_EARGUMENT, "%s = %g: expected a number from %g to %g", number->name, value,
                 least, most);
}

/* Numbers that kernels of some specs take. */
static fg_status check_launch_numbers(const fg_recipe *r, const fg_args *args) {
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++) {
    const fg_launch_number *n = &fg_launch_numbers[i];
    const double value = (double)fg_launch_number_of(n, args);
    if (args->given & n->given && !(r->takes >> i & 1))
      return fg_fail(FG_EARGUMENT, "args: %s %s is given, which belongs to %s",
                     *n->name == 'e' ? "an" : "a", n->name, n->belongs);
    if (args->given & n->given) TRY(fg_launch_number_check(n, value));
    if (r->takes >> i & 1 && !(args->given & n->given) && !isnan(n->tried[0]))
      return fg_fail(FG_EARGUMENT, "%s is missing: %s needs it", n->name, n->belongs);
    if (!(args->given & n->given) && fabs(value) > 0)
      return fg_fail(FG_EARGUMENT, "args: %s = %g does not count: given lacks its bit", n->name,
                     value);
  }
  return FG_OK;
}

static fg_status check_scale(const fg_kind *kind, const fg_args *args) {
  uint32_t known = FG_GIVEN_SCALE;
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++) known |= fg_launch_numbers[i].given;
  if (args->given & ~known)
    return fg_fail(FG_EARGUMENT, "args: given = %#x has bits that name nothing", args->given);
  if (args->given & FG_GIVEN_SCALE && !kind->has_scale)
    return fg_fail(FG_EARGUMENT, "args: a scale is given, and kernel=%s has none", kind->name);
  if (args->given & FG_GIVEN_SCALE) return fg_scale_check((double)args->scale);
  if (args->scale == 0) return FG_OK;
  return fg_fail(FG_EARGUMENT, "args: scale = %g does not count: given lacks FG_GIVEN_SCALE",
                 (double)args->scale);
}

fg_status fg_margin_check(int64_t margin, int multiprocessors) {
  if (margin >= 0 && margin < multiprocessors) return FG_OK;
  return fg_fail(FG_EARGUMENT,
                 "sm_margin = %" PRId64 ": expected 0 to %d on a device of %d multiprocessors",
                 margin, multiprocessors - 1, multiprocessors);
}

/* An input's place is filled. A size of 0 is a place that its owner has not come to. */
static fg_status check_input(const fg_args *args, const char *name, int slot) {
  const size_t known = sizeof(fg_input_value);
  if (!args->inputs || slot >= args->n_inputs)
    return fg_fail(FG_EARGUMENT, "%s is not given: it is args.inputs[%d], and n_inputs is %" PRId64,
                   name, slot, args->inputs ? args->n_inputs : 0);
  const bool apart = args->inputs->size == known; /* else the others cannot be found */
  const size_t size = apart ? fg_args_input(args, slot)->size : args->inputs->size;
  if (size == known) return FG_OK;
  if (!apart) slot = 0;
  if (!size)
    return fg_fail(FG_EARGUMENT, "%s is not given: the size of args.inputs[%d] is 0", name, slot);
  return fg_fail(FG_EARGUMENT, "args.inputs[%d]: its size is %zu; expected FG_INIT's, %zu", slot,
                 size, known);
}

/* What says where sequences are is not left unread: the kernel would take them as dense ones, or as
 * of another layout. Kernels divide by the size of a page. */
static fg_status check_layout(const fg_recipe *recipe, const fg_shape *shape, const fg_args *args) {
  if (recipe->layout.kv == FG_PAGED && !shape->page && shape->b && shape->nk)
    return fg_fail(FG_EARGUMENT, "page = 0: with kv_layout=paged a page has 1 key at least");
  if (recipe->layout.slices && shape->b != 1)
    return fg_fail(FG_EARGUMENT,
                   "b = %" PRId64 ": with slices=true all tokens are of one batch, b = 1",
                   shape->b);
  for (int i = 0; i < recipe->n_absent; i++) {
    const fg_argument *a = &fg_arguments[recipe->absent[i]];
    const fg_tensor *given = (const fg_tensor *)(const void *)((const char *)args + a->place);
    if (!given->data) continue;
    if (a->elem == FG_RULE_DESCALE)
      return fg_fail(FG_EARGUMENT, "%s is given, but the kernel has no %.1s of e4m3", a->name,
                     a->name);
    return fg_fail(FG_EARGUMENT,
                   "%s is given, but the kernel has no such tensor: its spec has q_layout=%s, "
                   "kv_layout=%s, slices=%s, shard=%s",
                   a->name, fg_layout_words[recipe->layout.q], fg_layout_words[recipe->layout.kv],
                   recipe->layout.slices ? "true" : "false",
                   recipe->layout.shard ? "true" : "false");
  }
  return FG_OK;
}

/* v that is the first columns of k is k's view, or not given. */
static fg_status check_latent(const fg_recipe *recipe, const fg_shape *shape, const fg_args *args) {
  if (!recipe->layout.latent || !args->v.data) return FG_OK;
  bool is_same = args->v.data == args->k.data;
  for (int i = 0; i < recipe->n_tensors; i++) {
    const fg_recipe_tensor *t = &recipe->tensor[i];
    for (int a = 0; !strcmp(t->name, "v") && t->axes[a]; a++)
      is_same &= fg_recipe_extent(recipe, t->axes[a], shape) <= 1 ||
                 fg_tensor_stride(t, &args->v, a) == fg_tensor_stride(t, &args->k, a);
  }
  return is_same ? FG_OK
                 : fg_fail(FG_EARGUMENT, "v: with latent=true it is the first columns of k: its "
                                         "address and strides are k's, or it is not given");
}

fg_status fg_launch_check(const fg_recipe *recipe, const fg_shape *shape, const fg_args *args) {
  int64_t reach[FG_TENSOR_MAX];
  if (!fg_shape_is_good(&recipe->form, shape))
    TRY(fg_shape_check_of(fg_recipe_kind(recipe), shape));
  TRY(check_scale(fg_recipe_kind(recipe), args));
  TRY(check_launch_numbers(recipe, args));
  TRY(check_layout(recipe, shape, args));
  TRY(check_latent(recipe, shape, args));
  for (int i = 0; i < recipe->n_tensors; i++) {
    const fg_recipe_tensor *t = &recipe->tensor[i];
    if (t->slot >= 0) TRY(check_input(args, t->name, t->slot));
    TRY(check_tensor(recipe, t, shape, args, &reach[i]));
  }
  for (int i = 0; i < recipe->n_numbers; i++) {
    const fg_recipe_number *x = &recipe->number[i];
    TRY(check_input(args, x->name, x->slot));
    TRY(fg_number_check(x->name, x->real, fg_args_input(args, x->slot)->number));
  }
  return fg_overlap_check(recipe, shape, args, reach);
}

static fg_status no_workspace(const fg_recipe *recipe, const fg_shape *shape) {
  int64_t bytes;
  TRY(fg_workspace_size(recipe, shape, &bytes));
  return fg_fail(FG_EARGUMENT, "workspace is missing: the launch needs %" PRId64 " bytes", bytes);
}

/* Kernels multiply what a mask hides, -inf, by the scale, and -inf times 0 is NaN. Products with
 * this are 0 beside any number that a sum of float32 holds. */
#define SCALE_OF_NOTHING 0x1p-120f

static float scale_of(const fg_recipe *r, const fg_args *args) {
  if (!(args->given & FG_GIVEN_SCALE)) return 1 / sqrtf((float)r->width[0]);
  return fabsf(args->scale) > 0 ? args->scale : SCALE_OF_NOTHING;
}

static fg_status fill_one(const fg_recipe *r, const fg_parameter *p, const fg_shape *shape,
                          const fg_args *args, void *workspace, char *to) {
  const fg_recipe_tensor *t =
      p->from == FG_FROM_TENSOR || p->from == FG_FROM_STRIDE ? &r->tensor[p->index] : NULL;
  switch (p->from) {
  case FG_FROM_MAP:
    break;
  case FG_FROM_MADE: {
    int32_t made = fg_map_possible(r, &r->map[p->index], shape, args);
    memcpy(to, &made, sizeof made);
    break;
  }
  case FG_FROM_CACHE: {
    int32_t rows = (int32_t)fg_map_cache_rows(r, &r->tensor[p->index], shape, args);
    memcpy(to, &rows, sizeof rows);
    break;
  }
  case FG_FROM_TENSOR:
    memcpy(to, &fg_args_tensor(args, t)->data, sizeof(void *));
    break;
  case FG_FROM_STRIDE:
    memcpy(to, &fg_args_tensor(args, t)->stride[p->stride], sizeof(int64_t));
    break;
  case FG_FROM_REGION: {
    int64_t offset, bytes;
    TRY(fg_workspace_region(r, shape, p->index, &offset, &bytes));
    if (bytes && !workspace) return no_workspace(r, shape);
    char *region = (char *)workspace + offset;
    memcpy(to, &region, sizeof region);
    break;
  }
  case FG_FROM_EXTENT: {
    int32_t extent = (int32_t)fg_recipe_extent(r, p->axis, shape);
    memcpy(to, &extent, sizeof extent);
    break;
  }
  case FG_FROM_SCALE: {
    float scale = scale_of(r, args);
    memcpy(to, &scale, sizeof scale);
    break;
  }
  case FG_FROM_LAUNCH: {
    const fg_launch_number *n = &fg_launch_numbers[p->index];
    const float number = args->given & n->given ? fg_launch_number_of(n, args) : NAN;
    memcpy(to, &number, sizeof number);
    break;
  }
  case FG_FROM_NUMBER: {
    const fg_recipe_number *x = &r->number[p->index];
    double number = fg_args_input(args, x->slot)->number;
    float real = (float)number;
    int32_t whole = x->real ? 0 : (int32_t)number;
    memcpy(to, x->real ? (void *)&real : (void *)&whole, 4);
    break;
  }
  }
  return FG_OK;
}

fg_status fg_params_fill(const fg_recipe *recipe, const fg_shape *shape, const fg_args *args,
                         void *workspace, void *params) {
  if (recipe->params_bytes > FG_PARAMS_MAX)
    return fg_fail(FG_EBUG, "Params has %d bytes, more than %d", recipe->params_bytes,
                   FG_PARAMS_MAX);
  memset(params, 0, (size_t)recipe->params_bytes);
  for (int i = 0; i < recipe->n_parameters; i++)
    TRY(fill_one(recipe, &recipe->parameter[i], shape, args, workspace,
                 (char *)params + recipe->parameter[i].offset));
  return FG_OK;
}

/* CUDA's limits: 2^31 - 1 blocks along x, 65535 along y and z. */
fg_status fg_step_grid(const fg_step *step, const fg_shape *shape, uint32_t grid[3], bool *empty) {
  *empty = false;
  for (int i = 0; i < 3; i++) {
    int64_t n, most = i ? 65535 : INT32_MAX;
    TRY(fg_expr_eval(&step->grid[i], shape, &n));
    if (n < 0 || n > most)
      return fg_fail(FG_EARGUMENT, "%s: the shape needs %" PRId64 " blocks; at most %" PRId64,
                     step->entry, n, most);
    grid[i] = (uint32_t)n;
    *empty |= n == 0;
  }
  if (grid[0] % (uint32_t)step->cluster)
    return fg_fail(FG_EBUG, "%s: %u blocks along x are not whole clusters of %d", step->entry,
                   grid[0], step->cluster);
  return FG_OK;
}

void fg_step_limit(const fg_step *step, int multiprocessors, int clusters, uint32_t grid[3]) {
  uint32_t cluster = (uint32_t)step->cluster, room = (uint32_t)clusters * cluster;
  uint32_t most = (uint32_t)(step->resident * multiprocessors) / cluster * cluster;
  if (room && most > room) most = room;
  if (most < cluster) most = cluster;
  if (step->resident && grid[0] > most) grid[0] = most;
}
