/* digest.h - one number for all that the text of a kernel depends on besides its variant. */
#ifndef FG_DIGEST_H
#define FG_DIGEST_H

#include "base/error.h"

#include <stdbool.h>

/* The XXH3-128 of all that can change emitted text: of the essence (essence.h) of the templates
 * (the built-in ones, and over them each .cut and .lua file of the directory; NULL or "" = the
 * built-in ones only) and of gen's own Lua, of gen's C, and of the library's version, as 32 hex
 * digits. with_lines: the places of lines in the templates count, as they do where the map of lines
 * is kept with a kernel. FG_ETEMPLATE: the directory cannot be read, or has no such file. */
fg_status fg_gen_digest(const char *templates, bool with_lines, size_t size, char *hex);

/* The same, made anew also of the built-in templates, which takes milliseconds: for the build. */
fg_status fg_gen_digest_make(const char *templates, bool with_lines, size_t size, char *hex);

#endif
