/* t_mma_planted_backward.c - bugs planted in the tensor-core templates of backward: the host device
 * or the oracle catches each, in every seed. */
#include "mma_planted.h"
#include "scratch.h"

#include "host/engine.h"

#define FULL   "mask=full "
#define CAUSAL "mask=causal "
#define TILED  "mask=causal bias=true "
#define LOADED "mask=causal bias=true bias_dtype=f32 "
/* Four parts, each with several pairs of column tiles, of widths that they divide and do not. */
#define B_COLUMNS "family=mma pass=backward head_dim=96/72 warps_per_key=4 stages=1 mask=causal "
/* Warps of 32 keys under a window, that share none, and that do. */
#define WINDOW   "mask=window(70,0) "
#define B_SHARED "family=mma pass=backward head_dim=64 block_kv=128 warps=8 warps_per_key=2 "
#define R_DQ     B_PAIRS "mask=causal deterministic=true "
#define R_GRAD   B_PAIRS "mask=causal deterministic=true bias=grad bias_dims="

static const planted_bug backward[] = {
    /* products through shared memory */
    {TILES, "k < a_chunks; k += 2", "k < a_chunks - 2; k += 2", .words = B_FOURS FULL},
    {TILES, "k < rows; k += 16", "k < rows - 16; k += 16", .words = B_TWO FULL},
    {TILES, "a_tile + moved(a, a_chunks, M_STEP * i, k)", "a_tile + moved(a, a_chunks, 0, k)",
     .words = BWD FULL "block_kv=128 warps_per_key=2"},
    {TILES, "ldmatrix_x4_trans(y, b_tile + moved(b, chunks, 8 * k,",
     "ldmatrix_x4(y, b_tile + moved(b, chunks, 8 * k,", .words = B_PAIRS FULL},
    {TILES, "ldmatrix_x4_trans(x + 4 * i, a_tile + moved(a, a_chunks, k, 2 * i));",
     "ldmatrix_x4(x + 4 * i, a_tile + moved(a, a_chunks, k, 2 * i));", .words = B_TWO FULL},
    {TILES, "ldmatrix_x4_trans(y, b_tile + moved(b, chunks, k, j / 2 * on));",
     "ldmatrix_x4(y, b_tile + moved(b, chunks, k, j / 2 * on));", .words = B_TWO FULL},
    {TILES, "moved(b, chunks, 8 * k, j / 2 * on)", "moved(b, chunks, 8 * k, j)",
     .words = B_COLUMNS},
    {TILES, "moved(a, a_chunks, k, 2 * i)", "moved(a, a_chunks, k, 0)", .words = B_TWO FULL},
    {TILES, "moved(b, chunks, k, j / 2 * on)", "moved(b, chunks, k, j)", .words = B_COLUMNS},
    {TILES, "const int chunk = i / 2 * on + i % 2;", "const int chunk = i;", .words = B_COLUMNS,
     .fault = MIXED},
    {TILES, "if (row0 + row + r < end && 8 * (chunk + c) < width) {", "if (row0 + row + r < end) {",
     .words = B_PAIRS FULL, .fault = STORED},
    {TILES, "(u16)(a[i] >> 16)", "(u16)a[i]", .words = B_TWO FULL},
    /* which tiles */
    {BACKWARD, "if (h_next < h_end) {", "if (1) {", .words = B_TWO FULL,
     .fault = BEYOND "|race: atomic add"},
    {BACKWARD, "h_end = first_row < row_end ? h + group : h;",
     "h_end = first_row < row_end ? h + 1 : h;", .words = B_TWO FULL},
    {MASKS, "bound(headless(range.first), { k0 = k0, k1 = k1 }",
     "bound(headless(range.first), { k0 = k0 .. \" + 32\", k1 = k1 }", .words = B_TWO CAUSAL},
    /* kept and delta */
    {BACKWARD, "i < BLOCK_Q / 2; i += THREADS", "i < BLOCK_Q / 2 - 1; i += THREADS",
     .words = B_TWO FULL, .fault = "never written", .place = {{PAIRS}}},
    {PAIRS, "name == \"delta\" and \" + 1\"", "name ~= \"delta\" and \" + 1\"",
     .words = B_TWO FULL},
    {BACKWARD, "stg_f32(kept + 1, ", "stg_f32(kept, ", .words = B_TWO FULL,
     .fault = "load of an element never written: * kept"},
    {BACKWARD, "const int there = q < $(seq.nq),", "const int there = 1,", .words = B_TWO FULL,
     .fault = BEYOND "|wrong numbers"},
    {BACKWARD, "for (int mask = 4; mask > 0;", "for (int mask = 4; mask > 1;", .words = B_TWO FULL},
    {NORMALIZERS, "$p * ($dp - $delta)", "$p * $dp", .words = B_TWO FULL ";" R_DQ},
    {NORMALIZERS, "$lse == NEG_INF ? -NEG_INF : $lse * LOG2E", "$lse * LOG2E",
     .words = B_TWO CAUSAL},
    /* bounds and masks */
    {WEIGHTS, "seq.has_k(\"k\"), pair.test)", "pair.test)", .words = B_TWO FULL},
    {WEIGHTS, "seq.has_k(\"k\"), pair.test)", "seq.has_k(\"k\"))", .words = B_TWO CAUSAL},
    {WEIGHTS, "seq.all_k(\"k0 + BLOCK_KV\"), tile.always)", "seq.all_k(\"k0 + BLOCK_KV\"))",
     .words = B_TWO CAUSAL},
    {WEIGHTS, "$(score.masked_product);", "$(norm.masked);", .words = B_TWO CAUSAL},
    /* the score's input */
    {PAIRS, "(u16)(x[j / 4 * 2 + j / 2 % 2] >>", "(u16)(x[j / 4 + j / 2 % 2 * 2] >>",
     .words = B_TWO TILED},
    {BACKWARD, "by_chunks(sm, BLOCK_KV / 8, $(from_q), warp_k / 8)",
     "by_chunks(sm, BLOCK_KV / 8, $(from_q), 0)", .words = B_TWO TILED},
    {PAIRS, "moved(input_lanes", "moved(dv_lanes", .words = B_TWO TILED, .fault = MIXED},
    {WEIGHTS, "first = from(\"(BLOCK_KV / 8)\")", "first = \"\"", .words = B_HALVES TILED},
    {BACKWARD, "$(seq.nk) - k0, input_aligned);", "$(seq.nk), input_aligned);",
     .words = B_TWO TILED, .fault = BEYOND},
    {WEIGHTS, "norm.weighs(\"kept\") or seq.has_q(\"q\")", "\"1\" or \"1\"", .words = B_TWO LOADED,
     .fault = BEYOND, .place = {{PAIRS}}},
    /* P and dS through shared memory */
    {WEIGHTS, "@ put(\"SM_DS\", turns() and \"from / 8\" or \"0\", \"dp\")",
     "@ put(\"SM_DS\", \"0\", \"dp\")", .words = B_PARTS FULL, .fault = MIXED},
    {WEIGHTS, "@ put(\"SM_DS\", \"part * N_Q\", \"dp\")", "@ put(\"SM_DS\", \"0\", \"dp\")",
     .words = B_PAIRS FULL, .fault = MIXED},
    {WEIGHTS, "@ put(\"SM_P\", \"part * N_Q\", \"s\")", "@ put(\"SM_P\", \"0\", \"s\")",
     .words = B_PAIRS FULL, .fault = MIXED},
    {WEIGHTS, "CHUNKS_Q, warp_k + M_STEP * i, $(chunk)", "CHUNKS_Q, warp_k, $(chunk)",
     .words = B_PARTS FULL, .fault = MIXED},
    /* parts */
    {BACKWARD, "@ local part = split.warps_share_keys and \"2 * part\" or \"0\"",
     "@ local part = \"0\"", .words = B_PAIRS FULL, .fault = MIXED},
    {BACKWARD, "split.warps_share_keys and \"part * (8 * N_Q)\" or \"0\"", "\"0\"",
     .words = B_PAIRS FULL},
    {BACKWARD, "part = warp % WARPS_PER_KEY;", "part = 0;", .words = B_PAIRS FULL, .fault = MIXED,
     AT_WORK},
    {BACKWARD, "i % N_DQ / 2 * (2 * WARPS_D) + i % 2;", "i % N_DQ;", .words = B_COLUMNS},
    /* dQ */
    {BACKWARD, "stg_f32x4(sum + i, zeros);", "", .words = B_TWO FULL,
     .fault = "never written: * dq_sum", .place = {{BACKWARD, "red_add_f32x4(sum"}}},
    {BACKWARD, "dq_row = warp % WARPS_Q * 32", "dq_row = 0", .words = B_PARTS FULL},
    {BACKWARD, "dq_chunk = warp / WARPS_Q * 2;", "dq_chunk = 0;", .words = B_TWO FULL},
    {BACKWARD, "i / N_DQ * CHUNKS_D + chunk", "chunk", .words = B_TWO FULL},
    {BACKWARD, "moved(ds_lanes, CHUNKS_Q, 0, row / 8)", "ds_lanes", .words = B_PAIRS FULL},
    {BACKWARD, "split.dq_in_turns and \" + row\" or \"\"", "\"\"", .words = B_PAIRS FULL},
    {BACKWARD, "padded + q0 + dq_row$(", "padded + q0$(", .words = B_PARTS FULL},
    {BACKWARD, "if (CHUNKS_D % (2 * WARPS_D) == 0 || dq_chunk + chunk < CHUNKS_D) {", "if (1) {",
     .words = B_TWO FULL, .fault = "past the end of|wrong numbers|race: atomic add"},
    {BACKWARD, "pack(x[2] * p.scale, x[3] * p.scale)", "pack(x[2], x[3])", .words = B_TWO FULL},
    {BACKWARD, "chunk) * 32 + q % 8 * 4) * 4;", "chunk) * 32 + q % 8) * 4;", .words = B_TWO FULL},
    {BACKWARD, "if (q < $(seq.nq)) { stg_u32x4(to, low); }", "stg_u32x4(to, low);",
     .words = B_TWO FULL, .fault = STORED},
    {BACKWARD, "if (q + 8 < $(seq.nq)) { stg", "if (q < $(seq.nq)) { stg", .words = B_TWO FULL,
     .fault = STORED},
    /* halves of a block's keys, at a window's bounds: whose warps have keys of their own, or share
     */
    {WEIGHTS, "(q0 + BLOCK_Q > lower_first &&", "(q0 > lower_first &&", .words = B_PARTS WINDOW},
    {WEIGHTS, "q0 < lower_end) +", "q0 + BLOCK_Q < lower_end) +", .words = B_PARTS WINDOW},
    {WEIGHTS, "(q0 + BLOCK_Q > upper_first &&", "(q0 > upper_first &&", .words = B_PARTS WINDOW},
    {WEIGHTS, "seq.k_end(\"k0 + M_STEP\"))", "seq.k_end(\"k0 + 16\"))", .words = B_PARTS WINDOW},
    {WEIGHTS, "(u32)(M_STEP * %s * 16)", "(u32)(16 * %s * 16)",
     .words = B_PARTS WINDOW ";" B_SHARED WINDOW, .fault = MIXED, .place = {{TILES}}},
    {WEIGHTS, "\" + 4 * %s\", n)", "\" + 0 * %s\", n)",
     .words = B_PARTS WINDOW ";" B_SHARED WINDOW},
    {WEIGHTS, "warp_k + $(pairs.half.number) * M_STEP,", "warp_k,",
     .words = B_PARTS WINDOW ";" B_SHARED WINDOW, .fault = MIXED},
    {WEIGHTS, "first_key = seen_halves == 1 ? 0 : M_STEP;", "first_key = 0;",
     .words = B_PARTS WINDOW ";" B_SHARED WINDOW, .fault = MIXED},
    {WEIGHTS, "@ multiply(\"first_key\", \"M_STEP\")", "@ multiply(nil, \"BLOCK_KV\")",
     .words = B_PARTS WINDOW, .fault = MIXED},
    {BACKWARD, "const int row = warp_k + M_STEP * i;", "const int row = warp_k + 16 * i;",
     .words = B_PARTS WINDOW, .fault = MIXED},
    {WEIGHTS, "warp_step = use.tiles_in_halves and \"16\" or",
     "warp_step =", .words = B_PARTS WINDOW, .fault = MIXED "|" BEYOND "|outside"},
    {PAIRS, "(r / 2 * M_STEP + r % 2 * 8)", "8 * r", .words = B_PARTS WINDOW ";" B_SHARED WINDOW},
    {PAIRS, "2 * gives.half.number, 2 * gives.half.number + 2)", "0, 2)", .words = B_PARTS WINDOW},
    {PAIRS, "split.queries_in_turns and \"BLOCK_Q / 8\"", "split.queries_in_turns and \"N_Q\"",
     .words = B_PARTS WINDOW, .fault = MIXED, .place = {{TILES}}},
    /* which keys, and what leaves */
    {TILES, "2 * left + 1;", "2 * left;", .words = B_TWO "mask=window(200,5)",
     .fault = STORED "|wrong numbers", .place = {{BACKWARD}, {TILES}}},
    {BACKWARD, "N_DK, p.scale, p.scale);", "N_DK, 1.0f, 1.0f);", .words = B_TWO FULL},
    {BACKWARD, "dk + 4 * N_DK * i", "dk", .words = B_PARTS FULL},
    {BACKWARD, "k0 + row, $(seq.nk), DV, sm + SM_V", "k0, $(seq.nk), DV, sm + SM_V",
     .words = B_TWO FULL, .fault = "race: store at"},
};
enum { BACKWARD_N = sizeof backward / sizeof *backward };

static const planted_bug rows[] = {
    {ROWS, "SM_ROWS_DO, by_rows(sm, CHUNKS_DV, 16 * warp, 0)",
     "SM_ROWS_DO, by_rows(sm, CHUNKS_DV, 0, 0)", .words = R_DQ},
    {ROWS, "kept[r] = q < $(seq.nq) ? ldg_f32(row) : -NEG_INF;", "kept[r] = ldg_f32(row);",
     .words = R_DQ, .fault = BEYOND},
    {ROWS, "kept[r] = q < $(seq.nq) ? ldg_f32(row) : -NEG_INF;",
     "kept[r] = q < $(seq.nq) ? ldg_f32(row + 1) : -NEG_INF;", .words = R_DQ},
    {ROWS, "seq.has_k(\"k\"), pair.test)", "pair.test)",
     .words = B_PAIRS "mask=full deterministic=true"},
    {ROWS, "seq.has_k(\"k\"), pair.test)", "seq.has_k(\"k\"))", .words = R_DQ},
    {ROWS, "if (!($(text.all_of(seq.all_k(\"k0 + TILE_KV\"), tile.always)))) {",
     "if (!($(text.all_of(seq.all_k(\"k0 + TILE_KV\"))))) {", .words = R_DQ},
    {ROWS, "$(score.masked_product);", "$(norm.masked);", .words = R_DQ},
    {ROWS, "and seq.has_q(\"q\") or \"1\", seq.has_k(\"k\"), pair.test)",
     "and \"1\" or \"1\", seq.has_k(\"k\"), pair.test)", .words = R_GRAD "[q,k]", .fault = BEYOND},
    {ROWS, "by_rows(sm, CHUNKS_D, 0, 0), CHUNKS_D); // dQ += dS K",
     "by_chunks(sm, CHUNKS_D, 0, 0), CHUNKS_D);", .words = R_DQ},
    {ROWS, "dq, CHUNKS_D, p.scale, p.scale);", "dq, CHUNKS_D, 1.0f, 1.0f);", .words = R_DQ},
    {ROWS, "q0 + 16 * warp, $(seq.nq), D, sm", "q0, $(seq.nq), D, sm", .words = R_DQ,
     .fault = "race: store at", .place = {{TILES, "stg_u32x4(to + (i64)"}}},
    /* sums over axes that are not kept; those over all keys of a row are 0 with or without a bug,
     * where no gradient of the LSE is given */
    {ROWS, "\"sum[e] += \" .. value", "\"sum[e] = \" .. value", .words = R_GRAD "[k],[q,k]"},
    {ROWS, "2 * N_KV; i++) { sum[2 * r] +=", "N_KV; i++) { sum[2 * r] +=", .words = R_GRAD "[q]"},
    {ROWS, "sum[2 * r] = quad_sum(sum[2 * r]);", "", .words = R_GRAD "[q]"},
    {ROWS, "+ sum[4 * (i / 2) + 2 + i % 2];", ";", .words = R_GRAD "[k]"},
    {ROWS, "for (int mask = 4; mask < 32; mask *= 2) { column",
     "for (int mask = 8; mask < 32; mask *= 2) { column", .words = R_GRAD "[k]"},
    {ROWS, "if (lane < 4) { sts_u32", "if (lane < 8) { sts_u32", .words = R_GRAD "[k]",
     .fault = "race: shared store"},
    {ROWS, "w < THREADS / 32; w++", "w < THREADS / 32 - 1; w++", .words = R_GRAD "[k]"},
    {ROWS, "lds_u32(sm + SM_ROWS_K + (u32)(w * TILE_KV + i) * 4)",
     "lds_u32(sm + SM_ROWS_K + (u32)(w * TILE_KV) * 4)", .words = R_GRAD "[k]"},
    {ROWS, "\" += \" .. step[axis]", "\" += 2 * \" .. step[axis]", .words = R_GRAD "[k]"},
    /* where they go */
    {ROWS, "\"imin(TILE_KV, \" .. seq.nk .. \" - k0)\"", "\"TILE_KV\"", .words = R_GRAD "[k]",
     .fault = STORED},
    {ROWS, "text.all_of(seq.has_q(\"q\"), seq.has_k(\"k\")) .. \") {", "seq.has_k(\"k\") .. \") {",
     .words = R_GRAD "[q,k]", .fault = STORED},
    {ROWS, "text.all_of(seq.has_q(\"q\"), seq.has_k(\"k\")) .. \") {", "seq.has_q(\"q\") .. \") {",
     .words = R_GRAD "[q,k]", .fault = STORED},
    {ROWS, "if (lane % 4 == 0 && q < $(seq.nq)) {", "if (q < $(seq.nq)) {", .words = R_GRAD "[q]",
     .fault = STORED},
    {ROWS, "if (lane % 4 == 0 && q < $(seq.nq)) {", "if (lane % 4 == 0) {", .words = R_GRAD "[q]",
     .fault = STORED},
    {ROWS, "local size = { b = \"p.b\", h = \"p.h\"", "local size = { b = \"p.h\", h = \"p.b\"",
     .words = R_GRAD "[h,k]", .fault = STORED},
};
enum { ROWS_N = sizeof rows / sizeof *rows };

START_TEST(test_backward) { mma_planted_try(backward[_i]); }
END_TEST

START_TEST(test_rows) { mma_planted_try(rows[_i]); }
END_TEST

int main(void) {
  fg_host_watchdog_seconds = 1;
  Suite *suite = suite_create("mma planted backward");
  TCase *tests = tcase_create("mma planted backward");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_loop(tests, test_backward, BACKWARD_N);
  suite_loop(tests, test_rows, ROWS_N);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
