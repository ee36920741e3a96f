/* t_spots.c - the spots of templates (expand/spot.h): each has a name of its own and lines, and a
 * suite plants a bug in it.
 *
 * Bugs stand in the sources of suites as "spot", "text", "instead", in a table or a call; places
 * where a fault may show have no third string. */
#include "expand/embedded.h"
#include "expand/spot.h"
#include "suite.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct marked {
  char name[64];            /* in quotes, as suites have it */
  const char *file, *below; /* the line below the spot */
  int line;
} marked;

static marked spots[1024];
static int spots_n;

/* Lists the file's spots. A line that only looks like one is an error in a .cut and none in a .lua,
 * where it is a comment. */
static void list_spots(const fg_embedded *file) {
  int line = 1;
  const char *name;
  size_t n, name_n;
  for (const char *at = file->text; *at; at += n + (at[n] == '\n'), line++) {
    n = strcspn(at, "\n");
    if (!fg_template_spot(at, n, &name, &name_n)) {
      const char *comment = at + strspn(at, " \t");
      ck_assert_msg(strncmp(comment, "-- spot \"", 9), "%s:%d: a comment like a spot", file->name,
                    line);
      continue;
    }
    marked *s = &spots[spots_n++];
    ck_assert_int_lt(spots_n, (int)(sizeof spots / sizeof *spots));
    ck_assert_int_lt((int)name_n + 2, (int)sizeof s->name);
    snprintf(s->name, sizeof s->name, "\"%.*s\"", (int)name_n, name);
    s->file = file->name, s->line = line, s->below = at + n + (at[n] == '\n');
  }
}

static void list_all(void) {
  spots_n = 0;
  for (const fg_embedded *f = fg_embedded_templates; f->name; f++) list_spots(f);
  ck_assert_int_gt(spots_n, 0);
}

TEST(names_are_unique) {
  for (int i = 0; i < spots_n; i++)
    for (int k = 0; k < i; k++)
      ck_assert_msg(strcmp(spots[i].name, spots[k].name), "%s: %s:%d and %s:%d", spots[i].name,
                    spots[k].file, spots[k].line, spots[i].file, spots[i].line);
}

TEST(lines_are_marked) {
  for (int i = 0; i < spots_n; i++) {
    const char *name;
    size_t n = strcspn(spots[i].below, "\n"), name_n;
    ck_assert_msg(n && !fg_template_spot(spots[i].below, n, &name, &name_n), "%s, %s:%d: no lines",
                  spots[i].name, spots[i].file, spots[i].line);
  }
}

/* Goes over blanks, a comma and blanks to the '"' of a string; NULL: there is none. */
static const char *next_string(const char *at) {
  at += strspn(at, " \n");
  if (*at++ != ',') return NULL;
  at += strspn(at, " \n");
  return *at == '"' ? at : NULL;
}

/* Behind the string literal that begins at `at`, and behind those that go on with it. */
static const char *behind(const char *at) {
  const char *next = at;
  do {
    for (at = next + 1; *at && *at != '"'; at++) at += *at == '\\' && at[1];
    at += *at == '"';
    next = at + strspn(at, " \n");
  } while (*next == '"');
  return at;
}

/* Does the source plant a bug in the spot of that name? */
static bool plants(const char *source, const char *name) {
  for (const char *at = source; (at = strstr(at, name)); at++) {
    const char *text = next_string(at + strlen(name));
    if (text && next_string(behind(text))) return true;
  }
  return false;
}

static char *read_whole(const char *path) {
  enum { MOST = 1 << 20 };
  FILE *file = fopen(path, "r");
  char *text = malloc(MOST);
  ck_assert_ptr_nonnull(file);
  ck_assert_ptr_nonnull(text);
  const size_t n = fread(text, 1, MOST - 1, file);
  text[n] = '\0';
  fclose(file);
  return text;
}

TEST(each_has_a_bug) {
  static const char *const folders[] = {FLASHGEN_SOURCE "/tests/kernels/*.c",
                                        FLASHGEN_SOURCE "/tests/cli/*.c"};
  static bool has_bug[sizeof spots / sizeof *spots];
  char without[4096] = "";
  size_t used = 0;
  glob_t files;
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(glob(folders[i], i ? GLOB_APPEND : 0, NULL, &files), 0);
  for (size_t f = 0; f < files.gl_pathc; f++) {
    char *source = read_whole(files.gl_pathv[f]);
    for (int i = 0; i < spots_n; i++) has_bug[i] = has_bug[i] || plants(source, spots[i].name);
    free(source);
  }
  globfree(&files);
  for (int i = 0; i < spots_n && used + 200 < sizeof without; i++)
    if (!has_bug[i])
      used += (size_t)snprintf(without + used, sizeof without - used, "\n  %s:%d: %s",
                               spots[i].file, spots[i].line, spots[i].name);
  ck_assert_msg(!used, "no bug is planted in these spots:%s", without);
}

TEST_FIXTURE(list_all, NULL)
