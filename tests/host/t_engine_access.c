/* t_engine_access.c - the host device's engine on kernels that touch memory wrongly: each fault,
 * planted once, is found under every seed, by rule; and the next launch works. */
#include "engine_case.h"

static void no_barrier(const void *p) {
  put(tid(), 0);
  sync_all();
  put(tid(), tid());
  get((tid() + 32) % 64);
}

static void no_warp_sync(const void *p) {
  put(tid(), 0);
  sync_all();
  put(tid(), tid());
  api->shuffle(~0u, 0, 0);
  get(tid() ^ 1);
}

static void no_second_warp_sync(const void *p) {
  put(tid(), 0);
  sync_all();
  get(5);
  api->ballot(~0u, 1);
  if (tid() == 7) put(5, 1);
}

static void half_warp_sync(const void *p) {
  put(tid(), 0);
  api->warp_sync(~0u);
  put(tid(), tid());
  api->warp_sync(tid() < 16 ? 0xffff : 0xffff0000);
  get(tid() ^ 16);
}

static void arrive_only(const void *p) {
  put(tid(), 0);
  sync_all();
  if (tid() < 32) {
    put(tid(), 1);
    api->barrier_arrive(1, 64);
    get(tid() ^ 1);
  } else {
    api->barrier_sync(1, 64);
  }
}

static void read_before_refill(const void *p) {
  put(tid(), 0);
  sync_all();
  if (tid() < 32)
    get(40);
  else
    put(tid(), 1);
}

static void one_word_warp(const void *p) {
  if (lane() < 2) put(3, lane());
}

static void one_word_block(const void *p) {
  if (lane() == 9) put(3, tid());
}

static void one_word_out(const void *p) {
  const tensors *t = p;
  if (lane() == 9) keep(t->out, (float)tid());
}

static void one_word_grid(const void *p) {
  const tensors *t = p;
  if (tid() == 0) keep(t->out + 1, 0);
}

static void plain_and_atomic(const void *p) {
  const tensors *t = p;
  if (tid()) return;
  if (api->block_index.x)
    keep((float *)(void *)t->count, 1);
  else
    api->atomic_add_u64((u64 *)(void *)t->count, 1);
}

static void load_and_atomic(const void *p) {
  const tensors *t = p;
  u32 x;
  api->atomic_add_u64((u64 *)(void *)t->count + tid() % 8, 1);
  sync_all();
  if (tid() == 0) api->global_load(t->count, &x, 4);
}

static void not_met_before(const void *p) { case_hand_over(p, BARRIER_BEFORE); }
static void not_fenced_before(const void *p) { case_hand_over(p, FENCE_BEFORE); }
static void not_fenced_behind(const void *p) { case_hand_over(p, FENCE_BEHIND); }

static void load_and_store(const void *p) {
  const tensors *t = p;
  for (int i = 0; i < 3; i++) {
    fetch(t->strided + 3);
    sync_all();
  }
  if (tid() == 0 && api->block_index.x == 1) keep(t->strided + 3, 1);
}

static void out_unordered(const void *p) {
  const tensors *t = p;
  keep(t->out + tid(), 1);
  fetch(t->out + (tid() + 32) % 64);
}

static void past_shared(const void *p) { put(1024 - tid(), 1); }

static void before_shared(const void *p) {
  u32 x;
  if (tid() == 3) api->shared_load(api->shared_base() - 4, &x, 4);
}

static void shared_askew(const void *p) {
  u64 x[2] = {0, 0};
  api->shared_store(at(1 + 4 * tid()), x, 16);
}

static void shared_unwritten(const void *p) {
  put(tid(), 0);
  api->warp_sync(~0u);
  get(tid() + 1);
}

static void past_store(const void *p) { keep(((const tensors *)p)->out + tid() + 33, 1); }
static void past_load(const void *p) { fetch(((const tensors *)p)->in + tid() + 33); }
static void before_load(const void *p) { fetch(((const tensors *)p)->in + tid() - 1); }
static void into_gap(const void *p) { keep(((const tensors *)p)->strided + PITCH + COLS, 1); }

static void across_gap(const void *p) {
  float x[4];
  api->global_load(((const tensors *)p)->strided + 2 * PITCH + 4, x, 16);
  api->global_load(((const tensors *)p)->strided + PITCH - 4, x, 16);
}

static void half_element(const void *p) {
  u16 x;
  api->global_load(((const tensors *)p)->in, &x, 2);
}

static void global_askew(const void *p) {
  float x[4];
  api->global_load(((const tensors *)p)->in + 2, x, 16);
}

static void odd_size(const void *p) {
  float x[4];
  api->global_load(((const tensors *)p)->in, x, 12);
}

static void global_unwritten(const void *p) { fetch(((const tensors *)p)->out + 17); }

static void read_only(const void *p) {
  float *in = (float *)(uintptr_t)((const tensors *)p)->in;
  if (tid() == 4) keep(in + 4, 1);
}

static void read_only_atomic(const void *p) {
  api->atomic_add_f32((float *)(uintptr_t)((const tensors *)p)->in, 1);
}

/* The word holds something else: it stays what nobody wrote. */
static void swap_in_vain(const void *p) {
  u64 *word = (u64 *)(void *)((const tensors *)p)->out;
  api->atomic_cas_u64(word, *word + 1, 5);
  api->atomic_add_u64(word, 1);
}

static void swap_and_store(const void *p) {
  const tensors *t = p;
  if (tid() < 32)
    api->atomic_cas_u64((u64 *)(void *)t->count, 7, 5);
  else if (tid() == 40)
    keep((float *)(void *)(t->count + 1), 1);
}

static void read_only_swap(const void *p) {
  api->atomic_cas_u64((u64 *)(uintptr_t)((const tensors *)p)->in, 0, 1);
}

static void reduce_askew(const void *p) {
  const float x[4] = {0};
  api->reduce_f32(((const tensors *)p)->strided + 2, x, 4);
}

static void reduce_into_gap(const void *p) {
  const float x[4] = {0};
  api->reduce_f32(((const tensors *)p)->strided + COLS, x, 4);
}

static void reduce_and_store(const void *p) {
  const float x[4] = {0};
  const tensors *t = p;
  if (tid() < 32)
    api->reduce_f32(t->strided, x, 4);
  else if (tid() == 40)
    keep(t->strided + 3, 1);
}

/* Each sentence in full but for what the seed decides: case_expect has the stars. */
static const case_fault wrong[] = {
    {{no_barrier, 64, 1}, "race: shared * at byte *, which thread * *: no barrier orders*"},
    {{no_warp_sync, 32, 1},
     "race: shared * at byte *, which thread * *: no warp_sync or barrier orders the two*"},
    {{no_second_warp_sync, 32, 1},
     "race: shared store at byte 20, which several lanes of warp 0 read: no warp_sync or barrier*"},
    {{half_warp_sync, 32, 1}, "race: shared * at byte *, which thread *: no warp_sync or barrier*"},
    {{arrive_only, 64, 1}, "race: shared *: no warp_sync or barrier orders the two*"},
    {{read_before_refill, 64, 1}, "race: shared * at byte 160, which *: no barrier orders *"},
    {{one_word_warp, 32, 1},
     "race: shared store at byte 12, which thread * wrote: no warp_sync or barrier orders the two"
     " ?block 0,0,0 thread *]"},
    {{one_word_block, 64, 1}, "race: shared store at byte 12, which thread * wrote: no barrier*"},
    {{one_word_out, 64, 1},
     "race: store at byte 0 of tensor out, element ?0], which thread * stores to: no barrier*"},
    {{one_word_grid, 32, 2},
     "race: store at byte 4 of tensor out, element ?1], which another block stores to: nothing*"},
    {{plain_and_atomic, 32, 2}, "race: * at byte 0 of tensor count, *, which another block *"},
    {{load_and_atomic, 32, 3}, "race: * at byte 0 of tensor count, *, which another block *"},
    {{not_met_before, 64, 3}, "race: load at * of tensor out, *, which another block stores to*"},
    {{not_fenced_before, 64, 3},
     "race: load at * of tensor out, *, which another block stores to*"},
    {{not_fenced_behind, 64, 3},
     "race: load at * of tensor out, *, which another block stores to*"},
    {{load_and_store, 64, 3}, "race: * at byte 12 of tensor strided, *, which another block *"},
    {{out_unordered, 64, 1}, "race: load at byte * of tensor out, *|load of an element never*"},
    {{past_shared, 32, 1}, "shared store out of bounds: bytes 4096 to 4099 of 4096 *"},
    {{before_shared, 32, 1}, "shared load out of bounds: 4 bytes before the first *"},
    {{shared_askew, 32, 1}, "shared store misaligned: 16 bytes at byte *"},
    {{shared_unwritten, 32, 1}, "shared load at byte 128, which was never written *"},
    {{past_store, 32, 1}, "store past the end of tensor out: byte 256 of 256 *"},
    {{past_load, 32, 1}, "load past the end of tensor in: byte 256 of 256 *"},
    {{before_load, 32, 1}, "load before the start of tensor in: 4 bytes before *"},
    {{into_gap, 32, 1}, "store touches a gap between rows of tensor strided: 4 bytes at byte 80 *"},
    {{across_gap, 32, 1},
     "load touches a gap between rows of tensor strided: 16 bytes at byte 32*"},
    {{half_element, 32, 1}, "load of part of an element of tensor in: 2 bytes at byte 0, *"},
    {{global_askew, 32, 1}, "load misaligned: 16 bytes at byte 8 of 256 of tensor in *"},
    {{odd_size, 32, 1}, "load of 12 bytes: there are 2, 4, 8 and 16 *"},
    {{global_unwritten, 32, 1},
     "load of an element never written: byte 68 of tensor out, element ?17] *"},
    {{read_only, 32, 1}, "store to a read-only tensor: byte 16 of tensor in, element ?4] *"},
    {{read_only_atomic, 32, 1}, "atomic add to a read-only tensor: byte 0 of tensor in, *"},
    {{swap_in_vain, 32, 1}, "atomic add of an element never written: byte 0 of tensor out, *"},
    {{swap_and_store, 64, 1},
     "race: * at byte * of tensor count, *, which thread * *: no barrier orders *"},
    {{read_only_swap, 32, 1}, "compare and swap to a read-only tensor: byte 0 of tensor in, *"},
    {{reduce_askew, 32, 1}, "atomic add misaligned: 16 bytes at byte 8 of * of tensor strided *"},
    {{reduce_into_gap, 32, 1},
     "atomic add touches a gap between rows of tensor strided: 16 bytes at byte 32 *"},
    {{reduce_and_store, 64, 1},
     "race: * at byte 12 of tensor strided, *, which thread * *: no barrier orders *"},
};

TEST_LOOP(fault_is_found, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }
