/* formula_call.h - calls of shipped definitions in names: window(128, 0) is "window_128_0".
 *
 * Arguments are numbers: digits, with p for the point, m for a minus, e for an exponent. What
 * stands in a name follows from the canonical text alone, so that equal spellings have one name. */
#ifndef FG_FORMULA_CALL_H
#define FG_FORMULA_CALL_H

#include "formula_parse.h"

enum { FG_CALL_MAX = 22 }; /* bytes: a name gets no longer than with the hash in its place */

/* The call that the canonical text is; "" where it is none, or one too long. FG_EMEMORY. */
fg_status fg_formula_call(fg_place place, const char *text, char call[FG_CALL_MAX]);

/* "window(128, 0)" of "window_128_0"; false: it is no call. */
bool fg_formula_call_text(const char *call, size_t size, char *text);

#endif
