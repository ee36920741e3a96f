// linear_fwd-bf16-w1024-residual-act_layernorm.wgmma-q128-k256-s3-w12.sm_90a
//
// out = layernorm(x W^T + residual).
// spec:   kernel=linear width=1024 residual=true epilogue=layernorm
// again:  flashgen emit linear_fwd-bf16-w1024-residual-act_layernorm.wgmma-q128-k256-s3-w12.sm_90a
// made by flashgen 0.1.0
//
// launch: linear_fwd, grid cdiv(rows, 128) * 4 x 1 x 1, 384 threads, 223840 shared bytes, clusters
//         of 4, 1 a multiprocessor, early
//
// shared memory:
//   SM_A             0  A [STAGES][BLOCK_M][64], or [STAGES][BLOCK_M / 64][64 of k][64]
//   SM_B         49152  B [STAGES][BLOCK_N][64], or [STAGES][BLOCK_N / 64][64 of k][64]
//   SM_SLABS    147456  64 columns of a warpgroup's rows of C, on their way
//                       [GROUPS][SLABS][64][64]
//   SM_PARTS    212992  means and squares of rows of each block's columns
//                       [2][CLUSTER][BLOCK_M][2], float32
//   SM_BARRIERS 221184  mbarriers: full [3], empty [3], vectors_full, parts_full [4],
//                       residual_full [2]
//   SM_VECTORS  221296  bias, gamma and beta of the columns [3][BLOCK_N]
//   SM_END      222832  what rounding the base to 1024 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { WIDTH_IN = 1024 }; // columns of x
enum { WIDTH_OUT = 1024 }; // columns of y
enum { KEPT_COLUMNS = 1024 }; // of what is kept for backward
enum { BLOCK_M = 128 }; // rows of a tile of C
enum { BLOCK_N = 256 }; // columns of B's tile
enum { GROUPS = 2 }; // warpgroups that multiply, of 64 rows each
enum { STAGES = 3 }; // tiles of A and of B in flight
enum { SLABS = 4 }; // of 64 columns of a warpgroup's rows
enum { BIAS_BYTES = 512 }; // of a tile's columns
enum { CLUSTER = 4 }; // blocks that share A, and rows of C
enum { BAND = 4 }; // tiles of rows of a cluster that are gone through side by side
enum { A_BYTES = 16384 }; // of a stage
enum { B_BYTES = 32768 };
enum { MOVER_REGISTERS = 24 };
enum { REGISTERS = 240 };
enum { SM_A = 0 };
enum { SM_B = 49152 };
enum { SM_SLABS = 147456 };
enum { SM_PARTS = 212992 };
enum { SM_BARRIERS = 221184 };
enum { SM_VECTORS = 221296 };
enum { SM_END = 222832 };

typedef struct __align__(64) tensor_map { u64 word[16]; } tensor_map; // the driver's, for TMA

#define ALL_LANES 0xffffffffu
#define L2_NORMAL 0x1000000000000000ull
#define L2_FIRST 0x12f0000000000000ull // evicted first: read once

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

extern __shared__ __align__(16) unsigned char shared_bytes[];

DEV u32 shared_base(void) { return (u32)__cvta_generic_to_shared(shared_bytes); }

DEV u32 lds_u32(u32 address) {
  u32 v;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}

DEV void lds_u32x2(u32 *v, u32 address) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
      : "=r"(v[0]), "=r"(v[1]) : "r"(address) : "memory");
}

DEV void sts_u32(u32 address, u32 v) {
  asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(v) : "memory");
}

DEV void stg_f32_if(float *to, float v, int predicate) {
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.f32 [%0], %1; }"
      :: "l"(to), "f"(v), "r"(predicate) : "memory");
}

DEV void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

DEV void warp_sync(u32 lanes) { asm volatile("bar.warp.sync %0;" :: "r"(lanes) : "memory"); }

DEV float shfl_xor(u32 lanes, float v, int mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(mask), "r"(lanes));
  return r;
}

DEV u32 shfl_u32(u32 lanes, u32 v, int from) {
  u32 r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;" : "=r"(r) : "r"(v), "r"(from), "r"(lanes));
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

DEV void ldmatrix_x4(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
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

DEV void mbarrier_expect(u32 bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes)
      : "memory");
}

DEV void mbarrier_expect_if(u32 bar, int bytes, int predicate) {
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; "
      "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1; }"
      :: "r"(bar), "r"(bytes), "r"(predicate) : "memory");
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

DEV void bulk_load(u32 to, const void *from, int bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];"
      :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}

DEV void bulk_load_if(u32 to, const void *from, int bytes, u32 bar, int predicate) {
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %4, 0; "
      "@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3]; }"
      :: "r"(to), "l"(from), "r"(bytes), "r"(bar), "r"(predicate) : "memory");
}

DEV void bulk_copy_remote_if(u32 to, u32 from, int bytes, u32 bar, int rank, int predicate) {
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; .reg .b32 there, full; "
      "mapa.shared::cluster.u32 there, %0, %4; mapa.shared::cluster.u32 full, %3, %4;\n"
      "@p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
      "[there], [%1], %2, [full]; }"
      :: "r"(to), "r"(from), "r"(bytes), "r"(bar), "r"(rank), "r"(predicate) : "memory");
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

// The sum over so many lanes, a power of two of neighbours, all of which have the same bits of it.
DEV float sum_over_lanes(float v, int lanes) {
  #pragma unroll
  for (int mask = lanes / 2; mask > 0; mask /= 2) { v += shfl_xor(ALL_LANES, v, mask); }
  return v;
}

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

#define multiply(d, a, b, sum) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n" \
      "setp.ne.s32 first, %130, 0;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 a, %128, 0; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 0; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, first, 1, 1, 0, 0;\n" \
      "add.u32 a, %128, 2; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 2; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %128, 4; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 4; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %128, 6; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 6; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 0, 0;\n" \
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

#define wait_before(d1) \
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

#define wait_all(d1) \
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

// Where a lane's row of 16 columns is in a slab.
#define PLACE(base, chunk) ((base) + (u32)(((chunk + lane / 16) ^ lane % 8) * 16))

// z of 16 columns in place of sums.
#define ADD_TERMS(base, chunk, first, c0, c1, c2, c3, c4, c5, c6, c7) \
  { \
    u32 residual[4]; \
    ldmatrix_x4(residual, PLACE(base, chunk)); \
    { \
       \
      { \
        const u32 residualpair = residual[0]; \
        const float residual0 = bf16_to_f32((u16)residualpair), \
            residual1 = bf16_to_f32((u16)(residualpair >> 16)); \
        c0 += residual0; \
        c1 += residual1; \
      } \
      { \
        const u32 residualpair = residual[1]; \
        const float residual0 = bf16_to_f32((u16)residualpair), \
            residual1 = bf16_to_f32((u16)(residualpair >> 16)); \
        c2 += residual0; \
        c3 += residual1; \
      } \
    } \
    { \
       \
      { \
        const u32 residualpair = residual[2]; \
        const float residual0 = bf16_to_f32((u16)residualpair), \
            residual1 = bf16_to_f32((u16)(residualpair >> 16)); \
        c4 += residual0; \
        c5 += residual1; \
      } \
      { \
        const u32 residualpair = residual[3]; \
        const float residual0 = bf16_to_f32((u16)residualpair), \
            residual1 = bf16_to_f32((u16)(residualpair >> 16)); \
        c6 += residual0; \
        c7 += residual1; \
      } \
    } \
  }

// Sums of 16 columns.
#define ADD_UP(first, c0, c1, c2, c3, c4, c5, c6, c7) \
  { \
    { \
       \
      mean0 += c0 + c1; \
      mean1 += c2 + c3; \
    } \
    { \
       \
      mean0 += c4 + c5; \
      mean1 += c6 + c7; \
    } \
  }

// Squares of what is left of 16 columns.
#define ADD_SQUARES(first, c0, c1, c2, c3, c4, c5, c6, c7) \
  { \
    { \
       \
      { \
        const float d0 = c0 - mean0, d1 = c1 - mean0; \
        squares0 += d0 * d0 + d1 * d1; \
        rest0 += d0 + d1; \
      } \
      { \
        const float d0 = c2 - mean1, d1 = c3 - mean1; \
        squares1 += d0 * d0 + d1 * d1; \
        rest1 += d0 + d1; \
      } \
    } \
    { \
       \
      { \
        const float d0 = c4 - mean0, d1 = c5 - mean0; \
        squares0 += d0 * d0 + d1 * d1; \
        rest0 += d0 + d1; \
      } \
      { \
        const float d0 = c6 - mean1, d1 = c7 - mean1; \
        squares1 += d0 * d0 + d1 * d1; \
        rest1 += d0 + d1; \
      } \
    } \
  }

// 16 columns of z.
#define PUT_Z(base, chunk, first, c0, c1, c2, c3, c4, c5, c6, c7) \
  { \
    u32 v[4]; \
    { \
       \
      v[0] = pack_bf16(c0, c1); \
      v[1] = pack_bf16(c2, c3); \
    } \
    { \
       \
      v[2] = pack_bf16(c4, c5); \
      v[3] = pack_bf16(c6, c7); \
    } \
    stmatrix_x4(PLACE(base, chunk), v); \
  }

// 16 columns of out.
#define PUT_OUT(base, chunk, first, c0, c1, c2, c3, c4, c5, c6, c7) \
  { \
    u32 v[4]; \
    { \
      const u32 gammapair = lds_u32(vectors + 0 * BLOCK_N \
          + 2 * (u32)(first + 0 + 2 * (lane % 4))); \
      const float gamma0 = bf16_to_f32((u16)gammapair), \
          gamma1 = bf16_to_f32((u16)(gammapair >> 16)); \
      const u32 betapair = p.beta ? lds_u32(vectors + 2 * BLOCK_N \
          + 2 * (u32)(first + 0 + 2 * (lane % 4))) : 0; \
      const float beta0 = bf16_to_f32((u16)betapair), beta1 = bf16_to_f32((u16)(betapair >> 16)); \
      v[0] = pack_bf16((c0 - mean0) * rstd0 * gamma0 + beta0, (c1 - mean0) * rstd0 * gamma1 \
          + beta1); \
      v[1] = pack_bf16((c2 - mean1) * rstd1 * gamma0 + beta0, (c3 - mean1) * rstd1 * gamma1 \
          + beta1); \
    } \
    { \
      const u32 gammapair = lds_u32(vectors + 0 * BLOCK_N \
          + 2 * (u32)(first + 8 + 2 * (lane % 4))); \
      const float gamma0 = bf16_to_f32((u16)gammapair), \
          gamma1 = bf16_to_f32((u16)(gammapair >> 16)); \
      const u32 betapair = p.beta ? lds_u32(vectors + 2 * BLOCK_N \
          + 2 * (u32)(first + 8 + 2 * (lane % 4))) : 0; \
      const float beta0 = bf16_to_f32((u16)betapair), beta1 = bf16_to_f32((u16)(betapair >> 16)); \
      v[2] = pack_bf16((c4 - mean0) * rstd0 * gamma0 + beta0, (c5 - mean0) * rstd0 * gamma1 \
          + beta1); \
      v[3] = pack_bf16((c6 - mean1) * rstd1 * gamma0 + beta0, (c7 - mean1) * rstd1 * gamma1 \
          + beta1); \
    } \
    stmatrix_x4(PLACE(base, chunk), v); \
  }

#define BARRIER(number) (sm + SM_BARRIERS + 8 * (number))

typedef struct Params {
  tensor_map x_map; // of x: boxes of 32 rows of 64
  tensor_map w_map; // of w: boxes of 64 rows of 64
  tensor_map out_map; // of out: boxes of 64 rows of 64
  tensor_map z_map; // of z: boxes of 64 rows of 64
  tensor_map residual_map; // of residual: boxes of 64 rows of 64
  const u16 *x; // [rows, 1024] bf16
  i64 x_n;
  const u16 *w; // [1024, 1024] bf16
  i64 w_n;
  const u16 *residual; // [rows, 1024] bf16
  i64 residual_n;
  const u16 *gamma; // [1024] bf16
  const u16 *beta; // [1024] bf16, or null
  u16 *out; // [rows, 1024] bf16
  i64 out_n;
  u16 *z; // [rows, 1024] bf16, or null
  i64 z_n;
  float *rstd; // [rows] f32, or null
  float *mean; // [rows] f32, or null
  int rows;
  float eps; // NaN: not given
} Params;

enum { // the first barrier of each kind
  FULL = 0, EMPTY = 3, VECTORS_FULL = 6, PARTS_FULL = 7, RESIDUAL_FULL = 11,
};

extern "C" __global__ void __launch_bounds__(384, 1)
linear_fwd(const __grid_constant__ Params p) {

  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % 128 / 32;
  const int group = (int)shfl_u32(ALL_LANES, threadIdx.x / 128, 0) - 1; // -1: the mover's
  const u32 sm = (shared_base() + 1023) & ~1023u;
  const int rank = cluster_rank();
  const int tiles = cdiv(p.rows, BLOCK_M);
  const int first_tile = (int)blockIdx.x / CLUSTER, tile_step = (int)gridDim.x / CLUSTER;
  const int steps = cdiv(WIDTH_IN, 64);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; i++) { mbarrier_init(BARRIER(FULL + i), 1); }
    for (int i = 0; i < 3; i++) { mbarrier_init(BARRIER(EMPTY + i), 32); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(VECTORS_FULL + i), 1); }
    for (int i = 0; i < 4; i++) { mbarrier_init(BARRIER(PARTS_FULL + i), 16); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(RESIDUAL_FULL + i), 1); }
    fence_barrier_init();
    grid_wait();
  }
  cluster_sync(); // behind the end of the grid before

  if (group < 0) {
    setmaxnreg_dec_24();
    if (warp == 0 && lane == 0) {
      {
        const int n0 = rank * BLOCK_N;
        const u32 full = BARRIER(VECTORS_FULL);
        const int bytes = BLOCK_N * 2;
        mbarrier_expect(full, 1 * bytes + (p.beta ? bytes : 0));
        bulk_load(sm + SM_VECTORS + 0 * BLOCK_N, p.gamma + n0, bytes, full);
        bulk_load_if(sm + SM_VECTORS + 2 * BLOCK_N, p.beta + n0, bytes, full, p.beta != 0);
      }
      #pragma unroll 1
      for (int tile = first_tile, count = 0; tile < tiles; tile += tile_step) {
        const int m0 = tile * BLOCK_M, n0 = rank * BLOCK_N;
        #pragma unroll 1
        for (int step = 0; step < steps; step++, count++) {
          const int slot = count % STAGES, k0 = 64 * step;
          const u32 a_tile = sm + SM_A + (u32)slot * A_BYTES, b_tile = sm + SM_B
              + (u32)slot * B_BYTES, full = BARRIER(FULL + slot);
          mbarrier_wait(BARRIER(EMPTY + slot), (count / 3 & 1) ^ 1);
          mbarrier_expect(full, A_BYTES + B_BYTES);
          tma_multicast_4d(a_tile + (u32)rank * 4096, &p.x_map, k0, m0 + rank * 32, 0, 0, full,
              L2_NORMAL, 15);
          tma_load_4d(b_tile, &p.w_map, k0, n0, 0, 0, full, L2_NORMAL);
          tma_load_4d(b_tile + 8192, &p.w_map, k0, n0 + 64, 0, 0, full, L2_NORMAL);
          tma_load_4d(b_tile + 16384, &p.w_map, k0, n0 + 128, 0, 0, full, L2_NORMAL);
          tma_load_4d(b_tile + 24576, &p.w_map, k0, n0 + 192, 0, 0, full, L2_NORMAL);
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
    #pragma unroll 1
    for (int tile = first_tile, count = 0, turn = 0; tile < tiles; tile += tile_step, turn++) {
      const int m0 = tile * BLOCK_M, n0 = rank * BLOCK_N;
      #pragma unroll 1
      for (int step = 0; step < steps; step++, count++) {
        const int slot = count % STAGES;
        const u32 a_tile = matrix_at(sm + SM_A + (u32)slot * A_BYTES + (u32)group * 8192),
            b_tile = matrix_at(sm + SM_B + (u32)slot * B_BYTES);
        mbarrier_wait(BARRIER(FULL + slot), (count / 3 & 1));
        multiply(c, a_tile, b_tile, step > 0);
        if (step == 0) {
          if (threadIdx.x % 128 == 0) {
            tma_store_wait_read_0(); // of the tile before
            mbarrier_expect(BARRIER(RESIDUAL_FULL + group), 32768);
            tma_load_4d(sm + SM_SLABS + (u32)(SLABS * group + 0) * 8192, &p.residual_map, n0 + 0,
                m0 + 64 * group, 0, 0, BARRIER(RESIDUAL_FULL + group), L2_FIRST);
            tma_load_4d(sm + SM_SLABS + (u32)(SLABS * group + 1) * 8192, &p.residual_map, n0 + 64,
                m0 + 64 * group, 0, 0, BARRIER(RESIDUAL_FULL + group), L2_FIRST);
            tma_load_4d(sm + SM_SLABS + (u32)(SLABS * group + 2) * 8192, &p.residual_map, n0
                + 128, m0 + 64 * group, 0, 0, BARRIER(RESIDUAL_FULL + group), L2_FIRST);
            tma_load_4d(sm + SM_SLABS + (u32)(SLABS * group + 3) * 8192, &p.residual_map, n0
                + 192, m0 + 64 * group, 0, 0, BARRIER(RESIDUAL_FULL + group), L2_FIRST);
          }
        }
        wait_before(c);
        if (step > 0) {
          mbarrier_arrive_remote_if(BARRIER(EMPTY + (count - 1) % STAGES), lane, lane < CLUSTER);
        }
      }
      wait_all(c);
      mbarrier_arrive_remote_if(BARRIER(EMPTY + (count - 1) % STAGES), lane, lane < CLUSTER);
      const u32 vectors = sm + SM_VECTORS;
      mbarrier_wait(BARRIER(VECTORS_FULL), 0);
      mbarrier_wait(BARRIER(RESIDUAL_FULL + group), turn & 1);
      {
        {
          const u32 base = sm + SM_SLABS + (u32)(SLABS * group + 0) * 8192
              + (u32)(16 * warp + lane % 16) * 128;
          ADD_TERMS(base, 0, 0, c0, c1, c2, c3, c4, c5, c6, c7)
          ADD_TERMS(base, 2, 16, c8, c9, c10, c11, c12, c13, c14, c15)
          ADD_TERMS(base, 4, 32, c16, c17, c18, c19, c20, c21, c22, c23)
          ADD_TERMS(base, 6, 48, c24, c25, c26, c27, c28, c29, c30, c31)
        }
        {
          const u32 base = sm + SM_SLABS + (u32)(SLABS * group + 1) * 8192
              + (u32)(16 * warp + lane % 16) * 128;
          ADD_TERMS(base, 0, 64, c32, c33, c34, c35, c36, c37, c38, c39)
          ADD_TERMS(base, 2, 80, c40, c41, c42, c43, c44, c45, c46, c47)
          ADD_TERMS(base, 4, 96, c48, c49, c50, c51, c52, c53, c54, c55)
          ADD_TERMS(base, 6, 112, c56, c57, c58, c59, c60, c61, c62, c63)
        }
        {
          const u32 base = sm + SM_SLABS + (u32)(SLABS * group + 2) * 8192
              + (u32)(16 * warp + lane % 16) * 128;
          ADD_TERMS(base, 0, 128, c64, c65, c66, c67, c68, c69, c70, c71)
          ADD_TERMS(base, 2, 144, c72, c73, c74, c75, c76, c77, c78, c79)
          ADD_TERMS(base, 4, 160, c80, c81, c82, c83, c84, c85, c86, c87)
          ADD_TERMS(base, 6, 176, c88, c89, c90, c91, c92, c93, c94, c95)
        }
        {
          const u32 base = sm + SM_SLABS + (u32)(SLABS * group + 3) * 8192
              + (u32)(16 * warp + lane % 16) * 128;
          ADD_TERMS(base, 0, 192, c96, c97, c98, c99, c100, c101, c102, c103)
          ADD_TERMS(base, 2, 208, c104, c105, c106, c107, c108, c109, c110, c111)
          ADD_TERMS(base, 4, 224, c112, c113, c114, c115, c116, c117, c118, c119)
          ADD_TERMS(base, 6, 240, c120, c121, c122, c123, c124, c125, c126, c127)
        }
      }
      float mean0 = 0.0f, mean1 = 0.0f;
      ADD_UP(0, c0, c1, c2, c3, c4, c5, c6, c7)
      ADD_UP(16, c8, c9, c10, c11, c12, c13, c14, c15)
      ADD_UP(32, c16, c17, c18, c19, c20, c21, c22, c23)
      ADD_UP(48, c24, c25, c26, c27, c28, c29, c30, c31)
      ADD_UP(64, c32, c33, c34, c35, c36, c37, c38, c39)
      ADD_UP(80, c40, c41, c42, c43, c44, c45, c46, c47)
      ADD_UP(96, c48, c49, c50, c51, c52, c53, c54, c55)
      ADD_UP(112, c56, c57, c58, c59, c60, c61, c62, c63)
      ADD_UP(128, c64, c65, c66, c67, c68, c69, c70, c71)
      ADD_UP(144, c72, c73, c74, c75, c76, c77, c78, c79)
      ADD_UP(160, c80, c81, c82, c83, c84, c85, c86, c87)
      ADD_UP(176, c88, c89, c90, c91, c92, c93, c94, c95)
      ADD_UP(192, c96, c97, c98, c99, c100, c101, c102, c103)
      ADD_UP(208, c104, c105, c106, c107, c108, c109, c110, c111)
      ADD_UP(224, c112, c113, c114, c115, c116, c117, c118, c119)
      ADD_UP(240, c120, c121, c122, c123, c124, c125, c126, c127)
      mean0 = sum_over_lanes(mean0, 4);
      mean1 = sum_over_lanes(mean1, 4);
      const float each = 1.0f / (float)BLOCK_N;
      mean0 *= each;
      mean1 *= each;
      float squares0 = 0.0f, squares1 = 0.0f, rest0 = 0.0f, rest1 = 0.0f;
      ADD_SQUARES(0, c0, c1, c2, c3, c4, c5, c6, c7)
      ADD_SQUARES(16, c8, c9, c10, c11, c12, c13, c14, c15)
      ADD_SQUARES(32, c16, c17, c18, c19, c20, c21, c22, c23)
      ADD_SQUARES(48, c24, c25, c26, c27, c28, c29, c30, c31)
      ADD_SQUARES(64, c32, c33, c34, c35, c36, c37, c38, c39)
      ADD_SQUARES(80, c40, c41, c42, c43, c44, c45, c46, c47)
      ADD_SQUARES(96, c48, c49, c50, c51, c52, c53, c54, c55)
      ADD_SQUARES(112, c56, c57, c58, c59, c60, c61, c62, c63)
      ADD_SQUARES(128, c64, c65, c66, c67, c68, c69, c70, c71)
      ADD_SQUARES(144, c72, c73, c74, c75, c76, c77, c78, c79)
      ADD_SQUARES(160, c80, c81, c82, c83, c84, c85, c86, c87)
      ADD_SQUARES(176, c88, c89, c90, c91, c92, c93, c94, c95)
      ADD_SQUARES(192, c96, c97, c98, c99, c100, c101, c102, c103)
      ADD_SQUARES(208, c104, c105, c106, c107, c108, c109, c110, c111)
      ADD_SQUARES(224, c112, c113, c114, c115, c116, c117, c118, c119)
      ADD_SQUARES(240, c120, c121, c122, c123, c124, c125, c126, c127)
      squares0 = sum_over_lanes(squares0, 4);
      squares1 = sum_over_lanes(squares1, 4);
      rest0 = sum_over_lanes(rest0, 4);
      rest1 = sum_over_lanes(rest1, 4);
      {
        const float rest = rest0 * each; // what rounding left of the mean
        mean0 += rest;
        squares0 = max_f32(squares0 - rest * rest0, 0.0f);
      }
      {
        const float rest = rest1 * each; // what rounding left of the mean
        mean1 += rest;
        squares1 = max_f32(squares1 - rest * rest1, 0.0f);
      }
      const u32 parts = sm + SM_PARTS + (u32)(turn % 2) * (CLUSTER * BLOCK_M * 8),
          own = (u32)(64 * group + 16 * warp) * 8;
      const u32 mine = parts + (u32)rank * (BLOCK_M * 8) + own,
          full = BARRIER(PARTS_FULL + turn % 2 * GROUPS + group);
      if (lane % 4 == 0) {
        sts_u32(mine + (u32)(lane / 4 + 0) * 8, as_u32(mean0));
        sts_u32(mine + (u32)(lane / 4 + 0) * 8 + 4, as_u32(squares0));
        sts_u32(mine + (u32)(lane / 4 + 8) * 8, as_u32(mean1));
        sts_u32(mine + (u32)(lane / 4 + 8) * 8 + 4, as_u32(squares1));
      }
      fence_async();
      warp_sync(ALL_LANES); // the part is whole
      mbarrier_expect_if(full, (CLUSTER - 1) * 128, lane == 0);
      const int is_sent = lane < CLUSTER && lane != rank;
      bulk_copy_remote_if(mine, mine, 128, full, lane, is_sent);
      mbarrier_arrive_remote_if(full, lane, is_sent); // the places of the tile before are free
      mbarrier_wait(full, (turn / 2 & 1));
      {
        float all = 0.0f, merged = 0.0f;
        u32 part[2];
        lds_u32x2(part, parts + own + (u32)(lane / 4 + 0) * 8);
        const float first = as_f32(part[0]); // which others differ little from
        #pragma unroll
        for (int from = 1; from < CLUSTER; from++) {
          lds_u32x2(part, parts + (u32)from * (BLOCK_M * 8) + own + (u32)(lane / 4 + 0) * 8);
          all += (as_f32(part[0]) - first) * (float)BLOCK_N;
        }
        all = first + all * (1.0f / (float)WIDTH_OUT);
        #pragma unroll
        for (int from = 0; from < CLUSTER; from++) {
          lds_u32x2(part, parts + (u32)from * (BLOCK_M * 8) + own + (u32)(lane / 4 + 0) * 8);
          const float d = as_f32(part[0]) - all;
          merged += as_f32(part[1]) + d * d * (float)BLOCK_N;
        }
        mean0 = all;
        squares0 = merged;
      }
      {
        float all = 0.0f, merged = 0.0f;
        u32 part[2];
        lds_u32x2(part, parts + own + (u32)(lane / 4 + 8) * 8);
        const float first = as_f32(part[0]); // which others differ little from
        #pragma unroll
        for (int from = 1; from < CLUSTER; from++) {
          lds_u32x2(part, parts + (u32)from * (BLOCK_M * 8) + own + (u32)(lane / 4 + 8) * 8);
          all += (as_f32(part[0]) - first) * (float)BLOCK_N;
        }
        all = first + all * (1.0f / (float)WIDTH_OUT);
        #pragma unroll
        for (int from = 0; from < CLUSTER; from++) {
          lds_u32x2(part, parts + (u32)from * (BLOCK_M * 8) + own + (u32)(lane / 4 + 8) * 8);
          const float d = as_f32(part[0]) - all;
          merged += as_f32(part[1]) + d * d * (float)BLOCK_N;
        }
        mean1 = all;
        squares1 = merged;
      }
      const float eps = p.eps == p.eps ? p.eps : 1e-5f;
      const float rstd0 = inverse_f32(sqrt_f32(squares0 * (1.0f / (float)WIDTH_OUT) + eps));
      const float rstd1 = inverse_f32(sqrt_f32(squares1 * (1.0f / (float)WIDTH_OUT) + eps));
      if (rank == 0 && lane % 4 == 0) {
        {
          const int row = m0 + 64 * group + 16 * warp + lane / 4 + 0;
          if (p.rstd) { stg_f32_if(p.rstd + row, rstd0, row < p.rows); }
          if (p.mean) { stg_f32_if(p.mean + row, mean0, row < p.rows); }
        }
        {
          const int row = m0 + 64 * group + 16 * warp + lane / 4 + 8;
          if (p.rstd) { stg_f32_if(p.rstd + row, rstd1, row < p.rows); }
          if (p.mean) { stg_f32_if(p.mean + row, mean1, row < p.rows); }
        }
      }
      if (p.z) {
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + 0) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT_Z(base, 0, 0, c0, c1, c2, c3, c4, c5, c6, c7)
          PUT_Z(base, 2, 16, c8, c9, c10, c11, c12, c13, c14, c15)
          PUT_Z(base, 4, 32, c16, c17, c18, c19, c20, c21, c22, c23)
          PUT_Z(base, 6, 48, c24, c25, c26, c27, c28, c29, c30, c31)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.z_map, n0 + 0, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + 1) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT_Z(base, 0, 64, c32, c33, c34, c35, c36, c37, c38, c39)
          PUT_Z(base, 2, 80, c40, c41, c42, c43, c44, c45, c46, c47)
          PUT_Z(base, 4, 96, c48, c49, c50, c51, c52, c53, c54, c55)
          PUT_Z(base, 6, 112, c56, c57, c58, c59, c60, c61, c62, c63)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.z_map, n0 + 64, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + 2) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT_Z(base, 0, 128, c64, c65, c66, c67, c68, c69, c70, c71)
          PUT_Z(base, 2, 144, c72, c73, c74, c75, c76, c77, c78, c79)
          PUT_Z(base, 4, 160, c80, c81, c82, c83, c84, c85, c86, c87)
          PUT_Z(base, 6, 176, c88, c89, c90, c91, c92, c93, c94, c95)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.z_map, n0 + 128, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
        }
        {
          const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + 3) * 8192;
          if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); }
          barrier_sync(1 + group, 128); // the slab has been read
          const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
          PUT_Z(base, 0, 192, c96, c97, c98, c99, c100, c101, c102, c103)
          PUT_Z(base, 2, 208, c104, c105, c106, c107, c108, c109, c110, c111)
          PUT_Z(base, 4, 224, c112, c113, c114, c115, c116, c117, c118, c119)
          PUT_Z(base, 6, 240, c120, c121, c122, c123, c124, c125, c126, c127)
          fence_async();
          barrier_sync(1 + group, 128);
          if (threadIdx.x % 128 == 0) {
            tma_store_4d(&p.z_map, n0 + 192, m0 + 64 * group, 0, 0, slab);
            tma_store_commit();
          }
        }
      }
      {
        const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + 0) * 8192;
        if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); }
        barrier_sync(1 + group, 128); // the slab has been read
        const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
        PUT_OUT(base, 0, 0, c0, c1, c2, c3, c4, c5, c6, c7)
        PUT_OUT(base, 2, 16, c8, c9, c10, c11, c12, c13, c14, c15)
        PUT_OUT(base, 4, 32, c16, c17, c18, c19, c20, c21, c22, c23)
        PUT_OUT(base, 6, 48, c24, c25, c26, c27, c28, c29, c30, c31)
        fence_async();
        barrier_sync(1 + group, 128);
        if (threadIdx.x % 128 == 0) {
          tma_store_4d(&p.out_map, n0 + 0, m0 + 64 * group, 0, 0, slab);
          tma_store_commit();
        }
      }
      {
        const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + 1) * 8192;
        if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); }
        barrier_sync(1 + group, 128); // the slab has been read
        const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
        PUT_OUT(base, 0, 64, c32, c33, c34, c35, c36, c37, c38, c39)
        PUT_OUT(base, 2, 80, c40, c41, c42, c43, c44, c45, c46, c47)
        PUT_OUT(base, 4, 96, c48, c49, c50, c51, c52, c53, c54, c55)
        PUT_OUT(base, 6, 112, c56, c57, c58, c59, c60, c61, c62, c63)
        fence_async();
        barrier_sync(1 + group, 128);
        if (threadIdx.x % 128 == 0) {
          tma_store_4d(&p.out_map, n0 + 64, m0 + 64 * group, 0, 0, slab);
          tma_store_commit();
        }
      }
      {
        const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + 2) * 8192;
        if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); }
        barrier_sync(1 + group, 128); // the slab has been read
        const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
        PUT_OUT(base, 0, 128, c64, c65, c66, c67, c68, c69, c70, c71)
        PUT_OUT(base, 2, 144, c72, c73, c74, c75, c76, c77, c78, c79)
        PUT_OUT(base, 4, 160, c80, c81, c82, c83, c84, c85, c86, c87)
        PUT_OUT(base, 6, 176, c88, c89, c90, c91, c92, c93, c94, c95)
        fence_async();
        barrier_sync(1 + group, 128);
        if (threadIdx.x % 128 == 0) {
          tma_store_4d(&p.out_map, n0 + 128, m0 + 64 * group, 0, 0, slab);
          tma_store_commit();
        }
      }
      {
        const u32 slab = sm + SM_SLABS + (u32)(SLABS * group + 3) * 8192;
        if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); }
        barrier_sync(1 + group, 128); // the slab has been read
        const u32 base = slab + (u32)(16 * warp + lane % 16) * 128;
        PUT_OUT(base, 0, 192, c96, c97, c98, c99, c100, c101, c102, c103)
        PUT_OUT(base, 2, 208, c104, c105, c106, c107, c108, c109, c110, c111)
        PUT_OUT(base, 4, 224, c112, c113, c114, c115, c116, c117, c118, c119)
        PUT_OUT(base, 6, 240, c120, c121, c122, c123, c124, c125, c126, c127)
        fence_async();
        barrier_sync(1 + group, 128);
        if (threadIdx.x % 128 == 0) {
          tma_store_4d(&p.out_map, n0 + 192, m0 + 64 * group, 0, 0, slab);
          tma_store_commit();
        }
      }
    }
    if (threadIdx.x % 128 == 0) { tma_store_wait_read_0(); } // slabs are the block's
  }
  warp_sync(ALL_LANES);
  cluster_sync(); // what goes to the other block does so while it is there
}
