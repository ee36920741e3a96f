/* t_engine_async_fault.c - wrong kernels with cp.async: copies do not land before the wait of their
 * group, and every way to be too early is found under every seed. */
#include "engine_case.h"

/* 16 bytes, word `to` of shared memory on. */
static void copy(u32 to, const float *from) { api->cp_async(at(to), from, 16, 16); }
static void commit(void) { api->cp_async_commit(); }
static void wait(int in_flight) { api->cp_async_wait(in_flight); }

static void no_wait(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  commit();
  get(4 * tid() + 2);
}

static void no_wait_block(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  commit();
  sync_all();
  get(4 * (63 - tid()));
}

static void weak_wait(const void *p) {
  for (u32 i = 0; i < 2; i++) {
    copy(8 * tid() + 4 * i, ((const tensors *)p)->in);
    commit();
  }
  wait(1);
  get(8 * tid());
  get(8 * tid() + 4);
}

static void no_commit(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  wait(0);
  get(4 * tid());
}

static void late_commit(const void *p) {
  copy(8 * tid(), ((const tensors *)p)->in);
  commit();
  copy(8 * tid() + 4, ((const tensors *)p)->in);
  wait(0);
  commit();
  get(8 * tid());
  get(8 * tid() + 4);
}

/* Waits are each thread's own: another's wait and a barrier land nothing of mine. */
static void others_wait(const void *p) {
  if (tid() < 32) {
    copy(4 * tid(), ((const tensors *)p)->in);
    commit();
  }
  if (tid() >= 32) wait(0);
  sync_all();
  get(4 * (tid() % 32));
}

static void no_barrier(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  commit();
  wait(0);
  get(4 * (63 - tid()));
}

static void no_warp_sync(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  commit();
  wait(0);
  get(4 * (tid() ^ 1));
}

static void barrier_before_wait(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  commit();
  sync_all();
  wait(0);
  get(4 * (63 - tid()));
}

static void store_in_flight(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  commit();
  put(4 * tid() + 1, 0);
  wait(0);
}

static void copy_in_flight(const void *p) {
  for (u32 i = 0; i < 2; i++) {
    copy(4 * tid(), ((const tensors *)p)->in);
    commit();
  }
  wait(0);
}

static void zeros_in_flight(const void *p) {
  api->cp_async(at(tid()), NULL, 4, 0);
  commit();
  get(tid());
}

static void refill_too_early(const void *p) {
  put(4 * tid(), 0);
  sync_all();
  get(4 * (63 - tid()));
  copy(4 * tid(), ((const tensors *)p)->in);
  commit();
  wait(0);
}

static void ends_in_flight(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  if (tid() == 0) commit();
  if (tid()) commit(), wait(0);
}

static void never_committed(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in);
  wait(0);
}

/* `out` is written, copied from, and written anew before the copy is waited for. */
static void source_changes(const void *p) {
  const tensors *t = p;
  if (tid()) return;
  for (u32 i = 0; i < 4; i++) keep(t->out + i, 1);
  copy(0, t->out);
  commit();
  keep(t->out + 3, 2);
  wait(0);
}

static void source_changes_behind_barrier(const void *p) {
  const tensors *t = p;
  keep(t->out + tid(), 1);
  sync_all();
  if (tid() == 3) copy(0, t->out);
  commit();
  sync_all();
  if (tid() == 63) keep(t->out + 1, 2);
  sync_all();
  wait(0);
}

static void source_races(const void *p) {
  const tensors *t = p;
  if (tid() < 4) keep(t->out + tid(), 1);
  sync_all();
  if (tid() == 3) copy(0, t->out);
  commit();
  if (tid() == 40) keep(t->out, 2);
  wait(0);
}

static void source_unwritten(const void *p) { copy(4 * tid(), ((const tensors *)p)->out); }
static void source_askew(const void *p) { copy(4 * tid(), ((const tensors *)p)->in + 2); }
static void target_askew(const void *p) { copy(4 * tid() + 1, ((const tensors *)p)->in); }
static void past_source(const void *p) {
  copy(4 * tid(), ((const tensors *)p)->in + 4 * tid());
  commit();
  wait(0);
}

static void past_target(const void *p) {
  copy(1020 + 4 * tid(), ((const tensors *)p)->in);
  commit();
  wait(0);
}

static void part_of_source(const void *p) {
  api->cp_async(at(4 * tid()), ((const tensors *)p)->in, 16, 7);
}

#define FILLING "shared load at byte * while a cp.async of thread * is still filling it *"
/* Each sentence in full but for what the seed decides: case_expect has the stars. */
static const case_fault wrong[] = {
    {{no_wait, 32, 1},
     "shared load at byte * while a cp.async of thread * is still filling it ?block 0,0,0 thread "
     "*]"},
    {{no_wait_block, 64, 1}, FILLING},
    {{weak_wait, 32, 1}, FILLING},
    {{no_commit, 32, 1}, FILLING},
    {{late_commit, 32, 1}, FILLING},
    {{others_wait, 64, 1}, FILLING},
    {{no_barrier, 64, 1},
     "race: shared load at byte *, which thread * wrote: no barrier orders the two*|" FILLING
     "|shared load at byte *, which was never written *"},
    {{no_warp_sync, 32, 1},
     "race: shared load at byte *, which thread * wrote: no warp_sync or barrier orders *|" FILLING
     "|shared load at byte *, which was never written *"},
    {{barrier_before_wait, 64, 1},
     "race: shared load at byte *, which thread * wrote: no barrier orders the two*|" FILLING},
    {{store_in_flight, 32, 1},
     "shared store at byte * while a cp.async of thread * is still filling it *"},
    {{copy_in_flight, 32, 1},
     "shared cp.async at byte * while a cp.async of thread * is still filling it *"},
    {{zeros_in_flight, 32, 1}, FILLING},
    {{refill_too_early, 64, 1},
     "race: shared cp.async at byte *, which * read*: no barrier orders *|" FILLING
     "|race: shared load at byte *, which thread * wrote: no barrier orders *"},
    {{ends_in_flight, 64, 1},
     "the thread ends with a cp.async to shared byte 0 in flight: it never waits for it ?block "
     "0,0,0 thread 0]"},
    {{never_committed, 32, 1}, "the thread ends with a cp.async to shared byte * in flight: *"},
    {{source_changes, 32, 1},
     "race: byte 0 of 256 of tensor out was stored to while a cp.async of the thread was reading "
     "*"},
    {{source_changes_behind_barrier, 64, 1},
     "race: byte 0 of 256 of tensor out was stored to while a cp.async of the thread was reading "
     "*"},
    {{source_races, 64, 1}, "race: * at byte 0 of tensor out, element ?0], which thread * *"},
    {{source_unwritten, 32, 1}, "load of an element never written: byte 0 of tensor out, *"},
    {{past_source, 32, 1}, "load past the end of tensor in: byte * of 256 *"},
    {{source_askew, 32, 1}, "cp.async misaligned: 16 bytes at byte 8 of 256 of tensor in *"},
    {{target_askew, 32, 1}, "shared cp.async misaligned: 16 bytes at byte *"},
    {{past_target, 32, 1}, "shared cp.async out of bounds: bytes * to * of 4096 *"},
    {{part_of_source, 32, 1},
     "cp.async of 16 bytes that reads 7: want 4 or 16, and an even number of them *"},
};

TEST_LOOP(fault_is_found, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }
