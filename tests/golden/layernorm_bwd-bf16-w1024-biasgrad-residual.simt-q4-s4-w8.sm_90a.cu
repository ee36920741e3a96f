// layernorm_bwd-bf16-w1024-biasgrad-residual.simt-q4-s4-w8.sm_90a
//
// the gradients of rows, and of what all of them share, from the gradient of out.
// spec:   kernel=layernorm pass=backward width=1024 bias=grad residual=true
// again:  flashgen emit layernorm_bwd-bf16-w1024-biasgrad-residual.simt-q4-s4-w8.sm_90a
// made by flashgen 0.1.0
//
// launch: layernorm_bwd, grid min(cdiv(rows, 4), 264) x 1 x 1, 256 threads, 98432 shared bytes
// launch: layernorm_bwd_sums, grid 32 x 3 x 1, 512 threads, 2048 shared bytes, early
// scratch: sums, 3072 * min(cdiv(rows, 4), 264) floats
//
// shared memory:
//   SM_PARTIALS      0  numbers of each warp of a row [2][ROWS][WARPS][PARTIALS], float32
//   SM_ROWS        128  rows under way [STAGES][SLOT_BYTES]; then the sums of places
//                       [tensor][ROWS][WIDTH], float32
//   SM_SUMS          0  a sum of each column by each warp [SUM_WARPS][32], float32

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { WIDTH = 1024 }; // columns of a row
enum { ROWS = 4 }; // rows of a block
enum { GROUP = 64 }; // threads that share a row
enum { LANES = 32 }; // of them, in one warp
enum { WARPS = 2 }; // warps that share a row
enum { CHUNKS = 2 }; // times 8 columns that a thread has
enum { RAW = 4 }; // words of 8 columns
enum { PARTIALS = 2 }; // numbers that a warp adds up at a time
enum { PARTS = 1 }; // blocks that share the columns of a row
enum { THREADS = 256 }; // threads of a block
enum { RESIDENT = 2 }; // blocks that a multiprocessor has room for
enum { STAGES = 4 }; // rows that are there or under way
enum { SLOT_BYTES = 24576 }; // of a row of z, dout and dz [3][CHUNKS][RAW / 4][THREADS], 16 each
enum { RANGES = 264 }; // of rows, each a block's, at most
enum { SUM_WARPS = 16 }; // that share the sums of 32 columns
enum { WARP_RANGES = 17 }; // ranges of a warp of them
enum { SM_PARTIALS = 0 };
enum { SM_ROWS = 128 };
enum { SM_SUMS = 0 };

#define ALL_LANES 0xffffffffu

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

extern __shared__ __align__(16) unsigned char shared_bytes[];

DEV u32 shared_base(void) { return (u32)__cvta_generic_to_shared(shared_bytes); }

DEV u32 lds_u32(u32 address) {
  u32 v;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}

DEV void lds_u32x4(u32 *v, u32 address) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(address) : "memory");
}

DEV void sts_u32(u32 address, u32 v) {
  asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(v) : "memory");
}

DEV void sts_u32x4(u32 address, const u32 *v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
      :: "r"(address), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
}

DEV u16 ldg_u16(const u16 *from) { return *from; }

DEV void ldg_u32x4(u32 *v, const void *from) {
  const uint4 x = *(const uint4 *)from;
  v[0] = x.x;
  v[1] = x.y;
  v[2] = x.z;
  v[3] = x.w;
}

DEV float ldg_f32(const float *from) { return *from; }

DEV void stg_u16(u16 *to, u16 v) { *to = v; }

DEV void stg_u32x4(void *to, const u32 *v) {
  const uint4 x = {v[0], v[1], v[2], v[3]};
  *(uint4 *)to = x;
}

DEV void stg_f32(float *to, float v) { *to = v; }

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

DEV float shfl_xor(u32 lanes, float v, int mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(mask), "r"(lanes));
  return r;
}

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

DEV u32 as_u32(float v) { return __float_as_uint(v); }

DEV float bf16_to_f32(u16 x) { return as_f32((u32)x << 16); }

DEV u16 f32_to_bf16(float x) {
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}

DEV u32 pack_bf16(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

DEV void cp_async_16(u32 to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
      :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

DEV void cp_async_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

DEV void cp_async_wait_0(void) { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

DEV void cp_async_wait_3(void) { asm volatile("cp.async.wait_group 3;" ::: "memory"); }

DEV void grid_wait(void) { asm volatile("griddepcontrol.wait;" ::: "memory"); }

DEV void grid_launch(void) { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

DEV void load_columns(u32 *raw, const u16 *from) {
  ldg_u32x4(raw, from);
}

// Those from the first one to that before `end`; the others are `none`, the bits of an element.
DEV void load_columns_singly(u32 *raw, const u16 *from, int first, int end, u32 none) {
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    const u32 bits = i >= first && i < end ? (u32)ldg_u16(from + i) : none;
    raw[i / 2] = i % 2 ? raw[i / 2] | bits << 16 : bits;
  }
}

// Branches are around loads alone, so that those of many columns are under way together.
DEV void read_columns(u32 *raw, const u16 *from, int is_aligned) {
  if (is_aligned) {
    load_columns(raw, from);
  } else {
    load_columns_singly(raw, from, 0, 8, 0);
  }
}

// To shared memory in pieces of 16 bytes, `step` bytes apart; 0s where `there` is not. They are on
// the way until the thread waits.
DEV void bring_columns(u32 to, int step, const u16 *from, int there) {
  #pragma unroll
  for (int i = 0; i < RAW / 4; i++) {
    cp_async_16(to + (u32)(i * step), from + i * 16 / (int)sizeof *from, there ? 16 : 0);
  }
}

// The same of addresses that are not aligned; the thread waits here.
DEV void bring_columns_singly(u32 to, int step, const u16 *from, int there) {
  u32 raw[RAW];
  load_columns_singly(raw, from, 0, there ? 8 : 0, 0);
  #pragma unroll
  for (int i = 0; i < RAW / 4; i++) { sts_u32x4(to + (u32)(i * step), raw + 4 * i); }
}

// Those that the thread has brought.
DEV void take_columns(u32 *raw, u32 from, int step) {
  #pragma unroll
  for (int i = 0; i < RAW / 4; i++) { lds_u32x4(raw + 4 * i, from + (u32)(i * step)); }
}

DEV void columns_of(float *v, const u32 *raw) {
  #pragma unroll
  for (int i = 0; i < 4; i++) {
    v[2 * i] = bf16_to_f32((u16)raw[i]);
    v[2 * i + 1] = bf16_to_f32((u16)(raw[i] >> 16));
  }
}

DEV void store_columns(u16 *to, const float *v) {
  u32 raw[RAW];
  #pragma unroll
  for (int i = 0; i < 4; i++) { raw[i] = pack_bf16(v[2 * i], v[2 * i + 1]); }
  stg_u32x4(to, raw);
}

DEV void store_columns_singly(u16 *to, const float *v, int first, int end) {
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    if (i >= first && i < end) { stg_u16(to + i, f32_to_bf16(v[i])); }
  }
}

DEV void write_columns(u16 *to, const float *v, int is_aligned) {
  if (is_aligned) {
    store_columns(to, v);
  } else {
    store_columns_singly(to, v, 0, 8);
  }
}

DEV float lanes_sum(float v) {
  #pragma unroll
  for (int mask = LANES / 2; mask > 0; mask /= 2) { v += shfl_xor(ALL_LANES, v, mask); }
  return v;
}

// The threads of a row wait for each other.
DEV void row_sync(void) { barrier_sync(1 + (int)threadIdx.x / GROUP, GROUP); }

// The row's place for numbers of its warps, of which there are two, for `turn` 0 and 1: what is
// written in one turn may be
// read until the end of the next one.
DEV u32 partials_of_row(int turn, int numbers) {
  return shared_base() + SM_PARTIALS
      + (u32)((turn * ROWS + (int)threadIdx.x / GROUP) * WARPS * numbers) * 4;
}

// Each of n numbers becomes its sum over the threads of the row. turn: 0 and 1 take turns.
DEV void row_sums(float *v, int n, int turn) {
  #pragma unroll
  for (int i = 0; i < n; i++) { v[i] = lanes_sum(v[i]); }
  const u32 partials = partials_of_row(turn, PARTIALS);
  const int warp = (int)threadIdx.x / 32 % WARPS;
  if (threadIdx.x % 32 == 0) {
    #pragma unroll
    for (int i = 0; i < n; i++) { sts_u32(partials + (u32)(warp * PARTIALS + i) * 4,
        as_u32(v[i])); }
  }
  row_sync();
  #pragma unroll
  for (int i = 0; i < n; i++) {
    v[i] = as_f32(lds_u32(partials + (u32)i * 4));
    #pragma unroll
    for (int w = 1; w < WARPS; w++) { v[i] += as_f32(lds_u32(partials
        + (u32)(w * PARTIALS + i) * 4)); }
  }
}

typedef struct Params {
  const u16 *dout; // [rows, 1024] bf16
  i64 dout_n;
  const u16 *gamma; // [1024] bf16
  const float *rstd; // [rows] f32
  const float *mean; // [rows] f32
  const u16 *z; // [rows, 1024] bf16, or null
  i64 z_n;
  const u16 *x; // [rows, 1024] bf16, or null
  i64 x_n;
  const u16 *bias; // [1024] bf16, or null
  const u16 *residual; // [rows, 1024] bf16, or null
  i64 residual_n;
  const u16 *dz; // [rows, 1024] bf16, or null
  i64 dz_n;
  u16 *dx; // [rows, 1024] bf16
  i64 dx_n;
  u16 *dgamma; // [1024] bf16
  u16 *dbeta; // [1024] bf16, or null
  u16 *dbias; // [1024] bf16
  float *sums; // scratch
  int rows;
  float eps; // NaN: not given
} Params;

extern "C" __global__ void __launch_bounds__(256, 2)
layernorm_bwd(const __grid_constant__ Params p) {
  grid_launch(); // the sums wait for this grid's end
  const int first = (int)threadIdx.x % GROUP, place = (int)threadIdx.x / GROUP;
  const i64 begin = (i64)blockIdx.x * ROWS + place, step = (i64)gridDim.x * ROWS;
      // blocks are at rows side by side
  const int is_aligned = ((u64)p.x | (u64)p.gamma | (u64)p.dout | (u64)p.dx | (u64)p.dz | (u64)p.bias | (u64)p.residual | (u64)p.z | 2 * ((u64)p.x_n | (u64)p.dout_n | (u64)p.dx_n | (u64)p.dz_n | (u64)p.residual_n | (u64)p.z_n)) % 16 == 0;

  const u32 ring = shared_base() + SM_ROWS + threadIdx.x * 16;
  for (int s = 0; s < STAGES; s++) {
    const i64 ahead = begin + s * step;
    if (is_aligned) {
      #pragma unroll CHUNKS
      for (int c = 0; c < CHUNKS; c++) {
        const int there = ahead < p.rows;
        { bring_columns(ring + (u32)(s * SLOT_BYTES)
            + (u32)((0 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
            (p.z ? p.z + ahead * p.z_n : p.x + ahead * p.x_n) + (c * GROUP + first) * 8, there); }
        { bring_columns(ring + (u32)(s * SLOT_BYTES)
            + (u32)((1 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
            (p.dout + ahead * p.dout_n) + (c * GROUP + first) * 8, there); }
        if (p.dz) { bring_columns(ring + (u32)(s * SLOT_BYTES)
            + (u32)((2 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
            (p.dz + ahead * p.dz_n) + (c * GROUP + first) * 8, there); }
      }
    } else {
      #pragma unroll 1
      for (int c = 0; c < CHUNKS; c++) {
        const int there = ahead < p.rows;
        { bring_columns_singly(ring + (u32)(s * SLOT_BYTES)
            + (u32)((0 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
            (p.z ? p.z + ahead * p.z_n : p.x + ahead * p.x_n) + (c * GROUP + first) * 8, there); }
        { bring_columns_singly(ring + (u32)(s * SLOT_BYTES)
            + (u32)((1 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
            (p.dout + ahead * p.dout_n) + (c * GROUP + first) * 8, there); }
        if (p.dz) { bring_columns_singly(ring + (u32)(s * SLOT_BYTES)
            + (u32)((2 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
            (p.dz + ahead * p.dz_n) + (c * GROUP + first) * 8, there); }
      }
    }
    cp_async_commit();
  }
  u32 slot = ring;
  u32 gamma[CHUNKS][RAW];
  #pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    #pragma unroll
    for (int i = 0; i < RAW; i++) { gamma[c][i] = 0; }
    { read_columns(gamma[c], p.gamma + (c * GROUP + first) * 8, is_aligned); }
  }
  float dgamma[CHUNKS][8];
  float dbeta[CHUNKS][8];
  float dbias[CHUNKS][8];
  #pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    #pragma unroll
    for (int i = 0; i < 8; i++) { dgamma[c][i] = dbeta[c][i] = dbias[c][i] = 0.0f; }
  }

  float next_rstd = begin < p.rows ? ldg_f32(p.rstd + begin) : 0.0f;
  float next_mean = begin < p.rows ? ldg_f32(p.mean + begin) : 0.0f;
  int turn = 0;
  for (i64 row = begin; row - place < p.rows; row += step) { // all threads add up
    const int has_row = row < p.rows;
    const float rstd = next_rstd, mean = next_mean;
    const i64 next = row + step;
    next_rstd = next < p.rows ? ldg_f32(p.rstd + next) : 0.0f;
    next_mean = next < p.rows ? ldg_f32(p.mean + next) : 0.0f;
    cp_async_wait_3();
    float means[2] = {0.0f, 0.0f};
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      u32 z[RAW];
      take_columns(z, slot + (u32)((0 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16);
      u32 dout[RAW];
      take_columns(dout, slot + (u32)((1 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16);
      float xhat[8], dy[8], factor[8];
      columns_of(xhat, z);
      if (!p.z) {
        u32 raw[RAW];
        float v[8];
        #pragma unroll
        for (int i = 0; i < RAW; i++) { raw[i] = 0; }
        if (has_row) { read_columns(raw, p.residual + row * p.residual_n
            + (c * GROUP + first) * 8, is_aligned); }
        columns_of(v, raw);
        #pragma unroll
        for (int i = 0; i < 8; i++) { xhat[i] += v[i]; }
        #pragma unroll
        for (int i = 0; i < RAW; i++) { raw[i] = 0; }
        { read_columns(raw, p.bias + (c * GROUP + first) * 8, is_aligned); }
        columns_of(v, raw);
        #pragma unroll
        for (int i = 0; i < 8; i++) { xhat[i] += v[i]; }
      }
      columns_of(dy, dout);
      columns_of(factor, gamma[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        xhat[i] = (xhat[i] - mean) * rstd;
        factor[i] *= dy[i];
      }
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        means[0] += factor[i] * xhat[i];
        means[1] += factor[i];
      }
    }
    row_sums(means, 2, turn);
    turn ^= 1;
    #pragma unroll
    for (int i = 0; i < 2; i++) { means[i] *= 1.0f / (float)WIDTH; }
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      u32 z[RAW];
      take_columns(z, slot + (u32)((0 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16);
      u32 dout[RAW];
      take_columns(dout, slot + (u32)((1 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16);
      float xhat[8], dy[8], factor[8];
      columns_of(xhat, z);
      if (!p.z) {
        u32 raw[RAW];
        float v[8];
        #pragma unroll
        for (int i = 0; i < RAW; i++) { raw[i] = 0; }
        if (has_row) { read_columns(raw, p.residual + row * p.residual_n
            + (c * GROUP + first) * 8, is_aligned); }
        columns_of(v, raw);
        #pragma unroll
        for (int i = 0; i < 8; i++) { xhat[i] += v[i]; }
        #pragma unroll
        for (int i = 0; i < RAW; i++) { raw[i] = 0; }
        { read_columns(raw, p.bias + (c * GROUP + first) * 8, is_aligned); }
        columns_of(v, raw);
        #pragma unroll
        for (int i = 0; i < 8; i++) { xhat[i] += v[i]; }
      }
      columns_of(dy, dout);
      columns_of(factor, gamma[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        xhat[i] = (xhat[i] - mean) * rstd;
        factor[i] *= dy[i];
      }
      u32 dz[RAW];
      #pragma unroll
      for (int i = 0; i < RAW; i++) { dz[i] = 0; }
      if (p.dz) { take_columns(dz, slot + (u32)((2 * CHUNKS + c) * (RAW / 4) * THREADS * 16),
          THREADS * 16); }
      float dx[8];
      columns_of(dx, dz);
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        dx[i] += rstd * (factor[i] - xhat[i] * means[0] - means[1]);
        dgamma[c][i] += dy[i] * xhat[i];
        dbeta[c][i] += dy[i];
        dbias[c][i] += dx[i];
      }
      if (has_row) { write_columns(p.dx + row * p.dx_n + (c * GROUP + first) * 8, dx,
          is_aligned); }
    }
    {
      const i64 ahead = row + STAGES * step;
      if (is_aligned) {
        #pragma unroll CHUNKS
        for (int c = 0; c < CHUNKS; c++) {
          const int there = ahead < p.rows;
          { bring_columns(slot + (u32)((0 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
              (p.z ? p.z + ahead * p.z_n : p.x + ahead * p.x_n) + (c * GROUP + first) * 8,
              there); }
          { bring_columns(slot + (u32)((1 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
              (p.dout + ahead * p.dout_n) + (c * GROUP + first) * 8, there); }
          if (p.dz) { bring_columns(slot + (u32)((2 * CHUNKS + c) * (RAW / 4) * THREADS * 16),
              THREADS * 16, (p.dz + ahead * p.dz_n) + (c * GROUP + first) * 8, there); }
        }
      } else {
        #pragma unroll 1
        for (int c = 0; c < CHUNKS; c++) {
          const int there = ahead < p.rows;
          { bring_columns_singly(slot + (u32)((0 * CHUNKS + c) * (RAW / 4) * THREADS * 16),
              THREADS * 16, (p.z ? p.z + ahead * p.z_n : p.x + ahead * p.x_n)
              + (c * GROUP + first) * 8, there); }
          { bring_columns_singly(slot + (u32)((1 * CHUNKS + c) * (RAW / 4) * THREADS * 16),
              THREADS * 16, (p.dout + ahead * p.dout_n) + (c * GROUP + first) * 8, there); }
          if (p.dz) { bring_columns_singly(slot
              + (u32)((2 * CHUNKS + c) * (RAW / 4) * THREADS * 16), THREADS * 16,
              (p.dz + ahead * p.dz_n) + (c * GROUP + first) * 8, there); }
        }
      }
      cp_async_commit();
    }
    slot = slot == ring + (STAGES - 1) * SLOT_BYTES ? ring : slot + SLOT_BYTES;
  }

  cp_async_wait_0(); // the 0s of no row
  block_sync(); // the rows have been read
  #pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    {
      {
        u32 bits[8];
        #pragma unroll
        for (int i = 0; i < 8; i++) { bits[i] = as_u32(dgamma[c][i]); }
        const u32 to = shared_base() + SM_ROWS
            + (u32)((0 * ROWS + place) * WIDTH + (c * GROUP + first) * 8) * 4;
        sts_u32x4(to, bits);
        sts_u32x4(to + 16, bits + 4);
      }
      {
        u32 bits[8];
        #pragma unroll
        for (int i = 0; i < 8; i++) { bits[i] = as_u32(dbeta[c][i]); }
        const u32 to = shared_base() + SM_ROWS
            + (u32)((1 * ROWS + place) * WIDTH + (c * GROUP + first) * 8) * 4;
        sts_u32x4(to, bits);
        sts_u32x4(to + 16, bits + 4);
      }
      {
        u32 bits[8];
        #pragma unroll
        for (int i = 0; i < 8; i++) { bits[i] = as_u32(dbias[c][i]); }
        const u32 to = shared_base() + SM_ROWS
            + (u32)((2 * ROWS + place) * WIDTH + (c * GROUP + first) * 8) * 4;
        sts_u32x4(to, bits);
        sts_u32x4(to + 16, bits + 4);
      }
    }
  }
  block_sync();
  for (int column = (int)threadIdx.x; column < WIDTH; column += THREADS) {
    {
      float sum = 0.0f;
      #pragma unroll
      for (int r = 0; r < ROWS; r++) { sum += as_f32(lds_u32(shared_base() + SM_ROWS
          + (u32)((0 * ROWS + r) * WIDTH + column) * 4)); }
      stg_f32(p.sums + (0 * (i64)gridDim.x + (i64)blockIdx.x) * WIDTH + column, sum);
    }
    {
      float sum = 0.0f;
      #pragma unroll
      for (int r = 0; r < ROWS; r++) { sum += as_f32(lds_u32(shared_base() + SM_ROWS
          + (u32)((1 * ROWS + r) * WIDTH + column) * 4)); }
      stg_f32(p.sums + (1 * (i64)gridDim.x + (i64)blockIdx.x) * WIDTH + column, sum);
    }
    {
      float sum = 0.0f;
      #pragma unroll
      for (int r = 0; r < ROWS; r++) { sum += as_f32(lds_u32(shared_base() + SM_ROWS
          + (u32)((2 * ROWS + r) * WIDTH + column) * 4)); }
      stg_f32(p.sums + (2 * (i64)gridDim.x + (i64)blockIdx.x) * WIDTH + column, sum);
    }
  }
}

extern "C" __global__ void __launch_bounds__(512, 1)
layernorm_bwd_sums(const __grid_constant__ Params p) {
  grid_wait();
  const int ranges = imin(cdiv(p.rows, ROWS), RANGES), column = (int)blockIdx.x * 32
      + (int)threadIdx.x % 32;
  const float *from = p.sums + (i64)blockIdx.y * ranges * WIDTH + column;
  float sum = 0.0f;
  #pragma unroll
  for (int i = 0; i < WARP_RANGES; i++) { // all loads are under way together
    const int range = i * SUM_WARPS + (int)threadIdx.x / 32;
    sum += range < ranges && column < WIDTH ? ldg_f32(from + (i64)range * WIDTH) : 0.0f;
  }
  sts_u32(shared_base() + SM_SUMS + threadIdx.x * 4, as_u32(sum));
  block_sync();
  u16 *to = blockIdx.y == 2 ? p.dbias : blockIdx.y == 1 ? p.dbeta : p.dgamma;
  if (threadIdx.x < 32 && column < WIDTH && to) {
    sum = 0.0f;
    #pragma unroll
    for (int w = 0; w < SUM_WARPS; w++) { sum += as_f32(lds_u32(shared_base() + SM_SUMS
        + (u32)(w * 32) * 4 + threadIdx.x * 4)); }
    stg_u16(to + column, f32_to_bf16(sum));
  }
}
