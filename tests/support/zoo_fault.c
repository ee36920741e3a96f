/* zoo_fault.c - preloaded into the program: makes the nth call that concerns a zoo's files fail, or
 * kills the process before it.
 *
 * ZOO_FAULT="renameat 2 0": the 2nd renameat of a process and its parent kills; another last number
 * is the errno that this call and those after it give. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count;

static int is_zoo_file(const char *file) {
  return strstr(file, ".host.so") || strstr(file, "manifest.txt") || strstr(file, "journal.txt");
}

static int is_open_zoo_file(int fd) {
  char link[64], file[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, file, sizeof file - 1) > 0 && is_zoo_file(file);
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

/* A write that fails has written n bytes before. */
static int fails(const char *call, int fd, const void *bytes, size_t n) {
  ssize_t (*write_next)(int, const void *, size_t);
  const char *wanted = getenv("ZOO_FAULT");
  char name[16];
  int nth, error;
  if (!wanted || sscanf(wanted, "%15s %d %d", name, &nth, &error) != 3 || strcmp(name, call))
    return 0;
  if (++count < nth) return 0;
  *(void **)&write_next = next("write");
  if (n && write_next(fd, bytes, n) < 0) return 1;
  if (!error) kill(getpid(), SIGKILL);
  errno = error;
  return 1;
}

ssize_t write(int fd, const void *bytes, size_t n) {
  ssize_t (*real)(int, const void *, size_t);
  *(void **)&real = next("write");
  if (!is_open_zoo_file(fd)) return real(fd, bytes, n);
  return fails("write", fd, bytes, n / 2) ? -1 : real(fd, bytes, n);
}

int fsync(int fd) {
  int (*real)(int);
  *(void **)&real = next("fsync");
  return is_open_zoo_file(fd) && fails("fsync", -1, NULL, 0) ? -1 : real(fd);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  int (*real)(int, const char *, int, const char *);
  *(void **)&real = next("renameat");
  return is_zoo_file(from) && fails("renameat", -1, NULL, 0) ? -1
                                                             : real(from_dir, from, to_dir, to);
}

int unlinkat(int dir, const char *file, int flags) {
  int (*real)(int, const char *, int);
  *(void **)&real = next("unlinkat");
  return is_zoo_file(file) && fails("unlinkat", -1, NULL, 0) ? -1 : real(dir, file, flags);
}
