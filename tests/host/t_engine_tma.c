/* t_engine_tma.c - wrong kernels with TMA, clusters, the pool of registers and grids that overlap:
 * each is found under every seed. */
#include "engine_bar.h"

/* ---- loads ---- */

static void one_load(const void *p, void (*change)(tensor_map *map), void (*after)(void)) {
  const tensors *t = p;
  static tensor_map map;
  map = map_of(t->in, 16, 2);
  if (change) change(&map);
  make(0, 1);
  sync_all();
  if (tid() == 0) {
    api->mbarrier_expect(bar(0), 128);
    load(0, &map, 0, 0, 0);
  }
  after();
}

static void finish(void) { api->mbarrier_wait(bar(0), 0); }
static void read_early(void) { loaded(0, lane()); }
static void write_early(void) {
  if (tid() == 33) put(31, 1); /* before or in the box, by the base address */
  put(40, 1);
}
static void nothing(void) {}
static void not_encoded(tensor_map *map) { map->encoded = 0; }
static void another_rank(tensor_map *map) { map->rank = 5; }
static void too_large(tensor_map *map) { map->box[1] = 100; }

static void reads_early(const void *p) { one_load(p, NULL, read_early); }
static void writes_early(const void *p) { one_load(p, NULL, write_early); }
static void nobody_waits(const void *p) { one_load(p, NULL, nothing); }
static void no_map(const void *p) { one_load(p, not_encoded, finish); }
static void wrong_rank(const void *p) { one_load(p, another_rank, finish); }
static void past_the_end(const void *p) { one_load(p, too_large, finish); }
static void without_rows(tensor_map *map) { map->extent[1] = 0; }
static void no_rows(const void *p) { one_load(p, without_rows, finish); }

static void load_as(const void *p, u32 off, u64 by, int ranks, int fenced) {
  const tensors *t = p;
  tensor_map map = map_of(t->in, 16, 2);
  const int place[4] = {0, 0, 0, 0};
  if (tid()) return;
  api->mbarrier_init(bar(0), 1);
  if (fenced) api->fence_barrier_init();
  api->mbarrier_expect(bar(0), 128);
  api->tma_load(((at(0) + 127) & ~127u) + off, &map, place, 4, bar(0), by, ranks);
  api->mbarrier_wait(bar(0), 0);
}

static void target_askew(const void *p) { load_as(p, 64, policy, 0, 1); }
static void no_policy(const void *p) { load_as(p, 0, 3, 0, 1); }
static void no_such_block(const void *p) { load_as(p, 0, policy, 2, 1); }
static void no_fence(const void *p) { load_as(p, 0, policy, 0, 0); }

/* A generic store that was not fenced, under a load. */
static void over_a_store(const void *p) {
  const tensors *t = p;
  tensor_map map = map_of(t->in, 16, 2);
  make(0, 1);
  for (u32 i = tid(); i < 64; i += 32) put(i, 1);
  sync_all();
  if (tid()) return;
  api->mbarrier_expect(bar(0), 128);
  load(0, &map, 0, 0, 0);
  api->mbarrier_wait(bar(0), 0);
}

/* ---- clusters, registers, grids ---- */

static void arrives_twice(const void *p) {
  api->cluster_arrive();
  api->cluster_arrive();
}

static void waits_without(const void *p) { api->cluster_wait(); }

static void no_neighbour(const void *p) {
  make(0, 1);
  sync_all();
  api->mbarrier_arrive_remote(bar(0), 2);
}

static void unsynced_neighbour(const void *p) {
  make(0, 1);
  sync_all();
  if (tid() == 0) api->mbarrier_arrive_remote(bar(0), 1 - api->cluster_rank());
  api->mbarrier_wait(bar(0), 0);
}

static void ended_neighbour(const void *p) {
  make(0, 1);
  api->cluster_arrive();
  api->cluster_wait();
  if (api->cluster_rank()) return;
  for (int i = 0; i < 2000; i++) api->mbarrier_try(bar(0), 0);
  api->mbarrier_arrive_remote(bar(0), 1);
}

static void reads_neighbour(const void *p) {
  u32 x;
  put(tid(), 1);
  api->cluster_arrive();
  api->cluster_wait();
  api->shared_load(at(tid()) ^ 1u << 24, &x, 4);
}

static void odd_registers(const void *p) { api->setmaxnreg(100, 0); }
static void dec_to_more(const void *p) { api->setmaxnreg(176, 0); }
static void past_the_pool(const void *p) { api->setmaxnreg(tid() < 128 ? 32 : 240, tid() >= 128); }

static void some_warps(const void *p) {
  if (tid() < 96) api->setmaxnreg(40, 0);
}

static void before_the_wait(const void *p) {
  const tensors *t = p;
  if (tid() == 0) keep(t->out, 1);
  api->grid_wait();
}

/* Another warp has waited, and nothing says so to this one. */
static void waits_unseen(const void *p) {
  const tensors *t = p;
  if (tid() == 32) api->grid_wait();
  if (tid() == 0) keep(t->out, 1);
}

static void elect_by_some(const void *p) {
  if (lane() < 9) api->elect();
}

static const case_fault wrong[] = {
    {{reads_early, 64, 1},
     "shared load at byte * while TMA for the mbarrier at byte 1024 is still filling it *|race: "
     "shared load at byte *, which TMA for the mbarrier at byte 1024 wrote: no wait for it "
     "*|shared load at byte *, which was never written *"},
    {{writes_early, 64, 1},
     "shared store at byte * while TMA for * is still filling it *|race: shared * at byte *"},
    {{no_map, 64, 1}, "tma_load: its map is none, or not aligned *"},
    {{wrong_rank, 64, 1}, "tma_load of rank 4 by a map of rank 5 *"},
    {{past_the_end, 64, 1}, "tma_load out of bounds: shared bytes * to * of 4096 *"},
    {{no_rows, 64, 1}, "TMA at the first row of a tensor without elements: *"},
    {{target_askew, 32, 1}, "tma_load misaligned: shared byte *, not a multiple of 128 *"},
    {{no_policy, 32, 1}, "tma_load by the policy 0x3, which is none *"},
    {{no_such_block, 32, 1}, "tma_load to the blocks 0x2 of a cluster of 1 *"},
    {{no_fence, 32, 1},
     "TMA completes on the mbarrier at shared byte 1024, whose maker, thread 0, called no *"},
    {{over_a_store, 32, 1},
     "TMA load at shared byte *, which thread * stored without a fence_async after it *"},
    {{arrives_twice, 32, 2}, "cluster_arrive a second time without cluster_wait *", {2}},
    {{waits_without, 32, 2}, "cluster_wait without cluster_arrive *", {2}},
    {{no_neighbour, 32, 2}, "mbarrier_arrive_remote: there is no block 2 in the cluster *", {2}},
    {{unsynced_neighbour, 32, 2},
     "mbarrier_arrive_remote: there is no mbarrier at shared byte 1024 of block * of the "
     "cluster, or no cluster_sync *",
     {2}},
    {{ended_neighbour, 32, 2},
     "mbarrier_arrive_remote at shared byte 1024 of block 1 of the cluster, which has ended *",
     {2}},
    {{reads_neighbour, 32, 2}, "shared load at an address of block * of the cluster *", {2}},
    {{odd_registers, 128, 1}, "setmaxnreg_dec_100: want a multiple of 8 from 24 to 256 *"},
    {{dec_to_more, 384, 1}, "setmaxnreg_dec_176 of a thread that has 168 *"},
    {{past_the_pool, 384, 1},
     "deadlock: *wants 2304 registers, * are in the block's pool*wait in setmaxnreg_inc_240*"},
    {{some_warps, 128, 1},
     "setmaxnreg by some warps of a warpgroup: warp 0 has 40 registers, warp 3 256 *"},
    {{before_the_wait, 32, 1}, "global store before grid_wait: the grid before may not *", {0, 1}},
    {{waits_unseen, 64, 1}, "global store before grid_wait: the grid before may not *", {0, 1}},
    {{elect_by_some, 32, 1},
     "divergence: lane * returned while lanes * wait in elect_one*|divergence: lane * calls "
     "elect_one(0xffffffff), but lanes * have returned *"},
};

TEST_LOOP(wrong_kernels, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }

TEST(block_ends_too_early) {
  case_expect_if_late(
      (case_fault){{nobody_waits, 64, 1},
                   "the block ends with a tma_load to shared byte * in flight: nobody *"});
}
