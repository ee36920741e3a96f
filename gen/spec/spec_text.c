/* spec_text.c - reads a spec file, and says what a file that is no text is instead. */
#include "spec_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 }; /* bytes: far above any spec written by hand */

/* The whole of a regular file of moderate size; a device or pipe is never read. */
static fg_status read_regular(const char *path, char **text, size_t *size) {
  struct stat info;
  char *data = NULL;
  size_t n = 0;
  fg_status status = FG_OK;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fg_fail(FG_ESPEC, "%s: cannot be opened: %s", path, strerror(errno));
  if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
    status = fg_fail(FG_ESPEC, "%s: is %s, not a file", path,
                     S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
    goto out;
  }
  if (info.st_size > FILE_MAX) {
    status = fg_fail(FG_ESPEC, "%s: is %lld bytes long; a spec file has at most %d", path,
                     (long long)info.st_size, FILE_MAX);
    goto out;
  }
  if (!(data = malloc((size_t)info.st_size + 1))) {
    status = fg_fail(FG_EMEMORY, "%s: no memory to read it", path);
    goto out;
  }
  for (ssize_t got; (got = read(fd, data + n, (size_t)info.st_size - n)) != 0; n += (size_t)got) {
    if (got > 0) continue;
    status = fg_fail(FG_ESPEC, "%s: cannot be read: %s", path, strerror(errno));
    goto out;
  }
  *text = data, *size = n;
  data = NULL;
out:
  free(data);
  close(fd);
  return status;
}

/* Refuses bytes that Lua would misread, or take without a check. */
static fg_status check_text(const char *path, const char *text, size_t size) {
  const char *what = NULL;
  if (size >= 1 && text[0] == '\x1b')
    what = "compiled Lua; a spec file is text";
  else if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
    what = "text with a byte order mark; save it as UTF-8 without one";
  else if (size >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2)))
    what = "UTF-16; save it as UTF-8";
  else if (memchr(text, 0, size))
    what = "not text: it holds a zero byte";
  return what ? fg_fail(FG_ESPEC, "%s: is %s", path, what) : FG_OK;
}

fg_status fg_spec_text_read(const char *path, char **text, size_t *size) {
  char *data = NULL;
  size_t n = 0;
  TRY(read_regular(path, &data, &n));
  fg_status status = check_text(path, data, n);
  if (status == FG_OK)
    *text = data, *size = n;
  else
    free(data);
  return status;
}
