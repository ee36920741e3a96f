/* t_planted.c - bugs planted in the real templates: the host device or the oracle catches each, in
 * every seed; faults name what is wrong and the template's line. Without a bug nothing is said. */
#include "expand/embedded.h"
#include "planted.h"
#include "scratch.h"

#include "host/engine.h"

#include <stdio.h>
#include <string.h>

#define FORWARD     "attention/simt/forward.cut"
#define BACKWARD    "attention/simt/backward.cut"
#define ROWS        "tile/rows.cut"
#define WARP        "tile/warp.cut"
#define HOOKS       "attention/contract.lua"
#define MASKS       "expr/masks.lua"
#define TREES       "expr/trees.lua"
#define NORMALIZERS "attention/normalizers/softmax.lua"

/* Meetings of threads: every occurrence in the file is dropped once. */
static const planted_bug dropped[] = {
    {FORWARD, "block_sync();", "(void)0;", .words = planted_forward,
     .fault = "race: shared|never written"},
    {BACKWARD, "block_sync();", "(void)0;", .words = planted_backward,
     .fault = "race: shared|never written"},
    {ROWS, "warp_sync(ALL_LANES);", "(void)0;", .words = planted_backward,
     .fault = "no warp_sync or barrier orders|never written"},
};
enum { DROPPED = sizeof dropped / sizeof *dropped };

static const planted_bug faults[] = {
    /* meetings */
    {"prelude.cut", "0xffffffffu", "0xffffu", NULL, "not in its mask|not in the mask",
     .place = {{WARP, "v = max_f32("}}},
    {"prelude.cut", "0xffffffffu", "0x7fffffffu", NULL, "not in its mask|not in the mask",
     .place = {{WARP, "v = max_f32("}}},
    {FORWARD, "block_sync(); // the last", "if (lane < 16) { block_sync(); } // the last",
     .fault = "divergence|race: shared|never written"},
    {FORWARD, "if (lane == 0 && p.$(norm.second)) { stg_f32",
     "if (lane == 0) { block_sync(); } if (lane == 0) { stg_f32",
     .fault = "divergence: lane *barrier_sync"},
    {FORWARD, "block_sync(); // the last", "if (warp < 3) { block_sync(); } // the last",
     .fault = "deadlock|race: shared|never written"},
    {FORWARD, "inverse, DV);", "inverse, DV); if (warp < 3) { block_sync(); }", NULL,
     "deadlock: no thread can run*barrier 0: * of 128 threads have come*returned",
     .place = {{FORWARD, "inverse, DV);"}}},
    /* shared memory */
    {FORWARD,
     "load_rows(sm + SM_V, PITCH_DV, v_head, $(seq.stride(\"v\")), k0, 32, $(seq.nk), DV);",
     "(void)v_head;", NULL, "which was never written",
     .place = {{ROWS, "const u32 pair = lds_u32(z"}}},
    {ROWS, "sts_u32(to + (u32)(row * pitch", "sts_u32(to + (u32)((row + 1) * pitch",
     .fault = "race: shared|never written"},
    {ROWS, "sts_u32(weights + (u32)(r * 32", "sts_u32(weights + (u32)((r + 1) * 32",
     .fault = "out of bounds|race: shared|never written"},
    {ROWS, "lds_u32(z + (u32)((j + jj)", "lds_u32(z + (u32)((j + jj + 1)", NULL,
     "race: shared|never written",
     .place = {{ROWS, "const u32 pair = lds_u32(z"}, {ROWS, "sts_u32(weights +"}}},
    {ROWS, "(r * 32 + (int)threadIdx.x % 32)", "(r * 32)", NULL, "race: shared store",
     .place = {{ROWS, "sts_u32(weights +"}}},
    {FORWARD, "sm + SM_Q + (u32)(warp * ROWS * PITCH_D)", "sm - PITCH_D", NULL,
     "shared load out of bounds: * before the first", .place = {{ROWS, "load_f32x8(xs, x"}}},
    /* global memory */
    {ROWS, "if (row0 + row < end)", "if (row0 + row <= end)", NULL,
     "load past the end of tensor|load touches a gap between rows of tensor",
     .place = {{ROWS, "pair = (u32)ldg_u16(at)"}}},
    {HOOKS, "score = texts.values[2]", "score = (texts.values[2]:gsub(' k%)', ' k + 1)'))", NULL,
     "load past the end of tensor bias|load touches a gap between rows of tensor bias",
     .place = {{FORWARD, "s[r] = visible ?"}}},
    {FORWARD, "if (q < $(seq.nq)) {", "if (q <= $(seq.nq)) {", NULL,
     "store past the end of tensor o|store touches a gap between rows of tensor o|race: store at",
     .place = {{FORWARD, "store_row($(seq.row(\"o\""},
               {FORWARD, "if (lane == 0 && p.$(norm.second)) { stg_f32"}}},
    {ROWS, "if (column + 64 * i < width) {", "if (column + 64 * i <= width) {", NULL,
     "store past the end of tensor o|store touches a gap between rows of tensor o|race: store at",
     .place = {{ROWS, "stg_u16(to + column + 64 * i,"},
               {ROWS, "stg_u16(to + column + 64 * i + 1,"}},
     .nth = 1},
    {FORWARD, "if (lane == 0 && p.$(norm.second)) { stg_f32", "if (lane >= 0) { stg_f32", NULL,
     "race: store at * lse*, which thread * stores to",
     .place = {{FORWARD, "if (lane == 0 && p.$(norm.second)) { stg_f32"}}},
    /* plain C */
    {FORWARD, "c < LANE_DV; c++) { o[r][c] = 0.0f; }", "c <= LANE_DV; c++) { o[r][c] = 0.0f; }",
     NULL, "undefined behaviour: array index", .place = {{FORWARD, "{ o[r][c] = 0.0f; }"}}},
    {FORWARD, "g = h / (p.h / p.hk)", "g = h / (p.hk - p.hk)", NULL,
     "integer division by zero|undefined behaviour", .place = {{FORWARD, "g = h / (p.h / p.hk)"}}},
    {FORWARD, "block_sync(); // the last", "for (volatile int spin = 1; spin;) { } // the last",
     "head_dim=40 block_q=16", "no progress: no thread met another for 1 s, one spins", .seeds = 2},
    /* backward */
    {BACKWARD, "if (row >= (i64)", "if (row > (i64)", planted_backward,
     "load past the end of tensor", .place = {{BACKWARD, "dot += to_f32("}}},
    {BACKWARD, "if (lane == 0) {", "if (lane >= 0) {", planted_backward, "race: store at * delta",
     .place = {{BACKWARD, "stg_f32(p.delta + row"}}},
    {BACKWARD, "stg_f32(p.delta + row, $(norm.delta(\"dot\", \"d\" .. second)));",
     "(void)d$(second);", planted_backward, "load of an element never written: * delta",
     .place = {{BACKWARD, "delta = ldg_f32(p.delta"}}},
    {BACKWARD, "ldg_f32(p.$(second) + row)", "ldg_f32(p.$(second) + row + 1)", planted_backward,
     "load past the end of tensor lse", .place = {{BACKWARD, "const float $(second) = ldg_f32"}}},
    {BACKWARD, "if (k < $(seq.nk)) {", "if (k <= $(seq.nk)) {", planted_backward,
     "store past the end of tensor dk|store touches a gap between rows of tensor dk|race: store at",
     .place = {{BACKWARD, "store_row($(seq.row(\"dk\""}}},
    {BACKWARD, "if (warp == 0 && $(k_good))", "if ($(k_good))", planted_backward,
     "race: store at *dbias", .place = {{BACKWARD, "$(input.store(name, \"0\""}}},
    {BACKWARD, "and seq.has_k(\"k\") or", "and seq.all_k(\"k\") or", planted_backward,
     "store past the end of tensor dbias|store touches a gap between rows of tensor dbias|race: "
     "store at",
     .place = {{BACKWARD, "$(input.store(name, \"0\""}}},
};
enum { FAULTS = sizeof faults / sizeof *faults };

#define UNSET_MAXIMUM "\"$m = NEG_INF;\\n$l = 0.0f;\"", "\"$l = 0.0f;\""

/* What no rule forbids: only the numbers say it. */
static const planted_bug wrong[] = {
    {WARP, "mask = 16", "mask = 8", .words = planted_forward},
    {WARP, "shfl_xor(ALL_LANES, v, mask)", "shfl_xor(ALL_LANES, v, mask & 30)",
     .words = planted_forward, .nth = 1},
    {FORWARD, "SM_K + (u32)(lane * PITCH_D)", "SM_K + (u32)((lane + 1) * PITCH_D)",
     .words = planted_forward},
    {FORWARD, "o[r][c] *= $(row.correction);", "", .words = planted_forward},
    {TREES, "\" - \" .. seq.nq end", "\" - 1 - \" .. seq.nq end", .words = planted_forward},
    {MASKS, "k1 = k1, h = h", "k1 = k1 .. \" - 1\", h = h", .words = planted_forward},
    {NORMALIZERS, "$l *= $correction;", "", .words = planted_forward},
    {BACKWARD, "dq[r], p.scale, D", "dq[r], 1.0f, D", .words = planted_backward},
    {BACKWARD, "add_rows(&dk[0][0], own, sm + SM_LANE_D, PITCH_D, D);", "",
     .words = planted_backward},
    {BACKWARD, "{ dq[r][c] = 0.0f; }", "{ }", .words = planted_backward},
    {BACKWARD, "sum[r] += $(value);", "sum[r] = $(value);", .words = planted_backward},
    {BACKWARD, "h < (g + 1) * group", "h < g * group + 1", .words = planted_backward},
    /* a maximum that is never set: garbage on a GPU, which may be small enough to be right */
    {NORMALIZERS, UNSET_MAXIMUM, .words = "family=simt head_dim=40 mask=causal"},
    {NORMALIZERS, UNSET_MAXIMUM, .words = "family=mma head_dim=64"},
    {NORMALIZERS, "$p * ($dp - $delta)", "$p * $dp", .words = planted_backward},
};
enum { WRONG = sizeof wrong / sizeof *wrong };

START_TEST(test_fault) { planted_try(&faults[_i]); }
END_TEST

START_TEST(test_wrong) { planted_try(&wrong[_i]); }
END_TEST

START_TEST(test_dropped) {
  planted_bug bug = dropped[_i];
  int n = planted_count(bug.file, bug.text);
  for (bug.nth = 0; bug.nth < n; bug.nth++) planted_try(&bug);
}
END_TEST

/* The same templates from a directory, without a bug. */
START_TEST(test_none) {
  static const char *const words[] = {planted_forward, planted_backward};
  planted_try_none(&(planted_bug){.words = words[_i]});
}
END_TEST

/* Bugs that no kernel comes of. */
START_TEST(test_refused) {
  static const struct {
    planted_bug bug;
    fg_status status;
  } refused[] = {
      {{FORWARD, "float s[ROWS];", "float s[ROWS] = missing;", NULL, "error*missing",
        .place = {{FORWARD, "float s[ROWS];"}}},
       FG_ECOMPILER},
      {{ROWS, "const int row = i / width,", "const int row = i // width,", NULL, "error: expected",
        .place = {{ROWS, "if (row0 + row < end)"}, {ROWS, "u32 pair = 0;"}}},
       FG_ECOMPILER},
      {{FORWARD, "mask.tile(", "mask.tiles(", NULL, "nil value (field 'tiles')",
        .place = {{FORWARD, "mask.tile("}}},
       FG_ETEMPLATE},
      {{FORWARD, "$(row.correction)", "$(row.corection.x)", NULL, "corection",
        .place = {{FORWARD, "$(row.correction)"}}},
       FG_ETEMPLATE},
  };
  kernels made;
  const planted_bug *bug = &refused[_i].bug;
  planted_copy();
  planted_plant(bug);
  ck_assert_int_eq(planted_make(bug, &made), refused[_i].status);
  planted_said(bug, bug->text);
  kernels_free(&made);
}
END_TEST

int main(void) {
  fg_host_watchdog_seconds = 1;
  Suite *suite = suite_create("planted");
  TCase *cases = tcase_create("planted");
  tcase_add_checked_fixture(cases, scratch_enter, scratch_leave);
  suite_loop(cases, test_none, 2);
  suite_loop(cases, test_dropped, DROPPED);
  suite_loop(cases, test_fault, FAULTS);
  suite_loop(cases, test_wrong, WRONG);
  suite_loop(cases, test_refused, 4);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
