/* t_engine_wgmma.c - products by a warpgroup in the engine: when registers and operands may be
 * touched, what must be alike, what descriptors may say. Layouts are tried in t_wgmma_run.c. */
#include "engine_case.h"

#include <string.h>

enum { HIGH = 1024 / 16 | 1 << 30 }; /* patterns 1024 bytes apart, swizzle of 128 */

/* d[4] += a b of 64 x 8 and 16 steps: a in registers, b one tile of 8 rows at a multiple of 1024.
 */
static const fgh_product small = {.n = 8, .steps = 1, .b = {.high = HIGH}};
static const fgh_product wide = {.n = 16, .steps = 1, .b = {.high = HIGH}};
static const fgh_product plain = {.n = 8, .steps = 1, .b = {.high = 1024 / 16}};
static const fgh_product shifted = {.n = 8, .steps = 1, .b = {.high = HIGH | 1 << 17}};
static const fgh_product far = {.n = 8, .steps = 1, .b = {.high = HIGH, .step = {4096 / 16}}};
static const fgh_product shared_a = {.n = 8, .steps = 1, .a = {.high = HIGH}, .b = {.high = HIGH}};

static u32 tile(void) { return (at(0) + 1023) & ~1023u; }
static u32 low(void) { return tile() >> 4; }

/* bfloat16 ones in all of b. */
static void fill(void) {
  u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  if (tid() < 64) api->shared_store(tile() + 16 * tid(), ones, 16);
  api->fence_async();
  sync_all();
}

typedef struct lane_state {
  float d[8];
  u32 a[4];
} lane_state;

static lane_state begin(void) {
  lane_state s = {.d = {1, 2, 3, 4}, .a = {0x40004000, 0x40004000, 0x40004000, 0x40004000}};
  fill();
  return s;
}

/* ---- right ---- */

/* 16 products of 2 and 1, onto what was there. */
static void adds(const void *p) {
  const tensors *t = p;
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  api->wgmma_wait(0);
  if (tid() < 16) api->global_store(t->out + 4 * tid(), s.d, 16);
}

static float of_adds(u32 i) { return (float)(32 + 1 + i % 4); }

/* Twice into the same registers, and once into others, before the first wait. */
static void in_flight(const void *p) {
  const tensors *t = p;
  lane_state s = begin(), other = s;
  api->wgmma(s.d, s.a, 0, low(), 0, &small);
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  api->wgmma(other.d, s.a, 0, low(), 1, &small);
  api->wgmma_wait(1);
  for (int i = 0; i < 4; i++) s.d[i] += 100;
  api->wgmma_wait(0);
  for (int i = 0; i < 4; i++) s.d[i] += 1000 * other.d[i];
  if (tid() < 16) api->global_store(t->out + 4 * tid(), s.d, 16);
}

static float of_in_flight(u32 i) { return (float)(164 + 1000 * (33 + i % 4)); }

/* In a cluster addresses have the rank above their 24 bits. */
static void adds_in_cluster(const void *p) {
  const tensors *t = p;
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low() & 0x3fff, 1, &small);
  api->wgmma_wait(0);
  if (tid() < 8) api->global_store(t->out + 32 * api->block_index.x + 4 * tid(), s.d, 16);
}

static const case_fine right[] = {{{adds, 128, 1}, of_adds},
                                  {{in_flight, 256, 1}, of_in_flight},
                                  {{adds_in_cluster, 128, 2}, of_adds, {2}}};

TEST_LOOP(right_kernels, sizeof right / sizeof *right) { case_right(right[_i]); }

/* ---- wrong ---- */

static void call(const fgh_product *product) {
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low(), 1, product);
  api->wgmma_wait(0);
}

static void no_swizzle(const void *p) { call(&plain); }
static void base_offset(const void *p) { call(&shifted); }
static void out_of_bounds(const void *p) { call(&far); }
static void never_written(const void *p) { call(&wide); }

/* The second block's addresses are taken as they are. */
static void b_unmasked(const void *p) { call(&small); }

static void a_unmasked(const void *p) {
  if (api->cluster_rank() == 0) return;
  lane_state s = begin();
  api->wgmma(s.d, NULL, low(), low() & 0x3fff, 1, &shared_a);
}

static void lanes_differ(const void *p) {
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low(), lane() == 7, &small);
  api->wgmma_wait(0);
}

static void warps_differ(const void *p) {
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low(), tid() < 64, &small);
  api->wgmma_wait(0);
}

static void a_warp_stays_away(const void *p) {
  lane_state s = begin();
  if (tid() < 32) return;
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  api->wgmma_wait(0);
}

static void half_a_group(const void *p) { call(&small); }

static void too_many(const void *p) {
  lane_state s = begin();
  for (int i = 0; i < 9; i++) api->wgmma(s.d, s.a, 0, low(), 1, &small);
  api->wgmma_wait(0);
}

static void many_sums(const void *p) {
  lane_state s = begin();
  float d[5][4] = {0};
  for (int i = 0; i < 5; i++) api->wgmma(d[i], s.a, 0, low(), 1, &small);
  api->wgmma_wait(0);
}

static void another_width(const void *p) {
  lane_state s = begin();
  for (u32 i = 0; i < 2; i++) api->wgmma(s.d, s.a, 0, low(), 1, i ? &wide : &small);
  api->wgmma_wait(0);
}

static void reads_result(const void *p) {
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  s.d[2] *= 0.5f;
  api->wgmma_wait(0);
}

static void weak_wait(const void *p) {
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  api->wgmma_wait(1);
  s.d[0] = 0;
  api->wgmma_wait(0);
}

static void changes_a(const void *p) {
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  s.a[3] = 0;
  api->wgmma_wait(0);
}

static void no_wait(const void *p) {
  lane_state s = begin();
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
}

/* Stores to b while the own warp's product reads it; another warp's, without and with a wait. */
static void changes_b(const void *p) {
  lane_state s = begin();
  u32 x = 0;
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  api->shared_store(tile() + 4 * tid(), &x, 4);
  api->wgmma_wait(0);
}

static void changes_b_of_others(const void *p) {
  lane_state s = begin();
  u32 x = 0;
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  api->wgmma_wait(0);
  if (tid() < 8) api->shared_store(tile() + 4 * tid(), &x, 4);
}

static void unfenced(const void *p) {
  lane_state s = begin();
  u32 x = 0;
  if (tid() < 32) api->shared_store(tile() + 4 * tid(), &x, 4);
  sync_all();
  api->wgmma(s.d, s.a, 0, low(), 1, &small);
  api->wgmma_wait(0);
}

/* a in shared memory: the rows of the warps behind the tile were never written. */
static void part_of_a(const void *p) {
  lane_state s = begin();
  api->wgmma(s.d, NULL, low(), low(), 1, &shared_a);
  api->wgmma_wait(0);
}

static void askew_matrix(const void *p) {
  u32 r[4] = {0};
  api->stmatrix(at(4 * lane() + 1), r, 0);
}

static void matrix_races(const void *p) {
  u32 r[4] = {0};
  api->stmatrix(at(4 * lane()), r, 0);
  get(4 * (lane() ^ 1));
}

#define CHANGED "changed before the wait for it *"
static const case_fault wrong[] = {
    {{no_swizzle, 128, 1}, "wgmma by a descriptor without a swizzle: *"},
    {{base_offset, 128, 1}, "wgmma by a descriptor with a base offset: *"},
    {{out_of_bounds, 128, 1}, "wgmma reads out of bounds: shared byte * of 4096 *"},
    {{never_written, 128, 1}, "shared wgmma's b at byte *, which was never written *"},
    {{b_unmasked, 128, 2},
     "wgmma: its b is named by 0x100*, more than 14 bits of an address / 16: matrix_at *",
     {2}},
    {{a_unmasked, 128, 2},
     "wgmma: its a is named by 0x100*, more than 14 bits of an address *",
     {2}},
    {{lanes_differ, 128, 1}, "wgmma: the lanes of the warp make different calls *"},
    {{warps_differ, 128, 1}, "wgmma: warp * of the warpgroup made another call *"},
    {{a_warp_stays_away, 128, 1}, "deadlock: *warp 0 lanes 0-31 returned\n*wait in wgmma_wait*"},
    {{half_a_group, 64, 1}, "wgmma in a block of no whole warpgroups *"},
    {{too_many, 128, 1}, "more than 8 wgmma in flight *"},
    {{many_sums, 128, 1}, "wgmma: more than 4 different d in flight *"},
    {{another_width, 128, 1}, "wgmma adds 16 columns to a d of 8 in flight *"},
    {{reads_result, 128, 1}, "wgmma: its d was " CHANGED},
    {{weak_wait, 128, 1}, "wgmma: its d was " CHANGED},
    {{changes_a, 128, 1}, "wgmma: its a in registers was " CHANGED},
    {{no_wait, 128, 1}, "the thread ends with a wgmma in flight: it never waits for it *"},
    {{changes_b, 128, 1},
     "race: shared store at byte *, which a wgmma or a TMA store of warp * still reads *|race: "
     "shared wgmma's b at byte *, which thread * wrote: *"},
    {{changes_b_of_others, 128, 1},
     "race: shared store at byte *, which a wgmma of warp * read: no barrier orders the two "
     "*|race: "
     "shared store at byte *, which a wgmma or a TMA store of warp * still reads *|race: shared "
     "wgmma's b at byte *, which thread * wrote: *"},
    {{unfenced, 128, 1},
     "wgmma's b at shared byte *, which thread * stored without a fence_async after it *"},
    {{part_of_a, 128, 1},
     "shared wgmma's a at byte *, which was never written *|wgmma reads out of bounds: *"},
    {{askew_matrix, 32, 1}, "shared stmatrix misaligned: 16 bytes at byte *, address *"},
    {{matrix_races, 32, 1},
     "race: shared load at byte *, which thread * wrote: *|shared load at byte *, which was never "
     "*|"
     "race: shared stmatrix at byte *, which thread * reads: *"},
};

TEST_LOOP(wrong_kernels, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }
