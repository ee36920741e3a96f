// attn_fwd-bf16-d64-causal.simt-q16-k32-w4.sm_90a
//
// O = softmax(score(scale Q K^T)) V, and lse of each row.
// spec:   head_dim=64 mask=causal
// again:  flashgen emit attn_fwd-bf16-d64-causal.simt-q16-k32-w4.sm_90a
// made by flashgen 0.1.0
//
// launch: attn_fwd, grid cdiv(nq, 16) * h * b x 1 x 1, 128 threads, 13568 shared bytes
//
// shared memory:
//   SM_Q      0  Q [BLOCK_Q][D]
//   SM_K   2304  K [32][D]
//   SM_V   6912  V [32][DV]
//   SM_P  11520  P [BLOCK_Q][32], float32, a warp's rows its own

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 64 }; // head dim of q and k
enum { DV = 64 }; // head dim of v and o
enum { BLOCK_Q = 16 }; // query rows of a block
enum { ROWS = 4 }; // query rows of a warp
enum { LANE_DV = 2 }; // columns of O that a lane holds of each row
enum { THREADS = 128 };
enum { PITCH_D = 144 }; // bytes between rows of Q and K tiles
enum { PITCH_DV = 144 }; // bytes between rows of V tiles
enum { SM_Q = 0 };
enum { SM_K = 2304 };
enum { SM_V = 6912 };
enum { SM_P = 11520 };

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

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

DEV u16 ldg_u16(const u16 *from) { return *from; }

DEV void stg_u16(u16 *to, u16 v) { *to = v; }

DEV void stg_f32(float *to, float v) { *to = v; }

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV void warp_sync(u32 lanes) { asm volatile("bar.warp.sync %0;" :: "r"(lanes) : "memory"); }

DEV float shfl_xor(u32 lanes, float v, int mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(mask), "r"(lanes));
  return r;
}

DEV u32 as_u32(float v) { return __float_as_uint(v); }

DEV float exp2_f32(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float log2_f32(float x) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float inverse_f32(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float max_f32(float a, float b) { return fmaxf(a, b); }

DEV float bf16_to_f32(u16 x) { return as_f32((u32)x << 16); }

DEV u16 f32_to_bf16(float x) {
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}

DEV float warp_max(float v) {
  #pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) { v = max_f32(v, shfl_xor(ALL_LANES, v, mask)); }
  return v;
}

DEV float warp_sum(float v) {
  #pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) { v += shfl_xor(ALL_LANES, v, mask); }
  return v;
}

DEV float to_f32(u16 x) { return bf16_to_f32(x); }

DEV u16 from_f32(float x) { return f32_to_bf16(x); }

// Rows [row0, row0 + rows) of a matrix to shared memory, by the whole block; rows from `end` on
// are 0. Pairs of columns: memory is 2-byte aligned, widths are even.
DEV void load_rows(u32 to, int pitch, const u16 *from, i64 stride, int row0, int rows, int end,
    int width) {
  for (int i = 2 * (int)threadIdx.x; i < rows * width; i += 2 * THREADS) {
    const int row = i / width, column = i % width;
    u32 pair = 0;
    if (row0 + row < end) {
      const u16 *at = from + (i64)(row0 + row) * stride + column;
      pair = (u32)ldg_u16(at) | (u32)ldg_u16(at + 1) << 16;
    }
    sts_u32(to + (u32)(row * pitch + 2 * column), pair);
  }
}

DEV void load_f32x8(float *x, u32 address) {
  u32 pair[4];
  lds_u32x4(pair, address);
  #pragma unroll
  for (int i = 0; i < 4; i++) {
    x[2 * i] = to_f32((u16)pair[i]);
    x[2 * i + 1] = to_f32((u16)(pair[i] >> 16));
  }
}

// s[r] = x_r . y, for the warp's rows x and the lane's row y. Eight products are added before the
// sum is, which is the larger one
// and rounds coarser.
DEV void dot_rows(float *s, u32 x, u32 y, int pitch, int width) {
  #pragma unroll
  for (int r = 0; r < ROWS; r++) { s[r] = 0.0f; }
  for (int c = 0; c < width; c += 8) {
    float xs[8], ys[8];
    load_f32x8(ys, y + (u32)(2 * c));
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
      load_f32x8(xs, x + (u32)(r * pitch + 2 * c));
      float eight = 0.0f;
      #pragma unroll
      for (int i = 0; i < 8; i++) { eight += xs[i] * ys[i]; }
      s[r] += eight;
    }
  }
}

// The warp's weights w[r] of all lanes to its [ROWS][32] block, for add_rows to read.
DEV void put_weights(u32 weights, const float *w) {
  warp_sync(ALL_LANES); // the last tile's weights have been read
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    sts_u32(weights + (u32)(r * 32 + (int)threadIdx.x % 32) * 4, as_u32(w[r]));
  }
  warp_sync(ALL_LANES);
}

// sum[r] += weights[r][j] z_j over 32 rows z_j. Columns are spread over the lanes in pairs: a lane
// has columns 2 * lane + 64 * i and the next, at sum[r][2 * i] and [2 * i + 1].
DEV void add_rows(float *sum, u32 weights, u32 z, int pitch, int width) {
  const int column = 2 * ((int)threadIdx.x % 32), pairs = (width + 63) / 64;
  for (int j = 0; j < 32; j += 4) {
    u32 w[ROWS][4];
    #pragma unroll
    for (int r = 0; r < ROWS; r++) { lds_u32x4(w[r], weights + (u32)(r * 32 + j) * 4); }
    #pragma unroll
    for (int jj = 0; jj < 4; jj++) {
      #pragma unroll
      for (int i = 0; i < pairs; i++) {
        if (column + 64 * i < width) {
          const u32 pair = lds_u32(z + (u32)((j + jj) * pitch + 2 * (column + 64 * i)));
          #pragma unroll
          for (int r = 0; r < ROWS; r++) {
            float *s = sum + 2 * (r * pairs + i);
            s[0] += as_f32(w[r][jj]) * to_f32((u16)pair);
            s[1] += as_f32(w[r][jj]) * to_f32((u16)(pair >> 16));
          }
        }
      }
    }
  }
}

// One row of add_rows' sums, times a factor.
DEV void store_row(u16 *to, const float *sum, float factor, int width) {
  const int column = 2 * ((int)threadIdx.x % 32);
  #pragma unroll
  for (int i = 0; i < (width + 63) / 64; i++) {
    if (column + 64 * i < width) {
      stg_u16(to + column + 64 * i, from_f32(sum[2 * i] * factor));
      stg_u16(to + column + 64 * i + 1, from_f32(sum[2 * i + 1] * factor));
    }
  }
}

typedef struct Params {
  const u16 *q; // [b, nq, h, 64] bf16
  i64 q_b, q_n, q_h;
  const u16 *k; // [b, nk, hk, 64] bf16
  i64 k_b, k_n, k_h;
  const u16 *v; // [b, nk, hk, 64] bf16
  i64 v_b, v_n, v_h;
  u16 *o; // [b, nq, h, 64] bf16
  i64 o_b, o_n, o_h;
  float *lse; // [b, h, nq] f32, or null
  int b, h, hk, nq, nk;
  float scale;
} Params;

extern "C" __global__ void __launch_bounds__(128, 1)
attn_fwd(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int tiles = cdiv(p.nq, BLOCK_Q), block = (int)blockIdx.x;
  const int q0 = block % tiles * BLOCK_Q, h = block / tiles % p.h, b = block / tiles / p.h;
  const int q_warp = q0 + warp * ROWS, g = h / (p.h / p.hk); // g: the key/value head of h
  const u32 sm = shared_base();
  const u16 *q_head = p.q + (b * p.q_b + h * p.q_h);
  const u16 *k_head = p.k + (b * p.k_b + g * p.k_h);
  const u16 *v_head = p.v + (b * p.v_b + g * p.v_h);
  load_rows(sm + SM_Q, PITCH_D, q_head, p.q_n, q0, BLOCK_Q, p.nq, D);

  float m[ROWS], l[ROWS];
  float o[ROWS][LANE_DV];
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    m[r] = NEG_INF;
    l[r] = 0.0f;
    #pragma unroll
    for (int c = 0; c < LANE_DV; c++) { o[r][c] = 0.0f; }
  }

  const int key_end = imin(p.nk, p.nk + (imin(q0 + BLOCK_Q, p.nq)) - p.nq);
  for (int k0 = 0; k0 < key_end; k0 += 32) {
    block_sync(); // the last tile has been read
    load_rows(sm + SM_K, PITCH_D, k_head, p.k_n, k0, 32, p.nk, D);
    load_rows(sm + SM_V, PITCH_DV, v_head, p.v_n, k0, 32, p.nk, DV);
    block_sync();

    // S = scale Q K^T, the score, and what the mask leaves of it
    float s[ROWS];
    dot_rows(s, sm + SM_Q + (u32)(warp * ROWS * PITCH_D), sm + SM_K + (u32)(lane * PITCH_D),
        PITCH_D, D);
    const int inside = q0 + BLOCK_Q <= p.nq && k0 + 32 <= p.nk && p.nq + (k0 + 32) <= p.nk + q0
        + 1;
    const int k = k0 + lane;
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const int q = q_warp + r;
      const int of_row0 = q + p.nk - p.nq;
      const int visible = inside || (q < p.nq && k < p.nk && k <= of_row0);
      s[r] = visible ? p.scale * s[r] : NEG_INF;
    }

    // the row's state moves on; s becomes P
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const float peak = max_f32(m[r], warp_max(s[r]) * LOG2E);
      const float origin = peak == NEG_INF ? 0.0f : peak;
      const float correction = exp2_f32(m[r] - origin);
      l[r] *= correction;
      s[r] = exp2_f32(s[r] * LOG2E - origin);
      l[r] += s[r];
      m[r] = peak;
      #pragma unroll
      for (int c = 0; c < LANE_DV; c++) { o[r][c] *= correction; }
    }

    // O += P V
    const u32 weights = sm + SM_P + (u32)(warp * ROWS * 32 * 4);
    put_weights(weights, s);
    add_rows(&o[0][0], weights, sm + SM_V, PITCH_DV, DV);
  }

  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int q = q_warp + r;
    const float total = warp_sum(l[r]);
    const float lse_of_row = total == 0.0f ? NEG_INF : (m[r] + log2_f32(total)) * LN2;
    const float inverse = total == 0.0f ? 0.0f : inverse_f32(total);
    if (q < p.nq) {
      store_row(p.o + (b * p.o_b + h * p.o_h + q * p.o_n), o[r], inverse, DV);
      if (lane == 0 && p.lse) { stg_f32(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row); }
    }
  }
}
