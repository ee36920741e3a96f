/* device.h - where kernels are compiled and run: one table of functions for each kind of device.
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
  bool refused;      /* there is no code, and never will be: compile.h */
} fg_code;

/* Launches to be timed. Launch i has args[i % n_args], so that its inputs need not be in a
 * cache. */
typedef struct fg_timing {
  const fg_args *args;
  int n_args;
  void *workspace;
  int warm_ups, launches; /* at most FG_LAUNCHES_MAX */
  bool pause;             /* 0.1 s before the first, in which the clock of a busy GPU recovers */
} fg_timing;
enum { FG_LAUNCHES_MAX = 64 };

typedef struct fg_device_class {
  fg_status (*load)(fg_device *device, const char *name, const fg_source *source,
                    const fg_code *code, fg_module **module);
  void (*unload)(fg_module *module);
  fg_status (*launch)(fg_module *module, const fg_shape *shape, const fg_args *args,
                      void *workspace, void *stream);
  bool (*capturing)(fg_device *device, void *stream); /* whether work is recorded, not run */
  /* Runs launches in a row, without pause and warm-ups; ms[i] is the time of launch i on the
   * device. */
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
  char model[64];      /* "NVIDIA H200"; "host" for the host device */
  int multiprocessors; /* how many run blocks at a time */
  uint64_t seed;       /* host: orders blocks, warps and lanes, and places allocations */
  char no_gpu[512];    /* why the host device was opened, where no device was named; else "" */
};

struct fg_module {
  fg_device *device;
  const fg_source *source; /* the recipe, and lines for messages; outlives the module */
  char name[FG_NAME_MAX];
};

/* "host", "cuda:N", or an architecture such as "sm_90a", for which kernels are compiled but cannot
 * run. NULL: FLASHGEN_DEVICE, or if that is not set cuda:0, or if that cannot be used the host
 * device, whose no_gpu says why. FG_EENVIRONMENT, with the reason: the named device cannot be
 * used. */
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

/* Times launches: the pause, the warm-ups, then the others, queued without a wait. Gives their
 * median in ms; of an even number the upper one. */
fg_status fg_module_time(fg_module *module, const fg_shape *shape, const fg_timing *timing,
                         double *median);

/* One for each kind of device. */
fg_status fg_device_host_open(fg_device **device);
fg_status fg_device_cuda_open(int ordinal, fg_device **device);
fg_status fg_device_none_open(const char *arch, fg_device **device);

#endif
