/* t_npy_write.c - writing .npy files: what is written comes back, whole or not at all. */
#include "base/error.h"
#include "reference/npy.h"
#include "scratch.h"
#include "status.h"
#include "suite.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const float six[] = {0, 1, -2, 0.5f, 1e-40f, 3e38f};
static fg_array array;

static void leave(void) {
  fg_array_free(&array);
  scratch_leave();
}

static void reads(void) {
  ck_assert_msg(fg_npy_read("q", "x.npy", &array) == FG_OK, "%s", fg_error());
}

/* More than one read buffer, and not a multiple of it. */
TEST(test_large) {
  int64_t extent[] = {3, 100003};
  float *x = malloc((size_t)(extent[0] * extent[1]) * sizeof *x);
  for (int64_t i = 0; i < extent[0] * extent[1]; i++) x[i] = (float)i;
  ck_assert_int_eq(fg_npy_write("x.npy", 2, extent, x), FG_OK);
  reads();
  ck_assert_int_eq(array.count, extent[0] * extent[1]);
  ck_assert_int_eq(memcmp(array.real, x, (size_t)array.count * sizeof *x), 0);
  free(x);
}

TEST(test_round_trip) {
  static const struct {
    int rank;
    int64_t extent[FG_NPY_RANK];
    int64_t count;
  } shape[] = {{0, {1, 1, 1, 1, 1}, 1}, {1, {6, 1, 1, 1, 1}, 6}, {2, {3, 2, 1, 1, 1}, 6},
               {4, {1, 2, 3, 1, 1}, 6}, {5, {1, 1, 3, 1, 2}, 6}, {3, {2, 0, 3, 1, 1}, 0}};
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
    ck_assert_int_eq(fg_npy_write("x.npy", shape[i].rank, shape[i].extent, six), FG_OK);
    reads();
    ck_assert_int_eq(array.rank, shape[i].rank);
    ck_assert_mem_eq(array.extent, shape[i].extent, sizeof array.extent);
    ck_assert_mem_eq(array.real, six, (size_t)shape[i].count * sizeof *six);
    ck_assert_int_eq(scratch_files(), 1);
    fg_array_free(&array);
  }
}

/* Integers of 32 bits keep all of them. */
TEST(test_integers) {
  const int64_t x[] = {0, -1, INT32_MAX, INT32_MIN, 0x55555555, 7};
  char *staged;
  ck_assert_int_eq(fg_npy_stage_integers("x.npy", 2, (int64_t[]){2, 3}, x, &staged), FG_OK);
  ck_assert_int_eq(fg_npy_publish(staged, "x.npy"), FG_OK);
  reads();
  ck_assert_str_eq(array.type, "i4");
  ck_assert_int_eq(array.count, 6);
  ck_assert_mem_eq(array.integer, x, sizeof x);
}

TEST(test_nonfinite) {
  float x[] = {NAN, INFINITY, -INFINITY, -0.0f};
  ck_assert_int_eq(fg_npy_write("x.npy", 1, (int64_t[]){4}, x), FG_OK);
  reads();
  ck_assert_mem_eq(array.real, x, sizeof x);
}

/* The bytes that numpy.save writes for the same array. */
TEST(test_written_bytes) {
  static const char expected[] =
      "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }           "
      "                                                 \n\x00\x00\x80?";
  char file[sizeof expected] = "";
  float one = 1;
  ck_assert_int_eq(fg_npy_write("x.npy", 1, (int64_t[]){1}, &one), FG_OK);
  FILE *f = fopen("x.npy", "rb");
  ck_assert_uint_eq(fread(file, 1, sizeof file, f), sizeof expected - 1);
  fclose(f);
  ck_assert_mem_eq(file, expected, sizeof expected - 1);
}

TEST(test_longest_header) {
  int64_t extent[] = {0, INT64_MAX, INT64_MAX, INT64_MAX};
  ck_assert_int_eq(fg_npy_write("x.npy", 4, extent, six), FG_OK);
  struct stat s;
  ck_assert_int_eq(stat("x.npy", &s), 0);
  ck_assert_int_eq(s.st_size % 64, 0);
}

TEST(test_umask_and_long_name) {
  char path[256];
  struct stat s;
  memset(path, 'n', 255);
  path[255] = 0;
  umask(027);
  ck_assert_int_eq(fg_npy_write(path, 1, (int64_t[]){6}, six), FG_OK);
  ck_assert_int_eq(stat(path, &s), 0);
  ck_assert_int_eq(s.st_mode & 0777, 0640);
}

TEST(test_stage_and_publish) {
  char *a, *b;
  scratch_put("a.npy", "old", 3);
  ck_assert_int_eq(fg_npy_stage("a.npy", 1, (int64_t[]){6}, six, &a), FG_OK);
  ck_assert_int_eq(fg_npy_stage("b.npy", 1, (int64_t[]){6}, six, &b), FG_OK);
  ck_assert_int_eq(scratch_files(), 3);
  ck_assert_int_ne(access("b.npy", F_OK), 0);
  ck_assert_int_eq(fg_npy_publish(a, "a.npy"), FG_OK);
  fg_npy_discard(b);
  fg_npy_discard(NULL);
  ck_assert_int_eq(scratch_files(), 1);
  ck_assert_int_eq(fg_npy_read("q", "a.npy", &array), FG_OK);
}

/* A name that a killed process left behind is passed over, and its file is not touched. */
TEST(test_taken_names) {
  char *name, taken[64];
  long process;
  unsigned n;
  struct stat s;
  ck_assert_int_eq(fg_npy_stage("x.npy", 1, (int64_t[]){6}, six, &name), FG_OK);
  ck_assert_int_eq(sscanf(name, ".flashgen-%ld-%u.tmp", &process, &n), 2);
  fg_npy_discard(name);
  snprintf(taken, sizeof taken, ".flashgen-%ld-%u.tmp", process, n + 1);
  scratch_put(taken, "old", 3);
  ck_assert_int_eq(fg_npy_write("x.npy", 1, (int64_t[]){6}, six), FG_OK);
  ck_assert_int_eq(stat(taken, &s), 0);
  ck_assert_int_eq(s.st_size, 3);
  ck_assert_int_eq(scratch_files(), 2);
}

TEST(test_write_failures) {
  char *a;
  FAILS_AS(FG_EIO, "cannot write no/x.npy: No such file or directory",
           fg_npy_write("no/x.npy", 1, (int64_t[]){6}, six));
  FAILS_AS(FG_EIO, "cannot write .: it is a directory", fg_npy_write(".", 1, (int64_t[]){6}, six));
  FAILS_AS(FG_EIO, "cannot write /dev/null: it is not a regular file",
           fg_npy_write("/dev/null", 1, (int64_t[]){6}, six));
  ck_assert_int_eq(fg_npy_stage("a.npy", 1, (int64_t[]){6}, six, &a), FG_OK);
  ck_assert_int_eq(mkdir("a.npy", 0700), 0);
  FAILS_AS(FG_EIO, "cannot write a.npy: Is a directory", fg_npy_publish(a, "a.npy"));
  ck_assert_int_eq(scratch_files(), 1);
}

/* The file system is full in the middle of the data: the old file stays, nothing else does. */
TEST(test_full) {
  struct rlimit old, little;
  scratch_put("x.npy", "old", 3);
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
  little = (struct rlimit){.rlim_cur = 140, .rlim_max = old.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
  fg_status status = fg_npy_write("x.npy", 1, (int64_t[]){6}, six);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
  FAILS_AS(FG_EIO, "cannot write x.npy: File too large", status);
  struct stat s;
  ck_assert_int_eq(stat("x.npy", &s), 0);
  ck_assert_int_eq(s.st_size, 3);
  ck_assert_int_eq(scratch_files(), 1);
}

TEST_FIXTURE(scratch_enter, leave)
