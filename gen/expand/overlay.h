/* overlay.h - the templates of a gen: the built-in ones, and over them the files of a folder.
 *
 * A file of the folder replaces the built-in template of its name; a file with another name is one
 * template more. The folder must have a .cut or .lua file, so that a wrong path is an error. */
#ifndef FG_OVERLAY_H
#define FG_OVERLAY_H

#include "base/error.h"

#include <stdbool.h>

typedef struct fg_template_text {
  const char *data;
  size_t size;
  char *own; /* `data`, where the caller must free it; NULL: it is built in */
} fg_template_text;

/* The text of the template of that name; folder NULL: the built-in one. FG_ETEMPLATE: neither the
 * folder nor the library has it, or the folder's file cannot be read. */
fg_status fg_overlay_read(const char *folder, const char *name, fg_template_text *text);

/* Is there a template of that name? */
bool fg_overlay_has(const char *folder, const char *name);

/* Calls `visit` with each .cut and .lua file of the folder, in the order of their names, until one
 * call fails. name: the file's place in the folder. FG_ETEMPLATE: the folder cannot be read;
 * FG_EMEMORY: there is no memory to read it. */
typedef fg_status fg_overlay_visitor(void *context, const char *path, const char *name);
fg_status fg_overlay_each(const char *folder, fg_overlay_visitor *visit, void *context);

/* The same with each folder, before its files, for whom a new file matters; its name is "" for the
 * first one. */
fg_status fg_overlay_each_or_folder(const char *folder, fg_overlay_visitor *visit, void *context);

/* FG_ETEMPLATE unless the folder can be read and has a .cut or .lua file. */
fg_status fg_overlay_check(const char *folder);

#endif
