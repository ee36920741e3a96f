/* tools.c - plans and kernels by name, and what they consist of. */
#include "kernels.h"
#include "ops.h"

#include <fnmatch.h>
#include <stdio.h>

fg_device *fg_context_device(const fg_context *c) { return c->device; }

bool fg_context_compiles(const fg_context *c) { return c->jit; }

void fg_context_tell_all(fg_context *c) { c->topics = ~0u; }

/* The first candidate that the glob matches. */
static fg_status find_plan(const fg_op *op, const char *glob, int *index) {
  char plan[64], name[FG_NAME_MAX];
  for (int i = 0; i < op->n_candidates; i++) {
    fg_plan_name(&op->candidate[i].plan, sizeof plan, plan);
    *index = i;
    if (!fnmatch(glob, plan, 0)) return FG_OK;
  }
  fg_plan_name(&op->candidate[0].plan, sizeof plan, plan);
  fg_point_name(&op->point, sizeof name, name);
  return fg_fail(FG_ESPEC, "%s: no plan matches --plan %s; the first is %s", name, glob, plan);
}

static fg_status list_candidates(fg_op *op) {
  pthread_mutex_lock(&op->lock);
  fg_status status = fg_op_candidates(op);
  pthread_mutex_unlock(&op->lock);
  return status;
}

fg_status fg_pick_plan(fg_context *context, const fg_point *point, const fg_limits *limits,
                       const fg_shape *shape, const char *glob, fg_pick *pick) {
  fg_op *op;
  int index = 0;
  TRY(fg_context_op(context, point, limits, &op));
  TRY(list_candidates(op));
  if (!glob) op = fg_op_proved(op, shape);
  TRY(glob ? find_plan(op, glob, &index) : fg_op_choose(op, shape, &index));
  *pick = (fg_pick){op, op->candidate[index].plan, &op->candidate[index].recipe};
  return FG_OK;
}

fg_status fg_pick_kernel(const fg_pick *pick, fg_kernel **kernel) {
  return fg_kernel_produce(pick->op, &pick->plan, kernel);
}

fg_status fg_variant_kernel(fg_context *context, const fg_variant *variant, fg_kernel **kernel) {
  const fg_limits none = {0};
  fg_op *op;
  TRY(fg_context_op(context, &variant->point, &none, &op));
  return fg_kernel_produce(op, &variant->plan, kernel);
}

const fg_recipe *fg_kernel_recipe(const fg_kernel *k) { return &k->source->recipe; }

const fg_source *fg_kernel_source(const fg_kernel *k) { return k->source; }

fg_module *fg_kernel_module(const fg_kernel *k) { return k->module; }
