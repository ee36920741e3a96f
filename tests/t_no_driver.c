/* t_no_driver.c - the program on machines whose CUDA driver is missing, is none or does not start.
 */
#include "program.h"

#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The loader looks in ./lib first. */
static void expect(const char *variable, const char *sentence) {
  char path[4200], here[4096];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s/lib", here);
  const program_setup setup = {.env = {path, variable}};
  program_result r = program_run(&setup, "check head_dim=8 --device cuda:0 -q");
  ck_assert_msg(r.code == 3, "exit %d: %s", r.code, r.err);
  program_says(r.err, sentence);
  ck_assert_int_eq(program_count(r.err, "\n"), 1);
  ck_assert_str_eq(r.out, "");
  r = program_run(&setup, "check head_dim=8 b=1 h=1 nq=5 nk=5 -q"); /* else the host device */
  ck_assert_msg(r.code == 0, "exit %d: %s", r.code, r.err);
}

static void enter(void) {
  scratch_enter();
  ck_assert_int_eq(mkdir("lib", 0700), 0);
}

START_TEST(garbage) {
  static const char rubbish[4096] = "no library";
  scratch_put("lib/libcuda.so.1", rubbish, sizeof rubbish);
  expect("FLASHGEN_TEST", "device cuda:0: no CUDA driver: ");
}
END_TEST

START_TEST(another_library) {
  ck_assert_int_eq(symlink(FAKE_NVRTC, "lib/libcuda.so.1"), 0);
  expect("FLASHGEN_TEST", "device cuda:0: libcuda.so.1 is no driver of CUDA 12.0 or newer: it has "
                          "no cuInit\n");
}
END_TEST

START_TEST(no_gpu) {
  ck_assert_int_eq(symlink(FAKE_CUDA, "lib/libcuda.so.1"), 0);
  expect("FAKE_CUDA_INIT=100",
         "device cuda:0: the CUDA driver does not start: CUDA_ERROR_100 (an error of the test)\n");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("no_driver");
  TCase *tests = tcase_create("no_driver");
  tcase_add_checked_fixture(tests, enter, scratch_leave);
  tcase_add_test(tests, garbage);
  tcase_add_test(tests, another_library);
  tcase_add_test(tests, no_gpu);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
