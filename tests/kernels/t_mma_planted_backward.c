/* t_mma_planted_backward.c - bugs planted in the tensor-core templates of backward: the host device
 * or the oracle catches each. */
#include "mma_planted.h"

#define FULL   "mask=full "
#define CAUSAL "mask=causal "
#define TILED  "mask=causal bias=true "
#define LOADED "mask=causal bias=true bias_dtype=f32 "
/* Four parts, each with several pairs of column tiles, of widths that they divide and do not. */
#define B_COLUMNS "family=mma pass=backward head_dim=96/72 warps_per_key=4 stages=1 mask=causal "
/* Warps of 32 keys under a window, that share none, and that do. */
#define WINDOW   "mask=window(70,0) "
#define B_SHARED "family=mma pass=backward head_dim=64 block_kv=128 warps=8 warps_per_key=2 "
#define IN_F32   "o_dtype=f32 dqkv_dtype=f32 "
#define R_DQ     B_PAIRS "mask=causal deterministic=true "
/* Wide heads: warps that make no scores, and have no diagonals; that share rows. */
#define B_WIDE  "family=mma pass=backward head_dim=264/40 warps=8 block_q=32 block_kv=32 stages=1 "
#define B_LEAST "family=mma pass=backward head_dim=264/40 warps=8 block_q=16 block_kv=16 "
#define BY_FAR  "score=relative(t) inputs.t=f32[h,nq+nk-1]grad "
#define R_GRAD  B_PAIRS "mask=causal deterministic=true bias=grad bias_dims="

static const planted_bug backward[] = {
    /* products through shared memory */
    {"tile.tiles.multiply_nn", "; k +", " - 2; k +", .words = B_FOURS FULL},
    {"tile.tiles.multiply_tn", "rows", "rows - 16", .words = B_TWO FULL},
    {"tile.tiles.multiply_nn", "M_STEP * i", "0", .words = BWD FULL "block_kv=128 warps_per_key=2"},
    {"tile.tiles.multiply_nn", "ldmatrix_x4_trans", "ldmatrix_x4", .words = B_PAIRS FULL},
    {"tile.tiles.multiply_tn", "ldmatrix_x4_trans(x", "ldmatrix_x4(x", .words = B_TWO FULL},
    {"tile.tiles.multiply_tn", "ldmatrix_x4_trans(y", "ldmatrix_x4(y", .words = B_TWO FULL},
    {"tile.tiles.multiply_nn", " / 2 * on)", ")", .words = B_COLUMNS},
    {"tile.tiles.multiply_tn", "2 * i", "0", .words = B_TWO FULL},
    {"tile.tiles.multiply_tn", " / 2 * on)", ")", .words = B_COLUMNS},
    {"tile.tiles.put", " / 2 * on + i % 2", "", .words = B_COLUMNS, .fault = MIXED},
    {"tile.tiles.store", " && 8 * (chunk + c) < width", "", .words = B_PAIRS FULL, .fault = STORED},
    {"tile.tiles.dot", "(a[i] >> 16)", "a[i]", .words = B_TWO FULL},
    /* which tiles */
    {"mma.backward.load_next", "h_next < h_end", "1", .words = B_TWO FULL,
     .fault = BEYOND "|race: atomic add"},
    {"backward.walk.heads", "h + heads", "h + 1", .words = B_TWO FULL},
    {"expr.masks.queries", ", k1 = k1 }, \"", " .. \" + 32\", k1 = k1 }, \"",
     .words = B_TWO CAUSAL},
    /* wide heads */
    {"mma.weights.makes_scores", "part < QUERY_PARTS", "part == 0", .words = B_WIDE FULL,
     .fault = MIXED},
    {"mma.backward.has_diagonals", "warp < BLOCK_KV / 8", "1", .words = B_WIDE BY_FAR},
    {"tile.diagonals.last_chunk", "imin(4, chunks - c)", "4", .words = B_LEAST BY_FAR},
    /* kept and delta */
    {"mma.backward.load_kept", "2; i", "2 - 1; i", .words = B_TWO FULL, .fault = "never written",
     .place = {{PAIRS}}},
    {"backward.pairs.kept", "2 * c + 1", "2 * c", .words = B_TWO FULL},
    {"backward.kept_row.write", "kept + 1", "kept", .words = B_TWO FULL,
     .fault = "load of an element never written: * kept", .place = {{BACKWARD}}},
    {"backward.kept.row", "q < $(seq.nq)", "1", .words = B_TWO FULL,
     .fault = BEYOND "|wrong numbers",
     .place = {{"attention/backward/kept.cut"}, {"attention/backward/kept_row.cut"}}},
    {"backward.kept.end", "if (q >= padded) { return; }", "", .words = B_LEAST FULL,
     .fault = STORED,
     .place = {{"attention/backward/kept.cut"}, {"attention/backward/kept_row.cut"}}},
    {"backward.kept.sum", "0; mask", "1; mask", .words = B_TWO FULL},
    {"normalizers.softmax.ds", "($dp - $delta)", "$dp", .words = B_TWO FULL ";" R_DQ},
    {"normalizers.softmax.kept", "== NEG_INF ? -NEG_INF : $lse ", "", .words = B_TWO CAUSAL},
    /* bounds and masks */
    {"backward.weights.seen", "seq.has_k(\"k\"), ", "", .words = B_TWO FULL},
    {"backward.weights.seen", ", pair.test", "", .words = B_TWO CAUSAL},
    {"backward.weights.seen", ", tile.always", "", .words = B_TWO CAUSAL},
    {"mma.weights.take_input", "8 * n, 2 * i", "0 * n, 2 * i",
     .words = "family=mma pass=backward head_dim=64 score=s*m[h,q,k] "
              "inputs.m=bf16[h,q,k]"},
    {"backward.weights.hide", "$(hidden)", "$(norm.masked)", .words = B_TWO CAUSAL},
    /* the score's input */
    {"mma.weights.input_element", "* 2 + j / 2 %", "+ j / 2 % 2 *", .words = B_TWO TILED},
    {"mma.backward.lanes", "warp_k / 8", "0", .words = B_TWO TILED},
    {"mma.weights.input_tile", "input_lanes", "dv_lanes", .words = B_TWO TILED, .fault = MIXED},
    {"mma.weights.input", "from(\"(BLOCK_KV / 8)\")", "\"\"", .words = B_HALVES TILED},
    {"mma.backward.load_input", " - k0", "", .words = B_TWO TILED, .fault = BEYOND},
    {"backward.weights.seen", "\"kept != \" .. norm.no_weight or seq.has_q(\"q\")",
     "\"1\" or \"1\"", .words = B_TWO LOADED, .fault = BEYOND, .place = {{PAIRS}}},
    /* P and dS through shared memory */
    {"mma.weights.put_ds", "turns() and \"from / 8\" or ", "", .words = B_PARTS FULL,
     .fault = MIXED},
    {"mma.weights.put_ds", "part * N_Q", "0", .words = B_PAIRS FULL, .fault = MIXED},
    {"mma.weights.put_p", "part * N_Q", "0", .words = B_PAIRS FULL, .fault = MIXED},
    {"mma.weights.put", " + M_STEP * i", "", .words = B_PARTS FULL, .fault = MIXED},
    /* parts */
    {"mma.backward.lanes", "split.warps_share_keys and \"2 * part\" or ", "", .words = B_PAIRS FULL,
     .fault = MIXED},
    {"mma.backward.lanes", "split.warps_share_keys and \"part * (8 * N_Q)\" or ", "",
     .words = B_PAIRS FULL},
    {"mma.backward.keys_of_warp", "warp % WARPS_PER_KEY", "0", .words = B_PAIRS FULL,
     .fault = MIXED, AT_WORK},
    {"mma.backward.add_dq", " / 2 * (2 * WARPS_D) + i % 2", "", .words = B_COLUMNS},
    /* dQ */
    {"backward.kept.zero_dq", "stg_f32x4(sum + i, zeros);", "", .words = B_TWO FULL,
     .fault = "never written: * dq_sum", .place = {{"mma.backward.add_dq", "(sum"}}},
    {"mma.backward.place_of_dq", "warp % WARPS_Q * 32", "0", .words = B_PARTS FULL},
    {"mma.backward.place_of_dq", "warp / WARPS_Q * 2", "0", .words = B_TWO FULL},
    {"mma.backward.add_dq", "i / N_DQ * CHUNKS_D + ", "", .words = B_TWO FULL},
    {"mma.backward.rows_of_ds", "moved(ds_lanes, CHUNKS_Q, 0, row / 8)", "ds_lanes",
     .words = B_PAIRS FULL},
    {"mma.backward.add_dq", "split.dq_in_turns and \" + row\" or ", "", .words = B_PAIRS FULL},
    {"mma.backward.add_dq", " + dq_row", "", .words = B_PARTS FULL},
    {"mma.backward.add_dq", "CHUNKS_D % (2 * WARPS_D) == 0 || dq_chunk + chunk < CHUNKS_D", "1",
     .words = B_TWO FULL, .fault = "past the end of|wrong numbers|race: atomic add"},
    {"backward.dq.store_f32_dq", "x[2 + c]", "x[c]", .words = B_TWO FULL IN_F32},
    {"backward.dq.store_dq", " * p.scale, x[3] * p.scale", ", x[3]", .words = B_TWO FULL},
    {"backward.dq.dq_sum", "q % 8 * 4", "q % 8", .words = B_TWO FULL},
    {"backward.dq.store_rows", "if (q < $(seq.nq)) { $(store)(to, low); }", "$(store)(to, low);",
     .words = B_TWO FULL, .fault = STORED},
    {"backward.dq.store_rows", "q + 8 ", "q ", .words = B_TWO FULL, .fault = STORED},
    /* halves of a block's keys, at a window's bounds: whose warps have keys of their own, or share
     */
    {"mma.weights.seen_halves", "= (q0 + BLOCK_Q ", "= (q0 ", .words = B_PARTS WINDOW},
    {"mma.weights.seen_halves", "< lower_end", "+ BLOCK_Q < lower_end", .words = B_PARTS WINDOW},
    {"mma.weights.seen_halves", "* (q0 + BLOCK_Q ", "* (q0 ", .words = B_PARTS WINDOW},
    {"mma.weights.queries_of_half", "M_STEP\"", "16\"", .words = B_PARTS WINDOW},
    {"mma.weights.upper_half", "M_STEP", "16", .words = B_PARTS WINDOW ";" B_SHARED WINDOW,
     .fault = MIXED, .place = {{TILES}}},
    {"mma.weights.upper_half", "4 * %s", "0 * %s", .words = B_PARTS WINDOW ";" B_SHARED WINDOW},
    {"mma.weights.put", " + $(pairs.half.number) * M_STEP", "",
     .words = B_PARTS WINDOW ";" B_SHARED WINDOW, .fault = MIXED},
    {"mma.weights.one_half", "seen_halves == 1 ? 0 : M_STEP", "0",
     .words = B_PARTS WINDOW ";" B_SHARED WINDOW, .fault = MIXED},
    {"mma.weights.one_half", "\"first_key\", \"M_STEP", "nil, \"BLOCK_KV", .words = B_PARTS WINDOW,
     .fault = MIXED},
    {"mma.backward.store_f32", "M_STEP", "16", .words = B_PARTS WINDOW IN_F32, .fault = STORED},
    {"mma.backward.store_f32", "p.scale, p.scale", "1.0f, 1.0f", .words = B_TWO FULL IN_F32},
    {"mma.backward.store_f32", " + 4 * N_DK * i", "", .words = B_PARTS FULL IN_F32},
    {"tile.tiles.store_accumulator", " / 2 * on", "", .words = B_COLUMNS IN_F32, .fault = STORED},
    {"mma.backward.put_dk", "M_STEP", "16", .words = B_PARTS WINDOW, .fault = MIXED},
    {"mma.weights.keys_of_warp", " use.tiles_in_halves and \"16\" or", "", .words = B_PARTS WINDOW,
     .fault = MIXED "|" BEYOND "|outside"},
    {"mma.weights.keys_of_lane", "(r / 2 * M_STEP + r % 2 * 8)", "8 * r",
     .words = B_PARTS WINDOW ";" B_SHARED WINDOW},
    {"backward.pairs.keys", "2 * gives.half.number, 2 * gives.half.number +", "0,",
     .words = B_PARTS WINDOW},
    {"mma.weights.keys_of_lane", "BLOCK_Q / 8", "N_Q", .words = B_PARTS WINDOW, .fault = MIXED,
     .place = {{TILES}}},
    /* which keys, and what leaves */
    {"tile.tiles.some_short_first", "left + 1", "left", .words = B_TWO "mask=window(200,5)",
     .fault = STORED "|wrong numbers", .place = {{BACKWARD}, {TILES}}},
    {"mma.backward.put_dk", "p.scale, p.scale", "1.0f, 1.0f", .words = B_TWO FULL},
    {"mma.backward.put_dk", " + 4 * N_DK * i", "", .words = B_PARTS FULL},
    {"mma.backward.store_dv", " + row", "", .words = B_TWO FULL, .fault = "race: store at"},
};

static const planted_bug rows[] = {
    {"mma.rows.hide", "$(first_row)", "0", .words = R_DQ},
    {"mma.rows.load_kept", "q < $(seq.nq) ? ldg_f32(row) : $(norm.no_weight or \"0.0f\")",
     "ldg_f32(row)", .words = R_DQ, .fault = BEYOND},
    {"mma.rows.load_kept", "row)", "row + 1)", .words = R_DQ},
    {"mma.rows.seen", "seq.has_k(\"k\"), ", "", .words = B_PAIRS "mask=full deterministic=true"},
    {"mma.rows.seen", ", pair.test)", ")", .words = R_DQ},
    {"mma.rows.hide", ", tile.always))", "))", .words = R_DQ},
    {"mma.rows.hide", "score.masked_product", "norm.masked", .words = R_DQ},
    {"mma.rows.seen", "seq.has_q(\"q\")", "\"1\"", .words = R_GRAD "[q,k]", .fault = BEYOND},
    {"mma.rows.add_dq", "by_rows(sm, CHUNKS_D, 0, 0), CHUNKS_D); // dQ += dS K",
     "by_chunks(sm, CHUNKS_D, 0, 0), CHUNKS_D);", .words = R_DQ},
    {"mma.rows.store_f32_dq", "p.scale, p.scale", "1.0f, 1.0f", .words = R_DQ IN_F32},
    {"mma.rows.store_dq", "p.scale, p.scale", "1.0f, 1.0f", .words = R_DQ},
    {"mma.rows.store_dq", " + $(first_row)", "", .words = R_DQ, .fault = "race: store at",
     .place = {{"tile.tiles.store", "stg_u32x4"}}},
    /* warps that share rows */
    {"mma.rows.share", "\"warp / ROW_WARPS\"", "\"0\"", .words = R_SHARED FULL, .fault = MIXED},
    {"mma.rows.add_columns_of_dq", "by_rows(sm, CHUNKS_D, 0, $(first_chunk))",
     "by_rows(sm, CHUNKS_D, 0, 0)", .words = R_SHARED FULL},
    {"tile.tiles.multiply_pc", " / 2 * on)", ")", .words = R_SHARED FULL},
    {"mma.rows.share", "\"warp < ROW_WARPS\"", "\"1\"",
     .words = R_SHARED FULL "bias=grad bias_dims=[q,k]", .fault = STORED},
    /* sums over axes that are not kept; those over all keys of a row are 0 with or without a bug,
     * where no gradient of the LSE is given */
    {"mma.rows.sum_pairs", "e] +=", "e] =", .words = R_GRAD "[k],[q,k]"},
    {"mma.rows.sum_row", "i < 2 * ", "i < ", .words = R_GRAD "[q]"},
    {"mma.rows.sum_row", "sum[2 * r] = quad_sum(sum[2 * r]);", "", .words = R_GRAD "[q]"},
    {"mma.rows.sum_columns", "+ sum[4 * (i / 2) + 2 + i % 2]", "", .words = R_GRAD "[k]"},
    {"mma.rows.sum_columns", "4; mask", "8; mask", .words = R_GRAD "[k]"},
    {"mma.rows.sum_columns", "lane < 4", "lane < 8", .words = R_GRAD "[k]",
     .fault = "race: shared store"},
    {"mma.rows.add_warps", "; w+", " - 1; w+", .words = R_GRAD "[k]"},
    {"mma.rows.add_warps", " + i)", ")", .words = R_GRAD "[k]"},
    {"mma.rows.each_step", "\" .. step", "2 * \" .. step", .words = R_GRAD "[k]"},
    /* where they go */
    {"mma.rows.add_warps", "imin(TILE_KV, \" .. seq.k_rows .. \" - k0)", "TILE_KV",
     .words = R_GRAD "[k]", .fault = STORED},
    {"mma.rows.store_sums", "text.all_of(is_first, \"q < \" .. seq.q_rows, \"k < \" .. seq.k_rows",
     "(\"k < \" .. seq.k_rows", .words = R_GRAD "[q,k]", .fault = STORED},
    {"mma.rows.store_sums", "text.all_of(is_first, \"q < \" .. seq.q_rows, \"k < \" .. seq.k_rows",
     "(\"q < \" .. seq.q_rows", .words = R_GRAD "[q,k]", .fault = STORED},
    {"mma.rows.store_sums", "lane % 4 == 0 && ", "", .words = R_GRAD "[q]", .fault = STORED},
    {"mma.rows.store_sums", " && q < $(seq.q_rows)", "", .words = R_GRAD "[q]", .fault = STORED},
    {"mma.rows.axes", "p.b\", h = \"p.h", "p.h\", h = \"p.b", .words = R_GRAD "[h,k]",
     .fault = STORED},
};

PLANTED_SUITE(.name = "mma planted backward", .bugs = {PLANTED(backward), PLANTED(rows)},
              .cases = mma_cases)
