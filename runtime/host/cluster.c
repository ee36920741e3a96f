/* cluster.c - the cluster's barrier, the registers of a block's warps, and grids that overlap. */
#include "cluster.h"

#include "block.h"
#include "shadow.h"

enum { FILE_REGISTERS = 64 << 10, MOST = 256, LEAST = 24, UNIT = 8 };

/* The cluster's warps that have arrived, wait, are in between, have ended. */
static struct {
  u32 arrived, between, waits, ended, all, phase;
  fgh_release clock, done;
} barrier;

/* A block's registers are what it was launched with: no other block's, and none of the file's that
 * are left over. */
static u32 pool[FGH_MAX_CLUSTER];     /* free ones */
static u32 registers[FGH_MAX_WARPS];  /* of each thread */
static u32 wants[FGH_MAX_WARPS];      /* more, of the block's pool; 0: the warp does not wait */
static u32 wants_lane[FGH_MAX_WARPS]; /* the lane that waits for its warp */
static u32 elected;
static u32 lanes_ended[FGH_MAX_WARPS];
static void *changed[FGH_MAX_WARPS]; /* where the warp's registers were, last */

u32 fgh_grid_waits;

void fgh_cluster_block(u32 block_threads, u32 warps, u32 early) {
  u32 each = FILE_REGISTERS / block_threads / UNIT * UNIT;
  fgh_release_clear(&barrier.clock);
  fgh_release_clear(&barrier.done);
  barrier.arrived = barrier.between = barrier.waits = barrier.ended = barrier.phase = 0;
  barrier.all = warps == 32 ? ~0u : (1u << warps) - 1;
  memset(pool, 0, sizeof pool);
  for (u32 w = 0; w < warps; w++) {
    registers[w] = each < MOST ? each : MOST;
    wants[w] = lanes_ended[w] = 0;
    changed[w] = NULL;
  }
  elected = (u32)(fgh_random_state >> 40) % 32; /* no draw: most kernels do not ask */
  fgh_grid_waits = early;
}

/* Any lane will do for a kernel, as long as it is the same. */
int fgh_elect(void) {
  FGH_ENTER();
  if (fgh_meet((fgh_call){.kind = FGH_ELECT, .lanes = ~0u})) fgh_wake_others(~0u);
  return fgh_self->lane == elected;
}

/* ---- the cluster's barrier ---- */

int fgh_cluster_rank(void) {
  FGH_ENTER();
  return (int)fgh_self->rank;
}

static void complete_if_all(void) {
  if ((barrier.arrived | barrier.ended) != barrier.all || !barrier.arrived) return;
  barrier.done = barrier.clock;
  barrier.arrived = 0;
  barrier.phase++;
  fgh_progress++;
  for (; barrier.waits; barrier.waits &= barrier.waits - 1) {
    u32 w = (u32)__builtin_ctz(barrier.waits);
    fgh_wake(w, 1u << wants_lane[w]);
  }
}

void fgh_cluster_arrive(void) {
  FGH_ENTER();
  u32 warp = fgh_self->warp;
  if (!fgh_meet((fgh_call){.kind = FGH_CLUSTER_ARRIVE, .lanes = ~0u})) return;
  if (barrier.between >> warp & 1) fgh_fault("cluster_arrive a second time without cluster_wait");
  fgh_clock_release(warp, &barrier.clock);
  barrier.between |= 1u << warp;
  barrier.arrived |= 1u << warp;
  complete_if_all();
  fgh_wake_others(~0u);
}

void fgh_cluster_wait(void) {
  FGH_ENTER();
  u32 warp = fgh_self->warp;
  if (!fgh_meet((fgh_call){.kind = FGH_CLUSTER_WAIT, .lanes = ~0u})) return;
  if (!(barrier.between >> warp & 1)) fgh_fault("cluster_wait without cluster_arrive");
  wants_lane[warp] = fgh_self->lane;
  while (barrier.arrived >> warp & 1) {
    barrier.waits |= 1u << warp;
    fgh_wait();
  }
  barrier.between &= ~(1u << warp);
  fgh_clock_join(warp, &barrier.done);
  fgh_wake_others(~0u);
}

/* setmaxnreg is a call of all four warps of a group. */
static void check_registers(u32 first) {
  u32 group = 15u << first;
  if ((barrier.ended & group) != group || fgh_table.block_dim.x % 128) return;
  for (u32 w = first + 1; w < first + 4; w++) {
    if (registers[w] == registers[first]) continue;
    fgh_self->pc = changed[changed[w] ? w : first];
    fgh_fault("setmaxnreg by some warps of a warpgroup: warp %u has %u registers, warp %u %u",
              fgh_threads[first * 32].local / 32, registers[first], fgh_threads[w * 32].local / 32,
              registers[w]);
  }
}

void fgh_cluster_return(void) {
  u32 warp = fgh_self->warp;
  lanes_ended[warp] |= 1u << fgh_self->lane;
  if (lanes_ended[warp] != ~0u) return;
  barrier.ended |= 1u << warp;
  check_registers(warp - fgh_self->local / 32 % 4);
  complete_if_all();
}

/* ---- registers ---- */

static void give(u32 more) {
  u32 first = fgh_self->warp - fgh_self->local / 32, warps = fgh_table.block_dim.x / 32;
  pool[fgh_self->rank] += more;
  for (u32 w = first; w < first + warps; w++)
    if (wants[w]) fgh_wake(w, 1u << wants_lane[w]);
}

static void take(u32 more) {
  u32 warp = fgh_self->warp;
  wants_lane[warp] = fgh_self->lane;
  for (wants[warp] = more; pool[fgh_self->rank] < more;) fgh_wait();
  pool[fgh_self->rank] -= more;
  wants[warp] = 0;
}

void fgh_setmaxnreg(int count, int more) {
  FGH_ENTER();
  u32 n = (u32)count, warp = fgh_self->warp;
  const char *way = more ? "inc" : "dec";
  fgh_call call = {.kind = FGH_SETMAXNREG, .lanes = ~0u, .id = count, .threads = more};
  if (!fgh_meet(call)) return;
  if (n < LEAST || n > MOST || n % UNIT)
    fgh_fault("setmaxnreg_%s_%d: want a multiple of 8 from 24 to 256", way, count);
  if (more ? n < registers[warp] : n > registers[warp])
    fgh_fault("setmaxnreg_%s_%d of a thread that has %u", way, count, registers[warp]);
  if (more)
    take((n - registers[warp]) * 32);
  else
    give((registers[warp] - n) * 32);
  registers[warp] = n;
  changed[warp] = fgh_self->pc;
  fgh_wake_others(~0u);
}

/* ---- grids ---- */

/* One lane of each warp that has waited, and when; stamp 0: none has. */
static fgh_writer waited[FGH_MAX_WARPS];

void fgh_grid_wait(void) {
  FGH_ENTER();
  fgh_self->grid_seen = 1;
  waited[fgh_self->warp] =
      (fgh_writer){fgh_clocks[fgh_self->warp].stamp[fgh_self->lane], fgh_self->id};
}

/* A thread that has not waited itself may have met one that has. */
void fgh_grid_check(const char *what) {
  for (u32 w = 0; w < FGH_MAX_WARPS && !fgh_self->grid_seen; w++)
    fgh_self->grid_seen = waited[w].stamp >= fgh_block_start &&
                          fgh_ordered(waited[w].thread, waited[w].stamp, fgh_self->id);
  if (!fgh_self->grid_seen)
    fgh_fault("global %s before grid_wait: the grid before may not have ended", what);
}

void fgh_grid_launch(void) { FGH_ENTER(); }

void fgh_cluster_report(void) {
  if (barrier.arrived) fgh_report("\n  cluster barrier: warps %#x have come", barrier.arrived);
  for (u32 w = 0; w < FGH_MAX_WARPS; w++)
    if (wants[w])
      fgh_report("\n  warp %u wants %u registers, %u are in the block's pool", w, wants[w],
                 pool[fgh_threads[w * 32].rank]);
}
