/* compile_case.h - many variants compiled for GPUs by some threads, with what NVRTC says of each.
 *
 * No GPU is needed, and no test: a measurement uses it too. */
#ifndef FG_TESTS_COMPILE_CASE_H
#define FG_TESTS_COMPILE_CASE_H

#include "expand/expand.h"
#include "cuda/nvrtc.h"

typedef struct compile_one {
  fg_variant variant;
  char name[FG_NAME_MAX];
  fg_source *source;
  fg_status status; /* of the compile; FG_OK: the cubin is whole */
  fg_cubin cubin;
  char error[512];
  double expand_seconds, seconds; /* by the clock on the wall */
  double processor_seconds;       /* of the compile and all that runs beside it */
} compile_one;

typedef struct compile_list {
  int n;
  compile_one *list;
} compile_list;

/* Adds the variants, expanded. */
fg_status compile_add(compile_list *all, fg_gen *gen, int n, const fg_variant *list);

fg_status compile_run(const fg_nvrtc *nvrtc, compile_list *all, int threads);

/* The registers that the recipe expects of an entry point. */
int compile_expected(const compile_one *one, const char *entry);
void compile_free(compile_list *all);

#endif
