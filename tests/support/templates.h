/* templates.h - templates over the built-in ones, which a test may damage.
 *
 * templates_enter and templates_leave are a checked fixture: a scratch directory with the directory
 * "t" of templates, to which a file is copied when it is first changed. */
#ifndef FG_TESTS_TEMPLATES_H
#define FG_TESTS_TEMPLATES_H

#include "expand/expand.h"

void templates_enter(void);
void templates_leave(void);

/* Copies all of them to "t". */
void templates_copy(void);

/* Appends lines to the copy of a template; returns the number of the first of them. */
int templates_append(const char *name, const char *lines);

/* Makes the copy the built-in text with its first `from` replaced by `to`. */
void templates_replace(const char *name, const char *from, const char *to);

/* Replaces the first `from` of the copy as it stands. */
void templates_change(const char *name, const char *from, const char *to);

/* The number of the first line of the built-in template that holds `text`. */
int templates_line(const char *name, const char *text);

/* Expands the variant of that name with the copy; *source is the caller's. */
fg_status templates_expand(const char *variant, fg_source **source);

/* Its expansion fails with this message of a template's line; line 0: of none. */
void templates_fail(const char *variant, const char *file, int line, const char *message);

#endif
