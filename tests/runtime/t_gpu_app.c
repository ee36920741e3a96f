/* t_gpu_app.c - a GPU that is an application's too: its errors, its resets, its contexts; entries
 * of another GPU; and what a launch allocates and locks beside the driver, which is nothing.
 *
 * Label gpu: skipped where there is none, unless FLASHGEN_REQUIRE names the label. Each test has a
 * process of its own, for most of them end its CUDA context; the first process never touches CUDA.
 */
#include "alloc_watch.h"
#include "api_case.h"
#include "cuda/cuda.h"
#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CUDA(call) ck_assert_int_eq((call), 0)
#define SMALL      "head_dim=8 family=simt block_q=4"
#define BACKWARD   "pass=backward head_dim=64 bias=grad family=simt"
#define BEFORE     "work that the GPU was given before this call has failed"
#define RESET      "the application has reset the GPU's CUDA context"

static const fg_cuda *cuda;

static void *symbol(const char *name) {
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
  ck_assert_ptr_nonnull(found);
  return found;
}

static fg_context *open_gpu(const char *device) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.device = device;
  GOOD(fg_open(&config, &context));
  GOOD(fg_cuda_load(&cuda));
  return context;
}

static int compiles(const fg_context *context) {
  fg_counts n = FG_INIT(fg_counts);
  fg_context_counts(context, &n);
  return (int)n.compiles;
}

static void expect_right(fg_kernel *kernel) {
  const verify_case which = {.shape = api_shape};
  verify_verdict verdict;
  GOOD(verify_run(&kernel->variant, kernel->source, kernel->module, &which, 0, &verdict));
  for (int i = 0; i < verdict.n; i++)
    ck_assert_msg(verdict.tensor[i].error <= verdict.tensor[i].limit, "%s: error %g above %g",
                  verdict.tensor[i].name, verdict.tensor[i].error, verdict.tensor[i].limit);
  ck_assert_int_gt(verdict.n, 0);
}

/* The application's kernel writes where nothing is. */
static void fail_elsewhere(const fg_context *context, int wait) {
  static const char text[] = "extern \"C\" __global__ void bad(int *p) { *p = 1; }\n";
  const struct timespec a_while = {.tv_nsec = 300000000};
  const fg_nvrtc *nvrtc;
  fg_cubin cubin;
  CUmodule module;
  CUfunction function;
  CUdeviceptr nowhere = 64;
  GOOD(fg_nvrtc_load(&nvrtc));
  GOOD(fg_nvrtc_compile(nvrtc, "bad", text, sizeof text - 1, context->device->arch, &cubin));
  CUDA(cuda->cuModuleLoadData(&module, cubin.data));
  CUDA(cuda->cuModuleGetFunction(&function, module, "bad"));
  CUDA(cuda->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&nowhere}, NULL));
  if (wait)
    ck_assert_int_eq(cuda->cuStreamSynchronize(NULL), 700);
  else
    nanosleep(&a_while, NULL);
  fg_cubin_free(&cubin);
}

/* Known to the application or not yet, its error is not ours: not a launch's, not a kernel's that
 * is to be loaded, not a capture. */
TEST_LOOP(test_error_before, 2) {
  fg_context *warm = open_gpu("cuda:0");
  fg_op *cold = api_define(warm, SMALL " dtype=f16");
  fg_kernel *kernel = api_kernel(warm, SMALL), *none;
  fg_problem *p = api_problem(kernel, api_shape, 1);
  GOOD(api_launch(kernel, p));
  GOOD(warm->device->class->synchronize(warm->device));
  fg_context *other = open_gpu("cuda:0");
  fg_op *cached = api_define(other, SMALL);
  fail_elsewhere(warm, _i);
  FAILS(FG_ECUDA, BEFORE, api_launch(kernel, p));
  ck_assert_ptr_nonnull(strstr(fg_error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
  FAILS(FG_ECUDA, BEFORE, fg_select(cached, &api_shape, NULL, &none));
  ck_assert_int_eq(compiles(other), 0);
  FAILS(FG_ECUDA, BEFORE, fg_select(cold, &api_shape, NULL, &none));
  fg_problem_free(p);
  fg_close(other);
  fg_close(warm);
}

static void *reset(void *unused) {
  int (*call)(CUdevice);
  *(void **)&call = symbol("cuDevicePrimaryCtxReset_v2");
  CUDA(call(0));
  return unused;
}

/* A reset ends our modules and memory, whether this thread or, with 2, another asked for it; with 1
 * the application uses the GPU again before we do. */
TEST_LOOP(test_reset, 3) {
  pthread_t thread;
  fg_context *context = open_gpu("cuda:0");
  fg_op *cold = api_define(context, SMALL " dtype=f16");
  fg_kernel *kernel = api_kernel(context, SMALL), *none;
  fg_problem *p = api_problem(kernel, api_shape, 1);
  GOOD(api_launch(kernel, p));
  if (_i < 2) reset(NULL);
  if (_i == 2) CUDA(pthread_create(&thread, NULL, reset, NULL) || pthread_join(thread, NULL));
  if (_i == 1) {
    CUcontext again;
    CUDA(cuda->cuDevicePrimaryCtxRetain(&again, 0));
    CUDA(cuda->cuCtxSetCurrent(again));
  }
  FAILS(FG_ECUDA, RESET, api_launch(kernel, p));
  FAILS(FG_ECUDA, RESET, fg_select(cold, &api_shape, NULL, &none));
  fg_close(context);
  context = open_gpu("cuda:0");
  expect_right(api_kernel(context, SMALL));
  fg_close(context);
}

/* A context of the application's own on the same GPU: current before our calls, and whole after. */
TEST(test_another_context) {
  int (*create)(CUcontext *, unsigned, CUdevice), (*destroy)(CUcontext);
  *(void **)&create = symbol("cuCtxCreate_v2");
  *(void **)&destroy = symbol("cuCtxDestroy_v2");
  CUcontext own;
  CUdeviceptr memory;
  int value = 0;
  fg_context *context = open_gpu("cuda:0");
  CUDA(create(&own, 0, 0));
  CUDA(cuda->cuMemAlloc_v2(&memory, sizeof value));
  CUDA(cuda->cuMemsetD8_v2(memory, 1, sizeof value));
  fg_kernel *kernel = api_kernel(context, SMALL);
  CUDA(cuda->cuCtxSetCurrent(own));
  expect_right(kernel);
  CUDA(cuda->cuCtxSetCurrent(own));
  CUDA(cuda->cuMemcpyDtoH_v2(&value, memory, sizeof value));
  ck_assert_int_eq(value, 0x01010101);
  CUDA(destroy(own));
  expect_right(kernel);
  fg_close(context);
}

TEST(test_two_gpus) {
  int n = 0;
  fg_context *a = open_gpu("cuda:0");
  CUDA(cuda->cuDeviceGetCount(&n));
  if (n > 1) {
    fg_context *b = open_gpu("cuda:1");
    fg_kernel *ka = api_kernel(a, SMALL), *kb = api_kernel(b, SMALL);
    ck_assert_ptr_ne(fg_device_cuda_function(ka->module, 0),
                     fg_device_cuda_function(kb->module, 0));
    for (int i = 0; i < 2; i++) {
      expect_right(ka);
      expect_right(kb);
    }
    fg_close(b);
  }
  expect_right(api_kernel(a, SMALL));
  fg_close(a);
}

/* Entries whose checksum is good: of another arch, without the function, no cubin at all. Each is
 * made once more, and good ever after. */
TEST_LOOP(test_bad_entry, 3) {
  static const char *const archs[] = {"sm_75", NULL, NULL};
  static const char text[] = "extern \"C\" __global__ void another(int *p) { *p = 1; }\n";
  fg_context *context = open_gpu("cuda:0");
  fg_kernel *kernel = api_kernel(context, SMALL);
  const char *arch = archs[_i] ? archs[_i] : context->device->arch;
  const fg_nvrtc *nvrtc;
  const fg_entry *entry;
  fg_key key = {0};
  fg_cubin cubin;
  GOOD(fg_nvrtc_load(&nvrtc));
  GOOD(fg_nvrtc_compile(nvrtc, "bad", text, sizeof text - 1, arch, &cubin));
  GOOD(fg_kernel_key(context, kernel->name, &key));
  ck_assert(fg_cache_get(context->cache, &key, &entry));
  if (_i == 2) memset(cubin.data, 0, cubin.size);
  ck_assert(fg_cache_put(context->cache, &key, entry->meta, cubin.data, cubin.size));
  fg_entry_free(entry);
  fg_key_free(&key);
  fg_cubin_free(&cubin);
  fg_close(context);
  for (int again = 0; again < 2; again++) {
    context = open_gpu("cuda:0");
    expect_right(api_kernel(context, SMALL));
    ck_assert_int_eq(compiles(context), !again);
    fg_close(context);
  }
}

/* The driver's part of a launch alone: the calls that fg_launch makes. */
static void launch_bare(const fg_kernel *kernel, const fg_problem *p, void *params) {
  const fg_recipe *r = &kernel->source->recipe;
  unsigned long long id;
  cuda->cuCtxGetId(NULL, &id);
  for (int i = 0; i < r->n_steps; i++) {
    const fg_step *step = &r->step[i];
    uint32_t grid[3];
    bool empty;
    int64_t offset, bytes;
    if (step->kind == FG_STEP_ZERO) {
      fg_workspace_fill(r, &p->shape, step, &offset, &bytes);
      cuda->cuMemsetD8Async((CUdeviceptr)(uintptr_t)p->workspace + (CUdeviceptr)offset, 0,
                            (size_t)bytes, NULL);
      continue;
    }
    fg_step_grid(step, &p->shape, grid, &empty);
    cuda->cuLaunchKernel(fg_device_cuda_function(kernel->module, i), grid[0], grid[1], grid[2],
                         (unsigned)step->threads, 1, 1, (unsigned)step->shared_bytes, NULL,
                         (void *[]){params}, NULL);
  }
}

static void keep_least(alloc_seen *least, alloc_seen seen) {
  if (seen.allocations < least->allocations) least->allocations = seen.allocations;
  if (seen.frees < least->frees) least->frees = seen.frees;
  if (seen.locks < least->locks) least->locks = seen.locks;
}

/* The driver grows its queues now and then: of 50 launches each, the least counts. */
TEST(test_hot) {
  if (!ALLOC_WATCH) return;
  _Alignas(16) char params[FG_PARAMS_MAX];
  alloc_seen ours = {99999, 99999, 99999, 99999}, bare = ours, hot;
  fg_context *context = open_gpu("cuda:0");
  fg_op *op = api_define(context, BACKWARD);
  fg_kernel *kernel = api_select(op, api_shape), *same;
  fg_problem *p = api_problem(kernel, api_shape, 1);
  GOOD(fg_params_fill(&kernel->source->recipe, &p->shape, &p->args, p->workspace, params));
  for (int i = 0; i < 50; i++) {
    alloc_start();
    launch_bare(kernel, p, params);
    keep_least(&bare, alloc_stop());
    alloc_start();
    fg_status status = api_launch(kernel, p);
    keep_least(&ours, alloc_stop());
    GOOD(status);
    alloc_start();
    status = fg_select(op, &api_shape, NULL, &same);
    hot = alloc_stop();
    GOOD(status);
    ck_assert_int_eq(hot.allocations + hot.frees + hot.locks, 0);
  }
  GOOD(context->device->class->synchronize(context->device));
  ck_assert_int_eq(ours.allocations, bare.allocations);
  ck_assert_int_eq(ours.frees, bare.frees);
  ck_assert_int_eq(ours.locks, bare.locks);
  fg_problem_free(p);
  fg_close(context);
}

static int no_gpu(void) {
  fg_device *device;
  pid_t pid = fork();
  if (!pid) _exit(fg_device_open("cuda:0", &device) == FG_OK ? 0 : 1);
  int state;
  waitpid(pid, &state, 0);
  return state != 0;
}

TEST_FIXTURE(api_enter, api_leave)
TEST_BEGIN {
  if (no_gpu()) suite_skip("gpu", "no GPU can be used");
  setenv("CK_FORK", "yes", 1);
}
