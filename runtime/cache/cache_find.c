/* cache_find.c - look-up of one entry in one directory.
 *
 * An entry is opened by its exact name, never found by listing. Nothing is written but the time of
 * use, which orders eviction. It is set explicitly, because file systems keep it only roughly or
 * not at all; O_NOATIME keeps reads from setting it. */
#define _GNU_SOURCE /* O_NOATIME */
#include "cache_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* O_NOFOLLOW and O_NONBLOCK: a link is not followed, a FIFO does not block. */
static int open_entry(int bucket, const char *file_name) {
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int file = openat(bucket, file_name, flags | O_NOATIME, 0);
  if (file < 0 && errno == EPERM) file = openat(bucket, file_name, flags, 0); /* root's file */
  return file;
}

/* A file that was evicted after it was opened has no link left. Its bytes are still good: only a
 * second link is refused. */
fg_read fg_entry_open(int bucket, const char *file_name, int *file, struct stat *info) {
  *file = open_entry(bucket, file_name);
  if (*file < 0) {
    if (errno == ENOENT) return FG_READ_ABSENT;
    return errno == ELOOP || errno == ENXIO ? FG_READ_REFUSED : FG_READ_FAILED;
  }
  fg_read result = fstat(*file, info) ? FG_READ_FAILED : FG_READ_OK;
  if (result == FG_READ_OK &&
      (!S_ISREG(info->st_mode) || !fg_is_trusted(info) || info->st_nlink > 1))
    result = FG_READ_REFUSED;
  if (result != FG_READ_OK) {
    int why = errno;
    close(*file);
    errno = why;
  }
  return result;
}

bool fg_unlink_same(int bucket, const char *file_name, const struct stat *info) {
  struct stat now;
  if (fstatat(bucket, file_name, &now, AT_SYMLINK_NOFOLLOW)) return false;
  if (now.st_ino != info->st_ino || now.st_dev != info->st_dev || now.st_size != info->st_size ||
      now.st_mtim.tv_sec != info->st_mtim.tv_sec || now.st_mtim.tv_nsec != info->st_mtim.tv_nsec)
    return false;
  return unlinkat(bucket, file_name, 0) == 0;
}

static void touch(int file) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
  futimens(file, times); /* best effort: the order of eviction suffers, nothing else */
}

/* Counts a file that was found but gives no entry, and warns once of each kind of trouble. errno
 * `why` explains FG_READ_FAILED. */
static void complain(fg_cache *cache, const fg_root *root, const fg_slot *slot, fg_read result,
                     int why) {
  const char *path = root->path, *bucket = slot->bucket, *file = slot->file;
  if (result == FG_READ_CORRUPT) {
    fg_cache_add(cache, FG_COUNT_CORRUPT, 1);
    fg_cache_say_once(cache, FG_TROUBLE_CORRUPT,
                      "%s/k/%s/%s is damaged and is made again (further ones are only counted)",
                      path, bucket, file);
  } else if (result == FG_READ_NEWER) {
    fg_cache_add(cache, FG_COUNT_NEWER, 1);
    fg_cache_say_once(cache, FG_TROUBLE_NEWER,
                      "%s/k/%s/%s was written by a newer flashgen and is left alone", path, bucket,
                      file);
  } else if (result == FG_READ_REFUSED || result == FG_READ_FAILED) {
    fg_cache_add(cache, FG_COUNT_REFUSED, 1);
    fg_cache_say_once(cache, FG_TROUBLE_REFUSED, "%s/k/%s/%s is not used: %s", path, bucket, file,
                      result == FG_READ_FAILED
                          ? strerror(why)
                          : "it is not a plain file with one name that only its owner can write");
  }
}

/* Reads the entry in the slot, whichever key it has; errno explains FG_READ_FAILED. In the own
 * directory it sets the time of use and, unless `again`, removes a damaged file. */
static fg_read look(fg_root *root, const fg_slot *slot, bool again, fg_image **image) {
  struct stat info;
  int file, bucket = fg_bucket_open(root->fd, slot->bucket, false);
  if (bucket < 0) return errno == ENOENT ? FG_READ_ABSENT : FG_READ_FAILED;
  fg_read result = fg_entry_open(bucket, slot->file, &file, &info);
  int why = errno;
  if (result == FG_READ_OK) {
    result = fg_image_read(file, (uint64_t)info.st_size, slot, image);
    why = errno;
    if (result == FG_READ_OK && root->own) touch(file);
    if (result == FG_READ_CORRUPT && root->own && !again) fg_unlink_same(bucket, slot->file, &info);
    close(file);
  }
  close(bucket);
  errno = why;
  return result;
}

fg_image *fg_find(fg_cache *cache, fg_root *root, const fg_slot *slot, const fg_key *key,
                  bool again) {
  fg_image *image;
  if (root->fd < 0) return NULL;
  fg_read result = look(root, slot, again, &image);
  if (result != FG_READ_OK) {
    if (!again) complain(cache, root, slot, result, errno);
    return NULL;
  }
  if (fg_image_is_for(image, key)) return image;
  fg_entry_free(&image->entry); /* another key with the same digest */
  return NULL;
}
