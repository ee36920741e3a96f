// logsoftmax_bwd-bf16-w50257-target.simt-q1-w13.sm_90a
//
// dx = dloss w (exp(x - LSE) - [column is the target]) of each row.
// spec:   kernel=logsoftmax pass=backward width=50257 target=true
// again:  flashgen emit logsoftmax_bwd-bf16-w50257-target.simt-q1-w13.sm_90a
// made by flashgen 0.1.0
//
// launch: logsoftmax_bwd, grid cdiv(rows, 1) x 1 x 1, 416 threads, 112 shared bytes
//
// shared memory:
//   SM_PARTIALS      0  numbers of each warp of a row [2][ROWS][WARPS][PARTIALS], float32

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { WIDTH = 50257 }; // columns of a row
enum { ROWS = 1 }; // rows of a block
enum { GROUP = 416 }; // threads that share a row
enum { LANES = 32 }; // of them, in one warp
enum { WARPS = 13 }; // warps that share a row
enum { CHUNKS = 4 }; // times 8 columns that a thread has
enum { RAW = 4 }; // words of 8 columns
enum { BATCHES = 4 }; // times that a thread has so many
enum { BLOCKS = 1 }; // that share a row
enum { BYTES = 2 }; // of a column
enum { PARTIALS = 1 }; // numbers that warps of a row make one of
enum { RESIDENT = 1 }; // blocks that a multiprocessor has room for
enum { SM_PARTIALS = 0 };

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
#define LOG2E 1.4426950408889634f

DEV u16 ldg_u16(const u16 *from) { return *from; }

DEV u32 ldg_u32(const void *from) { return *(const u32 *)from; }

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

DEV float exp2_f32(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

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

// Columns of a row from `column` on, which may begin before the row and end behind it; there they
// are `none`.
DEV void read_chunk(u32 *raw, const u16 *row, int column, int is_whole, u32 none) {
  if (is_whole) {
    load_columns(raw, row + column);
  } else {
    load_columns_singly(raw, row + column, -column, WIDTH - column, none);
  }
}

DEV void write_chunk(u16 *row, int column, const float *v, int is_whole) {
  if (is_whole) {
    store_columns(row + column, v);
  } else {
    store_columns_singly(row + column, v, -column, WIDTH - column);
  }
}

typedef struct Params {
  const u16 *x; // [rows, 50257] bf16
  i64 x_n;
  const int *target; // [rows] i32
  const float *weight; // [50257] f32, or null
  const float *lse; // [rows] f32
  const float *dloss; // [rows] f32
  u16 *dx; // [rows, 50257] bf16
  i64 dx_n;
  int rows;
} Params;

extern "C" __global__ void __launch_bounds__(416, 1)
logsoftmax_bwd(const __grid_constant__ Params p) {
  const int first = (int)threadIdx.x % GROUP;
  const i64 row = (i64)blockIdx.x;
  const int own = first;
  const u16 *x = p.x + row * p.x_n;
  u16 *dx = p.dx + row * p.dx_n;
  const int shift = (int)((u64)x % 16) / BYTES; // a chunk may have so many columns of another row
  const int x_is_aligned = 1;
  const int dx_is_aligned = ((u64)dx - BYTES * (u64)shift) % 16 == 0;
  const int target = (int)ldg_u32(p.target + row), counts = target >= 0 && target < WIDTH;
  const float weight = counts && p.weight ? ldg_f32(p.weight + target) : 1.0f;
  const float lse = ldg_f32(p.lse + row), factor = ldg_f32(p.dloss + row) * weight;
  u32 raw[CHUNKS][RAW];
  for (int batch = 0; batch < BATCHES; batch++) {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const int column = ((batch * CHUNKS + c) * GROUP * BLOCKS + own) * 8 - shift;
      read_chunk(raw[c], x, column, x_is_aligned && column >= 0 && column + 8 <= WIDTH, 0xff80);
    }
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const int column = ((batch * CHUNKS + c) * GROUP * BLOCKS + own) * 8 - shift;
      float v[8];
      columns_of(v, raw[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        const float probability = v[i] > NEG_INF ? exp2_f32((v[i] - lse) * LOG2E) : 0.0f;
        v[i] = counts ? factor * (probability - (column + i == target ? 1.0f : 0.0f)) : 0.0f;
      }
      write_chunk(dx, column, v, dx_is_aligned && column >= 0 && column + 8 <= WIDTH);
    }
  }
}
