/* t_planted_e4m3.c - bugs planted where templates take numbers of e4m3: the oracle catches each. */
#include "planted.h"
#include "scratch.h"

#include "host/engine.h"

static const char heads[] = "family=simt head_dim=64 dtype=e4m3 mask=causal",
                  blocks[] = "family=simt head_dim=64 dtype=e4m3 descale_block=48",
                  of_keys[] = "family=simt head_dim=48/64 kv_dtype=e4m3 normalizer=none",
                  mma[] = "family=mma head_dim=64 dtype=e4m3 mask=causal",
                  mma_f32[] = "family=mma head_dim=64 dtype=e4m3 o_dtype=f32",
                  paged[] =
                      "family=simt head_dim=64 kv_dtype=e4m3 kv_layout=paged descale_block=32";

/* All descales are given: even seeds. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 4, .hk = 2, .nq = 77, .nk = 203}, .seed = 2},
    {.shape = {.b = 3, .h = 2, .hk = 2, .nq = 139, .nk = 103}, .seed = 4},
    {.seed = 0}};

static const planted_bug bugs[] = {
    {"prelude.round_e4m3", "0x7ffffu", "0xfffffu", .words = heads},
    {"tile.rows.held_pair", "pair >> 8", "pair", .words = of_keys},
    {"attention.descale.factor", "256.0f", "4096.0f", .words = heads},
    {"attention.descale.load", "(i64)g", "(i64)0", .words = heads},
    {"attention.descale.load", "seq.nq or seq.nk", "seq.nk or seq.nq", .words = blocks},
    {"attention.descale.load", "- 1) / %s", "- 1) / 2 / %s", .words = paged},
    {"attention.descale.declare", "\"const float descaled = p.scale * %s%s;",
     "\"const float descaled = p.scale * %.0s%s;", .words = heads},
    {"attention.descale.declare_o", "load(\"v\")", "load(\"k\")", .words = heads},
    {"attention.descale.rounded", "e4m3_to_f32(f32_to_e4m3(%s * %s))", "%.0s%s", .words = heads},
    {"simt.forward.descale", "\" * \" or \"\")of_key", "\" * \" or \"\")1.0f", .words = paged},
    {"simt.forward.weights", "$(of_value)", "", .words = blocks},
    {"tile.bytes.pack", "c[2], c[3]", "c[3], c[2]", .words = mma},
    {"tile.bytes.columns", "x[2 * i + 1], 0x6420", "x[2 * i + 1], 0x7531", .words = mma},
    {"tile.bytes.multiply", "8 * l + 16", "8 * l", .words = mma},
    {"tile.bytes.put", "4 * i + 4", "4 * i", .words = mma},
    {"tile.bytes.store", "column + 8 * i <", "column + 16 + 8 * i <", .words = mma_f32},
    {"mma.forward.add_rounded_values", "SM_V", "SM_K", .words = mma},
    {"mma.forward.store_f32_columns", "factor[2 * i + 1]", "factor[2 * i]", .words = mma_f32},
    {"mma.forward.put_columns", "factor[2 * i + 1]", "factor[2 * i]", .words = mma},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

START_TEST(test_bug) {
  planted_bug bug = bugs[_i];
  if (!bug.cases) bug.cases = cases;
  planted_try(&bug);
}
END_TEST

/* The same cases without a bug. */
START_TEST(test_none) {
  static const char *const words[] = {heads, blocks, of_keys, paged, mma, mma_f32};
  planted_try_none(&(planted_bug){.words = words[_i], .cases = cases, .seeds = 2});
}
END_TEST

int main(void) {
  fg_host_watchdog_seconds = 1;
  Suite *suite = suite_create("planted_e4m3");
  TCase *tests = tcase_create("planted_e4m3");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_loop(tests, test_none, 6);
  suite_loop(tests, test_bug, BUGS);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
