/* cache_dir.c - which directory holds the cache, and whether it can be trusted.
 *
 * The code of an entry runs on the GPU, so nobody else may be able to write an entry. The own
 * directory belongs to us, a shared directory to us or to root, the files and directories in it to
 * us or to root; neither group nor others can write any of them.
 * Every descriptor is opened relative to the one before and checked after it is open, so that
 * nothing can be exchanged in between. The directory itself may be reached through links. */
#define _GNU_SOURCE /* asprintf */
#include "base/setting.h"
#include "cache_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fg_status no_memory(void) { return fg_fail(FG_EMEMORY, "no memory for the kernel cache"); }

/* Directories are made with mode 0700, parents too. */
enum { OURS_ALONE = 0700, OTHERS_WRITE = S_IWGRP | S_IWOTH };

/* --- which --- */

/* The user's home directory, new; NULL if there is none. */
static char *home(void) {
  const char *variable = fg_setting_text(FG_SET_HOME, NULL);
  if (variable[0] == '/') return strdup(variable);
  struct passwd entry, *found = NULL;
  char text[4096]; /* a line of /etc/passwd; a longer one counts as none */
  if (getpwuid_r(geteuid(), &entry, text, sizeof text, &found) || !found) return NULL;
  return found->pw_dir && found->pw_dir[0] == '/' ? strdup(found->pw_dir) : NULL;
}

/* The absolute path of `dir`, new; a relative one starts at the current directory. */
static fg_status absolute(const char *dir, char **path) {
  if (dir[0] == '/') return (*path = strdup(dir)) ? FG_OK : no_memory();
  char *here = getcwd(NULL, 0);
  if (!here)
    return fg_fail(FG_EENVIRONMENT, "the kernel cache cannot be %s, relative to here: %s", dir,
                   strerror(errno));
  int n = asprintf(path, "%s/%s", here, dir);
  free(here);
  return n < 0 ? no_memory() : FG_OK;
}

fg_status fg_cache_place(const char *dir, char **path) {
  if (!dir || !*dir) dir = fg_setting_text(FG_SET_CACHE, NULL);
  if (*dir) return absolute(dir, path);
  const char *xdg = fg_setting_text(FG_SET_XDG_CACHE_HOME, NULL);
  if (xdg[0] == '/') return asprintf(path, "%s/flashgen", xdg) < 0 ? no_memory() : FG_OK;
  char *base = home();
  if (!base)
    return fg_fail(FG_EENVIRONMENT,
                   "there is no place for the kernel cache: HOME is not set, XDG_CACHE_HOME is %s, "
                   "and user %ld has no home directory; set FLASHGEN_CACHE",
                   *xdg ? "not an absolute path" : "not set", (long)geteuid());
  int n = asprintf(path, "%s/.cache/flashgen", base);
  free(base);
  return n < 0 ? no_memory() : FG_OK;
}

/* --- whether --- */

bool fg_is_trusted(const struct stat *info) {
  return (info->st_uid == geteuid() || info->st_uid == 0) && !(info->st_mode & OTHERS_WRITE);
}

/* FG_EENVIRONMENT, with the cure, if the owner or the mode of a root lets others write entries. */
static fg_status judge(const fg_root *root, const struct stat *info) {
  long owner = info->st_uid, me = geteuid();
  if (owner != me && (root->own || owner != 0))
    return fg_fail(FG_EENVIRONMENT,
                   "the kernel cache %s belongs to user %ld and you are %ld: set %s to a directory "
                   "of your own, or chown -R %ld it",
                   root->path, owner, me,
                   fg_settings[root->own ? FG_SET_CACHE : FG_SET_CACHE_RO].name, me);
  if (info->st_mode & OTHERS_WRITE)
    return fg_fail(FG_EENVIRONMENT,
                   "the kernel cache %s can be written by others (mode %04o): chmod go-w it, after "
                   "making sure that nobody did",
                   root->path, (unsigned)info->st_mode & 07777);
  return FG_OK;
}

/* Opens the directory; -1 and errno, ENOENT if nothing has its name or if the name is a link to
 * nothing (*dangling). Another process may make the directory between two calls, hence two
 * tries. */
static int open_root(const char *path, bool *dangling) {
  struct stat info;
  int fd = -1;
  *dangling = false;
  for (int i = 0; i < 2 && fd < 0 && !*dangling; i++) {
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT || lstat(path, &info)) break;
    *dangling = S_ISLNK(info.st_mode);
  }
  return fd;
}

/* Opens and judges the directory. *fd = -1 with FG_OK: it is not there. */
static fg_status root_try(const fg_root *root, int *fd) {
  struct stat info;
  bool dangling;
  *fd = open_root(root->path, &dangling);
  if (*fd < 0 && errno == ENOENT && !dangling) return FG_OK;
  if (*fd < 0)
    return fg_fail(FG_EENVIRONMENT, "the kernel cache %s cannot be used: %s", root->path,
                   dangling ? "it is a link to nothing" : strerror(errno));
  fg_status status = fstat(*fd, &info) ? fg_fail(FG_EENVIRONMENT, "the kernel cache %s: %s",
                                                 root->path, strerror(errno))
                                       : judge(root, &info);
  if (status != FG_OK) {
    close(*fd);
    *fd = -1;
  }
  return status;
}

fg_status fg_root_open(fg_root *root) {
  int fd;
  TRY(root_try(root, &fd));
  root->fd = fd;
  return FG_OK;
}

/* --- making it --- */

/* Like mkdir -p. Whether it worked is for the caller to find out, by opening the directory; errno
 * is that of the last mkdir. */
static void make_path(char *path) {
  if (mkdir(path, OURS_ALONE) == 0 || errno != ENOENT) return;
  char *slash = strrchr(path, '/');
  if (!slash || slash == path) return;
  *slash = 0;
  make_path(path);
  *slash = '/';
  mkdir(path, OURS_ALONE);
}

/* Makes the directory and opens it; *fd is valid with FG_OK only. */
static fg_status root_new(fg_root *root, int *fd) {
  char *path = strdup(root->path);
  if (!path) return no_memory();
  make_path(path);
  int why = errno;
  free(path);
  TRY(root_try(root, fd));
  if (*fd >= 0) return FG_OK;
  return fg_fail(FG_EENVIRONMENT, "the kernel cache %s cannot be made: %s", root->path,
                 strerror(why));
}

/* A removed directory has no links left. dup3 gives the number of its descriptor to the new
 * directory in one step, because other threads may be using that number. */
int fg_root_make(fg_cache *cache) {
  struct stat info;
  int fd = cache->own.fd, fresh;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_nlink > 0) return fd;
  pthread_mutex_lock(&cache->root_mutex);
  fd = cache->own.fd;
  if (fd < 0 || fstat(fd, &info) || info.st_nlink == 0) {
    if (root_new(&cache->own, &fresh) != FG_OK)
      fd = -1;
    else if (fd < 0)
      cache->own.fd = fd = fresh;
    else {
      dup3(fresh, fd, O_CLOEXEC);
      close(fresh);
    }
  }
  pthread_mutex_unlock(&cache->root_mutex);
  return fd;
}

int fg_dir_at(int parent, const char *name, bool make) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  struct stat info;
  int fd = openat(parent, name, flags, 0);
  if (fd < 0 && errno == ENOENT && make &&
      (mkdirat(parent, name, OURS_ALONE) == 0 || errno == EEXIST))
    fd = openat(parent, name, flags, 0);
  if (fd < 0) return -1;
  if (fstat(fd, &info) == 0 && fg_is_trusted(&info)) return fd;
  close(fd);
  errno = EPERM;
  return -1;
}

int fg_bucket_open(int root, const char *bucket, bool make) {
  int all = fg_dir_at(root, "k", make);
  if (all < 0) return -1;
  int fd = fg_dir_at(all, bucket, make), why = errno;
  close(all);
  errno = why;
  return fd;
}
