/* nvrtc_library.h - the functions of the NVRTC that was found, declared here because no CUDA header
 * is needed to build; nvrtc.c finds it, nvrtc_compile.c uses it. */
#ifndef FG_NVRTC_LIBRARY_H
#define FG_NVRTC_LIBRARY_H

#include "nvrtc.h"

#include <stddef.h>

enum { FG_NVRTC_PATH = 512 };

typedef struct nvrtc_program *fg_nvrtc_program;
typedef int fg_nvrtc_flow(void *payload, void *reserved);
struct fg_nvrtc {
  int (*version)(int *major, int *minor);
  int (*create)(fg_nvrtc_program *, const char *text, const char *name, int n,
                const char *const *headers, const char *const *names);
  int (*compile)(fg_nvrtc_program, int n, const char *const *options);
  int (*destroy)(fg_nvrtc_program *);
  int (*log_size)(fg_nvrtc_program, size_t *);
  int (*log)(fg_nvrtc_program, char *);
  int (*cubin_size)(fg_nvrtc_program, size_t *);
  int (*cubin)(fg_nvrtc_program, char *);
  int (*arch_count)(int *);
  int (*archs)(int *);
  const char *(*error)(int);
  int (*set_flow)(fg_nvrtc_program, fg_nvrtc_flow *, void *payload); /* NULL before 12.8 */
  int number;
  char path[FG_NVRTC_PATH];
};

#endif
