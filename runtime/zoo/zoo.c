/* zoo.c - opens a zoo, finds a variant in it, reads its code. */
#define _GNU_SOURCE /* asprintf */
#include "zoo_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fg_zoo_reader {
  char *name, *manifest, *text; /* two for messages; text: the manifest's, which items point into */
  int fd, n;                    /* fd: the directory's; -1: the zoo is in memory */
  const char *code;             /* of a zoo in memory: its first byte; else NULL */
  fg_zoo_item *item;
};

static const char header[] = FG_ZOO_HEADER, footer[] = "checksum ";

static fg_status damaged(const fg_zoo_reader *z, const char *what) {
  return fg_fail(FG_EIO, "%s is damaged: %s", z->manifest, what);
}

/* Checks format, length and checksum; nothing between them is looked at before they are right.
 * Afterwards the first line ends in a newline, and the text ends where the line of the checksum
 * began. */
static fg_status check_frame(fg_zoo_reader *z, size_t n) {
  const size_t foot = strlen(footer) + FG_DIGEST_HEX; /* with its line's end */
  char digest[FG_DIGEST_HEX];
  if (strncmp(z->text, header, strlen(header))) return damaged(z, "it is no manifest of a zoo");
  int format = atoi(z->text + strlen(header));
  if (format > FG_ZOO_FORMAT)
    return fg_fail(FG_EIO, "%s has format %d; this flashgen reads format %d", z->manifest, format,
                   FG_ZOO_FORMAT);
  char *last = n > foot ? z->text + n - foot : z->text, *line_end = memchr(z->text, '\n', n);
  if (format < 1) return damaged(z, "it is no manifest of a zoo");
  if (memchr(z->text, 0, n) || z->text[n - 1] != '\n' || strncmp(last, footer, strlen(footer)))
    return damaged(z, "its end is missing");
  fg_zoo_digest(z->text, (size_t)(last - z->text), digest);
  if (strncmp(last + strlen(footer), digest, FG_DIGEST_HEX - 1))
    return damaged(z, "its checksum does not fit");
  if (!line_end || line_end >= last) return damaged(z, "its first line does not end");
  *last = 0;
  return FG_OK;
}

/* Splits the blocks of a checked manifest, in place, into items sorted by name. */
static fg_status read_items(fg_zoo_reader *z) {
  char *at = strchr(z->text, '\n') + 1;
  int line = 2, room = 0;
  for (const char *v = at; (v = strstr(v, "variant ")); v++) room++;
  z->item = calloc((size_t)room + 1, sizeof *z->item);
  if (!z->item) return fg_fail(FG_EMEMORY, "no memory for the zoo %s", z->name);
  while (*at) {
    fg_zoo_item *item = &z->item[z->n];
    if (fg_zoo_split(&at, &line, item) != FG_OK)
      return fg_fail(FG_EIO, "%s is damaged: line %d: %s", z->manifest, line, fg_error());
    if (z->n && strcmp(item[-1].name, item->name) >= 0)
      return damaged(z, "its names are not in order");
    z->n++;
  }
  return FG_OK;
}

/* Sets both names for messages; `format` makes the name of the manifest from the name of the
 * zoo. */
static fg_status set_name(fg_zoo_reader *z, const char *name, const char *format) {
  z->name = strdup(name);
  if (!z->name || asprintf(&z->manifest, format, name) < 0)
    return z->manifest = NULL, fg_fail(FG_EMEMORY, "no memory for the zoo %s", name);
  return FG_OK;
}

/* FG_EIO: dir cannot be read, has no manifest, or has a damaged one. */
static fg_status open_directory(fg_zoo_reader *z, const char *dir) {
  size_t n;
  TRY(set_name(z, dir, "%s/" FG_ZOO_MANIFEST));
  z->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (z->fd < 0) return fg_fail(FG_EIO, "the zoo %s cannot be read: %s", dir, strerror(errno));
  fg_status status = fg_zoo_slurp(z->fd, FG_ZOO_MANIFEST, &z->text, &n);
  if (status != FG_OK && errno == ENOENT)
    return fg_fail(FG_EIO, "%s is no zoo: it has no " FG_ZOO_MANIFEST, dir);
  if (status != FG_OK) return fg_fail_in(status, "the zoo %s cannot be read", dir);
  TRY(check_frame(z, n));
  return read_items(z);
}

/* Sets the offset of each item: the code files lie in the order of the manifest, each aligned,
 * within `room` bytes. */
static fg_status place_code(fg_zoo_reader *z, uint64_t room) {
  uint64_t at = 0;
  for (int i = 0; i < z->n; i++) {
    fg_zoo_item *item = &z->item[i];
    at = (at + FG_ZOO_ALIGN - 1) / FG_ZOO_ALIGN * FG_ZOO_ALIGN;
    if (at > room || item->size > room - at) return damaged(z, "its code ends early");
    item->offset = at;
    at += item->size;
  }
  return FG_OK;
}

/* Copies the manifest, because reading ends its lines in place; the code stays where it lies. */
static fg_status open_memory(fg_zoo_reader *z, const fg_zoo *given) {
  const char *manifest = given->manifest, *end = given->end;
  z->code = given->code;
  TRY(set_name(z, given->name ? given->name : "without a name", "the embedded zoo %s"));
  size_t n = (size_t)(z->code - manifest);
  while (n && !manifest[n - 1]) n--; /* zeros between the manifest and the code */
  if (!(z->text = malloc(n + 1))) return fg_fail(FG_EMEMORY, "no memory for the zoo %s", z->name);
  memcpy(z->text, manifest, n);
  z->text[n] = 0;
  TRY(check_frame(z, n));
  TRY(read_items(z));
  return place_code(z, (uint64_t)(end - z->code));
}

/* Whether the three addresses are there and in order. */
static bool is_memory(const fg_zoo *given) {
  return given->manifest && given->code && given->end &&
         (const char *)given->manifest <= (const char *)given->code &&
         (const char *)given->code <= (const char *)given->end;
}

fg_status fg_zoo_open_given(const fg_zoo *given, fg_zoo_reader **zoo) {
  if (!given->directory && !is_memory(given))
    return fg_fail(FG_EARGUMENT, "a zoo has neither a directory nor a place in memory");
  fg_zoo_reader *z = calloc(1, sizeof *z);
  if (!z) return fg_fail(FG_EMEMORY, "no memory for a zoo");
  z->fd = -1;
  fg_status status = given->directory ? open_directory(z, given->directory) : open_memory(z, given);
  if (status == FG_OK)
    *zoo = z;
  else
    fg_zoo_free(z);
  return status;
}

fg_status fg_zoo_open(const char *dir, fg_zoo_reader **zoo) {
  const fg_zoo given = {.directory = dir};
  return fg_zoo_open_given(&given, zoo);
}

void fg_zoo_free(fg_zoo_reader *z) {
  if (!z) return;
  if (z->fd >= 0) close(z->fd);
  free(z->item);
  free(z->text);
  free(z->manifest);
  free(z->name);
  free(z);
}

int fg_zoo_count(const fg_zoo_reader *zoo) { return zoo->n; }

const fg_zoo_item *fg_zoo_at(const fg_zoo_reader *zoo, int i) { return &zoo->item[i]; }

static int compare(const void *name, const void *item) {
  return strcmp(name, ((const fg_zoo_item *)item)->name);
}

const fg_zoo_item *fg_zoo_find(const fg_zoo_reader *zoo, const char *name) {
  return bsearch(name, zoo->item, (size_t)zoo->n, sizeof *zoo->item, compare);
}

fg_status fg_zoo_recipe(const fg_zoo_reader *zoo, const fg_zoo_item *item, fg_recipe *recipe) {
  if (fg_recipe_parse(item->recipe, recipe) == FG_OK) return FG_OK;
  return fg_fail(FG_EIO, "%s is damaged: %s: %s", zoo->manifest, item->name, fg_error());
}

/* The bytes of a code file, new, from the directory or from memory; not checked yet. */
static fg_status read_bytes(const fg_zoo_reader *zoo, const fg_zoo_item *item, const char *file,
                            char **bytes, size_t *n) {
  if (zoo->fd >= 0) {
    fg_status status = fg_zoo_slurp(zoo->fd, file, bytes, n);
    return status == FG_OK ? FG_OK : fg_fail_in(status, "the zoo %s cannot be read", zoo->name);
  }
  *n = item->size;
  if (!(*bytes = malloc(*n + 1))) return fg_fail(FG_EMEMORY, "no memory for %s", item->name);
  memcpy(*bytes, zoo->code + item->offset, *n);
  return FG_OK;
}

fg_status fg_zoo_read(const fg_zoo_reader *zoo, const fg_zoo_item *item, fg_code *code) {
  char file[FG_ZOO_NAME], digest[FG_DIGEST_HEX], *bytes;
  size_t n;
  fg_zoo_file(item->name, file);
  TRY(read_bytes(zoo, item, file, &bytes, &n));
  fg_zoo_digest(bytes, n, digest);
  if (n != item->size || strcmp(digest, item->digest)) {
    free(bytes);
    return fg_fail(FG_EIO, "%s/%s is damaged: its %s does not fit the manifest", zoo->name, file,
                   n == item->size ? "checksum" : "size");
  }
  *code = (fg_code){.data = bytes, .size = n};
  snprintf(code->figures, sizeof code->figures, "%s", item->figures);
  return FG_OK;
}
