/* device_cuda.c - a GPU: NVRTC compiles, the driver loads and launches, in the primary context. */
#include "cuda_launch.h"
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  fg_device base;
  const fg_cuda *cuda;
  CUdevice device;
  CUcontext context;
  unsigned long long id; /* of the context; unique in the process */
} gpu;

typedef struct {
  fg_module base; /* first: a fg_module * of this device is a kernel * */
  CUmodule module;
  CUfunction step[FG_STEP_MAX]; /* NULL for a step that is no launch */
  int clusters[FG_STEP_MAX];    /* that the GPU runs at a time, of a step that has clusters */
} kernel;

/* FG_ECUDA if the context is not the one that was opened. The application shares the primary
 * context: a cudaDeviceReset of its own ends our modules, and launching one of them is undefined
 * afterwards. */
static fg_status check_context(const gpu *g) {
  unsigned long long id = 0;
  CUresult result = g->cuda->cuCtxGetId(g->context, &id);
  if (result == 0 && id == g->id) return FG_OK;
  if (result != 0 && result != CU_CONTEXT_DESTROYED && result != CU_CONTEXT_INVALID)
    return fg_cuda_check_before(g->cuda, result, g->base.name);
  return fg_fail(FG_ECUDA,
                 "%s: the application has reset the GPU's CUDA context since this fg_context was "
                 "opened: close it and open another",
                 g->base.name);
}

/* Makes the context the current one of the calling thread, and leaves it so, as CUDA's own runtime
 * does. */
static fg_status make_current(const gpu *g) {
  CUcontext current = NULL;
  TRY(check_context(g));
  if (g->cuda->cuCtxGetCurrent(&current) == 0 && current == g->context) return FG_OK;
  return fg_cuda_check_before(g->cuda, g->cuda->cuCtxSetCurrent(g->context), "cuCtxSetCurrent");
}

/* FG_ECOMPILER if the driver refuses the cubin; lost contexts and lack of memory keep their own
 * codes. */
static fg_status check_load(const gpu *g, CUresult result, const char *what) {
  fg_status status = fg_cuda_check_before(g->cuda, result, what);
  return status == FG_ECUDA && !fg_cuda_lost(result) ? FG_ECOMPILER : status;
}

/* Finds the entry point, opts in to its shared memory (up to 48 KB need no opt-in), and asks how
 * many of its clusters run at a time. */
static fg_status find_entry(const gpu *g, kernel *k, int i) {
  const fg_step *step = &k->base.source->recipe.step[i];
  char what[144];
  snprintf(what, sizeof what, "%.80s: %s", k->base.name, step->entry);
  TRY(check_load(g, g->cuda->cuModuleGetFunction(&k->step[i], k->module, step->entry), what));
  if (step->shared_bytes > 48 << 10)
    TRY(check_load(
        g, g->cuda->cuFuncSetAttribute(k->step[i], CU_FUNC_MAX_DYNAMIC_SHARED, step->shared_bytes),
        what));
  return step->cluster > 1 ? fg_cuda_clusters(g->cuda, k->step[i], step, &k->clusters[i]) : FG_OK;
}

CUcontext fg_device_cuda_context(const fg_device *device) { return ((const gpu *)device)->context; }

CUfunction fg_device_cuda_function(const fg_module *module, int step) {
  return ((const kernel *)module)->step[step];
}

static void unload(fg_module *module) {
  kernel *k = (kernel *)module;
  const gpu *g = (const gpu *)module->device;
  if (k->module && make_current(g) == FG_OK) g->cuda->cuModuleUnload(k->module);
  free(k);
}

/* Loads the cubin and finds the entry of every launch step. */
static fg_status load(fg_device *device, const char *name, const fg_source *source,
                      const fg_code *code, fg_module **module) {
  const gpu *g = (const gpu *)device;
  fg_status status = FG_OK;
  kernel *k = calloc(1, sizeof *k);
  if (!k) return fg_fail(FG_EMEMORY, "no memory for a module");
  k->base.device = device;
  k->base.source = source;
  snprintf(k->base.name, sizeof k->base.name, "%s", name);
  TRY_OUT(make_current(g));
  TRY_OUT(check_load(g, g->cuda->cuModuleLoadData(&k->module, code->data), name));
  for (int i = 0; i < source->recipe.n_steps; i++)
    if (source->recipe.step[i].kind == FG_STEP_LAUNCH) TRY_OUT(find_entry(g, k, i));
  *module = &k->base;
  k = NULL;
out:
  if (k) unload(&k->base);
  return status;
}

/* Queues step i, a launch on so many multiprocessors or a zero-fill of regions. An empty grid
 * launches nothing. */
static fg_status launch_step(const gpu *g, const kernel *k, int i, const fg_shape *shape,
                             int multiprocessors, void *params, void *workspace, CUstream stream) {
  const fg_recipe *r = &k->base.source->recipe;
  const fg_step *step = &r->step[i];
  if (step->kind == FG_STEP_ZERO) {
    int64_t offset, bytes;
    TRY(fg_workspace_fill(r, shape, step, &offset, &bytes));
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)workspace + (CUdeviceptr)offset;
    if (!bytes) return FG_OK;
    return fg_cuda_check_before(g->cuda, g->cuda->cuMemsetD8Async(at, 0, (size_t)bytes, stream),
                                "zero-fill");
  }
  uint32_t grid[3];
  bool empty;
  TRY(fg_step_grid(step, shape, grid, &empty));
  if (empty) return FG_OK;
  fg_step_limit(step, multiprocessors, k->clusters[i], grid);
  return fg_cuda_launch(g->cuda, k->step[i], step, grid, stream, params);
}

/* Fills Params on the stack and queues all steps; shape and arguments are checked already. */
static fg_status launch(fg_module *module, const fg_shape *shape, const fg_args *args,
                        void *workspace, void *stream) {
  const kernel *k = (const kernel *)module;
  const gpu *g = (const gpu *)module->device;
  _Alignas(64) char params[FG_PARAMS_MAX];
  TRY(fg_params_fill(&module->source->recipe, shape, args, workspace, params));
  const int multiprocessors = g->base.multiprocessors - (int)args->sm_margin;
  TRY(make_current(g));
  TRY(fg_cuda_encode_maps(g->cuda, &module->source->recipe, shape, args, workspace, params));
  for (int i = 0; i < module->source->recipe.n_steps; i++)
    TRY(launch_step(g, k, i, shape, multiprocessors, params, workspace, stream));
  return FG_OK;
}

/* Records events between the launches of one queue. Nothing waits in between, so that the host
 * stays ahead of the GPU. */
static fg_status time_launches(fg_module *module, const fg_shape *shape, const fg_timing *t,
                               double *ms) {
  const gpu *g = (const gpu *)module->device;
  const fg_cuda *cuda = g->cuda;
  CUevent event[FG_LAUNCHES_MAX + 1] = {NULL};
  const int n = t->launches;
  fg_status status = FG_OK;
  TRY(make_current(g));
  for (int i = 0; i <= n; i++)
    TRY_OUT(fg_cuda_check(cuda, cuda->cuEventCreate(&event[i], 0), "an event"));
  TRY_OUT(fg_cuda_check(cuda, cuda->cuEventRecord(event[0], NULL), "an event"));
  for (int i = 0; i < n; i++) {
    TRY_OUT(launch(module, shape, &t->args[i % t->n_args], t->workspace, NULL));
    TRY_OUT(fg_cuda_check(cuda, cuda->cuEventRecord(event[i + 1], NULL), "an event"));
  }
  TRY_OUT(fg_cuda_check(cuda, cuda->cuEventSynchronize(event[n]), "a kernel"));
  for (int i = 0; i < n; i++) {
    float time;
    TRY_OUT(
        fg_cuda_check(cuda, cuda->cuEventElapsedTime(&time, event[i], event[i + 1]), "an event"));
    ms[i] = (double)time;
  }
out:
  for (int i = 0; i <= n; i++)
    if (event[i]) cuda->cuEventDestroy_v2(event[i]);
  return status;
}

/* Also true of the default stream while another stream that waits for it captures. */
static bool capturing(fg_device *device, void *stream) {
  const gpu *g = (const gpu *)device;
  int status = CU_STREAM_NOT_CAPTURING;
  if (make_current(g) != FG_OK) return false; /* the next call says why */
  CUresult result = g->cuda->cuStreamIsCapturing(stream, &status);
  return result == CU_CAPTURE_IMPLICIT || status != CU_STREAM_NOT_CAPTURING;
}

static fg_status synchronize(fg_device *device) {
  const gpu *g = (const gpu *)device;
  TRY(make_current(g));
  return fg_cuda_check(g->cuda, g->cuda->cuStreamSynchronize(NULL), "a kernel");
}

/* New memory holds bytes of 0xff, NaNs in every dtype, so that a kernel that reads it unwritten is
 * found. */
static fg_status allocate(fg_device *device, size_t bytes, void **p) {
  const gpu *g = (const gpu *)device;
  CUdeviceptr at;
  TRY(make_current(g));
  TRY(fg_cuda_check(g->cuda, g->cuda->cuMemAlloc_v2(&at, bytes), "GPU memory"));
  *p = (void *)(uintptr_t)at;
  return fg_cuda_check(g->cuda, g->cuda->cuMemsetD8_v2(at, 0xff, bytes), "GPU memory");
}

static void release(fg_device *device, void *p, size_t bytes) {
  const gpu *g = (const gpu *)device;
  (void)bytes;
  if (p && make_current(g) == FG_OK) g->cuda->cuMemFree_v2((CUdeviceptr)(uintptr_t)p);
}

static fg_status upload(fg_device *device, void *to, const void *from, size_t bytes) {
  const gpu *g = (const gpu *)device;
  TRY(make_current(g));
  return fg_cuda_check(g->cuda, g->cuda->cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)to, from, bytes),
                       "copy to the GPU");
}

static fg_status download(fg_device *device, void *to, const void *from, size_t bytes) {
  const gpu *g = (const gpu *)device;
  TRY(make_current(g));
  return fg_cuda_check(g->cuda, g->cuda->cuMemcpyDtoH_v2(to, (CUdeviceptr)(uintptr_t)from, bytes),
                       "copy from the GPU");
}

static void close_gpu(fg_device *device) {
  gpu *g = (gpu *)device;
  if (g->context) g->cuda->cuDevicePrimaryCtxRelease_v2(g->device);
  free(g);
}

/* Reads arch, model and multiprocessors. FG_EENVIRONMENT: there are no kernels for this GPU. */
static fg_status read_arch(gpu *g) {
  int major, minor;
  const fg_cuda *c = g->cuda;
  TRY(fg_cuda_check(c, c->cuDeviceGetAttribute(&major, CU_DEVICE_CAPABILITY_MAJOR, g->device),
                    "GPU"));
  TRY(fg_cuda_check(c, c->cuDeviceGetAttribute(&minor, CU_DEVICE_CAPABILITY_MINOR, g->device),
                    "GPU"));
  TRY(fg_cuda_check(
      c, c->cuDeviceGetAttribute(&g->base.multiprocessors, CU_DEVICE_MULTIPROCESSORS, g->device),
      "GPU"));
  TRY(fg_cuda_check(c, c->cuDeviceGetName(g->base.model, sizeof g->base.model, g->device), "GPU"));
  const fg_arch *arch = fg_arch_of(major, minor);
  if (!arch) {
    char known[256];
    fg_arch_names(sizeof known, known);
    return fg_fail(FG_EENVIRONMENT, "%s has compute capability %d.%d; there are kernels for %s",
                   g->base.model, major, minor, known);
  }
  strcpy(g->base.arch, arch->name);
  return FG_OK;
}

fg_status fg_device_cuda_open(int ordinal, fg_device **device) {
  static const fg_device_class class = {.load = load,
                                        .unload = unload,
                                        .launch = launch,
                                        .capturing = capturing,
                                        .time = time_launches,
                                        .synchronize = synchronize,
                                        .allocate = allocate,
                                        .release = release,
                                        .upload = upload,
                                        .download = download,
                                        .close = close_gpu};
  int count = 0;
  fg_status status = FG_OK;
  gpu *g = calloc(1, sizeof *g);
  if (!g) return fg_fail(FG_EMEMORY, "no memory for a device");
  g->base.class = &class;
  snprintf(g->base.name, sizeof g->base.name, "cuda:%d", ordinal);
  TRY_OUT(fg_cuda_load(&g->cuda));
  TRY_OUT(fg_cuda_check(g->cuda, g->cuda->cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal >= count) {
    status = fg_fail(FG_EENVIRONMENT, "there are %d GPUs", count);
    goto out;
  }
  TRY_OUT(fg_cuda_check(g->cuda, g->cuda->cuDeviceGet(&g->device, ordinal), "cuDeviceGet"));
  TRY_OUT(read_arch(g));
  TRY_OUT(fg_cuda_check(g->cuda, g->cuda->cuDevicePrimaryCtxRetain(&g->context, g->device),
                        "the GPU's context"));
  TRY_OUT(fg_cuda_check(g->cuda, g->cuda->cuCtxGetId(g->context, &g->id), "the GPU's context"));
  *device = &g->base;
  g = NULL;
out:
  if (g) close_gpu(&g->base);
  return status;
}
