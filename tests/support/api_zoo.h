/* api_zoo.h - what the suites of contexts with zoos share. Failures in here fail the test. */
#ifndef FG_TESTS_API_ZOO_H
#define FG_TESTS_API_ZOO_H

#include "api_case.h"

/* Makes a zoo of the words for the host device, with all plans of each. */
void api_zoo_make(const char *directory, const char *words);

/* A context with the zoo and an empty cache of its own; plan and jit as in fg_config. Its warnings
 * are kept (api_keep_warning). */
fg_context *api_zoo_open(const char *directory, const char *plan, int jit);

/* So many kernels of the context came from zoos so far. */
void api_zoo_hits(const fg_context *context, int n);

#endif
