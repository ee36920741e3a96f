// linear_fwd-bf16-w512o2048-act_swiglu.mma-q128-k128-s3-w4.sm_80
//
// y = swiglu(x W^T).
// spec:   kernel=linear width=512/2048 epilogue=swiglu
// again:  flashgen emit linear_fwd-bf16-w512o2048-act_swiglu.mma-q128-k128-s3-w4.sm_80
// made by flashgen 0.1.0
//
// launch: linear_fwd, grid cdiv(rows, 128) * cdiv(4096, 128) x 1 x 1, 128 threads, 98416 shared
//         bytes
//
// shared memory:
//   SM_A        0  the first operand [stages][BLOCK_M][STEP], then the result [BLOCK_M][BLOCK_N]
//   SM_B    49152  the second one [stages][BLOCK_N][STEP]
//   SM_END  98304  what rounding the base to 128 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { ROWS_OF_W = 4096 }; // columns of h
enum { WIDTH_IN = 512 }; // columns of x
enum { WIDTH_OUT = 2048 }; // columns of y
enum { BLOCK_M = 128 }; // rows of a block
enum { BLOCK_N = 128 }; // columns of a block
enum { STEP = 64 }; // products of a sum in a stage
enum { THREADS = 128 };
enum { BAND = 8 }; // tiles of rows that stay in L2 while those of columns go by
enum { WARP_M = 64 }; // rows of a warp
enum { WARP_N = 64 }; // columns of a warp
enum { ACROSS = 2 }; // warps that share rows
enum { M_MAX = 4 }; // tiles of 16 rows of a warp
enum { M_STEP = 16 }; // rows from one of them to the next
enum { N_MAX = 8 }; // tiles of 8 columns of a warp
enum { CHUNKS_K = 8 }; // 16-byte chunks of STEP products
enum { CHUNKS_M = 16 }; // of BLOCK_M rows
enum { CHUNKS_N = 16 }; // of BLOCK_N columns
enum { A_BYTES = 16384 }; // of a tile
enum { B_BYTES = 16384 }; // of a tile
enum { UNROLL = 4 }; // steps of a product in a straight line
enum { SM_A = 0 };
enum { SM_B = 49152 };
enum { SM_END = 98304 };

#define LOG2E 1.4426950408889634f

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

DEV float inverse_f32(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float exp2_f32(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float sigmoid_f32(float x) { return inverse_f32(1.0f + exp2_f32(x * -LOG2E)); }

extern __shared__ __align__(16) unsigned char shared_bytes[];

DEV u32 shared_base(void) { return (u32)__cvta_generic_to_shared(shared_bytes); }

DEV void lds_u32x4(u32 *v, u32 address) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(address) : "memory");
}

DEV void sts_u32(u32 address, u32 v) {
  asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(v) : "memory");
}

DEV void stg_u32x4(void *to, const u32 *v) {
  const uint4 x = {v[0], v[1], v[2], v[3]};
  *(uint4 *)to = x;
}

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV void ldmatrix_x4(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
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

DEV void cp_async_wait_1(void) { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

DEV void mma(float *d, const u32 *a, const u32 *b) { mma_bf16(d, a, b); }

DEV u32 pack(float low, float high) { return pack_bf16(low, high); }

DEV void zero(float *x, int n) {
  #pragma unroll
  for (int i = 0; i < n; i++) { x[i] = 0.0f; }
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

// A tile of `rows` rows of w, 8 of each half in turn, from row `first` of them on; products k on.
DEV void load_halves(u32 tile, int rows, const u16 *w, i64 stride, int first, int k) {
  const int row = (int)threadIdx.x / 8, chunk = (int)threadIdx.x % 8, own = first + row / 16 * 8
      + row % 8;
  const u32 to = chunk_at(tile, CHUNKS_K, row, chunk);
  const u16 *from = w + (own + row / 8 % 2 * WIDTH_OUT) * stride + k + 8 * chunk;
  #pragma unroll
  for (int r = 0; r < rows; r += THREADS / 8, from += THREADS / 16 * stride) {
    const int there = own + r / 2 < WIDTH_OUT && k + 8 * chunk < WIDTH_IN;
    if (row + r < rows) { cp_async_16(moved(to, CHUNKS_K, r, 0), from, there ? 16 : 0); }
  }
}

DEV float activation(float h) {
  const float s = sigmoid_f32(h);
  return h * s;
}

DEV float activation_slope(float h) {
  const float s = sigmoid_f32(h);
  return s * (1.0f + h * (1.0f - s));
}

typedef struct Params {
  const u16 *x; // [rows, 512] bf16
  i64 x_n;
  const u16 *w; // [4096, 512] bf16
  i64 w_n;
  u16 *y; // [rows, 2048] bf16
  i64 y_n;
  u16 *kept; // [rows, 4096] bf16, or null
  i64 kept_n;
  int rows;
} Params;

extern "C" __global__ void __launch_bounds__(128, 1)
linear_fwd(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int tiles_m = cdiv(p.rows, BLOCK_M), tiles_n = cdiv(ROWS_OF_W, BLOCK_N),
      per_band = BAND * tiles_n;
  const int band = (int)blockIdx.x / per_band * BAND, in_band = (int)blockIdx.x % per_band,
      height = imin(BAND, tiles_m - band);
  const int m0 = (band + in_band % height) * BLOCK_M, n0 = in_band / height * BLOCK_N;
  const int m_warp = warp / ACROSS * WARP_M, n_warp = warp % ACROSS * WARP_N;
  const u32 sm = (shared_base() + 127) & ~127u;
  const u32 a_lanes = by_rows(sm, CHUNKS_K, m_warp, 0);
  const u32 b_lanes = by_chunks(sm, CHUNKS_K, n_warp, 0);
  float acc[M_MAX * N_MAX * 4];
  zero(acc, M_MAX * N_MAX * 4);
  #pragma unroll
  for (int stage = 0; stage < 2; stage++) {
    const int k = 0 + stage * STEP;
    if (k < WIDTH_IN) {
      load_tile(sm + SM_A + (u32)(stage * A_BYTES), CHUNKS_K, BLOCK_M, p.x + k, p.x_n, m0, p.rows,
          WIDTH_IN - k);
      load_halves(sm + SM_B + (u32)(stage * B_BYTES), BLOCK_N, p.w, p.w_n, n0 / 2, k);
    }
    cp_async_commit();
  }
  for (int i = 0; 0 + i * STEP < WIDTH_IN; i++) {
    cp_async_wait_1();
    block_sync(); // the stage's tiles are here; the last one's have been read
    const int stage = i % 3;
    {
      const int k = 0 + (i + 2) * STEP, to = (i + 2) % 3;
      if (k < WIDTH_IN) {
        load_tile(sm + SM_A + (u32)(to * A_BYTES), CHUNKS_K, BLOCK_M, p.x + k, p.x_n, m0, p.rows,
            WIDTH_IN - k);
        load_halves(sm + SM_B + (u32)(to * B_BYTES), BLOCK_N, p.w, p.w_n, n0 / 2, k);
      }
      cp_async_commit();
    }
    multiply_nt(acc, M_MAX, N_MAX, SM_A + (u32)(stage * A_BYTES), a_lanes, SM_B
        + (u32)(stage * B_BYTES), b_lanes, CHUNKS_K);
  }
  cp_async_wait_0();
  block_sync(); // all tiles have been read: the result takes their place
  if (p.kept) {
    const u32 pair = chunk_at(sm, CHUNKS_N, m_warp + lane / 4, warp % ACROSS * WARP_N / 8)
        + (u32)(lane % 4 * 4);
    #pragma unroll
    for (int i = 0; i < M_MAX; i++) {
      #pragma unroll
      for (int r = 0; r < 2; r++) {
        if (m0 + m_warp + 16 * i + 8 * r + lane / 4 < p.rows) {
          #pragma unroll
          for (int j = 0; j < N_MAX; j += 2) {
            const float *h = acc + 4 * (N_MAX * i + j) + 2 * r;
            sts_u32(moved(pair, CHUNKS_N, 16 * i + 8 * r, j),
                pack(h[4] * activation_slope(h[0]), h[5] * activation_slope(h[1])));
            sts_u32(moved(pair, CHUNKS_N, 16 * i + 8 * r, j + 1),
                pack(activation(h[0]), activation(h[1])));
          }
        }
      }
    }
    block_sync(); // the tile is whole
    for (int i = (int)threadIdx.x; i < BLOCK_M * CHUNKS_N; i += THREADS) {
      const int row = m0 + i / CHUNKS_N, chunk = i % CHUNKS_N;
      if (row < p.rows && n0 / 2 + chunk / 2 * 8 < WIDTH_OUT) {
        u32 v[4];
        lds_u32x4(v, chunk_at(sm, CHUNKS_N, row - m0, chunk));
        stg_u32x4(p.kept + row * p.kept_n + n0 / 2 + chunk / 2 * 8 + chunk % 2 * WIDTH_OUT, v);
      }
    }
    block_sync(); // it has been read
  }
  {
    const u32 pair = chunk_at(sm, (CHUNKS_N / 2), m_warp + lane / 4,
        warp % ACROSS * WARP_N / 2 / 8) + (u32)(lane % 4 * 4);
    #pragma unroll
    for (int i = 0; i < M_MAX; i++) {
      #pragma unroll
      for (int r = 0; r < 2; r++) {
        if (m0 + m_warp + 16 * i + 8 * r + lane / 4 < p.rows) {
          #pragma unroll
          for (int j = 0; j < N_MAX; j += 2) {
            const float *h = acc + 4 * (N_MAX * i + j) + 2 * r;
            float low = activation(h[0]) * h[4], high = activation(h[1]) * h[5];
            sts_u32(moved(pair, (CHUNKS_N / 2), 16 * i + 8 * r, j / 2), pack(low, high));
          }
        }
      }
    }
  }
  block_sync(); // the tile is whole
  for (int i = (int)threadIdx.x; i < BLOCK_M * (CHUNKS_N / 2); i += THREADS) {
    const int row = m0 + i / (CHUNKS_N / 2), chunk = i % (CHUNKS_N / 2);
    if (row < p.rows && (n0 / 2) + 8 * chunk < WIDTH_OUT) {
      u32 v[4];
      lds_u32x4(v, chunk_at(sm, (CHUNKS_N / 2), row - m0, chunk));
      stg_u32x4(p.y + row * p.y_n + (n0 / 2) + 8 * chunk, v);
    }
  }
}
