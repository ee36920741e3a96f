/* compile.h - a source to code for an arch, by NVRTC or the host device's compiler; no device of
 * that kind is needed. */
#ifndef FG_COMPILE_H
#define FG_COMPILE_H

#include "device.h"

/* Who compiles for the arch here, and with which options, in a line: part of what makes the same
 * text the same code. FG_EENVIRONMENT: there is no compiler, or it does not know the arch. */
fg_status fg_compiler_identity(const char *arch, size_t size, char *text);

/* FG_ECOMPILER: the compiler refuses the text, or the code spills or draws a warning. code->data is
 * the caller's to free. */
fg_status fg_compile(const char *arch, const char *name, const fg_source *source, fg_code *code);

#endif
