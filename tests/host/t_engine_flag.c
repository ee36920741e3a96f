/* t_engine_flag.c - counters in global memory by which blocks tell each other: what right kernels
 * get under every seed. */
#include "engine_case.h"

#include <math.h>

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

/* The first block is at a stmatrix with all lanes but one, which waits for the second one to have
 * done its own: each stores what its own lanes have brought. */
static void matrices_of_each(const void *p) {
  const tensors *t = p;
  u32 number = ticket(t), lane = tid(), pairs[4];
  if (number == 0 && lane == 5) api->flag_wait(t->count + 1, 1);
  for (u32 i = 0; i < 4; i++) pairs[i] = 100 * number + lane;
  api->stmatrix(at(16 + 4 * lane), pairs, 0);
  api->warp_sync(~0u);
  keep(t->out + 32 * number + lane, (float)get(16 + 4 * lane));
  if (number == 1 && lane == 5) api->atomic_add_u32(t->count + 1, 1, 1);
}

/* The first pair of the lane's row is that of lane 4 * row of the matrix. */
static float of_matrices(u32 i) { return i < 64 ? (float)(100 * (i / 32) + i % 8 * 4) : NAN; }

static const case_fine right[] = {{{last_sums, 64, 5}, of_last, {1, 0, 1}},
                                  {{last_sums, 64, 5}, of_last, {1, 0, 3}},
                                  {{chain, 64, 5}, of_chain, {1, 0, 1}},
                                  {{chain, 64, 5}, of_chain, {1, 0, 2}},
                                  {{chain, 64, 5}, of_chain, {1, 0, 4}},
                                  {{passed_on, 96, 2}, of_passed, {1, 0, 2}},
                                  {{own_block, 64, 1}, of_own, {1, 0, 1}},
                                  {{wraps, 64, 1}, of_wraps, {1, 0, 1}},
                                  {{in_turns, 64, 2}, of_turns, {1, 0, 2}},
                                  {{needs_later, 64, 4}, of_later, {1, 0, 4}},
                                  {{clusters_wait, 32, 4}, of_clusters, {2, 0, 2}},
                                  {{matrices_of_each, 32, 2}, of_matrices, {1, 0, 2}}};

TEST_LOOP(right_kernels, sizeof right / sizeof *right) { case_right(right[_i]); }
