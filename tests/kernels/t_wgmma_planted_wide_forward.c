/* t_wgmma_planted_wide_forward.c - bugs planted in wgmma's forward for wide heads: in what blocks
 * of a cluster fetch for each other, in what the two sides of a block tell each other, in when a
 * piece's slot is empty. The host device or the oracle catches each. */
#include "wgmma_planted.h"

#define FWD    "family=wgmma "
#define FULL   FWD "head_dim=264/272 mask=full "
#define CAUSAL FWD "head_dim=320 mask=causal "
#define MORE   FWD "head_dim=576/512 mask=causal "
#define FEW    FWD "head_dim=264/72 mask=window(100,7) "
#define CAP    FWD "head_dim=264 mask=causal score=s*s "
#define SLOPE  FWD "head_dim=264 mask=causal score=alibi "
#define PACKED FWD "head_dim=264 mask=causal q_layout=packed kv_layout=packed "

#define WIDE  "attention/wgmma/forward_wide.cut"
#define MOVER "attention/wgmma/forward_wide_mover.cut"
#define PAIR  "tile/pair.cut"

#define RACE  WGMMA_RACE
#define STUCK WGMMA_STUCK "|have come"
#define GONE  "has ended|nothing makes it wait|in flight|ends with"

/* Few keys, whose pieces do not fill the slots. */
static const verify_case few[] = {{.shape = {.b = 1, .h = 1, .hk = 1, .nq = 63, .nk = 1}},
                                  {.seed = 0}};

static const planted_bug bugs[] = {
    /* what a mover fetches, for whom, and when a slot is empty */
    {"wgmma.forward_wide_mover.take_slot",
     "mbarrier_wait($(barrier(\"piece_empty\", \"slot\")), $(parity(\"number\", STAGES)) ^ 1);", "",
     .words = FULL ";" MORE, .fault = RACE "|" STUCK},
    {"wgmma.forward_wide_mover.send_k", "KEYS / CLUSTER * rank", "KEYS / CLUSTER * 0",
     .words = FULL, .fault = RACE "|" STUCK},
    {"wgmma.forward_wide_mover.send_k", "key * 128", "key * 64", .words = FULL, .fault = RACE},
    {"wgmma.forward_wide_mover.send_v", "CLUSTER * rank", "CLUSTER * 0", .words = FULL,
     .fault = RACE "|" STUCK},
    {"wgmma.forward_wide_mover.send_v", "/ DV_BLOCKS * DV_COLUMNS", "/ DV_BLOCKS * 64",
     .words = FULL},
    {"wgmma.forward_wide_mover.load_q", "\"row0\"", "\"q0\"", .words = FULL},
    /* S and its pieces */
    {"wgmma.forward_wide.release", "lane < CLUSTER", "lane < 1", .words = FULL, .fault = STUCK,
     .place = {{MOVER}, {WIDE}}},
    {"wgmma.forward_wide.add_part", "ADD_PART()", "", .words = FULL},
    {"wgmma.forward_wide.scores", "k_rows + (u32)", "v_columns + (u32)", .words = FULL},
    {"wgmma.forward_wide.scores", "wgmma_wait_1();", "", .words = FULL,
     .fault = RACE "|still reads", .place = {{MOVER}, {WIDE}}},
    {"wgmma.forward_wide.places", "(u32)(side * (BLOCK", "(u32)((1 - side) * (BLOCK",
     .words = FULL},
    {"wgmma.forward_wide.places", "(u32)(side * (DV", "(u32)((1 - side) * (DV", .words = FULL},
    {"wgmma.forward_wide.places", "side * (BLOCK_KV / 8)", "0", .words = FULL "block_kv=64 ",
     .fault = RACE},
    {"wgmma.forward_wide.places", "side * (64 * 128) +", "(1 - side) * (64 * 128) +",
     .words = FULL},
    /* P */
    {"wgmma.forward_wide.put_weights", "2 * i", "i", .words = FULL, .fault = RACE},
    {"wgmma.forward_wide.weights_are_there", "fence_async();", "", .words = FULL, .fault = "fence",
     .place = {{WIDE}}},
    {"wgmma.forward_wide.weights_are_there", "warp_sync(ALL_LANES);", "", .words = FULL,
     .fault = RACE},
    {"wgmma.forward_wide.wait_weights",
     "mbarrier_wait($(barrier(\"p_full\", \"turn % 2\")), $(parity(\"turn\", 2)));", "",
     .words = FULL, .fault = RACE},
    /* O += P V */
    {"wgmma.forward_wide.values", "first // 64 * 8192 +", "", .words = FULL},
    {"wgmma.forward_wide.values", "first % 64 * 2", "0", .words = FULL},
    {"wgmma.forward_wide.release_values", "wgmma_wait_$(issued - released)();", "", .words = FULL,
     .fault = RACE "|still reads", .place = {{MOVER}, {WIDE}}},
    {"wgmma.forward_wide.end_scores", "wait_scores($(sums));", "", .words = FULL,
     .fault = RACE "|in flight|still reads", .place = {{WIDE}, WGMMA_WEIGHTS, {MOVER}}},
    /* what both sides know of a row */
    {"wgmma.forward_wide.pair", "\"side == 0\"", "\"side == 1 && k_first > 0\"", .words = FULL,
     .fault = "wrong numbers|never written"},
    {"wgmma.forward_wide.pair", "\"k_tile + KEYS\"", "\"k0 + BLOCK_KV\"", .words = SLOPE},
    {"wgmma.weights.agree", "any_lane(ALL_LANES, !(safe0 && safe1))", "0", .words = FULL,
     .cases = wgmma_far},
    {"tile.pair.place", "side * 128", "0", .words = FULL, .fault = RACE},
    {"tile.pair.sync", "barrier_sync(1 + (int)threadIdx.x % 128 / 32, 64);", "", .words = FULL,
     .fault = RACE},
    {"tile.pair.turn", "*place ^= 256;", "", .words = FULL, .fault = RACE, .cases = wgmma_far},
    {"tile.pair.max", "max_f32(v, as_f32(pair_other(place, as_u32(v))))",
     "v + 0.0f * as_f32(pair_other(place, as_u32(v)))", .words = FULL, .cases = wgmma_far,
     .fault = "wrong numbers|deadlock", .place = {{PAIR}, {WIDE}, {MOVER}}},
    {"tile.pair.sum", "v + as_f32(pair_other(place, as_u32(v)))",
     "v + 0.0f * as_f32(pair_other(place, as_u32(v)))", .words = FULL},
    /* rows and keys */
    {"wgmma.forward_wide.find", "head % p.h", "head % p.hk", .words = FULL,
     .fault = "race: store|wrong numbers", .place = {{"attention/wgmma/output.cut"}, {WIDE}}},
    {"wgmma.forward_wide.keys", "KEYS) - 1)", "KEYS) - 2)", .words = FULL},
    {"wgmma.forward_wide.sign_of_scale", "$(score.scale_is_negative)", "p.scale < -99.0f",
     .words = FULL, .cases = wgmma_far},
    {"wgmma.forward_wide.sign_of_scale", "fence_async();", "", .words = FULL, .fault = "fence",
     .cases = wgmma_far},
    {"wgmma.forward_wide.sign_of_scale", "barrier_sync($(SIDES), 256);", "", .words = FULL,
     .fault = RACE, .cases = wgmma_far},
    /* O leaves */
    {"wgmma.forward_wide.store", "barrier_sync($(SIDES), 256);\nconst", "const", .words = FULL,
     .fault = RACE "|reads", .place = {{WIDE}, {"attention/wgmma/output.cut"}}},
    {"wgmma.forward_wide.store", "row0", "q0", .words = FULL, .fault = "race: store|wrong numbers"},
    {"wgmma.output.place", "%s + %d) / 64", "%s + %d) / 128", .words = FULL,
     .fault = "wrong numbers|race"},
    {"wgmma.output.put_nothing", "PUT_NOTHING($(i // 4 * 8192)",
     "PUT_NOTHING($(i // 4 * 8192 - 8192)", .words = FULL "block_kv=64 ", .fault = "never written",
     .cases = few, .place = {{WIDE}}},
    {"wgmma.forward_wide.end", "cluster_sync();", "", .words = FULL, .fault = GONE,
     .place = {{WIDE}, {MOVER}, {PAIR}}},
};

/* Of several tiles each way, some of whose clusters have rows for one block alone. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 60, .nk = 180}, .contiguous = 1},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 150, .nk = 391}},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = FULL},
    {.words = CAUSAL},
    {.words = MORE},
    {.words = FEW},
    {.words = CAP},
    {.words = SLOPE},
    {.words = PACKED},
    {.words = FULL "block_q=64 "},
    {.words = FWD "head_dim=512 mask=causal block_q=64 "},
    {.words = FULL "block_kv=64 "},
    {.words = FULL "block_kv=64 ", .cases = few},
    {.words = CAUSAL "block_kv=64 "},
    {.words = FULL, .cases = wgmma_far},
    {.words = CAUSAL, .cases = wgmma_far},
};

PLANTED_SUITE(.name = "wgmma planted wide forward", .bugs = {PLANTED(bugs)},
              .whole = PLANTED(whole), .whole_seeds = ORDERS, .cases = cases)
