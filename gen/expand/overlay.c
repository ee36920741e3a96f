/* overlay.c - finds templates in a folder and among the built-in ones. */
#include "overlay.h"

#include "embedded.h"
#include "template.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 1024 };

/* Has the folder a file of that name, whether or not it can be read? Fills *path. */
static bool is_in(const char *folder, const char *name, char path[PATH_SIZE]) {
  if (!folder) return false;
  snprintf(path, PATH_SIZE, "%s/%s", folder, name);
  return !access(path, F_OK) || errno != ENOENT;
}

fg_status fg_overlay_read(const char *folder, const char *name, fg_template_text *text) {
  char path[PATH_SIZE], *own;
  size_t size;
  if (is_in(folder, name, path)) {
    TRY(fg_template_read(path, &own, &size));
    *text = (fg_template_text){own, size, own};
    return FG_OK;
  }
  const fg_embedded *file = fg_embedded_find(fg_embedded_templates, name);
  if (!file) return fg_fail(FG_ETEMPLATE, "template %s: there is none of that name", name);
  *text = (fg_template_text){file->text, file->size, NULL};
  return FG_OK;
}

bool fg_overlay_has(const char *folder, const char *name) {
  char path[PATH_SIZE];
  return is_in(folder, name, path) || fg_embedded_find(fg_embedded_templates, name) != NULL;
}

static bool is_template(const char *name) {
  const size_t n = strlen(name);
  return n > 4 && (!strcmp(name + n - 4, ".cut") || !strcmp(name + n - 4, ".lua"));
}

static int by_name(const FTSENT **a, const FTSENT **b) {
  return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Sorted by name, so that the order of the file system has no effect. */
static fg_status each(const char *folder, bool with_folders, fg_overlay_visitor *visit,
                      void *context) {
  char *const roots[] = {(char *)folder, NULL};
  FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
  fg_status status = FG_OK;
  if (!tree) return fg_fail(FG_ETEMPLATE, "templates %s: %s", folder, strerror(errno));
  while (status == FG_OK) {
    errno = 0;
    FTSENT *e = fts_read(tree);
    if (!e) { /* the end, or no memory to go on */
      if (errno) status = fg_fail(FG_ETEMPLATE, "templates %s: %s", folder, strerror(errno));
      break;
    }
    const char *name = e->fts_path + strlen(folder);
    name += strspn(name, "/");
    if ((e->fts_info == FTS_F && is_template(e->fts_name)) ||
        (e->fts_info == FTS_D && with_folders))
      status = visit(context, e->fts_path, name);
    else if (e->fts_info == FTS_ERR || e->fts_info == FTS_NS || e->fts_info == FTS_DNR)
      status = fg_fail(FG_ETEMPLATE, "templates %s: %s", e->fts_path, strerror(e->fts_errno));
  }
  fts_close(tree);
  return status;
}

fg_status fg_overlay_each(const char *folder, fg_overlay_visitor *visit, void *context) {
  return each(folder, false, visit, context);
}

fg_status fg_overlay_each_or_folder(const char *folder, fg_overlay_visitor *visit, void *context) {
  return each(folder, true, visit, context);
}

/* A visitor. */
static fg_status count(void *context, const char *path, const char *name) {
  (void)path, (void)name;
  ++*(int *)context;
  return FG_OK;
}

fg_status fg_overlay_check(const char *folder) {
  int n = 0;
  TRY(fg_overlay_each(folder, count, &n));
  if (n) return FG_OK;
  return fg_fail(FG_ETEMPLATE, "templates %s: there is no .cut or .lua file", folder);
}
