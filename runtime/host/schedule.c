/* schedule.c - whose turn it is: the threads of a block, or of a cluster of them, interleaved.
 *
 * The scheduler keeps to the first runnable warp of a random ranking, takes any of its lanes, and
 * now and then ranks anew: warps run far ahead of each other, which random picks would not show. */
#include "block.h"

u32 fgh_accesses_left;

static u32 warps, ready[FGH_MAX_WARPS]; /* the lanes that can run, by warp */
static u32 rank[FGH_MAX_WARPS];         /* of a warp; 0 goes first */
static u32 ranked[FGH_MAX_WARPS];       /* the warp of a rank */
static u32 runnable;                    /* the ranks whose warps have ready lanes */
static const fgh_idle *idle;
static int early_landings;

/* Draws a new ranking of the warps; which of them can run stays as it is. */
static void rerank(void) {
  for (u32 i = warps - 1; i > 0; i--) {
    u32 j = fgh_random_below(i + 1), warp = ranked[i];
    ranked[i] = ranked[j];
    ranked[j] = warp;
  }
  runnable = 0;
  for (u32 i = 0; i < warps; i++) {
    rank[ranked[i]] = i;
    runnable |= (u32)(ready[ranked[i]] != 0) << i;
  }
}

void fgh_wake(u32 warp, u32 lanes) {
  ready[warp] |= lanes;
  if (lanes) runnable |= 1u << rank[warp];
}

/* The thread to run next, no longer ready; NULL when none is, and nothing in flight can land. Of
 * its warp the first lane from a random one on. */
static fgh_thread *pick(void) {
  while (!runnable)
    if (!idle->land()) return NULL;
  u32 r = fgh_random();
  if (early_landings && (r >> 8 & 31) == 0) idle->land();
  if (r % 256 == 0) rerank();
  u32 warp = ranked[__builtin_ctz(runnable)], lanes = ready[warp];
  u32 from = lanes & ~0u << (r >> 27);
  u32 lane = (u32)__builtin_ctz(from ? from : lanes);
  ready[warp] = lanes & ~(1u << lane);
  if (!ready[warp]) runnable &= ~(1u << rank[warp]);
  return &fgh_threads[warp * 32 + lane];
}

static inline void switch_to(fgh_thread *next, fgh_context *from) {
  fgh_self = next;
  fgh_table.thread_index.x = next->local;
  fgh_table.block_index.x = next->block;
  fgh_context_switch(from, next->context);
}

void fgh_wait(void) {
  fgh_thread *me = fgh_self, *next = pick();
  if (!next) idle->deadlock();
  if (next != me) switch_to(next, &me->context);
}

void fgh_yield(void) {
  fgh_accesses_left = 1 + fgh_random_below(16);
  fgh_wake(fgh_self->warp, 1u << fgh_self->lane);
  fgh_wait();
}

int fgh_land(void) { return idle->land(); }

void fgh_start(u32 n_warps, int lands_early, const fgh_idle *when_idle) {
  warps = n_warps, early_landings = lands_early, idle = when_idle;
  for (u32 w = 0; w < warps; w++) {
    ready[w] = ~0u;
    ranked[w] = w;
  }
  rerank();
  fgh_accesses_left = 1 + fgh_random_below(16);
  switch_to(pick(), &fgh_launcher);
  fgh_self = NULL;
}

void fgh_end_thread(void) {
  fgh_context ended;
  fgh_thread *next = pick();
  if (!next) idle->deadlock();
  switch_to(next, &ended);
}
