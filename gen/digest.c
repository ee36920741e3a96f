/* digest.c - hashes the templates. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"
#include "embedded.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>

/* Name and content, each with its length, so that no two sets of files run together. */
static void add(XXH3_state_t *state, const char *name, const void *data, size_t size) {
  const uint64_t lengths[2] = {strlen(name), size};
  XXH3_128bits_update(state, lengths, sizeof lengths);
  XXH3_128bits_update(state, name, strlen(name));
  XXH3_128bits_update(state, data, size);
}

static void add_list(XXH3_state_t *state, const fg_embedded *list) {
  for (; list->name; list++) add(state, list->name, list->text, list->size);
}

static int is_template(const char *name) {
  size_t n = strlen(name);
  return n > 4 && (!strcmp(name + n - 4, ".cut") || !strcmp(name + n - 4, ".lua"));
}

static fg_status add_file(void *context, const char *path, const char *name) {
  XXH3_state_t *state = context;
  char block[16384];
  FILE *file = fopen(path, "rbe");
  if (!file) return fg_fail(FG_ETEMPLATE, "template %s: %s", path, strerror(errno));
  add(state, name, "", 0);
  for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;)
    XXH3_128bits_update(state, block, n);
  int failed = ferror(file);
  fclose(file);
  return failed ? fg_fail(FG_ETEMPLATE, "template %s: cannot be read", path) : FG_OK;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
  return strcmp((*a)->fts_name, (*b)->fts_name);
}

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

fg_status fg_gen_digest(const char *templates, size_t size, char *hex) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  add(&state, "version", FG_VERSION, strlen(FG_VERSION));
  add(&state, "code", fg_embedded_code, strlen(fg_embedded_code));
  add_list(&state, fg_embedded_gen);
  if (templates && *templates)
    TRY(fg_gen_each_template(templates, add_file, &state));
  else
    add_list(&state, fg_embedded_templates);
  XXH128_hash_t h = XXH3_128bits_digest(&state);
  snprintf(hex, size, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
  return FG_OK;
}
