/* engine.c - the launch: what is refused, what is found; and the functions that kernels find in the
 * engine's table. seats.c runs the blocks. */
#include "block.h"

#include "cluster.h"
#include "flag.h"
#include "mbarrier.h"
#include "memory.h"
#include "seats.h"
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
    .reduce_max_f32 = fgh_reduce_max_f32,
    .fence_device = fgh_fence_device,
    .barrier_sync = fgh_barrier_sync,
    .barrier_arrive = fgh_barrier_arrive,
    .warp_sync = fgh_warp_sync,
    .shuffle = fgh_shuffle,
    .ballot = fgh_ballot,
    .ldmatrix = fgh_ldmatrix,
    .mma_bf16 = fgh_mma_bf16,
    .mma_f16 = fgh_mma_f16,
    .mma_e4m3 = fgh_mma_e4m3,
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
    .bulk_copy_remote = fgh_bulk_copy_remote,
    .tma_store = fgh_tma_store,
    .tma_store_commit = fgh_tma_store_commit,
    .tma_store_wait = fgh_tma_store_wait,
    .wgmma = fgh_wgmma,
    .wgmma_wait = fgh_wgmma_wait,
    .setmaxnreg = fgh_setmaxnreg,
};

static void fill_table(void) { fgh_table = functions; }

fgh_api *fg_host_api(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_table);
  return &fgh_table;
}

/* A signal's fault comes back through sigsetjmp: handlers must be gone before this frame is. */
static void run_guarded(void) {
  if (!sigsetjmp(fgh_signal_return, 1)) fgh_seats_run();
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
  if (l->block == 0 || l->block % 32 || l->block > FGH_BLOCK_THREADS)
    return fg_fail(FG_EARGUMENT, "block of %u threads: want a multiple of 32, at most %d", l->block,
                   FGH_BLOCK_THREADS);
  u32 cluster = l->cluster ? l->cluster : 1;
  if (cluster > FGH_MAX_CLUSTER || l->block * cluster > FGH_MAX_THREADS || grid[0] % cluster)
    return fg_fail(FG_EARGUMENT,
                   "clusters of %u blocks of %u threads, %u blocks along x: want whole clusters of "
                   "at most %d blocks and %d threads",
                   cluster, l->block, grid[0], FGH_MAX_CLUSTER, FGH_MAX_THREADS);
  if (l->resident > FGH_MAX_SEATS || l->resident * cluster > FGH_MAX_BLOCKS)
    return fg_fail(FG_EARGUMENT,
                   "%u clusters of %u blocks resident together: at most %d, and %d blocks",
                   l->resident, cluster, FGH_MAX_SEATS, FGH_MAX_BLOCKS);
  if (l->shared_bytes > FGH_SHARED_MAX)
    return fg_fail(FG_EARGUMENT, "%u bytes of shared memory: at most %d are there", l->shared_bytes,
                   FGH_SHARED_MAX);
  if (!l->entry || !l->memory) return fg_fail(FG_EARGUMENT, "a launch without entry or memory");
  return FG_OK;
}

/* One launch at a time: the engine's state is the process's. */
fg_status fg_host_run(const fg_host_launch *l, fg_host_fault *fault) {
  TRY(check(l));
  TRY(fgh_stacks_map(l->resident ? l->resident : 1));
  if (fgh_found()) fgh_shared_forget();
  fgh_found_clear();
  fgh_random_seed(l->seed);
  fgh_table.thread_index = (fgh_dim3){0, 0, 0};
  fgh_table.block_dim = (fgh_dim3){l->block, 1, 1};
  fgh_table.grid_dim = (fgh_dim3){l->grid[0], l->grid[1], l->grid[2]};
  fgh_seats_launch(l);
  fgh_path_launch(l->code_begin, l->code_end);
  TRY(fgh_signals_install());
  run_guarded();
  if (!fgh_found()) return FG_OK;
  *fault = *fgh_found();
  return fg_fail(FG_ETEMPLATE, "%s", fault->text);
}
