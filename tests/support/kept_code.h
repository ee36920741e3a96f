/* kept_code.h - modules whose code is compiled once a run of the suite, whichever of its tests, each
 * of which is a process, comes first. */
#ifndef FG_TESTS_KEPT_CODE_H
#define FG_TESTS_KEPT_CODE_H

#include "device/device.h"

/* As fg_module_new. */
fg_status kept_module(fg_device *device, const fg_source *source, const char *name,
                      fg_module **module);

#endif
