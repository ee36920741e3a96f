/* t_tune_fault.c - `flashgen tune` that is interrupted, out of time, not alone, or on a GPU that
 * fails: what was measured stays, and the next run goes on. */
#include "json.h"
#include "scratch.h"
#include "tune_case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Said before anything is compiled. */
TEST(unwritable_file) {
  program_result r = program_gives(3, TUNE "--wisdom no/where.txt");
  ck_assert_str_eq(r.err, "flashgen: no/where.txt cannot be written: No such file or directory\n");
  r = program_gives(3, TUNE "--wisdom /dev/full");
  ck_assert_str_eq(r.err, "flashgen: /dev/full is no regular file, no file of wisdom\n");
  r = program_gives(3, "tune head_dim=16 --shapes " SHAPES " --wisdom w --device cuda:7");
  program_says(r.err, "flashgen: device cuda:7: ");
  ck_assert_int_ne(access("w", F_OK), 0);
}

/* The disk is full after a line or two: they stay, and the same command goes on. */
TEST(full_disk) {
  enum { LIMIT = 1 << 20, ROOM = 700 }; /* two lines; kernels are smaller than the limit */
  static char comment[LIMIT - ROOM];
  memset(comment, '#', sizeof comment);
  comment[sizeof comment - 1] = '\n';
  scratch_put("w.txt", comment, sizeof comment);
  const int code = system("trap '' XFSZ; ulimit -f 2048; " FLASHGEN_PROGRAM " " TUNE
                          "-q --wisdom w.txt > out.txt 2> err.txt");
  const char *err = program_text("err.txt");
  ck_assert_msg(WIFEXITED(code) && WEXITSTATUS(code) == 3, "exit %x: %s", code, err);
  ck_assert_str_eq(err, "flashgen: w.txt cannot be written: File too large\n"
                        "flashgen: what was measured until then is in w.txt; the same command goes "
                        "on from there\n");
  const fg_wisdom_report before = tune_count("w.txt");
  ck_assert(before.good > 0 && before.good < 8 && before.bad == 0);
  program_result r = program_gives(0, TUNE "-q --wisdom w.txt");
  program_says(r.out, " known");
  ck_assert_int_eq(tune_count("w.txt").good, 8);
}

/* A full TMPDIR says nothing of kernels: no record, and the exit code of a machine. */
TEST(full_tmpdir) {
  const program_setup full = {
      .env = {
          program_compiler("case \"$*\" in *kernel.c*) echo 'cc1: error writing to x.s: No space "
                           "left on device'; exit 1;; esac")}};
  program_result r = program_run(&full, TUNE "-q --wisdom w.txt");
  ck_assert_msg(r.code == 3, "exit %d: %s", r.code, r.err);
  program_says(r.err, "says: No space left on device");
  ck_assert(access("w.txt", F_OK) || tune_count("w.txt").good == 0);
}

/* Lines that are damaged or of a newer flashgen stay where they are, and stop nobody. */
TEST(lines_of_others) {
  static const char lines[] = "w2\tof tomorrow\nrubbish\nw1\ttorn";
  scratch_put("w.txt", lines, sizeof lines - 1);
  program_result said = program_gives(0, TUNE "-q --wisdom w.txt");
  ck_assert_str_eq(said.err,
                   "flashgen: w.txt: 2 bad lines are passed over; line 2: it is no line of wisdom\n"
                   "flashgen: w.txt: 1 line of a newer flashgen is passed over; this one reads "
                   "format 1\n");
  const fg_wisdom_report r = tune_count("w.txt");
  ck_assert_int_eq(r.good, 8);
  ck_assert_int_eq(r.newer, 1);
  ck_assert_int_eq(r.bad, 2);
}

TEST(empty_grids) {
  static const char decode[] = "return { { h = 1, nq = 1, nk = 9, when = function(s) return "
                               "s.head_dim > 999 end } }";
  scratch_put("s.lua", decode, sizeof decode - 1);
  program_refuses(2, "s.lua: no shape is for any of these specs",
                  "tune head_dim=16 family=mma --shapes s.lua --device host --wisdom w.txt");
  program_refuses(2, "--budget: \"soon\" is not an integer of at least 1",
                  TUNE "--wisdom w.txt --budget soon");
  program_result r = program_gives(2, "tune head_dim=16 mask=causal --shapes " SHAPES
                                      " --device host --wisdom w.txt --filter *simt*");
  program_says(r.err, "no plan matches --filter *simt*\n");
  ck_assert_int_ne(access("w.txt", F_OK), 0);
}

/* Ctrl-C: what was measured stays, and the same command goes on. The second shape takes long. */
TEST(interrupted) {
  static const char shapes[] = "return { { h = 1, nq = 9 }, { h = 4, nq = 300 } }";
  static const char words[] = "tune head_dim=16,24,32 family=mma block_q=64 --shapes s.lua "
                              "--device host --wisdom w.txt -q";
  const program_setup group = {.group = 1};
  scratch_put("s.lua", shapes, sizeof shapes - 1);
  program_result r = program_interrupted(&group, "9x9", SIGINT, 1, words);
  ck_assert_msg(r.code == 130, "exit %d: %s%s", r.code, r.out, r.err);
  int before = tune_count("w.txt").good;
  ck_assert_int_ge(before, 4);
  ck_assert_int_lt(before, 24);
  ck_assert_int_eq(tune_count("w.txt").bad, 0);
  r = program_gives(0, "%s", words);
  program_says(r.out, " 4 known\n");
  program_says(r.out, "6 of 6 cells finished");
  ck_assert_int_eq(tune_count("w.txt").good, 24);
}

/* The file of a table is whole after an interrupt, and not there, nor a part of it, when the
 * program was ended at once. */
TEST(interrupted_table) {
  static const char shapes[] = "return { { h = 4, nq = 300 } }";
  static const char words[] = "tune head_dim=16,24,32 family=mma block_q=64 --shapes s.lua "
                              "--device host --wisdom w.txt --json=t.json -q";
  const program_setup group = {.group = 1};
  scratch_put("s.lua", shapes, sizeof shapes - 1);
  program_result r = program_interrupted(&group, NULL, SIGINT, 1, words);
  ck_assert_msg(r.code == 130, "exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_str_eq(r.out, "");
  const char *text = program_text("t.json");
  ck_assert_ptr_null(json_error(text));
  program_says(text, "\"complete\": false}");
  ck_assert_int_eq(unlink("t.json"), 0);
  r = program_interrupted(NULL, NULL, SIGINT, 2, words);
  ck_assert_msg(r.code == 130, "exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_eq(system("ls | grep -q 't[.]json[.]'"), 256); /* no temporary either */
  if (access("t.json", F_OK) == 0) /* it was done before the second one came */
    ck_assert_ptr_null(json_error(program_text("t.json")));
}

/* A compiler so slow that the budget is spent on the first kernel. */
TEST(budget) {
  const program_setup setup = {
      .env = {program_compiler("case \"$*\" in *kernel.c*) sleep 1.2;; esac")}};
  program_result r = program_run(&setup, TUNE "-j 1 --wisdom w.txt --budget 1");
  ck_assert_msg(r.code == 0, "exit %d: %s", r.code, r.err);
  program_says(r.out, "0 of 2 cells finished");
  program_says(r.err, "the budget is spent: the same command goes on where this one ended\n");
  ck_assert_ptr_null(strstr(r.err, "2 failed")); /* what was not begun */
  r = program_run(&setup, TUNE "--wisdom w.txt");
  program_says(r.out, "2 of 2 cells finished");
  ck_assert_int_eq(tune_count("w.txt").good, 8);
}

/* Both finish, and each line is whole. */
TEST(two_at_once) {
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
  ck_assert_int_eq(tune_count("w.txt").bad, 0);
  program_gives(0, "wisdom compact w.txt");
  ck_assert_int_eq(tune_count("w.txt").good, 16);
}

/* A GPU of which a call fails in each process; it computes nothing, so plans that get that far are
 * wrong. */
static program_result on_gpu(const char *fail, const char *more) {
  static char driver[4200], plan[256];
  char here[4096];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  mkdir("lib", 0700);
  if (access("lib/libcuda.so.1", F_OK)) ck_assert_int_eq(symlink(FAKE_CUDA, "lib/libcuda.so.1"), 0);
  snprintf(driver, sizeof driver, "LD_LIBRARY_PATH=%s/lib", here);
  snprintf(plan, sizeof plan, "FAKE_CUDA_FAIL=%s", fail);
  const program_setup setup = {
      .env = {driver, "FLASHGEN_NVRTC=" FAKE_NVRTC, "FAKE_NVRTC_RESULT=0", plan, more}};
  return program_run(&setup,
                     "tune head_dim=16 family=mma block_q=64 --shapes " SHAPES
                     " --wisdom w.txt --device %s",
                     more && strstr(more, "GPUS") ? "cuda:0,cuda:1" : "cuda:0");
}

/* Launches that end the GPU's context: another process goes on with the others. */
TEST(kernels_that_break_a_gpu) {
  program_result r =
      on_gpu("cuLaunchKernelEx 700 7", NULL); /* the second plan's second launch or so */
  ck_assert_msg(r.code == 4, "exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_gt(tune_having("w.txt", FG_MEASURED_FAULT, "its launch ended the GPU's context"),
                   0);
  ck_assert_int_eq(tune_count("w.txt").good, 8);
  program_says(r.out, "2 of 2 cells finished, 0 with a best plan");
}

/* A launch that never ends: its process does, and the plan counts as broken. */
TEST(kernels_that_hang) {
  program_result r = on_gpu("cuEventSynchronize -1 3", "FLASHGEN_TUNE_SECONDS=1");
  ck_assert_msg(r.code == 4, "exit %d: %s%s", r.code, r.out, r.err);
  ck_assert_int_gt(tune_having("w.txt", FG_MEASURED_FAULT,
                               "its launches did not end within 1 seconds (FLASHGEN_TUNE_SECONDS)"),
                   0);
  ck_assert_int_eq(tune_count("w.txt").good, 8);
  program_says(r.out, "2 of 2 cells finished, 0 with a best plan");
}

/* Each has a process. */
TEST(two_gpus) {
  program_result r = on_gpu("none 0 0", "FAKE_CUDA_GPUS=2");
  ck_assert_msg(r.code == 4, "exit %d: %s%s", r.code, r.out, r.err);
  program_says(r.err, "2 cells to measure on 2 devices\n");
  program_says(r.out, "attn_fwd-bf16-d16: no plan has a time  4 WRONG\n");
  ck_assert_int_eq(tune_count("w.txt").good, 8);
  sleep(1); /* plans that were wrong are tried again in the next second's run */
  int wrong = tune_having("w.txt", FG_MEASURED_WRONG, "");
  ck_assert_int_gt(wrong, 0);
  r = on_gpu("none 0 0", "FAKE_CUDA_GPUS=2");
  ck_assert_int_eq(tune_count("w.txt").good, 8 + wrong);
  program_refuses(2, "--device: host is given twice",
                  "tune head_dim=16 --shapes " SHAPES " --wisdom w --device host,host");
}

/* The GPU is gone after it: nothing is said of the plan, what there was is kept, exit 3. */
TEST(lost_gpu) {
  program_result r = on_gpu("cuLaunchKernelEx 700 25 lost", NULL);
  ck_assert_msg(r.code == 3, "exit %d: %s%s", r.code, r.out, r.err);
  program_says(r.err, "device cuda:0: ");
  program_says(r.err, "what was measured until then is in w.txt; the same command goes on from "
                      "there\n");
  ck_assert_ptr_null(strstr(r.err, "budget"));
  ck_assert_int_eq(tune_having("w.txt", FG_MEASURED_FAULT, ""), 0);
  ck_assert_int_eq(tune_count("w.txt").bad, 0);
  int before = tune_count("w.txt").good;
  ck_assert_int_gt(before, 0);
  ck_assert_int_eq(unlink("lost"), 0); /* it is there again */
  r = on_gpu("none 0 0", NULL);
  ck_assert_int_eq(r.code, 4);
  program_gives(0, "wisdom compact w.txt");
  ck_assert_int_eq(tune_count("w.txt").good, 8);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
