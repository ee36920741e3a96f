/* cluster.c - the cluster's barrier, the registers of a block's warps, and grids that overlap. */
#include "cluster.h"

#include "block.h"
#include "shadow.h"

enum { FILE_REGISTERS = 64 << 10, MOST = 256, LEAST = 24, UNIT = 8 };

/* The cluster's warps that have arrived, wait, are in between, have ended. */
typedef struct cluster_barrier {
  fgh_warps arrived, between, waits, ended, all;
  u32 phase;
  fgh_release clock, done;
} cluster_barrier;

/* A block's registers are what it was launched with: no other block's, and none of the file's that
 * are left over. */
typedef struct seat {
  cluster_barrier barrier;
  u32 pool[FGH_MAX_CLUSTER];     /* free registers, by block of the cluster */
  u32 registers[FGH_MAX_WARPS];  /* of each thread */
  u32 wants[FGH_MAX_WARPS];      /* more, of the block's pool; 0: the warp does not wait */
  u32 wants_lane[FGH_MAX_WARPS]; /* the lane that waits for its warp */
  u32 elected;
  u32 lanes_ended[FGH_MAX_WARPS];
  const fgh_path *changed[FGH_MAX_WARPS]; /* where the warp's registers were, last */
  fgh_writer waited[FGH_MAX_WARPS]; /* one lane of each warp that called grid_wait, and when; stamp
                                       0: none has */
} seat;

static seat seats[FGH_MAX_SEATS], *here = seats;

u32 fgh_grid_waits;

void fgh_cluster_seat(u32 number) { here = &seats[number]; }

void fgh_cluster_block(u32 block_threads, u32 warps, u32 early) {
  u32 each = FILE_REGISTERS / block_threads / UNIT * UNIT;
  fgh_release_clear(&here->barrier.clock);
  fgh_release_clear(&here->barrier.done);
  here->barrier.arrived = here->barrier.between = here->barrier.waits = here->barrier.ended = 0;
  here->barrier.phase = 0;
  here->barrier.all = ~(fgh_warps)0 >> (FGH_MAX_WARPS - warps);
  memset(here->pool, 0, sizeof here->pool);
  for (u32 w = 0; w < warps; w++) {
    here->registers[w] = each < MOST ? each : MOST;
    here->wants[w] = here->lanes_ended[w] = 0;
    here->changed[w] = NULL;
  }
  here->elected = (u32)(fgh_random_state >> 40) % 32; /* no draw: most kernels do not ask */
  fgh_grid_waits = early;
}

/* Any lane will do for a kernel, as long as it is the same. */
int fgh_elect(void) {
  FGH_ENTER();
  if (fgh_meet((fgh_call){.kind = FGH_ELECT, .lanes = ~0u})) fgh_wake_others(~0u);
  return fgh_self->lane == here->elected;
}

/* ---- the cluster's barrier ---- */

int fgh_cluster_rank(void) {
  FGH_ENTER();
  return (int)fgh_self->rank;
}

static void complete_if_all(void) {
  cluster_barrier *b = &here->barrier;
  if ((b->arrived | b->ended) != b->all || !b->arrived) return;
  b->done = b->clock;
  b->arrived = 0;
  b->phase++;
  fgh_progress++;
  for (; b->waits; b->waits &= b->waits - 1) {
    u32 w = fgh_first_warp(b->waits);
    fgh_wake(w, 1u << here->wants_lane[w]);
  }
}

void fgh_cluster_arrive(void) {
  FGH_ENTER();
  u32 warp = fgh_self->warp;
  if (!fgh_meet((fgh_call){.kind = FGH_CLUSTER_ARRIVE, .lanes = ~0u})) return;
  if (here->barrier.between >> warp & 1)
    fgh_fault("cluster_arrive a second time without cluster_wait");
  fgh_clock_release(warp, &here->barrier.clock);
  here->barrier.between |= fgh_warp_bit(warp);
  here->barrier.arrived |= fgh_warp_bit(warp);
  complete_if_all();
  fgh_wake_others(~0u);
}

void fgh_cluster_wait(void) {
  FGH_ENTER();
  u32 warp = fgh_self->warp;
  if (!fgh_meet((fgh_call){.kind = FGH_CLUSTER_WAIT, .lanes = ~0u})) return;
  if (!(here->barrier.between >> warp & 1)) fgh_fault("cluster_wait without cluster_arrive");
  here->wants_lane[warp] = fgh_self->lane;
  while (here->barrier.arrived >> warp & 1) {
    here->barrier.waits |= fgh_warp_bit(warp);
    fgh_wait();
  }
  here->barrier.between &= ~fgh_warp_bit(warp);
  fgh_clock_join(warp, &here->barrier.done);
  fgh_wake_others(~0u);
}

/* setmaxnreg is a call of all four warps of a group. */
static void check_registers(u32 first) {
  fgh_warps group = (fgh_warps)15 << first;
  if ((here->barrier.ended & group) != group || fgh_table.block_dim.x % 128) return;
  for (u32 w = first + 1; w < first + 4; w++) {
    if (here->registers[w] == here->registers[first]) continue;
    fgh_self->path = here->changed[here->changed[w] ? w : first];
    fgh_fault("setmaxnreg by some warps of a warpgroup: warp %u has %u registers, warp %u %u",
              fgh_threads[first * 32].local / 32, here->registers[first],
              fgh_threads[w * 32].local / 32, here->registers[w]);
  }
}

void fgh_cluster_return(void) {
  u32 warp = fgh_self->warp;
  here->lanes_ended[warp] |= 1u << fgh_self->lane;
  if (here->lanes_ended[warp] != ~0u) return;
  here->barrier.ended |= fgh_warp_bit(warp);
  check_registers(warp - fgh_self->local / 32 % 4);
  complete_if_all();
}

/* ---- registers ---- */

static void give(u32 more) {
  u32 first = fgh_self->warp - fgh_self->local / 32, warps = fgh_table.block_dim.x / 32;
  here->pool[fgh_self->rank] += more;
  for (u32 w = first; w < first + warps; w++)
    if (here->wants[w]) fgh_wake(w, 1u << here->wants_lane[w]);
}

static void take(u32 more) {
  u32 warp = fgh_self->warp;
  here->wants_lane[warp] = fgh_self->lane;
  for (here->wants[warp] = more; here->pool[fgh_self->rank] < more;) fgh_wait();
  here->pool[fgh_self->rank] -= more;
  here->wants[warp] = 0;
}

void fgh_setmaxnreg(int count, int more) {
  FGH_ENTER();
  u32 n = (u32)count, warp = fgh_self->warp;
  const char *way = more ? "inc" : "dec";
  fgh_call call = {.kind = FGH_SETMAXNREG, .lanes = ~0u, .id = count, .threads = more};
  if (!fgh_meet(call)) return;
  if (n < LEAST || n > MOST || n % UNIT)
    fgh_fault("setmaxnreg_%s_%d: want a multiple of 8 from 24 to 256", way, count);
  if (more ? n < here->registers[warp] : n > here->registers[warp])
    fgh_fault("setmaxnreg_%s_%d of a thread that has %u", way, count, here->registers[warp]);
  if (more)
    take((n - here->registers[warp]) * 32);
  else
    give((here->registers[warp] - n) * 32);
  here->registers[warp] = n;
  here->changed[warp] = fgh_place(fgh_self);
  fgh_wake_others(~0u);
}

/* ---- grids ---- */

void fgh_grid_wait(void) {
  FGH_ENTER();
  fgh_self->grid_seen = 1;
  here->waited[fgh_self->warp] =
      (fgh_writer){fgh_clocks[fgh_self->warp].stamp[fgh_self->lane], fgh_self->id};
}

/* A thread that has not waited itself may have met one that has. */
void fgh_grid_check(const char *what) {
  for (u32 w = 0; w < FGH_MAX_WARPS && !fgh_self->grid_seen; w++)
    fgh_self->grid_seen = here->waited[w].stamp >= fgh_block_start &&
                          fgh_ordered(here->waited[w].thread, here->waited[w].stamp, fgh_self->id);
  if (!fgh_self->grid_seen)
    fgh_fault("global %s before grid_wait: the grid before may not have ended", what);
}

void fgh_grid_launch(void) { FGH_ENTER(); }

void fgh_cluster_report(void) {
  if (here->barrier.arrived)
    fgh_report("\n  cluster barrier: warps %#llx have come",
               (unsigned long long)here->barrier.arrived);
  for (u32 w = 0; w < FGH_MAX_WARPS; w++)
    if (here->wants[w])
      fgh_report("\n  warp %u wants %u registers, %u are in the block's pool", w, here->wants[w],
                 here->pool[fgh_threads[w * 32].rank]);
}
