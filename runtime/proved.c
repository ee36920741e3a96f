/* proved.c - what a shape proves of a mask: where it hides nothing, the spec without it has the
 * same results, and may have plans that the spec has not. */
#include "kernels.h"
#include "ops.h"
#include "shape.h"

#include <stdlib.h>
#include <string.h>

/* Keys that a sequence may have where it has its own length: none to those that the shape says, of
 * packed ones as many as there can be where it says nothing. */
static void widen_keys(const fg_recipe *recipe, const fg_shape *shape, int64_t k[2]) {
  if (recipe->layout.kv == FG_DENSE) return;
  k[0] = 0;
  if (!shape->nk) k[1] = FG_LENGTH_MAX - 1;
}

/* The expression is nowhere less than at the ends of the ranges (fg_formula_whole). */
static bool is_whole(const fg_recipe *recipe, const fg_shape *shape, const int64_t q[2],
                     const int64_t k[2]) {
  int64_t value;
  for (int i = 0; i < 4; i++) {
    fg_shape corner = *shape;
    corner.nq = q[i / 2], corner.nk = k[i % 2];
    if (fg_expr_eval(&recipe->whole, &corner, &value) != FG_OK || value < 0) return false;
  }
  return true;
}

/* For all shapes of the shape's class. */
static bool is_whole_class(const fg_recipe *recipe, const fg_shape *shape) {
  int64_t q[2], k[2];
  fg_shape_lengths(shape->nq, &q[0], &q[1]);
  fg_shape_lengths(shape->nk, &k[0], &k[1]);
  widen_keys(recipe, shape, k);
  return is_whole(recipe, shape, q, k);
}

/* The spec without its mask, within the same restrictions; made once. op->lock is held. */
static fg_status maskless(fg_op *op) {
  fg_point point = op->point;
  if (op->maskless) return FG_OK;
  point.mask = NULL;
  return fg_context_op(op->context, &point, &op->limits, &op->maskless);
}

/* Does wisdom know times of its plans near the shape? */
static bool is_measured(const fg_op *op, const fg_shape *shape) {
  fg_recalled recalled = {0};
  bool *closed = calloc((size_t)op->n_candidates, sizeof *closed);
  bool found = closed && fg_memories_recall(&op->memories, shape, closed, &recalled) == FG_OK && recalled.shape;
  fg_recalled_free(&recalled);
  free(closed);
  return found;
}

fg_op *fg_op_proved(fg_op *op, const fg_shape *shape) {
  const fg_context *c = op->context;
  const fg_recipe *recipe = &op->candidate[0].recipe;
  if (!c->jit || op->from_zoo || !recipe->whole.n || !is_whole_class(recipe, shape)) return op;
  pthread_mutex_lock(&op->lock);
  fg_op *proved = maskless(op) == FG_OK ? op->maskless : op;
  pthread_mutex_unlock(&op->lock);
  pthread_mutex_lock(&proved->lock);
  fg_status status = fg_op_candidates(proved);
  pthread_mutex_unlock(&proved->lock);
  if (status != FG_OK || (is_measured(op, shape) && !is_measured(proved, shape))) return op;
  return proved;
}

/* The other spec's kernel as one of this one: it is launched only where the mask hides nothing. */
fg_status fg_op_adopt(fg_op *op, fg_kernel *of, fg_kernel **kernel) {
  pthread_mutex_lock(&op->lock);
  fg_kernel *own = op->adopted;
  while (own && own->module != of->module) own = own->next;
  if (!own && (own = malloc(sizeof *own))) {
    memcpy(own, of, sizeof *own);
    own->op = op, own->adopted = true, own->next = op->adopted;
    op->adopted = own;
  }
  pthread_mutex_unlock(&op->lock);
  if (!own) return fg_fail(FG_EMEMORY, "no memory for a kernel");
  *kernel = own;
  return FG_OK;
}

fg_status fg_kernel_check_proved(const fg_kernel *kernel, const fg_shape *shape) {
  const fg_recipe *recipe = &kernel->op->candidate[0].recipe;
  const int64_t q[2] = {shape->nq, shape->nq};
  int64_t k[2] = {shape->nk, shape->nk};
  widen_keys(recipe, shape, k);
  if (is_whole(recipe, shape, q, k)) return FG_OK;
  return fg_fail(FG_EARGUMENT,
                 "the kernel was selected for a shape at which the mask hides nothing, and at this "
                 "one it does: select one for it");
}
