/* digest_make.c - hashes the templates. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"
#include "embedded.h"
#include "essence.h"
#include "overlay.h"
#include "template.h"

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

/* A built-in template, or the folder's file in its place. */
static fg_status add_used(hasher *h, const char *folder, const fg_embedded *file) {
  fg_template_text text;
  TRY(fg_overlay_read(folder, file->name, &text));
  const fg_status status = add_essence(h, file->name, text.data, text.size);
  free(text.own);
  return status;
}

/* A visitor: adds a file that has no built-in template's name. */
static fg_status add_new(void *context, const char *path, const char *name) {
  char *text;
  size_t size;
  if (fg_overlay_has(NULL, name)) return FG_OK;
  TRY(fg_template_read(path, &text, &size));
  const fg_status status = add_essence(context, name, text, size);
  free(text);
  return status;
}

/* The built-in templates under the folder's, then the others of the folder. */
static fg_status add_overlay(hasher *h, const char *folder) {
  TRY(fg_overlay_check(folder));
  for (const fg_embedded *f = fg_embedded_templates; f->name; f++) TRY(add_used(h, folder, f));
  return fg_overlay_each(folder, add_new, h);
}

/* Version, C, Lua of gen, templates, in this order. */
fg_status fg_gen_digest_make(const char *templates, bool with_lines, size_t size, char *hex) {
  hasher h = {.with_lines = with_lines};
  XXH3_128bits_reset(&h.xxh);
  add(&h, "version", FG_VERSION, strlen(FG_VERSION));
  add(&h, "code", fg_embedded_code, strlen(fg_embedded_code));
  TRY(add_list(&h, fg_embedded_gen));
  if (templates && *templates)
    TRY(add_overlay(&h, templates));
  else
    TRY(add_list(&h, fg_embedded_templates));
  XXH128_hash_t d = XXH3_128bits_digest(&h.xxh);
  snprintf(hex, size, "%016llx%016llx", (unsigned long long)d.high64, (unsigned long long)d.low64);
  return FG_OK;
}
