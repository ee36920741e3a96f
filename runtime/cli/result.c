/* result.c - results that go to a file.
 *
 * stdout then is a temporary beside the file, so that what prints results need not know. It takes
 * the file's name when all is in it; until then, and when there are no results, the file stays as
 * it was. What is no regular file, /dev/null or a pipe, is written to directly. */
#define _GNU_SOURCE /* realpath */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char file[PATH_MAX], temporary[PATH_MAX + 32];
static const char *given; /* as the command line has it */
static pid_t owner;       /* workers are copies of this process */

static fg_status failed(const char *path) {
  return fg_fail(FG_EIO, "%s cannot be written: %s", path, strerror(errno));
}

/* The name that results are to have, through links; *is_file: there is, or will be, a file. */
static fg_status find(const char *path, bool *is_file, mode_t *mode) {
  struct stat info;
  *is_file = true, *mode = 0666;
  if (stat(path, &info)) {
    if (errno != ENOENT || strlen(path) >= sizeof file) return failed(path);
    strcpy(file, path);
    return FG_OK;
  }
  *is_file = S_ISREG(info.st_mode);
  *mode = info.st_mode & 0777;
  if (access(path, W_OK) || !realpath(path, file)) return failed(path);
  return FG_OK;
}

fg_status cli_result_open(const char *path) {
  bool is_file;
  mode_t mode;
  int fd;
  TRY(find(path, &is_file, &mode));
  if (is_file) {
    snprintf(temporary, sizeof temporary, "%s.tmp.%ld", file, (long)getpid());
    unlink(temporary); /* of an earlier process of this number */
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } else {
    fd = open(path, O_WRONLY | O_CLOEXEC);
  }
  if (fd < 0) return *temporary = 0, failed(path);
  fg_status status = dup2(fd, 1) < 0 ? failed(path) : FG_OK;
  close(fd);
  given = path;
  owner = getpid();
  if (status != FG_OK) cli_result_drop();
  return status;
}

fg_status cli_result_spares(const char *path) {
  struct stat results, other;
  if (!*temporary || stat(file, &results) || stat(path, &other) || results.st_ino != other.st_ino ||
      results.st_dev != other.st_dev)
    return FG_OK;
  return fg_fail(FG_EARGUMENT, "%s is what this command works on: results go to another file",
                 given);
}

const char *cli_result_name(void) { return given; }

void cli_result_drop(void) {
  if (*temporary && getpid() == owner) unlink(temporary);
}

fg_status cli_result_keep(bool good) {
  struct stat info;
  if (!*temporary) return FG_OK;
  fg_status status = FG_OK;
  if (good && fstat(1, &info) == 0 && info.st_size) {
    if (fsync(1) || rename(temporary, file)) status = failed(given);
    if (status == FG_OK) return *temporary = 0, FG_OK;
  }
  cli_result_drop();
  *temporary = 0;
  return status;
}
