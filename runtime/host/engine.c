/* engine.c - the launch: blocks (clusters) one after another in a seeded order, and the functions
 * that kernels find in the engine's table. */
#include "block.h"

#include "cluster.h"
#include "deadlock.h"
#include "flag.h"
#include "mbarrier.h"
#include "memory.h"
#include "shadow.h"
#include "tma.h"
#include "warpgroup.h"

#include <pthread.h>

static const fgh_api functions = {
    .shared_base = fgh_shared_base,
    .shared_load = fgh_shared_load,
    .shared_store = fgh_shared_store,
    .global_load = fgh_global_load,
    .global_store = fgh_global_store,
    .atomic_add_f32 = fgh_atomic_add_f32,
    .atomic_add_u64 = fgh_atomic_add_u64,
    .atomic_cas_u64 = fgh_atomic_cas_u64,
    .atomic_add_u32 = fgh_atomic_add_u32,
    .store_release_u32 = fgh_store_release_u32,
    .load_acquire_u32 = fgh_load_acquire_u32,
    .flag_wait = fgh_flag_wait,
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
    .fence_async_global = fgh_fence_async_global,
    .cluster_rank = fgh_cluster_rank,
    .cluster_arrive = fgh_cluster_arrive,
    .cluster_wait = fgh_cluster_wait,
    .grid_wait = fgh_grid_wait,
    .grid_launch = fgh_grid_launch,
    .tma_prefetch = fgh_tma_prefetch,
    .tma_load = fgh_tma_load,
    .bulk_load = fgh_bulk_load,
    .tma_store = fgh_tma_store,
    .tma_store_commit = fgh_tma_store_commit,
    .tma_store_wait = fgh_tma_store_wait,
    .wgmma = fgh_wgmma,
    .wgmma_wait = fgh_wgmma_wait,
    .setmaxnreg = fgh_setmaxnreg,
};

static const fg_host_launch *launch;
static u32 all_alive;      /* threads that have not returned */
static int early_landings; /* copies land now and then, not as late as can be */
static const fgh_idle when_idle = {fgh_tma_land, fgh_deadlock};

static void fill_table(void) { fgh_table = functions; }

fgh_api *fg_host_api(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_table);
  return &fgh_table;
}

/* What a fiber runs: the kernel, then the checks of a thread that has ended. */
static void thread_main(void) {
  launch->entry(launch->params);
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
  if (--all_alive == 0) fgh_context_switch(&ended, fgh_launcher);
  fgh_end_thread();
}

/* The threads of the blocks that run together, each with a fresh fiber. */
static void make_threads(u32 block) {
  all_alive = fgh_cluster_blocks * launch->block;
  for (u32 i = 0; i < fgh_cluster_blocks; i++) fgh_alive[i] = launch->block;
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
  const u32 warps = all_alive / 32;
  fgh_clock_block(warps);
  fgh_handover_block();
  fgh_flag_block();
  fgh_mbarrier_block();
  fgh_shared_block(launch->shared_bytes, warps, fgh_cluster_blocks);
  fgh_collective_block(launch->block, warps);
  fgh_cluster_block(launch->block, warps, launch->early);
  fgh_async_block();
  fgh_tma_block();
  fgh_wgmma_block();
  fgh_start(warps, early_landings, &when_idle);
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
static void run_blocks(u32 blocks) {
  u32 at = fgh_random_below(blocks), step;
  do step = 1 + fgh_random_below(blocks);
  while (common_divisor(step, blocks) != 1);
  for (u32 done = 0; done < blocks && !fgh_found(); done++) {
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

/* Launches that the engine cannot run are refused before anything is touched. */
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

/* One launch at a time: the engine's state is the process's. */
fg_status fg_host_run(const fg_host_launch *l, fg_host_fault *fault) {
  TRY(check(l));
  TRY(fgh_stacks_map());
  launch = l;
  if (fgh_found()) fgh_shared_forget();
  fgh_found_clear();
  fgh_random_seed(l->seed);
  early_landings = l->seed % 3 == 2;
  fgh_cluster_blocks = l->cluster ? l->cluster : 1;
  fgh_clock_launch();
  fgh_handover_launch();
  fgh_global_launch();
  fgh_memory_launch(l->memory);
  fgh_table.thread_index = (fgh_dim3){0, 0, 0};
  fgh_table.block_dim = (fgh_dim3){l->block, 1, 1};
  fgh_table.grid_dim = (fgh_dim3){l->grid[0], l->grid[1], l->grid[2]};
  TRY(fgh_signals_install());
  run_guarded(l->grid[0] / fgh_cluster_blocks * l->grid[1] * l->grid[2]);
  if (!fgh_found()) return FG_OK;
  *fault = *fgh_found();
  return fg_fail(FG_ETEMPLATE, "%s", fault->text);
}
