/* host_unset.h - a kernel's text in which registers that are not set are signalling NaNs.
 *
 * Compilers that initialise variables by a pattern choose it: gcc's, bytes of 0xfe, is as a float a
 * large negative number, under which a maximum that was never set is right by chance. */
#ifndef FG_HOST_UNSET_H
#define FG_HOST_UNSET_H

#include "base/error.h"

/* A copy of the C text whose local variables and arrays of float and u32 that have no initialiser
 * have FGH_UNSET_F32 and FGH_UNSET_U32; no line is added. The caller's to free. FG_EMEMORY. */
fg_status fg_host_unset(const char *text, size_t size, char **made, size_t *made_size);

/* Compiler options that define the two. A signalling NaN survives max as well, where a quiet one
 * would lose; as two 16-bit numbers of any dtype the integer is two NaNs. */
#define FG_HOST_UNSET_OPTIONS "-DFGH_UNSET_F32=__builtin_nansf(\"\")", "-DFGH_UNSET_U32=0xffffffffu"

#endif
