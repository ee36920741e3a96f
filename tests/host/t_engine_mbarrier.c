/* t_engine_mbarrier.c - mbarriers and what hangs on them: what right kernels get under every seed,
 * and what wrong mbarriers are told. TMA and clusters are wronged in t_engine_tma.c, wgmma in
 * t_engine_wgmma.c. */
#include "engine_bar.h"

#include <math.h>

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

static const case_fine right[] = {
    {{ring, 64, 1}, of_ring},         {{through_another, 96, 1}, of_another},
    {{early_bytes, 64, 1}, of_early}, {{neighbours, 32, 2}, of_neighbours, {2}},
    {{elections, 64, 1}, one},        {{waits_elsewhere, 64, 1}, of_zero, {0, 1}},
    {{registers, 384, 1}, one}};

TEST_LOOP(right_kernels, sizeof right / sizeof *right) { case_right(right[_i]); }

/* ---- wrong ---- */

static void no_barrier_there(const void *p) { api->mbarrier_arrive(bar(0)); }

static void used_before_sync(const void *p) {
  make(0, 64);
  if (tid() == 0) sync_all();
  api->mbarrier_arrive(bar(0));
}

static void made_and_used(const void *p) {
  make(0, 64);
  api->warp_sync(~0u);
  if (tid() < 32) return;
  while (tid() == 32 && api->block_index.x == 0) api->mbarrier_try(bar(0), 1);
}

static void made_twice(const void *p) {
  make(0, 1);
  make(0, 1);
}

static void no_arrivals(const void *p) { make(0, 0); }
static void askew(const void *p) { api->mbarrier_init(at(BAR + 1), 1); }

static void touched(const void *p) {
  make(0, 1);
  sync_all();
  get(BAR + 1);
}

static void stored_to(const void *p) {
  make(0, 1);
  sync_all();
  put(BAR, 1);
}

static void bad_parity(const void *p) {
  make(0, 1);
  sync_all();
  api->mbarrier_wait(bar(0), 2);
}

static void too_many(const void *p) {
  make(0, 1);
  sync_all();
  if (tid() == 0) api->mbarrier_expect(bar(0), 16);
  if (tid() == 0) api->mbarrier_arrive(bar(0));
}

static void too_many_bytes(const void *p) {
  make(0, 1);
  sync_all();
  api->mbarrier_expect(bar(0), 1 << 20);
}

static void waits_for_ever(const void *p) {
  make(0, 3);
  sync_all();
  if (tid() == 0) api->mbarrier_arrive(bar(0));
  api->mbarrier_wait(bar(0), 0);
}

/* What other lanes have stored, one lane's arrival does not hand over. */
static void lone_arrival(const void *p) {
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

static const case_fault wrong[] = {
    {{no_barrier_there, 32, 1}, "mbarrier_arrive: there is no mbarrier at shared byte 1024 *"},
    {{used_before_sync, 64, 1},
     "race: mbarrier_arrive at shared byte 1024, where thread 0 made an mbarrier: no barrier *|"
     "mbarrier_arrive: there is no mbarrier at *|divergence: *"},
    {{made_and_used, 64, 1},
     "race: mbarrier_try at shared byte 1024, where thread 0 made an mbarrier: no barrier *|"
     "mbarrier_try: there is no mbarrier at *"},
    {{made_twice, 32, 1}, "mbarrier_init at shared byte 1024, where there is one *"},
    {{no_arrivals, 32, 1}, "mbarrier_init for 0 arrivals *"},
    {{askew, 32, 1}, "mbarrier_init misaligned: shared byte 1028, *"},
    {{touched, 32, 1}, "shared load at byte 1028, which belongs to an mbarrier *"},
    {{stored_to, 32, 1}, "shared store at byte 1024, which belongs to an mbarrier *"},
    {{bad_parity, 32, 1}, "mbarrier_wait for parity 2 *"},
    {{too_many, 32, 1},
     "mbarrier_arrive at shared byte 1024: all 1 arrivals of its phase 0 have come, 16 bytes *"},
    {{too_many_bytes, 32, 1},
     "mbarrier_expect at shared byte 1024 of 1048576 bytes, 0 more are expected already: *"},
    {{waits_for_ever, 64, 1},
     "deadlock: *mbarrier at byte 1024: phase 0, 1 of 3 arrivals have come\n*warp 0 lanes 0-31 "
     "wait in mbarrier_wait(byte 1024, parity 0)\n*"},
    {{lone_arrival, 64, 1},
     "race: shared load at byte *, which thread * wrote: no barrier *|shared load at byte *, "
     "which "
     "was never written *"},
    {{lone_release, 64, 1},
     "race: shared store at byte 36, which several lanes of warp 0 read: no barrier *|race: "
     "shared "
     "store at byte 36, which thread * reads: *|race: shared load at byte 36, which thread 32 "
     "wrote: *"},
    {{lone_wait, 64, 1},
     "race: shared load at byte *, which thread * wrote: no barrier *|shared load at byte *, "
     "which "
     "was never written *"},
};

TEST_LOOP(wrong_kernels, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }
