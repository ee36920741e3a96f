/* t_engine_flag.c - counters in global memory by which blocks tell each other: what right kernels
 * get under every seed, and what wrong ones are told. */
#include "engine_case.h"

#include <math.h>

/* ---- right ---- */

/* Each block writes 8 elements; the one that comes last adds them up. */
static void last_sums(const void *p) {
  const tensors *t = p;
  if (tid() >= 32 && tid() < 40) keep(t->out + 8 * api->block_index.x + tid() - 32, (float)tid());
  sync_all();
  if (tid() == 0) api->atomic_add_u32(t->count, 1, 1);
  if (tid() == 0) {
    u32 last = api->atomic_add_u32(t->count + 1, 1, 0) == api->grid_dim.x - 1;
    put(0, last ? api->load_acquire_u32(t->count) : 0);
  }
  sync_all();
  if (get(0) != api->grid_dim.x || tid() >= 8) return;
  float sum = 0;
  for (u32 i = 0; i < api->grid_dim.x; i++) sum += fetch(t->out + 8 * i + tid());
  keep(t->out + 56 + tid(), sum);
}

static float of_last(u32 i) {
  return i < 40 ? (float)(32 + i % 8) : i < 56 ? NAN : 160 + 5 * (float)(i % 8);
}

/* The number of the block in the order in which they begin, for all threads. */
static u32 ticket(const tensors *t) {
  if (tid() == 0) put(0, api->atomic_add_u32(t->count, 1, 0));
  sync_all();
  return get(0);
}

/* Each block waits for the one before alone, and reads what all before have written. */
static void chain(const void *p) {
  const tensors *t = p;
  u32 number = ticket(t);
  if (tid() == 0 && number) api->flag_wait(t->count + number, 1);
  sync_all();
  float sum = 1;
  for (u32 i = 0; i < number; i++) sum += fetch(t->out + 8 * i + tid() % 8);
  sync_all();
  if (tid() >= 56) keep(t->out + 8 * number + tid() - 56, sum);
  sync_all();
  if (tid() == 9) api->atomic_add_u32(t->count + number + 1, 1, 1);
}

static float of_chain(u32 i) { return i < 40 ? (float)(1 << i / 8) : NAN; }

/* What one thread was given, it passes on through an mbarrier, a warp_sync and a named barrier. */
static void passed_on(const void *p) {
  const tensors *t = p;
  u32 bar = at(8);
  if (api->block_index.x == 1) {
    if (tid() == 0) keep(t->out, 5);
    if (tid() == 0) api->atomic_add_u32(t->count, 1, 1);
    return;
  }
  if (tid() == 0) {
    api->mbarrier_init(bar, 1);
    api->fence_barrier_init();
  }
  sync_all();
  float x = 0;
  if (tid() < 32) {
    if (tid() == 3) api->flag_wait(t->count, 1);
    api->warp_sync(~0u);
    if (tid() == 7) api->mbarrier_arrive(bar);
    if (tid() == 9) x = fetch(t->out);
  } else if (tid() < 64) {
    api->mbarrier_wait(bar, 0);
    x = fetch(t->out);
    api->barrier_sync(2, 64);
  } else {
    api->barrier_sync(2, 64);
    x = fetch(t->out);
  }
  if (tid() == 9 || tid() == 33 || tid() == 65) keep(t->out + tid() / 32 + 1, x + 1);
}

static float of_passed(u32 i) { return i < 4 ? i ? 6 : 5 : NAN; }

/* A warp waits for a flag that another one of its block sets. */
static void own_block(const void *p) {
  const tensors *t = p;
  if (tid() < 32) {
    keep(t->out + tid(), 3);
    api->warp_sync(~0u);
    if (lane() == 0) api->store_release_u32(t->count, 4);
  } else {
    api->flag_wait(t->count, 4);
    keep(t->out + tid(), fetch(t->out + 63 - tid()) + 1);
  }
}

static float of_own(u32 i) { return i < 32 ? 3 : 4; }

/* Counters may pass 2^32, and a wait for what was passed returns. */
static void wraps(const void *p) {
  const tensors *t = p;
  if (tid() >= 32) return;
  if (tid() == 0) api->store_release_u32(t->count, 0xfffffff0u);
  if (tid() == 7) api->flag_wait(t->count, 0xfffffff0u);
  if (tid() == 1) api->flag_wait(t->count, 5);
  if (tid() == 3) {
    while ((int)(api->load_acquire_u32(t->count) - 0xfffffff0u) < 0 ||
           !api->load_acquire_u32(t->count))
      continue;
    api->atomic_add_u32(t->count, 0x20, 1);
  }
  api->warp_sync(~0u);
  keep(t->out + tid(), 1);
}

static float of_wraps(u32 i) { return i < 32 ? 1 : NAN; }

/* Two blocks write in turns what the other one reads. */
static void in_turns(const void *p) {
  const tensors *t = p;
  u32 own = api->block_index.x;
  u32 *flag = t->count + own, *other = t->count + (1 - own);
  float x = 0;
  for (u32 i = 0; i < 5; i++) {
    if (own || i) {
      if (tid() == 5) api->flag_wait(other, i + own);
      sync_all();
      x = fetch(t->out + tid() % 32 + 32 * (1 - own));
    }
    sync_all();
    if (tid() < 32) keep(t->out + 32 * own + tid(), x + 1);
    sync_all();
    if (tid() == 60) api->atomic_add_u32(flag, 1, 1);
  }
}

static float of_turns(u32 i) { return i < 32 ? 9 : 10; }

/* Each block needs what the one that begins after it writes; the threads ask again and again. */
static void needs_later(const void *p) {
  const tensors *t = p;
  u32 number = ticket(t);
  if (tid() == 3 && number + 1 < api->grid_dim.x)
    while (api->load_acquire_u32(t->count + number + 2) == 0) continue;
  sync_all();
  float x = number + 1 < api->grid_dim.x ? fetch(t->out + number + 1) : 0;
  sync_all();
  if (tid() == 9) keep(t->out + number, x + 1);
  if (tid() == 9) api->store_release_u32(t->count + number + 1, 1);
}

static float of_later(u32 i) { return i < 4 ? (float)(4 - i) : NAN; }

/* Clusters in place of blocks, of which each waits for the other's first block. */
static void clusters_wait(const void *p) {
  const tensors *t = p;
  u32 own = api->block_index.x / 2;
  if (api->cluster_rank() == 0 && tid() == 0) {
    keep(t->out + own, 7);
    api->atomic_add_u32(t->count + own, 1, 1);
  }
  if (api->cluster_rank() == 1 && tid() == 0) {
    api->flag_wait(t->count + (1 - own), 1);
    keep(t->out + 2 + own, fetch(t->out + (1 - own)));
  }
}

static float of_clusters(u32 i) { return i < 4 ? 7 : NAN; }

static const struct {
  job job;
  float (*expected)(u32 i);
  struct case_extra extra;
} right[] = {
    {{last_sums, 64, 5}, of_last, {1, 0, 1}},        {{last_sums, 64, 5}, of_last, {1, 0, 3}},
    {{chain, 64, 5}, of_chain, {1, 0, 1}},           {{chain, 64, 5}, of_chain, {1, 0, 2}},
    {{chain, 64, 5}, of_chain, {1, 0, 4}},           {{passed_on, 96, 2}, of_passed, {1, 0, 2}},
    {{own_block, 64, 1}, of_own, {1, 0, 1}},         {{wraps, 64, 1}, of_wraps, {1, 0, 1}},
    {{in_turns, 64, 2}, of_turns, {1, 0, 2}},        {{needs_later, 64, 4}, of_later, {1, 0, 4}},
    {{clusters_wait, 32, 4}, of_clusters, {2, 0, 2}}};
enum { RIGHT = sizeof right / sizeof *right };

START_TEST(right_kernels) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    case_extra = right[_i].extra;
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

static void never_reached(const void *p) {
  const tensors *t = p;
  if (tid() == 0) api->atomic_add_u32(t->count + 2, 1, 1);
  if (tid() == 40) api->flag_wait(t->count + 2, 3);
}

static void waits_for_later(const void *p) {
  const tensors *t = p;
  u32 number = ticket(t);
  if (tid() == 3 && number < 3) api->flag_wait(t->count + number + 2, 1);
  sync_all();
  if (tid() == 9) api->store_release_u32(t->count + number + 1, 1);
}

/* What one lane was given is not its neighbour's, nor a shuffle's to pass on. */
static void not_passed_on(const void *p) {
  const tensors *t = p;
  if (api->block_index.x == 1) {
    if (tid() == 0) keep(t->out, 5);
    if (tid() == 0) api->atomic_add_u32(t->count, 1, 1);
    return;
  }
  if (tid() == 3) api->flag_wait(t->count, 1);
  api->shuffle(~0u, 0, 3);
  if (tid() == 4) fetch(t->out);
}

/* One of three blocks reads the sum of all when it knows of another's part alone. */
static void reads_early(const void *p) {
  const tensors *t = p;
  u32 number = ticket(t);
  if (tid()) return;
  if (number == 0) {
    api->flag_wait(t->count + 1, 1);
    fetch(t->strided);
  } else {
    api->atomic_add_f32(t->strided, 1);
    api->atomic_add_u32(t->count + number, 1, 1);
  }
}

/* Two blocks that run together write one element. */
static void stores_together(const void *p) {
  const tensors *t = p;
  u32 own = api->block_index.x;
  if (tid()) return;
  if (own == 0) keep(t->out, 1);
  api->atomic_add_u32(t->count + own, 1, own == 1);
  if (own == 1) keep(t->out, 2);
  api->flag_wait(t->count + (1 - own), 1);
}

/* What an element of the block before holds, each step but one done rightly. */
typedef enum skip { NOTHING, MEETING_BEFORE, RELEASE, ACQUIRE, MEETING_BEHIND, LAST_STORE } skip;

static void pass_on(const tensors *t, skip s) {
  u32 number = ticket(t);
  u32 *flag = t->count + 1;
  if (tid() == 33) keep(t->out + number, 1);
  if (s != MEETING_BEFORE) sync_all();
  if (tid() == 0 && s == LAST_STORE) api->store_release_u32(flag, number + 1);
  if (tid() == 0 && s != LAST_STORE) api->atomic_add_u32(flag, 1, s != RELEASE);
  if (tid() == 0 && number == 2) {
    u32 seen;
    if (s == ACQUIRE)
      api->global_load(flag, &seen, 4);
    else
      api->flag_wait(flag, 3);
  }
  if (s != MEETING_BEHIND) sync_all();
  if (number == 2 && tid() == 5) fetch(t->out);
}

static void not_met_before(const void *p) { pass_on(p, MEETING_BEFORE); }
static void not_released(const void *p) { pass_on(p, RELEASE); }
static void not_acquired(const void *p) { pass_on(p, ACQUIRE); }
static void not_met_behind(const void *p) { pass_on(p, MEETING_BEHIND); }
static void stored_over(const void *p) { pass_on(p, LAST_STORE); }

static void flag_askew(const void *p) {
  const tensors *t = p;
  api->flag_wait((const u32 *)(const void *)((const u8 *)t->count + 2), 1);
}

static void flag_unwritten(const void *p) {
  api->load_acquire_u32((const u32 *)(const void *)((const tensors *)p)->out);
}

static void flag_read_only(const void *p) {
  api->store_release_u32((u32 *)(uintptr_t)((const tensors *)p)->in, 1);
}

static void plain_store(const void *p) {
  const tensors *t = p;
  if (tid() == 0) keep((float *)(void *)t->count, 1);
  if (tid() == 33) api->load_acquire_u32(t->count);
}

static const struct {
  case_fault wrong;
  u32 resident;
} list[] = {
    {{{never_reached, 64, 1},
      "deadlock: no thread can run ?block 0,0,0]\n  flag at byte 8 of tensor count, element ?2]: "
      "it "
      "is 1, awaited is 3\n*warp 1 lanes 8-8 wait in flag_wait(until 3)\n*"},
     1},
    {{{waits_for_later, 64, 4},
      "deadlock: no thread can run *flag at byte 8 of tensor count, element ?2]: it is 0, awaited "
      "is 1\n  3 more are to come when one of the 1 that run has ended\n*"},
     1},
    {{{waits_for_later, 64, 4},
      "deadlock: no thread can run *flag at byte * of tensor count, element ?[234]]: it is 0, "
      "awaited is 1\n*  1 more are to come when one of the 3 that run has ended\n*"},
     3},
    {{{not_passed_on, 32, 2},
      "race: load at byte 0 of tensor out, *, which another block stores *"},
     2},
    {{{reads_early, 64, 3},
      "race: load at byte 0 of tensor strided, *, which another block adds to: *|race: atomic add "
      "at byte 0 of tensor strided, *, which another block loads: *"},
     3},
    {{{stores_together, 64, 2},
      "race: store at byte 0 of tensor out, element ?0], which another block stores to: *"},
     2},
    {{{not_met_before, 64, 3},
      "race: load at byte 0 of tensor out, *, which another block stores to*"},
     1},
    {{{not_met_before, 64, 3},
      "race: load at byte 0 of tensor out, *, which another block stores to*|load of an element "
      "never written: byte 0 of tensor out, *|race: store at byte 0 of tensor out, *, which "
      "another "
      "block loads: *"},
     3},
    {{{not_released, 64, 3},
      "race: load at byte 0 of tensor out, *, which another block stores to*"},
     1},
    {{{not_released, 64, 3},
      "race: load at byte 0 of tensor out, *, which another block stores to*"},
     3},
    {{{not_acquired, 64, 3}, "race: load at byte 4 of tensor count, *, which * adds to: *"}, 1},
    {{{not_met_behind, 64, 3},
      "race: load at byte 0 of tensor out, *, which another block stores to*"},
     1},
    {{{stored_over, 64, 3},
      "race: load at byte 0 of tensor out, *, which another block stores to*"},
     1},
    {{{flag_askew, 32, 1}, "load_acquire misaligned: 4 bytes at byte 2 of 256 of tensor count *"},
     1},
    {{{flag_unwritten, 32, 1}, "load_acquire of an element never written: byte 0 of tensor out, *"},
     1},
    {{{flag_read_only, 32, 1}, "store_release to a read-only tensor: byte 0 of tensor in, *"}, 1},
    {{{plain_store, 64, 1}, "race: * at byte 0 of tensor count, *, which thread * *: no barrier *"},
     1},
};
enum { WRONG = sizeof list / sizeof *list };

START_TEST(wrong_kernels) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    case_extra = (struct case_extra){1, 0, list[_i].resident};
    case_expect(list[_i].wrong, seed);
  }
}
END_TEST

static void nothing_skipped(const void *p) { pass_on(p, NOTHING); }

/* The kernel that the bugs are planted in is right. */
START_TEST(nothing_is_wrong) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    case_extra.resident = 1 + (u32)seed % 3;
    ck_assert_msg(case_launch((job){nothing_skipped, 64, 3}, seed, memory) == FG_OK, "%s",
                  fault.text);
    case_drop(memory);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("engine flag");
  TCase *tcase = tcase_create("flags");
  tcase_add_loop_test(tcase, right_kernels, 0, RIGHT);
  tcase_add_loop_test(tcase, wrong_kernels, 0, WRONG);
  tcase_add_test(tcase, nothing_is_wrong);
  suite_add_tcase(suite, tcase);
  return suite_run(suite);
}
