/* t_wgmma_planted_columns.c - bugs planted in wgmma's backward whose clusters divide columns: in
 * which columns blocks have, in the parts of S and dP that they send each other, in what
 * warpgroups hand over. The host device or the oracle catches each. */
#include "wgmma_planted.h"

#define BWD    WGMMA_BACKWARD
#define FULL   BWD "head_dim=264/272 mask=full "
#define CAUSAL BWD "head_dim=320/64 mask=causal "
#define MORE   BWD "head_dim=576/512 mask=full "
#define CAP    BWD "head_dim=264 mask=causal score=softcap(5.0) "
#define DROP   BWD "head_dim=264/272 mask=causal dropout=true "
#define DROP_2 BWD "head_dim=264 mask=full score=softcap(5.0) dropout=true "
#define PACKED BWD "head_dim=264 mask=causal q_layout=packed kv_layout=packed "

#define FILE    "attention/wgmma/backward_columns.cut"
#define WEIGHTS "attention/wgmma/backward_wide_weights.cut"
#define TILES   "attention/wgmma/backward_tiles.cut"

#define RACE  WGMMA_RACE
#define STUCK WGMMA_STUCK "|have come"
#define GONE  "has ended|nothing makes it wait|in flight|ends with"

static const planted_bug bugs[] = {
    /* what a mover fetches, and when its place is empty */
    {"wgmma.backward_columns.load_q",
     "mbarrier_wait($(barrier(\"q_empty\", \"0\")), (count & 1) ^ 1);", "", .words = FULL,
     .fault = RACE "|" STUCK},
    {"wgmma.backward_columns.load_q", "Q_BYTES + KEPT_BYTES", "Q_BYTES", .words = FULL,
     .fault = RACE "|" STUCK, .place = {{FILE}, {"attention/backward/pairs.cut"}, {WEIGHTS}}},
    {"wgmma.backward_columns.load_q", "D_BLOCKS * rank", "0", .words = FULL},
    {"wgmma.backward_columns.load_do",
     "mbarrier_wait($(barrier(\"do_empty\", \"0\")), (count & 1) ^ 1);", "", .words = FULL,
     .fault = RACE "|" STUCK},
    {"wgmma.backward_columns.load_do", "DV_BLOCKS * rank", "0", .words = FULL},
    /* parts of S and dP */
    {"wgmma.backward_columns.put_part",
     "mbarrier_wait($(barrier(kind .. \"_empty\", \"0\")), (count & 1) ^ 1);", "",
     .words = FULL ";" MORE, .fault = RACE "|" STUCK "|still reads"},
    {"wgmma.backward_columns.put_part", "2048 * i", "1024 * i", .words = FULL, .fault = RACE},
    {"wgmma.backward_columns.send_part", "fence_async();", "", .words = FULL, .fault = "fence"},
    {"wgmma.backward_columns.send_part", "barrier_sync($(id), 128);", "", .words = FULL,
     .fault = RACE},
    {"wgmma.backward_columns.send_part", "(CLUSTER - 1) * PART_BYTES", "PART_BYTES", .words = MORE,
     .fault = RACE "|" STUCK},
    {"wgmma.backward_columns.send_part", "(rank + i) % CLUSTER", "(rank + 1) % CLUSTER",
     .words = MORE, .fault = RACE "|" STUCK "|still"},
    {"wgmma.backward_columns.take_parts", "@ wait_full(kind)", "", .words = FULL, .fault = RACE},
    {"wgmma.backward_columns.take_parts", "r * PART_BYTES", "0 * PART_BYTES", .words = FULL,
     .fault = RACE},
    {"wgmma.backward_columns.release_parts", "lane != rank", "lane > rank", .words = FULL,
     .fault = STUCK},
    {"wgmma.backward_columns.release_parts", "warp_sync(ALL_LANES);", "", .words = FULL,
     .fault = RACE},
    /* S, P and dV */
    {"wgmma.backward_columns.scores", "@ wait_full(\"q\")", "", .words = FULL, .fault = RACE},
    {"wgmma.backward_columns.scores", "wait_part(s);", "", .words = FULL,
     .fault = "before the wait"},
    {"wgmma.backward_columns.values", "@ wait_full(\"do\")", "", .words = FULL, .fault = RACE},
    {"wgmma.backward_columns.values", "@ release(\"do\")", "", .words = FULL, .fault = STUCK},
    /* what dropout keeps of P, and is told of it */
    {"wgmma.backward_wide_weights.drop", "keeps[i % 2]", "keeps[0]", .words = DROP},
    {"wgmma.backward_wide_weights.drop", "i / 2", "i / 4", .words = DROP},
    {"wgmma.backward_wide_weights.put_keeps", "keeps[r]", "keeps[0]", .words = DROP ";" DROP_2},
    {"wgmma.backward_wide_weights.put_keeps", "sts_u32($(keeps_place()), keeps[r]);", "",
     .words = DROP, .fault = RACE},
    {"wgmma.backward_columns.dropped", "weights.factor_of_values", "nil", .words = DROP},
    /* dP, dS and dK */
    {"wgmma.backward_columns.dots", "@ wait_full(\"do\")", "", .words = FULL, .fault = RACE},
    {"wgmma.backward_columns.dots", "@ release(\"do\")", "", .words = FULL, .fault = STUCK},
    {"wgmma.backward_columns.put_ds",
     "mbarrier_wait($(barrier(\"ds_empty\", \"0\")), (count & 1) ^ 1);", "", .words = FULL,
     .fault = RACE "|still reads"},
    {"wgmma.backward_columns.put_ds", "fence_async();", "", .words = FULL, .fault = "fence"},
    {"wgmma.backward_columns.put_ds", "warp_sync(ALL_LANES);", "", .words = FULL, .fault = RACE},
    {"wgmma.backward_columns.places", "2 * warp +", "2 * 0 +", .words = FULL, .fault = RACE},
    {"wgmma.backward_columns.keys", "@ release(\"q\")", "", .words = FULL, .fault = STUCK},
    {"wgmma.backward_columns.add_to", "32 * done", "0", .words = FULL,
     .fault = "wrong numbers|in flight"},
    {"wgmma.backward_columns.add_to", "done * 64 * 128", "0", .words = FULL},
    /* dQ */
    {"wgmma.backward_columns.queries", "@ wait_full(\"ds\")", "", .words = FULL, .fault = RACE},
    {"wgmma.backward_columns.queries", "c * (64 * 128)", "0", .words = FULL},
    {"wgmma.backward_columns.add_dq", "D_BLOCKS * rank", "0 * rank", .words = FULL},
    {"wgmma.backward_columns.add_dq", "chunk + i < CHUNKS_D", "1", .words = FULL,
     .fault = "wrong numbers|past the end of tensor dq_sum"},
    /* the job, and the end */
    {"wgmma.backward_columns.job", "/ CLUSTER", "% CLUSTER", .words = FULL,
     .fault = RACE "|" STUCK "|race"},
    {"wgmma.backward_columns.leave", "barrier_sync($(BOTH), 256);", "", .words = FULL,
     .fault = RACE "|reads", .place = {{TILES}, {FILE}}},
    {"wgmma.backward_columns.leave", "fence_async();", "", .words = FULL, .fault = "fence",
     .place = {{TILES}, {FILE}}},
    {"wgmma.backward_columns.leave", "$(blocks) * rank + c", "c", .words = FULL,
     .fault = "wrong numbers|race: store"},
    {"wgmma.backward_columns.leave_f32", "* rank", "* 0", .words = FULL "dqkv_dtype=f32 ",
     .fault = "wrong numbers|race: store", .place = {{TILES}, {"tile/tiles.cut"}, {FILE}}},
    {"wgmma.backward_columns.end", "cluster_sync();", "", .words = FULL, .fault = GONE},
};

/* Of several tiles each way. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 200, .nk = 90}, .contiguous = 1},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 150, .nk = 130}},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = FULL},
    {.words = CAUSAL},
    {.words = MORE},
    {.words = CAP},
    {.words = PACKED},
    {.words = DROP},
    {.words = DROP_2},
    {.words = PACKED "dropout=true "},
    {.words = FULL "dqkv_dtype=f32 "},
    {.words = PACKED "dqkv_dtype=f32 "},
};

PLANTED_SUITE(.name = "wgmma planted columns", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = ORDERS, .cases = cases)
