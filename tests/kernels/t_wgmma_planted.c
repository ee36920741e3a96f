/* t_wgmma_planted.c - bugs planted in wgmma's forward: in the tiles of an input that warps load
 * themselves, in the turns of warpgroups and the keys that one leaves to others, in the bits of a
 * mask. The host device or the oracle catches each. */
#include "planted.h"
#include "scratch.h"

#include "host/engine.h"

#define WGMMA    "attention/wgmma/forward.cut"
#define JOB      "attention/wgmma/job.cut"
#define SOFT     "attention/wgmma/weights.cut"
#define CAP      "attention/cap.lua"
#define HOOKS    "attention/contract.lua"
#define NORM     "attention/normalizers/softmax.lua"
#define INPUT    "attention/wgmma/input.cut"
#define MOVERS   "attention/wgmma/movers.cut"
#define PARTS    "attention/wgmma/parts.cut"
#define TILES    "tile/tiles.cut"
#define CLAIMS   "tile/claims.cut"
#define BARRIERS "attention/wgmma/barriers.lua"
#define TEXT     "expr/text.lua"
#define BIAS     "family=wgmma head_dim=64 block_q=128 block_kv=128 bias=true bias_dims=[h,q,k] "
#define WINDOW   "family=wgmma head_dim=64 block_q=192 block_kv=128 mask=window(127,0) "
#define ROUND    "family=wgmma head_dim=256 block_kv=64 mask=full "
#define WIDE     "family=wgmma head_dim=64 block_q=192 block_kv=128 mask=window(400,0) "
#define PARTED   "family=wgmma head_dim=16/104 key_parts=16 "
#define CAPPED   "family=wgmma head_dim=64 block_q=192 score=softcap(30.0) mask=full,causal "
#define SLOPED   "family=wgmma head_dim=64 block_kv=128 score=s+0.1*(k-p) mask=causal "

#define RACE  "race: shared|never written|still filling it|wrong numbers"
#define STUCK "deadlock|second time|more arrivals|has no wait|ends with|still reads"

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
    {INPUT, "row0 + 16 * warp, $(tiled.headed", "row0 + 16 * warp + 1, $(tiled.headed",
     .words = BIAS},
    {INPUT, "tiled.headed and \"h\" or \"0\"", "tiled.headed and \"0\" or \"0\"", .words = BIAS},
    {INPUT, "mbarrier_wait($(barrier(\"inputs\")), $(barriers.parity(\"inputs\", INPUT_STAGES)));",
     "", .words = BIAS, .fault = RACE, .place = {{SOFT}}},
    {INPUT, "$(barriers.parity(\"inputs\", INPUT_STAGES)));",
     "$(barriers.parity(\"inputs\", INPUT_STAGES)) ^ 1);", .words = BIAS, .fault = RACE "|" STUCK,
     .place = {{SOFT}, {MOVERS}}},
    {INPUT, "warp_sync(ALL_LANES);\nif (k0 - INPUT_STAGES", "if (k0 - INPUT_STAGES", .words = BIAS,
     .fault = RACE},
    {INPUT, "@ load(\"(k0 - INPUT_STAGES * BLOCK_KV)\"", "@ load(\"(k0 - BLOCK_KV)\"",
     .words = BIAS},
    {INPUT, "mbarrier_expect_if(bar, 32 * BLOCK_KV,", "mbarrier_expect_if(bar, 16 * BLOCK_KV,",
     .words = BIAS, .fault = RACE "|" STUCK, .place = {{SOFT}, {MOVERS}}},
    {INPUT, "column, width, 32 * INPUT_COLUMNS", "column, width, 16 * INPUT_COLUMNS",
     .words = BIAS},
    {INPUT, "c == 0 and \"both\" or \"(both >> 16)\"", "c == 1 and \"both\" or \"(both >> 16)\"",
     .words = BIAS},
    /* the same by the warp's own hands, where the tensor is not aligned */
    {TILES, "(column % width / 8 ^ turn)", "(column % width / 8)", .words = BIAS},
    {TILES, "row < rows && column + 1 < columns", "row < rows", .words = BIAS,
     .fault = "load past the end of|load touches a gap|outside of all"},
    {INPUT, "    warp_sync(ALL_LANES);\n    mbarrier_arrive_if(bar, lane == 0);",
     "    mbarrier_arrive_if(bar, lane == 0);", .words = BIAS, .fault = RACE, .place = {{SOFT}}},
    /* keys that only other warpgroups see: the same barriers for all */
    {JOB, "@ pass_tiles(\"k0 >= k_first\")", "", .words = WINDOW, .fault = RACE "|" STUCK,
     .place = {{WGMMA}, {JOB}, {MOVERS}}},
    {JOB, "  @ job.take_turn()\n  @ job.end_turn()", "  @ job.end_turn()", .words = WINDOW,
     .fault = RACE "|" STUCK},
    {WGMMA, "@ if use.first_tile_in_turn then job.take_turn() end\n", "", .words = CAPPED,
     .fault = RACE "|" STUCK, .place = {{JOB}}},
    {JOB, "text.first_tile(far_keys, \"BLOCK_KV\")",
     "text.first_tile(far_keys, \"BLOCK_KV\") .. \" + BLOCK_KV\"", .words = WINDOW},
    /* slots of Q that warpgroups have in turn */
    {BARRIERS, "/ Q_SLOTS & 1)\", group)", "/ GROUPS & 1)\", group)", .words = ROUND,
     .fault = RACE "|" STUCK, .place = {{MOVERS}, {JOB}, {WGMMA}}},
    {BARRIERS, "barriers.at(\"q_full\", \"turn % 2 * GROUPS + \" .. group)",
     "barriers.at(\"q_full\", barriers.q_slot(group))", .words = ROUND, .fault = RACE "|" STUCK,
     .place = {{MOVERS}, {JOB}, {WGMMA}}},
    /* tiles that all rows of a warpgroup see: where the first one begins, and the last */
    {JOB, "const int k_whole = $(far_whole)", "const int k_whole = $(far_whole) - BLOCK_KV",
     .words = WIDE},
    {JOB, "k_end - BLOCK_KV + 1", "k_end + 1", .words = WIDE},
    {JOB, "mask.seen_by_all(given.row, given.row_end)", "mask.keys(given.row, given.row_end)",
     .words = WIDE},
    /* claims of rows: who begins to count, from where, and behind which grid */
    {MOVERS, "if (turn == 0) { open_claims((u64 *)p.claims); }", "", .words = WINDOW,
     .fault = "never written", .place = {{MOVERS}, {CLAIMS}}},
    {MOVERS, "$(number) = blocks + claim(", "$(number) = blocks + 1 + claim(", .words = WINDOW},
    {MOVERS, "@ if not mask.keys_are_read then\ngrid_wait();", "@ if not mask.keys_are_read then\n",
     .words = WINDOW, .fault = "before grid_wait", .place = {{MOVERS}, {CLAIMS}}},
    /* parts of a tile of rows: which keys each has, what orders them, what the last one adds up */
    {PARTS, "from_tile = (int)(from - first);", "from_tile = 0;", .words = PARTED, .cases = parted},
    {PARTS, "turn > 0 ? first : begin", "begin", .words = PARTED, .cases = parted_across,
     .fault = "never written|wrong numbers"},
    {PARTS, "begin / (u32)length + turn", "begin / (u32)length", .words = PARTED,
     .cases = parted_across, .fault = "never written|wrong numbers|" STUCK},
    {PARTS, "(u32)length - 1) / (u32)span", "(u32)length) / (u32)span", .words = PARTED,
     .cases = parted, .fault = "never written|wrong numbers"},
    {PARTS, "+ ((block - first_block) << 16)", "", .words = PARTED, .cases = parted,
     .fault = "never written|race: load*another block|wrong numbers"},
    {PARTS, "(int)(block + number +", "(int)(block +", .words = PARTED, .cases = parted_across,
     .fault = "race: *another block|never written|wrong numbers"},
    {MOVERS, "if ((int)lds_u32(job) >= 0) { continue; }", "", .words = PARTED,
     .cases = parted_across, .fault = STUCK},
    {PARTS, "barrier_sync(5 + group, 128);\n  if (thread == 0) {", "if (thread == 0) {",
     .words = PARTED, .cases = parted, .fault = "race: load*another block"},
    {PARTS, "fence_device(); // behind the barrier, what the warpgroup has written\n", "",
     .words = PARTED, .cases = parted, .fault = "race: load*another block"},
    {PARTS, "fence_device();\n    sts_u32", "sts_u32", .words = PARTED, .cases = parted,
     .fault = "race: load*another block"},
    {PARTS, "open_claims(word);", "", .words = PARTED, .cases = parted, .fault = "never written",
     .place = {{PARTS}, {CLAIMS}}},
    {PARTS, "(place - part) * GROUPS + group);", "(place - part) * GROUPS);", .words = PARTED,
     .cases = parted, .fault = "never written|race: load*another block|wrong numbers"},
    {PARTS, "$(norm.init(row))", "", .words = PARTED, .cases = parted},
    {PARTS, "kept[$(r)] = kept_of_row;", "kept[$(r)] = 1.0f;", .words = PARTED,
     .cases = parted_far},
    {MOVERS, "if (shares == 1 || lds_u32(sm + SM_LAST + (u32)slot * 4)) {", "{", .words = PARTED,
     .cases = parted, .fault = "race: store*another block|never written|wrong numbers"},
    /* the first loads, which no mover makes again */
    {MOVERS, "int k_count = 1, v_count = 0;", "int k_count = 0, v_count = 0;", .words = WINDOW,
     .fault = RACE "|" STUCK "|arrivals of its phase"},
    {MOVERS, "\"0\", k_tile(\"k_last\"))", "\"0\", k_tile(\"k_first\"))", .words = WINDOW},
    {MOVERS, "if (turn == 0) { continue; } // on its way", "", .words = WINDOW,
     .fault = RACE "|" STUCK "|arrivals of its phase"},
    /* a cap: where its polynomial holds, and what takes its place */
    {CAP, "2.0 ^ (BITS - 1 - origin)", "2.0 ^ (BITS + 60 - origin)", .words = CAPPED,
     .cases = wide},
    {CAP, "LEAST * 2.0 ^ -origin", "-1.0", .words = CAPPED, .cases = wide},
    {CAP, "number(most * a1)", "number(most * a1 * 1.001)", .words = CAPPED},
    {SOFT, "if (!whole)\") {\n  @ hide()", "if (!whole)\") {", .words = CAPPED, .cases = wide},
    /* rows that share a reference: while they have one, where one is near enough, what they differ
       in */
    {NORM, "fill(\" && $m == m$leader\", r)", "\"\"", .words = SLOPED, .cases = wide},
    {NORM, "local FAR, FARTHEST = \"32.0f\"", "local FAR, FARTHEST = \"1e30f\"", .words = SLOPED,
     .cases = apart},
    {HOOKS, "string.format(\"%s - (%s)\", own", "string.format(\"0.0f * (%s) - (%s)\", own",
     .words = SLOPED},
    /* the bits of a mask */
    {TILES, "below = most / 8 * 2 +", "below = most / 8 * 2 + 1 +", .words = WINDOW},
    {TEXT, "\" & ~\" .. below(first)", "\"\"", .words = WINDOW},
    {SOFT, "(seen0 | seen1) >> 16", "(seen0 | seen1) >> 24", .words = WINDOW},
    {SOFT, "first and use.first_tile_in_halves then\n{\n  @ hide()",
     "first and use.first_tile_in_halves then\n{", .words = WINDOW, .cases = wide},
};
enum { BUGS = sizeof bugs / sizeof *bugs, SEEDS = 4 };

/* Of several tiles; rows of keys that are a multiple of 16 bytes and others. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 150, .nk = 520}, .packed = 1},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 400, .nk = 391}},
    {.seed = 0}};

START_TEST(test_bug) {
  planted_bug bug = bugs[_i];
  if (!bug.cases) bug.cases = cases;
  bug.seeds = SEEDS;
  planted_try(&bug);
}
END_TEST

/* Without a bug, in orders enough that a wait behind which a slot may go on is met too late in one.
 */
static const char *const whole[] = {BIAS, WINDOW, WIDE, ROUND, CAPPED, SLOPED};

START_TEST(test_none) {
  planted_try_none(&(planted_bug){.words = whole[_i], .cases = cases, .seeds = 16});
  if (!strcmp(whole[_i], CAPPED) || !strcmp(whole[_i], SLOPED))
    planted_try_none(&(planted_bug){.words = whole[_i], .cases = wide, .seeds = SEEDS});
  if (!strcmp(whole[_i], SLOPED))
    planted_try_none(&(planted_bug){.words = whole[_i], .cases = apart, .seeds = SEEDS});
}
END_TEST

int main(void) {
  fg_host_watchdog_seconds = 1;
  Suite *suite = suite_create("wgmma planted");
  TCase *tests = tcase_create("wgmma planted");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_loop(tests, test_bug, BUGS);
  suite_loop(tests, test_none, (int)(sizeof whole / sizeof *whole));
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
