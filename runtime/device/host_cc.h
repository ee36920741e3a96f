/* host_cc.h - the host device's compiler, which makes a source a shared object. */
#ifndef FG_HOST_CC_H
#define FG_HOST_CC_H

#include "device.h"

/* FG_EENVIRONMENT: there is no compiler. FG_ECOMPILER: it refused the text; the message gives each
 * error with its place in the templates. No file is left behind, however it ends. code->data is the
 * caller's to free. */
fg_status fg_host_cc_compile(const char *name, const fg_source *source, fg_code *code);

/* The options of every compile, joined by spaces; returns their length. */
int fg_host_cc_options(size_t size, char *text);

/* "gcc (Debian ...) 12.2.0": the compiler's first line of --version. */
fg_status fg_host_cc_version(size_t size, char *text);

#endif
