/* t_engine_flag_fault.c - wrong kernels with counters in global memory: waits that never end, and
 * what one block reads before the other has told it, found under every seed. */
#include "engine_case.h"

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

static const case_fault wrong[] = {
    {{never_reached, 64, 1},
     "deadlock: no thread can run ?block 0,0,0]\n  flag at byte 8 of tensor count, element ?2]: "
     "it is 1, awaited is 3\n*warp 1 lanes 8-8 wait in flag_wait(until 3)\n*"},
    {{waits_for_later, 64, 4},
     "deadlock: no thread can run *flag at byte 8 of tensor count, element ?2]: it is 0, awaited "
     "is 1\n  3 more are to come when one of the 1 that run has ended\n*"},
    {{waits_for_later, 64, 4},
     "deadlock: no thread can run *flag at byte * of tensor count, element ?[234]]: it is 0, "
     "awaited is 1\n*  1 more are to come when one of the 3 that run has ended\n*",
     {0, 0, 3}},
    {{not_passed_on, 32, 2},
     "race: load at byte 0 of tensor out, *, which another block stores *",
     {0, 0, 2}},
    {{reads_early, 64, 3},
     "race: load at byte 0 of tensor strided, *, which another block adds to: *|race: atomic add "
     "at byte 0 of tensor strided, *, which another block loads: *",
     {0, 0, 3}},
    {{stores_together, 64, 2},
     "race: store at byte 0 of tensor out, element ?0], which another block stores to: *",
     {0, 0, 2}},
    {{not_met_before, 64, 3},
     "race: load at byte 0 of tensor out, *, which another block stores to*"},
    {{not_met_before, 64, 3},
     "race: load at byte 0 of tensor out, *, which another block stores to*|load of an element "
     "never written: byte 0 of tensor out, *|race: store at byte 0 of tensor out, *, which "
     "another block loads: *",
     {0, 0, 3}},
    {{not_released, 64, 3},
     "race: load at byte 0 of tensor out, *, which another block stores to*"},
    {{not_released, 64, 3},
     "race: load at byte 0 of tensor out, *, which another block stores to*",
     {0, 0, 3}},
    {{not_acquired, 64, 3}, "race: load at byte 4 of tensor count, *, which * adds to: *"},
    {{not_met_behind, 64, 3},
     "race: load at byte 0 of tensor out, *, which another block stores to*"},
    {{stored_over, 64, 3}, "race: load at byte 0 of tensor out, *, which another block stores to*"},
    {{flag_askew, 32, 1}, "load_acquire misaligned: 4 bytes at byte 2 of 256 of tensor count *"},
    {{flag_unwritten, 32, 1}, "load_acquire of an element never written: byte 0 of tensor out, *"},
    {{flag_read_only, 32, 1}, "store_release to a read-only tensor: byte 0 of tensor in, *"},
    {{plain_store, 64, 1}, "race: * at byte 0 of tensor count, *, which thread * *: no barrier *"},
};

TEST_LOOP(wrong_kernels, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }

static void nothing_skipped(const void *p) { pass_on(p, NOTHING); }

/* The kernel that the bugs are planted in is right. */
TEST(nothing_is_wrong) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    case_extra.resident = 1 + (u32)seed % 3;
    ck_assert_msg(case_launch((job){nothing_skipped, 64, 3}, seed, memory) == FG_OK, "%s",
                  fault.text);
    case_drop(memory);
  }
}
