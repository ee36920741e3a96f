// attn_fwd-bf16-d576v512-causal-kvpaged-latent.wgmma-q128-k64-s2-w12.sm_90a
//
// O = softmax(score(scale Q K^T)) V, and lse of each row, V in K.
// spec:   head_dim=576/512 mask=causal kv_layout=paged latent=true
// again:  flashgen emit attn_fwd-bf16-d576v512-causal-kvpaged-latent.wgmma-q128-k64-s2-w12.sm_90a
// switches: turns, claims
// made by flashgen 0.1.0
//
// launch: attn_fwd, grid min(b * hk * cdiv(nq * h, max(1, hk) * 128) * max(1, cdiv(nk, 512)), 66)
//         * 2 x 1 x 1, 384 threads, 231456 shared bytes, clusters of 2, 1 a multiprocessor, early
// scratch: claims, 2 * min(b * hk * cdiv(nq * h, max(1, hk) * 128) * max(1, cdiv(nk, 512)), 66) *
//          8 floats
// scratch: parts, 2 * min(b * hk * cdiv(nq * h, max(1, hk) * 128) * max(1, cdiv(nk, 512)), 66) *
//          67584 floats
//
// shared memory:
//   SM_Q             0  Q [K_PIECES][64][64]
//   SM_K         73728  K of two tiles [2][K_PIECES][64][64], and in each one's last piece P
//                       [64][64]
//   SM_TOLD     221184  what a warpgroup's threads tell those of the other one of their rows
//                       [2][128]
//   SM_BARRIERS 229376  mbarriers: job_full [2], job_empty [2], piece_full [18], columns_empty
//                       [4], weights_empty [2], p_full [2]
//   SM_JOBS     229616  q0, q_end, first head, heads; b, g, last k0, tiles; shares, place, first,
//                       second place; their step [2]
//   SM_LINE     229776  where in the line of keys tiles of rows begin [LINE_PLACES + 1]
//   SM_LAST     230304  whether a warpgroup is the last one to come to a tile of rows [2]
//   SM_BOXES    230320  where boxes of a tile begin [KEYS / CLUSTER]
//   SM_END      230448  what rounding the base to 1024 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 576 }; // head dim of q and k
enum { DV = 512 }; // head dim of v, the first columns of k, and of o
enum { CLUSTER = 2 }; // blocks, of 64 rows each
enum { BLOCK_Q = 128 }; // rows of a cluster, of all query heads of a key/value head
enum { BLOCK_KV = 64 }; // keys of a tile
enum { BLOCK_KEYS = 32 }; // of them, which a block fetches
enum { THREADS = 384 }; // of a block
enum { MOVER_THREADS = 128 }; // of them
enum { MOVER_REGISTERS = 56 };
enum { REGISTERS = 224 };
enum { GROUPS = 4 }; // warpgroups of a cluster, which have parts of their own
enum { DV_COLUMNS = 256 }; // columns of O that a warpgroup has
enum { DV_PIECES = 4 }; // pieces of K that they are
enum { K_PIECES = 9 }; // of 64 columns, of a tile
enum { PIECES_OF_SUM = 3 }; // of them that one sum in float32 takes
enum { D_REST = 64 }; // columns of the last one that are multiplied
enum { PIECE_BYTES = 8192 }; // of 64 columns
enum { TILE_BYTES = 73728 }; // of K
enum { JOB_BYTES = 80 }; // of what is known of a job
enum { TOLD_BYTES = 4096 }; // that a warpgroup tells of a tile
enum { PART_FLOATS = 16896 }; // of a warpgroup's part
enum { LINE_PLACES = 128 }; // tiles of rows, or groups of them, whose begin in the line is kept
enum { SPAN = 8 }; // tiles of keys of a part of few, at least
enum { BLOCKS_MOST = 66 }; // clusters that have places for parts
enum { SM_Q = 0 };
enum { SM_K = 73728 };
enum { SM_TOLD = 221184 };
enum { SM_BARRIERS = 229376 };
enum { SM_JOBS = 229616 };
enum { SM_LINE = 229776 };
enum { SM_LAST = 230304 };
enum { SM_BOXES = 230320 };
enum { SM_END = 230448 };

typedef struct __align__(64) tensor_map { u64 word[16]; } tensor_map; // the driver's, for TMA

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
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

DEV u32 ldg_u32(const void *from) { return *(const u32 *)from; }

DEV void ldg_u32x4(u32 *v, const void *from) {
  const uint4 x = *(const uint4 *)from;
  v[0] = x.x;
  v[1] = x.y;
  v[2] = x.z;
  v[3] = x.w;
}

DEV void ldg_f32x4(float *v, const float *from) {
  const float4 x = *(const float4 *)from;
  v[0] = x.x;
  v[1] = x.y;
  v[2] = x.z;
  v[3] = x.w;
}

DEV void stg_u32(void *to, u32 v) { *(u32 *)to = v; }

DEV void stg_f32_if(float *to, float v, int predicate) {
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.f32 [%0], %1; }"
      :: "l"(to), "f"(v), "r"(predicate) : "memory");
}

DEV void stg_f32x4(float *to, const float *v) {
  const float4 x = {v[0], v[1], v[2], v[3]};
  *(float4 *)to = x;
}

DEV void fence_device(void) { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

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

DEV void tma_multicast_5d(u32 to, const tensor_map *map, int c0, int c1, int c2, int c3, int c4,
    u32 bar, u64 policy, int ranks) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global"
      ".mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6, %7, %8}], [%2], %9, %3;"
      :: "r"(to), "l"(map), "r"(bar), "l"(policy), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4),
          "h"((u16)ranks) : "memory");
}

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

// Each of n words becomes the sum of those before it, and word n that of all, by a warp.
DEV void running_sums(u32 words, int n) {
  const int lane = (int)threadIdx.x % 32;
  u32 before = 0;
  for (int i = lane; i - lane < n; i += 32) {
    const u32 own = i < n ? lds_u32(words + 4 * (u32)i) : 0;
    u32 sum = own;
    #pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const u32 other = shfl_u32(ALL_LANES, sum, (lane - step) & 31);
      if (lane >= step) { sum += other; }
    }
    if (i < n) { sts_u32(words + 4 * (u32)i, before + sum - own); }
    before += shfl_u32(ALL_LANES, sum, 31);
  }
  if (lane == 0) { sts_u32(words + 4 * (u32)n, before); }
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

#define next_scores_of_64(d, a, b, sum) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n" \
      "setp.ne.s32 first, %34, 0;\n" \
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
      : "+f"(d##0), "+f"(d##1), "+f"(d##2), "+f"(d##3), "+f"(d##4), "+f"(d##5), \
      "+f"(d##6), "+f"(d##7), "+f"(d##8), "+f"(d##9), "+f"(d##10), "+f"(d##11), \
      "+f"(d##12), "+f"(d##13), "+f"(d##14), "+f"(d##15), "+f"(d##16), "+f"(d##17), \
      "+f"(d##18), "+f"(d##19), "+f"(d##20), "+f"(d##21), "+f"(d##22), "+f"(d##23), \
      "+f"(d##24), "+f"(d##25), "+f"(d##26), "+f"(d##27), "+f"(d##28), "+f"(d##29), \
      "+f"(d##30), "+f"(d##31) \
      : "r"((u32)(a)), "r"((u32)(b)), "r"((int)(sum)) : "memory")

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
      "add.u32 b, %129, 33554432; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " \
      FLOATS_128 ", da, db, yes, 1, 1, 0, 1;\n" \
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
      : "r"((u32)(a)), "r"((u32)(b)) : "memory")

#define wait_scores(d1, d2) \
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

#define wait_values(d1) \
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

#define ADD_PART() \
  s0 += part0; s1 += part1; s2 += part2; s3 += part3; s4 += part4; s5 += part5; s6 += part6; \
  s7 += part7; s8 += part8; s9 += part9; s10 += part10; s11 += part11; s12 += part12; \
  s13 += part13; s14 += part14; s15 += part15; s16 += part16; s17 += part17; s18 += part18; \
  s19 += part19; s20 += part20; s21 += part21; s22 += part22; s23 += part23; s24 += part24; \
  s25 += part25; s26 += part26; s27 += part27; s28 += part28; s29 += part29; s30 += part30; \
  s31 += part31;

#define BARRIER(number) (sm + SM_BARRIERS + 8 * (number))

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

#define STORE_ROW0(to, is_there) \
  if (is_there && DV_COLUMNS * side + 0 < DV) { stg_u32(to + 0, \
      pack_bf16(o0 * inverse0, o1 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 8 < DV) { stg_u32(to + 8, \
      pack_bf16(o4 * inverse0, o5 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 16 < DV) { stg_u32(to + 16, \
      pack_bf16(o8 * inverse0, o9 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 24 < DV) { stg_u32(to + 24, \
      pack_bf16(o12 * inverse0, o13 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 32 < DV) { stg_u32(to + 32, \
      pack_bf16(o16 * inverse0, o17 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 40 < DV) { stg_u32(to + 40, \
      pack_bf16(o20 * inverse0, o21 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 48 < DV) { stg_u32(to + 48, \
      pack_bf16(o24 * inverse0, o25 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 56 < DV) { stg_u32(to + 56, \
      pack_bf16(o28 * inverse0, o29 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 64 < DV) { stg_u32(to + 64, \
      pack_bf16(o32 * inverse0, o33 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 72 < DV) { stg_u32(to + 72, \
      pack_bf16(o36 * inverse0, o37 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 80 < DV) { stg_u32(to + 80, \
      pack_bf16(o40 * inverse0, o41 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 88 < DV) { stg_u32(to + 88, \
      pack_bf16(o44 * inverse0, o45 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 96 < DV) { stg_u32(to + 96, \
      pack_bf16(o48 * inverse0, o49 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 104 < DV) { stg_u32(to + 104, \
      pack_bf16(o52 * inverse0, o53 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 112 < DV) { stg_u32(to + 112, \
      pack_bf16(o56 * inverse0, o57 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 120 < DV) { stg_u32(to + 120, \
      pack_bf16(o60 * inverse0, o61 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 128 < DV) { stg_u32(to + 128, \
      pack_bf16(o64 * inverse0, o65 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 136 < DV) { stg_u32(to + 136, \
      pack_bf16(o68 * inverse0, o69 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 144 < DV) { stg_u32(to + 144, \
      pack_bf16(o72 * inverse0, o73 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 152 < DV) { stg_u32(to + 152, \
      pack_bf16(o76 * inverse0, o77 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 160 < DV) { stg_u32(to + 160, \
      pack_bf16(o80 * inverse0, o81 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 168 < DV) { stg_u32(to + 168, \
      pack_bf16(o84 * inverse0, o85 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 176 < DV) { stg_u32(to + 176, \
      pack_bf16(o88 * inverse0, o89 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 184 < DV) { stg_u32(to + 184, \
      pack_bf16(o92 * inverse0, o93 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 192 < DV) { stg_u32(to + 192, \
      pack_bf16(o96 * inverse0, o97 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 200 < DV) { stg_u32(to + 200, \
      pack_bf16(o100 * inverse0, o101 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 208 < DV) { stg_u32(to + 208, \
      pack_bf16(o104 * inverse0, o105 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 216 < DV) { stg_u32(to + 216, \
      pack_bf16(o108 * inverse0, o109 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 224 < DV) { stg_u32(to + 224, \
      pack_bf16(o112 * inverse0, o113 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 232 < DV) { stg_u32(to + 232, \
      pack_bf16(o116 * inverse0, o117 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 240 < DV) { stg_u32(to + 240, \
      pack_bf16(o120 * inverse0, o121 * inverse0)); } \
  if (is_there && DV_COLUMNS * side + 248 < DV) { stg_u32(to + 248, \
      pack_bf16(o124 * inverse0, o125 * inverse0)); }

#define STORE_ROW1(to, is_there) \
  if (is_there && DV_COLUMNS * side + 0 < DV) { stg_u32(to + 0, \
      pack_bf16(o2 * inverse1, o3 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 8 < DV) { stg_u32(to + 8, \
      pack_bf16(o6 * inverse1, o7 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 16 < DV) { stg_u32(to + 16, \
      pack_bf16(o10 * inverse1, o11 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 24 < DV) { stg_u32(to + 24, \
      pack_bf16(o14 * inverse1, o15 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 32 < DV) { stg_u32(to + 32, \
      pack_bf16(o18 * inverse1, o19 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 40 < DV) { stg_u32(to + 40, \
      pack_bf16(o22 * inverse1, o23 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 48 < DV) { stg_u32(to + 48, \
      pack_bf16(o26 * inverse1, o27 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 56 < DV) { stg_u32(to + 56, \
      pack_bf16(o30 * inverse1, o31 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 64 < DV) { stg_u32(to + 64, \
      pack_bf16(o34 * inverse1, o35 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 72 < DV) { stg_u32(to + 72, \
      pack_bf16(o38 * inverse1, o39 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 80 < DV) { stg_u32(to + 80, \
      pack_bf16(o42 * inverse1, o43 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 88 < DV) { stg_u32(to + 88, \
      pack_bf16(o46 * inverse1, o47 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 96 < DV) { stg_u32(to + 96, \
      pack_bf16(o50 * inverse1, o51 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 104 < DV) { stg_u32(to + 104, \
      pack_bf16(o54 * inverse1, o55 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 112 < DV) { stg_u32(to + 112, \
      pack_bf16(o58 * inverse1, o59 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 120 < DV) { stg_u32(to + 120, \
      pack_bf16(o62 * inverse1, o63 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 128 < DV) { stg_u32(to + 128, \
      pack_bf16(o66 * inverse1, o67 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 136 < DV) { stg_u32(to + 136, \
      pack_bf16(o70 * inverse1, o71 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 144 < DV) { stg_u32(to + 144, \
      pack_bf16(o74 * inverse1, o75 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 152 < DV) { stg_u32(to + 152, \
      pack_bf16(o78 * inverse1, o79 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 160 < DV) { stg_u32(to + 160, \
      pack_bf16(o82 * inverse1, o83 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 168 < DV) { stg_u32(to + 168, \
      pack_bf16(o86 * inverse1, o87 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 176 < DV) { stg_u32(to + 176, \
      pack_bf16(o90 * inverse1, o91 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 184 < DV) { stg_u32(to + 184, \
      pack_bf16(o94 * inverse1, o95 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 192 < DV) { stg_u32(to + 192, \
      pack_bf16(o98 * inverse1, o99 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 200 < DV) { stg_u32(to + 200, \
      pack_bf16(o102 * inverse1, o103 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 208 < DV) { stg_u32(to + 208, \
      pack_bf16(o106 * inverse1, o107 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 216 < DV) { stg_u32(to + 216, \
      pack_bf16(o110 * inverse1, o111 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 224 < DV) { stg_u32(to + 224, \
      pack_bf16(o114 * inverse1, o115 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 232 < DV) { stg_u32(to + 232, \
      pack_bf16(o118 * inverse1, o119 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 240 < DV) { stg_u32(to + 240, \
      pack_bf16(o122 * inverse1, o123 * inverse1)); } \
  if (is_there && DV_COLUMNS * side + 248 < DV) { stg_u32(to + 248, \
      pack_bf16(o126 * inverse1, o127 * inverse1)); }

typedef struct Params {
  tensor_map k_map; // of k: boxes of at most 32 rows of 64
  tensor_map k_row_map; // of k: boxes of at most 1 rows of 64
  const u16 *q; // [b, nq, h, 576] bf16
  i64 q_b, q_n, q_h;
  const u16 *k; // [pages, page, hk, 576] bf16
  i64 k_b, k_n, k_h;
  const u16 *v; // [pages, page, hk, 512] bf16
  i64 v_b, v_n, v_h;
  const int *used_k; // [b] i32
  const int *first_k; // [b] i32, or null
  const int *table; // [b, nk/page] i32
  i64 table_b;
  u16 *o; // [b, nq, h, 512] bf16
  i64 o_b, o_n, o_h;
  float *lse; // [b, h, nq] f32, or null
  float *claims; // scratch
  float *parts; // scratch
  int b, h, hk, nq, nk, pages, page;
  float scale;
  int k_cache; // rows from a page to the next
} Params;

enum { // the first barrier of each kind
  JOB_FULL = 0, JOB_EMPTY = 2, PIECE_FULL = 4, COLUMNS_EMPTY = 22,
  WEIGHTS_EMPTY = 26, P_FULL = 28,
};
enum { BOTH = 2, OWN = 3 }; // named barriers: of both sides, of each

extern "C" __global__ void __launch_bounds__(384, 1)
attn_fwd(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % 128 / 32;
  const int side = (int)shfl_u32(ALL_LANES, threadIdx.x / 128, 0) - 1;
      // -1: the warps that move data
  const int rank = cluster_rank();
  const u32 sm = (shared_base() + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(JOB_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(JOB_EMPTY + i), 9); }
    for (int i = 0; i < 18; i++) { mbarrier_init(BARRIER(PIECE_FULL + i), 1); }
    for (int i = 0; i < 4; i++) { mbarrier_init(BARRIER(COLUMNS_EMPTY + i), 8); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(WEIGHTS_EMPTY + i), 16); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(P_FULL + i), 4); }
    fence_barrier_init();
  }
  cluster_sync();
  grid_wait(); // until the grid before has ended

  if (side < 0) {
    setmaxnreg_dec_56();
    // the query heads of a key/value head are `wide` at a time side by side in a tile, of so many
    // tokens
    const int group = p.h / p.hk, wide = imin(group, BLOCK_Q), tokens = BLOCK_Q / wide,
        head_tiles = cdiv(group, wide);
    const int row_tiles = cdiv(p.nq, tokens), units = p.b * row_tiles;
    const int all_heads = p.hk * head_tiles, block = (int)blockIdx.x / CLUSTER;
    const int blocks = imin((int)gridDim.x / CLUSTER, BLOCKS_MOST);
    int span = 0; // 0: the line has tiles
    const int units_of_place = cdiv(units, LINE_PLACES), places = units > 0
        ? cdiv(units, units_of_place) : 0;
    const int alike = units == 1; // all units have as many tiles of keys
    int line = 0; // how long it is
    int tiles_of_all = 0;
    for (int pass = 0; pass < 3; pass++) {
      if (alike) {
        const int b = 0 / row_tiles;
        const int q0 = 0 % row_tiles * tokens;
        const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
        const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
        const int q_end = imin(q0 + tokens, p.nq);
        const int key_end = imin(nk, nk + q_end - p.nq);
        const int k_first = 0;
        const int key_tiles = imax(1, cdiv(key_end - k_first, BLOCK_KV));
        line = units * (span > 0 ? cdiv(key_tiles, span) : key_tiles) * all_heads;
      } else {
        for (int i = (int)threadIdx.x; i < places; i += MOVER_THREADS) {
          int sum = 0;
          for (int unit = i * units_of_place; unit < imin(units,
              (i + 1) * units_of_place); unit++) {
            const int b = unit / row_tiles;
            const int q0 = unit % row_tiles * tokens;
            const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
            const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
            const int q_end = imin(q0 + tokens, p.nq);
            const int key_end = imin(nk, nk + q_end - p.nq);
            const int k_first = 0;
            const int key_tiles = imax(1, cdiv(key_end - k_first, BLOCK_KV));
            sum += span > 0 ? cdiv(key_tiles, span) : key_tiles;
          }
          sts_u32(sm + SM_LINE + 4 * (u32)i, (u32)sum);
        }
        barrier_sync(1, MOVER_THREADS);
        if (warp == 0) { running_sums(sm + SM_LINE, places); }
        barrier_sync(1, MOVER_THREADS);
        line = (int)lds_u32(sm + SM_LINE + 4 * (u32)places) * all_heads;
      }
      // an equal share for each block, or, where lengths leave so many rests that this is too
      // little, the share with which parts
      // are never more than blocks
      if (pass == 0 && 2 * units * all_heads <= blocks && line < 2 * SPAN * blocks) {
        tiles_of_all = line;
        span = imax(SPAN, cdiv(line, blocks));
      } else if (pass == 1 && line > blocks) {
        span = imax(SPAN, cdiv(tiles_of_all, blocks - units * all_heads));
      } else {
        break;
      }
    }
    // keys of all heads lie side by side in memory, where blocks side by side read them at a time:
    // each head has a line of its own
    // then, if few blocks are left over
    const int sides = span == 0 && 20 * (blocks / all_heads * all_heads) >= 19 * blocks
        ? all_heads : 1;
    const int inner_heads = all_heads / sides, side = block % sides, own = block / sides;
        // heads of a line; which line, and the block there
    const int each = line / sides / (blocks / sides), more = line / sides % (blocks / sides);
    const int line_end = imin(line / sides, span > 0 ? line : (own + 1) * each
        + imin(own + 1, more));
    const int place_step = span > 0 ? 1 : 2 * sides;
    int at = span > 0 ? block : own * each + imin(own, more);
        // where the block goes on in the line
    if (warp == 0) {
      const int own_key = BLOCK_KEYS * rank;
      int first_uses = 0, second_uses = 0; // of the places of both tiles
      #pragma unroll 1
      for (int job_number = 0;; job_number++) {
        const u32 job = sm + SM_JOBS + (u32)(job_number % 2) * JOB_BYTES;
        mbarrier_wait(BARRIER(JOB_FULL + job_number % 2), (job_number / 2 & 1));
        const int q0 = (int)shfl_u32(ALL_LANES, lds_u32(job + 0), 0);
        if (q0 < 0) { break; }
        const int b = (int)shfl_u32(ALL_LANES, lds_u32(job + 16), 0);
        const int g = (int)shfl_u32(ALL_LANES, lds_u32(job + 20), 0);
        const int k_last = (int)shfl_u32(ALL_LANES, lds_u32(job + 24), 0);
        const int tiles = (int)shfl_u32(ALL_LANES, lds_u32(job + 28), 0);
        const int nk = (int)shfl_u32(ALL_LANES, lds_u32(job + 64), 0);
        const int row_k = (int)shfl_u32(ALL_LANES, lds_u32(job + 68), 0);
        const int common = (p.page | BLOCK_KEYS) & -(p.page | BLOCK_KEYS);
            // the greatest power of two that divides both
        const int box = row_k % common == 0 ? common : 1;
        #pragma unroll 1
        for (int i = 0; i < tiles; i++) {
          const int k0 = k_last - i * BLOCK_KV, tile = i % 2, uses = tile > 0 ? second_uses
              : first_uses;
          warp_sync(ALL_LANES); // those of the tile before have been read
          for (int i = lane; i * box < BLOCK_KEYS; i += 32) {
            const int *pages = p.table + b * p.table_b;
            int page = 0, row_of_page = 0;
            if ((k0 + own_key + i * box) < nk) {
              const u32 at = (u32)(row_k + (k0 + own_key + i * box));
              page = (int)ldg_u32(pages + at / (u32)p.page);
              row_of_page = (int)(at % (u32)p.page);
            }
            sts_u32(sm + SM_BOXES + 4 * (u32)i, (u32)(page * p.k_cache + row_of_page));
          }
          warp_sync(ALL_LANES);
          if (lane == 0) {
            const int first = tile * DV_PIECES, then = DV_PIECES - first;
            mbarrier_wait(BARRIER(COLUMNS_EMPTY + 3 * tile), uses & 1 ^ 1);
            #pragma unroll 1
            for (int c = first; c < first + DV_PIECES; c++) {
              const u32 full = BARRIER(PIECE_FULL + tile * K_PIECES + c);
              const u32 to = sm + SM_K + (u32)tile * TILE_BYTES
                  + (u32)(c * PIECE_BYTES + own_key * 128);
              mbarrier_expect(full, PIECE_BYTES);
              const tensor_map *map = box == 1 ? &p.k_row_map : &p.k_map;
              #pragma unroll 1
              for (int i = 0; i * box < BLOCK_KEYS; i++) {
                const int place = (int)lds_u32(sm + SM_BOXES + 4 * (u32)i);
                tma_multicast_5d(to + (u32)(i * box * 128), map, 64 * c,
                    (1 << 30) - imax(0, imin(box, nk - ((k0 + own_key + i * box)))), place
                    + imax(0, imin(box, nk - ((k0 + own_key + i * box)))), 1 << 30, g, full,
                    L2_LAST, (1 << CLUSTER) - 1);
              }
            }
            mbarrier_wait(BARRIER(COLUMNS_EMPTY + (tile + 1)), uses & 1 ^ 1);
            #pragma unroll 1
            for (int c = then; c < then + DV_PIECES; c++) {
              const u32 full = BARRIER(PIECE_FULL + tile * K_PIECES + c);
              const u32 to = sm + SM_K + (u32)tile * TILE_BYTES
                  + (u32)(c * PIECE_BYTES + own_key * 128);
              mbarrier_expect(full, PIECE_BYTES);
              const tensor_map *map = box == 1 ? &p.k_row_map : &p.k_map;
              #pragma unroll 1
              for (int i = 0; i * box < BLOCK_KEYS; i++) {
                const int place = (int)lds_u32(sm + SM_BOXES + 4 * (u32)i);
                tma_multicast_5d(to + (u32)(i * box * 128), map, 64 * c,
                    (1 << 30) - imax(0, imin(box, nk - ((k0 + own_key + i * box)))), place
                    + imax(0, imin(box, nk - ((k0 + own_key + i * box)))), 1 << 30, g, full,
                    L2_LAST, (1 << CLUSTER) - 1);
              }
            }
            mbarrier_wait(BARRIER(WEIGHTS_EMPTY + tile), uses & 1 ^ 1);
            #pragma unroll 1
            for (int c = 2 * DV_PIECES; c < K_PIECES; c++) {
              const u32 full = BARRIER(PIECE_FULL + tile * K_PIECES + c);
              const u32 to = sm + SM_K + (u32)tile * TILE_BYTES
                  + (u32)(c * PIECE_BYTES + own_key * 128);
              mbarrier_expect(full, PIECE_BYTES);
              const tensor_map *map = box == 1 ? &p.k_row_map : &p.k_map;
              #pragma unroll 1
              for (int i = 0; i * box < BLOCK_KEYS; i++) {
                const int place = (int)lds_u32(sm + SM_BOXES + 4 * (u32)i);
                tma_multicast_5d(to + (u32)(i * box * 128), map, 64 * c,
                    (1 << 30) - imax(0, imin(box, nk - ((k0 + own_key + i * box)))), place
                    + imax(0, imin(box, nk - ((k0 + own_key + i * box)))), 1 << 30, g, full,
                    L2_LAST, (1 << CLUSTER) - 1);
              }
            }
          }
          first_uses += 1 - tile;
          second_uses += tile;
        }
        warp_sync(ALL_LANES);
        mbarrier_arrive_if(BARRIER(JOB_EMPTY + job_number % 2), lane == 0);
      }
    } else if (warp == 1) {
      #pragma unroll 1
      for (int job_number = 0;; job_number++) {
        int unit = 0, head = 0, from = 0, tiles = 0, shares = 0, place = 0, first_place = 0,
            second_place = 0;
        if (at < line_end) {
          int begin = 0, of_unit = 0, count = 0;
          if (alike) {
            const int b = 0 / row_tiles;
            const int q0 = 0 % row_tiles * tokens;
            const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
            const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
            const int q_end = imin(q0 + tokens, p.nq);
            const int key_end = imin(nk, nk + q_end - p.nq);
            const int k_first = 0;
            const int key_tiles = imax(1, cdiv(key_end - k_first, BLOCK_KV));
            const int each_unit = span > 0 ? cdiv(key_tiles, span) : key_tiles;
            unit = at / (each_unit * inner_heads);
            begin = unit * each_unit;
          } else {
            int least = 0, most = places - 1;
            while (least < most) {
              const int middle = least + (most - least + 1) / 2;
              if ((int)lds_u32(sm + SM_LINE + 4 * (u32)middle) * inner_heads <= at) {
                least = middle;
              } else {
                most = middle - 1;
              }
            }
            unit = least * units_of_place;
            begin = (int)lds_u32(sm + SM_LINE + 4 * (u32)least);
          }
          for (;; unit++) {
            const int b = unit / row_tiles;
            const int q0 = unit % row_tiles * tokens;
            const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
            const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
            const int q_end = imin(q0 + tokens, p.nq);
            const int key_end = imin(nk, nk + q_end - p.nq);
            const int k_first = 0;
            const int key_tiles = imax(1, cdiv(key_end - k_first, BLOCK_KV));
            of_unit = key_tiles;
            count = span > 0 ? cdiv(key_tiles, span) : key_tiles;
            if ((begin + count) * inner_heads > at) { break; }
            begin += count;
          }
          const int inner_head = (at - begin * inner_heads) / count;
          head = inner_head + side;
          const int first = begin * inner_heads + inner_head * count, number = at - first;
          if (span > 0) {
            const int own = cdiv(of_unit, count); // tiles of each part
            from = number * own;
            tiles = imin(own, of_unit - from);
            shares = count;
            place = at;
            first_place = first;
            second_place = first + 1;
            at += blocks;
          } else {
            // the blocks that have the first and the last tile; a block has a place for the first
            // of its segments and one for the last
            const int by_more = more * (each + 1), last = first + count - 1;
            const int first_block = first < by_more ? first / (each + 1) : more
                + (first - by_more) / each;
            const int last_block = last < by_more ? last / (each + 1) : more
                + (last - by_more) / each;
            from = number;
            tiles = imin(count - number, line_end - at);
            shares = last_block - first_block + 1;
            first_place = 2 * (first_block * sides + side)
                + (first > first_block * each + imin(first_block, more));
            second_place = 2 * ((first_block + 1) * sides + side);
            place = own > first_block ? 2 * block : first_place;
            at += tiles;
          }
        }
        if (tiles == 0) {
          if (lane == 0) {
            const u32 none[4] = {0xffffffffu, 0, 0, 0};
            mbarrier_wait(BARRIER(JOB_EMPTY + job_number % 2), (job_number / 2 & 1) ^ 1);
            sts_u32x4(sm + SM_JOBS + (u32)(job_number % 2) * JOB_BYTES, none);
            mbarrier_arrive(BARRIER(JOB_FULL + job_number % 2));
          }
          break;
        }
        const int b = unit / row_tiles;
        const int q0 = unit % row_tiles * tokens;
        const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
        const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
        const int q_end = imin(q0 + tokens, p.nq);
        const int k_first = 0;
        const int g = head / head_tiles;
        const int first_head = g * group + head % head_tiles * wide;
        const int heads = imin(wide, (g + 1) * group - first_head);
        const int n = tiles;
        // a tensor without rows has a map of one: keys behind it are zeros
        const int k_last = nk == 0 ? BLOCK_KV : k_first + (from + tiles - 1) * BLOCK_KV;
        if (lane == 0) {
          const u32 job = sm + SM_JOBS + (u32)(job_number % 2) * JOB_BYTES;
          mbarrier_wait(BARRIER(JOB_EMPTY + job_number % 2), (job_number / 2 & 1) ^ 1);
          const u32 rows[4] = {(u32)q0, (u32)q_end, (u32)first_head, (u32)heads};
          const u32 keys[4] = {(u32)b, (u32)g, (u32)k_last, (u32)n};
          const u32 places[4] = {(u32)shares, (u32)place, (u32)first_place, (u32)second_place};
          const u32 more[4] = {(u32)place_step, 0, 0, 0};
          sts_u32x4(job, rows);
          sts_u32x4(job + 16, keys);
          sts_u32x4(job + 32, places);
          sts_u32x4(job + 48, more);
          {
            const u32 lengths[4] = {(u32)nk, (u32)row_k, 0, 0};
            sts_u32x4(job + 64, lengths);
          }
          mbarrier_arrive(BARRIER(JOB_FULL + job_number % 2));
        }
      }
    }
  } else {
    setmaxnreg_inc_224();
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
    const int wide = imin(p.h / p.hk, BLOCK_Q), row = 64 * rank + 16 * warp + lane / 4;
        // heads of a query side by side; the thread's first row
    const u32 q_rows = shfl_u32(ALL_LANES, matrix_at(sm + SM_Q), 0),
        k_tiles = shfl_u32(ALL_LANES, matrix_at(sm + SM_K), 0);
    const u32 p_lane = sm + SM_K + (u32)(side * TILE_BYTES + (K_PIECES - 1) * PIECE_BYTES
        + (16 * warp + lane % 16) * 128);
    const u32 told = sm + SM_TOLD + threadIdx.x % 128 * 16;
    const int own_pieces = side * DV_PIECES;
    int own_uses = 0, other_uses = 0; // of the places of both tiles
    #pragma unroll 1
    for (int job_number = 0;; job_number++) {
      const u32 job = sm + SM_JOBS + (u32)(job_number % 2) * JOB_BYTES;
      mbarrier_wait(BARRIER(JOB_FULL + job_number % 2), (job_number / 2 & 1));
      const int q0 = (int)shfl_u32(ALL_LANES, lds_u32(job + 0), 0);
      if (q0 < 0) { break; }
      const int q_end = (int)shfl_u32(ALL_LANES, lds_u32(job + 4), 0);
      const int first_head = (int)shfl_u32(ALL_LANES, lds_u32(job + 8), 0);
      const int heads = (int)shfl_u32(ALL_LANES, lds_u32(job + 12), 0);
      const int k_last = (int)shfl_u32(ALL_LANES, lds_u32(job + 24), 0);
      const int tiles = (int)shfl_u32(ALL_LANES, lds_u32(job + 28), 0);
      const int b = (int)shfl_u32(ALL_LANES, lds_u32(job + 16), 0);
      const int nk = (int)shfl_u32(ALL_LANES, lds_u32(job + 64), 0);
      const int query0 = q0 + (row + 0) / wide < q_end && (row + 0) % wide < heads ? q0
          + (row + 0) / wide : p.nq;
      const int query1 = q0 + (row + 8) / wide < q_end && (row + 8) % wide < heads ? q0
          + (row + 8) / wide : p.nq;
      float m0, m1, l0, l1;
      float moved0 = 1.0f, moved1 = 1.0f; // what a step has multiplied O by
      barrier_sync(BOTH, 256); // S of the job before has been made
      #pragma unroll 4
      for (int i = (int)threadIdx.x - MOVER_THREADS; i < 64 * 8 * K_PIECES; i += 256) {
        const int chunk = i % (8 * K_PIECES), r = i / (8 * K_PIECES), row = 64 * rank + r;
        const int q = q0 + row / wide, h = first_head + row % wide;
        u32 v[4] = {0, 0, 0, 0};
        if (q < q_end && row % wide < heads && 8 * chunk < D) { ldg_u32x4(v, p.q
            + (b * p.q_b + h * p.q_h + q * p.q_n) + 8 * chunk); }
        if (p.scale < 0.0f) {
          for (int j = 0; j < 4; j++) { v[j] ^= 0x80008000u; }
        }
        sts_u32x4(sm + SM_Q + (u32)(chunk / 8 * PIECE_BYTES + r * 128
            + (chunk % 8 ^ r % 8) * 16), v);
      }
      fence_async();
      barrier_sync(BOTH, 256);
      CLEAR_O()
      if (side == 0 && tiles > 0) {
        const int k0 = k_last;
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 0 + own_pieces), own_uses & 1);
        scores_of_64(s, q_rows + (u32)(0 + own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (0 + own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 1 + own_pieces), own_uses & 1);
        add_scores_of_64(s, q_rows + (u32)(1 + own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (1 + own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 2 + own_pieces), own_uses & 1);
        add_scores_of_64(s, q_rows + (u32)(2 + own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (2 + own_pieces) * (PIECE_BYTES / 16)));
        wait_scores(s, part);
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 3 + own_pieces), own_uses & 1);
        scores_of_64(part, q_rows + (u32)(3 + own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (3 + own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 4 - own_pieces), own_uses & 1);
        add_scores_of_64(part, q_rows + (u32)(4 - own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (4 - own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 5 - own_pieces), own_uses & 1);
        add_scores_of_64(part, q_rows + (u32)(5 - own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (5 - own_pieces) * (PIECE_BYTES / 16)));
        wait_scores(s, part);
        ADD_PART()
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 6 - own_pieces), own_uses & 1);
        next_scores_of_64(part, q_rows + (u32)(6 - own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (6 - own_pieces) * (PIECE_BYTES / 16)), 0);
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 7 - own_pieces), own_uses & 1);
        add_scores_of_64(part, q_rows + (u32)(7 - own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (7 - own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 8), own_uses & 1);
        add_scores_of_64(part, q_rows + (u32)(8) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (8) * (PIECE_BYTES / 16)));
        wait_scores(s, part);
        ADD_PART()
        m0 = 0.0f;
        l0 = 0.0f;
        m1 = 0.0f;
        l1 = 0.0f;
        float sum00 = 0.0f, sum10 = 0.0f;
        int safe0, safe1;
        const int k_lane = k0 + 2 * (lane % 4);
        if (!(p.nq + (imin(k0 + BLOCK_KV, nk)) <= nk + q0 + 1 && k0 + BLOCK_KV <= nk)) {
          const u32 seen0 = columns_below(imin(nk, nk + (query0 + 1) - p.nq) - k_lane);
          const u32 seen1 = columns_below(imin(nk, nk + (query1 + 1) - p.nq) - k_lane);
          ROW0_PAIRS(HIDE_ROW0)
          ROW1_PAIRS(HIDE_ROW1)
        }
        PAIRS(WEIGH_FIRST, WEIGH_FIRST)
        const float total0 = quad_sum(sum00);
        const float total1 = quad_sum(sum10);
        safe0 = total0 > 1e-12f && total0 < 65536.0f;
        safe1 = total1 > 1e-12f && total1 < 65536.0f;
        if (any_lane(ALL_LANES, !(safe0 && safe1))) {
          renew(s);
          {
            const int keep = quad_max(safe0 ? 0.0f : 1.0f) == 0.0f; // whatever the other rows need
            if (!keep) {
              m0 = NEG_INF;
              l0 = 0.0f;
            }
            sum00 = 0.0f;
            float most = NEG_INF;
            ROW0_PAIRS(MOST)
            most = quad_max(most);
            const float peak = keep ? m0 : max_f32(m0, most * (scale * LOG2E));
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m0 - origin);
            l0 *= correction;
            ROW0_PAIRS(REWEIGH)
            l0 += sum00;
            m0 = peak;
          }
          {
            const int keep = quad_max(safe1 ? 0.0f : 1.0f) == 0.0f; // whatever the other rows need
            if (!keep) {
              m1 = NEG_INF;
              l1 = 0.0f;
            }
            sum10 = 0.0f;
            float most = NEG_INF;
            ROW1_PAIRS(MOST)
            most = quad_max(most);
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
        {
          barrier_sync(OWN + side, 128);
              // by all warps: P comes to where K's last columns have been
          {
            const u32 v[4] = {x0, x1, x2, x3};
            stmatrix_x4(p_lane + (u32)(((0 + lane / 16) ^ lane % 8) * 16), v);
          }
          {
            const u32 v[4] = {x4, x5, x6, x7};
            stmatrix_x4(p_lane + (u32)(((2 + lane / 16) ^ lane % 8) * 16), v);
          }
          {
            const u32 v[4] = {x8, x9, x10, x11};
            stmatrix_x4(p_lane + (u32)(((4 + lane / 16) ^ lane % 8) * 16), v);
          }
          {
            const u32 v[4] = {x12, x13, x14, x15};
            stmatrix_x4(p_lane + (u32)(((6 + lane / 16) ^ lane % 8) * 16), v);
          }
          {
            const u32 v[4] = {as_u32(m0), as_u32(l0), as_u32(m1), as_u32(l1)};
            sts_u32x4(told + (u32)(side * TOLD_BYTES + 0 * (128 * 16)), v);
          }
          {
            const u32 v[4] = {as_u32(moved0), as_u32(moved1), 0, 0};
            sts_u32x4(told + (u32)(side * TOLD_BYTES + 1 * (128 * 16)), v);
          }
          fence_async();
          warp_sync(ALL_LANES);
          mbarrier_arrive_if(BARRIER(P_FULL + side), lane == 0);
        }
        mbarrier_wait(BARRIER(P_FULL + side), own_uses & 1); // of the other warps' rows
        add_values(o, k_tiles + (u32)(side * (TILE_BYTES / 16)
            + (K_PIECES - 1) * (PIECE_BYTES / 16)), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + side * (DV_PIECES * PIECE_BYTES / 16)));
        wait_values(o);
        mbarrier_arrive_remote_if(BARRIER(COLUMNS_EMPTY + 2 * (side) + side), lane,
            lane < CLUSTER);
        mbarrier_arrive_remote_if(BARRIER(WEIGHTS_EMPTY + side), lane, lane < CLUSTER);
        own_uses++;
      }
      int i = 2 - side; // the side's next tile
      #pragma unroll 1
      for (; i < tiles; i += 2) {
        const int k0 = k_last - i * BLOCK_KV;
        float sum00 = 0.0f, sum10 = 0.0f;
        int safe0, safe1;
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 0 + own_pieces), own_uses & 1);
        scores_of_64(s, q_rows + (u32)(0 + own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (0 + own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 1 + own_pieces), own_uses & 1);
        add_scores_of_64(s, q_rows + (u32)(1 + own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (1 + own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 2 + own_pieces), own_uses & 1);
        add_scores_of_64(s, q_rows + (u32)(2 + own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (2 + own_pieces) * (PIECE_BYTES / 16)));
        wait_scores(s, part);
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 3 + own_pieces), own_uses & 1);
        scores_of_64(part, q_rows + (u32)(3 + own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (3 + own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 4 - own_pieces), own_uses & 1);
        add_scores_of_64(part, q_rows + (u32)(4 - own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (4 - own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 5 - own_pieces), own_uses & 1);
        add_scores_of_64(part, q_rows + (u32)(5 - own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (5 - own_pieces) * (PIECE_BYTES / 16)));
        wait_scores(s, part);
        ADD_PART()
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 6 - own_pieces), own_uses & 1);
        next_scores_of_64(part, q_rows + (u32)(6 - own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (6 - own_pieces) * (PIECE_BYTES / 16)), 0);
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 7 - own_pieces), own_uses & 1);
        add_scores_of_64(part, q_rows + (u32)(7 - own_pieces) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (7 - own_pieces) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(PIECE_FULL + side * K_PIECES + 8), own_uses & 1);
        add_scores_of_64(part, q_rows + (u32)(8) * (PIECE_BYTES / 16), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + (8) * (PIECE_BYTES / 16)));
        mbarrier_wait(BARRIER(P_FULL + 1 - side), other_uses & 1);
        {
          u32 v[4];
          lds_u32x4(v, told + (u32)((1 - side) * TOLD_BYTES + 0 * (128 * 16)));
          m0 = as_f32(v[0]);
          l0 = as_f32(v[1]);
          m1 = as_f32(v[2]);
          l1 = as_f32(v[3]);
        }
        {
          u32 v[4];
          lds_u32x4(v, told + (u32)((1 - side) * TOLD_BYTES + 1 * (128 * 16)));
          moved0 = as_f32(v[0]);
          moved1 = as_f32(v[1]);
        }
        wait_scores(s, part);
        ADD_PART()
        if (any_lane(ALL_LANES, moved0 != 1.0f || moved1 != 1.0f)) {
          SCALE_O_ROW0(moved0)
          SCALE_O_ROW1(moved1)
          moved0 = moved1 = 1.0f;
        }
        add_values(o, k_tiles + (u32)((1 - side) * (TILE_BYTES / 16)
            + (K_PIECES - 1) * (PIECE_BYTES / 16)), k_tiles
            + (u32)((1 - side) * (TILE_BYTES / 16) + side * (DV_PIECES * PIECE_BYTES / 16)));
        const int k_lane = k0 + 2 * (lane % 4);
        if (!(p.nq + (imin(k0 + BLOCK_KV, nk)) <= nk + q0 + 1)) {
          const u32 seen0 = columns_below(imin(nk, nk + (query0 + 1) - p.nq) - k_lane);
          const u32 seen1 = columns_below(imin(nk, nk + (query1 + 1) - p.nq) - k_lane);
          ROW0_PAIRS(HIDE_ROW0)
          ROW1_PAIRS(HIDE_ROW1)
        }
        PAIRS(WEIGH_ROW0, WEIGH_ROW1)
        safe0 = sum00 < 65536.0f;
        safe1 = sum10 < 65536.0f;
        wait_values(o);
        mbarrier_arrive_remote_if(BARRIER(COLUMNS_EMPTY + 2 * (1 - side) + side), lane,
            lane < CLUSTER);
        mbarrier_arrive_remote_if(BARRIER(WEIGHTS_EMPTY + 1 - side), lane, lane < CLUSTER);
        other_uses++;
        if (any_lane(ALL_LANES, !(safe0 && safe1))) {
          renew(s);
          {
            const int keep = quad_max(safe0 ? 0.0f : 1.0f) == 0.0f; // whatever the other rows need
            sum00 = 0.0f;
            float most = NEG_INF;
            ROW0_PAIRS(MOST)
            most = quad_max(most);
            const float peak = keep ? m0 : max_f32(m0, most * (scale * LOG2E));
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m0 - origin);
            l0 *= correction;
            ROW0_PAIRS(REWEIGH)
            l0 += sum00;
            m0 = peak;
            SCALE_O_ROW0(correction)
            moved0 = correction;
          }
          {
            const int keep = quad_max(safe1 ? 0.0f : 1.0f) == 0.0f; // whatever the other rows need
            sum10 = 0.0f;
            float most = NEG_INF;
            ROW1_PAIRS(MOST)
            most = quad_max(most);
            const float peak = keep ? m1 : max_f32(m1, most * (scale * LOG2E));
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m1 - origin);
            l1 *= correction;
            ROW1_PAIRS(REWEIGH)
            l1 += sum10;
            m1 = peak;
            SCALE_O_ROW1(correction)
            moved1 = correction;
          }
        } else {
          l0 += sum00;
          l1 += sum10;
        }
        {
          barrier_sync(OWN + side, 128);
              // by all warps: P comes to where K's last columns have been
          {
            const u32 v[4] = {x0, x1, x2, x3};
            stmatrix_x4(p_lane + (u32)(((0 + lane / 16) ^ lane % 8) * 16), v);
          }
          {
            const u32 v[4] = {x4, x5, x6, x7};
            stmatrix_x4(p_lane + (u32)(((2 + lane / 16) ^ lane % 8) * 16), v);
          }
          {
            const u32 v[4] = {x8, x9, x10, x11};
            stmatrix_x4(p_lane + (u32)(((4 + lane / 16) ^ lane % 8) * 16), v);
          }
          {
            const u32 v[4] = {x12, x13, x14, x15};
            stmatrix_x4(p_lane + (u32)(((6 + lane / 16) ^ lane % 8) * 16), v);
          }
          {
            const u32 v[4] = {as_u32(m0), as_u32(l0), as_u32(m1), as_u32(l1)};
            sts_u32x4(told + (u32)(side * TOLD_BYTES + 0 * (128 * 16)), v);
          }
          {
            const u32 v[4] = {as_u32(moved0), as_u32(moved1), 0, 0};
            sts_u32x4(told + (u32)(side * TOLD_BYTES + 1 * (128 * 16)), v);
          }
          fence_async();
          warp_sync(ALL_LANES);
          mbarrier_arrive_if(BARRIER(P_FULL + side), lane == 0);
        }
        mbarrier_wait(BARRIER(P_FULL + side), own_uses & 1); // of the other warps' rows
        add_values(o, k_tiles + (u32)(side * (TILE_BYTES / 16)
            + (K_PIECES - 1) * (PIECE_BYTES / 16)), k_tiles
            + (u32)(side * (TILE_BYTES / 16) + side * (DV_PIECES * PIECE_BYTES / 16)));
        wait_values(o);
        mbarrier_arrive_remote_if(BARRIER(COLUMNS_EMPTY + 2 * (side) + side), lane,
            lane < CLUSTER);
        mbarrier_arrive_remote_if(BARRIER(WEIGHTS_EMPTY + side), lane, lane < CLUSTER);
        own_uses++;
      }
      if (i == tiles) {
        mbarrier_wait(BARRIER(P_FULL + 1 - side), other_uses & 1);
        {
          u32 v[4];
          lds_u32x4(v, told + (u32)((1 - side) * TOLD_BYTES + 0 * (128 * 16)));
          m0 = as_f32(v[0]);
          l0 = as_f32(v[1]);
          m1 = as_f32(v[2]);
          l1 = as_f32(v[3]);
        }
        {
          u32 v[4];
          lds_u32x4(v, told + (u32)((1 - side) * TOLD_BYTES + 1 * (128 * 16)));
          moved0 = as_f32(v[0]);
          moved1 = as_f32(v[1]);
        }
        if (any_lane(ALL_LANES, moved0 != 1.0f || moved1 != 1.0f)) {
          SCALE_O_ROW0(moved0)
          SCALE_O_ROW1(moved1)
          moved0 = moved1 = 1.0f;
        }
        add_values(o, k_tiles + (u32)((1 - side) * (TILE_BYTES / 16)
            + (K_PIECES - 1) * (PIECE_BYTES / 16)), k_tiles
            + (u32)((1 - side) * (TILE_BYTES / 16) + side * (DV_PIECES * PIECE_BYTES / 16)));
        wait_values(o);
        mbarrier_arrive_remote_if(BARRIER(COLUMNS_EMPTY + 2 * (1 - side) + side), lane,
            lane < CLUSTER);
        mbarrier_arrive_remote_if(BARRIER(WEIGHTS_EMPTY + 1 - side), lane, lane < CLUSTER);
        other_uses++;
      }
      const int shares = (int)shfl_u32(ALL_LANES, lds_u32(job + 32), 0), group = 2 * rank + side;
      int last = tiles > 0;
      if (shares > 1) {
        const int place = (int)shfl_u32(ALL_LANES, lds_u32(job + 36), 0),
            first_place = (int)shfl_u32(ALL_LANES, lds_u32(job + 40), 0),
            second_place = (int)shfl_u32(ALL_LANES, lds_u32(job + 44), 0),
            place_step = (int)shfl_u32(ALL_LANES, lds_u32(job + 48), 0);
        {
          const u32 thread = threadIdx.x % 128;
          float *own = p.parts + ((i64)place * GROUPS + group) * PART_FLOATS + thread * 4;
          {
            const float v[4] = {m0, l0, m1, l1};
            stg_f32x4(own + 0, v);
          }
          {
            const float v[4] = {o0, o1, o2, o3};
            stg_f32x4(own + 512, v);
          }
          {
            const float v[4] = {o4, o5, o6, o7};
            stg_f32x4(own + 1024, v);
          }
          {
            const float v[4] = {o8, o9, o10, o11};
            stg_f32x4(own + 1536, v);
          }
          {
            const float v[4] = {o12, o13, o14, o15};
            stg_f32x4(own + 2048, v);
          }
          {
            const float v[4] = {o16, o17, o18, o19};
            stg_f32x4(own + 2560, v);
          }
          {
            const float v[4] = {o20, o21, o22, o23};
            stg_f32x4(own + 3072, v);
          }
          {
            const float v[4] = {o24, o25, o26, o27};
            stg_f32x4(own + 3584, v);
          }
          {
            const float v[4] = {o28, o29, o30, o31};
            stg_f32x4(own + 4096, v);
          }
          {
            const float v[4] = {o32, o33, o34, o35};
            stg_f32x4(own + 4608, v);
          }
          {
            const float v[4] = {o36, o37, o38, o39};
            stg_f32x4(own + 5120, v);
          }
          {
            const float v[4] = {o40, o41, o42, o43};
            stg_f32x4(own + 5632, v);
          }
          {
            const float v[4] = {o44, o45, o46, o47};
            stg_f32x4(own + 6144, v);
          }
          {
            const float v[4] = {o48, o49, o50, o51};
            stg_f32x4(own + 6656, v);
          }
          {
            const float v[4] = {o52, o53, o54, o55};
            stg_f32x4(own + 7168, v);
          }
          {
            const float v[4] = {o56, o57, o58, o59};
            stg_f32x4(own + 7680, v);
          }
          {
            const float v[4] = {o60, o61, o62, o63};
            stg_f32x4(own + 8192, v);
          }
          {
            const float v[4] = {o64, o65, o66, o67};
            stg_f32x4(own + 8704, v);
          }
          {
            const float v[4] = {o68, o69, o70, o71};
            stg_f32x4(own + 9216, v);
          }
          {
            const float v[4] = {o72, o73, o74, o75};
            stg_f32x4(own + 9728, v);
          }
          {
            const float v[4] = {o76, o77, o78, o79};
            stg_f32x4(own + 10240, v);
          }
          {
            const float v[4] = {o80, o81, o82, o83};
            stg_f32x4(own + 10752, v);
          }
          {
            const float v[4] = {o84, o85, o86, o87};
            stg_f32x4(own + 11264, v);
          }
          {
            const float v[4] = {o88, o89, o90, o91};
            stg_f32x4(own + 11776, v);
          }
          {
            const float v[4] = {o92, o93, o94, o95};
            stg_f32x4(own + 12288, v);
          }
          {
            const float v[4] = {o96, o97, o98, o99};
            stg_f32x4(own + 12800, v);
          }
          {
            const float v[4] = {o100, o101, o102, o103};
            stg_f32x4(own + 13312, v);
          }
          {
            const float v[4] = {o104, o105, o106, o107};
            stg_f32x4(own + 13824, v);
          }
          {
            const float v[4] = {o108, o109, o110, o111};
            stg_f32x4(own + 14336, v);
          }
          {
            const float v[4] = {o112, o113, o114, o115};
            stg_f32x4(own + 14848, v);
          }
          {
            const float v[4] = {o116, o117, o118, o119};
            stg_f32x4(own + 15360, v);
          }
          {
            const float v[4] = {o120, o121, o122, o123};
            stg_f32x4(own + 15872, v);
          }
          {
            const float v[4] = {o124, o125, o126, o127};
            stg_f32x4(own + 16384, v);
          }
          barrier_sync(OWN + side, 128);
          if (thread == 0) {
            u64 *word = (u64 *)p.claims + (first_place * GROUPS + group);
            fence_device(); // behind the barrier, what the warpgroup has written
            open_claims(word);
            const int comes_last = claim(word, shares) == shares - 1;
            fence_device();
            sts_u32(sm + SM_LAST + 4 * (u32)side, (u32)comes_last);
          }
          barrier_sync(OWN + side, 128);
          last = (int)shfl_u32(ALL_LANES, lds_u32(sm + SM_LAST + 4 * (u32)side), 0);
          if (last) {
            m0 = NEG_INF;
            l0 = 0.0f;
            m1 = NEG_INF;
            l1 = 0.0f;
            CLEAR_O()
            #pragma unroll 1
            for (int i = 0; i < shares; i++) {
              const float *from = p.parts + ((i64)(i > 0 ? second_place + (i - 1) * place_step
                  : first_place) * GROUPS + group) * PART_FLOATS + thread * 4;
              float v[4], kept[2], added[2];
              float states[4];
              ldg_f32x4(states + 0, from + 0);
              {
                const float peak = max_f32(m0, states[0]);
                const float origin = peak == NEG_INF ? 0.0f : peak;
                const float kept_of_row = exp2_f32(m0 - origin);
                const float added_of_row = exp2_f32(states[0] - origin);
                l0 = kept_of_row * l0 + added_of_row * states[1];
                m0 = peak;
                kept[0] = kept_of_row;
                added[0] = added_of_row;
              }
              {
                const float peak = max_f32(m1, states[2]);
                const float origin = peak == NEG_INF ? 0.0f : peak;
                const float kept_of_row = exp2_f32(m1 - origin);
                const float added_of_row = exp2_f32(states[2] - origin);
                l1 = kept_of_row * l1 + added_of_row * states[3];
                m1 = peak;
                kept[1] = kept_of_row;
                added[1] = added_of_row;
              }
              ldg_f32x4(v, from + 512);
              o0 = o0 * kept[0] + v[0] * added[0];
              o1 = o1 * kept[0] + v[1] * added[0];
              o2 = o2 * kept[1] + v[2] * added[1];
              o3 = o3 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 1024);
              o4 = o4 * kept[0] + v[0] * added[0];
              o5 = o5 * kept[0] + v[1] * added[0];
              o6 = o6 * kept[1] + v[2] * added[1];
              o7 = o7 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 1536);
              o8 = o8 * kept[0] + v[0] * added[0];
              o9 = o9 * kept[0] + v[1] * added[0];
              o10 = o10 * kept[1] + v[2] * added[1];
              o11 = o11 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 2048);
              o12 = o12 * kept[0] + v[0] * added[0];
              o13 = o13 * kept[0] + v[1] * added[0];
              o14 = o14 * kept[1] + v[2] * added[1];
              o15 = o15 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 2560);
              o16 = o16 * kept[0] + v[0] * added[0];
              o17 = o17 * kept[0] + v[1] * added[0];
              o18 = o18 * kept[1] + v[2] * added[1];
              o19 = o19 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 3072);
              o20 = o20 * kept[0] + v[0] * added[0];
              o21 = o21 * kept[0] + v[1] * added[0];
              o22 = o22 * kept[1] + v[2] * added[1];
              o23 = o23 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 3584);
              o24 = o24 * kept[0] + v[0] * added[0];
              o25 = o25 * kept[0] + v[1] * added[0];
              o26 = o26 * kept[1] + v[2] * added[1];
              o27 = o27 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 4096);
              o28 = o28 * kept[0] + v[0] * added[0];
              o29 = o29 * kept[0] + v[1] * added[0];
              o30 = o30 * kept[1] + v[2] * added[1];
              o31 = o31 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 4608);
              o32 = o32 * kept[0] + v[0] * added[0];
              o33 = o33 * kept[0] + v[1] * added[0];
              o34 = o34 * kept[1] + v[2] * added[1];
              o35 = o35 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 5120);
              o36 = o36 * kept[0] + v[0] * added[0];
              o37 = o37 * kept[0] + v[1] * added[0];
              o38 = o38 * kept[1] + v[2] * added[1];
              o39 = o39 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 5632);
              o40 = o40 * kept[0] + v[0] * added[0];
              o41 = o41 * kept[0] + v[1] * added[0];
              o42 = o42 * kept[1] + v[2] * added[1];
              o43 = o43 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 6144);
              o44 = o44 * kept[0] + v[0] * added[0];
              o45 = o45 * kept[0] + v[1] * added[0];
              o46 = o46 * kept[1] + v[2] * added[1];
              o47 = o47 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 6656);
              o48 = o48 * kept[0] + v[0] * added[0];
              o49 = o49 * kept[0] + v[1] * added[0];
              o50 = o50 * kept[1] + v[2] * added[1];
              o51 = o51 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 7168);
              o52 = o52 * kept[0] + v[0] * added[0];
              o53 = o53 * kept[0] + v[1] * added[0];
              o54 = o54 * kept[1] + v[2] * added[1];
              o55 = o55 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 7680);
              o56 = o56 * kept[0] + v[0] * added[0];
              o57 = o57 * kept[0] + v[1] * added[0];
              o58 = o58 * kept[1] + v[2] * added[1];
              o59 = o59 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 8192);
              o60 = o60 * kept[0] + v[0] * added[0];
              o61 = o61 * kept[0] + v[1] * added[0];
              o62 = o62 * kept[1] + v[2] * added[1];
              o63 = o63 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 8704);
              o64 = o64 * kept[0] + v[0] * added[0];
              o65 = o65 * kept[0] + v[1] * added[0];
              o66 = o66 * kept[1] + v[2] * added[1];
              o67 = o67 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 9216);
              o68 = o68 * kept[0] + v[0] * added[0];
              o69 = o69 * kept[0] + v[1] * added[0];
              o70 = o70 * kept[1] + v[2] * added[1];
              o71 = o71 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 9728);
              o72 = o72 * kept[0] + v[0] * added[0];
              o73 = o73 * kept[0] + v[1] * added[0];
              o74 = o74 * kept[1] + v[2] * added[1];
              o75 = o75 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 10240);
              o76 = o76 * kept[0] + v[0] * added[0];
              o77 = o77 * kept[0] + v[1] * added[0];
              o78 = o78 * kept[1] + v[2] * added[1];
              o79 = o79 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 10752);
              o80 = o80 * kept[0] + v[0] * added[0];
              o81 = o81 * kept[0] + v[1] * added[0];
              o82 = o82 * kept[1] + v[2] * added[1];
              o83 = o83 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 11264);
              o84 = o84 * kept[0] + v[0] * added[0];
              o85 = o85 * kept[0] + v[1] * added[0];
              o86 = o86 * kept[1] + v[2] * added[1];
              o87 = o87 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 11776);
              o88 = o88 * kept[0] + v[0] * added[0];
              o89 = o89 * kept[0] + v[1] * added[0];
              o90 = o90 * kept[1] + v[2] * added[1];
              o91 = o91 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 12288);
              o92 = o92 * kept[0] + v[0] * added[0];
              o93 = o93 * kept[0] + v[1] * added[0];
              o94 = o94 * kept[1] + v[2] * added[1];
              o95 = o95 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 12800);
              o96 = o96 * kept[0] + v[0] * added[0];
              o97 = o97 * kept[0] + v[1] * added[0];
              o98 = o98 * kept[1] + v[2] * added[1];
              o99 = o99 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 13312);
              o100 = o100 * kept[0] + v[0] * added[0];
              o101 = o101 * kept[0] + v[1] * added[0];
              o102 = o102 * kept[1] + v[2] * added[1];
              o103 = o103 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 13824);
              o104 = o104 * kept[0] + v[0] * added[0];
              o105 = o105 * kept[0] + v[1] * added[0];
              o106 = o106 * kept[1] + v[2] * added[1];
              o107 = o107 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 14336);
              o108 = o108 * kept[0] + v[0] * added[0];
              o109 = o109 * kept[0] + v[1] * added[0];
              o110 = o110 * kept[1] + v[2] * added[1];
              o111 = o111 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 14848);
              o112 = o112 * kept[0] + v[0] * added[0];
              o113 = o113 * kept[0] + v[1] * added[0];
              o114 = o114 * kept[1] + v[2] * added[1];
              o115 = o115 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 15360);
              o116 = o116 * kept[0] + v[0] * added[0];
              o117 = o117 * kept[0] + v[1] * added[0];
              o118 = o118 * kept[1] + v[2] * added[1];
              o119 = o119 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 15872);
              o120 = o120 * kept[0] + v[0] * added[0];
              o121 = o121 * kept[0] + v[1] * added[0];
              o122 = o122 * kept[1] + v[2] * added[1];
              o123 = o123 * kept[1] + v[3] * added[1];
              ldg_f32x4(v, from + 16384);
              o124 = o124 * kept[0] + v[0] * added[0];
              o125 = o125 * kept[0] + v[1] * added[0];
              o126 = o126 * kept[1] + v[2] * added[1];
              o127 = o127 * kept[1] + v[3] * added[1];
            }
          }
        }
      }
      if (last) {
        float inverse0, inverse1;
        {
          const int q = query0;
          const int h = first_head + imin((row + 0) % wide, heads - 1);
          const float total = quad_sum(l0);
          const float lse_of_row = total == 0.0f ? NEG_INF : (m0 + log2_f32(total)) * LN2;
          stg_f32_if(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row, side == 0
              && lane % 4 == 0 && q < p.nq && p.lse);
          const float inverse = total == 0.0f ? 0.0f
              : inverse_f32(imin(nk, nk + (q + 1) - p.nq) <= 1 ? bf16_to_f32(f32_to_bf16(total))
              : total);
          inverse0 = inverse;
        }
        {
          const int q = query1;
          const int h = first_head + imin((row + 8) % wide, heads - 1);
          const float total = quad_sum(l1);
          const float lse_of_row = total == 0.0f ? NEG_INF : (m1 + log2_f32(total)) * LN2;
          stg_f32_if(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row, side == 0
              && lane % 4 == 0 && q < p.nq && p.lse);
          const float inverse = total == 0.0f ? 0.0f
              : inverse_f32(imin(nk, nk + (q + 1) - p.nq) <= 1 ? bf16_to_f32(f32_to_bf16(total))
              : total);
          inverse1 = inverse;
        }
        {
          const int q = query0;
          const int h = first_head + imin((row + 0) % wide, heads - 1);
          u16 *to = p.o + (b * p.o_b + h * p.o_h + q * p.o_n) + 2 * (lane % 4) + DV_COLUMNS * side;
          const int is_there = q < p.nq;
          STORE_ROW0(to, is_there)
        }
        {
          const int q = query1;
          const int h = first_head + imin((row + 8) % wide, heads - 1);
          u16 *to = p.o + (b * p.o_b + h * p.o_h + q * p.o_n) + 2 * (lane % 4) + DV_COLUMNS * side;
          const int is_there = q < p.nq;
          STORE_ROW1(to, is_there)
        }
      }
      warp_sync(ALL_LANES);
      mbarrier_arrive_if(BARRIER(JOB_EMPTY + job_number % 2), lane == 0);
    }
  }
  warp_sync(ALL_LANES);
  cluster_sync();
      // what comes from the other blocks, and goes to them, does so while all are there
}
