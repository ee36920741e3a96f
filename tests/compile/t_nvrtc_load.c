/* t_nvrtc_load.c - an NVRTC that is missing, is none, is too old or is not whole; and the options
 * that each version gets. The tests bring their own: fake_nvrtc.c. */
#include "suite.h"

#include "cuda/nvrtc.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const fg_nvrtc *nvrtc;

/* NVRTC is looked for once a process: each test is one. */
static void expect_none(const char *file, const char *sentence) {
  setenv("FLASHGEN_NVRTC", file, 1);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(fg_nvrtc_load(&nvrtc), FG_EENVIRONMENT);
    ck_assert_str_eq(fg_error(), sentence);
  }
}

TEST(missing) {
  expect_none("/nonexistent/libnvrtc.so",
              "NVRTC is not to be found: tried /nonexistent/libnvrtc.so; FLASHGEN_NVRTC names its "
              "file");
}

TEST(garbage) {
  static const char rubbish[4096] = "no library";
  scratch_put("libnvrtc.so", rubbish, sizeof rubbish);
  expect_none("./libnvrtc.so", "NVRTC is not to be found: tried ./libnvrtc.so (./libnvrtc.so: "
                               "invalid ELF header); FLASHGEN_NVRTC names its file");
}

TEST(directory) {
  ck_assert_int_eq(mkdir("lib", 0700), 0);
  expect_none("./lib", "NVRTC is not to be found: tried ./lib (./lib: cannot read file data: Is a "
                       "directory); FLASHGEN_NVRTC names its file");
}

TEST(another_library) {
  expect_none("libm.so.6", "libm.so.6 is no NVRTC of CUDA 12.3 or newer: it has no nvrtcVersion");
}

TEST_LOOP(too_old, 2) {
  static const char *const versions[] = {"11.8", "12.2"};
  char sentence[512];
  setenv("FAKE_NVRTC_VERSION", versions[_i], 1);
  snprintf(sentence, sizeof sentence,
           FAKE_NVRTC " is the NVRTC of CUDA %s; 12.3 or newer is needed", versions[_i]);
  expect_none(FAKE_NVRTC, sentence);
}

static fg_status compile(void) {
  fg_cubin cubin;
  return fg_nvrtc_compile(nvrtc, "x", "text", 4, "sm_90a", &cubin);
}

static void load(const char *version, const char *result) {
  setenv("FLASHGEN_NVRTC", FAKE_NVRTC, 1);
  setenv("FAKE_NVRTC_VERSION", version, 1);
  setenv("FAKE_NVRTC_RESULT", result, 1);
  ck_assert_msg(fg_nvrtc_load(&nvrtc) == FG_OK, "%s", fg_error());
}

TEST_LOOP(options_by_version, 5) {
  static const struct {
    const char *version, *options;
    int number;
  } rows[] = {{"12.3", "-arch=sm_90a -std=c++17 --modify-stack-limit=false -Xptxas=-v ", 12030},
              {"12.4",
               "-arch=sm_90a -std=c++17 --minimal --no-source-include --modify-stack-limit=false "
               "-Xptxas=-v ",
               12040},
              {"12.8",
               "-arch=sm_90a -std=c++17 --minimal --no-source-include --modify-stack-limit=false "
               "-Xptxas=-v ",
               12080},
              {"12.9",
               "-arch=sm_90a -std=c++17 --minimal --no-source-include --modify-stack-limit=false "
               "--no-cache -Xptxas=-v ",
               12090},
              {"13.0",
               "-arch=sm_90a -std=c++17 --minimal --no-source-include --modify-stack-limit=false "
               "--no-cache -Xptxas=-v ",
               13000}};
  char sentence[512], key[512];
  load(rows[_i].version, "6");
  ck_assert_int_eq(fg_nvrtc_version(nvrtc), rows[_i].number);
  ck_assert_int_eq(compile(), FG_ECOMPILER);
  snprintf(sentence, sizeof sentence, "x: result 6\n%s\nan error", rows[_i].options);
  ck_assert_str_eq(fg_error(), sentence);
  fg_nvrtc_options_key(sizeof key, key); /* the table, whatever the version */
  ck_assert_str_eq(key, "-std=c++17@0 --minimal@12040 --no-source-include@12040 "
                        "--modify-stack-limit=false@0 --no-cache@12090 -Xptxas=-v@0");
}

TEST(without_builtins) {
  load("12.4", "7");
  ck_assert_int_eq(compile(), FG_EENVIRONMENT);
  ck_assert_str_eq(fg_error(),
                   FAKE_NVRTC " lacks its builtins library, which lies beside it: -arch=sm_90a "
                              "-std=c++17 --minimal --no-source-include "
                              "--modify-stack-limit=false -Xptxas=-v ");
}

/* With figures asked for, 13.0 drops the error of ptxas: then it is asked without. What a second
 * attempt does not explain either is told as the first one was. */
TEST_LOOP(error_behind_figures, 4) {
  static const char *const silent[] = {"1", "2"}, *const log[] = {"an error", "figures"};
  char sentence[512];
  setenv("FAKE_NVRTC_SILENT", silent[_i / 2], 1);
  load("12.3", _i % 2 ? "16" : "6");
  ck_assert_int_eq(compile(), FG_ECOMPILER);
  snprintf(sentence, sizeof sentence,
           "x: result 6\n-arch=sm_90a -std=c++17 --modify-stack-limit=false %s\n%s",
           _i / 2 ? "-Xptxas=-v " : "", log[_i / 2]);
  ck_assert_str_eq(fg_error(), sentence);
}

/* NVRTC says "cancelled" of failures behind a cancel; we did not cancel this one. */
TEST(cancelled_by_nobody) {
  load("12.9", "16");
  ck_assert_int_eq(compile(), FG_ECOMPILER);
  ck_assert_ptr_nonnull(strstr(fg_error(), "x: result 6\n"));
}

TEST_FIXTURE(scratch_enter, scratch_leave)
