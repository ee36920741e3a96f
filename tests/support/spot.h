/* spot.h - the spots of the built-in templates (expand/spot.h), and texts in the lines they mark.
 */
#ifndef FG_TESTS_SPOT_H
#define FG_TESTS_SPOT_H

#include "expand/embedded.h"

#include <stdbool.h>

/* A part of a template: a spot's lines, or the whole file. */
typedef struct spot {
  const fg_embedded *file;
  const char *text; /* in the file's */
  size_t size;
} spot;

/* Is the name a file's, and no spot's? */
bool spot_is_file(const char *name);

/* The lines that the spot marks, or the file of that name; the test fails where there is none, or
 * where two spots have the name. */
spot spot_of(const char *name);

/* How often the text occurs there. */
int spot_count(const spot *at, const char *text);

/* Its nth occurrence (0 = the first); the test fails where there is none. */
const char *spot_find(const spot *at, const char *text, int nth);

/* The number in the file of the line that `at`, which points into the file's text, lies in. */
int spot_line(const spot *s, const char *at);

#endif
