/* zoo_make.c - stages code files, keeps the journal, and turns both into a zoo. */
#define _GNU_SOURCE /* asprintf */
#include "zoo_make.h"

#include "base/setting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JOURNAL "journal.txt"
#define STAGED  ".new"

struct fg_zoo_make {
  char *dir;
  int fd, journal;
  pthread_mutex_t lock; /* held while the journal is opened */
  fg_zoo_reader *old;   /* NULL: none, or a damaged one */
  char *journal_text;   /* of earlier runs; items point into it */
  fg_zoo_item *item;
  int n;
};

/* FG_EIO: "DIR/FILE cannot be WHAT: errno". */
static fg_status failed(const fg_zoo_make *m, const char *file, const char *what) {
  return fg_fail(FG_EIO, "%s/%s cannot be %s: %s", m->dir, file, what, strerror(errno));
}

/* ---- what earlier runs left ---- */

/* Waits for the lock of the directory; FG_EIO once *stop is set. The workers of a killed process
 * hold its lock too, because they may still write. */
static fg_status lock(const fg_zoo_make *m, const volatile int *stop) {
  const struct timespec tick = {.tv_nsec = 20000000};
  while (flock(m->fd, LOCK_EX | LOCK_NB) && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (*stop) return fg_fail(FG_EIO, "%s is in use by another process", m->dir);
    nanosleep(&tick, NULL);
  }
  return FG_OK; /* on a file system without locks the zoo is made without one */
}

/* Reads the items of earlier runs; blocks that a full disk or a kill has torn are skipped. */
static fg_status read_journal(fg_zoo_make *m) {
  size_t n;
  int line = 0, room = 0;
  if (fg_zoo_slurp(m->fd, JOURNAL, &m->journal_text, &n) != FG_OK)
    return errno == ENOENT ? FG_OK : failed(m, JOURNAL, "read");
  for (const char *v = m->journal_text; (v = strstr(v, "variant ")); v++) room++;
  m->item = calloc((size_t)room + 1, sizeof *m->item);
  if (!m->item) return fg_fail(FG_EMEMORY, "no memory for %s/" JOURNAL, m->dir);
  for (char *at = m->journal_text; (at = strstr(at, "variant "));) {
    char *block = at;
    if (fg_zoo_parse(&at, &line, &m->item[m->n]) == FG_OK)
      m->n++;
    else
      at = at > block ? at : block + 1;
  }
  return FG_OK;
}

/* Whether the file begins as no manifest does; another program may have written it. */
static bool is_foreign(const fg_zoo_make *m) {
  static const char begin[] = FG_ZOO_HEADER;
  char text[sizeof begin] = "";
  int fd = openat(m->fd, FG_ZOO_MANIFEST, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof begin - 1);
  if (fd >= 0) close(fd);
  return n > 0 && strncmp(text, begin, (size_t)n) != 0;
}

/* Opens the manifest that is there; a damaged one is left out, and `note` says so. */
static fg_status read_manifest(fg_zoo_make *m, size_t size, char *note) {
  struct stat info;
  *note = 0;
  if (fstatat(m->fd, FG_ZOO_MANIFEST, &info, AT_SYMLINK_NOFOLLOW) && errno == ENOENT) return FG_OK;
  if (is_foreign(m))
    return fg_fail(FG_EIO,
                   "%s/" FG_ZOO_MANIFEST " is no manifest of a zoo: remove it, or take "
                   "another directory",
                   m->dir);
  fg_status status = fg_zoo_open(m->dir, &m->old);
  if (status == FG_OK || status != FG_EIO) return status;
  if (strstr(fg_error(), "is damaged")) {
    snprintf(note, size, "%s; it is made anew", fg_error());
    return FG_OK;
  }
  return status;
}

static fg_status open_make(fg_zoo_make *m, const char *dir, const volatile int *stop, size_t size,
                           char *note) {
  if (!(m->dir = strdup(dir))) return fg_fail(FG_EMEMORY, "no memory for a zoo");
  if (mkdir(dir, 0777) && errno != EEXIST)
    return fg_fail(FG_EIO, "the directory %s cannot be made: %s", dir, strerror(errno));
  m->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (m->fd < 0)
    return fg_fail(FG_EIO, "the directory %s cannot be read: %s", dir, strerror(errno));
  TRY(lock(m, stop));
  TRY(read_manifest(m, size, note));
  return read_journal(m);
}

fg_status fg_zoo_make_open(const char *dir, const volatile int *stop, size_t size, char *note,
                           fg_zoo_make **make) {
  TRY(fg_switches_refuse("build"));
  fg_zoo_make *m = calloc(1, sizeof *m);
  if (!m) return fg_fail(FG_EMEMORY, "no memory for a zoo");
  m->fd = m->journal = -1;
  pthread_mutex_init(&m->lock, NULL);
  fg_status status = open_make(m, dir, stop, size, note);
  if (status == FG_OK)
    *make = m;
  else
    fg_zoo_make_close(m);
  return status;
}

void fg_zoo_make_close(fg_zoo_make *m) {
  if (!m) return;
  if (m->journal >= 0) close(m->journal);
  if (m->fd >= 0) {
    flock(m->fd, LOCK_UN); /* a child that was forked meanwhile would keep it */
    close(m->fd);
  }
  pthread_mutex_destroy(&m->lock);
  fg_zoo_free(m->old);
  free(m->item);
  free(m->journal_text);
  free(m->dir);
  free(m);
}

static void staged_name(const char *name, char file[FG_ZOO_NAME]) {
  fg_zoo_file(name, file);
  strcat(file, STAGED); /* FG_ZOO_NAME has room for it */
}

/* Whether the file is whole: its size and digest are the item's. */
static bool has_code(const fg_zoo_make *m, const char *file, const fg_zoo_item *item) {
  char digest[FG_DIGEST_HEX], *bytes;
  size_t n;
  if (fg_zoo_slurp(m->fd, file, &bytes, &n) != FG_OK) return false;
  fg_zoo_digest(bytes, n, digest);
  free(bytes);
  return n == item->size && !strcmp(digest, item->digest);
}

/* Whether `old` describes the item and its code is there; then fills in the rest of the item.
 * Afterwards a staged file of that name is there only if it is the one to take. */
static bool take_old(const fg_zoo_make *m, const fg_zoo_item *old, fg_zoo_item *item) {
  char file[FG_ZOO_NAME], staged[FG_ZOO_NAME];
  if (!old || strcmp(old->name, item->name) || strcmp(old->source, item->source) ||
      strcmp(old->compiler, item->compiler) || strcmp(old->expression, item->expression))
    return false;
  fg_zoo_file(item->name, file);
  staged_name(item->name, staged);
  if (has_code(m, file, old))
    unlinkat(m->fd, staged, 0);
  else if (!has_code(m, staged, old))
    return false;
  item->figures = old->figures;
  item->size = old->size;
  memcpy(item->digest, old->digest, sizeof item->digest);
  return true;
}

bool fg_zoo_recall(const fg_zoo_make *m, fg_zoo_item *item) {
  if (m->old && take_old(m, fg_zoo_find(m->old, item->name), item)) return true;
  for (int i = m->n - 1; i >= 0; i--)
    if (take_old(m, &m->item[i], item)) return true;
  return false;
}

/* ---- new code files ---- */

/* Writes all n bytes; false and errno if that fails. */
static bool write_all(int fd, const char *bytes, size_t n) {
  while (n > 0) {
    ssize_t put = write(fd, bytes, n);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes += put, n -= (size_t)put;
  }
  return true;
}

/* Writes a new file and brings it to the disk. A file that cannot be written whole is removed. */
static fg_status write_file(const fg_zoo_make *m, const char *file, const char *bytes, size_t n) {
  if (unlinkat(m->fd, file, 0) && errno != ENOENT) return failed(m, file, "replaced");
  int fd = openat(m->fd, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return failed(m, file, "made");
  bool good = write_all(fd, bytes, n) && fsync(fd) == 0;
  int why = errno;
  if (close(fd) && good) good = false, why = errno;
  if (good) return FG_OK;
  unlinkat(m->fd, file, 0);
  errno = why;
  return failed(m, file, "written");
}

/* Appends the item's block to the journal in one write, so that blocks of several processes do not
 * mix. Empty lines before it separate it from a torn block. */
static fg_status enter(fg_zoo_make *m, const fg_zoo_item *item) {
  char text[FG_ZOO_BLOCK + 2] = "\n\n";
  TRY(fg_zoo_print(item, text + 2));
  pthread_mutex_lock(&m->lock);
  if (m->journal < 0)
    m->journal =
        openat(m->fd, JOURNAL, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
  pthread_mutex_unlock(&m->lock);
  if (m->journal < 0 || !write_all(m->journal, text, strlen(text)))
    return failed(m, JOURNAL, "written");
  return FG_OK;
}

fg_status fg_zoo_stage(fg_zoo_make *m, const fg_code *code, fg_zoo_item *item) {
  char file[FG_ZOO_NAME];
  staged_name(item->name, file);
  fg_zoo_digest(code->data, code->size, item->digest);
  item->size = code->size;
  TRY(write_file(m, file, code->data, code->size));
  return enter(m, item);
}

/* ---- the finished zoo ---- */

/* The text of the manifest, new, without a NUL that *size counts. */
static fg_status compose(int n, const fg_zoo_record *records, char **text, size_t *size) {
  char digest[FG_DIGEST_HEX];
  size_t bytes = 128;
  for (int i = 0; i < n; i++) bytes += strlen(records[i].block);
  char *to = malloc(bytes);
  if (!to) return fg_fail(FG_EMEMORY, "no memory for a manifest");
  char *at = to + sprintf(to, FG_ZOO_HEADER "%d\n", FG_ZOO_FORMAT);
  for (int i = 0; i < n; i++) at = stpcpy(at, records[i].block);
  fg_zoo_digest(to, (size_t)(at - to), digest);
  at += sprintf(at, "checksum %s\n", digest);
  *text = to;
  *size = (size_t)(at - to);
  return FG_OK;
}

/* Gives staged files their names; a file without a staged one has its name already. */
static fg_status place_files(const fg_zoo_make *m, int n, const fg_zoo_record *records) {
  for (int i = 0; i < n; i++) {
    char file[FG_ZOO_NAME], staged[FG_ZOO_NAME];
    fg_zoo_file(records[i].name, file);
    staged_name(records[i].name, staged);
    if (renameat(m->fd, staged, m->fd, file) && errno != ENOENT) return failed(m, file, "renamed");
  }
  return FG_OK;
}

fg_status fg_zoo_place(const fg_zoo_make *m, const char *file, const char *text, size_t size,
                       bool *changed) {
  char *old = NULL, staged[FG_ZOO_NAME];
  size_t n;
  *changed = fg_zoo_slurp(m->fd, file, &old, &n) != FG_OK || n != size || memcmp(old, text, size);
  free(old);
  if (!*changed) return FG_OK;
  snprintf(staged, sizeof staged, "%s" STAGED, file);
  TRY(write_file(m, staged, text, size));
  if (renameat(m->fd, staged, m->fd, file)) return failed(m, file, "renamed");
  fsync(m->fd); /* best effort: without it a power failure may undo the renaming */
  return FG_OK;
}

static int compare(const void *name, const void *record) {
  return strcmp(name, ((const fg_zoo_record *)record)->name);
}

/* Whether only a zoo makes a file of this name, and this zoo has none. *code: it is a code file
 * under its final name. */
static bool is_stale(const char *file, int n, const fg_zoo_record *records, bool *code) {
  char bare[FG_ZOO_NAME], name[FG_NAME_MAX];
  size_t length = strlen(file), tail = strlen(STAGED);
  if (length >= sizeof bare) return false;
  strcpy(bare, file);
  *code = length <= tail || strcmp(file + length - tail, STAGED) != 0;
  if (!*code) bare[length - tail] = 0;
  if (!*code && !strcmp(bare, FG_ZOO_MANIFEST)) return true;
  if (!fg_zoo_file_variant(bare, name)) return false;
  return !*code || !bsearch(name, records, (size_t)n, sizeof *records, compare);
}

/* Removes stale files of the directory and counts the code files in *removed. */
static fg_status remove_stale(const fg_zoo_make *m, int n, const fg_zoo_record *records,
                              int *removed) {
  int fd = openat(m->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (!d) return failed(m, ".", "listed");
  for (struct dirent *e; (e = readdir(d));) {
    bool code;
    if (!is_stale(e->d_name, n, records, &code)) continue;
    if (!unlinkat(m->fd, e->d_name, 0)) *removed += code;
  }
  closedir(d);
  return FG_OK;
}

fg_status fg_zoo_finish(fg_zoo_make *m, int n, const fg_zoo_record *records, int *removed,
                        bool *changed) {
  char *text = NULL;
  size_t size = 0;
  fg_status status = FG_OK;
  *removed = 0;
  *changed = false;
  TRY_OUT(compose(n, records, &text, &size));
  TRY_OUT(place_files(m, n, records));
  TRY_OUT(fg_zoo_place(m, FG_ZOO_MANIFEST, text, size, changed));
  TRY_OUT(remove_stale(m, n, records, removed));
  if (unlinkat(m->fd, JOURNAL, 0) && errno != ENOENT) status = failed(m, JOURNAL, "removed");
out:
  free(text);
  return status;
}
