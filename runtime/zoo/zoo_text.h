/* zoo_text.h - the text of a manifest, shared by who reads a zoo and who makes one. */
#ifndef FG_ZOO_TEXT_H
#define FG_ZOO_TEXT_H

#include "zoo.h"

#include <stdbool.h>

#define FG_ZOO_MANIFEST "manifest.txt"
#define FG_ZOO_HEADER   "flashgen zoo " /* a manifest begins so, and goes on with its format */

/* A code file's name: that of the variant, and ".cubin" or ".so". */
enum { FG_ZOO_NAME = FG_NAME_MAX + 16, FG_ZOO_BLOCK = 28672, FG_ZOO_EXPRESSION = 8192 };

void fg_zoo_digest(const void *bytes, size_t n, char hex[FG_DIGEST_HEX]);

void fg_zoo_file(const char *name, char file[FG_ZOO_NAME]);
/* The variant whose code file has this name; false if it is none's. */
bool fg_zoo_file_variant(const char *file, char name[FG_NAME_MAX]);

/* The item's block, from "variant" to "end". FG_EBUG: it is longer than FG_ZOO_BLOCK. */
fg_status fg_zoo_print(const fg_zoo_item *item, char text[FG_ZOO_BLOCK]);

/* Takes the block at *at apart, which becomes part of the item, and moves on behind it. FG_EIO says
 * what was expected, and *line in which line; *at is then within the block. Whether name and recipe
 * mean something is not looked at: under a manifest's checksum it is the word of who made it. */
fg_status fg_zoo_split(char **at, int *line, fg_zoo_item *item);
/* The same with a name and a recipe that are good, for a text without a checksum. */
fg_status fg_zoo_parse(char **at, int *line, fg_zoo_item *item);

/* A regular file of the directory, whole, with a NUL behind its last byte; *bytes is the caller's.
 * errno says what is wrong; FG_EIO. */
fg_status fg_zoo_slurp(int dir, const char *file, char **bytes, size_t *n);

#endif
