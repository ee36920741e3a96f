/* cuda.h - the functions of the CUDA driver that flashgen calls, found at run time.
 *
 * No CUDA header is needed to build: the declarations below are the driver's documented ABI. The
 * table is loaded once a process; a machine without a driver gets FG_EENVIRONMENT. */
#ifndef FG_CUDA_H
#define FG_CUDA_H

#include "base/error.h"

#include <stdbool.h>

typedef int CUresult; /* 0 = success */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

/* Values of the driver's enums. */
enum {
  CU_DEVICE_MULTIPROCESSORS = 16,
  CU_DEVICE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_CAPABILITY_MINOR = 76,
  CU_DEVICE_SHARED_OPTIN = 97,    /* most dynamic shared bytes a block can opt in to */
  CU_FUNC_MAX_DYNAMIC_SHARED = 8, /* function attribute: dynamic shared bytes it may be given */
  CU_STREAM_NOT_CAPTURING = 0,
  CU_TENSOR_MAP_U8 = 0, /* data types of a tensor map; its L2 promotion */
  CU_TENSOR_MAP_F16 = 6,
  CU_TENSOR_MAP_BF16 = 9,
  CU_TENSOR_MAP_L2_256 = 3,
  CU_LAUNCH_CLUSTER = 4, /* launch attributes: cluster dimension, */
  CU_LAUNCH_EARLY = 6,   /* programmatic stream serialization */
  CU_OUT_OF_MEMORY = 2,  /* results */
  CU_CONTEXT_INVALID = 201,
  CU_CONTEXT_DESTROYED = 709,
  CU_CAPTURE_IMPLICIT = 906 /* the default stream, while a stream that waits for it captures */
};

typedef unsigned int cu_uint32;
typedef unsigned long long cu_uint64;

typedef struct cu_launch_attribute {
  int id, pad;
  union {
    char bytes[64];
    unsigned cluster[3];
    int allow;
  } value;
} cu_launch_attribute;

typedef struct cu_launch_config {
  unsigned grid[3], block[3], shared;
  CUstream stream;
  cu_launch_attribute *attributes;
  unsigned n_attributes;
} cu_launch_config;

/* X(name, parameters); every function returns CUresult. The ABI itself has the _v2 names. */
#define FG_CUDA_FUNCTIONS(X)                                                                       \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuDriverGetVersion, (int *version))                                                            \
  X(cuGetErrorName, (CUresult error, const char **name))                                           \
  X(cuGetErrorString, (CUresult error, const char **text))                                         \
  X(cuDeviceGetCount, (int *count))                                                                \
  X(cuDeviceGet, (CUdevice * device, int ordinal))                                                 \
  X(cuDeviceGetName, (char *name, int size, CUdevice device))                                      \
  X(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                            \
  X(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                        \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                              \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                               \
  X(cuCtxGetCurrent, (CUcontext * context))                                                        \
  X(cuCtxGetId, (CUcontext context, unsigned long long *id))                                       \
  X(cuCtxSetCurrent, (CUcontext context))                                                          \
  X(cuModuleLoadData, (CUmodule * module, const void *image))                                      \
  X(cuModuleUnload, (CUmodule module))                                                             \
  X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))               \
  X(cuFuncSetAttribute, (CUfunction function, int attribute, int value))                           \
  X(cuLaunchKernel,                                                                                \
    (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,         \
     unsigned bz, unsigned shared, CUstream stream, void **params, void **extra))                  \
  X(cuLaunchKernelEx,                                                                              \
    (const cu_launch_config *config, CUfunction function, void **params, void **extra))            \
  X(cuOccupancyMaxActiveClusters,                                                                  \
    (int *count, CUfunction function, const cu_launch_config *config))                             \
  X(cuTensorMapEncodeTiled,                                                                        \
    (void *map, int type, cu_uint32 rank, void *base, const cu_uint64 *extents,                    \
     const cu_uint64 *strides, const cu_uint32 *box, const cu_uint32 *steps, int interleave,       \
     int swizzle, int l2, int outside))                                                            \
  X(cuStreamIsCapturing, (CUstream stream, int *status))                                           \
  X(cuStreamCreate, (CUstream * stream, unsigned flags))                                           \
  X(cuStreamDestroy_v2, (CUstream stream))                                                         \
  X(cuStreamSynchronize, (CUstream stream))                                                        \
  X(cuMemAlloc_v2, (CUdeviceptr * p, size_t bytes))                                                \
  X(cuMemFree_v2, (CUdeviceptr p))                                                                 \
  X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                             \
  X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                                   \
  X(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t bytes))                            \
  X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))         \
  X(cuEventCreate, (CUevent * event, unsigned flags))                                              \
  X(cuEventDestroy_v2, (CUevent event))                                                            \
  X(cuEventRecord, (CUevent event, CUstream stream))                                               \
  X(cuEventSynchronize, (CUevent event))                                                           \
  X(cuEventElapsedTime, (float *ms, CUevent from, CUevent to))

#define FG_CUDA_MEMBER(name, parameters) CUresult(*name) parameters;
typedef struct fg_cuda {
  FG_CUDA_FUNCTIONS(FG_CUDA_MEMBER)
  int version; /* of the driver: 1000 * major + 10 * minor, 12030 */
} fg_cuda;

/* The driver, initialised: libcuda.so.1 on the loader's path. FG_EENVIRONMENT: it is not there, too
 * old, or does not start; the reason is the loader's or the driver's. Thread-safe. */
fg_status fg_cuda_load(const fg_cuda **cuda);

/* For tests and measurements: the context of a device that is a GPU, and the function of step i of
 * a module that it has loaded. */
struct fg_device;
struct fg_module;
CUcontext fg_device_cuda_context(const struct fg_device *device);
CUfunction fg_device_cuda_function(const struct fg_module *module, int step);

/* FG_ECUDA, FG_EMEMORY: "what: CUDA_ERROR_NAME (text)" unless result is 0. */
fg_status fg_cuda_check(const fg_cuda *cuda, CUresult result, const char *what);

/* Whether a result means that a context is gone: every later call in it fails as well. */
bool fg_cuda_lost(CUresult result);

/* Like fg_cuda_check, for calls that do not wait for a kernel. If such a call reports a lost
 * context, earlier work of the application or of flashgen has lost it, and the sentence says so. */
fg_status fg_cuda_check_before(const fg_cuda *cuda, CUresult result, const char *what);

#endif
