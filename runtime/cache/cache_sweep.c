/* cache_sweep.c - all entries of the own directory: stat, verify, gc, clear.
 *
 * Only names of entries and temporaries are ever touched. Other processes read, write and evict at
 * the same time, so every file may vanish between two calls, and that is no error.
 *
 * Clocks jump, and clocks of file servers differ from ours. Ages are taken from the files' stamps
 * alone. A stamp in the future says nothing about age, so entries with one are evicted before all
 * others, in the order of their stamps; after a clock was set back they are in fact the oldest. No
 * entry is evicted before the size demands it. */
#include "cache_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  UNIT = 4096,      /* bytes: a file is counted in whole blocks, as most disks store it */
  GRACE = 60,       /* seconds that a new entry is safe from eviction */
  STALE = 3600,     /* seconds after which a temporary's writer is taken for dead */
  SWEEP_SHARE = 16, /* the size is looked at again after 1/16 of it was written */
  KEEP_NUM = 7,
  KEEP_DEN = 8, /* eviction leaves 7/8 of the size, so that the next one is not due soon */
};

typedef struct file_seen {
  fg_slot slot;
  bool future;
  int64_t used; /* ns since 1970 */
  uint64_t bytes;
} file_seen;

typedef struct sweep {
  fg_cache *cache;
  fg_cache_report *report;
  int64_t now; /* seconds since 1970 */
  file_seen *seen;
  size_t n, room;
} sweep;

/* slot = NULL: a temporary. */
typedef fg_status visitor(sweep *s, int bucket, const char *name, const fg_slot *slot,
                          const struct stat *info);

static uint64_t units(const struct stat *info) {
  return ((uint64_t)info->st_size + UNIT - 1) / UNIT * UNIT;
}

static int64_t stamp(struct timespec t) { return t.tv_sec * INT64_C(1000000000) + t.tv_nsec; }

/* The later of the two stamps, in ns since 1970: a file may be written but never read. */
static int64_t last_use(const struct stat *info) {
  int64_t used = stamp(info->st_atim), made = stamp(info->st_mtim);
  return used < made ? made : used;
}

static void remove_file(sweep *s, int bucket, const char *name, uint64_t bytes) {
  if (unlinkat(bucket, name, 0)) return;
  s->report->removed++;
  s->report->removed_bytes += bytes;
}

/* --- the walk --- */

/* Visits all entries and temporaries of one bucket until a visit fails; none if it is not there. */
static fg_status walk_bucket(sweep *s, int all, const char *name, visitor *visit) {
  int bucket = fg_dir_at(all, name, false);
  if (bucket < 0 && errno == ENOENT) return FG_OK;
  DIR *list = bucket < 0 ? NULL : fdopendir(bucket);
  if (!list) {
    fg_status status =
        fg_fail(FG_EIO, "%s/k/%s cannot be listed: %s", s->cache->own.path, name, strerror(errno));
    if (bucket >= 0) close(bucket);
    return status;
  }
  fg_status status = FG_OK;
  for (struct dirent *e; status == FG_OK && (e = readdir(list));) {
    fg_slot slot;
    struct stat info;
    bool entry = fg_slot_parse(name, e->d_name, &slot);
    if (!entry && strncmp(e->d_name, ".tmp.", 5) != 0) continue;
    if (fstatat(bucket, e->d_name, &info, AT_SYMLINK_NOFOLLOW) || S_ISDIR(info.st_mode)) continue;
    status = visit(s, bucket, e->d_name, entry ? &slot : NULL, &info);
  }
  closedir(list);
  return status;
}

/* Clears the report and visits all entries and temporaries until a visit fails. */
static fg_status walk(sweep *s, visitor *visit) {
  *s->report = (fg_cache_report){0};
  s->now = fg_seconds(CLOCK_REALTIME);
  int root = s->cache->own.path ? s->cache->own.fd : -1;
  if (root < 0) return FG_OK;
  int all = fg_dir_at(root, "k", false);
  if (all < 0 && errno == ENOENT) return FG_OK;
  if (all < 0)
    return fg_fail(FG_EIO, "%s/k cannot be listed: %s", s->cache->own.path, strerror(errno));
  fg_status status = FG_OK;
  for (int i = 0; i < 256 && status == FG_OK; i++) {
    char name[3];
    snprintf(name, sizeof name, "%02x", (unsigned)i & 0xff);
    status = walk_bucket(s, all, name, visit);
  }
  close(all);
  return status;
}

/* --- stat, clear --- */

static fg_status visit_stat(sweep *s, int bucket, const char *name, const fg_slot *slot,
                            const struct stat *info) {
  (void)bucket, (void)name;
  if (slot)
    s->report->entries++, s->report->bytes += units(info);
  else
    s->report->temporaries++;
  return FG_OK;
}

fg_status fg_cache_stat(fg_cache *cache, fg_cache_report *report) {
  return walk(&(sweep){.cache = cache, .report = report}, visit_stat);
}

static fg_status visit_clear(sweep *s, int bucket, const char *name, const fg_slot *slot,
                             const struct stat *info) {
  (void)slot;
  remove_file(s, bucket, name, units(info));
  return FG_OK;
}

fg_status fg_cache_clear(fg_cache *cache, fg_cache_report *report) {
  return walk(&(sweep){.cache = cache, .report = report}, visit_clear);
}

/* --- verify --- */

/* Counts an entry that is whole, warns of one that is bad, and removes it if it is still the
 * same. */
static fg_status visit_verify(sweep *s, int bucket, const char *name, const fg_slot *slot,
                              const struct stat *info) {
  if (!slot) return visit_stat(s, bucket, name, slot, info);
  int file;
  struct stat opened;
  fg_image *image = NULL;
  fg_read result = fg_entry_open(bucket, name, &file, &opened);
  if (result == FG_READ_OK) {
    result = fg_image_read(file, (uint64_t)opened.st_size, slot, &image);
    close(file);
  }
  if (image) fg_entry_free(&image->entry);
  if (result == FG_READ_CORRUPT || result == FG_READ_REFUSED) {
    s->report->bad++;
    fg_cache_say(s->cache, "%s/k/%s/%s is %s", s->cache->own.path, slot->bucket, name,
                 result == FG_READ_CORRUPT ? "damaged" : "not a plain file of ours");
    if (fg_unlink_same(bucket, name, info)) {
      s->report->removed++, s->report->removed_bytes += units(info);
      return FG_OK;
    }
  }
  return result == FG_READ_ABSENT ? FG_OK : visit_stat(s, bucket, name, slot, info);
}

fg_status fg_cache_verify(fg_cache *cache, fg_cache_report *report) {
  return walk(&(sweep){.cache = cache, .report = report}, visit_verify);
}

/* --- gc --- */

/* Counts a file; removes a stale temporary; lists an entry that is old enough to be evicted. */
static fg_status visit_gc(sweep *s, int bucket, const char *name, const fg_slot *slot,
                          const struct stat *info) {
  visit_stat(s, bucket, name, slot, info);
  if (!slot) {
    if (llabs(s->now - info->st_mtim.tv_sec) <= STALE || unlinkat(bucket, name, 0)) return FG_OK;
    s->report->temporaries--;
    fg_cache_add(s->cache, FG_COUNT_SWEPT, 1);
    return FG_OK;
  }
  if (llabs(s->now - info->st_mtim.tv_sec) < GRACE) return FG_OK;
  if (s->n == s->room) {
    size_t room = s->room ? 2 * s->room : 1024;
    file_seen *seen = realloc(s->seen, room * sizeof *seen);
    if (!seen) return fg_fail(FG_EMEMORY, "no memory to list the kernel cache");
    s->seen = seen, s->room = room;
  }
  int64_t used = last_use(info);
  s->seen[s->n++] = (file_seen){.slot = *slot,
                                .future = used / 1000000000 > s->now + GRACE,
                                .used = used,
                                .bytes = units(info)};
  return FG_OK;
}

/* The order of eviction: entries with a stamp in the future, then the least recently used. */
static int compare(const void *left, const void *right) {
  const file_seen *a = left, *b = right;
  if (a->future != b->future) return a->future ? -1 : 1;
  if (a->used != b->used) return a->used < b->used ? -1 : 1;
  return memcmp(a->slot.digest, b->slot.digest, sizeof a->slot.digest);
}

/* Whether the entry is gone, through this call or another process. An entry that was used since it
 * was listed stays. */
static bool evict(sweep *s, int root, const file_seen *f) {
  struct stat info;
  int bucket = fg_bucket_open(root, f->slot.bucket, false);
  if (bucket < 0) return errno == ENOENT;
  const bool seen = fstatat(bucket, f->slot.file, &info, AT_SYMLINK_NOFOLLOW) == 0;
  bool gone = !seen && errno == ENOENT;
  if (seen && last_use(&info) == f->used) {
    gone = unlinkat(bucket, f->slot.file, 0) == 0;
    if (gone) {
      s->report->removed++, s->report->removed_bytes += f->bytes;
      fg_cache_add(s->cache, FG_COUNT_EVICTED, 1);
    } else
      gone = errno == ENOENT;
  }
  close(bucket);
  return gone;
}

fg_status fg_cache_gc(fg_cache *cache, uint64_t bytes, fg_cache_report *report) {
  sweep s = {.cache = cache, .report = report};
  if (!bytes) bytes = cache->cap;
  fg_status status = walk(&s, visit_gc);
  if (status == FG_OK && report->bytes > bytes) {
    qsort(s.seen, s.n, sizeof *s.seen, compare);
    uint64_t keep = bytes / KEEP_DEN * KEEP_NUM;
    for (size_t i = 0; i < s.n && report->bytes > keep; i++)
      if (evict(&s, cache->own.fd, &s.seen[i])) report->entries--, report->bytes -= s.seen[i].bytes;
  }
  free(s.seen);
  return status;
}

/* A failure is not reported: the caller only wanted a kernel, and `flashgen cache gc` reports
 * it. */
void fg_sweep_if_due(fg_cache *cache) {
  fg_cache_report report;
  if (cache->unswept <= cache->cap / SWEEP_SHARE || atomic_flag_test_and_set(&cache->sweeping))
    return;
  cache->unswept = 0;
  fg_cache_gc(cache, 0, &report);
  atomic_flag_clear(&cache->sweeping);
}
