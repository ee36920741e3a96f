/* zoo_text.h - the text of a manifest, shared by the reader and the maker of a zoo. */
#ifndef FG_ZOO_TEXT_H
#define FG_ZOO_TEXT_H

#include "zoo.h"

#include <stdbool.h>

#define FG_ZOO_MANIFEST "manifest.txt"
#define FG_ZOO_HEADER   "flashgen zoo " /* a manifest's first bytes; its format follows */

/* Bytes of texts: FG_ZOO_NAME has room for a variant's name, ".cubin" or ".so", and ".new". */
enum { FG_ZOO_NAME = FG_NAME_MAX + 16, FG_ZOO_BLOCK = 28672, FG_ZOO_EXPRESSION = 8192 };

void fg_zoo_digest(const void *bytes, size_t n, char hex[FG_DIGEST_HEX]);

void fg_zoo_file(const char *name, char file[FG_ZOO_NAME]);
/* The variant whose code file has this name; false if no variant's file has it. */
bool fg_zoo_file_variant(const char *file, char name[FG_NAME_MAX]);

/* The item's block, from "variant" to "end". FG_EBUG: it is longer than FG_ZOO_BLOCK. */
fg_status fg_zoo_print(const fg_zoo_item *item, char text[FG_ZOO_BLOCK]);

/* Splits the block at *at in place; the item points into it, and *at moves behind it. FG_EIO says
 * what was expected, and *line in which line; *at is then within the block. Name and recipe are not
 * parsed: a manifest's checksum shows that they are as their writer left them. */
fg_status fg_zoo_split(char **at, int *line, fg_zoo_item *item);
/* The same for a text without a checksum: name and recipe are parsed as well. */
fg_status fg_zoo_parse(char **at, int *line, fg_zoo_item *item);

/* The bytes of a regular file in the directory `dir`, and a NUL behind them; the caller frees
 * *bytes. FG_EIO, and errno says why. */
fg_status fg_zoo_slurp(int dir, const char *file, char **bytes, size_t *n);

#endif
