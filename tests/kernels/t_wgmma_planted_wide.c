/* t_wgmma_planted_wide.c - bugs planted in wgmma's backward for wide heads: in what blocks of a
 * cluster fetch for each other, in what warpgroups and blocks hand over, in when a slot is empty.
 * The host device or the oracle catches each. */
#include "planted.h"
#include "scratch.h"

#include "host/engine.h"

#define BWD   "family=wgmma pass=backward "
#define EVEN  BWD "head_dim=256 mask=full "
#define ODD   BWD "head_dim=192/128 mask=causal "
#define OTHER BWD "head_dim=136/160 mask=window(100,7) score=alibi "
#define CAP   BWD "head_dim=192 mask=causal score=softcap(5.0) "

#define WIDE  "attention/wgmma/backward_wide.cut"
#define TILES "attention/wgmma/backward_tiles.cut"

#define RACE  "race: shared|have come|never written|still filling it|wrong numbers"
#define STUCK "deadlock|second time|more arrivals|has no wait|ends with|still reads|have come"
#define GONE  "has ended|nothing makes it wait|in flight|ends with"

static const planted_bug bugs[] = {
    /* what a mover fetches, for whom, and when a slot is empty */
    {"wgmma.backward_wide.load_q",
     "mbarrier_wait($(barrier(\"q_empty\", \"slot\")), $(parity(\"count\", STAGES)) ^ 1);", "",
     .words = EVEN ";" ODD, .fault = RACE "|" STUCK},
    {"wgmma.backward_wide.load_q", "Q_BYTES + KEPT_BYTES", "Q_BYTES", .words = EVEN,
     .fault = RACE "|" STUCK, .place = {{WIDE}, {"attention/backward/pairs.cut"}}},
    {"wgmma.backward_wide.load_q", "padded + q0)", "padded)", .words = EVEN ";" ODD},
    {"wgmma.backward_wide.load_do", "if (count > 0) {", "if (count > 1) {", .words = EVEN,
     .fault = STUCK},
    {"wgmma.backward_wide.load_do",
     "mbarrier_wait($(barrier(\"do_empty\", \"0\")), $(parity(\"count\", 1)) ^ 1);", "",
     .words = EVEN ";" ODD, .fault = RACE "|" STUCK},
    {"wgmma.backward_wide.load_do", "other_bytes", "own_bytes", .words = OTHER,
     .fault = RACE "|" STUCK},
    {"wgmma.backward_wide.load_do", "64 * other", "64 * rank", .words = EVEN},
    {"wgmma.backward_wide.load_do", "64 * (first_block +", "64 * (0 +", .words = EVEN},
    /* S, P and dV */
    {"wgmma.backward_wide.first_scores", "mbarrier_wait($(barrier(\"k_full\", \"0\")), 0);", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.first_scores", "mbarrier_wait($(barrier(\"q_full\", \"0\")), 0);", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.put_p", "2048 * i", "1024 * i", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.put_p", "warp_sync(ALL_LANES);", "", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.values", "@ wait_half(REST, \"count\")", "", .words = EVEN ";" ODD,
     .fault = RACE},
    {"wgmma.backward_wide.values",
     "if (more) { mbarrier_wait($(barrier(\"q_full\", \"next\")), $(parity(\"(count + 1)\", "
     "STAGES))); }",
     "", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.values", "dv + DV_FIRST / 2", "dv", .words = ODD,
     .fault = "wrong numbers|in flight"},
    {"wgmma.backward_wide.release_values", "wgmma_wait_2();", "", .words = EVEN,
     .fault = RACE "|still reads"},
    {"wgmma.backward_wide.release_values", "@ release_half(REST)", "", .words = EVEN,
     .fault = STUCK},
    /* dP, dS and dK */
    {"wgmma.backward_wide.dots", "@ wait_half(FIRST, count)", "", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.dots", "v_rest", "v_first", .words = EVEN ";" ODD},
    {"wgmma.backward_wide.release_dots", "wgmma_wait_1();", "", .words = EVEN,
     .fault = RACE "|still reads"},
    {"wgmma.backward_wide.release_dots", "@ release_half(REST)", "", .words = EVEN, .fault = STUCK},
    {"wgmma.backward_wide.take_p",
     "mbarrier_wait($(barrier(\"p_full\", \"slot\")), $(parity(\"count\", STAGES)));", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.take_p", ">> 16", ">> 0", .words = EVEN},
    {"wgmma.backward_wide.pack_factors", "dp[4 * n + 2 * r]", "s[4 * n + 2 * r]", .words = CAP},
    {"wgmma.backward_wide.pack_ds", "dp[4 * n + 2 * r], dp[4 * n + 2 * r + 1]",
     "dp[4 * n + r], dp[4 * n + r + 2]", .words = EVEN},
    {"wgmma.backward_wide.put_ds",
     "mbarrier_wait($(barrier(\"ds_empty\", \"slot\")), $(parity(\"count\", STAGES)) ^ 1);", "",
     .words = EVEN, .fault = RACE "|" STUCK},
    {"wgmma.backward_wide.put_ds", "2 * slot + rank", "2 * slot + other", .words = EVEN,
     .fault = RACE "|still reads"},
    {"wgmma.backward_wide.send_ds", "fence_async();", "", .words = EVEN, .fault = "fence"},
    {"wgmma.backward_wide.send_ds", "barrier_sync(2, 128);", "", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.send_ds", "DS_BYTES,", "DS_BYTES / 2,", .words = EVEN, .fault = STUCK},
    {"wgmma.backward_wide.places", "2 * warp +", "2 * 0 +", .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.places", "$(block_of(DV_FIRST))", "0", .words = EVEN ";" ODD},
    {"wgmma.backward_wide.keys", " + $(block_of(D_FIRST))", "", .words = EVEN ";" ODD},
    {"wgmma.backward_wide.release_q", "wgmma_wait_2();", "", .words = EVEN,
     .fault = RACE "|still reads"},
    {"wgmma.backward_wide.release_q",
     "mbarrier_arrive_remote_if($(barrier(\"q_empty\", \"slot\")), other, lane == 0);", "",
     .words = EVEN, .fault = STUCK},
    /* dQ */
    {"wgmma.backward_wide.wait_keys", "mbarrier_wait($(barrier(\"other_k_full\", \"0\")), 0);", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.take_ds",
     "mbarrier_expect_if($(barrier(\"ds_received\", \"slot\")), DS_BYTES, threadIdx.x % 128 == 0);",
     "", .words = EVEN, .fault = STUCK},
    {"wgmma.backward_wide.take_ds",
     "mbarrier_wait($(barrier(\"ds_full\", \"slot\")), $(parity(\"count\", STAGES)));", "",
     .words = EVEN, .fault = RACE},
    {"wgmma.backward_wide.queries", "$(received)", "", .words = EVEN ";" ODD, .fault = RACE},
    {"wgmma.backward_wide.queries", "PLACE_OF_COLUMN(column_of_other)", "PLACE_OF_COLUMN(column)",
     .words = EVEN ";" ODD, .fault = RACE, .place = {{WIDE}, {TILES}}},
    {"wgmma.backward_wide.release_ds",
     "mbarrier_arrive_remote_if($(barrier(\"ds_empty\", \"slot\")), other, lane == 0);", "",
     .words = EVEN, .fault = STUCK},
    {"wgmma.backward_wide.add_dq", "column / 8 + i < CHUNKS_D", "1", .words = OTHER,
     .fault = "wrong numbers|past the end of tensor dq_sum"},
    {"wgmma.backward_wide.add_dq", "16 * column", "8 * column", .words = EVEN ";" ODD},
    /* the end */
    {"wgmma.backward_wide.leave", "barrier_sync(1, 256);", "", .words = EVEN,
     .fault = RACE "|reads", .place = {{TILES}}},
    {"wgmma.backward_wide.leave", "fence_async();", "", .words = EVEN, .fault = "fence",
     .place = {{TILES}}},
    {"wgmma.backward_wide.end", "cluster_sync();", "", .words = EVEN, .fault = GONE},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

/* Of several tiles each way, some of whose clusters have keys for one block alone. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 330, .nk = 180}, .packed = 1},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 150, .nk = 391}},
    {.seed = 0}};

START_TEST(test_bug) {
  planted_bug bug = bugs[_i];
  bug.cases = cases;
  planted_try(&bug);
}
END_TEST

/* Without a bug, in many orders. */
static const char *const whole[] = {EVEN, ODD, OTHER, CAP};

START_TEST(test_none) {
  planted_try_none(&(planted_bug){.words = whole[_i], .cases = cases, .seeds = 16});
}
END_TEST

int main(void) {
  fg_host_watchdog_seconds = 1;
  Suite *suite = suite_create("wgmma planted wide");
  TCase *tests = tcase_create("wgmma planted wide");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_loop(tests, test_bug, BUGS);
  suite_loop(tests, test_none, (int)(sizeof whole / sizeof *whole));
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
