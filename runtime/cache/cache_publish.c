/* cache_publish.c - writing an entry: temporary in the same directory, fsync, close, rename.
 *
 * A reader sees the whole entry or none, also after a power failure. The entry is never read back:
 * on a network file system it may not be visible yet, and the caller has its bytes. */
#include "cache_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
  NAMES = 100,     /* temporaries tried; a name holds 64 random bits, so the first one is free */
  FULL_PAUSE = 60, /* seconds without writing after the disk was full */
};

/* A new file in the bucket; -1 and errno. */
static int open_temporary(int bucket, char name[64]) {
  static atomic_uint counter;
  int file = -1;
  for (int i = 0; i < NAMES && file < 0; i++) {
    uint64_t noise = 0;
    if (getrandom(&noise, sizeof noise, GRND_NONBLOCK) != sizeof noise)
      noise =
          (uint64_t)(uintptr_t)&noise; /* O_EXCL makes it right; the noise only makes it quick */
    snprintf(name, 64, ".tmp.%ld.%u.%016llx", (long)getpid(), atomic_fetch_add(&counter, 1),
             (unsigned long long)noise);
    file = openat(bucket, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 && errno != EEXIST) break;
  }
  return file;
}

/* Writes all n bytes; false and errno if that fails. */
static bool write_all(int file, const unsigned char *from, size_t n) {
  while (n > 0) {
    ssize_t put = write(file, from, n);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    from += put, n -= (size_t)put;
  }
  return true;
}

/* Whether an entry of a newer format is there: it is not ours to replace. */
static bool is_newer(int bucket, const fg_slot *slot) {
  struct stat info;
  fg_image *image;
  int file;
  if (fg_entry_open(bucket, slot->file, &file, &info) != FG_READ_OK) return false;
  fg_read result = fg_image_read(file, (uint64_t)info.st_size, slot, &image);
  close(file);
  if (result == FG_READ_OK) fg_entry_free(&image->entry);
  return result == FG_READ_NEWER;
}

/* Writes the entry and gives it its name. NULL on success; otherwise errno and the step that
 * failed, as a participle for the sentence "could not be ...". */
static const char *write_entry(int bucket, const fg_slot *slot, const fg_image *image) {
  char name[64];
  const char *failed = NULL;
  int file = open_temporary(bucket, name);
  if (file < 0) return "made";
  if (!write_all(file, image->bytes, image->n)) failed = "written";
  if (!failed && fsync(file)) failed = "brought to the disk";
  int why = errno;
  if (close(file) && !failed) failed = "closed", why = errno;
  if (!failed && renameat(bucket, name, bucket, slot->file)) failed = "renamed", why = errno;
  if (failed) unlinkat(bucket, name, 0);
  errno = why;
  return failed;
}

/* Like write_entry, but makes the directory where it is not there; "" where the directory cannot be
 * used: fg_error() says why. Another process may remove the directory at any moment; then
 * everything is made again, once. *newer: an entry of a newer format is there, and stays. */
static const char *attempt(fg_cache *cache, const fg_slot *slot, const fg_image *image,
                           bool *newer) {
  const char *failed = NULL;
  for (int i = 0; i < 2; i++) {
    int root = fg_root_make(cache);
    if (root < 0) return "";
    int bucket = fg_bucket_open(root, slot->bucket, true);
    if (bucket < 0) {
      failed = "made";
    } else {
      *newer = is_newer(bucket, slot);
      failed = *newer ? NULL : write_entry(bucket, slot, image);
      int why = errno;
      close(bucket);
      errno = why;
    }
    if (!failed || errno != ENOENT) break;
  }
  return failed;
}

/* Counts a failed attempt and warns once. After a full disk nothing is written for FULL_PAUSE. */
static void complain(fg_cache *cache, const fg_slot *slot, const char *failed, int why) {
  fg_cache_add(cache, FG_COUNT_PUBLISH_FAILED, 1);
  bool full = *failed && (why == ENOSPC || why == EDQUOT);
  if (full) cache->write_again = fg_seconds(CLOCK_MONOTONIC) + FULL_PAUSE;
  if (!*failed)
    fg_cache_say_once(cache, FG_TROUBLE_PUBLISH, "%s; compiled kernels are kept in memory only",
                      fg_error());
  else
    fg_cache_say_once(
        cache, FG_TROUBLE_PUBLISH,
        "%s/k/%s/%s could not be %s: %s; the compiled kernel is kept in memory only%s",
        cache->own.path, slot->bucket, slot->file, failed, strerror(why),
        full ? ", and nothing is written for a minute" : "");
}

bool fg_publish(fg_cache *cache, const fg_slot *slot, const fg_image *image) {
  if (!cache->own.path || fg_seconds(CLOCK_MONOTONIC) < cache->write_again) return false;
  bool newer = false;
  const char *failed = attempt(cache, slot, image, &newer);
  if (failed) complain(cache, slot, failed, errno);
  if (failed || newer) return false;
  fg_cache_add(cache, FG_COUNT_PUBLISHED, 1);
  atomic_fetch_add(&cache->unswept, image->n);
  return true;
}
