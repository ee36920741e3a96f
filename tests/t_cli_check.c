/* t_cli_check.c - `flashgen check`: right kernels pass, and kernels made wrong through
 * FLASHGEN_TEMPLATES fail with the exit code and the place that say what is wrong. */
#include "json.h"
#include "planted.h"
#include "program.h"
#include "scratch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL "b=1 h=2 hk=1 nq=21 nk=40 --seed 7"

static const program_setup with_templates = {.env = {"FLASHGEN_TEMPLATES=t"}};

static void is_json(const char *text) {
  const char *bad = json_error(text);
  ck_assert_msg(!bad, "no JSON at: %s", bad);
}

/* The directory "t": the built-in templates with one bug. */
static void plant(const char *file, const char *text, const char *instead) {
  const planted_bug bug = {.file = file, .text = text, .instead = instead};
  mkdir("t", 0777); /* it may be there */
  ck_assert_int_eq(chdir("t"), 0);
  planted_copy();
  planted_plant(&bug);
  ck_assert_int_eq(chdir(".."), 0);
}

START_TEST(passes) {
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
END_TEST

/* Numbers of a spec's inputs: at once, not a failure of each variant. */
START_TEST(bad_numbers) {
  static const char words[] = "check head_dim=8,16 mask=window(w,0) inputs.w=int w=%s " SMALL;
  program_refuses(2, "w = 1.5: expected a whole number of at most 2^30 in size", words, "1.5");
  program_refuses(2, "w = 2e+09: expected a whole number of at most 2^30 in size", words, "2e9");
  program_gives(0, "check -q family=simt head_dim=8 score=s*c inputs.c=float c=1.5 " SMALL);
}
END_TEST

/* Hits, misses and compiles that the program tells of. */
static void told(program_result r, int hits, int misses, int compiles) {
  ck_assert_msg(r.code == 0, "exit %d\n%s%s", r.code, r.out, r.err);
  ck_assert_int_eq(program_count(r.err, "flashgen: cache: hit attn_"), hits);
  ck_assert_int_eq(program_count(r.err, "flashgen: cache: miss attn_"), misses);
  ck_assert_int_eq(program_count(r.err, "flashgen: compile: attn_"), compiles);
  ck_assert_int_eq(program_count(r.err, "\n"), hits + misses + compiles);
}

/* A kernel is compiled once, whoever asks for it. */
START_TEST(kernels_are_kept) {
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
END_TEST

/* What measures takes 1 for a number that no word sets, and says so, of each once. */
START_TEST(numbers_that_count_as_1) {
  static const char said[] = "flashgen: width is not given and counts as 1; width=NUMBER sets it\n";
  static const char bench[] = "bench family=simt head_dim=8,16 nq=16 mask=window(width,0) "
                              "inputs.width=int";
  ck_assert_str_eq(program_gives(0, "%s", bench).err, said);
  ck_assert_str_eq(program_gives(0, "%s width=1", bench).err, "");
  program_result r = program_gives(2, "tune head_dim=8 mask=window(width,0) inputs.width=int "
                                      "--wisdom w.txt --shapes absent.lua");
  ck_assert_int_eq(program_count(r.err, said), 1);
}
END_TEST

START_TEST(fresh_seeds_are_printed) {
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
END_TEST

START_TEST(jobs_change_nothing) {
  static const char words[] =
      "check family=simt head_dim=8,16,24 mask=full,causal --plans all -q " SMALL;
  char *one = strdup(program_gives(0, "%s -j 1", words).out);
  ck_assert_int_eq(program_count(one, "PASS"), 12);
  ck_assert_str_eq(program_gives(0, "%s -j3", words).out, one);
  ck_assert_str_eq(program_gives(0, "%s --jobs=4294967296", words).out, one);
  free(one);
}
END_TEST

/* Scores that overflow float16 have an unfused error that is not finite: no number in JSON. */
START_TEST(json) {
  program_result r = program_gives(0, "check family=simt head_dim=16 dtype=f16 --seed 3 --json -q");
  is_json(r.out);
  program_says(
      r.out,
      "{\"schema\": 1, \"device\": \"host\", \"seed\": 3, \"results\": [\n"
      "  {\"name\": \"attn_fwd-f16-d16.simt-q16-k32-w4.host\", \"result\": "
      "\"PASS\", \"cases\": 5, \"signal\": 0, \"seen\": 1, \"text\": \"\", \"errors\": {\"o\": "
      "{\"error\": ");
  program_says(r.out,
               "], \"variants\": 1, \"cases\": 5, \"failed\": 0, \"wrong\": 0, \"empty\": 0}\n");
}
END_TEST

START_TEST(wrong_numbers) {
  plant("attention/simt_forward.cut", "s_unit = \"p.scale\"", "s_unit = \"1.1f * p.scale\"");
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
  is_json(r.out);
  program_says(r.out, "\"result\": \"FAIL\"");
}
END_TEST

/* A NaN is the worst of errors, and has no JSON. */
START_TEST(not_a_number) {
  plant("attention/simt_forward.cut", "s_unit = \"p.scale\"", "s_unit = \"(0.0f / 0.0f)\"");
  program_result r = program_run(&with_templates, "check family=simt head_dim=16 --json " SMALL);
  ck_assert_int_eq(r.code, 4);
  is_json(r.out);
  program_says(r.out, "\"o\": {\"error\": null, ");
  program_says(r.out, "nq=21 nk=40: o[0, 0, 0, 0] is NaN, expected ");
  program_says(r.out, ", the first of 672 of 672 elements that are not finite\"");
}
END_TEST

/* Numbers that are wrong with and without tile skipping say nothing of a bound, in families too
 * whose sums have no fixed order. */
START_TEST(wrong_in_both) {
  plant("attention/wgmma_forward.cut", "const float scale = p.scale < 0.0f ? -p.scale : p.scale;",
        "const float scale = 0.0f / 0.0f;");
  program_result r = program_run(&with_templates, "check family=wgmma head_dim=64 mask=causal b=1 "
                                                  "h=1 nq=130 nk=300 -q");
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, "nq=130 nk=300: o[0, 0, 0, 0] is NaN, expected ");
  ck_assert_int_eq(program_count(r.out, "bound"), 0);
  plant("attention/wgmma_forward.cut", "const float scale = p.scale < 0.0f ? -p.scale : p.scale;",
        "const float scale = 1.1f * fabsf(p.scale);");
  r = program_run(&with_templates, "check family=wgmma head_dim=64 mask=causal b=1 h=1 nq=130 "
                                   "nk=300 -q");
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, ", the furthest off of 8320 elements\n");
}
END_TEST

/* A gradient whose terms cancel is small beside them, so that nothing at all would count as near.
 */
START_TEST(nothing_is_written_but_zeros) {
  static const char words[] = "check family=simt head_dim=16 pass=backward bias=grad "
                              "bias_dims=[h,q] -q " SMALL;
  program_gives(0, words);
  plant("attention/simt_backward.cut", "sum[r] += $(value);", "sum[r] += 0.0f * $(value);");
  program_result r = program_run(&with_templates, words);
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, ": dbias[0, 1, 18, 0] is 0, expected ");
  program_says(r.out, " elements, which are all 0\n");
}
END_TEST

/* lse's error is a difference of its own unit, and its limit depends on the row. */
START_TEST(lse_in_its_unit) {
  plant("attention/simt_forward.cut", "+ q), $(norm.second));", "+ q), 0.0625f + $(norm.second));");
  program_result r = program_run(&with_templates, "check family=simt head_dim=16 -q " SMALL);
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, "  lse 6.2e-02 (");
  program_says(r.out, "% of 1.0e-04)  sees 100% of pairs\n");
  program_says(r.out, ": lse[0, ");
  r = program_run(&with_templates, "check family=simt head_dim=16 --json " SMALL);
  program_says(r.out, "\"lse\": {\"error\": 0.062");
  program_says(r.out, ", \"limit\": 0.00010");
}
END_TEST

static program_result fails(void) {
  program_result r = program_run(&with_templates, "check family=simt head_dim=16 -q " SMALL);
  ck_assert_msg(r.code == 1, "exit %d\n%s%s", r.code, r.out, r.err);
  program_says(r.out, "\nFAIL  attn_fwd-bf16-d16.simt-q16-k32-w4.host\n      ");
  program_says(r.out, "\n1 variant, 0 cases, seed 7: 1 failed, 0 wrong\n");
  return r;
}

START_TEST(a_race) {
  plant("attention/simt_forward.cut", "block_sync();\n\n", "\n\n");
  program_result r = fails();
  program_says(r.out, "\n  at ");
  program_says(r.out, ".cut:");
}
END_TEST

START_TEST(no_c) {
  plant("attention/simt_forward.cut", "if (lane == 0 && p.$(norm.second))", "if (lane === 0)");
  program_result r = fails();
  program_says(r.out, ": cc refused it (exit 1):\n  kernel.c:");
  program_says(r.out, " [attention/simt_forward.cut:");
  /* no notes, no excerpts of the source */
  ck_assert_int_eq(program_count(r.out, "kernel.c:"), program_count(r.out, ": error: "));
  ck_assert_ptr_null(strstr(r.out, " | "));
}
END_TEST

/* The first errors of many, and how many more there are. */
START_TEST(many_errors) {
  plant("attention/simt_forward.cut", "float o[ROWS][LANE_DV];",
        "float o[R0][R1], x = R2 + R3;"
        " x = y0; x = y1; x = y2; x = y3; x = y4; x = y5;");
  program_result r = fails();
  ck_assert_int_eq(program_count(r.out, "\n  kernel.c:"), 5);
  program_says(r.out, "\n  and ");
}
END_TEST

START_TEST(a_template_that_raises) {
  plant("attention/simt_forward.cut", "@ local text = run(", "@ local text = rum(");
  program_says(fails().out, "attention/simt_forward.cut:3: ");
}
END_TEST

/* A kernel that ends its process takes no other with it. */
START_TEST(a_crash) {
  plant("attention/simt_forward.cut", "if (lane == 0 && p.$(norm.second))",
        "if (D == 16) abort(); if (lane == 0)");
  program_result r =
      program_run(&with_templates, "check family=simt head_dim=8,16,24 -q -j 1 " SMALL);
  ck_assert_int_eq(r.code, 1);
  program_says(r.out, "\nFAIL  attn_fwd-bf16-d16.simt-q16-k32-w4.host\n      its process died of "
                      "signal 6\nPASS  attn_fwd-bf16-d24.");
  program_says(r.out, "\n3 variants, 2 cases, seed 7: 1 failed, 0 wrong\n");
}
END_TEST

/* Results are compared with those of the kernel that skips no tile: a range that was stated and
 * does not hold, and one that was derived wrong. */
START_TEST(wrong_ranges) {
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
  plant("attention/masks.lua", "bound(formula.keys.last, { q0 = q0, q1 = q1 }",
        "bound(formula.keys.last, { q0 = q0, q1 = q1 .. \" - 1\" }");
  r = program_run(&with_templates,
                  "check family=simt head_dim=16 mask=causal b=1 h=1 nq=21 nk=33 -q");
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, ": a bound that flashgen derives from the mask is wrong\n");
}
END_TEST

/* Integers are drawn where something depends on them: a range that does not hold, or a bound that
 * is one off, shows under each seed. */
START_TEST(wrong_ranges_of_lengths) {
#define LENGTHS "family=simt head_dim=16 inputs.n=i32[b] -q --seed"
  for (int seed = 1; seed <= 3; seed++) {
    program_result r = program_gives(4, "check mask=given(k<n[b],k<=n[b]) " LENGTHS " %d", seed);
    program_says(r.out, ": the range of given(range, test) does not hold wherever its test does\n");
    program_gives(0, "check mask=given(k<=n[b],k<n[b]) " LENGTHS " %d", seed);
  }
  plant("attention/masks.lua", "bound(formula.keys.last, { q0 = q0, q1 = q1 }, \"p.nk\")",
        "bound(formula.keys.last, { q0 = q0, q1 = q1 }, \"p.nk\") .. \" - 1\"");
  for (int seed = 1; seed <= 3; seed++) {
    program_result r = program_run(&with_templates, "check mask=k<n[b] " LENGTHS " %d", seed);
    ck_assert_int_eq(r.code, 4);
    program_says(r.out, ": a bound that flashgen derives from the mask is wrong\n");
  }
}
END_TEST

/* The share of pairs that a mask shows, in percent. */
static double sees(const char *words) {
  program_result r = program_gives(0, "check family=simt head_dim=16 -q --seed 5 %s", words);
  const char *at = strstr(r.out, "  sees ");
  ck_assert_ptr_nonnull(at);
  return strtod(at + strlen("  sees "), NULL);
}

/* Whatever integers are used for, some pairs are seen and some are not, and indices stay in their
 * tensors. */
START_TEST(integers_by_use) {
  static const char *const words[] = {
      "mask=k<n[b] inputs.n=i32[b]",
      "mask=k<16*n[b] inputs.n=i32[b]",
      "mask=k/16<n[b,h] inputs.n=i32[b,h]",
      "mask=prefix(n[b]) inputs.n=i32[b]",
      "mask=k==n[b,q]||n[b,q]<q inputs.n=i32[b,q]",
      "mask=document(ids) inputs.ids=i32[b,k]",
      "mask=q_ids[b,q]==k_ids[b,k] inputs.q_ids=i32[b,q] inputs.k_ids=i32[b,k]",
      "mask=document(starts,ends) inputs.starts=i32[b,k] inputs.ends=i32[b,k]",
      "mask=ids[k]>=0&&ids[k]>=ids[q*nk/nq] inputs.ids=i32[k]",
      "mask=use[b,k]!=0 inputs.use=i32[b,k]",
      "mask=kind[h]==3||k<=p inputs.kind=i32[h]",
      "mask=k<n[group[b]] inputs.n=i32[3] inputs.group=i32[b]",
  };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const double share = sees(words[i]);
    ck_assert_msg(share > 5 && share < 98, "%s: sees %g%%", words[i], share);
  }
  sees("score=s+t[map[q],k-start[b]+8] inputs.t=f32[17,nk+16] inputs.map=i32[q] "
       "inputs.start=i32[b]");
  sees("score=s+t[h,i] inputs.t=f32[h,7] inputs.i=int");
  ck_assert_double_eq(sees("mask=full"), 100);
}
END_TEST

/* A mask that shows nothing leaves nothing to judge, which is not right numbers. */
START_TEST(nothing_seen) {
  program_result r =
      program_gives(1, "check family=simt head_dim=8,16 mask=k<n inputs.n=int n=0 -q");
  ck_assert_int_eq(program_count(r.out, "EMPTY  attn_fwd-bf16-d"), 2);
  program_says(r.out,
               "  sees 0% of pairs\n      the mask shows no pair of a row and a key in any of "
               "5 cases, so that nothing was judged: give inputs that show some, as NAME=X or "
               "--in NAME=FILE\n");
  program_says(r.out, ": 0 failed, 0 wrong, 2 empty\n");
  r = program_gives(1, "check family=simt head_dim=8 mask=k<n inputs.n=int n=0 -q --json");
  is_json(r.out);
  program_says(r.out,
               "\"result\": \"EMPTY\", \"cases\": 5, \"signal\": 0, \"seen\": 0, \"text\": ");
  program_says(r.out, "\"wrong\": 0, \"empty\": 1}\n");
  r = program_gives(1, "check family=simt head_dim=8 score=s+log(0.0*k) -q");
  program_says(r.out, "EMPTY");
  program_says(r.out,
               "      the exact outputs are 0 in all of 5 cases, so that nothing was judged\n");
  program_gives(0, "check family=simt head_dim=8 b=1 h=1 nq=5 nk=0 -q");
}
END_TEST

/* Values of an input from a file, which fits every shape. */
START_TEST(values_of_a_file) {
  static const char words[] = "check family=simt head_dim=16 mask=k<n[b] inputs.n=i32[b] h=1 nq=20 "
                              "nk=50 -q --in n=n.npy";
  static const int32_t lengths[] = {10, 30};
  static const char header[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  char file[136];
  memset(file, ' ', sizeof file);
  memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
  memcpy(file + 10, header, strlen(header));
  file[127] = '\n';
  memcpy(file + 128, lengths, sizeof lengths);
  scratch_put("n.npy", file, sizeof file);
  program_says(program_gives(0, "%s b=2", words).out, "  sees 40% of pairs\n");
  program_refuses(2, "n: axis 0 of its file has 2, the shape 3 (b= h= hk= nq= nk= choose another)",
                  "%s b=3", words);
  program_refuses(2, "--in m: no variant has such an input",
                  "check family=simt head_dim=16 b=2 -q --in m=n.npy");
  program_refuses(2, "--in lse: check computes it",
                  "check family=simt head_dim=16 pass=backward b=2 -q --in lse=n.npy");
  program_refuses(2, "q: its file holds integers (i4), expected floats",
                  "check family=simt head_dim=16 b=2 -q --in q=n.npy");
}
END_TEST

/* Where tiles begin at the first key that rows see, those of the kernel that skips none lie there
 * too, and none of its keys counts twice. */
START_TEST(tiles_beside_unskipped) {
  static const char *const words = "check family=mma head_dim=64 block_kv=96 mask=window(60,5) "
                                   "b=1 h=1 nq=300 nk=400 -q";
  program_gives(0, words);
  plant("attention/mma_forward.cut", "\"k0 < rest ? rest : k0 + BLOCK_KV\"", "\"k0 + BLOCK_KV\"");
  program_result r = program_run(&with_templates, words);
  ck_assert_int_eq(r.code, 4);
  program_says(r.out, " elements differ from those of the same kernel without tile skipping, the ");
  plant("attention/mma_forward.cut", "\"(k0 >= rest || k < rest)\"", "\"1\"");
  ck_assert_int_eq(program_run(&with_templates, words).code, 4);
}
END_TEST

/* A cap takes another way through small numbers; no more in the one kernel than in the other. */
START_TEST(caps_beside_unskipped) {
  program_gives(0, "check family=mma pass=forward,backward deterministic=true head_dim=64 "
                   "mask=causal,window(100,0) score=softcap(20.0),softcap(30.0) b=1 h=2 nq=300 "
                   "nk=411 -q");
}
END_TEST

/* An index that leaves its tensor, with the expression, the index and the pair. */
START_TEST(wrong_index) {
#define TABLE "head_dim=16 inputs.t=f32[h,nq+nk-1] b=1 h=2 nq=9 nk=7 -q"
  program_result r = program_gives(1, "check family=simt score=s+t[h,k-q+nq] " TABLE);
  program_says(r.out, "      score: an index leaves its tensor: t[h, nq + (k - q)]: index 2 is 15, "
                      "not in 0 to 14, at b=0 h=0 q=0 k=6\n");
  r = program_gives(1, "check family=mma pass=backward score=s+t[h,k-q+nq] " TABLE);
  program_says(r.out, "index 2 is 15, not in 0 to 14, at b=0 h=0 q=0 k=6\n");
  program_gives(0, "check family=simt score=s+t[h,k-q+nq-1] " TABLE);
  r = program_gives(1, "check head_dim=16 mask=ids[b,q]==ids[b,k] inputs.ids=i32[b,k] b=1 h=1 "
                       "nq=9 nk=7 -q");
  program_says(r.out,
               "      mask: an index leaves its tensor: ids[b, q]: index 2 is 7, not in 0 to "
               "6, at b=0 h=0 q=7 k=0\n");
  /* one that 32 bits would wrap into the tensor */
  r = program_gives(1, "check family=simt score=s+t[h,k*4294967296] " TABLE);
  program_says(r.out, "t[h, k * 4294967296]: index 2 is 4294967296, not in 0 to 14, at b=0 h=0 q=0 "
                      "k=1\n");
}
END_TEST

/* Of scores whose slope makes dS large: named where f16 cannot hold it, right where it is held. */
START_TEST(beyond_f16) {
#define SLOPED "check pass=backward head_dim=16 score=s*1000000.0 scale=1e-6 b=1 h=1 nq=9 nk=40 -q "
  program_result r = program_gives(4, SLOPED "family=mma dtype=f16 --seed 3");
  program_says(r.out, "first wrong at b=1 h=1 hk=1 nq=9 nk=40: dS reaches ");
  program_says(r.out, ", beyond f16's range of 65504\n");
  program_gives(0, SLOPED "family=mma dtype=bf16 --seed 3");
  program_gives(0, SLOPED "family=simt dtype=f16 --seed 3");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cli_check");
  TCase *tests = tcase_create("cli_check");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  tcase_add_test(tests, passes);
  tcase_add_test(tests, bad_numbers);
  tcase_add_test(tests, kernels_are_kept);
  tcase_add_test(tests, numbers_that_count_as_1);
  tcase_add_test(tests, fresh_seeds_are_printed);
  tcase_add_test(tests, jobs_change_nothing);
  tcase_add_test(tests, json);
  tcase_add_test(tests, beyond_f16);
  tcase_add_test(tests, wrong_numbers);
  tcase_add_test(tests, wrong_ranges);
  tcase_add_test(tests, wrong_ranges_of_lengths);
  tcase_add_test(tests, integers_by_use);
  tcase_add_test(tests, nothing_seen);
  tcase_add_test(tests, values_of_a_file);
  tcase_add_test(tests, tiles_beside_unskipped);
  tcase_add_test(tests, caps_beside_unskipped);
  tcase_add_test(tests, wrong_index);
  tcase_add_test(tests, not_a_number);
  tcase_add_test(tests, wrong_in_both);
  tcase_add_test(tests, nothing_is_written_but_zeros);
  tcase_add_test(tests, lse_in_its_unit);
  tcase_add_test(tests, a_race);
  tcase_add_test(tests, no_c);
  tcase_add_test(tests, many_errors);
  tcase_add_test(tests, a_template_that_raises);
  tcase_add_test(tests, a_crash);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
