/* embedded.h - files that are part of the library: the templates, and gen's own Lua.
 *
 * embedded.c is made by the build from the files themselves; each list is sorted by name and ends
 * with a NULL name. */
#ifndef FG_EMBEDDED_H
#define FG_EMBEDDED_H

#include <stddef.h>

typedef struct fg_embedded {
  const char *name, *text;
  size_t size;
} fg_embedded;

extern const fg_embedded fg_embedded_templates[], fg_embedded_gen[];

/* A hash of gen's C code. */
extern const char fg_embedded_code[];

/* fg_gen_digest of the built-in templates, by its with_lines. */
extern const char *const fg_embedded_digest[2];

/* The file of that name, NULL if there is none. */
const fg_embedded *fg_embedded_find(const fg_embedded *list, const char *name);

#endif
