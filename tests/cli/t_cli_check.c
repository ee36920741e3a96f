/* t_cli_check.c - `flashgen check`: right kernels pass, and kernels made wrong through
 * FLASHGEN_TEMPLATES fail with the exit code and the place that say what is wrong. */
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

TEST(passes) {
  program_result r = program_gives(0, "check family=simt head_dim=8,40/24 mask=causal " SMALL);
  program_says(r.out, "device host, seed 7; ");
  program_says(r.out, "\nPASS  attn_fwd-bf16-d8-causal.simt-q16-k32-w4.host     ");
  program_says(r.out, "\nPASS  attn_fwd-bf16-d40v24-causal.simt-q16-k32-w4.host  o ");
  program_says(r.out, "\n2 variants, 2 cases, seed 7: 0 failed, 0 wrong\n");
  ck_assert_int_eq(program_count(r.out, "unfused"), 0);
  program_says(r.err, "2/2 done, 0 failed, ");
  r = program_gives(0, "check -q -v attn_bwd-f16-d16.simt-q16-k32-w4.host " SMALL);
  ck_assert_str_eq(r.err, "");
  ck_assert_int_eq(program_count(r.out, "PASS"), 1);
  ck_assert_int_eq(program_count(r.out, "unfused"), 3); /* dq dk dv */
}

/* Pages of the words' own size, of which nobody says how many there are, and the other way. */
TEST(pages) {
  static const char words[] = "check -q family=simt head_dim=8 kv_layout=paged " SMALL " %s";
  program_gives(0, words, "page=16");
  program_gives(0, words, "pages=5");
}

/* Numbers of a spec's inputs: at once, not a failure of each variant. */
TEST(bad_numbers) {
  static const char words[] = "check head_dim=8,16 mask=window(w,0) inputs.w=int w=%s " SMALL;
  program_refuses(2, "w = 1.5: expected a whole number of at most 2^30 in size", words, "1.5");
  program_refuses(2, "w = 2e+09: expected a whole number of at most 2^30 in size", words, "2e9");
  program_gives(0, "check -q family=simt head_dim=8 score=s*c inputs.c=float c=1.5 " SMALL);
}

/* Multiprocessors that launches leave free, of the host device's three; a larger one is no failure
 * of a kernel. */
TEST(margin) {
  static const char words[] = "family=wgmma head_dim=16 block_q=128 block_kv=64 nq=300 nk=70 h=2";
  program_result r = program_gives(0, "check -q %s sm_margin=2", words);
  program_says(r.out, "0 failed, 0 wrong\n");
  program_gives(0, "bench --device host %s sm_margin=1", words);
  for (int i = 0; i < 2; i++)
    program_says(
        program_gives(2, "%s --device host %s sm_margin=6", i ? "bench" : "check -q", words).err,
        "sm_margin = 6: expected 0 to 5 on a device of 6 multiprocessors");
}

/* Hits, misses and compiles that the program tells of. */
static void told(program_result r, int hits, int misses, int compiles) {
  ck_assert_msg(r.code == 0, "exit %d\n%s%s", r.code, r.out, r.err);
  ck_assert_int_eq(program_count(r.err, "flashgen: cache: hit attn_"), hits);
  ck_assert_int_eq(program_count(r.err, "flashgen: cache: miss attn_"), misses);
  ck_assert_int_eq(program_count(r.err, "flashgen: compile: attn_"), compiles);
  ck_assert_int_eq(program_count(r.err, "\n"), hits + misses + compiles);
}

/* A kernel is compiled once, whoever asks for it. */
TEST(kernels_are_kept) {
  const program_setup v = {.env = {"FLASHGEN_VERBOSE=cache,compile"}};
  const program_setup off = {.env = {"FLASHGEN_JIT=0"}};
  told(program_run(&v, "check family=simt head_dim=8,16 -q -j 2 " SMALL), 0, 2, 2);
  told(program_run(&v, "check family=simt head_dim=8,16 -q -j 2 " SMALL), 2, 0, 0);
  told(program_run(&v, "check family=simt head_dim=8,24 -q -j 1 " SMALL), 1, 1, 1);
  told(program_run(&v, "bench family=simt head_dim=8 nq=16"), 1, 0, 0);
  program_result r = program_run(&off, "check family=simt head_dim=8,16 -q " SMALL);
  ck_assert_int_eq(r.code, 0);
  r = program_run(&off, "check family=simt head_dim=32 -q " SMALL);
  ck_assert_int_eq(r.code, 3);
  program_says(r.err, "flashgen: attn_fwd-bf16-d32.simt-q16-k32-w4.host: no zoo and no cache has "
                      "it, and compiling is switched off (FLASHGEN_JIT=0); ");
}

/* What measures takes 1 for a number that no word sets, and says so, of each once. */
TEST(numbers_that_count_as_1) {
  static const char said[] = "flashgen: width is not given and counts as 1; width=NUMBER sets it\n";
  static const char bench[] = "bench family=simt head_dim=8,16 nq=16 mask=window(width,0) "
                              "inputs.width=int";
  ck_assert_str_eq(program_gives(0, "%s", bench).err, said);
  ck_assert_str_eq(program_gives(0, "%s width=1", bench).err, "");
  program_result r = program_gives(2, "tune head_dim=8 mask=window(width,0) inputs.width=int "
                                      "--wisdom w.txt --shapes absent.lua");
  ck_assert_int_eq(program_count(r.err, said), 1);
}

TEST(fresh_seeds_are_printed) {
  char *first = strdup(program_gives(0, "check family=simt head_dim=8 b=1 nq=3 -q").out);
  program_result r = program_gives(0, "check family=simt head_dim=8 b=1 nq=3 -q");
  ck_assert_str_ne(r.out, first);
  char *seed = strstr(first, "seed ");
  ck_assert_ptr_nonnull(seed);
  r = program_gives(0, "check family=simt head_dim=8 b=1 nq=3 -q --seed %.*s",
                    (int)strspn(seed + 5, "0123456789"), seed + 5);
  ck_assert_str_eq(r.out, first);
  free(first);
}

TEST(jobs_change_nothing) {
  static const char words[] =
      "check family=simt head_dim=8,16,24 mask=full,causal --plans all -q " SMALL;
  char *one = strdup(program_gives(0, "%s -j 1", words).out);
  ck_assert_int_eq(program_count(one, "PASS"), 12);
  ck_assert_str_eq(program_gives(0, "%s -j3", words).out, one);
  ck_assert_str_eq(program_gives(0, "%s --jobs=4294967296", words).out, one);
  free(one);
}

/* Scores that overflow float16 have an unfused error that is not finite: no number in JSON. */
TEST(json) {
  program_result r = program_gives(0, "check family=simt head_dim=16 dtype=f16 --seed 3 --json -q");
  json_whole(r.out);
  program_says(
      r.out,
      "{\"schema\": 1, \"device\": \"host\", \"seed\": 3, \"results\": [\n"
      "  {\"name\": \"attn_fwd-f16-d16.simt-q16-k32-w4.host\", \"result\": "
      "\"PASS\", \"cases\": 6, \"signal\": 0, \"seen\": 1, \"text\": \"\", \"refused\": \"\", \"errors\": {\"o\": "
      "{\"error\": ");
  program_says(r.out,
               "], \"variants\": 1, \"cases\": 6, \"failed\": 0, \"wrong\": 0, \"empty\": 0}\n");
}

static program_result fails(void) {
  program_result r = program_run(&with_templates, "check family=simt head_dim=16 -q " SMALL);
  ck_assert_msg(r.code == 1, "exit %d\n%s%s", r.code, r.out, r.err);
  program_says(r.out, "\nFAIL  attn_fwd-bf16-d16.simt-q16-k32-w4.host\n      ");
  program_says(r.out, "\n1 variant, 0 cases, seed 7: 1 failed, 0 wrong\n");
  return r;
}

TEST(a_race) {
  planted_in_t("simt.forward.load_tile", "block_sync();\n", "\n");
  program_result r = fails();
  program_says(r.out, "\n  at ");
  program_says(r.out, ".cut:");
}

TEST(no_c) {
  planted_in_t("simt.forward.store_o", "lane == 0", "lane === 0");
  program_result r = fails();
  program_says(r.out, ": cc refused it (exit 1):\n  kernel.c:");
  program_says(r.out, " [attention/simt/forward.cut:");
  /* no notes, no excerpts of the source */
  ck_assert_int_eq(program_count(r.out, "kernel.c:"), program_count(r.out, ": error: "));
  ck_assert_ptr_null(strstr(r.out, " | "));
}

/* The first errors of many, and how many more there are. */
TEST(many_errors) {
  planted_in_t("simt.forward.state", "o[ROWS][LANE_DV];",
               "o[R0][R1], x = R2 + R3; x = y0; x = y1; x = y2; x = y3; x = y4; x = y5;");
  program_result r = fails();
  ck_assert_int_eq(program_count(r.out, "\n  kernel.c:"), 5);
  program_says(r.out, "\n  and ");
}

TEST(a_template_that_raises) {
  const spot tile = spot_of("simt.forward.tile");
  char place[64];
  planted_in_t("simt.forward.tile", "mask.tile", "mask.tiles");
  snprintf(place, sizeof place, "%s:%d: ", tile.file->name, spot_line(&tile, tile.text));
  program_says(fails().out, place);
}

/* A kernel that ends its process takes no other with it. */
TEST(a_crash) {
  planted_in_t("simt.forward.store_o", "if (lane == 0", "if (D == 16) abort(); if (lane == 0");
  program_result r =
      program_run(&with_templates, "check family=simt head_dim=8,16,24 -q -j 1 " SMALL);
  ck_assert_int_eq(r.code, 1);
  program_says(r.out, "\nFAIL  attn_fwd-bf16-d16.simt-q16-k32-w4.host\n      its process died of "
                      "signal 6\nPASS  attn_fwd-bf16-d24.");
  program_says(r.out, "\n3 variants, 2 cases, seed 7: 1 failed, 0 wrong\n");
}

/* Of scores whose slope makes dS large: named where f16 cannot hold it, right where it is held. */
TEST(beyond_f16) {
#define SLOPED "check pass=backward head_dim=16 score=s*1000000.0 scale=1e-6 b=1 h=1 nq=9 nk=40 -q "
  program_result r = program_gives(4, SLOPED "family=mma dtype=f16 --seed 3");
  program_says(r.out, "first wrong at b=1 h=1 hk=1 nq=9 nk=40 scale=1e-06: d");
  program_says(r.out, "; dS reaches ");
  program_says(r.out, ", beyond f16's range of 65504\n");
  program_gives(0, SLOPED "family=mma dtype=bf16 --seed 3");
  program_gives(0, SLOPED "family=simt dtype=f16 --seed 3");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
