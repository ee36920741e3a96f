/* schedule.c - whose turn it is: the threads of a block, or of a cluster of them, interleaved.
 *
 * The scheduler keeps to the first runnable warp of a random ranking, takes any of its lanes, and
 * now and then ranks anew: warps run far ahead of each other, which random picks would not show. */
#include "block.h"

u32 fgh_accesses_left;

/* Whose turn it is in a seat. */
typedef struct turns {
  u32 ready[FGH_MAX_WARPS];  /* the lanes that can run, by warp */
  u32 rank[FGH_MAX_WARPS];   /* of a warp; 0 goes first */
  u32 ranked[FGH_MAX_WARPS]; /* the warp of a rank */
  fgh_warps runnable;        /* the ranks whose warps have ready lanes */
} turns;

static turns all[FGH_MAX_SEATS], *here = all;
static u32 seats, warps; /* of the launch; of a seat */
static int (*land_one)(void);
static int early_landings;

void fgh_schedule_seat(u32 seat) { here = &all[seat]; }

/* Draws a new ranking of the warps; which of them can run stays as it is. */
static void rerank(void) {
  for (u32 i = warps - 1; i > 0; i--) {
    u32 j = fgh_random_below(i + 1), warp = here->ranked[i];
    here->ranked[i] = here->ranked[j];
    here->ranked[j] = warp;
  }
  here->runnable = 0;
  for (u32 i = 0; i < warps; i++) {
    here->rank[here->ranked[i]] = i;
    if (here->ready[here->ranked[i]]) here->runnable |= fgh_warp_bit(i);
  }
}

static void wake(turns *t, u32 warp, u32 lanes) {
  t->ready[warp] |= lanes;
  if (lanes) t->runnable |= fgh_warp_bit(t->rank[warp]);
}

void fgh_wake(u32 warp, u32 lanes) { wake(here, warp, lanes); }

void fgh_wake_in(u32 seat, u32 warp, u32 lanes) { wake(&all[seat], warp, lanes); }

int fgh_can_run(u32 seat) { return all[seat].runnable != 0; }

/* The thread to run next, no longer ready; NULL when none is, and nothing in flight can land. Of
 * its warp the first lane from a random one on. */
static fgh_thread *pick(void) {
  while (!here->runnable)
    if (!land_one()) return NULL;
  u32 r = fgh_random();
  if (early_landings && (r >> 8 & 31) == 0) land_one();
  if (r % 256 == 0) rerank();
  u32 warp = here->ranked[fgh_first_warp(here->runnable)], lanes = here->ready[warp];
  u32 from = lanes & ~0u << (r >> 27);
  u32 lane = (u32)__builtin_ctz(from ? from : lanes);
  here->ready[warp] = lanes & ~(1u << lane);
  if (!here->ready[warp]) here->runnable &= ~fgh_warp_bit(here->rank[warp]);
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
  if (!next)
    fgh_context_switch(&me->context, fgh_launcher);
  else if (next != me)
    switch_to(next, &me->context);
}

void fgh_yield(void) {
  fgh_accesses_left = 1 + fgh_random_below(16);
  fgh_wake(fgh_self->warp, 1u << fgh_self->lane);
  fgh_wait();
}

void fgh_step_aside(void) {
  if (seats == 1 || fgh_random_below(4)) return;
  fgh_wake(fgh_self->warp, 1u << fgh_self->lane);
  fgh_context_switch(&fgh_self->context, fgh_launcher);
}

int fgh_land(void) { return land_one(); }

void fgh_schedule_launch(u32 n_seats, u32 n_warps, int lands_early, int (*land)(void)) {
  seats = n_seats, warps = n_warps, early_landings = lands_early, land_one = land;
}

void fgh_schedule_block(void) {
  for (u32 w = 0; w < warps; w++) {
    here->ready[w] = ~0u;
    here->ranked[w] = w;
  }
  rerank();
  fgh_accesses_left = 1 + fgh_random_below(16);
}

void fgh_run(void) {
  switch_to(pick(), &fgh_launcher);
  fgh_self = NULL;
}

void fgh_end_thread(void) {
  fgh_context ended;
  fgh_thread *next = pick();
  if (!next) fgh_context_switch(&ended, fgh_launcher);
  switch_to(next, &ended);
}
