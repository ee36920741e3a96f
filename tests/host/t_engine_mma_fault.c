/* t_engine_mma_fault.c - wrong kernels with ldmatrix and mma: what is wrong is found under every
 * seed, with its lane. */
#include "engine_case.h"

static const u32 zeros[4];

static void fill(void) {
  api->shared_store(at(4 * tid()), zeros, 16);
  sync_all();
}

static void load(u32 word) {
  u32 r[4];
  api->ldmatrix(r, at(word), 0);
}

static void product_of_zeros(void) {
  float d[4] = {0};
  api->mma_bf16(d, zeros, zeros);
}

static void load_without_lane(const void *p) {
  fill();
  if (lane() != 17) load(0);
}

static void mma_without_lane(const void *p) {
  if (lane() != 17) product_of_zeros();
}

static void half_a_warp(const void *p) {
  if (lane() < 16) product_of_zeros();
  api->warp_sync(~0u);
}

static void two_dtypes(const void *p) {
  float d[4] = {0};
  if (lane() == 3)
    api->mma_f16(d, zeros, zeros);
  else
    api->mma_bf16(d, zeros, zeros);
}

static void two_forms(const void *p) {
  u32 r[4];
  fill();
  api->ldmatrix(r, at(0), lane() == 3);
}

static void load_and_mma(const void *p) {
  fill();
  if (lane() < 30)
    load(0);
  else
    product_of_zeros();
}

static void row_askew(const void *p) {
  fill();
  load(4 * lane() + (lane() == 9 ? 2 : 0));
}

static void row_outside(const void *p) {
  fill();
  load(lane() == 30 ? 1024 : 4 * lane());
}

static void row_across_end(const void *p) {
  fill();
  load(4 * lane() - (lane() == 0 ? 4 : 0));
}

static void row_unwritten(const void *p) {
  if (lane() != 20) api->shared_store(at(4 * lane()), zeros, 16);
  api->warp_sync(~0u);
  load(4 * lane());
}

static void row_half_written(const void *p) {
  api->shared_store(at(4 * lane()), zeros, lane() == 20 ? 8 : 16);
  api->warp_sync(~0u);
  load(4 * lane());
}

static void no_barrier_before(const void *p) {
  fill();
  api->shared_store(at(4 * tid()), zeros, 16);
  load(4 * (63 - tid()));
}

static void no_warp_sync_before(const void *p) {
  fill();
  api->shared_store(at(4 * lane()), zeros, 16);
  load(4 * (31 - lane()));
}

/* The load is a collective, but it orders no memory: the store may come before another lane's read.
 */
static void store_behind_load(const void *p) {
  fill();
  load(4 * (31 - lane()));
  put(4 * lane(), 1);
}

static void refill_behind_load(const void *p) {
  fill();
  if (tid() < 32)
    load(4 * tid());
  else
    put(4 * (tid() - 32), 1);
}

static void load_in_flight(const void *p) {
  api->cp_async(at(4 * lane()), ((const tensors *)p)->in, 16, 16);
  api->cp_async_commit();
  api->warp_sync(~0u);
  load(4 * (31 - lane()));
}

/* Each sentence in full but for what the seed decides: case_expect has the stars. */
static const case_fault wrong[] = {
    {{load_without_lane, 32, 1},
     "divergence: lane 17 returned while lanes * of warp 0 wait in ldmatrix_x4(0xffffffff) *|"
     "divergence: lane * calls ldmatrix_x4(0xffffffff), but lanes 0x20000 of warp 0 have "
     "returned*"},
    {{mma_without_lane, 32, 1},
     "divergence: lane 17 returned while lanes * of warp 0 wait in mma_bf16(0xffffffff) *|"
     "divergence: lane * calls mma_bf16(0xffffffff), but lanes 0x20000 of warp 0 have returned *"},
    {{half_a_warp, 32, 1},
     "divergence: lane * calls * while lanes * of warp 0 wait in mma_bf16(0xffffffff) *|"
     "divergence: lane * calls mma_bf16(0xffffffff) while lanes * of warp 0 wait in warp_sync*"},
    {{two_dtypes, 32, 1},
     "divergence: lane 3 calls mma_f16(0xffffffff) while lanes * wait in mma_bf16(0xffffffff) *|"
     "divergence: lane * calls mma_bf16(0xffffffff) while lanes 0x8 * wait in "
     "mma_f16(0xffffffff)*"},
    {{two_forms, 32, 1},
     "divergence: lane * calls ldmatrix_x4* wait in ldmatrix_x4*(0xffffffff) *"},
    {{load_and_mma, 32, 1}, "divergence: lane * calls * while lanes * of warp 0 wait in *"},
    {{row_askew, 32, 1}, "shared load misaligned: 16 bytes at byte 152, address * thread 9]"},
    {{row_outside, 32, 1}, "shared load out of bounds: bytes 4096 to 4111 of 4096 * thread 30]"},
    {{row_across_end, 32, 1}, "shared load out of bounds: 16 bytes before the first * thread 0]"},
    {{row_unwritten, 32, 1}, "shared load at byte 320, which was never written * thread 20]"},
    {{row_half_written, 32, 1}, "shared load at byte 328, which was never written * thread 20]"},
    {{no_barrier_before, 64, 1}, "race: shared * at byte *, which thread * *: no barrier orders *"},
    {{no_warp_sync_before, 32, 1},
     "race: shared * at byte *, which * read*: no warp_sync or barrier orders *|"
     "race: shared load at byte *, which thread * wrote: no warp_sync or barrier orders the two *"},
    {{store_behind_load, 32, 1},
     "race: shared store at byte *, which thread * reads: no warp_sync or barrier orders the two "
     "*"},
    {{refill_behind_load, 64, 1},
     "race: shared * at byte *, which thread * *: no barrier orders *"},
    {{load_in_flight, 32, 1},
     "shared load at byte * while a cp.async of thread * is still filling it *"},
};

TEST_LOOP(fault_is_found, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }
