/* overlay.c - finds templates in a folder and among the built-in ones. */
#include "overlay.h"

#include "embedded.h"
#include "template.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* A walk through a folder. The C library's fts is not used: when memory runs out, glibc's fts can
 * crash or return unsorted names. */
typedef struct {
  char path[PATH_MAX]; /* the current file or folder */
  size_t root;         /* characters of `path` that name the walk's folder */
  bool with_folders;
  fg_overlay_visitor *visit;
  void *context;
} walk;

/* A folder that the walk has entered and not yet left. */
typedef struct place {
  const struct place *outer; /* NULL: this is the walk's folder */
  dev_t device;
  ino_t inode;
} place;

/* Call it while errno still has the reason. */
static fg_status cannot_read(const char *path) {
  if (errno == ENOMEM) return fg_fail(FG_EMEMORY, "templates %s: no memory to read it", path);
  return fg_fail(FG_ETEMPLATE, "templates %s: %s", path, strerror(errno));
}

static bool is_template(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const size_t n = strlen(name);
  return n > 4 && (!strcmp(name + n - 4, ".cut") || !strcmp(name + n - 4, ".lua"));
}

static int is_file_or_folder(const struct dirent *e) {
  return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static fg_status visit_current(const walk *w) {
  const char *name = w->path + w->root;
  return w->visit(w->context, w->path, name + strspn(name, "/"));
}

static fg_status walk_path(walk *w, size_t n, const place *outer);

/* Appends a name of the folder to the path, which has n characters, and walks there. */
static fg_status walk_name(walk *w, size_t n, const char *name, const place *here) {
  const size_t room = sizeof w->path - n;
  const char *slash = w->path[n - 1] == '/' ? "" : "/";
  const size_t added = (size_t)snprintf(w->path + n, room, "%s%s", slash, name);
  if (added < room) return walk_path(w, n + added, here);
  errno = ENAMETOOLONG;
  return cannot_read(w->path);
}

/* Walks through the folder at the path, which has n characters, and leaves the path unchanged.
 * Names are sorted, so that the order of the file system has no effect. */
static fg_status walk_folder(walk *w, size_t n, const place *here) {
  struct dirent **entry;
  const int entries = scandir(w->path, &entry, is_file_or_folder, by_name);
  fg_status status = FG_OK;
  if (entries < 0) return cannot_read(w->path);
  for (int i = 0; i < entries; i++) {
    if (status == FG_OK) status = walk_name(w, n, entry[i]->d_name, here);
    free(entry[i]);
  }
  free(entry);
  w->path[n] = 0;
  return status;
}

/* Visits the file or folder at the path, which has n characters, then what the folder has. Follows
 * links, except a link without a target and a link to a folder that the walk is in. */
static fg_status walk_path(walk *w, size_t n, const place *outer) {
  struct stat s, link;
  if (stat(w->path, &s)) {
    const int reason = errno;
    if (reason != ENOMEM && !lstat(w->path, &link)) return FG_OK;
    errno = reason;
    return cannot_read(w->path);
  }
  if (S_ISREG(s.st_mode)) return is_template(w->path) ? visit_current(w) : FG_OK;
  if (!S_ISDIR(s.st_mode)) return FG_OK;
  for (const place *p = outer; p; p = p->outer)
    if (p->device == s.st_dev && p->inode == s.st_ino) return FG_OK;
  if (w->with_folders) TRY(visit_current(w));
  return walk_folder(w, n, &(place){outer, s.st_dev, s.st_ino});
}

static fg_status each(const char *folder, bool with_folders, fg_overlay_visitor *visit,
                      void *context) {
  const size_t n = strlen(folder);
  walk w = {.root = n, .with_folders = with_folders, .visit = visit, .context = context};
  if (n >= sizeof w.path) {
    errno = ENAMETOOLONG;
    return cannot_read(folder);
  }
  memcpy(w.path, folder, n + 1);
  return walk_path(&w, n, NULL);
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
