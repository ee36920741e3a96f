/* overlap.c - outputs that lie over other tensors of a launch. */
#include "overlap.h"

#include "launch.h"

typedef struct {
  const fg_recipe_tensor *t;
  const fg_tensor *given;
  uintptr_t first, end; /* bytes */
} place;

static place place_of(const fg_recipe_tensor *t, const fg_args *args, int64_t reach) {
  const fg_tensor *given = fg_args_tensor(args, t);
  const uintptr_t first = (uintptr_t)given->data;
  return (place){t, given, first, first + (uintptr_t)(reach + 1) * fg_elem_size(t->elem)};
}

/* Is the byte one of the tensor's? Axes are left one by one, the widest stride first, as the digits
 * of a number are. */
static bool holds(const place *p, const fg_recipe *r, const fg_shape *shape, uintptr_t byte) {
  uint64_t rest = byte - p->first, size = fg_elem_size(p->t->elem), below = UINT64_MAX;
  if (byte < p->first || byte >= p->end) return false;
  if (p->t->argument->contiguous) return true;
  for (;;) {
    uint64_t stride = 0, last = 0; /* of the widest axis that is left */
    for (int a = 0; p->t->axes[a]; a++) {
      int64_t extent = fg_recipe_extent(r, p->t->axes[a], shape);
      uint64_t s = (uint64_t)fg_tensor_stride(p->t, p->given, a) * size;
      if (p->t->axes[a] == '1' || extent <= 1 || s >= below || s <= stride) continue;
      stride = s, last = (uint64_t)extent - 1;
    }
    if (!stride) return rest < size;
    rest -= (rest / stride < last ? rest / stride : last) * stride;
    below = stride;
  }
}

static fg_status check_pair(const place *a, const place *b, const fg_recipe *r,
                            const fg_shape *shape) {
  if (a->end <= b->first || b->end <= a->first) return FG_OK;
  if (!holds(a, r, shape, b->first) && !holds(b, r, shape, a->first)) return FG_OK;
  return fg_fail(FG_EARGUMENT, "%s lies over %s, and it is an output", a->t->name, b->t->name);
}

fg_status fg_overlap_check(const fg_recipe *r, const fg_shape *shape, const fg_args *args,
                           const int64_t *reach) {
  place all[FG_TENSOR_MAX];
  for (int i = 0; i < r->n_tensors; i++)
    if (reach[i] >= 0) all[i] = place_of(&r->tensor[i], args, reach[i]);
  for (int i = 0; i < r->n_tensors; i++) {
    if (reach[i] < 0 || !r->tensor[i].output) continue;
    for (int j = 0; j < r->n_tensors; j++)
      if (j != i && reach[j] >= 0 && (j < i || !r->tensor[j].output))
        TRY(check_pair(&all[i], &all[j], r, shape));
  }
  return FG_OK;
}
