/* wisdom.c - files of measurements: reading, appending, compacting, merging.
 *
 * Writers hold a lock of the file that they write (flock). Compaction puts a new file in its place,
 * so a writer that has the lock checks whether the file still has its name. */
#define _GNU_SOURCE
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wisdom.h"

#include "shape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 30 }; /* bytes: some millions of lines */

/* FG_EIO: "PATH cannot be WHAT: errno". */
static fg_status failed(const char *path, const char *what) {
  return fg_fail(FG_EIO, "%s cannot be %s: %s", path, what, strerror(errno));
}

/* Reading ---------------------------------------------------------------------------------- */

/* Reads a regular file from its beginning. After a failure fg_wisdom_free frees what *w holds. */
static fg_status slurp(int fd, const char *path, fg_wisdom *w) {
  struct stat info;
  if (fstat(fd, &info)) return failed(path, "read");
  if (!S_ISREG(info.st_mode) || info.st_size > FILE_MAX)
    return fg_fail(FG_EIO, "%s is %s, no file of wisdom", path,
                   S_ISREG(info.st_mode) ? "longer than 1 GiB" : "no regular file");
  w->text = malloc((size_t)info.st_size + 1);
  w->path = strdup(path);
  if (!w->text || !w->path) return fg_fail(FG_EMEMORY, "no memory for %s", path);
  w->n = 0;
  while (w->n < (size_t)info.st_size) {
    ssize_t got = pread(fd, w->text + w->n, (size_t)info.st_size - w->n, (off_t)w->n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path, "read");
    if (got == 0) break; /* the file became shorter */
    w->n += (size_t)got;
  }
  w->text[w->n] = 0;
  return FG_OK;
}

fg_status fg_wisdom_read(const char *path, bool optional, fg_wisdom *wisdom) {
  fg_wisdom w = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && !(optional && errno == ENOENT)) return failed(path, "read");
  fg_status status = FG_OK;
  if (fd >= 0) {
    status = slurp(fd, path, &w);
    close(fd);
  }
  if (status == FG_OK)
    *wisdom = w;
  else
    fg_wisdom_free(&w);
  return status;
}

void fg_wisdom_free(fg_wisdom *w) {
  free(w->text);
  free(w->path);
  *w = (fg_wisdom){0};
}

/* A last line without its end may still be in writing; it counts if it is good. */
void fg_wisdom_count(const fg_wisdom *w, fg_wisdom_report *r) {
  fg_measured m;
  const char *line, *why = NULL;
  size_t at = 0, n;
  bool whole;
  *r = (fg_wisdom_report){0};
  for (int number = 1; fg_wisdom_next(w->text, w->n, &at, &line, &n, &whole); number++) {
    switch (fg_measured_parse(line, n, &m, &why)) {
    case FG_LINE_GOOD:
      r->good++;
      if (!(why = fg_measured_nonsense(&m)) || r->nonsense++) break;
      r->first_nonsense = number;
      snprintf(r->what, sizeof r->what, "%s", why);
      break;
    case FG_LINE_COMMENT:
      r->comments++;
      break;
    case FG_LINE_NEWER:
      r->newer++;
      break;
    case FG_LINE_BAD:
      if (r->bad++) break;
      r->first_bad = number;
      snprintf(r->why, sizeof r->why, "%s", why);
    }
  }
}

/* Writing ---------------------------------------------------------------------------------- */

/* Drops the lock, which a child that was forked meanwhile would keep, and closes the file. */
static int close_locked(int fd) { return flock(fd, LOCK_UN), close(fd); }

/* Opens the file that has the name now, made if there is none, and takes its lock. */
static fg_status open_locked(const char *path, int *result) {
  for (;;) {
    struct stat mine, named;
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return failed(path, "written");
    while (flock(fd, LOCK_EX) && errno == EINTR) continue;
    if (fstat(fd, &mine) || !S_ISREG(mine.st_mode)) {
      close_locked(fd);
      return fg_fail(FG_EIO, "%s is no regular file, no file of wisdom", path);
    }
    if (stat(path, &named) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
      *result = fd;
      return FG_OK;
    }
    close_locked(fd); /* another file got the name meanwhile */
  }
}

fg_status fg_wisdom_check(const char *path) {
  int fd;
  TRY(open_locked(path, &fd));
  close_locked(fd);
  return FG_OK;
}

/* Writes all n bytes; false and errno if that fails. */
static bool write_all(int fd, const char *text, size_t n) {
  while (n) {
    ssize_t put = write(fd, text, n);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    text += put, n -= (size_t)put;
  }
  return true;
}

/* Appends a line to the locked file. If the file ends in a torn line, a line's end comes first.
 * After a failure the file is cut back to its length. */
static fg_status append(int fd, const char *path, const char *text, size_t n) {
  char last = '\n', line[FG_WISDOM_LINE + 1];
  off_t end = lseek(fd, 0, SEEK_END);
  if (end > 0 && pread(fd, &last, 1, end - 1) != 1) return failed(path, "read");
  n = (size_t)snprintf(line, sizeof line, "%s%s", last == '\n' ? "" : "\n", text);
  if (write_all(fd, line, n)) return FG_OK;
  const int error = errno;
  if (ftruncate(fd, end)) return failed(path, "cut back after a write that failed");
  errno = error;
  return failed(path, "written");
}

fg_status fg_wisdom_append(const char *path, const fg_measured *measured) {
  char line[FG_WISDOM_LINE];
  int fd, n = fg_measured_print(measured, line);
  TRY(open_locked(path, &fd));
  fg_status status = append(fd, path, line, (size_t)n);
  if (close_locked(fd) && status == FG_OK) status = failed(path, "written");
  return status;
}

/* Joining ---------------------------------------------------------------------------------- */

/* A line that may stay. Its text belongs to the file. */
typedef struct {
  XXH128_hash_t key; /* of the thing measured; in lines that are not good, of the line itself */
  int64_t when;
  int order; /* among all lines read, from 0 */
  bool good, dropped;
  const char *line;
  size_t n;
} item;

typedef struct {
  item *item;
  int n, room;
  char *bad; /* the bad lines, each with its end */
  size_t bad_n;
  fg_wisdom_report *report;
} joint;

/* Equal for lines of the same variant, device, generation and shape. */
static XXH128_hash_t key_of(const fg_measured *m) {
  char text[FG_WISDOM_LINE];
  char shape[FG_SHAPE_TEXT];
  fg_shape_print(&m->shape, sizeof shape, shape);
  int n = snprintf(text, sizeof text, "%s\t%s\t%d\t%s\t%s", m->name, m->device, m->generation,
                   m->expression, shape);
  return XXH3_128bits(text, (size_t)n);
}

/* Appends the item and numbers it. */
static fg_status add_item(joint *j, item added) {
  if (j->n == j->room) {
    j->room = 2 * j->room + 64;
    item *grown = realloc(j->item, (size_t)j->room * sizeof *grown);
    if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d lines of wisdom", j->room);
    j->item = grown;
  }
  added.order = j->n;
  j->item[j->n++] = added;
  return FG_OK;
}

static fg_status add_bad(joint *j, const char *line, size_t n) {
  char *grown = realloc(j->bad, j->bad_n + n + 1);
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for a line of wisdom");
  j->bad = grown;
  memcpy(grown + j->bad_n, line, n);
  grown[j->bad_n + n] = '\n';
  j->bad_n += n + 1;
  return FG_OK;
}

/* Sorts a line into the items or the bad lines, and counts it. Comments stay only in the `own`
 * file. */
static fg_status add_line(joint *j, const char *line, size_t n, bool own) {
  fg_measured m;
  const fg_line_kind kind = fg_measured_parse(line, n, &m, NULL);
  n -= n && line[n - 1] == '\r';
  const item added = {.line = line, .n = n, .key = XXH3_128bits(line, n)};
  if (kind == FG_LINE_BAD) return j->report->bad++, add_bad(j, line, n);
  if (kind == FG_LINE_COMMENT && !own) return FG_OK;
  j->report->comments += kind == FG_LINE_COMMENT;
  j->report->newer += kind == FG_LINE_NEWER;
  if (kind != FG_LINE_GOOD) return add_item(j, added);
  item good = added;
  j->report->good++;
  good.key = key_of(&m), good.when = m.when, good.good = true;
  return add_item(j, good);
}

static fg_status add_lines(joint *j, const fg_wisdom *w, bool own) {
  const char *line;
  size_t at = 0, n;
  bool whole;
  while (fg_wisdom_next(w->text, w->n, &at, &line, &n, &whole)) TRY(add_line(j, line, n, own));
  return FG_OK;
}

/* The latest line of one thing comes last among its equals. */
static int by_key(const void *left, const void *right) {
  const item *a = left, *b = right;
  int order = XXH128_cmp(&a->key, &b->key);
  if (order) return order;
  if (a->when != b->when) return a->when < b->when ? -1 : 1;
  return a->order < b->order ? -1 : 1;
}

static int by_order(const void *left, const void *right) {
  const item *a = left, *b = right;
  return (a->order > b->order) - (a->order < b->order);
}

/* Marks all lines of one thing but the latest as dropped; no comment is. Items keep their order. */
static void drop(joint *j) {
  qsort(j->item, (size_t)j->n, sizeof *j->item, by_key);
  for (int i = 0; i + 1 < j->n; i++) {
    item *x = &j->item[i];
    bool comment = !x->good && (!x->n || *x->line == '#');
    x->dropped = !comment && XXH128_isEqual(x->key, x[1].key);
    j->report->dropped += x->dropped;
  }
  qsort(j->item, (size_t)j->n, sizeof *j->item, by_order);
}

/* Appends the bad lines to PATH.bad. */
static fg_status put_bad(const joint *j, const char *path) {
  char name[4096];
  if (!j->bad_n) return FG_OK;
  if (snprintf(name, sizeof name, "%s.bad", path) >= (int)sizeof name)
    return fg_fail(FG_EIO, "%s.bad: the name is too long", path);
  int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return failed(name, "written");
  bool good = write_all(fd, j->bad, j->bad_n) && fsync(fd) == 0;
  if (close(fd) || !good) return failed(name, "written");
  return FG_OK;
}

/* Writes the lines that stay, and brings them to the disk. */
static fg_status put_items(const joint *j, int fd, const char *path) {
  char buffer[1 << 16];
  size_t n = 0;
  for (int i = 0; i <= j->n; i++) {
    const item *x = i < j->n ? &j->item[i] : NULL;
    if (x && x->dropped) continue;
    if (!x || n + x->n + 1 > sizeof buffer) {
      if (!write_all(fd, buffer, n)) return failed(path, "written");
      n = 0;
    }
    if (!x) break;
    if (x->n + 1 > sizeof buffer) { /* a line of a newer format: lines of this one are shorter */
      if (!write_all(fd, x->line, x->n) || !write_all(fd, "\n", 1)) return failed(path, "written");
      continue;
    }
    memcpy(buffer + n, x->line, x->n);
    buffer[n + x->n] = '\n';
    n += x->n + 1;
  }
  return fsync(fd) ? failed(path, "written") : FG_OK;
}

/* Puts a new file with the lines that stay in the place of the old one, whose lock is held. */
static fg_status replace(const joint *j, const char *path, int old) {
  char name[4096];
  struct stat info;
  if (fstat(old, &info)) return failed(path, "read");
  if (snprintf(name, sizeof name, "%s.tmp.%ld", path, (long)getpid()) >= (int)sizeof name)
    return fg_fail(FG_EIO, "%s: the name is too long", path);
  unlink(name); /* of an earlier process with this number */
  int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, info.st_mode & 0777);
  if (fd < 0) return failed(name, "written");
  fg_status status = put_items(j, fd, name);
  if (close(fd) && status == FG_OK) status = failed(name, "written");
  if (status == FG_OK && rename(name, path)) status = failed(path, "replaced");
  if (status != FG_OK) unlink(name);
  return status;
}

/* Rewrites the locked file `old` with its own lines and those of n files without bad lines. */
static fg_status join(const char *path, int old, int n, const fg_wisdom *added,
                      fg_wisdom_report *report) {
  joint j = {.report = report};
  fg_wisdom own = {0};
  fg_status status = FG_OK;
  TRY_OUT(slurp(old, path, &own));
  TRY_OUT(add_lines(&j, &own, true));
  for (int i = 0; i < n; i++) TRY_OUT(add_lines(&j, &added[i], false));
  drop(&j);
  report->kept = report->good - report->dropped;
  TRY_OUT(put_bad(&j, path));
  TRY_OUT(replace(&j, path, old));
out:
  fg_wisdom_free(&own);
  free(j.item);
  free(j.bad);
  return status;
}

/* Locks and joins. If `path` is a link, the file that it leads to is replaced. */
static fg_status join_at(const char *path, int n, const fg_wisdom *added,
                         fg_wisdom_report *report) {
  int fd;
  *report = (fg_wisdom_report){0};
  TRY(open_locked(path, &fd));
  char *real = realpath(path, NULL);
  fg_status status = real ? join(real, fd, n, added, report) : failed(path, "found");
  close_locked(fd);
  free(real);
  return status;
}

fg_status fg_wisdom_compact(const char *path, fg_wisdom_report *report) {
  if (access(path, F_OK)) return failed(path, "read");
  return join_at(path, 0, NULL, report);
}

/* FG_EIO, with the file and the line, if the file has a bad line. */
static fg_status check_good(const fg_wisdom *w) {
  fg_wisdom_report r;
  fg_wisdom_count(w, &r);
  if (!r.bad) return FG_OK;
  return fg_fail(FG_EIO,
                 "%s line %d: %s; nothing was merged (flashgen wisdom compact sets such lines "
                 "aside)",
                 w->path, r.first_bad, r.why);
}

fg_status fg_wisdom_merge(const char *path, int n, const char *const *files,
                          fg_wisdom_report *report) {
  fg_wisdom *added = calloc((size_t)n + 1, sizeof *added);
  fg_status status = added ? FG_OK : fg_fail(FG_EMEMORY, "no memory for %d files", n);
  for (int i = 0; i < n && status == FG_OK; i++) {
    status = fg_wisdom_read(files[i], false, &added[i]);
    if (status == FG_OK) status = check_good(&added[i]);
  }
  if (status == FG_OK) status = join_at(path, n, added, report);
  for (int i = 0; i < n && added; i++) fg_wisdom_free(&added[i]);
  free(added);
  return status;
}
