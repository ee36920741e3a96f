/* t_mma_planted_forward.c - bugs planted in the tensor-core templates of forward, and in the tiles
 * that both passes use: the host device or the oracle catches each, in every seed. */
#include "mma_planted.h"
#include "scratch.h"

#include "host/engine.h"

#define FULL     "mask=full "
#define CAUSAL   "mask=causal "
#define TOP_LEFT "mask=causal_top_left "
#define WINDOW   "family=mma head_dim=64 block_kv=96 mask=window(60,5) "
#define TILED    "mask=causal bias=true "
#define CAPPED   "mask=causal score=softcap(30.0) "
#define LOADED   "mask=causal bias=true bias_dtype=f32 "

static const planted_bug tiles[] = {
    /* how chunks are mixed, on one side only */
    {TILES, "const u32 to = chunk_at(tile, chunks, row, chunk);",
     "const u32 to = tile + (u32)(row * chunks + chunk) * 16;", .words = F_TWO FULL,
     .fault = MIXED},
    {TILES, "return chunk_at(base, chunks, row0 + lane % 16, chunk0 + lane / 16);",
     "return base + (u32)((row0 + lane % 16) * chunks + chunk0 + lane / 16) * 16;",
     .words = F_TWO FULL, .fault = MIXED},
    {TILES,
     "return chunk_at(base, chunks, row0 + lane % 8 + lane / 16 * 8, chunk0 + lane / 8 % 2);",
     "return base + (u32)((row0 + lane % 8 + lane / 16 * 8) * chunks + chunk0 + lane / 8 % 2) * "
     "16;",
     .words = F_TWO FULL, .fault = MIXED},
    {TILES, "sts_u32(moved(to, chunks, 0, chunk)", "sts_u32(to + (u32)(chunk * 16)",
     .words = F_TWO FULL, .fault = MIXED},
    {TILES, "lds_u32x4(v, chunk_at(tile, chunks, tile_row + row + r, chunk + c));",
     "lds_u32x4(v, tile + (u32)((tile_row + row + r) * chunks + chunk + c) * 16);",
     .words = F_TWO FULL, .fault = MIXED},
    {TILES, "cp_async_16(moved(to, chunks, r, c), from + 8 * c, whole",
     "cp_async_16(tile + (u32)((row + r) * chunks + chunk + c) * 16, from + 8 * c, whole",
     .words = F_TWO TILED, .fault = MIXED},
    {TILES, "sts_u32(chunk_at(tile, chunks, row, column / 8)",
     "sts_u32(tile + (u32)(row * chunks + column / 8) * 16", .words = F_TWO TILED, .fault = MIXED},
    {TILES, "(at ^ (u32)(chunks_on % span * 16))", "(at + (u32)(chunks_on % span * 16))",
     .words = F_TWO FULL, .fault = MIXED},
    /* places that ldmatrix reads */
    {TILES, "row0 + lane % 16, chunk0", "row0 + lane % 8, chunk0", .words = F_TWO FULL},
    {TILES, "chunk0 + lane / 16)", "chunk0)", .words = F_TWO FULL},
    {TILES, "lane % 8 + lane / 16 * 8, chunk0", "lane % 16, chunk0", .words = F_TWO FULL},
    {TILES, "chunk0 + lane / 8 % 2)", "chunk0 + lane / 16)", .words = F_TWO FULL},
    {TILES, "+ (u32)(rows * chunks + chunks_on", "+ (u32)(chunks_on", .words = F_TWO FULL,
     .fault = MIXED},
    {TILES, "ldmatrix_x4_trans(y, b_tile + moved(b, chunks, 8 * l, j));",
     "ldmatrix_x4(y, b_tile + moved(b, chunks, 8 * l, j));", .words = F_TWO FULL},
    {TILES, "k < chunks; k += 2", "k < chunks - 2; k += 2", .words = F_TWO FULL},
    {TILES, "l < k; l += 2", "l < k - 2; l += 2", .words = F_TWO FULL},
    {TILES, "a_tile + moved(a, chunks, M_STEP * i, k)", "a_tile + moved(a, chunks, 0, k)",
     .words = F_WIDE FULL},
    {TILES, "a_tile + moved(a, chunks, M_STEP * i, k)", "a_tile + moved(a, chunks, M_STEP * i, 0)",
     .words = F_TWO FULL},
    {TILES, "b_tile + moved(b, chunks, 8 * j, k)", "b_tile + moved(b, chunks, 0, k)",
     .words = F_TWO FULL},
    {TILES, "b_tile + moved(b, chunks, 8 * j, k)", "b_tile + moved(b, chunks, 8 * j, 0)",
     .words = F_TWO FULL},
    {TILES, "b_tile + moved(b, chunks, 8 * l, j)", "b_tile + moved(b, chunks, 0, j)",
     .words = F_TWO FULL},
    {TILES, "b_tile + moved(b, chunks, 8 * l, j)", "b_tile + moved(b, chunks, 8 * l, 0)",
     .words = F_TWO FULL},
    /* fragments */
    {TILES, "mma(c + 4 * n * i + 4, a + 4 * i, b + 2);", "mma(c + 4 * n * i + 4, a + 4 * i, b);",
     .words = F_TWO FULL},
    {TILES, "a[1] = pack(c[2], c[3]);", "a[1] = pack(c[4], c[5]);", .words = F_TWO FULL},
    /* what is copied */
    {TILES, "there ? 16 : 0", "16", .words = F_TWO FULL, .fault = BEYOND "|wrong numbers"},
    {TILES, "row0 + row + r < end && 8 * (chunk + c) < width;", "8 * (chunk + c) < width;",
     .words = F_TWO FULL, .fault = BEYOND},
    {TILES, "row0 + row + r < end && 8 * (chunk + c) < width;", "row0 + row + r < end;",
     .words = F_TWO FULL, .fault = BEYOND "|wrong numbers"},
    {TILES, "imax(0, imin(16, there))", "16", .words = F_TWO TILED, .fault = BEYOND},
    {TILES, "row0 + row + r < end ? 2 * (width", "row0 + row + r <= end ? 2 * (width",
     .words = F_TWO TILED, .fault = BEYOND},
    {TILES, "if (row0 + row < end && column < width)", "if (row0 + row <= end && column < width)",
     .words = F_TWO TILED, .fault = BEYOND},
    {TILES, "if (row0 + row < end && column + 1 < width)", "if (row0 + row < end)",
     .words = F_TWO TILED, .fault = BEYOND},
    {TILES, "from += (row0 + row) * stride", "from += row * stride", .words = F_TWO FULL},
    {TILES, "if (row + r < rows && chunk + c < chunks) {", "if (row + r < rows) {",
     .words = F_TWO FULL, .fault = MIXED "|out of bounds"},
    /* what leaves */
    {TILES, "if (row0 + row + r < end && 8 * (chunk + c) < width) {",
     "if (8 * (chunk + c) < width) {", .words = F_TWO FULL, .fault = STORED},
    {TILES, "moved(to, chunks, 8, chunk)", "moved(to, chunks, 0, chunk)", .words = F_TWO FULL,
     .fault = MIXED},
    {TILES, "c[4 * i] * low, c[4 * i + 1] * low", "c[4 * i + 1] * low, c[4 * i] * low",
     .words = F_TWO FULL},
    {TILES, "pack(c[4 * i + 2] * high, c[4 * i + 3] * high)",
     "pack(c[4 * i + 2] * low, c[4 * i + 3] * low)", .words = F_TWO FULL},
    /* rows */
    {TILES, "v += shfl_xor(ALL_LANES, v, 1);", "v += v;", .words = F_TWO FULL},
    {TILES, "return v + shfl_xor(ALL_LANES, v, 2);", "return v;", .words = F_TWO FULL},
    {TILES, "return max_f32(v, shfl_xor(ALL_LANES, v, 2));", "return v;", .words = F_TWO FULL},
    {TILES, "float most = max_f32(own[0], own[1]);", "float most = own[0];", .words = F_TWO FULL},
    {TILES, "v[i] ^= 0x80008000u;", "v[i] ^= 0x8000u;", .words = F_TWO FULL},
};
enum { TILES_N = sizeof tiles / sizeof *tiles };

static const planted_bug forward[] = {
    /* bounds and masks */
    {FORWARD, "seq.has_k(\"k\"), pair.test)", "pair.test)", .words = F_TWO FULL},
    {FORWARD, "seq.has_k(\"k\"), pair.test)", "seq.has_k(\"k\"))", .words = F_TWO CAUSAL},
    {FORWARD, "or text.all_of(seq.all_k(\"k0 + BLOCK_KV\"), tile.always)))) {",
     "or tile.always))) {", .words = F_TWO FULL},
    {FORWARD, "or text.all_of(seq.all_k(\"k0 + BLOCK_KV\"), tile.always)))) {",
     "or text.all_of(seq.all_k(\"k0 + BLOCK_KV\"))))) {", .words = F_TWO CAUSAL},
    {FORWARD, "text.least(seq.nk, bound)", "bound", .words = F_TWO TOP_LEFT},
    {FORWARD, "text.least(seq.nk, bound)", "seq.nk", .words = F_TWO TOP_LEFT},
    {FORWARD, "rows_are_whole, seq.all_k(\"k0 + BLOCK_KV\"), tile.always)",
     "rows_are_whole, tile.always)", .words = F_TWO FULL "bias=true"},
    {FORWARD, "seq.q_end(\"q_warp + WARP_Q\")", "seq.q_end(\"q_warp + 1\")",
     .words = F_EIGHT CAUSAL},
    {FORWARD, "const int k_from = k0 + k_lane;", "const int k_from = k0;", .words = WINDOW},
    {FORWARD, "seen >> (2 * n + c) & 1", "seen >> (2 * n) & 1", .words = WINDOW},
    {TEXT, "\" & ~\" .. below(first)", "\"\"", .words = WINDOW},
    {FORWARD, "mask.first_key(\"q0\",", "mask.first_key(\"q0 + 8\",", .words = WINDOW},
    {TILES, "turn < few ? turn : left + few", "turn < few ? turn : left", .words = WINDOW,
     .fault = STORED "|wrong numbers", .place = {{FORWARD}}},
    {TREES, "\" - \" .. seq.nq end", "\" - 1 - \" .. seq.nq end", .words = F_TWO CAUSAL},
    {MASKS, "k1 = k1, h = h", "k1 = k1 .. \" - 1\", h = h", .words = F_TWO CAUSAL},
    {MASKS, "bound(formula.keys.last, { q0 = q0, q1 = q1 }",
     "bound(formula.keys.last, { q0 = q0, q1 = q1 .. \" - 64\" }", .words = F_TWO CAUSAL},
    /* the state of rows */
    {FORWARD, "*= $(row.correction);", "*= 1.0f;", .words = F_TWO CAUSAL},
    {NORMALIZERS, "$l *= $correction;", "", .words = F_TWO CAUSAL},
    {NORMALIZERS, "$m = peak;]]", "]]", .words = F_TWO CAUSAL},
    {FORWARD, "factor[r] = inverse;", "factor[r] = 1.0f;", .words = F_TWO CAUSAL},
    {FORWARD, "factor[2 * i], factor[2 * i + 1]", "factor[2 * i + 1], factor[2 * i]",
     .words = F_TWO CAUSAL},
    {FORWARD, "float *own = s + 4 * N_KV * (r / 2)", "float *own = s + 4 * N_KV * (r / 4)",
     .words = F_WIDE FULL},
    /* a cap: where its polynomial ends, its powers, the rows' one reference */
    {FORWARD, "small_test = \"reach <= cap_reach\"", "small_test = \"1\"", .words = F_TWO CAPPED},
    {HOOKS, "cap3 = %s * cap_unit * cap_square,", "cap3 = %s * cap_unit,", .words = F_TWO CAPPED,
     .place = {{FORWARD}}},
    {FORWARD, "cap and norm.start(row) or norm.init(row)", "norm.init(row)", .words = F_TWO CAPPED},
    /* a negative scale */
    {FORWARD, "negate_tile(sm + SM_Q, CHUNKS_D, BLOCK_Q);", "", .words = F_TWO CAUSAL},
    {FORWARD, "const float scale = p.scale < 0.0f ? -p.scale : p.scale;",
     "const float scale = p.scale;", .words = F_TWO CAUSAL},
    /* the score's input, from a tile and element by element */
    {FORWARD, "(u16)(x[j / 4 * 2 + j / 2 % 2] >>", "(u16)(x[j / 4 + j / 2 % 2 * 2] >>",
     .words = F_TWO TILED},
    {FORWARD, "const int e = 4 * (N_KV * i + n + j / 4) + j % 4;",
     "const int e = 4 * (n + j / 4) + j % 4;", .words = F_WIDE TILED},
    {FORWARD, "by_rows(sm, BLOCK_KV / 8, warp * WARP_Q, 0)", "by_rows(sm, BLOCK_KV / 8, 0, 0)",
     .words = F_TWO TILED},
    {FORWARD, "$(tiled.rows) + ($(at))", "$(tiled.rows)", .words = F_TWO TILED,
     .fault = BEYOND "|wrong numbers"},
    {FORWARD, "$(seq.nk) - ($(at)), input_aligned);", "$(seq.nk), input_aligned);",
     .words = F_TWO TILED, .fault = BEYOND},
    {FORWARD, "const int input_aligned = $(tiled.aligned);", "const int input_aligned = 1;",
     .words = F_TWO TILED, .fault = "cp.async misaligned"},
    {HOOKS, "log2 = names.exponent and texts.values[4]",
     "log2 = names.exponent and (texts.values[4]:gsub('c%)', 'c + 1)'))", .words = F_TWO LOADED,
     .fault = BEYOND "|wrong numbers", .place = {{FORWARD, "$(body)"}}},
    {FORWARD, "and seq.has_q(\"q\") or \"1\", seq.has_k(\"k\"), pair.test)",
     "and \"1\" or \"1\", seq.has_k(\"k\"), pair.test)", .words = F_TWO LOADED, .fault = BEYOND},
    /* heads, and what is kept */
    {FORWARD, "g = h / (p.h / p.hk);", "g = h % p.hk;", .words = F_TWO FULL},
    {FORWARD, "if (lane % 4 == 0 && q < $(seq.nq) && p.$(norm.second)) {", "if (q < $(seq.nq)) {",
     .words = F_TWO CAUSAL, .fault = "race: store at"},
    {FORWARD, "if (lane % 4 == 0 && q < $(seq.nq) && p.$(norm.second)) {", "if (lane % 4 == 0) {",
     .words = F_TWO CAUSAL, .fault = STORED},
};
enum { FORWARD_N = sizeof forward / sizeof *forward };

START_TEST(test_tiles) { mma_planted_try(tiles[_i]); }
END_TEST

START_TEST(test_forward) { mma_planted_try(forward[_i]); }
END_TEST

int main(void) {
  fg_host_watchdog_seconds = 1;
  Suite *suite = suite_create("mma planted forward");
  TCase *tests = tcase_create("mma planted forward");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_loop(tests, test_tiles, TILES_N);
  suite_loop(tests, test_forward, FORWARD_N);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
