// attn_bwd-bf16-d128-causal.wgmma-q64-k128-s2-w12.sm_90a
//
// Gradients of O = softmax(score(scale Q K^T)) V, from dO.
// spec:   pass=backward head_dim=128 mask=causal
// again:  flashgen emit attn_bwd-bf16-d128-causal.wgmma-q64-k128-s2-w12.sm_90a
// switches: starts_early, stays, background, sections_of_heads
// made by flashgen 0.1.0
//
// zero:   flags
// launch: attn_bwd_dk_dv, grid max(cdiv(nk, 128) * hk * b, min(160, b * h * cdiv(roundup(nq, 64),
//         192))) x 1 x 1, 384 threads, 231632 shared bytes, clusters of 1, 1 a multiprocessor,
//         early
// scratch: kept, b * h * roundup(nq, 64) * 2 floats
// scratch: dq_sum, b * h * roundup(nq, 64) * 128 floats
// scratch: flags, 2 + b * h + b * hk floats
//
// shared memory:
//   SM_K             0  K [D / 64][BLOCK_KV][64], then dK
//   SM_V         32768  V [DV / 64][BLOCK_KV][64], then dV
//   SM_Q         65536  Q [STAGES][D / 64][BLOCK_Q][64]
//   SM_DO        98304  dO [STAGES][DV / 64][BLOCK_Q][64]
//   SM_DS       131072  dS [DS_STAGES][BLOCK_KV / 64][BLOCK_Q][64]
//   SM_PIECES   180224  of rows and sums of dQ [PIECES][PIECE_BYTES]
//   SM_KEPT     229376  what is kept of a row, and delta [STAGES][BLOCK_Q][2], float32
//   SM_BARRIERS 230400  mbarriers: k_full, v_full, q_full [2], do_full [2], rows_empty [2],
//                       ds_full [3], keys_empty, job_full [2], piece_full [6]
//   SM_JOBS     230560  first key, g, b, whether rows see the keys [2]
//   SM_TILES    230592  q0, h, whether it is the last tile, - [STAGES]
//   SM_END      230624  what rounding the base to 1024 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 128 }; // head dim of q and k
enum { DV = 128 }; // head dim of v and o
enum { CHUNKS_D = 16 }; // 16-byte chunks in a row of dQ
enum { CHUNKS_Q = 8 }; // in a row of dS^T
enum { BLOCK_Q = 64 }; // query rows of a tile
enum { BLOCK_KV = 128 }; // keys of a block
enum { STAGES = 2 }; // tiles of Q and of dO in flight
enum { THREADS = 256 }; // of a block of the passes before and behind
enum { SECTION_HEADS = 8 }; // in a section, at most
enum { SECTION_ROWS = 16384 }; // of all heads of a section
enum { M_KV = 1 }; // tiles of 16 keys of a warp
enum { ROWS = 2 }; // keys that a lane has a part of
enum { N_Q = 8 }; // tiles of 8 queries of S^T and dP^T at a time
enum { KEPT_BYTES = 512 }; // of a tile
enum { GROUPS = 2 }; // warpgroups that multiply, of 64 keys each
enum { DS_STAGES = 3 }; // tiles of dS
enum { MOVER_REGISTERS = 40 };
enum { REGISTERS = 232 };
enum { D_COLUMNS = 128 }; // columns of Q and K that are multiplied
enum { DV_COLUMNS = 128 }; // of V and dO
enum { DQ_COLUMNS = 64 }; // of dQ that a warpgroup makes
enum { DQ_STEP = 16384 }; // bytes from K's columns of one warpgroup's dQ to those of the next one
enum { K_BYTES = 32768 }; // of a tile
enum { V_BYTES = 32768 }; // of a tile
enum { Q_BYTES = 16384 }; // of a tile
enum { DO_BYTES = 16384 }; // of a tile
enum { DS_BYTES = 16384 }; // of a tile
enum { UNIT_ROWS = 64 }; // that a warp of the background takes at a time
enum { PIECE_BYTES = 8192 }; // of 16 of them, at most
enum { PIECES = 6 }; // two for each warp of the background
enum { LEAD = 9 };
    // units for each block that what is kept of rows is ahead of dQ, beside a section
enum { SM_K = 0 };
enum { SM_V = 32768 };
enum { SM_Q = 65536 };
enum { SM_DO = 98304 };
enum { SM_DS = 131072 };
enum { SM_PIECES = 180224 };
enum { SM_KEPT = 229376 };
enum { SM_BARRIERS = 230400 };
enum { SM_JOBS = 230560 };
enum { SM_TILES = 230592 };
enum { SM_END = 230624 };

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

DEV float ldg_f32(const float *from) { return *from; }

DEV void stg_f32(float *to, float v) { *to = v; }

DEV void stg_f32x4(float *to, const float *v) {
  const float4 x = {v[0], v[1], v[2], v[3]};
  *(float4 *)to = x;
}

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

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

DEV float exp2_f32(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

DEV float bf16_to_f32(u16 x) { return as_f32((u32)x << 16); }

DEV u32 atomic_add_u32(u32 *to, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(to), "r"(v)
      : "memory");
  return old;
}

DEV void red_release_u32(u32 *to, u32 v) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :: "l"(to), "r"(v) : "memory");
}

DEV u32 load_acquire_u32(const u32 *from) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}

DEV void flag_wait(const u32 *flag, u32 until) {
  asm volatile("{ .reg .pred p; .reg .b32 r; AGAIN: ld.acquire.gpu.global.u32 r, [%0]; "
      "sub.s32 r, r, %1; setp.ge.s32 p, r, 0; @p bra DONE; nanosleep.u32 20; bra AGAIN; DONE: }"
      :: "l"(flag), "r"(until) : "memory");
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

DEV void fence_async_global(void) { asm volatile("fence.proxy.async.global;" ::: "memory"); }

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

DEV void bulk_load(u32 to, const void *from, int bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];"
      :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}

DEV u32 matrix_at(u32 address) {
  return (address & 0x3ffff) >> 4; // in a cluster the block's rank lies above
}

DEV void setmaxnreg_dec_40(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory");
}

DEV void setmaxnreg_inc_232(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" ::: "memory");
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
      "add.u32 a, %32, 1024; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 512; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1026; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 514; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1028; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 516; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1030; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 518; mov.b64 db, {b, hb};\n"
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
      "add.u32 a, %32, 1024; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 512; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1026; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 514; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1028; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 516; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n"
      "add.u32 a, %32, 1030; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 518; mov.b64 db, {b, hb};\n"
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

#define FLOATS_64 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63}"

DEV void add_values(float *d, const u32 *a, u32 b) {
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

DEV void add_keys(float *d, const u32 *a, u32 b) {
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

DEV void rows_of_queries(float *d, u32 a, u32 b) {
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n"
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888; mov.b32 ha, 1073741888;\n"
      "setp.ne.u32 first, 0, 0;\n"
      "wgmma.fence.sync.aligned;\n"
      "add.u32 a, %32, 0; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 67108864; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, first, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 2; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 67108992; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 4; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 67109120; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 6; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 67109248; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 512; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 67109376; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 514; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 67109504; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 516; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 67109632; mov.b64 db, {b, hb};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      FLOATS_32 ", da, db, yes, 1, 1, 0, 1;\n"
      "add.u32 a, %32, 518; mov.b64 da, {a, ha};\n"
      "add.u32 b, %33, 67109760; mov.b64 db, {b, hb};\n"
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

DEV void wait_scores(float *d1) {
  asm volatile("wgmma.wait_group.sync.aligned 1;"
      : "+f"(d1[0]), "+f"(d1[1]), "+f"(d1[2]), "+f"(d1[3]), "+f"(d1[4]), "+f"(d1[5]),
      "+f"(d1[6]), "+f"(d1[7]), "+f"(d1[8]), "+f"(d1[9]), "+f"(d1[10]), "+f"(d1[11]),
      "+f"(d1[12]), "+f"(d1[13]), "+f"(d1[14]), "+f"(d1[15]), "+f"(d1[16]), "+f"(d1[17]),
      "+f"(d1[18]), "+f"(d1[19]), "+f"(d1[20]), "+f"(d1[21]), "+f"(d1[22]), "+f"(d1[23]),
      "+f"(d1[24]), "+f"(d1[25]), "+f"(d1[26]), "+f"(d1[27]), "+f"(d1[28]), "+f"(d1[29]),
      "+f"(d1[30]), "+f"(d1[31]) :: "memory");
}

DEV void wait_dots(float *d1) {
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : "+f"(d1[0]), "+f"(d1[1]), "+f"(d1[2]), "+f"(d1[3]), "+f"(d1[4]), "+f"(d1[5]),
      "+f"(d1[6]), "+f"(d1[7]), "+f"(d1[8]), "+f"(d1[9]), "+f"(d1[10]), "+f"(d1[11]),
      "+f"(d1[12]), "+f"(d1[13]), "+f"(d1[14]), "+f"(d1[15]), "+f"(d1[16]), "+f"(d1[17]),
      "+f"(d1[18]), "+f"(d1[19]), "+f"(d1[20]), "+f"(d1[21]), "+f"(d1[22]), "+f"(d1[23]),
      "+f"(d1[24]), "+f"(d1[25]), "+f"(d1[26]), "+f"(d1[27]), "+f"(d1[28]), "+f"(d1[29]),
      "+f"(d1[30]), "+f"(d1[31]) :: "memory");
}

DEV void wait_queries(float *d1) {
  asm volatile("wgmma.wait_group.sync.aligned 1;"
      : "+f"(d1[0]), "+f"(d1[1]), "+f"(d1[2]), "+f"(d1[3]), "+f"(d1[4]), "+f"(d1[5]),
      "+f"(d1[6]), "+f"(d1[7]), "+f"(d1[8]), "+f"(d1[9]), "+f"(d1[10]), "+f"(d1[11]),
      "+f"(d1[12]), "+f"(d1[13]), "+f"(d1[14]), "+f"(d1[15]), "+f"(d1[16]), "+f"(d1[17]),
      "+f"(d1[18]), "+f"(d1[19]), "+f"(d1[20]), "+f"(d1[21]), "+f"(d1[22]), "+f"(d1[23]),
      "+f"(d1[24]), "+f"(d1[25]), "+f"(d1[26]), "+f"(d1[27]), "+f"(d1[28]), "+f"(d1[29]),
      "+f"(d1[30]), "+f"(d1[31]) :: "memory");
}

DEV void wait_last_queries(float *d1) {
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : "+f"(d1[0]), "+f"(d1[1]), "+f"(d1[2]), "+f"(d1[3]), "+f"(d1[4]), "+f"(d1[5]),
      "+f"(d1[6]), "+f"(d1[7]), "+f"(d1[8]), "+f"(d1[9]), "+f"(d1[10]), "+f"(d1[11]),
      "+f"(d1[12]), "+f"(d1[13]), "+f"(d1[14]), "+f"(d1[15]), "+f"(d1[16]), "+f"(d1[17]),
      "+f"(d1[18]), "+f"(d1[19]), "+f"(d1[20]), "+f"(d1[21]), "+f"(d1[22]), "+f"(d1[23]),
      "+f"(d1[24]), "+f"(d1[25]), "+f"(d1[26]), "+f"(d1[27]), "+f"(d1[28]), "+f"(d1[29]),
      "+f"(d1[30]), "+f"(d1[31]) :: "memory");
}

DEV void wait_all(float *d1, float *d2) {
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
      "+f"(d1[60]), "+f"(d1[61]), "+f"(d1[62]), "+f"(d1[63]), "+f"(d2[0]), "+f"(d2[1]),
      "+f"(d2[2]), "+f"(d2[3]), "+f"(d2[4]), "+f"(d2[5]), "+f"(d2[6]), "+f"(d2[7]),
      "+f"(d2[8]), "+f"(d2[9]), "+f"(d2[10]), "+f"(d2[11]), "+f"(d2[12]), "+f"(d2[13]),
      "+f"(d2[14]), "+f"(d2[15]), "+f"(d2[16]), "+f"(d2[17]), "+f"(d2[18]), "+f"(d2[19]),
      "+f"(d2[20]), "+f"(d2[21]), "+f"(d2[22]), "+f"(d2[23]), "+f"(d2[24]), "+f"(d2[25]),
      "+f"(d2[26]), "+f"(d2[27]), "+f"(d2[28]), "+f"(d2[29]), "+f"(d2[30]), "+f"(d2[31]),
      "+f"(d2[32]), "+f"(d2[33]), "+f"(d2[34]), "+f"(d2[35]), "+f"(d2[36]), "+f"(d2[37]),
      "+f"(d2[38]), "+f"(d2[39]), "+f"(d2[40]), "+f"(d2[41]), "+f"(d2[42]), "+f"(d2[43]),
      "+f"(d2[44]), "+f"(d2[45]), "+f"(d2[46]), "+f"(d2[47]), "+f"(d2[48]), "+f"(d2[49]),
      "+f"(d2[50]), "+f"(d2[51]), "+f"(d2[52]), "+f"(d2[53]), "+f"(d2[54]), "+f"(d2[55]),
      "+f"(d2[56]), "+f"(d2[57]), "+f"(d2[58]), "+f"(d2[59]), "+f"(d2[60]), "+f"(d2[61]),
      "+f"(d2[62]), "+f"(d2[63]) :: "memory");
}

#define BARRIER(number) (sm + SM_BARRIERS + 8 * (number))

typedef struct Params {
  tensor_map q_map; // of q: boxes of 64 rows of 64
  tensor_map k_map; // of k: boxes of 128 rows of 64
  tensor_map v_map; // of v: boxes of 128 rows of 64
  tensor_map do_map; // of dout: boxes of 64 rows of 64
  tensor_map dk_map; // of dk: boxes of 64 rows of 64
  tensor_map dv_map; // of dv: boxes of 64 rows of 64
  tensor_map o_map; // of o: boxes of 16 rows of 64
  tensor_map do_rows_map; // of dout: boxes of 16 rows of 64
  tensor_map dq_map; // of dq: boxes of 16 rows of 64
  const u16 *q; // [b, nq, h, 128] bf16
  i64 q_b, q_n, q_h;
  const u16 *k; // [b, nk, hk, 128] bf16
  i64 k_b, k_n, k_h;
  const u16 *v; // [b, nk, hk, 128] bf16
  i64 v_b, v_n, v_h;
  const u16 *o; // [b, nq, h, 128] bf16
  i64 o_b, o_n, o_h;
  const float *lse; // [b, h, nq] f32
  const u16 *dout; // [b, nq, h, 128] bf16
  i64 dout_b, dout_n, dout_h;
  const float *dlse; // [b, h, nq] f32, or null
  u16 *dq; // [b, nq, h, 128] bf16
  i64 dq_b, dq_n, dq_h;
  u16 *dk; // [b, nk, hk, 128] bf16
  i64 dk_b, dk_n, dk_h;
  u16 *dv; // [b, nk, hk, 128] bf16
  i64 dv_b, dv_n, dv_h;
  float *kept; // scratch
  float *dq_sum; // scratch
  float *flags; // scratch
  int b, h, hk, nq, nk;
  float scale;
} Params;

enum { // the first barrier of each kind
  K_FULL = 0, V_FULL = 1, Q_FULL = 2, DO_FULL = 4, ROWS_EMPTY = 6, DS_FULL = 8,
  KEYS_EMPTY = 11, JOB_FULL = 12, PIECE_FULL = 14,
};

// dK and dV of BLOCK_KV keys of a key/value head: over its query heads, and their rows that see
// the keys.
// What each tile adds to dQ goes to dq_sum: [b, h, tiles of 16 rows, CHUNKS_D, 32 lanes, 4]
extern "C" __global__ void __launch_bounds__(384, 1)
attn_bwd_dk_dv(const __grid_constant__ Params p) {
  const int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x % 128 / 32);
  const int group = (int)shfl_u32(ALL_LANES, threadIdx.x / 128, 0) - 1; // -1: the movers
  const u32 sm = (shared_base() + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(K_FULL + i), 1); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(V_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(Q_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(DO_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(ROWS_EMPTY + i), 8); }
    for (int i = 0; i < 3; i++) { mbarrier_init(BARRIER(DS_FULL + i), 8); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(KEYS_EMPTY + i), 2); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(JOB_FULL + i), 1); }
    for (int i = 0; i < 6; i++) { mbarrier_init(BARRIER(PIECE_FULL + i), 1); }
    fence_barrier_init();
  }
  grid_wait(); // until the grid before has ended
  block_sync();

  if (group < 0) {
    setmaxnreg_dec_40();
    if (warp == 0 && lane == 0) {
      int count = 0; // tiles of rows, of all jobs
      int job_before = -1, awaited = -1;
          // the head of the job before, until that is settled; whose rows are made
      const int key_tiles = cdiv(p.nk, BLOCK_KV), all = key_tiles * p.b * p.hk;
      #pragma unroll 1
      for (int turn = 0;; turn++) {
        const int number = (int)atomic_add_u32((u32 *)p.flags, 1);
        if (number >= all) {
          const u32 none[4] = {0xffffffffu, 0, 0, 0};
          sts_u32x4(sm + SM_JOBS + (u32)(turn % 2 * 16), none);
          mbarrier_arrive(BARRIER(JOB_FULL + turn % 2));
          mbarrier_wait(BARRIER(KEYS_EMPTY), (turn & 1) ^ 1);
          if (job_before >= 0) { red_release_u32((u32 *)p.flags + 2 + p.b * p.h + job_before, 1); }
          job_before = -1;
          break;
        }
        // in sections of heads, of each the tiles that most rows see first, of all its heads in
        // turn
        const int wide = imax(1, imin(SECTION_HEADS, SECTION_ROWS / imax(1, p.nq))),
            section = number / (wide * key_tiles) * wide;
        const int rest = number - section * key_tiles,
            heads_here = imin(wide, p.b * p.hk - section);
        const int k_begin = rest / heads_here * BLOCK_KV, head = section + rest % heads_here;
        const int g = head % p.hk, b = head / p.hk;
        const int heads = p.h / p.hk, padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
        const int row_end = p.nq, first_row = imax(0, p.nq + k_begin - p.nk) / BLOCK_Q * BLOCK_Q;
        int h = g * heads, q0 = first_row;
        const int h_end = first_row < row_end ? h + heads : h;
        if (h >= h_end) {
            // before it is listed: the others, who need nothing for it, could leave it before this
            // looks
          mbarrier_wait(BARRIER(KEYS_EMPTY), (turn & 1) ^ 1);
          if (job_before >= 0) { red_release_u32((u32 *)p.flags + 2 + p.b * p.h + job_before, 1); }
          job_before = -1;
        }
        {
          const u32 words[4] = {(u32)k_begin, (u32)g, (u32)b, (u32)(h < h_end)};
          sts_u32x4(sm + SM_JOBS + (u32)(turn % 2 * 16), words);
          mbarrier_arrive(BARRIER(JOB_FULL + turn % 2));
        }
        #pragma unroll 1
        for (int first = 1; h < h_end; first = 0, count++) {
          const int slot = count % STAGES;
          mbarrier_wait(BARRIER(ROWS_EMPTY + slot), (count / 2 & 1) ^ 1);
          int h_next = h, q_next = q0;
          q_next += BLOCK_Q;
          if (q_next >= row_end) {
            q_next = first_row;
            h_next++;
          }
          const u32 words[4] = {(u32)q0, (u32)h, (u32)(h_next >= h_end), 0};
          sts_u32x4(sm + SM_TILES + (u32)(slot * 16), words);
          const int head = b * p.h + h, units_of_head = padded / UNIT_ROWS;
          if (head != awaited) {
            if ((int)load_acquire_u32((u32 *)p.flags + 2 + head) < units_of_head) {
              mbarrier_wait(BARRIER(KEYS_EMPTY), (turn & 1) ^ 1);
              if (job_before >= 0) { red_release_u32((u32 *)p.flags + 2 + p.b * p.h + job_before,
                  1); }
              job_before = -1;
              flag_wait((u32 *)p.flags + 2 + head, (u32)units_of_head);
            }
            fence_async_global();
            awaited = head;
          }
          mbarrier_expect(BARRIER(Q_FULL + slot), Q_BYTES + KEPT_BYTES);
          tma_load_4d(sm + SM_Q + (u32)slot * Q_BYTES, &p.q_map, 0, q0, h, b,
              BARRIER(Q_FULL + slot), L2_LAST);
          tma_load_4d(sm + SM_Q + (u32)slot * Q_BYTES + 8192, &p.q_map, 64, q0, h, b,
              BARRIER(Q_FULL + slot), L2_LAST);
          bulk_load(sm + SM_KEPT + (u32)slot * KEPT_BYTES, p.kept
              + 2 * (((i64)b * p.h + h) * padded + q0), KEPT_BYTES, BARRIER(Q_FULL + slot));
          if (first) {
            mbarrier_wait(BARRIER(KEYS_EMPTY), (turn & 1) ^ 1);
            mbarrier_expect(BARRIER(K_FULL), K_BYTES);
            tma_load_4d(sm + SM_K, &p.k_map, 0, k_begin, g, b, BARRIER(K_FULL), L2_FIRST);
            tma_load_4d(sm + SM_K + 16384, &p.k_map, 64, k_begin, g, b, BARRIER(K_FULL), L2_FIRST);
            mbarrier_expect(BARRIER(V_FULL), V_BYTES);
            tma_load_4d(sm + SM_V, &p.v_map, 0, k_begin, g, b, BARRIER(V_FULL), L2_FIRST);
            tma_load_4d(sm + SM_V + 16384, &p.v_map, 64, k_begin, g, b, BARRIER(V_FULL), L2_FIRST);
          }
          mbarrier_expect(BARRIER(DO_FULL + slot), DO_BYTES);
          tma_load_4d(sm + SM_DO + (u32)slot * DO_BYTES, &p.do_map, 0, q0, h, b,
              BARRIER(DO_FULL + slot), L2_LAST);
          tma_load_4d(sm + SM_DO + (u32)slot * DO_BYTES + 8192, &p.do_map, 64, q0, h, b,
              BARRIER(DO_FULL + slot), L2_LAST);
          if (first) {
            if (job_before >= 0) { red_release_u32((u32 *)p.flags + 2 + p.b * p.h + job_before,
                1); }
            job_before = -1;
          }
          h = h_next;
          q0 = q_next;
        }
        job_before = b * p.hk + g;
      }
    }
    if (warp > 0) {
      const int worker = warp - 1, own = lane;
      const u32 places = sm + SM_PIECES + (u32)(worker * (2 * PIECE_BYTES));
      #pragma unroll 1
      for (int ticket = 0, is_behind = 0;; is_behind = !is_behind) {
        if (!is_behind) {
          u32 dealt = 0;
          if (own == 0) { dealt = atomic_add_u32((u32 *)p.flags + 1, 1); }
          ticket = (int)shfl_u32(ALL_LANES, dealt, 0);
        }
        const int lane = (int)shfl_u32(ALL_LANES, (u32)own, own),
            rows = (int)shfl_u32(ALL_LANES, (u32)p.nq, 0);
        const int units_of_head = cdiv(rows, BLOCK_Q) * (BLOCK_Q / UNIT_ROWS),
            all = units_of_head * p.h * p.b;
        const int lead = imin(all, imax(1,
            imin(SECTION_HEADS, SECTION_ROWS / imax(1, p.nq))) * (p.h / p.hk) * units_of_head
            + LEAD * (int)gridDim.x);
        if (ticket >= all + lead) { break; }
        const int unit = is_behind ? ticket - lead : ticket;
        if (unit < 0 || unit >= all) { continue; }
        const int head = unit / units_of_head;
        const int first_row = unit % units_of_head * UNIT_ROWS, h = head % p.h, b = head / p.h;
        if (is_behind) {
          if (first_row < p.nq) {
            if (lane == 0) {
              flag_wait((u32 *)p.flags + 2 + head, (u32)units_of_head);
              flag_wait((u32 *)p.flags + 2 + p.b * p.h + head / (p.h / p.hk),
                  (u32)cdiv(p.nk, BLOCK_KV));
              fence_async_global();
            }
            #pragma unroll 1
            for (int i = -2; i < UNIT_ROWS / 16; i++) {
              if (i >= 0) {
                const u32 piece = places + (u32)(i % 2 * PIECE_BYTES);
                const int q0 = first_row + 16 * i;
                mbarrier_wait(BARRIER(PIECE_FULL + 2 * worker + i % 2), (i / 2 & 1));
                #pragma unroll 1
                for (int c = 0; c < 16; c += 4) {
                  u32 words[8];
                  #pragma unroll
                  for (int j = 0; j < 4; j++) {
                    u32 x[4] = {0, 0, 0, 0};
                    if (c + j < CHUNKS_D) { lds_u32x4(x, piece
                        + (u32)((c + j) * 512 + lane * 16)); }
                    words[2 * j] = pack(as_f32(x[0]) * p.scale, as_f32(x[1]) * p.scale);
                    words[2 * j + 1] = pack(as_f32(x[2]) * p.scale, as_f32(x[3]) * p.scale);
                  }
                  warp_sync(ALL_LANES);
                  const u32 row = piece + (u32)(c / 8 * (8 * 512) + lane % 16 * 128);
                  #pragma unroll
                  for (int j = 0; j < 2; j++) { stmatrix_x4(row
                      + (u32)(((c % 8 + 2 * j + lane / 16) ^ lane % 8) * 16), words + 4 * j); }
                }
                fence_async();
                warp_sync(ALL_LANES);
                if (lane == 0) {
                  tma_store_4d(&p.dq_map, 0, q0, h, b, piece + 0);
                  tma_store_4d(&p.dq_map, 64, q0, h, b, piece + 4096);
                  tma_store_commit();
                }
                warp_sync(ALL_LANES);
              }
              if (i + 2 < UNIT_ROWS / 16 && lane == 0) {
                tma_store_wait_read_0();
                mbarrier_expect(BARRIER(PIECE_FULL + 2 * worker + (i + 2) % 2), CHUNKS_D * 512);
                bulk_load(places + (u32)((i + 2) % 2 * PIECE_BYTES), p.dq_sum
                    + ((i64)unit * UNIT_ROWS + 16 * (i + 2)) * (8 * CHUNKS_D), CHUNKS_D * 512,
                    BARRIER(PIECE_FULL + 2 * worker + (i + 2) % 2));
              }
            }
          }
        } else {
          float *sums = p.dq_sum + (i64)unit * (UNIT_ROWS * 8 * CHUNKS_D) + 4 * lane;
          const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll 8
          for (int i = 0; i < UNIT_ROWS * CHUNKS_D / 16; i++) { stg_f32x4(sums + 128 * i, zeros); }
          #pragma unroll 1
          for (int i = -2; i < UNIT_ROWS / 16; i++) {
            if (i >= 0) {
              const u32 piece = places + (u32)(i % 2 * PIECE_BYTES);
              const int q0 = first_row + 16 * i;
              const int q = q0 + lane / 2, first = q < p.nq && lane % 2 == 0;
              const i64 row = (i64)head * p.nq + q;
              const float lse_of_row = first ? ldg_f32(p.lse + row) : NEG_INF;
              const float dlse = first && p.dlse ? ldg_f32(p.dlse + row) : 0.0f;
              float dot = 0.0f;
              mbarrier_wait(BARRIER(PIECE_FULL + 2 * worker + i % 2), (i / 2 & 1));
              #pragma unroll 1
              for (int c = 0; c < 8; c++) {
                const u32 chunk = piece + (u32)(c / 4 * (16 * 128) + lane / 2 * 128
                    + ((4 * (lane % 2) + c % 4) ^ lane / 2 % 8) * 16);
                u32 o[4], d_o[4];
                lds_u32x4(o, chunk);
                lds_u32x4(d_o, chunk + 4096);
                dot += dot_u32x4(o, d_o);
              }
              dot += shfl_xor(ALL_LANES, dot, 1);
              if (lane % 2 == 0) {
                float *kept = p.kept + 2 * ((i64)unit * UNIT_ROWS + (16 * i + lane / 2));
                stg_f32(kept, lse_of_row == NEG_INF ? -NEG_INF : lse_of_row * LOG2E);
                stg_f32(kept + 1, dot - dlse);
              }
              warp_sync(ALL_LANES);
            }
            if (i + 2 < UNIT_ROWS / 16 && lane == 0) {
              tma_store_wait_read_0();
              mbarrier_expect(BARRIER(PIECE_FULL + 2 * worker + (i + 2) % 2), 8192);
              tma_load_4d(places + (u32)((i + 2) % 2 * PIECE_BYTES) + 0, &p.o_map, 0, first_row
                  + 16 * (i + 2), h, b, BARRIER(PIECE_FULL + 2 * worker + (i + 2) % 2), L2_FIRST);
              tma_load_4d(places + (u32)((i + 2) % 2 * PIECE_BYTES) + 2048, &p.o_map, 64,
                  first_row + 16 * (i + 2), h, b,
                  BARRIER(PIECE_FULL + 2 * worker + (i + 2) % 2), L2_FIRST);
              tma_load_4d(places + (u32)((i + 2) % 2 * PIECE_BYTES) + 4096, &p.do_rows_map, 0,
                  first_row + 16 * (i + 2), h, b,
                  BARRIER(PIECE_FULL + 2 * worker + (i + 2) % 2), L2_FIRST);
              tma_load_4d(places + (u32)((i + 2) % 2 * PIECE_BYTES) + 6144, &p.do_rows_map, 64,
                  first_row + 16 * (i + 2), h, b,
                  BARRIER(PIECE_FULL + 2 * worker + (i + 2) % 2), L2_FIRST);
            }
          }
          if (lane == 0) { red_release_u32((u32 *)p.flags + 2 + head, 1); }
        }
      }
      tma_store_wait_0();
    }
  } else {
    setmaxnreg_inc_232();
    const int k_lane = 16 * warp + lane / 4, q_lane = 2 * (lane % 4);
    const u32 k_rows = matrix_at(sm + SM_K + (u32)(group * (64 * 128))),
        v_rows = matrix_at(sm + SM_V + (u32)(group * (64 * 128)));
    const u32 ds_lane = sm + SM_DS + (u32)(group * (BLOCK_Q * 128)
        + (lane / 16 * 8 + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ lane % 8) * 16);
    const int dq_row = 16 * warp, dq_chunk = group * (DQ_COLUMNS / 8);
    const u32 ds_rows = sm + SM_DS, k_columns = matrix_at(sm + SM_K + (u32)group * DQ_STEP);
    int count = 0, loads = 0; // tiles of rows, and of keys, of all jobs
    #pragma unroll 1
    for (int turn = 0;; turn++) {
      u32 job[4];
      mbarrier_wait(BARRIER(JOB_FULL + turn % 2), (turn / 2 & 1));
      lds_u32x4(job, sm + SM_JOBS + (u32)(turn % 2 * 16));
      const int k_begin = (int)shfl_u32(ALL_LANES, job[0], 0),
          g = (int)shfl_u32(ALL_LANES, job[1], 0), b = (int)shfl_u32(ALL_LANES, job[2], 0),
          has_rows = (int)shfl_u32(ALL_LANES, job[3], 0);
      if (k_begin < 0) { break; }
      const int padded = cdiv(p.nq, BLOCK_Q) * BLOCK_Q;
      const int k0 = k_begin + 64 * group;
      float dk[D_COLUMNS / 2], dv[DV_COLUMNS / 2];
      zero(dk, D_COLUMNS / 2);
      zero(dv, DV_COLUMNS / 2);
      float *sums_before = p.dq_sum;
          // of dQ, where the tile before has them: ready when its products are
      const int first = count;
      if (has_rows) { mbarrier_wait(BARRIER(K_FULL), loads & 1); }
      #pragma unroll 1
      for (int is_last = !has_rows; !is_last; count++) {
        const int slot = count % STAGES, ds_slot = count % DS_STAGES;
        const u32 q_tile = matrix_at(sm + SM_Q + (u32)slot * Q_BYTES),
            do_tile = matrix_at(sm + SM_DO + (u32)slot * DO_BYTES);
        const u32 kept_tile = sm + SM_KEPT + (u32)slot * KEPT_BYTES;
        u32 weight[BLOCK_Q / 4], ds[BLOCK_Q / 4];
        mbarrier_wait(BARRIER(Q_FULL + slot), (count / 2 & 1));
        float s[4 * N_Q], dp[4 * N_Q];
        scores(s, k_rows, q_tile);
        u32 words[4];
        lds_u32x4(words, sm + SM_TILES + (u32)(slot * 16));
        const int q0 = (int)words[0], h = (int)words[1];
        is_last = (int)words[2];
        if (count == first) { mbarrier_wait(BARRIER(V_FULL), loads & 1); }
        mbarrier_wait(BARRIER(DO_FULL + slot), (count / 2 & 1));
        dots(dp, v_rows, do_tile);
        wait_scores(s);
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
        wait_dots(dp);
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
            weight[2 * n + r] = pack(s[4 * n + 2 * r], s[4 * n + 2 * r + 1]);
            ds[2 * n + r] = pack(dp[4 * n + 2 * r], dp[4 * n + 2 * r + 1]);
          }
        }
        #pragma unroll
        for (int i = 0; i < BLOCK_Q / 16; i++) {
          stmatrix_x4_trans(ds_lane + (u32)(ds_slot * DS_BYTES + 2048 * i), ds + 4 * i);
        }

        // dV += P^T dO, dQ of the tile before, dK += dS^T Q
        add_values(dv, weight, do_tile);
        fence_async();
        warp_sync(ALL_LANES);
        mbarrier_arrive_if(BARRIER(DS_FULL + ds_slot), lane == 0);

        if (count > first) {
          const int before = (count - 1) % DS_STAGES;
          mbarrier_wait(BARRIER(DS_FULL + before), ((count - 1) / 3 & 1));
          float dq[DQ_COLUMNS / 2];
          rows_of_queries(dq, matrix_at(ds_rows + (u32)(before * DS_BYTES)), k_columns);
          add_keys(dk, ds, q_tile);
          wait_queries(dq);
          #pragma unroll
          for (int i = 0; i < DQ_COLUMNS / 8; i++) {
            if (dq_chunk + i < CHUNKS_D) { red_add_f32x4(sums_before + 128 * i, dq + 4 * i); }
          }
        } else {
          add_keys(dk, ds, q_tile);
        }
        wait_all(dk, dv);
        mbarrier_arrive_if(BARRIER(ROWS_EMPTY + slot), lane == 0);
        sums_before = p.dq_sum + (((((i64)b * p.h + h) * padded + q0 + dq_row) / 16) * CHUNKS_D
            + dq_chunk) * 128 + 4 * lane;
      }
      if (has_rows) {
        loads++;
        const int before = (count - 1) % DS_STAGES;
        mbarrier_wait(BARRIER(DS_FULL + before), ((count - 1) / 3 & 1));
        float dq[DQ_COLUMNS / 2];
        rows_of_queries(dq, matrix_at(ds_rows + (u32)(before * DS_BYTES)), k_columns);
        wait_last_queries(dq);
        #pragma unroll
        for (int i = 0; i < DQ_COLUMNS / 8; i++) {
          if (dq_chunk + i < CHUNKS_D) { red_add_f32x4(sums_before + 128 * i, dq + 4 * i); }
        }
      }

      // dK and dV leave by the shared memory of K and V, which all have read by then
      barrier_sync(1, 256);
      const int own_lane = (int)shfl_u32(ALL_LANES, (u32)lane, lane);
          // places made of it are made here, not before all jobs
      const u32 own_rows = sm + (u32)((64 * group + 16 * warp + own_lane % 16) * 128);
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        u32 v[4] = {0, 0, 0, 0};
        if (i < DV_COLUMNS / 16) {
          #pragma unroll
          for (int j = 0; j < 4; j++) { v[j] = pack(dv[8 * i + 2 * j], dv[8 * i + 2 * j + 1]); }
        }
        stmatrix_x4(own_rows + SM_V + (u32)(i / 4 * (BLOCK_KV * 128)
            + ((2 * (i % 4) + own_lane / 16) ^ own_lane % 8) * 16), v);
      }
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        u32 v[4] = {0, 0, 0, 0};
        if (i < D_COLUMNS / 16) {
          #pragma unroll
          for (int j = 0; j < 4; j++) { v[j] = pack(dk[8 * i + 2 * j] * p.scale,
              dk[8 * i + 2 * j + 1] * p.scale); }
        }
        stmatrix_x4(own_rows + SM_K + (u32)(i / 4 * (BLOCK_KV * 128)
            + ((2 * (i % 4) + own_lane / 16) ^ own_lane % 8) * 16), v);
      }
      fence_async();
      barrier_sync(2 + group, 128);
      if (warp == 0 && lane == 0) {
        tma_store_4d(&p.dv_map, 0, k0, g, b, sm + SM_V + (u32)(group * (64 * 128)));
        tma_store_4d(&p.dv_map, 64, k0, g, b, sm + SM_V + (u32)(group * (64 * 128))
            + 1 * (BLOCK_KV * 128));
        tma_store_4d(&p.dk_map, 0, k0, g, b, sm + SM_K + (u32)(group * (64 * 128)));
        tma_store_4d(&p.dk_map, 64, k0, g, b, sm + SM_K + (u32)(group * (64 * 128))
            + 1 * (BLOCK_KV * 128));
        tma_store_commit();
        tma_store_wait_read_0();
        mbarrier_arrive(BARRIER(KEYS_EMPTY));
      }
    }
    if (warp == 0 && lane == 0) { tma_store_wait_0(); }
  }
}
