// attn_bwd-bf16-d64-causal.mma-q64-k128-s2-w4.sm_80
//
// Gradients of O = softmax(score(scale Q K^T)) V, from dO.
// spec:   pass=backward head_dim=64 mask=causal
// again:  flashgen emit attn_bwd-bf16-d64-causal.mma-q64-k128-s2-w4.sm_80
// switches: none
// made by flashgen 0.1.0
//
// launch: attn_bwd_rows, grid cdiv(roundup(nq, 64), 16) x h x b, 128 threads, 0 shared bytes
// launch: attn_bwd_dk_dv, grid cdiv(nk, 128) x hk x b, 128 threads, 83056 shared bytes
// launch: attn_bwd_dq, grid cdiv(roundup(nq, 64) * 8, 256) x h x b, 128 threads, 0 shared bytes
// scratch: kept, b * h * roundup(nq, 64) * 2 floats
// scratch: dq_sum, b * h * roundup(nq, 64) * 64 floats
//
// shared memory:
//   SM_K         0  K [BLOCK_KV][D], then dK
//   SM_V     16384  V [BLOCK_KV][DV], then dV
//   SM_Q     32768  Q [stages][BLOCK_Q][D]
//   SM_DO    49152  dO [stages][BLOCK_Q][DV]
//   SM_DS    65536  dS^T [BLOCK_KV][BLOCK_Q]
//   SM_KEPT  81920  what is kept of a row, and delta [stages][BLOCK_Q][2], float32
//   SM_END   82944  what rounding the base to 128 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 64 }; // head dim of q and k
enum { DV = 64 }; // head dim of v and o
enum { CHUNKS_D = 8 }; // 16-byte chunks in a row of Q and K
enum { CHUNKS_DV = 8 }; // in a row of V and dO
enum { CHUNKS_Q = 8 }; // in a row of dS^T
enum { BLOCK_Q = 64 }; // query rows of a tile
enum { BLOCK_KV = 128 }; // keys of a block
enum { THREADS = 128 };
enum { UNROLL = 2 }; // steps of a product in a straight line
enum { WARP_KV = 32 }; // keys of a warp
enum { WARPS_PER_KEY = 1 }; // warps that share them
enum { M_MAX = 2 }; // tiles of 16 rows of a warp, at most
enum { M_KV = 2 }; // tiles of 16 keys of a warp
enum { M_STEP = 16 }; // keys from one of them to the next
enum { ROWS = 4 }; // keys that a lane has a part of
enum { N_Q = 4 }; // tiles of 8 queries of S^T and dP^T at a time
enum { N_DK = 8 }; // tiles of 8 columns of a warp's dK
enum { N_DV = 8 }; // of its dV
enum { M_DQ = 2 }; // tiles of 16 rows of dQ at a time
enum { WARPS_Q = 2 }; // warps along the rows of dQ
enum { WARPS_D = 2 }; // warps along its columns
enum { N_DQ = 4 }; // tiles of 8 columns of a warp's dQ
enum { Q_BYTES = 8192 }; // of a tile
enum { DO_BYTES = 8192 }; // of a tile
enum { KEPT_BYTES = 512 }; // of a tile
enum { TILE_Q = 64 }; // query rows of a block that owns rows
enum { TILE_KV = 64 }; // keys of its tiles
enum { N_KV = 8 }; // tiles of 8 keys of its S
enum { SM_K = 0 };
enum { SM_V = 16384 };
enum { SM_Q = 32768 };
enum { SM_DO = 49152 };
enum { SM_DS = 65536 };
enum { SM_KEPT = 81920 };
enum { SM_END = 82944 };

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
#define LOG2E 1.4426950408889634f

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imax(int a, int b) { return a > b ? a : b; }

extern __shared__ __align__(16) unsigned char shared_bytes[];

DEV u32 shared_base(void) { return (u32)__cvta_generic_to_shared(shared_bytes); }

DEV void lds_u32x4(u32 *v, u32 address) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(address) : "memory");
}

DEV void sts_u32(u32 address, u32 v) {
  asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(v) : "memory");
}

DEV void ldg_u32x4(u32 *v, const void *from) {
  const uint4 x = *(const uint4 *)from;
  v[0] = x.x;
  v[1] = x.y;
  v[2] = x.z;
  v[3] = x.w;
}

DEV float ldg_f32(const float *from) { return *from; }

DEV void ldg_f32x4(float *v, const float *from) {
  const float4 x = *(const float4 *)from;
  v[0] = x.x;
  v[1] = x.y;
  v[2] = x.z;
  v[3] = x.w;
}

DEV void stg_u32x4(void *to, const u32 *v) {
  const uint4 x = {v[0], v[1], v[2], v[3]};
  *(uint4 *)to = x;
}

DEV void stg_f32(float *to, float v) { *to = v; }

DEV void stg_f32x4(float *to, const float *v) {
  const float4 x = {v[0], v[1], v[2], v[3]};
  *(float4 *)to = x;
}

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV void warp_sync(u32 lanes) { asm volatile("bar.warp.sync %0;" :: "r"(lanes) : "memory"); }

DEV float shfl_xor(u32 lanes, float v, int mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(mask), "r"(lanes));
  return r;
}

DEV void red_add_f32(float *to, float v) {
  asm volatile("red.global.add.f32 [%0], %1;" :: "l"(to), "f"(v) : "memory");
}

DEV void red_add_f32x4(float *to, const float *v) {
  red_add_f32(to, v[0]);
  red_add_f32(to + 1, v[1]);
  red_add_f32(to + 2, v[2]);
  red_add_f32(to + 3, v[3]);
}

DEV float exp2_f32(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float bf16_to_f32(u16 x) { return as_f32((u32)x << 16); }

DEV void ldmatrix_x4(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

DEV void ldmatrix_x4_trans(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

DEV void mma_bf16(float *d, const u32 *a, const u32 *b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
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

DEV void mma(float *d, const u32 *a, const u32 *b) { mma_bf16(d, a, b); }

DEV u32 pack(float low, float high) { return pack_bf16(low, high); }

DEV float to_f32(u16 x) { return bf16_to_f32(x); }

DEV void zero(float *x, int n) {
  #pragma unroll
  for (int i = 0; i < n; i++) { x[i] = 0.0f; }
}

// The chunks of a row that are mixed: with 8 / span rows in 128 bytes.
DEV int mixed_chunks(int chunks) { return chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : 2; }

// The dot product of 8 numbers and 8 others, two in each word.
DEV float dot_u32x4(const u32 *a, const u32 *b) {
  float dot = 0.0f;
  #pragma unroll
  for (int i = 0; i < 4; i++) {
    dot += to_f32((u16)a[i]) * to_f32((u16)b[i]);
    dot += to_f32((u16)(a[i] >> 16)) * to_f32((u16)(b[i] >> 16));
  }
  return dot;
}

// The same of numbers in memory, 16-byte aligned.
DEV float dot_u16x8(const u16 *x, const u16 *y) {
  u32 a[4], b[4];
  ldg_u32x4(a, x);
  ldg_u32x4(b, y);
  return dot_u32x4(a, b);
}

// The address of a chunk of a tile.
DEV u32 chunk_at(u32 tile, int chunks, int row, int chunk) {
  const int span = mixed_chunks(chunks), turn = row / (8 / span) % span;
  return tile + (u32)(row * chunks + (chunk ^ turn)) * 16;
}

// The address of the chunk that lies `rows`, a multiple of 8, and `chunks_on` from that of `at`;
// the number of that chunk has no bit of chunks_on set.
DEV u32 moved(u32 at, int chunks, int rows, int chunks_on) {
  const int span = mixed_chunks(chunks);
  return (at ^ (u32)(chunks_on % span * 16)) + (u32)(rows * chunks + chunks_on / span * span) * 16;
}

// The same by so many threads, a multiple of 32.
DEV void load_tile_by(int thread, int threads, u32 tile, int chunks, int rows, const u16 *from,
    i64 stride, int row0, int end, int width) {
  const int row = thread / 8, chunk = thread % 8;
  const u32 to = chunk_at(tile, chunks, row, chunk),
      to_fifth = chunk_at(tile, chunks, row + 4, chunk);
  from += (row0 + row) * stride + 8 * chunk;
  #pragma unroll
  for (int r = 0; r < rows; r += threads / 8, from += threads / 8 * stride) {
    #pragma unroll
    for (int c = 0; c < chunks; c += 8) {
      if (row + r < rows && chunk + c < chunks) {
        const int there = row0 + row + r < end && 8 * (chunk + c) < width;
        cp_async_16(moved(r % 8 ? to_fifth : to, chunks, r / 8 * 8, c), from + 8 * c, there ? 16
            : 0);
      }
    }
  }
}

// Rows [row0, row0 + rows) of a matrix to a tile, by the whole block; the copies are the thread's
// next group. What lies beyond row `end` or column `width` is 0.
DEV void load_tile(u32 tile, int chunks, int rows, const u16 *from, i64 stride, int row0, int end,
    int width) {
  load_tile_by((int)threadIdx.x, THREADS, tile, chunks, rows, from, stride, row0, end, width);
}

// 16 rows of an accumulator, n tiles of 8 columns, times a factor for each of the lane's two rows,
// to rows row0 on and chunks chunk0 on of a tile; pairs of column tiles lie `on` chunks apart.
DEV void put_accumulator(u32 tile, int chunks, int row0, int chunk0, int on, const float *c, int n,
    float low, float high) {
  const int row = row0 + (int)threadIdx.x % 32 / 4;
  const u32 to = chunk_at(tile, chunks, row, chunk0) + threadIdx.x % 4 * 4;
  #pragma unroll
  for (int i = 0; i < n; i++) {
    const int chunk = i / 2 * on + i % 2;
    if (chunks % on == 0 || chunk0 + chunk < chunks) {
      sts_u32(moved(to, chunks, 0, chunk), pack(c[4 * i] * low, c[4 * i + 1] * low));
      sts_u32(moved(to, chunks, 8, chunk),
          pack(c[4 * i + 2] * high, c[4 * i + 3] * high));
    }
  }
}

// 16 rows of a tile, which the warp has put there, to rows row0 on of a matrix; none beyond `end`.
DEV void store_rows(u16 *to, i64 stride, int row0, int end, int width, u32 tile, int chunks,
    int tile_row) {
  const int row = (int)threadIdx.x % 32 / 8, chunk = (int)threadIdx.x % 8;
  warp_sync(ALL_LANES);
  #pragma unroll
  for (int r = 0; r < 16; r += 4) {
    #pragma unroll
    for (int c = 0; c < chunks; c += 8) {
      if (row0 + row + r < end && 8 * (chunk + c) < width) {
        u32 v[4];
        lds_u32x4(v, chunk_at(tile, chunks, tile_row + row + r, chunk + c));
        stg_u32x4(to + (i64)(row0 + row + r) * stride + 8 * (chunk + c), v);
      }
    }
  }
}

DEV u32 by_rows(u32 base, int chunks, int row0, int chunk0) {
  const int lane = (int)threadIdx.x % 32;
  return chunk_at(base, chunks, row0 + lane % 16, chunk0 + lane / 16);
}

DEV u32 by_chunks(u32 base, int chunks, int row0, int chunk0) {
  const int lane = (int)threadIdx.x % 32;
  return chunk_at(base, chunks, row0 + lane % 8 + lane / 16 * 8, chunk0 + lane / 8 % 2);
}

// Two tiles of 8 columns of an accumulator as an operand.
DEV void pack_a(u32 *a, const float *c) {
  a[0] = pack(c[0], c[1]);
  a[1] = pack(c[2], c[3]);
  a[2] = pack(c[4], c[5]);
  a[3] = pack(c[6], c[7]);
}

// Two tiles of 8 columns, in all m tiles of 16 rows; a row of the accumulator has n tiles.
DEV void mma_row(float *c, int m, int n, const u32 *a, const u32 *b) {
  #pragma unroll
  for (int i = 0; i < m; i++) {
    mma(c + 4 * n * i, a + 4 * i, b);
    mma(c + 4 * n * i + 4, a + 4 * i, b + 2);
  }
}

// The same of chunks `first` to `end`.
// Unrolled in part: in longer straight lines ptxas moves more loads ahead than registers allow.
DEV void multiply_nt_part(float *c, int m, int n, u32 a_tile, u32 a, u32 b_tile, u32 b, int chunks,
    int first, int end) {
  #pragma unroll UNROLL
  for (int k = first; k < end; k += 2) {
    u32 x[4 * M_MAX], y[4];
    #pragma unroll
    for (int i = 0; i < m; i++) {
      ldmatrix_x4(x + 4 * i, a_tile + moved(a, chunks, M_STEP * i, k));
    }
    #pragma unroll
    for (int j = 0; j < n; j += 2) {
      ldmatrix_x4(y, b_tile + moved(b, chunks, 8 * j, k));
      mma_row(c + 4 * j, m, n, x, y);
    }
  }
}

// c[m][n] += A B^T, of m times 16 rows, M_STEP apart, and n * 8 rows of tiles of one width; a by
// rows, b by chunks.
DEV void multiply_nt(float *c, int m, int n, u32 a_tile, u32 a, u32 b_tile, u32 b, int chunks) {
  multiply_nt_part(c, m, n, a_tile, a, b_tile, b, chunks, 0, chunks);
}

// c[m][n] += P B, of an accumulator P[m][k tiles of 8] and k * 8 rows of a tile; b by rows.
DEV void multiply_pn(float *c, int m, int n, const float *p, int k, u32 b_tile, u32 b,
    int chunks) {
  #pragma unroll
  for (int l = 0; l < k; l += 2) {
    u32 x[4 * M_MAX], y[4];
    #pragma unroll
    for (int i = 0; i < m; i++) { pack_a(x + 4 * i, p + 4 * (k * i + l)); }
    #pragma unroll
    for (int j = 0; j < n; j += 2) {
      ldmatrix_x4_trans(y, b_tile + moved(b, chunks, 8 * l, j));
      mma_row(c + 4 * j, m, n, x, y);
    }
  }
}

// c[m][n] += A^T B, of m * 2 chunks of a tile of a_chunks and `rows` rows, by chunks, and pairs of
// chunks, from chunk0 and `on` apart, of a tile of `chunks`, by rows.
DEV void multiply_tn(float *c, int m, int n, u32 a_tile, u32 a, int a_chunks, u32 b_tile, u32 b,
    int chunks, int chunk0, int on, int rows) {
  #pragma unroll UNROLL
  for (int k = 0; k < rows; k += 16) {
    u32 x[4 * M_MAX], y[4];
    #pragma unroll
    for (int i = 0; i < m; i++) { ldmatrix_x4_trans(x + 4 * i, a_tile
        + moved(a, a_chunks, k, 2 * i)); }
    #pragma unroll
    for (int j = 0; j < n; j += 2) {
      if (chunks % on == 0 || chunk0 + j / 2 * on < chunks) {
        ldmatrix_x4_trans(y, b_tile + moved(b, chunks, k, j / 2 * on));
        mma_row(c + 4 * j, m, n, x, y);
      }
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
  float *kept; // scratch
  float *dq_sum; // scratch
  int b, h, hk, nq, nk;
  float scale;
} Params;

// what is kept of each row, and delta, the constant of its dS; 8 threads a row. Rows up to the end
// of the last tile have weights of 0. Sums of dQ begin at 0.
extern "C" __global__ void __launch_bounds__(128, 1)
attn_bwd_rows(const __grid_constant__ Params p) {
  const int padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q, lane = (int)threadIdx.x % 8;
  const int q = (int)blockIdx.x * (THREADS / 8) + (int)threadIdx.x / 8, h = (int)blockIdx.y,
      b = (int)blockIdx.z;
  const i64 head = (i64)b * p.h + h;
  const i64 row = head * p.nq + q;
  const int there = q < p.nq;
  const int first = there && lane == 0;
  const float lse_of_row = first ? ldg_f32(p.lse + row) : NEG_INF;
  const float dlse = first && p.dlse ? ldg_f32(p.dlse + row) : 0.0f;
  float dot = 0.0f;
  if (there) {
    const u16 *o = p.o + (b * p.o_b + h * p.o_h + q * p.o_n);
    const u16 *d_o = p.dout + (b * p.dout_b + h * p.dout_h + q * p.dout_n);
    for (int c = 8 * lane; c < DV; c += 64) { dot += dot_u16x8(o + c, d_o + c); }
  }
  #pragma unroll
  for (int mask = 4; mask > 0; mask /= 2) { dot += shfl_xor(ALL_LANES, dot, mask); }
  if (lane == 0) {
    float *kept = p.kept + 2 * (head * padded + q);
    stg_f32(kept, lse_of_row == NEG_INF ? -NEG_INF : lse_of_row * LOG2E);
    stg_f32(kept + 1, dot - dlse);
  }
  float *sum = p.dq_sum + (head * padded + q) * (8 * CHUNKS_D);
  const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int i = 4 * lane; i < 8 * CHUNKS_D; i += 32) { stg_f32x4(sum + i, zeros); }
}

// dK and dV of BLOCK_KV keys of a key/value head: over its query heads, and their rows that see
// the keys.
// What each tile adds to dQ goes to dq_sum: [b, h, tiles of 16 rows, CHUNKS_D, 32 lanes, 4]
extern "C" __global__ void __launch_bounds__(128, 1)
attn_bwd_dk_dv(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int k0 = (int)blockIdx.x * BLOCK_KV, g = (int)blockIdx.y, b = (int)blockIdx.z;
  const int heads = p.h / p.hk, padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
  const int row_end = p.nq, first_row = imax(0, p.nq + k0 - p.nk) / BLOCK_Q * BLOCK_Q;
  const int warp_k = warp * WARP_KV;
  const int k_lane = warp_k + lane / 4;
  const u32 sm = (shared_base() + 127) & ~127u;

  load_tile(sm + SM_K, CHUNKS_D, BLOCK_KV, p.k + (b * p.k_b + g * p.k_h), p.k_n, k0, p.nk, D);
  load_tile(sm + SM_V, CHUNKS_DV, BLOCK_KV, p.v + (b * p.v_b + g * p.v_h), p.v_n, k0, p.nk, DV);
  int h = g * heads, q0 = first_row;
  const int h_end = first_row < row_end ? h + heads : h;
  if (h < h_end) {
    load_tile(sm + SM_Q + (u32)(0 * Q_BYTES), CHUNKS_D, BLOCK_Q, p.q + (b * p.q_b + h * p.q_h),
        p.q_n, q0, p.nq, D);
    load_tile(sm + SM_DO + (u32)(0 * DO_BYTES), CHUNKS_DV, BLOCK_Q, p.dout
        + (b * p.dout_b + h * p.dout_h), p.dout_n, q0, p.nq, DV);
    for (int i = (int)threadIdx.x; i < BLOCK_Q / 2; i += THREADS) {
      const float *from = p.kept + 2 * (((i64)b * p.h + h) * padded + q0) + 4 * i;
      cp_async_16(sm + SM_KEPT + (u32)(0 * KEPT_BYTES) + (u32)(16 * i), from, 16);
    }
  }
  cp_async_commit();

  const u32 kd_lanes = by_rows(sm, CHUNKS_D, warp_k, 0),
      kv_lanes = by_rows(sm, CHUNKS_DV, warp_k, 0);
  const u32 d_rows = by_rows(sm, CHUNKS_D, 0, 0), dv_rows = by_rows(sm, CHUNKS_DV, 0, 0);
  const u32 d_lanes = by_chunks(sm, CHUNKS_D, 0, 0), dv_lanes = by_chunks(sm, CHUNKS_DV, 0, 0);
  const int dq_row = warp % WARPS_Q * 32, dq_chunk = warp / WARPS_Q * 2;
  const u32 ds_lanes = by_chunks(sm, CHUNKS_Q, 0, dq_row / 8),
      dq_rows = by_rows(sm, CHUNKS_D, 0, dq_chunk);

  float dk[M_KV * N_DK * 4], dv[M_KV * N_DV * 4];
  zero(dk, M_KV * N_DK * 4);
  zero(dv, M_KV * N_DV * 4);
  int stage = 0;
  while (h < h_end) {
    cp_async_wait_0();
    block_sync(); // the tile is here; the last one, and its dS, have been read
    int h_next = h, q_next = q0;
    q_next += BLOCK_Q;
    if (q_next >= row_end) {
      q_next = first_row;
      h_next++;
    }
    if (h_next < h_end) {
      load_tile(sm + SM_Q + (u32)((1 - stage) * Q_BYTES), CHUNKS_D, BLOCK_Q, p.q
          + (b * p.q_b + h_next * p.q_h), p.q_n, q_next, p.nq, D);
      load_tile(sm + SM_DO + (u32)((1 - stage) * DO_BYTES), CHUNKS_DV, BLOCK_Q, p.dout
          + (b * p.dout_b + h_next * p.dout_h), p.dout_n, q_next, p.nq, DV);
      for (int i = (int)threadIdx.x; i < BLOCK_Q / 2; i += THREADS) {
        const float *from = p.kept + 2 * (((i64)b * p.h + h_next) * padded + q_next) + 4 * i;
        cp_async_16(sm + SM_KEPT + (u32)((1 - stage) * KEPT_BYTES) + (u32)(16 * i), from, 16);
      }
    }
    cp_async_commit();

    #pragma unroll 1
    for (int from = 0; from < BLOCK_Q; from += 8 * N_Q) {
      const int q_lane = from + 2 * (lane % 4);

      // S^T = K Q^T, the score, and what the mask leaves of it
      float s[M_KV * N_Q * 4];
      zero(s, M_KV * N_Q * 4);
      multiply_nt(s, M_KV, N_Q, SM_K, kd_lanes, SM_Q, d_lanes + (u32)(stage * Q_BYTES)
          + (u32)(from * CHUNKS_D * 16), CHUNKS_D);
      if (!(q0 + BLOCK_Q <= p.nq && k0 + BLOCK_KV <= p.nk && p.nq + (k0 + BLOCK_KV) <= p.nk + q0
          + 1)) {
        const float hidden = p.scale < 0.0f ? -(NEG_INF) : NEG_INF;
        #pragma unroll
        for (int n = 0; n < N_Q; n++) {
          #pragma unroll
          for (int c = 0; c < 2; c++) {
            const int q = q0 + q_lane + 8 * n + c;
            const int of_row0 = q + p.nk - p.nq;
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
              const int e = 4 * (N_Q * (r / 2) + n) + r % 2 * 2 + c;
              const int k = k0 + k_lane + 8 * r;
              if (!(q < p.nq && k < p.nk && k <= of_row0)) { s[e] = hidden; }
            }
          }
        }
      }

      // s becomes P^T
      #pragma unroll
      for (int n = 0; n < N_Q; n++) {
        u32 row[4]; // kept and delta of the lane's two queries
        lds_u32x4(row, sm + SM_KEPT + (u32)(stage * KEPT_BYTES) + (u32)(8 * (q_lane + 8 * n)));
        #pragma unroll
        for (int c = 0; c < 2; c++) {
          const float kept = as_f32(row[2 * c]);
          #pragma unroll
          for (int r = 0; r < ROWS; r++) {
            const int e = 4 * (N_Q * (r / 2) + n) + r % 2 * 2 + c;
            s[e] = exp2_f32(s[e] * (p.scale * LOG2E) - kept);
          }
        }
      }
      multiply_pn(dv, M_KV, N_DV, s, N_Q, SM_DO, dv_rows + (u32)(stage * DO_BYTES)
          + (u32)(from * CHUNKS_DV * 16), CHUNKS_DV);

      // dP^T = V dO^T, which becomes dS^T; dK += dS^T Q
      float dp[M_KV * N_Q * 4];
      zero(dp, M_KV * N_Q * 4);
      multiply_nt(dp, M_KV, N_Q, SM_V, kv_lanes, SM_DO, dv_lanes + (u32)(stage * DO_BYTES)
          + (u32)(from * CHUNKS_DV * 16), CHUNKS_DV);
      #pragma unroll
      for (int n = 0; n < N_Q; n++) {
        u32 row[4]; // kept and delta of the lane's two queries
        lds_u32x4(row, sm + SM_KEPT + (u32)(stage * KEPT_BYTES) + (u32)(8 * (q_lane + 8 * n)));
        #pragma unroll
        for (int c = 0; c < 2; c++) {
          const float delta = as_f32(row[2 * c + 1]);
          #pragma unroll
          for (int r = 0; r < ROWS; r++) {
            const int e = 4 * (N_Q * (r / 2) + n) + r % 2 * 2 + c;
            dp[e] = s[e] * (dp[e] - delta);
          }
        }
      }
      #pragma unroll
      for (int i = 0; i < M_KV; i++) {
        put_accumulator(sm + SM_DS, CHUNKS_Q, warp_k + M_STEP * i, from / 8, 2, dp + 4 * N_Q * i,
            N_Q, 1.0f, 1.0f);
      }
      multiply_pn(dk, M_KV, N_DK, dp, N_Q, SM_Q, d_rows + (u32)(stage * Q_BYTES)
          + (u32)(from * CHUNKS_D * 16), CHUNKS_D);
    }
    block_sync(); // dS is whole

    // dQ += dS K: the warp's 32 rows and pairs of column tiles
    float dq[M_DQ * N_DQ * 4];
    zero(dq, M_DQ * N_DQ * 4);
    multiply_tn(dq, M_DQ, N_DQ, SM_DS, ds_lanes, CHUNKS_Q, SM_K, dq_rows, CHUNKS_D, dq_chunk,
        2 * WARPS_D, BLOCK_KV);
    float *sum = p.dq_sum + ((((i64)b * p.h + h) * padded + q0 + dq_row) / 16 * CHUNKS_D
        + dq_chunk) * 128 + 4 * lane;
    #pragma unroll
    for (int i = 0; i < M_DQ * N_DQ; i++) {
      const int chunk = i % N_DQ / 2 * (2 * WARPS_D) + i % 2;
      if (CHUNKS_D % (2 * WARPS_D) == 0 || dq_chunk + chunk < CHUNKS_D) {
        red_add_f32x4(sum + 128 * (i / N_DQ * CHUNKS_D + chunk), dq + 4 * i);
      }
    }
    stage = 1 - stage;
    h = h_next;
    q0 = q_next;
  }

  cp_async_wait_0();
  // dK and dV go through the shared memory of K and V, to leave in whole rows
  block_sync(); // K and V have been read
  #pragma unroll
  for (int i = 0; i < M_KV; i++) {
    const int row = warp_k + M_STEP * i;
    put_accumulator(sm + SM_K, CHUNKS_D, row, 0, 2 * WARPS_PER_KEY, dk + 4 * N_DK * i, N_DK,
        p.scale, p.scale);
    put_accumulator(sm + SM_V, CHUNKS_DV, row, 0, 2 * WARPS_PER_KEY, dv + 4 * N_DV * i, N_DV,
        1.0f, 1.0f);
  }
  block_sync();
  for (int row = 16 * warp; row < BLOCK_KV; row += THREADS / 2) {
    store_rows(p.dk + (b * p.dk_b + g * p.dk_h), p.dk_n, k0 + row, p.nk, D, sm + SM_K,
        CHUNKS_D, row);
    store_rows(p.dv + (b * p.dv_b + g * p.dv_h), p.dv_n, k0 + row, p.nk, DV, sm + SM_V,
        CHUNKS_DV, row);
  }
}

// dQ = scale times its sums; a thread has 8 columns of two rows
extern "C" __global__ void __launch_bounds__(128, 1)
attn_bwd_dq(const __grid_constant__ Params p) {
  const int padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
  const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
  const int h = (int)blockIdx.y, b = (int)blockIdx.z;
  const int row = (int)(at / (D / 8)), chunk = (int)(at % (D / 8)), q = row / 8 * 16 + row % 8;
  if (q < padded) {
    const float *sum = p.dq_sum + (((((i64)b * p.h + h) * padded + q) / 16 * CHUNKS_D
        + chunk) * 32 + q % 8 * 4) * 4;
    u32 low[4], high[4];
    #pragma unroll
    for (int i = 0; i < 4; i++) {
      float x[4];
      ldg_f32x4(x, sum + 4 * i);
      low[i] = pack(x[0] * p.scale, x[1] * p.scale);
      high[i] = pack(x[2] * p.scale, x[3] * p.scale);
    }
    u16 *to = p.dq + (b * p.dq_b + h * p.dq_h + q * p.dq_n) + 8 * chunk;
    if (q < p.nq) { stg_u32x4(to, low); }
    if (q + 8 < p.nq) { stg_u32x4(to + 8 * p.dq_n, high); }
  }
}
