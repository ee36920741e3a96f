/* t_cache_sweep.c - the kernel cache as a whole: stat, verify, clear, and what eviction takes. */
#include "cache/cache_internal.h"
#include "cache_case.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNIT = 4096, DAY = 86400, YEAR = 365 * DAY };

static fg_cache_report report;

static uint64_t count(fg_count which) { return fg_cache_count(cache, which); }

static int exists(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

/* Both stamps, in seconds from now. */
static void stamp(const char *path, long used, long written) {
  long now = time(NULL);
  struct timespec times[2] = {{.tv_sec = now + used}, {.tv_sec = now + written}};
  ck_assert_int_eq(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* Entries 0 to n - 1, i last used n - i days ago: the order in which they go. */
static void enter_aged(int n) {
  case_open("c");
  for (int i = 0; i < n; i++) ck_assert(case_put(cache, i));
  for (int i = 0; i < n; i++) stamp(case_path("c", i), (i - n) * DAY, -YEAR);
  case_open("c");
}

/* Which of the n are there, as bits. */
static unsigned there(int n) {
  unsigned bits = 0;
  for (int i = 0; i < n; i++) bits |= (unsigned)exists(case_path("c", i)) << i;
  return bits;
}

static void gc(uint64_t bytes) {
  ck_assert_msg(fg_cache_gc(cache, bytes, &report) == FG_OK, "%s", fg_error());
}

static void is_report(uint64_t entries, uint64_t temporaries, uint64_t removed, uint64_t bad) {
  ck_assert_uint_eq(report.entries, entries);
  ck_assert_uint_eq(report.bytes, entries * UNIT);
  ck_assert_uint_eq(report.temporaries, temporaries);
  ck_assert_uint_eq(report.removed, removed);
  ck_assert_uint_eq(report.removed_bytes, removed * UNIT);
  ck_assert_uint_eq(report.bad, bad);
}

/* Other names, in the bucket of key 0, are nobody's business. */
static const char *strays[] = {"README", "short.k", "0123456789abcdef0123456789ABCD.k",
                               "0123456789abcdef0123456789abcd.k.tmp"};

static const char *beside(const char *name) {
  static char path[4200];
  snprintf(path, sizeof path, "%.7s%s", case_path("c", 0), name);
  return path;
}

TEST(test_stat_verify_clear) {
  case_open("c");
  ck_assert_int_eq(fg_cache_stat(cache, &report), FG_OK); /* not made yet */
  is_report(0, 0, 0, 0);
  enter_aged(4);
  for (int i = 0; i < 4; i++) scratch_put(beside(strays[i]), "x", 1);
  scratch_put(beside(".tmp.1.1.0"), "x", 1);
  ck_assert_int_eq(fg_cache_stat(cache, &report), FG_OK);
  is_report(4, 1, 0, 0);
  ck_assert_int_eq(truncate(case_path("c", 1), 100), 0);
  ck_assert_int_eq(fg_cache_verify(cache, &report), FG_OK);
  is_report(3, 1, 1, 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), case_path("c", 1)));
  struct stat info;
  ck_assert_int_eq(stat(case_path("c", 0), &info), 0);
  ck_assert_int_lt(info.st_atime, time(NULL) - DAY); /* reading all is no use of any */
  ck_assert_int_eq(fg_cache_clear(cache, &report), FG_OK);
  ck_assert_uint_eq(report.removed, 4);
  ck_assert_int_eq(case_files("c"), 4);
  case_ask(cache, 0);
  case_counts(0, 1, 0, 1);
}

TEST(test_unlistable) {
  enter_aged(1);
  case_remove("c/k");
  scratch_put("c/k", "x", 1);
  ck_assert_int_eq(fg_cache_stat(cache, &report), FG_EIO);
  ck_assert_ptr_nonnull(strstr(fg_error(), "c/k cannot be listed"));
}

/* --- eviction --- */

/* 10,000 entries of 4 KiB, their order of use unlike that of their names; 20 MiB stay 17.5. */
TEST(test_many) {
  enum { N = 10000, KEEP = 17920 / 4 };
  case_open("c");
  ck_assert(case_put(cache, N)); /* makes the directories */
  ck_assert_int_eq(unlink(case_path("c", N)), 0);
  for (int i = 0; i < N; i++) {
    char bucket[8];
    snprintf(bucket, sizeof bucket, "%.6s", case_path("c", i));
    mkdir(bucket, 0700);
    scratch_put(case_path("c", i), "x", 1);
    stamp(case_path("c", i), i - N - 100, -YEAR);
  }
  gc(20 << 20);
  is_report(KEEP, 0, N - KEEP, 0);
  ck_assert_uint_eq(count(FG_COUNT_EVICTED), N - KEEP);
  for (int i = 0; i < N; i++) ck_assert_int_eq(exists(case_path("c", i)), i >= N - KEEP);
  gc(20 << 20);
  is_report(KEEP, 0, 0, 0);
}

/* A hit is a use, on any file system; it does not change when the entry was written. */
TEST(test_hit_is_use) {
  struct stat before, after;
  enter_aged(8);
  ck_assert_int_eq(stat(case_path("c", 2), &before), 0);
  ck_assert(case_get(cache, 2));
  ck_assert_int_eq(stat(case_path("c", 2), &after), 0);
  ck_assert_int_gt(after.st_atime, before.st_atime + DAY);
  ck_assert_int_eq(after.st_mtime, before.st_mtime);
  gc(4 * UNIT);
  is_report(3, 0, 5, 0);
  ck_assert_uint_eq(there(8), 1 << 2 | 1 << 6 | 1 << 7);
}

TEST(test_grace) {
  enter_aged(4);
  stamp(case_path("c", 0), -2 * DAY, -30);
  gc(1);
  ck_assert_uint_eq(there(4), 1);
  stamp(case_path("c", 0), -2 * DAY, -61);
  gc(1);
  ck_assert_uint_eq(there(4), 0);
}

/* One that another process removed first counts as gone; one that cannot be removed does not. */
TEST(test_vanishes) {
  enter_aged(8);
  fault_at(FAULT_UNLINK, 1, ENOENT, 0);
  gc(4 * UNIT);
  is_report(3, 0, 4, 0);
  ck_assert_uint_eq(count(FG_COUNT_EVICTED), 4);
  ck_assert_uint_eq(there(8), 1 | 7 << 5); /* 0 is the one that only seemed to be gone */
  case_open("c");
  case_remove("c/k");
  enter_aged(8);
  fault_at(FAULT_UNLINK, 1, EBUSY, 0);
  gc(4 * UNIT);
  is_report(3, 0, 5, 0);
  ck_assert_uint_eq(there(8), 1 | 3 << 6);
}

/* Without being asked: 3 MiB written into 1. */
TEST(test_size) {
  enum { N = 30, BIG = 100000 };
  setenv("FLASHGEN_CACHE_SIZE", "1", 1);
  fault_clock(CLOCK_REALTIME, 120); /* past the minute of grace */
  case_open("c");
  for (int i = 0; i < N; i++) {
    case_ask(cache, BIG + i);
    ck_assert_int_eq(fg_cache_stat(cache, &report), FG_OK);
    ck_assert_uint_le(report.bytes, (1 << 20) + (1 << 16) + 2 * (BIG + 2 * UNIT));
  }
  ck_assert_uint_gt(count(FG_COUNT_EVICTED), 15);
  ck_assert_uint_gt(report.entries, 6);
  case_ask(cache, BIG + N - 1);
  case_counts(1, N, 0, N);
  case_ask(cache, BIG);
  case_counts(1, N + 1, 0, N + 1);
}

/* Left by killed processes: gone after an hour, with the first entry that is written. */
TEST(test_temporaries) {
  enter_aged(1);
  scratch_put("target", "x", 1);
  scratch_put(beside(".tmp.1.1.0"), "x", 1);
  scratch_put(beside(".tmp.2.1.0"), "x", 1);
  ck_assert_int_eq(symlink("../../../target", beside(".tmp.3.1.0")), 0);
  stamp(beside(".tmp.1.1.0"), -3500, -3500);
  stamp(beside(".tmp.2.1.0"), -3700, -3700);
  stamp(beside(".tmp.3.1.0"), -3700, -3700);
  stamp("target", -3700, -3700);
  case_ask(cache, 0);
  ck_assert_int_eq(case_temporaries("c"), 3); /* a hit removes nothing */
  case_ask(cache, 1);
  ck_assert_int_eq(case_temporaries("c"), 1);
  ck_assert(exists(beside(".tmp.1.1.0")) && exists("target"));
  ck_assert_uint_eq(count(FG_COUNT_SWEPT), 2);
}

/* --- the clock one year back: what was there is from the future --- */

TEST(test_clock_back) {
  enter_aged(8);
  fault_clock(CLOCK_REALTIME, -YEAR);
  for (int i = 0; i < 8; i++) case_ask(cache, i);
  case_counts(8, 0, 0, 0);
  for (int i = 0; i < 8; i++) stamp(case_path("c", i), (i - 8) * DAY, -100 * DAY);
  gc(8 * UNIT);
  ck_assert_uint_eq(there(8), 0xff);
  stamp(case_path("c", 1), -YEAR - DAY, -YEAR - DAY); /* these two were written since */
  stamp(case_path("c", 3), -YEAR - 100, -YEAR - 100);
  gc(6 * UNIT);
  is_report(5, 0, 3, 0);
  ck_assert_uint_eq(there(8), 1 << 1 | 1 << 3 | 7 << 5);
}

TEST_FIXTURE(case_enter, case_leave)
