/* t_cache_fault.c - the kernel cache when system calls fail, and when it is killed. */
#define _GNU_SOURCE /* unshare */
#include "cache_case.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t count(fg_count which) { return fg_cache_count(cache, which); }

static void enter(void) {
  case_enter();
  ck_assert_int_eq(mkdir("c", 0700), 0);
}

/* --- calls that fail --- */

/* Nothing half-made is left, the result is right, and there is one warning that says why. */
static void unpublished(int error) {
  case_ask(cache, 1);
  case_ask(cache, 1); /* from memory */
  case_counts(1, 1, 0, 0);
  ck_assert_int_eq(*cache_made, 1);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISH_FAILED), 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_msg(strstr(case_warning(), strerror(error)), "%s", case_warning());
  ck_assert_int_eq(case_files("c"), 0);
  fault_clear();
  *cache_made = 0;
  case_open("c");
  case_ask(cache, 1);
  case_ask(cache, 1);
  case_counts(1, 1, 0, 1);
  ck_assert_int_eq(case_files("c"), 1);
  ck_assert_int_eq(*cache_made, 1);
  *cache_made = 0;
}

TEST(test_write_fails) {
  static const fault_call call[] = {FAULT_CREATE, FAULT_WRITE, FAULT_FSYNC, FAULT_CLOSE,
                                    FAULT_RENAME};
  static const int error[] = {ENOSPC, EDQUOT, EIO, ESTALE, EBUSY, EXDEV, EMFILE, EROFS};
  for (size_t i = 0; i < sizeof call / sizeof *call; i++)
    for (size_t j = 0; j < sizeof error / sizeof *error; j++) {
      case_remove("c");
      ck_assert_int_eq(mkdir("c", 0700), 0);
      case_open("c");
      fault_at(call[i], 1, error[j], 0);
      unpublished(error[j]);
    }
}

/* locks, k, k/xx: without a lock file there is no lock, and nothing else is missed. */
TEST(test_mkdir_fails) {
  for (int nth = 1; nth <= 3; nth++) {
    case_remove("c");
    ck_assert_int_eq(mkdir("c", 0700), 0);
    case_open("c");
    fault_at(FAULT_MKDIR, nth, ENOSPC, 0);
    if (nth > 1) {
      unpublished(ENOSPC);
      continue;
    }
    case_ask(cache, 1);
    case_counts(0, 1, 0, 1);
    ck_assert_msg(!case_warnings(), "%s", case_warning());
    *cache_made = 0;
  }
}

TEST(test_lock_fails) {
  static const int error[] = {ENOSPC, EMFILE, EROFS, EACCES};
  for (int i = 0; i < 4; i++) {
    case_open("c");
    fault_at(FAULT_LOCK, 1, error[i], 0);
    case_ask(cache, i);
    case_ask(cache, i);
    case_counts(1, 1, 0, 1);
    ck_assert_msg(!case_warnings(), "%s", case_warning());
  }
}

/* k, k/xx, the entry: a miss that is said; ENOENT, as a network file system gives it, is not. */
TEST(test_open_fails) {
  static const int error[] = {EMFILE, EIO, ESTALE, EACCES, ENOENT};
  case_open("c");
  case_ask(cache, 1);
  for (int nth = 1; nth <= 3; nth++)
    for (int i = 0; i < 5; i++) {
      case_open("c");
      fault_at(FAULT_OPEN, nth, error[i], 0);
      ck_assert(!case_get(cache, 1));
      case_counts(0, 1, 0, 0);
      ck_assert_uint_eq(count(FG_COUNT_REFUSED), error[i] != ENOENT);
      ck_assert_int_eq(case_warnings(), error[i] != ENOENT);
      ck_assert(case_get(cache, 1));
    }
}

/* Every descriptor is taken: nothing can be opened at all. */
TEST(test_no_descriptors) {
  case_open("c");
  case_ask(cache, 1);
  struct rlimit old, none;
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
  none = (struct rlimit){3, old.rlim_max};
  case_open("c");
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  case_ask(cache, 1);
  case_ask(cache, 1);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
  case_counts(1, 1, 0, 0);
  ck_assert_ptr_nonnull(strstr(case_warning(), "Too many open files"));
  case_open("c");
  case_ask(cache, 1);
  case_counts(1, 0, 0, 0);
}

TEST(test_touch_fails) {
  case_open("c");
  case_ask(cache, 1);
  fault_at(FAULT_FUTIMENS, 1, EROFS, 1);
  case_ask(cache, 1);
  case_counts(1, 1, 0, 1);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
}

/* A temporary's name that is taken is not used, whatever is there. */
TEST(test_name_taken) {
  case_open("c");
  fault_at(FAULT_CREATE, 1, EEXIST, 0);
  case_ask(cache, 1);
  case_counts(0, 1, 0, 1);
  ck_assert_int_eq(fault_count(FAULT_CREATE), 2);
  fault_clear();
  fault_at(FAULT_CREATE, 1, EEXIST, 1);
  case_ask(cache, 2);
  case_counts(0, 2, 0, 1);
  ck_assert_int_eq(fault_count(FAULT_CREATE), 100);
  ck_assert_int_eq(case_files("c"), 1);
}

/* --- a full disk --- */

static void full_then_pause(int error) {
  case_open("c");
  fault_at(FAULT_WRITE, 1, error, 0);
  case_ask(cache, 11);
  fault_clear();
  fault_clock(CLOCK_MONOTONIC, 58);
  case_ask(cache, 12);
  ck_assert_int_eq(fault_count(FAULT_CREATE), 0);
  fault_clock(CLOCK_MONOTONIC, 61);
  case_ask(cache, 13);
  case_ask(cache, 12); /* from memory */
  case_counts(1, 3, 0, 1);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISH_FAILED), 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), "for a minute"));
  fault_clock(CLOCK_MONOTONIC, 0);
  case_remove("c/k");
}

TEST(test_pause) {
  full_then_pause(ENOSPC);
  full_then_pause(EDQUOT);
  case_open("c");
  fault_at(FAULT_WRITE, 1, EIO, 0); /* this one says nothing about the next file */
  case_ask(cache, 1);
  case_ask(cache, 2);
  case_counts(0, 2, 0, 1);
}

/* A real full disk, out of blocks or of inodes, where we may mount one; the rows above do without.
 */
static void on_small_disk(const char *options) {
  fg_cache_report report;
  if (mount("none", "c", "tmpfs", MS_NOATIME, options)) return;
  case_open("c");
  for (int i = 0; i < 30; i++) case_ask(cache, i);
  ck_assert_uint_gt(count(FG_COUNT_PUBLISHED), 0);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISH_FAILED), 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_int_eq(case_temporaries("c"), 0);
  ck_assert_int_eq(fg_cache_verify(cache, &report), FG_OK);
  ck_assert_uint_eq(report.bad, 0);
  ck_assert_uint_eq(report.entries, count(FG_COUNT_PUBLISHED));
  case_counts(0, 30, 0, (int)report.entries);
  case_open(NULL);
  ck_assert_int_eq(umount("c"), 0);
}

/* The same for one that is mounted read-only: hits, and misses with one warning. */
static void on_read_only_disk(void) {
  if (mount("none", "c", "tmpfs", 0, "mode=700,size=4m")) return;
  case_open("c");
  case_ask(cache, 1);
  ck_assert_int_eq(mount("none", "c", NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
  case_open("c");
  case_ask(cache, 1);
  case_counts(1, 0, 0, 0);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
  case_ask(cache, 2);
  case_ask(cache, 3);
  case_counts(1, 2, 0, 0);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), "Read-only file system"));
  case_open(NULL);
  ck_assert_int_eq(umount("c"), 0);
}

static void real_disks(void) {
  setenv("FLASHGEN_CACHE", "elsewhere", 1);
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return;
  on_small_disk("mode=700,size=64k");
  on_small_disk("mode=700,size=4m,nr_inodes=40");
  on_read_only_disk();
}

TEST(test_real_disks) { ck_assert_int_eq(case_child(real_disks, false), 0); }

/* --- killed --- */

static void ask_and_die(void) { case_ask(cache, 1); }

/* What the next process finds after a kill at this call: all of the entry, or nothing. */
static void killed_at(fault_call call, int nth, int when, int published, int temporaries) {
  fg_cache_report report;
  case_remove("c");
  ck_assert_int_eq(mkdir("c", 0700), 0);
  case_open("c");
  fault_at(call, nth, when, 0);
  int status = case_child(ask_and_die, false);
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "call %d was not made", call);
  fault_clear();
  *cache_made = 0;
  ck_assert_int_eq(case_temporaries("c"), temporaries);
  ck_assert_int_eq(case_files("c"), temporaries + published);
  case_open("c");
  case_ask(cache, 1);
  case_counts(published, 1 - published, 0, 1 - published);
  ck_assert_int_eq(*cache_made, 1 - published);
  ck_assert_uint_eq(count(FG_COUNT_LOCK_TIMEOUTS), 0);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
  ck_assert_int_eq(case_temporaries("c"), temporaries); /* too young to be swept */
  fault_clock(CLOCK_REALTIME, 7200);
  ck_assert_int_eq(fg_cache_gc(cache, 0, &report), FG_OK);
  fault_clock(CLOCK_REALTIME, 0);
  ck_assert_int_eq(case_files("c"), 1);
  ck_assert_int_eq((int)count(FG_COUNT_SWEPT), temporaries);
}

TEST(test_killed) {
  for (int nth = 1; nth <= 3; nth++) {
    killed_at(FAULT_MKDIR, nth, FAULT_KILL_BEFORE, 0, 0);
    killed_at(FAULT_MKDIR, nth, FAULT_KILL_AFTER, 0, 0);
  }
  killed_at(FAULT_LOCK, 1, FAULT_KILL_BEFORE, 0, 0);
  killed_at(FAULT_LOCK, 1, FAULT_KILL_AFTER, 0, 0);
  killed_at(FAULT_CREATE, 1, FAULT_KILL_BEFORE, 0, 0);
  killed_at(FAULT_CREATE, 1, FAULT_KILL_AFTER, 0, 1);
  killed_at(FAULT_WRITE, 1, FAULT_KILL_AFTER, 0, 1); /* with half of it written */
  killed_at(FAULT_FSYNC, 1, FAULT_KILL_BEFORE, 0, 1);
  killed_at(FAULT_FSYNC, 1, FAULT_KILL_AFTER, 0, 1);
  killed_at(FAULT_CLOSE, 1, FAULT_KILL_AFTER, 0, 1);
  killed_at(FAULT_RENAME, 1, FAULT_KILL_BEFORE, 0, 1);
  killed_at(FAULT_RENAME, 1, FAULT_KILL_AFTER, 1, 0);
}

TEST_FIXTURE(enter, case_leave)
