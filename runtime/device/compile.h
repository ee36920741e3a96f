/* compile.h - compiles a source for an arch, with NVRTC or the host device's compiler; no device of
 * that kind is needed. */
#ifndef FG_COMPILE_H
#define FG_COMPILE_H

#include "device.h"

enum { FG_COMPILER_MAX = 1024 }; /* bytes of an identity */

/* One line that names the compiler for the arch and its options: with equal lines, equal texts give
 * equal code. NVRTC is not loaded where its files tell which one it is. Without a compiler the line
 * is "none": code that is compiled already can still be found and run. */
fg_status fg_compiler_identity(const char *arch, size_t size, char *text);

/* The options alone; no compiler is needed to know them. */
fg_status fg_compiler_options(const char *arch, size_t size, char *text);

/* FG_EENVIRONMENT: there is no compiler, or it does not know the arch. */
fg_status fg_compiler_check(const char *arch);

/* FG_ECOMPILER: the compiler refuses the text, or the code spills or gives a warning although the
 * source is not `unskipped`. Then code->refused tells whether the compiler would refuse it every
 * time. code->data is the caller's to free. */
fg_status fg_compile(const char *arch, const char *name, const fg_source *source, fg_code *code);

#endif
