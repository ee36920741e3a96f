/* device.h - where kernels are compiled and run: one table of functions a kind of device.
 *
 * "host" (the system's C compiler and the engine of runtime/host/) and "cuda:N" (NVRTC and the
 * driver). Modules and memory belong to their device and end before it. */
#ifndef FG_DEVICE_H
#define FG_DEVICE_H

#include "expand/expand.h"
#include "launch.h"

typedef struct fg_device fg_device;
typedef struct fg_module fg_module;

/* Compiled code, as a cache keeps it: a cubin, or a shared object. */
typedef struct fg_code {
  void *data;
  size_t size;
  char
      figures[1024]; /* of each entry point: "attn_fwd registers 80 spill 0 stack 0", a line each */
  bool refused;      /* no code, and there will be none: compile.h */
} fg_code;

/* Launches to be timed: launch i has args[i % n_args], so that inputs need not be in a cache. */
typedef struct fg_timing {
  const fg_args *args;
  int n_args;
  void *workspace;
  int warm_ups, launches; /* at most FG_LAUNCHES_MAX */
  bool pause;             /* 0.1 s before, for the clock of a GPU that was busy */
} fg_timing;
enum { FG_LAUNCHES_MAX = 64 };

typedef struct fg_device_class {
  fg_status (*load)(fg_device *device, const char *name, const fg_source *source,
                    const fg_code *code, fg_module **module);
  void (*unload)(fg_module *module);
  fg_status (*launch)(fg_module *module, const fg_shape *shape, const fg_args *args,
                      void *workspace, void *stream);
  bool (*capturing)(fg_device *device, void *stream); /* is work recorded, not run? */
  /* Launches in a row, without pause and warm-ups; ms[i] = the time of launch i on the device. */
  fg_status (*time)(fg_module *module, const fg_shape *shape, const fg_timing *timing, double *ms);
  fg_status (*synchronize)(fg_device *device);
  fg_status (*allocate)(fg_device *device, size_t bytes, void **p);
  void (*release)(fg_device *device, void *p, size_t bytes);
  fg_status (*upload)(fg_device *device, void *to, const void *from, size_t bytes);
  fg_status (*download)(fg_device *device, void *to, const void *from, size_t bytes);
  void (*close)(fg_device *device);
} fg_device_class;

struct fg_device {
  const fg_device_class *class;
  char name[16]; /* "host", "cuda:0" */
  char arch[FG_ARCH_MAX];
  char model[64];      /* "NVIDIA H200"; of the host device "host" */
  int multiprocessors; /* blocks run on so many at a time */
  uint64_t seed;       /* host: orders blocks, warps and lanes, and places allocations */
  char no_gpu[512];    /* host: why there is no GPU, where nobody named a device; else "" */
};

struct fg_module {
  fg_device *device;
  const fg_source *source; /* its recipe, and its lines for messages; outlives the module */
  char name[FG_NAME_MAX];
};

/* "host", "cuda:N", or an architecture, "sm_90a": kernels are compiled for it, and running them is
 * an error. NULL: FLASHGEN_DEVICE; where that is not set cuda:0, else host, whose no_gpu then says
 * why. FG_EENVIRONMENT with the reason when the named one cannot be used. */
fg_status fg_device_open(const char *name, fg_device **device);
void fg_device_close(fg_device *device);

/* Compiles and loads; the source outlives the module. */
fg_status fg_module_new(fg_device *device, const fg_source *source, const char *name,
                        fg_module **module);
void fg_module_free(fg_module *module);

/* Checks shape and arguments, then launches every step on the stream (NULL: the default one); the
 * host device has run them on return. */
fg_status fg_module_launch(fg_module *module, const fg_shape *shape, const fg_args *args,
                           void *workspace, void *stream);

/* Times launches: the pause, the warm-ups, then all others queued; their median in ms. */
fg_status fg_module_time(fg_module *module, const fg_shape *shape, const fg_timing *timing,
                         double *median);

/* The kinds. */
fg_status fg_device_host_open(fg_device **device);
fg_status fg_device_cuda_open(int ordinal, fg_device **device);
fg_status fg_device_none_open(const char *arch, fg_device **device);

#endif
