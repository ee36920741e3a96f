/* t_tune.c - `flashgen tune` and `flashgen wisdom` on the host device. */
#include "json.h"
#include "reference/npy.h"
#include "scratch.h"
#include "templates.h"
#include "tune_case.h"
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST(measures_once) {
  program_result r = program_gives(0, TUNE "--wisdom w.txt");
  ck_assert_int_eq(program_count(r.out, "\n"), 3);
  program_says(r.out, "b1 h2/1 40x72            " NAME "mma-q64-k");
  program_says(r.out, "b1 h1/1 1x130            " NAME "mma-q64-k");
  program_says(r.out, "\n2 of 2 cells finished, 2 with a best plan; w.txt\n");
  program_says(r.err, "4 plans to compile\n");
  program_says(r.err, "2 cells to measure on 1 device\n");
  ck_assert_int_eq(tune_count("w.txt").good, 8);
  fg_measured_list list = tune_list("w.txt");
  const int generation = words_generation("head_dim=40 family=mma");
  for (int i = 0; i < list.n; i++) {
    const fg_measured *m = list.item[i];
    ck_assert_str_eq(m->device, "host");
    ck_assert(m->ms > 0 && m->generation == generation && m->compile > 0 && m->when > 0);
    ck_assert(m->status == FG_MEASURED_OK || m->status == FG_MEASURED_SLOW);
    ck_assert(m->status == FG_MEASURED_SLOW || (m->verified && m->error > 0 && m->error < 1));
  }
  ck_assert(fg_measured_counts(list.item[0]));
  fg_measured_free(&list);
  r = program_gives(0, TUNE "--wisdom w.txt -q");
  ck_assert_str_eq(r.err, "");
  ck_assert_int_eq(program_count(r.out, " 4 known\n"), 2);
  ck_assert_int_eq(tune_count("w.txt").good, 8); /* not a line more */
}

/* Another generation is measured again. */
TEST(generations) {
  const program_setup changed = {.env = {"FLASHGEN_TEMPLATES=t"}};
  program_gives(0, TUNE "--wisdom w.txt -q");
  templates_change("attention/mma/forward.lua", "local tiles",
                   "family.generation = 1000\nlocal tiles");
  program_result r = program_run(&changed, TUNE "--wisdom w.txt -q");
  ck_assert_msg(r.code == 0, "%s", r.err);
  ck_assert_int_eq(program_count(r.out, " known"), 0);
  ck_assert_int_eq(tune_count("w.txt").good, 16);
  r = program_run(&changed, TUNE "--wisdom w.txt -q");
  ck_assert_int_eq(program_count(r.out, " 4 known\n"), 2);
}

/* What it wrote is what the library goes by, and says so. */
TEST(library_goes_by_it) {
  const program_setup with = {.env = {"FLASHGEN_WISDOM=w.txt", "FLASHGEN_VERBOSE=dispatch"}};
  program_gives(0, TUNE "-q --wisdom w.txt");
  fg_measured_list list = tune_list("w.txt");
  char taken[256];
  int at = 0; /* the shape with nk = 130 */
  while (list.item[at]->shape.nk != 130) at++;
  snprintf(taken, sizeof taken, ": dispatch: b1 h1/1 1x131 %.*s: taken, %.4g ms",
           (int)(strlen(list.item[at]->name) - strlen(".host")), list.item[at]->name,
           list.item[at]->ms);
  fg_measured_free(&list);
  const int64_t row[] = {1, 1, 1, 16}, rows[] = {1, 131, 1, 16};
  static const float zeros[131 * 16];
  ck_assert_int_eq(fg_npy_write("q.npy", 4, row, zeros), FG_OK);
  ck_assert_int_eq(fg_npy_write("k.npy", 4, rows, zeros), FG_OK);
  program_result r = program_run(&with, "run head_dim=16 family=mma block_q=64 --in q=q.npy --in "
                                        "k=k.npy --in v=k.npy --out o=o.npy --device host");
  ck_assert_msg(r.code == 0, "%s", r.err);
  program_says(r.err, taken);
  program_says(r.err, " times the least, at b1 h1/1 1x130");
}

/* How many plans of wgmma have a time that counts, beside one of mma that is said to take half of
 * what the best one of them does. */
static int times_of_the_slower(void) {
  static const char words[] = "tune head_dim=40 family=wgmma%s --shapes s.lua --device host -j 1 "
                              "--wisdom %s -q";
  int timed = 0;
  remove("alone.txt"), remove("both.txt");
  program_gives(0, words, "", "alone.txt");
  fg_measured_list list = tune_list("alone.txt");
  fg_measured faster = *list.item[0];
  fg_measured_free(&list);
  ck_assert(fg_measured_counts(&faster));
  strcpy(faster.name, "attn_fwd-bf16-d40.mma-q64-k32-s1-w4.host");
  faster.generation = words_generation("head_dim=40 family=mma");
  faster.ms /= 2;
  ck_assert_int_eq(fg_wisdom_append("both.txt", &faster), FG_OK);
  program_gives(0, words, ",mma", "both.txt");
  list = tune_list("both.txt");
  for (int i = 0; i < list.n; i++)
    timed += strstr(list.item[i]->name, ".wgmma-") && fg_measured_counts(list.item[i]);
  fg_measured_free(&list);
  return timed;
}

/* A family that another one beats has one, too: a spec may ask for it alone. A busy machine may
 * make it look far behind, not each time. */
TEST(a_time_for_each_family) {
  scratch_put("s.lua", "return { { h = 2, nq = 200 } }", 30);
  int timed = 0;
  for (int i = 0; i < 5 && !timed; i++) timed = times_of_the_slower();
  ck_assert_int_ge(timed, 1);
}

/* Parts of a grid, and joined. */
TEST(shards) {
  program_gives(0, TUNE "-q --wisdom all.txt");
  for (int i = 1; i <= 2; i++) {
    program_result r = program_gives(0, TUNE "-q --wisdom part%d.txt --shard %d/2", i, i);
    program_says(r.out, "1 of 1 cell finished");
  }
  program_result r = program_gives(0, "wisdom merge joined.txt part1.txt part2.txt");
  ck_assert_str_eq(r.out, "joined.txt: 8 measurements\n");
  r = program_gives(0, TUNE "-q --wisdom joined.txt");
  ck_assert_int_eq(program_count(r.out, " 4 known\n"), 2);
  program_gives(0, "wisdom merge joined.txt all.txt");
  ck_assert_int_eq(tune_count("joined.txt").good, 8);
  program_gives(0, TUNE "-q --wisdom part3.txt --shard 3/3"); /* no cell is left for it */
  program_refuses(2, "--shard 3/2: expected I/N, from 1/N to N/N", TUNE "--wisdom w --shard 3/2");
  program_refuses(2, "--shard 0/2: expected I/N, from 1/N to N/N", TUNE "--wisdom w --shard 0/2");
  program_refuses(2, "--shard 1/99999999999: expected I/N, from 1/N to N/N",
                  TUNE "--wisdom w --shard 1/99999999999");
  program_refuses(2, "--shard 1: expected I/N, from 1/N to N/N", TUNE "--wisdom w --shard 1");
}

TEST(tables) {
  program_result r = program_gives(0, TUNE "-q --wisdom w.txt --json");
  const char *bad = json_error(r.out);
  ck_assert_msg(!bad, "no JSON at: %s", bad);
  ck_assert_int_eq(program_count(r.out, "\"variant\": "), 8);
  program_says(r.out, "\"shape\": {\"b\": 1, \"h\": 2, \"hk\": 1, \"nq\": 40, \"nk\": 72, "
                      "\"align\": 16}");
  program_says(r.out, "\"cells\": 2, \"finished\": 2, \"failed\": 0, \"wrong\": 0, \"complete\": "
                      "true}\n");
  r = program_gives(0, TUNE "-q --wisdom w.txt --csv");
  ck_assert_int_eq(program_count(r.out, "\n"), 9);
  program_says(r.out, "variant,device,multiprocessors,shape,generation,status,ms,error,");
  char shape[64];
  snprintf(shape, sizeof shape, ",\"1,2,1,40,72,16\",%d,",
           words_generation("head_dim=40 family=mma"));
  program_says(r.out, shape);
  r = program_gives(0, "wisdom show w.txt --json --all");
  ck_assert_ptr_null(json_error(r.out));
  ck_assert_int_eq(program_count(r.out, "\"variant\": "), 8);
  r = program_gives(0, "wisdom show w.txt");
  program_says(r.out, "\n2 of 8 measurements\n");
  r = program_gives(0, "wisdom show w.txt --csv --all --filter *s1*");
  ck_assert_int_eq(program_count(r.out, "\n"), 5);
}

TEST(bench_table) {
  program_result r = program_gives(0, "bench head_dim=16 family=simt nq=16 --csv --device host");
  ck_assert_int_eq(program_count(r.out, "\n"), 2);
  program_says(r.out, "name,b,h,hk,nq,nk,ms,tflops,tb_per_s\n");
  program_says(r.out, "\nattn_fwd-bf16-d16.simt-q16-k32-w4.host,1,1,1,16,16,");
  program_refuses(2, "--json and --csv: give one of them", "bench head_dim=16 --json --csv");
  program_refuses(2, "--json and --csv: give one of them", TUNE "--wisdom w --json --csv");
}

/* Plans that are wrong, broken or do not compile: kept with their reason, and others win. */
static program_result planted(const char *file, const char *from, const char *to) {
  const program_setup setup = {.env = {"FLASHGEN_TEMPLATES=t"}};
  templates_change(file, from, to);
  return program_run(&setup, TUNE "-q --wisdom w.txt");
}

TEST(refused_plan) {
  program_result r =
      planted("attention/mma/forward.cut", "$(kernel(\"attn_fwd\")) {\n",
              "$(kernel(\"attn_fwd\")) {\n@ if plan.block_kv == 64 then\n  broken;\n@ end\n");
  ck_assert_msg(r.code == 0, "%s", r.err);
  ck_assert_int_eq(program_count(r.out, ", 2 refused\n"), 2);
  ck_assert_int_eq(tune_having("w.txt", FG_MEASURED_REFUSED, "refused it (exit 1)"), 4);
  ck_assert_int_eq(program_count(r.out, "mma-q64-k32-"), 2);
}

/* A shape that is too much for one plan is measured with the others. */
TEST(plan_that_cannot_launch) {
  program_result r = planted("attention/mma/forward.lua", "or { row_tiles, \"h\", \"b\" }",
                             "or { row_tiles, \"h\", plan.block_kv == 64 and \"b * 70000\" "
                             "or \"b\" }");
  if (r.code != 0) ck_abort_msg("exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_eq(program_count(r.out, ", 2 refused\n"), 2);
  ck_assert_int_eq(tune_having("w.txt", FG_MEASURED_REFUSED, "needs 70000 blocks; at most 65535"),
                   4);
  ck_assert_int_eq(program_count(r.out, "mma-q64-k32-"), 2);
}

TEST(wrong_plan) {
  program_result r = planted("attention/mma/forward.cut", "$(kernel(\"attn_fwd\")) {\n",
                             "$(kernel(\"attn_fwd\")) {\n@ if plan.block_kv == 64 then\n"
                             "  if (gridDim.x > 0) return; // the fastest, and wrong\n@ end\n");
  if (r.code != 4) ck_abort_msg("exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_gt(tune_having("w.txt", FG_MEASURED_WRONG, "times the error that counts as right"),
                   0);
  ck_assert_int_eq(program_count(r.out, NAME "mma-q64-k32-"), 2); /* the others win */
}

/* As long as the fastest are wrong, the next ones are tried. */
TEST(most_plans_are_wrong) {
  program_result r = planted("attention/mma/forward.cut", "$(kernel(\"attn_fwd\")) {\n",
                             "$(kernel(\"attn_fwd\")) {\n@ if plan.block_kv == 64 or plan.stages "
                             "== 2 then\n  if (blockIdx.x < 4) return;\n@ end\n");
  if (r.code != 4) ck_abort_msg("exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_eq(program_count(r.out, NAME "mma-q64-k32-s1-w4.host"), 2);
  ck_assert_int_gt(tune_having("w.txt", FG_MEASURED_WRONG, "times the error that counts as right"),
                   0);
}

TEST(broken_plan) {
  program_result r = planted("attention/mma/forward.cut", "$(kernel(\"attn_fwd\")) {\n",
                             "$(kernel(\"attn_fwd\")) {\n@ if plan.stages == 1 then\n"
                             "  if (threadIdx.x == 0) return;\n@ end\n");
  if (r.code != 0) ck_abort_msg("exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_eq(tune_having("w.txt", FG_MEASURED_FAULT, "mma-q64-k"), 4);
  ck_assert_int_eq(program_count(r.out, "-s2-w4.host"), 2);
}

TEST(bad_words) {
  static const char shapes[] = "return { { h = 4, nq = 9, b_h = 1 }, { nq = 3 } }";
  scratch_put("s.lua", shapes, sizeof shapes - 1);
  program_refuses(2, "tune needs --shapes FILE.lua", "tune head_dim=16 --wisdom w.txt");
  program_refuses(2, "tune needs --wisdom FILE, where measurements go, or FLASHGEN_WISDOM", TUNE);
  program_refuses(2, "tune takes no sm_margin: wisdom is of launches on a whole GPU",
                  "tune head_dim=16 sm_margin=1 --shapes s.lua --wisdom w.txt");
  program_refuses(2, "device cuda:x: expected host or cuda:N",
                  "tune head_dim=16 --shapes s.lua --wisdom w --device cuda:x");
  program_refuses(2, "--device sm_90a: it compiles only, and nothing is measured there",
                  "tune head_dim=16 --shapes s.lua --wisdom w --device sm_90a");
  program_result r = program_gives(2, "tune head_dim=16 --shapes s.lua --wisdom w --device host");
  program_says(r.err, "s.lua: shape 1: b_h: no such field");
  program_says(r.err, "s.lua: shape 2: h: is missing\n");
  r = program_gives(2, "tune head_dim=16 --shapes nowhere.lua --wisdom w --device host");
  program_says(r.err, "nowhere.lua: cannot be opened: No such file or directory\n");
  r = program_gives(2, "tune head_dim=256 family=wgmma block_kv=128 --shapes " SHAPES
                       " --wisdom w --device host");
  program_says(r.err, "attn_fwd-bf16-d256: no plan fits: ");
  program_says(r.err, "mma-q128-k128-s2-w12: its tiles need 322 KB of shared memory, a block of "
                      "host has 227");
  r = program_gives(2, TUNE "--wisdom w --filter no*");
  program_says(r.err, "no plan matches --filter no*\n");
  r = program_gives(2, "tune head_dim=16 maks=causal --shapes " SHAPES " --wisdom w");
  program_says(r.err, "did you mean \"mask\"?");
  ck_assert_int_ne(access("w", F_OK), 0);
}

TEST(wisdom_command) {
  program_gives(0, TUNE "-q --wisdom w.txt");
  FILE *f = fopen("w.txt", "a");
  fputs("rubbish\nw2\tof tomorrow\n", f);
  fclose(f);
  program_result r = program_gives(0, "wisdom show w.txt");
  program_says(r.err, "w.txt: 1 bad line is passed over; line 9: it is no line of wisdom\n");
  program_says(r.err, "w.txt: 1 line of a newer flashgen is passed over; this one reads ");
  r = program_gives(1, "wisdom verify w.txt");
  ck_assert_str_eq(r.out, "w.txt: 8 measurements, 1 line of a newer flashgen, 1 bad line\n");
  ck_assert_str_eq(r.err, "flashgen: w.txt line 9: it is no line of wisdom\n");
  r = program_gives(3, "wisdom merge other.txt w.txt");
  program_says(r.err, "w.txt line 9: it is no line of wisdom; nothing was merged");
  r = program_gives(0, "wisdom compact w.txt");
  program_says(r.out, "the bad lines are in w.txt.bad\n");
  program_gives(0, "wisdom verify w.txt");
  program_gives(0, "wisdom merge other.txt w.txt");
  ck_assert_int_eq(tune_count("other.txt").newer, 1);
  program_refuses(2,
                  "wisdom: no action \"shwo\" (did you mean \"show\"?); expected show, verify, "
                  "compact, merge",
                  "wisdom shwo");
  program_refuses(2, "wisdom merge: expected the file to merge into, and others", "wisdom merge a");
  program_refuses(3, "nowhere.txt cannot be read: No such file or directory",
                  "wisdom show nowhere.txt");
  program_gives(0, "wisdom show"); /* what is shipped */
  fg_measured other = {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 5, .nk = 5, .align = 16},
                       .generation = 7,
                       .ms = 3,
                       .when = 1};
  strcpy(other.name, "attn_fwd-bf16-d64.wgmma-q1-k2.sm_90a");
  strcpy(other.device, "another GPU");
  ck_assert_int_eq(fg_wisdom_append("w.txt", &other), FG_OK); /* unverified: of no use here */
  r = program_gives(0, "wisdom show w.txt");
  ck_assert_int_eq(program_count(r.out, "another GPU"), 0);
  r = program_gives(0, "wisdom show w.txt --all");
  program_says(r.out,
               "another GPU\nb1 h1/1 5x5              attn_fwd-bf16-d64.wgmma-q1-k2.sm_90a ");
}

/* Whole lines with values of their kinds, which no measurement can have given. */
TEST(nonsense) {
  const fg_measured good = {.name = "attn_fwd-bf16-d64.wgmma-q1-k2.sm_90a",
                            .device = "another GPU",
                            .shape = {.b = 1, .h = 1, .hk = 1, .nq = 5, .nk = 5, .align = 16},
                            .generation = 7,
                            .ms = 3,
                            .when = 1};
  static const char *const why[] = {"its variant is none: spec.plan.arch",
                                    "its shape is none: h is a multiple of hk, and all are 1 at "
                                    "least",
                                    "its time is none", "its error or compile time is none"};
  char file[16], expected[256];
  for (int i = 0; i < 4; i++) {
    fg_measured bad = good;
    if (i == 0) strcpy(bad.name, "x.y");
    if (i == 1) bad.shape.hk = 2;
    if (i == 2) bad.ms = -1;
    if (i == 3) bad.error = NAN;
    snprintf(file, sizeof file, "%d.txt", i);
    ck_assert_int_eq(fg_wisdom_append(file, &good), FG_OK);
    ck_assert_int_eq(fg_wisdom_append(file, &bad), FG_OK);
    program_result r = program_gives(1, "wisdom verify %s", file);
    snprintf(expected, sizeof expected, "flashgen: %s line 2: %s\n", file, why[i]);
    ck_assert_str_eq(r.err, expected);
    program_says(r.out, ": 1 measurement");
    program_says(r.out, ", 1 line that can be of none\n");
  }
}

/* A file of times is what constants are fitted to. */
TEST(fitted) {
  program_gives(0, TUNE "-q --wisdom w.txt");
  ck_assert_int_eq(system(FIT_PROGRAM " -o cost_table.c w.txt > fit.out"), 0);
  ck_assert_int_eq(system("grep -q '^8 times of 4 variants, 2 choices$' fit.out"), 0);
  ck_assert_int_eq(system("grep -q '^ \\* 2 choices on ' cost_table.c"), 0);
  ck_assert_int_ne(system(FIT_PROGRAM " nowhere.txt 2> fit.err"), 0);
  ck_assert_int_eq(system("grep -q '^fit: nowhere.txt cannot be read' fit.err"), 0);
}

TEST_FIXTURE(templates_enter, templates_leave)
