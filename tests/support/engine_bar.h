/* engine_bar.h - for the engine's suites of mbarriers: where they lie, and boxes for them. */
#ifndef FG_TESTS_ENGINE_BAR_H
#define FG_TESTS_ENGINE_BAR_H

#include "engine_case.h"

#include <string.h>

enum { BAR = 256, LAST = 0x14f00000 }; /* a word, clear of the data; the policy's high word */

static const u64 policy = (u64)LAST << 32;
static inline u32 bar(u32 i) { return at(BAR + 2 * i); }

/* Made by one thread, seen by all. */
static inline void make(u32 i, int count) {
  if (tid() == 0) {
    api->mbarrier_init(bar(i), count);
    api->fence_barrier_init();
  }
}

static inline tensor_map map_of(const float *from, u32 columns, u32 rows) {
  return (tensor_map){.base = (void *)(uintptr_t)from,
                      .stride = {64, 256, 256},
                      .extent = {16, 4, 1, 1},
                      .box = {(u16)columns, (u16)rows, 1, 1},
                      .elem = 4,
                      .rank = 4,
                      .encoded = 1};
}

static inline void load(u32 word, const tensor_map *map, int column, int row, u32 i) {
  const int place[] = {column, row, 0, 0};
  api->tma_load((at(word) + 127) & ~127u, map, place, 4, bar(i), policy, 0);
}

/* The number at a place of the box that lies behind `word`. */
static inline float loaded(u32 word, u32 i) {
  u32 bits;
  float x;
  api->shared_load(((at(word) + 127) & ~127u) + 4 * i, &bits, 4);
  memcpy(&x, &bits, 4);
  return x;
}

#endif
