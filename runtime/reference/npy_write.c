/* npy_write.c - writes .npy files: staged beside their destination, then renamed.
 *
 * A reader of the destination sees the old file or the new one, never a part. A process that is
 * killed in between leaves its temporary behind. */
#include "base/error.h"
#include "npy.h"

#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they stand");

enum {
  ALIGNMENT = 64,  /* of the first element, as the format asks */
  HEADER = 256,    /* the longest header: rank 4 with 19 digits each is 148 bytes, padded 192 */
  ATTEMPTS = 1000, /* names tried for a temporary; others may be left by killed processes */
};

static fg_status io_failure(const char *verb, const char *path) {
  return fg_fail(FG_EIO, "cannot %s %s: %s", verb, path, strerror(errno));
}

/* Format 1.0: prefix, length, dict, spaces, newline. Returns the length, a multiple of ALIGNMENT.
 */
static int format_header(const char *type, int rank, const int64_t *extent, char out[HEADER]) {
  const int prefix = 10; /* magic, version, two bytes of length */
  char *dict = out + prefix;
  int n = snprintf(dict, (size_t)(HEADER - prefix),
                   "{'descr': '<%s', 'fortran_order': False, 'shape': (", type);
  for (int a = 0; a < rank; a++)
    n = fg_append((size_t)(HEADER - prefix), dict, n, "%s%" PRId64 "%s", a ? ", " : "", extent[a],
                  rank == 1 ? "," : "");
  n = fg_append((size_t)(HEADER - prefix), dict, n, "), }");
  int total = (prefix + n + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  memset(dict + n, ' ', (size_t)(total - prefix - n - 1));
  out[total - 1] = '\n';
  memcpy(out, "\x93NUMPY\1\0", 8);
  out[8] = (char)((total - prefix) & 0xff);
  out[9] = 0; /* HEADER is 256, so the length fits one byte */
  return total;
}

static int write_all(int file, const void *data, size_t n) {
  for (const char *from = data; n > 0;) {
    ssize_t put = write(file, from, n);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return 0;
    from += put, n -= (size_t)put;
  }
  return 1;
}

/* A new file in the directory of `path`, with the mode that umask leaves of 0666. Its name does not
 * contain that of `path`, which may already be as long as names can be. */
static fg_status open_temporary(const char *path, int *file, char **name) {
  static atomic_uint counter;
  const char *slash = strrchr(path, '/');
  int directory = slash ? (int)(slash + 1 - path) : 0;
  size_t capacity = (size_t)directory + 64;
  char *text = malloc(capacity);
  if (!text) return fg_fail(FG_EMEMORY, "no memory to write %s", path);
  for (int i = 0; i < ATTEMPTS; i++) {
    snprintf(text, capacity, "%.*s.flashgen-%ld-%u.tmp", directory, path, (long)getpid(),
             atomic_fetch_add(&counter, 1));
    *file = open(text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*file >= 0 || errno != EEXIST) break;
  }
  *name = text;
  if (*file >= 0) return FG_OK;
  fg_status status = io_failure("write", path);
  free(text);
  return status;
}

/* type: of elements of four bytes. */
static fg_status stage(const char *path, const char *type, int rank, const int64_t *extent,
                       const void *data, char **temporary) {
  struct stat s;
  char header[HEADER], *name = NULL;
  size_t bytes = 4;
  int file = -1;
  assert(rank >= 0 && rank <= FG_NPY_RANK);
  for (int a = 0; a < rank; a++) bytes *= (size_t)extent[a];
  if (stat(path, &s) == 0 && !S_ISREG(s.st_mode)) /* rename would replace even /dev/null */
    return fg_fail(FG_EIO, "cannot write %s: it is %s", path,
                   S_ISDIR(s.st_mode) ? "a directory" : "not a regular file");
  TRY(open_temporary(path, &file, &name));
  int length = format_header(type, rank, extent, header);
  int ok = write_all(file, header, (size_t)length) && write_all(file, data, bytes);
  int error = errno;
  if (close(file) < 0 && ok) ok = 0, error = errno;
  if (!ok) {
    fg_npy_discard(name);
    errno = error;
    return io_failure("write", path);
  }
  *temporary = name;
  return FG_OK;
}

fg_status fg_npy_stage(const char *path, int rank, const int64_t *extent, const float *data,
                       char **temporary) {
  return stage(path, "f4", rank, extent, data, temporary);
}

fg_status fg_npy_stage_integers(const char *path, int rank, const int64_t *extent,
                                const int64_t *data, char **temporary) {
  size_t count = 1;
  for (int a = 0; a < rank; a++) count *= (size_t)extent[a];
  int32_t *narrow = malloc((count + 1) * sizeof *narrow);
  if (!narrow) return fg_fail(FG_EMEMORY, "no memory to write %s", path);
  for (size_t i = 0; i < count; i++) narrow[i] = (int32_t)data[i];
  fg_status status = stage(path, "i4", rank, extent, narrow, temporary);
  free(narrow);
  return status;
}

fg_status fg_npy_publish(char *temporary, const char *path) {
  if (rename(temporary, path) < 0) {
    fg_status status = io_failure("write", path);
    fg_npy_discard(temporary);
    return status;
  }
  free(temporary);
  return FG_OK;
}

void fg_npy_discard(char *temporary) {
  if (!temporary) return;
  unlink(temporary);
  free(temporary);
}

fg_status fg_npy_write(const char *path, int rank, const int64_t *extent, const float *data) {
  char *temporary;
  TRY(fg_npy_stage(path, rank, extent, data, &temporary));
  return fg_npy_publish(temporary, path);
}
