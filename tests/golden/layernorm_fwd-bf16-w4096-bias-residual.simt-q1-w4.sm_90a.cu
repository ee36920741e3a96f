// layernorm_fwd-bf16-w4096-bias-residual.simt-q1-w4.sm_90a
//
// z less its mean, over its deviation, times gamma, and beta, of each row.
// spec:   kernel=layernorm width=4096 bias=true residual=true
// again:  flashgen emit layernorm_fwd-bf16-w4096-bias-residual.simt-q1-w4.sm_90a
// made by flashgen 0.1.0
//
// launch: layernorm_fwd, grid cdiv(rows, 1) x 1 x 1, 128 threads, 96 shared bytes
//
// shared memory:
//   SM_PARTIALS      0  numbers of each warp of a row [2][ROWS][WARPS][PARTIALS], float32

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { WIDTH = 4096 }; // columns of a row
enum { ROWS = 1 }; // rows of a block
enum { GROUP = 128 }; // threads that share a row
enum { LANES = 32 }; // of them, in one warp
enum { WARPS = 4 }; // warps that share a row
enum { CHUNKS = 4 }; // times 8 columns that a thread has
enum { RAW = 4 }; // words of 8 columns
enum { RESIDENT = 4 }; // blocks that a multiprocessor has room for
enum { PARTIALS = 3 }; // numbers of a warp
enum { SM_PARTIALS = 0 };

#define ALL_LANES 0xffffffffu

extern __shared__ __align__(16) unsigned char shared_bytes[];

DEV u32 shared_base(void) { return (u32)__cvta_generic_to_shared(shared_bytes); }

DEV u32 lds_u32(u32 address) {
  u32 v;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}

DEV void sts_u32(u32 address, u32 v) {
  asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(v) : "memory");
}

DEV u16 ldg_u16(const u16 *from) { return *from; }

DEV void ldg_u32x4(u32 *v, const void *from) {
  const uint4 x = *(const uint4 *)from;
  v[0] = x.x;
  v[1] = x.y;
  v[2] = x.z;
  v[3] = x.w;
}

DEV void stg_u16(u16 *to, u16 v) { *to = v; }

DEV void stg_u32x4(void *to, const u32 *v) {
  const uint4 x = {v[0], v[1], v[2], v[3]};
  *(uint4 *)to = x;
}

DEV void stg_f32(float *to, float v) { *to = v; }

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV float shfl_xor(u32 lanes, float v, int mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(mask), "r"(lanes));
  return r;
}

DEV float shfl(u32 lanes, float v, int from) {
  float r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(from), "r"(lanes));
  return r;
}

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

DEV u32 as_u32(float v) { return __float_as_uint(v); }

DEV float inverse_f32(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float sqrt_f32(float x) {
  float r;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float max_f32(float a, float b) { return fmaxf(a, b); }

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

DEV void write_columns(u16 *to, const float *v, int is_aligned) {
  if (is_aligned) {
    store_columns(to, v);
  } else {
    store_columns_singly(to, v, 0, 8);
  }
}

// The threads of a row wait for each other.
DEV void row_sync(void) { block_sync(); }

// The row's place for numbers of its warps, of which there are two, for `turn` 0 and 1: what is
// written in one turn may be
// read until the end of the next one.
DEV u32 partials_of_row(int turn, int numbers) {
  return shared_base() + SM_PARTIALS
      + (u32)((turn * ROWS + (int)threadIdx.x / GROUP) * WARPS * numbers) * 4;
}

// Those of `lanes` lanes side by side, a power of two.
DEV void lanes_moments(int lanes, float *count, float *mean, float *squares) {
  #pragma unroll
  for (int mask = lanes / 2; mask > 0; mask /= 2) {
    const float other_mean = shfl_xor(ALL_LANES, *mean, mask),
        other_squares = shfl_xor(ALL_LANES, *squares, mask);
    const float between = other_mean - *mean;
    *squares = *squares + other_squares + between * between * (0.5f * *count);
    *mean = 0.5f * (*mean + other_mean);
    *count *= 2.0f;
  }
}

// Those of the row. Each thread comes with a base of its own.
DEV void row_moments(float *count, float *base, float *mean, float *squares) {
  const int is_far = *base * *base * *count > 16.0f * *squares; // by more than 4 deviations
  const float shared = shfl(ALL_LANES, is_far ? *base : 0.0f,
      (int)threadIdx.x % 32 / LANES * LANES);
  *mean += *base - shared;
  *base = shared;
  lanes_moments(LANES, count, mean, squares);
  const u32 partials = partials_of_row(0, PARTIALS);
  if (threadIdx.x % 32 == 0) {
    const u32 own = partials + threadIdx.x / 32 % WARPS * (PARTIALS * 4);
    sts_u32(own, as_u32(*base));
    sts_u32(own + 4, as_u32(*mean));
    sts_u32(own + 8, as_u32(*squares));
  }
  row_sync();
  const u32 warp = threadIdx.x % 4; // whose moments a lane has
  const u32 from = partials + warp * (PARTIALS * 4);
  *base = as_f32(lds_u32(partials));
  *mean = as_f32(lds_u32(from + 4)) + (as_f32(lds_u32(from)) - *base);
  *squares = as_f32(lds_u32(from + 8));
  lanes_moments(4, count, mean, squares);
}

typedef struct Params {
  const u16 *x; // [rows, 4096] bf16
  i64 x_n;
  const u16 *gamma; // [4096] bf16
  const u16 *beta; // [4096] bf16, or null
  const u16 *bias; // [4096] bf16
  const u16 *residual; // [rows, 4096] bf16
  i64 residual_n;
  u16 *out; // [rows, 4096] bf16
  i64 out_n;
  float *rstd; // [rows] f32, or null
  float *mean; // [rows] f32, or null
  u16 *z; // [rows, 4096] bf16, or null
  i64 z_n;
  int rows;
  float eps; // NaN: not given
} Params;

extern "C" __global__ void __launch_bounds__(128, 4)
layernorm_fwd(const __grid_constant__ Params p) {
  const int first = (int)threadIdx.x % GROUP;
  const i64 number = (i64)blockIdx.x * ROWS + (int)threadIdx.x / GROUP;
  const i64 row = number;
  const u16 *x = p.x + row * p.x_n + first * 8;
  const u16 *residual = p.residual + row * p.residual_n + first * 8;
  const int is_aligned = ((u64)p.x | (u64)p.gamma | (u64)p.out | (u64)p.beta | (u64)p.bias | (u64)p.residual | (u64)p.z | 2 * ((u64)p.x_n | (u64)p.out_n | (u64)p.residual_n | (u64)p.z_n)) % 16 == 0;

  u32 raw[CHUNKS][RAW], residual_raw[CHUNKS][RAW];
  if (is_aligned) {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { load_columns(raw[c], x + c * GROUP * 8); }
    }
  } else {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { load_columns_singly(raw[c], x + c * GROUP * 8, 0, 8, 0); }
    }
  }
  if (is_aligned) {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { load_columns(residual_raw[c], residual + c * GROUP * 8); }
    }
  } else {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { load_columns_singly(residual_raw[c], residual + c * GROUP * 8, 0, 8, 0); }
    }
  }
  u32 gamma[CHUNKS][RAW], beta[CHUNKS][RAW];
  if (is_aligned) {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { load_columns(gamma[c], p.gamma + first * 8 + c * GROUP * 8); }
    }
  } else {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { load_columns_singly(gamma[c], p.gamma + first * 8 + c * GROUP * 8, 0, 8, 0); }
    }
  }
  if (p.beta) {
    if (is_aligned) {
      #pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
        { load_columns(beta[c], p.beta + first * 8 + c * GROUP * 8); }
      }
    } else {
      #pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
        { load_columns_singly(beta[c], p.beta + first * 8 + c * GROUP * 8, 0, 8, 0); }
      }
    }
  } else {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      #pragma unroll
      for (int i = 0; i < RAW; i++) { beta[c][i] = 0; }
    }
  }
  float z[CHUNKS][8];
  #pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    #pragma unroll
    for (int i = 0; i < 8; i++) { z[c][i] = 0.0f; }
    {
      columns_of(z[c], raw[c]);
      float v[8];
      columns_of(v, residual_raw[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) { z[c][i] += v[i]; }
    }
  }
  if (is_aligned) {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { load_columns(raw[c], p.bias + first * 8 + c * GROUP * 8); }
    }
  } else {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { load_columns_singly(raw[c], p.bias + first * 8 + c * GROUP * 8, 0, 8, 0); }
    }
  }
  #pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    {
      float v[8];
      columns_of(v, raw[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) { z[c][i] += v[i]; }
    }
  }

  if (p.z) {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      { write_columns(p.z + row * p.z_n + (c * GROUP + first) * 8, z[c], is_aligned); }
    }
  }

  const float eps = p.eps == p.eps ? p.eps : 1e-5f;
  float count = 0.0f, own = 0.0f, rest = 0.0f, squares = 0.0f;
  #pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    {
      #pragma unroll
      for (int i = 0; i < 8; i++) { own += z[c][i]; }
      count += 8.0f;
    }
  }
  const float share = 1.0f / count;
  own *= share;
  #pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    {
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        z[c][i] -= own;
        rest += z[c][i];
        squares += z[c][i] * z[c][i];
      }
    }
  }
  rest *= share;
  squares = max_f32(squares - count * rest * rest, 0.0f);
  float base = own, mean = rest;
  row_moments(&count, &base, &mean, &squares);
  const float variance = squares * (1.0f / (float)WIDTH);
  const float rstd = inverse_f32(sqrt_f32(variance + eps));

  if (first == 0) {
    if (p.mean) { stg_f32(p.mean + row, base + mean); }
    if (p.rstd) { stg_f32(p.rstd + row, rstd); }
  }
  const float centre = (own - base - mean) * rstd;
  u16 *to = p.out + row * p.out_n + first * 8;
  #pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    {
      float factor[8], shift[8];
      columns_of(factor, gamma[c]);
      columns_of(shift, beta[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        z[c][i] = (z[c][i] * rstd + centre) * factor[i] + shift[i];
      }
      write_columns(to + c * GROUP * 8, z[c], is_aligned);
    }
  }
}
