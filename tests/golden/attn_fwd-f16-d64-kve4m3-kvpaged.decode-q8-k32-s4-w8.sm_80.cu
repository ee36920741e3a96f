// attn_fwd-f16-d64-kve4m3-kvpaged.decode-q8-k32-s4-w8.sm_80
//
// O = softmax(score(scale Q K^T)) V, and lse of each row.
// spec:   dtype=f16 head_dim=64 kv_dtype=e4m3 kv_layout=paged
// again:  flashgen emit attn_fwd-f16-d64-kve4m3-kvpaged.decode-q8-k32-s4-w8.sm_80
// switches: none
// made by flashgen 0.1.0
//
// launch: attn_fwd, grid min(b * hk * cdiv(nq * h, max(1, hk) * 8) * max(1, cdiv(nk, 176)), 132) x
//         1 x 1, 256 threads, 134288 shared bytes, 1 a multiprocessor
// scratch: claims, 2 * 2 * min(b * hk * cdiv(nq * h, max(1, hk) * 8) * max(1, cdiv(nk, 176)), 132)
//          floats
// scratch: parts, 2 * min(b * hk * cdiv(nq * h, max(1, hk) * 8) * max(1, cdiv(nk, 176)), 132) *
//          576 floats
//
// shared memory:
//   SM_KEYS        0  K [BLOCK_KV][D] and V [BLOCK_KV][DV] of each of [TEAMS][stages]
//   SM_STATES 131072  states of its rows, by lanes [TEAMS][states][BLOCK_Q][4]
//   SM_LINE   133120  where in the line of keys tiles of rows begin [LINE_PLACES + 1]
//   SM_LAST   134160  whether the block is the last one to come to a tile of rows
//   SM_END    134176  what rounding the base to 128 bytes may take

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define DEV static __device__ __forceinline__

enum { D = 64 }; // head dim of q and k
enum { DV = 64 }; // head dim of v and o
enum { CHUNKS_D = 4 }; // 16-byte chunks in a row of K
enum { CHUNKS_DV = 4 }; // in a row of V
enum { BLOCK_Q = 8 }; // rows of a tile, of all query heads of a key/value head
enum { BLOCK_KV = 32 }; // keys of a tile
enum { THREADS = 256 };
enum { STAGES = 4 }; // tiles of a team, in flight or read
enum { TEAMS = 8 }; // of warps, which have keys of their own
enum { MEMBERS = 1 }; // warps of a team, which have rows of their own
enum { WARP_Q = 8 }; // rows of a warp
enum { ROWS = 1 }; // rows that a lane has a part of
enum { Q_WORDS = 8 }; // of Q that a lane has
enum { N_KV = 4 }; // tiles of 8 columns of S
enum { K_BYTES = 2048 }; // of a tile
enum { STAGE_BYTES = 4096 }; // of a tile of K and one of V
enum { PART_COLUMNS = 64 }; // of O, in memory
enum { PART_PITCH = 68 }; // floats from a row of O to the next, in shared memory
enum { PART_STEP = 16384 }; // bytes from a team's part to the next one's
enum { STATE_BYTES = 1024 }; // of one of the states, in shared memory
enum { PART_FLOATS = 576 }; // of a part: O [BLOCK_Q][PART_COLUMNS], states [states][BLOCK_Q][4]
enum { LINE_PLACES = 256 }; // tiles of rows, or groups of them, whose begin in the line is kept
enum { SPAN = 16 }; // tiles of keys of a part of few, at least
enum { BLOCKS_MOST = 132 }; // that have places for parts
enum { SM_PARTS = 12288 }; // O of a team's keys [BLOCK_Q][PART_PITCH], float32, in its last stage
enum { N_DV = 8 }; // tiles of 8 columns of O, and chunks of its rows
enum { SM_KEYS = 0 };
enum { SM_STATES = 131072 };
enum { SM_LINE = 133120 };
enum { SM_LAST = 134160 };
enum { SM_END = 134176 };

typedef unsigned char u8;

#define ALL_LANES 0xffffffffu

DEV float as_f32(u32 bits) { return __uint_as_float(bits); }

#define NEG_INF as_f32(0xff800000u)
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

DEV int cdiv(int a, int b) { return a / b + (a % b > 0); }

DEV int imin(int a, int b) { return a < b ? a : b; }

DEV u32 multiply_pair_f16(u32 a, u32 b) {
  u32 r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// Two numbers of e4m3, in the upper bytes of both halves, exactly; a NaN stays one.
DEV u32 widen_pair_f16(u32 x) {
  const u32 bits = x >> 1 & 0x3f803f80u;
  const u32 nan = ((bits + 0x00800080u) & 0x40004000u) / 2 * 1;
  return multiply_pair_f16((x & 0x80008000u) | bits, 0x5c005c00u) | nan;
}

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

DEV u32 ldg_u32(const void *from) { return *(const u32 *)from; }

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

DEV void block_sync(void) { asm volatile("bar.sync 0;" ::: "memory"); }

DEV void fence_device(void) { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

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

DEV u32 as_u32(float v) { return __float_as_uint(v); }

DEV u32 prmt_u32(u32 a, u32 b, u32 selector) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
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

DEV void ldmatrix_x4(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

DEV void ldmatrix_x4_trans(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

DEV void mma_f16(float *d, const u32 *a, const u32 *b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEV u32 pack_f16(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

DEV void widen_f16(u32 *pairs, u32 x) {
  pairs[0] = widen_pair_f16(x << 8);
  pairs[1] = widen_pair_f16(x);
}

DEV void cp_async_16(u32 to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
      :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

DEV void cp_async_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

DEV void cp_async_wait_2(void) { asm volatile("cp.async.wait_group 2;" ::: "memory"); }

DEV void mma(float *d, const u32 *a, const u32 *b) { mma_f16(d, a, b); }

DEV u32 pack(float low, float high) { return pack_f16(low, high); }

// Over the four lanes that hold a row of an accumulator.
DEV float quad_max(float v) {
  v = max_f32(v, shfl_xor(ALL_LANES, v, 1));
  return max_f32(v, shfl_xor(ALL_LANES, v, 2));
}

DEV float quad_sum(float v) {
  v += shfl_xor(ALL_LANES, v, 1);
  return v + shfl_xor(ALL_LANES, v, 2);
}

// The largest of a lane's part of a row of an accumulator: two columns in each of n tiles.
DEV float row_max(const float *own, int n) {
  float most = max_f32(own[0], own[1]);
  #pragma unroll
  for (int i = 1; i < n; i++) { most = max_f32(most, max_f32(own[4 * i], own[4 * i + 1])); }
  return most;
}

DEV void zero(float *x, int n) {
  #pragma unroll
  for (int i = 0; i < n; i++) { x[i] = 0.0f; }
}

// The chunks of a row that are mixed: with 8 / span rows in 128 bytes.
DEV int mixed_chunks(int chunks) { return chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : 2; }

// The address of a chunk of a tile.
DEV u32 chunk_at(u32 tile, int chunks, int row, int chunk) {
  const int span = mixed_chunks(chunks), turn = row / (8 / span) % span;
  return tile + (u32)(row * chunks + (chunk ^ turn)) * 16;
}

// The address of the chunk that lies `rows`, a multiple of 8, and `chunks_on` from that of `at`;
// the number of that chunk has no bit of chunks_on set.
DEV u32 moved(u32 at, int chunks, int rows, int chunks_on) {
  const int span = mixed_chunks(chunks);
  return (at ^ (u32)(chunks_on % span * 16)) + (u32)(rows * chunks + chunks_on / span * span) * 16;
}

DEV u32 by_chunks(u32 base, int chunks, int row0, int chunk0) {
  const int lane = (int)threadIdx.x % 32;
  return chunk_at(base, chunks, row0 + lane % 8 + lane / 16 * 8, chunk0 + lane / 8 % 2);
}

DEV void widen(u32 *pairs, u32 x) { widen_f16(pairs, x); }

// Four columns, 8-byte aligned, of a row of an operand: the even ones to a[0], the odd ones to
// a[2]; or zeros.
DEV void load_even_first(u32 *a, const u16 *from, int is_there) {
  const u32 low = is_there ? ldg_u32(from) : 0, high = is_there ? ldg_u32(from + 2) : 0;
  a[0] = prmt_u32(low, high, 0x5410);
  a[2] = prmt_u32(low, high, 0x7632);
}

// Two tiles of 8 columns of c += A B^T, of 16 rows of B and a chunk of theirs, and of `next` +=
// A_next B^T of the next chunk.
DEV void mma_widened(float *c, float *next, const u32 *a, const u32 *a_next, u32 b) {
  u32 x[4], y[8];
  ldmatrix_x4(x, b);
  #pragma unroll
  for (int i = 0; i < 4; i++) { widen(y + 2 * i, x[i]); }
  mma(c, a, y);
  mma(next, a_next, y + 2);
  mma(c + 4, a, y + 4);
  mma(next + 4, a_next, y + 6);
}

// multiply_halves_rt (halves.cut) of one: 4 registers of A for each chunk of the first half.
DEV void multiply_widened_halves_rt(float *c, float *other, int n, const u32 *a, u32 b_tile,
    u32 b, int chunks) {
  const int half = chunks / 2;
  #pragma unroll
  for (int k = 0; k < chunks; k += 2) {
    #pragma unroll
    for (int j = 0; j < n; j += 2) {
      mma_widened((k < half ? c : other) + 4 * j, (k + 1 < half ? c : other) + 4 * j, a
          + 4 * (k % half), a + 4 * ((k + 1) % half),
          b_tile + moved(b, chunks, 8 * j, k));
    }
  }
  #pragma unroll
  for (int j = 0; j < n; j++) {
    c[4 * j] += other[4 * j + 2];
    c[4 * j + 1] += other[4 * j + 3];
  }
}

// multiply_tp (tiles.cut) of one: c[m] += A^T P^T, each of `chunks` times 16 columns of A.
DEV void multiply_widened_tp(float *c, int m, const float *p, int k, u32 a_tile, u32 a,
    int chunks) {
  #pragma unroll
  for (int l = 0; l < k; l += 2) {
    u32 y[4];
    #pragma unroll
    for (int r = 0; r < m; r++) {
      y[2 * r] = pack(p[4 * l + 2 * r], p[4 * l + 2 * r + 1]);
      y[2 * r + 1] = pack(p[4 * l + 4 + 2 * r], p[4 * l + 4 + 2 * r + 1]);
    }
    #pragma unroll
    for (int i = 0; i < chunks; i += 2) {
      u32 words[4], x[8];
      ldmatrix_x4_trans(words, a_tile + moved(a, chunks, 8 * l, i));
      #pragma unroll
      for (int chunk = 0; chunk < 2; chunk++) {
        widen(x + 4 * chunk, words[chunk]);
        widen(x + 4 * chunk + 2, words[2 + chunk]);
        #pragma unroll
        for (int r = 0; r < m; r++) { mma(c + 4 * (chunks * r + i + chunk), x + 4 * chunk, y
            + 2 * r); }
      }
    }
  }
}

// load_paged_tile_by (tiles.cut) of at most 32 rows, where lane l knows the place of row row0 + l:
// so many elements behind `from`.
DEV void load_found_tile_e4m3_by(int thread, int threads, u32 tile, int chunks, int rows,
    const u8 *from, i64 place, int row0, int end, int width) {
  const int row = thread / 8, chunk = thread % 8;
  const u32 to = chunk_at(tile, chunks, row, chunk),
      to_fifth = chunk_at(tile, chunks, row + 4, chunk);
  #pragma unroll
  for (int r = 0; r < rows; r += threads / 8) {
    const u32 low = shfl_u32(ALL_LANES, (u32)place, (row + r) % 32),
        high = shfl_u32(ALL_LANES, (u32)(place >> 32), (row + r) % 32);
    const u8 *at = from + ((i64)((u64)high << 32 | low) + 16 * chunk);
    #pragma unroll
    for (int c = 0; c < chunks; c += 8) {
      if (row + r < rows && chunk + c < chunks) {
        const int there = row0 + row + r < end && 16 * (chunk + c) < width;
        cp_async_16(moved(r % 8 ? to_fifth : to, chunks, r / 8 * 8, c), at + 16 * c, there ? 16
            : 0);
      }
    }
  }
}

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

typedef struct Params {
  const u16 *q; // [b, nq, h, 64] f16
  i64 q_b, q_n, q_h;
  const u8 *k; // [pages, page, hk, 64] e4m3
  i64 k_b, k_n, k_h;
  const u8 *v; // [pages, page, hk, 64] e4m3
  i64 v_b, v_n, v_h;
  const float *k_descale; // [b, hk] f32, or null
  i64 k_descale_b, k_descale_h;
  const float *v_descale; // [b, hk] f32, or null
  i64 v_descale_b, v_descale_h;
  const int *used_k; // [b] i32
  const int *first_k; // [b] i32, or null
  const int *table; // [b, nk/page] i32
  i64 table_b;
  u16 *o; // [b, nq, h, 64] f16
  i64 o_b, o_n, o_h;
  float *lse; // [b, h, nq] f32, or null
  float *claims; // scratch
  float *parts; // scratch
  int b, h, hk, nq, nk, pages, page;
  float scale;
} Params;

extern "C" __global__ void __launch_bounds__(256, 1)
attn_fwd(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, team = warp / MEMBERS,
      member = warp % MEMBERS;
  const int thread = member * 32 + lane, k_lane = 2 * (lane % 4); // thread: of the team
  const u32 sm = (shared_base() + 127) & ~127u;
  const u32 keys = sm + SM_KEYS + (u32)(team * STAGES * STAGE_BYTES), values = keys + K_BYTES;
      // its first stage
  const u32 k_lanes = by_chunks(0, CHUNKS_D, 0, 0), v_lanes = by_chunks(0, CHUNKS_DV, 0, 0);
  // the query heads of a key/value head are `wide` at a time side by side in a tile, of so many
  // tokens
  const int group = p.h / p.hk, wide = imin(group, BLOCK_Q), tokens = BLOCK_Q / wide,
      head_tiles = cdiv(group, wide);
  const int row_tiles = cdiv(p.nq, tokens), units = p.b * row_tiles;
  const int all_heads = p.hk * head_tiles, block = (int)blockIdx.x;
  const int blocks = imin((int)gridDim.x, BLOCKS_MOST);
  int span = 0; // 0: the line has tiles
  const int units_of_place = cdiv(units, LINE_PLACES), places = units > 0
      ? cdiv(units, units_of_place) : 0;
  if (block >= blocks) { return; }
  const int alike = units == 1; // all units have as many tiles of keys
  int line = 0; // how long it is
  int tiles_of_all = 0;
  for (int pass = 0; pass < 3; pass++) {
    if (alike) {
      const int b = 0 / row_tiles;
      const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
      const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
      const int key_end = nk;
      const int k_first = 0;
      const int key_tiles = imax(1, cdiv(key_end - k_first, BLOCK_KV));
      line = units * (span > 0 ? cdiv(key_tiles, span) : key_tiles) * all_heads;
    } else {
      for (int i = (int)threadIdx.x; i < places; i += THREADS) {
        int sum = 0;
        for (int unit = i * units_of_place; unit < imin(units, (i + 1) * units_of_place); unit++) {
          const int b = unit / row_tiles;
          const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
          const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
          const int key_end = nk;
          const int k_first = 0;
          const int key_tiles = imax(1, cdiv(key_end - k_first, BLOCK_KV));
          sum += span > 0 ? cdiv(key_tiles, span) : key_tiles;
        }
        sts_u32(sm + SM_LINE + 4 * (u32)i, (u32)sum);
      }
      block_sync();
      if (warp == 0) { running_sums(sm + SM_LINE, places); }
      block_sync();
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
  const int sides = span == 0 && 20 * (blocks / all_heads * all_heads) >= 19 * blocks ? all_heads
      : 1;
  const int inner_heads = all_heads / sides, side = block % sides, own = block / sides;
      // heads of a line; which line, and the block there
  const int each = line / sides / (blocks / sides), more = line / sides % (blocks / sides);
  const int line_end = imin(line / sides, span > 0 ? line : (own + 1) * each
      + imin(own + 1, more));
  const int place_step = span > 0 ? 1 : 2 * sides;
  int at = span > 0 ? block : own * each + imin(own, more); // where the block goes on in the line
  int page_ahead = 0, row_ahead = 0; // of the next tile that is copied, the lane's key

  int unit = 0, head = 0, from = 0, tiles = 0, shares = 0, place = 0, first_place = 0,
      second_place = 0;
  for (;;) {
    int next_unit = 0, next_head = 0, next_from = 0, next_tiles = 0, next_shares = 0,
        next_place = 0, next_first_place = 0, next_second_place = 0;
    if (at < line_end) {
      int begin = 0, of_unit = 0, count = 0;
      if (alike) {
        const int b = 0 / row_tiles;
        const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
        const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
        const int key_end = nk;
        const int k_first = 0;
        const int key_tiles = imax(1, cdiv(key_end - k_first, BLOCK_KV));
        const int each_unit = span > 0 ? cdiv(key_tiles, span) : key_tiles;
        next_unit = at / (each_unit * inner_heads);
        begin = next_unit * each_unit;
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
        next_unit = least * units_of_place;
        begin = (int)lds_u32(sm + SM_LINE + 4 * (u32)least);
      }
      for (;; next_unit++) {
        const int b = next_unit / row_tiles;
        const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
        const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
        const int key_end = nk;
        const int k_first = 0;
        const int key_tiles = imax(1, cdiv(key_end - k_first, BLOCK_KV));
        of_unit = key_tiles;
        count = span > 0 ? cdiv(key_tiles, span) : key_tiles;
        if ((begin + count) * inner_heads > at) { break; }
        begin += count;
      }
      const int inner_head = (at - begin * inner_heads) / count;
      next_head = inner_head + side;
      const int first = begin * inner_heads + inner_head * count, number = at - first;
      if (span > 0) {
        const int own = cdiv(of_unit, count); // tiles of each part
        next_from = number * own;
        next_tiles = imin(own, of_unit - next_from);
        next_shares = count;
        next_place = at;
        next_first_place = first;
        next_second_place = first + 1;
        at += blocks;
      } else {
        // the blocks that have the first and the last tile; a block has a place for the first of
        // its segments and one for the last
        const int by_more = more * (each + 1), last = first + count - 1;
        const int first_block = first < by_more ? first / (each + 1) : more
            + (first - by_more) / each;
        const int last_block = last < by_more ? last / (each + 1) : more + (last - by_more) / each;
        next_from = number;
        next_tiles = imin(count - number, line_end - at);
        next_shares = last_block - first_block + 1;
        next_first_place = 2 * (first_block * sides + side)
            + (first > first_block * each + imin(first_block, more));
        next_second_place = 2 * ((first_block + 1) * sides + side);
        next_place = own > first_block ? 2 * block : next_first_place;
        at += next_tiles;
      }
    }
    if (next_tiles > 0) { // its first copies are on their way while the segment before is finished
      const int b = next_unit / row_tiles;
      const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
      const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
      const int k_first = 0;
      const int g = next_head / head_tiles;
      int pages_ahead[STAGES], rows_ahead[STAGES];
      #pragma unroll
      for (int ahead = 0; ahead < STAGES; ahead++) {
        const int k0 = k_first + (next_from + team + ahead * TEAMS) * BLOCK_KV;
        {
          const int *pages = p.table + b * p.table_b;
          int page = 0, row_of_page = 0;
          if (k0 + lane < nk) {
            const u32 at = (u32)(row_k + k0 + lane);
            page = (int)ldg_u32(pages + at / (u32)p.page);
            row_of_page = (int)(at % (u32)p.page);
          }
          pages_ahead[ahead] = page;
          rows_ahead[ahead] = row_of_page;
        }
      }
      page_ahead = pages_ahead[STAGES - 1];
      row_ahead = rows_ahead[STAGES - 1];
      #pragma unroll
      for (int ahead = 0; ahead < STAGES - 1; ahead++) {
        const int i = team + ahead * TEAMS, k0 = k_first + (next_from + i) * BLOCK_KV;
        if (i < next_tiles) {
          load_found_tile_e4m3_by(thread, 32 * MEMBERS, keys + (u32)(ahead * STAGE_BYTES),
              CHUNKS_D, BLOCK_KV, p.k + (g * p.k_h), pages_ahead[ahead] * p.k_b
              + rows_ahead[ahead] * p.k_n, k0, nk, D);
          load_found_tile_e4m3_by(thread, 32 * MEMBERS, values + (u32)(ahead * STAGE_BYTES),
              CHUNKS_DV, BLOCK_KV, p.v + (g * p.v_h), pages_ahead[ahead] * p.v_b
              + rows_ahead[ahead] * p.v_n, k0, nk, DV);
        }
        cp_async_commit();
      }
    }
    if (tiles > 0) {
      const int b = unit / row_tiles;
      const int q0 = unit % row_tiles * tokens;
      const int q_end = imin(q0 + tokens, p.nq);
      const int g = head / head_tiles;
      const int first_head = g * group + head % head_tiles * wide;
      const int heads = imin(wide, (g + 1) * group - first_head);
      for (int i = (int)threadIdx.x; i < BLOCK_Q * cdiv(N_DV, 4) * 4; i += THREADS) {
        const int lane_of_row = i % (4 * BLOCK_Q), row = lane_of_row / 4,
            chunk = i / (4 * BLOCK_Q) * 4 + i % 4;
        float m, l;
        float sum[8];
        zero(sum, 8);
        m = NEG_INF;
        l = 0.0f;
        #pragma unroll
        for (int number = 0; number < TEAMS; number++) {
          float x[8];
          const u32 states = sm + SM_STATES + 4 * (u32)(number * BLOCK_Q * 4 + lane_of_row);
          const float m_of_part = as_f32(lds_u32(states + 0 * STATE_BYTES));
          const float l_of_part = as_f32(lds_u32(states + 1 * STATE_BYTES));
          const u32 chunk_of_team = sm + SM_PARTS + (u32)(number * PART_STEP)
              + 4 * (u32)(row * PART_PITCH + 8 * imin(chunk, N_DV - 1));
          u32 bits[8];
          lds_u32x4(bits, chunk_of_team);
          lds_u32x4(bits + 4, chunk_of_team + 16);
          #pragma unroll
          for (int c = 0; c < 8; c++) { x[c] = as_f32(bits[c]); }
          const float peak = max_f32(m, m_of_part);
          const float origin = peak == NEG_INF ? 0.0f : peak;
          const float kept = exp2_f32(m - origin);
          const float added = exp2_f32(m_of_part - origin);
          l = kept * l + added * l_of_part;
          m = peak;
          #pragma unroll
          for (int c = 0; c < 8; c++) {
            sum[c] = sum[c] * kept + x[c] * added;
          }
        }
        if (shares == 1) {
          const int q = q0 + row / wide, h = first_head + row % wide;
          const float total = quad_sum(l);
          const float lse_of_row = total == 0.0f ? NEG_INF : (m + log2_f32(total)) * LN2;
          const float inverse = total == 0.0f ? 0.0f : inverse_f32(total);
          if (q < q_end && row % wide < heads) {
            if (8 * chunk < DV) {
              const float descale_o = (p.v_descale
                  ? ldg_f32(p.v_descale + ((i64)b * p.v_descale_b + (i64)g * p.v_descale_h))
                  : 1.0f);
              const float factor = inverse * descale_o;
              u32 packed[4];
              #pragma unroll
              for (int c = 0; c < 4; c++) {
                packed[c] = pack(sum[2 * c] * factor, sum[2 * c + 1] * factor);
              }
              stg_u32x4(p.o + (b * p.o_b + h * p.o_h) + ((i64)q * p.o_n + 8 * chunk), packed);
            }
            if (chunk == 0 && p.lse) { stg_f32(p.lse + (((i64)b * p.h + h) * p.nq + q),
                lse_of_row); }
          }
        } else {
          float *to = p.parts + (i64)place * PART_FLOATS;
          if (chunk < N_DV) {
            stg_f32x4(to + row * PART_COLUMNS + 8 * chunk, sum);
            stg_f32x4(to + row * PART_COLUMNS + 8 * chunk + 4, sum + 4);
          }
          if (chunk < 4) {
            stg_f32(to + BLOCK_Q * (PART_COLUMNS + 0) + lane_of_row, m);
            stg_f32(to + BLOCK_Q * (PART_COLUMNS + 4) + lane_of_row, l);
          }
        }
      }
      if (shares > 1) {
        block_sync(); // the block's part is written
        if (threadIdx.x == 0) {
          u64 *word = (u64 *)p.claims + first_place;
          fence_device();
          open_claims(word);
          const int comes_last = claim(word, shares) == shares - 1;
          fence_device();
          sts_u32(sm + SM_LAST, (u32)comes_last);
        }
        block_sync();
        if (lds_u32(sm + SM_LAST)) {
          for (int i = (int)threadIdx.x; i < BLOCK_Q * cdiv(N_DV, 4) * 4; i += THREADS) {
            const int lane_of_row = i % (4 * BLOCK_Q), row = lane_of_row / 4,
                chunk = i / (4 * BLOCK_Q) * 4 + i % 4;
            float m, l;
            float sum[8];
            zero(sum, 8);
            m = NEG_INF;
            l = 0.0f;
            #pragma unroll 8
            for (int number = 0; number < shares; number++) {
              float x[8];
              const float *part = p.parts + (i64)(number > 0 ? second_place
                  + (number - 1) * place_step : first_place) * PART_FLOATS;
              const float m_of_part = ldg_f32(part + BLOCK_Q * (PART_COLUMNS + 0) + lane_of_row);
              const float l_of_part = ldg_f32(part + BLOCK_Q * (PART_COLUMNS + 4) + lane_of_row);
              const float *columns = part + row * PART_COLUMNS + 8 * imin(chunk, N_DV - 1);
              ldg_f32x4(x, columns);
              ldg_f32x4(x + 4, columns + 4);
              const float peak = max_f32(m, m_of_part);
              const float origin = peak == NEG_INF ? 0.0f : peak;
              const float kept = exp2_f32(m - origin);
              const float added = exp2_f32(m_of_part - origin);
              l = kept * l + added * l_of_part;
              m = peak;
              #pragma unroll
              for (int c = 0; c < 8; c++) {
                sum[c] = sum[c] * kept + x[c] * added;
              }
            }
            const int q = q0 + row / wide, h = first_head + row % wide;
            const float total = quad_sum(l);
            const float lse_of_row = total == 0.0f ? NEG_INF : (m + log2_f32(total)) * LN2;
            const float inverse = total == 0.0f ? 0.0f : inverse_f32(total);
            if (q < q_end && row % wide < heads) {
              if (8 * chunk < DV) {
                const float descale_o = (p.v_descale
                    ? ldg_f32(p.v_descale + ((i64)b * p.v_descale_b + (i64)g * p.v_descale_h))
                    : 1.0f);
                const float factor = inverse * descale_o;
                u32 packed[4];
                #pragma unroll
                for (int c = 0; c < 4; c++) {
                  packed[c] = pack(sum[2 * c] * factor, sum[2 * c + 1] * factor);
                }
                stg_u32x4(p.o + (b * p.o_b + h * p.o_h) + ((i64)q * p.o_n + 8 * chunk), packed);
              }
              if (chunk == 0 && p.lse) { stg_f32(p.lse + (((i64)b * p.h + h) * p.nq + q),
                  lse_of_row); }
            }
          }
        }
      }
    }
    if (next_tiles == 0) { break; }
    unit = next_unit;
    head = next_head;
    from = next_from;
    tiles = next_tiles;
    shares = next_shares;
    place = next_place;
    first_place = next_first_place;
    second_place = next_second_place;
    {
      const int b = unit / row_tiles;
      const int q0 = unit % row_tiles * tokens;
      const int row_k = p.first_k ? imax(0, imin((int)ldg_u32(p.first_k + b), p.nk)) : 0;
      const int nk = imax(0, imin(imax((int)ldg_u32(p.used_k + b), 0), p.nk) - row_k);
      const int q_end = imin(q0 + tokens, p.nq);
      const int k_first = 0;
      const int g = head / head_tiles;
      const int first_head = g * group + head % head_tiles * wide;
      const int heads = imin(wide, (g + 1) * group - first_head);
      const float descaled = p.scale * (p.k_descale
          ? ldg_f32(p.k_descale + ((i64)b * p.k_descale_b + (i64)g * p.k_descale_h)) : 1.0f);
      const int row_low = member * WARP_Q + lane / 4 + 0;
      const int q_low = imin(q0 + row_low / wide, q_end - 1);
      const int h_low = first_head + imin(row_low % wide, heads - 1);
      u32 x[Q_WORDS];
      const int q = q_low, h = h_low;
      const u16 *own = p.q + (b * p.q_b + h * p.q_h) + ((i64)q * p.q_n + 4 * (lane % 4));
      #pragma unroll
      for (int i = 0; i < Q_WORDS / 4; i++) {
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int step = i + half * CHUNKS_D / 2;
          load_even_first(x + 4 * i + half, own + 16 * step, 16 * step < D);
        }
      }
      const float scale = descaled < 0.0f ? -descaled : descaled;
      if (descaled < 0.0f) {
        #pragma unroll
        for (int i = 0; i < Q_WORDS; i++) { x[i] ^= 0x80008000u; }
      }
      float o[ROWS * 2 * N_DV];
      float m[ROWS], l[ROWS];
      zero(o, ROWS * 2 * N_DV);
      #pragma unroll
      for (int r = 0; r < ROWS; r++) { m[r] = NEG_INF;
        l[r] = 0.0f; }
      block_sync(); // all parts of the segment before have been read
      int stage = 0;
      for (int i = team; i < tiles; i += TEAMS) {
        const int k0 = k_first + (from + i) * BLOCK_KV;
        cp_async_wait_2();
        warp_sync(ALL_LANES); // K and V are here; the last tile has been read
        {
          const int ahead = i + (STAGES - 1) * TEAMS, k0 = k_first + (from + ahead) * BLOCK_KV;
          const int to = (stage + 3) % 4;
          if (ahead < tiles) {
            load_found_tile_e4m3_by(thread, 32 * MEMBERS, keys + (u32)(to * STAGE_BYTES),
                CHUNKS_D, BLOCK_KV, p.k + (g * p.k_h), page_ahead * p.k_b + row_ahead * p.k_n, k0,
                nk, D);
            load_found_tile_e4m3_by(thread, 32 * MEMBERS, values + (u32)(to * STAGE_BYTES),
                CHUNKS_DV, BLOCK_KV, p.v + (g * p.v_h), page_ahead * p.v_b + row_ahead * p.v_n,
                k0, nk, DV);
          }
          cp_async_commit();
          {
            const int *pages = p.table + b * p.table_b;
            int page = 0, row_of_page = 0;
            if (k0 + TEAMS * BLOCK_KV + lane < nk) {
              const u32 at = (u32)(row_k + k0 + TEAMS * BLOCK_KV + lane);
              page = (int)ldg_u32(pages + at / (u32)p.page);
              row_of_page = (int)(at % (u32)p.page);
            }
            page_ahead = page;
            row_ahead = row_of_page;
          }
        }
        // S = Q K^T, the score, and what the mask leaves of it
        float s[N_KV * 4];
        zero(s, N_KV * 4);
        float other[N_KV * 4];
        zero(other, N_KV * 4);
        multiply_widened_halves_rt(s, other, N_KV, x, keys + (u32)(stage * STAGE_BYTES),
            k_lanes, CHUNKS_D);
        if (!(k0 + BLOCK_KV <= nk)) {
          #pragma unroll
          for (int r = 0; r < ROWS; r++) {
            float *own = s + 2 * r;
            #pragma unroll
            for (int n = 0; n < N_KV; n++) {
              #pragma unroll
              for (int c = 0; c < 2; c++) {
                const int k = k0 + k_lane + 8 * n + c;
                if (!(k < nk)) { own[4 * n + c] = NEG_INF; }
              }
            }
          }
        }

        // the rows' states move on; s becomes P
        #pragma unroll
        for (int r = 0; r < ROWS; r++) {
          float *own = s + 2 * r;
          const float peak = max_f32(m[r], quad_max(row_max(own, N_KV)) * (scale * LOG2E));
          const float origin = peak == NEG_INF ? 0.0f : peak;
          const float correction = exp2_f32(m[r] - origin);
          l[r] *= correction;
          #pragma unroll
          for (int n = 0; n < N_KV; n++) {
            #pragma unroll
            for (int c = 0; c < 2; c++) {
              own[4 * n + c] = exp2_f32(own[4 * n + c] * (scale * LOG2E) - origin);
              l[r] += own[4 * n + c];
            }
          }
          m[r] = peak;
          if (any_lane(ALL_LANES, correction != 1.0f)) {
            const float even = shfl(ALL_LANES, correction, 8 * (lane % 4)),
                odd = shfl(ALL_LANES, correction, 8 * (lane % 4) + 4);
            #pragma unroll
            for (int i = 0; i < 2 * N_DV; i += 2) {
              o[2 * N_DV * r + i] *= even;
              o[2 * N_DV * r + i + 1] *= odd;
            }
          }
        }

        // O^T += V^T P^T
        multiply_widened_tp(o, ROWS, s, N_KV, values + (u32)(stage * STAGE_BYTES),
            v_lanes, CHUNKS_DV);
        stage = (stage + 1) % 4;
      }
      warp_sync(ALL_LANES); // the last tile has been read
      const u32 own_part = sm + SM_PARTS + (u32)(team * PART_STEP);
      #pragma unroll
      for (int r = 0; r < ROWS; r++) {
        #pragma unroll
        for (int i = 0; i < 2 * N_DV; i++) {
          // lane l has columns l / 4 * 2 and the next of 16, of rows 2 * (l % 4) and the next
          const int row = member * WARP_Q + 8 * r + 2 * (lane % 4) + i % 2, column = i / 4 * 16
              + lane / 4 * 2 + i / 2 % 2;
          sts_u32(own_part + 4 * (u32)(row * PART_PITCH + column), as_u32(o[2 * N_DV * r + i]));
        }
        const u32 states = sm + SM_STATES
            + 4 * (u32)((team * BLOCK_Q + member * WARP_Q + 8 * r) * 4 + lane);
        sts_u32(states + 0 * STATE_BYTES, as_u32(m[r]));
        sts_u32(states + 1 * STATE_BYTES, as_u32(l[r]));
      }
    }
    block_sync(); // the teams' parts are there
  }
}
