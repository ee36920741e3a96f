/* t_engine.c - the host device's engine on right kernels: they pass under every seed, seeds order
 * all, and memory is what it was registered as. t_engine_access.c and t_engine_meet.c have the
 * wrong ones. */
#include "engine_case.h"
#include "host/clock.h"
#include "status.h"

#include <string.h>

/* A tree through shuffles in each warp, through shared memory between warps. */
static void reduce(const void *p) {
  const tensors *t = p;
  u32 sum = (u32)fetch(t->in + tid() % ALL);
  for (u32 step = 16; step; step /= 2) sum += api->shuffle(~0u, sum, (int)(lane() ^ step));
  if (lane() == 0) put(tid() / 32, sum);
  sync_all();
  u32 total = 0;
  for (u32 w = 0; w < api->block_dim.x / 32; w++) total += get(w);
  if (tid() == 0) keep(t->out + api->block_index.x, (float)total);
}

/* Warp 0 fills two buffers in turn, warps 1 and 2 read them: full is barrier 1 + b, empty 3 + b. */
static void pipeline(const void *p) {
  const tensors *t = p;
  u32 sum = 0;
  for (u32 i = 0; i < 8; i++) {
    u32 b = i % 2;
    if (tid() / 32 == 0) {
      if (i >= 2) api->barrier_sync((int)(3 + b), 96);
      put(b * 32 + lane(), i + lane());
      api->barrier_arrive((int)(1 + b), 96);
    } else {
      api->barrier_sync((int)(1 + b), 96);
      sum += get(b * 32 + 31 - lane());
      if (i < 6) api->barrier_arrive((int)(3 + b), 96);
    }
  }
  if (tid() / 32) keep(t->out + tid() - 32, (float)sum);
}

/* Halves of a warp vote and shuffle on their own; one goes ahead to where all meet. */
static void halves(const void *p) {
  const tensors *t = p;
  u32 half = lane() < 16 ? 0xffff : 0xffff0000, votes = 0, got = 0;
  if (lane() < 16) {
    votes = api->ballot(half, lane() % 2);
    got = api->shuffle(half, lane(), (int)(15 - lane()));
  } else if (lane() % 2) {
    votes = api->ballot(0xaaaa0000, lane() > 20);
  }
  u32 all = api->ballot(~0u, lane() < 3);
  keep(t->out + tid(), (float)(votes % 65536 + got + all + (votes >> 16)));
}

/* Lanes exchange words, in one warp, in halves, in pairs, with no more syncs than rules ask for. */
static void exchange(const void *p) {
  const tensors *t = p;
  put(lane(), lane());
  api->warp_sync(~0u);
  u32 x = get(31 - lane()), half = lane() < 16 ? 0xffff : 0xffff0000;
  x += get(0);
  api->warp_sync(~0u);
  put(lane() ^ 1, x);
  api->warp_sync(half);
  x = get((lane() & 16) + (lane() + 5) % 16);
  api->warp_sync(half);
  if (lane() % 16 < 8) {
    put(lane(), x);
    api->warp_sync(half & 0x00ff00ff);
    x = get(lane() ^ 7);
  }
  api->warp_sync(half);
  if (lane() % 16 == 9) put(lane() & 16, 7);
  keep(t->out + tid(), (float)x);
}

static void count(const void *p) {
  const tensors *t = p;
  u64 ticket = api->atomic_add_u64((u64 *)(void *)t->count, 1);
  api->atomic_add_f32(t->strided + COLS - 1, 0.5f);
  keep(t->out + ticket, (float)(api->block_index.x * 32 + lane()));
}

/* The first of all opens a word that nobody wrote; all count with it. */
static void open_and_count(const void *p) {
  u64 *word = (u64 *)(void *)((const tensors *)p)->out, seen = api->atomic_cas_u64(word, 0, 1000);
  if (seen && seen - 1000 > ALL) api->atomic_cas_u64(word, seen, 1000);
  api->atomic_add_u64(word, 1);
}

static void hand_over(const void *p) { case_hand_over(p, ALL_ORDERED); }

static void read_out(const void *p) {
  const tensors *t = p;
  if (tid() == 0) keep(t->strided, fetch(t->out));
}

/* The sum of 64 or 128 threads' inputs, by block. */
static void check_reduce(void) { ck_assert(made.out[0] == 2016 && made.out[2] == 2016); }

static void check_pipeline(void) {
  for (int i = 0; i < 64; i++) ck_assert(made.out[i] == (float)(28 + 8 * (31 - i % 32)));
}

static void check_halves(void) {
  for (int i = 0; i < 32; i++) {
    int votes = i < 16 ? 0xaaaa + 15 - i : i % 2 ? 0xaaa0 : 0;
    ck_assert_msg(made.out[i] == (float)(votes + 7), "lane %d: %g", i, (double)made.out[i]);
  }
}

static void check_exchange(void) { ck_assert(made.out[15] == 31 - 5); }

static void check_count(void) {
  float sum = 0;
  for (int i = 0; i < ALL; i++) sum += made.out[i];
  ck_assert(made.count[0] == ALL && sum == 2016 && made.strided[COLS - 1] == 32);
}

static void check_hand_over(void) {
  for (int i = 48; i < ALL; i++) ck_assert(made.out[i] == 6);
}

static void check_open(void) {
  u64 word;
  memcpy(&word, made.out, 8);
  ck_assert_int_eq((int64_t)word, 1000 + ALL);
}

static const struct {
  job job;
  void (*check)(void);
} right[] = {{{reduce, 64, 3}, check_reduce},       {{pipeline, 96, 1}, check_pipeline},
             {{halves, 32, 1}, check_halves},       {{exchange, 32, 1}, check_exchange},
             {{hand_over, 64, 3}, check_hand_over}, {{count, 32, 2}, check_count},
             {{open_and_count, 32, 2}, check_open}};
enum { RIGHT = sizeof right / sizeof *right };

TEST_LOOP(right_kernels_pass, RIGHT) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    made.strided[COLS - 1] = 0;
    ck_assert_msg(case_launch(right[_i].job, seed, memory) == FG_OK, "seed %d: %s", (int)seed,
                  fault.text);
    right[_i].check();
    case_drop(memory);
  }
}

TEST(seeds_order_everything) {
  float first[ALL], again[ALL];
  int differ = 0;
  for (u64 seed = 0; seed < SEEDS; seed++) {
    for (int twice = 0; twice < 2; twice++) {
      fg_host_memory *memory = case_make(seed);
      made.strided[COLS - 1] = 0;
      ck_assert_int_eq(case_launch((job){count, 32, 2}, seed, memory), FG_OK);
      memcpy(twice ? again : first, made.out, sizeof first);
      case_drop(memory);
    }
    ck_assert_mem_eq(first, again, sizeof first);
    differ += first[0] >= 32;
  }
  ck_assert_int_gt(differ, 3);
  ck_assert_int_lt(differ, SEEDS - 3);
}

TEST(steps_share_what_was_written) {
  fg_host_memory *memory = case_make(1);
  ck_assert_int_eq(case_launch((job){reduce, 64, 1}, 1, memory), FG_OK);
  ck_assert_int_eq(case_launch((job){read_out, 32, 1}, 1, memory), FG_OK);
  ck_assert(made.strided[0] == 2016);
  case_drop(memory);
}

/* After 2^25 stamps they start again, and records of before must not be taken for new ones. */
TEST(stamps_start_again) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    u32 era = fgh_era;
    made.strided[COLS - 1] = 0;
    ck_assert_int_eq(case_launch((job){reduce, 64, 3}, seed, memory), FG_OK);
    fgh_clocks[3].last = 1u << (FGH_STAMP_BITS - 1);
    for (int i = 0; i < 3; i++) {
      ck_assert_msg(case_launch((job){reduce, 64, 3}, seed, memory) == FG_OK, "%s", fault.text);
      check_reduce();
    }
    ck_assert_uint_eq(fgh_era, era + 1);
    case_drop(memory);
  }
}

/* ---- memory ---- */

typedef struct views {
  const float *reversed, *row;
  u16 *far;
} views;

/* Strides below zero, of zero, and a span of gigabytes; 16-byte accesses of 2-byte elements. */
static void see(const void *p) {
  const views *v = p;
  u16 x[8] = {0};
  api->global_store(v->far + tid() * 8, x, 16);
  keep(made.out + tid(), fetch(v->reversed - tid()) + fetch(v->row + tid() % 8));
}

TEST(strides_of_every_kind) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    void *far;
    fg_host_memory_free(NULL);
    fg_host_memory *memory, *other = case_make(seed);
    ck_assert_int_eq(fg_host_guarded_new(512, seed, &far), FG_OK);
    views v = {made.in + 63, made.in, far};
    fg_host_tensor list[] = {case_vector("reversed", v.reversed, 0, 1),
                             case_vector("row", v.row, 0, 1), case_vector("far", far, 1, 0),
                             case_vector("out", made.out, 1, 0), case_vector("none", NULL, 0, 1)};
    list[0].stride[0] = -1;
    list[1].rank = 2, list[1].stride[0] = 0, list[1].extent[1] = 8, list[1].stride[1] = 1;
    list[2].rank = 3, list[2].elem = 2;
    memcpy(list[2].extent, (int64_t[]){2, 32, 8}, sizeof(int64_t[3]));
    memcpy(list[2].stride, (int64_t[]){1ll << 30, 8, 1}, sizeof(int64_t[3]));
    list[4].extent[0] = 0;
    ck_assert_int_eq(fg_host_memory_new(list, 5, &memory), FG_OK);
    fg_host_launch l = {see, &v, {1, 1, 1}, 32, 0, seed, memory, 1, 0, 1};
    ck_assert_msg(fg_host_run(&l, &fault) == FG_OK, "%s", fault.text);
    for (int i = 0; i < 32; i++) ck_assert(made.out[i] == (float)(63 - i + i % 8));
    fg_host_memory_free(memory);
    fg_host_guarded_free(far, 512);
    case_drop(other);
  }
}

TEST(guarded_memory_touches_its_guard) {
  for (size_t bytes = 0; bytes < 10000; bytes = bytes * 3 + 1)
    for (u64 seed = 0; seed < 2; seed++) {
      void *p;
      ck_assert_int_eq(fg_host_guarded_new(bytes, seed, &p), FG_OK);
      uintptr_t edge = (uintptr_t)p + (seed ? 0 : bytes ? (bytes + 15) / 16 * 16 : 16);
      ck_assert_uint_eq((uintptr_t)p % 16, 0);
      ck_assert_uint_eq(edge % 4096, 0);
      for (size_t i = 0; i < bytes; i++) ck_assert_uint_eq(((u8 *)p)[i], 0xff);
      fg_host_guarded_free(p, bytes);
    }
  fg_host_guarded_free(NULL, 0);
}

/* ---- arguments ---- */

TEST(bad_launches_are_refused) {
  fg_host_memory *memory = case_make(0);
  fg_host_launch good = {count, &made, {1, 1, 1}, 32, 232448, 0, memory, 1, 0, 1}, bad[10];
  made.strided[COLS - 1] = 0;
  ck_assert_int_eq(fg_host_run(&good, &fault), FG_OK);
  for (int i = 0; i < 10; i++) bad[i] = good;
  bad[0].block = 0;
  bad[1].block = 48;
  bad[2].block = 1056;
  bad[3].shared_bytes++;
  bad[4].grid[1] = 0;
  bad[5].grid[0] = bad[5].grid[2] = 1u << 31;
  bad[6].entry = NULL;
  bad[7].memory = NULL;
  bad[8].resident = 5;
  bad[9].cluster = bad[9].grid[0] = 4, bad[9].resident = 3;
  static const char *const text[] = {"block of 0 threads",
                                     "block of 48 threads",
                                     "block of 1056 threads",
                                     "232449 bytes of shared memory",
                                     "grid 1,0,1",
                                     "grid 2147483648,1,2147483648",
                                     "without entry",
                                     "or memory",
                                     "5 clusters of 1 blocks resident together",
                                     "3 clusters of 4 blocks resident together: at most 4, and 8"};
  for (int i = 0; i < 10; i++) {
    FAILS(FG_EARGUMENT, text[i], fg_host_run(&bad[i], &fault));
  }
  case_drop(memory);
}

TEST(bad_tensors_are_refused) {
  float x[64];
  fg_host_memory *memory = NULL;
  fg_host_tensor bad[5];
  for (int i = 0; i < 5; i++) bad[i] = case_vector("x", x, 1, 1);
  bad[0].elem = 8;
  bad[1].rank = 6;
  bad[2].base = (u8 *)x + 2;
  bad[3].extent[0] = -1;
  bad[4].stride[0] = 1ll << 62;
  for (int i = 0; i < 5; i++) {
    FAILS(FG_EARGUMENT, "tensor x: ", fg_host_memory_new(&bad[i], 1, &memory));
    ck_assert_ptr_null(memory);
  }
}
