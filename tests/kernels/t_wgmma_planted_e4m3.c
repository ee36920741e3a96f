/* t_wgmma_planted_e4m3.c - bugs planted in what wgmma's forward does for numbers of e4m3: how V is
 * turned on its way, where weights go, what O takes in. The host device or the oracle catches each.
 */
#include "wgmma_planted.h"

#define FWD    "family=wgmma dtype=e4m3 head_dim=128 "
#define FULL   FWD "mask=full "
#define WIDE   FWD "mask=causal block_kv=160 "
#define BLOCKS "family=wgmma dtype=e4m3 head_dim=64 descale_block=96 "

/* O so wide that products with V come before those that make S. */
#define WIDE_O "family=wgmma dtype=e4m3 head_dim=32/160 mask=full block_kv=64 "

#define TURN "attention/wgmma/transpose.cut"

/* The scale is negative. */
static const verify_case negative[] = {{.shape = {.b = 1, .h = 2, .hk = 1, .nq = 40, .nk = 300},
                                        .given = FG_GIVEN_SCALE,
                                        .scale = -0.25F,
                                        .seed = 2},
                                       {.seed = 0}};

static const planted_bug bugs[] = {
    {"wgmma.transpose.end_tiles", "sts_u32(sm + SM_ENDS + 4 * (u32)slot, 1);", "", .words = FULL,
     .fault = WGMMA_STUCK, .place = {{TURN}, WGMMA_MOVERS}},
    {"wgmma.transpose.read", "lane % 8", "lane % 4", .words = FULL},
    {"wgmma.transpose.pick", "PICKS[i % 2]", "PICKS[0]", .words = FULL},
    {"wgmma.transpose.write", "column * shape", "(column + 16) % 128 * shape", .words = FULL},
    {"wgmma.transpose.keys", "/ 16 + lane / 16", "/ 16 + 1 - lane / 16", .words = FULL},
    {"wgmma.transpose.block", "(key / %d * %d)", "(key / %d * %d + 16)", .words = WIDE,
     .fault = "never written|race", .place = {{TURN}, WGMMA_FORWARD}},
    {"wgmma.transpose.half", "column = half", "column = half + 16", .words = FULL,
     .fault = "never written", .place = {WGMMA_FORWARD}},
    {"wgmma.barriers.turned", "STAGES or 0, 2", "STAGES or 0, 1", .words = FULL,
     .fault = "never written|race|arrivals of its phase|" WGMMA_STUCK,
     .place = {{TURN}, WGMMA_FORWARD, WGMMA_MOVERS}},
    {"wgmma.queries.job_before", "(turn - 1) % 2", "turn % 2", .words = FULL,
     .fault = "tma_store to coordinate -1", .place = {WGMMA_MOVERS}},
    {"tile.tiles.columns_below", "$(4 * bits.count)", "128", .words = WIDE},
    {"wgmma.transpose.turned", "\"v_empty\"", "\"v_full\"", .words = FULL,
     .fault = WGMMA_STUCK "|arrivals of its phase|race", .place = {{TURN}, WGMMA_MOVERS}},
    {"wgmma.fragment.join", "join_u16(low%d, high%d)", "join_u16(high%d, low%d)", .words = FULL},
    {"wgmma.values.add_part", "ADD_PART_$(i)", "ADD_PART_0", .words = FULL},
    {"wgmma.values.add_part", "ADD_PART_$(i)", "ADD_PART_0", .words = WIDE_O},
    {"wgmma.values.none", "ALL_LANES, 0, 0", "ALL_LANES, 1, 0", .words = WIDE_O},
    {"wgmma.values.part_before", "pending = 1", "pending = 2", .words = WIDE_O, .fault = WGMMA_RACE,
     .place = {{TURN}, WGMMA_FORWARD}},
    {"wgmma.values.wait_scores", "wait_scores(s);", "", .words = WIDE_O, .fault = WGMMA_RACE,
     .place = {WGMMA_MOVERS, WGMMA_FORWARD}},
    {"wgmma.transpose.keys", "lane % 8 * 16", "lane % 4 * 16", .words = WIDE_O},
    {"wgmma.job.thread_of_output", "(own_thread / 32)", "((own_thread / 32 + 1) % 4)",
     .words = "family=wgmma dtype=e4m3 head_dim=32/208 slices=true score=softcap(5.0) ",
     .fault = WGMMA_RACE, .place = {{"attention/wgmma/output.cut"}}},
    {"wgmma.unit.of_sequence", "$(descale.declare)", "const float descaled = p.scale;",
     .words = FULL},
    {"normalizers.softmax.below", "$max$unit$below", "$max$unit + 6.0f", .words = FULL},
    /* descales of blocks */
    {"wgmma.unit.of_rows", "row0 + 16 * warp", "row0", .words = BLOCKS},
    {"wgmma.unit.of_tile", "(\"k0\")", "(\"(k0 + BLOCK_KV)\")", .words = BLOCKS},
    {"wgmma.unit.sign_scores", "NEGATE_S()", "(void)0;", .words = BLOCKS, .cases = negative},
    {"wgmma.unit.take_values", "(\"k0\")", "(\"(k0 + BLOCK_KV)\")",
     .words = BLOCKS ";" WIDE_O "descale_block=64 "},
};

/* Of several tiles each way; all descales are given: even seeds. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 60, .nk = 300}, .seed = 2},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 150, .nk = 391}, .seed = 4},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = FULL},
    {.words = FWD "mask=causal block_kv=96 "},
    {.words = WIDE},
    {.words = FWD "mask=window(100,7) block_kv=64 score=softcap(30.0) "},
    {.words = FWD "mask=causal q_layout=packed kv_layout=packed "},
    {.words = FWD "mask=causal kv_layout=paged "},
    {.words = FWD "mask=causal slices=true "},
    {.words = BLOCKS},
    {.words = WIDE_O "descale_block=64 "},
    {.words = FWD "mask=causal slices=true descale_block=64 "},
    {.words = "family=wgmma dtype=e4m3 head_dim=32/256 mask=causal kv_layout=paged "},
};

PLANTED_SUITE(.name = "wgmma planted e4m3", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = ORDERS, .cases = cases)
