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

/* Fills the table; FG_EENVIRONMENT if any of the functions is missing. */
static fg_status load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return fg_fail(FG_EENVIRONMENT, "no CUDA driver: %s", dlerror());
#define FIND(name, parameters)                                                                     \
  if (!(*(void **)&table.name = dlsym(library, #name)))                                            \
    return fg_fail(FG_EENVIRONMENT,                                                                \
                   "libcuda.so.1 is no driver of CUDA 12.0 or newer: it has no " #name);
  FG_CUDA_FUNCTIONS(FIND)
#undef FIND
  if (fg_cuda_check(&table, table.cuInit(0), "the CUDA driver does not start") == FG_OK &&
      fg_cuda_check(&table, table.cuDriverGetVersion(&table.version), "the driver's version") ==
          FG_OK)
    return FG_OK;
  return FG_EENVIRONMENT; /* for any reason that the driver gives: there is no usable GPU */
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

bool fg_cuda_lost(CUresult result) {
  static const CUresult lost[] = {4 /* deinitialised */,
                                  CU_CONTEXT_INVALID,
                                  214 /* uncorrectable ECC error */,
                                  220 /* uncorrectable NVLink error */,
                                  700 /* illegal address */,
                                  702 /* launch timeout */,
                                  CU_CONTEXT_DESTROYED,
                                  710 /* assert */,
                                  714 /* hardware stack error */,
                                  715 /* illegal instruction */,
                                  716 /* misaligned address */,
                                  717 /* invalid address space */,
                                  718 /* invalid program counter */,
                                  719 /* launch failed */};
  for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
    if (lost[i] == result) return true;
  return false;
}

/* Fails with "what: NAME (text)" and `more`, from the driver's own names. */
static fg_status fail(const fg_cuda *cuda, CUresult result, fg_status status, const char *what,
                      const char *more) {
  const char *name = NULL, *text = NULL;
  cuda->cuGetErrorName(result, &name);
  cuda->cuGetErrorString(result, &text);
  return fg_fail(status, "%s: %s (%s)%s", what, name ? name : "an unknown error", text ? text : "?",
                 more);
}

fg_status fg_cuda_check(const fg_cuda *cuda, CUresult result, const char *what) {
  if (result == 0) return FG_OK;
  return fail(cuda, result, result == CU_OUT_OF_MEMORY ? FG_EMEMORY : FG_ECUDA, what, "");
}

fg_status fg_cuda_check_before(const fg_cuda *cuda, CUresult result, const char *what) {
  if (!fg_cuda_lost(result)) return fg_cuda_check(cuda, result, what);
  return fail(cuda, result, FG_ECUDA, what,
              ": work that the GPU was given before this call has failed, and its CUDA context is "
              "lost");
}
