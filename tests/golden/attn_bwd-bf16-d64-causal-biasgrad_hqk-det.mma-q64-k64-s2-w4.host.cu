// attn_bwd-bf16-d64-causal-biasgrad_hqk-det.mma-q64-k64-s2-w4.host
//
// Gradients of O = softmax(score(scale Q K^T)) V, from dO.
// spec:   pass=backward head_dim=64 mask=causal bias=grad bias_dims=h,q,k deterministic=true
// again:  flashgen emit attn_bwd-bf16-d64-causal-biasgrad_hqk-det.mma-q64-k64-s2-w4.host
// switches: starts_early
// made by flashgen 0.1.0
//
// launch: attn_bwd_rows, grid cdiv(roundup(nq, 64), 16) x h x b, 128 threads, 0 shared bytes,
//         early
// launch: attn_bwd_dk_dv, grid cdiv(nk, 64) x hk x b, 128 threads, 58480 shared bytes, early
// launch: attn_bwd_dq, grid cdiv(nq, 64) x h x b, 128 threads, 32880 shared bytes
// launch: attn_bwd_dbias, grid h * cdiv(nq, 64) * cdiv(nk, 64) x 1 x 1, 128 threads, 32880 shared
//         bytes
// scratch: kept, b * h * roundup(nq, 64) * 2 floats
//
// shared memory:
//   SM_K             0  K [BLOCK_KV][D], then dK
//   SM_V          8192  V [BLOCK_KV][DV], then dV
//   SM_Q         16384  Q [stages][BLOCK_Q][D]
//   SM_DO        32768  dO [stages][BLOCK_Q][DV]
//   SM_INPUT     49152  bias [BLOCK_Q][BLOCK_KV]
//   SM_KEPT      57344  what is kept of a row, and delta [stages][BLOCK_Q][2], float32
//   SM_END       58368  what rounding the base to 128 bytes may take
//   SM_ROWS_Q        0  Q [TILE_Q][D], then dQ
//   SM_ROWS_DO    8192  dO [TILE_Q][DV]
//   SM_ROWS_K    16384  K [TILE_KV][D], then sums
//   SM_ROWS_V    24576  V [TILE_KV][DV]
//   SM_ROWS_END  32768  what rounding the base to 128 bytes may take

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
enum { CHUNKS_D = 8 }; // 16-byte chunks in a row of Q and K
enum { CHUNKS_DV = 8 }; // in a row of V and dO
enum { CHUNKS_Q = 8 }; // in a row of dS^T
enum { BLOCK_Q = 64 }; // query rows of a tile
enum { BLOCK_KV = 64 }; // keys of a block
enum { THREADS = 128 };
enum { UNROLL = 2 }; // steps of a product in a straight line
enum { WARP_KV = 16 }; // keys of a warp
enum { WARPS_PER_KEY = 1 }; // warps that share them
enum { M_MAX = 2 }; // tiles of 16 rows of a warp, at most
enum { M_KV = 1 }; // tiles of 16 keys of a warp
enum { M_STEP = 16 }; // keys from one of them to the next
enum { ROWS = 2 }; // keys that a lane has a part of
enum { N_Q = 8 }; // tiles of 8 queries of S^T and dP^T at a time
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
enum { SM_V = 8192 };
enum { SM_Q = 16384 };
enum { SM_DO = 32768 };
enum { SM_INPUT = 49152 };
enum { SM_KEPT = 57344 };
enum { SM_END = 58368 };
enum { SM_ROWS_Q = 0 };
enum { SM_ROWS_DO = 8192 };
enum { SM_ROWS_K = 16384 };
enum { SM_ROWS_V = 24576 };
enum { SM_ROWS_END = 32768 };

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

DEV void lds_u32x4(u32 *v, u32 address) { fgh->shared_load(address, v, 16); }

DEV void sts_u32(u32 address, u32 v) { fgh->shared_store(address, &v, 4); }

DEV u16 ldg_u16(const u16 *from) {
  u16 v;
  fgh->global_load(from, &v, 2);
  return v;
}

DEV void ldg_u32x4(u32 *v, const void *from) { fgh->global_load(from, v, 16); }

DEV float ldg_f32(const float *from) {
  float v;
  fgh->global_load(from, &v, 4);
  return v;
}

DEV void stg_u16(u16 *to, u16 v) { fgh->global_store(to, &v, 2); }

DEV void stg_u32x4(void *to, const u32 *v) { fgh->global_store(to, v, 16); }

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

DEV void ldmatrix_x4(u32 *r, u32 address) { fgh->ldmatrix(r, address, 0); }

DEV void ldmatrix_x4_trans(u32 *r, u32 address) { fgh->ldmatrix(r, address, 1); }

DEV void mma_bf16(float *d, const u32 *a, const u32 *b) { fgh->mma_bf16(d, a, b); }

DEV u32 pack_bf16(float low, float high) {
  return f32_to_bf16(low) | (u32)f32_to_bf16(high) << 16;
}

DEV void cp_async_16(u32 to, const void *from, int bytes) { fgh->cp_async(to, from, 16, bytes); }

DEV void cp_async_commit(void) { fgh->cp_async_commit(); }

DEV void cp_async_wait_0(void) { fgh->cp_async_wait(0); }

DEV void grid_wait(void) { fgh->grid_wait(); }

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

// The same of a matrix whose width is no multiple of 8, so that a row's last chunk is copied in
// part; at once and by pairs where its rows are not aligned to 16 bytes.
DEV void load_ragged_tile(u32 tile, int chunks, int rows, const u16 *from, i64 stride, int row0,
    int end, int width, int aligned) {
  const int whole = row0 + rows <= end && 8 * chunks <= width;
  if (aligned) {
    const int row = (int)threadIdx.x / 8, chunk = (int)threadIdx.x % 8;
    const u32 to = chunk_at(tile, chunks, row, chunk);
    from += (row0 + row) * stride + 8 * chunk;
    #pragma unroll
    for (int r = 0; r < rows; r += THREADS / 8, from += THREADS / 8 * stride) {
      #pragma unroll
      for (int c = 0; c < chunks; c += 8) {
        if (row + r < rows && chunk + c < chunks) {
          const int there = row0 + row + r < end ? 2 * (width - 8 * (chunk + c)) : 0;
          cp_async_16(moved(to, chunks, r, c), from + 8 * c, whole ? 16
              : imax(0, imin(16, there)));
        }
      }
    }
  } else {
    for (int i = (int)threadIdx.x; i < 4 * rows * chunks; i += THREADS) {
      const int row = i / (4 * chunks), column = i % (4 * chunks) * 2;
      const u16 *at = from + ((row0 + row) * stride + column);
      u32 pair = 0;
      if (row0 + row < end && column < width) { pair = (u32)ldg_u16(at); }
      if (row0 + row < end && column + 1 < width) { pair |= (u32)ldg_u16(at + 1) << 16; }
      sts_u32(chunk_at(tile, chunks, row, column / 8) + (u32)(column % 8 * 2), pair);
    }
  }
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
  float *kept; // scratch
  int b, h, hk, nq, nk;
  float scale;
} Params;

// what is kept of each row, and delta, the constant of its dS; 8 threads a row. Rows up to the end
// of the last tile have weights of 0.
static void attn_bwd_rows(const Params p) {
  grid_wait(); // until the grid before has ended
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
}

// dK and dV of BLOCK_KV keys of a key/value head: over its query heads, and their rows that see
// the keys.
static void attn_bwd_dk_dv(const Params p) {
  grid_wait(); // until the grid before has ended
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int k0 = (int)blockIdx.x * BLOCK_KV, g = (int)blockIdx.y, b = (int)blockIdx.z;
  const int heads = p.h / p.hk, padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
  const int row_end = p.nq, first_row = imax(0, p.nq + k0 - p.nk) / BLOCK_Q * BLOCK_Q;
  const int warp_k = warp * WARP_KV;
  const int k_lane = warp_k + lane / 4;
  const u32 sm = (shared_base() + 127) & ~127u;

  const int input_aligned = (((u64)p.bias | 2 * (u64)(p.bias_h | p.bias_q)) & 15) == 0;
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
    load_ragged_tile(sm + SM_INPUT, BLOCK_KV / 8, BLOCK_Q, p.bias + (h * p.bias_h) + k0, p.bias_q,
        q0, p.nq, p.nk - k0, input_aligned);
  }
  cp_async_commit();

  const u32 kd_lanes = by_rows(sm, CHUNKS_D, warp_k, 0),
      kv_lanes = by_rows(sm, CHUNKS_DV, warp_k, 0);
  const u32 d_rows = by_rows(sm, CHUNKS_D, 0, 0), dv_rows = by_rows(sm, CHUNKS_DV, 0, 0);
  const u32 d_lanes = by_chunks(sm, CHUNKS_D, 0, 0), dv_lanes = by_chunks(sm, CHUNKS_DV, 0, 0);
  const u32 input_lanes = by_chunks(sm, BLOCK_KV / 8, 0, warp_k / 8);

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

    const int q_lane = 0 + 2 * (lane % 4);

    // S^T = K Q^T, the score, and what the mask leaves of it
    float s[M_KV * N_Q * 4];
    zero(s, M_KV * N_Q * 4);
    multiply_nt(s, M_KV, N_Q, SM_K, kd_lanes, SM_Q, d_lanes + (u32)(stage * Q_BYTES), CHUNKS_D);
    if (q0 + BLOCK_Q <= p.nq && k0 + BLOCK_KV <= p.nk && p.nq + (k0 + BLOCK_KV) <= p.nk + q0 + 1) {
      #pragma unroll
      for (int n = 0; n < N_Q; n += 2) {
        #pragma unroll
        for (int i = 0; i < M_KV; i++) {
          u32 x[4]; // of 16 keys and queries, in the layout of s
          ldmatrix_x4_trans(x, SM_INPUT + moved(input_lanes, BLOCK_KV / 8, 8 * n, 2 * i));
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int e = 4 * (N_Q * i + n + j / 4) + j % 4;
            const u16 bias = (u16)(x[j / 4 * 2 + j / 2 % 2] >> j % 2 * 16);
            s[e] = p.scale * s[e] + bf16_to_f32(bias);
          }
        }
      }
    } else {
      #pragma unroll
      for (int n = 0; n < N_Q; n += 2) {
        #pragma unroll
        for (int i = 0; i < M_KV; i++) {
          u32 x[4]; // of 16 keys and queries, in the layout of s
          ldmatrix_x4_trans(x, SM_INPUT + moved(input_lanes, BLOCK_KV / 8, 8 * n, 2 * i));
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int e = 4 * (N_Q * i + n + j / 4) + j % 4;
            const int q = q0 + q_lane + 8 * (n + j / 4) + j % 2;
            const int of_row0 = q + p.nk - p.nq;
            const int k = k0 + k_lane + 16 * i + j / 2 % 2 * 8;
            const u16 bias = (u16)(x[j / 4 * 2 + j / 2 % 2] >> j % 2 * 16);
            s[e] = q < p.nq && k < p.nk && k <= of_row0 ? p.scale * s[e] + bf16_to_f32(bias)
                : NEG_INF;
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
          s[e] = exp2_f32(s[e] * LOG2E - kept);
        }
      }
    }
    multiply_pn(dv, M_KV, N_DV, s, N_Q, SM_DO, dv_rows + (u32)(stage * DO_BYTES), CHUNKS_DV);

    // dP^T = V dO^T, which becomes dS^T; dK += dS^T Q
    float dp[M_KV * N_Q * 4];
    zero(dp, M_KV * N_Q * 4);
    multiply_nt(dp, M_KV, N_Q, SM_V, kv_lanes, SM_DO, dv_lanes
        + (u32)(stage * DO_BYTES), CHUNKS_DV);
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
    multiply_pn(dk, M_KV, N_DK, dp, N_Q, SM_Q, d_rows + (u32)(stage * Q_BYTES), CHUNKS_D);
    block_sync(); // dS is whole
    if (h_next < h_end) {
      load_ragged_tile(sm + SM_INPUT, BLOCK_KV / 8, BLOCK_Q, p.bias + (h_next * p.bias_h) + k0,
          p.bias_q, q_next, p.nq, p.nk - k0, input_aligned);
    }
    cp_async_commit();

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

// dQ of TILE_Q rows of a head: over the keys that they see
static void attn_bwd_dq(const Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int q0 = (cdiv(p.nq, TILE_Q) - 1 - (int)blockIdx.x) * TILE_Q, h = (int)blockIdx.y,
      b = (int)blockIdx.z;
  const int g = h / (p.h / p.hk), padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
  const int q_lane = 16 * warp + lane / 4, k_lane = 2 * (lane % 4);
  const u32 sm = (shared_base() + 127) & ~127u;
  float kept[2], delta[2];
  float dq[CHUNKS_D * 4];
  load_tile(sm + SM_ROWS_Q, CHUNKS_D, TILE_Q, p.q + (b * p.q_b + h * p.q_h), p.q_n, q0, p.nq, D);
  load_tile(sm + SM_ROWS_DO, CHUNKS_DV, TILE_Q, p.dout + (b * p.dout_b + h * p.dout_h), p.dout_n,
      q0, p.nq, DV);
  #pragma unroll
  for (int r = 0; r < 2; r++) {
    const int q = q0 + q_lane + 8 * r;
    const float *row = p.kept + 2 * (((i64)b * p.h + h) * padded + q);
    kept[r] = q < p.nq ? ldg_f32(row) : -NEG_INF; // no weight, or no row that is stored
    delta[r] = q < p.nq ? ldg_f32(row + 1) : 0.0f;
  }
  cp_async_commit();
  zero(dq, CHUNKS_D * 4);

  const int key_end = imin(p.nk, p.nk + (imin(q0 + TILE_Q, p.nq)) - p.nq);
  for (int k0 = 0; k0 < key_end; k0 += TILE_KV) {
    block_sync(); // the last tile has been read
    load_tile(sm + SM_ROWS_K, CHUNKS_D, TILE_KV, p.k + (b * p.k_b + g * p.k_h), p.k_n, k0,
        p.nk, D);
    load_tile(sm + SM_ROWS_V, CHUNKS_DV, TILE_KV, p.v + (b * p.v_b + g * p.v_h), p.v_n, k0,
        p.nk, DV);
    cp_async_commit();
    cp_async_wait_0();
    block_sync();
    float s[N_KV * 4], dp[N_KV * 4];
    zero(s, N_KV * 4);
    zero(dp, N_KV * 4);
    multiply_nt(s, 1, N_KV, SM_ROWS_Q, by_rows(sm, CHUNKS_D, 16 * warp, 0), SM_ROWS_K,
        by_chunks(sm, CHUNKS_D, 0, 0), CHUNKS_D);
    multiply_nt(dp, 1, N_KV, SM_ROWS_DO, by_rows(sm, CHUNKS_DV, 16 * warp, 0), SM_ROWS_V,
        by_chunks(sm, CHUNKS_DV, 0, 0), CHUNKS_DV);
    if (q0 + TILE_Q <= p.nq && k0 + TILE_KV <= p.nk && p.nq + (k0 + TILE_KV) <= p.nk + q0 + 1) {
      #pragma unroll
      for (int r = 0; r < 2; r++) {
        const int q = q0 + q_lane + 8 * r;
        const u16 *of_row1 = p.bias + (h * p.bias_h + q * p.bias_q + (k0 + k_lane));
        #pragma unroll
        for (int n = 0; n < N_KV; n++) {
          #pragma unroll
          for (int c = 0; c < 2; c++) {
            const int e = 4 * n + 2 * r + c;
            const float scored = p.scale * s[e] + bf16_to_f32(ldg_u16(of_row1 + (8 * n + c)));
            const float weight = exp2_f32(scored * LOG2E - kept[r]);
            const float ds = weight * (dp[e] - delta[r]);

            dp[e] = ds;
          }
        }
      }
    } else {
      #pragma unroll
      for (int r = 0; r < 2; r++) {
        const int q = q0 + q_lane + 8 * r;
        const int of_row0 = q + p.nk - p.nq;
        const u16 *of_row1 = p.bias + (h * p.bias_h + q * p.bias_q + (k0 + k_lane));
        #pragma unroll
        for (int n = 0; n < N_KV; n++) {
          #pragma unroll
          for (int c = 0; c < 2; c++) {
            const int e = 4 * n + 2 * r + c;
            const int k = k0 + k_lane + 8 * n + c;
            if (!(q < p.nq && k < p.nk && k <= of_row0)) {
              dp[e] = 0.0f;
              continue;
            }
            const float scored = p.scale * s[e] + bf16_to_f32(ldg_u16(of_row1 + (8 * n + c)));
            const float weight = exp2_f32(scored * LOG2E - kept[r]);
            const float ds = weight * (dp[e] - delta[r]);

            dp[e] = ds;
          }
        }
      }
    }
    multiply_pn(dq, 1, CHUNKS_D, dp, N_KV, SM_ROWS_K, by_rows(sm, CHUNKS_D, 0, 0), CHUNKS_D);
        // dQ += dS K
  }

  cp_async_wait_0();
  block_sync(); // Q has been read
  put_accumulator(sm + SM_ROWS_Q, CHUNKS_D, 16 * warp, 0, 2, dq, CHUNKS_D, p.scale, p.scale);
  store_rows(p.dq + (b * p.dq_b + h * p.dq_h), p.dq_n, q0 + 16 * warp, p.nq, D, sm + SM_ROWS_Q,
      CHUNKS_D, 16 * warp);
}

// dbias [1 h q k]: dS summed over the axes that are 1, in a fixed order
static void attn_bwd_dbias(const Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int q_lane = 16 * warp + lane / 4, k_lane = 2 * (lane % 4),
      padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
  const u32 sm = (shared_base() + 127) & ~127u;
  const int k0 = (int)blockIdx.x % cdiv(p.nk, TILE_KV) * TILE_KV;
  const int q0 = (int)blockIdx.x / cdiv(p.nk, TILE_KV) % cdiv(p.nq, TILE_Q) * TILE_Q;
  const int h = (int)blockIdx.x / cdiv(p.nk, TILE_KV) / cdiv(p.nq, TILE_Q) % p.h;
  float kept[2], delta[2];
  float sum[N_KV * 4];
  zero(sum, N_KV * 4);

  for (int b = 0; b < p.b; b++) {
    const int g = h / (p.h / p.hk);
    if (!(p.nk + (imin(q0 + TILE_Q, p.nq)) < p.nq + k0 + 1)) {
      block_sync(); // the last tile has been read
      load_tile(sm + SM_ROWS_Q, CHUNKS_D, TILE_Q, p.q + (b * p.q_b + h * p.q_h), p.q_n, q0,
          p.nq, D);
      load_tile(sm + SM_ROWS_DO, CHUNKS_DV, TILE_Q, p.dout + (b * p.dout_b + h * p.dout_h),
          p.dout_n, q0, p.nq, DV);
      #pragma unroll
      for (int r = 0; r < 2; r++) {
        const int q = q0 + q_lane + 8 * r;
        const float *row = p.kept + 2 * (((i64)b * p.h + h) * padded + q);
        kept[r] = q < p.nq ? ldg_f32(row) : -NEG_INF; // no weight, or no row that is stored
        delta[r] = q < p.nq ? ldg_f32(row + 1) : 0.0f;
      }
      load_tile(sm + SM_ROWS_K, CHUNKS_D, TILE_KV, p.k + (b * p.k_b + g * p.k_h), p.k_n, k0,
          p.nk, D);
      load_tile(sm + SM_ROWS_V, CHUNKS_DV, TILE_KV, p.v + (b * p.v_b + g * p.v_h), p.v_n, k0,
          p.nk, DV);
      cp_async_commit();
      cp_async_wait_0();
      block_sync();
      float s[N_KV * 4], dp[N_KV * 4];
      zero(s, N_KV * 4);
      zero(dp, N_KV * 4);
      multiply_nt(s, 1, N_KV, SM_ROWS_Q, by_rows(sm, CHUNKS_D, 16 * warp, 0), SM_ROWS_K,
          by_chunks(sm, CHUNKS_D, 0, 0), CHUNKS_D);
      multiply_nt(dp, 1, N_KV, SM_ROWS_DO, by_rows(sm, CHUNKS_DV, 16 * warp, 0), SM_ROWS_V,
          by_chunks(sm, CHUNKS_DV, 0, 0), CHUNKS_DV);
      if (q0 + TILE_Q <= p.nq && k0 + TILE_KV <= p.nk && p.nq + (k0 + TILE_KV) <= p.nk + q0 + 1) {
        #pragma unroll
        for (int r = 0; r < 2; r++) {
          const int q = q0 + q_lane + 8 * r;
          const u16 *of_row1 = p.bias + (h * p.bias_h + q * p.bias_q + (k0 + k_lane));
          #pragma unroll
          for (int n = 0; n < N_KV; n++) {
            #pragma unroll
            for (int c = 0; c < 2; c++) {
              const int e = 4 * n + 2 * r + c;
              const float scored = p.scale * s[e] + bf16_to_f32(ldg_u16(of_row1 + (8 * n + c)));
              const float weight = exp2_f32(scored * LOG2E - kept[r]);
              const float ds = weight * (dp[e] - delta[r]);
              sum[e] += ds;
              dp[e] = ds;
            }
          }
        }
      } else {
        #pragma unroll
        for (int r = 0; r < 2; r++) {
          const int q = q0 + q_lane + 8 * r;
          const int of_row0 = q + p.nk - p.nq;
          const u16 *of_row1 = p.bias + (h * p.bias_h + q * p.bias_q + (k0 + k_lane));
          #pragma unroll
          for (int n = 0; n < N_KV; n++) {
            #pragma unroll
            for (int c = 0; c < 2; c++) {
              const int e = 4 * n + 2 * r + c;
              const int k = k0 + k_lane + 8 * n + c;
              if (!(q < p.nq && k < p.nk && k <= of_row0)) {
                dp[e] = 0.0f;
                continue;
              }
              const float scored = p.scale * s[e] + bf16_to_f32(ldg_u16(of_row1 + (8 * n + c)));
              const float weight = exp2_f32(scored * LOG2E - kept[r]);
              const float ds = weight * (dp[e] - delta[r]);
              sum[e] += ds;
              dp[e] = ds;
            }
          }
        }
      }
    }
  }

  #pragma unroll
  for (int r = 0; r < 2; r++) {
    const int q = q0 + q_lane + 8 * r;
    #pragma unroll
    for (int n = 0; n < N_KV; n++) {
      #pragma unroll
      for (int c = 0; c < 2; c++) {
        const int e = 4 * n + 2 * r + c;
        const int k = k0 + k_lane + 8 * n + c;
        if (q < p.nq && k < p.nk) { stg_u16(p.dbias + (h * p.dbias_h + q * p.dbias_q + k),
            f32_to_bf16(sum[e])); }
      }
    }
  }
}

void attn_bwd_rows_entry(const void *params);
void attn_bwd_rows_entry(const void *params) {
  attn_bwd_rows(*(const Params *)params);
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
