/* t_engine_mbarrier.c - mbarriers, TMA and clusters: what right kernels get under every seed, and
 * what wrong ones are told. Kernels with wgmma are in t_engine_wgmma.c, whole pipelines in
 * t_hopper_planted.c. */
#include "engine_case.h"

#include <math.h>
#include <string.h>

enum { BAR = 256, LAST = 0x14f00000 }; /* a word, clear of the data; the policy's high word */

static const u64 policy = (u64)LAST << 32;
static u32 bar(u32 i) { return at(BAR + 2 * i); }

/* Made by one thread, seen by all. */
static void make(u32 i, int count) {
  if (tid() == 0) {
    api->mbarrier_init(bar(i), count);
    api->fence_barrier_init();
  }
}

static tensor_map map_of(const float *from, u32 columns, u32 rows) {
  return (tensor_map){.base = (void *)(uintptr_t)from,
                      .stride = {64, 256, 256},
                      .extent = {16, 4, 1, 1},
                      .box = {(u16)columns, (u16)rows, 1, 1},
                      .elem = 4,
                      .rank = 4,
                      .encoded = 1};
}

static void load(u32 word, const tensor_map *map, int column, int row, u32 i) {
  const int place[] = {column, row, 0, 0};
  api->tma_load((at(word) + 127) & ~127u, map, place, 4, bar(i), policy, 0);
}

/* The number at a place of the box that lies behind `word`. */
static float loaded(u32 word, u32 i) {
  u32 bits;
  float x;
  api->shared_load(((at(word) + 127) & ~127u) + 4 * i, &bits, 4);
  memcpy(&x, &bits, 4);
  return x;
}

/* ---- right ---- */

/* A ring of one place: full and empty in turns, ten times. */
static void ring(const void *p) {
  const tensors *t = p;
  make(0, 32);
  make(1, 32);
  sync_all();
  for (u32 i = 0; i < 10; i++) {
    if (tid() < 32) {
      api->mbarrier_wait(bar(1), (int)(i & 1) ^ 1);
      put(lane(), i * 100 + lane());
      api->mbarrier_arrive(bar(0));
    } else {
      api->mbarrier_wait(bar(0), (int)(i & 1));
      u32 x = get(31 - lane());
      api->mbarrier_arrive(bar(1));
      if (i == 9) keep(t->out + tid(), (float)x);
    }
  }
}

static float of_ring(u32 thread) { return thread < 32 ? NAN : (float)(900 + 63 - thread); }

/* One lane's stores and arrival, behind a warp_sync those of its warp; passed on by a barrier to a
 * warp that has not waited. */
static void through_another(const void *p) {
  const tensors *t = p;
  make(0, 1);
  sync_all();
  if (tid() < 32) {
    put(lane(), lane());
    api->warp_sync(~0u);
    if (lane() == 5) put(40, 7);
    if (lane() == 5) api->mbarrier_arrive(bar(0));
    return;
  }
  if (tid() < 64) api->mbarrier_wait(bar(0), 0);
  api->barrier_sync(1, 64);
  keep(t->out + tid() % 64, (float)(get(31 - lane()) + get(40)));
}

static float of_another(u32 thread) { return (float)(31 - thread % 32 + 7); }

/* Bytes that come before they are expected; a box partly outside; a lane that asks. */
static void early_bytes(const void *p) {
  const tensors *t = p;
  tensor_map map = map_of(t->in, 16, 2);
  make(0, 2);
  sync_all();
  if (tid() == 0) {
    load(0, &map, 4, -1, 0);
    while (api->mbarrier_try(bar(1 - 1), 1) == 0) continue;
    api->mbarrier_arrive(bar(0));
    api->mbarrier_expect(bar(0), 128);
  }
  while (!api->mbarrier_try(bar(0), 0)) continue;
  if (tid() < 32) keep(t->out + tid(), loaded(0, tid()));
}

static float of_early(u32 thread) {
  if (thread >= 32) return NAN;
  return thread >= 16 && thread < 28 ? (float)(thread - 16 + 4) : 0;
}

/* Each block tells the other, and waits for it before it ends. */
static void neighbours(const void *p) {
  const tensors *t = p;
  int rank = api->cluster_rank();
  make(0, 1);
  api->cluster_arrive();
  api->cluster_wait();
  if (tid() == 0) api->mbarrier_arrive_remote(bar(0), 1 - rank);
  api->mbarrier_wait(bar(0), 0);
  keep(t->out + 32 * rank + lane(), (float)api->block_index.x);
  api->cluster_arrive();
  api->cluster_wait();
}

static float of_neighbours(u32 thread) { return (float)(thread / 32); }

/* All lanes but the elected one find 0, and each time the same one is. */
static void elections(const void *p) {
  const tensors *t = p;
  int mine = api->elect(), again = api->elect();
  u32 all = api->ballot(~0u, mine);
  keep(t->out + tid(), (float)(mine == again && __builtin_popcount(all) == 1));
}

static float one(u32 thread) { return (float)(thread - thread + 1); }

/* The last to ask for registers waits for what the first gives up. */
static void registers(const void *p) {
  const tensors *t = p;
  if (tid() < 128)
    api->setmaxnreg(24, 0);
  else
    api->setmaxnreg(240, 1);
  if (tid() < 64) keep(t->out + tid(), 1);
}

/* A thread may go on where another has waited, behind a barrier. */
static void waits_elsewhere(const void *p) {
  const tensors *t = p;
  if (tid() == 40) api->grid_wait();
  sync_all();
  if (tid() == 0) keep(t->out, 1);
}

static float of_zero(u32 thread) { return thread ? NAN : 1; }

static const struct {
  job job;
  u32 cluster;
  float (*expected)(u32 thread);
} right[] = {{{ring, 64, 1}, 1, of_ring},         {{through_another, 96, 1}, 1, of_another},
             {{early_bytes, 64, 1}, 1, of_early}, {{neighbours, 32, 2}, 2, of_neighbours},
             {{elections, 64, 1}, 1, one},        {{waits_elsewhere, 64, 1}, 1, of_zero},
             {{registers, 384, 1}, 1, one}};
enum { RIGHT = sizeof right / sizeof *right };

START_TEST(right_kernels) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    case_extra = (struct case_extra){right[_i].cluster, right[_i].job.kernel == waits_elsewhere};
    ck_assert_msg(case_launch(right[_i].job, seed, memory) == FG_OK, "seed %d: %s", (int)seed,
                  fault.text);
    for (u32 i = 0; i < ALL; i++) {
      float want = right[_i].expected(i), got = made.out[i];
      ck_assert_msg(got == want || (isnan(got) && isnan(want)), "out[%u]: %g", i, (double)got);
    }
    case_drop(memory);
  }
}
END_TEST

/* ---- wrong ---- */

static void no_barrier_there(const void *p) {
  (void)p;
  api->mbarrier_arrive(bar(0));
}

static void used_before_sync(const void *p) {
  (void)p;
  make(0, 64);
  if (tid() == 0) sync_all();
  api->mbarrier_arrive(bar(0));
}

static void made_and_used(const void *p) {
  (void)p;
  make(0, 64);
  api->warp_sync(~0u);
  if (tid() < 32) return;
  while (tid() == 32 && api->block_index.x == 0) api->mbarrier_try(bar(0), 1);
}

static void made_twice(const void *p) {
  (void)p;
  make(0, 1);
  make(0, 1);
}

static void no_arrivals(const void *p) {
  (void)p;
  make(0, 0);
}

static void askew(const void *p) {
  (void)p;
  api->mbarrier_init(at(BAR + 1), 1);
}

static void touched(const void *p) {
  (void)p;
  make(0, 1);
  sync_all();
  get(BAR + 1);
}

static void stored_to(const void *p) {
  (void)p;
  make(0, 1);
  sync_all();
  put(BAR, 1);
}

static void bad_parity(const void *p) {
  (void)p;
  make(0, 1);
  sync_all();
  api->mbarrier_wait(bar(0), 2);
}

static void too_many(const void *p) {
  (void)p;
  make(0, 1);
  sync_all();
  if (tid() == 0) api->mbarrier_expect(bar(0), 16);
  if (tid() == 0) api->mbarrier_arrive(bar(0));
}

static void too_many_bytes(const void *p) {
  (void)p;
  make(0, 1);
  sync_all();
  api->mbarrier_expect(bar(0), 1 << 20);
}

static void waits_for_ever(const void *p) {
  (void)p;
  make(0, 3);
  sync_all();
  if (tid() == 0) api->mbarrier_arrive(bar(0));
  api->mbarrier_wait(bar(0), 0);
}

/* What other lanes have stored, one lane's arrival does not hand over. */
static void lone_arrival(const void *p) {
  (void)p;
  make(0, 1);
  sync_all();
  if (tid() < 32) {
    put(lane(), 1);
    if (lane() == 3) api->mbarrier_arrive(bar(0));
  } else {
    api->mbarrier_wait(bar(0), 0);
    get(lane());
  }
}

/* Nor what they have read. */
static void lone_release(const void *p) {
  (void)p;
  make(0, 1);
  put(tid(), 1);
  sync_all();
  if (tid() < 32) {
    get(9);
    if (lane() == 3) api->mbarrier_arrive(bar(0));
  } else if (lane() == 0) {
    api->mbarrier_wait(bar(0), 0);
    put(9, 2);
  }
}

/* And one lane's wait is not its neighbours'. */
static void lone_wait(const void *p) {
  (void)p;
  make(0, 32);
  sync_all();
  if (tid() < 32) {
    put(lane(), 1);
    api->mbarrier_arrive(bar(0));
  } else {
    if (lane() == 0) api->mbarrier_wait(bar(0), 0);
    get(lane());
  }
}

/* ---- TMA ---- */

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
  (void)p;
  api->cluster_arrive();
  api->cluster_arrive();
}

static void waits_without(const void *p) {
  (void)p;
  api->cluster_wait();
}

static void no_neighbour(const void *p) {
  (void)p;
  make(0, 1);
  sync_all();
  api->mbarrier_arrive_remote(bar(0), 2);
}

static void unsynced_neighbour(const void *p) {
  (void)p;
  make(0, 1);
  sync_all();
  if (tid() == 0) api->mbarrier_arrive_remote(bar(0), 1 - api->cluster_rank());
  api->mbarrier_wait(bar(0), 0);
}

static void ended_neighbour(const void *p) {
  (void)p;
  make(0, 1);
  api->cluster_arrive();
  api->cluster_wait();
  if (api->cluster_rank()) return;
  for (int i = 0; i < 2000; i++) api->mbarrier_try(bar(0), 0);
  api->mbarrier_arrive_remote(bar(0), 1);
}

static void reads_neighbour(const void *p) {
  u32 x;
  (void)p;
  put(tid(), 1);
  api->cluster_arrive();
  api->cluster_wait();
  api->shared_load(at(tid()) ^ 1u << 24, &x, 4);
}

static void odd_registers(const void *p) {
  (void)p;
  api->setmaxnreg(100, 0);
}

static void dec_to_more(const void *p) {
  (void)p;
  api->setmaxnreg(176, 0);
}

static void past_the_pool(const void *p) {
  (void)p;
  api->setmaxnreg(tid() < 128 ? 32 : 240, tid() >= 128);
}

static void some_warps(const void *p) {
  (void)p;
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
  (void)p;
  if (lane() < 9) api->elect();
}

static const struct {
  case_fault wrong;
  struct case_extra extra;
} list[] = {
    {{{no_barrier_there, 32, 1}, "mbarrier_arrive: there is no mbarrier at shared byte 1024 *"},
     {1, 0}},
    {{{used_before_sync, 64, 1},
      "race: mbarrier_arrive at shared byte 1024, where thread 0 made an mbarrier: no barrier *|"
      "mbarrier_arrive: there is no mbarrier at *|divergence: *"},
     {1, 0}},
    {{{made_and_used, 64, 1},
      "race: mbarrier_try at shared byte 1024, where thread 0 made an mbarrier: no barrier *|"
      "mbarrier_try: there is no mbarrier at *"},
     {1, 0}},
    {{{made_twice, 32, 1}, "mbarrier_init at shared byte 1024, where there is one *"}, {1, 0}},
    {{{no_arrivals, 32, 1}, "mbarrier_init for 0 arrivals *"}, {1, 0}},
    {{{askew, 32, 1}, "mbarrier_init misaligned: shared byte 1028, *"}, {1, 0}},
    {{{touched, 32, 1}, "shared load at byte 1028, which belongs to an mbarrier *"}, {1, 0}},
    {{{stored_to, 32, 1}, "shared store at byte 1024, which belongs to an mbarrier *"}, {1, 0}},
    {{{bad_parity, 32, 1}, "mbarrier_wait for parity 2 *"}, {1, 0}},
    {{{too_many, 32, 1},
      "mbarrier_arrive at shared byte 1024: all 1 arrivals of its phase 0 have come, 16 bytes *"},
     {1, 0}},
    {{{too_many_bytes, 32, 1},
      "mbarrier_expect at shared byte 1024 of 1048576 bytes, 0 more are expected already: *"},
     {1, 0}},
    {{{waits_for_ever, 64, 1},
      "deadlock: *mbarrier at byte 1024: phase 0, 1 of 3 arrivals have come\n*warp 0 lanes 0-31 "
      "wait in mbarrier_wait(byte 1024, parity 0)\n*"},
     {1, 0}},
    {{{lone_arrival, 64, 1},
      "race: shared load at byte *, which thread * wrote: no barrier *|shared load at byte *, "
      "which "
      "was never written *"},
     {1, 0}},
    {{{lone_release, 64, 1},
      "race: shared store at byte 36, which several lanes of warp 0 read: no barrier *|race: "
      "shared "
      "store at byte 36, which thread * reads: *|race: shared load at byte 36, which thread 32 "
      "wrote: *"},
     {1, 0}},
    {{{lone_wait, 64, 1},
      "race: shared load at byte *, which thread * wrote: no barrier *|shared load at byte *, "
      "which "
      "was never written *"},
     {1, 0}},
    {{{reads_early, 64, 1},
      "shared load at byte * while TMA for the mbarrier at byte 1024 is still filling it *|race: "
      "shared load at byte *, which TMA for the mbarrier at byte 1024 wrote: no wait for it *|"
      "shared load at byte *, which was never written *"},
     {1, 0}},
    {{{writes_early, 64, 1},
      "shared store at byte * while TMA for * is still filling it *|race: shared * at byte *"},
     {1, 0}},
    {{{no_map, 64, 1}, "tma_load: its map is none, or not aligned *"}, {1, 0}},
    {{{wrong_rank, 64, 1}, "tma_load of rank 4 by a map of rank 5 *"}, {1, 0}},
    {{{past_the_end, 64, 1}, "tma_load out of bounds: shared bytes * to * of 4096 *"}, {1, 0}},
    {{{target_askew, 32, 1}, "tma_load misaligned: shared byte *, not a multiple of 128 *"},
     {1, 0}},
    {{{no_policy, 32, 1}, "tma_load by the policy 0x3, which is none *"}, {1, 0}},
    {{{no_such_block, 32, 1}, "tma_load to the blocks 0x2 of a cluster of 1 *"}, {1, 0}},
    {{{no_fence, 32, 1},
      "TMA completes on the mbarrier at shared byte 1024, whose maker, thread 0, called no *"},
     {1, 0}},
    {{{over_a_store, 32, 1},
      "TMA load at shared byte *, which thread * stored without a fence_async after it *"},
     {1, 0}},
    {{{arrives_twice, 32, 2}, "cluster_arrive a second time without cluster_wait *"}, {2, 0}},
    {{{waits_without, 32, 2}, "cluster_wait without cluster_arrive *"}, {2, 0}},
    {{{no_neighbour, 32, 2}, "mbarrier_arrive_remote: there is no block 2 in the cluster *"},
     {2, 0}},
    {{{unsynced_neighbour, 32, 2},
      "mbarrier_arrive_remote: there is no mbarrier at shared byte 1024 of block * of the cluster, "
      "or no cluster_sync *"},
     {2, 0}},
    {{{ended_neighbour, 32, 2},
      "mbarrier_arrive_remote at shared byte 1024 of block 1 of the cluster, which has ended *"},
     {2, 0}},
    {{{reads_neighbour, 32, 2}, "shared load at an address of block * of the cluster *"}, {2, 0}},
    {{{odd_registers, 128, 1}, "setmaxnreg_dec_100: want a multiple of 8 from 24 to 256 *"},
     {1, 0}},
    {{{dec_to_more, 384, 1}, "setmaxnreg_dec_176 of a thread that has 168 *"}, {1, 0}},
    {{{past_the_pool, 384, 1},
      "deadlock: *wants 2304 registers, * are in the block's pool*wait in setmaxnreg_inc_240*"},
     {1, 0}},
    {{{some_warps, 128, 1},
      "setmaxnreg by some warps of a warpgroup: warp 0 has 40 registers, warp 3 256 *"},
     {1, 0}},
    {{{before_the_wait, 32, 1}, "global store before grid_wait: the grid before may not *"},
     {1, 1}},
    {{{waits_unseen, 64, 1}, "global store before grid_wait: the grid before may not *"}, {1, 1}},
    {{{elect_by_some, 32, 1},
      "divergence: lane * returned while lanes * wait in elect_one*|divergence: lane * calls "
      "elect_one(0xffffffff), but lanes * have returned *"},
     {1, 0}},
};
enum { WRONG = sizeof list / sizeof *list };

START_TEST(wrong_kernels) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    case_extra = list[_i].extra;
    case_expect(list[_i].wrong, seed);
  }
}
END_TEST

/* Where copies land at random, as with every third seed, this one may be done. */
START_TEST(block_ends_too_early) {
  for (u64 seed = 0; seed < SEEDS; seed += 1 + seed % 3)
    case_expect((case_fault){{nobody_waits, 64, 1},
                             "the block ends with a tma_load to shared byte * in flight: nobody *"},
                seed);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("engine mbarrier");
  TCase *tcase = tcase_create("mbarriers");
  tcase_add_loop_test(tcase, right_kernels, 0, RIGHT);
  tcase_add_loop_test(tcase, wrong_kernels, 0, WRONG);
  tcase_add_test(tcase, block_ends_too_early);
  suite_add_tcase(suite, tcase);
  return suite_run(suite);
}
