/* kept_code.h - modules whose cubin is compiled once, whichever test, each of which is a process, asks
 * first. Code of the host device is kept by the compiler that tests find, kept_cc. */
#ifndef FG_TESTS_KEPT_CODE_H
#define FG_TESTS_KEPT_CODE_H

#include "device/device.h"

/* As fg_module_new. */
fg_status kept_module(fg_device *device, const fg_source *source, const char *name,
                      fg_module **module);

#endif
