/* t_check_planted.c - wrong numbers that `flashgen check` must see, planted through
 * FLASHGEN_TEMPLATES in right kernels, and what it says of each; those of other kinds than
 * attention are in t_check_planted_kinds.c. */
#include "json.h"
#include "planted.h"
#include "program.h"
#include "scratch.h"
#include "spot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL "b=1 h=2 hk=1 nq=21 nk=40 --seed 7"

static const program_setup with_templates = {.env = {"FLASHGEN_TEMPLATES=t"}};

TEST(wrong_numbers) {
  planted_in_t("simt.forward.tile", "score.unit", "'1.1f * p.scale'");
  program_result r =
      program_run(&with_templates, "check family=simt head_dim=16 pass=forward,backward -q " SMALL);
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, "\nFAIL  attn_fwd-bf16-d16.");
  program_says(r.out, "\n      first wrong at b=1 h=2 hk=1 nq=21 nk=40: o[0, ");
  program_says(r.out, ", the furthest off of 672 elements\n");
  program_says(r.out, "\nPASS  attn_bwd-bf16-d16.");
  program_says(r.out, "\n2 variants, 2 cases, seed 7: 0 failed, 1 wrong\n");
  r = program_run(&with_templates, "check family=simt head_dim=16 --json " SMALL);
  ck_assert_int_eq(r.code, 4);
  json_whole(r.out);
  program_says(r.out, "\"result\": \"FAIL\"");
}

/* A NaN is the worst of errors, and has no JSON. */
TEST(not_a_number) {
  planted_in_t("simt.forward.tile", "score.unit", "'(0.0f / 0.0f)'");
  program_result r = program_run(&with_templates, "check family=simt head_dim=16 --json " SMALL);
  ck_assert_int_eq(r.code, 4);
  json_whole(r.out);
  program_says(r.out, "\"o\": {\"error\": null, ");
  program_says(r.out, "nq=21 nk=40: o[0, 0, 0, 0] is NaN, expected ");
  program_says(r.out, ", the first of 672 of 672 elements that are not finite\"");
}

/* Numbers that are wrong with and without tile skipping say nothing of a bound, in families too
 * whose sums have no fixed order. */
TEST(wrong_in_both) {
  planted_in_t("wgmma.unit.scale", "$(score.positive_scale)",
               "p.scale < 0.0f ? 0.0f : 0.0f / 0.0f");
  program_result r = program_run(&with_templates, "check family=wgmma head_dim=64 mask=causal b=1 "
                                                  "h=1 nq=130 nk=300 -q");
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, "nq=130 nk=300: o[0, 0, 0, 0] is NaN, expected ");
  ck_assert_int_eq(program_count(r.out, "bound"), 0);
  planted_in_t("wgmma.unit.scale", "$(score.positive_scale)", "1.1f * p.scale");
  r = program_run(&with_templates, "check family=wgmma head_dim=64 mask=causal b=1 h=1 nq=130 "
                                   "nk=300 -q");
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, ", the furthest off of 8320 elements\n");
}

/* A gradient whose terms cancel is small beside them, so that nothing at all would count as near.
 */
TEST(nothing_is_written_but_zeros) {
  static const char words[] = "check family=simt head_dim=16 pass=backward bias=grad "
                              "bias_dims=[h,q] -q " SMALL;
  program_gives(0, words);
  planted_in_t("simt.backward.sum_pairs", "+= ", "+= 0.0f * ");
  program_result r = program_run(&with_templates, words);
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, ": dbias[0, 1, 18, 0] is 0, expected ");
  program_says(r.out, " elements, which are all 0\n");
}

/* lse's error is a difference of its own unit, and its limit depends on the row. */
TEST(lse_in_its_unit) {
  planted_in_t("simt.forward.store_o", "), $(norm", "), 0.0625f + $(norm");
  program_result r = program_run(&with_templates, "check family=simt head_dim=16 -q " SMALL);
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, "  lse 6.2e-02 (");
  program_says(r.out, "% of 1.0e-04)  sees 100% of pairs\n");
  program_says(r.out, ": lse[0, ");
  r = program_run(&with_templates, "check family=simt head_dim=16 --json " SMALL);
  program_says(r.out, "\"lse\": {\"error\": 0.062");
  program_says(r.out, ", \"limit\": 0.00010");
}

/* Results are compared with those of the kernel that skips no tile: a range that was stated and
 * does not hold, and one that was derived wrong. */
TEST(wrong_ranges) {
  program_result r =
      program_gives(4, "check family=simt head_dim=16 pass=forward,backward mask=near(32) "
                       "define.near(n)=given(k<n,k<=p) -q " SMALL);
  ck_assert_int_eq(program_count(r.out, "first wrong at b=1 h=2 hk=1 nq=21 nk=40: "), 2);
  program_says(r.out, " elements differ from those of the same kernel without tile skipping, the "
                      "first at ");
  ck_assert_int_eq(program_count(r.out, ": the range of given(range, test) does not hold wherever "
                                        "its test does\n"),
                   2);
  program_gives(0, "check family=simt head_dim=16 pass=forward,backward mask=near(40) "
                   "define.near(n)=given(k<n,k<=p) -q " SMALL);
  planted_in_t("expr.masks.keys", " }, seq", " .. \" - 1\" }, seq");
  r = program_run(&with_templates,
                  "check family=simt head_dim=16 mask=causal b=1 h=1 nq=21 nk=33 -q");
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, ": a bound that flashgen derives from the mask is wrong\n");
}

/* Integers are drawn where something depends on them: a range that does not hold, or a bound that
 * is one off, shows under each seed. */
TEST(wrong_ranges_of_lengths) {
#define LENGTHS "family=simt head_dim=16 inputs.n=i32[b] -q --seed"
  for (int seed = 1; seed <= 3; seed++) {
    program_result r = program_gives(4, "check mask=given(k<n[b],k<=n[b]) " LENGTHS " %d", seed);
    program_says(r.out, ": the range of given(range, test) does not hold wherever its test does\n");
    program_gives(0, "check mask=given(k<=n[b],k<n[b]) " LENGTHS " %d", seed);
  }
  planted_in_t("expr.masks.keys", "seq.nk)", "seq.nk) .. \" - 1\"");
  for (int seed = 1; seed <= 3; seed++) {
    program_result r = program_run(&with_templates, "check mask=k<n[b] " LENGTHS " %d", seed);
    ck_assert_int_eq(r.code, 4);
    program_says(r.out, ": a bound that flashgen derives from the mask is wrong\n");
  }
}

/* Where tiles begin at the first key that rows see, those of the kernel that skips none lie there
 * too, and none of its keys counts twice. */
TEST(tiles_beside_unskipped) {
  static const char *const words = "check family=mma head_dim=64 block_kv=96 mask=window(60,5) "
                                   "b=1 h=1 nq=300 nk=400 -q";
  program_gives(0, words);
  planted_in_t("mma.forward.first_tile", "k0 < rest ? rest : ", "");
  program_result r = program_run(&with_templates, words);
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, " elements differ from those of the same kernel without tile skipping, the ");
  planted_in_t("mma.forward.seen", "(k0 >= rest || k < rest)", "1");
  ck_assert_int_eq(program_run(&with_templates, words).code, 4);
}

/* A cap takes another way through small numbers; no more in the one kernel than in the other. */
TEST(caps_beside_unskipped) {
  program_gives(0, "check family=mma pass=forward,backward deterministic=true head_dim=64 "
                   "mask=causal,window(100,0) score=softcap(20.0),softcap(30.0) b=1 h=2 nq=300 "
                   "nk=411 -q");
}

/* None of these shows at the default scale, which is 0.25 at head dim 16, or at a positive one. */
#define UNIT "simt.forward.tile", "score.unit"
static const struct {
  const char *where, *text, *instead, *words, *scale;
} scale_bugs[] = {
    {UNIT, "'(0.25f)'", "family=simt head_dim=16", "-0.3"},
    {UNIT, "'(p.scale < 0.0f ? -p.scale : p.scale)'", "family=simt head_dim=16", "-0.3"},
    {UNIT, "'(p.scale > 0.4f ? 0.4f : p.scale)'", "family=simt head_dim=16", "0.5"},
    {UNIT, "'(p.scale > 1e-9f && p.scale < 0.1f ? 0.1f : p.scale)'", "family=simt head_dim=16",
     "0.001"},
    {UNIT, "'(p.scale >= 0.0f && p.scale < 1e-9f ? 0.25f : p.scale)'", "family=simt head_dim=16",
     "0"},
    {"simt.backward.store_dq", "p.scale", "0.25f", "family=simt head_dim=16 pass=backward", "-0.3"},
    {"mma.forward.sign_of_scale", "$(score.scale_is_negative)", "p.scale < -1.0f",
     "family=mma head_dim=64", "-0.3"},
    {"backward.weights.hide", "$(hidden)", "p.scale < -1.0f ? -($(norm.masked)) : $(norm.masked)",
     "family=mma head_dim=64 mask=causal pass=backward", "-0.3"},
    {"wgmma.unit.sign_queries", "$(score.scale_is_negative)", "p.scale < -1.0f",
     "family=wgmma head_dim=64", "-0.3"},
};
enum { SCALES = sizeof scale_bugs / sizeof *scale_bugs };

TEST_TENTH(scales, SCALES) {
  char says[64];
  planted_in_t(scale_bugs[_i].where, scale_bugs[_i].text, scale_bugs[_i].instead);
  program_result r = program_run(&with_templates, "check -q %s", scale_bugs[_i].words);
  ck_assert_msg(r.code == 4, "%s: exit %d\n%s", scale_bugs[_i].instead, r.code, r.out);
  snprintf(says, sizeof says, " scale=%s: ", scale_bugs[_i].scale);
  program_says(r.out, says);
}

/* Offsets of 32 bits, in each kind of address: a head's, a row's as it is read, one that is
 * written. */
#define SIMT "attention/simt/forward.cut"
static const struct {
  const char *where, *text, *instead, *words, *shows; /* where it shows; NULL: where it is */
} offset_bugs[] = {
    {"sequence.dense.head", "\"b * p.%s_b + %s * p.%s_h\"", "\"(int)(b * p.%s_b + %s * p.%s_h)\"",
     "family=simt head_dim=16", SIMT},
    {"sequence.dense.head", "\"b * p.%s_b + %s * p.%s_h\"", "\"(u32)(b * p.%s_b + %s * p.%s_h)\"",
     "family=simt head_dim=16", SIMT},
    {"sequence.dense.row", "\"b * p.%s_b + %s * p.%s_h + %s * p.%s_n\"",
     "\"(int)(b * p.%s_b + %s * p.%s_h + %s * p.%s_n)\"", "family=simt head_dim=16", SIMT},
    {"sequence.packed.head", "\"%s * p.%s_h + %s * p.%s_n\"",
     "\"(int)(%s * p.%s_h + %s * p.%s_n)\"", "family=simt head_dim=16 kv_layout=packed --seed 2",
     SIMT},
    {"sequence.packed.row", "(%s + %s) * p.%s_n", "(int)((%s + %s) * p.%s_n)",
     "family=simt head_dim=16 q_layout=packed --seed 2", SIMT},
    {"sequence.cached.head", "cache * p.%s_b", "(int)(cache * p.%s_b)",
     "family=simt head_dim=16 kv_layout=cached --seed 2", SIMT},
    {"tile.rows.load_paged", "(int)ldg_u32(pages + key / page) * page_stride",
     "(int)((int)ldg_u32(pages + key / page) * page_stride)",
     "family=simt head_dim=16 kv_layout=paged --seed 2", NULL},
    {"tile.rows.load_paged", "key % page * stride", "(int)(key % page * stride)",
     "family=simt head_dim=16 kv_layout=paged --seed 2", NULL},
    {"tile.tiles.load_paged", ": 0) * page_stride + key % page * stride",
     ": 0) * (int)page_stride + key % page * stride",
     "family=mma head_dim=64 kv_layout=paged --seed 2", NULL},
    {"tile.sequences.zero", "(begin + i / width) * stride", "(int)((begin + i / width) * stride)",
     "family=simt head_dim=16 q_layout=packed --seed 8", NULL},
    {"tile.rows.load", "(i64)(row0 + row) * stride", "(int)((row0 + row) * stride)",
     "family=simt head_dim=16", NULL},
    {"tile.tiles.load", "(row0 + row) * stride", "(int)((row0 + row) * stride)",
     "family=mma head_dim=64", NULL},
    {"tile.tiles.store", "(i64)(row0 + row + r) * stride", "(int)((row0 + row + r) * stride)",
     "family=mma head_dim=64", NULL},
    {"sequence.dense.row", "\"b * p.%s_b + %s * p.%s_h + %s * p.%s_n\"",
     "\"(int)(b * p.%s_b + %s * p.%s_h + %s * p.%s_n)\"", "family=mma head_dim=64 pass=backward",
     "attention/backward/kept.cut"},
};
enum { OFFSETS = sizeof offset_bugs / sizeof *offset_bugs };

TEST_TENTH(offsets, OFFSETS) {
  planted_in_t(offset_bugs[_i].where, offset_bugs[_i].text, offset_bugs[_i].instead);
  program_result r = program_run(&with_templates, "check -q %s", offset_bugs[_i].words);
  ck_assert_msg(r.code == 1, "%s: exit %d\n%s", offset_bugs[_i].instead, r.code, r.out);
  ck_assert_msg(strstr(r.out, " outside of all tensors") || strstr(r.out, " of tensor ") ||
                    strstr(r.out, "memory access fault"),
                "%s: %s", offset_bugs[_i].instead, r.out);
  program_says(r.out, offset_bugs[_i].shows ? offset_bugs[_i].shows
                                            : spot_of(offset_bugs[_i].where).file->name);
}

/* Sums by atomics, in a kernel that is to have an order. */
TEST(no_order) {
  static const char words[] = "check -q --seed 1 family=simt head_dim=16 pass=backward "
                              "deterministic=true score=relative(t) inputs.t=f32[h,nq+nk-1]grad";
  program_gives(0, words);
  planted_in_t("simt.backward.order", " and spec.deterministic == \"false\"", "");
  program_result r = program_run(&with_templates, words);
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, "first wrong at b=1 h=2 hk=1 nq=203 nk=113 scale=-0.3: dt: ");
  program_says(r.out, " elements are others in a second launch, the first at ");
  program_says(r.out, ": both launches are to give equal bits\n");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
