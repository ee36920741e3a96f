/* t_decode_planted.c - bugs planted in the templates of attention of few rows, and in the products,
 * copies and sums that they alone use: the host device or the oracle catches each. */
#include "planted_suite.h"

#define FORWARD "attention/decode/forward.cut"
#define LINE    "attention/decode/line.cut"
#define PARTS   "attention/decode/parts.cut"

/* A row of a lane, in teams of one warp; two rows; teams of four warps. A row's last chunk has no
 * columns, and chunks of O are no multiple of a quad's. */
#define DECODE       "family=decode head_dim=40 "
#define EIGHT        DECODE "block_q=8 warps=4 "
#define SIXTEEN      DECODE "block_q=16 warps=4 "
#define SIXTEEN_WIDE DECODE "block_q=16 block_kv=32 "
#define SIXTY        DECODE "block_q=64 "
#define CAUSAL       "mask=causal "
#define FEW          "mask=causal_top_left "
#define HEADS        EIGHT "mask=k<=p-40*h "
#define RAGGED       EIGHT "q_layout=packed kv_layout=cached"
#define PAGED        EIGHT "mask=causal q_layout=packed kv_layout=paged"
#define FIXED        EIGHT "batch_invariant=true"

#define FIXED_PACKED FIXED " q_layout=packed kv_layout=packed"
#define CACHED       EIGHT "kv_layout=cached"
#define WINDOW       EIGHT "mask=window(660,0)"

#define ORDER  "race: shared|never written|still filling it|in flight"
#define BLOCKS "race: load at|race: store at"
#define MIXED  ORDER "|wrong numbers"
#define BEYOND "load past the end of|load touches a gap|load before the start|outside of all"
#define STORED "store past the end of|store before the start|store touches a gap|race: store at"
#define PLACE  BLOCKS "|out of bounds|" BEYOND "|" STORED "|" MIXED

/* Few blocks have several segments each, of sequences and heads; one head more than blocks; heads
 * and groups that leave rows of a tile over; parts of few heads, and of more than two blocks; more
 * sequences than a warp, and than a block's places in the line; lengths that differ; fewer tiles
 * than blocks; no keys; a negative scale; large scores. */
static const verify_case cases[] = {
    {.shape = SHAPE(3, 6, 2, 5, 77, 0), .seed = 1},
    {.shape = SHAPE(3, 6, 2, 5, 77, 0), .seed = 2},
    {.shape = SHAPE(1, 8, 4, 1, 900, 0), .seed = 5},
    {.shape = SHAPE(4, 4, 2, 3, 2600, 0), .seed = 5},
    {.shape = SHAPE(1, 4, 2, 9, 150, 0), .given = FG_GIVEN_SCALE, .scale = -0.2f, .seed = 3},
    {.shape = SHAPE(1, 4, 2, 21, 75, 0), .seed = 3},
    {.shape = SHAPE(2, 12, 1, 3, 200, 0), .seed = 5},
    {.shape = SHAPE(1, 4, 4, 1, 600, 0), .seed = 5},
    {.shape = SHAPE(1, 20, 1, 2, 700, 0), .style = VERIFY_LARGE, .seed = 5},
    {.shape = SHAPE(1, 4, 2, 1, 1100, 0), .seed = 3},
    {.shape = SHAPE(1, 4, 2, 1, 1100, 0), .seed = 5},
    {.shape = SHAPE(1, 4, 1, 2, 3000, 0), .seed = 3, .again = 1},
    {.shape = SHAPE(40, 2, 1, 1, 33, 0), .seed = 3},
    {.shape = SHAPE(270, 2, 1, 1, 33, 0), .seed = 5},
    {.shape = SHAPE(1, 2, 1, 7, 0, 0), .seed = 3},
    {.shape = SHAPE(5, 1, 1, 1, 900, 0), .seed = 3},
    {.shape = SHAPE(5, 1, 1, 1, 900, 0), .seed = 9},
    {.shape = SHAPE(5, 1, 1, 1, 900, 0), .seed = 11},
    {.shape = SHAPE(2, 4, 2, 5, 1100, 0), .seed = 1},
    {.shape = SHAPE(2, 4, 2, 5, 1100, 0), .seed = 15},
    {.seed = 0}};

static const planted_bug bugs[] = {
    /* the line of keys */
    {"decode.line.keys", "mask.keys(\"q0\", \"q_end\")", "mask.keys(\"q0\", \"q0 + 1\")",
     .words = EIGHT CAUSAL},
    {"decode.line.keys", "seq.nk end", "\"p.nk - 40\" end", .words = HEADS},
    {"decode.line.sequence", "\" % row_tiles\"", "\" % (row_tiles - 1)\"", .words = EIGHT,
     .fault = PLACE},
    {"decode.line.sequence", "imin(q0 + tokens, $(seq.nq))", "q0 + tokens", .words = EIGHT,
     .fault = PLACE},
    {"decode.line.sequence", "imax(1, cdiv(key_end - k_first, BLOCK_KV))",
     "cdiv(key_end - k_first, BLOCK_KV)", .words = EIGHT, .fault = PLACE},
    {"decode.line.sequence", "\"q0 < \" .. seq.q_rows .. \" ? \"", "\"q0 < 0 ? \"", .words = RAGGED,
     .fault = PLACE},
    {"decode.line.heads", "% head_tiles * wide", "% head_tiles", .words = EIGHT, .fault = PLACE},
    {"decode.line.heads", "(g + 1) * group - first_head", "group", .words = EIGHT, .fault = PLACE},
    {"decode.line.search", "* inner_heads <= at", "<= at", .words = CACHED, .fault = PLACE},
    {"decode.line.alike", "line = units * (", "line = (", .words = EIGHT, .fault = PLACE},
    {"decode.line.find_alike", "$(p)unit * each_unit", "0", .words = EIGHT, .fault = PLACE},
    {"decode.line.sides", "own = block / sides", "own = block % sides", .words = EIGHT,
     .fault = PLACE},
    {"decode.line.stretch", "imin(own + 1, more)", "0", .words = EIGHT, .fault = PLACE},
    {"decode.line.unit", "> at", ">= at", .words = CACHED, .fault = PLACE},
    {"decode.line.part", "number * own", "number * span", .words = WINDOW},
    {"decode.line.part", "cdiv(of_unit, count)", "of_unit / count", .words = EIGHT},
    {"decode.line.part", "place = at;", "place = number;", .words = EIGHT, .fault = PLACE},
    {"decode.line.part", "first_place = first;", "first_place = at;", .words = EIGHT,
     .fault = PLACE},
    {"decode.line.invariant", "number * own", "number", .words = FIXED},
    {"decode.line.invariant", "at += blocks", "at = line_end", .words = FIXED, .fault = PLACE},
    {"decode.line.invariant", "place = place;", "place = place + 1;", .words = FIXED,
     .fault = PLACE},
    {"decode.line.invariant_place", "b * cdiv(p.nk", "0 * cdiv(p.nk", .words = FIXED,
     .fault = PLACE},
    {"decode.line.invariant_place", "q0 / tokens * all_heads", "q0 / tokens", .words = FIXED,
     .fault = PLACE},
    {"decode.line.shares", " - first_block + 1", " - first_block", .words = EIGHT, .fault = PLACE},
    {"decode.line.places", "(first > first_block * each + imin(first_block, more))", "0",
     .words = EIGHT, .fault = PLACE},
    {"decode.line.places", "(first_block + 1) * sides + side", "first_block * sides + side",
     .words = EIGHT, .fault = PLACE},
    {"decode.line.places", "own > first_block ? 2 * block : ", "", .words = EIGHT, .fault = PLACE},
    {"decode.line.invariant_place", "BLOCK_KV) + b)", "BLOCK_KV))", .words = FIXED_PACKED,
     .fault = PLACE, .seeds = 1},
    {"tile.sums.running", "lane >= step", "lane > step", .words = EIGHT, .fault = PLACE},
    {"tile.sums.carry", "before +=", "before =", .words = CACHED, .fault = PLACE},
    /* copies */
    {"decode.forward.start_copies", "next_from + i", "i", .words = EIGHT},
    {"decode.forward.start_copies", "i < next_tiles", "i + 1 < next_tiles", .words = EIGHT,
     .fault = MIXED},
    {"decode.forward.start_copies", "load_tile(\"ahead\"", "load_tile(\"0\"", .words = EIGHT,
     .fault = ORDER},
    {"decode.forward.start_copies", "ahead * TEAMS", "ahead", .words = EIGHT, .fault = MIXED},
    {"decode.forward.wait_for_stage", "cp_async_wait_$(plan.stages - 2)()", "(void)0",
     .words = EIGHT ";" SIXTEEN, .fault = ORDER},
    {"decode.forward.wait_for_stage", "stages - 2", "stages - 1", .words = EIGHT ";" SIXTEEN,
     .fault = ORDER},
    {"decode.forward.team", "\"warp_sync(ALL_LANES);\"", "\"\"", .words = EIGHT ";" SIXTEEN,
     .fault = "no warp_sync or barrier orders|" ORDER},
    {"decode.forward.team", "team_has_one_warp and", "true and", .words = SIXTY, .fault = ORDER},
    {"decode.forward.team", "1 + team", "1", .words = SIXTY, .fault = "*"},
    {"decode.forward.next_tile", "(from + ahead)", "ahead", .words = EIGHT},
    {"decode.forward.next_tile", "(STAGES - 1) * TEAMS", "TEAMS", .words = EIGHT, .fault = MIXED},
    {"decode.forward.next_tile", "(stage + $(plan.stages - 1)) % $(plan.stages)", "stage",
     .words = EIGHT, .fault = ORDER},
    {"decode.forward.next_tile", "ahead < tiles", "ahead + 1 < tiles", .words = EIGHT,
     .fault = MIXED},
    {"tile.tiles.load", "there ? 16 : 0", "16", .words = EIGHT, .fault = BEYOND "|wrong numbers"},
    {"tile.tiles.load", "row + 4, chunk", "row, chunk", .words = EIGHT, .fault = MIXED},
    {"decode.forward.look_up", "first .. \" + lane\"", "first", .words = PAGED},
    {"sequence.paged.found_place", "page, t, row, t)", "page, t, page, t)", .words = PAGED,
     .fault = PLACE},
    {"tile.pages.place", "(u32)place, (row + r) % 32", "(u32)place, row % 32", .words = PAGED},
    {"tile.pages.row", "there ? 16 : 0", "16", .words = PAGED, .fault = BEYOND "|wrong numbers"},
    /* rows */
    {"decode.forward.rows", "imin(q0 + row_$(half[1]) / wide, q_end - 1)",
     "q0 + row_$(half[1]) / wide", .words = EIGHT, .fault = BEYOND},
    {"decode.forward.rows", "imin(row_$(half[1]) % wide, heads - 1)", "row_$(half[1]) % wide",
     .words = EIGHT, .fault = BEYOND},
    {"decode.forward.rows", "member * WARP_Q", "0", .words = SIXTY},
    {"decode.forward.load_rows", "8 * i < D ? ", "1 ? ", .words = SIXTEEN, .fault = BEYOND},
    {"decode.forward.load_halves", "8 * chunk < D ? ", "1 ? ", .words = EIGHT, .fault = BEYOND},
    {"decode.forward.load_halves", "half * 2 * half_of_pairs(CHUNKS_D)", "half * CHUNKS_D / 2",
     .words = EIGHT},
    {"decode.forward.load_rows", "i % 2 * 2 + r", "i % 2 + 2 * r", .words = SIXTEEN},
    {"decode.forward.sign_of_scale", "$(score.positive_scale)", "p.scale", .words = EIGHT},
    {"decode.forward.sign_of_scale", "0x80008000u", "0x8000u", .words = EIGHT},
    /* scores */
    {"decode.forward.tile", "from + i", "i", .words = EIGHT CAUSAL, .fault = MIXED},
    {"decode.forward.scores", "ring.of(\"STAGE_BYTES\")", "\"\"", .words = EIGHT, .fault = MIXED},
    {"decode.forward.pair", "$(of_row(\"q\"))", "q_low", .words = SIXTEEN CAUSAL},
    {"decode.forward.pair", "$(of_row(\"h\"))", "h_low", .words = SIXTEEN "score=alibi"},
    {"decode.forward.seen", "seq.has_k(\"k\"), ", "", .words = EIGHT},
    {"decode.forward.seen", ", pair.test", "", .words = EIGHT CAUSAL},
    {"decode.forward.whole", "seq.all_k(\"k0 + BLOCK_KV\"), ", "", .words = EIGHT},
    {"decode.forward.whole", ", tile.always", "", .words = EIGHT CAUSAL},
    {"decode.forward.row_of_scores", "2 * r", "0", .words = SIXTEEN},
    {"decode.forward.correct_o", "8 * (lane % 4) + 4", "8 * (lane % 4)", .words = EIGHT},
    {"decode.forward.correct_o", "$(n_dv) * r + i]", "$(n_dv) * 0 + i]", .words = SIXTEEN},
    {"decode.forward.add_values", "$(ring.of(\"STAGE_BYTES\"))", "", .words = EIGHT,
     .fault = MIXED},
    {"decode.forward.add_values", "stage + 1", "stage + 0", .words = EIGHT, .fault = MIXED},
    {"tile.tiles.multiply_rt", "; k +", " - 2; k +", .words = SIXTEEN},
    {"tile.tiles.multiply_rt", "8 * j", "0", .words = SIXTEEN_WIDE},
    {"tile.tiles.multiply_rt", "a + 2 * k", "a", .words = SIXTEEN},
    {"tile.halves.accumulator", "k < half ? c : other", "c", .words = EIGHT},
    {"tile.halves.accumulator", "k % half", "k", .words = EIGHT, .fault = "*"},
    {"tile.halves.sum", "other[4 * j + 2]", "other[4 * j]", .words = EIGHT},
    {"tile.tiles.multiply_tp", "4 * l + 4 + 2 * r], p", "4 * l + 4 + 2 * r + 1], p",
     .words = EIGHT},
    {"tile.tiles.multiply_tp", "8 * l", "0", .words = EIGHT},
    {"tile.tiles.multiply_tp", "chunks * r + i", "i", .words = SIXTEEN},
    {"tile.tiles.multiply_tp", "y + 2 * r", "y", .words = SIXTEEN},
    {"tile.tiles.multiply_tp", "ldmatrix_x4_trans", "ldmatrix_x4", .words = EIGHT},
    /* parts and their join */
    {"decode.forward.last_is_read", "\"warp_sync(ALL_LANES);\"", "\"\"", .words = EIGHT,
     .fault = "no warp_sync or barrier orders|" ORDER},
    {"decode.forward.parts_are_read", "block_sync();", "(void)0;", .words = EIGHT, .fault = ORDER},
    {"decode.parts.put", "i % 2, column", "0, column", .words = EIGHT, .fault = MIXED},
    {"decode.parts.put", "2 * $(n_dv) * r", "0", .words = SIXTEEN},
    {"decode.parts.join", "sum[c] * kept", "sum[c]", .words = EIGHT},
    {"decode.parts.join", " * added", "", .words = EIGHT},
    {"decode.parts.read_team", "imin(chunk, $(n_dv) - 1)", "chunk", .words = EIGHT, .fault = ORDER},
    {"decode.parts.read_team", "number * PART_STEP", "0", .words = EIGHT},
    {"decode.parts.read_place", "(number - 1) * place_step", "number - 1", .words = EIGHT,
     .fault = PLACE, .seeds = 1},
    {"decode.parts.read_place", "lane_of_row", "row", .words = EIGHT},
    {"decode.parts.row", "q < q_end && ", "", .words = EIGHT, .fault = STORED},
    {"decode.parts.row", " && row % wide < heads", "", .words = EIGHT, .fault = STORED},
    {"decode.parts.write_f32", "*= $(factor)", "*= 1.0f", .words = EIGHT "o_dtype=f32"},
    {"decode.parts.write_f32", "$(seq.stride(\"o\"))", "DV", .words = EIGHT "o_dtype=f32",
     .fault = PLACE},
    {"decode.parts.write", "2 * c + 1] * $(factor)", "2 * c + 1]", .words = EIGHT},
    {"decode.parts.write", "$(seq.stride(\"o\"))", "DV", .words = EIGHT, .fault = PLACE},
    {"decode.parts.publish", "fence_device();", "", .words = EIGHT, .fault = BLOCKS},
    {"decode.parts.publish", "open_claims(word);", "", .words = EIGHT,
     .fault = "never written|wrong numbers"},
    {"tile/claims.cut", "if ((int)seen == all - 1) { atomic_cas_u64(word, seen + 1, 0); }", "",
     .words = EIGHT, .fault = "never written|wrong numbers"},
    {"decode.parts.publish", "shares - 1", "shares - 2", .words = EIGHT, .fault = PLACE},
    {"decode.parts.see_others", "fence_device();", "", .words = EIGHT, .fault = BLOCKS},
    /* rows that do not count */
    {"decode.forward.zero_rest", "\"DV\", \"(int)threadIdx.x\"", "\"DV\", \"(int)threadIdx.x + 1\"",
     .words = RAGGED},
};

static const char met[] =
    CACHED " mask=causal;" SIXTEEN CAUSAL "kv_layout=cached;" SIXTY CAUSAL "kv_layout=cached";

/* Every meeting of threads and every step of a copy dropped in turn. */
static const planted_bug meetings[] = {
    {FORWARD, "block_sync();", "(void)0;", met, .fault = ORDER},
    {FORWARD, "cp_async_commit();", "(void)0;", met, .fault = ORDER},
    {LINE, "block_sync();", "(void)0;", met, .fault = ORDER},
    {PARTS, "block_sync();", "(void)0;", met, .fault = ORDER "|" BLOCKS},
};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = met},
    {.words = HEADS ";" RAGGED ";" PAGED ";" FIXED ";" FIXED_PACKED},
    {.words = SIXTEEN "score=alibi;" SIXTY FEW}};

PLANTED_SUITE(.name = "decode planted", .bugs = {PLANTED(bugs), PLANTED(meetings)},
              .whole = PLANTED(whole), .whole_seeds = 3, .cases = cases,
              .place = {{FORWARD}, {LINE}, {PARTS}} /* any file of the family */)
