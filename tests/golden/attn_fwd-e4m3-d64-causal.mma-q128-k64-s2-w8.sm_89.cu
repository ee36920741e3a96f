// attn_fwd-e4m3-d64-causal.mma-q128-k64-s2-w8.sm_89
//
// O = softmax(score(scale Q K^T)) V, and lse of each row.
// spec:   dtype=e4m3 head_dim=64 mask=causal
// again:  flashgen emit attn_fwd-e4m3-d64-causal.mma-q128-k64-s2-w8.sm_89
// switches: warps_leave_tiles, tile_sums_apart
// made by flashgen 0.1.0
//
// launch: attn_fwd, grid cdiv(nq, 128) x h x b, 256 threads, 32880 shared bytes
//
// shared memory:
//   SM_Q        0  Q [BLOCK_Q][D], then O [BLOCK_Q][DV]
//   SM_K    16384  K [stages][BLOCK_KV][D]
//   SM_V    24576  V [stages][BLOCK_KV][DV]
//   SM_END  32768  what rounding the base to 128 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 64 }; // head dim of q and k
enum { DV = 64 }; // head dim of v and o
enum { CHUNKS_D = 4 }; // 16-byte chunks in a row of Q and K
enum { CHUNKS_DV = 4 }; // in a row of V and O: tiles of 8 columns of O
enum { BLOCK_Q = 128 }; // query rows of a block
enum { BLOCK_KV = 64 }; // keys of a tile
enum { THREADS = 256 };
enum { UNROLL = 2 }; // steps of a product in a straight line
enum { WARP_Q = 16 }; // query rows of a warp
enum { M_MAX = 1 }; // tiles of 16 rows of a warp
enum { M_STEP = 16 }; // rows from one of them to the next
enum { ROWS = 2 }; // rows that a lane has a part of
enum { N_KV = 8 }; // tiles of 8 columns of S
enum { K_BYTES = 4096 }; // of a tile
enum { V_BYTES = 4096 }; // of a tile
enum { INPUT_BYTES = 16384 }; // of a tile of an input of the score
enum { N_DV = 8 }; // tiles of 8 columns of O, and chunks of its rows
enum { SM_Q = 0 };
enum { SM_K = 16384 };
enum { SM_V = 24576 };
enum { SM_END = 32768 };

typedef unsigned char u8;

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

DEV u32 as_u32(float v) { return __float_as_uint(v); }

DEV float abs_f32(float x) { return as_f32(as_u32(x) & 0x7fffffffu); }

extern __shared__ __align__(16) unsigned char shared_bytes[];

DEV u32 shared_base(void) { return (u32)__cvta_generic_to_shared(shared_bytes); }

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

DEV float ldg_f32(const float *from) { return *from; }

DEV void stg_u32x4(void *to, const u32 *v) {
  const uint4 x = {v[0], v[1], v[2], v[3]};
  *(uint4 *)to = x;
}

DEV void stg_f32(float *to, float v) { *to = v; }

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV void warp_sync(u32 lanes) { asm volatile("bar.warp.sync %0;" :: "r"(lanes) : "memory"); }

DEV float shfl_xor(u32 lanes, float v, int mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(mask), "r"(lanes));
  return r;
}

DEV u32 prmt_u32(u32 a, u32 b, u32 selector) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
  return r;
}

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

DEV void ldmatrix_x4(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

DEV void ldmatrix_x4_trans(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

DEV u32 pack_bf16(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

DEV void mma_e4m3(float *d, const u32 *a, const u32 *b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEV u32 pack_e4m3x4(float a, float b, float c, float d) {
  u32 r;
  asm("{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; "
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; mov.b32 %0, {low, high}; }"
      : "=r"(r) : "f"(a), "f"(b), "f"(c), "f"(d));
  return r;
}

DEV void cp_async_16(u32 to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
      :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

DEV void cp_async_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

DEV void cp_async_wait_0(void) { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

DEV void mma(float *d, const u32 *a, const u32 *b) { mma_e4m3(d, a, b); }

DEV u32 pack(float low, float high) { return pack_bf16(low, high); }

// Over the four lanes that hold a row of an accumulator.
DEV float quad_max(float v) {
  v = max_f32(v, shfl_xor(ALL_LANES, v, 1));
  return max_f32(v, shfl_xor(ALL_LANES, v, 2));
}

DEV float quad_sum(float v) {
  v += shfl_xor(ALL_LANES, v, 1);
  return v + shfl_xor(ALL_LANES, v, 2);
}

// The largest of a lane's part of a row of an accumulator: two columns in each of n tiles.
DEV float row_max(const float *own, int n) {
  float most = max_f32(own[0], own[1]);
  #pragma unroll
  for (int i = 1; i < n; i++) { most = max_f32(most, max_f32(own[4 * i], own[4 * i + 1])); }
  return most;
}

DEV void zero(float *x, int n) {
  #pragma unroll
  for (int i = 0; i < n; i++) { x[i] = 0.0f; }
}

DEV void add_numbers(float *sum, const float *x, int n) {
  #pragma unroll
  for (int i = 0; i < n; i++) { sum[i] += x[i]; }
}

// The chunks of a row that are mixed: with 8 / span rows in 128 bytes.
DEV int mixed_chunks(int chunks) { return chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : 2; }

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
DEV void load_tile_by(int thread, int threads, u32 tile, int chunks, int rows, const u8 *from,
    i64 stride, int row0, int end, int width) {
  const int row = thread / 8, chunk = thread % 8;
  const u32 to = chunk_at(tile, chunks, row, chunk),
      to_fifth = chunk_at(tile, chunks, row + 4, chunk);
  from += (row0 + row) * stride + 16 * chunk;
  #pragma unroll
  for (int r = 0; r < rows; r += threads / 8, from += threads / 8 * stride) {
    #pragma unroll
    for (int c = 0; c < chunks; c += 8) {
      if (row + r < rows && chunk + c < chunks) {
        const int there = row0 + row + r < end && 16 * (chunk + c) < width;
        cp_async_16(moved(r % 8 ? to_fifth : to, chunks, r / 8 * 8, c), from + 16 * c, there ? 16
            : 0);
      }
    }
  }
}

// Rows [row0, row0 + rows) of a matrix to a tile, by the whole block; the copies are the thread's
// next group. What lies beyond row `end` or column `width` is 0.
DEV void load_tile(u32 tile, int chunks, int rows, const u8 *from, i64 stride, int row0, int end,
    int width) {
  load_tile_by((int)threadIdx.x, THREADS, tile, chunks, rows, from, stride, row0, end, width);
}

// Changes the sign of the chunks that the thread has loaded by load_tile, and waited for.
DEV void negate_tile(u32 tile, int chunks, int rows) {
  const int row = (int)threadIdx.x / 8, chunk = (int)threadIdx.x % 8;
  for (int r = row; r < rows; r += THREADS / 8) {
    for (int c = chunk; c < chunks; c += 8) {
      u32 v[4];
      lds_u32x4(v, chunk_at(tile, chunks, r, c));
      for (int i = 0; i < 4; i++) { v[i] ^= 0x80808080u; }
      sts_u32x4(chunk_at(tile, chunks, r, c), v);
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

// Four tiles of 8 columns of an accumulator as an operand: two columns of each of two tiles in a
// word.
DEV void pack_weights(u32 *a, const float *c) {
  a[0] = pack_e4m3x4(c[0], c[1], c[4], c[5]);
  a[1] = pack_e4m3x4(c[2], c[3], c[6], c[7]);
  a[2] = pack_e4m3x4(c[8], c[9], c[12], c[13]);
  a[3] = pack_e4m3x4(c[10], c[11], c[14], c[15]);
}

// 32 rows of a tile and two of its chunks, which ldmatrix places by rows: the even columns of a
// chunk, then its odd ones, two words each.
DEV void load_columns(u32 *b, u32 rows, u32 more_rows) {
  u32 x[4], y[4];
  ldmatrix_x4_trans(x, rows);
  ldmatrix_x4_trans(y, more_rows);
  #pragma unroll
  for (int i = 0; i < 2; i++) {
    b[4 * i] = prmt_u32(x[2 * i], x[2 * i + 1], 0x6420);
    b[4 * i + 1] = prmt_u32(y[2 * i], y[2 * i + 1], 0x6420);
    b[4 * i + 2] = prmt_u32(x[2 * i], x[2 * i + 1], 0x7531);
    b[4 * i + 3] = prmt_u32(y[2 * i], y[2 * i + 1], 0x7531);
  }
}

// c[m][n] += P B, of an accumulator P[m][k tiles of 8] and k * 8 rows of a tile; b by rows; n is
// twice the chunks. A tile's sums begin at 0: tensor cores keep few bits of a long one.
DEV void multiply_weights(float *c, int m, int n, const float *p, int k, u32 b_tile, u32 b,
    int chunks) {
  u32 x[M_MAX * N_KV];
  #pragma unroll
  for (int i = 0; i < m; i++) {
    #pragma unroll
    for (int l = 0; l < k; l += 4) { pack_weights(x + k * i + l, p + 4 * (k * i + l)); }
  }
  #pragma unroll
  for (int j = 0; j < chunks; j += 2) {
    float part[M_MAX * 16];
    zero(part, M_MAX * 16);
    #pragma unroll
    for (int l = 0; l < k; l += 4) {
      u32 y[8];
      load_columns(y, b_tile + moved(b, chunks, 8 * l, j), b_tile
          + moved(b, chunks, 8 * l + 16, j));
      #pragma unroll
      for (int i = 0; i < m; i++) {
        #pragma unroll
        for (int t = 0; t < 4; t++) { mma(part + 16 * i + 4 * t, x + k * i + l, y + 2 * t); }
      }
    }
    #pragma unroll
    for (int i = 0; i < m; i++) { add_numbers(c + 4 * n * i + 8 * j, part + 16 * i, 16); }
  }
}

// 16 rows of such an accumulator, times a factor for each of the lane's two rows, to rows row0 on
// of a tile of 16-bit numbers.
DEV void put_columns(u32 tile, int chunks, int row0, const float *c, int n, float low,
    float high) {
  const int lane = (int)threadIdx.x % 32;
  const u32 to = chunk_at(tile, chunks, row0 + lane / 4, lane % 4 / 2) + (u32)(lane % 2 * 8);
  #pragma unroll
  for (int i = 0; i < n; i += 2) {
    const float *even = c + 4 * i, *odd = c + 4 * i + 4;
    #pragma unroll
    for (int e = 0; e < 2; e++) {
      sts_u32(moved(to, chunks, 0, i) + (u32)(4 * e), pack(even[e] * low, odd[e] * low));
      sts_u32(moved(to, chunks, 8, i) + (u32)(4 * e), pack(even[2 + e] * high, odd[2 + e] * high));
    }
  }
}

typedef struct Params {
  const u8 *q; // [b, nq, h, 64] e4m3
  i64 q_b, q_n, q_h;
  const u8 *k; // [b, nk, hk, 64] e4m3
  i64 k_b, k_n, k_h;
  const u8 *v; // [b, nk, hk, 64] e4m3
  i64 v_b, v_n, v_h;
  const float *q_descale; // [b, hk] f32, or null
  i64 q_descale_b, q_descale_h;
  const float *k_descale; // [b, hk] f32, or null
  i64 k_descale_b, k_descale_h;
  const float *v_descale; // [b, hk] f32, or null
  i64 v_descale_b, v_descale_h;
  u16 *o; // [b, nq, h, 64] bf16
  i64 o_b, o_n, o_h;
  float *lse; // [b, h, nq] f32, or null
  int b, h, hk, nq, nk;
  float scale;
} Params;

extern "C" __global__ void __launch_bounds__(256, 1)
attn_fwd(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  // rows that a mask leaves most keys go first; g: the key/value head of h
  const int q0 = (cdiv(p.nq, BLOCK_Q) - 1 - (int)blockIdx.x) * BLOCK_Q;
  const int h = (int)blockIdx.y, b = (int)blockIdx.z, g = h / (p.h / p.hk);
  const int q_warp = q0 + warp * WARP_Q;
  const int q_lane = q0 + warp * WARP_Q + lane / 4;
  const int k_lane = 2 * (lane % 4);
  const u32 sm = (shared_base() + 127) & ~127u;
  const u32 q_lanes = by_rows(sm, CHUNKS_D, warp * WARP_Q, 0),
      k_lanes = by_chunks(sm, CHUNKS_D, 0, 0);
  const u32 v_lanes = by_rows(sm, CHUNKS_DV, 0, 0);
  const u8 *q_head = p.q + (b * p.q_b + h * p.q_h);
  const u8 *k_head = p.k + (b * p.k_b + g * p.k_h);
  const u8 *v_head = p.v + (b * p.v_b + g * p.v_h);
  const float descaled = p.scale * (p.q_descale
      ? ldg_f32(p.q_descale + ((i64)b * p.q_descale_b + (i64)g * p.q_descale_h))
      : 1.0f) * (p.k_descale ? ldg_f32(p.k_descale
      + ((i64)b * p.k_descale_b + (i64)g * p.k_descale_h)) : 1.0f);
  const float descale_o = 0.00390625f * (p.v_descale
      ? ldg_f32(p.v_descale + ((i64)b * p.v_descale_b + (i64)g * p.v_descale_h)) : 1.0f);
  const int key_end = imin(p.nk, p.nk + (imin(q0 + BLOCK_Q, p.nq)) - p.nq);
  int k0 = 0;

  load_tile(sm + SM_Q, CHUNKS_D, BLOCK_Q, q_head, p.q_n, q0, p.nq, D);
  load_tile(sm + SM_K + (u32)(0 * K_BYTES), CHUNKS_D, BLOCK_KV, k_head, p.k_n, k0, p.nk, D);
  load_tile(sm + SM_V + (u32)(0 * V_BYTES), CHUNKS_DV, BLOCK_KV, v_head, p.v_n, k0, p.nk, DV);
  cp_async_commit();
  const float scale = max_f32(abs_f32(descaled), 1e-36f);
  if (descaled < 0.0f) {
    cp_async_wait_0();
    negate_tile(sm + SM_Q, CHUNKS_D, BLOCK_Q);
  }

  float o[M_MAX * N_DV * 4];
  float m[ROWS], l[ROWS];
  zero(o, M_MAX * N_DV * 4);
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    m[r] = NEG_INF;
    l[r] = 0.0f;
  }

  int stage = 0;
  for (; k0 < key_end; k0 += BLOCK_KV) {
    cp_async_wait_0();
    block_sync(); // K and V are here; the last tiles have been read
    {
      const int k_next = k0 + BLOCK_KV;
      const int to = (stage + 1) % 2;
      if (k_next < key_end) {
        load_tile(sm + SM_K + (u32)(to * K_BYTES), CHUNKS_D, BLOCK_KV, k_head, p.k_n, k_next,
            p.nk, D);
        load_tile(sm + SM_V + (u32)(to * V_BYTES), CHUNKS_DV, BLOCK_KV, v_head, p.v_n, k_next,
            p.nk, DV);
      }
      cp_async_commit();
    }

    const int sees = !(p.nk + (imin(q_warp + WARP_Q, p.nq)) < p.nq + k0 + 1);
    // S = Q K^T, the score, and what the mask leaves of it
    float s[M_MAX * N_KV * 4];
    if (sees) {
      zero(s, M_MAX * N_KV * 4);
      multiply_nt(s, M_MAX, N_KV, SM_Q, q_lanes, SM_K, k_lanes + (u32)(stage * K_BYTES), CHUNKS_D);
      if (!(k0 + BLOCK_KV <= p.nk && p.nq + (k0 + BLOCK_KV) <= p.nk + q0 + 1)) {
        #pragma unroll
        for (int r = 0; r < ROWS; r++) {
          float *own = s + 4 * N_KV * (r / 2) + r % 2 * 2;
          const int q = q_lane + 8 * r;
          const int of_row0 = q + p.nk - p.nq;
          #pragma unroll
          for (int n = 0; n < N_KV; n++) {
            #pragma unroll
            for (int c = 0; c < 2; c++) {
              const int k = k0 + k_lane + 8 * n + c;
              if (!(k < p.nk && k <= of_row0)) { own[4 * n + c] = NEG_INF; }
            }
          }
        }
      }

      // the rows' states move on; s becomes P
      #pragma unroll
      for (int r = 0; r < ROWS; r++) {
        float *own = s + 4 * N_KV * (r / 2) + r % 2 * 2;
        const float peak = max_f32(m[r], quad_max(row_max(own, N_KV)) * (scale * LOG2E));
        const float origin = peak == NEG_INF ? 0.0f : peak;
        const float correction = exp2_f32(m[r] - origin);
        l[r] *= correction;
        #pragma unroll
        for (int n = 0; n < N_KV; n++) {
          #pragma unroll
          for (int c = 0; c < 2; c++) {
            own[4 * n + c] = exp2_f32(own[4 * n + c] * (scale * LOG2E) - origin);
            l[r] += own[4 * n + c];
          }
        }
        m[r] = peak;
        #pragma unroll
        for (int n = 0; n < N_DV; n++) {
          #pragma unroll
          for (int c = 0; c < 2; c++) {
            o[4 * (N_DV * (r / 2) + n) + r % 2 * 2 + c] *= correction;
          }
        }
      }

      // O += P V
      #pragma unroll
      for (int e = 0; e < M_MAX * N_KV * 4; e++) { s[e] *= 256.0f; }
      multiply_weights(o, M_MAX, N_DV, s, N_KV, SM_V, v_lanes + (u32)(stage * V_BYTES), CHUNKS_DV);
    }
    stage = (stage + 1) % 2;
  }

  // O goes through the shared memory of Q, to leave in whole rows
  float factor[ROWS];
  #pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int q = q_lane + 8 * r;
    const float total = quad_sum(l[r]);
    const float lse_of_row = total == 0.0f ? NEG_INF : (m[r] + log2_f32(total)) * LN2;
    const float inverse = total == 0.0f ? 0.0f : inverse_f32(total);
    factor[r] = inverse * descale_o;
    if (lane % 4 == 0 && q < p.nq && p.lse) {
      stg_f32(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row);
    }
  }
  cp_async_wait_0();
  block_sync(); // Q has been read
  #pragma unroll
  for (int i = 0; i < M_MAX; i++) {
    const int rows = warp * WARP_Q + 16 * i;
    put_columns(sm + SM_Q, N_DV, rows, o + 4 * N_DV * i, N_DV, factor[2 * i], factor[2 * i + 1]);
    store_rows(p.o + (b * p.o_b + h * p.o_h), p.o_n, q0 + rows, p.nq, DV, sm + SM_Q, N_DV, rows);
  }
}
