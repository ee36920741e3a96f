/* t_hang.c - kernels of wgmma that wait for each other's work end wherever their blocks run: beside
 * a grid that fills the card, beside a launch on another stream, replayed by a graph. No block may
 * count on another one's being there at the same time.
 *
 * Label gpu: the host device runs blocks in any order as it is. A kernel that hangs cannot be taken
 * back, so that the program ends with the first. */
#include "clock.h"
#include "cuda/cuda.h"
#include "cuda/nvrtc.h"
#include "launch_case.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CUDA(call) ck_assert_int_eq((call), 0)

enum { SECONDS = 20, NOT_READY = 600, NON_BLOCKING = 1, MAPPED = 2, THREADS = 1024, REPLAYS = 200 };

/* What only these tests need of the driver. */
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
static CUresult (*stream_query)(CUstream);
static CUresult (*begin_capture)(CUstream, int);
static CUresult (*end_capture)(CUstream, CUgraph *);
static CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
static CUresult (*launch_graph)(CUgraphExec, CUstream);
static CUresult (*host_allocate)(void **, size_t, unsigned);
static const fg_cuda *cuda;

static void *symbol(const char *name) {
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
  ck_assert_ptr_nonnull(found);
  return found;
}

/* ---- a grid that fills the card ---- */

/* Block i stays until *left exceeds i. A block takes all threads and shared memory of a
 * multiprocessor, so that nothing else runs there. */
static const char spin_text[] = "extern \"C\" __global__ void __launch_bounds__(1024, 1) "
                                "spin(const volatile unsigned *left) {\n"
                                "  while (*left <= blockIdx.x) { __nanosleep(1000); }\n"
                                "}\n";

static struct {
  CUfunction function;
  volatile unsigned *left; /* memory of the host that the card reads */
  CUstream stream;
} spin;

static void spin_make(const char *arch) {
  const fg_nvrtc *nvrtc;
  fg_cubin cubin;
  CUmodule module;
  void *left;
  GOOD(fg_nvrtc_load(&nvrtc));
  GOOD(fg_nvrtc_compile(nvrtc, "spin", spin_text, strlen(spin_text), arch, &cubin));
  CUDA(cuda->cuModuleLoadData(&module, cubin.data));
  CUDA(cuda->cuModuleGetFunction(&spin.function, module, "spin"));
  fg_cubin_free(&cubin);
  CUDA(host_allocate(&left, sizeof *spin.left, MAPPED));
  spin.left = left;
  CUDA(cuda->cuStreamCreate(&spin.stream, NON_BLOCKING));
}

static void spin_start(void) {
  int shared;
  void *left = (void *)(uintptr_t)spin.left, *params[] = {&left};
  const unsigned blocks = (unsigned)kernel_device()->multiprocessors;
  CUDA(cuda->cuDeviceGetAttribute(&shared, CU_DEVICE_SHARED_OPTIN, 0));
  CUDA(cuda->cuFuncSetAttribute(spin.function, CU_FUNC_MAX_DYNAMIC_SHARED, shared));
  *spin.left = 0;
  CUDA(cuda->cuLaunchKernel(spin.function, blocks, 1, 1, THREADS, 1, 1, (unsigned)shared,
                            spin.stream, params, NULL));
}

static void spin_leave(unsigned blocks) { *spin.left = blocks; }

/* ---- launches ---- */

/* Has the work of the stream ended within so many seconds? */
static bool ends(CUstream stream, double seconds) {
  const double end = clock_now() + seconds;
  CUresult result;
  while ((result = stream_query(stream)) == NOT_READY && clock_now() < end)
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  ck_assert_msg(!result || result == NOT_READY, "the stream fails: %d", (int)result);
  return !result;
}

static void wait_for(CUstream stream, const char *what, const char *name) {
  if (ends(stream, SECONDS)) return;
  fprintf(stderr, "%s: %s has not ended after %d s\n", name, what, SECONDS);
  fflush(NULL);
  _Exit(EXIT_FAILURE);
}

static void queue(const launch *l, CUstream stream) {
  fg_problem *p = l->problem;
  GOOD(fg_module_launch(l->kernel->module, &p->shape, &p->args, p->workspace, stream));
}

static launch start(const kernel *k, uint64_t draw) {
  launch l = launch_new(k, (fg_shape)SHAPE(2, 4, 2, 1000, 1200, 0), draw);
  if (launch_has(&l, "do")) launch_fill(&l, "lse", 5); /* weights need not be a softmax's */
  return l;
}

static launch wanted(const kernel *k, uint64_t draw) {
  launch l = start(k, draw);
  launch_run(&l, 0);
  return l;
}

/* Anything in the workspace, which no kernel here is without; and nothing under way any more. */
static void soil(const launch *l, unsigned char byte) {
  const fg_problem *p = l->problem;
  CUDA(cuda->cuMemsetD8_v2((CUdeviceptr)(uintptr_t)p->workspace, byte, p->workspace_bytes));
  GOOD(p->device->class->synchronize(p->device));
}

/* Plans whose blocks stay and claim, of either pass; blocks that come and go; clusters; the sums of
 * inputs' gradients. */
static const char *const words[] = {
    "family=wgmma head_dim=128 mask=causal key_parts=1",
    "family=wgmma pass=backward head_dim=64 mask=causal",
    "family=wgmma pass=backward head_dim=128 mask=full",
    "family=wgmma pass=backward head_dim=64 mask=causal score=softcap(9.0)",
    "family=wgmma pass=backward head_dim=128 mask=causal bias=grad bias_dims=[h,q,k]",
    "family=wgmma pass=backward head_dim=256 mask=causal"};
enum { KERNELS = sizeof words / sizeof *words };
static kernels made[KERNELS];

/* One multiprocessor is left to blocks of their own; clusters need two that are neighbours, of
 * which any twenty have a pair. */
TEST_LOOP(beside_a_full_card, KERNELS) {
  const kernel *k = made[_i].list;
  const unsigned all = (unsigned)kernel_device()->multiprocessors;
  launch want = wanted(k, 1), l = start(k, 1);
  int clusters = 1;
  CUstream stream;
  CUDA(cuda->cuStreamCreate(&stream, NON_BLOCKING));
  for (int i = 0; i < k->source->recipe.n_steps; i++)
    if (k->source->recipe.step[i].cluster > 1) clusters = 20;
  for (unsigned turn = 0; turn < 3; turn++) {
    launch_poison(&l);
    soil(&l, (unsigned char)(0x55 * turn));
    spin_start();
    queue(&l, stream);
    const bool early = ends(stream, 0.05);
    spin_leave((unsigned)clusters);
    wait_for(stream, "a launch beside a grid that fills the card", k->name);
    const bool left = ends(spin.stream, 0);
    spin_leave(all);
    wait_for(spin.stream, "the grid that fills the card", k->name);
    ck_assert_msg(!early && !left, "%s: the card was not full", k->name);
    launch_same_as_promised(&l, &want);
  }
  CUDA(cuda->cuStreamDestroy_v2(stream));
  launch_free(&want);
  launch_free(&l);
}

/* Each with a workspace of its own; the same kernel and two kernels. */
TEST_LOOP(two_streams_at_once, KERNELS) {
  enum { TURNS = 50 };
  const kernel *k[2] = {made[_i].list, made[_i % 2 ? (_i + 2) % KERNELS : _i].list};
  launch want[2], l[2];
  CUstream stream[2];
  for (int i = 0; i < 2; i++) {
    want[i] = wanted(k[i], 2 + (uint64_t)i);
    l[i] = start(k[i], 2 + (uint64_t)i);
    launch_poison(&l[i]);
    soil(&l[i], 0xff);
    CUDA(cuda->cuStreamCreate(&stream[i], NON_BLOCKING));
  }
  for (int turn = 0; turn < TURNS; turn++)
    for (int i = 0; i < 2; i++) queue(&l[i], stream[i]);
  for (int i = 0; i < 2; i++) {
    wait_for(stream[i], "a launch beside another one", k[i]->name);
    launch_same_as_promised(&l[i], &want[i]);
    CUDA(cuda->cuStreamDestroy_v2(stream[i]));
    launch_free(&want[i]);
    launch_free(&l[i]);
  }
}

/* A graph replayed many times, back to back, and with anything in the workspace between. */
TEST_LOOP(replayed_by_a_graph, KERNELS) {
  const kernel *k = made[_i].list;
  launch want = wanted(k, 4), l = start(k, 4);
  CUstream stream;
  CUgraph graph;
  CUgraphExec replay;
  CUDA(cuda->cuStreamCreate(&stream, NON_BLOCKING));
  CUDA(begin_capture(stream, 0));
  queue(&l, stream);
  CUDA(end_capture(stream, &graph));
  CUDA(instantiate(&replay, graph, 0));
  for (unsigned turn = 0; turn < 4; turn++) {
    launch_poison(&l);
    soil(&l, (unsigned char)(0x55 * turn));
    for (int i = 0; i < REPLAYS / 4; i++) CUDA(launch_graph(replay, stream));
    wait_for(stream, "a graph", k->name);
    launch_same_as_promised(&l, &want);
  }
  CUDA(cuda->cuStreamDestroy_v2(stream));
  launch_free(&want);
  launch_free(&l);
}

static void make(void) {
  const char *arch = kernel_device()->arch;
  GOOD(fg_cuda_load(&cuda));
  *(void **)&stream_query = symbol("cuStreamQuery");
  *(void **)&begin_capture = symbol("cuStreamBeginCapture_v2");
  *(void **)&end_capture = symbol("cuStreamEndCapture");
  *(void **)&instantiate = symbol("cuGraphInstantiateWithFlags");
  *(void **)&launch_graph = symbol("cuGraphLaunch");
  *(void **)&host_allocate = symbol("cuMemHostAlloc");
  CUDA(cuda->cuCtxSetCurrent(fg_device_cuda_context(kernel_device())));
  spin_make(arch);
  for (int i = 0; i < KERNELS; i++) made[i] = kernels_first("%s", words[i]);
}

static void drop(void) {
  for (int i = 0; i < KERNELS; i++) kernels_free(&made[i]);
}

TEST_ONCE(make, drop)
TEST_BEGIN {
  setenv("FLASHGEN_TEST_DEVICE", "cuda:0", 0);
  kernel_device_of_wgmma();
}
