// linear_bwd-bf16-w1024o4096-biasgrad-act_gelu.wgmma-q128-k256-s4-w12.sm_90a
//
// dp = dy act'(h), dx = dp W, dw = dp^T x of y = gelu(x W^T + b).
// spec:   kernel=linear pass=backward width=1024/4096 bias=grad epilogue=gelu
// again:  flashgen emit linear_bwd-bf16-w1024o4096-biasgrad-act_gelu.wgmma-q128-k256-s4-w12.sm_90a
// made by flashgen 0.1.0
//
// launch: linear_bwd_dp, grid cdiv(rows, 32) * 16 x 1 x 1, 256 threads, 8192 shared bytes, early
// launch: linear_bwd_sums, grid 128 x 1 x 1, 256 threads, 1024 shared bytes, early
// launch: linear_bwd_dx_dw, grid cdiv(rows, 256) * 8 + 128 * 1 x 1 x 1, 384 threads, 230448 shared
//         bytes, clusters of 2, 1 a multiprocessor, early
// scratch: dp, rows * 4096 floats
// scratch: sums, cdiv(rows, 32) * 4096 floats
//
// shared memory:
//   SM_SUMS          0  sums of each warp [sums][8][256], float32
//   SM_GROUPS        0  sums of each warp's parts [8][32], float32
//   SM_A             0  A [STAGES][BLOCK_M][64], or [STAGES][BLOCK_M / 64][64 of k][64]
//   SM_B         65536  B [STAGES][BLOCK_N][64], or [STAGES][BLOCK_N / 64][64 of k][64]
//   SM_SLABS    196608  64 columns of a warpgroup's rows of C, on their way
//                       [GROUPS][SLABS][64][64]
//   SM_BARRIERS 229376  mbarriers: full [4], empty [4]
//   SM_END      229440  what rounding the base to 1024 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { ROWS_OF_W = 4096 }; // columns of h and of dp
enum { WIDTH_IN = 1024 }; // columns of x
enum { WIDTH_OUT = 4096 }; // columns of y
enum { RAW = 4 }; // words of eight columns
enum { ALIGNED = 1 }; // whether rows are aligned to 16 bytes
enum { PART_ROWS = 32 }; // rows whose columns a block sums
enum { WARP_ROWS = 4 }; // of which a warp has so many
enum { COLUMN_TILES = 16 }; // tiles of 256 columns of dp
enum { PARTS = 1 }; // parts of the rows whose products a block of dw sums, at most
enum { BLOCK_M = 128 }; // rows of a tile of C
enum { BLOCK_N = 256 }; // columns of B's tile
enum { GROUPS = 2 }; // warpgroups that multiply, of 64 rows each
enum { STAGES = 4 }; // tiles of A and of B in flight
enum { SLABS = 2 }; // of 64 columns of a warpgroup's rows
enum { BIAS_BYTES = 512 }; // of a tile's columns
enum { CLUSTER = 2 }; // blocks that share B
enum { BAND = 8 }; // tiles of rows of a cluster that are gone through side by side
enum { A_BYTES = 16384 }; // of a stage
enum { B_BYTES = 32768 };
enum { MOVER_REGISTERS = 24 };
enum { REGISTERS = 240 };
enum { SM_SUMS = 0 };
enum { SM_GROUPS = 0 };
enum { SM_A = 0 };
enum { SM_B = 65536 };
enum { SM_SLABS = 196608 };
enum { SM_BARRIERS = 229376 };
enum { SM_END = 229440 };

typedef struct __align__(64) tensor_map { u64 word[16]; } tensor_map; // the driver's, for TMA

#define ALL_LANES 0xffffffffu
#define L2_NORMAL 0x1000000000000000ull

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

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

DEV void stg_f32(float *to, float v) { *to = v; }

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

DEV void warp_sync(u32 lanes) { asm volatile("bar.warp.sync %0;" :: "r"(lanes) : "memory"); }

DEV u32 shfl_u32(u32 lanes, u32 v, int from) {
  u32 r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;" : "=r"(r) : "r"(v), "r"(from), "r"(lanes));
  return r;
}

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

DEV u32 as_u32(float v) { return __float_as_uint(v); }

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

DEV void stmatrix_x4(u32 address, const u32 *r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
      :: "r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}

DEV void mbarrier_init(u32 bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}

DEV void fence_barrier_init(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEV void mbarrier_arrive_if(u32 bar, int predicate) {
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; "
      "@p mbarrier.arrive.shared::cta.b64 _, [%0]; }"
      :: "r"(bar), "r"(predicate) : "memory");
}

DEV void mbarrier_expect(u32 bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes)
      : "memory");
}

DEV void mbarrier_wait(u32 bar, int parity) {
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
      "@p bra DONE; bra AGAIN; DONE: }" :: "r"(bar), "r"(parity) : "memory");
}

DEV void mbarrier_arrive_remote_if(u32 bar, int rank, int predicate) {
  asm volatile("{ .reg .b32 r; .reg .pred p; setp.ne.s32 p, %2, 0; "
      "mapa.shared::cluster.u32 r, %0, %1; @p mbarrier.arrive.shared::cluster.b64 _, [r]; }"
      :: "r"(bar), "r"(rank), "r"(predicate) : "memory");
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

DEV void grid_wait(void) { asm volatile("griddepcontrol.wait;" ::: "memory"); }

DEV void tma_load_4d(u32 to, const tensor_map *map, int c0, int c1, int c2, int c3, u32 bar,
    u64 policy) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global"
      ".mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;"
      :: "r"(to), "l"(map), "r"(bar), "l"(policy), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}

DEV void tma_multicast_4d(u32 to, const tensor_map *map, int c0, int c1, int c2, int c3, u32 bar,
    u64 policy, int ranks) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global"
      ".mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %8, %3;"
      :: "r"(to), "l"(map), "r"(bar), "l"(policy), "r"(c0), "r"(c1), "r"(c2), "r"(c3),
          "h"((u16)ranks) : "memory");
}

DEV void tma_store_4d(const tensor_map *map, int c0, int c1, int c2, int c3, u32 from) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group "
      "[%0, {%2, %3, %4, %5}], [%1];" :: "l"(map), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
          : "memory");
}

DEV void tma_store_commit(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

DEV void tma_store_wait_read_0(void) {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

DEV void tma_store_wait_read_1(void) {
  asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
}

DEV u32 matrix_at(u32 address) {
  return (address & 0x3ffff) >> 4; // in a cluster the block's rank lies above
}

DEV void setmaxnreg_dec_24(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 24;" ::: "memory");
}

DEV void setmaxnreg_inc_240(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;" ::: "memory");
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

// 16 columns of C to a slab.
#define PUT(base, chunk, c0, c1, c2, c3, c4, c5, c6, c7) \
  { \
    const u32 v[4] = {pack_bf16(c0, c1), pack_bf16(c2, c3), pack_bf16(c4, c5), \
        pack_bf16(c6, c7)}; \
    stmatrix_x4(base + (u32)(((chunk + lane / 16) ^ lane % 8) * 16), v); \
  }

// 8 columns of what is added.
#define ADD_MORE(column, c0, c1, c2, c3) \
  { \
    const int has = n0 + column + 2 * (lane % 4) < WIDTH_IN; \
    const u32 low = has && row < p.rows ? ldg_u32(more + column) : 0, high = has && row \
        + 8 < p.rows ? ldg_u32(more + 8 * p.dx_more_n + column) : 0; \
    c0 += bf16_to_f32((u16)low); \
    c1 += bf16_to_f32((u16)(low >> 16)); \
    c2 += bf16_to_f32((u16)high); \
    c3 += bf16_to_f32((u16)(high >> 16)); \
  }

#define BARRIER(number) (sm + SM_BARRIERS + 8 * (number))

#define FLOATS_128 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, " \
  "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, " \
  "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, " \
  "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, " \
  "%118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"

#define multiply_dx(d, a, b, sum) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n" \
      "setp.ne.s32 first, %130, 0;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 a, %128, 0; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 33554432; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, first, 1, 1, 0, 1;\n" \
      "add.u32 a, %128, 2; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 33554560; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 0, 1;\n" \
      "add.u32 a, %128, 4; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 33554688; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 0, 1;\n" \
      "add.u32 a, %128, 6; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 33554816; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 0, 1;\n" \
      "wgmma.commit_group.sync.aligned; }" \
      : "+f"(d##0), "+f"(d##1), "+f"(d##2), "+f"(d##3), "+f"(d##4), "+f"(d##5), \
      "+f"(d##6), "+f"(d##7), "+f"(d##8), "+f"(d##9), "+f"(d##10), "+f"(d##11), \
      "+f"(d##12), "+f"(d##13), "+f"(d##14), "+f"(d##15), "+f"(d##16), "+f"(d##17), \
      "+f"(d##18), "+f"(d##19), "+f"(d##20), "+f"(d##21), "+f"(d##22), "+f"(d##23), \
      "+f"(d##24), "+f"(d##25), "+f"(d##26), "+f"(d##27), "+f"(d##28), "+f"(d##29), \
      "+f"(d##30), "+f"(d##31), "+f"(d##32), "+f"(d##33), "+f"(d##34), "+f"(d##35), \
      "+f"(d##36), "+f"(d##37), "+f"(d##38), "+f"(d##39), "+f"(d##40), "+f"(d##41), \
      "+f"(d##42), "+f"(d##43), "+f"(d##44), "+f"(d##45), "+f"(d##46), "+f"(d##47), \
      "+f"(d##48), "+f"(d##49), "+f"(d##50), "+f"(d##51), "+f"(d##52), "+f"(d##53), \
      "+f"(d##54), "+f"(d##55), "+f"(d##56), "+f"(d##57), "+f"(d##58), "+f"(d##59), \
      "+f"(d##60), "+f"(d##61), "+f"(d##62), "+f"(d##63), "+f"(d##64), "+f"(d##65), \
      "+f"(d##66), "+f"(d##67), "+f"(d##68), "+f"(d##69), "+f"(d##70), "+f"(d##71), \
      "+f"(d##72), "+f"(d##73), "+f"(d##74), "+f"(d##75), "+f"(d##76), "+f"(d##77), \
      "+f"(d##78), "+f"(d##79), "+f"(d##80), "+f"(d##81), "+f"(d##82), "+f"(d##83), \
      "+f"(d##84), "+f"(d##85), "+f"(d##86), "+f"(d##87), "+f"(d##88), "+f"(d##89), \
      "+f"(d##90), "+f"(d##91), "+f"(d##92), "+f"(d##93), "+f"(d##94), "+f"(d##95), \
      "+f"(d##96), "+f"(d##97), "+f"(d##98), "+f"(d##99), "+f"(d##100), "+f"(d##101), \
      "+f"(d##102), "+f"(d##103), "+f"(d##104), "+f"(d##105), "+f"(d##106), "+f"(d##107), \
      "+f"(d##108), "+f"(d##109), "+f"(d##110), "+f"(d##111), "+f"(d##112), "+f"(d##113), \
      "+f"(d##114), "+f"(d##115), "+f"(d##116), "+f"(d##117), "+f"(d##118), "+f"(d##119), \
      "+f"(d##120), "+f"(d##121), "+f"(d##122), "+f"(d##123), "+f"(d##124), "+f"(d##125), \
      "+f"(d##126), "+f"(d##127) \
      : "r"((u32)(a)), "r"((u32)(b)), "r"((int)(sum)) : "memory")

#define wait_before_dx(d1) \
  asm volatile("wgmma.wait_group.sync.aligned 1;" \
      : "+f"(d1##0), "+f"(d1##1), "+f"(d1##2), "+f"(d1##3), "+f"(d1##4), "+f"(d1##5), \
      "+f"(d1##6), "+f"(d1##7), "+f"(d1##8), "+f"(d1##9), "+f"(d1##10), "+f"(d1##11), \
      "+f"(d1##12), "+f"(d1##13), "+f"(d1##14), "+f"(d1##15), "+f"(d1##16), "+f"(d1##17), \
      "+f"(d1##18), "+f"(d1##19), "+f"(d1##20), "+f"(d1##21), "+f"(d1##22), "+f"(d1##23), \
      "+f"(d1##24), "+f"(d1##25), "+f"(d1##26), "+f"(d1##27), "+f"(d1##28), "+f"(d1##29), \
      "+f"(d1##30), "+f"(d1##31), "+f"(d1##32), "+f"(d1##33), "+f"(d1##34), "+f"(d1##35), \
      "+f"(d1##36), "+f"(d1##37), "+f"(d1##38), "+f"(d1##39), "+f"(d1##40), "+f"(d1##41), \
      "+f"(d1##42), "+f"(d1##43), "+f"(d1##44), "+f"(d1##45), "+f"(d1##46), "+f"(d1##47), \
      "+f"(d1##48), "+f"(d1##49), "+f"(d1##50), "+f"(d1##51), "+f"(d1##52), "+f"(d1##53), \
      "+f"(d1##54), "+f"(d1##55), "+f"(d1##56), "+f"(d1##57), "+f"(d1##58), "+f"(d1##59), \
      "+f"(d1##60), "+f"(d1##61), "+f"(d1##62), "+f"(d1##63), "+f"(d1##64), "+f"(d1##65), \
      "+f"(d1##66), "+f"(d1##67), "+f"(d1##68), "+f"(d1##69), "+f"(d1##70), "+f"(d1##71), \
      "+f"(d1##72), "+f"(d1##73), "+f"(d1##74), "+f"(d1##75), "+f"(d1##76), "+f"(d1##77), \
      "+f"(d1##78), "+f"(d1##79), "+f"(d1##80), "+f"(d1##81), "+f"(d1##82), "+f"(d1##83), \
      "+f"(d1##84), "+f"(d1##85), "+f"(d1##86), "+f"(d1##87), "+f"(d1##88), "+f"(d1##89), \
      "+f"(d1##90), "+f"(d1##91), "+f"(d1##92), "+f"(d1##93), "+f"(d1##94), "+f"(d1##95), \
      "+f"(d1##96), "+f"(d1##97), "+f"(d1##98), "+f"(d1##99), "+f"(d1##100), \
      "+f"(d1##101), "+f"(d1##102), "+f"(d1##103), "+f"(d1##104), "+f"(d1##105), \
      "+f"(d1##106), "+f"(d1##107), "+f"(d1##108), "+f"(d1##109), "+f"(d1##110), \
      "+f"(d1##111), "+f"(d1##112), "+f"(d1##113), "+f"(d1##114), "+f"(d1##115), \
      "+f"(d1##116), "+f"(d1##117), "+f"(d1##118), "+f"(d1##119), "+f"(d1##120), \
      "+f"(d1##121), "+f"(d1##122), "+f"(d1##123), "+f"(d1##124), "+f"(d1##125), \
      "+f"(d1##126), "+f"(d1##127) :: "memory")

#define wait_all_dx(d1) \
  asm volatile("wgmma.wait_group.sync.aligned 0;" \
      : "+f"(d1##0), "+f"(d1##1), "+f"(d1##2), "+f"(d1##3), "+f"(d1##4), "+f"(d1##5), \
      "+f"(d1##6), "+f"(d1##7), "+f"(d1##8), "+f"(d1##9), "+f"(d1##10), "+f"(d1##11), \
      "+f"(d1##12), "+f"(d1##13), "+f"(d1##14), "+f"(d1##15), "+f"(d1##16), "+f"(d1##17), \
      "+f"(d1##18), "+f"(d1##19), "+f"(d1##20), "+f"(d1##21), "+f"(d1##22), "+f"(d1##23), \
      "+f"(d1##24), "+f"(d1##25), "+f"(d1##26), "+f"(d1##27), "+f"(d1##28), "+f"(d1##29), \
      "+f"(d1##30), "+f"(d1##31), "+f"(d1##32), "+f"(d1##33), "+f"(d1##34), "+f"(d1##35), \
      "+f"(d1##36), "+f"(d1##37), "+f"(d1##38), "+f"(d1##39), "+f"(d1##40), "+f"(d1##41), \
      "+f"(d1##42), "+f"(d1##43), "+f"(d1##44), "+f"(d1##45), "+f"(d1##46), "+f"(d1##47), \
      "+f"(d1##48), "+f"(d1##49), "+f"(d1##50), "+f"(d1##51), "+f"(d1##52), "+f"(d1##53), \
      "+f"(d1##54), "+f"(d1##55), "+f"(d1##56), "+f"(d1##57), "+f"(d1##58), "+f"(d1##59), \
      "+f"(d1##60), "+f"(d1##61), "+f"(d1##62), "+f"(d1##63), "+f"(d1##64), "+f"(d1##65), \
      "+f"(d1##66), "+f"(d1##67), "+f"(d1##68), "+f"(d1##69), "+f"(d1##70), "+f"(d1##71), \
      "+f"(d1##72), "+f"(d1##73), "+f"(d1##74), "+f"(d1##75), "+f"(d1##76), "+f"(d1##77), \
      "+f"(d1##78), "+f"(d1##79), "+f"(d1##80), "+f"(d1##81), "+f"(d1##82), "+f"(d1##83), \
      "+f"(d1##84), "+f"(d1##85), "+f"(d1##86), "+f"(d1##87), "+f"(d1##88), "+f"(d1##89), \
      "+f"(d1##90), "+f"(d1##91), "+f"(d1##92), "+f"(d1##93), "+f"(d1##94), "+f"(d1##95), \
      "+f"(d1##96), "+f"(d1##97), "+f"(d1##98), "+f"(d1##99), "+f"(d1##100), \
      "+f"(d1##101), "+f"(d1##102), "+f"(d1##103), "+f"(d1##104), "+f"(d1##105), \
      "+f"(d1##106), "+f"(d1##107), "+f"(d1##108), "+f"(d1##109), "+f"(d1##110), \
      "+f"(d1##111), "+f"(d1##112), "+f"(d1##113), "+f"(d1##114), "+f"(d1##115), \
      "+f"(d1##116), "+f"(d1##117), "+f"(d1##118), "+f"(d1##119), "+f"(d1##120), \
      "+f"(d1##121), "+f"(d1##122), "+f"(d1##123), "+f"(d1##124), "+f"(d1##125), \
      "+f"(d1##126), "+f"(d1##127) :: "memory")

#define multiply_dw(d, a, b) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 a, %128, 33554432; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 33554432; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 1, 1;\n" \
      "add.u32 a, %128, 33554560; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 33554560; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 1, 1;\n" \
      "add.u32 a, %128, 33554688; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 33554688; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 1, 1;\n" \
      "add.u32 a, %128, 33554816; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 33554816; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 1, 1;\n" \
      "wgmma.commit_group.sync.aligned; }" \
      : "+f"(d##0), "+f"(d##1), "+f"(d##2), "+f"(d##3), "+f"(d##4), "+f"(d##5), \
      "+f"(d##6), "+f"(d##7), "+f"(d##8), "+f"(d##9), "+f"(d##10), "+f"(d##11), \
      "+f"(d##12), "+f"(d##13), "+f"(d##14), "+f"(d##15), "+f"(d##16), "+f"(d##17), \
      "+f"(d##18), "+f"(d##19), "+f"(d##20), "+f"(d##21), "+f"(d##22), "+f"(d##23), \
      "+f"(d##24), "+f"(d##25), "+f"(d##26), "+f"(d##27), "+f"(d##28), "+f"(d##29), \
      "+f"(d##30), "+f"(d##31), "+f"(d##32), "+f"(d##33), "+f"(d##34), "+f"(d##35), \
      "+f"(d##36), "+f"(d##37), "+f"(d##38), "+f"(d##39), "+f"(d##40), "+f"(d##41), \
      "+f"(d##42), "+f"(d##43), "+f"(d##44), "+f"(d##45), "+f"(d##46), "+f"(d##47), \
      "+f"(d##48), "+f"(d##49), "+f"(d##50), "+f"(d##51), "+f"(d##52), "+f"(d##53), \
      "+f"(d##54), "+f"(d##55), "+f"(d##56), "+f"(d##57), "+f"(d##58), "+f"(d##59), \
      "+f"(d##60), "+f"(d##61), "+f"(d##62), "+f"(d##63), "+f"(d##64), "+f"(d##65), \
      "+f"(d##66), "+f"(d##67), "+f"(d##68), "+f"(d##69), "+f"(d##70), "+f"(d##71), \
      "+f"(d##72), "+f"(d##73), "+f"(d##74), "+f"(d##75), "+f"(d##76), "+f"(d##77), \
      "+f"(d##78), "+f"(d##79), "+f"(d##80), "+f"(d##81), "+f"(d##82), "+f"(d##83), \
      "+f"(d##84), "+f"(d##85), "+f"(d##86), "+f"(d##87), "+f"(d##88), "+f"(d##89), \
      "+f"(d##90), "+f"(d##91), "+f"(d##92), "+f"(d##93), "+f"(d##94), "+f"(d##95), \
      "+f"(d##96), "+f"(d##97), "+f"(d##98), "+f"(d##99), "+f"(d##100), "+f"(d##101), \
      "+f"(d##102), "+f"(d##103), "+f"(d##104), "+f"(d##105), "+f"(d##106), "+f"(d##107), \
      "+f"(d##108), "+f"(d##109), "+f"(d##110), "+f"(d##111), "+f"(d##112), "+f"(d##113), \
      "+f"(d##114), "+f"(d##115), "+f"(d##116), "+f"(d##117), "+f"(d##118), "+f"(d##119), \
      "+f"(d##120), "+f"(d##121), "+f"(d##122), "+f"(d##123), "+f"(d##124), "+f"(d##125), \
      "+f"(d##126), "+f"(d##127) \
      : "r"((u32)(a)), "r"((u32)(b)) : "memory")

#define wait_before_dw(d1) \
  asm volatile("wgmma.wait_group.sync.aligned 1;" \
      : "+f"(d1##0), "+f"(d1##1), "+f"(d1##2), "+f"(d1##3), "+f"(d1##4), "+f"(d1##5), \
      "+f"(d1##6), "+f"(d1##7), "+f"(d1##8), "+f"(d1##9), "+f"(d1##10), "+f"(d1##11), \
      "+f"(d1##12), "+f"(d1##13), "+f"(d1##14), "+f"(d1##15), "+f"(d1##16), "+f"(d1##17), \
      "+f"(d1##18), "+f"(d1##19), "+f"(d1##20), "+f"(d1##21), "+f"(d1##22), "+f"(d1##23), \
      "+f"(d1##24), "+f"(d1##25), "+f"(d1##26), "+f"(d1##27), "+f"(d1##28), "+f"(d1##29), \
      "+f"(d1##30), "+f"(d1##31), "+f"(d1##32), "+f"(d1##33), "+f"(d1##34), "+f"(d1##35), \
      "+f"(d1##36), "+f"(d1##37), "+f"(d1##38), "+f"(d1##39), "+f"(d1##40), "+f"(d1##41), \
      "+f"(d1##42), "+f"(d1##43), "+f"(d1##44), "+f"(d1##45), "+f"(d1##46), "+f"(d1##47), \
      "+f"(d1##48), "+f"(d1##49), "+f"(d1##50), "+f"(d1##51), "+f"(d1##52), "+f"(d1##53), \
      "+f"(d1##54), "+f"(d1##55), "+f"(d1##56), "+f"(d1##57), "+f"(d1##58), "+f"(d1##59), \
      "+f"(d1##60), "+f"(d1##61), "+f"(d1##62), "+f"(d1##63), "+f"(d1##64), "+f"(d1##65), \
      "+f"(d1##66), "+f"(d1##67), "+f"(d1##68), "+f"(d1##69), "+f"(d1##70), "+f"(d1##71), \
      "+f"(d1##72), "+f"(d1##73), "+f"(d1##74), "+f"(d1##75), "+f"(d1##76), "+f"(d1##77), \
      "+f"(d1##78), "+f"(d1##79), "+f"(d1##80), "+f"(d1##81), "+f"(d1##82), "+f"(d1##83), \
      "+f"(d1##84), "+f"(d1##85), "+f"(d1##86), "+f"(d1##87), "+f"(d1##88), "+f"(d1##89), \
      "+f"(d1##90), "+f"(d1##91), "+f"(d1##92), "+f"(d1##93), "+f"(d1##94), "+f"(d1##95), \
      "+f"(d1##96), "+f"(d1##97), "+f"(d1##98), "+f"(d1##99), "+f"(d1##100), \
      "+f"(d1##101), "+f"(d1##102), "+f"(d1##103), "+f"(d1##104), "+f"(d1##105), \
      "+f"(d1##106), "+f"(d1##107), "+f"(d1##108), "+f"(d1##109), "+f"(d1##110), \
      "+f"(d1##111), "+f"(d1##112), "+f"(d1##113), "+f"(d1##114), "+f"(d1##115), \
      "+f"(d1##116), "+f"(d1##117), "+f"(d1##118), "+f"(d1##119), "+f"(d1##120), \
      "+f"(d1##121), "+f"(d1##122), "+f"(d1##123), "+f"(d1##124), "+f"(d1##125), \
      "+f"(d1##126), "+f"(d1##127) :: "memory")

#define wait_all_dw(d1) \
  asm volatile("wgmma.wait_group.sync.aligned 0;" \
      : "+f"(d1##0), "+f"(d1##1), "+f"(d1##2), "+f"(d1##3), "+f"(d1##4), "+f"(d1##5), \
      "+f"(d1##6), "+f"(d1##7), "+f"(d1##8), "+f"(d1##9), "+f"(d1##10), "+f"(d1##11), \
      "+f"(d1##12), "+f"(d1##13), "+f"(d1##14), "+f"(d1##15), "+f"(d1##16), "+f"(d1##17), \
      "+f"(d1##18), "+f"(d1##19), "+f"(d1##20), "+f"(d1##21), "+f"(d1##22), "+f"(d1##23), \
      "+f"(d1##24), "+f"(d1##25), "+f"(d1##26), "+f"(d1##27), "+f"(d1##28), "+f"(d1##29), \
      "+f"(d1##30), "+f"(d1##31), "+f"(d1##32), "+f"(d1##33), "+f"(d1##34), "+f"(d1##35), \
      "+f"(d1##36), "+f"(d1##37), "+f"(d1##38), "+f"(d1##39), "+f"(d1##40), "+f"(d1##41), \
      "+f"(d1##42), "+f"(d1##43), "+f"(d1##44), "+f"(d1##45), "+f"(d1##46), "+f"(d1##47), \
      "+f"(d1##48), "+f"(d1##49), "+f"(d1##50), "+f"(d1##51), "+f"(d1##52), "+f"(d1##53), \
      "+f"(d1##54), "+f"(d1##55), "+f"(d1##56), "+f"(d1##57), "+f"(d1##58), "+f"(d1##59), \
      "+f"(d1##60), "+f"(d1##61), "+f"(d1##62), "+f"(d1##63), "+f"(d1##64), "+f"(d1##65), \
      "+f"(d1##66), "+f"(d1##67), "+f"(d1##68), "+f"(d1##69), "+f"(d1##70), "+f"(d1##71), \
      "+f"(d1##72), "+f"(d1##73), "+f"(d1##74), "+f"(d1##75), "+f"(d1##76), "+f"(d1##77), \
      "+f"(d1##78), "+f"(d1##79), "+f"(d1##80), "+f"(d1##81), "+f"(d1##82), "+f"(d1##83), \
      "+f"(d1##84), "+f"(d1##85), "+f"(d1##86), "+f"(d1##87), "+f"(d1##88), "+f"(d1##89), \
      "+f"(d1##90), "+f"(d1##91), "+f"(d1##92), "+f"(d1##93), "+f"(d1##94), "+f"(d1##95), \
      "+f"(d1##96), "+f"(d1##97), "+f"(d1##98), "+f"(d1##99), "+f"(d1##100), \
      "+f"(d1##101), "+f"(d1##102), "+f"(d1##103), "+f"(d1##104), "+f"(d1##105), \
      "+f"(d1##106), "+f"(d1##107), "+f"(d1##108), "+f"(d1##109), "+f"(d1##110), \
      "+f"(d1##111), "+f"(d1##112), "+f"(d1##113), "+f"(d1##114), "+f"(d1##115), \
      "+f"(d1##116), "+f"(d1##117), "+f"(d1##118), "+f"(d1##119), "+f"(d1##120), \
      "+f"(d1##121), "+f"(d1##122), "+f"(d1##123), "+f"(d1##124), "+f"(d1##125), \
      "+f"(d1##126), "+f"(d1##127) :: "memory")

typedef struct Params {
  tensor_map dp_map; // of dp: boxes of 64 rows of 64
  tensor_map w_map; // of w: boxes of 64 rows of 64
  tensor_map x_map; // of x: boxes of 64 rows of 64
  tensor_map dx_map; // of dx: boxes of 64 rows of 64
  tensor_map dw_map; // of dw: boxes of 64 rows of 64
  const u16 *x; // [rows, 1024] bf16
  i64 x_n;
  const u16 *w; // [4096, 1024] bf16
  i64 w_n;
  const u16 *dy; // [rows, 4096] bf16
  i64 dy_n;
  const u16 *kept; // [rows, 4096] bf16
  i64 kept_n;
  const u16 *dx_more; // [rows, 1024] bf16, or null
  i64 dx_more_n;
  u16 *dx; // [rows, 1024] bf16, or null
  i64 dx_n;
  u16 *dw; // [4096, 1024] bf16, or null
  i64 dw_n;
  u16 *dbias; // [4096] bf16
  u16 *dp; // scratch
  float *sums; // scratch
  int rows;
} Params;

extern "C" __global__ void __launch_bounds__(256, 1)
linear_bwd_dp(const __grid_constant__ Params p) {
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
  u32 factor_raw[WARP_ROWS][RAW];
  #pragma unroll
  for (int r = 0; r < WARP_ROWS; r++) {
    const int row = first + 8 * r;
    if (row < end && is_there) {
      read_columns(raw[r], p.dy + row * p.dy_n + dy_column, ALIGNED);
      read_columns(factor_raw[r], p.kept + row * p.kept_n + column, ALIGNED);
    }
  }
  #pragma unroll
  for (int r = 0; r < WARP_ROWS; r++) {
    const int row = first + 8 * r;
    if (row >= end || !is_there) { break; }
    float v[8];
    columns_of(v, raw[r]);
    float factor[8];
    columns_of(factor, factor_raw[r]);
    #pragma unroll
    for (int i = 0; i < 8; i++) { v[i] *= factor[i]; }
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

extern "C" __global__ void __launch_bounds__(256, 1)
linear_bwd_sums(const __grid_constant__ Params p) {
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

enum { // the first barrier of each kind
  FULL = 0, EMPTY = 4,
};

extern "C" __global__ void __launch_bounds__(384, 1)
linear_bwd_dx_dw(const __grid_constant__ Params p) {

  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % 128 / 32;
  const int group = (int)shfl_u32(ALL_LANES, threadIdx.x / 128, 0) - 1; // -1: the mover's
  const u32 sm = (shared_base() + 1023) & ~1023u;
  const int rank = cluster_rank();
  const int row_tiles_dx = cdiv(p.rows, BLOCK_M * CLUSTER), column_tiles_dx = cdiv(WIDTH_IN, 256);
  const int tiles_dx = p.dx ? row_tiles_dx * column_tiles_dx : 0;
  const int row_tiles_dw = cdiv(ROWS_OF_W, BLOCK_M * CLUSTER),
      column_tiles_dw = cdiv(WIDTH_IN, 256);
  const int tiles_dw = p.dw ? row_tiles_dw * column_tiles_dw : 0;
  const int first_tile = (int)blockIdx.x / CLUSTER, tile_step = (int)gridDim.x / CLUSTER;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; i++) { mbarrier_init(BARRIER(FULL + i), 1); }
    for (int i = 0; i < 4; i++) { mbarrier_init(BARRIER(EMPTY + i), 16); }
    fence_barrier_init();
    grid_wait();
  }
  cluster_sync(); // behind the end of the grid before

  if (group < 0) {
    setmaxnreg_dec_24();
    if (warp == 0 && lane == 0) {
      #pragma unroll 1
      for (int begin = 0, place = first_tile, count = 0; begin < tiles_dx
          + tiles_dw; begin += tile_step, place = tile_step - 1 - place) {
        int unit = begin + place;
        if (unit >= tiles_dx + tiles_dw) { continue; }
        if (p.rows > ROWS_OF_W) { unit = unit < tiles_dw ? unit + tiles_dx : unit - tiles_dw; }
        if (unit < tiles_dx) {
          const int tile = unit;
          const int steps = cdiv(ROWS_OF_W, 64);
          const int band = tile / (BAND * column_tiles_dx),
              in_band = tile - band * BAND * column_tiles_dx;
          const int band_rows = imin(BAND, row_tiles_dx - band * BAND);
          const int m0 = ((band * BAND + in_band % band_rows) * CLUSTER + rank) * BLOCK_M,
              n0 = in_band / band_rows * 256;
          #pragma unroll 1
          for (int step = 0; step < steps; step++, count++) {
            const int slot = count % STAGES, k0 = 64 * step;
            const u32 a_tile = sm + SM_A + (u32)slot * A_BYTES, b_tile = sm + SM_B
                + (u32)slot * B_BYTES, full = BARRIER(FULL + slot);
            mbarrier_wait(BARRIER(EMPTY + slot), (count / 4 & 1) ^ 1);
            mbarrier_expect(full, A_BYTES + B_BYTES);
            tma_load_4d(a_tile, &p.dp_map, k0, m0, 0, 0, full, L2_NORMAL);
            tma_load_4d(a_tile + 8192, &p.dp_map, k0, m0 + 64, 0, 0, full, L2_NORMAL);
            tma_multicast_4d(b_tile + (u32)rank * 16384, &p.w_map, n0 + rank * 128, k0, 0, 0,
                full, L2_NORMAL, 3);
            tma_multicast_4d(b_tile + (u32)rank * 16384 + 8192, &p.w_map, n0 + rank * 128 + 64,
                k0, 0, 0, full, L2_NORMAL, 3);
          }
        } else {
          const int tile = unit - tiles_dx;
          const int steps = cdiv(p.rows, 64);
          const int band = tile / (BAND * column_tiles_dw),
              in_band = tile - band * BAND * column_tiles_dw;
          const int band_rows = imin(BAND, row_tiles_dw - band * BAND);
          const int m0 = ((band * BAND + in_band % band_rows) * CLUSTER + rank) * BLOCK_M,
              n0 = in_band / band_rows * 256;
          #pragma unroll 1
          for (int step = 0; step < steps; step++, count++) {
            const int slot = count % STAGES, k0 = 64 * step;
            const u32 a_tile = sm + SM_A + (u32)slot * A_BYTES, b_tile = sm + SM_B
                + (u32)slot * B_BYTES, full = BARRIER(FULL + slot);
            mbarrier_wait(BARRIER(EMPTY + slot), (count / 4 & 1) ^ 1);
            mbarrier_expect(full, A_BYTES + B_BYTES);
            tma_load_4d(a_tile, &p.dp_map, m0, k0, 0, 0, full, L2_NORMAL);
            tma_load_4d(a_tile + 8192, &p.dp_map, m0 + 64, k0, 0, 0, full, L2_NORMAL);
            tma_multicast_4d(b_tile + (u32)rank * 16384, &p.x_map, n0 + rank * 128, k0, 0, 0,
                full, L2_NORMAL, 3);
            tma_multicast_4d(b_tile + (u32)rank * 16384 + 8192, &p.x_map, n0 + rank * 128 + 64,
                k0, 0, 0, full, L2_NORMAL, 3);
          }
        }
      }
    }
  } else {
    setmaxnreg_inc_240();
    float c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18,
        c19, c20, c21, c22, c23, c24, c25, c26, c27, c28, c29, c30, c31, c32, c33, c34, c35, c36,
        c37, c38, c39, c40, c41, c42, c43, c44, c45, c46, c47, c48, c49, c50, c51, c52, c53, c54,
        c55, c56, c57, c58, c59, c60, c61, c62, c63, c64, c65, c66, c67, c68, c69, c70, c71, c72,
        c73, c74, c75, c76, c77, c78, c79, c80, c81, c82, c83, c84, c85, c86, c87, c88, c89, c90,
        c91, c92, c93, c94, c95, c96, c97, c98, c99, c100, c101, c102, c103, c104, c105, c106,
        c107, c108, c109, c110, c111, c112, c113, c114, c115, c116, c117, c118, c119, c120, c121,
        c122, c123, c124, c125, c126, c127;
    int slabs = 0; // that have been filled
    #pragma unroll 1
    for (int begin = 0, place = first_tile, count = 0; begin < tiles_dx
        + tiles_dw; begin += tile_step, place = tile_step - 1 - place) {
      int unit = begin + place;
      if (unit >= tiles_dx + tiles_dw) { continue; }
      if (p.rows > ROWS_OF_W) { unit = unit < tiles_dw ? unit + tiles_dx : unit - tiles_dw; }
      if (unit < tiles_dx) {
        const int tile = unit;
        const int steps = cdiv(ROWS_OF_W, 64);
        const int band = tile / (BAND * column_tiles_dx),
            in_band = tile - band * BAND * column_tiles_dx;
        const int band_rows = imin(BAND, row_tiles_dx - band * BAND);
        const int m0 = ((band * BAND + in_band % band_rows) * CLUSTER + rank) * BLOCK_M,
            n0 = in_band / band_rows * 256;
        #pragma unroll 1
        for (int step = 0; step < steps; step++, count++) {
          const int slot = count % STAGES;
          const u32 a_tile = matrix_at(sm + SM_A + (u32)slot * A_BYTES + (u32)group * 8192),
              b_tile = matrix_at(sm + SM_B + (u32)slot * B_BYTES);
          mbarrier_wait(BARRIER(FULL + slot), (count / 4 & 1));
          multiply_dx(c, a_tile, b_tile, step > 0);
          wait_before_dx(c);
          if (step > 0) {
            mbarrier_arrive_if(BARRIER(EMPTY + (count - 1) % STAGES), lane == 0);
            mbarrier_arrive_remote_if(BARRIER(EMPTY + (count - 1) % STAGES), rank ^ 1, lane == 0);
          }
        }
        wait_all_dx(c);
        mbarrier_arrive_if(BARRIER(EMPTY + (count - 1) % STAGES), lane == 0);
        mbarrier_arrive_remote_if(BARRIER(EMPTY + (count - 1) % STAGES), rank ^ 1, lane == 0);
        if (p.dx_more) {
          const int row = m0 + 64 * group + 16 * warp + lane / 4;
          const u16 *more = p.dx_more + row * p.dx_more_n + n0 + 2 * (lane % 4);
          ADD_MORE(0, c0, c1, c2, c3)
          ADD_MORE(8, c4, c5, c6, c7)
          ADD_MORE(16, c8, c9, c10, c11)
          ADD_MORE(24, c12, c13, c14, c15)
          ADD_MORE(32, c16, c17, c18, c19)
          ADD_MORE(40, c20, c21, c22, c23)
          ADD_MORE(48, c24, c25, c26, c27)
          ADD_MORE(56, c28, c29, c30, c31)
          ADD_MORE(64, c32, c33, c34, c35)
          ADD_MORE(72, c36, c37, c38, c39)
          ADD_MORE(80, c40, c41, c42, c43)
          ADD_MORE(88, c44, c45, c46, c47)
          ADD_MORE(96, c48, c49, c50, c51)
          ADD_MORE(104, c52, c53, c54, c55)
          ADD_MORE(112, c56, c57, c58, c59)
          ADD_MORE(120, c60, c61, c62, c63)
          ADD_MORE(128, c64, c65, c66, c67)
          ADD_MORE(136, c68, c69, c70, c71)
          ADD_MORE(144, c72, c73, c74, c75)
          ADD_MORE(152, c76, c77, c78, c79)
          ADD_MORE(160, c80, c81, c82, c83)
          ADD_MORE(168, c84, c85, c86, c87)
          ADD_MORE(176, c88, c89, c90, c91)
          ADD_MORE(184, c92, c93, c94, c95)
          ADD_MORE(192, c96, c97, c98, c99)
          ADD_MORE(200, c100, c101, c102, c103)
          ADD_MORE(208, c104, c105, c106, c107)
          ADD_MORE(216, c108, c109, c110, c111)
          ADD_MORE(224, c112, c113, c114, c115)
          ADD_MORE(232, c116, c117, c118, c119)
          ADD_MORE(240, c120, c121, c122, c123)
          ADD_MORE(248, c124, c125, c126, c127)
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + slabs % SLABS) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_1(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT(base, 0, c0, c1, c2, c3, c4, c5, c6, c7)
          PUT(base, 2, c8, c9, c10, c11, c12, c13, c14, c15)
          PUT(base, 4, c16, c17, c18, c19, c20, c21, c22, c23)
          PUT(base, 6, c24, c25, c26, c27, c28, c29, c30, c31)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.dx_map, n0 + 0, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
          slabs++;
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + slabs % SLABS) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_1(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT(base, 0, c32, c33, c34, c35, c36, c37, c38, c39)
          PUT(base, 2, c40, c41, c42, c43, c44, c45, c46, c47)
          PUT(base, 4, c48, c49, c50, c51, c52, c53, c54, c55)
          PUT(base, 6, c56, c57, c58, c59, c60, c61, c62, c63)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.dx_map, n0 + 64, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
          slabs++;
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + slabs % SLABS) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_1(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT(base, 0, c64, c65, c66, c67, c68, c69, c70, c71)
          PUT(base, 2, c72, c73, c74, c75, c76, c77, c78, c79)
          PUT(base, 4, c80, c81, c82, c83, c84, c85, c86, c87)
          PUT(base, 6, c88, c89, c90, c91, c92, c93, c94, c95)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.dx_map, n0 + 128, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
          slabs++;
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + slabs % SLABS) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_1(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT(base, 0, c96, c97, c98, c99, c100, c101, c102, c103)
          PUT(base, 2, c104, c105, c106, c107, c108, c109, c110, c111)
          PUT(base, 4, c112, c113, c114, c115, c116, c117, c118, c119)
          PUT(base, 6, c120, c121, c122, c123, c124, c125, c126, c127)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.dx_map, n0 + 192, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
          slabs++;
        }
      } else {
        const int tile = unit - tiles_dx;
        const int steps = cdiv(p.rows, 64);
        const int band = tile / (BAND * column_tiles_dw),
            in_band = tile - band * BAND * column_tiles_dw;
        const int band_rows = imin(BAND, row_tiles_dw - band * BAND);
        const int m0 = ((band * BAND + in_band % band_rows) * CLUSTER + rank) * BLOCK_M,
            n0 = in_band / band_rows * 256;
        c0 = 0.0f; c1 = 0.0f; c2 = 0.0f; c3 = 0.0f; c4 = 0.0f; c5 = 0.0f; c6 = 0.0f; c7 = 0.0f;
        c8 = 0.0f; c9 = 0.0f; c10 = 0.0f; c11 = 0.0f; c12 = 0.0f; c13 = 0.0f; c14 = 0.0f;
        c15 = 0.0f; c16 = 0.0f; c17 = 0.0f; c18 = 0.0f; c19 = 0.0f; c20 = 0.0f; c21 = 0.0f;
        c22 = 0.0f; c23 = 0.0f; c24 = 0.0f; c25 = 0.0f; c26 = 0.0f; c27 = 0.0f; c28 = 0.0f;
        c29 = 0.0f; c30 = 0.0f; c31 = 0.0f; c32 = 0.0f; c33 = 0.0f; c34 = 0.0f; c35 = 0.0f;
        c36 = 0.0f; c37 = 0.0f; c38 = 0.0f; c39 = 0.0f; c40 = 0.0f; c41 = 0.0f; c42 = 0.0f;
        c43 = 0.0f; c44 = 0.0f; c45 = 0.0f; c46 = 0.0f; c47 = 0.0f; c48 = 0.0f; c49 = 0.0f;
        c50 = 0.0f; c51 = 0.0f; c52 = 0.0f; c53 = 0.0f; c54 = 0.0f; c55 = 0.0f; c56 = 0.0f;
        c57 = 0.0f; c58 = 0.0f; c59 = 0.0f; c60 = 0.0f; c61 = 0.0f; c62 = 0.0f; c63 = 0.0f;
        c64 = 0.0f; c65 = 0.0f; c66 = 0.0f; c67 = 0.0f; c68 = 0.0f; c69 = 0.0f; c70 = 0.0f;
        c71 = 0.0f; c72 = 0.0f; c73 = 0.0f; c74 = 0.0f; c75 = 0.0f; c76 = 0.0f; c77 = 0.0f;
        c78 = 0.0f; c79 = 0.0f; c80 = 0.0f; c81 = 0.0f; c82 = 0.0f; c83 = 0.0f; c84 = 0.0f;
        c85 = 0.0f; c86 = 0.0f; c87 = 0.0f; c88 = 0.0f; c89 = 0.0f; c90 = 0.0f; c91 = 0.0f;
        c92 = 0.0f; c93 = 0.0f; c94 = 0.0f; c95 = 0.0f; c96 = 0.0f; c97 = 0.0f; c98 = 0.0f;
        c99 = 0.0f; c100 = 0.0f; c101 = 0.0f; c102 = 0.0f; c103 = 0.0f; c104 = 0.0f; c105 = 0.0f;
        c106 = 0.0f; c107 = 0.0f; c108 = 0.0f; c109 = 0.0f; c110 = 0.0f; c111 = 0.0f; c112 = 0.0f;
        c113 = 0.0f; c114 = 0.0f; c115 = 0.0f; c116 = 0.0f; c117 = 0.0f; c118 = 0.0f; c119 = 0.0f;
        c120 = 0.0f; c121 = 0.0f; c122 = 0.0f; c123 = 0.0f; c124 = 0.0f; c125 = 0.0f; c126 = 0.0f;
        c127 = 0.0f;
        #pragma unroll 1
        for (int step = 0; step < steps; step++, count++) {
          const int slot = count % STAGES;
          const u32 a_tile = matrix_at(sm + SM_A + (u32)slot * A_BYTES + (u32)group * 8192),
              b_tile = matrix_at(sm + SM_B + (u32)slot * B_BYTES);
          mbarrier_wait(BARRIER(FULL + slot), (count / 4 & 1));
          multiply_dw(c, a_tile, b_tile);
          wait_before_dw(c);
          if (step > 0) {
            mbarrier_arrive_if(BARRIER(EMPTY + (count - 1) % STAGES), lane == 0);
            mbarrier_arrive_remote_if(BARRIER(EMPTY + (count - 1) % STAGES), rank ^ 1, lane == 0);
          }
        }
        wait_all_dw(c);
        if (steps > 0) {
          mbarrier_arrive_if(BARRIER(EMPTY + (count - 1) % STAGES), lane == 0);
          mbarrier_arrive_remote_if(BARRIER(EMPTY + (count - 1) % STAGES), rank ^ 1, lane == 0);
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + slabs % SLABS) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_1(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT(base, 0, c0, c1, c2, c3, c4, c5, c6, c7)
          PUT(base, 2, c8, c9, c10, c11, c12, c13, c14, c15)
          PUT(base, 4, c16, c17, c18, c19, c20, c21, c22, c23)
          PUT(base, 6, c24, c25, c26, c27, c28, c29, c30, c31)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.dw_map, n0 + 0, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
          slabs++;
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + slabs % SLABS) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_1(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT(base, 0, c32, c33, c34, c35, c36, c37, c38, c39)
          PUT(base, 2, c40, c41, c42, c43, c44, c45, c46, c47)
          PUT(base, 4, c48, c49, c50, c51, c52, c53, c54, c55)
          PUT(base, 6, c56, c57, c58, c59, c60, c61, c62, c63)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.dw_map, n0 + 64, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
          slabs++;
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + slabs % SLABS) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_1(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT(base, 0, c64, c65, c66, c67, c68, c69, c70, c71)
          PUT(base, 2, c72, c73, c74, c75, c76, c77, c78, c79)
          PUT(base, 4, c80, c81, c82, c83, c84, c85, c86, c87)
          PUT(base, 6, c88, c89, c90, c91, c92, c93, c94, c95)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.dw_map, n0 + 128, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
          slabs++;
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + slabs % SLABS) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_1(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT(base, 0, c96, c97, c98, c99, c100, c101, c102, c103)
          PUT(base, 2, c104, c105, c106, c107, c108, c109, c110, c111)
          PUT(base, 4, c112, c113, c114, c115, c116, c117, c118, c119)
          PUT(base, 6, c120, c121, c122, c123, c124, c125, c126, c127)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.dw_map, n0 + 192, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
          slabs++;
        }
      }
    }
    if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); } // slabs are the block's
  }
  warp_sync(ALL_LANES);
  cluster_sync(); // what goes to the other block does so while it is there
}
