/* device_none.c - an architecture without its GPU: kernels are compiled for it and nothing runs.
 * For processes that must not touch the driver, and for machines without one. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

static fg_status refuse(const fg_device *device) {
  return fg_fail(FG_EENVIRONMENT, "the device %s compiles only: nothing runs on it", device->name);
}

/* A module that can be asked for its recipe only. */
static fg_status load(fg_device *device, const char *name, const fg_source *source,
                      const fg_code *code, fg_module **module) {
  fg_module *m = calloc(1, sizeof *m);
  (void)code;
  if (!m) return fg_fail(FG_EMEMORY, "no memory for a module");
  m->device = device, m->source = source;
  strncpy(m->name, name, sizeof m->name - 1);
  *module = m;
  return FG_OK;
}

static void unload(fg_module *module) { free(module); }

static fg_status launch(fg_module *module, const fg_shape *shape, const fg_args *args,
                        void *workspace, void *stream) {
  (void)shape, (void)args, (void)workspace, (void)stream;
  return refuse(module->device);
}

static fg_status time_launches(fg_module *module, const fg_shape *shape, const fg_timing *timing,
                               double *ms) {
  (void)shape, (void)timing, (void)ms;
  return refuse(module->device);
}

static bool capturing(fg_device *device, void *stream) {
  (void)device, (void)stream;
  return false;
}

static fg_status synchronize(fg_device *device) { return refuse(device); }

static fg_status allocate(fg_device *device, size_t bytes, void **p) {
  (void)bytes, (void)p;
  return refuse(device);
}

static void release(fg_device *device, void *p, size_t bytes) {
  (void)device, (void)p, (void)bytes;
}

static fg_status copy(fg_device *device, void *to, const void *from, size_t bytes) {
  (void)to, (void)from, (void)bytes;
  return refuse(device);
}

static void close_none(fg_device *device) { free(device); }

fg_status fg_device_none_open(const char *arch, fg_device **device) {
  static const fg_device_class class = {.load = load,
                                        .unload = unload,
                                        .launch = launch,
                                        .capturing = capturing,
                                        .time = time_launches,
                                        .synchronize = synchronize,
                                        .allocate = allocate,
                                        .release = release,
                                        .upload = copy,
                                        .download = copy,
                                        .close = close_none};
  TRY(fg_arch_check(arch));
  fg_device *d = calloc(1, sizeof *d);
  if (!d) return fg_fail(FG_EMEMORY, "no memory for a device");
  *d = (fg_device){.class = &class, .multiprocessors = 1};
  strncpy(d->name, arch, sizeof d->name - 1);
  strncpy(d->arch, arch, sizeof d->arch - 1);
  strncpy(d->model, "none", sizeof d->model - 1);
  *device = d;
  return FG_OK;
}
