/* t_engine_async.c - the host device's engine on cp.async: copies land at the wait of their group
 * and not before, and every way to be too early is found under every seed. */
#include "engine_case.h"

#include <string.h>

/* 16 bytes, word `to` of shared memory on. */
static void copy(u32 to, const float *from) { api->cp_async(at(to), from, 16, 16); }
static void commit(void) { api->cp_async_commit(); }
static void wait(int in_flight) { api->cp_async_wait(in_flight); }

static float value(u32 word) {
  u32 bits = get(word);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* ---- right kernels ---- */

/* Groups land in order: of four, the wait that leaves n in flight gives 4 - n. */
static void in_order(const void *p) {
  const tensors *t = p;
  float sum = 0;
  u32 own = 32 * tid();
  for (u32 g = 0; g < 4; g++) {
    copy(own + 4 * g, t->in + 4 * g);
    api->cp_async(at(own + 16 + g), t->in + 20 + g, 4, 4);
    commit();
  }
  for (int n = 3; n >= 0; n--) {
    u32 g = (u32)(3 - n);
    wait(n);
    sum += value(own + 4 * g) + value(own + 4 * g + 3) + value(own + 16 + g);
  }
  keep(t->out + tid(), sum); /* 8 + 16 + 24 + 32 of groups 0 to 3, less the ends: see `right` */
}

/* Nothing is read where nothing is to be: the address may be any. Zeros land as copies do. */
static void zero_fill(const void *p) {
  const tensors *t = p;
  const float *nowhere = (const float *)64;
  u32 own = 8 * tid();
  put(own + 3, 7);
  api->cp_async(at(own), nowhere, 16, 0);
  api->cp_async(at(own + 4), nowhere, 4, 0);
  commit();
  wait(0);
  keep(t->out + tid(), value(own) + value(own + 3) + value(own + 4) + 1);
}

/* Empty groups count; a copy belongs to the next commit; a wait without groups is none. */
static void empty_groups(const void *p) {
  const tensors *t = p;
  u32 own = 8 * tid();
  wait(0);
  copy(own, t->in);
  commit();
  commit();
  copy(own + 4, t->in + 8);
  commit();
  wait(2);
  float first = value(own + 1);
  wait(0);
  keep(t->out + tid(), first + value(own + 4));
}

/* Three stages, each copied by all and read by all; one barrier a step keeps the next copy behind
 * the last reads. */
static void stages(const void *p) {
  const tensors *t = p;
  float sum = 0;
  for (u32 i = 0; i < 2; i++) {
    copy(256 * i + 4 * tid(), t->in + 4 * ((i + tid()) % 16));
    commit();
  }
  for (u32 i = 0; i < 8; i++) {
    wait(1);
    sync_all();
    u32 next = i + 2;
    if (next < 8) copy(256 * (next % 3) + 4 * tid(), t->in + 4 * ((next + tid()) % 16));
    commit();
    sum += value(256 * (i % 3) + 4 * (63 - tid()));
  }
  keep(t->out + tid(), sum);
}

/* The sum over i of in[4 * ((i + 63 - thread) % 16)]. */
static float staged(u32 thread) {
  float sum = 0;
  for (u32 i = 0; i < 8; i++) sum += (float)(4 * ((i + 63 - thread) % 16));
  return sum;
}

static float ordered(u32 thread) {
  float sum = 0;
  (void)thread;
  for (int g = 0; g < 4; g++) sum += (float)(4 * g + 4 * g + 3 + 20 + g);
  return sum;
}

static float one(u32 thread) { return (float)(thread - thread + 1); }
static float nine(u32 thread) { return 8 + one(thread); }

static const struct {
  job job;
  float (*expected)(u32 thread);
} right[] = {{{in_order, 32, 1}, ordered},
             {{zero_fill, 64, 1}, one},
             {{empty_groups, 64, 1}, nine},
             {{stages, 64, 1}, staged}};
enum { RIGHT = sizeof right / sizeof *right };

START_TEST(copies_land) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    ck_assert_msg(case_launch(right[_i].job, seed, memory) == FG_OK, "seed %d: %s", (int)seed,
                  fault.text);
    for (u32 i = 0; i < right[_i].job.block; i++)
      ck_assert_float_eq(made.out[i], right[_i].expected(i));
    case_drop(memory);
  }
}
END_TEST

/* ---- wrong kernels ---- */

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
  (void)p;
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
  api->cp_async(at(4 * tid()), ((const tensors *)p)->in, 16, 8);
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
    {{part_of_source, 32, 1}, "cp.async of 16 bytes that reads 8: want 4 or 16, and all or none *"},
};
enum { WRONG = sizeof wrong / sizeof *wrong };

START_TEST(fault_is_found) {
  for (u64 seed = 0; seed < SEEDS; seed++) case_expect(wrong[_i], seed);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("engine async");
  TCase *tcase = tcase_create("copies");
  tcase_add_loop_test(tcase, copies_land, 0, RIGHT);
  tcase_add_loop_test(tcase, fault_is_found, 0, WRONG);
  suite_add_tcase(suite, tcase);
  return suite_run(suite);
}
