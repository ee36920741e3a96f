/* compile.h - a source to code for an arch, by NVRTC or the host device's compiler; no device of
 * that kind is needed. */
#ifndef FG_COMPILE_H
#define FG_COMPILE_H

#include "device.h"

enum { FG_COMPILER_MAX = 1024 }; /* bytes of an identity */

/* Who compiles for the arch here, and with which options, in a line: what makes the same text the
 * same code. NVRTC is not loaded for it where its files say what it is. Without a compiler it is
 * "none": what is compiled already can still be found and run. */
fg_status fg_compiler_identity(const char *arch, size_t size, char *text);

/* The options alone, which need no compiler to be known. */
fg_status fg_compiler_options(const char *arch, size_t size, char *text);

/* FG_EENVIRONMENT: there is no compiler, or it does not know the arch. */
fg_status fg_compiler_check(const char *arch);

/* FG_ECOMPILER: the compiler refuses the text, or the code of one that is not `unskipped` spills or
 * draws a warning; code->refused says whether it would again whenever it is asked. code->data is
 * the caller's to free. */
fg_status fg_compile(const char *arch, const char *name, const fg_source *source, fg_code *code);

#endif
