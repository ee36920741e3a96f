/* host_unset.h - changes a kernel's text so that registers that are not set are signalling NaNs.
 *
 * A compiler that initialises variables by a pattern chooses the pattern. That of gcc, bytes of
 * 0xfe, is a large negative float, which makes a maximum that was never set right by chance. */
#ifndef FG_HOST_UNSET_H
#define FG_HOST_UNSET_H

#include "base/error.h"

/* A copy of the C text, in which local variables and arrays of float and u32 without an initialiser
 * are initialised with FGH_UNSET_F32 and FGH_UNSET_U32. Lines keep their numbers. *made is the
 * caller's to free. FG_EMEMORY. */
fg_status fg_host_unset(const char *text, size_t size, char **made, size_t *made_size);

/* Compiler options that define both names. A signalling NaN survives max, where a quiet one would
 * lose; the integer is two NaNs when it is read as two 16-bit numbers of any dtype. */
#define FG_HOST_UNSET_OPTIONS "-DFGH_UNSET_F32=__builtin_nansf(\"\")", "-DFGH_UNSET_U32=0xffffffffu"

#endif
