/* t_engine_async.c - the host device's engine on cp.async: copies land at the wait of their group,
 * whatever the seed. */
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

static const case_fine right[] = {{{in_order, 32, 1}, ordered},
                                  {{zero_fill, 64, 1}, one},
                                  {{empty_groups, 64, 1}, nine},
                                  {{stages, 64, 1}, staged}};

TEST_LOOP(copies_land, sizeof right / sizeof *right) { case_right(right[_i]); }
