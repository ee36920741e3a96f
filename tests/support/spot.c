/* spot.c - finds spots in the built-in templates. */
#include "spot.h"

#include "expand/spot.h"

#include <check.h>
#include <string.h>

bool spot_is_file(const char *name) {
  const char *ending = strrchr(name, '.');
  return ending && (!strcmp(ending, ".cut") || !strcmp(ending, ".lua"));
}

/* The line's end, and whether it is a spot; then *is_named: of that name. */
static bool read_line(const char *line, const char *name, size_t *n, bool *is_named) {
  const char *found;
  size_t found_n;
  *n = strcspn(line, "\n");
  if (!fg_template_spot(line, *n, &found, &found_n)) return false;
  *is_named = strlen(name) == found_n && !strncmp(found, name, found_n);
  return true;
}

/* Where the spot's lines end: before the next spot, an empty line or the file's end. */
static const char *end_of(const char *first) {
  const char *at = first;
  bool is_named;
  for (size_t n; *at && *at != '\n'; at += n + (at[n] == '\n'))
    if (read_line(at, "", &n, &is_named)) break;
  return at;
}

/* The number of spots of that name in a file; the first's lines. */
static int find_in(const fg_embedded *file, const char *name, spot *found) {
  int count = 0;
  size_t n;
  for (const char *at = file->text; *at; at += n + (at[n] == '\n')) {
    bool is_named = false;
    if (!read_line(at, name, &n, &is_named) || !is_named || count++) continue;
    const char *const first = at + n + (at[n] == '\n');
    *found = (spot){file, first, (size_t)(end_of(first) - first)};
  }
  return count;
}

spot spot_of(const char *name) {
  spot found = {0};
  int count = 0;
  if (spot_is_file(name)) {
    const fg_embedded *f = fg_embedded_find(fg_embedded_templates, name);
    if (!f) ck_abort_msg("no template %s", name); /* no ck_assert: suites count before they run */
    return (spot){f, f->text, f->size};
  }
  for (const fg_embedded *f = fg_embedded_templates; f->name; f++) {
    spot here;
    const int n = find_in(f, name, &here);
    if (n && !count) found = here;
    count += n;
  }
  if (count != 1) ck_abort_msg("%d spots %s", count, name);
  return found;
}

/* The next occurrence from `at` on; NULL: there is none. */
static const char *next(const spot *s, const char *at, const char *text) {
  const size_t n = strlen(text);
  for (const char *end = s->text + s->size; at + n <= end; at++)
    if (!memcmp(at, text, n)) return at;
  return NULL;
}

int spot_count(const spot *s, const char *text) {
  int n = 0;
  for (const char *at = s->text; (at = next(s, at, text)); at += strlen(text)) n++;
  return n;
}

const char *spot_find(const spot *s, const char *text, int nth) {
  const int n = spot_count(s, text);
  if (nth >= n) ck_abort_msg("%s has %d of \"%s\" there, not %d", s->file->name, n, text, nth + 1);
  const char *at = next(s, s->text, text);
  for (; nth > 0; nth--) at = next(s, at + strlen(text), text);
  return at;
}

int spot_line(const spot *s, const char *at) {
  int line = 1;
  for (const char *c = s->file->text; c < at; c++) line += *c == '\n';
  return line;
}
