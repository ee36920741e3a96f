/* cuda.c - opens the CUDA driver. */
#include "cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static fg_cuda table;
static fg_status loaded;
static char reason[512];

static fg_status load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return fg_fail(FG_EENVIRONMENT, "no CUDA driver: %s", dlerror());
#define FIND(name, parameters)                                                                     \
  if (!(*(void **)&table.name = dlsym(library, #name)))                                            \
    return fg_fail(FG_EENVIRONMENT, "the CUDA driver is too old: it has no " #name);
  FG_CUDA_FUNCTIONS(FIND)
#undef FIND
  return fg_cuda_check(&table, table.cuInit(0), "the CUDA driver does not start: cuInit");
}

static void load_once(void) {
  loaded = load();
  if (loaded != FG_OK) snprintf(reason, sizeof reason, "%s", fg_error());
}

fg_status fg_cuda_load(const fg_cuda **cuda) {
  pthread_once(&once, load_once);
  if (loaded != FG_OK) return fg_fail(loaded, "%s", reason);
  *cuda = &table;
  return FG_OK;
}

fg_status fg_cuda_check(const fg_cuda *cuda, CUresult result, const char *what) {
  const char *name = NULL, *text = NULL;
  if (result == 0) return FG_OK;
  cuda->cuGetErrorName(result, &name);
  cuda->cuGetErrorString(result, &text);
  return fg_fail(FG_ECUDA, "%s: %s (%s)", what, name ? name : "an unknown error",
                 text ? text : "?");
}
