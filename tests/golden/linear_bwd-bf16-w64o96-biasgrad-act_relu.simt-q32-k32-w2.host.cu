// linear_bwd-bf16-w64o96-biasgrad-act_relu.simt-q32-k32-w2.host
//
// dp = dy act'(h), dx = dp W, dw = dp^T x of y = relu(x W^T + b).
// spec:   kernel=linear pass=backward width=64/96 bias=grad epilogue=relu
// again:  flashgen emit linear_bwd-bf16-w64o96-biasgrad-act_relu.simt-q32-k32-w2.host
// made by flashgen 0.1.0
//
// launch: linear_bwd_dp, grid cdiv(rows, 32) * 1 x 1 x 1, 256 threads, 8192 shared bytes, early
// launch: linear_bwd_sums, grid 3 x 1 x 1, 256 threads, 1024 shared bytes, early
// launch: linear_bwd_dx, grid cdiv(rows, 32) * cdiv(64, 32) x 1 x 1, 64 threads, 4608 shared bytes
// launch: linear_bwd_dw, grid cdiv(96, 32) * cdiv(64, 32) x 1 x 1, 64 threads, 4608 shared bytes
// scratch: dp, rows * 96 floats
// scratch: sums, cdiv(rows, 32) * 96 floats
//
// shared memory:
//   SM_A           0  the first operand [STEP][BLOCK_M], float32
//   SM_B        2304  the second one [STEP][BLOCK_N], float32
//   SM_SUMS        0  sums of each warp [sums][8][256], float32
//   SM_GROUPS      0  sums of each warp's parts [8][32], float32

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

enum { ROWS_OF_W = 96 }; // columns of h and of dp
enum { WIDTH_IN = 64 }; // columns of x
enum { WIDTH_OUT = 96 }; // columns of y
enum { RAW = 4 }; // words of eight columns
enum { ALIGNED = 0 }; // whether rows are aligned to 16 bytes
enum { PART_ROWS = 32 }; // rows whose columns a block sums
enum { WARP_ROWS = 4 }; // of which a warp has so many
enum { COLUMN_TILES = 1 }; // tiles of 256 columns of dp
enum { PARTS = 1 }; // parts of the rows whose products a block of dw sums, at most
enum { BLOCK_M = 32 }; // rows of a block
enum { BLOCK_N = 32 }; // columns of a block
enum { STEP = 16 }; // products of a sum at a time
enum { THREADS = 64 };
enum { ACROSS = 8 }; // threads that share rows, four columns each
enum { PITCH_M = 144 }; // bytes between products of the first operand
enum { PITCH_N = 144 }; // of the second one
enum { SM_A = 0 };
enum { SM_B = 2304 };
enum { SM_SUMS = 0 };
enum { SM_GROUPS = 0 };

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

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

DEV u32 ldg_u32(const void *from) {
  u32 v;
  fgh->global_load(from, &v, 4);
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

DEV float as_f32(u32 bits) {
  union { u32 bits; float value; } x;
  x.bits = bits;
  return x.value;
}

DEV u32 as_u32(float v) {
  union { u32 bits; float value; } x;
  x.value = v;
  return x.bits;
}

DEV float bf16_to_f32(u16 x) { return as_f32((u32)x << 16); }

DEV u16 f32_to_bf16(float x) {
  const u32 u = as_u32(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) { return 0x7fff; }
  return (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

DEV u32 pack_bf16(float low, float high) {
  return f32_to_bf16(low) | (u32)f32_to_bf16(high) << 16;
}

DEV void grid_wait(void) { fgh->grid_wait(); }

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

typedef struct Params {
  const u16 *x; // [rows, 64] bf16
  i64 x_n;
  const u16 *w; // [96, 64] bf16
  i64 w_n;
  const u16 *dy; // [rows, 96] bf16
  i64 dy_n;
  const int *kept; // [rows, 3] i32
  i64 kept_n;
  const u16 *dx_more; // [rows, 64] bf16, or null
  i64 dx_more_n;
  u16 *dx; // [rows, 64] bf16, or null
  i64 dx_n;
  u16 *dw; // [96, 64] bf16, or null
  i64 dw_n;
  u16 *dbias; // [96] bf16
  u16 *dp; // scratch
  float *sums; // scratch
  int rows;
} Params;

static void linear_bwd_dp(const Params p) {
  grid_wait(); // until the grid before has ended
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int part = (int)blockIdx.x / COLUMN_TILES, column = (int)blockIdx.x % COLUMN_TILES * 256
      + 8 * lane;
  const int end = imin(p.rows, (part + 1) * PART_ROWS), is_there = column < ROWS_OF_W;
  const int dy_column = column;
  float dbias[8];
  #pragma unroll
  for (int i = 0; i < 8; i++) { dbias[i] = 0.0f; }
  const int first = part * PART_ROWS + warp; // of the warp's rows, 8 apart
  u32 raw[WARP_ROWS][RAW];
  u32 bits_of[WARP_ROWS];
  #pragma unroll
  for (int r = 0; r < WARP_ROWS; r++) {
    const int row = first + 8 * r;
    if (row < end && is_there) {
      read_columns(raw[r], p.dy + row * p.dy_n + dy_column, ALIGNED);
      bits_of[r] = ldg_u32(p.kept + row * p.kept_n + column / 32) >> column % 32;
    }
  }
  #pragma unroll
  for (int r = 0; r < WARP_ROWS; r++) {
    const int row = first + 8 * r;
    if (row >= end || !is_there) { break; }
    float v[8];
    columns_of(v, raw[r]);
    #pragma unroll
    for (int i = 0; i < 8; i++) { v[i] = bits_of[r] >> i & 1 ? v[i] : 0.0f; }
    write_columns(p.dp + row * (i64)ROWS_OF_W + column, v, 1);
    #pragma unroll
    for (int i = 0; i < 8; i++) { dbias[i] += v[i]; }
  }
  const u32 sums = shared_base() + SM_SUMS;
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    sts_u32(sums + (u32)(0 + 256 * warp + 8 * lane + i) * 4, as_u32(dbias[i]));
  }
  block_sync();
  const int own = (int)blockIdx.x % COLUMN_TILES * 256 + (int)threadIdx.x,
      parts = cdiv(p.rows, PART_ROWS);
  #pragma unroll
  for (int number = 0; number < 1; number++) {
    float whole = 0.0f;
    #pragma unroll
    for (int i = 0; i < 8; i++) {
      whole += as_f32(lds_u32(sums + (u32)(2048 * number + 256 * i + (int)threadIdx.x) * 4));
    }
    if (own < ROWS_OF_W) { stg_f32(p.sums + ((i64)number * parts + part) * ROWS_OF_W + own,
        whole); }
  }
}

static void linear_bwd_sums(const Params p) {
  grid_wait(); // until the grid before has ended
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32,
      column = (int)blockIdx.x * 32 + lane;
  const int parts = cdiv(p.rows, PART_ROWS);
  const u32 groups = shared_base() + SM_GROUPS;
  const float *from = p.sums + (i64)blockIdx.y * parts * ROWS_OF_W + column;
  float sum = 0.0f;
  if (column < ROWS_OF_W) {
    #pragma unroll 8
    for (int part = warp; part < parts; part += 8) { sum += ldg_f32(from
        + (i64)part * ROWS_OF_W); }
  }
  sts_u32(groups + (u32)(32 * warp + lane) * 4, as_u32(sum));
  block_sync();
  u16 *to = p.dbias;
  if (warp == 0 && column < ROWS_OF_W && to) {
    #pragma unroll
    for (int i = 1; i < 8; i++) {
      sum += as_f32(lds_u32(groups + (u32)(32 * i + lane) * 4));
    }
    stg_u16(to + column, f32_to_bf16(sum));
  }
}

static void linear_bwd_dx(const Params p) {
  if (!p.dx) { return; }
  const int tiles_n = cdiv(WIDTH_IN, BLOCK_N), m0 = (int)blockIdx.x / tiles_n * BLOCK_M,
      n0 = (int)blockIdx.x % tiles_n * BLOCK_N;
  const int row = m0 + (int)threadIdx.x / ACROSS * 4, column = n0 + (int)threadIdx.x % ACROSS * 4;
  const u32 sm_a = shared_base() + SM_A, sm_b = shared_base() + SM_B;
  float acc[4][4];
  #pragma unroll
  for (int i = 0; i < 16; i++) { acc[i / 4][i % 4] = 0.0f; }
  for (int k0 = 0; k0 < ROWS_OF_W; k0 += STEP) {
    for (int i = (int)threadIdx.x; i < BLOCK_M * STEP; i += THREADS) {
      const int own = i / STEP, k = i % STEP;
      const int at = m0 + own;
      float v = 0.0f;
      if (at < p.rows && k0 + k < ROWS_OF_W) { v = bf16_to_f32(ldg_u16(p.dp + at * (i64)ROWS_OF_W
          + (k0 + k))); }
      sts_u32(sm_a + (u32)(k * PITCH_M + 4 * own), as_u32(v));
    }
    for (int i = (int)threadIdx.x; i < BLOCK_N * STEP; i += THREADS) {
      const int own = i % BLOCK_N, k = i / BLOCK_N;
      const int at = n0 + own;
      float v = 0.0f;
      if (at < WIDTH_IN && k0 + k < ROWS_OF_W) { v = bf16_to_f32(ldg_u16(p.w + (k0 + k) * p.w_n
          + at)); }
      sts_u32(sm_b + (u32)(k * PITCH_N + 4 * own), as_u32(v));
    }
    block_sync();
    for (int k = 0; k < STEP; k++) {
      u32 a[4], b[4];
      lds_u32x4(a, sm_a + (u32)(k * PITCH_M + 4 * (row - m0)));
      lds_u32x4(b, sm_b + (u32)(k * PITCH_N + 4 * (column - n0)));
      #pragma unroll
      for (int i = 0; i < 16; i++) { acc[i / 4][i % 4] += as_f32(a[i / 4]) * as_f32(b[i % 4]); }
    }
    block_sync(); // the operands have been read
  }
  #pragma unroll
  for (int i = 0; i < 16; i++) {
    const int r = row + i / 4, c = column + i % 4;
    if (r < p.rows && c < WIDTH_IN) { stg_u16(p.dx + r * p.dx_n + c,
        f32_to_bf16(acc[i / 4][i % 4] + (p.dx_more
        ? bf16_to_f32(ldg_u16(p.dx_more + r * p.dx_more_n + c)) : 0.0f))); }
  }
}

static void linear_bwd_dw(const Params p) {
  if (!p.dw) { return; }
  const int tiles_n = cdiv(WIDTH_IN, BLOCK_N), m0 = (int)blockIdx.x / tiles_n * BLOCK_M,
      n0 = (int)blockIdx.x % tiles_n * BLOCK_N;
  const int row = m0 + (int)threadIdx.x / ACROSS * 4, column = n0 + (int)threadIdx.x % ACROSS * 4;
  const u32 sm_a = shared_base() + SM_A, sm_b = shared_base() + SM_B;
  float acc[4][4];
  #pragma unroll
  for (int i = 0; i < 16; i++) { acc[i / 4][i % 4] = 0.0f; }
  for (int k0 = 0; k0 < p.rows; k0 += STEP) {
    for (int i = (int)threadIdx.x; i < BLOCK_M * STEP; i += THREADS) {
      const int own = i % BLOCK_M, k = i / BLOCK_M;
      const int at = m0 + own;
      float v = 0.0f;
      if (at < ROWS_OF_W && k0 + k < p.rows) { v = bf16_to_f32(ldg_u16(p.dp
          + (k0 + k) * (i64)ROWS_OF_W + at)); }
      sts_u32(sm_a + (u32)(k * PITCH_M + 4 * own), as_u32(v));
    }
    for (int i = (int)threadIdx.x; i < BLOCK_N * STEP; i += THREADS) {
      const int own = i % BLOCK_N, k = i / BLOCK_N;
      const int at = n0 + own;
      float v = 0.0f;
      if (at < WIDTH_IN && k0 + k < p.rows) { v = bf16_to_f32(ldg_u16(p.x + (k0 + k) * p.x_n
          + at)); }
      sts_u32(sm_b + (u32)(k * PITCH_N + 4 * own), as_u32(v));
    }
    block_sync();
    for (int k = 0; k < STEP; k++) {
      u32 a[4], b[4];
      lds_u32x4(a, sm_a + (u32)(k * PITCH_M + 4 * (row - m0)));
      lds_u32x4(b, sm_b + (u32)(k * PITCH_N + 4 * (column - n0)));
      #pragma unroll
      for (int i = 0; i < 16; i++) { acc[i / 4][i % 4] += as_f32(a[i / 4]) * as_f32(b[i % 4]); }
    }
    block_sync(); // the operands have been read
  }
  #pragma unroll
  for (int i = 0; i < 16; i++) {
    const int r = row + i / 4, c = column + i % 4;
    if (r < ROWS_OF_W && c < WIDTH_IN) { stg_u16(p.dw + r * p.dw_n + c,
        f32_to_bf16(acc[i / 4][i % 4])); }
  }
}

void linear_bwd_dp_entry(const void *params);
void linear_bwd_dp_entry(const void *params) {
  linear_bwd_dp(*(const Params *)params);
}

void linear_bwd_sums_entry(const void *params);
void linear_bwd_sums_entry(const void *params) {
  linear_bwd_sums(*(const Params *)params);
}

void linear_bwd_dx_entry(const void *params);
void linear_bwd_dx_entry(const void *params) {
  linear_bwd_dx(*(const Params *)params);
}

void linear_bwd_dw_entry(const void *params);
void linear_bwd_dw_entry(const void *params) {
  linear_bwd_dw(*(const Params *)params);
}
