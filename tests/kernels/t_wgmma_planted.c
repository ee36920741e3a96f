/* t_wgmma_planted.c - bugs planted in wgmma's forward: in the tiles of an input that warps load
 * themselves, in the turns of warpgroups and the keys that one leaves to others, in the bits of a
 * mask. The host device or the oracle catches each. */
#include "wgmma_planted.h"

#define PARTS  "attention/wgmma/parts.cut"
#define CLAIMS "tile/claims.cut"
#define BIAS   "family=wgmma head_dim=64 block_q=128 block_kv=128 bias=true bias_dims=[h,q,k] "
#define WINDOW "family=wgmma head_dim=64 block_q=192 block_kv=128 mask=window(127,0) "
#define ROUND  "family=wgmma head_dim=256 block_kv=64 mask=full "
#define WIDE   "family=wgmma head_dim=64 block_q=192 block_kv=128 mask=window(400,0) "
#define PARTED "family=wgmma head_dim=16/104 key_parts=16 "
#define CAPPED "family=wgmma head_dim=64 block_q=192 score=softcap(30.0) mask=full,causal "
#define SLOPED "family=wgmma head_dim=64 block_kv=128 score=s+0.1*(k-p) mask=causal "

#define WIDE_O "family=wgmma head_dim=64 block_q=192 block_kv=128 o_dtype=f32 "

#define STORED                                                                                     \
  "store to a read-only|store past the end of|store before the start of|store touches a gap|"      \
  "race: store at|wrong numbers"
#define RACE  "race: shared|never written|still filling it|wrong numbers"
#define STUCK WGMMA_STUCK

/* Products beyond the polynomial on both sides, among few keys and many. */
static const verify_case wide[] = {
    {.shape = {.b = 2, .h = 8, .hk = 8, .nq = 1, .nk = 1}, .style = VERIFY_LARGE},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 200, .nk = 300}, .style = VERIFY_LARGE},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 200, .nk = 300},
     .given = FG_GIVEN_SCALE,
     .scale = 0.5f},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 200, .nk = 300},
     .given = FG_GIVEN_SCALE,
     .scale = -0.3f},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 200, .nk = 300},
     .given = FG_GIVEN_SCALE,
     .scale = 1e-9f},
    {.seed = 0}};

/* Rows that lie further apart than float32's exponents reach. */
static const verify_case apart[] = {{.shape = {.b = 1, .h = 2, .hk = 2, .nq = 200, .nk = 300},
                                     .style = VERIFY_LARGE,
                                     .given = FG_GIVEN_SCALE,
                                     .scale = 2.0f},
                                    {.seed = 0}};

/* On two blocks or three, of one seed at least. */
static const verify_case parted[] = {
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 9, .nk = 1600}, .seed = 1},
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 9, .nk = 1600}, .seed = 2},
    {.seed = 0}};

/* Two tiles; one of each three seeds has three blocks for them, of which one has keys of both. */
static const verify_case parted_across[] = {
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 9, .nk = 1600}, .seed = 1},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 9, .nk = 1600}, .seed = 2},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 9, .nk = 1600}, .seed = 3},
    {.seed = 0}};

static const verify_case parted_far[] = {
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 9, .nk = 1600}, .style = VERIFY_LARGE, .seed = 1},
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 9, .nk = 1600}, .style = VERIFY_LARGE, .seed = 2},
    {.seed = 0}};

static const planted_bug bugs[] = {
    /* a tile of an input: whose it is, when it is read, when it is replaced */
    {"wgmma.input.load", "warp,", "warp + 1,", .words = BIAS},
    {"wgmma.input.load", "h\"", "0\"", .words = BIAS},
    {"wgmma.input.wait",
     "mbarrier_wait($(barrier(\"inputs\")), $(barriers.parity(\"inputs\", INPUT_STAGES)));", "",
     .words = BIAS, .fault = RACE, .place = {WGMMA_WEIGHTS}},
    {"wgmma.input.wait", "INPUT_STAGES))", "INPUT_STAGES)) ^ 1", .words = BIAS,
     .fault = RACE "|" STUCK, .place = {WGMMA_WEIGHTS, WGMMA_MOVERS}},
    {"wgmma.input.load_next", "warp_sync(ALL_LANES);", "", .words = BIAS, .fault = RACE},
    {"wgmma.input.load_next", "\"(k0 - INPUT_STAGES * ", "\"(k0 - ", .words = BIAS},
    {"wgmma.input.load", "bar, 32", "bar, 16", .words = BIAS, .fault = RACE "|" STUCK,
     .place = {WGMMA_WEIGHTS, WGMMA_MOVERS}},
    {"wgmma.input.element", "width, 32", "width, 16", .words = BIAS},
    {"wgmma.input.element", "0 and", "1 and", .words = BIAS},
    /* the same by the warp's own hands, where the tensor is not aligned */
    {"tile.tiles.load_box", " ^ turn", "", .words = BIAS},
    {"tile.tiles.load_box", " && column + 1 < columns", "", .words = BIAS,
     .fault = "load past the end of|load before the start|load touches a gap|outside of all"},
    {"wgmma.input.load", "warp_sync(ALL_LANES);", "", .words = BIAS, .fault = RACE,
     .place = {WGMMA_WEIGHTS}},
    /* keys that only other warpgroups see: the same barriers for all */
    {"wgmma.keys_range.pass_first_tiles", "@ pass_tiles(\"k0 >= k_first\")", "", .words = WINDOW,
     .fault = RACE "|" STUCK, .place = {WGMMA_FORWARD, WGMMA_JOB, WGMMA_MOVERS}},
    {"wgmma.keys_range.pass_tiles", "turns.take()", "", .words = WINDOW, .fault = RACE "|" STUCK,
     .place = {WGMMA_JOB}},
    {"wgmma.forward.first_turn", "if use.first_tile_in_turn then turns.take() end", "",
     .words = CAPPED, .fault = RACE "|" STUCK, .place = {WGMMA_JOB}},
    {"wgmma.keys_range.keys_left_behind", ")); // of", " .. \" + BLOCK_KV\")); // of",
     .words = WINDOW},
    /* slots of Q that warpgroups have in turn */
    {"wgmma.barriers.slots_of_q", "Q_SLOTS", "GROUPS", .words = ROUND, .fault = RACE "|" STUCK,
     .place = {WGMMA_MOVERS, WGMMA_JOB, WGMMA_FORWARD}},
    {"wgmma.barriers.slots_of_q", "\"turn % 2 * GROUPS + \" .. group", "barriers.q_slot(group)",
     .words = ROUND, .fault = RACE "|" STUCK, .place = {WGMMA_MOVERS, WGMMA_JOB, WGMMA_FORWARD}},
    /* tiles that all rows of a warpgroup see: where the first one begins, and the last */
    {"wgmma.keys_range.whole_tiles", "), k_end", ") - BLOCK_KV, k_end", .words = WIDE},
    {"wgmma.keys_range.whole_tiles", "- BLOCK_KV ", "", .words = WIDE},
    {"wgmma.keys_range.seen_by_all", "mask.seen_by_all", "mask.keys", .words = WIDE},
    /* claims of rows: who begins to count, from where, and behind which grid */
    {"wgmma.movers.claim", "if (turn == 0) { open_claims((u64 *)p.claims); }", "", .words = WINDOW,
     .fault = "never written", .place = {WGMMA_MOVERS, {CLAIMS}}},
    {"wgmma.movers.claim", "claim(", "1 + claim(", .words = WINDOW},
    {"wgmma.movers.first_keys", "grid_wait();", "", .words = WINDOW, .fault = "before grid_wait",
     .place = {WGMMA_MOVERS, {CLAIMS}}},
    /* parts of a tile of rows: which keys each has, what orders them, what the last one adds up */
    {"wgmma.parts.keys_of_part", "(int)(from - first);", "0;", .words = PARTED, .cases = parted},
    {"wgmma.parts.keys_of_part", "turn > 0 ? first : ", "", .words = PARTED, .cases = parted_across,
     .fault = "never written|wrong numbers"},
    {"wgmma.parts.keys_of_part", " + turn", "", .words = PARTED, .cases = parted_across,
     .fault = "never written|wrong numbers|" STUCK},
    {"wgmma.parts.keys_of_part", "length - 1", "length", .words = PARTED, .cases = parted,
     .fault = "never written|wrong numbers"},
    {"wgmma.parts.keys_of_part", "+ ((block - first_block) << 16)", "", .words = PARTED,
     .cases = parted, .fault = "never written|race: load*another block|wrong numbers"},
    {"wgmma.parts.keys_of_part", " number +", "", .words = PARTED, .cases = parted_across,
     .fault = "race: *another block|never written|wrong numbers"},
    {"wgmma.movers.next_job", "if ((int)lds_u32(job) >= 0) { continue; }", "", .words = PARTED,
     .cases = parted_across, .fault = STUCK},
    {"wgmma.parts.count", "barrier_sync($(whose.barrier), 128);", "", .words = PARTED,
     .cases = parted, .fault = "race: load*another block"},
    {"wgmma.parts.publish", "fence_device();", "", .words = PARTED, .cases = parted,
     .fault = "race: load*another block"},
    {"wgmma.parts.see_others", "fence_device();", "", .words = PARTED, .cases = parted,
     .fault = "race: load*another block"},
    {"wgmma.parts.publish", "open_claims(word);", "", .words = PARTED, .cases = parted,
     .fault = "never written", .place = {{PARTS}, {CLAIMS}}},
    {"wgmma.parts.count", "$(whose.word)", "(place - part) * GROUPS", .words = PARTED,
     .cases = parted, .fault = "never written|race: load*another block|wrong numbers"},
    {"wgmma.parts.start_row", "$(norm.init(row_of(r)))", "", .words = PARTED, .cases = parted},
    {"wgmma.parts.keep", "kept_of_row", "1.0f", .words = PARTED, .cases = parted_far},
    {"wgmma.output.store_rows", "row(r)", "row(0)", .words = WIDE_O, .fault = STORED},
    {"wgmma.output.store_rows", "q < $(seq.nq)", "1", .words = WIDE_O, .fault = STORED},
    {"wgmma.queries.store_o", "if (shares == 1 || lds_u32(sm + SM_LAST + (u32)slot * 4)) ", "",
     .words = PARTED, .cases = parted,
     .fault = "race: store*another block|never written|wrong numbers"},
    /* the first loads, which no mover makes again */
    {"wgmma.load_range.counts", "1, v_count", "0, v_count", .words = WINDOW,
     .fault = RACE "|" STUCK "|arrivals of its phase", .place = {WGMMA_MOVERS}},
    {"wgmma.load_range.first_keys", "k_last", "k_first", .words = WINDOW},
    {"wgmma.queries.first_rows", "if (turn == 0) { continue; } // on its way", "", .words = WINDOW,
     .fault = RACE "|" STUCK "|arrivals of its phase", .place = {WGMMA_MOVERS}},
    /* a cap: where its polynomial holds, and what takes its place */
    {"cap.limits", "BITS - 1", "BITS + 60", .words = CAPPED, .cases = wide},
    {"cap.limits", "LEAST * 2.0 ^ -origin", "-1.0", .words = CAPPED, .cases = wide},
    {"cap.limits", "a1", "a1 * 1.001", .words = CAPPED},
    {"wgmma.weights.hide_scores", "seen.hide()", "", .words = CAPPED, .cases = wide},
    /* rows that share a reference: while they have one, where one is near enough, what they differ
       in */
    {"normalizers.softmax.trial", "fill(\" && $m == m$leader\", r)", "\"\"", .words = SLOPED,
     .cases = wide},
    {"normalizers.softmax.far", "32.0f", "1e30f", .words = SLOPED, .cases = apart},
    {"contract.difference_of_rows", "\"%s", "\"0.0f * (%s)", .words = SLOPED},
    /* the bits of a mask */
    {"tile.tiles.columns_below", "+ imin", "+ 1 + imin", .words = WINDOW},
    {"expr.text.seen_columns", " & ~\" .. below(first)", "\"", .words = WINDOW},
    {"wgmma.trials.hide_upper", "seen1) >> 16", "seen1) >> 24", .words = WINDOW},
    {"wgmma.weights.hide_first_tile", "seen.hide()", "", .words = WINDOW, .cases = wide},
};

/* Of several tiles; rows of keys that are a multiple of 16 bytes and others. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 150, .nk = 520}, .contiguous = 1},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 400, .nk = 391}},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = BIAS},
    {.words = WINDOW},
    {.words = WIDE},
    {.words = ROUND},
    {.words = CAPPED},
    {.words = CAPPED, .cases = wide, .seeds = 4},
    {.words = SLOPED},
    {.words = SLOPED, .cases = wide, .seeds = 4},
    {.words = SLOPED, .cases = apart, .seeds = 4},
};

PLANTED_SUITE(.name = "wgmma planted", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = ORDERS, .cases = cases)
