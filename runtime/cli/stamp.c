/* stamp.c - what a build system needs of `flashgen build`: a file that is as new as the zoo, and
 * what it depends on, in make's form.
 *
 * Built-in templates are part of this program. A directory over them counts as a whole, its folders
 * too, for a file that is new in one: any family of it may become the best for a spec. What did not
 * change is not compiled again in any case. */
#include "cli.h"

#include "base/setting.h"
#include "expand/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path as make and ninja read it. */
static void print_path(FILE *f, const char *path) {
  for (; *path; path++) {
    if (strchr(" #", *path)) fputc('\\', f);
    if (*path == '$') fputc('$', f);
    fputc(*path, f);
  }
}

static void print_dependency(FILE *f, const char *path) {
  fputs(" \\\n  ", f);
  print_path(f, path);
}

static fg_status add_template(void *context, const char *path, const char *name) {
  (void)name;
  print_dependency(context, path);
  return FG_OK;
}

static fg_status print_rule(FILE *f, const cli *c) {
  const char *templates = fg_setting_text(FG_SET_TEMPLATES, NULL);
  char program[4096];
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
  print_path(f, c->stamp);
  fputc(':', f);
  if (n > 0) program[n] = 0, print_dependency(f, program);
  for (int i = 0; i < c->n_files; i++) print_dependency(f, c->files[i]);
  if (*templates) TRY(fg_overlay_each_or_folder(templates, add_template, f));
  fputc('\n', f);
  return FG_OK;
}

static fg_status failed(const char *path) {
  return fg_fail(FG_EIO, "%s cannot be written: %s", path, strerror(errno));
}

static fg_status write_rule(const cli *c, const char *path) {
  FILE *f = fopen(path, "we");
  if (!f) return failed(path);
  fg_status status = print_rule(f, c);
  const bool whole = !ferror(f);
  if ((fclose(f) || !whole) && status == FG_OK) status = failed(path);
  if (status != FG_OK) unlink(path);
  return status;
}

fg_status cli_stamp(const cli *c) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s.d", c->stamp) >= (int)sizeof path)
    return fg_fail(FG_EARGUMENT, "--stamp: the path is too long");
  TRY(write_rule(c, path));
  int fd = open(c->stamp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return failed(c->stamp);
  fg_status status = futimens(fd, NULL) ? failed(c->stamp) : FG_OK;
  close(fd);
  return status;
}
