/* seats.c - whose turn it is in a launch: blocks, or clusters of them, one after another in a
 * seeded order. Where some wait for flags of others, up to `resident` clusters have begun and have
 * not ended; each has a seat. A cluster goes on until its threads have ended, or none of them can
 * run, or one steps aside at a flag; then any other that can run has its turn, or the next begins.
 */
#include "seats.h"

#include "block.h"
#include "cluster.h"
#include "deadlock.h"
#include "flag.h"
#include "mbarrier.h"
#include "memory.h"
#include "shadow.h"
#include "tma.h"
#include "warpgroup.h"

static const fg_host_launch *launch;
static u32 n_seats;
static u32 alive[FGH_MAX_SEATS];         /* threads that have not returned; 0: the seat is empty */
static fgh_dim3 block_of[FGH_MAX_SEATS]; /* the first block of the cluster */
static u32 at, step, left;               /* the next cluster; from one to the next; how many */

static void (*const enter[])(u32 seat) = {fgh_threads_seat,    fgh_clock_seat,    fgh_schedule_seat,
                                          fgh_collective_seat, fgh_handover_seat, fgh_shared_seat,
                                          fgh_cluster_seat,    fgh_mbarrier_seat, fgh_async_seat,
                                          fgh_tma_seat,        fgh_wgmma_seat};

void fgh_seats_enter(u32 seat) {
  for (size_t i = 0; i < sizeof enter / sizeof *enter; i++) enter[i](seat);
  fgh_table.block_index = block_of[seat];
}

/* What a fiber runs: the kernel, then the checks of a thread that has ended. */
static void thread_main(void) {
  launch->entry(launch->params);
  fgh_self->frame = NULL;
  fgh_async_return();
  fgh_tma_return();
  fgh_wgmma_return();
  fgh_collective_return();
  fgh_cluster_return();
  if (--fgh_alive[fgh_self->rank] == 0) {
    fgh_tma_block_end();
    fgh_mbarrier_block_end();
  }
  fgh_context ended;
  if (--alive[fgh_seat] == 0) fgh_context_switch(&ended, fgh_launcher);
  fgh_end_thread();
}

/* The threads of the seat's blocks, each with a fresh fiber. */
static void make_threads(u32 block) {
  u32 all = fgh_cluster_blocks * launch->block;
  alive[fgh_seat] = all;
  for (u32 i = 0; i < fgh_cluster_blocks; i++) fgh_alive[i] = launch->block;
  for (u32 i = 0; i < all; i++)
    fgh_threads[i] = (fgh_thread){.context = fgh_context_new(fgh_seat, i, thread_main),
                                  .id = i,
                                  .warp = i / 32,
                                  .lane = i % 32,
                                  .rank = i / launch->block,
                                  .local = i % launch->block,
                                  .block = block + i / launch->block};
}

/* A block, or a cluster of them, is about to begin in the seat. */
static void begin(u32 seat) {
  const u32 warps = fgh_cluster_blocks * launch->block / 32;
  const u32 x = launch->grid[0] / fgh_cluster_blocks, y = launch->grid[1],
            all = x * y * launch->grid[2];
  block_of[seat] = (fgh_dim3){at % x * fgh_cluster_blocks, at / x % y, at / x / y};
  at = at < all - step ? at + step : at - (all - step);
  left--;
  fgh_seats_enter(seat);
  make_threads(block_of[seat].x);
  fgh_clock_block(warps);
  fgh_handover_block();
  fgh_mbarrier_block();
  fgh_shared_block();
  fgh_collective_block(launch->block, warps);
  fgh_cluster_block(launch->block, warps, launch->early);
  fgh_async_block();
  fgh_tma_block();
  fgh_wgmma_block();
  fgh_schedule_block();
}

/* The greatest common divisor (Euclid). */
static u32 common_divisor(u32 a, u32 b) {
  while (b) {
    u32 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* All blocks, from a random one on in random equal steps: a step without a common divisor with
 * their number comes to each once. */
static void draw_order(u32 clusters) {
  left = clusters;
  at = fgh_random_below(clusters);
  do step = 1 + fgh_random_below(clusters);
  while (common_divisor(step, clusters) != 1);
}

/* All modules forget the launch before. */
void fgh_seats_launch(const fg_host_launch *l) {
  launch = l;
  n_seats = l->resident ? l->resident : 1;
  fgh_mbarrier_launch();
  fgh_cluster_blocks = l->cluster ? l->cluster : 1;
  const u32 warps = fgh_cluster_blocks * l->block / 32;
  memset(alive, 0, sizeof alive);
  fgh_clock_launch();
  fgh_shared_launch(l->shared_bytes, warps);
  fgh_schedule_launch(n_seats, warps, l->seed % 3 == 2, fgh_tma_land);
  fgh_handover_launch();
  fgh_global_launch();
  fgh_flag_launch();
  fgh_memory_launch(l->memory);
  draw_order(l->grid[0] / fgh_cluster_blocks * l->grid[1] * l->grid[2]);
}

/* The seats in which threads can run, and an empty one if there is a cluster for it. */
static u32 candidates(u32 *list) {
  u32 n = 0, empty = FGH_MAX_SEATS;
  for (u32 s = 0; s < n_seats; s++) {
    if (!alive[s])
      empty = s;
    else if (fgh_can_run(s))
      list[n++] = s;
  }
  if (empty < FGH_MAX_SEATS && left) list[n++] = empty;
  return n;
}

/* The seats that are taken, of which none can go on. */
static void report_deadlock(void) {
  u32 list[FGH_MAX_SEATS], n = 0;
  for (u32 s = 0; s < n_seats; s++)
    if (alive[s]) list[n++] = s;
  if (n) fgh_deadlock(list, n, left, fgh_seats_enter);
}

/* Seats take turns until all clusters have run, none can go on, or one has a fault. */
void fgh_seats_run(void) {
  while (!fgh_found()) {
    u32 list[FGH_MAX_SEATS + 1], n = candidates(list);
    if (n == 0) {
      report_deadlock();
      return;
    }
    u32 seat = list[n > 1 ? fgh_random_below(n) : 0];
    fgh_watchdog_arm();
    if (alive[seat])
      fgh_seats_enter(seat);
    else
      begin(seat);
    fgh_run();
    if (!fgh_found() && alive[seat] && !fgh_can_run(seat) && !fgh_flag_waits())
      fgh_deadlock(&seat, 1, 0, fgh_seats_enter);
  }
}
