// attn_bwd-bf16-d512-causal.wgmma-q64-k64-s1-w16.sm_90a
//
// Gradients of O = softmax(score(scale Q K^T)) V, from dO.
// spec:   pass=backward head_dim=512 mask=causal
// again:  flashgen emit attn_bwd-bf16-d512-causal.wgmma-q64-k64-s1-w16.sm_90a
// switches: starts_early, sections_of_heads
// made by flashgen 0.1.0
//
// launch: attn_bwd_rows, grid cdiv(roundup(nq, 64), 32) x h x b, 256 threads, 0 shared bytes,
//         early
// launch: attn_bwd_dk_dv, grid cdiv(nk, 64) * hk * b * 2 x 1 x 1, 512 threads, 214624 shared
//         bytes, clusters of 2, early
// launch: attn_bwd_dq, grid cdiv(roundup(nq, 64) * 64, 512) x h x b, 256 threads, 0 shared bytes,
//         early
// scratch: kept, b * h * roundup(nq, 64) * 2 floats
// scratch: dq_sum, b * h * roundup(nq, 64) * 512 floats
//
// shared memory:
//   SM_K             0  K [D_BLOCKS][64][64]
//   SM_V         32768  V [DV_BLOCKS][64][64], then dV
//   SM_Q         65536  Q [D_BLOCKS][BLOCK_Q][64], then dK
//   SM_DO        98304  dO [DV_BLOCKS][BLOCK_Q][64]
//   SM_DS       131072  dS [BLOCK_Q][64]
//   SM_S_PARTS  139264  S^T of each block's columns, as threads have it [CLUSTER][BLOCK_Q /
//                       8][128][4], float32
//   SM_DP_PARTS 172032  dP^T, the same
//   SM_P        204800  P^T, as operands of warps [BLOCK_Q / 16][128][4]
//   SM_KEPT     212992  what is kept of a row, and delta [BLOCK_Q][2], float32
//   SM_BARRIERS 213504  mbarriers: k_full, v_full, q_full, q_empty, do_full, do_empty, p_full,
//                       ds_full, ds_empty, s_full, s_empty, dp_full, dp_empty
//   SM_END      213616  what rounding the base to 1024 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 512 }; // head dim of q and k
enum { DV = 512 }; // head dim of v and o
enum { CHUNKS_D = 64 }; // 16-byte chunks in a row of dQ
enum { CHUNKS_Q = 8 }; // in a row of dS^T
enum { BLOCK_Q = 64 }; // query rows of a tile
enum { BLOCK_KV = 64 }; // keys of a cluster
enum { STAGES = 1 }; // tiles of Q and of P in flight
enum { THREADS = 256 }; // of a block of the passes before and behind
enum { SECTION_HEADS = 8 }; // in a section, at most
enum { SECTION_ROWS = 16384 }; // of all heads of a section
enum { M_KV = 1 }; // tiles of 16 keys of a warp
enum { ROWS = 2 }; // keys that a lane has a part of
enum { N_Q = 8 }; // tiles of 8 queries of S^T and dP^T at a time
enum { KEPT_BYTES = 512 }; // of a tile
enum { CLUSTER = 2 }; // blocks, of some columns each
enum { MOVER_REGISTERS = 32 };
enum { VALUES_REGISTERS = 200 };
enum { KEYS_REGISTERS = 216 };
enum { QUERIES_REGISTERS = 64 };
enum { D_BLOCKS = 4 }; // of 64 columns of Q, K, dK and dQ that a block has
enum { DV_BLOCKS = 4 }; // of V, dO and dV
enum { K_BYTES = 32768 }; // of a block's
enum { V_BYTES = 32768 }; // of a block's
enum { Q_BYTES = 32768 }; // of a block's
enum { DO_BYTES = 32768 }; // of a block's
enum { P_BYTES = 8192 }; // of a tile
enum { PART_BYTES = 16384 }; // of S or dP, of a block's columns
enum { SM_K = 0 };
enum { SM_V = 32768 };
enum { SM_Q = 65536 };
enum { SM_DO = 98304 };
enum { SM_DS = 131072 };
enum { SM_S_PARTS = 139264 };
enum { SM_DP_PARTS = 172032 };
enum { SM_P = 204800 };
enum { SM_KEPT = 212992 };
enum { SM_BARRIERS = 213504 };
enum { SM_END = 213616 };

typedef struct __align__(64) tensor_map { u64 word[16]; } tensor_map; // the driver's, for TMA

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
#define L2_FIRST 0x12f0000000000000ull // evicted first: read once
#define L2_LAST 0x14f0000000000000ull // evicted last: read by many blocks
#define LOG2E 1.4426950408889634f

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

DEV int imax(int a, int b) { return a > b ? a : b; }

extern __shared__ __align__(16) unsigned char shared_bytes[];

DEV u32 shared_base(void) { return (u32)__cvta_generic_to_shared(shared_bytes); }

DEV void lds_u32x4(u32 *v, u32 address) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(address) : "memory");
}

DEV void sts_u32x4(u32 address, const u32 *v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
      :: "r"(address), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
}

DEV void ldg_u32x4(u32 *v, const void *from) {
  const uint4 x = *(const uint4 *)from;
  v[0] = x.x;
  v[1] = x.y;
  v[2] = x.z;
  v[3] = x.w;
}

DEV float ldg_f32(const float *from) { return *from; }

DEV void ldg_f32x4(float *v, const float *from) {
  const float4 x = *(const float4 *)from;
  v[0] = x.x;
  v[1] = x.y;
  v[2] = x.z;
  v[3] = x.w;
}

DEV void stg_u32x4(void *to, const u32 *v) {
  const uint4 x = {v[0], v[1], v[2], v[3]};
  *(uint4 *)to = x;
}

DEV void stg_f32(float *to, float v) { *to = v; }

DEV void stg_f32x4(float *to, const float *v) {
  const float4 x = {v[0], v[1], v[2], v[3]};
  *(float4 *)to = x;
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

DEV void red_add_f32x4(float *to, const float *v) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
      :: "l"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
}

DEV u32 as_u32(float v) { return __float_as_uint(v); }

DEV float exp2_f32(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float bf16_to_f32(u16 x) { return as_f32((u32)x << 16); }

DEV u32 pack_bf16(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

DEV void stmatrix_x4(u32 address, const u32 *r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
      :: "r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}

DEV void stmatrix_x4_trans(u32 address, const u32 *r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
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

DEV void tma_store_4d(const tensor_map *map, int c0, int c1, int c2, int c3, u32 from) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group "
      "[%0, {%2, %3, %4, %5}], [%1];" :: "l"(map), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
          : "memory");
}

DEV void tma_store_commit(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

DEV void tma_store_wait_0(void) { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

DEV void bulk_load(u32 to, const void *from, int bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];"
      :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}

DEV void bulk_copy_remote(u32 to, u32 from, int bytes, u32 bar, int rank) {
  asm volatile("{ .reg .b32 there, full; "
      "mapa.shared::cluster.u32 there, %0, %4; mapa.shared::cluster.u32 full, %3, %4;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
      "[there], [%1], %2, [full]; }"
      :: "r"(to), "r"(from), "r"(bytes), "r"(bar), "r"(rank) : "memory");
}

DEV u32 matrix_at(u32 address) {
  return (address & 0x3ffff) >> 4; // in a cluster the block's rank lies above
}

DEV void setmaxnreg_dec_32(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 32;" ::: "memory");
}

DEV void setmaxnreg_dec_64(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 64;" ::: "memory");
}

DEV void setmaxnreg_inc_200(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 200;" ::: "memory");
}

DEV void setmaxnreg_inc_216(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 216;" ::: "memory");
}

DEV u32 pack(float low, float high) { return pack_bf16(low, high); }

DEV float to_f32(u16 x) { return bf16_to_f32(x); }

DEV void zero(float *x, int n) {
  #pragma unroll
  for (int i = 0; i < n; i++) { x[i] = 0.0f; }
}

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

#define FLOATS_32 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

DEV void scores(float *d, u32 a, u32 b) {
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n"
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n"
      "setp.ne.u32 first, 0, 0;\n"
      "wgmma.fence.sync.aligned;\n"
      "add.u32 a, %32, 0; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 0; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, first, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 2; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 2; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 4; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 4; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 6; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 6; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 512; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 512; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 514; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 514; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 516; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 516; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 518; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 518; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1024; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1024; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1026; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1026; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1028; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1028; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1030; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1030; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1536; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1536; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1538; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1538; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1540; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1540; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1542; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1542; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned; }"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]),
      "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]),
      "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]),
      "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]),
      "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]),
      "=f"(d[30]), "=f"(d[31])
      : "r"((u32)(a)), "r"((u32)(b)) : "memory");
}

DEV void dots(float *d, u32 a, u32 b) {
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n"
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n"
      "setp.ne.u32 first, 0, 0;\n"
      "wgmma.fence.sync.aligned;\n"
      "add.u32 a, %32, 0; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 0; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, first, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 2; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 2; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 4; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 4; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 6; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 6; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 512; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 512; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 514; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 514; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 516; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 516; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 518; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 518; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1024; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1024; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1026; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1026; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1028; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1028; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1030; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1030; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1536; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1536; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1538; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1538; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1540; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1540; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1542; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 1542; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned; }"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]),
      "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]),
      "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]),
      "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]),
      "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]),
      "=f"(d[30]), "=f"(d[31])
      : "r"((u32)(a)), "r"((u32)(b)) : "memory");
}

DEV void wait_part(float *d1) {
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : "+f"(d1[0]), "+f"(d1[1]), "+f"(d1[2]), "+f"(d1[3]), "+f"(d1[4]), "+f"(d1[5]),
      "+f"(d1[6]), "+f"(d1[7]), "+f"(d1[8]), "+f"(d1[9]), "+f"(d1[10]), "+f"(d1[11]),
      "+f"(d1[12]), "+f"(d1[13]), "+f"(d1[14]), "+f"(d1[15]), "+f"(d1[16]), "+f"(d1[17]),
      "+f"(d1[18]), "+f"(d1[19]), "+f"(d1[20]), "+f"(d1[21]), "+f"(d1[22]), "+f"(d1[23]),
      "+f"(d1[24]), "+f"(d1[25]), "+f"(d1[26]), "+f"(d1[27]), "+f"(d1[28]), "+f"(d1[29]),
      "+f"(d1[30]), "+f"(d1[31]) :: "memory");
}

DEV void queries(float *d, u32 a, u32 b) {
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n"
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n"
      "setp.ne.u32 first, 0, 0;\n"
      "wgmma.fence.sync.aligned;\n"
      "add.u32 a, %32, 0; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 33554432; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, first, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 2; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 33554560; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 4; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 33554688; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 6; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 33554816; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "wgmma.commit_group.sync.aligned; }"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]),
      "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]),
      "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]),
      "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]),
      "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]),
      "=f"(d[30]), "=f"(d[31])
      : "r"((u32)(a)), "r"((u32)(b)) : "memory");
}

DEV void wait_queries(float *d1) {
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : "+f"(d1[0]), "+f"(d1[1]), "+f"(d1[2]), "+f"(d1[3]), "+f"(d1[4]), "+f"(d1[5]),
      "+f"(d1[6]), "+f"(d1[7]), "+f"(d1[8]), "+f"(d1[9]), "+f"(d1[10]), "+f"(d1[11]),
      "+f"(d1[12]), "+f"(d1[13]), "+f"(d1[14]), "+f"(d1[15]), "+f"(d1[16]), "+f"(d1[17]),
      "+f"(d1[18]), "+f"(d1[19]), "+f"(d1[20]), "+f"(d1[21]), "+f"(d1[22]), "+f"(d1[23]),
      "+f"(d1[24]), "+f"(d1[25]), "+f"(d1[26]), "+f"(d1[27]), "+f"(d1[28]), "+f"(d1[29]),
      "+f"(d1[30]), "+f"(d1[31]) :: "memory");
}

DEV void wait_values(float *d1) {
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : "+f"(d1[0]), "+f"(d1[1]), "+f"(d1[2]), "+f"(d1[3]), "+f"(d1[4]), "+f"(d1[5]),
      "+f"(d1[6]), "+f"(d1[7]), "+f"(d1[8]), "+f"(d1[9]), "+f"(d1[10]), "+f"(d1[11]),
      "+f"(d1[12]), "+f"(d1[13]), "+f"(d1[14]), "+f"(d1[15]), "+f"(d1[16]), "+f"(d1[17]),
      "+f"(d1[18]), "+f"(d1[19]), "+f"(d1[20]), "+f"(d1[21]), "+f"(d1[22]), "+f"(d1[23]),
      "+f"(d1[24]), "+f"(d1[25]), "+f"(d1[26]), "+f"(d1[27]), "+f"(d1[28]), "+f"(d1[29]),
      "+f"(d1[30]), "+f"(d1[31]), "+f"(d1[32]), "+f"(d1[33]), "+f"(d1[34]), "+f"(d1[35]),
      "+f"(d1[36]), "+f"(d1[37]), "+f"(d1[38]), "+f"(d1[39]), "+f"(d1[40]), "+f"(d1[41]),
      "+f"(d1[42]), "+f"(d1[43]), "+f"(d1[44]), "+f"(d1[45]), "+f"(d1[46]), "+f"(d1[47]),
      "+f"(d1[48]), "+f"(d1[49]), "+f"(d1[50]), "+f"(d1[51]), "+f"(d1[52]), "+f"(d1[53]),
      "+f"(d1[54]), "+f"(d1[55]), "+f"(d1[56]), "+f"(d1[57]), "+f"(d1[58]), "+f"(d1[59]),
      "+f"(d1[60]), "+f"(d1[61]), "+f"(d1[62]), "+f"(d1[63]), "+f"(d1[64]), "+f"(d1[65]),
      "+f"(d1[66]), "+f"(d1[67]), "+f"(d1[68]), "+f"(d1[69]), "+f"(d1[70]), "+f"(d1[71]),
      "+f"(d1[72]), "+f"(d1[73]), "+f"(d1[74]), "+f"(d1[75]), "+f"(d1[76]), "+f"(d1[77]),
      "+f"(d1[78]), "+f"(d1[79]), "+f"(d1[80]), "+f"(d1[81]), "+f"(d1[82]), "+f"(d1[83]),
      "+f"(d1[84]), "+f"(d1[85]), "+f"(d1[86]), "+f"(d1[87]), "+f"(d1[88]), "+f"(d1[89]),
      "+f"(d1[90]), "+f"(d1[91]), "+f"(d1[92]), "+f"(d1[93]), "+f"(d1[94]), "+f"(d1[95]),
      "+f"(d1[96]), "+f"(d1[97]), "+f"(d1[98]), "+f"(d1[99]), "+f"(d1[100]),
      "+f"(d1[101]), "+f"(d1[102]), "+f"(d1[103]), "+f"(d1[104]), "+f"(d1[105]),
      "+f"(d1[106]), "+f"(d1[107]), "+f"(d1[108]), "+f"(d1[109]), "+f"(d1[110]),
      "+f"(d1[111]), "+f"(d1[112]), "+f"(d1[113]), "+f"(d1[114]), "+f"(d1[115]),
      "+f"(d1[116]), "+f"(d1[117]), "+f"(d1[118]), "+f"(d1[119]), "+f"(d1[120]),
      "+f"(d1[121]), "+f"(d1[122]), "+f"(d1[123]), "+f"(d1[124]), "+f"(d1[125]),
      "+f"(d1[126]), "+f"(d1[127]) :: "memory");
}

DEV void wait_keys(float *d1) {
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : "+f"(d1[0]), "+f"(d1[1]), "+f"(d1[2]), "+f"(d1[3]), "+f"(d1[4]), "+f"(d1[5]),
      "+f"(d1[6]), "+f"(d1[7]), "+f"(d1[8]), "+f"(d1[9]), "+f"(d1[10]), "+f"(d1[11]),
      "+f"(d1[12]), "+f"(d1[13]), "+f"(d1[14]), "+f"(d1[15]), "+f"(d1[16]), "+f"(d1[17]),
      "+f"(d1[18]), "+f"(d1[19]), "+f"(d1[20]), "+f"(d1[21]), "+f"(d1[22]), "+f"(d1[23]),
      "+f"(d1[24]), "+f"(d1[25]), "+f"(d1[26]), "+f"(d1[27]), "+f"(d1[28]), "+f"(d1[29]),
      "+f"(d1[30]), "+f"(d1[31]), "+f"(d1[32]), "+f"(d1[33]), "+f"(d1[34]), "+f"(d1[35]),
      "+f"(d1[36]), "+f"(d1[37]), "+f"(d1[38]), "+f"(d1[39]), "+f"(d1[40]), "+f"(d1[41]),
      "+f"(d1[42]), "+f"(d1[43]), "+f"(d1[44]), "+f"(d1[45]), "+f"(d1[46]), "+f"(d1[47]),
      "+f"(d1[48]), "+f"(d1[49]), "+f"(d1[50]), "+f"(d1[51]), "+f"(d1[52]), "+f"(d1[53]),
      "+f"(d1[54]), "+f"(d1[55]), "+f"(d1[56]), "+f"(d1[57]), "+f"(d1[58]), "+f"(d1[59]),
      "+f"(d1[60]), "+f"(d1[61]), "+f"(d1[62]), "+f"(d1[63]), "+f"(d1[64]), "+f"(d1[65]),
      "+f"(d1[66]), "+f"(d1[67]), "+f"(d1[68]), "+f"(d1[69]), "+f"(d1[70]), "+f"(d1[71]),
      "+f"(d1[72]), "+f"(d1[73]), "+f"(d1[74]), "+f"(d1[75]), "+f"(d1[76]), "+f"(d1[77]),
      "+f"(d1[78]), "+f"(d1[79]), "+f"(d1[80]), "+f"(d1[81]), "+f"(d1[82]), "+f"(d1[83]),
      "+f"(d1[84]), "+f"(d1[85]), "+f"(d1[86]), "+f"(d1[87]), "+f"(d1[88]), "+f"(d1[89]),
      "+f"(d1[90]), "+f"(d1[91]), "+f"(d1[92]), "+f"(d1[93]), "+f"(d1[94]), "+f"(d1[95]),
      "+f"(d1[96]), "+f"(d1[97]), "+f"(d1[98]), "+f"(d1[99]), "+f"(d1[100]),
      "+f"(d1[101]), "+f"(d1[102]), "+f"(d1[103]), "+f"(d1[104]), "+f"(d1[105]),
      "+f"(d1[106]), "+f"(d1[107]), "+f"(d1[108]), "+f"(d1[109]), "+f"(d1[110]),
      "+f"(d1[111]), "+f"(d1[112]), "+f"(d1[113]), "+f"(d1[114]), "+f"(d1[115]),
      "+f"(d1[116]), "+f"(d1[117]), "+f"(d1[118]), "+f"(d1[119]), "+f"(d1[120]),
      "+f"(d1[121]), "+f"(d1[122]), "+f"(d1[123]), "+f"(d1[124]), "+f"(d1[125]),
      "+f"(d1[126]), "+f"(d1[127]) :: "memory");
}

#define BARRIER(number) (sm + SM_BARRIERS + 8 * (number))

#define FLOATS_64 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63}"

DEV void add_columns_128(float *d, const u32 *a, u32 b) {
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n"
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888;\n"
      "wgmma.fence.sync.aligned;\n"
      "add.u32 b, %80, 33554432; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      FLOATS_64 ", {%64, %65, %66, %67}, db, yes, 1, 1, 1;\n"
      "add.u32 b, %80, 33554560; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      FLOATS_64 ", {%68, %69, %70, %71}, db, yes, 1, 1, 1;\n"
      "add.u32 b, %80, 33554688; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      FLOATS_64 ", {%72, %73, %74, %75}, db, yes, 1, 1, 1;\n"
      "add.u32 b, %80, 33554816; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      FLOATS_64 ", {%76, %77, %78, %79}, db, yes, 1, 1, 1;\n"
      "wgmma.commit_group.sync.aligned; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
      "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
      "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
      "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
      "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
      "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
      "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
      "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
      "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
      "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
      "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
      "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12]), "r"(a[13]),
      "r"(a[14]), "r"(a[15]), "r"((u32)(b)) : "memory");
}

typedef struct Params {
  tensor_map q_map; // of q: boxes of 64 rows of 64
  tensor_map k_map; // of k: boxes of 64 rows of 64
  tensor_map v_map; // of v: boxes of 64 rows of 64
  tensor_map do_map; // of dout: boxes of 64 rows of 64
  tensor_map dk_map; // of dk: boxes of 64 rows of 64
  tensor_map dv_map; // of dv: boxes of 64 rows of 64
  const u16 *q; // [b, nq, h, 512] bf16
  i64 q_b, q_n, q_h;
  const u16 *k; // [b, nk, hk, 512] bf16
  i64 k_b, k_n, k_h;
  const u16 *v; // [b, nk, hk, 512] bf16
  i64 v_b, v_n, v_h;
  const u16 *o; // [b, nq, h, 512] bf16
  i64 o_b, o_n, o_h;
  const float *lse; // [b, h, nq] f32
  const u16 *dout; // [b, nq, h, 512] bf16
  i64 dout_b, dout_n, dout_h;
  const float *dlse; // [b, h, nq] f32, or null
  u16 *dq; // [b, nq, h, 512] bf16
  i64 dq_b, dq_n, dq_h;
  u16 *dk; // [b, nk, hk, 512] bf16
  i64 dk_b, dk_n, dk_h;
  u16 *dv; // [b, nk, hk, 512] bf16
  i64 dv_b, dv_n, dv_h;
  float *kept; // scratch
  float *dq_sum; // scratch
  int b, h, hk, nq, nk;
  float scale;
} Params;

// what is kept of each row, and delta, the constant of its dS; 8 threads a row. Rows up to the end
// of the last tile have weights of 0. Sums of dQ begin at 0.
extern "C" __global__ void __launch_bounds__(256, 1)
attn_bwd_rows(const __grid_constant__ Params p) {
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
  float *sum = p.dq_sum + (head * padded + q) * (8 * CHUNKS_D);
  const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int i = 4 * lane; i < 8 * CHUNKS_D; i += 32) { stg_f32x4(sum + i, zeros); }
}

enum { // the first barrier of each kind
  K_FULL = 0, V_FULL = 1, Q_FULL = 2, Q_EMPTY = 3, DO_FULL = 4, DO_EMPTY = 5,
  P_FULL = 6, DS_FULL = 7, DS_EMPTY = 8, S_FULL = 9, S_EMPTY = 10, DP_FULL = 11,
  DP_EMPTY = 12,
};

// dK and dV of 64 keys of a key/value head: over its query heads, and their rows that see the
// keys.
// What each tile adds to dQ goes to dq_sum: [b, h, tiles of 16 rows, CHUNKS_D, 32 lanes, 4]
extern "C" __global__ void __launch_bounds__(512, 1)
attn_bwd_dk_dv(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % 128 / 32;
  const int group = (int)shfl_u32(ALL_LANES, threadIdx.x / 128, 0);
  const int rank = cluster_rank();
  const int key_tiles = cdiv(p.nk, BLOCK_KV);
  // in sections of heads, of each the tiles that most rows see first, of all its heads in turn
  const int wide = imax(1, imin(SECTION_HEADS, SECTION_ROWS / imax(1, p.nq))),
      section = (int)blockIdx.x / CLUSTER / (wide * key_tiles) * wide;
  const int rest = (int)blockIdx.x / CLUSTER - section * key_tiles,
      heads_here = imin(wide, p.b * p.hk - section);
  const int k_begin = rest / heads_here * BLOCK_KV, head = section + rest % heads_here;
  const int g = head % p.hk, b = head / p.hk;
  const int k0 = k_begin;
  const u32 sm = (shared_base() + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(K_FULL + i), 1); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(V_FULL + i), 1); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(Q_FULL + i), 1); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(Q_EMPTY + i), 8); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(DO_FULL + i), 1); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(DO_EMPTY + i), 8); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(P_FULL + i), 4); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(DS_FULL + i), 4); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(DS_EMPTY + i), 4); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(S_FULL + i), 1); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(S_EMPTY + i), 4); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(DP_FULL + i), 1); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(DP_EMPTY + i), 4); }
    fence_barrier_init();
  }
  grid_wait(); // until the grid before has ended
  cluster_sync();
  const int heads = p.h / p.hk, padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
  const int row_end = p.nq, first_row = imax(0, p.nq + k_begin - p.nk) / BLOCK_Q * BLOCK_Q;
  int h = g * heads, q0 = first_row;
  const int h_end = first_row < row_end ? h + heads : h;

  if (group == 0) {
    setmaxnreg_dec_32();
    if (warp == 0 && lane == 0) {
      if (h < h_end) {
        mbarrier_expect(BARRIER(K_FULL), K_BYTES);
        #pragma unroll 1
        for (int c = 0; c < D_BLOCKS; c++) {
          tma_load_4d(sm + SM_K + (u32)(c * (64 * 128)), &p.k_map, 64 * (D_BLOCKS * rank + c),
              k_begin, g, b, BARRIER(K_FULL), L2_FIRST);
        }
        mbarrier_expect(BARRIER(V_FULL), V_BYTES);
        #pragma unroll 1
        for (int c = 0; c < DV_BLOCKS; c++) {
          tma_load_4d(sm + SM_V + (u32)(c * (64 * 128)), &p.v_map, 64 * (DV_BLOCKS * rank + c),
              k_begin, g, b, BARRIER(V_FULL), L2_FIRST);
        }
      }
      #pragma unroll 1
      for (int count = 0; h < h_end; count++) {
        mbarrier_wait(BARRIER(Q_EMPTY), (count & 1) ^ 1);
        mbarrier_expect(BARRIER(Q_FULL), Q_BYTES + KEPT_BYTES);
        #pragma unroll 1
        for (int c = 0; c < D_BLOCKS; c++) {
          tma_load_4d(sm + SM_Q + (u32)(c * (64 * 128)), &p.q_map, 64 * (D_BLOCKS * rank + c), q0,
              h, b, BARRIER(Q_FULL), L2_LAST);
        }
        bulk_load(sm + SM_KEPT, p.kept + 2 * (((i64)b * p.h + h) * padded + q0),
            KEPT_BYTES, BARRIER(Q_FULL));
        mbarrier_wait(BARRIER(DO_EMPTY), (count & 1) ^ 1);
        mbarrier_expect(BARRIER(DO_FULL), DO_BYTES);
        #pragma unroll 1
        for (int c = 0; c < DV_BLOCKS; c++) {
          tma_load_4d(sm + SM_DO + (u32)(c * (64 * 128)), &p.do_map, 64 * (DV_BLOCKS * rank + c),
              q0, h, b, BARRIER(DO_FULL), L2_LAST);
        }
        q0 += BLOCK_Q;
        if (q0 >= row_end) {
          q0 = first_row;
          h++;
        }
      }
    }
  } else if (group == 1) {
    setmaxnreg_inc_200();
    const int q_lane = 2 * (lane % 4);
    const int k_lane = 16 * warp + lane / 4;
    const u32 p_lane = sm + SM_P + 16 * (threadIdx.x % 128), k_rows = matrix_at(sm + SM_K);
    float s[BLOCK_Q / 2], dv[32 * DV_BLOCKS];
    u32 weight[BLOCK_Q / 4];
    zero(dv, 32 * DV_BLOCKS);
    if (h < h_end) { mbarrier_wait(BARRIER(K_FULL), 0); }
    const int slot = 0;
    #pragma unroll 1
    for (int count = 0; h < h_end; count++) {
      mbarrier_wait(BARRIER(Q_FULL), count & 1);
      scores(s, k_rows, matrix_at(sm + SM_Q));
      wait_part(s);
      {
        const u32 parts = sm + SM_S_PARTS + 16 * (threadIdx.x % 128), own = (u32)rank * PART_BYTES;
        mbarrier_wait(BARRIER(S_EMPTY), (count & 1) ^ 1);
        #pragma unroll
        for (int i = 0; i < BLOCK_Q / 8; i++) {
          u32 v[4];
          #pragma unroll
          for (int j = 0; j < 4; j++) { v[j] = as_u32(s[4 * i + j]); }
          sts_u32x4(parts + own + (u32)(2048 * i), v);
        }
        fence_async();
        barrier_sync(3, 128);
        if (threadIdx.x % 128 == 0) {
          mbarrier_expect(BARRIER(S_FULL), (CLUSTER - 1) * PART_BYTES);
          #pragma unroll 1
          for (int i = 1; i < CLUSTER; i++) { bulk_copy_remote(sm + SM_S_PARTS + own, sm
              + SM_S_PARTS + own, PART_BYTES, BARRIER(S_FULL), (rank + i) % CLUSTER); }
        }
        mbarrier_wait(BARRIER(S_FULL), count & 1);
        #pragma unroll
        for (int i = 0; i < BLOCK_Q / 8; i++) {
          float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll
          for (int r = 0; r < CLUSTER; r++) {
            u32 v[4];
            lds_u32x4(v, parts + (u32)(r * PART_BYTES + 2048 * i));
            #pragma unroll
            for (int j = 0; j < 4; j++) { sum[j] += as_f32(v[j]); }
          }
          #pragma unroll
          for (int j = 0; j < 4; j++) { s[4 * i + j] = sum[j]; }
        }
        warp_sync(ALL_LANES);
        mbarrier_arrive_remote_if(BARRIER(S_EMPTY), lane, lane < CLUSTER && lane != rank);
      }
      {
        const u32 kept_tile = sm + SM_KEPT + (u32)(slot) * KEPT_BYTES;
        if (!(q0 + BLOCK_Q <= p.nq && k0 + 64 <= p.nk && p.nq + (k0 + 64) <= p.nk + q0 + 1)) {
          const float hidden = p.scale < 0.0f ? -(NEG_INF) : NEG_INF;
          #pragma unroll
          for (int n = 0; n < N_Q; n++) {
            #pragma unroll
            for (int c = 0; c < 2; c++) {
              const int q = q0 + q_lane + 8 * n + c;
              const int of_row0 = q + p.nk - p.nq;
              #pragma unroll
              for (int r = 0; r < ROWS; r++) {
                const int e = 4 * (N_Q * (r / 2) + n) + r % 2 * 2 + c;
                const int k = k0 + k_lane + 8 * r;
                if (!(q < p.nq && k < p.nk && k <= of_row0)) { s[e] = hidden; }
              }
            }
          }
        }

        // s becomes P^T
        #pragma unroll
        for (int n = 0; n < N_Q; n++) {
          u32 row[4]; // kept and delta of the lane's two queries
          lds_u32x4(row, kept_tile + (u32)(8 * (q_lane + 8 * n)));
          #pragma unroll
          for (int c = 0; c < 2; c++) {
            const float kept = as_f32(row[2 * c]);
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
              const int e = 4 * (N_Q * (r / 2) + n) + r % 2 * 2 + c;
              s[e] = exp2_f32(s[e] * (p.scale * LOG2E) - kept);
            }
          }
        }
        warp_sync(ALL_LANES);
        mbarrier_arrive_if(BARRIER(Q_EMPTY), lane == 0);
      }
      #pragma unroll
      for (int i = 0; i < BLOCK_Q / 4; i++) { weight[i] = pack(s[2 * i], s[2 * i + 1]); }
      #pragma unroll
      for (int i = 0; i < BLOCK_Q / 16; i++) { sts_u32x4(p_lane
          + (u32)(slot * P_BYTES + 2048 * i), weight + 4 * i); }
      warp_sync(ALL_LANES);
      mbarrier_arrive_if(BARRIER(P_FULL + slot), lane == 0);
      mbarrier_wait(BARRIER(DO_FULL), count & 1);
      add_columns_128(dv + 0, weight, matrix_at(sm + SM_DO + 0));
      add_columns_128(dv + 64, weight, matrix_at(sm + SM_DO + 16384));
      wait_values(dv);
      mbarrier_arrive_if(BARRIER(DO_EMPTY), lane == 0);
      q0 += BLOCK_Q;
      if (q0 >= row_end) {
        q0 = first_row;
        h++;
      }
    }
    barrier_sync(1, 256);
    const u32 own_rows = sm + (u32)((16 * warp + lane % 16) * 128);
    #pragma unroll
    for (int i = 0; i < 16; i++) {
      u32 v[4] = {0, 0, 0, 0};
      if (i < 256 / 16) {
        #pragma unroll
        for (int j = 0; j < 4; j++) { v[j] = pack(dv[8 * i + 2 * j], dv[8 * i + 2 * j + 1]); }
      }
      stmatrix_x4(own_rows + SM_V + (u32)(i / 4 * (64 * 128)
          + ((2 * (i % 4) + lane / 16) ^ lane % 8) * 16), v);
    }
    fence_async();
    barrier_sync(3, 128);
    if (warp == 0 && lane == 0) {
      #pragma unroll 1
      for (int c = 0; c < 4; c++) {
        tma_store_4d(&p.dv_map, 64 * (4 * rank + c), k0, g, b, sm + SM_V + (u32)(c * (64 * 128)));
      }
      tma_store_commit();
      tma_store_wait_0();
    }
  } else if (group == 2) {
    setmaxnreg_inc_216();
    const int q_lane = 2 * (lane % 4);
    const u32 p_lane = sm + SM_P + 16 * (threadIdx.x % 128), v_rows = matrix_at(sm + SM_V);
    const u32 ds_lane = (u32)((lane / 16 * 8 + lane % 8) * 128
        + ((2 * warp + lane / 8 % 2) ^ lane % 8) * 16);
    float dp[BLOCK_Q / 2], dk[32 * D_BLOCKS];
    zero(dk, 32 * D_BLOCKS);
    if (h < h_end) { mbarrier_wait(BARRIER(V_FULL), 0); }
    const int slot = 0;
    #pragma unroll 1
    for (int count = 0; h < h_end; count++) {
      mbarrier_wait(BARRIER(DO_FULL), count & 1);
      dots(dp, v_rows, matrix_at(sm + SM_DO));
      wait_part(dp);
      mbarrier_arrive_if(BARRIER(DO_EMPTY), lane == 0);
      {
        const u32 parts = sm + SM_DP_PARTS + 16 * (threadIdx.x % 128),
            own = (u32)rank * PART_BYTES;
        mbarrier_wait(BARRIER(DP_EMPTY), (count & 1) ^ 1);
        #pragma unroll
        for (int i = 0; i < BLOCK_Q / 8; i++) {
          u32 v[4];
          #pragma unroll
          for (int j = 0; j < 4; j++) { v[j] = as_u32(dp[4 * i + j]); }
          sts_u32x4(parts + own + (u32)(2048 * i), v);
        }
        fence_async();
        barrier_sync(2, 128);
        if (threadIdx.x % 128 == 0) {
          mbarrier_expect(BARRIER(DP_FULL), (CLUSTER - 1) * PART_BYTES);
          #pragma unroll 1
          for (int i = 1; i < CLUSTER; i++) { bulk_copy_remote(sm + SM_DP_PARTS + own, sm
              + SM_DP_PARTS + own, PART_BYTES, BARRIER(DP_FULL), (rank + i) % CLUSTER); }
        }
        mbarrier_wait(BARRIER(DP_FULL), count & 1);
        #pragma unroll
        for (int i = 0; i < BLOCK_Q / 8; i++) {
          float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll
          for (int r = 0; r < CLUSTER; r++) {
            u32 v[4];
            lds_u32x4(v, parts + (u32)(r * PART_BYTES + 2048 * i));
            #pragma unroll
            for (int j = 0; j < 4; j++) { sum[j] += as_f32(v[j]); }
          }
          #pragma unroll
          for (int j = 0; j < 4; j++) { dp[4 * i + j] = sum[j]; }
        }
        warp_sync(ALL_LANES);
        mbarrier_arrive_remote_if(BARRIER(DP_EMPTY), lane, lane < CLUSTER && lane != rank);
      }
      float s[BLOCK_Q / 2];
      u32 weight[BLOCK_Q / 4], ds[BLOCK_Q / 4];
      mbarrier_wait(BARRIER(P_FULL + slot), (count & 1));
      #pragma unroll
      for (int i = 0; i < BLOCK_Q / 16; i++) { lds_u32x4(weight + 4 * i, p_lane
          + (u32)(slot * P_BYTES + 2048 * i)); }
      #pragma unroll
      for (int i = 0; i < BLOCK_Q / 4; i++) {
        s[2 * i] = bf16_to_f32((u16)weight[i]);
        s[2 * i + 1] = bf16_to_f32((u16)(weight[i] >> 16));
      }
      const u32 kept_tile = sm + SM_KEPT + (u32)slot * KEPT_BYTES;
      #pragma unroll
      for (int n = 0; n < N_Q; n++) {
        u32 row[4]; // kept and delta of the lane's two queries
        lds_u32x4(row, kept_tile + (u32)(8 * (q_lane + 8 * n)));
        #pragma unroll
        for (int c = 0; c < 2; c++) {
          const float delta = as_f32(row[2 * c + 1]);
          #pragma unroll
          for (int r = 0; r < ROWS; r++) {
            const int e = 4 * (N_Q * (r / 2) + n) + r % 2 * 2 + c;
            dp[e] = s[e] * (dp[e] - delta);
          }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; r++) {
          ds[2 * n + r] = pack(dp[4 * n + 2 * r], dp[4 * n + 2 * r + 1]);
        }
      }
      mbarrier_wait(BARRIER(DS_EMPTY), (count & 1) ^ 1);
      #pragma unroll
      for (int i = 0; i < BLOCK_Q / 16; i++) { stmatrix_x4_trans(sm + SM_DS + ds_lane
          + (u32)(2048 * i), ds + 4 * i); }
      fence_async();
      warp_sync(ALL_LANES);
      mbarrier_arrive_if(BARRIER(DS_FULL), lane == 0);
      mbarrier_wait(BARRIER(Q_FULL), count & 1);
      add_columns_128(dk + 0, ds, matrix_at(sm + SM_Q + 0));
      add_columns_128(dk + 64, ds, matrix_at(sm + SM_Q + 16384));
      wait_keys(dk);
      mbarrier_arrive_if(BARRIER(Q_EMPTY), lane == 0);
      q0 += BLOCK_Q;
      if (q0 >= row_end) {
        q0 = first_row;
        h++;
      }
    }
    barrier_sync(1, 256);
    const u32 own_rows = sm + (u32)((16 * warp + lane % 16) * 128);
    #pragma unroll
    for (int i = 0; i < 16; i++) {
      u32 v[4] = {0, 0, 0, 0};
      if (i < 256 / 16) {
        #pragma unroll
        for (int j = 0; j < 4; j++) { v[j] = pack(dk[8 * i + 2 * j] * p.scale,
            dk[8 * i + 2 * j + 1] * p.scale); }
      }
      stmatrix_x4(own_rows + SM_Q + (u32)(i / 4 * (64 * 128)
          + ((2 * (i % 4) + lane / 16) ^ lane % 8) * 16), v);
    }
    fence_async();
    barrier_sync(2, 128);
    if (warp == 0 && lane == 0) {
      #pragma unroll 1
      for (int c = 0; c < 4; c++) {
        tma_store_4d(&p.dk_map, 64 * (4 * rank + c), k0, g, b, sm + SM_Q + (u32)(c * (64 * 128)));
      }
      tma_store_commit();
      tma_store_wait_0();
    }
  } else {
    setmaxnreg_dec_64();
    if (h < h_end) { mbarrier_wait(BARRIER(K_FULL), 0); }
    #pragma unroll 1
    for (int count = 0; h < h_end; count++) {
      float *sums_of_rows = p.dq_sum + (((i64)b * p.h + h) * padded + q0
          + 16 * warp) / 16 * CHUNKS_D * 128 + 4 * lane;
      mbarrier_wait(BARRIER(DS_FULL), count & 1);
      #pragma unroll 1
      for (int c = 0; c < D_BLOCKS; c++) {
        float dq[32];
        queries(dq, matrix_at(sm + SM_DS), matrix_at(sm + SM_K + (u32)(c * (64 * 128))));
        wait_queries(dq);
        if (c == D_BLOCKS - 1) {
          mbarrier_arrive_if(BARRIER(DS_EMPTY), lane == 0);
        }
        const int chunk = 8 * (D_BLOCKS * rank + c);
        #pragma unroll
        for (int i = 0; i < 8; i++) {
          if (chunk + i < CHUNKS_D) { red_add_f32x4(sums_of_rows + 128 * (chunk + i), dq
              + 4 * i); }
        }
      }
      q0 += BLOCK_Q;
      if (q0 >= row_end) {
        q0 = first_row;
        h++;
      }
    }
  }
  warp_sync(ALL_LANES);
  cluster_sync();
      // what comes from the other blocks, and goes to them, does so while all are there
}

// dQ = scale times its sums; a thread has 8 columns of two rows
extern "C" __global__ void __launch_bounds__(256, 1)
attn_bwd_dq(const __grid_constant__ Params p) {
  const int padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
  grid_wait(); // until the grid before has ended
  const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
  const int h = (int)blockIdx.y, b = (int)blockIdx.z;
  const int row = (int)(at / (D / 8)), chunk = (int)(at % (D / 8)), q = row / 8 * 16 + row % 8;
  if (q < padded) {
    const float *sum = p.dq_sum + (((((i64)b * p.h + h) * padded + q) / 16 * CHUNKS_D
        + chunk) * 32 + q % 8 * 4) * 4;
    u32 low[4], high[4];
    #pragma unroll
    for (int i = 0; i < 4; i++) {
      float x[4];
      ldg_f32x4(x, sum + 4 * i);
      low[i] = pack(x[0] * p.scale, x[1] * p.scale);
      high[i] = pack(x[2] * p.scale, x[3] * p.scale);
    }
    u16 *to = p.dq + (b * p.dq_b + h * p.dq_h + q * p.dq_n) + 8 * chunk;
    if (q < p.nq) { stg_u32x4(to, low); }
    if (q + 8 < p.nq) { stg_u32x4(to + 8 * p.dq_n, high); }
  }
}
