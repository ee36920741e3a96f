/* digest.c - hashes the templates. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"
#include "embedded.h"
#include "essence.h"
#include "template.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  XXH3_state_t xxh;
  bool with_lines;
} hasher;

/* Name and content, each with its length, so that no two sets of files run together. */
static void add(hasher *h, const char *name, const void *data, size_t size) {
  const uint64_t lengths[2] = {strlen(name), size};
  XXH3_128bits_update(&h->xxh, lengths, sizeof lengths);
  XXH3_128bits_update(&h->xxh, name, strlen(name));
  XXH3_128bits_update(&h->xxh, data, size);
}

static fg_status add_essence(hasher *h, const char *name, const char *text, size_t size) {
  char *essence = malloc(size + 1);
  if (!essence) return fg_fail(FG_EMEMORY, "no memory for template %s", name);
  add(h, name, essence, fg_template_essence(name, text, size, h->with_lines, essence));
  free(essence);
  return FG_OK;
}

static fg_status add_list(hasher *h, const fg_embedded *list) {
  for (; list->name; list++) TRY(add_essence(h, list->name, list->text, list->size));
  return FG_OK;
}

static int is_template(const char *name) {
  size_t n = strlen(name);
  return n > 4 && (!strcmp(name + n - 4, ".cut") || !strcmp(name + n - 4, ".lua"));
}

/* A visitor: adds the essence of one file. */
static fg_status add_file(void *context, const char *path, const char *name) {
  char *text;
  size_t size;
  TRY(fg_template_read(path, &text, &size));
  fg_status status = add_essence(context, name, text, size);
  free(text);
  return status;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
  return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Sorted by name, so that the order of the file system has no effect. */
fg_status fg_gen_each_template(const char *directory, fg_template_visitor *visit, void *context) {
  char *const roots[] = {(char *)directory, NULL};
  FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
  fg_status status = FG_OK;
  if (!tree) return fg_fail(FG_ETEMPLATE, "templates %s: %s", directory, strerror(errno));
  while (status == FG_OK) {
    errno = 0;
    FTSENT *e = fts_read(tree);
    if (!e) { /* the end, or no memory to go on */
      if (errno) status = fg_fail(FG_ETEMPLATE, "templates %s: %s", directory, strerror(errno));
      break;
    }
    if (e->fts_info == FTS_F && is_template(e->fts_name))
      status = visit(context, e->fts_path, e->fts_path + strlen(directory));
    else if (e->fts_info == FTS_ERR || e->fts_info == FTS_NS || e->fts_info == FTS_DNR)
      status = fg_fail(FG_ETEMPLATE, "templates %s: %s", e->fts_path, strerror(e->fts_errno));
  }
  fts_close(tree);
  return status;
}

/* Version, C, Lua of gen, templates, in this order. */
fg_status fg_gen_digest(const char *templates, bool with_lines, size_t size, char *hex) {
  hasher h = {.with_lines = with_lines};
  XXH3_128bits_reset(&h.xxh);
  add(&h, "version", FG_VERSION, strlen(FG_VERSION));
  add(&h, "code", fg_embedded_code, strlen(fg_embedded_code));
  TRY(add_list(&h, fg_embedded_gen));
  if (templates && *templates)
    TRY(fg_gen_each_template(templates, add_file, &h));
  else
    TRY(add_list(&h, fg_embedded_templates));
  XXH128_hash_t d = XXH3_128bits_digest(&h.xxh);
  snprintf(hex, size, "%016llx%016llx", (unsigned long long)d.high64, (unsigned long long)d.low64);
  return FG_OK;
}
