/* t_wgmma_planted_backward.c - bugs planted in wgmma's backward: in what the mover fetches and
 * when, in what warpgroups hand to each other, in places of tiles and sums. The host device or the
 * oracle catches each. */
#include "planted.h"
#include "scratch.h"

#include "host/engine.h"

#define BWD   "family=wgmma pass=backward "
#define ROWS  BWD "head_dim=64 block_q=128 mask=causal "
#define WIDE  BWD "head_dim=128 mask=full "
#define MIXED BWD "head_dim=96/40 mask=window(100,7) score=softcap(5.0) "

#define BACKWARD "attention/wgmma/backward.cut"
#define KEPT     "attention/backward/kept.cut"
#define TILES    "attention/wgmma/backward_tiles.cut"
#define PAIRS    "attention/backward/pairs.cut"
#define JOBS     "attention/wgmma/backward_jobs.cut"

#define RACE  "race: shared|have come|never written|still filling it|wrong numbers"
#define STUCK "deadlock|second time|more arrivals|has no wait|ends with|still reads"

static const planted_bug bugs[] = {
    /* what the mover fetches: when a slot is empty, how much comes, from where */
    {"wgmma.backward.load_q",
     "mbarrier_wait($(barrier(\"rows_empty\", \"slot\")), "
     "$(parity(\"count\", STAGES)) ^ 1);",
     "", .words = ROWS ";" WIDE, .fault = RACE "|" STUCK, .place = {{BACKWARD}, {TILES}}},
    {"wgmma.backward.load_q", "Q_BYTES + KEPT_BYTES", "Q_BYTES", .words = ROWS,
     .fault = RACE "|" STUCK, .place = {{BACKWARD}, {PAIRS}}},
    {"wgmma.backward.load_q", "padded + q0)", "padded)", .words = ROWS ";" WIDE},
    {"wgmma.backward.load_do", "DO_BYTES);", "DO_BYTES / 2);", .words = WIDE,
     .fault = RACE "|" STUCK},
    /* which keys are next, which rows each tile has, when the places of keys are free */
    {"wgmma.backward_jobs.claim", "gridDim.x + claim(", "gridDim.x + 1 + claim(", .words = WIDE},
    {"wgmma.backward_jobs.sections", "rest % heads_here", "rest % wide", .words = ROWS,
     .fault = "never written|wrong numbers|past the end of", .place = {{JOBS}, {BACKWARD}}},
    {"wgmma.backward_jobs.list_tile", "(u32)h,", "0,", .words = WIDE},
    {"wgmma.backward.keys_empty",
     "mbarrier_wait($(barrier(\"keys_empty\", \"0\")), (turn & 1) ^ 1);", "", .words = WIDE,
     .fault = RACE "|" STUCK "|reads", .place = {{BACKWARD}, {TILES}}},
    /* what is waited for before products read it */
    {"wgmma.backward.tiles",
     "mbarrier_wait($(barrier(\"q_full\", \"slot\")), "
     "$(parity(\"count\", STAGES)));",
     "", .words = WIDE, .fault = RACE, .place = {{BACKWARD}}},
    {"wgmma.backward.tiles",
     "if (count == first) { mbarrier_wait($(barrier(\"v_full\", \"0\")), loads & 1); }", "",
     .words = WIDE, .fault = RACE, .place = {{BACKWARD}}},
    {"wgmma.backward.tiles",
     "mbarrier_wait($(barrier(\"do_full\", \"slot\")), "
     "$(parity(\"count\", STAGES)));",
     "", .words = WIDE ";" MIXED, .fault = RACE, .place = {{BACKWARD}}},
    {"wgmma.backward.tiles", "wait_scores(s);\n@ weights", "@ weights", .words = WIDE,
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
    {"wgmma.backward.sums_of_dq", "q0 + ", "", .words = WIDE},
    {"wgmma.backward.add_dq", "i < CHUNKS_D", "1", .words = MIXED,
     .fault = "wrong numbers|past the end of tensor dq_sum"},
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
    /* what leaves */
    {"wgmma.backward.leave", "barrier_sync(1, $(128 * GROUPS));", "", .words = WIDE,
     .fault = RACE "|reads", .place = {{TILES}}},
    {"wgmma.backward.leave", "fence_async();", "", .words = WIDE, .fault = "fence",
     .place = {{TILES}}},
    {"wgmma.backward.put", "i / 4 *", "0 *", .words = WIDE},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

/* Of several tiles each way; more rows than keys, and fewer. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 330, .nk = 200}, .packed = 1},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 150, .nk = 391}},
    {.seed = 0}};

START_TEST(test_bug) {
  planted_bug bug = bugs[_i];
  if (!bug.cases) bug.cases = cases;
  planted_try(&bug);
}
END_TEST

/* Without a bug, in many orders. */
static const char *const whole[] = {ROWS, WIDE, MIXED};

START_TEST(test_none) {
  planted_try_none(&(planted_bug){.words = whole[_i], .cases = cases, .seeds = 16});
}
END_TEST

int main(void) {
  fg_host_watchdog_seconds = 1;
  Suite *suite = suite_create("wgmma planted backward");
  TCase *tests = tcase_create("wgmma planted backward");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_loop(tests, test_bug, BUGS);
  suite_loop(tests, test_none, (int)(sizeof whole / sizeof *whole));
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
