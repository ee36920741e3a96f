/* dispatch.c - which plan for which shape: forced, else what was fastest when it was measured there
 * or near, else what the cost model expects to be. */
#include "kernels.h"
#include "ops.h"

#include "base/setting.h"
#include "base/text.h"
#include "launch.h"
#include "recipe/extent.h"
#include "wisdom/cost.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an op's candidates are compared under. */
typedef struct {
  const fg_op *op;
  const fg_shape *shape;
  const bool *failed; /* by candidate, in this selection; NULL: none */
  bool forced;        /* some are */
  bool fits;          /* one that may be taken can be launched at the shape */
  bool sound;         /* one that may be taken is not known to be bad */
  bool better;        /* one that may be taken is not the fallback */
  fg_recalled recalled;
} contest;

/* Has no launch more blocks than CUDA takes? */
static bool fits(const contest *t, const fg_candidate *candidate) {
  const fg_recipe *r = &candidate->recipe;
  uint32_t grid[3];
  bool empty;
  for (int i = 0; i < r->n_steps; i++)
    if (r->step[i].kind == FG_STEP_LAUNCH &&
        fg_step_grid(&r->step[i], t->shape, grid, &empty) != FG_OK)
      return false;
  return true;
}

static bool is_sound(const contest *t, const fg_candidate *candidate) {
  return !fg_op_is_bad(t->op, (int)(candidate - t->op->candidate));
}

/* Why a candidate is not compared with the others; NULL: it is. */
static const char *excluded(const contest *t, const fg_candidate *candidate) {
  const fg_plan *plan = &candidate->plan;
  int64_t align = t->shape->align ? t->shape->align : 16;
  if (t->forced && !fg_plan_matches(t->op->context->plan, plan)) return "another plan is forced";
  bool failed = t->failed && t->failed[candidate - t->op->candidate];
  if (failed || atomic_load(&candidate->refused)) return "the compiler refused it";
  if (align % candidate->recipe.align) return "tensors are not aligned to what it needs";
  if (t->fits && !fits(t, candidate)) return "the shape needs more blocks than it may have";
  if (t->sound && !is_sound(t, candidate)) return "it was wrong or broke when it was measured";
  if (t->better && fg_plan_is_fallback(&t->op->point, plan))
    return "simt is for what no other family computes";
  return NULL;
}

/* Of a sentence about a candidate, which may name a shape and a device. */
enum { WORDS = FG_BRIEF_MAX + FG_MODEL_MAX + 128 };

/* A line for one candidate. */
__attribute__((format(printf, 3, 4))) static void tell(const contest *t, const fg_plan *plan,
                                                       const char *format, ...) {
  char name[FG_NAME_MAX], words[WORDS], shape[FG_BRIEF_MAX];
  va_list args;
  if (!fg_context_tells(t->op->context, FG_DISPATCH)) return;
  int n = fg_point_name(&t->op->point, sizeof name, name);
  n = fg_append(sizeof name, name, n, ".");
  fg_plan_name(plan, fg_room(sizeof name, n), fg_room_at(sizeof name, name, n));
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  fg_shape_brief(t->shape, sizeof shape, shape);
  fg_context_tell(t->op->context, FG_DISPATCH, "%s %s: %s", shape, name, words);
}

/* What is wished of a candidate, as `fits` is. */
typedef bool wish(const contest *t, const fg_candidate *candidate);

static bool is_better(const contest *t, const fg_candidate *candidate) {
  return !fg_plan_is_fallback(&t->op->point, &candidate->plan);
}

/* Does a candidate that is not excluded so far fulfil the wish? */
static bool can_have(const contest *t, wish *fulfilled) {
  for (int i = 0; i < t->op->n_candidates; i++)
    if (!excluded(t, &t->op->candidate[i]) && fulfilled(t, &t->op->candidate[i])) return true;
  return false;
}

/* A forced plan is an order. The wishes follow by their weight: each is granted only if a candidate
 * fulfils it together with all that were granted before, so none empties the contest. */
static contest contest_new(const fg_op *op, const fg_shape *shape, const bool *failed) {
  contest t = {.op = op, .shape = shape, .failed = failed, .forced = fg_op_has_forced(op)};
  t.fits = can_have(&t, fits);
  t.sound = can_have(&t, is_sound);
  t.better = can_have(&t, is_better);
  return t;
}

/* Asks wisdom about the candidates that may be taken. */
static fg_status recall(contest *t) {
  bool *closed = calloc((size_t)t->op->n_candidates, sizeof *closed);
  if (!closed) return fg_fail(FG_EMEMORY, "no memory for a choice");
  for (int i = 0; i < t->op->n_candidates; i++) closed[i] = excluded(t, &t->op->candidate[i]);
  fg_status status = fg_memories_recall(&t->op->memories, t->shape, closed, &t->recalled);
  free(closed);
  return status;
}

/* "0.1234 ms, 1.07 times the least, at b16 h16/16 1024x1024 on NVIDIA H200": of a time that was
 * measured, and where unless it was here. */
static void measured_words(const contest *t, int i, size_t size, char *text) {
  const char *device = t->recalled.device;
  char shape[FG_BRIEF_MAX];
  fg_shape_brief(t->recalled.shape, sizeof shape, shape);
  snprintf(text, size, "%.4g ms, %.3g times the least, at %s%s%s", t->recalled.ms[i],
           t->recalled.ratio[i], shape, *device ? " on " : "", device);
}

/* The cost model's figure. */
static double expected(const fg_op *op, const fg_candidate *candidate, const fg_shape *shape) {
  const fg_device *device = op->context->device;
  fg_variant variant = {.point = op->point, .plan = candidate->plan};
  strcpy(variant.arch, device->arch);
  const fg_cost_terms terms = fg_cost_terms_of(&variant);
  return fg_cost(&candidate->recipe, &terms, shape, device->arch, device->multiprocessors);
}

/* What the candidate is compared by, less being better: measured where some are, else expected;
 * below 0: it has no place in the comparison. */
static double figure(const contest *t, int i) {
  const fg_candidate *candidate = &t->op->candidate[i];
  const char *why = excluded(t, candidate);
  char words[WORDS];
  if (why) return tell(t, &candidate->plan, "%s", why), -1;
  if (!t->recalled.shape) {
    double cost = expected(t->op, candidate, t->shape);
    return tell(t, &candidate->plan, "possible, cost %.4g", cost), cost;
  }
  if (t->recalled.ratio[i] <= 0)
    return tell(t, &candidate->plan, "others were measured near, this was not"), -1;
  if (fg_context_tells(t->op->context, FG_DISPATCH)) {
    measured_words(t, i, sizeof words, words);
    tell(t, &candidate->plan, "possible, %s", words);
  }
  return t->recalled.ratio[i];
}

/* The index of the candidate that should be fastest; -1: there is none. */
static int fastest(const contest *t) {
  int best = -1;
  double least = 0;
  char words[WORDS];
  for (int i = 0; i < t->op->n_candidates; i++) {
    double x = figure(t, i);
    if (x >= 0 && (best < 0 || x < least)) best = i, least = x;
  }
  if (best < 0 || !fg_context_tells(t->op->context, FG_DISPATCH)) return best;
  if (t->recalled.shape)
    measured_words(t, best, sizeof words, words);
  else
    snprintf(words, sizeof words, "cost %.4g", least);
  tell(t, &t->op->candidate[best].plan, "taken, %s", words);
  return best;
}

/* Every plan that may be taken wants more of the tensors. */
static fg_status misaligned(const contest *t) {
  char name[FG_NAME_MAX];
  fg_point_name(&t->op->point, sizeof name, name);
  return fg_fail(FG_EARGUMENT,
                 "%s: no plan that may be taken computes tensors aligned to %" PRId64 " bytes",
                 name, t->shape->align);
}

/* A plan is forced that this spec has none of, as it may be where another spec is meant; or it is
 * misspelt, so that it is said once. */
static fg_status check_unforced(fg_op *op) {
  char name[FG_NAME_MAX];
  fg_context *c = op->context;
  TRY(fg_op_check_forced(op));
  if (atomic_flag_test_and_set(&c->unforced)) return FG_OK;
  fg_point_name(&op->point, sizeof name, name);
  fg_context_warn(c, "%s: none of its plans is \"%s\" (%s or config.plan): one is chosen as usual",
                  name, c->plan, fg_settings[FG_SET_PLAN].name);
  return FG_OK;
}

/* The shape by which a plan is chosen: where bits are not to depend on the sequences beside one,
 * that of so many sequences of some length, which fill a GPU; of packed rows, of which only a
 * longest one is known, one row each. */
static fg_shape shape_of_choice(const fg_op *op, const fg_shape *shape) {
  enum { SEQUENCES = 16, KEYS = 8192 };
  fg_shape one = *shape;
  if (!op->point.batch_invariant) return one;
  one.b = SEQUENCES;
  one.nk = KEYS;
  if (op->point.q_layout == FG_PACKED) one.nq = 1, one.tokens_q = SEQUENCES;
  if (op->point.kv_layout == FG_PACKED) one.tokens_k = SEQUENCES * KEYS;
  if (one.page > 0) one.pages = SEQUENCES * ((KEYS + one.page - 1) / one.page);
  return one;
}

fg_status fg_op_choose_but(fg_op *op, const fg_shape *shape, const bool *failed, int *index) {
  const fg_shape chosen_by = shape_of_choice(op, shape);
  contest t = contest_new(op, &chosen_by, failed);
  if (*op->context->plan && !t.forced) TRY(check_unforced(op));
  TRY(recall(&t));
  int best = fastest(&t);
  fg_recalled_free(&t.recalled);
  if (best < 0) return misaligned(&t);
  *index = best;
  return FG_OK;
}

fg_status fg_op_choose(fg_op *op, const fg_shape *shape, int *index) {
  return fg_op_choose_but(op, shape, NULL, index);
}
