/* cache_lock.c - a key's lock between processes: it saves work and nothing depends on it.
 *
 * There are 256 files, locks/<2 hex>, made when first needed and never removed (a file removed
 * while its lock is held would be made again, and locked a second time). A key's lock is one byte
 * of its file, so that two keys wait for each other only by a chance of 2^-30. The lock belongs to
 * the open file (OFD): the kernel drops it with the process. flock would lock the whole file;
 * fcntl's older locks belong to the process, and closing any descriptor of the file drops them. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "base/setting.h"
#include "cache_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Pauses between attempts, in ns: from 1 ms, doubling, to 32 ms; a compile takes 300 ms. */
enum { PAUSE_MIN = 1000000, PAUSE_MAX = 32000000 };

/* Opens the file that holds the locks of a bucket, and makes it if it is not there; -1: no lock can
 * be had. */
static int lock_file(fg_cache *cache, const char *bucket) {
  int root = fg_root_make(cache);
  if (root < 0) return -1;
  int locks = fg_dir_at(root, "locks", true);
  if (locks < 0) return -1;
  int file = openat(locks, bucket, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  close(locks);
  return file;
}

/* Whether the lock is ours now. If not, errno is EAGAIN or EACCES where somebody else holds it; any
 * other means that no lock can be had. */
static bool try_lock(int file, const fg_slot *slot) {
  uint32_t place;
  memcpy(&place, slot->digest + 8, sizeof place);
  struct flock one = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  one.l_start = place & 0x3fffffff;
  return fcntl(file, F_OFD_SETLK, &one) == 0;
}

int fg_lock_take(fg_cache *cache, const fg_slot *slot) {
  if (!cache->own.path) return -1;
  int file = lock_file(cache, slot->bucket);
  if (file < 0) return -1;
  int64_t end = fg_seconds(CLOCK_MONOTONIC) + cache->lock_seconds;
  struct timespec pause = {.tv_nsec = PAUSE_MIN};
  while (!try_lock(file, slot)) {
    bool held = errno == EAGAIN || errno == EACCES;
    if (held && fg_seconds(CLOCK_MONOTONIC) < end) {
      nanosleep(&pause, NULL);
      if (pause.tv_nsec < PAUSE_MAX) pause.tv_nsec *= 2;
      continue;
    }
    if (held) {
      fg_cache_add(cache, FG_COUNT_LOCK_TIMEOUTS, 1);
      fg_cache_say_once(cache, FG_TROUBLE_LOCK,
                        "another process has been producing the same kernel for %lld s (%s): it is "
                        "no longer waited for",
                        (long long)cache->lock_seconds, fg_settings[FG_SET_LOCK_SECONDS].name);
    }
    close(file);
    return -1;
  }
  return file;
}

/* Frees the lock and closes its file. To close alone is not enough: a child that was forked
 * meanwhile has the open file, too, and would keep the lock for as long as it lives. */
void fg_lock_drop(int lock) {
  if (lock < 0) return;
  struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  fcntl(lock, F_OFD_SETLK, &all);
  close(lock);
}
