/* t_engine_bulk.c - copies of plain bytes from global memory by the asynchronous proxy: what right
 * kernels get under every seed, and what wrong ones are told. t_engine_copy.c has copies between
 * blocks. */
#include "engine_bar.h"

#include <math.h>

/* Thread 0 copies `bytes` to the word, and expects `expected` of them. */
static void copy(u32 word, const float *from, int bytes, int expected) {
  if (tid()) return;
  api->mbarrier_expect(bar(0), expected);
  api->bulk_load(at(word), from, bytes, bar(0));
}

static void begin(void) {
  make(0, 1);
  sync_all();
}

/* ---- right ---- */

static void loads(const void *p) {
  const tensors *t = p;
  begin();
  copy(8, t->in + 4, 128, 128);
  api->mbarrier_wait(bar(0), 0);
  if (tid() < 32) keep(t->out + tid(), (float)get(8 + tid()));
}

static float of_loads(u32 thread) {
  float x = (float)thread + 4;
  u32 bits;
  memcpy(&bits, &x, 4);
  return thread < 32 ? (float)bits : NAN;
}

/* Bytes that the block itself has written, by stores and by an atomic. */
static void loads_own(const void *p) {
  const tensors *t = p;
  begin();
  if (tid() < 8) keep(t->strided + tid(), 2);
  if (tid() == 8) api->atomic_add_f32(t->strided + PITCH, 0);
  sync_all();
  if (tid() == 0) api->fence_async_global();
  copy(8, t->strided, 32, 32);
  api->mbarrier_wait(bar(0), 0);
  sync_all();
  if (tid() == 0) api->mbarrier_expect(bar(0), 16);
  if (tid() == 0) api->bulk_load(at(16), t->strided + PITCH, 16, bar(0));
  api->mbarrier_wait(bar(0), 1);
  if (tid() < 8) keep(t->out + tid(), (float)(get(8 + tid()) >> 23));
}

static float of_own(u32 thread) { return thread < 8 ? 128 : NAN; }

static const case_fine right[] = {{{loads, 64, 1}, of_loads}, {{loads_own, 64, 1}, of_own}};

TEST_LOOP(right_kernels, sizeof right / sizeof *right) { case_right(right[_i]); }

/* ---- wrong ---- */

static void load_as(u32 word, const float *from, int bytes) {
  begin();
  copy(word, from, bytes, bytes);
  api->mbarrier_wait(bar(0), 0);
}

static void source_askew(const void *p) { load_as(0, ((const tensors *)p)->in + 2, 32); }
static void target_askew(const void *p) { load_as(1, ((const tensors *)p)->in, 32); }
static void odd_bytes(const void *p) { load_as(0, ((const tensors *)p)->in, 24); }
static void no_bytes(const void *p) { load_as(0, ((const tensors *)p)->in, 0); }
static void past_the_end(const void *p) { load_as(0, ((const tensors *)p)->in + 56, 64); }
static void past_shared(const void *p) { load_as(1020, ((const tensors *)p)->in, 32); }
static void into_a_gap(const void *p) { load_as(0, ((const tensors *)p)->strided, 48); }
static void unwritten(const void *p) { load_as(0, ((const tensors *)p)->out, 16); }

static void no_barrier(const void *p) {
  if (tid() == 0) api->bulk_load(at(0), ((const tensors *)p)->in, 16, bar(0));
}

static void no_fence(const void *p) {
  if (tid()) return;
  api->mbarrier_init(bar(0), 1);
  copy(0, ((const tensors *)p)->in, 16, 16);
}

static void reads_early(const void *p) {
  begin();
  copy(0, ((const tensors *)p)->in, 128, 128);
  get(lane());
}

static void over_a_store(const void *p) {
  make(0, 1);
  put(tid(), 1);
  sync_all();
  copy(0, ((const tensors *)p)->in, 128, 128);
  api->mbarrier_wait(bar(0), 0);
}

static void too_few_expected(const void *p) {
  begin();
  copy(0, ((const tensors *)p)->in, 128, 64);
  api->mbarrier_wait(bar(0), 0);
}

static void nobody_waits(const void *p) {
  begin();
  copy(0, ((const tensors *)p)->in, 16, 16);
}

/* The source changes while it is read: by the thread itself, behind a barrier, or unordered. */
static void changes_own(const void *p) {
  const tensors *t = p;
  begin();
  copy(0, t->strided, 32, 32);
  if (tid() == 0) keep(t->strided + 3, 1);
  api->mbarrier_wait(bar(0), 0);
}

static void changes_behind(const void *p) {
  const tensors *t = p;
  begin();
  copy(0, t->strided, 32, 32);
  sync_all();
  if (tid() == 40) keep(t->strided + 5, 1);
  api->mbarrier_wait(bar(0), 0);
}

static void changes_unordered(const void *p) {
  const tensors *t = p;
  begin();
  copy(0, t->strided, 32, 32);
  if (tid() == 40) keep(t->strided + 5, NAN);
  api->mbarrier_wait(bar(0), 0);
}

static void behind_stores(const tensors *t, int fence_by) {
  begin();
  if (tid() == 40) keep(t->strided + 3, 2);
  if (tid() == 40 && fence_by == 40) api->fence_async_global();
  sync_all();
  if (tid() == 32 && fence_by == 32) api->fence_async_global();
  copy(0, t->strided, 32, 32);
  api->mbarrier_wait(bar(0), 0);
}

static void stored_unfenced(const void *p) { behind_stores(p, -1); }
static void fenced_by_storer(const void *p) { behind_stores(p, 40); }
static void fenced_elsewhere(const void *p) { behind_stores(p, 32); }

static void added_unfenced(const void *p) {
  const tensors *t = p;
  begin();
  if (tid() == 0) api->fence_async_global();
  if (tid() == 0) api->atomic_add_f32(t->strided + 7, 2);
  copy(0, t->strided, 32, 32);
  api->mbarrier_wait(bar(0), 0);
}

static void box_unfenced(const void *p) {
  const tensors *t = p;
  tensor_map map = map_of(t->out, 16, 2);
  begin();
  keep(t->out + tid(), 1);
  sync_all();
  if (tid()) return;
  api->mbarrier_expect(bar(0), 128);
  load(0, &map, 0, 0, 0);
  api->mbarrier_wait(bar(0), 0);
}

static const case_fault wrong[] = {
    {{stored_unfenced, 64, 1},
     "TMA reads byte 12 of tensor strided, element ?0,3], which a thread of *"},
    {{fenced_by_storer, 64, 1}, "TMA reads byte 12 of tensor strided, element ?0,3], which a *"},
    {{fenced_elsewhere, 64, 1}, "TMA reads byte 12 of tensor strided, element ?0,3], which a *"},
    {{added_unfenced, 64, 1},
     "TMA reads byte 28 of tensor strided, element ?0,7], which a thread of this grid wrote, and "
     "this one called no fence_async_global since *"},
    {{box_unfenced, 64, 1}, "TMA reads byte 0 of tensor out, element ?0], which a thread of *"},
    {{source_askew, 32, 1}, "bulk_load misaligned: its source is byte 8 of 256 of tensor in *"},
    {{target_askew, 32, 1}, "bulk_load misaligned: shared byte 4, *, not a multiple of 16 *"},
    {{odd_bytes, 32, 1}, "bulk_load of 24 bytes: want a multiple of 16 *"},
    {{no_bytes, 32, 1}, "bulk_load of 0 bytes: want a multiple of 16 *"},
    {{past_the_end, 32, 1}, "load past the end of tensor in: byte 256 of 256 *"},
    {{past_shared, 32, 1}, "bulk_load out of bounds: shared bytes 4080 to 4111 of 4096 *"},
    {{into_a_gap, 32, 1},
     "load touches a gap between rows of tensor strided: 16 bytes at byte 32*"},
    {{unwritten, 32, 1}, "load of an element never written: byte 0 of tensor out, element ?0] *"},
    {{no_barrier, 32, 1}, "bulk_load: there is no mbarrier at shared byte 1024 *"},
    {{no_fence, 32, 1},
     "TMA completes on the mbarrier at shared byte 1024, whose maker, thread 0*"},
    {{reads_early, 64, 1},
     "shared load at byte * while TMA for the mbarrier at byte 1024 is still filling it *|shared "
     "load at byte *, which was never written *|race: shared load at byte *, which TMA for *"},
    {{over_a_store, 32, 1},
     "TMA load at shared byte *, which thread * stored without a fence_async after it *"},
    {{too_few_expected, 32, 1}, "deadlock: *mbarrier at byte 1024: phase 0, 1 of 1 arrivals *"},
    {{changes_unordered, 64, 1},
     "race: store at byte 20 of tensor strided, *, which thread 0 loads: no barrier *|race: load "
     "at byte 20 of tensor strided, *, which thread 40 stores to: no barrier *"},
};

TEST_LOOP(wrong_kernels, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }

static const case_fault wrong_if_late[] = {
    {{nobody_waits, 64, 1}, "the block ends with a bulk_load to shared byte 0 in flight: nobody *"},
    {{changes_behind, 64, 1},
     "race: byte 0 of tensor strided, element ?0,0] was stored to while a bulk_load *|race: load "
     "at byte 20 of tensor strided, element ?0,5], which thread 40 stores to: *"},
    {{changes_own, 64, 1},
     "race: byte 0 of tensor strided, element ?0,0] was stored to while a bulk_load of the "
     "thread*"},
};

TEST_LOOP(wrong_kernels_if_late, sizeof wrong_if_late / sizeof *wrong_if_late) {
  case_expect_if_late(wrong_if_late[_i]);
}
