/* intern.h - texts that are kept once and for good, so that equal texts are equal pointers.
 *
 * The canonical texts of masks, scores and inputs: a process meets few of them, and points hold
 * them as values. Their hashes stand for them in names. */
#ifndef FG_INTERN_H
#define FG_INTERN_H

#include "error.h"

enum { FG_INTERN_HEX = 17 };

/* The one copy of the text; FG_EMEMORY. Safe from many threads. */
fg_status fg_intern(const char *text, const char **kept);

/* What stands in names for a text that was interned, in place of its hash; "" for nothing. The
 * first one counts. FG_EMEMORY. And back: NULL where it is not known yet. */
fg_status fg_intern_call(const char *text, const char *call);
const char *fg_intern_called(const char *text);

/* 16 hexadecimal digits of a text that was interned; those of "#<digits>" are these digits. */
void fg_intern_hash(const char *text, char hex[FG_INTERN_HEX]);

/* The text with that hash, "#<digits>" if none is known. */
fg_status fg_intern_find(const char *hex, const char **kept);

#endif
