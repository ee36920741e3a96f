/* engine_case.c - the fixture of engine_case.h. */
#include "engine_case.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

case_extras case_extra;
fgh_api *api;
tensors made;
fg_host_fault fault;

u32 tid(void) { return api->thread_index.x; }
u32 lane(void) { return tid() % 32; }
u32 at(u32 word) { return api->shared_base() + 4 * word; }

u32 get(u32 word) {
  u32 x;
  api->shared_load(at(word), &x, 4);
  return x;
}

void put(u32 word, u32 x) { api->shared_store(at(word), &x, 4); }

float fetch(const float *from) {
  float x;
  api->global_load(from, &x, 4);
  return x;
}

void keep(float *to, float x) { api->global_store(to, &x, 4); }
void sync_all(void) { api->barrier_sync(0, (int)api->block_dim.x); }

fg_host_tensor case_vector(const char *name, const void *base, int writable, int initialised) {
  return (fg_host_tensor){.name = name,
                          .base = (void *)(uintptr_t)base,
                          .elem = 4,
                          .rank = 1,
                          .extent = {ALL},
                          .stride = {1},
                          .writable = writable,
                          .initialised = initialised};
}

static void *guarded(u64 seed) {
  void *p;
  ck_assert_int_eq(fg_host_guarded_new(ALL * 4, seed, &p), FG_OK);
  return p;
}

fg_host_memory *case_make(u64 seed) {
  api = fg_host_api();
  float *in = guarded(seed);
  for (int i = 0; i < ALL; i++) in[i] = (float)i;
  made = (tensors){in, guarded(seed), guarded(seed), guarded(seed), guarded(seed)};
  memset(made.count, 0, ALL * 4);
  fg_host_tensor list[] = {case_vector("in", in, 0, 1), case_vector("twin", in, 0, 1),
                           case_vector("out", made.out, 1, 0),
                           case_vector("strided", made.strided, 1, 1),
                           case_vector("count", made.count, 1, 0)};
  list[3].rank = 2;
  list[3].extent[0] = ROWS, list[3].extent[1] = COLS;
  list[3].stride[0] = PITCH, list[3].stride[1] = 1;
  fg_host_memory *memory;
  ck_assert_int_eq(fg_host_memory_new(list, 5, &memory), FG_OK);
  fg_host_memory_written(memory, made.count);
  return memory;
}

void case_drop(fg_host_memory *memory) {
  void *all[] = {(void *)(uintptr_t)made.in, made.out, made.strided, made.count, made.orphan};
  fg_host_memory_free(memory);
  for (int i = 0; i < 5; i++) fg_host_guarded_free(all[i], ALL * 4);
}

fg_status case_launch(job j, u64 seed, fg_host_memory *memory) {
  fg_host_launch l = {.entry = j.kernel,
                      .params = &made,
                      .grid = {j.grid, 1, 1},
                      .block = j.block,
                      .shared_bytes = 4096,
                      .seed = seed,
                      .memory = memory,
                      .cluster = case_extra.cluster,
                      .early = case_extra.early,
                      .resident = case_extra.resident};
  memset(&fault, 0, sizeof fault);
  return fg_host_run(&l, &fault);
}

static int says(const char *text, const char *patterns) {
  char all[512], *rest = all;
  strcpy(all, patterns);
  for (char *one; (one = strsep(&rest, "|"));)
    if (fnmatch(one, text, 0) == 0) return 1;
  return 0;
}

static void innocent(const void *p) {
  const tensors *t = p;
  put(tid(), tid());
  sync_all();
  keep(t->out + tid(), (float)get(tid() ^ 1));
}

void case_expect_once(case_fault wrong, u64 seed) {
  case_extra = wrong.extra;
  fg_host_memory *memory = case_make(seed);
  ck_assert_int_eq(case_launch(wrong.job, seed, memory), FG_ETEMPLATE);
  ck_assert_msg(says(fault.text, wrong.text), "seed %d\n%s\nwant\n%s", (int)seed, fault.text,
                wrong.text);
  ck_assert_str_eq(fault.text, fg_error());
  ck_assert_ptr_nonnull(fault.at[0]);
  case_drop(memory);
  case_extra = (case_extras){0};
  memory = case_make(seed);
  ck_assert_msg(case_launch((job){innocent, 64, 1}, seed, memory) == FG_OK, "after: %s",
                fault.text);
  case_drop(memory);
}

void case_expect(case_fault wrong) {
  for (u64 seed = 0; seed < SEEDS; seed++) case_expect_once(wrong, seed);
}

void case_expect_if_late(case_fault wrong) {
  for (u64 seed = 0; seed < SEEDS; seed += 1 + seed % 3) case_expect_once(wrong, seed);
}

void case_right(case_fine right) {
  const u32 threads = right.job.block * right.job.grid;
  case_extra = right.extra;
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    ck_assert_msg(case_launch(right.job, seed, memory) == FG_OK, "seed %d: %s", (int)seed,
                  fault.text);
    for (u32 i = 0; i < ALL && i < threads; i++) {
      const float want = right.expected(i), got = made.out[i];
      ck_assert_msg(got == want || (isnan(got) && isnan(want)), "out[%u]: %g", i, (double)got);
    }
    case_drop(memory);
  }
}

void case_hand_over(const tensors *t, case_order skip) {
  u32 part = api->block_index.x * 16;
  if (tid() >= 32 && tid() < 48) keep(t->out + part + tid() - 32, (float)(api->block_index.x + 1));
  if (skip != BARRIER_BEFORE) sync_all();
  if (tid() == 0) {
    if (skip != FENCE_BEFORE) api->fence_device();
    u64 before = api->atomic_add_u64((u64 *)(void *)t->count, 1);
    if (skip != FENCE_BEHIND) api->fence_device();
    put(0, before == 2);
  }
  sync_all();
  if (!get(0) || tid() >= 16) return;
  float sum = 0;
  for (u32 i = 0; i < 3; i++) sum += fetch(t->out + 16 * i + tid());
  keep(t->out + 48 + tid(), sum);
}

u32 ticket(const tensors *t) {
  if (tid() == 0) put(0, api->atomic_add_u32(t->count, 1, 0));
  sync_all();
  return get(0);
}
