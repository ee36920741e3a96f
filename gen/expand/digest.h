/* digest.h - one number for all that the text of a kernel depends on besides its variant. */
#ifndef FG_DIGEST_H
#define FG_DIGEST_H

#include "base/error.h"

#include <stdbool.h>

/* Calls `visit` with each template file of the directory, a .cut or .lua, in the order of their
 * names, until one call fails. name: the place in `path` where the name begins. FG_ETEMPLATE: the
 * directory cannot be read. */
typedef fg_status fg_template_visitor(void *context, const char *path, const char *name);
fg_status fg_gen_each_template(const char *directory, fg_template_visitor *visit, void *context);

/* The XXH3-128 of all that can change emitted text: of the essence (essence.h) of the templates
 * (every .cut and .lua file of the directory, by name; NULL or "" = the built-in ones) and of gen's
 * own Lua, of gen's C, and of the library's version, as 32 hex digits. with_lines: the places of
 * lines in the templates count, as they do where the map of lines is kept with a kernel.
 * FG_ETEMPLATE: the directory cannot be read. */
fg_status fg_gen_digest(const char *templates, bool with_lines, size_t size, char *hex);

#endif
