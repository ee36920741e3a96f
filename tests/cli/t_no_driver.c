/* t_no_driver.c - the program on machines whose CUDA driver is missing, is none or does not start.
 */
#include "program.h"

#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL "head_dim=8 b=1 h=1 nq=5 nk=5 "

/* One line on stderr: what is said, the reason in it. */
static void says_once(program_result r, int code, const char *start, const char *reason,
                      const char *end) {
  ck_assert_msg(r.code == code, "exit %d: %s", r.code, r.err);
  ck_assert_int_eq(program_count(r.err, "\n"), 1);
  ck_assert_msg(!strncmp(r.err, start, strlen(start)), "%s", r.err);
  program_says(r.err, reason);
  program_says(r.err, end);
}

/* The loader looks in ./lib first. Where nobody names a device, what judges numbers goes to the
 * host device and says why; what measures does not. */
static void expect(const char *variable, const char *reason) {
  char path[4200], here[4096];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s/lib", here);
  const program_setup setup = {.env = {path, "FLASHGEN_DEVICE", variable}};
  static const char refused[] = "flashgen: no GPU to measure on (",
                    way[] = "); --device host measures on the host device\n";
  program_result r = program_run(&setup, "check head_dim=8 --device cuda:0 -q");
  says_once(r, 3, "flashgen: device cuda:0: ", reason, "\n");
  ck_assert_str_eq(r.out, "");
  r = program_run(&setup, "check " SMALL "-q");
  says_once(r, 0, "flashgen: no GPU can be used (", reason, "): --device host\n");
  program_says(r.out, "device host, seed ");
  says_once(program_run(&setup, "bench " SMALL), 3, refused, reason, way);
  r = program_run(&setup, "tune head_dim=8 --shapes x.lua --wisdom w.txt");
  says_once(r, 3, refused, reason, way);
  ck_assert_int_ne(access("w.txt", F_OK), 0);
  r = program_run(&setup, "bench " SMALL "--device host");
  ck_assert_msg(r.code == 0 && !*r.err, "exit %d: %s", r.code, r.err);
}

static void enter(void) {
  scratch_enter();
  ck_assert_int_eq(mkdir("lib", 0700), 0);
}

TEST(garbage) {
  static const char rubbish[4096] = "no library";
  scratch_put("lib/libcuda.so.1", rubbish, sizeof rubbish);
  expect("FLASHGEN_TEST", "no CUDA driver: ");
}

TEST(another_library) {
  ck_assert_int_eq(symlink(FAKE_NVRTC, "lib/libcuda.so.1"), 0);
  expect("FLASHGEN_TEST", "libcuda.so.1 is no driver of CUDA 12.0 or newer: it has no cuInit");
}

TEST(no_gpu) {
  ck_assert_int_eq(symlink(FAKE_CUDA, "lib/libcuda.so.1"), 0);
  expect("FAKE_CUDA_INIT=100",
         "the CUDA driver does not start: CUDA_ERROR_100 (an error of the test)");
}

/* Said once for all, it is nothing to be warned of, and what is not there is an error. */
TEST(said_by_the_environment) {
  const program_setup host = {.env = {"FLASHGEN_DEVICE=host"}};
  const program_setup none = {.env = {"FLASHGEN_DEVICE=cuda:900"}};
  const program_setup bad = {.env = {"FLASHGEN_DEVICE=gpu"}};
  program_result r = program_run(&host, "bench " SMALL);
  ck_assert_msg(r.code == 0 && !*r.err, "exit %d: %s", r.code, r.err);
  r = program_run(&none, "check " SMALL "-q");
  says_once(r, 3, "flashgen: FLASHGEN_DEVICE: device cuda:900: ", "", "\n");
  says_once(program_run(&bad, "check " SMALL "-q"), 2,
            "flashgen: FLASHGEN_DEVICE: device gpu: expected host or cuda:N\n", "", "");
}

TEST_FIXTURE(enter, scratch_leave)
