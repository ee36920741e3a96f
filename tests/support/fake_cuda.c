/* fake_cuda.c - a driver with one GPU that computes nothing. */
#include "fake_cuda.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_cuda fake_cuda = {.id = 7, .clusters = 4};

#define FAKE_DECLARE(name, parameters) CUresult name parameters;
FG_CUDA_FUNCTIONS(FAKE_DECLARE)

static CUcontext const context = (CUcontext)&fake_cuda;

/* Outside the process that links it: FAKE_CUDA_FAIL="cuLaunchKernel 700 30" fails the 30th such
 * call of each process, and whatever comes then; behind it the name of a file that is made, and as
 * long as it is there no process finds the GPU. */
static int lost;
enum { HANGS = -1 }; /* a result: the call does not come back */

static CUresult planned(const char *call) {
  static int count;
  const char *plan = getenv("FAKE_CUDA_FAIL");
  char name[32], file[256] = "";
  int result, nth;
  if (!plan || sscanf(plan, "%31s %d %d %255s", name, &result, &nth, file) < 3) return 0;
  if (!lost && !strcmp(name, call) && ++count == nth) {
    FILE *f = *file ? fopen(file, "w") : NULL;
    if (f) fclose(f);
    while (result == HANGS) sleep(1);
    lost = result;
  }
  return lost;
}

static CUresult answer(const char *call) {
  CUresult result = planned(call);
  if (result) return result;
  if (!fake_cuda.call || strcmp(call, fake_cuda.call) || fake_cuda.times < 1) return 0;
  fake_cuda.times--;
  return fake_cuda.result;
}

/* Outside the process that links it: FAKE_CUDA_INIT is what cuInit answers. */
CUresult cuInit(unsigned flags) {
  const char *given = getenv("FAKE_CUDA_INIT"), *plan = getenv("FAKE_CUDA_FAIL");
  char file[256];
  if (plan && sscanf(plan, "%*s %*d %*d %255s", file) == 1 && access(file, F_OK) == 0) return 100;
  return given ? atoi(given) : (CUresult)flags;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  static char text[32];
  snprintf(text, sizeof text, "CUDA_ERROR_%d", error);
  *name = text;
  return 0;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error ? "an error of the test" : "none";
  return 0;
}

/* It has four multiprocessors; FAKE_CUDA_CAPABILITY is ten times its compute capability, 90 without
 * it. */
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  const char *given = getenv("FAKE_CUDA_CAPABILITY");
  const int capability = given ? atoi(given) : 90;
  *value = attribute == CU_DEVICE_CAPABILITY_MAJOR   ? capability / 10
           : attribute == CU_DEVICE_CAPABILITY_MINOR ? capability % 10
           : attribute == CU_DEVICE_MULTIPROCESSORS  ? 4
                                                     : 1;
  return device < 0;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  snprintf(name, (size_t)size, "fake GPU");
  return device < 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice device) {
  *c = context;
  return device < 0;
}

CUresult cuCtxGetCurrent(CUcontext *c) {
  *c = fake_cuda.another ? NULL : context;
  return 0;
}

CUresult cuCtxGetId(CUcontext c, unsigned long long *id) {
  *id = fake_cuda.id;
  return c == context ? answer("cuCtxGetId") : CU_CONTEXT_INVALID;
}

CUresult cuCtxSetCurrent(CUcontext c) {
  fake_cuda.another = c != context;
  fake_cuda.sets++;
  return answer("cuCtxSetCurrent");
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  CUresult result = answer("cuModuleLoadData");
  fake_cuda.loads += !result;
  if (!result) *module = (CUmodule)(uintptr_t)image;
  return result;
}

CUresult cuModuleUnload(CUmodule module) {
  fake_cuda.unloads++;
  return module ? 0 : 1;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  *function = (CUfunction)(uintptr_t)name;
  return module ? answer("cuModuleGetFunction") : 1;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                        void **extra) {
  CUresult result = answer("cuLaunchKernel");
  fake_cuda.launches += !result;
  memcpy(fake_cuda.grid, (unsigned[3]){gx, gy, gz}, sizeof fake_cuda.grid);
  return gx && gy && gz && bx && by && bz && params ? result : 1;
}

CUresult cuLaunchKernelEx(const cu_launch_config *config, CUfunction function, void **params,
                          void **extra) {
  CUresult result = answer("cuLaunchKernelEx");
  fake_cuda.launches += !result;
  memcpy(fake_cuda.grid, config->grid, sizeof fake_cuda.grid);
  fake_cuda.attributes = config->n_attributes;
  for (unsigned i = 0; i < config->n_attributes && i < 2; i++)
    fake_cuda.attribute[i] = config->attributes[i];
  return function && params && !extra ? result : 1;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function,
                                      const cu_launch_config *config) {
  CUresult result = answer("cuOccupancyMaxActiveClusters");
  memcpy(fake_cuda.grid, config->grid, sizeof fake_cuda.grid);
  for (unsigned i = 0; i < config->n_attributes && i < 2; i++)
    fake_cuda.attribute[i] = config->attributes[i];
  *count = fake_cuda.clusters;
  return function ? result : 1;
}

CUresult cuTensorMapEncodeTiled(void *map, int type, cu_uint32 rank, void *base,
                                const cu_uint64 *extents, const cu_uint64 *strides,
                                const cu_uint32 *box, const cu_uint32 *steps, int interleave,
                                int swizzle, int l2, int outside) {
  struct fake_map m = {.type = type, .rank = rank, .base = base, .swizzle = swizzle, .l2 = l2};
  memcpy(m.extent, extents, rank * sizeof *extents);
  memcpy(m.stride, strides, (rank - 1) * sizeof *strides);
  memcpy(m.box, box, rank * sizeof *box);
  fake_cuda.map = m;
  if ((uintptr_t)map % 64 || interleave || outside || steps[rank - 1] != 1) return 1;
  memset(map, 0x5a, 128);
  return answer("cuTensorMapEncodeTiled");
}

CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  *status = CU_STREAM_NOT_CAPTURING;
  return answer("cuStreamIsCapturing");
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
  CUresult result = answer("cuMemAlloc_v2");
  if (!result) *p = (CUdeviceptr)(uintptr_t)malloc(bytes + 1);
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr p) {
  free((void *)(uintptr_t)p);
  return 0;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  memcpy(to, (const void *)(uintptr_t)from, bytes);
  return 0;
}

/* FAKE_CUDA_GPUS is how many there are, 1 without it. */
CUresult cuDeviceGetCount(int *count) {
  const char *given = getenv("FAKE_CUDA_GPUS");
  *count = given ? atoi(given) : 1;
  return 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  int count;
  *device = ordinal;
  return cuDeviceGetCount(&count) || ordinal >= count;
}

CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return answer("cuDriverGetVersion");
}

/* Calls that only answer. */
#define ANSWER(name, parameters)                                                                   \
  CUresult name parameters { return answer(#name); }
ANSWER(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))
ANSWER(cuDevicePrimaryCtxRelease_v2, (CUdevice device))
ANSWER(cuFuncSetAttribute, (CUfunction function, int attribute, int value))
ANSWER(cuStreamCreate, (CUstream * stream, unsigned flags))
ANSWER(cuStreamDestroy_v2, (CUstream stream))
ANSWER(cuStreamSynchronize, (CUstream stream))
ANSWER(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t bytes))
ANSWER(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))
ANSWER(cuEventCreate, (CUevent * event, unsigned flags))
ANSWER(cuEventDestroy_v2, (CUevent event))
ANSWER(cuEventRecord, (CUevent event, CUstream stream))
ANSWER(cuEventSynchronize, (CUevent event))
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
  *ms = 1;
  return answer("cuEventElapsedTime");
}
