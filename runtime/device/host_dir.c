/* host_dir.c - temporary directories of the host device's compiler: made, locked and removed; those
 * of killed processes are swept. */
#define _GNU_SOURCE /* mkdtemp, flock */
#include "host_dir.h"

#include "base/setting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char prefix[] = "flashgen-";
enum {
  RANDOM = 6, /* letters behind the prefix */
  YOUNG = 60, /* seconds in which a directory may still be without its lock */
  OPEN = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
};

/* Removes the files in the directory fd. */
static void remove_files(int fd) {
  int copy = openat(fd, ".", OPEN);
  DIR *dir = copy < 0 ? NULL : fdopendir(copy);
  if (!dir && copy >= 0) close(copy);
  for (struct dirent *e; dir && (e = readdir(dir));) unlinkat(fd, e->d_name, 0);
  if (dir) closedir(dir);
}

static bool is_ours(const char *name) {
  return !strncmp(name, prefix, strlen(prefix)) && strlen(name) == strlen(prefix) + RANDOM;
}

/* Removes the directory if it is our user's, is not new, and nobody holds its lock. */
static void sweep_one(int root, const char *name) {
  struct stat info;
  int fd = openat(root, name, OPEN);
  if (fd < 0) return;
  bool left = !fstat(fd, &info) && info.st_uid == geteuid() &&
              time(NULL) - info.st_mtime >= YOUNG && !flock(fd, LOCK_EX | LOCK_NB);
  if (left) remove_files(fd), unlinkat(root, name, AT_REMOVEDIR);
  close(fd);
}

/* Removes the directories in TMPDIR that killed processes have left behind. */
static void sweep(void) {
  int root = open(fg_setting_text(FG_SET_TMPDIR, NULL), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = root < 0 ? NULL : fdopendir(root);
  if (!dir && root >= 0) close(root);
  for (struct dirent *e; dir && (e = readdir(dir));)
    if (is_ours(e->d_name)) sweep_one(root, e->d_name);
  if (dir) closedir(dir);
}

fg_status fg_host_dir_make(fg_host_dir *dir) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const char *root = fg_setting_text(FG_SET_TMPDIR, NULL);
  pthread_once(&once, sweep);
  int n = snprintf(dir->path, sizeof dir->path, "%s/%sXXXXXX", root, prefix);
  errno = ENAMETOOLONG;
  if (n >= (int)sizeof dir->path || !mkdtemp(dir->path))
    return fg_fail(FG_EIO, "%s: no temporary directory there: %s", root, strerror(errno));
  dir->fd = open(dir->path, OPEN);
  if (dir->fd >= 0) flock(dir->fd, LOCK_EX); /* without locks nothing is swept either */
  return FG_OK;
}

void fg_host_dir_remove(const fg_host_dir *dir) {
  if (dir->fd >= 0) remove_files(dir->fd), close(dir->fd);
  rmdir(dir->path);
}
