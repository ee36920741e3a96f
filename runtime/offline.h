/* offline.h - compiles for an arch without a device of that kind: what zoos are made with. */
#ifndef FG_OFFLINE_H
#define FG_OFFLINE_H

#include "device.h"

/* Who compiles for the arch here, and with which options, in a line: part of what makes the same
 * text the same code. FG_EENVIRONMENT: there is no compiler, or it does not know the arch. */
fg_status fg_offline_compiler(const char *arch, size_t size, char *text);

/* FG_ECOMPILER as the device's own compile: refused, a spill or a warning. code->data is the
 * caller's to free. */
fg_status fg_offline_compile(const char *arch, const char *name, const fg_source *source,
                             fg_code *code);

#endif
