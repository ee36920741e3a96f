/* spec_text.h - a spec file's bytes, before anything runs them. */
#ifndef FG_SPEC_TEXT_H
#define FG_SPEC_TEXT_H

#include "base/error.h"

/* The whole of a regular file of at most 1 MiB that is UTF-8 text as far as its first bytes and the
 * absence of zeros tell. FG_ESPEC says what it is instead. *text is the caller's to free; no zero
 * ends it. */
fg_status fg_spec_text_read(const char *path, char **text, size_t *size);

#endif
