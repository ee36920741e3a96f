/* zoo.c - opens a zoo, finds a variant in it, reads its code. */
#include "zoo_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fg_zoo_reader {
  char *dir, *text; /* the manifest: items point into it */
  int fd, n;
  fg_zoo_item *item;
};

static const char header[] = "flashgen zoo ", footer[] = "checksum ";

static fg_status damaged(const fg_zoo_reader *z, const char *what) {
  return fg_fail(FG_EIO, "%s/" FG_ZOO_MANIFEST " is damaged: %s", z->dir, what);
}

/* Format, length and checksum: nothing between them is looked at before they are right. */
static fg_status check_frame(fg_zoo_reader *z, size_t n) {
  const size_t foot = strlen(footer) + FG_DIGEST_HEX; /* with its line's end */
  char digest[FG_DIGEST_HEX];
  if (strncmp(z->text, header, strlen(header))) return damaged(z, "it is no manifest of a zoo");
  int format = atoi(z->text + strlen(header));
  if (format > FG_ZOO_FORMAT)
    return fg_fail(FG_EIO, "%s/" FG_ZOO_MANIFEST " has format %d; this flashgen reads format %d",
                   z->dir, format, FG_ZOO_FORMAT);
  char *last = n > foot ? z->text + n - foot : z->text;
  if (format < 1) return damaged(z, "it is no manifest of a zoo");
  if (memchr(z->text, 0, n) || z->text[n - 1] != '\n' || strncmp(last, footer, strlen(footer)))
    return damaged(z, "its end is missing");
  fg_zoo_digest(z->text, (size_t)(last - z->text), digest);
  if (strncmp(last + strlen(footer), digest, FG_DIGEST_HEX - 1))
    return damaged(z, "its checksum does not fit");
  *last = 0;
  return FG_OK;
}

static fg_status read_items(fg_zoo_reader *z) {
  char *at = strchr(z->text, '\n') + 1;
  int line = 2, room = 0;
  for (const char *v = at; (v = strstr(v, "variant ")); v++) room++;
  z->item = calloc((size_t)room + 1, sizeof *z->item);
  if (!z->item) return fg_fail(FG_EMEMORY, "no memory for the zoo %s", z->dir);
  while (*at) {
    fg_zoo_item *item = &z->item[z->n];
    if (fg_zoo_split(&at, &line, item) != FG_OK)
      return fg_fail(FG_EIO, "%s/" FG_ZOO_MANIFEST " is damaged: line %d: %s", z->dir, line,
                     fg_error());
    if (z->n && strcmp(item[-1].name, item->name) >= 0)
      return damaged(z, "its names are not in order");
    z->n++;
  }
  return FG_OK;
}

static fg_status open_zoo(fg_zoo_reader *z, const char *dir) {
  size_t n;
  if (!(z->dir = strdup(dir))) return fg_fail(FG_EMEMORY, "no memory for the zoo %s", dir);
  z->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (z->fd < 0) return fg_fail(FG_EIO, "the zoo %s cannot be read: %s", dir, strerror(errno));
  fg_status status = fg_zoo_slurp(z->fd, FG_ZOO_MANIFEST, &z->text, &n);
  if (status != FG_OK && errno == ENOENT)
    return fg_fail(FG_EIO, "%s is no zoo: it has no " FG_ZOO_MANIFEST, dir);
  if (status != FG_OK) return fg_fail_in(status, "the zoo %s cannot be read", dir);
  TRY(check_frame(z, n));
  return read_items(z);
}

fg_status fg_zoo_open(const char *dir, fg_zoo_reader **zoo) {
  fg_zoo_reader *z = calloc(1, sizeof *z);
  if (!z) return fg_fail(FG_EMEMORY, "no memory for the zoo %s", dir);
  z->fd = -1;
  fg_status status = open_zoo(z, dir);
  if (status == FG_OK)
    *zoo = z;
  else
    fg_zoo_free(z);
  return status;
}

void fg_zoo_free(fg_zoo_reader *z) {
  if (!z) return;
  if (z->fd >= 0) close(z->fd);
  free(z->item);
  free(z->text);
  free(z->dir);
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
  return fg_fail(FG_EIO, "%s/" FG_ZOO_MANIFEST " is damaged: %s: %s", zoo->dir, item->name,
                 fg_error());
}

fg_status fg_zoo_read(const fg_zoo_reader *zoo, const fg_zoo_item *item, fg_code *code) {
  char file[FG_ZOO_NAME], digest[FG_DIGEST_HEX], *bytes;
  size_t n;
  fg_zoo_file(item->name, file);
  fg_status status = fg_zoo_slurp(zoo->fd, file, &bytes, &n);
  if (status != FG_OK) return fg_fail_in(status, "the zoo %s cannot be read", zoo->dir);
  fg_zoo_digest(bytes, n, digest);
  if (n != item->size || strcmp(digest, item->digest)) {
    free(bytes);
    return fg_fail(FG_EIO, "%s/%s is damaged: its %s does not fit the manifest", zoo->dir, file,
                   n == item->size ? "checksum" : "size");
  }
  *code = (fg_code){.data = bytes, .size = n};
  snprintf(code->figures, sizeof code->figures, "%s", item->figures);
  return FG_OK;
}
