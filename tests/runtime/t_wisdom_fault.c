/* t_wisdom_fault.c - writers of one file of wisdom at once, killed, or out of disk: no line is
 * lost, none comes twice, and the file is the old or the new one. */
#define _GNU_SOURCE
#include "scratch.h"
#include "suite.h"
#include "wisdom/wisdom.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_NAME "wisdom.txt"
#define NAME      "attn_fwd-bf16-d128-causal.mma-q128-k64-s1-w4.sm_90a"

/* The nth of these calls in the process fails with an error, or with 0 kills it. */
static struct {
  const char *call;
  int nth, error;
} fault;

static int fails(const char *call) {
  if (!fault.call || strcmp(fault.call, call) || --fault.nth > 0) return 0;
  if (!fault.error) kill(getpid(), SIGKILL);
  errno = fault.error;
  return 1;
}

/* The next write is beside a fork whose child stays. */
static pid_t forked = -1;
static void fork_here(void) {
  fault.call = NULL;
  forked = fork();
  if (forked == 0) pause();
}

/* In libc's place. */
ssize_t write(int fd, const void *bytes, size_t n) {
  if (fault.call && !strcmp(fault.call, "fork")) fork_here();
  if (fd > 2 && fault.call && !strcmp(fault.call, "write") && fault.nth == 1)
    syscall(SYS_write, fd, bytes, n / 2); /* half of it is there already */
  return fd > 2 && fails("write") ? -1 : syscall(SYS_write, fd, bytes, n);
}
int fsync(int fd) { return fails("fsync") ? -1 : (int)syscall(SYS_fsync, fd); }
int rename(const char *from, const char *to) {
  return fails("rename") ? -1 : (int)syscall(SYS_renameat2, -100, from, -100, to, 0);
}

static fg_measured usual(int64_t nq) {
  fg_measured m = {.shape = {.b = 1, .h = 1, .hk = 1, .nq = nq, .nk = 1, .align = 16},
                   .generation = 1,
                   .ms = 1,
                   .verified = true};
  strcpy(m.name, NAME);
  strcpy(m.device, "NVIDIA H200");
  return m;
}

static void put(int64_t nq) {
  fg_measured m = usual(nq);
  ck_assert_msg(fg_wisdom_append(FILE_NAME, &m) == FG_OK, "%s", fg_error());
}

/* Each number below n is in the file once, as nq. */
static void holds_once(int n) {
  fg_wisdom w;
  fg_measured m;
  const char *line;
  size_t at = 0, length;
  bool whole;
  char *seen = calloc((size_t)n, 1);
  int total = 0;
  ck_assert_int_eq(fg_wisdom_read(FILE_NAME, false, &w), FG_OK);
  while (fg_wisdom_next(w.text, w.n, &at, &line, &length, &whole)) {
    ck_assert_int_eq(fg_measured_parse(line, length, &m, NULL), FG_LINE_GOOD);
    ck_assert_int_lt((int)m.shape.nq, n);
    ck_assert_msg(!seen[m.shape.nq]++, "%d is there twice", (int)m.shape.nq);
    total++;
  }
  ck_assert_int_eq(total, n);
  fg_wisdom_free(&w);
  free(seen);
}

/* D2: 8 processes append 5000 lines each while others compact. */
TEST(many_writers) {
  enum { WRITERS = 8, COMPACTERS = 2, LINES = 5000 };
  pid_t pid[WRITERS + COMPACTERS];
  fg_wisdom_report r;
  put(0); /* one is there when they start, so that compaction has a file */
  for (int p = 0; p < WRITERS + COMPACTERS; p++) {
    pid[p] = fork();
    if (pid[p]) continue;
    for (int i = p == 0; i < LINES && p < WRITERS; i++) put(p * LINES + i);
    for (int i = 0; i < 20 && p >= WRITERS; i++)
      if (fg_wisdom_compact(FILE_NAME, &r) != FG_OK || r.bad || r.dropped) _exit(1);
    _exit(0);
  }
  for (int p = 0; p < WRITERS + COMPACTERS; p++) {
    int state;
    ck_assert_int_eq(waitpid(pid[p], &state, 0), pid[p]);
    ck_assert_int_eq(state, 0);
  }
  holds_once(WRITERS * LINES);
  ck_assert_int_eq(scratch_files(), 1);
}

/* A child that was forked while a line was written does not keep the lock. */
TEST(forked_meanwhile) {
  fault.call = "fork";
  put(0);
  alarm(10);
  put(1);
  alarm(0);
  ck_assert_int_gt(forked, 0);
  kill(forked, SIGKILL);
  ck_assert_int_eq(waitpid(forked, NULL, 0), forked);
  holds_once(2);
}

static int in_child(void (*work)(void)) {
  int state;
  pid_t pid = fork();
  if (pid == 0) {
    work();
    _exit(0);
  }
  ck_assert_int_eq(waitpid(pid, &state, 0), pid);
  return state;
}

static void compact(void) {
  fg_wisdom_report r;
  fg_wisdom_compact(FILE_NAME, &r);
}

/* D5: killed before any of its calls, compaction leaves the old or the new file; the next one
 * works. */
TEST(killed_in_compaction) {
  static const struct {
    const char *call;
    int calls;
  } kinds[] = {{"write", 2}, {"fsync", 2}, {"rename", 1}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (int nth = 1; nth <= kinds[k].calls; nth++) {
      fg_wisdom_report r;
      unlink(FILE_NAME), unlink(FILE_NAME ".bad");
      for (int i = 0; i < 5; i++) put(i);
      put(3); /* to be dropped */
      FILE *f = fopen(FILE_NAME, "a");
      fputs("rubbish\n", f);
      fclose(f);
      fault.call = kinds[k].call, fault.nth = nth, fault.error = 0;
      int state = in_child(compact);
      fault.call = NULL;
      ck_assert_msg(WIFSIGNALED(state), "%s %d", kinds[k].call, nth);
      ck_assert_msg(fg_wisdom_compact(FILE_NAME, &r) == FG_OK, "%s", fg_error());
      ck_assert_int_eq(r.kept, 5);
      holds_once(5);
      ck_assert_int_eq(access(FILE_NAME ".bad", F_OK), 0);
    }
}

/* A full disk: the file is what it was, and says so. */
TEST(full_disk) {
  static const int errors[] = {ENOSPC, EDQUOT, EIO};
  fg_wisdom_report r;
  struct stat before, after;
  for (int i = 0; i < 5; i++) put(i);
  ck_assert_int_eq(stat(FILE_NAME, &before), 0);
  for (int e = 0; e < 3; e++) {
    char sentence[256];
    fg_measured m = usual(7);
    fault.call = "write", fault.nth = 1, fault.error = errors[e];
    ck_assert_int_eq(fg_wisdom_append(FILE_NAME, &m), FG_EIO);
    snprintf(sentence, sizeof sentence, FILE_NAME " cannot be written: %s", strerror(errors[e]));
    ck_assert_str_eq(fg_error(), sentence);
    fault.call = "write", fault.nth = 1;
    ck_assert_int_eq(fg_wisdom_compact(FILE_NAME, &r), FG_EIO);
    ck_assert_ptr_nonnull(strstr(fg_error(), strerror(errors[e])));
    fault.call = "fsync", fault.nth = 1;
    ck_assert_int_eq(fg_wisdom_compact(FILE_NAME, &r), FG_EIO);
    fault.call = "rename", fault.nth = 1;
    ck_assert_int_eq(fg_wisdom_compact(FILE_NAME, &r), FG_EIO);
    fault.call = NULL;
    ck_assert_int_eq(stat(FILE_NAME, &after), 0);
    ck_assert_int_eq(before.st_size, after.st_size);
    ck_assert_int_eq(scratch_files(), 1);
    holds_once(5);
  }
}

/* The same by the kernel: a limit on the size of files cuts the write short. */
TEST(short_write) {
  struct rlimit limit;
  struct stat before;
  fg_measured m = usual(1);
  put(0);
  ck_assert_int_eq(stat(FILE_NAME, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = (rlim_t)before.st_size + 10;
  setrlimit(RLIMIT_FSIZE, &limit);
  ck_assert_int_eq(fg_wisdom_append(FILE_NAME, &m), FG_EIO);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_FSIZE, &limit);
  holds_once(1);
  put(1);
  holds_once(2);
}

/* A link to the file stays one. */
TEST(linked_file) {
  struct stat info;
  fg_wisdom_report r;
  ck_assert_int_eq(mkdir("elsewhere", 0700), 0);
  ck_assert_int_eq(symlink("elsewhere/real.txt", FILE_NAME), 0);
  put(0), put(0);
  ck_assert_int_eq(fg_wisdom_compact(FILE_NAME, &r), FG_OK);
  ck_assert_int_eq(lstat(FILE_NAME, &info), 0);
  ck_assert(S_ISLNK(info.st_mode));
  holds_once(1);
}

TEST(unwritable) {
  fg_measured m = usual(1);
  put(0);
  ck_assert_int_eq(chmod(FILE_NAME, 0400), 0);
  if (access(FILE_NAME, W_OK) == 0) return; /* root writes everywhere */
  ck_assert_int_eq(fg_wisdom_append(FILE_NAME, &m), FG_EIO);
  ck_assert_str_eq(fg_error(), FILE_NAME " cannot be written: Permission denied");
  ck_assert_int_eq(fg_wisdom_check(FILE_NAME), FG_EIO);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
