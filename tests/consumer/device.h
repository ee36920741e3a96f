/* device.h - memory where attention runs, for the programs here: the host's own, or a GPU's by the
 * CUDA driver, which is opened by hand so that no CUDA header is needed; and graphs of a GPU. C11
 * and C++. */
#ifndef DEVICE_H
#define DEVICE_H

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long device_pointer;
static struct { void *driver, *context; /* NULL: the host */ } device;

static void device_die(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

/* *call = the driver's function of that name. */
static void device_function(const char *name, void *call) {
  void *found = dlsym(device.driver, name);
  if (!found) device_die(name);
  memcpy(call, &found, sizeof found);
}

/* Each thread says that it uses the device. */
static inline void device_enter(void) {
  int (*set)(void *);
  if (!device.driver) return;
  device_function("cuCtxSetCurrent", &set);
  if (set(device.context)) device_die("cuCtxSetCurrent");
}

/* "host", or "cuda:N": its primary context, which flashgen uses too. */
static inline void device_open(const char *name) {
  int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), gpu;
  if (strncmp(name, "cuda:", 5)) return;
  device.driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!device.driver) device_die(dlerror());
  device_function("cuInit", &init);
  device_function("cuDeviceGet", &get);
  device_function("cuDevicePrimaryCtxRetain", &retain);
  if (init(0) || get(&gpu, atoi(name + 5)) || retain(&device.context, gpu)) device_die(name);
  device_enter();
}

/* Memory of the device, with these bytes in it; from = NULL: zeros. Never freed: these programs end
 * soon. */
static inline void *device_new(const void *from, size_t bytes) {
  int (*allocate)(device_pointer *, size_t), (*copy)(device_pointer, const void *, size_t);
  void *p = calloc(1, bytes + 1);
  if (!p) device_die("no memory");
  if (from) memcpy(p, from, bytes);
  if (!device.driver) return p;
  device_pointer there;
  device_function("cuMemAlloc_v2", &allocate);
  device_function("cuMemcpyHtoD_v2", &copy);
  if (allocate(&there, bytes + 1) || copy(there, p, bytes + 1)) device_die("no memory of the GPU");
  free(p);
  return (void *)(uintptr_t)there;
}

/* Copies to memory of the device, when all launches before it are done. */
static inline void device_write(void *to, const void *from, size_t bytes) {
  int (*copy)(device_pointer, const void *, size_t);
  if (!device.driver) {
    memcpy(to, from, bytes);
    return;
  }
  device_function("cuMemcpyHtoD_v2", &copy);
  if (copy((device_pointer)(uintptr_t)to, from, bytes)) device_die("a launch failed");
}

/* Copies to the host, when all launches are done. */
static inline void device_read(void *to, const void *from, size_t bytes) {
  int (*copy)(void *, device_pointer, size_t);
  if (!device.driver) {
    memcpy(to, from, bytes);
    return;
  }
  device_function("cuMemcpyDtoH_v2", &copy);
  if (copy(to, (device_pointer)(uintptr_t)from, bytes)) device_die("a launch failed");
}

/* A stream of a GPU, for which copies wait; of the host NULL. */
static inline void *device_stream(void) {
  int (*create)(void **, unsigned);
  void *stream = NULL;
  if (!device.driver) return NULL;
  device_function("cuStreamCreate", &create);
  if (create(&stream, 0)) device_die("no stream");
  return stream;
}

/* Launches on the stream become a graph from here on. */
static inline void device_capture(void *stream) {
  int (*begin)(void *, int);
  device_function("cuStreamBeginCapture_v2", &begin);
  if (begin(stream, 0 /* of all threads */)) device_die("no capture");
}

/* The graph of all launches since device_capture. */
static inline void *device_captured(void *stream) {
  int (*end)(void *, void **), (*instantiate)(void **, void *, unsigned long long);
  void *captured, *graph;
  device_function("cuStreamEndCapture", &end);
  device_function("cuGraphInstantiateWithFlags", &instantiate);
  if (end(stream, &captured) || instantiate(&graph, captured, 0)) device_die("no graph");
  return graph;
}

static inline void device_replay(void *graph, void *stream) {
  int (*launch)(void *, void *);
  device_function("cuGraphLaunch", &launch);
  if (launch(graph, stream)) device_die("a graph was not launched");
}

/* A moment: when all launches before it on the stream are done. */
static inline void *device_moment(void *stream) {
  int (*create)(void **, unsigned), (*note)(void *, void *);
  if (!device.driver) {
    struct timespec *now = (struct timespec *)malloc(sizeof *now);
    if (!now || !timespec_get(now, TIME_UTC)) device_die("no time");
    return now;
  }
  void *event;
  device_function("cuEventCreate", &create);
  device_function("cuEventRecord", &note);
  if (create(&event, 0) || note(event, stream)) device_die("no event");
  return event;
}

/* What is queued on the stream from here on waits for the moment, which was on another stream. */
static inline void device_wait(void *stream, void *moment) {
  int (*wait)(void *, void *, unsigned);
  if (!device.driver) return;
  device_function("cuStreamWaitEvent", &wait);
  if (wait(stream, moment, 0)) device_die("a stream does not wait");
}

/* Milliseconds from one moment to another, which has come on return. */
static inline double device_ms(void *from, void *to) {
  int (*wait)(void *), (*elapsed)(float *, void *, void *);
  float ms;
  if (!device.driver) {
    const struct timespec *a = (struct timespec *)from, *b = (struct timespec *)to;
    return 1e3 * (double)(b->tv_sec - a->tv_sec) + 1e-6 * (double)(b->tv_nsec - a->tv_nsec);
  }
  device_function("cuEventSynchronize", &wait);
  device_function("cuEventElapsedTime", &elapsed);
  if (wait(to) || elapsed(&ms, from, to)) device_die("a launch failed");
  return (double)ms;
}

static inline int device_compare_ms(const void *one, const void *two) {
  const double a = *(const double *)one, b = *(const double *)two;
  return (a > b) - (a < b);
}

/* The median time of `times` runs on the stream, which are queued behind five others. */
static inline double device_median_ms(int times, void (*run)(void), void *stream) {
  void **moments = (void **)calloc((size_t)times + 1, sizeof *moments);
  double *ms = (double *)calloc((size_t)times, sizeof *ms);
  if (!moments || !ms) device_die("no memory");
  for (int i = 0; i < 5; i++) run();
  moments[0] = device_moment(stream);
  for (int i = 0; i < times; i++) run(), moments[i + 1] = device_moment(stream);
  for (int i = 0; i < times; i++) ms[i] = device_ms(moments[i], moments[i + 1]);
  qsort(ms, (size_t)times, sizeof *ms, device_compare_ms);
  const double median = ms[times / 2];
  free(moments), free(ms);
  return median;
}

/* bf16 to float and back, rounded to nearest even. */
static inline float from_bf16(uint16_t x) {
  const uint32_t bits = (uint32_t)x << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline uint16_t to_bf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* How far one bf16 tensor of the device is from another one: the norm of their difference by that
 * of the other one. */
static inline double device_difference(const void *one, const void *other, size_t count) {
  uint16_t *bits = (uint16_t *)malloc(2 * count * sizeof *bits);
  double apart = 0, size = 0;
  if (!bits) device_die("no memory");
  device_read(bits, one, count * sizeof *bits);
  device_read(bits + count, other, count * sizeof *bits);
  for (size_t i = 0; i < count; i++) {
    const double x = (double)from_bf16(bits[i]), y = (double)from_bf16(bits[count + i]);
    apart += (x - y) * (x - y), size += y * y;
  }
  free(bits);
  return sqrt(apart / size);
}

#endif
