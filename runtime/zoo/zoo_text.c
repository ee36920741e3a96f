/* zoo_text.c - blocks of a manifest to text and back, digests, names of files. */
#include "zoo_text.h"

#include "spec/point_formula.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* Bounds the bytes that a crafted file makes us allocate; a cubin has 0.1 MB, a block of a manifest
 * 2 KB. */
enum { FILE_MAX = 256 << 20 };

void fg_zoo_digest(const void *bytes, size_t n, char hex[FG_DIGEST_HEX]) {
  XXH128_hash_t hash = XXH3_128bits(bytes, n);
  snprintf(hex, FG_DIGEST_HEX, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
}

void fg_zoo_file(const char *name, char file[FG_ZOO_NAME]) {
  size_t n = strlen(name);
  int host = n > 5 && !strcmp(name + n - 5, ".host");
  snprintf(file, FG_ZOO_NAME, "%s.%s", name, host ? "so" : "cubin");
}

bool fg_zoo_file_variant(const char *file, char name[FG_NAME_MAX]) {
  char again[FG_ZOO_NAME];
  fg_variant variant;
  const char *dot = strrchr(file, '.');
  if (!dot || dot - file >= FG_NAME_MAX) return false;
  snprintf(name, FG_NAME_MAX, "%.*s", (int)(dot - file), file);
  fg_zoo_file(name, again);
  return !strcmp(again, file) && fg_variant_parse(name, &variant) == FG_OK;
}

fg_status fg_zoo_print(const fg_zoo_item *item, char text[FG_ZOO_BLOCK]) {
  int n = snprintf(text, FG_ZOO_BLOCK,
                   "variant %s\nexpression %s\ncompiler %s\nsource %s\ncode %s %" PRIu64
                   "\nfigures\n%srecipe\n%send\n",
                   item->name, item->expression, item->compiler, item->source, item->digest,
                   item->size, item->figures, item->recipe);
  return n < FG_ZOO_BLOCK ? FG_OK : fg_fail(FG_EBUG, "%s: its block is too long", item->name);
}

/* Takes the line "WORD value\n" at *at: the value, ended in place, or NULL if another line is
 * there; then nothing moves. */
static char *take_line(char **at, int *line, const char *word) {
  size_t n = strlen(word);
  char *value = *at + n, *end = strchr(*at, '\n');
  if (strncmp(*at, word, n) || !end || (*value != ' ' && value != end)) return NULL;
  *end = 0;
  *at = end + 1;
  ++*line;
  return value == end ? value : value + 1;
}

/* Takes the lines at *at up to the line `mark`, none of them empty: their text, ended in place,
 * with *at behind the mark; NULL if there is no such line. */
static char *take_lines(char **at, int *line, const char *mark) {
  char *text = *at;
  size_t n = strlen(mark);
  int lines = 1;
  for (char *next = text, *end; (end = strchr(next, '\n')) && end > next; next = end + 1, lines++) {
    if ((size_t)(end - next) != n || strncmp(next, mark, n)) continue;
    *at = end + 1;
    *next = 0;
    *line += lines;
    return text;
  }
  return NULL;
}

static bool is_digest(const char *text) {
  return strspn(text, "0123456789abcdef") == FG_DIGEST_HEX - 1 && !text[FG_DIGEST_HEX - 1];
}

/* Reads "DIGEST SIZE" into the item. */
static bool read_code(char *text, fg_zoo_item *item) {
  char *size = strchr(text, ' ');
  if (!size || !size[1] || size[1 + strspn(size + 1, "0123456789")] || strlen(size) > 12)
    return false;
  *size = 0;
  if (!is_digest(text)) return false;
  memcpy(item->digest, text, FG_DIGEST_HEX);
  item->size = strtoull(size + 1, NULL, 10);
  return item->size <= FILE_MAX;
}

/* FG_EIO about the value of a line that was taken already: *line goes back to it. */
static fg_status bad_line(int *line, const char *expected) {
  --*line;
  return fg_fail(FG_EIO, "expected %s", expected);
}

/* Whether the text may be the name of a variant and of its file; that its fields have a meaning is
 * not checked. */
static bool is_name(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-.";
  size_t n = strspn(text, letters);
  return n > 0 && n < FG_NAME_MAX && !text[n] && *text != '.';
}

fg_status fg_zoo_split(char **at, int *line, fg_zoo_item *item) {
  fg_zoo_item read = {0};
  char *source, *code;
  if (!(read.name = take_line(at, line, "variant"))) return fg_fail(FG_EIO, "expected \"variant\"");
  if (!is_name(read.name)) return bad_line(line, "a variant's name");
  if (!(read.expression = take_line(at, line, "expression")))
    return fg_fail(FG_EIO, "expected \"expression\"");
  if (!(read.compiler = take_line(at, line, "compiler")))
    return fg_fail(FG_EIO, "expected \"compiler\"");
  if (!(source = take_line(at, line, "source"))) return fg_fail(FG_EIO, "expected \"source\"");
  if (!is_digest(source)) return bad_line(line, "a digest");
  memcpy(read.source, source, FG_DIGEST_HEX);
  if (!(code = take_line(at, line, "code"))) return fg_fail(FG_EIO, "expected \"code\"");
  if (!read_code(code, &read)) return bad_line(line, "a digest and a size");
  if (!take_line(at, line, "figures")) return fg_fail(FG_EIO, "expected \"figures\"");
  read.figures = take_lines(at, line, "recipe");
  if (!read.figures || strlen(read.figures) >= sizeof(((fg_code *)0)->figures))
    return fg_fail(FG_EIO, "expected figures, then \"recipe\"");
  if (!(read.recipe = take_lines(at, line, "end")))
    return fg_fail(FG_EIO, "expected a recipe, then \"end\"");
  *item = read;
  return FG_OK;
}

fg_status fg_zoo_parse(char **at, int *line, fg_zoo_item *item) {
  fg_zoo_item read;
  fg_variant variant;
  fg_recipe recipe;
  TRY(fg_zoo_split(at, line, &read));
  TRY(fg_expression_learn(read.expression));
  if (fg_variant_parse(read.name, &variant) != FG_OK)
    return fg_fail(FG_EIO, "expected a variant's name");
  TRY(fg_recipe_parse(read.recipe, &recipe));
  *item = read;
  return FG_OK;
}

fg_status fg_zoo_slurp(int dir, const char *file, char **bytes, size_t *n) {
  struct stat info;
  char *to = NULL;
  size_t got = 0;
  int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &info)) goto failed;
  errno = S_ISDIR(info.st_mode) ? EISDIR : !S_ISREG(info.st_mode) ? EINVAL : EFBIG;
  if (!S_ISREG(info.st_mode) || info.st_size > FILE_MAX) goto failed;
  if (!(to = malloc((size_t)info.st_size + 1))) goto failed;
  while (got < (size_t)info.st_size) {
    ssize_t more = read(fd, to + got, (size_t)info.st_size - got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) goto failed;
    if (more == 0) break; /* it shrank */
    got += (size_t)more;
  }
  to[got] = 0;
  close(fd);
  *bytes = to;
  *n = got;
  return FG_OK;
failed:;
  int why = errno;
  free(to);
  if (fd >= 0) close(fd);
  errno = why;
  return fg_fail(FG_EIO, "%s: %s", file, strerror(why));
}
