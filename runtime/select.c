/* select.c - the kernel for a shape: the one that was taken for its class, else the best that can
 * be made, which is then remembered. */
#include "kernels.h"
#include "ops.h"

#include "launch.h"
#include "plain.h"
#include "shape.h"
#include "sized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Choices that were made ------------------------------------------------------------------ */

/* The class's slot, or the free one where it belongs; NULL when the memo is full. */
static _Atomic(fg_choice *) *find_slot(fg_op *op, uint64_t class, fg_choice **choice) {
  uint64_t start = class * 0x9e3779b97f4a7c15u >> 56;
  for (uint64_t i = 0; i < FG_MEMO; i++) {
    _Atomic(fg_choice *) *slot = &op->memo[(start + i) % FG_MEMO];
    *choice = atomic_load_explicit(slot, memory_order_acquire);
    if (!*choice || (*choice)->shape_class == class) return slot;
  }
  return NULL;
}

/* simt computes everything, slowly ----------------------------------------------------------- */

/* Somebody asked for the family: the spec, or whoever forces the plan. */
static bool is_named(const fg_op *op, const fg_plan *plan) {
  return op->limits.n[0] || fg_plan_matches(op->context->plan, plan);
}

static fg_status check_fallback(const fg_op *op, const fg_plan *plan) {
  char name[FG_NAME_MAX];
  if (!op->context->no_fallback || !fg_plan_is_fallback(&op->point, plan) || is_named(op, plan))
    return FG_OK;
  fg_point_name(&op->point, sizeof name, name);
  return fg_fail(FG_ESPEC, "%s: only simt computes it, and no_fallback is set", name);
}

/* Wisdom has it that the plan is bad, and there is no other. */
static void warn_bad(const fg_op *op, const fg_candidate *chosen) {
  char name[FG_NAME_MAX], plan[64];
  if (!fg_op_is_bad(op, (int)(chosen - op->candidate))) return;
  fg_point_name(&op->point, sizeof name, name);
  fg_plan_name(&chosen->plan, sizeof plan, plan);
  fg_context_warn(op->context,
                  "%s: %s was wrong or broke when it was measured, and no other plan "
                  "can be taken",
                  name, plan);
}

/* Pairs of rows and keys, over all heads. Masks other than the causal one count as full. */
static double visible_pairs(const fg_point *point, const fg_shape *s) {
  char mask[64];
  double q = (double)s->nq, k = (double)s->nk, pairs = q * k;
  fg_field_print(fg_field_find("mask"), point, sizeof mask, mask);
  if (!strcmp(mask, "causal")) pairs = q < k ? q * (k - q) + q * q / 2 : k * k / 2;
  return pairs * (double)(s->b * s->h);
}

/* 2^28 pairs take simt some 10 ms forward on an H200 (14.5 TFLOP/s at d 128, 2026-11-20). */
static void warn_slow(const fg_op *op, const fg_plan *plan, const fg_shape *shape) {
  char name[FG_NAME_MAX];
  fg_context *c = op->context;
  double pairs = visible_pairs(&op->point, shape);
  if (!fg_plan_is_fallback(&op->point, plan) || is_named(op, plan) || pairs <= 0x1p28 ||
      atomic_flag_test_and_set(&c->slow))
    return;
  fg_point_name(&op->point, sizeof name, name);
  fg_context_warn(c,
                  "%s: only simt, which uses no tensor cores, computes it: %.2g pairs of rows and "
                  "keys take long",
                  name, pairs);
}

/* Selecting --------------------------------------------------------------------------------- */

static fg_status check_capture(const fg_op *op, fg_stream stream) {
  fg_device *device = op->context->device;
  if (!device->class->capturing(device, stream)) return FG_OK;
  return fg_fail(FG_ECAPTURE, "the stream is capturing, and the kernel for this shape is not "
                              "loaded: select it before the capture");
}

/* The candidate's kernel; whoever comes second frees its own. Not under op->lock. */
static fg_status need_kernel(fg_op *op, fg_candidate *candidate, fg_stream stream,
                             fg_kernel **kernel) {
  fg_kernel *made, *none = NULL;
  *kernel = atomic_load(&candidate->kernel);
  if (*kernel) return FG_OK;
  TRY(check_capture(op, stream));
  TRY(fg_kernel_produce(op, &candidate->plan, &made));
  if (atomic_compare_exchange_strong(&candidate->kernel, &none, made)) {
    *kernel = made;
  } else {
    fg_kernel_free(made);
    *kernel = none;
  }
  return FG_OK;
}

/* A full memo only costs time: the choice is made again. */
static fg_status remember(fg_op *op, uint64_t class, fg_kernel *kernel) {
  fg_choice *present, *choice = malloc(sizeof *choice);
  if (!choice) return fg_fail(FG_EMEMORY, "no memory for a choice");
  *choice = (fg_choice){class, kernel};
  pthread_mutex_lock(&op->lock);
  _Atomic(fg_choice *) *slot = find_slot(op, class, &present);
  if (slot && !present) {
    atomic_store_explicit(slot, choice, memory_order_release);
    choice = NULL;
  }
  pthread_mutex_unlock(&op->lock);
  free(choice);
  return FG_OK;
}

/* What made a compile late is the score or mask, which the family's other plans have as well: they
 * are not tried, or each would take as long. */
static void leave_late(fg_op *op, int index, bool *failed) {
  const char *family = fg_plan_family(&op->candidate[index].plan);
  if (!atomic_load(&op->candidate[index].late)) return;
  for (int i = 0; i < op->n_candidates; i++)
    if (!strcmp(fg_plan_family(&op->candidate[i].plan), family)) failed[i] = true;
}

/* The best kernel that there is. A plan that this compiler refuses (another version may spill)
 * gives way to the next best; the last one's failure stands, and all are tried again by the next
 * call: it was the machine's, or the compiler is another by then. */
static fg_status take_best(fg_op *op, const fg_shape *shape, fg_stream stream, fg_kernel **kernel) {
  char why[512] = "";
  bool *failed = calloc((size_t)op->n_candidates, sizeof *failed);
  fg_status status = failed ? FG_OK : fg_fail(FG_EMEMORY, "no memory for a choice");
  for (int index; status == FG_OK; failed[index] = true) {
    status = fg_op_choose_but(op, shape, failed, &index);
    if (status != FG_OK && *why) status = fg_fail(FG_ECOMPILER, "%s", why);
    TRY_OUT(status);
    fg_candidate *chosen = &op->candidate[index];
    TRY_OUT(check_fallback(op, &chosen->plan));
    if (*why) fg_context_warn(op->context, "another plan is taken: %s", why);
    status = need_kernel(op, chosen, stream, kernel);
    if (status == FG_OK) warn_bad(op, chosen), warn_slow(op, &chosen->plan, shape);
    if (status != FG_ECOMPILER) break;
    snprintf(why, sizeof why, "%s", fg_error());
    leave_late(op, index, failed);
    status = FG_OK;
  }
  for (int i = 0; i < op->n_candidates && status == FG_OK; i++)
    if (failed[i]) atomic_store(&op->candidate[i].refused, true);
out:
  free(failed);
  return status;
}

/* Where the shape proves that the mask hides nothing, a kernel without it is tried first; not where
 * bits are to be the same at other lengths. */
static fg_status find_kernel(fg_op *op, const fg_shape *shape, fg_stream stream,
                             fg_kernel **kernel) {
  pthread_mutex_lock(&op->lock);
  fg_status status = op->n_candidates ? FG_OK : check_capture(op, stream);
  if (status == FG_OK) status = fg_op_candidates(op);
  pthread_mutex_unlock(&op->lock);
  TRY(status);
  fg_kernel *of;
  fg_op *proved = op->point.batch_invariant ? op : fg_op_proved(op, shape);
  if (proved == op || find_kernel(proved, shape, stream, &of) != FG_OK)
    return take_best(op, shape, stream, kernel);
  return fg_op_adopt(op, of, kernel);
}

/* Chooses, makes and loads, and remembers the kernel for the class of shapes. */
static fg_status select_cold(fg_op *op, uint64_t class, const fg_shape *shape, fg_stream stream,
                             fg_kernel **result) {
  fg_kernel *kernel;
  locale_t own = fg_plain_begin();
  fg_status status = find_kernel(op, shape, stream, &kernel);
  fg_plain_end(own);
  TRY(status);
  TRY(remember(op, class, kernel));
  op->context->choices++;
  *result = kernel;
  return FG_OK;
}

/* A shape of this header's size. Hot: one probe of the memo, without a lock. */
static inline fg_status select_now(fg_op *op, const fg_shape *shape, fg_stream stream,
                                   fg_kernel **kernel) {
  fg_choice *choice;
  if (!fg_shape_is_good(&op->form, shape)) TRY(fg_shape_check_of(fg_point_kind(&op->point), shape));
  uint64_t class = fg_shape_class(shape);
  find_slot(op, class, &choice);
  if (!choice || choice->shape_class != class) return select_cold(op, class, shape, stream, kernel);
  *kernel = choice->kernel;
  return FG_OK;
}

/* Not part of fg_select, whose frame stays small. */
__attribute__((noinline)) static fg_status select_rarely(fg_op *op, const fg_shape *shape,
                                                         fg_stream stream, fg_kernel **kernel) {
  fg_shape own;
  TRY(FG_GIVEN({"op", op}, {"shape", shape}, {"kernel", kernel}));
  TRY(fg_context_check(op->context));
  TRY(fg_shape_read(shape, &own, &shape));
  return select_now(op, shape, stream, kernel);
}

fg_status fg_select(fg_op *op, const fg_shape *shape, fg_stream stream, fg_kernel **kernel) {
  if (!op || !shape || !kernel || shape->size != sizeof *shape)
    return select_rarely(op, shape, stream, kernel);
  TRY(fg_context_check(op->context));
  return select_now(op, shape, stream, kernel);
}
