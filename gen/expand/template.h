/* template.h - files of templates, and their language: lines to Lua, line for line. */
#ifndef FG_TEMPLATE_H
#define FG_TEMPLATE_H

#include "base/error.h"

/* The whole of a template file; *text is the caller's to free. FG_ETEMPLATE: it cannot be read. */
fg_status fg_template_read(const char *path, char **text, size_t *size);

/* A `.cut` text to a Lua chunk with the same number of lines. The chunk is called with an emitter
 * and calls it as emit(line, piece, ...) for each line of text, literals and values in turn. A line
 * whose first non-blank is @ is Lua, which may use `given`, what the includer handed on; $(expr) is
 * a value. A spot (spot.h) becomes an empty line. *lua is the caller's to free.
 * FG_ETEMPLATE: "name:line: ..." for a $( that is not closed on its line. */
fg_status fg_template_translate(const char *name, const char *text, size_t size, char **lua,
                                size_t *lua_size);

#endif
