/* t_wgmma_planted_backward.c - bugs planted in wgmma's backward: in what the mover fetches and
 * when, in what warpgroups hand to each other, in places of tiles and sums. The host device or the
 * oracle catches each. */
#include "wgmma_planted.h"

#define BWD   WGMMA_BACKWARD
#define ROWS  BWD "head_dim=64 block_q=128 mask=causal "
#define WIDE  BWD "head_dim=128 mask=full "
#define MIXED BWD "head_dim=96/40 mask=window(100,7) score=softcap(5.0) "

#define TABLE BWD "score=relative(t) inputs.t=f32[h,nq+nk-1]grad head_dim="

#define BIAS BWD "bias=grad head_dim="

#define BACKWARD "attention/wgmma/backward.cut"
#define KEPT     "attention/backward/kept.cut"
#define TILES    "attention/wgmma/backward_tiles.cut"
#define PAIRS    "attention/backward/pairs.cut"
#define BEHIND   "attention/wgmma/backward_background.cut"
#define INPUT    "attention/wgmma/backward_input.cut"
#define JOBS     "attention/wgmma/backward_jobs.cut"

#define RACE  WGMMA_RACE
#define STUCK WGMMA_STUCK

/* Rows that no key is there for: no block has a job. */
static const verify_case no_keys[] = {{.shape = {.b = 2, .h = 2, .hk = 1, .nq = 330, .nk = 0}},
                                      {.seed = 0}};

/* Keys of which no row sees most: jobs without rows. */
static const verify_case few_rows[] = {{.shape = {.b = 1, .h = 2, .hk = 2, .nq = 40, .nk = 3000}},
                                       {.seed = 0}};
#define NO_ROWS BWD "head_dim=64 mask=window(20,3)"

static const planted_bug bugs[] = {
    {"wgmma.backward.no_rows", "h >= h_end", "h > h_end", .words = NO_ROWS,
     .fault = RACE "|deadlock|wrong numbers", .cases = few_rows,
     .place = {{BACKWARD},
               {"attention/wgmma/backward_jobs.cut"},
               {"attention/wgmma/backward_background.cut"}}},
    /* what the mover fetches: when a slot is empty, how much comes, from where */
    {"wgmma.backward.load_q",
     "mbarrier_wait($(barrier(\"rows_empty\", \"slot\")), "
     "$(parity(\"count\", STAGES)) ^ 1);",
     "", .words = ROWS ";" WIDE, .fault = RACE "|" STUCK, .place = {{BACKWARD}, {TILES}, {JOBS}}},
    {"wgmma.backward.load_q", "Q_BYTES + KEPT_BYTES", "Q_BYTES", .words = ROWS,
     .fault = RACE "|" STUCK, .place = {{BACKWARD}, {PAIRS}}},
    {"wgmma.backward.load_q", " + q0), KEPT", "), KEPT", .words = ROWS ";" WIDE},
    {"wgmma.backward.load_do", "DO_BYTES);", "DO_BYTES / 2);", .words = WIDE,
     .fault = RACE "|" STUCK},
    /* which keys are next, which rows each tile has, when the places of keys are free */
    {"wgmma.backward_jobs.claim", "(u32 *)p.flags, 1)", "(u32 *)p.flags, 2)", .words = WIDE,
     .fault = STUCK "|wrong numbers", .place = {{BEHIND}, {BACKWARD}}},
    {"wgmma.backward_jobs.sections", "rest % heads_here", "rest % wide", .words = ROWS,
     .fault = STUCK "|never written|wrong numbers|past the end of",
     .place = {{JOBS}, {BACKWARD}, {BEHIND}}},
    {"wgmma.backward_jobs.list_tile", "(u32)h,", "0,", .words = WIDE},
    {"wgmma.backward.keys_empty",
     "mbarrier_wait($(barrier(\"keys_empty\", \"0\")), (turn & 1) ^ 1);", "", .words = WIDE,
     .fault = RACE "|" STUCK "|reads", .place = {{BACKWARD}, {TILES}}},
    /* what is waited for before products read it */
    {"wgmma.backward.tiles",
     "mbarrier_wait($(barrier(\"q_full\", \"slot\")), "
     "$(parity(\"count\", STAGES)));",
     "", .words = WIDE, .fault = RACE, .place = {{BACKWARD}}},
    {"wgmma.backward.dots",
     "if (count == first) { mbarrier_wait($(barrier(\"v_full\", \"0\")), loads & 1); }", "",
     .words = WIDE, .fault = RACE, .place = {{BACKWARD}}},
    {"wgmma.backward.dots",
     "mbarrier_wait($(barrier(\"do_full\", \"slot\")), "
     "$(parity(\"count\", STAGES)));",
     "", .words = WIDE ";" MIXED, .fault = RACE, .place = {{BACKWARD}}},
    {"wgmma.backward.weights", "wait_scores(s);\n@ weights", "@ weights", .words = WIDE,
     .fault = "its d was changed before the wait"},
    /* dS, from one warpgroup to all */
    {"wgmma.backward.put_ds", "2048 * i", "1024 * i", .words = WIDE, .fault = RACE},
    {"wgmma.backward.pack", "dp[4 * n + 2 * r], dp[4 * n + 2 * r + 1]",
     "dp[4 * n + r], dp[4 * n + r + 2]", .words = WIDE},
    {"wgmma.backward.hand_over", "fence_async();", "", .words = WIDE, .fault = "fence"},
    {"wgmma.backward.hand_over", "warp_sync(ALL_LANES);", "", .words = WIDE, .fault = RACE,
     .place = {{BACKWARD}, {JOBS}}},
    {"wgmma.backward.dq",
     "mbarrier_wait($(barrier(\"ds_full\", \"before\")), $(parity(\"(count - "
     "1)\", DS_STAGES)));",
     "", .words = WIDE ";" ROWS, .fault = RACE, .place = {{BACKWARD}}},
    {"wgmma.backward_jobs.place_of_rows", "q0 + %s) / 16)", "%s) / 16)", .words = WIDE},
    {"wgmma.backward.add_dq", "i < CHUNKS_D", "1", .words = MIXED,
     .fault = "wrong numbers|past the end of tensor dq_sum|of tensor dq_sum, element"},
    {"wgmma.backward.release_rows", "wait_all(dk, dv);", "", .words = WIDE,
     .fault = RACE "|before the wait for it", .place = {{BACKWARD}, {TILES}}},
    {"wgmma.backward.release_rows",
     "mbarrier_arrive_if($(barrier(\"rows_empty\", \"slot\")), lane == 0);", "", .words = WIDE,
     .fault = STUCK, .place = {{BACKWARD}}},
    /* where tiles and sums lie */
    {"wgmma.backward.places", "dq_row = 64 * group + 16", "dq_row = 16", .words = ROWS},
    {"wgmma.backward.places", "dq_chunk = group *", "dq_chunk = 0 *", .words = WIDE},
    {"wgmma.backward.places", "v_rows = matrix_at(sm + SM_V + (u32)(group * (64 * 128)))",
     "v_rows = matrix_at(sm + SM_V)", .words = WIDE},
    /* what warps of the movers do in the background, and who waits for it */
    {"wgmma.backward_background.await", "flag_wait($(made(\"head\")), (u32)units_of_head);", "",
     .words = WIDE, .fault = "race: |never written", .place = {{BACKWARD}}},
    {"wgmma.backward_background.await", "fence_async_global();", "", .words = WIDE,
     .fault = "fence", .place = {{BACKWARD}}},
    {"wgmma.backward_background.fetch", "tma_store_wait_read_0();", "", .words = WIDE,
     .fault = "still reads"},
    {"wgmma.backward_background.rows", "mbarrier_wait($(full(\"i\")), $(parity(\"i\", 2)));", "",
     .words = ROWS ";" WIDE, .fault = RACE "|" STUCK},
    {"wgmma.backward_background.sum", "dot, 1)", "dot, 2)", .words = WIDE},
    {"wgmma.backward_background.zero", "stg_f32x4(sums + 128 * i, zeros);", "", .words = WIDE,
     .fault = "never written: * dq_sum", .place = {{BACKWARD}, {BEHIND}}},
    {"wgmma.backward_background.made", "head\")), 1)", "head\")), 3)", .words = ROWS,
     .fault = "race: |never written", .place = {{BACKWARD}, {BEHIND}}},
    {"wgmma.backward_background.sums", "mbarrier_wait($(full(\"i\")), $(parity(\"i\", 2)));", "",
     .words = WIDE, .fault = RACE "|" STUCK},
    {"wgmma.backward_background.put", "2 * j + lane / 16", "2 * j + lane / 16 * 0", .words = WIDE,
     .fault = RACE "|wrong numbers|two lanes"},
    {"wgmma.backward_background.store", "\"q0\"", "\"first_row\"", .words = WIDE,
     .fault = "wrong numbers|race: "},
    {"wgmma.backward_background.finish",
     "flag_wait($(added(\"head / (p.h / p.hk)\")), (u32)cdiv($(seq.most_k), BLOCK_KV));", "",
     .words = WIDE, .fault = "race: |wrong numbers", .place = {{BEHIND}, {BACKWARD}}},
    {"wgmma.backward_background.finish", "flag_wait($(made(\"head\")), (u32)units_of_head);", "",
     .words = ROWS, .fault = "race: |never written|wrong numbers", .cases = no_keys},
    {"wgmma.backward_background.deal", "ticket - lead :", "ticket - lead - 1 :", .words = WIDE},
    /* what leaves */
    {"wgmma.backward.leave", "barrier_sync(1, $(128 * GROUPS));", "", .words = WIDE,
     .fault = RACE "|reads", .place = {{TILES}}},
    {"wgmma.backward.leave", "fence_async();", "", .words = WIDE, .fault = "fence",
     .place = {{TILES}}},
    {"wgmma.backward_tiles.store_f32", " + 16 * warp", "", .words = WIDE "dqkv_dtype=f32",
     .fault = "race: store at|wrong numbers"},
    {"wgmma.backward.leave_f32", "barrier_sync(2 + group, 128);", "",
     .words = WIDE "dqkv_dtype=f32", .fault = RACE "|" STUCK,
     .place = {{BACKWARD}, {TILES}, {JOBS}}},
    {"wgmma.backward.put", "i / 4 *", "0 *", .words = WIDE},
    /* a dense input's tiles, and its gradient's */
    {"wgmma.backward.load_q", "$(input.bytes())", "", .words = BIAS "64", .fault = RACE "|" STUCK,
     .place = {{INPUT}, {BACKWARD}}},
    {"wgmma.backward_input.send", "k_begin + $(64 * c)", "k_begin", .words = BIAS "128"},
    {"wgmma.backward_input.send", "$(where)", "q0, 0, 0", .words = BIAS "64"},
    {"wgmma.backward_input.complete", "barrier_sync(2 + group, 128);", "", .words = BIAS "64",
     .fault = RACE},
    {"wgmma.backward_input.complete", "(q0 + row) * $(tiled.stride)", "row * $(tiled.stride)",
     .words = BIAS "128"},
    {"wgmma.backward_input.take", "from and \" + 128 * \" .. from or \"\"", "\"\"",
     .words = BIAS "128"},
    {"wgmma.backward_input.take", "2048 * i", "1024 * i", .words = BIAS "64"},
    {"wgmma.backward_gradient.store", "before * DS_BYTES", "0 * DS_BYTES", .words = BIAS "64",
     .fault = RACE, .place = {{BACKWARD}}},
    {"wgmma.backward_gradient.store", "group * (BLOCK_Q * 128)", "0", .words = BIAS "64"},
    {"wgmma.backward_gradient.wait", "tma_store_wait_read_0();", "",
     .words = BIAS "64;" BIAS "128 mask=causal", .fault = "still reads", .place = {{BACKWARD}}},
    {"wgmma.backward_gradient.remember", "q_before = q0;", "", .words = BIAS "128"},
    {"wgmma.backward_jobs.batches", "$(number) % p.b", "0", .words = BIAS "64 bias_dims=[h,q,k]",
     .fault = "race: store at|wrong numbers", .place = {{BACKWARD, NULL}}},
    /* what pairs of one distance share */
    {"wgmma.backward_distances.load", "8 * (i - N_Q + 1) - c", "8 * (i - N_Q + 1)",
     .words = TABLE "64"},
    {"wgmma.backward_distances.load", "(u32)(nearest + step) < (u32)$(table_read.length)", "1",
     .words = TABLE "64", .fault = "outside of every tensor|before the start|past the end"},
    {"wgmma.backward_distances.add", "sum[1] +=", "sum[0] +=", .words = TABLE "64;" TABLE "128"},
    {"wgmma.backward_distances.add", "r - n + N_Q - 1", "N_Q - 1 - n", .words = TABLE "64"},
    {"wgmma.backward_distances.place", "16 * warp", "0 * warp", .words = TABLE "64;" TABLE "128"},
    {"wgmma.backward_distances.place", "$(own) + ", "", .words = TABLE "128"},
};

/* Of several tiles each way; more rows than keys, and fewer. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 330, .nk = 200}, .contiguous = 1},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 150, .nk = 391}},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {{.words = NO_ROWS, .cases = few_rows, .seeds = 8},
                                    {.words = ROWS},
                                    {.words = WIDE},
                                    {.words = MIXED},
                                    {.words = TABLE "64"},
                                    {.words = TABLE "128 mask=causal"},
                                    {.words = BIAS "64"},
                                    {.words = BIAS "128 mask=causal bias_dims=[h,q,k]"}};

PLANTED_SUITE(.name = "wgmma planted backward", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = ORDERS, .cases = cases)
