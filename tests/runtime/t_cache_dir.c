/* t_cache_dir.c - the kernel cache's directories: which, made how, trusted when, gone
 * meanwhile. */
#include "cache_case.h"
#include "scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHER = 65534, STRANGER = 54321 /* without a line in /etc/passwd */ };

static uint64_t count(fg_count which) { return fg_cache_count(cache, which); }

static unsigned mode(const char *path) {
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  return info.st_mode & 07777;
}

static int exists(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

static void path_is(const char *dir, const char *expected) {
  case_open(dir);
  ck_assert_str_eq(fg_cache_path(cache), expected);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
}

TEST(test_places) {
  char here[4096], expected[4200];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  setenv("HOME", "/nowhere/home", 1);
  path_is(NULL, "/nowhere/home/.cache/flashgen");
  setenv("XDG_CACHE_HOME", "relative", 1);
  path_is(NULL, "/nowhere/home/.cache/flashgen");
  setenv("XDG_CACHE_HOME", "/nowhere/xdg", 1);
  path_is(NULL, "/nowhere/xdg/flashgen");
  setenv("FLASHGEN_CACHE", "/nowhere/own", 1);
  path_is(NULL, "/nowhere/own");
  snprintf(expected, sizeof expected, "%s/here", here);
  setenv("FLASHGEN_CACHE", "here", 1);
  path_is(NULL, expected);
  path_is("/nowhere/argument", "/nowhere/argument");
  ck_assert_int_eq(scratch_files(), 0); /* nothing was made */
  ck_assert(!exists("/nowhere"));
}

static void memory_only(const char *dir, const char *word, const char *other_word) {
  case_open(dir);
  ck_assert_ptr_null(fg_cache_path(cache));
  case_ask(cache, 1);
  case_ask(cache, 1);
  ck_assert(!case_put(cache, 2));
  ck_assert(case_get(cache, 2));
  case_counts(2, 1, 0, 0);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_msg(strstr(case_warning(), word) && strstr(case_warning(), other_word), "%s",
                case_warning());
  fg_cache_report report;
  ck_assert_int_eq(fg_cache_stat(cache, &report), FG_OK);
  ck_assert_uint_eq(report.entries, 0);
}

static void without_home(void) {
  if (geteuid() == 0) ck_assert_int_eq(setuid(STRANGER), 0);
  memory_only(NULL, "HOME", "set FLASHGEN_CACHE");
}

/* Needs a user without a line in /etc/passwd, whom only root can become. */
TEST(test_no_place) {
  unsetenv("HOME");
  setenv("XDG_CACHE_HOME", "relative", 1);
  if (geteuid() == 0) ck_assert_int_eq(case_child(without_home, false), 0);
  case_open(NULL);
  if (geteuid() == 0) ck_assert_ptr_nonnull(strstr(fg_cache_path(cache), "/.cache/flashgen"));
  ck_assert_int_eq(scratch_files(), 0);
}

TEST(test_made) {
  case_open("a/b/c");
  case_ask(cache, 1);
  case_ask(cache, 1);
  case_counts(1, 1, 0, 1);
  char bucket[] = "a/b/c/k/xx";
  memcpy(bucket + 8, case_path("", 1) + 3, 2);
  const char *dirs[] = {"a", "a/b", "a/b/c", "a/b/c/k", bucket, "a/b/c/locks"};
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
    ck_assert_msg(mode(dirs[i]) == 0700, "%s: %o", dirs[i], mode(dirs[i]));
  ck_assert_uint_eq(mode(case_path("a/b/c", 1)), 0600);
}

TEST(test_no_directory) {
  scratch_put("file", "x", 1);
  ck_assert_int_eq(symlink("loop", "loop") | symlink("nothing", "dangling"), 0);
  memory_only("file", "/file ", "Not a directory");
  memory_only("file/c", "/file/c ", "Not a directory");
  memory_only("loop", "/loop ", "symbolic links");
  memory_only("dangling", "/dangling ", "a link to nothing");
  ck_assert_int_eq(scratch_files(), 3);
}

/* Made by another process just after we did not find it. */
TEST(test_made_meanwhile) {
  case_open("c");
  case_ask(cache, 1);
  fault_clear();
  fault_at(FAULT_ROOT, 1, ENOENT, 0);
  case_open("c");
  ck_assert_int_eq(fault_count(FAULT_ROOT), 2);
  case_ask(cache, 1);
  case_counts(1, 0, 0, 0);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
}

/* Memory has its limit too: two entries of 30 MB, each key once. */
TEST(test_kept) {
  enum { BIG = 30000000 };
  scratch_put("file", "x", 1);
  case_open("file");
  ck_assert(!case_put(cache, BIG));
  for (int i = 0; i < 2; i++) ck_assert(!case_put(cache, BIG + 1));
  ck_assert(case_get(cache, BIG) && case_get(cache, BIG + 1));
  ck_assert(!case_put(cache, BIG + 2));
  ck_assert(case_get(cache, BIG + 1) && case_get(cache, BIG + 2));
  ck_assert(!case_get(cache, BIG)); /* the oldest */
}

/* A link to a directory of ours is as good as the directory. */
TEST(test_linked) {
  ck_assert_int_eq(mkdir("real", 0700) | symlink("real", "c"), 0);
  case_open("c");
  case_ask(cache, 1);
  case_counts(0, 1, 0, 1);
  ck_assert_int_eq(case_files("real"), 1);
}

TEST(test_writable_by_others) {
  case_open("c");
  case_ask(cache, 1);
  ck_assert_int_eq(chmod("c", 0777), 0);
  memory_only("c", "0777", "chmod go-w");
  ck_assert_int_eq(chmod("c", 0720), 0);
  memory_only("c", "0720", "chmod go-w");
  ck_assert_int_eq(chmod("c", 0755) | chmod("c/k", 0777), 0);
  case_open("c");
  case_ask(cache, 1);
  case_counts(0, 1, 0, 0);
  ck_assert_uint_eq(count(FG_COUNT_REFUSED), 1);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISH_FAILED), 1);
}

/* A user who is not root takes a directory of root's for the foreign one. */
TEST(test_foreign) {
  if (geteuid()) {
    memory_only("/usr/share", "belongs to user 0", "chown");
    return;
  }
  case_open("c");
  case_ask(cache, 1);
  ck_assert_int_eq(chown("c", OTHER, OTHER), 0);
  memory_only("c", "belongs to user 65534", "chown");
  ck_assert_int_eq(case_files("c"), 1);
  setenv("FLASHGEN_CACHE_RO", "c", 1); /* nor as a shared one */
  case_open("mine");
  ck_assert_int_eq(case_warnings(), 1);
  case_ask(cache, 1);
  case_counts(0, 1, 0, 1);
}

/* --- directories that cannot be written --- */

static void fill(void) {
  case_open("o/c");
  case_ask(cache, 1);
}

static int writes(void) {
  return fault_count(FAULT_CREATE) + fault_count(FAULT_LOCK) + fault_count(FAULT_WRITE) +
         fault_count(FAULT_MKDIR) + fault_count(FAULT_RENAME) + fault_count(FAULT_UNLINK);
}

static void read_only(void) {
  fault_clear();
  case_open("o/c");
  case_ask(cache, 1);
  case_counts(1, 0, 0, 0);
  ck_assert_int_eq(writes(), 0);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
  for (int i = 0; i < 2; i++) case_ask(cache, 2);
  case_ask(cache, 3);
  case_counts(2, 2, 0, 0);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISH_FAILED), 2);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), "Permission denied"));
}

TEST(test_read_only) {
  ck_assert_int_eq(chmod(".", 0755) | mkdir("o", 0700), 0);
  if (geteuid() == 0) ck_assert_int_eq(chown("o", OTHER, OTHER), 0);
  ck_assert_int_eq(case_child(fill, true), 0);
  ck_assert_int_eq(chmod("o/c", 0555) | chmod("o/c/k", 0555) | chmod("o/c/locks", 0555), 0);
  ck_assert_int_eq(case_child(read_only, true), 0);
  ck_assert_int_eq(chmod("o/c", 0755) | chmod("o/c/k", 0755) | chmod("o/c/locks", 0755), 0);
  ck_assert_int_eq(case_files("o/c"), 1);
}

/* --- shared directories --- */

static void share(const char *dir, int key) {
  case_open(dir);
  case_ask(cache, key);
}

TEST(test_shared) {
  share("a", 1);
  share("b", 2);
  struct stat before, after;
  ck_assert_int_eq(stat(case_path("b", 2), &before), 0);
  setenv("FLASHGEN_CACHE_RO", "absent:a::b", 1);
  case_open("c");
  fault_clear();
  case_ask(cache, 1);
  case_ask(cache, 2);
  case_counts(2, 0, 0, 0);
  ck_assert_int_eq(writes() + fault_count(FAULT_FUTIMENS), 0);
  ck_assert(!exists("c"));
  ck_assert_int_eq(stat(case_path("b", 2), &after), 0);
  ck_assert_mem_eq(&before, &after, sizeof before); /* the time of access too */
  case_ask(cache, 3);
  ck_assert_int_eq(case_files("a") + case_files("b"), 2);
  ck_assert_int_eq(case_files("c"), 1);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
}

/* A damaged entry of a shared directory is made again, in our own. */
TEST(test_shared_corrupt) {
  share("a", 1);
  ck_assert_int_eq(truncate(case_path("a", 1), 100), 0);
  setenv("FLASHGEN_CACHE_RO", "a", 1);
  case_open("c");
  case_ask(cache, 1);
  case_counts(0, 1, 1, 1);
  case_ask(cache, 1);
  case_counts(1, 1, 2, 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_int_eq(case_files("a") + case_files("c"), 2);
}

static void use_shared(void) {
  case_open("o/c");
  case_ask(cache, 1);
  case_counts(1, 0, 0, 0);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
}

static void use_refused(void) {
  case_open("o/c");
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), "chmod go-w"));
  case_ask(cache, 1);
  case_counts(0, 1, 0, 1);
}

/* Root's directory serves all users who may read it, unless others can write there. */
TEST(test_shared_of_root) {
  share("a", 1);
  char bucket[] = "a/k/xx";
  memcpy(bucket + 4, case_path("", 1) + 3, 2);
  ck_assert_int_eq(chmod(".", 0755) | chmod("a", 0755) | chmod("a/k", 0755) | chmod(bucket, 0755),
                   0);
  ck_assert_int_eq(chmod(case_path("a", 1), 0644) | mkdir("o", 0700), 0);
  if (geteuid() == 0) ck_assert_int_eq(chown("o", OTHER, OTHER), 0);
  setenv("FLASHGEN_CACHE_RO", "a", 1);
  ck_assert_int_eq(case_child(use_shared, true), 0);
  ck_assert_int_eq(chmod("a", 0775), 0);
  ck_assert_int_eq(case_child(use_refused, true), 0);
}

/* --- gone meanwhile --- */

static void remove_cache(void) { case_remove("c"); }

TEST(test_removed) {
  case_open("c");
  case_ask(cache, 1);
  case_remove("c");
  case_ask(cache, 1); /* made again */
  case_ask(cache, 1);
  case_counts(1, 2, 0, 2);
  case_hook = remove_cache;
  case_ask(cache, 2); /* removed while it is compiled */
  case_hook = NULL;
  case_ask(cache, 2);
  case_counts(2, 3, 0, 3);
  fault_at(FAULT_RENAME, 1, ENOENT, 0); /* removed just before the rename */
  case_ask(cache, 3);
  case_counts(2, 4, 0, 4);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
  ck_assert_int_eq(case_files("c"), 2);
}

TEST(test_replaced) {
  case_open("c");
  case_ask(cache, 1);
  case_remove("c");
  scratch_put("c", "x", 1);
  case_ask(cache, 1);
  case_ask(cache, 1); /* from memory */
  case_counts(1, 2, 0, 1);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISH_FAILED), 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), "Not a directory"));
}

TEST_FIXTURE(case_enter, case_leave)
