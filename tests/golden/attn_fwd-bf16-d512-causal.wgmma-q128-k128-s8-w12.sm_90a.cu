// attn_fwd-bf16-d512-causal.wgmma-q128-k128-s8-w12.sm_90a
//
// O = softmax(score(scale Q K^T)) V, and lse of each row.
// spec:   head_dim=512 mask=causal
// again:  flashgen emit attn_fwd-bf16-d512-causal.wgmma-q128-k128-s8-w12.sm_90a
// switches: claims, sections_of_heads
// made by flashgen 0.1.0
//
// launch: attn_fwd, grid cdiv(nq, 128) * h * b * 2 x 1 x 1, 384 threads, 231056 shared bytes,
//         clusters of 2, early
//
// shared memory:
//   SM_Q             0  Q [D / 64][64][64]
//   SM_P         65536  P of two tiles [2][KEYS / 64][64][64]
//   SM_PIECES    98304  of K [KEYS][64], and of V [DV / 64][PIECE_KEYS][64] [STAGES], then O [DV /
//                       64][64][64]
//   SM_PAIRS    229376  what two warps tell each other of their rows [2][2][32]
//   SM_BARRIERS 229888  mbarriers: q_full, piece_full [8], piece_empty [8], p_full [2]
//   SM_END      230048  what rounding the base to 1024 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 512 }; // head dim of q and k
enum { DV = 512 }; // head dim of v and o
enum { CLUSTER = 2 }; // blocks, of 64 query rows each
enum { BLOCK_Q = 128 }; // query rows of a cluster
enum { KEYS = 128 }; // of a tile
enum { BLOCK_KV = 64 }; // of a warpgroup's S
enum { STAGES = 8 }; // pieces of K and of V in flight
enum { THREADS = 384 }; // of a block
enum { MOVER_REGISTERS = 24 };
enum { REGISTERS = 240 };
enum { DV_COLUMNS = 256 }; // columns of O that a warpgroup has
enum { DV_BLOCKS = 4 }; // of 64 of them, of V
enum { K_PIECES = 8 }; // of 64 columns, of a tile
enum { PIECES_OF_SUM = 4 }; // of them that one sum in float32 takes
enum { D_REST = 64 }; // columns of the last one that are multiplied
enum { PIECE_KEYS = 16 }; // of a piece of V
enum { V_PIECES = 8 }; // of a tile
enum { K_PIECE_BYTES = 16384 }; // of a piece of K
enum { V_PIECE_BYTES = 16384 }; // of a piece of V
enum { SLOT_BYTES = 16384 }; // that a piece may have
enum { P_BYTES = 16384 }; // of a tile
enum { SM_Q = 0 };
enum { SM_P = 65536 };
enum { SM_PIECES = 98304 };
enum { SM_PAIRS = 229376 };
enum { SM_BARRIERS = 229888 };
enum { SM_END = 230048 };

typedef struct __align__(64) tensor_map { u64 word[16]; } tensor_map; // the driver's, for TMA

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
#define L2_FIRST 0x12f0000000000000ull // evicted first: read once
#define L2_LAST 0x14f0000000000000ull // evicted last: read by many blocks
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

DEV int imax(int a, int b) { return a > b ? a : b; }

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

DEV void sts_u32x4(u32 address, const u32 *v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
      :: "r"(address), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
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

DEV int any_lane(u32 lanes, int predicate) {
  int r;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.any.pred p, p, %2; "
      "selp.s32 %0, 1, 0, p; }" : "=r"(r) : "r"(predicate), "r"(lanes));
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

DEV void tma_store_wait_0(void) { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

DEV u32 matrix_at(u32 address) {
  return (address & 0x3ffff) >> 4; // in a cluster the block's rank lies above
}

DEV void wgmma_wait_1(void) { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }

DEV void wgmma_wait_2(void) { asm volatile("wgmma.wait_group.sync.aligned 2;" ::: "memory"); }

DEV void wgmma_wait_3(void) { asm volatile("wgmma.wait_group.sync.aligned 3;" ::: "memory"); }

DEV void wgmma_wait_4(void) { asm volatile("wgmma.wait_group.sync.aligned 4;" ::: "memory"); }

DEV void wgmma_wait_5(void) { asm volatile("wgmma.wait_group.sync.aligned 5;" ::: "memory"); }

DEV void wgmma_wait_6(void) { asm volatile("wgmma.wait_group.sync.aligned 6;" ::: "memory"); }

DEV void wgmma_wait_7(void) { asm volatile("wgmma.wait_group.sync.aligned 7;" ::: "memory"); }

DEV void setmaxnreg_dec_24(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 24;" ::: "memory");
}

DEV void setmaxnreg_inc_240(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;" ::: "memory");
}

// Over the four lanes that hold a row of an accumulator.
DEV float quad_max(float v) {
  v = max_f32(v, shfl_xor(ALL_LANES, v, 1));
  return max_f32(v, shfl_xor(ALL_LANES, v, 2));
}

DEV float quad_sum(float v) {
  v += shfl_xor(ALL_LANES, v, 1);
  return v + shfl_xor(ALL_LANES, v, 2);
}

// The columns of a lane, 8 * i + c with c = 0 or 1, that lie before n: bit 2 * i + c.
DEV u32 columns_below(int n) {
  const int most = imax(0, imin(n, 128)), below = most / 8 * 2 + imin(most % 8, 2);
  return below >= 32 ? 0xffffffffu : (1u << below) - 1;
}

// The bit of a column there, counted from the lane's first one.
#define COLUMN_BIT(column) (1u << ((column) / 8 * 2 + (column) % 8))

// Where the thread's row has its word: [2 turns][2 warpgroups][32 rows of them], of warpgroup
// `side` of the pair.
DEV u32 pair_place(u32 words, int side) {
  return words + (u32)(side * 128 + (int)threadIdx.x % 128 / 4 * 4);
}

// The other warp's number. Words take turns: what is written in one may be read until the end of
// the next one.
DEV u32 pair_other(u32 *place, u32 own) {
  if (threadIdx.x % 4 == 0) { sts_u32(*place, own); }
  barrier_sync(1 + (int)threadIdx.x % 128 / 32, 64);
  const u32 other = lds_u32(*place ^ 128);
  *place ^= 256;
  return other;
}

DEV float pair_max(u32 *place, float v) {
  return max_f32(v, as_f32(pair_other(place, as_u32(v))));
}

DEV float pair_sum(u32 *place, float v) {
  return v + as_f32(pair_other(place, as_u32(v)));
}

// F of row 0's pairs of scores, G of row 1's, in turn: x of P, the scores, a sum, the first one's
// column.
#define PAIRS(F, G) \
  F(x0, s0, s1, sum00, 0) G(x1, s2, s3, sum10, 0) F(x2, s4, s5, sum00, 8) \
  G(x3, s6, s7, sum10, 8) F(x4, s8, s9, sum00, 16) G(x5, s10, s11, sum10, 16) \
  F(x6, s12, s13, sum00, 24) G(x7, s14, s15, sum10, 24) F(x8, s16, s17, sum00, 32) \
  G(x9, s18, s19, sum10, 32) F(x10, s20, s21, sum00, 40) G(x11, s22, s23, sum10, 40) \
  F(x12, s24, s25, sum00, 48) G(x13, s26, s27, sum10, 48) F(x14, s28, s29, sum00, 56) \
  G(x15, s30, s31, sum10, 56)

// F of each of row 0's pairs of scores.
#define ROW0_PAIRS(F) \
  F(x0, s0, s1, sum00, 0) F(x2, s4, s5, sum00, 8) F(x4, s8, s9, sum00, 16) \
  F(x6, s12, s13, sum00, 24) F(x8, s16, s17, sum00, 32) F(x10, s20, s21, sum00, 40) \
  F(x12, s24, s25, sum00, 48) F(x14, s28, s29, sum00, 56)

// F of each of row 1's pairs of scores.
#define ROW1_PAIRS(F) \
  F(x1, s2, s3, sum10, 0) F(x3, s6, s7, sum10, 8) F(x5, s10, s11, sum10, 16) \
  F(x7, s14, s15, sum10, 24) F(x9, s18, s19, sum10, 32) F(x11, s22, s23, sum10, 40) \
  F(x13, s26, s27, sum10, 48) F(x15, s30, s31, sum10, 56)

#define MOST(x, a, b, sum, column) most = max_f32(most, max_f32(a, b));

#define SCALE_O_ROW0(factor) \
  o0 *= factor; o1 *= factor; o4 *= factor; o5 *= factor; o8 *= factor; o9 *= factor; \
  o12 *= factor; o13 *= factor; o16 *= factor; o17 *= factor; o20 *= factor; o21 *= factor; \
  o24 *= factor; o25 *= factor; o28 *= factor; o29 *= factor; o32 *= factor; o33 *= factor; \
  o36 *= factor; o37 *= factor; o40 *= factor; o41 *= factor; o44 *= factor; o45 *= factor; \
  o48 *= factor; o49 *= factor; o52 *= factor; o53 *= factor; o56 *= factor; o57 *= factor; \
  o60 *= factor; o61 *= factor; o64 *= factor; o65 *= factor; o68 *= factor; o69 *= factor; \
  o72 *= factor; o73 *= factor; o76 *= factor; o77 *= factor; o80 *= factor; o81 *= factor; \
  o84 *= factor; o85 *= factor; o88 *= factor; o89 *= factor; o92 *= factor; o93 *= factor; \
  o96 *= factor; o97 *= factor; o100 *= factor; o101 *= factor; o104 *= factor; \
  o105 *= factor; o108 *= factor; o109 *= factor; o112 *= factor; o113 *= factor; \
  o116 *= factor; o117 *= factor; o120 *= factor; o121 *= factor; o124 *= factor; \
  o125 *= factor;

#define SCALE_O_ROW1(factor) \
  o2 *= factor; o3 *= factor; o6 *= factor; o7 *= factor; o10 *= factor; o11 *= factor; \
  o14 *= factor; o15 *= factor; o18 *= factor; o19 *= factor; o22 *= factor; o23 *= factor; \
  o26 *= factor; o27 *= factor; o30 *= factor; o31 *= factor; o34 *= factor; o35 *= factor; \
  o38 *= factor; o39 *= factor; o42 *= factor; o43 *= factor; o46 *= factor; o47 *= factor; \
  o50 *= factor; o51 *= factor; o54 *= factor; o55 *= factor; o58 *= factor; o59 *= factor; \
  o62 *= factor; o63 *= factor; o66 *= factor; o67 *= factor; o70 *= factor; o71 *= factor; \
  o74 *= factor; o75 *= factor; o78 *= factor; o79 *= factor; o82 *= factor; o83 *= factor; \
  o86 *= factor; o87 *= factor; o90 *= factor; o91 *= factor; o94 *= factor; o95 *= factor; \
  o98 *= factor; o99 *= factor; o102 *= factor; o103 *= factor; o106 *= factor; \
  o107 *= factor; o110 *= factor; o111 *= factor; o114 *= factor; o115 *= factor; \
  o118 *= factor; o119 *= factor; o122 *= factor; o123 *= factor; o126 *= factor; \
  o127 *= factor;

#define FLOATS_32 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

#define scores_of_64(d, a, b) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n" \
      "setp.ne.u32 first, 0, 0;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 a, %32, 0; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 0; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, first, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 2; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 2; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 4; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 4; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 6; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 6; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "wgmma.commit_group.sync.aligned; }" \
      : "=f"(d##0), "=f"(d##1), "=f"(d##2), "=f"(d##3), "=f"(d##4), "=f"(d##5), \
      "=f"(d##6), "=f"(d##7), "=f"(d##8), "=f"(d##9), "=f"(d##10), "=f"(d##11), \
      "=f"(d##12), "=f"(d##13), "=f"(d##14), "=f"(d##15), "=f"(d##16), "=f"(d##17), \
      "=f"(d##18), "=f"(d##19), "=f"(d##20), "=f"(d##21), "=f"(d##22), "=f"(d##23), \
      "=f"(d##24), "=f"(d##25), "=f"(d##26), "=f"(d##27), "=f"(d##28), "=f"(d##29), \
      "=f"(d##30), "=f"(d##31) \
      : "r"((u32)(a)), "r"((u32)(b)) : "memory")

#define add_scores_of_64(d, a, b) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 a, %32, 0; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 0; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 2; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 2; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 4; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 4; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 6; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 6; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "wgmma.commit_group.sync.aligned; }" \
      : "+f"(d##0), "+f"(d##1), "+f"(d##2), "+f"(d##3), "+f"(d##4), "+f"(d##5), \
      "+f"(d##6), "+f"(d##7), "+f"(d##8), "+f"(d##9), "+f"(d##10), "+f"(d##11), \
      "+f"(d##12), "+f"(d##13), "+f"(d##14), "+f"(d##15), "+f"(d##16), "+f"(d##17), \
      "+f"(d##18), "+f"(d##19), "+f"(d##20), "+f"(d##21), "+f"(d##22), "+f"(d##23), \
      "+f"(d##24), "+f"(d##25), "+f"(d##26), "+f"(d##27), "+f"(d##28), "+f"(d##29), \
      "+f"(d##30), "+f"(d##31) \
      : "r"((u32)(a)), "r"((u32)(b)) : "memory")

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

#define add_values(d, a, b) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 a, %128, 0; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %129, 8388608; mov.b64 db, {b, hb};\n" \
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
      : "r"((u32)(a)), "r"((u32)(b)) : "memory")

#define wait_scores(d1, d2) \
  asm volatile("wgmma.wait_group.sync.aligned 1;" \
      : "+f"(d1##0), "+f"(d1##1), "+f"(d1##2), "+f"(d1##3), "+f"(d1##4), "+f"(d1##5), \
      "+f"(d1##6), "+f"(d1##7), "+f"(d1##8), "+f"(d1##9), "+f"(d1##10), "+f"(d1##11), \
      "+f"(d1##12), "+f"(d1##13), "+f"(d1##14), "+f"(d1##15), "+f"(d1##16), "+f"(d1##17), \
      "+f"(d1##18), "+f"(d1##19), "+f"(d1##20), "+f"(d1##21), "+f"(d1##22), "+f"(d1##23), \
      "+f"(d1##24), "+f"(d1##25), "+f"(d1##26), "+f"(d1##27), "+f"(d1##28), "+f"(d1##29), \
      "+f"(d1##30), "+f"(d1##31), "+f"(d2##0), "+f"(d2##1), "+f"(d2##2), "+f"(d2##3), \
      "+f"(d2##4), "+f"(d2##5), "+f"(d2##6), "+f"(d2##7), "+f"(d2##8), "+f"(d2##9), \
      "+f"(d2##10), "+f"(d2##11), "+f"(d2##12), "+f"(d2##13), "+f"(d2##14), "+f"(d2##15), \
      "+f"(d2##16), "+f"(d2##17), "+f"(d2##18), "+f"(d2##19), "+f"(d2##20), "+f"(d2##21), \
      "+f"(d2##22), "+f"(d2##23), "+f"(d2##24), "+f"(d2##25), "+f"(d2##26), "+f"(d2##27), \
      "+f"(d2##28), "+f"(d2##29), "+f"(d2##30), "+f"(d2##31) :: "memory")

#define wait_first(d1, d2) \
  asm volatile("wgmma.wait_group.sync.aligned 0;" \
      : "+f"(d1##0), "+f"(d1##1), "+f"(d1##2), "+f"(d1##3), "+f"(d1##4), "+f"(d1##5), \
      "+f"(d1##6), "+f"(d1##7), "+f"(d1##8), "+f"(d1##9), "+f"(d1##10), "+f"(d1##11), \
      "+f"(d1##12), "+f"(d1##13), "+f"(d1##14), "+f"(d1##15), "+f"(d1##16), "+f"(d1##17), \
      "+f"(d1##18), "+f"(d1##19), "+f"(d1##20), "+f"(d1##21), "+f"(d1##22), "+f"(d1##23), \
      "+f"(d1##24), "+f"(d1##25), "+f"(d1##26), "+f"(d1##27), "+f"(d1##28), "+f"(d1##29), \
      "+f"(d1##30), "+f"(d1##31), "+f"(d2##0), "+f"(d2##1), "+f"(d2##2), "+f"(d2##3), \
      "+f"(d2##4), "+f"(d2##5), "+f"(d2##6), "+f"(d2##7), "+f"(d2##8), "+f"(d2##9), \
      "+f"(d2##10), "+f"(d2##11), "+f"(d2##12), "+f"(d2##13), "+f"(d2##14), "+f"(d2##15), \
      "+f"(d2##16), "+f"(d2##17), "+f"(d2##18), "+f"(d2##19), "+f"(d2##20), "+f"(d2##21), \
      "+f"(d2##22), "+f"(d2##23), "+f"(d2##24), "+f"(d2##25), "+f"(d2##26), "+f"(d2##27), \
      "+f"(d2##28), "+f"(d2##29), "+f"(d2##30), "+f"(d2##31) :: "memory")

#define renew(d1) \
  asm volatile("" \
      : "+f"(d1##0), "+f"(d1##1), "+f"(d1##2), "+f"(d1##3), "+f"(d1##4), "+f"(d1##5), \
      "+f"(d1##6), "+f"(d1##7), "+f"(d1##8), "+f"(d1##9), "+f"(d1##10), "+f"(d1##11), \
      "+f"(d1##12), "+f"(d1##13), "+f"(d1##14), "+f"(d1##15), "+f"(d1##16), "+f"(d1##17), \
      "+f"(d1##18), "+f"(d1##19), "+f"(d1##20), "+f"(d1##21), "+f"(d1##22), "+f"(d1##23), \
      "+f"(d1##24), "+f"(d1##25), "+f"(d1##26), "+f"(d1##27), "+f"(d1##28), "+f"(d1##29), \
      "+f"(d1##30), "+f"(d1##31) :: "memory")

#define wait_all(d1, d2) \
  asm volatile("wgmma.wait_group.sync.aligned 0;" \
      : "+f"(d1##0), "+f"(d1##1), "+f"(d1##2), "+f"(d1##3), "+f"(d1##4), "+f"(d1##5), \
      "+f"(d1##6), "+f"(d1##7), "+f"(d1##8), "+f"(d1##9), "+f"(d1##10), "+f"(d1##11), \
      "+f"(d1##12), "+f"(d1##13), "+f"(d1##14), "+f"(d1##15), "+f"(d1##16), "+f"(d1##17), \
      "+f"(d1##18), "+f"(d1##19), "+f"(d1##20), "+f"(d1##21), "+f"(d1##22), "+f"(d1##23), \
      "+f"(d1##24), "+f"(d1##25), "+f"(d1##26), "+f"(d1##27), "+f"(d1##28), "+f"(d1##29), \
      "+f"(d1##30), "+f"(d1##31), "+f"(d2##0), "+f"(d2##1), "+f"(d2##2), "+f"(d2##3), \
      "+f"(d2##4), "+f"(d2##5), "+f"(d2##6), "+f"(d2##7), "+f"(d2##8), "+f"(d2##9), \
      "+f"(d2##10), "+f"(d2##11), "+f"(d2##12), "+f"(d2##13), "+f"(d2##14), "+f"(d2##15), \
      "+f"(d2##16), "+f"(d2##17), "+f"(d2##18), "+f"(d2##19), "+f"(d2##20), "+f"(d2##21), \
      "+f"(d2##22), "+f"(d2##23), "+f"(d2##24), "+f"(d2##25), "+f"(d2##26), "+f"(d2##27), \
      "+f"(d2##28), "+f"(d2##29), "+f"(d2##30), "+f"(d2##31), "+f"(d2##32), "+f"(d2##33), \
      "+f"(d2##34), "+f"(d2##35), "+f"(d2##36), "+f"(d2##37), "+f"(d2##38), "+f"(d2##39), \
      "+f"(d2##40), "+f"(d2##41), "+f"(d2##42), "+f"(d2##43), "+f"(d2##44), "+f"(d2##45), \
      "+f"(d2##46), "+f"(d2##47), "+f"(d2##48), "+f"(d2##49), "+f"(d2##50), "+f"(d2##51), \
      "+f"(d2##52), "+f"(d2##53), "+f"(d2##54), "+f"(d2##55), "+f"(d2##56), "+f"(d2##57), \
      "+f"(d2##58), "+f"(d2##59), "+f"(d2##60), "+f"(d2##61), "+f"(d2##62), "+f"(d2##63), \
      "+f"(d2##64), "+f"(d2##65), "+f"(d2##66), "+f"(d2##67), "+f"(d2##68), "+f"(d2##69), \
      "+f"(d2##70), "+f"(d2##71), "+f"(d2##72), "+f"(d2##73), "+f"(d2##74), "+f"(d2##75), \
      "+f"(d2##76), "+f"(d2##77), "+f"(d2##78), "+f"(d2##79), "+f"(d2##80), "+f"(d2##81), \
      "+f"(d2##82), "+f"(d2##83), "+f"(d2##84), "+f"(d2##85), "+f"(d2##86), "+f"(d2##87), \
      "+f"(d2##88), "+f"(d2##89), "+f"(d2##90), "+f"(d2##91), "+f"(d2##92), "+f"(d2##93), \
      "+f"(d2##94), "+f"(d2##95), "+f"(d2##96), "+f"(d2##97), "+f"(d2##98), "+f"(d2##99), \
      "+f"(d2##100), "+f"(d2##101), "+f"(d2##102), "+f"(d2##103), "+f"(d2##104), \
      "+f"(d2##105), "+f"(d2##106), "+f"(d2##107), "+f"(d2##108), "+f"(d2##109), \
      "+f"(d2##110), "+f"(d2##111), "+f"(d2##112), "+f"(d2##113), "+f"(d2##114), \
      "+f"(d2##115), "+f"(d2##116), "+f"(d2##117), "+f"(d2##118), "+f"(d2##119), \
      "+f"(d2##120), "+f"(d2##121), "+f"(d2##122), "+f"(d2##123), "+f"(d2##124), \
      "+f"(d2##125), "+f"(d2##126), "+f"(d2##127) :: "memory")

#define ADD_PART() \
  s0 += part0; s1 += part1; s2 += part2; s3 += part3; s4 += part4; s5 += part5; s6 += part6; \
  s7 += part7; s8 += part8; s9 += part9; s10 += part10; s11 += part11; s12 += part12; \
  s13 += part13; s14 += part14; s15 += part15; s16 += part16; s17 += part17; s18 += part18; \
  s19 += part19; s20 += part20; s21 += part21; s22 += part22; s23 += part23; s24 += part24; \
  s25 += part25; s26 += part26; s27 += part27; s28 += part28; s29 += part29; s30 += part30; \
  s31 += part31;

#define BARRIER(number) (sm + SM_BARRIERS + 8 * (number))

// A score that the mask hides.
#define HIDE_ROW0_ONE(score, column) if ((seen0 & COLUMN_BIT(column)) == 0) { score = NEG_INF; }

#define HIDE_ROW0(x, a, b, sum, column) \
  { \
    HIDE_ROW0_ONE(a, column) \
    HIDE_ROW0_ONE(b, (column + 1)) \
  }

// A score that the mask hides.
#define HIDE_ROW1_ONE(score, column) if ((seen1 & COLUMN_BIT(column)) == 0) { score = NEG_INF; }

#define HIDE_ROW1(x, a, b, sum, column) \
  { \
    HIDE_ROW1_ONE(a, column) \
    HIDE_ROW1_ONE(b, (column + 1)) \
  }

// A weight of the first tile.
#define WEIGH_FIRST_ONE(score, column, weight, sum) \
  weight = exp2_f32(score * (scale * LOG2E)); \
  sum += weight;

#define WEIGH_FIRST(x, a, b, sum, column) \
  { \
    float w0, w1; \
    WEIGH_FIRST_ONE(a, column, w0, sum) \
    WEIGH_FIRST_ONE(b, (column + 1), w1, sum) \
    x = pack_bf16(w0, w1); \
  }

// A weight by the row's new reference.
#define REWEIGH_ONE(score, column, weight, sum) \
  weight = exp2_f32(score * (scale * LOG2E) - origin); \
  sum += weight;

#define REWEIGH(x, a, b, sum, column) \
  { \
    float w0, w1; \
    REWEIGH_ONE(a, column, w0, sum) \
    REWEIGH_ONE(b, (column + 1), w1, sum) \
    x = pack_bf16(w0, w1); \
  }

#define CLEAR_O() \
  o0 = o1 = o2 = o3 = 0.0f; o4 = o5 = o6 = o7 = 0.0f; o8 = o9 = o10 = o11 = 0.0f; \
  o12 = o13 = o14 = o15 = 0.0f; o16 = o17 = o18 = o19 = 0.0f; o20 = o21 = o22 = o23 = 0.0f; \
  o24 = o25 = o26 = o27 = 0.0f; o28 = o29 = o30 = o31 = 0.0f; o32 = o33 = o34 = o35 = 0.0f; \
  o36 = o37 = o38 = o39 = 0.0f; o40 = o41 = o42 = o43 = 0.0f; o44 = o45 = o46 = o47 = 0.0f; \
  o48 = o49 = o50 = o51 = 0.0f; o52 = o53 = o54 = o55 = 0.0f; o56 = o57 = o58 = o59 = 0.0f; \
  o60 = o61 = o62 = o63 = 0.0f; o64 = o65 = o66 = o67 = 0.0f; o68 = o69 = o70 = o71 = 0.0f; \
  o72 = o73 = o74 = o75 = 0.0f; o76 = o77 = o78 = o79 = 0.0f; o80 = o81 = o82 = o83 = 0.0f; \
  o84 = o85 = o86 = o87 = 0.0f; o88 = o89 = o90 = o91 = 0.0f; o92 = o93 = o94 = o95 = 0.0f; \
  o96 = o97 = o98 = o99 = 0.0f; o100 = o101 = o102 = o103 = 0.0f; \
  o104 = o105 = o106 = o107 = 0.0f; o108 = o109 = o110 = o111 = 0.0f; \
  o112 = o113 = o114 = o115 = 0.0f; o116 = o117 = o118 = o119 = 0.0f; \
  o120 = o121 = o122 = o123 = 0.0f; o124 = o125 = o126 = o127 = 0.0f;

// A weight by the row's reference, which is known before the score.
#define WEIGH_ROW0_ONE(score, column, weight, sum) \
  weight = exp2_f32(score * (scale * LOG2E) - m0); \
  sum += weight;

#define WEIGH_ROW0(x, a, b, sum, column) \
  { \
    float w0, w1; \
    WEIGH_ROW0_ONE(a, column, w0, sum) \
    WEIGH_ROW0_ONE(b, (column + 1), w1, sum) \
    x = pack_bf16(w0, w1); \
  }

// A weight by the row's reference, which is known before the score.
#define WEIGH_ROW1_ONE(score, column, weight, sum) \
  weight = exp2_f32(score * (scale * LOG2E) - m1); \
  sum += weight;

#define WEIGH_ROW1(x, a, b, sum, column) \
  { \
    float w0, w1; \
    WEIGH_ROW1_ONE(a, column, w0, sum) \
    WEIGH_ROW1_ONE(b, (column + 1), w1, sum) \
    x = pack_bf16(w0, w1); \
  }

// 16 columns of O to the slot of Q: chunk of 8 in the block of 64.
#define PUT(block, chunk, lane_of_put, o0, o1, o2, o3, o4, o5, o6, o7) \
  { \
    u32 v[4]; \
    v[0] = pack_bf16(o0 * inverse0, o1 * inverse0); \
    v[1] = pack_bf16(o2 * inverse1, o3 * inverse1); \
    v[2] = pack_bf16(o4 * inverse0, o5 * inverse0); \
    v[3] = pack_bf16(o6 * inverse1, o7 * inverse1); \
    stmatrix_x4(o_row + block + (u32)(((chunk + lane_of_put / 16) ^ lane_of_put % 8) * 16), v); \
  }

typedef struct Params {
  tensor_map q_map; // of q: boxes of 64 rows of 64
  tensor_map k_map; // of k: boxes of 64 rows of 64
  tensor_map v_map; // of v: boxes of 16 rows of 64
  tensor_map o_map; // of o: boxes of 64 rows of 64
  const u16 *q; // [b, nq, h, 512] bf16
  i64 q_b, q_n, q_h;
  const u16 *k; // [b, nk, hk, 512] bf16
  i64 k_b, k_n, k_h;
  const u16 *v; // [b, nk, hk, 512] bf16
  i64 v_b, v_n, v_h;
  u16 *o; // [b, nq, h, 512] bf16
  i64 o_b, o_n, o_h;
  float *lse; // [b, h, nq] f32, or null
  int b, h, hk, nq, nk;
  float scale;
} Params;

enum { // the first barrier of each kind
  Q_FULL = 0, PIECE_FULL = 1, PIECE_EMPTY = 9, P_FULL = 17,
};

extern "C" __global__ void __launch_bounds__(384, 1)
attn_fwd(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % 128 / 32;
  const int side = (int)shfl_u32(ALL_LANES, threadIdx.x / 128, 0) - 1;
      // -1: the warps that move data
  const int rank = cluster_rank();
  grid_wait(); // until the grid before has ended
  const int tiles = cdiv(p.nq, BLOCK_Q), job = (int)blockIdx.x / CLUSTER;
  const int q0 = (tiles - 1 - job % tiles) * BLOCK_Q, head = job / tiles, h = head % p.h,
      b = head / p.h, g = h / (p.h / p.hk);
  const int row0 = q0 + 64 * rank;
  // a tensor without rows has a map of one: keys behind it are zeros
  const int k_first = p.nk == 0 ? KEYS : 0;
  const int k_last = k_first + imax(0,
      cdiv(imin(p.nk, p.nk + (imin(q0 + BLOCK_Q, p.nq)) - p.nq) - k_first, KEYS) - 1) * KEYS;
  const u32 sm = (shared_base() + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(Q_FULL + i), 1); }
    for (int i = 0; i < 8; i++) { mbarrier_init(BARRIER(PIECE_FULL + i), 1); }
    for (int i = 0; i < 8; i++) { mbarrier_init(BARRIER(PIECE_EMPTY + i), 16); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(P_FULL + i), 8); }
    fence_barrier_init();
  }
  cluster_sync();

  if (side < 0) {
    setmaxnreg_dec_24();
    if (warp == 0 && lane == 0) {
      mbarrier_expect(BARRIER(Q_FULL), K_PIECES * (64 * 128));
      #pragma unroll 1
      for (int c = 0; c < K_PIECES; c++) {
        tma_load_4d(sm + SM_Q + (u32)(c * (64 * 128)), &p.q_map, 64 * c, row0, h, b,
            BARRIER(Q_FULL), L2_FIRST);
      }
      int number = 0, k_tile = k_last; // pieces that have been asked for
      #pragma unroll 1
      for (int c = 0; c < K_PIECES; c++) {
        const int slot = number % STAGES;
        const u32 to = sm + SM_PIECES + (u32)slot * SLOT_BYTES;
        mbarrier_wait(BARRIER(PIECE_EMPTY + slot), (number / 8 & 1) ^ 1);
        mbarrier_expect(BARRIER(PIECE_FULL + slot), K_PIECE_BYTES);
        number++;
        const int key = KEYS / CLUSTER * rank;
        tma_multicast_4d(to + (u32)(key * 128), &p.k_map, 64 * c, (k_tile + key), g, b,
            BARRIER(PIECE_FULL + slot), L2_LAST, (1 << CLUSTER) - 1);
      }
      int k_before = k_tile;
      k_tile -= KEYS;
      #pragma unroll 1
      while (k_tile >= k_first) {
        #pragma unroll 1
        for (int c = 0; c < K_PIECES; c++) {
          const int slot = number % STAGES;
          const u32 to = sm + SM_PIECES + (u32)slot * SLOT_BYTES;
          mbarrier_wait(BARRIER(PIECE_EMPTY + slot), (number / 8 & 1) ^ 1);
          mbarrier_expect(BARRIER(PIECE_FULL + slot), K_PIECE_BYTES);
          number++;
          const int key = KEYS / CLUSTER * rank;
          tma_multicast_4d(to + (u32)(key * 128), &p.k_map, 64 * c, (k_tile + key), g, b,
              BARRIER(PIECE_FULL + slot), L2_LAST, (1 << CLUSTER) - 1);
        }
        #pragma unroll 1
        for (int key = 0; key < KEYS; key += PIECE_KEYS) {
          const int slot = number % STAGES;
          const u32 to = sm + SM_PIECES + (u32)slot * SLOT_BYTES;
          mbarrier_wait(BARRIER(PIECE_EMPTY + slot), (number / 8 & 1) ^ 1);
          mbarrier_expect(BARRIER(PIECE_FULL + slot), V_PIECE_BYTES);
          number++;
          #pragma unroll 1
          for (int i = 0; i < 2 * DV_BLOCKS / CLUSTER; i++) {
            const int block = 2 * DV_BLOCKS / CLUSTER * rank + i;
            tma_multicast_4d(to + (u32)(block * (PIECE_KEYS * 128)), &p.v_map,
                block / DV_BLOCKS * DV_COLUMNS + block % DV_BLOCKS * 64, (k_before + key), g, b,
                BARRIER(PIECE_FULL + slot), L2_LAST, (1 << CLUSTER) - 1);
          }
        }
        k_before = k_tile;
        k_tile -= KEYS;
      }
      #pragma unroll 1
      for (int key = 0; key < KEYS; key += PIECE_KEYS) {
        const int slot = number % STAGES;
        const u32 to = sm + SM_PIECES + (u32)slot * SLOT_BYTES;
        mbarrier_wait(BARRIER(PIECE_EMPTY + slot), (number / 8 & 1) ^ 1);
        mbarrier_expect(BARRIER(PIECE_FULL + slot), V_PIECE_BYTES);
        number++;
        #pragma unroll 1
        for (int i = 0; i < 2 * DV_BLOCKS / CLUSTER; i++) {
          const int block = 2 * DV_BLOCKS / CLUSTER * rank + i;
          tma_multicast_4d(to + (u32)(block * (PIECE_KEYS * 128)), &p.v_map,
              block / DV_BLOCKS * DV_COLUMNS + block % DV_BLOCKS * 64, (k_before + key), g, b,
              BARRIER(PIECE_FULL + slot), L2_LAST, (1 << CLUSTER) - 1);
        }
      }
    }
  } else {
    setmaxnreg_inc_240();
    float s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17, s18,
        s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31;
    float part0, part1, part2, part3, part4, part5, part6, part7, part8, part9, part10, part11,
        part12, part13, part14, part15, part16, part17, part18, part19, part20, part21, part22,
        part23, part24, part25, part26, part27, part28, part29, part30, part31;
    float o0, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, o13, o14, o15, o16, o17, o18,
        o19, o20, o21, o22, o23, o24, o25, o26, o27, o28, o29, o30, o31, o32, o33, o34, o35, o36,
        o37, o38, o39, o40, o41, o42, o43, o44, o45, o46, o47, o48, o49, o50, o51, o52, o53, o54,
        o55, o56, o57, o58, o59, o60, o61, o62, o63, o64, o65, o66, o67, o68, o69, o70, o71, o72,
        o73, o74, o75, o76, o77, o78, o79, o80, o81, o82, o83, o84, o85, o86, o87, o88, o89, o90,
        o91, o92, o93, o94, o95, o96, o97, o98, o99, o100, o101, o102, o103, o104, o105, o106,
        o107, o108, o109, o110, o111, o112, o113, o114, o115, o116, o117, o118, o119, o120, o121,
        o122, o123, o124, o125, o126, o127;
    u32 x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15;
    const float scale = p.scale < 0.0f ? -p.scale : p.scale;
    const int q_lane = row0 + 16 * warp + lane / 4;
    const u32 q_rows = shfl_u32(ALL_LANES, matrix_at(sm + SM_Q), 0);
    const u32 k_rows = matrix_at(sm + SM_PIECES) + (u32)(side * (BLOCK_KV * 128 / 16)),
        v_columns = matrix_at(sm + SM_PIECES) + (u32)(side * (DV_BLOCKS * PIECE_KEYS * 128 / 16));
    const u32 p_lane = sm + SM_P + (u32)(side * (64 * 128) + (16 * warp + lane % 16) * 128);
    u32 pair = pair_place(sm + SM_PAIRS, side);
    float m0, m1, l0, l1;
    int number = 0, turn = 0, k_tile = k_last;
        // pieces that have been read, tiles whose P has been
    mbarrier_wait(BARRIER(Q_FULL), 0);
    if (p.scale < 0.0f) {
      #pragma unroll 1
      for (int i = 0; i < K_PIECES * (64 * 128); i += 2 * 128 * 16) {
        const u32 at = sm + SM_Q + (u32)i + (threadIdx.x - 128) * 16;
        u32 v[4];
        lds_u32x4(v, at);
        for (int j = 0; j < 4; j++) { v[j] ^= 0x80008000u; }
        sts_u32x4(at, v);
      }
      fence_async();
      barrier_sync(5, 256);
    }
    {
      const int k0 = k_tile + BLOCK_KV * side;
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 0) % STAGES), ((number + 0) / 8 & 1));
      scores_of_64(s, q_rows + 0, k_rows + (u32)((number + 0) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 1) % STAGES), ((number + 1) / 8 & 1));
      add_scores_of_64(s, q_rows + 512, k_rows + (u32)((number + 1) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 0) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 2) % STAGES), ((number + 2) / 8 & 1));
      add_scores_of_64(s, q_rows + 1024, k_rows
          + (u32)((number + 2) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 1) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 3) % STAGES), ((number + 3) / 8 & 1));
      add_scores_of_64(s, q_rows + 1536, k_rows
          + (u32)((number + 3) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 2) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 4) % STAGES), ((number + 4) / 8 & 1));
      scores_of_64(part, q_rows + 2048, k_rows + (u32)((number + 4) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 3) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 5) % STAGES), ((number + 5) / 8 & 1));
      add_scores_of_64(part, q_rows + 2560, k_rows
          + (u32)((number + 5) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 4) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 6) % STAGES), ((number + 6) / 8 & 1));
      add_scores_of_64(part, q_rows + 3072, k_rows
          + (u32)((number + 6) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 5) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 7) % STAGES), ((number + 7) / 8 & 1));
      add_scores_of_64(part, q_rows + 3584, k_rows
          + (u32)((number + 7) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 6) % STAGES), lane,
          lane < CLUSTER);
      number += K_PIECES;
      wait_first(s, part);
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number - 1) % STAGES), lane,
          lane < CLUSTER);
      ADD_PART()
      m0 = 0.0f;
      l0 = 0.0f;
      m1 = 0.0f;
      l1 = 0.0f;
      float sum00 = 0.0f, sum10 = 0.0f;
      int safe0, safe1;
      const int k_lane = k0 + 2 * (lane % 4);
      if (!(p.nq + (imin(k0 + BLOCK_KV, p.nk)) <= p.nk + (imin(row0, p.nq - 1)) + 1 && k0
          + BLOCK_KV <= p.nk)) {
        const u32 seen0 = columns_below(imin(p.nk, p.nk + (q_lane + 1) - p.nq) - k_lane);
        const u32 seen1 = columns_below(imin(p.nk, p.nk + (q_lane + 9) - p.nq) - k_lane);
        ROW0_PAIRS(HIDE_ROW0)
        ROW1_PAIRS(HIDE_ROW1)
      }
      PAIRS(WEIGH_FIRST, WEIGH_FIRST)
      const float total0 = pair_sum(&pair, quad_sum(sum00));
      const float total1 = pair_sum(&pair, quad_sum(sum10));
      safe0 = total0 > 1e-12f && total0 < 65536.0f;
      safe1 = total1 > 1e-12f && total1 < 65536.0f;
      const int unsafe = pair_max(&pair, any_lane(ALL_LANES, !(safe0 && safe1)) ? 1.0f
          : 0.0f) > 0.0f;
      if (unsafe) {
        renew(s);
        {
          const int keep = pair_max(&pair, quad_max(safe0 ? 0.0f : 1.0f)) == 0.0f;
              // whatever the other rows need
          if (!keep) {
            m0 = NEG_INF;
            l0 = 0.0f;
          }
          sum00 = 0.0f;
          float most = NEG_INF;
          ROW0_PAIRS(MOST)
          most = pair_max(&pair, quad_max(most));
          const float peak = keep ? m0 : max_f32(m0, most * (scale * LOG2E));
          const float origin = peak == NEG_INF ? 0.0f : peak;
          const float correction = exp2_f32(m0 - origin);
          l0 *= correction;
          ROW0_PAIRS(REWEIGH)
          l0 += sum00;
          m0 = peak;
        }
        {
          const int keep = pair_max(&pair, quad_max(safe1 ? 0.0f : 1.0f)) == 0.0f;
              // whatever the other rows need
          if (!keep) {
            m1 = NEG_INF;
            l1 = 0.0f;
          }
          sum10 = 0.0f;
          float most = NEG_INF;
          ROW1_PAIRS(MOST)
          most = pair_max(&pair, quad_max(most));
          const float peak = keep ? m1 : max_f32(m1, most * (scale * LOG2E));
          const float origin = peak == NEG_INF ? 0.0f : peak;
          const float correction = exp2_f32(m1 - origin);
          l1 *= correction;
          ROW1_PAIRS(REWEIGH)
          l1 += sum10;
          m1 = peak;
        }
      } else {
        l0 += sum00;
        l1 += sum10;
      }
    }
    CLEAR_O()
    k_tile -= KEYS;
    #pragma unroll 1
    while (k_tile >= k_first) {
      const int k0 = k_tile + BLOCK_KV * side;
      float sum00 = 0.0f, sum10 = 0.0f;
      int safe0, safe1;
      {
        const u32 p_row = p_lane + (u32)(turn % 2) * P_BYTES;
        {
          const u32 v[4] = {x0, x1, x2, x3};
          stmatrix_x4(p_row + (u32)(((0 + lane / 16) ^ lane % 8) * 16), v);
        }
        {
          const u32 v[4] = {x4, x5, x6, x7};
          stmatrix_x4(p_row + (u32)(((2 + lane / 16) ^ lane % 8) * 16), v);
        }
        {
          const u32 v[4] = {x8, x9, x10, x11};
          stmatrix_x4(p_row + (u32)(((4 + lane / 16) ^ lane % 8) * 16), v);
        }
        {
          const u32 v[4] = {x12, x13, x14, x15};
          stmatrix_x4(p_row + (u32)(((6 + lane / 16) ^ lane % 8) * 16), v);
        }
        fence_async();
        warp_sync(ALL_LANES);
        mbarrier_arrive_if(BARRIER(P_FULL + turn % 2), lane == 0);
      }
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 0) % STAGES), ((number + 0) / 8 & 1));
      scores_of_64(s, q_rows + 0, k_rows + (u32)((number + 0) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 1) % STAGES), ((number + 1) / 8 & 1));
      add_scores_of_64(s, q_rows + 512, k_rows + (u32)((number + 1) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 0) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 2) % STAGES), ((number + 2) / 8 & 1));
      add_scores_of_64(s, q_rows + 1024, k_rows
          + (u32)((number + 2) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 1) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 3) % STAGES), ((number + 3) / 8 & 1));
      add_scores_of_64(s, q_rows + 1536, k_rows
          + (u32)((number + 3) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 2) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 4) % STAGES), ((number + 4) / 8 & 1));
      scores_of_64(part, q_rows + 2048, k_rows + (u32)((number + 4) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 3) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 5) % STAGES), ((number + 5) / 8 & 1));
      add_scores_of_64(part, q_rows + 2560, k_rows
          + (u32)((number + 5) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 4) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 6) % STAGES), ((number + 6) / 8 & 1));
      add_scores_of_64(part, q_rows + 3072, k_rows
          + (u32)((number + 6) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 5) % STAGES), lane,
          lane < CLUSTER);
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 7) % STAGES), ((number + 7) / 8 & 1));
      add_scores_of_64(part, q_rows + 3584, k_rows
          + (u32)((number + 7) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 6) % STAGES), lane,
          lane < CLUSTER);
      number += K_PIECES;
      mbarrier_wait(BARRIER(P_FULL + turn % 2), (turn / 2 & 1));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 0) % STAGES), ((number + 0) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 0), v_columns
          + (u32)((number + 0) % STAGES) * (SLOT_BYTES / 16));
      wait_scores(s, part);
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number - 1) % STAGES), lane,
          lane < CLUSTER);
      ADD_PART()
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 1) % STAGES), ((number + 1) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 32), v_columns
          + (u32)((number + 1) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 2) % STAGES), ((number + 2) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 64), v_columns
          + (u32)((number + 2) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 3) % STAGES), ((number + 3) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 96), v_columns
          + (u32)((number + 3) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 4) % STAGES), ((number + 4) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 8192), v_columns
          + (u32)((number + 4) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 5) % STAGES), ((number + 5) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 8224), v_columns
          + (u32)((number + 5) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 6) % STAGES), ((number + 6) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 8256), v_columns
          + (u32)((number + 6) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 7) % STAGES), ((number + 7) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 8288), v_columns
          + (u32)((number + 7) % STAGES) * (SLOT_BYTES / 16));
      const int k_lane = k0 + 2 * (lane % 4);
      if (!(p.nq + (imin(k0 + BLOCK_KV, p.nk)) <= p.nk + (imin(row0, p.nq - 1)) + 1)) {
        const u32 seen0 = columns_below(imin(p.nk, p.nk + (q_lane + 1) - p.nq) - k_lane);
        const u32 seen1 = columns_below(imin(p.nk, p.nk + (q_lane + 9) - p.nq) - k_lane);
        ROW0_PAIRS(HIDE_ROW0)
        ROW1_PAIRS(HIDE_ROW1)
      }
      PAIRS(WEIGH_ROW0, WEIGH_ROW1)
      safe0 = sum00 < 65536.0f;
      safe1 = sum10 < 65536.0f;
      const int unsafe = pair_max(&pair, any_lane(ALL_LANES, !(safe0 && safe1)) ? 1.0f
          : 0.0f) > 0.0f;
      wgmma_wait_7();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 0) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_6();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 1) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_5();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 2) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_4();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 3) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_3();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 4) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_2();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 5) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 6) % STAGES), lane,
          lane < CLUSTER);
      wait_all(s, o);
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 7) % STAGES), lane,
          lane < CLUSTER);
      number += V_PIECES;
      turn++;
      if (unsafe) {
        renew(s);
        {
          const int keep = pair_max(&pair, quad_max(safe0 ? 0.0f : 1.0f)) == 0.0f;
              // whatever the other rows need
          sum00 = 0.0f;
          float most = NEG_INF;
          ROW0_PAIRS(MOST)
          most = pair_max(&pair, quad_max(most));
          const float peak = keep ? m0 : max_f32(m0, most * (scale * LOG2E));
          const float origin = peak == NEG_INF ? 0.0f : peak;
          const float correction = exp2_f32(m0 - origin);
          l0 *= correction;
          ROW0_PAIRS(REWEIGH)
          l0 += sum00;
          m0 = peak;
          SCALE_O_ROW0(correction)
        }
        {
          const int keep = pair_max(&pair, quad_max(safe1 ? 0.0f : 1.0f)) == 0.0f;
              // whatever the other rows need
          sum10 = 0.0f;
          float most = NEG_INF;
          ROW1_PAIRS(MOST)
          most = pair_max(&pair, quad_max(most));
          const float peak = keep ? m1 : max_f32(m1, most * (scale * LOG2E));
          const float origin = peak == NEG_INF ? 0.0f : peak;
          const float correction = exp2_f32(m1 - origin);
          l1 *= correction;
          ROW1_PAIRS(REWEIGH)
          l1 += sum10;
          m1 = peak;
          SCALE_O_ROW1(correction)
        }
      } else {
        l0 += sum00;
        l1 += sum10;
      }
      k_tile -= KEYS;
    }
    {
      {
        const u32 p_row = p_lane + (u32)(turn % 2) * P_BYTES;
        {
          const u32 v[4] = {x0, x1, x2, x3};
          stmatrix_x4(p_row + (u32)(((0 + lane / 16) ^ lane % 8) * 16), v);
        }
        {
          const u32 v[4] = {x4, x5, x6, x7};
          stmatrix_x4(p_row + (u32)(((2 + lane / 16) ^ lane % 8) * 16), v);
        }
        {
          const u32 v[4] = {x8, x9, x10, x11};
          stmatrix_x4(p_row + (u32)(((4 + lane / 16) ^ lane % 8) * 16), v);
        }
        {
          const u32 v[4] = {x12, x13, x14, x15};
          stmatrix_x4(p_row + (u32)(((6 + lane / 16) ^ lane % 8) * 16), v);
        }
        fence_async();
        warp_sync(ALL_LANES);
        mbarrier_arrive_if(BARRIER(P_FULL + turn % 2), lane == 0);
      }
      mbarrier_wait(BARRIER(P_FULL + turn % 2), (turn / 2 & 1));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 0) % STAGES), ((number + 0) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 0), v_columns
          + (u32)((number + 0) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 1) % STAGES), ((number + 1) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 32), v_columns
          + (u32)((number + 1) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 2) % STAGES), ((number + 2) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 64), v_columns
          + (u32)((number + 2) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 3) % STAGES), ((number + 3) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 96), v_columns
          + (u32)((number + 3) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 4) % STAGES), ((number + 4) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 8192), v_columns
          + (u32)((number + 4) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 5) % STAGES), ((number + 5) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 8224), v_columns
          + (u32)((number + 5) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 6) % STAGES), ((number + 6) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 8256), v_columns
          + (u32)((number + 6) % STAGES) * (SLOT_BYTES / 16));
      mbarrier_wait(BARRIER(PIECE_FULL + (number + 7) % STAGES), ((number + 7) / 8 & 1));
      add_values(o, matrix_at(sm + SM_P + (u32)(turn % 2) * P_BYTES + 8288), v_columns
          + (u32)((number + 7) % STAGES) * (SLOT_BYTES / 16));
      wgmma_wait_7();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 0) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_6();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 1) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_5();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 2) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_4();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 3) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_3();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 4) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_2();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 5) % STAGES), lane,
          lane < CLUSTER);
      wgmma_wait_1();
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 6) % STAGES), lane,
          lane < CLUSTER);
      wait_all(s, o);
      mbarrier_arrive_remote_if(BARRIER(PIECE_EMPTY + (number + 7) % STAGES), lane,
          lane < CLUSTER);
      number += V_PIECES;
      turn++;
    }
    float inverse0, inverse1;
    {
      const int q = q_lane + 0;
      const float total = pair_sum(&pair, quad_sum(l0));
      const float lse_of_row = total == 0.0f ? NEG_INF : (m0 + log2_f32(total)) * LN2;
      stg_f32_if(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row, side == 0 && lane % 4 == 0
          && q < p.nq && p.lse);
      const float inverse = total == 0.0f ? 0.0f
          : inverse_f32(imin(p.nk, p.nk + (q + 1) - p.nq) <= 1 ? bf16_to_f32(f32_to_bf16(total))
          : total);
      inverse0 = inverse;
    }
    {
      const int q = q_lane + 8;
      const float total = pair_sum(&pair, quad_sum(l1));
      const float lse_of_row = total == 0.0f ? NEG_INF : (m1 + log2_f32(total)) * LN2;
      stg_f32_if(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row, side == 0 && lane % 4 == 0
          && q < p.nq && p.lse);
      const float inverse = total == 0.0f ? 0.0f
          : inverse_f32(imin(p.nk, p.nk + (q + 1) - p.nq) <= 1 ? bf16_to_f32(f32_to_bf16(total))
          : total);
      inverse1 = inverse;
    }
    barrier_sync(5, 256);
    const u32 o_row = sm + SM_PIECES + (u32)(16 * warp + lane % 16) * 128;
    PUT((u32)((DV_COLUMNS * side + 0) / 64 * 8192), (DV_COLUMNS * side + 0) % 64 / 8, lane, o0,
        o1, o2, o3, o4, o5, o6, o7)
    PUT((u32)((DV_COLUMNS * side + 16) / 64 * 8192), (DV_COLUMNS * side + 16) % 64 / 8, lane, o8,
        o9, o10, o11, o12, o13, o14, o15)
    PUT((u32)((DV_COLUMNS * side + 32) / 64 * 8192), (DV_COLUMNS * side + 32) % 64 / 8, lane, o16,
        o17, o18, o19, o20, o21, o22, o23)
    PUT((u32)((DV_COLUMNS * side + 48) / 64 * 8192), (DV_COLUMNS * side + 48) % 64 / 8, lane, o24,
        o25, o26, o27, o28, o29, o30, o31)
    PUT((u32)((DV_COLUMNS * side + 64) / 64 * 8192), (DV_COLUMNS * side + 64) % 64 / 8, lane, o32,
        o33, o34, o35, o36, o37, o38, o39)
    PUT((u32)((DV_COLUMNS * side + 80) / 64 * 8192), (DV_COLUMNS * side + 80) % 64 / 8, lane, o40,
        o41, o42, o43, o44, o45, o46, o47)
    PUT((u32)((DV_COLUMNS * side + 96) / 64 * 8192), (DV_COLUMNS * side + 96) % 64 / 8, lane, o48,
        o49, o50, o51, o52, o53, o54, o55)
    PUT((u32)((DV_COLUMNS * side + 112) / 64 * 8192), (DV_COLUMNS * side + 112) % 64 / 8, lane,
        o56, o57, o58, o59, o60, o61, o62, o63)
    PUT((u32)((DV_COLUMNS * side + 128) / 64 * 8192), (DV_COLUMNS * side + 128) % 64 / 8, lane,
        o64, o65, o66, o67, o68, o69, o70, o71)
    PUT((u32)((DV_COLUMNS * side + 144) / 64 * 8192), (DV_COLUMNS * side + 144) % 64 / 8, lane,
        o72, o73, o74, o75, o76, o77, o78, o79)
    PUT((u32)((DV_COLUMNS * side + 160) / 64 * 8192), (DV_COLUMNS * side + 160) % 64 / 8, lane,
        o80, o81, o82, o83, o84, o85, o86, o87)
    PUT((u32)((DV_COLUMNS * side + 176) / 64 * 8192), (DV_COLUMNS * side + 176) % 64 / 8, lane,
        o88, o89, o90, o91, o92, o93, o94, o95)
    PUT((u32)((DV_COLUMNS * side + 192) / 64 * 8192), (DV_COLUMNS * side + 192) % 64 / 8, lane,
        o96, o97, o98, o99, o100, o101, o102, o103)
    PUT((u32)((DV_COLUMNS * side + 208) / 64 * 8192), (DV_COLUMNS * side + 208) % 64 / 8, lane,
        o104, o105, o106, o107, o108, o109, o110, o111)
    PUT((u32)((DV_COLUMNS * side + 224) / 64 * 8192), (DV_COLUMNS * side + 224) % 64 / 8, lane,
        o112, o113, o114, o115, o116, o117, o118, o119)
    PUT((u32)((DV_COLUMNS * side + 240) / 64 * 8192), (DV_COLUMNS * side + 240) % 64 / 8, lane,
        o120, o121, o122, o123, o124, o125, o126, o127)
    fence_async();
    barrier_sync(5, 256);
    if (threadIdx.x == 128) {
      tma_store_4d(&p.o_map, 0, row0, h, b, sm + SM_PIECES + 0);
      tma_store_4d(&p.o_map, 64, row0, h, b, sm + SM_PIECES + 8192);
      tma_store_4d(&p.o_map, 128, row0, h, b, sm + SM_PIECES + 16384);
      tma_store_4d(&p.o_map, 192, row0, h, b, sm + SM_PIECES + 24576);
      tma_store_4d(&p.o_map, 256, row0, h, b, sm + SM_PIECES + 32768);
      tma_store_4d(&p.o_map, 320, row0, h, b, sm + SM_PIECES + 40960);
      tma_store_4d(&p.o_map, 384, row0, h, b, sm + SM_PIECES + 49152);
      tma_store_4d(&p.o_map, 448, row0, h, b, sm + SM_PIECES + 57344);
      tma_store_commit();
      tma_store_wait_0();
    }
  }
  warp_sync(ALL_LANES);
  cluster_sync();
      // what comes from the other blocks, and goes to them, does so while all are there
}
