// attn_fwd-bf16-d128-causal-slices.wgmma-q192-k64-s2-w16.sm_90a
//
// O = softmax(score(scale Q K^T)) V, and lse of each row.
// spec:   head_dim=128 mask=causal slices=true
// again:  flashgen emit attn_fwd-bf16-d128-causal-slices.wgmma-q192-k64-s2-w16.sm_90a
// switches: turns, two_sums_a_row, slices_walked_ahead, slices_before_by_lanes, claims
// made by flashgen 0.1.0
//
// launch: attn_slices_row_slices, grid cdiv(nq, 192) x 1 x 1, 256 threads, 0 shared bytes, early
// launch: attn_fwd, grid cdiv(nq, 192) * h * b x 1 x 1, 512 threads, 165680 shared bytes, 1 a
//         multiprocessor, early
// scratch: claims, 2 floats
// scratch: row_slices, cdiv(nq, 192) * 2 * cdiv(slices, 32) floats
//
// shared memory:
//   SM_Q             0  Q [Q_SLOTS][D / 64][64][64], then O
//   SM_K         98304  K [stages][D / 64][BLOCK_KV][64]
//   SM_V        131072  V [stages][DV / 64][BLOCK_KV][64]
//   SM_BARRIERS 163840  Q full [2][GROUPS], Q empty, O full [Q_SLOTS]; K full, empty, V full,
//                       empty [stages]; job full, empty [2]; claim; record full, empty [RECORDS]
//   SM_JOBS     164224  q0, h, b, g, first and last k0, -, - [2]
//   SM_RECORDS  164288  slice, k0, head, and who sees it and the next one, of each tile of keys
//                       [RECORDS]
//   SM_END      164672  what rounding the base to 1024 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 128 }; // head dim of q and k
enum { DV = 128 }; // head dim of v and o
enum { BLOCK_Q = 192 }; // query rows of a block
enum { BLOCK_KV = 64 }; // keys of a tile
enum { GROUPS = 3 }; // warpgroups that multiply, of 64 rows each
enum { STAGES = 2 }; // tiles of K and of V in flight
enum { Q_SLOTS = 6 }; // of 64 rows of Q
enum { INPUT_STAGES = 0 }; // of an input of the score
enum { CLAIMED = 1 }; // 0: blocks take tiles of rows in turn
enum { INPUT_COLUMNS = 64 }; // side by side of it
enum { JOB_BYTES = 32 }; // of what is known of a tile of rows
enum { MOVER_REGISTERS = 32 };
enum { REGISTERS = 160 };
enum { D_STEPS = 128 }; // columns of Q and K that are multiplied
enum { DV_COLUMNS = 128 }; // columns of O
enum { Q_BYTES = 16384 }; // of a warpgroup's Q
enum { K_BYTES = 16384 }; // of a tile
enum { V_BYTES = 16384 }; // of a tile
enum { RECORDS = 8 }; // of tiles of keys that slices show
enum { SLICE_THREADS = 256 }; // of a block that makes a tile's list of slices
enum { SM_Q = 0 };
enum { SM_K = 98304 };
enum { SM_V = 131072 };
enum { SM_BARRIERS = 163840 };
enum { SM_JOBS = 164224 };
enum { SM_RECORDS = 164288 };
enum { SM_END = 164672 };

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

DEV u32 ldg_u32(const void *from) { return *(const u32 *)from; }

DEV void stg_u32(void *to, u32 v) { *(u32 *)to = v; }

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

DEV u32 shfl_u32(u32 lanes, u32 v, int from) {
  u32 r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;" : "=r"(r) : "r"(v), "r"(from), "r"(lanes));
  return r;
}

DEV u32 ballot(u32 lanes, int predicate) {
  u32 r;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
      : "=r"(r) : "r"(predicate), "r"(lanes));
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

DEV int first_bit(u32 bits) { return __ffs((int)bits) - 1; }

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

DEV void setmaxnreg_dec_32(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 32;" ::: "memory");
}

DEV void setmaxnreg_inc_160(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 160;" ::: "memory");
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

// Slice `number` of a launch: its rows [q, q + nq) see the keys of [k, k + nk) that are low to
// high behind them.
typedef struct token_slice {
  int number, q, nq, k, nk, low, high;
  int is_shared; // in a tile: an earlier slice may show a pair of it
} token_slice;

#define NO_LIST ((const float *)0)

// Bit i of a tile's list, of the first half of its words or the second one.
DEV int slice_bit(const float *shown, int slices, int half, int i) {
  return ldg_u32(shown + half * cdiv(slices, 32) + i / 32) >> i % 32 & 1;
}

// The end of a range, cut to the tokens that there are.
DEV int token_at(const int *end, int tokens) {
  return imin(imax((int)ldg_u32(end), 0), tokens);
}

// Slice i of the launch, cut to its tokens; behind the last one a slice without any. shown: the
// list of a tile, NULL: of none.
DEV token_slice slice_at(const int *q_ranges, const int *k_ranges, const int *kinds, int nq,
    int nk, int slices, const float *shown, int i) {
  token_slice slice = {i, 0, 0, 0, 0, -(1 << 30), 1 << 30, 0};
  if (i >= slices) { return slice; }
  slice.q = token_at(q_ranges + 2 * i, nq);
  slice.k = token_at(k_ranges + 2 * i, nk);
  slice.nq = imax(0, token_at(q_ranges + 2 * i + 1, nq) - slice.q);
  slice.nk = imax(0, token_at(k_ranges + 2 * i + 1, nk) - slice.k);
  const u32 kind = kinds ? ldg_u32(kinds + i) : 0;
  if (kind & 1) { slice.high = slice.k - slice.q + slice.nk - slice.nq; }
  if (kind & 2) { slice.low = slice.k - slice.q; }
  if (slice.low > slice.high) { slice.nq = 0; } // more rows than keys, of kind 3
  if (shown) { slice.is_shared = slice_bit(shown, slices, 1, i); }
  return slice;
}

DEV int slice_has_row(token_slice s, int q) { return (u32)(q - s.q) < (u32)s.nq; }

// The first key that rows from q0 on may see, of which the slice has some, and the end of those
// that rows up to q1 may see.
DEV int slice_first_key(token_slice s, int q0) {
  return imax(s.k, imax(q0, s.q) + s.low);
}

DEV int slice_key_end(token_slice s, int q1) {
  return imin(s.k + s.nk, imin(q1, s.q + s.nq) + s.high);
}

// The start of the tile of `size` keys that key `first` lies in. Tiles lie side by side from
// `begin` on, or from the group of 8 keys that
// begins there.
DEV int tile_from(int begin, int first, int size) {
  begin -= begin % 8;
  return begin + imax(0, first - begin) / size * size;
}

// The columns of a lane, as columns_below has them from key `from` on, that the slice shows row q.
DEV u32 slice_columns(token_slice s, int q, int from) {
  const u32 seen = columns_below(slice_key_end(s, q
      + 1) - from) & ~columns_below(slice_first_key(s, q) - from);
  return slice_has_row(s, q) ? seen : 0;
}

// Whether it shows a pair of rows [q0, q1) and keys [k0, k1).
DEV int slice_shows_some(token_slice s, int q0, int q1, int k0, int k1) {
  const int has_rows = imax(q0, s.q) < imin(q1, s.q + s.nq);
  return has_rows && imax(k0, slice_first_key(s, q0)) < imin(k1, slice_key_end(s, q1));
}

// Whether it shows all of them, and no earlier slice does one.
DEV int slice_shows_all(token_slice s, int q0, int q1, int k0, int k1) {
  const int has_all = s.q <= q0 && q1 <= s.q + s.nq && s.k <= k0 && k1 <= s.k + s.nk;
  return has_all && !s.is_shared && s.low <= k0 - (q1 - 1) && k1 - 1 - q0 <= s.high;
}

// The first slice from number `from` on that shows something in the tile, `slices` where there is
// none. All lanes of a warp ask.
DEV int next_slice(const float *shown, int slices, int from) {
  const int lane = (int)threadIdx.x % 32, words = cdiv(slices, 32);
  for (int first = from / 32; first < words; first += 32) {
    u32 word = first + lane < words ? ldg_u32(shown + first + lane) : 0;
    if (first + lane == from / 32) { word &= ALL_LANES << from % 32; }
    const u32 has = ballot(ALL_LANES, word != 0);
    if (has != 0) {
      const int at = first_bit(has);
      return (first + at) * 32 + first_bit(shfl_u32(ALL_LANES, word, at));
    }
  }
  return slices;
}

// A slice to shared memory, 32 bytes, and from there.
DEV void put_slice(u32 to, token_slice s) {
  const u32 own[4] = {(u32)s.number, (u32)s.q, (u32)s.nq, (u32)s.k};
  const u32 other[4] = {(u32)s.nk, (u32)s.low, (u32)s.high, (u32)s.is_shared};
  sts_u32x4(to, own);
  sts_u32x4(to + 16, other);
}

DEV token_slice take_slice(u32 from) {
  u32 own[4], other[4];
  lds_u32x4(own, from);
  lds_u32x4(other, from + 16);
  const token_slice slice = {(int)own[0], (int)own[1], (int)own[2], (int)own[3],
    (int)other[0], (int)other[1], (int)other[2], (int)other[3]};
  return slice;
}

// F of row 0's pairs of scores, G of row 1's, in turn: x of P, the scores, a sum, the first one's
// column.
#define PAIRS(F, G) \
  F(x0, s0, s1, sum00, 0) G(x1, s2, s3, sum10, 0) F(x2, s4, s5, sum01, 8) \
  G(x3, s6, s7, sum11, 8) F(x4, s8, s9, sum00, 16) G(x5, s10, s11, sum10, 16) \
  F(x6, s12, s13, sum01, 24) G(x7, s14, s15, sum11, 24) F(x8, s16, s17, sum00, 32) \
  G(x9, s18, s19, sum10, 32) F(x10, s20, s21, sum01, 40) G(x11, s22, s23, sum11, 40) \
  F(x12, s24, s25, sum00, 48) G(x13, s26, s27, sum10, 48) F(x14, s28, s29, sum01, 56) \
  G(x15, s30, s31, sum11, 56)

// F of each of row 0's pairs of scores.
#define ROW0_PAIRS(F) \
  F(x0, s0, s1, sum00, 0) F(x2, s4, s5, sum01, 8) F(x4, s8, s9, sum00, 16) \
  F(x6, s12, s13, sum01, 24) F(x8, s16, s17, sum00, 32) F(x10, s20, s21, sum01, 40) \
  F(x12, s24, s25, sum00, 48) F(x14, s28, s29, sum01, 56)

// F of each of row 1's pairs of scores.
#define ROW1_PAIRS(F) \
  F(x1, s2, s3, sum10, 0) F(x3, s6, s7, sum11, 8) F(x5, s10, s11, sum10, 16) \
  F(x7, s14, s15, sum11, 24) F(x9, s18, s19, sum10, 32) F(x11, s22, s23, sum11, 40) \
  F(x13, s26, s27, sum10, 48) F(x15, s30, s31, sum11, 56)

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

#define FLOATS_32 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

#define scores(d, a, b) \
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
      "add.u32 a, %32, 512; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 512; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 514; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 514; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 516; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 516; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
      FLOATS_32 ", da, db, yes, 1, 1, 0, 0;\n" \
      "add.u32 a, %32, 518; mov.b64 da, {a, ha};\n" \
      "add.u32 b, %33, 518; mov.b64 db, {b, hb};\n" \
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

#define FLOATS_64 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63}"

#define values(d, a, b) \
  asm volatile("{ .reg .b64 da, db; .reg .b32 a, b, ha, hb; .reg .pred yes, first;\n" \
      "setp.eq.u32 yes, 0, 0; mov.b32 hb, 1073741888;\n" \
      "wgmma.fence.sync.aligned;\n" \
      "add.u32 b, %80, 33554432; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " \
      FLOATS_64 ", {%64, %65, %66, %67}, db, yes, 1, 1, 1;\n" \
      "add.u32 b, %80, 33554560; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " \
      FLOATS_64 ", {%68, %69, %70, %71}, db, yes, 1, 1, 1;\n" \
      "add.u32 b, %80, 33554688; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " \
      FLOATS_64 ", {%72, %73, %74, %75}, db, yes, 1, 1, 1;\n" \
      "add.u32 b, %80, 33554816; mov.b64 db, {b, hb};\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " \
      FLOATS_64 ", {%76, %77, %78, %79}, db, yes, 1, 1, 1;\n" \
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
      "+f"(d##60), "+f"(d##61), "+f"(d##62), "+f"(d##63) \
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
      "+f"(d1##30), "+f"(d1##31) :: "memory")

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
      "+f"(d2##58), "+f"(d2##59), "+f"(d2##60), "+f"(d2##61), "+f"(d2##62), \
          "+f"(d2##63) :: "memory")

#define CLEAR_P() \
  x0 = 0; x1 = 0; x2 = 0; x3 = 0; x4 = 0; x5 = 0; x6 = 0; x7 = 0; x8 = 0; x9 = 0; x10 = 0; \
  x11 = 0; x12 = 0; x13 = 0; x14 = 0; x15 = 0;

#define BARRIER(number) (sm + SM_BARRIERS + 8 * (number))

// A score that the mask hides.
#define HIDE_ROW0_ONE(score, column) \
  if (!((k_lane + column) < p.nk && (seen0 & COLUMN_BIT(column)) != 0 \
      && ((k_lane + column) - slice.k <= of_row0))) { score = NEG_INF; }

#define HIDE_ROW0(x, a, b, sum, column) \
  { \
    HIDE_ROW0_ONE(a, column) \
    HIDE_ROW0_ONE(b, (column + 1)) \
  }

// A score that the mask hides.
#define HIDE_ROW1_ONE(score, column) \
  if (!((k_lane + column) < p.nk && (seen1 & COLUMN_BIT(column)) != 0 \
      && ((k_lane + column) - slice.k <= of_row0))) { score = NEG_INF; }

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
  tensor_map v_map; // of v: boxes of 64 rows of 64
  tensor_map o_map; // of o: boxes of 64 rows of 64
  const u16 *q; // [b, nq, h, 128] bf16
  i64 q_b, q_n, q_h;
  const u16 *k; // [b, nk, hk, 128] bf16
  i64 k_b, k_n, k_h;
  const u16 *v; // [b, nk, hk, 128] bf16
  i64 v_b, v_n, v_h;
  const int *q_ranges; // [slices, 2] i32
  const int *k_ranges; // [slices, 2] i32
  const int *kinds; // [slices] i32, or null
  u16 *o; // [b, nq, h, 128] bf16
  i64 o_b, o_n, o_h;
  float *lse; // [b, h, nq] f32, or null
  float *claims; // scratch
  float *row_slices; // scratch
  int b, h, hk, nq, nk, slices;
  float scale;
} Params;

// which slices show something in each tile of rows, and which of them may share pairs of it with
// an earlier one
extern "C" __global__ void __launch_bounds__(256, 1)
attn_slices_row_slices(const __grid_constant__ Params p) {
  grid_wait();
  const int lane = (int)threadIdx.x % 32, words = cdiv(p.slices, 32);
  const int first = (int)blockIdx.x * BLOCK_Q, end = imin(first + BLOCK_Q, p.nq);
  float *shown = p.row_slices + (i64)blockIdx.x * 2 * words;
  for (int word = (int)threadIdx.x / 32; word < words; word += SLICE_THREADS / 32) {
    const token_slice slice = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk, p.slices,
        NO_LIST, 32 * word + lane);
    const u32 bits = ballot(ALL_LANES, imax(first, slice.q) < imin(end, slice.q + slice.nq)
        && slice_first_key(slice, first) < slice_key_end(slice, end));
    if (lane == 0) { stg_u32(shown + word, bits); }
  }
  block_sync();
  for (int word = (int)threadIdx.x / 32; word < words; word += SLICE_THREADS / 32) {
    const int number = 32 * word + lane;
    int is_shared = 0;
    if (number < p.slices && slice_bit(shown, p.slices, 0, number)) {
      const token_slice slice = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk, p.slices,
          NO_LIST, number);
      for (int of = 0; of <= word && !is_shared; of++) {
        u32 rest = ldg_u32(shown + of);
        if (of == word) { rest &= (1u << lane) - 1; }
        for (; rest != 0 && !is_shared; rest &= rest - 1) {
          const token_slice before = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk,
              p.slices, NO_LIST, 32 * of + first_bit(rest));
          is_shared = imax(imax(first, slice.q),
              imax(first, before.q)) < imin(imin(end, slice.q + slice.nq),
              imin(end, before.q + before.nq)) &&
          imax(slice_first_key(slice, first),
              slice_first_key(before, first)) < imin(slice_key_end(slice, end),
              slice_key_end(before, end));
        }
      }
    }
    const u32 bits = ballot(ALL_LANES, is_shared);
    if (lane == 0) { stg_u32(shown + words + word, bits); }
  }
}

enum { // the first barrier of each kind
  Q_FULL = 0, Q_EMPTY = 6, O_FULL = 12, K_FULL = 18, K_EMPTY = 20, V_FULL = 22,
  V_EMPTY = 24, JOB_FULL = 26, JOB_EMPTY = 28, CLAIM = 30, RECORD_FULL = 31,
  RECORD_EMPTY = 39,
};

extern "C" __global__ void __launch_bounds__(512, 1)
attn_fwd(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % 128 / 32;
  const int group = (int)shfl_u32(ALL_LANES, threadIdx.x / 128, 0) - 1; // -1: the movers
  const u32 sm = (shared_base() + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 6; i++) { mbarrier_init(BARRIER(Q_FULL + i), 1); }
    for (int i = 0; i < 6; i++) { mbarrier_init(BARRIER(Q_EMPTY + i), 1); }
    for (int i = 0; i < 6; i++) { mbarrier_init(BARRIER(O_FULL + i), 4); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(K_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(K_EMPTY + i), 12); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(V_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(V_EMPTY + i), 12); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(JOB_FULL + i), 1); }
    for (int i = 0; i < 2; i++) { mbarrier_init(BARRIER(JOB_EMPTY + i), 15); }
    for (int i = 0; i < 1; i++) { mbarrier_init(BARRIER(CLAIM + i), 1); }
    for (int i = 0; i < 8; i++) { mbarrier_init(BARRIER(RECORD_FULL + i), 1); }
    for (int i = 0; i < 8; i++) { mbarrier_init(BARRIER(RECORD_EMPTY + i), 1); }
    fence_barrier_init();
    const int tile = (int)blockIdx.x;
    grid_wait();
    const int q_tiles = cdiv(p.nq, BLOCK_Q);
    const int head = tile / q_tiles, q0 = (q_tiles - 1 - tile % q_tiles) * BLOCK_Q;
        // last rows see most keys, where they differ
    const int b = head / p.h, h = head % p.h;
    const int g = h / (p.h / p.hk);
    // a tensor without rows has a map of one: keys behind it are zeros
    const u32 where[4] = {(u32)q0, (u32)h, (u32)b, (u32)g};
    sts_u32x4((sm + SM_JOBS), where);
    #pragma unroll 1
    for (int i = 0; i < GROUPS; i++) {
      mbarrier_expect(BARRIER(Q_FULL + i), 16384);
      tma_load_4d(sm + SM_Q + (u32)(i) * Q_BYTES, &p.q_map, 0, q0 + 64 * i, h, b,
          BARRIER(Q_FULL + i), L2_FIRST);
      tma_load_4d(sm + SM_Q + (u32)(i) * Q_BYTES + 8192, &p.q_map, 64, q0 + 64 * i, h, b,
          BARRIER(Q_FULL + i), L2_FIRST);
    }
  }
  block_sync(); // behind the end of that grid, for all

  if (group < 0) {
    setmaxnreg_dec_32();
    if (warp == 0 && lane == 0) {
      const int b = 0;
      int v0 = -1;
      #pragma unroll 1
      for (int tile = 0;; tile++) {
        mbarrier_wait(BARRIER(RECORD_FULL + tile % RECORDS), (tile / RECORDS & 1));
        u32 words[4];
        lds_u32x4(words, sm + SM_RECORDS + (u32)(tile) % RECORDS * 48 + 32);
        const int k0 = (int)words[0], g = (int)words[2];
        const u32 told = words[1];
        if (k0 < 0) { break; }
        {
          const int slot = tile % STAGES;
          mbarrier_wait(BARRIER(K_EMPTY + slot), (tile / 2 & 1) ^ 1);
          mbarrier_expect(BARRIER(K_FULL + slot), 16384);
          tma_load_4d(sm + SM_K + (u32)(slot) * K_BYTES, &p.k_map, 0, k0, g, b,
              BARRIER(K_FULL + slot), L2_LAST);
          tma_load_4d(sm + SM_K + (u32)(slot) * K_BYTES + 8192, &p.k_map, 64, k0, g, b,
              BARRIER(K_FULL + slot), L2_LAST);
        }
        if (tile > STAGES) { mbarrier_arrive(BARRIER(RECORD_EMPTY
            + (tile - STAGES - 1) % RECORDS)); }
        if (v0 >= 0) {
          const int number = tile - 1;
          {
            const int slot = number % STAGES;
            mbarrier_wait(BARRIER(V_EMPTY + slot), (number / 2 & 1) ^ 1);
            mbarrier_expect(BARRIER(V_FULL + slot), 16384);
            tma_load_4d(sm + SM_V + (u32)(slot) * V_BYTES, &p.v_map, 0, v0, g, b,
                BARRIER(V_FULL + slot), L2_LAST);
            tma_load_4d(sm + SM_V + (u32)(slot) * V_BYTES + 8192, &p.v_map, 64, v0, g, b,
                BARRIER(V_FULL + slot), L2_LAST);
          }
        }
        v0 = k0;
        if (told & 1 << 20) {
          {
            const int slot = tile % STAGES;
            mbarrier_wait(BARRIER(V_EMPTY + slot), (tile / 2 & 1) ^ 1);
            mbarrier_expect(BARRIER(V_FULL + slot), 16384);
            tma_load_4d(sm + SM_V + (u32)(slot) * V_BYTES, &p.v_map, 0, k0, g, b,
                BARRIER(V_FULL + slot), L2_LAST);
            tma_load_4d(sm + SM_V + (u32)(slot) * V_BYTES + 8192, &p.v_map, 64, k0, g, b,
                BARRIER(V_FULL + slot), L2_LAST);
          }
          v0 = -1;
        }
      }
    } else if (warp == 1 && lane == 0) {
      const int q_tiles = cdiv(p.nq, BLOCK_Q);
      const int blocks = (int)gridDim.x, tiles = q_tiles * p.b * p.h;
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
            for (int i = 0; i < GROUPS; i++) {
              const int slot = turn % 2 * GROUPS + i;
              mbarrier_wait(BARRIER(Q_EMPTY + slot), (turn / 2 & 1) ^ 1);
              mbarrier_expect(BARRIER(Q_FULL + turn % 2 * GROUPS + i), 16384);
              tma_load_4d(sm + SM_Q + (u32)(slot) * Q_BYTES, &p.q_map, 0, (int)where[0] + 64 * i,
                  (int)where[1], (int)where[2], BARRIER(Q_FULL + turn % 2 * GROUPS + i), L2_FIRST);
              tma_load_4d(sm + SM_Q + (u32)(slot) * Q_BYTES + 8192, &p.q_map, 64, (int)where[0]
                  + 64 * i, (int)where[1], (int)where[2],
                  BARRIER(Q_FULL + turn % 2 * GROUPS + i), L2_FIRST);
            }
          }
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
          mbarrier_arrive(BARRIER(JOB_FULL + slot));
          break;
        }
        const int head = tile / q_tiles, q0 = (q_tiles - 1 - tile % q_tiles) * BLOCK_Q;
            // last rows see most keys, where they differ
        const int b = head / p.h, h = head % p.h;
        const int g = h / (p.h / p.hk);
        // a tensor without rows has a map of one: keys behind it are zeros
        const u32 where[4] = {(u32)q0, (u32)h, (u32)b, (u32)g};
        sts_u32x4(job, where);
      }
    } else if (warp == 2) {
      int tile = 0;
      #pragma unroll 1
      for (int turn = 0;; turn++) {
        const u32 job = sm + SM_JOBS + turn % 2 * JOB_BYTES;
        mbarrier_wait(BARRIER(JOB_FULL + turn % 2), (turn / 2 & 1));
        const int q0 = (int)lds_u32(job);
        if (q0 < 0) { break; }
        const float *shown = p.row_slices + (i64)((q0) / BLOCK_Q) * 2 * cdiv(p.slices, 32);
        token_slice slice = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk, p.slices, shown,
            next_slice(shown, p.slices, 0));
        int k0 = tile_from(slice_first_key(slice, q0), slice_first_key(slice, q0), BLOCK_KV),
            key_end = imin(p.nk, imin(slice_key_end(slice, imin(q0 + BLOCK_Q, p.nq)), slice.k
            + (slice.nk + (imin(imin(q0 + BLOCK_Q, p.nq) - slice.q, slice.nq)) - slice.nq)));
        while (k0 >= key_end && slice.number < p.slices) {
          slice = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk, p.slices, shown,
              next_slice(shown, p.slices, slice.number + 1));
          k0 = tile_from(slice_first_key(slice, q0), slice_first_key(slice, q0), BLOCK_KV);
          key_end = imin(p.nk, imin(slice_key_end(slice, imin(q0 + BLOCK_Q, p.nq)), slice.k
              + (slice.nk + (imin(imin(q0 + BLOCK_Q, p.nq) - slice.q, slice.nq)) - slice.nq)));
        }
        if (k0 >= key_end) {
          k0 = imax(p.nk, BLOCK_KV); // of keys that are none
        }
        int is_last;
        u32 seen;
        {
          const int row0 = q0 + 64 * lane; // of warpgroup `lane`
          const u32 none = ballot(ALL_LANES, lane < GROUPS
              && (!slice_shows_some(slice, imin(row0, p.nq - 1), imin(row0 + 64, p.nq), k0,
              imin(k0 + BLOCK_KV, p.nk)) || (slice.nk
              + (imin(imin(row0 + 64, p.nq) - slice.q, slice.nq)) < slice.nq
              + (imax(0, k0 - slice.k)) + 1)));
          const u32 all = ballot(ALL_LANES, lane < GROUPS
              && (slice_shows_all(slice, imin(row0, p.nq - 1), imin(row0 + 64, p.nq), k0,
              imin(k0 + BLOCK_KV, p.nk)) && (slice.nq
              + (imin(imin(k0 + BLOCK_KV, p.nk) - slice.k, slice.nk)) <= slice.nk
              + (imax(0, imin(row0, p.nq - 1) - slice.q)) + 1) && k0 + BLOCK_KV <= p.nk));
          seen = none | all << 8;
        }
        #pragma unroll 1
        do {
          const int q0 = (int)lds_u32(job); // read anew
          const float *shown = p.row_slices + (i64)((q0) / BLOCK_Q) * 2 * cdiv(p.slices, 32);
          if (lane == 0) {
            mbarrier_wait(BARRIER(RECORD_EMPTY + tile % RECORDS), (tile / RECORDS & 1) ^ 1);
            const u32 words[4] = {(u32)k0, 0, lds_u32(job + 12), seen};
            put_slice(sm + SM_RECORDS + (u32)(tile) % RECORDS * 48, slice);
            sts_u32x4(sm + SM_RECORDS + (u32)(tile) % RECORDS * 48 + 32, words);
          }
          k0 += BLOCK_KV;
          while (k0 >= key_end && slice.number < p.slices) {
            slice = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk, p.slices, shown,
                next_slice(shown, p.slices, slice.number + 1));
            k0 = tile_from(slice_first_key(slice, q0), slice_first_key(slice, q0), BLOCK_KV);
            key_end = imin(p.nk, imin(slice_key_end(slice, imin(q0 + BLOCK_Q, p.nq)), slice.k
                + (slice.nk + (imin(imin(q0 + BLOCK_Q, p.nq) - slice.q, slice.nq)) - slice.nq)));
          }
          is_last = k0 >= key_end;
          {
            const int row0 = q0 + 64 * lane; // of warpgroup `lane`
            const u32 none = ballot(ALL_LANES, lane < GROUPS
                && (!slice_shows_some(slice, imin(row0, p.nq - 1), imin(row0 + 64, p.nq), k0,
                imin(k0 + BLOCK_KV, p.nk)) || (slice.nk
                + (imin(imin(row0 + 64, p.nq) - slice.q, slice.nq)) < slice.nq
                + (imax(0, k0 - slice.k)) + 1)));
            const u32 all = ballot(ALL_LANES, lane < GROUPS
                && (slice_shows_all(slice, imin(row0, p.nq - 1), imin(row0 + 64, p.nq), k0,
                imin(k0 + BLOCK_KV, p.nk)) && (slice.nq
                + (imin(imin(k0 + BLOCK_KV, p.nk) - slice.k, slice.nk)) <= slice.nk
                + (imax(0, imin(row0, p.nq - 1) - slice.q)) + 1) && k0 + BLOCK_KV <= p.nk));
            seen = none | all << 8;
          }
          if (lane == 0) {
            sts_u32(sm + SM_RECORDS + (u32)(tile) % RECORDS * 48 + 36,
                seen | (is_last ? 255u << 16 : 0));
            mbarrier_arrive(BARRIER(RECORD_FULL + tile % RECORDS));
          }
          mbarrier_arrive_if(BARRIER(CLAIM), lane == 0 && is_last);
          tile++;
        } while (!is_last);
        warp_sync(ALL_LANES); // all have read the job
        mbarrier_arrive_if(BARRIER(JOB_EMPTY + turn % 2), lane == 0);
      }
      if (lane == 0) { // no more
        const u32 none[4] = {0xffffffffu, 0, 0, 0};
        mbarrier_wait(BARRIER(RECORD_EMPTY + tile % RECORDS), (tile / RECORDS & 1) ^ 1);
        sts_u32x4(sm + SM_RECORDS + (u32)(tile) % RECORDS * 48 + 32, none);
        mbarrier_arrive(BARRIER(RECORD_FULL + tile % RECORDS));
      }
    } else if (warp == 3 && lane == 0) {
      #pragma unroll 1
      for (int turn = 0;; turn++) {
        const u32 job = sm + SM_JOBS + turn % 2 * JOB_BYTES;
        mbarrier_wait(BARRIER(JOB_FULL + turn % 2), (turn / 2 & 1));
        u32 where[4];
        lds_u32x4(where, job);
        mbarrier_arrive(BARRIER(JOB_EMPTY + turn % 2));
        if ((int)where[0] < 0) { break; }
        #pragma unroll 1
        for (int i = 0; i < GROUPS; i++) {
          const int slot = turn % 2 * GROUPS + i;
          mbarrier_wait(BARRIER(O_FULL + slot), (turn / 2 & 1));
          tma_store_4d(&p.o_map, 0, (int)where[0] + 64 * i, (int)where[1], (int)where[2], sm
              + SM_Q + (u32)slot * Q_BYTES);
          tma_store_4d(&p.o_map, 64, (int)where[0] + 64 * i, (int)where[1], (int)where[2], sm
              + SM_Q + (u32)slot * Q_BYTES + 8192);
          tma_store_commit();
          tma_store_wait_read_0();
          mbarrier_arrive(BARRIER(Q_EMPTY + slot));
        }
      }
      tma_store_wait_0();
    }
  } else {
    setmaxnreg_inc_160();
    float s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17, s18,
        s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31;
    float o0, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, o13, o14, o15, o16, o17, o18,
        o19, o20, o21, o22, o23, o24, o25, o26, o27, o28, o29, o30, o31, o32, o33, o34, o35, o36,
        o37, o38, o39, o40, o41, o42, o43, o44, o45, o46, o47, o48, o49, o50, o51, o52, o53, o54,
        o55, o56, o57, o58, o59, o60, o61, o62, o63;
    u32 x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15;
    const float scale = p.scale < 0.0f ? -p.scale : p.scale;
    int count = 0; // tiles of V that have been taken, of all rows
    if (group == GROUPS - 1) { barrier_arrive(1, 256); } // group 0 multiplies first
    #pragma unroll 1
    for (int turn = 0;; turn++) {
      const u32 job = sm + SM_JOBS + turn % 2 * JOB_BYTES;
      mbarrier_wait(BARRIER(JOB_FULL + turn % 2), (turn / 2 & 1));
      const int q0 = (int)shfl_u32(ALL_LANES, lds_u32(job + 0), 0);
      if (q0 < 0) { break; }
      u32 told; // of a tile
      int has_weights = 1; // P of the tile before is to be multiplied
      const int row0 = q0 + 64 * group;
      const int q_lane = row0 + 16 * warp + lane / 4;
      const int slot = turn % 2 * GROUPS + group;
      const u32 q_tile = shfl_u32(ALL_LANES, matrix_at(sm + SM_Q + (u32)slot * Q_BYTES), 0);
      float m0, m1, l0, l1;
      mbarrier_wait(BARRIER(Q_FULL + turn % 2 * GROUPS + group), (turn / 2 & 1));
      if (p.scale < 0.0f) { // the scale's sign goes to Q: weights are taken with a positive one
        const u32 from = sm + SM_Q + (u32)slot * Q_BYTES + threadIdx.x % 128 * 16;
        #pragma unroll 1
        for (int i = 0; i < 16384; i += 2048) {
          u32 v[4];
          lds_u32x4(v, from + (u32)i);
          for (int j = 0; j < 4; j++) { v[j] ^= 0x80008000u; }
          sts_u32x4(from + (u32)i, v);
        }
        fence_async();
        barrier_sync(5 + group, 128);
      }
      {
        const int k_slot = count % STAGES;
        mbarrier_wait(BARRIER(K_FULL + k_slot), (count / 2 & 1));
        const u32 record = sm + SM_RECORDS + (u32)(count) % RECORDS * 48;
        told = lds_u32(record + 36) >> group;
        const u32 own = lds_u32(record + 44) >> group;
        scores(s, q_tile, matrix_at(sm + SM_K + (u32)k_slot * K_BYTES));
        wait_all(s, o);
        mbarrier_arrive_if(BARRIER(K_EMPTY + k_slot), lane == 0);
        m0 = 0.0f;
        l0 = 0.0f;
        m1 = 0.0f;
        l1 = 0.0f;
        float sum00 = 0.0f, sum01 = 0.0f, sum10 = 0.0f, sum11 = 0.0f;
        int safe0, safe1;
        if (!(own & 1 << 8)) {
          const token_slice slice = take_slice(record);
          const int k0 = (int)lds_u32(record + 32);
          const int k_lane = k0 + 2 * (lane % 4);
          u32 seen0, seen1;
          seen0 = slice_columns(slice, q_lane + 0, k_lane);
          seen1 = slice_columns(slice, q_lane + 8, k_lane);
          if (slice.is_shared) {
            const float *shown = p.row_slices + (i64)((q0) / BLOCK_Q) * 2 * cdiv(p.slices, 32);
            for (int from = 0; 32 * from < slice.number; from += 32) {
              const int at = from + lane, rest = slice.number - 32 * at;
              u32 word = rest > 0 ? ldg_u32(shown + at) : 0;
              if (rest > 0 && rest < 32) { word &= (1u << rest) - 1; }
              #pragma unroll 1
              for (; any_lane(ALL_LANES, word != 0); word &= word - 1) {
                const int own = 32 * at + first_bit(word);
                int shows = 0;
                if (word != 0) {
                  const token_slice before = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk,
                      p.slices, NO_LIST, own);
                  shows = slice_shows_some(before, row0, row0 + 64, k0, k0 + BLOCK_KV);
                }
                #pragma unroll 1
                for (u32 lanes = ballot(ALL_LANES, shows); lanes != 0; lanes &= lanes - 1) {
                  const int number = (int)shfl_u32(ALL_LANES, (u32)own, first_bit(lanes));
                  const token_slice before = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk,
                      p.slices, NO_LIST, number);
                  seen0 &= ~slice_columns(before, q_lane + 0, k_lane);
                  seen1 &= ~slice_columns(before, q_lane + 8, k_lane);
                }
              }
            }
          }
          {
            const int q0 = q_lane;
            const int of_row0 = q0 - slice.q + slice.nk - slice.nq;
            ROW0_PAIRS(HIDE_ROW0)
          }
          {
            const int q1 = q_lane + 8;
            const int of_row0 = q1 - slice.q + slice.nk - slice.nq;
            ROW1_PAIRS(HIDE_ROW1)
          }
        }
        PAIRS(WEIGH_FIRST, WEIGH_FIRST)
        const float total0 = quad_sum((sum00 + sum01));
        const float total1 = quad_sum((sum10 + sum11));
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
            sum00 = sum01 = 0.0f;
            float most = NEG_INF;
            ROW0_PAIRS(MOST)
            most = quad_max(most);
            const float peak = keep ? m0 : max_f32(m0, most * (scale * LOG2E));
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m0 - origin);
            l0 *= correction;
            ROW0_PAIRS(REWEIGH)
            l0 += (sum00 + sum01);
            m0 = peak;
          }
          {
            const int keep = quad_max(safe1 ? 0.0f : 1.0f) == 0.0f; // whatever the other rows need
            if (!keep) {
              m1 = NEG_INF;
              l1 = 0.0f;
            }
            sum10 = sum11 = 0.0f;
            float most = NEG_INF;
            ROW1_PAIRS(MOST)
            most = quad_max(most);
            const float peak = keep ? m1 : max_f32(m1, most * (scale * LOG2E));
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m1 - origin);
            l1 *= correction;
            ROW1_PAIRS(REWEIGH)
            l1 += (sum10 + sum11);
            m1 = peak;
          }
        } else {
          l0 += (sum00 + sum01);
          l1 += (sum10 + sum11);
        }
      }
      CLEAR_O()

      #pragma unroll 1
      while (!(told & 1 << 20)) {
        const u32 record = sm + SM_RECORDS + (u32)(count + 1) % RECORDS * 48;
        u32 behind; // told of the tile behind it
        if (told & 1) {
          const int v_slot = count % STAGES, k_slot = (count + 1) % STAGES;
          mbarrier_wait(BARRIER(K_FULL + k_slot), ((count + 1) / 2 & 1));
          told = lds_u32(record + 36) >> group;
          warp_sync(ALL_LANES); // all have seen the phase before it can end
          mbarrier_arrive_if(BARRIER(K_EMPTY + k_slot), lane == 0);
          barrier_sync(1 + group, 256);
          mbarrier_wait(BARRIER(V_FULL + v_slot), (count / 2 & 1));
          if (has_weights) {
            values(o, x, matrix_at(sm + SM_V + (u32)v_slot * V_BYTES));
            wait_all(s, o);
            CLEAR_P()
          }
          barrier_arrive(1 + (group + 1) % GROUPS, 256);
          warp_sync(ALL_LANES);
          mbarrier_arrive_if(BARRIER(V_EMPTY + v_slot), lane == 0);
          has_weights = 0;
          count++;
          continue;
        }
        has_weights = 1;
        float sum00 = 0.0f, sum01 = 0.0f, sum10 = 0.0f, sum11 = 0.0f;
        int safe0, safe1;
        const int v_slot = count % STAGES, k_slot = (count + 1) % STAGES;
        mbarrier_wait(BARRIER(K_FULL + k_slot), ((count + 1) / 2 & 1));
        behind = lds_u32(record + 36) >> group;
        barrier_sync(1 + group, 256);
        scores(s, q_tile, matrix_at(sm + SM_K + (u32)k_slot * K_BYTES));
        mbarrier_wait(BARRIER(V_FULL + v_slot), (count / 2 & 1));
        values(o, x, matrix_at(sm + SM_V + (u32)v_slot * V_BYTES));
        wait_scores(s);
        barrier_arrive(1 + (group + 1) % GROUPS, 256);
        mbarrier_arrive_if(BARRIER(K_EMPTY + k_slot), lane == 0);
        wait_all(s, o);
        mbarrier_arrive_if(BARRIER(V_EMPTY + v_slot), lane == 0);
        if (!(told & 1 << 8)) {
          const token_slice slice = take_slice(record);
          const int k0 = (int)lds_u32(record + 32);
          const int k_lane = k0 + 2 * (lane % 4);
          u32 seen0, seen1;
          seen0 = slice_columns(slice, q_lane + 0, k_lane);
          seen1 = slice_columns(slice, q_lane + 8, k_lane);
          if (slice.is_shared) {
            const float *shown = p.row_slices + (i64)((q0) / BLOCK_Q) * 2 * cdiv(p.slices, 32);
            for (int from = 0; 32 * from < slice.number; from += 32) {
              const int at = from + lane, rest = slice.number - 32 * at;
              u32 word = rest > 0 ? ldg_u32(shown + at) : 0;
              if (rest > 0 && rest < 32) { word &= (1u << rest) - 1; }
              #pragma unroll 1
              for (; any_lane(ALL_LANES, word != 0); word &= word - 1) {
                const int own = 32 * at + first_bit(word);
                int shows = 0;
                if (word != 0) {
                  const token_slice before = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk,
                      p.slices, NO_LIST, own);
                  shows = slice_shows_some(before, row0, row0 + 64, k0, k0 + BLOCK_KV);
                }
                #pragma unroll 1
                for (u32 lanes = ballot(ALL_LANES, shows); lanes != 0; lanes &= lanes - 1) {
                  const int number = (int)shfl_u32(ALL_LANES, (u32)own, first_bit(lanes));
                  const token_slice before = slice_at(p.q_ranges, p.k_ranges, p.kinds, p.nq, p.nk,
                      p.slices, NO_LIST, number);
                  seen0 &= ~slice_columns(before, q_lane + 0, k_lane);
                  seen1 &= ~slice_columns(before, q_lane + 8, k_lane);
                }
              }
            }
          }
          {
            const int q0 = q_lane;
            const int of_row0 = q0 - slice.q + slice.nk - slice.nq;
            ROW0_PAIRS(HIDE_ROW0)
          }
          {
            const int q1 = q_lane + 8;
            const int of_row0 = q1 - slice.q + slice.nk - slice.nq;
            ROW1_PAIRS(HIDE_ROW1)
          }
        }
        PAIRS(WEIGH_ROW0, WEIGH_ROW1)
        safe0 = (sum00 + sum01) < 65536.0f;
        safe1 = (sum10 + sum11) < 65536.0f;
        if (any_lane(ALL_LANES, !(safe0 && safe1))) {
          renew(s);
          {
            const int keep = quad_max(safe0 ? 0.0f : 1.0f) == 0.0f; // whatever the other rows need
            sum00 = sum01 = 0.0f;
            float most = NEG_INF;
            ROW0_PAIRS(MOST)
            most = quad_max(most);
            const float peak = keep ? m0 : max_f32(m0, most * (scale * LOG2E));
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m0 - origin);
            l0 *= correction;
            ROW0_PAIRS(REWEIGH)
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
            const float peak = keep ? m1 : max_f32(m1, most * (scale * LOG2E));
            const float origin = peak == NEG_INF ? 0.0f : peak;
            const float correction = exp2_f32(m1 - origin);
            l1 *= correction;
            ROW1_PAIRS(REWEIGH)
            l1 += (sum10 + sum11);
            m1 = peak;
            SCALE_O_ROW1(correction)
          }
        } else {
          l0 += (sum00 + sum01);
          l1 += (sum10 + sum11);
        }
        count++;
        told = behind;
      }

      {
        const int v_slot = count % STAGES;
        mbarrier_wait(BARRIER(V_FULL + v_slot), (count / 2 & 1));
        values(o, x, matrix_at(sm + SM_V + (u32)v_slot * V_BYTES));
        wait_all(s, o);
        mbarrier_arrive_if(BARRIER(V_EMPTY + v_slot), lane == 0);
        count++;
      }
      const int h = (int)shfl_u32(ALL_LANES, lds_u32(job + 4), 0);
      const int b = (int)shfl_u32(ALL_LANES, lds_u32(job + 8), 0);
      float inverse0, inverse1;
      {
        const int q = q_lane + 0;
        const float total = quad_sum(l0);
        const float lse_of_row = total == 0.0f ? NEG_INF : (m0 + log2_f32(total)) * LN2;
        stg_f32_if(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row, lane % 4 == 0 && q < p.nq
            && p.lse);
        const float inverse = total == 0.0f ? 0.0f : inverse_f32(total);
        inverse0 = inverse;
      }
      {
        const int q = q_lane + 8;
        const float total = quad_sum(l1);
        const float lse_of_row = total == 0.0f ? NEG_INF : (m1 + log2_f32(total)) * LN2;
        stg_f32_if(p.lse + (((i64)b * p.h + h) * p.nq + q), lse_of_row, lane % 4 == 0 && q < p.nq
            && p.lse);
        const float inverse = total == 0.0f ? 0.0f : inverse_f32(total);
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
