/* intern.h - one copy of each text, kept for good, so that equal texts are equal pointers.
 *
 * The texts are the canonical masks, scores and inputs, of which a process meets few. Points hold
 * them as values; names hold their hashes. */
#ifndef FG_INTERN_H
#define FG_INTERN_H

#include "error.h"

enum { FG_INTERN_HEX = 17 };

/* The one copy of the text; FG_EMEMORY. Safe from many threads. */
fg_status fg_intern(const char *text, const char **kept);

/* Records the call that stands in names in place of the hash of an interned text; "" for none. The
 * first call of a text counts. FG_EMEMORY. fg_intern_called gives it back, NULL where none is
 * recorded. */
fg_status fg_intern_call(const char *text, const char *call);
const char *fg_intern_called(const char *text);

/* The hash of an interned text as 16 hexadecimal digits; that of "#<digits>" is those digits. */
void fg_intern_hash(const char *text, char hex[FG_INTERN_HEX]);

/* The text with that hash, "#<digits>" if none is known. */
fg_status fg_intern_find(const char *hex, const char **kept);

#endif
