/* t_tune.c - `flashgen tune` and `flashgen wisdom` on the host device, and on a GPU that fails. */
#include "json.h"
#include "npy.h"
#include "program.h"
#include "scratch.h"
#include "templates.h"
#include "wisdom.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Four plans at two shapes. */
#define SHAPES FLASHGEN_SOURCE "/specs/shapes/small.lua"
#define FOUR   "family=mma block_q=64 --shapes " SHAPES " --device host "
#define TUNE   "tune head_dim=16 " FOUR
#define NAME   "attn_fwd-bf16-d16."

static fg_wisdom_report count(const char *file) {
  fg_wisdom w;
  fg_wisdom_report r;
  ck_assert_msg(fg_wisdom_read(file, false, &w) == FG_OK, "%s", fg_error());
  fg_wisdom_count(&w, &r);
  fg_wisdom_free(&w);
  return r;
}

static fg_measured_list list_of(const char *file) {
  fg_wisdom w;
  fg_measured_list list = {0};
  ck_assert_int_eq(fg_wisdom_read(file, false, &w), FG_OK);
  ck_assert_int_eq(fg_measured_add(w.text, w.n, &list), FG_OK);
  fg_wisdom_free(&w);
  fg_measured_sort(&list);
  return list;
}

/* Lines of the status, and that all of them have a reason or none. */
static int having(const char *file, fg_measured_status status, const char *reason) {
  fg_measured_list list = list_of(file);
  int n = 0;
  for (int i = 0; i < list.n; i++) {
    if (list.item[i]->status != status) continue;
    n++;
    if (reason)
      program_says(list.item[i]->reason, reason);
    else
      ck_assert_str_eq(list.item[i]->reason, "");
  }
  fg_measured_free(&list);
  return n;
}

START_TEST(measures_once) {
  program_result r = program_gives(0, TUNE "--wisdom w.txt");
  ck_assert_int_eq(program_count(r.out, "\n"), 3);
  program_says(r.out, "b1 h2/1 40x72            " NAME "mma-q64-k");
  program_says(r.out, "b1 h1/1 1x130            " NAME "mma-q64-k");
  program_says(r.out, "\n2 of 2 cells finished, 2 have a best plan; w.txt\n");
  program_says(r.err, "4 plans to compile\n");
  program_says(r.err, "2 cells to measure on 1 device\n");
  ck_assert_int_eq(count("w.txt").good, 8);
  fg_measured_list list = list_of("w.txt");
  for (int i = 0; i < list.n; i++) {
    const fg_measured *m = list.item[i];
    ck_assert_str_eq(m->device, "host");
    ck_assert(m->ms > 0 && m->generation == 1 && m->compile > 0 && m->when > 0);
    ck_assert(m->status == FG_MEASURED_OK || m->status == FG_MEASURED_SLOW);
    ck_assert(m->status == FG_MEASURED_SLOW || (m->verified && m->error > 0 && m->error < 1));
  }
  ck_assert(fg_measured_counts(list.item[0]));
  fg_measured_free(&list);
  r = program_gives(0, TUNE "--wisdom w.txt -q");
  ck_assert_str_eq(r.err, "");
  ck_assert_int_eq(program_count(r.out, " 4 known\n"), 2);
  ck_assert_int_eq(count("w.txt").good, 8); /* not a line more */
}
END_TEST

/* Another generation is measured again. */
START_TEST(generations) {
  const program_setup changed = {.env = {"FLASHGEN_TEMPLATES=t"}};
  program_gives(0, TUNE "--wisdom w.txt -q");
  templates_change("attention/mma_forward.lua", "local tiles",
                   "family.generation = 2\nlocal tiles");
  program_result r = program_run(&changed, TUNE "--wisdom w.txt -q");
  ck_assert_msg(r.code == 0, "%s", r.err);
  ck_assert_int_eq(program_count(r.out, " known"), 0);
  ck_assert_int_eq(count("w.txt").good, 16);
  r = program_run(&changed, TUNE "--wisdom w.txt -q");
  ck_assert_int_eq(program_count(r.out, " 4 known\n"), 2);
}
END_TEST

/* What it wrote is what the library goes by, and says so. */
START_TEST(library_goes_by_it) {
  const program_setup with = {.env = {"FLASHGEN_WISDOM=w.txt", "FLASHGEN_VERBOSE=dispatch"}};
  program_gives(0, TUNE "-q --wisdom w.txt");
  fg_measured_list list = list_of("w.txt");
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
END_TEST

/* Parts of a grid, and joined. */
START_TEST(shards) {
  program_gives(0, TUNE "-q --wisdom all.txt");
  for (int i = 1; i <= 2; i++) {
    program_result r = program_gives(0, TUNE "-q --wisdom part%d.txt --shard %d/2", i, i);
    program_says(r.out, "1 of 1 cells finished");
  }
  program_result r = program_gives(0, "wisdom merge joined.txt part1.txt part2.txt");
  ck_assert_str_eq(r.out, "joined.txt: 8 measurements\n");
  r = program_gives(0, TUNE "-q --wisdom joined.txt");
  ck_assert_int_eq(program_count(r.out, " 4 known\n"), 2);
  program_gives(0, "wisdom merge joined.txt all.txt");
  ck_assert_int_eq(count("joined.txt").good, 8);
  program_gives(0, TUNE "-q --wisdom part3.txt --shard 3/3"); /* no cell is left for it */
  program_refuses(2, "--shard 3/2: expected I/N, from 1/N to N/N", TUNE "--wisdom w --shard 3/2");
  program_refuses(2, "--shard 0/2: expected I/N, from 1/N to N/N", TUNE "--wisdom w --shard 0/2");
  program_refuses(2, "--shard 1: expected I/N, from 1/N to N/N", TUNE "--wisdom w --shard 1");
}
END_TEST

START_TEST(tables) {
  program_result r = program_gives(0, TUNE "-q --wisdom w.txt --json");
  const char *bad = json_error(r.out);
  ck_assert_msg(!bad, "no JSON at: %s", bad);
  ck_assert_int_eq(program_count(r.out, "\"variant\": "), 8);
  program_says(r.out, "\"shape\": [1,2,1,40,72,16]");
  program_says(r.out, "\"cells\": 2, \"finished\": 2, \"failed\": 0, \"wrong\": 0, \"complete\": "
                      "true}\n");
  r = program_gives(0, TUNE "-q --wisdom w.txt --csv");
  ck_assert_int_eq(program_count(r.out, "\n"), 9);
  program_says(r.out, "variant,device,multiprocessors,shape,generation,status,ms,error,");
  program_says(r.out, ",\"1,2,1,40,72,16\",1,");
  r = program_gives(0, "wisdom show w.txt --json --all");
  ck_assert_ptr_null(json_error(r.out));
  ck_assert_int_eq(program_count(r.out, "\"variant\": "), 8);
  r = program_gives(0, "wisdom show w.txt");
  program_says(r.out, "\n2 of 8 measurements\n");
  r = program_gives(0, "wisdom show w.txt --csv --all --filter *s1*");
  ck_assert_int_eq(program_count(r.out, "\n"), 5);
}
END_TEST

START_TEST(bench_table) {
  program_result r = program_gives(0, "bench head_dim=16 family=simt nq=16 --csv --device host");
  ck_assert_int_eq(program_count(r.out, "\n"), 2);
  program_says(r.out, "name,b,h,hk,nq,nk,ms,tflops,tb_per_s\n");
  program_says(r.out, "\nattn_fwd-bf16-d16.simt-q16-k32-w4.host,1,1,1,16,16,");
  program_refuses(2, "--json and --csv: give one of them", "bench head_dim=16 --json --csv");
  program_refuses(2, "--json and --csv: give one of them", TUNE "--wisdom w --json --csv");
}
END_TEST

/* Plans that are wrong, broken or do not compile: kept with their reason, and others win. */
static program_result planted(const char *file, const char *from, const char *to) {
  const program_setup setup = {.env = {"FLASHGEN_TEMPLATES=t"}};
  templates_change(file, from, to);
  return program_run(&setup, TUNE "-q --wisdom w.txt");
}

START_TEST(refused_plan) {
  program_result r =
      planted("attention/mma_forward.cut", "$(kernel(\"attn_fwd\")) {\n",
              "$(kernel(\"attn_fwd\")) {\n@ if plan.block_kv == 64 then\n  broken;\n@ end\n");
  ck_assert_msg(r.code == 0, "%s", r.err);
  ck_assert_int_eq(program_count(r.out, ", 2 refused\n"), 2);
  ck_assert_int_eq(having("w.txt", FG_MEASURED_REFUSED, "refused it (exit 1)"), 4);
  ck_assert_int_eq(program_count(r.out, "mma-q64-k32-"), 2);
}
END_TEST

START_TEST(wrong_plan) {
  program_result r = planted("attention/mma_forward.cut", "$(kernel(\"attn_fwd\")) {\n",
                             "$(kernel(\"attn_fwd\")) {\n@ if plan.block_kv == 64 then\n"
                             "  if (blockIdx.x == 1) return;\n@ end\n");
  if (r.code != 4) ck_abort_msg("exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_gt(having("w.txt", FG_MEASURED_WRONG, "times the error that counts as right"), 0);
  ck_assert_int_eq(program_count(r.out, NAME "mma-q64-k32-"), 2); /* the others win */
}
END_TEST

/* As long as the fastest are wrong, the next ones are tried. */
START_TEST(most_plans_are_wrong) {
  program_result r = planted("attention/mma_forward.cut", "$(kernel(\"attn_fwd\")) {\n",
                             "$(kernel(\"attn_fwd\")) {\n@ if plan.block_kv == 64 or plan.stages "
                             "== 2 then\n  if (blockIdx.x < 4) return;\n@ end\n");
  if (r.code != 4) ck_abort_msg("exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_eq(program_count(r.out, NAME "mma-q64-k32-s1-w4.host"), 2);
  ck_assert_int_gt(having("w.txt", FG_MEASURED_WRONG, "times the error that counts as right"), 0);
}
END_TEST

START_TEST(broken_plan) {
  program_result r = planted("attention/mma_forward.cut", "$(kernel(\"attn_fwd\")) {\n",
                             "$(kernel(\"attn_fwd\")) {\n@ if plan.stages == 1 then\n"
                             "  if (threadIdx.x == 0) return;\n@ end\n");
  if (r.code != 0) ck_abort_msg("exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_eq(having("w.txt", FG_MEASURED_FAULT, "mma-q64-k"), 4);
  ck_assert_int_eq(program_count(r.out, "-s2-w4.host"), 2);
}
END_TEST

START_TEST(bad_words) {
  static const char shapes[] = "return { { h = 4, nq = 9, b_h = 1 }, { nq = 3 } }";
  scratch_put("s.lua", shapes, sizeof shapes - 1);
  program_refuses(2, "tune needs --shapes FILE.lua", "tune head_dim=16 --wisdom w.txt");
  program_refuses(2, "tune needs --wisdom FILE, where measurements go, or FLASHGEN_WISDOM", TUNE);
  program_refuses(2, "device cuda:x: expected host or cuda:N",
                  "tune head_dim=16 --shapes s.lua --wisdom w --device cuda:x");
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
END_TEST

/* Said before anything is compiled. */
START_TEST(unwritable_file) {
  program_result r = program_gives(3, TUNE "--wisdom no/where.txt");
  ck_assert_str_eq(r.err, "flashgen: no/where.txt cannot be written: No such file or directory\n");
  r = program_gives(3, TUNE "--wisdom /dev/full");
  ck_assert_str_eq(r.err, "flashgen: /dev/full is no regular file, no file of wisdom\n");
  r = program_gives(3, "tune head_dim=16 --shapes " SHAPES " --wisdom w --device cuda:7");
  program_says(r.err, "flashgen: device cuda:7: ");
  ck_assert_int_ne(access("w", F_OK), 0);
}
END_TEST

/* Ctrl-C: what was measured stays, and the same command goes on. */
START_TEST(interrupted) {
  const program_setup group = {.group = 1};
  program_result r = program_interrupted(&group, "40x72", SIGINT, 1,
                                         "tune head_dim=16,24,32,40 " FOUR "-j 1 --wisdom w.txt");
  ck_assert_msg(r.code == 130, "exit %d: %s%s", r.code, r.out, r.err);
  program_says(r.err, "interrupted: the same command goes on where this one ended\n");
  int before = count("w.txt").good;
  ck_assert_int_ge(before, 4);
  ck_assert_int_lt(before, 32);
  ck_assert_int_eq(count("w.txt").bad, 0);
  r = program_gives(0, "tune head_dim=16,24,32,40 " FOUR "-q --wisdom w.txt");
  program_says(r.out, " 4 known\n");
  program_says(r.out, "8 of 8 cells finished");
  ck_assert_int_eq(count("w.txt").good, 32);
}
END_TEST

/* A compiler so slow that the budget is spent on the first kernel. */
START_TEST(budget) {
  static const char script[] = "#!/bin/sh\ncase \"$*\" in *kernel.c*) sleep 1.2;; esac\n"
                               "exec cc \"$@\"\n";
  char here[2048], cc[2200];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  snprintf(cc, sizeof cc, "FLASHGEN_CC=%s/cc.sh", here);
  scratch_put("cc.sh", script, sizeof script - 1);
  ck_assert_int_eq(chmod("cc.sh", 0755), 0);
  const program_setup setup = {.env = {cc}};
  program_result r = program_run(&setup, TUNE "-j 1 --wisdom w.txt --budget 1");
  ck_assert_msg(r.code == 0, "exit %d: %s", r.code, r.err);
  program_says(r.out, "0 of 2 cells finished");
  program_says(r.err, "the budget is spent: the same command goes on where this one ended\n");
  r = program_run(&setup, TUNE "--wisdom w.txt");
  program_says(r.out, "2 of 2 cells finished");
  ck_assert_int_eq(count("w.txt").good, 8);
}
END_TEST

/* Both finish, and each line is whole. */
START_TEST(two_at_once) {
  pid_t pid[2];
  for (int i = 0; i < 2; i++)
    if (!(pid[i] = fork())) {
      program_result r = program_run(NULL, "tune head_dim=16,24 " FOUR "-q --wisdom w.txt");
      _exit(r.code);
    }
  for (int i = 0; i < 2; i++) {
    int state;
    ck_assert_int_eq(waitpid(pid[i], &state, 0), pid[i]);
    ck_assert_int_eq(state, 0);
  }
  ck_assert_int_eq(count("w.txt").bad, 0);
  program_gives(0, "wisdom compact w.txt");
  ck_assert_int_eq(count("w.txt").good, 16);
}
END_TEST

START_TEST(wisdom_command) {
  program_gives(0, TUNE "-q --wisdom w.txt");
  FILE *f = fopen("w.txt", "a");
  fputs("rubbish\nw2\tof tomorrow\n", f);
  fclose(f);
  program_result r = program_gives(1, "wisdom verify w.txt");
  ck_assert_str_eq(r.out, "w.txt: 8 measurements, 1 lines of a newer flashgen, 1 bad lines\n");
  ck_assert_str_eq(r.err, "flashgen: w.txt line 9: it is no line of wisdom\n");
  r = program_gives(3, "wisdom merge other.txt w.txt");
  program_says(r.err, "w.txt line 9: it is no line of wisdom; nothing was merged");
  r = program_gives(0, "wisdom compact w.txt");
  program_says(r.out, "the bad lines are in w.txt.bad\n");
  program_gives(0, "wisdom verify w.txt");
  program_gives(0, "wisdom merge other.txt w.txt");
  ck_assert_int_eq(count("other.txt").newer, 1);
  program_refuses(2,
                  "wisdom: no action \"shwo\" (did you mean \"show\"?); expected show, verify, "
                  "compact, merge",
                  "wisdom shwo");
  program_refuses(2, "wisdom merge: expected the file to merge into, and others", "wisdom merge a");
  program_refuses(3, "nowhere.txt cannot be read: No such file or directory",
                  "wisdom show nowhere.txt");
  program_gives(0, "wisdom show"); /* what is shipped */
}
END_TEST

/* The commands of the README's section, but for those that want a GPU, as a shell runs them. */
START_TEST(readme_example) {
  static char readme[1 << 17];
  int commands = 0;
  FILE *file = fopen(FLASHGEN_SOURCE "/README.md", "r");
  ck_assert_ptr_nonnull(file);
  readme[fread(readme, 1, sizeof readme - 1, file)] = 0;
  fclose(file);
  char *section = strstr(readme, "## Autotuning");
  ck_assert_ptr_nonnull(section);
  char *end = strstr(section, "\n## ");
  ck_assert_ptr_nonnull(end);
  *end = 0;
  ck_assert_int_eq(symlink(FLASHGEN_SOURCE "/specs", "specs"), 0);
  for (char *line = strtok(section, "\n"); line; line = strtok(NULL, "\n")) {
    if (strncmp(line, "    flashgen ", 13)) continue;
    if (!strncmp(line + 13, "tune", 4) && !strstr(line, "--device host")) continue;
    program_gives(0, "%s", line + 13);
    commands++;
  }
  ck_assert_int_eq(commands, 6);
  ck_assert_int_eq(count("mine.txt").good, 16);
  ck_assert_int_eq(count("all.txt").good, 16);
}
END_TEST

/* Constants that are fitted to a file reach the recipes. */
START_TEST(fitted) {
  const program_setup with = {.env = {"FLASHGEN_TEMPLATES=t"}};
  program_gives(0, TUNE "-q --wisdom w.txt");
  ck_assert_int_eq(system(FIT_PROGRAM " -o t/attention/cost.lua w.txt > fit.out"), 0);
  ck_assert_int_eq(system("grep -q '^8 times of 4 plans, 2 choices$' fit.out"), 0);
  program_result r = program_run(&with, "emit --recipe " NAME "mma-q64-k32-s1-w4.host");
  ck_assert_msg(r.code == 0, "%s", r.err);
  program_says(r.out, "\ncost scale ");
  r = program_gives(0, "emit --recipe " NAME "mma-q64-k32-s1-w4.host");
  ck_assert_int_ne(system(FIT_PROGRAM " nowhere.txt 2> fit.err"), 0);
  ck_assert_int_eq(system("grep -q '^fit: nowhere.txt cannot be read' fit.err"), 0);
}
END_TEST

/* A GPU of which a call fails in each process; it computes nothing, so plans that get that far are
 * wrong. */
static program_result on_gpu(const char *fail) {
  static char driver[4200], plan[256];
  char here[4096];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  mkdir("lib", 0700);
  if (access("lib/libcuda.so.1", F_OK)) ck_assert_int_eq(symlink(FAKE_CUDA, "lib/libcuda.so.1"), 0);
  snprintf(driver, sizeof driver, "LD_LIBRARY_PATH=%s/lib", here);
  snprintf(plan, sizeof plan, "FAKE_CUDA_FAIL=%s", fail);
  const program_setup setup = {
      .env = {driver, "FLASHGEN_NVRTC=" FAKE_NVRTC, "FAKE_NVRTC_RESULT=0", plan}};
  return program_run(&setup, "tune head_dim=16 family=mma block_q=64 --shapes " SHAPES
                             " -q --wisdom w.txt --device cuda:0");
}

/* Launches that end the GPU's context: another process goes on with the others. */
START_TEST(kernels_that_break_a_gpu) {
  program_result r = on_gpu("cuLaunchKernel 700 7"); /* the second plan's second launch or so */
  ck_assert_msg(r.code == 4, "exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_gt(having("w.txt", FG_MEASURED_FAULT, "its launch ended the GPU's context"), 0);
  ck_assert_int_eq(count("w.txt").good, 8);
  program_says(r.out, "2 of 2 cells finished, 0 have a best plan");
}
END_TEST

/* The GPU is gone after it: nothing is said of the plan, what there was is kept, exit 3. */
START_TEST(lost_gpu) {
  program_result r = on_gpu("cuLaunchKernel 700 25 lost");
  ck_assert_msg(r.code == 3, "exit %d: %s%s", r.code, r.out, r.err);
  program_says(r.err, "device cuda:0: ");
  program_says(r.err, "what was measured until then is in w.txt\n");
  ck_assert_int_eq(having("w.txt", FG_MEASURED_FAULT, ""), 0);
  ck_assert_int_eq(count("w.txt").bad, 0);
  int before = count("w.txt").good;
  ck_assert_int_gt(before, 0);
  ck_assert_int_eq(unlink("lost"), 0); /* it is there again */
  r = on_gpu("none 0 0");
  ck_assert_int_eq(r.code, 4);
  ck_assert_int_eq(count("w.txt").good, 8);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tune");
  TCase *tests = tcase_create("tune");
  tcase_add_checked_fixture(tests, templates_enter, templates_leave);
  tcase_add_test(tests, measures_once);
  tcase_add_test(tests, generations);
  tcase_add_test(tests, library_goes_by_it);
  tcase_add_test(tests, shards);
  tcase_add_test(tests, tables);
  tcase_add_test(tests, bench_table);
  tcase_add_test(tests, refused_plan);
  tcase_add_test(tests, wrong_plan);
  tcase_add_test(tests, most_plans_are_wrong);
  tcase_add_test(tests, broken_plan);
  tcase_add_test(tests, bad_words);
  tcase_add_test(tests, unwritable_file);
  tcase_add_test(tests, interrupted);
  tcase_add_test(tests, budget);
  tcase_add_test(tests, two_at_once);
  tcase_add_test(tests, wisdom_command);
  tcase_add_test(tests, readme_example);
  tcase_add_test(tests, fitted);
  tcase_add_test(tests, kernels_that_break_a_gpu);
  tcase_add_test(tests, lost_gpu);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
