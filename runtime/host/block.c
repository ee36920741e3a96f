/* block.c - the launch: blocks (clusters) one after another in a seeded order, their threads
 * interleaved.
 *
 * The scheduler keeps to the first runnable warp of a random ranking, takes any of its lanes, and
 * now and then ranks anew: warps run far ahead of each other, which random picks would not show. */
#include "block.h"

#include "cluster.h"
#include "mbarrier.h"
#include "memory.h"
#include "shadow.h"
#include "tma.h"
#include "warpgroup.h"

#include <stdarg.h>
#include <stdio.h>

fgh_thread *fgh_self;
fgh_thread fgh_threads[FGH_MAX_THREADS];
u32 fgh_accesses_left;

fgh_api fgh_table = {
    .shared_base = fgh_shared_base,
    .shared_load = fgh_shared_load,
    .shared_store = fgh_shared_store,
    .global_load = fgh_global_load,
    .global_store = fgh_global_store,
    .atomic_add_f32 = fgh_atomic_add_f32,
    .atomic_add_u64 = fgh_atomic_add_u64,
    .atomic_cas_u64 = fgh_atomic_cas_u64,
    .reduce_f32 = fgh_reduce_f32,
    .fence_device = fgh_fence_device,
    .barrier_sync = fgh_barrier_sync,
    .barrier_arrive = fgh_barrier_arrive,
    .warp_sync = fgh_warp_sync,
    .shuffle = fgh_shuffle,
    .ballot = fgh_ballot,
    .ldmatrix = fgh_ldmatrix,
    .mma_bf16 = fgh_mma_bf16,
    .mma_f16 = fgh_mma_f16,
    .cp_async = fgh_cp_async,
    .cp_async_commit = fgh_cp_async_commit,
    .cp_async_wait = fgh_cp_async_wait,
    .stmatrix = fgh_stmatrix,
    .elect = fgh_elect,
    .mbarrier_init = fgh_mbarrier_init,
    .fence_barrier_init = fgh_fence_barrier_init,
    .mbarrier_arrive = fgh_mbarrier_arrive,
    .mbarrier_arrive_remote = fgh_mbarrier_arrive_remote,
    .mbarrier_expect = fgh_mbarrier_expect,
    .mbarrier_wait = fgh_mbarrier_wait,
    .mbarrier_try = fgh_mbarrier_try,
    .fence_async = fgh_fence_async,
    .cluster_rank = fgh_cluster_rank,
    .cluster_arrive = fgh_cluster_arrive,
    .cluster_wait = fgh_cluster_wait,
    .grid_wait = fgh_grid_wait,
    .grid_launch = fgh_grid_launch,
    .tma_prefetch = fgh_tma_prefetch,
    .tma_load = fgh_tma_load,
    .tma_store = fgh_tma_store,
    .tma_store_commit = fgh_tma_store_commit,
    .tma_store_wait = fgh_tma_store_wait,
    .wgmma = fgh_wgmma,
    .wgmma_wait = fgh_wgmma_wait,
    .setmaxnreg = fgh_setmaxnreg,
};

static const fg_host_launch *launch;
static fgh_context launcher;                  /* of fg_host_run, while a block runs */
static u32 alive[FGH_MAX_CLUSTER], all_alive; /* threads that have not returned, by block */
static int early_landings;                    /* copies land now and then, not as late as can be */
u32 fgh_cluster_blocks;

static u32 warps, ready[FGH_MAX_WARPS]; /* the lanes that can run, by warp */
static u32 rank[FGH_MAX_WARPS];         /* of a warp; 0 goes first */
static u32 ranked[FGH_MAX_WARPS];       /* the warp of a rank */
static u32 runnable;                    /* the ranks whose warps have ready lanes */

static fg_host_fault found; /* text: empty while all is well */

fgh_api *fg_host_api(void) { return &fgh_table; }

/* ---- faults ---- */

static void add(const char *format, va_list args) {
  size_t used = strlen(found.text);
  vsnprintf(found.text + used, sizeof found.text - used, format, args);
}

void fgh_report(const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(format, args);
  va_end(args);
}

void fgh_found_pc(void *pc) { found.pc = pc; }

void fgh_raise(void *pc) {
  fgh_context abandoned;
  found.pc = pc;
  fgh_context_switch(&abandoned, launcher);
  __builtin_unreachable();
}

void fgh_fault(const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(format, args);
  va_end(args);
  fgh_dim3 at = fgh_table.block_index;
  fgh_report(" [block %u,%u,%u thread %u]", fgh_self->block, at.y, at.z, fgh_self->local);
  fgh_raise(fgh_self->pc);
}

/* ---- the scheduler ---- */

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
    if (!fgh_tma_land()) return NULL;
  u32 r = fgh_random();
  if (early_landings && (r >> 8 & 31) == 0) fgh_tma_land();
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
  if (!next) fgh_deadlock();
  if (next != me) switch_to(next, &me->context);
}

void fgh_yield(void) {
  fgh_accesses_left = 1 + fgh_random_below(16);
  fgh_wake(fgh_self->warp, 1u << fgh_self->lane);
  fgh_wait();
}

/* ---- blocks ---- */

static void thread_main(void) {
  launch->entry(launch->params);
  fgh_async_return();
  fgh_tma_return();
  fgh_wgmma_return();
  fgh_collective_return();
  fgh_cluster_return();
  if (--alive[fgh_self->rank] == 0) {
    fgh_tma_block_end();
    fgh_mbarrier_block_end();
  }
  fgh_context ended;
  if (--all_alive == 0) fgh_context_switch(&ended, launcher);
  fgh_thread *next = pick();
  if (!next) fgh_deadlock();
  switch_to(next, &ended);
}

int fgh_block_alive(u32 block) { return alive[block] > 0; }

static void make_threads(u32 block) {
  all_alive = fgh_cluster_blocks * launch->block;
  for (u32 i = 0; i < fgh_cluster_blocks; i++) alive[i] = launch->block;
  for (u32 i = 0; i < all_alive; i++)
    fgh_threads[i] = (fgh_thread){.context = fgh_context_new(i, thread_main),
                                  .id = i,
                                  .warp = i / 32,
                                  .lane = i % 32,
                                  .rank = i / launch->block,
                                  .local = i % launch->block,
                                  .block = block + i / launch->block};
}

/* Runs a block, or a cluster of them, from `block` on along x. */
static void run_block(u32 block) {
  make_threads(block);
  warps = all_alive / 32;
  fgh_clock_block(warps);
  fgh_handover_block();
  fgh_mbarrier_block();
  fgh_shared_block(launch->shared_bytes, warps, fgh_cluster_blocks);
  fgh_collective_block(launch->block, warps);
  fgh_cluster_block(launch->block, warps, launch->early);
  fgh_async_block();
  fgh_tma_block();
  fgh_wgmma_block();
  for (u32 w = 0; w < warps; w++) {
    ready[w] = ~0u;
    ranked[w] = w;
  }
  rerank();
  fgh_accesses_left = 1 + fgh_random_below(16);
  switch_to(pick(), &launcher);
  fgh_self = NULL;
}

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
static void run_blocks(u32 blocks) {
  u32 at = fgh_random_below(blocks), step;
  do step = 1 + fgh_random_below(blocks);
  while (common_divisor(step, blocks) != 1);
  for (u32 done = 0; done < blocks && !found.text[0]; done++) {
    u32 x = launch->grid[0] / fgh_cluster_blocks, y = launch->grid[1];
    fgh_table.block_index = (fgh_dim3){at % x * fgh_cluster_blocks, at / x % y, at / x / y};
    fgh_watchdog_arm();
    run_block(fgh_table.block_index.x);
    at = at < blocks - step ? at + step : at - (blocks - step);
  }
}

/* A signal's fault comes back through sigsetjmp: handlers must be gone before this frame is. */
static void run_guarded(u32 blocks) {
  if (!sigsetjmp(fgh_signal_return, 1)) run_blocks(blocks);
  fgh_signals_restore();
  fgh_self = NULL;
}

static fg_status check(const fg_host_launch *l) {
  const u32 *grid = l->grid;
  u64 blocks = grid[0];
  for (int i = 1; i < 3 && blocks <= 1u << 31; i++) blocks *= grid[i];
  if (blocks == 0 || blocks > 1u << 31)
    return fg_fail(FG_EARGUMENT, "grid %u,%u,%u: want 1 to 2^31 blocks", grid[0], grid[1], grid[2]);
  if (l->block == 0 || l->block % 32 || l->block > FGH_MAX_THREADS)
    return fg_fail(FG_EARGUMENT, "block of %u threads: want a multiple of 32, at most %d", l->block,
                   FGH_MAX_THREADS);
  u32 cluster = l->cluster ? l->cluster : 1;
  if (cluster > FGH_MAX_CLUSTER || l->block * cluster > FGH_MAX_THREADS || grid[0] % cluster)
    return fg_fail(FG_EARGUMENT,
                   "clusters of %u blocks of %u threads, %u blocks along x: want whole clusters of "
                   "at most %d blocks and %d threads",
                   cluster, l->block, grid[0], FGH_MAX_CLUSTER, FGH_MAX_THREADS);
  if (l->shared_bytes > FGH_SHARED_MAX)
    return fg_fail(FG_EARGUMENT, "%u bytes of shared memory: at most %d are there", l->shared_bytes,
                   FGH_SHARED_MAX);
  if (!l->entry || !l->memory) return fg_fail(FG_EARGUMENT, "a launch without entry or memory");
  return FG_OK;
}

fg_status fg_host_run(const fg_host_launch *l, fg_host_fault *fault) {
  TRY(check(l));
  TRY(fgh_stacks_map());
  launch = l;
  if (found.text[0]) fgh_shared_forget();
  found.text[0] = 0;
  found.pc = NULL;
  fgh_random_seed(l->seed);
  early_landings = l->seed % 3 == 2;
  fgh_cluster_blocks = l->cluster ? l->cluster : 1;
  fgh_clock_launch();
  fgh_handover_launch();
  fgh_memory_launch(l->memory);
  fgh_table.thread_index = (fgh_dim3){0, 0, 0};
  fgh_table.block_dim = (fgh_dim3){l->block, 1, 1};
  fgh_table.grid_dim = (fgh_dim3){l->grid[0], l->grid[1], l->grid[2]};
  TRY(fgh_signals_install());
  run_guarded(l->grid[0] / fgh_cluster_blocks * l->grid[1] * l->grid[2]);
  if (!found.text[0]) return FG_OK;
  *fault = found;
  return fg_fail(FG_ETEMPLATE, "%s", found.text);
}
