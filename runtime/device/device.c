/* device.c - opens devices by name; the functions that all kinds share. */
#include "device.h"

#include "base/setting.h"
#include "compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Opens the first GPU, else the host device with the reason. */
static fg_status open_best(fg_device **device) {
  char reason[sizeof(*device)->no_gpu];
  if (fg_device_cuda_open(0, device) == FG_OK) return FG_OK;
  snprintf(reason, sizeof reason, "%s", fg_error());
  TRY(fg_device_host_open(device));
  strcpy((*device)->no_gpu, reason);
  return FG_OK;
}

/* The device of the setting if there is one, else the best that is there. */
static fg_status open_unnamed(fg_device **device) {
  const char *name = fg_setting_text(FG_SET_DEVICE, NULL);
  if (!*name) return open_best(device);
  fg_status status = fg_device_open(name, device);
  return status == FG_OK ? FG_OK : fg_fail_in(status, "%s", fg_settings[FG_SET_DEVICE].name);
}

fg_status fg_device_open(const char *name, fg_device **device) {
  char *end;
  if (!name) return open_unnamed(device);
  if (!strcmp(name, "host")) return fg_device_host_open(device);
  if (!strncmp(name, "cuda:", 5)) {
    long ordinal = strtol(name + 5, &end, 10);
    if (end != name + 5 && !*end && ordinal >= 0 && ordinal < 1024) {
      fg_status status = fg_device_cuda_open((int)ordinal, device);
      return status == FG_OK ? FG_OK : fg_fail_in(status, "device %s", name);
    }
  }
  if (!strncmp(name, "sm_", 3)) return fg_device_none_open(name, device); /* checks the name */
  return fg_fail(FG_EARGUMENT, "device %s: expected host or cuda:N", name);
}

void fg_device_close(fg_device *device) {
  if (device) device->class->close(device);
}

fg_status fg_module_new(fg_device *device, const fg_source *source, const char *name,
                        fg_module **module) {
  fg_code code = {0};
  TRY(fg_compile(device->arch, name, source, &code));
  fg_status status = device->class->load(device, name, source, &code, module);
  free(code.data);
  return status;
}

void fg_module_free(fg_module *module) {
  if (module) module->device->class->unload(module);
}

/* The launch is one that the recipe and the device allow; FG_EARGUMENT says what is not. */
static fg_status check_launch(const fg_module *module, const fg_shape *shape, const fg_args *args) {
  TRY(fg_launch_check(&module->source->recipe, shape, args));
  return fg_margin_check(args->sm_margin, module->device->multiprocessors);
}

fg_status fg_module_launch(fg_module *module, const fg_shape *shape, const fg_args *args,
                           void *workspace, void *stream) {
  TRY(check_launch(module, shape, args));
  return module->device->class->launch(module, shape, args, workspace, stream);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

fg_status fg_module_time(fg_module *module, const fg_shape *shape, const fg_timing *timing,
                         double *median) {
  const struct timespec pause = {.tv_nsec = 100000000};
  fg_device *device = module->device;
  double ms[FG_LAUNCHES_MAX];
  if (timing->launches < 1 || timing->launches > FG_LAUNCHES_MAX)
    return fg_fail(FG_EBUG, "%d launches to time", timing->launches);
  for (int i = 0; i < timing->n_args; i++) TRY(check_launch(module, shape, &timing->args[i]));
  if (timing->pause) nanosleep(&pause, NULL);
  for (int i = 0; i < timing->warm_ups; i++)
    TRY(device->class->launch(module, shape, &timing->args[i % timing->n_args], timing->workspace,
                              NULL));
  TRY(device->class->synchronize(device));
  TRY(device->class->time(module, shape, timing, ms));
  qsort(ms, (size_t)timing->launches, sizeof *ms, by_value);
  *median = ms[timing->launches / 2];
  return FG_OK;
}
