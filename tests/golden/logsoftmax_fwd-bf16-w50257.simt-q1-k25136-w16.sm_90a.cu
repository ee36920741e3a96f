// logsoftmax_fwd-bf16-w50257.simt-q1-k25136-w16.sm_90a
//
// y = x - LSE(x) of each row.
// spec:   kernel=logsoftmax width=50257
// again:  flashgen emit logsoftmax_fwd-bf16-w50257.simt-q1-k25136-w16.sm_90a
// made by flashgen 0.1.0
//
// launch: logsoftmax_fwd, grid rows * 2 x 1 x 1, 512 threads, 304 shared bytes, clusters of 2
//
// shared memory:
//   SM_PARTIALS          0  numbers of each warp of a row [2][ROWS][WARPS][PARTIALS], float32
//   SM_EXCHANGE        256  words of each block of a row [BLOCKS][4]
//   SM_EXCHANGE_BAR    288  the words have come

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { WIDTH = 50257 }; // columns of a row
enum { ROWS = 1 }; // rows of a block
enum { GROUP = 512 }; // threads that share a row
enum { LANES = 32 }; // of them, in one warp
enum { WARPS = 16 }; // warps that share a row
enum { CHUNKS = 7 }; // times 8 columns that a thread has
enum { RAW = 4 }; // words of 8 columns
enum { BATCHES = 1 }; // times that a thread has so many
enum { BLOCKS = 2 }; // that share a row
enum { BYTES = 2 }; // of a column
enum { PARTIALS = 2 }; // numbers that warps of a row make one of
enum { RESIDENT = 1 }; // blocks that a multiprocessor has room for
enum { SM_PARTIALS = 0 };
enum { SM_EXCHANGE = 256 };
enum { SM_EXCHANGE_BAR = 288 };

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
#define LOG2E 1.4426950408889634f

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

DEV void stg_u16(u16 *to, u16 v) { *to = v; }

DEV void stg_u32x4(void *to, const u32 *v) {
  const uint4 x = {v[0], v[1], v[2], v[3]};
  *(uint4 *)to = x;
}

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

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

DEV float log_f32(float x) { return logf(x); }

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

DEV void mbarrier_init(u32 bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}

DEV void fence_barrier_init(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEV void mbarrier_expect(u32 bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes)
      : "memory");
}

DEV void mbarrier_wait(u32 bar, int parity) {
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
      "@p bra DONE; bra AGAIN; DONE: }" :: "r"(bar), "r"(parity) : "memory");
}

DEV void fence_async(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEV int cluster_rank(void) {
  int r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

DEV void cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
      ::: "memory");
}

DEV void bulk_copy_remote(u32 to, u32 from, int bytes, u32 bar, int rank) {
  asm volatile("{ .reg .b32 there, full; "
      "mapa.shared::cluster.u32 there, %0, %4; mapa.shared::cluster.u32 full, %3, %4;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
      "[there], [%1], %2, [full]; }"
      :: "r"(to), "r"(from), "r"(bytes), "r"(bar), "r"(rank) : "memory");
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

DEV float lanes_sum(float v) {
  #pragma unroll
  for (int mask = LANES / 2; mask > 0; mask /= 2) { v += shfl_xor(ALL_LANES, v, mask); }
  return v;
}

DEV float lanes_max(float v) {
  #pragma unroll
  for (int mask = LANES / 2; mask > 0; mask /= 2) { v = max_f32(v, shfl_xor(ALL_LANES, v, mask)); }
  return v;
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

// All threads of all blocks, before exchange.
DEV void exchange_begin(void) {
  if (threadIdx.x == 0) {
    mbarrier_init(shared_base() + SM_EXCHANGE_BAR, 1);
    fence_barrier_init();
  }
  cluster_sync();
}

// Each block's four words, of its first thread, come to SM_EXCHANGE [BLOCKS][4] of every block,
// for all of its threads. Once
// a launch; behind it all threads call exchange_end before they leave.
DEV void exchange(const u32 *words) {
  const int rank = cluster_rank();
  const u32 bar = shared_base() + SM_EXCHANGE_BAR, own = shared_base() + SM_EXCHANGE
      + (u32)rank * 16;
  if (threadIdx.x == 0) {
    sts_u32x4(own, words);
    fence_async();
    mbarrier_expect(bar, (BLOCKS - 1) * 16);
    for (int other = 0; other < BLOCKS; other++) {
      if (other != rank) { bulk_copy_remote(own, own, 16, bar, other); }
    }
  }
  mbarrier_wait(bar, 0);
  block_sync(); // the own words
}

// No block leaves while another copies from it.
DEV void exchange_end(void) { cluster_sync(); }

// The state of a part, its largest number and the sum of exp(x - most), joined with that of
// another part.
DEV void join(float *most, float *sum, float other_most, float other_sum) {
  const float both = max_f32(*most, other_most);
  const float base = both > NEG_INF ? both : 0.0f;
  *sum = *sum * exp2_f32((*most - base) * LOG2E)
      + other_sum * exp2_f32((other_most - base) * LOG2E);
  *most = both;
}

// log-sum-exp of the row from each thread's state.
DEV float row_lse(float most, float sum) {
  const float all = lanes_max(most);
  sum = lanes_sum(sum * exp2_f32((most - (all > NEG_INF ? all : 0.0f)) * LOG2E));
  most = all;
  const u32 partials = partials_of_row(0, PARTIALS);
  if (threadIdx.x % 32 == 0) {
    const u32 own = partials + threadIdx.x / 32 % WARPS * 8;
    sts_u32(own, as_u32(most));
    sts_u32(own + 4, as_u32(sum));
  }
  row_sync();
  most = NEG_INF;
  sum = 0.0f;
  for (int w = 0; w < WARPS; w++) {
    const u32 at = partials + (u32)w * 8;
    join(&most, &sum, as_f32(lds_u32(at)), as_f32(lds_u32(at + 4)));
  }
  const u32 words[4] = {as_u32(most), as_u32(sum), 0, 0};
  exchange(words);
  most = NEG_INF;
  sum = 0.0f;
  for (int b = 0; b < BLOCKS; b++) {
    const u32 at = shared_base() + SM_EXCHANGE + (u32)b * 16;
    join(&most, &sum, as_f32(lds_u32(at)), as_f32(lds_u32(at + 4)));
  }
  return most + log_f32(sum);
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
  u16 *y; // [rows, 50257] bf16
  i64 y_n;
  int rows;
} Params;

extern "C" __global__ void __launch_bounds__(512, 1)
logsoftmax_fwd(const __grid_constant__ Params p) {
  const int first = (int)threadIdx.x % GROUP;
  exchange_begin();
  const i64 row = (i64)blockIdx.x / BLOCKS;
  const int own = first + cluster_rank() * GROUP; // of all threads of the row
  const u16 *x = p.x + row * p.x_n;
  u16 *y = p.y + row * p.y_n;
  const int shift = (int)((u64)x % 16) / BYTES; // a chunk may have so many columns of another row
  const int x_is_aligned = 1;
  const int y_is_aligned = ((u64)y - BYTES * (u64)shift) % 16 == 0;

  u32 raw[CHUNKS][RAW];
  float most = NEG_INF, sum = 0.0f;
  const int batch = 0;
  {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const int column = ((batch * CHUNKS + c) * GROUP * BLOCKS + own) * 8 - shift;
      read_chunk(raw[c], x, column, x_is_aligned && column >= 0 && column + 8 <= WIDTH, 0xff80);
    }
    float v[8], most_here = NEG_INF, sum_here = 0.0f;
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      columns_of(v, raw[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) { most_here = max_f32(most_here, v[i]); }
    }
    const float base = most_here > NEG_INF ? most_here : 0.0f;
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      columns_of(v, raw[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) { sum_here += exp2_f32((v[i] - base) * LOG2E); }
    }
    most = most_here;
    sum = sum_here;
  }
  const float lse = row_lse(most, sum);

  {
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const int column = ((batch * CHUNKS + c) * GROUP * BLOCKS + own) * 8 - shift;
      float v[8];
      columns_of(v, raw[c]);
      #pragma unroll
      for (int i = 0; i < 8; i++) { v[i] = v[i] > NEG_INF ? v[i] - lse : NEG_INF; }
      write_chunk(y, column, v, y_is_aligned && column >= 0 && column + 8 <= WIDTH);
    }
  }
  exchange_end();
}
