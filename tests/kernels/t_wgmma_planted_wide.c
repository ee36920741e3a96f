/* t_wgmma_planted_wide.c - bugs planted in wgmma's backward for wide heads: in what blocks of a
 * cluster fetch for each other, in what warpgroups and blocks hand over, in when a slot is empty.
 * The host device or the oracle catches each. */
#include "wgmma_planted.h"

#define BWD   WGMMA_BACKWARD
#define EVEN  BWD "head_dim=256 mask=full "
#define ODD   BWD "head_dim=192/128 mask=causal "
#define OTHER BWD "head_dim=136/160 mask=window(100,7) score=alibi "
#define CAP   BWD "head_dim=192 mask=causal score=softcap(5.0) "

#define ORDER BWD "head_dim=136 mask=causal deterministic=true "

#define WIDE    "attention/wgmma/backward_wide.cut"
#define MOVER   "attention/wgmma/backward_wide_mover.cut"
#define QUERIES "attention/wgmma/backward_wide_queries.cut"
#define TILES   "attention/wgmma/backward_tiles.cut"

#define RACE  WGMMA_RACE
#define STUCK WGMMA_STUCK "|have come"
#define GONE  "has ended|nothing makes it wait|in flight|ends with"

#define TILE_OF_DO   "has_two_tiles_of_do=0"
#define PIECES_OF_DQ "has_unequal_pieces_of_dq=1"

/* Of one tile of rows for each key/value head. */
static const verify_case one_tile[] = {{.shape = {.b = 1, .h = 2, .hk = 2, .nq = 60, .nk = 60}},
                                       {.seed = 0}};

static const planted_bug bugs[] = {
    /* what a mover fetches, for whom, and when a slot is empty */
    {"wgmma.backward_wide_mover.load_q",
     "mbarrier_wait($(barrier(\"q_empty\", \"slot\")), $(parity(\"count\", STAGES)) ^ 1);", "",
     .words = EVEN ";" ODD, .fault = RACE "|" STUCK},
    {"wgmma.backward_wide_mover.load_q", "Q_BYTES + KEPT_BYTES", "Q_BYTES", .words = EVEN,
     .fault = RACE "|" STUCK, .place = {{MOVER}, {WIDE}, {"attention/backward/pairs.cut"}}},
    {"wgmma.backward_wide_mover.load_q", " + q0), KEPT_BYTES", "), KEPT_BYTES",
     .words = EVEN ";" ODD},
    {"wgmma.backward_wide_mover.load_do", "if (count >= DO_SLOTS) {", "if (count > DO_SLOTS) {",
     .words = EVEN, .fault = STUCK},
    {"wgmma.backward_wide_mover.load_do",
     "mbarrier_wait($(barrier(\"do_empty\", given.do_slot(\"count\"))), $(parity(\"count\", "
     "DO_SLOTS)) ^ 1);",
     "", .words = EVEN ";" ODD, .fault = RACE "|" STUCK},
    {"wgmma.backward_wide_mover.load_do", "other_bytes", "own_bytes", .words = OTHER,
     .fault = RACE "|" STUCK, .place = {{MOVER}, {WIDE}}},
    {"wgmma.backward_wide_mover.load_do", "64 * other", "64 * rank", .words = EVEN},
    {"wgmma.backward_wide_mover.load_do", "64 * (first_block +", "64 * (0 +", .words = EVEN},
    /* the job that the first block claims for both */
    {"wgmma.backward_wide.claim", "fence_async();", "", .words = ORDER, .fault = "fence"},
    {"wgmma.backward_wide.claim", "mbarrier_wait($(barrier(\"job_full\", \"0\")), 0);", "",
     .words = ORDER, .fault = RACE},
    /* S, P and dV */
    {"wgmma.backward_wide.first_scores", "mbarrier_wait($(barrier(\"k_full\", \"0\")), 0);", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.first_scores", "mbarrier_wait($(barrier(\"q_full\", \"0\")), 0);", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide_weights.put_p", "2048 * i", "1024 * i", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide_weights.p_is_there", "warp_sync(ALL_LANES);", "", .words = EVEN,
     .fault = RACE},
    {"wgmma.backward_wide.values", "@ wait_half(REST, \"count\")", "", .words = EVEN ";" ODD,
     .fault = RACE},
    {"wgmma.backward_wide.values",
     "if (more) { mbarrier_wait($(barrier(\"q_full\", \"next\")), $(parity(\"(count + 1)\", "
     "STAGES))); }",
     "", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.values", "dv + DV_FIRST / 2", "dv", .words = ODD,
     .fault = "wrong numbers|in flight"},
    {"wgmma.backward_wide.release_values", "wgmma_wait_2();", "", .words = EVEN,
     .fault = RACE "|still reads", .place = {{MOVER}}},
    {"wgmma.backward_wide.release_values", "@ release_half(REST, \"count\")", "", .words = EVEN,
     .fault = STUCK, .place = {{MOVER}}},
    /* dP, dS and dK */
    {"wgmma.backward_wide.dots", "@ wait_half(FIRST, count)", "", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.dots", "v_rest", "v_first", .words = EVEN ";" ODD},
    {"wgmma.backward_wide.release_dots", "wgmma_wait_1();", "", .words = EVEN,
     .fault = RACE "|still reads", .place = {{MOVER}}},
    {"wgmma.backward_wide.release_dots", "@ release_half(REST, count)", "", .words = EVEN,
     .fault = STUCK, .place = {{MOVER}}},
    {"wgmma.backward_wide_weights.take_p",
     "mbarrier_wait($(barrier(\"p_full\", \"slot\")), $(parity(\"count\", STAGES)));", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide_weights.take_p", ">> 16", ">> 0", .words = EVEN},
    {"wgmma.backward_wide_weights.pack_factors", "dp[4 * n + 2 * r]", "s[4 * n + 2 * r]",
     .words = CAP},
    {"wgmma.backward_wide_weights.pack_ds", "dp[4 * n + 2 * r], dp[4 * n + 2 * r + 1]",
     "dp[4 * n + r], dp[4 * n + r + 2]", .words = EVEN},
    {"wgmma.backward_wide.put_ds",
     "mbarrier_wait($(barrier(\"ds_empty\", \"ds_slot\")), $(parity(\"count\", DS_SLOTS)) ^ 1);",
     "", .words = EVEN, .fault = RACE "|" STUCK},
    {"wgmma.backward_wide.put_ds", "2 * ds_slot + rank", "2 * ds_slot + other", .words = EVEN,
     .fault = RACE "|still reads", .place = {{QUERIES}}},
    {"wgmma.backward_wide.send_ds", "fence_async();", "", .words = EVEN, .fault = "fence"},
    {"wgmma.backward_wide.send_ds", "barrier_sync($(KEYS), 128);", "", .words = EVEN,
     .fault = RACE},
    {"wgmma.backward_wide.send_ds", "DS_BYTES,", "DS_BYTES / 2,", .words = EVEN, .fault = STUCK,
     .place = {{MOVER}}},
    {"wgmma.backward_wide.places", "2 * warp +", "2 * 0 +", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.places", "$(block_of(DV_FIRST))", "0", .words = EVEN ";" ODD},
    {"wgmma.backward_wide.keys", " + $(block_of(D_FIRST))", "", .words = EVEN ";" ODD},
    {"wgmma.backward_wide.release_q", "wgmma_wait_2();", "", .words = EVEN,
     .fault = RACE "|still reads", .place = {{MOVER}}},
    {"wgmma.backward_wide.release_q",
     "mbarrier_arrive_remote_if($(barrier(\"q_empty\", \"slot\")), other, lane == 0);", "",
     .words = EVEN, .fault = STUCK, .place = {{MOVER}}},
    /* dQ */
    {"wgmma.backward_wide_queries.wait_keys",
     "mbarrier_wait($(barrier(\"other_k_full\", \"0\")), 0);", "", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide_queries.take_ds",
     "mbarrier_expect_if($(barrier(\"ds_received\", \"slot\")), DS_BYTES, threadIdx.x % 128 == 0);",
     "", .words = EVEN, .fault = STUCK, .place = {{MOVER}}},
    {"wgmma.backward_wide_queries.take_ds",
     "mbarrier_wait($(barrier(\"ds_full\", \"slot\")), $(parity(\"count\", DS_SLOTS)));", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide_queries.products", "$(received or \"\")", "", .words = EVEN ";" ODD,
     .fault = RACE},
    {"wgmma.backward_wide_queries.products", "PLACE_OF_COLUMN(column_of_other)",
     "PLACE_OF_COLUMN(column)", .words = EVEN ";" ODD, .fault = RACE,
     .place = {{QUERIES}, {TILES}}},
    {"wgmma.backward_wide_queries.release_ds",
     "mbarrier_arrive_remote_if($(barrier(\"ds_empty\", \"slot\")), other, lane == 0);", "",
     .words = EVEN, .fault = STUCK, .place = {{MOVER}}},
    {"wgmma.backward_wide_queries.add_dq", "column / 8 + i < CHUNKS_D", "1", .words = OTHER,
     .fault = "wrong numbers|past the end of tensor dq_sum"},
    {"wgmma.backward_wide_queries.add_dq", "16 * column", "8 * column", .words = EVEN ";" ODD},
    /* dO of two tiles, dQ in pieces that differ */
    {"wgmma.backward_wide_mover.load_do", "\"do_empty\", given.do_slot(\"count\")",
     "\"do_empty\", \"0\"", .words = ODD, .fault = RACE "|" STUCK},
    {"wgmma.backward_wide_mover.load_do", "(\" .. given.do_slot(\"count\") .. \")", "(0)",
     .words = ODD, .fault = RACE "|still reads", .place = {{MOVER}, {WIDE}}},
    {"wgmma.backward_wide.values", "do_first$(do_step(\"count\"))", "do_first", .words = ODD,
     .fault = RACE, .place = {{WIDE}, {MOVER}}},
    {"wgmma.backward_wide.keys", "\"(count + more)\"", "\"(count + 1)\"", .words = ODD,
     .fault = "never written", .cases = one_tile},
    {"wgmma.backward_wide.pieces", "(DQ_HALF + 32) * rank", "DQ_HALF * rank", .words = ODD,
     .switches = PIECES_OF_DQ},
    {"wgmma.backward_wide.last_piece", "DQ_HALF - 32 + 32 * rank", "DQ_HALF - 32", .words = ODD,
     .switches = PIECES_OF_DQ},
    /* the end */
    {"wgmma.backward_wide.exchange", "barrier_sync($(other_is_read), 256);", "", .words = EVEN,
     .fault = RACE "|reads", .place = {{TILES}}},
    {"wgmma.backward_wide.exchange", "barrier_arrive($(is_read), 256);", "", .words = EVEN,
     .fault = STUCK},
    {"wgmma.backward_wide.leave", "fence_async();", "", .words = EVEN, .fault = "fence",
     .place = {{TILES}}},
    {"wgmma.backward_wide.end", "cluster_sync();", "", .words = EVEN, .fault = GONE},
};

/* Of several tiles each way, some of whose clusters have keys for one block alone. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 330, .nk = 180}, .contiguous = 1},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 150, .nk = 391}},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = EVEN},
    {.words = ODD},
    {.words = OTHER},
    {.words = CAP},
    {.words = ODD, .switches = TILE_OF_DO "," PIECES_OF_DQ},
    {.words = OTHER, .switches = PIECES_OF_DQ},
    {.words = ODD "stages=3 "},
    {.words = OTHER "stages=3 ", .switches = TILE_OF_DO},
};

PLANTED_SUITE(.name = "wgmma planted wide", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = ORDERS, .cases = cases)
