/* essence.h - a template's essence: the text that can change what is emitted, without remarks.
 *
 * Remarks are the comments of Lua, in .lua files and on the @ lines of .cut files, spots (spot.h),
 * and the members of a table that hold reasons and measurements: `why` and `gain` in files
 * *_switches.lua, `measured` and `about` in files *_plans.lua, `spilled` in files *_refused.lua.
 * Nothing that is emitted may depend on those members. Comments in the text of a kernel are emitted,
 * and so count. */
#ifndef FG_ESSENCE_H
#define FG_ESSENCE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the essence of the text of the file `name` to `essence`, which has room for one byte more
 * than the text has; returns its length. with_lines: remarks leave their line ends behind, so
 * that equal essences have each piece in the same line. */
size_t fg_template_essence(const char *name, const char *text, size_t size, bool with_lines,
                           char *essence);

#endif
