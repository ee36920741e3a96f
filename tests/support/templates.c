/* templates.c - a copy of the built-in templates that a test may damage. */
#include "templates.h"
#include "expand/embedded.h"
#include "scratch.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *path_of(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "t/%s", name);
  return path;
}

static const fg_embedded *built_in(const char *name) {
  const fg_embedded *file = fg_embedded_find(fg_embedded_templates, name);
  ck_assert_msg(file != NULL, "no template %s", name);
  return file;
}

static void copy(const char *name) {
  const fg_embedded *file = built_in(name);
  scratch_put(path_of(name), file->text, file->size);
}

/* Unless the test has changed it before. */
static void copy_once(const char *name) {
  if (access(path_of(name), F_OK)) copy(name);
}

/* One file, for a directory without any is an error; it has no spot of bugs and no mistake of a
 * test's. */
void templates_enter(void) {
  scratch_enter();
  copy("kinds.lua");
}

void templates_copy(void) {
  for (const fg_embedded *file = fg_embedded_templates; file->name; file++) copy(file->name);
}

void templates_leave(void) { scratch_leave(); }

static int count_lines(const char *from, const char *to) {
  int n = 1;
  for (; from < to; from++) n += *from == '\n';
  return n;
}

int templates_append(const char *name, const char *lines) {
  const fg_embedded *file = built_in(name);
  copy_once(name);
  FILE *f = fopen(path_of(name), "a");
  ck_assert_ptr_nonnull(f);
  ck_assert_int_ge(fputs(lines, f), 0);
  ck_assert_int_eq(fclose(f), 0);
  return count_lines(file->text, file->text + file->size);
}

/* Writes `text` with its first `from` replaced to the copy. */
static void replace_in(const char *name, const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  ck_assert_msg(at != NULL, "%s does not hold %s", name, from);
  size_t size = strlen(text) + strlen(to) + 1;
  char *changed = malloc(size);
  ck_assert_ptr_nonnull(changed);
  int n = snprintf(changed, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  scratch_put(path_of(name), changed, (size_t)n);
  free(changed);
}

void templates_replace(const char *name, const char *from, const char *to) {
  replace_in(name, built_in(name)->text, from, to);
}

void templates_change(const char *name, const char *from, const char *to) {
  enum { SIZE = 1 << 18 };
  char *text = malloc(SIZE);
  copy_once(name);
  FILE *f = fopen(path_of(name), "r");
  ck_assert_msg(text && f, "no copy of %s", name);
  size_t n = fread(text, 1, SIZE, f);
  ck_assert_uint_lt(n, SIZE);
  fclose(f);
  text[n] = 0;
  replace_in(name, text, from, to);
  free(text);
}

int templates_line(const char *name, const char *text) {
  const fg_embedded *file = built_in(name);
  const char *at = strstr(file->text, text);
  ck_assert_msg(at != NULL, "%s does not hold %s", name, text);
  return count_lines(file->text, at);
}

fg_status templates_expand(const char *name, fg_source **source) {
  fg_variant variant;
  fg_gen *gen;
  ck_assert_msg(fg_variant_parse(name, &variant) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_gen_new("t", &gen) == FG_OK, "%s", fg_error());
  fg_status status = fg_gen_expand(gen, &variant, source);
  fg_gen_free(gen);
  return status;
}

void templates_fail(const char *variant, const char *file, int line, const char *message) {
  char why[512];
  fg_source *source = NULL;
  if (line)
    snprintf(why, sizeof why, "%s: %s:%d: %s", variant, file, line, message);
  else
    snprintf(why, sizeof why, "%s: %s", variant, message);
  ck_assert_int_eq(templates_expand(variant, &source), FG_ETEMPLATE);
  ck_assert_str_eq(fg_error(), why);
  ck_assert_ptr_null(source);
}
