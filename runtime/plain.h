/* plain.h - numbers have a point, whatever locale the host application runs in.
 *
 * Specs, kernels and wisdom are texts that strtod, printf and Lua read and write, and these follow
 * the thread's locale: with a comma in it a score's 0.5 would be no number, and a kernel's another
 * one. What reads or writes such a text runs between the two calls; other threads keep theirs. */
#ifndef FG_PLAIN_H
#define FG_PLAIN_H

#include <locale.h>

/* The thread's own locale, to go back to. */
locale_t fg_plain_begin(void);
void fg_plain_end(locale_t own);

#endif
