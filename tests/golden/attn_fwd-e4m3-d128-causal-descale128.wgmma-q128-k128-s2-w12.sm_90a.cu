// attn_fwd-e4m3-d128-causal-descale128.wgmma-q128-k128-s2-w12.sm_90a
//
// O = softmax(score(scale Q K^T)) V, and lse of each row.
// spec:   dtype=e4m3 head_dim=128 mask=causal descale_block=128
// again:  flashgen emit attn_fwd-e4m3-d128-causal-descale128.wgmma-q128-k128-s2-w12.sm_90a
// switches: turns, turn_ends_at_last_part, tile_sums_apart, separate_whole_tiles, two_sums_a_row,
//           claims, sections_of_heads
// made by flashgen 0.1.0
//
// launch: attn_fwd, grid cdiv(nq, 128) * h * b x 1 x 1, 384 threads, 165168 shared bytes, 1 a
//         multiprocessor, early
// scratch: claims, 2 floats
//
// shared memory:
//   SM_Q             0  Q [Q_SLOTS][D / 64][64][64], then O
//   SM_K         65536  K [stages][D / 64][BLOCK_KV][64]
//   SM_V         98304  V [stages][DV / 64][BLOCK_KV][64]
//   SM_TURNED   131072  V, keys side by side [stages][DV][keys of a row]
//   SM_ENDS     163840  whether a slot of V stands for the end [stages]
//   SM_BARRIERS 163856  Q full [2][GROUPS], Q empty, O full [Q_SLOTS]; K full, empty, V full,
//                       empty [stages]; job full, empty [2]; claim
//   SM_JOBS     164096  q0, h, b, g, first and last k0, -, - [2]
//   SM_END      164160  what rounding the base to 1024 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 128 }; // head dim of q and k
enum { DV = 128 }; // head dim of v and o
enum { BLOCK_Q = 128 }; // query rows of a block
enum { BLOCK_KV = 128 }; // keys of a tile
enum { GROUPS = 2 }; // warpgroups that multiply, of 64 rows each
enum { STAGES = 2 }; // tiles of K and of V in flight
enum { Q_SLOTS = 4 }; // of 64 rows of Q
enum { INPUT_STAGES = 0 }; // of an input of the score
enum { CLAIMED = 1 }; // 0: blocks take tiles of rows in turn
enum { INPUT_COLUMNS = 64 }; // side by side of it
enum { JOB_BYTES = 32 }; // of what is known of a tile of rows
enum { MOVER_REGISTERS = 56 };
enum { REGISTERS = 224 };
enum { D_STEPS = 128 }; // columns of Q and K that are multiplied
enum { DV_COLUMNS = 128 }; // columns of O
enum { Q_BYTES = 16384 }; // of a warpgroup's Q
enum { K_BYTES = 16384 }; // of a tile
enum { V_BYTES = 16384 }; // of a tile
enum { TURNED_BYTES = 16384 }; // of a tile's V, turned
enum { SM_Q = 0 };
enum { SM_K = 65536 };
enum { SM_V = 98304 };
enum { SM_TURNED = 131072 };
enum { SM_ENDS = 163840 };
enum { SM_BARRIERS = 163856 };
enum { SM_JOBS = 164096 };
enum { SM_END = 164160 };

typedef unsigned char u8;

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

DEV u32 as_u32(float v) { return __float_as_uint(v); }

DEV float abs_f32(float x) { return as_f32(as_u32(x) & 0x7fffffffu); }

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

DEV float ldg_f32(const float *from) { return *from; }

DEV void stg_f32_if(float *to, float v, int predicate) {
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.f32 [%0], %1; }"
      :: "l"(to), "f"(v), "r"(predicate) : "memory");
}

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

DEV void barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

DEV void warp_sync(u32 lanes) { asm volatile("bar.warp.sync %0;" :: "r"(lanes) : "memory"); }

DEV float shfl_xor(u32 lanes, float v, int mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(mask), "r"(lanes));
  return r;
}

DEV float shfl(u32 lanes, float v, int from) {
  float r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;" : "=f"(r) : "f"(v), "r"(from), "r"(lanes));
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

DEV u64 atomic_add_u64(u64 *to, u64 v) {
  u64 old;
  asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(to), "l"(v) : "memory");
  return old;
}

DEV u64 atomic_cas_u64(u64 *to, u64 from, u64 v) {
  u64 old;
  asm volatile("atom.global.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(to), "l"(from), "l"(v)
      : "memory");
  return old;
}

DEV u32 prmt_u32(u32 a, u32 b, u32 selector) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
  return r;
}

DEV u32 join_u16(u32 low, u32 high) {
  u32 r;
  asm("mov.b32 %0, {%1, %2};" : "=r"(r) : "h"((u16)low), "h"((u16)high));
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

DEV float f16_to_f32(u16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
  return r;
}

DEV float e4m3_to_f32(u8 x) {
  u32 pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((u16)x));
  return f16_to_f32((u16)pair);
}

DEV u8 f32_to_e4m3(float x) {
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (u8)pair;
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

DEV u32 pack_e4m3(float low, float high) {
  u16 r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
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

DEV void mbarrier_arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
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

DEV void fence_async(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEV void grid_wait(void) { asm volatile("griddepcontrol.wait;" ::: "memory"); }

DEV void tma_load_4d(u32 to, const tensor_map *map, int c0, int c1, int c2, int c3, u32 bar,
    u64 policy) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global"
      ".mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;"
      :: "r"(to), "l"(map), "r"(bar), "l"(policy), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
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

DEV void tma_store_wait_0(void) { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

DEV u32 matrix_at(u32 address) {
  return (address & 0x3ffff) >> 4; // in a cluster the block's rank lies above
}

DEV void setmaxnreg_dec_56(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 56;" ::: "memory");
}

DEV void setmaxnreg_inc_224(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 224;" ::: "memory");
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
#define CLAIMS 0x7fb5c1a100000000ull // of an open word the high half; the low half counts claims

// Before the first claim of a block. No grid before may claim any more.
DEV void open_claims(u64 *word) {
  const u64 seen = atomic_cas_u64(word, 0, CLAIMS);
  if (seen && seen >> 32 != CLAIMS >> 32) { atomic_cas_u64(word, seen, CLAIMS); }
      // or another block has opened it
}

// The claims before this one, of so many that the grid makes in all.
DEV int claim(u64 *word, int all) {
  const u64 seen = atomic_add_u64(word, 1);
  if ((int)seen == all - 1) { atomic_cas_u64(word, seen + 1, 0); }
  return (int)seen;
}

// F of each of row 0's pairs of scores.
#define ROW0_PAIRS(F) \
  F(x0, s0, s1, sum00, 0) F(x0, s4, s5, sum01, 8) F(x2, s8, s9, sum00, 16) \
  F(x2, s12, s13, sum01, 24) F(x4, s16, s17, sum00, 32) F(x4, s20, s21, sum01, 40) \
  F(x6, s24, s25, sum00, 48) F(x6, s28, s29, sum01, 56) F(x8, s32, s33, sum00, 64) \
  F(x8, s36, s37, sum01, 72) F(x10, s40, s41, sum00, 80) F(x10, s44, s45, sum01, 88) \
  F(x12, s48, s49, sum00, 96) F(x12, s52, s53, sum01, 104) F(x14, s56, s57, sum00, 112) \
  F(x14, s60, s61, sum01, 120)

// F of each of row 1's pairs of scores.
#define ROW1_PAIRS(F) \
  F(x1, s2, s3, sum10, 0) F(x1, s6, s7, sum11, 8) F(x3, s10, s11, sum10, 16) \
  F(x3, s14, s15, sum11, 24) F(x5, s18, s19, sum10, 32) F(x5, s22, s23, sum11, 40) \
  F(x7, s26, s27, sum10, 48) F(x7, s30, s31, sum11, 56) F(x9, s34, s35, sum10, 64) \
  F(x9, s38, s39, sum11, 72) F(x11, s42, s43, sum10, 80) F(x11, s46, s47, sum11, 88) \
  F(x13, s50, s51, sum10, 96) F(x13, s54, s55, sum11, 104) F(x15, s58, s59, sum10, 112) \
  F(x15, s62, s63, sum11, 120)

// The same of macros that make weights, which are joined in fours.
#define WEIGHTS(F, G) \
  { \
    u32 low0, low1, high0, high1; \
    F(low0, s0, s1, sum00, 0) G(low1, s2, s3, sum10, 0) F(high0, s4, s5, sum01, 8) \
    G(high1, s6, s7, sum11, 8) \
    x0 = join_u16(low0, high0); \
    x1 = join_u16(low1, high1); \
  } \
  { \
    u32 low0, low1, high0, high1; \
    F(low0, s8, s9, sum00, 16) G(low1, s10, s11, sum10, 16) F(high0, s12, s13, sum01, 24) \
    G(high1, s14, s15, sum11, 24) \
    x2 = join_u16(low0, high0); \
    x3 = join_u16(low1, high1); \
  } \
  { \
    u32 low0, low1, high0, high1; \
    F(low0, s16, s17, sum00, 32) G(low1, s18, s19, sum10, 32) F(high0, s20, s21, sum01, 40) \
    G(high1, s22, s23, sum11, 40) \
    x4 = join_u16(low0, high0); \
    x5 = join_u16(low1, high1); \
  } \
  { \
    u32 low0, low1, high0, high1; \
    F(low0, s24, s25, sum00, 48) G(low1, s26, s27, sum10, 48) F(high0, s28, s29, sum01, 56) \
    G(high1, s30, s31, sum11, 56) \
    x6 = join_u16(low0, high0); \
    x7 = join_u16(low1, high1); \
  } \
  { \
    u32 low0, low1, high0, high1; \
    F(low0, s32, s33, sum00, 64) G(low1, s34, s35, sum10, 64) F(high0, s36, s37, sum01, 72) \
    G(high1, s38, s39, sum11, 72) \
    x8 = join_u16(low0, high0); \
    x9 = join_u16(low1, high1); \
  } \
  { \
    u32 low0, low1, high0, high1; \
    F(low0, s40, s41, sum00, 80) G(low1, s42, s43, sum10, 80) F(high0, s44, s45, sum01, 88) \
    G(high1, s46, s47, sum11, 88) \
    x10 = join_u16(low0, high0); \
    x11 = join_u16(low1, high1); \
  } \
  { \
    u32 low0, low1, high0, high1; \
    F(low0, s48, s49, sum00, 96) G(low1, s50, s51, sum10, 96) F(high0, s52, s53, sum01, 104) \
    G(high1, s54, s55, sum11, 104) \
    x12 = join_u16(low0, high0); \
    x13 = join_u16(low1, high1); \
  } \
  { \
    u32 low0, low1, high0, high1; \
    F(low0, s56, s57, sum00, 112) G(low1, s58, s59, sum10, 112) F(high0, s60, s61, sum01, 120) \
    G(high1, s62, s63, sum11, 120) \
    x14 = join_u16(low0, high0); \
    x15 = join_u16(low1, high1); \
  }

// The same of macros that make weights, which are joined in fours.
#define ROW0_WEIGHTS(F) \
  { \
    u32 low0, high0; \
    F(low0, s0, s1, sum00, 0) F(high0, s4, s5, sum01, 8) \
    x0 = join_u16(low0, high0); \
  } \
  { \
    u32 low0, high0; \
    F(low0, s8, s9, sum00, 16) F(high0, s12, s13, sum01, 24) \
    x2 = join_u16(low0, high0); \
  } \
  { \
    u32 low0, high0; \
    F(low0, s16, s17, sum00, 32) F(high0, s20, s21, sum01, 40) \
    x4 = join_u16(low0, high0); \
  } \
  { \
    u32 low0, high0; \
    F(low0, s24, s25, sum00, 48) F(high0, s28, s29, sum01, 56) \
    x6 = join_u16(low0, high0); \
  } \
  { \
    u32 low0, high0; \
    F(low0, s32, s33, sum00, 64) F(high0, s36, s37, sum01, 72) \
    x8 = join_u16(low0, high0); \
  } \
  { \
    u32 low0, high0; \
    F(low0, s40, s41, sum00, 80) F(high0, s44, s45, sum01, 88) \
    x10 = join_u16(low0, high0); \
  } \
  { \
    u32 low0, high0; \
    F(low0, s48, s49, sum00, 96) F(high0, s52, s53, sum01, 104) \
    x12 = join_u16(low0, high0); \
  } \
  { \
    u32 low0, high0; \
    F(low0, s56, s57, sum00, 112) F(high0, s60, s61, sum01, 120) \
    x14 = join_u16(low0, high0); \
  }

// The same of macros that make weights, which are joined in fours.
#define ROW1_WEIGHTS(F) \
  { \
    u32 low1, high1; \
    F(low1, s2, s3, sum10, 0) F(high1, s6, s7, sum11, 8) \
    x1 = join_u16(low1, high1); \
  } \
  { \
    u32 low1, high1; \
    F(low1, s10, s11, sum10, 16) F(high1, s14, s15, sum11, 24) \
    x3 = join_u16(low1, high1); \
  } \
  { \
    u32 low1, high1; \
    F(low1, s18, s19, sum10, 32) F(high1, s22, s23, sum11, 40) \
    x5 = join_u16(low1, high1); \
  } \
  { \
    u32 low1, high1; \
    F(low1, s26, s27, sum10, 48) F(high1, s30, s31, sum11, 56) \
    x7 = join_u16(low1, high1); \
  } \
  { \
    u32 low1, high1; \
    F(low1, s34, s35, sum10, 64) F(high1, s38, s39, sum11, 72) \
    x9 = join_u16(low1, high1); \
  } \
  { \
    u32 low1, high1; \
    F(low1, s42, s43, sum10, 80) F(high1, s46, s47, sum11, 88) \
    x11 = join_u16(low1, high1); \
  } \
  { \
    u32 low1, high1; \
    F(low1, s50, s51, sum10, 96) F(high1, s54, s55, sum11, 104) \
    x13 = join_u16(low1, high1); \
  } \
  { \
    u32 low1, high1; \
    F(low1, s58, s59, sum10, 112) F(high1, s62, s63, sum11, 120) \
    x15 = join_u16(low1, high1); \
  }

#define MOST(x, a, b, sum, column) most = max_f32(most, max_f32(a, b));

#define SCALE_O_ROW0(factor) \
  o0 *= factor; o1 *= factor; o4 *= factor; o5 *= factor; o8 *= factor; o9 *= factor; \
  o12 *= factor; o13 *= factor; o16 *= factor; o17 *= factor; o20 *= factor; o21 *= factor; \
  o24 *= factor; o25 *= factor; o28 *= factor; o29 *= factor; o32 *= factor; o33 *= factor; \
  o36 *= factor; o37 *= factor; o40 *= factor; o41 *= factor; o44 *= factor; o45 *= factor; \
  o48 *= factor; o49 *= factor; o52 *= factor; o53 *= factor; o56 *= factor; o57 *= factor; \
  o60 *= factor; o61 *= factor;

#define SCALE_O_ROW1(factor) \
  o2 *= factor; o3 *= factor; o6 *= factor; o7 *= factor; o10 *= factor; o11 *= factor; \
  o14 *= factor; o15 *= factor; o18 *= factor; o19 *= factor; o22 *= factor; o23 *= factor; \
  o26 *= factor; o27 *= factor; o30 *= factor; o31 *= factor; o34 *= factor; o35 *= factor; \
  o38 *= factor; o39 *= factor; o42 *= factor; o43 *= factor; o46 *= factor; o47 *= factor; \
  o50 *= factor; o51 *= factor; o54 *= factor; o55 *= factor; o58 *= factor; o59 *= factor; \
  o62 *= factor; o63 *= factor;

#define FLOATS_64 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63}"

#define scores(d, a, b) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n" \
      "setp.ne.u32 first, 0, 0;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 a, %64, 0; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %65, 0; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " \
      FLOATS_64 ", da, db, first, 1, 1;\n" \
      "add.u32 a, %64, 2; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %65, 2; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " \
      FLOATS_64 ", da, db, yes, 1, 1;\n" \
      "add.u32 a, %64, 4; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %65, 4; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " \
      FLOATS_64 ", da, db, yes, 1, 1;\n" \
      "add.u32 a, %64, 6; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %65, 6; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " \
      FLOATS_64 ", da, db, yes, 1, 1;\n" \
      "wgmma.commit_group.sync.aligned; }" \
      : "=f"(d##0), "=f"(d##1), "=f"(d##2), "=f"(d##3), "=f"(d##4), "=f"(d##5), \
      "=f"(d##6), "=f"(d##7), "=f"(d##8), "=f"(d##9), "=f"(d##10), "=f"(d##11), \
      "=f"(d##12), "=f"(d##13), "=f"(d##14), "=f"(d##15), "=f"(d##16), "=f"(d##17), \
      "=f"(d##18), "=f"(d##19), "=f"(d##20), "=f"(d##21), "=f"(d##22), "=f"(d##23), \
      "=f"(d##24), "=f"(d##25), "=f"(d##26), "=f"(d##27), "=f"(d##28), "=f"(d##29), \
      "=f"(d##30), "=f"(d##31), "=f"(d##32), "=f"(d##33), "=f"(d##34), "=f"(d##35), \
      "=f"(d##36), "=f"(d##37), "=f"(d##38), "=f"(d##39), "=f"(d##40), "=f"(d##41), \
      "=f"(d##42), "=f"(d##43), "=f"(d##44), "=f"(d##45), "=f"(d##46), "=f"(d##47), \
      "=f"(d##48), "=f"(d##49), "=f"(d##50), "=f"(d##51), "=f"(d##52), "=f"(d##53), \
      "=f"(d##54), "=f"(d##55), "=f"(d##56), "=f"(d##57), "=f"(d##58), "=f"(d##59), \
      "=f"(d##60), "=f"(d##61), "=f"(d##62), "=f"(d##63) \
      : "r"((u32)(a)), "r"((u32)(b)) : "memory")

#define FLOATS_32 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

#define values(d, a, b) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888;\n" \
      "setp.ne.u32 first, 0, 0;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 b, %48, 0; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " \
      FLOATS_32 ", {%32, %33, %34, %35}, db, first, 1, 1;\n" \
      "add.u32 b, %48, 2; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " \
      FLOATS_32 ", {%36, %37, %38, %39}, db, yes, 1, 1;\n" \
      "add.u32 b, %48, 4; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " \
      FLOATS_32 ", {%40, %41, %42, %43}, db, yes, 1, 1;\n" \
      "add.u32 b, %48, 6; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " \
      FLOATS_32 ", {%44, %45, %46, %47}, db, yes, 1, 1;\n" \
      "wgmma.commit_group.sync.aligned; }" \
      : "=f"(d##0), "=f"(d##1), "=f"(d##2), "=f"(d##3), "=f"(d##4), "=f"(d##5), \
      "=f"(d##6), "=f"(d##7), "=f"(d##8), "=f"(d##9), "=f"(d##10), "=f"(d##11), \
      "=f"(d##12), "=f"(d##13), "=f"(d##14), "=f"(d##15), "=f"(d##16), "=f"(d##17), \
      "=f"(d##18), "=f"(d##19), "=f"(d##20), "=f"(d##21), "=f"(d##22), "=f"(d##23), \
      "=f"(d##24), "=f"(d##25), "=f"(d##26), "=f"(d##27), "=f"(d##28), "=f"(d##29), \
      "=f"(d##30), "=f"(d##31) \
      : "r"(a##0), "r"(a##1), "r"(a##2), "r"(a##3), "r"(a##4), "r"(a##5), "r"(a##6), \
      "r"(a##7), "r"(a##8), "r"(a##9), "r"(a##10), "r"(a##11), "r"(a##12), "r"(a##13), \
      "r"(a##14), "r"(a##15), "r"((u32)(b)) : "memory")

#define wait_scores(d1) \
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
      "+f"(d1##60), "+f"(d1##61), "+f"(d1##62), "+f"(d1##63) :: "memory")

#define hold(d1) \
  asm volatile("" \
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
      "+f"(d1##60), "+f"(d1##61), "+f"(d1##62), "+f"(d1##63) :: "memory")

#define renew(d1) \
  asm volatile("" \
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
      "+f"(d1##60), "+f"(d1##61), "+f"(d1##62), "+f"(d1##63) :: "memory")

#define wait_all(d1, d2) \
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
      "+f"(d1##60), "+f"(d1##61), "+f"(d1##62), "+f"(d1##63), "+f"(d2##0), "+f"(d2##1), \
      "+f"(d2##2), "+f"(d2##3), "+f"(d2##4), "+f"(d2##5), "+f"(d2##6), "+f"(d2##7), \
      "+f"(d2##8), "+f"(d2##9), "+f"(d2##10), "+f"(d2##11), "+f"(d2##12), "+f"(d2##13), \
      "+f"(d2##14), "+f"(d2##15), "+f"(d2##16), "+f"(d2##17), "+f"(d2##18), "+f"(d2##19), \
      "+f"(d2##20), "+f"(d2##21), "+f"(d2##22), "+f"(d2##23), "+f"(d2##24), "+f"(d2##25), \
      "+f"(d2##26), "+f"(d2##27), "+f"(d2##28), "+f"(d2##29), "+f"(d2##30), \
          "+f"(d2##31) :: "memory")

#define ADD_PART_0() \
  o0 += part0 * of_values; o1 += part1 * of_values; o2 += part2 * of_values; \
  o3 += part3 * of_values; o4 += part4 * of_values; o5 += part5 * of_values; \
  o6 += part6 * of_values; o7 += part7 * of_values; o8 += part8 * of_values; \
  o9 += part9 * of_values; o10 += part10 * of_values; o11 += part11 * of_values; \
  o12 += part12 * of_values; o13 += part13 * of_values; o14 += part14 * of_values; \
  o15 += part15 * of_values; o16 += part16 * of_values; o17 += part17 * of_values; \
  o18 += part18 * of_values; o19 += part19 * of_values; o20 += part20 * of_values; \
  o21 += part21 * of_values; o22 += part22 * of_values; o23 += part23 * of_values; \
  o24 += part24 * of_values; o25 += part25 * of_values; o26 += part26 * of_values; \
  o27 += part27 * of_values; o28 += part28 * of_values; o29 += part29 * of_values; \
  o30 += part30 * of_values; o31 += part31 * of_values;

#define ADD_PART_1() \
  o32 += part0 * of_values; o33 += part1 * of_values; o34 += part2 * of_values; \
  o35 += part3 * of_values; o36 += part4 * of_values; o37 += part5 * of_values; \
  o38 += part6 * of_values; o39 += part7 * of_values; o40 += part8 * of_values; \
  o41 += part9 * of_values; o42 += part10 * of_values; o43 += part11 * of_values; \
  o44 += part12 * of_values; o45 += part13 * of_values; o46 += part14 * of_values; \
  o47 += part15 * of_values; o48 += part16 * of_values; o49 += part17 * of_values; \
  o50 += part18 * of_values; o51 += part19 * of_values; o52 += part20 * of_values; \
  o53 += part21 * of_values; o54 += part22 * of_values; o55 += part23 * of_values; \
  o56 += part24 * of_values; o57 += part25 * of_values; o58 += part26 * of_values; \
  o59 += part27 * of_values; o60 += part28 * of_values; o61 += part29 * of_values; \
  o62 += part30 * of_values; o63 += part31 * of_values;

#define BARRIER(number) (sm + SM_BARRIERS + 8 * (number))

#define NEGATE_S() \
  s0 = -s0; s1 = -s1; s2 = -s2; s3 = -s3; s4 = -s4; s5 = -s5; s6 = -s6; s7 = -s7; s8 = -s8; \
  s9 = -s9; s10 = -s10; s11 = -s11; s12 = -s12; s13 = -s13; s14 = -s14; s15 = -s15; \
  s16 = -s16; s17 = -s17; s18 = -s18; s19 = -s19; s20 = -s20; s21 = -s21; s22 = -s22; \
  s23 = -s23; s24 = -s24; s25 = -s25; s26 = -s26; s27 = -s27; s28 = -s28; s29 = -s29; \
  s30 = -s30; s31 = -s31; s32 = -s32; s33 = -s33; s34 = -s34; s35 = -s35; s36 = -s36; \
  s37 = -s37; s38 = -s38; s39 = -s39; s40 = -s40; s41 = -s41; s42 = -s42; s43 = -s43; \
  s44 = -s44; s45 = -s45; s46 = -s46; s47 = -s47; s48 = -s48; s49 = -s49; s50 = -s50; \
  s51 = -s51; s52 = -s52; s53 = -s53; s54 = -s54; s55 = -s55; s56 = -s56; s57 = -s57; \
  s58 = -s58; s59 = -s59; s60 = -s60; s61 = -s61; s62 = -s62; s63 = -s63;

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

// A weight by the row's new reference.
#define REWEIGH_ONE(score, column, weight, sum) \
  weight = exp2_f32(score * (scale * LOG2E) - origin); \
  sum += weight;

#define REWEIGH(x, a, b, sum, column) \
  { \
    float w0, w1; \
    REWEIGH_ONE(a, column, w0, sum) \
    REWEIGH_ONE(b, (column + 1), w1, sum) \
    x = pack_e4m3(w0, w1); \
  }

#define CLEAR_O() \
  o0 = o1 = o2 = o3 = 0.0f; o4 = o5 = o6 = o7 = 0.0f; o8 = o9 = o10 = o11 = 0.0f; \
  o12 = o13 = o14 = o15 = 0.0f; o16 = o17 = o18 = o19 = 0.0f; o20 = o21 = o22 = o23 = 0.0f; \
  o24 = o25 = o26 = o27 = 0.0f; o28 = o29 = o30 = o31 = 0.0f; o32 = o33 = o34 = o35 = 0.0f; \
  o36 = o37 = o38 = o39 = 0.0f; o40 = o41 = o42 = o43 = 0.0f; o44 = o45 = o46 = o47 = 0.0f; \
  o48 = o49 = o50 = o51 = 0.0f; o52 = o53 = o54 = o55 = 0.0f; o56 = o57 = o58 = o59 = 0.0f; \
  o60 = o61 = o62 = o63 = 0.0f;

// A weight by the row's reference, which is known before the score.
#define WEIGH_ROW0_ONE(score, column, weight, sum) \
  weight = exp2_f32(score * (scale * LOG2E) - m0); \
  sum += weight;

#define WEIGH_ROW0(x, a, b, sum, column) \
  { \
    float w0, w1; \
    WEIGH_ROW0_ONE(a, column, w0, sum) \
    WEIGH_ROW0_ONE(b, (column + 1), w1, sum) \
    x = pack_e4m3(w0, w1); \
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
    x = pack_e4m3(w0, w1); \
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
  tensor_map q_map; // of q: boxes of 64 rows of 128
  tensor_map k_map; // of k: boxes of 128 rows of 128
  tensor_map v_map; // of v: boxes of 128 rows of 128
  tensor_map o_map; // of o: boxes of 64 rows of 64
  const u8 *q; // [b, nq, h, 128] e4m3
  i64 q_b, q_n, q_h;
  const u8 *k; // [b, nk, hk, 128] e4m3
  i64 k_b, k_n, k_h;
  const u8 *v; // [b, nk, hk, 128] e4m3
  i64 v_b, v_n, v_h;
  const float *q_descale; // [b, hk, nq 128 cdiv] f32, or null
  i64 q_descale_b, q_descale_h, q_descale_n;
  const float *k_descale; // [b, hk, nk 128 cdiv] f32, or null
  i64 k_descale_b, k_descale_h, k_descale_n;
  const float *v_descale; // [b, hk, nk 128 cdiv] f32, or null
  i64 v_descale_b, v_descale_h, v_descale_n;
  u16 *o; // [b, nq, h, 128] bf16
  i64 o_b, o_n, o_h;
  float *lse; // [b, h, nq] f32, or null
  float *claims; // scratch
  int b, h, hk, nq, nk;
  float scale;
} Params;

enum { // the first barrier of each kind
  Q_FULL = 0, Q_EMPTY = 4, O_FULL = 8, K_FULL = 12, K_EMPTY = 14, V_FULL = 16,
  V_EMPTY = 18, TURNED_FULL = 20, TURNED_EMPTY = 22, JOB_FULL = 24,
  JOB_EMPTY = 26, CLAIM = 28,
};

extern "C" __global__ void __launch_bounds__(384, 1)
attn_fwd(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % 128 / 32;
  const int group = (int)shfl_u32(ALL_LANES, threadIdx.x / 128, 0) - 1; // -1: the movers
  const u32 sm = (shared_base() + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; i++) { mbarrier_init(BARRIER(Q_FULL + i), 1); }
    for (int i = 0; i < 4; i++) { mbarrier_init(BARRIER(Q_EMPTY + i), 1); }
    for (int i = 0; i < 4; i++) { mbarrier_init(BARRIER(O_FULL + i), 4); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(K_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(K_EMPTY + i), 8); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(V_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(V_EMPTY + i), 2); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(TURNED_FULL + i), 2); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(TURNED_EMPTY + i), 8); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(JOB_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(JOB_EMPTY + i), 10); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(CLAIM + i), 1); }
    fence_barrier_init();
    for (int i = 0; i < STAGES; i++) { sts_u32(sm + SM_ENDS + 4 * (u32)i, 0); }
    const int tile = (int)blockIdx.x;
    const int q_tiles = cdiv(p.nq, BLOCK_Q);
    const int heads = p.b * p.h;
    const int sections = imax(1, heads / imax(1,
        (5 << 21) / (D + DV) / (p.nk + 1) * (p.h / p.hk)));
    // the first sections have one more: none is so short that its longest tiles end last
    const int larger = heads % sections * (heads / sections + 1),
        behind = tile / q_tiles >= larger;
    const int wide = heads / sections + 1 - behind, begin = behind * larger;
    const int from = begin + (tile / q_tiles - begin) / wide * wide, rest = tile - from * q_tiles,
        head = from + rest % wide;
    const int q0 = (q_tiles - 1 - rest / wide) * BLOCK_Q;
    const int b = head / p.h, h = head % p.h;
    const int g = h / (p.h / p.hk);
    // a tensor without rows has a map of one: keys behind it are zeros
    const int k_first = p.nk == 0 ? BLOCK_KV : 0;
    const int n = cdiv(imin(p.nk, p.nk + (imin(q0 + BLOCK_Q, p.nq)) - p.nq) - k_first, BLOCK_KV);
    const int k_last = k_first + imax(0, n - 1) * BLOCK_KV;
    const u32 where[4] = {(u32)q0, (u32)h, (u32)b, (u32)g};
    const u32 keys[4] = {(u32)k_first, (u32)k_last, 0, 0};
    sts_u32x4((sm + SM_JOBS), where);
    sts_u32x4((sm + SM_JOBS) + 16, keys);
    grid_wait();
    mbarrier_expect(BARRIER(K_FULL), 16384);
    tma_load_4d(sm + SM_K + (u32)(0) * K_BYTES, &p.k_map, 0, k_last, g, b,
        BARRIER(K_FULL), L2_LAST);
    #pragma unroll 1
    for (int i = 0; i < GROUPS; i++) {
      mbarrier_expect(BARRIER(Q_FULL + i), 8192);
      tma_load_4d(sm + SM_Q + (u32)(i) * Q_BYTES, &p.q_map, 0, q0 + 64 * i, h, b,
          BARRIER(Q_FULL + i), L2_FIRST);
    }
  }
  block_sync(); // behind the end of that grid, for all

  if (group < 0) {
    setmaxnreg_dec_56();
    if (warp == 0 && lane == 0) {
      int k_count = 1, v_count = 0; // K's first tile is on its way
      #pragma unroll 1
      for (int turn = 0;; turn++) {
        const u32 job = sm + SM_JOBS + turn % 2 * JOB_BYTES;
        mbarrier_wait(BARRIER(JOB_FULL + turn % 2), (turn / 2 & 1));
        u32 where[4], keys[4];
        lds_u32x4(where, job);
        if ((int)where[0] < 0) { break; }
        lds_u32x4(keys, job + 16);
        mbarrier_arrive(BARRIER(JOB_EMPTY + turn % 2));
        const int b = (int)where[2];
        const int g = (int)where[3], k_first = (int)keys[0];
        int k0 = (int)keys[1], k_before = k0;
        const int k_claim = imin(k0, k_first + 2 * BLOCK_KV);
        if (k0 == k_claim) { mbarrier_arrive(BARRIER(CLAIM)); }
        if (turn > 0) {
          {
            const int slot = k_count % STAGES;
            mbarrier_wait(BARRIER(K_EMPTY + slot), (k_count / 2 & 1) ^ 1);
            mbarrier_expect(BARRIER(K_FULL + slot), 16384);
            tma_load_4d(sm + SM_K + (u32)(slot) * K_BYTES, &p.k_map, 0, k0, g, b,
                BARRIER(K_FULL + slot), L2_LAST);
            k_count++;
          }
        }
        k0 -= BLOCK_KV;
        #pragma unroll 1
        while (k0 >= k_first) {
          if (k0 == k_claim) { mbarrier_arrive(BARRIER(CLAIM)); }
          {
            const int slot = k_count % STAGES;
            mbarrier_wait(BARRIER(K_EMPTY + slot), (k_count / 2 & 1) ^ 1);
            mbarrier_expect(BARRIER(K_FULL + slot), 16384);
            tma_load_4d(sm + SM_K + (u32)(slot) * K_BYTES, &p.k_map, 0, k0, g, b,
                BARRIER(K_FULL + slot), L2_LAST);
            k_count++;
          }
          {
            const int slot = v_count % STAGES;
            mbarrier_wait(BARRIER(V_EMPTY + slot), (v_count / 2 & 1) ^ 1);
            mbarrier_expect(BARRIER(V_FULL + slot), 16384);
            tma_load_4d(sm + SM_V + (u32)(slot) * V_BYTES, &p.v_map, 0, k_before, g, b,
                BARRIER(V_FULL + slot), L2_LAST);
            v_count++;
          }
          k_before = k0;
          k0 -= BLOCK_KV;
        }
        {
          const int slot = v_count % STAGES;
          mbarrier_wait(BARRIER(V_EMPTY + slot), (v_count / 2 & 1) ^ 1);
          mbarrier_expect(BARRIER(V_FULL + slot), 16384);
          tma_load_4d(sm + SM_V + (u32)(slot) * V_BYTES, &p.v_map, 0, k_before, g, b,
              BARRIER(V_FULL + slot), L2_LAST);
          v_count++;
        }
      }
      {
        const int slot = v_count % STAGES;
        mbarrier_wait(BARRIER(V_EMPTY + slot), (v_count / 2 & 1) ^ 1);
        sts_u32(sm + SM_ENDS + 4 * (u32)slot, 1);
        mbarrier_arrive(BARRIER(V_FULL + slot));
      }
    } else if (warp == 1 && lane == 0) {
      const int q_tiles = cdiv(p.nq, BLOCK_Q);
      const int blocks = (int)gridDim.x, tiles = q_tiles * p.b * p.h;
      const int heads = p.b * p.h;
      const int sections = imax(1, heads / imax(1,
          (5 << 21) / (D + DV) / (p.nk + 1) * (p.h / p.hk)));
      #pragma unroll 1
      for (int turn = 0;; turn++) {
        mbarrier_arrive(BARRIER(JOB_FULL + turn % 2));
        {
          const u32 job = sm + SM_JOBS + turn % 2 * JOB_BYTES;
          u32 where[4];
          lds_u32x4(where, job);
          mbarrier_arrive(BARRIER(JOB_EMPTY + turn % 2));
          if (turn > 0) {
            #pragma unroll 1
            for (int i = 0; i < Q_SLOTS; i++) {
              const int before = i - (Q_SLOTS - GROUPS);
              if (before >= 0) {
                const u32 job = sm + SM_JOBS + (turn - 1) % 2 * JOB_BYTES; // not listed anew yet
                u32 where[4];
                lds_u32x4(where, job);
                const int slot = (turn - 1) % 2 * GROUPS + before;
                mbarrier_wait(BARRIER(O_FULL + slot), ((turn - 1) / 2 & 1));
                tma_store_4d(&p.o_map, 0, (int)where[0] + 64 * before, (int)where[1],
                    (int)where[2], sm + SM_Q + (u32)slot * Q_BYTES);
                tma_store_4d(&p.o_map, 64, (int)where[0] + 64 * before, (int)where[1],
                    (int)where[2], sm + SM_Q + (u32)slot * Q_BYTES + 8192);
                tma_store_commit();
                tma_store_wait_read_0();
                mbarrier_arrive(BARRIER(Q_EMPTY + slot));
              }
              if (i < GROUPS && (int)where[0] >= 0) {
                const int slot = turn % 2 * GROUPS + i;
                mbarrier_wait(BARRIER(Q_EMPTY + slot), (turn / 2 & 1) ^ 1);
                mbarrier_expect(BARRIER(Q_FULL + turn % 2 * GROUPS + i), 8192);
                tma_load_4d(sm + SM_Q + (u32)(slot) * Q_BYTES, &p.q_map, 0, (int)where[0]
                    + 64 * i, (int)where[1], (int)where[2],
                    BARRIER(Q_FULL + turn % 2 * GROUPS + i), L2_FIRST);
              }
            }
          }
          if ((int)where[0] < 0) { break; }
        }
        if (turn == 0) { open_claims((u64 *)p.claims); }
        mbarrier_wait(BARRIER(CLAIM), turn & 1);
        const int tile = blocks + claim((u64 *)p.claims, tiles);
        const int slot = (turn + 1) % 2;
        const u32 job = sm + SM_JOBS + slot * JOB_BYTES;
        mbarrier_wait(BARRIER(JOB_EMPTY + slot), ((turn + 1) / 2 & 1) ^ 1);
        if (tile >= tiles) {
          const u32 none[4] = {0xffffffffu, 0, 0, 0};
          sts_u32x4(job, none);
          continue; // it ends behind the last O
        }
        // the first sections have one more: none is so short that its longest tiles end last
        const int larger = heads % sections * (heads / sections + 1),
            behind = tile / q_tiles >= larger;
        const int wide = heads / sections + 1 - behind, begin = behind * larger;
        const int from = begin + (tile / q_tiles - begin) / wide * wide,
            rest = tile - from * q_tiles, head = from + rest % wide;
        const int q0 = (q_tiles - 1 - rest / wide) * BLOCK_Q;
        const int b = head / p.h, h = head % p.h;
        const int g = h / (p.h / p.hk);
        // a tensor without rows has a map of one: keys behind it are zeros
        const int k_first = p.nk == 0 ? BLOCK_KV : 0;
        const int n = cdiv(imin(p.nk, p.nk
            + (imin(q0 + BLOCK_Q, p.nq)) - p.nq) - k_first, BLOCK_KV);
        const int k_last = k_first + imax(0, n - 1) * BLOCK_KV;
        const u32 where[4] = {(u32)q0, (u32)h, (u32)b, (u32)g};
        const u32 keys[4] = {(u32)k_first, (u32)k_last, 0, 0};
        sts_u32x4(job, where);
        sts_u32x4(job + 16, keys);
      }
      tma_store_wait_0();
    } else if (warp >= 2) {
      const int own_row = lane % 8 * 2 + lane / 8 % 2;
          // of 16 columns, the one whose keys the lane says where to write
      #pragma unroll 1
      for (int count = 0;; count++) {
        const int slot = count % STAGES;
        mbarrier_wait(BARRIER(V_FULL + slot), (count / 2 & 1));
        if (lds_u32(sm + SM_ENDS + 4 * (u32)slot)) { break; }
        mbarrier_wait(BARRIER(TURNED_EMPTY + slot), (count / 2 & 1) ^ 1);
        #pragma unroll 1
        for (int key = 0; key < BLOCK_KV; key += 32) {
          const u32 from = sm + SM_V + (u32)slot * V_BYTES + (u32)(key + lane) * 128;
          const u32 to = sm + SM_TURNED + (u32)slot * TURNED_BYTES + (u32)(own_row * 128)
              + (u32)(((key / 16 + lane / 16) ^ own_row / 1 % 8) * 16);
          if (warp == 2) {
            {
              u32 v[4][4];
              ldmatrix_x4_trans(v[0], from + (u32)((0 ^ lane % 8) * 16));
              ldmatrix_x4_trans(v[1], from + (u32)((1 ^ lane % 8) * 16));
              ldmatrix_x4_trans(v[2], from + (u32)((2 ^ lane % 8) * 16));
              ldmatrix_x4_trans(v[3], from + (u32)((3 ^ lane % 8) * 16));
              {
                u32 turned[4];
                turned[0] = prmt_u32(v[0][0], v[0][1], 0x6420);
                turned[1] = prmt_u32(v[0][0], v[0][1], 0x7531);
                turned[2] = prmt_u32(v[0][2], v[0][3], 0x6420);
                turned[3] = prmt_u32(v[0][2], v[0][3], 0x7531);
                stmatrix_x4(to + 0, turned);
              }
              {
                u32 turned[4];
                turned[0] = prmt_u32(v[1][0], v[1][1], 0x6420);
                turned[1] = prmt_u32(v[1][0], v[1][1], 0x7531);
                turned[2] = prmt_u32(v[1][2], v[1][3], 0x6420);
                turned[3] = prmt_u32(v[1][2], v[1][3], 0x7531);
                stmatrix_x4(to + 2048, turned);
              }
              {
                u32 turned[4];
                turned[0] = prmt_u32(v[2][0], v[2][1], 0x6420);
                turned[1] = prmt_u32(v[2][0], v[2][1], 0x7531);
                turned[2] = prmt_u32(v[2][2], v[2][3], 0x6420);
                turned[3] = prmt_u32(v[2][2], v[2][3], 0x7531);
                stmatrix_x4(to + 4096, turned);
              }
              {
                u32 turned[4];
                turned[0] = prmt_u32(v[3][0], v[3][1], 0x6420);
                turned[1] = prmt_u32(v[3][0], v[3][1], 0x7531);
                turned[2] = prmt_u32(v[3][2], v[3][3], 0x6420);
                turned[3] = prmt_u32(v[3][2], v[3][3], 0x7531);
                stmatrix_x4(to + 6144, turned);
              }
            }
          } else {
            {
              u32 v[4][4];
              ldmatrix_x4_trans(v[0], from + (u32)((4 ^ lane % 8) * 16));
              ldmatrix_x4_trans(v[1], from + (u32)((5 ^ lane % 8) * 16));
              ldmatrix_x4_trans(v[2], from + (u32)((6 ^ lane % 8) * 16));
              ldmatrix_x4_trans(v[3], from + (u32)((7 ^ lane % 8) * 16));
              {
                u32 turned[4];
                turned[0] = prmt_u32(v[0][0], v[0][1], 0x6420);
                turned[1] = prmt_u32(v[0][0], v[0][1], 0x7531);
                turned[2] = prmt_u32(v[0][2], v[0][3], 0x6420);
                turned[3] = prmt_u32(v[0][2], v[0][3], 0x7531);
                stmatrix_x4(to + 8192, turned);
              }
              {
                u32 turned[4];
                turned[0] = prmt_u32(v[1][0], v[1][1], 0x6420);
                turned[1] = prmt_u32(v[1][0], v[1][1], 0x7531);
                turned[2] = prmt_u32(v[1][2], v[1][3], 0x6420);
                turned[3] = prmt_u32(v[1][2], v[1][3], 0x7531);
                stmatrix_x4(to + 10240, turned);
              }
              {
                u32 turned[4];
                turned[0] = prmt_u32(v[2][0], v[2][1], 0x6420);
                turned[1] = prmt_u32(v[2][0], v[2][1], 0x7531);
                turned[2] = prmt_u32(v[2][2], v[2][3], 0x6420);
                turned[3] = prmt_u32(v[2][2], v[2][3], 0x7531);
                stmatrix_x4(to + 12288, turned);
              }
              {
                u32 turned[4];
                turned[0] = prmt_u32(v[3][0], v[3][1], 0x6420);
                turned[1] = prmt_u32(v[3][0], v[3][1], 0x7531);
                turned[2] = prmt_u32(v[3][2], v[3][3], 0x6420);
                turned[3] = prmt_u32(v[3][2], v[3][3], 0x7531);
                stmatrix_x4(to + 14336, turned);
              }
            }
          }
        }
        fence_async();
        warp_sync(ALL_LANES);
        mbarrier_arrive_if(BARRIER(V_EMPTY + slot), lane == 0);
        mbarrier_arrive_if(BARRIER(TURNED_FULL + slot), lane == 0);
      }
    }
  } else {
    setmaxnreg_inc_224();
    float s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17, s18,
        s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31, s32, s33, s34, s35, s36,
        s37, s38, s39, s40, s41, s42, s43, s44, s45, s46, s47, s48, s49, s50, s51, s52, s53, s54,
        s55, s56, s57, s58, s59, s60, s61, s62, s63;
    float o0, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, o13, o14, o15, o16, o17, o18,
        o19, o20, o21, o22, o23, o24, o25, o26, o27, o28, o29, o30, o31, o32, o33, o34, o35, o36,
        o37, o38, o39, o40, o41, o42, o43, o44, o45, o46, o47, o48, o49, o50, o51, o52, o53, o54,
        o55, o56, o57, o58, o59, o60, o61, o62, o63;
    float part0, part1, part2, part3, part4, part5, part6, part7, part8, part9, part10, part11,
        part12, part13, part14, part15, part16, part17, part18, part19, part20, part21, part22,
        part23, part24, part25, part26, part27, part28, part29, part30, part31;
    u32 x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15;
    int count = 0; // tiles of V that have been taken, of all rows
    if (group == GROUPS - 1) { barrier_arrive(1, 256); } // group 0 multiplies first
    #pragma unroll 1
    for (int turn = 0;; turn++) {
      const u32 job = sm + SM_JOBS + turn % 2 * JOB_BYTES;
      mbarrier_wait(BARRIER(JOB_FULL + turn % 2), (turn / 2 & 1));
      const int q0 = (int)shfl_u32(ALL_LANES, lds_u32(job + 0), 0);
      if (q0 < 0) { break; }
      const int h = (int)shfl_u32(ALL_LANES, lds_u32(job + 4), 0);
      const int b = (int)shfl_u32(ALL_LANES, lds_u32(job + 8), 0);
      const int g = (int)shfl_u32(ALL_LANES, lds_u32(job + 12), 0);
      const int k_first = (int)shfl_u32(ALL_LANES, lds_u32(job + 16), 0);
      int k0 = (int)shfl_u32(ALL_LANES, lds_u32(job + 20), 0);
      const int row0 = q0 + 64 * group;
      const int q_lane = row0 + 16 * warp + lane / 4;
      const float of_rows = shfl(ALL_LANES,
          p.scale * (p.q_descale ? ldg_f32(p.q_descale
          + ((i64)b * p.q_descale_b + (i64)g * p.q_descale_h
          + (i64)(imin((row0 + 16 * warp), p.nq - 1) / 128) * p.q_descale_n)) : 1.0f), 0);
      const int slot = turn % 2 * GROUPS + group;
      const u32 q_tile = shfl_u32(ALL_LANES, matrix_at(sm + SM_Q + (u32)slot * Q_BYTES), 0);
      const int k_stop = k_first;
      float m0, m1, l0, l1;
      mbarrier_wait(BARRIER(Q_FULL + turn % 2 * GROUPS + group), (turn / 2 & 1));
      #pragma unroll 1
      for (; k0 > k_first && (p.nk + (imin(row0 + 64, p.nq)) < p.nq + k0 + 1); k0 -= BLOCK_KV,
          count++) {
        const int slot = count % STAGES;
        mbarrier_wait(BARRIER(K_FULL + slot), (count / 2 & 1));
        warp_sync(ALL_LANES); // all have seen the phase before it can end
        mbarrier_arrive_if(BARRIER(K_EMPTY + slot), lane == 0);
        mbarrier_wait(BARRIER(TURNED_FULL + slot), (count / 2 & 1));
        warp_sync(ALL_LANES); // all have seen the phase before it can end
        mbarrier_arrive_if(BARRIER(TURNED_EMPTY + slot), lane == 0);
        barrier_sync(1 + group, 256);
        barrier_arrive(1 + (group + 1) % GROUPS, 256);
      }
      float of_values; // the descale of the tile whose weights are in x
      {
        const int k_slot = count % STAGES;
        mbarrier_wait(BARRIER(K_FULL + k_slot), (count / 2 & 1));
        const float descaled = of_rows * (p.nk > 0 && p.k_descale
            ? ldg_f32(p.k_descale + ((i64)b * p.k_descale_b + (i64)g * p.k_descale_h
            + (i64)(imin(k0, p.nk - 1) / 128) * p.k_descale_n)) : 1.0f);
        const float scale = max_f32(abs_f32(descaled), 1e-36f);
        of_values = (p.nk > 0 && p.v_descale
            ? ldg_f32(p.v_descale + ((i64)b * p.v_descale_b + (i64)g * p.v_descale_h
            + (i64)(imin(k0, p.nk - 1) / 128) * p.v_descale_n)) : 1.0f);
        scores(s, q_tile, matrix_at(sm + SM_K + (u32)k_slot * K_BYTES));
        wait_all(s, part);
        mbarrier_arrive_if(BARRIER(K_EMPTY + k_slot), lane == 0);
        m0 = NEG_INF;
        l0 = 0.0f;
        m1 = NEG_INF;
        l1 = 0.0f;
        float sum00 = 0.0f, sum01 = 0.0f, sum10 = 0.0f, sum11 = 0.0f;
        if (descaled < 0.0f) { NEGATE_S() }
        const int k_lane = k0 + 2 * (lane % 4);
        if (!(p.nq + (imin(k0 + BLOCK_KV, p.nk)) <= p.nk + (imin(row0, p.nq - 1)) + 1 && k0
            + BLOCK_KV <= p.nk)) {
          const u32 seen0 = columns_below(imin(p.nk, p.nk + (q_lane + 1) - p.nq) - k_lane);
          const u32 seen1 = columns_below(imin(p.nk, p.nk + (q_lane + 9) - p.nq) - k_lane);
          ROW0_PAIRS(HIDE_ROW0)
          ROW1_PAIRS(HIDE_ROW1)
        }
        {
          const int keep = 0;
          float most = NEG_INF;
          ROW0_PAIRS(MOST)
          most = quad_max(most);
          const float peak = keep ? m0 : max_f32(m0, most * (scale * LOG2E) - 3.0f);
          const float origin = peak == NEG_INF ? 0.0f : peak;
          const float correction = exp2_f32(m0 - origin);
          l0 *= correction;
          ROW0_WEIGHTS(REWEIGH)
          l0 += (sum00 + sum01);
          m0 = peak;
        }
        {
          const int keep = 0;
          float most = NEG_INF;
          ROW1_PAIRS(MOST)
          most = quad_max(most);
          const float peak = keep ? m1 : max_f32(m1, most * (scale * LOG2E) - 3.0f);
          const float origin = peak == NEG_INF ? 0.0f : peak;
          const float correction = exp2_f32(m1 - origin);
          l1 *= correction;
          ROW1_WEIGHTS(REWEIGH)
          l1 += (sum10 + sum11);
          m1 = peak;
        }
      }
      CLEAR_O()

      k0 -= BLOCK_KV;
      #pragma unroll 1
      while (k0 >= k_stop) {
        const float descaled = of_rows * (p.nk > 0 && p.k_descale
            ? ldg_f32(p.k_descale + ((i64)b * p.k_descale_b + (i64)g * p.k_descale_h
            + (i64)(imin(k0, p.nk - 1) / 128) * p.k_descale_n)) : 1.0f);
        const float scale = max_f32(abs_f32(descaled), 1e-36f);
        float sum00 = 0.0f, sum01 = 0.0f, sum10 = 0.0f, sum11 = 0.0f;
        int safe0, safe1;
        if (p.nq + (imin(k0 + BLOCK_KV, p.nk)) <= p.nk + (imin(row0, p.nq - 1)) + 1) {
          const int v_slot = count % STAGES, k_slot = (count + 1) % STAGES;
          mbarrier_wait(BARRIER(K_FULL + k_slot), ((count + 1) / 2 & 1));
          barrier_sync(1 + group, 256);
          scores(s, q_tile, matrix_at(sm + SM_K + (u32)k_slot * K_BYTES));
          mbarrier_wait(BARRIER(TURNED_FULL + v_slot), (count / 2 & 1));
          values(part, x, matrix_at(sm + SM_TURNED + (u32)v_slot * TURNED_BYTES));
          wait_scores(s);
          mbarrier_arrive_if(BARRIER(K_EMPTY + k_slot), lane == 0);
          wait_all(s, part);
          ADD_PART_0()
          hold(o); // added before the next product has registers of its own
          values(part, x, matrix_at(sm + SM_TURNED + (u32)v_slot * TURNED_BYTES + 8192));
          barrier_arrive(1 + (group + 1) % GROUPS, 256);
          wait_all(s, part);
          ADD_PART_1()
          of_values = (p.nk > 0 && p.v_descale
              ? ldg_f32(p.v_descale + ((i64)b * p.v_descale_b + (i64)g * p.v_descale_h
              + (i64)(imin(k0, p.nk - 1) / 128) * p.v_descale_n)) : 1.0f);
          mbarrier_arrive_if(BARRIER(TURNED_EMPTY + v_slot), lane == 0);
          if (descaled < 0.0f) { NEGATE_S() }
          WEIGHTS(WEIGH_ROW0, WEIGH_ROW1)
          safe0 = (sum00 + sum01) < 448.0f;
          safe1 = (sum10 + sum11) < 448.0f;
        } else {
          const int v_slot = count % STAGES, k_slot = (count + 1) % STAGES;
          mbarrier_wait(BARRIER(K_FULL + k_slot), ((count + 1) / 2 & 1));
          barrier_sync(1 + group, 256);
          scores(s, q_tile, matrix_at(sm + SM_K + (u32)k_slot * K_BYTES));
          mbarrier_wait(BARRIER(TURNED_FULL + v_slot), (count / 2 & 1));
          values(part, x, matrix_at(sm + SM_TURNED + (u32)v_slot * TURNED_BYTES));
          wait_scores(s);
          mbarrier_arrive_if(BARRIER(K_EMPTY + k_slot), lane == 0);
          wait_all(s, part);
          ADD_PART_0()
          hold(o); // added before the next product has registers of its own
          values(part, x, matrix_at(sm + SM_TURNED + (u32)v_slot * TURNED_BYTES + 8192));
          barrier_arrive(1 + (group + 1) % GROUPS, 256);
          wait_all(s, part);
          ADD_PART_1()
          of_values = (p.nk > 0 && p.v_descale
              ? ldg_f32(p.v_descale + ((i64)b * p.v_descale_b + (i64)g * p.v_descale_h
              + (i64)(imin(k0, p.nk - 1) / 128) * p.v_descale_n)) : 1.0f);
          mbarrier_arrive_if(BARRIER(TURNED_EMPTY + v_slot), lane == 0);
          if (descaled < 0.0f) { NEGATE_S() }
          const int k_lane = k0 + 2 * (lane % 4);
          const u32 seen0 = columns_below(imin(p.nk, p.nk + (q_lane + 1) - p.nq) - k_lane);
          const u32 seen1 = columns_below(imin(p.nk, p.nk + (q_lane + 9) - p.nq) - k_lane);
          ROW0_PAIRS(HIDE_ROW0)
          ROW1_PAIRS(HIDE_ROW1)
          WEIGHTS(WEIGH_ROW0, WEIGH_ROW1)
          safe0 = (sum00 + sum01) < 448.0f;
          safe1 = (sum10 + sum11) < 448.0f;
        }
        if (any_lane(ALL_LANES, !(safe0 && safe1))) {
          renew(s);
          {
            const int keep = quad_max(safe0 ? 0.0f : 1.0f) == 0.0f; // whatever the other rows need
            sum00 = sum01 = 0.0f;
            float most = NEG_INF;
            ROW0_PAIRS(MOST)
            most = quad_max(most);
            const float peak = keep ? m0 : max_f32(m0, most * (scale * LOG2E) - 3.0f);
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m0 - origin);
            l0 *= correction;
            ROW0_WEIGHTS(REWEIGH)
            l0 += (sum00 + sum01);
            m0 = peak;
            SCALE_O_ROW0(correction)
          }
          {
            const int keep = quad_max(safe1 ? 0.0f : 1.0f) == 0.0f; // whatever the other rows need
            sum10 = sum11 = 0.0f;
            float most = NEG_INF;
            ROW1_PAIRS(MOST)
            most = quad_max(most);
            const float peak = keep ? m1 : max_f32(m1, most * (scale * LOG2E) - 3.0f);
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m1 - origin);
            l1 *= correction;
            ROW1_WEIGHTS(REWEIGH)
            l1 += (sum10 + sum11);
            m1 = peak;
            SCALE_O_ROW1(correction)
          }
        } else {
          l0 += (sum00 + sum01);
          l1 += (sum10 + sum11);
        }
        count++;
        k0 -= BLOCK_KV;
      }

      {
        const int v_slot = count % STAGES;
        mbarrier_wait(BARRIER(TURNED_FULL + v_slot), (count / 2 & 1));
        values(part, x, matrix_at(sm + SM_TURNED + (u32)v_slot * TURNED_BYTES));
        wait_all(s, part);
        ADD_PART_0()
        hold(o); // added before the next product has registers of its own
        values(part, x, matrix_at(sm + SM_TURNED + (u32)v_slot * TURNED_BYTES + 8192));
        wait_all(s, part);
        ADD_PART_1()
        mbarrier_arrive_if(BARRIER(TURNED_EMPTY + v_slot), lane == 0);
        count++;
      }
      float inverse0, inverse1;
      {
        const int q = q_lane + 0;
        const float total = quad_sum(l0);
        const float lse_of_row = total == 0.0f ? NEG_INF : (m0 + log2_f32(total)) * LN2;
        stg_f32_if(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row, lane % 4 == 0 && q < p.nq
            && p.lse);
        const float inverse = total == 0.0f ? 0.0f
            : inverse_f32(imin(p.nk, p.nk + (q + 1) - p.nq) <= 1 ? e4m3_to_f32(f32_to_e4m3(total))
            : total);
        inverse0 = inverse;
      }
      {
        const int q = q_lane + 8;
        const float total = quad_sum(l1);
        const float lse_of_row = total == 0.0f ? NEG_INF : (m1 + log2_f32(total)) * LN2;
        stg_f32_if(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row, lane % 4 == 0 && q < p.nq
            && p.lse);
        const float inverse = total == 0.0f ? 0.0f
            : inverse_f32(imin(p.nk, p.nk + (q + 1) - p.nq) <= 1 ? e4m3_to_f32(f32_to_e4m3(total))
            : total);
        inverse1 = inverse;
      }
      const u32 o_row = sm + SM_Q + (u32)slot * Q_BYTES + (u32)(16 * warp + lane % 16) * 128;
      PUT(0, 0, lane, o0, o1, o2, o3, o4, o5, o6, o7)
      PUT(0, 2, lane, o8, o9, o10, o11, o12, o13, o14, o15)
      PUT(0, 4, lane, o16, o17, o18, o19, o20, o21, o22, o23)
      PUT(0, 6, lane, o24, o25, o26, o27, o28, o29, o30, o31)
      PUT(8192, 0, lane, o32, o33, o34, o35, o36, o37, o38, o39)
      PUT(8192, 2, lane, o40, o41, o42, o43, o44, o45, o46, o47)
      PUT(8192, 4, lane, o48, o49, o50, o51, o52, o53, o54, o55)
      PUT(8192, 6, lane, o56, o57, o58, o59, o60, o61, o62, o63)
      fence_async();
      warp_sync(ALL_LANES);
      mbarrier_arrive_if(BARRIER(O_FULL + slot), lane == 0);
      mbarrier_arrive_if(BARRIER(JOB_EMPTY + turn % 2), lane == 0);
    }
  }
}
