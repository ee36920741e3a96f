/* cache_fault.c - makes the system calls of the cache fail, or kill the process, at will. */
#define _GNU_SOURCE /* syscall */
#include "cache_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct plan { int nth, error, on; } plan[FAULT_CALLS];
static atomic_int counts[FAULT_CALLS];
static long shift[2]; /* of CLOCK_REALTIME, CLOCK_MONOTONIC */

enum { FILES = 4096 };
static atomic_bool temporary[FILES]; /* by descriptor */

void fault_at(fault_call call, int nth, int error, int on) {
  plan[call] = (struct plan){atomic_load(&counts[call]) + nth, error, on};
}

void fault_clear(void) {
  memset(plan, 0, sizeof plan);
  for (int i = 0; i < FAULT_CALLS; i++) counts[i] = 0;
}

int fault_count(fault_call call) { return counts[call]; }

void fault_clock(clockid_t clock, long seconds) { shift[clock == CLOCK_MONOTONIC] = seconds; }

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* Counts a call: 0, an errno, or FAULT_KILL_AFTER. */
static int check(fault_call call) {
  int n = atomic_fetch_add(&counts[call], 1) + 1;
  struct plan p = plan[call];
  if (!p.nth || (p.on ? n < p.nth : n != p.nth)) return 0;
  if (p.error == FAULT_KILL_BEFORE && call != FAULT_WRITE) die();
  return p.error;
}

/* The call itself, unless it is to fail. */
#define CALL(which, real)                                                                          \
  do {                                                                                             \
    int fault = check(which);                                                                      \
    if (fault > 0) return errno = fault, -1;                                                       \
    int result = (real);                                                                           \
    if (fault == FAULT_KILL_AFTER) die();                                                          \
    return result;                                                                                 \
  } while (0)

static bool is_temporary(int file) { return file >= 0 && file < FILES && temporary[file]; }

static int open_real(int dir, const char *path, int flags, mode_t mode) {
  int file = (int)syscall(SYS_openat, dir, path, flags, mode);
  if (file >= 0 && file < FILES) temporary[file] = (flags & O_EXCL) != 0;
  return file;
}

int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list args;
    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
  }
  if (!(flags & O_DIRECTORY)) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  CALL(FAULT_ROOT, (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int openat(int dir, const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list args;
    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
  }
  fault_call call = flags & O_EXCL ? FAULT_CREATE : flags & O_CREAT ? FAULT_LOCK : FAULT_OPEN;
  CALL(call, open_real(dir, path, flags, mode));
}

ssize_t write(int file, const void *from, size_t n) {
  int fault = is_temporary(file) ? check(FAULT_WRITE) : 0;
  ssize_t put = syscall(SYS_write, file, from, fault ? n / 2 : n);
  if (fault < 0) die();
  return fault ? (errno = fault, -1) : put;
}

int fsync(int file) { CALL(FAULT_FSYNC, (int)syscall(SYS_fsync, file)); }

/* Like the real one, a close that fails has closed. */
int close(int file) {
  if (!is_temporary(file)) return (int)syscall(SYS_close, file);
  int fault = check(FAULT_CLOSE);
  temporary[file] = false;
  int result = (int)syscall(SYS_close, file);
  if (fault == FAULT_KILL_AFTER) die();
  return fault ? (errno = fault, -1) : result;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  CALL(FAULT_RENAME, (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0));
}

int mkdirat(int dir, const char *path, mode_t mode) {
  CALL(FAULT_MKDIR, (int)syscall(SYS_mkdirat, dir, path, mode));
}

int unlinkat(int dir, const char *path, int flags) {
  CALL(FAULT_UNLINK, (int)syscall(SYS_unlinkat, dir, path, flags));
}

int futimens(int file, const struct timespec times[2]) {
  CALL(FAULT_FUTIMENS, (int)syscall(SYS_utimensat, file, NULL, times, 0));
}

int clock_gettime(clockid_t clock, struct timespec *t) {
  int result = (int)syscall(SYS_clock_gettime, clock, t);
  if (clock == CLOCK_REALTIME) t->tv_sec += shift[0];
  if (clock == CLOCK_MONOTONIC) t->tv_sec += shift[1];
  return result;
}
