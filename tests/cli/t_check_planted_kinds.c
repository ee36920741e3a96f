/* t_check_planted_kinds.c - bugs planted through FLASHGEN_TEMPLATES in kernels of other kinds than
 * attention, which `flashgen check` must see. */
#include "checked_suite.h"

#define OF_PART "kernel=combine head_dim=40 family=simt block_q=16"
#define OF_WARP "kernel=combine head_dim=64 family=simt block_q=4"
#define CACHED  "kernel=append kv_layout=cached head_dim=24 block_q=4 rotary=halves rotary_dim=12"
#define PAGED   "kernel=append kv_layout=paged q_layout=packed head_dim=64 block_q=4 rotary=halves"
#define PAIRED  "kernel=append kv_layout=cached head_dim=40 block_q=4 rotary=interleaved"
#define BYTES   "kernel=append kv_layout=cached head_dim=48 block_q=4 kv_dtype=e4m3 rotary=halves"

static const checked_bug bugs[] = {
    /* Combine: a row for a warp, for a part of one; elements one at a time where padding, which the
     * seed chooses, makes rows unaligned. */
    {"combine.columns_of_block", " + (int)blockIdx.y * LANES * 8", "",
     "kernel=combine head_dim=264", BY_PROGRAM + 1},
    {"combine.row", "+ q * p.$(rows.kept)_n", "", OF_PART, 4},
    {"combine.own_parts", "first + each, ", "first + each - 1, ", OF_PART, 4},
    {"combine.own_parts", ", p.parts)", ", p.parts + 1)", OF_PART, 1},
    {"combine.lanes", "mask = 1", "mask = 2", OF_PART, 4},
    {"combine.share", "LANES * span", "LANES * (span - 1)", OF_WARP, 4},
    {"combine.aligned", "bytes % 16 == 0", "1", OF_PART, 1},
    {"combine.weight", "weight = part_correction * weight_of_part", "weight = weight_of_part",
     OF_PART, 4},
    {"combine.load", "+ i + a);", "+ i);", OF_PART, 1},
    {"combine.load", " && has_columns", "", OF_PART, 1},
    {"combine.load", "begin + i0 + i + a", "i0 + i + a", OF_WARP, 4},
    {"combine.load", "begin + i0 + i + a", "begin + i + a", OF_PART, 4},
    {"combine.load", "weights[a] * v", "v", OF_PART, 4},
    {"combine.shares", "mask = LANES", "mask = 2 * LANES", OF_WARP, 4},
    {"combine.store", "*= inverse", "*= 1.0f", OF_PART, 4},
    {"combine.store", "number < rows && lane % GROUP < ", "lane % GROUP < ", OF_PART, 1},
    {"combine.store_beside", "number < rows && lane % GROUP == ", "lane % GROUP == ", OF_PART, 1},
    {"combine.store", "lane % GROUP < LANES && ", "", OF_WARP, 1},
    {"combine.store_beside", "* p.nq + q, kept", "* p.nq, kept", OF_PART, 1},
    {"combine.load_columns", "from + 4", "from", OF_PART, 4},
    {"combine.load_columns", ">> 16", ">> 8", OF_PART " parts_dtype=spec", 4},
    {"combine.load_columns_singly", "i < 8", "i < 7", OF_PART, 4},
    {"combine.store_columns", "<< 16", "<< 15", OF_PART, 4},
    {"combine.store_f32_columns", "v + 4", "v", OF_PART " dtype=f32", 4},
    {"combine.store_columns_singly", "v[i]", "v[0]", OF_PART, 4},
    {"normalizers.softmax.resume", " == NEG_INF ? 0.0f : 1.0f", " == NEG_INF ? 1.0f : 2.0f",
     OF_PART, 4},
    /* Append: slots, places and positions that are not there, columns and heads that are another's.
     */
    {"append.turns_of_columns", "width, 8 * lanes", "width, 16 * lanes",
     "kernel=append kv_layout=cached head_dim=264", BY_PROGRAM + 4},
    {"append.row", "b = (int)(row / p.nq)", "b = 0", CACHED, 1},
    {"append.row", "row >= (i64)p.b * p.nq", "row > (i64)p.b * p.nq", CACHED, 1},
    {"append.row", "row >= p.tokens_q", "row > p.tokens_q", PAGED, 1},
    {"append.row", "packed_used(p.used_q,", "packed_used(0,", PAGED, 4},
    {"append.slot", "slot < p.nk", "slot <= p.nk", CACHED, 1},
    {"append.slot", "slot >= 0 && ", "", CACHED, 1},
    {"append.slot", "+ i : -1", ": -1", CACHED, 1},
    {"append.slot", "position >= 0 && ", "", CACHED, 1},
    {"append.slot", "position < p.positions", "position <= p.positions", CACHED, 1},
    {"append.slot", "(i64)(int)ldg_u32(p.row_positions + row)", "slot", CACHED, 4},
    {"append.angles", "at % PAIRS", "at", CACHED, 1},
    {"append.angles", "at / 2", "at % (2 * PAIRS) / 4", PAIRED, 4},
    {"append.angles", "at < PAIRS", "at > PAIRS", CACHED, 4},
    {"append.load", "head < $(heads) && ", "", CACHED, 1},
    {"append.load_partner", "at < PAIRS ?", "at <= PAIRS ?", CACHED, 4},
    {"append.load_partner", "column < PAIRS ?", "column <= PAIRS ?", PAGED, 1},
    {"append.turn", "c ^ 1", "c", PAIRED, 4},
    {"append.turn", "column + c < 2 * PAIRS", "1", CACHED, 4},
    {"append.turn", "+ other * sine", "- other * sine", PAGED, 4},
    {"append.store", " && has_columns", "", CACHED, 1},
    {"append.store", "head * p.$(to)_h", "first * p.$(to)_h", CACHED, 4},
    {"append.aligned", "bytes % 16 == 0", "1", CACHED, 1},
    {"append.place", "place >= p.pages", "place > p.pages", CACHED, 1},
    {"append.place", "place < 0 || ", "", PAGED, 1},
    {"append.place", "p.rows ? (int)ldg_u32(p.rows + b) : b", "b", CACHED, 4},
    {"append.place", "slot / p.page", "0", PAGED, 1},
    {"append.has_position", "!has_position", "0", CACHED, 1},
    {"append.to_k", "place * p.k_b", "0", PAGED, 1},
    {"append.to_v", "p.v_n", "p.v_h", CACHED, 1},
    {"append.load_columns", "i % 2 * 16", "0", PAGED, 4},
    {"append.load_columns_singly", "i < 8", "i < 7", CACHED, 4},
    {"append.store_columns", "<< 16", "<< 15", PAGED, 4},
    {"append.store_columns_singly", "x[i]", "x[0]", CACHED, 4},
    {"append.descale", "(i64)%s *", "(i64)0 * %s *", BYTES, 4},
    {"append.quantize", "append.descale(to,", "append.descale(to == \"k\" and \"v\" or \"k\",",
     BYTES, 4},
    {"append.turn_quantized", "+ other * sine", "- other * sine", BYTES, 4},
    {"append.turn_quantized", "column + c < 2 * PAIRS", "1", BYTES " rotary_dim=16", 4},
    {"append.divide", "value / descale", "value * descale", BYTES, 4},
    {"append.store_rounded", "<< 8 * c", "<< 8 * (3 - c)", BYTES, 4},
    {"append.store_rounded_singly", "i < 8", "i < 6", BYTES, 4},
    {"append.sequence_of_token", "<= token", "< token", PAGED, 4},
};

int main(int argc, char **argv) {
  return checked_suite_run("check_planted_kinds", sizeof bugs / sizeof *bugs, bugs, argc, argv);
}
