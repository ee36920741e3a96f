/* t_mma_planted_forward.c - bugs planted in the tensor-core templates of forward, and in the tiles
 * that both passes use: the host device or the oracle catches each. */
#include "mma_planted.h"

#define FULL     "mask=full "
#define CAUSAL   "mask=causal "
#define TOP_LEFT "mask=causal_top_left "
#define WINDOW   "family=mma head_dim=64 block_kv=96 mask=window(60,5) "
#define TILED    "mask=causal bias=true "
#define WIDE_O   "o_dtype=f32 "
#define CAPPED   "mask=causal score=softcap(30.0) "
#define LOADED   "mask=causal bias=true bias_dtype=f32 "

static const planted_bug tiles[] = {
    /* how chunks are mixed, on one side only */
    {"tile.tiles.load", "chunk_at(tile, chunks, row, chunk)",
     "tile + (u32)(row * chunks + chunk) * 16", .words = F_TWO FULL, .fault = MIXED},
    {"tile.tiles.by_rows", "chunk_at(base, chunks, row0 + lane % 16, chunk0 + lane / 16)",
     "base + (u32)((row0 + lane % 16) * chunks + chunk0 + lane / 16) * 16", .words = F_TWO FULL,
     .fault = MIXED},
    {"tile.tiles.by_chunks",
     "chunk_at(base, chunks, row0 + lane % 8 + lane / 16 * 8, chunk0 + lane / 8 % 2)",
     "base + (u32)((row0 + lane % 8 + lane / 16 * 8) * chunks + chunk0 + lane / 8 % 2) * 16",
     .words = F_TWO FULL, .fault = MIXED},
    {"tile.tiles.put", "moved(to, chunks, 0, chunk", "to + (u32)(chunk * 16", .words = F_TWO FULL,
     .fault = MIXED},
    {"tile.tiles.store", "chunk_at(tile, chunks, tile_row + row + r, chunk + c)",
     "tile + (u32)((tile_row + row + r) * chunks + chunk + c) * 16", .words = F_TWO FULL,
     .fault = MIXED},
    {"tile.tiles.load_ragged", "moved(to, chunks, r, c)",
     "tile + (u32)((row + r) * chunks + chunk + c) * 16", .words = F_TWO TILED, .fault = MIXED},
    {"tile.tiles.load_unaligned", "chunk_at(tile, chunks, row, column / 8)",
     "tile + (u32)(row * chunks + column / 8) * 16", .words = F_TWO TILED, .fault = MIXED},
    {"tile.tiles.moved", "at ^", "at +", .words = F_TWO FULL, .fault = MIXED},
    /* places that ldmatrix reads */
    {"tile.tiles.by_rows", "lane % 16", "lane % 8", .words = F_TWO FULL},
    {"tile.tiles.by_rows", " + lane / 16", "", .words = F_TWO FULL},
    {"tile.tiles.by_chunks", "8 + lane / 16 * 8", "16", .words = F_TWO FULL},
    {"tile.tiles.by_chunks", "lane / 8 % 2", "lane / 16", .words = F_TWO FULL},
    {"tile.tiles.moved", "rows * chunks + ", "", .words = F_TWO FULL, .fault = MIXED},
    {"tile.tiles.multiply_pn", "ldmatrix_x4_trans", "ldmatrix_x4", .words = F_TWO FULL},
    {"tile.tiles.multiply_nt", "k = first", "k = first + 2", .words = F_MANY FULL},
    {"tile.tiles.add_numbers", "+= x[i]", "= x[i]", .words = F_MANY FULL},
    {"mma.forward.part_of_scores", "imin(chunk + CHUNKS_OF_SUM, CHUNKS_D)", "chunk + CHUNKS_OF_SUM",
     .words = F_MANY FULL, .fault = MIXED},
    {"tile.tiles.multiply_nt", "; k +", " - 2; k +", .words = F_TWO FULL},
    {"tile.tiles.multiply_pn", "k;", "k - 2;", .words = F_TWO FULL},
    {"tile.tiles.multiply_nt", "M_STEP * i", "0", .words = F_WIDE FULL},
    {"tile.tiles.multiply_nt", "i, k", "i, 0", .words = F_TWO FULL},
    {"tile.tiles.multiply_nt", "8 * j", "0", .words = F_TWO FULL},
    {"tile.tiles.multiply_nt", "j, k", "j, 0", .words = F_TWO FULL},
    {"tile.tiles.multiply_pn", "8 * l", "0", .words = F_TWO FULL},
    {"tile.tiles.multiply_pn", "j)", "0)", .words = F_TWO FULL},
    /* fragments */
    {"tile.tiles.mma", "b + 2", "b", .words = F_TWO FULL},
    {"tile.tiles.pack", "2], c[3", "4], c[5", .words = F_TWO FULL},
    /* what is copied */
    {"tile.tiles.load", "there ? 16 : 0", "16", .words = F_TWO FULL,
     .fault = BEYOND "|wrong numbers"},
    {"tile.tiles.load", "row0 + row + r < end && ", "", .words = F_TWO FULL, .fault = BEYOND},
    {"tile.tiles.load", " && $(form.of_chunk) * (chunk + c) < width", "", .words = F_TWO FULL,
     .fault = BEYOND "|wrong numbers"},
    {"tile.tiles.load_ragged", "imax(0, imin(16, there))", "16", .words = F_TWO TILED,
     .fault = BEYOND},
    {"tile.tiles.load_ragged", "r <", "r <=", .words = F_TWO TILED, .fault = BEYOND},
    {"tile.tiles.load_unaligned", " end && column <", "= end && column <", .words = F_TWO TILED,
     .fault = BEYOND},
    {"tile.tiles.load_unaligned", " && column + 1 < width", "", .words = F_TWO TILED,
     .fault = BEYOND},
    {"tile.tiles.load", "(row0 + row)", "row", .words = F_TWO FULL},
    {"tile.tiles.load", " && chunk + c < chunks", "", .words = F_TWO FULL,
     .fault = MIXED "|out of bounds"},
    /* what leaves */
    {"tile.tiles.store", "row0 + row + r < end && ", "", .words = F_TWO FULL, .fault = STORED},
    {"tile.tiles.put", "8, chunk", "0, chunk", .words = F_TWO FULL, .fault = MIXED},
    {"tile.tiles.put", "] * low, c[4 * i + 1", " + 1] * low, c[4 * i", .words = F_TWO FULL},
    {"tile.tiles.put", "high, c[4 * i + 3] * high", "low, c[4 * i + 3] * low", .words = F_TWO FULL},
    /* rows */
    {"tile.tiles.quad_sum", "shfl_xor(ALL_LANES, v, 1)", "v", .words = F_TWO FULL},
    {"tile.tiles.quad_sum", " + shfl_xor(ALL_LANES, v, 2)", "", .words = F_TWO FULL},
    {"tile.tiles.quad_max", "max_f32(v, shfl_xor(ALL_LANES, v, 2))", "v", .words = F_TWO FULL},
    {"tile.tiles.row_max", "max_f32(own[0], own[1])", "own[0]", .words = F_TWO FULL},
    {"tile.tiles.negate", "$(types.operand.signs)", "0x8000u", .words = F_TWO FULL},
};

static const planted_bug forward[] = {
    /* bounds and masks */
    {"mma.forward.seen", "seq.has_k(\"k\"), ", "", .words = F_TWO FULL},
    {"mma.forward.seen", ", pair.test", "", .words = F_TWO CAUSAL},
    {"mma.forward.hide", "text.all_of(seq.all_k(\"k0 + BLOCK_KV\"), tile.always)", "tile.always",
     .words = F_TWO FULL},
    {"mma.forward.hide", ", tile.always", "", .words = F_TWO CAUSAL},
    {"mma.forward.hide", "text.least(seq.nk, bound)", "bound", .words = F_TWO TOP_LEFT},
    {"mma.forward.hide", "text.least(seq.nk, bound)", "seq.nk", .words = F_TWO TOP_LEFT},
    {"mma.forward.whole", "seq.all_k(\"k0 + BLOCK_KV\"), ", "", .words = F_TWO FULL "bias=true"},
    {"mma.forward.rows_of_warp", "WARP_Q", "1", .words = F_EIGHT CAUSAL},
    {"mma.forward.columns", " + k_lane", "", .words = WINDOW},
    {"mma.forward.hide_columns", " + c", "", .words = WINDOW},
    {"expr.text.seen_columns", " & ~\" .. below(first)", "\"", .words = WINDOW},
    {"mma.forward.first_tile", "q0\"", "q0 + 8\"", .words = WINDOW},
    {"tile.tiles.short_first", " + few", "", .words = WINDOW, .fault = STORED "|wrong numbers",
     .place = {{FORWARD}}},
    {"expr.trees.place", "- \" .. nq", "- 1 - \" .. nq", .words = F_TWO CAUSAL},
    {"expr.masks.tile", ", h", " .. \" - 1\", h", .words = F_TWO CAUSAL},
    {"expr.masks.keys", "}, seq", ".. \" - 64\" }, seq", .words = F_TWO CAUSAL},
    /* the state of rows */
    {"mma.forward.correct_o", "$(row.correction)", "1.0f", .words = F_TWO CAUSAL},
    {"normalizers.softmax.step", "$l *= $correction;", "", .words = F_TWO CAUSAL},
    {"normalizers.softmax.step", "$m = peak;", "", .words = F_TWO CAUSAL},
    {"mma.forward.finish_rows", "factor[r] = inverse", "factor[r] = 1.0f", .words = F_TWO CAUSAL},
    {"mma.forward.store_f32_o", "], factor[2 * i + 1", " + 1], factor[2 * i",
     .words = F_TWO CAUSAL WIDE_O},
    {"tile.tiles.store_accumulator", "8 * stride + ", "", .words = F_TWO FULL WIDE_O},
    {"tile.tiles.store_accumulator", " && row < end", "", .words = F_TWO FULL WIDE_O,
     .fault = STORED},
    {"mma.forward.put_o", "], factor[2 * i + 1", " + 1], factor[2 * i", .words = F_TWO CAUSAL},
    {"mma.forward.row_of_scores", "r / 2", "r / 4", .words = F_WIDE FULL},
    /* a cap: where its polynomial ends, its powers, the rows' one reference */
    {"mma.forward.small_test", "reach <= cap_reach", "1", .words = F_TWO CAPPED},
    {"contract.cap_powers", " * cap_square,", ",", .words = F_TWO CAPPED, .place = {{FORWARD}}},
    {"mma.forward.start_rows", "cap and norm.start(row) or ", "", .words = F_TWO CAPPED},
    /* a negative scale */
    {"mma.forward.sign_of_scale", "negate_tile(sm + SM_Q, $(chunks_q), BLOCK_Q);", "",
     .words = F_TWO CAUSAL},
    {"mma.forward.sign_of_scale", "$(score.positive_scale)", "p.scale", .words = F_TWO CAUSAL},
    /* the score's input, from a tile and element by element */
    {"mma.forward.input_tile", "* 2 + j / 2 %", "+ j / 2 % 2 *", .words = F_TWO TILED},
    {"mma.forward.input_tile", "N_KV * i + ", "", .words = F_WIDE TILED},
    {"mma.forward.input", "warp * WARP_Q", "0", .words = F_TWO TILED},
    {"mma.forward.load_input", " + ($(at))", "", .words = F_TWO TILED,
     .fault = BEYOND "|wrong numbers"},
    {"mma.forward.load_input", " - ($(at))", "", .words = F_TWO TILED, .fault = BEYOND},
    {"mma.forward.input", "$(tiled.aligned)", "1", .words = F_TWO TILED,
     .fault = "cp.async misaligned"},
    {"contract.pair", "texts.values[names.exponent and 4 or 2]",
     "(texts.values[names.exponent and 4 or 2]:gsub('c%)', 'c + 1)'))", .words = F_TWO LOADED,
     .fault = BEYOND "|wrong numbers", .place = {{"mma.forward.each_pair", "(body)"}}},
    {"mma.forward.each_pair", "n + c", "n", .words = F_TWO LOADED},
    {"mma.forward.seen", "seq.has_q(\"q\")", "\"1\"", .words = F_TWO LOADED, .fault = BEYOND,
     .place = {{SCORES}}},
    /* heads, and what is kept */
    {"mma.forward.heads", "/ (p.h / p.hk)", "% p.hk", .words = F_TWO FULL},
    {"mma.forward.finish_rows", "lane % 4 == 0 && q < $(seq.nq) && p.$(norm.second", "q < $(seq.nq",
     .words = F_TWO CAUSAL, .fault = "race: store at"},
    {"mma.forward.finish_rows", " && q < $(seq.nq) && p.$(norm.second)", "", .words = F_TWO CAUSAL,
     .fault = STORED},
};

PLANTED_SUITE(.name = "mma planted forward", .bugs = {PLANTED(tiles), PLANTED(forward)},
              .cases = mma_cases)
