// attn_bwd-bf16-d64-causal-biasgrad_hqk.simt-q16-k32-w4.host
//
// Gradients of O = softmax(score(scale Q K^T)) V, from dO.
// spec:   pass=backward head_dim=64 mask=causal bias=grad bias_dims=h,q,k
// again:  flashgen emit attn_bwd-bf16-d64-causal-biasgrad_hqk.simt-q16-k32-w4.host
// made by flashgen 0.1.0
//
// launch: attn_bwd_delta, grid cdiv(b * h * nq, 4) x 1 x 1, 128 threads, 15872 shared bytes
// launch: attn_bwd_dk_dv, grid cdiv(nk, 16) * hk * b x 1 x 1, 128 threads, 15872 shared bytes
// launch: attn_bwd_dq, grid cdiv(nq, 16) * h * b x 1 x 1, 128 threads, 15872 shared bytes
// launch: attn_bwd_dbias, grid h * cdiv(nq, 16) * cdiv(nk, 32) x 1 x 1, 128 threads, 15872 shared
//         bytes
// scratch: delta, b * h * nq floats
//
// shared memory:
//   SM_ROW_D        0  the block's rows of Q or K [BLOCK][D]
//   SM_ROW_DV    2304  the block's rows of dO or V [BLOCK][DV]
//   SM_LANE_D    4608  32 rows, one a lane, of K or Q [32][D]
//   SM_LANE_DV   9216  32 rows, one a lane, of V or dO [32][DV]
//   SM_W        13824  weights [BLOCK][32], float32, a warp's rows its own

// What a kernel compiled for the host device calls. The engine includes this very text, so that
// the two sides cannot differ: plain C, no template directive. Shared memory has u32 addresses.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

typedef struct fgh_dim3 {
  u32 x, y, z;
} fgh_dim3;

// A tensor as TMA sees it. Axis 0 is the fastest and dense; the strides of the others in bytes.
typedef struct tensor_map {
  void *base;
  i64 stride[4];
  u32 extent[5];
  u16 box[5];
  u8 elem, rank, swizzle, encoded; // elem: bytes; swizzle: bytes of a row, 0 = none; encoded: 1
} __attribute__((aligned(64))) tensor_map;

// A product by a warpgroup: `steps` of 32 bytes in k. An operand's descriptor is the high word,
// and the
// low word of the call plus that of the step.
typedef struct fgh_operand {
  int transposed; // rows are of one k
  u32 high, step[16]; // k up to 256, of bytes 512
} fgh_operand;

typedef struct fgh_product {
  int n, steps, type; // type: 0 bf16, 1 f16, 2 e4m3
  fgh_operand a, b; // a: unless it is in registers
} fgh_product;

typedef struct fgh_api {
  fgh_dim3 thread_index; // of the running thread; the engine writes it at every switch
  fgh_dim3 block_index, block_dim, grid_dim;
  u32 (*shared_base)(void);
  void (*shared_load)(u32 address, void *value, int bytes);        // bytes: 4, 8, 16
  void (*shared_store)(u32 address, const void *value, int bytes); // aligned to `bytes`
  void (*global_load)(const void *from, void *value, int bytes);   // bytes: 1, 2, 4, 8, 16
  void (*global_store)(void *to, const void *value, int bytes);
  float (*atomic_add_f32)(float *to, float value); // each returns the old value
  u64 (*atomic_add_u64)(u64 *to, u64 value);
  u64 (*atomic_cas_u64)(u64 *to, u64 from, u64 value); // `from` may meet what nobody wrote
  // Words by which blocks tell each other. release: what the thread knows of is given with it
  u32 (*atomic_add_u32)(u32 *to, u32 value, int release);
  void (*store_release_u32)(u32 *to, u32 value);
  u32 (*load_acquire_u32)(const u32 *from); // takes what was given with the word
  void (*flag_wait)(const u32 *flag, u32 until);
  void (*reduce_f32)(float *to, const float *values, int n); // n: 1 or 4, aligned to all of them
  void (*reduce_max_f32)(float *to, float value);
  void (*fence_device)(void); // around an atomic it hands memory to other blocks
  void (*barrier_sync)(int id, int threads); // bar.sync: id 0..15, threads a multiple of 32
  void (*barrier_arrive)(int id, int threads);
  void (*warp_sync)(u32 lanes); // `lanes`: the mask of the lanes that take part
  u32 (*shuffle)(u32 lanes, u32 value, int from); // the value of lane `from` (0..31)
  u32 (*ballot)(u32 lanes, int predicate);
  void (*ldmatrix)(u32 *pairs, u32 address, int transposed); // this and mma_*: the whole warp
  void (*mma_bf16)(float *d, const u32 *a, const u32 *b);    // m16n8k16: d[4] += a[4] b[2]
  void (*mma_f16)(float *d, const u32 *a, const u32 *b);
  void (*mma_e4m3)(float *d, const u32 *a, const u32 *b); // m16n8k32, four numbers a word
  void (*cp_async)(u32 to, const void *from, int bytes, int read); // bytes: 4, 16; read: they or 0
  void (*cp_async_commit)(void);
  void (*cp_async_wait)(int in_flight); // groups that need not have landed
  void (*stmatrix)(u32 address, const u32 *pairs, int transposed);
      // this and elect: the whole warp
  int (*elect)(void);
  void (*mbarrier_init)(u32 bar, int count);
  void (*fence_barrier_init)(void);
  void (*mbarrier_arrive)(u32 bar);
  void (*mbarrier_arrive_remote)(u32 bar, int rank);
  void (*mbarrier_expect)(u32 bar, int bytes);
  void (*mbarrier_wait)(u32 bar, int parity);
  int (*mbarrier_try)(u32 bar, int parity);
  void (*fence_async)(void);
  void (*fence_async_global)(void);
  int (*cluster_rank)(void);
  void (*cluster_arrive)(void);
  void (*cluster_wait)(void);
  void (*grid_wait)(void);
  void (*grid_launch)(void);
  void (*tma_prefetch)(const tensor_map *map);
  // rank: coordinates in `at`; ranks: the mask of blocks of the cluster, 0 = the own one
  void (*tma_load)(u32 to, const tensor_map *map, const int *at, int rank, u32 bar, u64 policy,
      int ranks);
  void (*bulk_load)(u32 to, const void *from, int bytes, u32 bar); // all multiples of 16
  // within the cluster: to the same places in block `rank`, all addresses being of the own block
  void (*bulk_copy_remote)(u32 to, u32 from, int bytes, u32 bar, int rank);
  void (*tma_store)(const tensor_map *map, const int *at, int rank, u32 from);
  void (*tma_store_commit)(void);
  void (*tma_store_wait)(int in_flight, int read); // read: until shared memory has been read
  // registers: of a, else NULL; sum: d counts
  void (*wgmma)(float *d, const u32 *registers, u32 a, u32 b, int sum, const fgh_product *product);
  void (*wgmma_wait)(int in_flight); // groups
  void (*setmaxnreg)(int registers, int more);
} fgh_api;
#define DEV static inline __attribute__((always_inline))
#define threadIdx (fgh->thread_index)
#define blockIdx (fgh->block_index)
#define gridDim (fgh->grid_dim)
static fgh_api *fgh; // the host device, bound when this module is loaded
void fgh_bind(fgh_api *api);
void fgh_bind(fgh_api *api) { fgh = api; }

enum { D = 64 }; // head dim of q and k
enum { DV = 64 }; // head dim of v and o
enum { BLOCK = 16 }; // rows of a block: queries, or keys where dK and dV are made
enum { ROWS = 4 }; // rows of a warp
enum { LANE_D = 2 }; // columns that a lane holds of each row of dQ or dK
enum { LANE_DV = 2 }; // the same of dV
enum { WARPS = 4 };
enum { THREADS = 128 };
enum { PITCH_D = 144 }; // bytes between rows of Q and K tiles
enum { PITCH_DV = 144 }; // bytes between rows of V and dO tiles
enum { SM_ROW_D = 0 };
enum { SM_ROW_DV = 2304 };
enum { SM_LANE_D = 4608 };
enum { SM_LANE_DV = 9216 };
enum { SM_W = 13824 };

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) {
  union { u32 bits; float value; } x;
  x.bits = bits;
  return x.value;
}

#define NEG_INF as_f32(0xff800000u)
#define LOG2E 1.4426950408889634f

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

DEV int imax(int a, int b) { return a > b ? a : b; }

DEV u32 shared_base(void) { return fgh->shared_base(); }

DEV u32 lds_u32(u32 address) {
  u32 v;
  fgh->shared_load(address, &v, 4);
  return v;
}

DEV void lds_u32x4(u32 *v, u32 address) { fgh->shared_load(address, v, 16); }

DEV void sts_u32(u32 address, u32 v) { fgh->shared_store(address, &v, 4); }

DEV u16 ldg_u16(const u16 *from) {
  u16 v;
  fgh->global_load(from, &v, 2);
  return v;
}

DEV float ldg_f32(const float *from) {
  float v;
  fgh->global_load(from, &v, 4);
  return v;
}

DEV void stg_u16(u16 *to, u16 v) { fgh->global_store(to, &v, 2); }

DEV void stg_f32(float *to, float v) { fgh->global_store(to, &v, 4); }

DEV void barrier_sync(int id, int threads) { fgh->barrier_sync(id, threads); }

DEV void block_sync(void) { fgh->barrier_sync(0, (int)fgh->block_dim.x); }

DEV void warp_sync(u32 lanes) { fgh->warp_sync(lanes); }

DEV u32 as_u32(float v) {
  union { u32 bits; float value; } x;
  x.value = v;
  return x.bits;
}

DEV float shfl_xor(u32 lanes, float v, int mask) {
  return as_f32(fgh->shuffle(lanes, as_u32(v), (int)(threadIdx.x % 32) ^ mask));
}

DEV float exp2_f32(float x) { return __builtin_exp2f(x); }

DEV float bf16_to_f32(u16 x) { return as_f32((u32)x << 16); }

DEV u16 f32_to_bf16(float x) {
  const u32 u = as_u32(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) { return 0x7fff; }
  return (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
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
  const u16 *bias; // [1, h, nq, nk] bf16
  i64 bias_h, bias_q;
  const u16 *o; // [b, nq, h, 64] bf16
  i64 o_b, o_n, o_h;
  const float *lse; // [b, h, nq] f32
  const u16 *dout; // [b, nq, h, 64] bf16
  i64 dout_b, dout_n, dout_h;
  const float *dlse; // [b, h, nq] f32, or null
  u16 *dq; // [b, nq, h, 64] bf16
  i64 dq_b, dq_n, dq_h;
  u16 *dk; // [b, nk, hk, 64] bf16
  i64 dk_b, dk_n, dk_h;
  u16 *dv; // [b, nk, hk, 64] bf16
  i64 dv_b, dv_n, dv_h;
  u16 *dbias; // [1, h, nq, nk] bf16
  i64 dbias_h, dbias_q;
  float *delta; // scratch
  int b, h, hk, nq, nk;
  float scale;
} Params;

// delta = the constant of each row's dS; one warp a row
static void attn_bwd_delta(const Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const i64 row = (i64)blockIdx.x * WARPS + warp;
  if (row >= (i64)p.b * p.h * p.nq) { return; }
  const i64 q = row % p.nq;
  const i64 h = row / p.nq % p.h;
  const i64 b = row / p.nq / p.h;
  const u16 *o = p.o + (b * p.o_b + h * p.o_h + q * p.o_n);
  const u16 *d_o = p.dout + (b * p.dout_b + h * p.dout_h + q * p.dout_n);
  float dot = 0.0f;
  for (int c = lane; c < DV; c += 32) { dot += to_f32(ldg_u16(o + c)) * to_f32(ldg_u16(d_o + c)); }
  dot = warp_sum(dot);
  if (lane == 0) {
    const float dlse = p.dlse ? ldg_f32(p.dlse + row) : 0.0f;
    stg_f32(p.delta + row, dot - dlse);
  }
}

// dK, dV of BLOCK keys of a key/value head: over its query heads, and their rows that see the keys
static void attn_bwd_dk_dv(const Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const u32 sm = shared_base();
  const int tiles = cdiv(p.nk, BLOCK), block = (int)blockIdx.x;
  const int k0 = block % tiles * BLOCK, g = block / tiles % p.hk, b = block / tiles / p.hk;
  const int group = p.h / p.hk;
  load_rows(sm + SM_ROW_D, PITCH_D, p.k + (b * p.k_b + g * p.k_h), p.k_n, k0, BLOCK, p.nk, D);
  load_rows(sm + SM_ROW_DV, PITCH_DV, p.v + (b * p.v_b + g * p.v_h), p.v_n, k0, BLOCK, p.nk, DV);
  float dk[ROWS][LANE_D], dv[ROWS][LANE_DV];
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    #pragma unroll
    for (int c = 0; c < LANE_D; c++) { dk[r][c] = 0.0f; }
    #pragma unroll
    for (int c = 0; c < LANE_DV; c++) { dv[r][c] = 0.0f; }
  }

  const int q_end = p.nq;
  for (int h = g * group; h < (g + 1) * group; h++) {
    for (int q0 = imax(0, p.nq + k0 - p.nk) / 32 * 32; q0 < q_end; q0 += 32) {
      block_sync(); // the last tile has been read
      load_rows(sm + SM_LANE_D, PITCH_D, p.q + (b * p.q_b + h * p.q_h), p.q_n, q0, 32, p.nq, D);
      load_rows(sm + SM_LANE_DV, PITCH_DV, p.dout + (b * p.dout_b + h * p.dout_h), p.dout_n, q0,
          32, p.nq, DV);
      block_sync();
      float weights[ROWS], ds_lane[ROWS];
      #pragma unroll
      for (int r = 0; r < ROWS; r++) {
        weights[r] = 0.0f;
        ds_lane[r] = 0.0f;
      }
      float s[ROWS], dp[ROWS];
      const u32 row_d = (u32)(warp * ROWS * PITCH_D), row_dv = (u32)(warp * ROWS * PITCH_DV);
      dot_rows(s, sm + SM_ROW_D + row_d, sm + SM_LANE_D + (u32)(lane * PITCH_D), PITCH_D, D);
      dot_rows(dp, sm + SM_ROW_DV + row_dv, sm + SM_LANE_DV + (u32)(lane * PITCH_DV),
          PITCH_DV, DV);
      const int inside = q0 + 32 <= p.nq && k0 + BLOCK <= p.nk && p.nq + (k0 + BLOCK) <= p.nk + q0
          + 1;
      const int q = q0 + lane;
      #pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const int k = k0 + warp * ROWS + r;
        const int of_row0 = q + p.nk - p.nq;
        if (inside || (q < p.nq && k < p.nk && k <= of_row0)) {
          const i64 row = ((i64)b * p.h + h) * p.nq + q;
          const float lse_of_row = ldg_f32(p.lse + row);
          const float delta = ldg_f32(p.delta + row);
          const float score = p.scale * s[r]
              + bf16_to_f32(ldg_u16(p.bias + (h * p.bias_h + q * p.bias_q + k)));
          const float kept = lse_of_row == NEG_INF ? -NEG_INF : lse_of_row * LOG2E;
          const float weight = exp2_f32(score * LOG2E - kept);
          const float ds = weight * (dp[r] - delta);
          weights[r] = weight;
          ds_lane[r] = ds;
        }
      }
      const u32 own = sm + SM_W + (u32)(warp * ROWS * 32 * 4);
      put_weights(own, weights);
      add_rows(&dv[0][0], own, sm + SM_LANE_DV, PITCH_DV, DV); // dV += P^T dO
      put_weights(own, ds_lane);
      add_rows(&dk[0][0], own, sm + SM_LANE_D, PITCH_D, D); // dK += dS^T Q
    }
  }

  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int k = k0 + warp * ROWS + r;
    if (k < p.nk) {
      store_row(p.dk + (b * p.dk_b + g * p.dk_h + k * p.dk_n), dk[r], p.scale, D);
      store_row(p.dv + (b * p.dv_b + g * p.dv_h + k * p.dv_n), dv[r], 1.0f, DV);
    }
  }
}

// dQ of BLOCK rows of a head: over the keys that they see
static void attn_bwd_dq(const Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const u32 sm = shared_base();
  const int tiles = cdiv(p.nq, BLOCK), block = (int)blockIdx.x;
  const int q0 = block % tiles * BLOCK, h = block / tiles % p.h, b = block / tiles / p.h;
  const int g = h / (p.h / p.hk);
  load_rows(sm + SM_ROW_D, PITCH_D, p.q + (b * p.q_b + h * p.q_h), p.q_n, q0, BLOCK, p.nq, D);
  load_rows(sm + SM_ROW_DV, PITCH_DV, p.dout + (b * p.dout_b + h * p.dout_h), p.dout_n, q0, BLOCK,
      p.nq, DV);
  float dq[ROWS][LANE_D];
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    #pragma unroll
    for (int c = 0; c < LANE_D; c++) { dq[r][c] = 0.0f; }
  }

  const int k_end = imin(p.nk, p.nk + (imin(q0 + BLOCK, p.nq)) - p.nq);
  for (int k0 = 0; k0 < k_end; k0 += 32) {
    block_sync(); // the last tile has been read
    load_rows(sm + SM_LANE_D, PITCH_D, p.k + (b * p.k_b + g * p.k_h), p.k_n, k0, 32, p.nk, D);
    load_rows(sm + SM_LANE_DV, PITCH_DV, p.v + (b * p.v_b + g * p.v_h), p.v_n, k0, 32, p.nk, DV);
    block_sync();
    float ds_lane[ROWS];
    #pragma unroll
    for (int r = 0; r < ROWS; r++) { ds_lane[r] = 0.0f; }
    float s[ROWS], dp[ROWS];
    const u32 row_d = (u32)(warp * ROWS * PITCH_D), row_dv = (u32)(warp * ROWS * PITCH_DV);
    dot_rows(s, sm + SM_ROW_D + row_d, sm + SM_LANE_D + (u32)(lane * PITCH_D), PITCH_D, D);
    dot_rows(dp, sm + SM_ROW_DV + row_dv, sm + SM_LANE_DV + (u32)(lane * PITCH_DV), PITCH_DV, DV);
    const int inside = q0 + BLOCK <= p.nq && k0 + 32 <= p.nk && p.nq + (k0 + 32) <= p.nk + q0 + 1;
    const int k = k0 + lane;
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const int q = q0 + warp * ROWS + r;
      const int of_row0 = q + p.nk - p.nq;
      if (inside || (q < p.nq && k < p.nk && k <= of_row0)) {
        const i64 row = ((i64)b * p.h + h) * p.nq + q;
        const float lse_of_row = ldg_f32(p.lse + row);
        const float delta = ldg_f32(p.delta + row);
        const float score = p.scale * s[r]
            + bf16_to_f32(ldg_u16(p.bias + (h * p.bias_h + q * p.bias_q + k)));
        const float kept = lse_of_row == NEG_INF ? -NEG_INF : lse_of_row * LOG2E;
        const float weight = exp2_f32(score * LOG2E - kept);
        const float ds = weight * (dp[r] - delta);
        ds_lane[r] = ds;
      }
    }
    const u32 own = sm + SM_W + (u32)(warp * ROWS * 32 * 4);
    put_weights(own, ds_lane);
    add_rows(&dq[0][0], own, sm + SM_LANE_D, PITCH_D, D); // dQ += dS K
  }

  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int q = q0 + warp * ROWS + r;
    if (q < p.nq) { store_row(p.dq + (b * p.dq_b + h * p.dq_h + q * p.dq_n), dq[r], p.scale, D); }
  }
}

// dbias [1 h q k]: dS summed over the axes that are 1, in a fixed order
static void attn_bwd_dbias(const Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const u32 sm = shared_base();
  const int k0 = (int)blockIdx.x % cdiv(p.nk, 32) * 32;
  const int q0 = (int)blockIdx.x / cdiv(p.nk, 32) % cdiv(p.nq, BLOCK) * BLOCK;
  const int h = (int)blockIdx.x / cdiv(p.nk, 32) / cdiv(p.nq, BLOCK) % p.h;
  float sum[ROWS];
  #pragma unroll
  for (int r = 0; r < ROWS; r++) { sum[r] = 0.0f; }

  for (int b = 0; b < p.b; b++) {
    const int g = h / (p.h / p.hk);
    if (!(p.nk + (imin(q0 + BLOCK, p.nq)) < p.nq + k0 + 1)) {
      block_sync(); // the last tile has been read
      load_rows(sm + SM_ROW_D, PITCH_D, p.q + (b * p.q_b + h * p.q_h), p.q_n, q0, BLOCK, p.nq, D);
      load_rows(sm + SM_ROW_DV, PITCH_DV, p.dout + (b * p.dout_b + h * p.dout_h), p.dout_n, q0,
          BLOCK, p.nq, DV);
      load_rows(sm + SM_LANE_D, PITCH_D, p.k + (b * p.k_b + g * p.k_h), p.k_n, k0, 32, p.nk, D);
      load_rows(sm + SM_LANE_DV, PITCH_DV, p.v + (b * p.v_b + g * p.v_h), p.v_n, k0, 32, p.nk, DV);
      block_sync();
      float s[ROWS], dp[ROWS];
      const u32 row_d = (u32)(warp * ROWS * PITCH_D), row_dv = (u32)(warp * ROWS * PITCH_DV);
      dot_rows(s, sm + SM_ROW_D + row_d, sm + SM_LANE_D + (u32)(lane * PITCH_D), PITCH_D, D);
      dot_rows(dp, sm + SM_ROW_DV + row_dv, sm + SM_LANE_DV + (u32)(lane * PITCH_DV),
          PITCH_DV, DV);
      const int inside = q0 + BLOCK <= p.nq && k0 + 32 <= p.nk && p.nq + (k0 + 32) <= p.nk + q0
          + 1;
      const int k = k0 + lane;
      #pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const int q = q0 + warp * ROWS + r;
        const int of_row0 = q + p.nk - p.nq;
        if (inside || (q < p.nq && k < p.nk && k <= of_row0)) {
          const i64 row = ((i64)b * p.h + h) * p.nq + q;
          const float lse_of_row = ldg_f32(p.lse + row);
          const float delta = ldg_f32(p.delta + row);
          const float score = p.scale * s[r]
              + bf16_to_f32(ldg_u16(p.bias + (h * p.bias_h + q * p.bias_q + k)));
          const float kept = lse_of_row == NEG_INF ? -NEG_INF : lse_of_row * LOG2E;
          const float weight = exp2_f32(score * LOG2E - kept);
          const float ds = weight * (dp[r] - delta);
          sum[r] += ds;
        }
      }
    }
  }

  const int k = k0 + lane;
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int q = q0 + warp * ROWS + r;
    if (q < p.nq && k < p.nk) { stg_u16(p.dbias + (h * p.dbias_h + q * p.dbias_q + k),
        f32_to_bf16(sum[r])); }
  }
}

void attn_bwd_delta_entry(const void *params);
void attn_bwd_delta_entry(const void *params) {
  attn_bwd_delta(*(const Params *)params);
}

void attn_bwd_dk_dv_entry(const void *params);
void attn_bwd_dk_dv_entry(const void *params) {
  attn_bwd_dk_dv(*(const Params *)params);
}

void attn_bwd_dq_entry(const void *params);
void attn_bwd_dq_entry(const void *params) {
  attn_bwd_dq(*(const Params *)params);
}

void attn_bwd_dbias_entry(const void *params);
void attn_bwd_dbias_entry(const void *params) {
  attn_bwd_dbias(*(const Params *)params);
}
