/* t_gpu.c - the C API on a GPU: streams under capture, contexts beside each other, threads, forks.
 *
 * Label gpu: skipped where there is none, unless FLASHGEN_REQUIRE names the label. Runs without
 * forks; tests that need a child make it before they touch CUDA. */
#include "status.h"
#include "suite.h"

#include "cuda/cuda.h"
#include "kernels.h"
#include "ops.h"
#include "scratch.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CUDA(call) ck_assert_int_eq((call), 0)

enum { N = 96, D = 64, H = 2, SKIP = 77 };
static const fg_shape shape = SHAPE(1, H, H, N, N, 0);

/* What only these tests need of the driver. */
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
static int (*begin_capture)(CUstream, int);
static int (*end_capture)(CUstream, CUgraph *);
static int (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
static int (*launch_graph)(CUgraphExec, CUstream);
static const fg_cuda *cuda;

static void *symbol(const char *name) {
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
  ck_assert_ptr_nonnull(found);
  return found;
}

static void find_graphs(void) {
  *(void **)&begin_capture = symbol("cuStreamBeginCapture_v2");
  *(void **)&end_capture = symbol("cuStreamEndCapture");
  *(void **)&instantiate = symbol("cuGraphInstantiateWithFlags");
  *(void **)&launch_graph = symbol("cuGraphLaunch");
}

/* q = 0 and causal: row i is the mean of the first i + 1 rows of v, its LSE log(i + 1). */
typedef struct {
  fg_context *context;
  fg_op *op;
  fg_args args;
  float *host_lse;
} problem;

static fg_tensor tensor(fg_context *c, int zero) {
  fg_tensor t = {NULL, {(int64_t)N * H * D, D, (int64_t)H * D, 1}};
  uint16_t *data = calloc((size_t)N * H * D, sizeof *data);
  for (int i = 0; i < N * H * D && !zero; i++)
    data[i] = (uint16_t)(0x3f00 + i % 97); /* 0.5 to 0.9 */
  GOOD(c->device->class->allocate(c->device, sizeof *data * N * H * D, &t.data));
  GOOD(c->device->class->upload(c->device, t.data, data, sizeof *data * N * H * D));
  free(data);
  return t;
}

static problem problem_new(const char *cache) {
  fg_config config = FG_INIT(fg_config);
  fg_spec spec = FG_INIT(fg_spec);
  problem p = {0};
  config.device = "cuda:0";
  config.cache = cache;
  config.plan = "simt-q16-*"; /* one kernel for every shape */
  GOOD(fg_open(&config, &p.context));
  spec.head_dim = "64";
  spec.mask = "causal";
  GOOD(fg_define(p.context, &spec, &p.op));
  p.args = (fg_args)FG_INIT(fg_args);
  p.args.q = tensor(p.context, 1);
  p.args.k = tensor(p.context, 0);
  p.args.v = tensor(p.context, 0);
  p.args.o = tensor(p.context, 1);
  GOOD(p.context->device->class->allocate(p.context->device, sizeof(float) * H * N,
                                          &p.args.lse.data));
  p.host_lse = calloc(H * N, sizeof *p.host_lse);
  return p;
}

static void poison(const problem *p) {
  CUDA(cuda->cuMemsetD8_v2((CUdeviceptr)(uintptr_t)p->args.lse.data, 0xff, sizeof(float) * H * N));
}

static void expect_right(const problem *p) {
  fg_device *device = p->context->device;
  GOOD(device->class->synchronize(device));
  GOOD(device->class->download(device, p->host_lse, p->args.lse.data, sizeof(float) * H * N));
  for (int i = 0; i < H * N; i++)
    ck_assert_float_eq_tol(p->host_lse[i], logf((float)(i % N + 1)), 1e-4f);
}

static void problem_free(problem *p) {
  fg_device *d = p->context->device;
  void *const buffers[] = {p->args.q.data, p->args.k.data, p->args.v.data, p->args.o.data,
                           p->args.lse.data};
  for (int i = 0; i < 5; i++) d->class->release(d, buffers[i], 0);
  fg_close(p->context);
  free(p->host_lse);
}

/* A cold select under capture says so and leaves the capture whole; warm launches are recorded and
 * replay. */
START_TEST(capture) {
  problem p = problem_new("cache");
  fg_kernel *kernel;
  CUstream stream;
  CUgraph graph;
  CUgraphExec replay;
  CUDA(cuda->cuStreamCreate(&stream, 1));
  CUDA(begin_capture(stream, 0));
  ck_assert_int_eq(fg_select(p.op, &shape, stream, &kernel), FG_ECAPTURE);
  ck_assert_str_eq(fg_error(), "the stream is capturing, and the kernel for this shape is not "
                               "loaded: select it before the capture");
  CUDA(end_capture(stream, &graph));
  GOOD(fg_select(p.op, &shape, stream, &kernel));
  CUDA(begin_capture(stream, 0));
  GOOD(fg_select(p.op, &shape, stream, &kernel));
  GOOD(fg_launch(kernel, &shape, &p.args, NULL, stream));
  CUDA(end_capture(stream, &graph));
  CUDA(instantiate(&replay, graph, 0));
  for (int i = 0; i < 3; i++) {
    poison(&p);
    CUDA(launch_graph(replay, stream));
    CUDA(cuda->cuStreamSynchronize(stream));
    expect_right(&p);
  }
  CUDA(cuda->cuStreamDestroy_v2(stream));
  problem_free(&p);
}
END_TEST

START_TEST(contexts_beside_each_other) {
  problem a = problem_new("cache"), b = problem_new("cache");
  fg_kernel *ka, *kb;
  GOOD(fg_select(a.op, &shape, NULL, &ka));
  GOOD(fg_select(b.op, &shape, NULL, &kb));
  ck_assert_ptr_ne(ka, kb);
  poison(&a);
  poison(&b);
  GOOD(fg_launch(ka, &shape, &a.args, NULL, NULL));
  GOOD(fg_launch(kb, &shape, &b.args, NULL, NULL));
  expect_right(&a);
  problem_free(&a); /* its modules go, the other's stay */
  poison(&b);
  GOOD(fg_launch(kb, &shape, &b.args, NULL, NULL));
  expect_right(&b);
  problem_free(&b);
}
END_TEST

/* Each thread selects classes of its own and a common one, and launches on a stream of its own. */
static void *select_and_launch(void *argument) {
  const problem *p = argument;
  fg_device *device = p->context->device;
  fg_args args = p->args;
  CUstream stream;
  fg_kernel *kernel;
  if (cuda->cuCtxSetCurrent(fg_device_cuda_context(device))) return "no context";
  if (cuda->cuStreamCreate(&stream, 1)) return "no stream";
  if (device->class->allocate(device, sizeof(float) * H * N, &args.lse.data)) return "no memory";
  if (device->class->allocate(device, 2 * N * H * D, &args.o.data)) return "no memory";
  for (int i = 0; i < 200; i++) {
    fg_shape s = shape;
    if (fg_select(p->op, &s, stream, &kernel)) return "select";
    if (fg_launch(kernel, &s, &args, NULL, stream)) return "launch";
    s.b = 1 << i % 8;
    if (fg_select(p->op, &s, stream, &kernel)) return "select";
  }
  float lse[H * N];
  if (cuda->cuStreamSynchronize(stream)) return "synchronize";
  if (device->class->download(device, lse, args.lse.data, sizeof lse)) return "download";
  for (int i = 0; i < H * N; i++)
    if (!(fabsf(lse[i] - logf((float)(i % N + 1))) < 1e-4f)) return "wrong numbers";
  cuda->cuStreamDestroy_v2(stream);
  device->class->release(device, args.lse.data, 0);
  device->class->release(device, args.o.data, 0);
  return NULL;
}

START_TEST(threads) {
  enum { THREADS = 16 };
  problem p = problem_new("threads");
  pthread_t thread[THREADS];
  fg_counts counts = FG_INIT(fg_counts);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, select_and_launch, &p), 0);
  for (int i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(thread[i], &wrong);
    ck_assert_msg(!wrong, "%s: %s", (char *)wrong, fg_error());
  }
  fg_context_counts(p.context, &counts);
  ck_assert_uint_eq(counts.compiles, 1);
  problem_free(&p);
}
END_TEST

START_TEST(refusals_leave_no_trace) {
  problem p = problem_new("cache");
  fg_kernel *kernel;
  GOOD(fg_select(p.op, &shape, NULL, &kernel));
  fg_args wrong = p.args;
  wrong.q.data = NULL;
  ck_assert_int_eq(fg_launch(kernel, &shape, &wrong, NULL, NULL), FG_EARGUMENT);
  ck_assert_str_eq(fg_error(), "q is missing");
  poison(&p);
  GOOD(fg_launch(kernel, &shape, &p.args, NULL, NULL));
  expect_right(&p);
  problem_free(&p);
}
END_TEST

/* A child that forks before its parent touches CUDA works; one that inherits a context is told. */
static int in_child(void) {
  problem p = problem_new("cache");
  fg_kernel *kernel;
  GOOD(fg_select(p.op, &shape, NULL, &kernel));
  poison(&p);
  GOOD(fg_launch(kernel, &shape, &p.args, NULL, NULL));
  expect_right(&p);
  pid_t pid = fork();
  if (!pid) {
    int refused = fg_select(p.op, &shape, NULL, &kernel) == FG_EARGUMENT &&
                  fg_launch(kernel, &shape, &p.args, NULL, NULL) == FG_EARGUMENT &&
                  strstr(fg_error(), "before a fork");
    _exit(refused ? 0 : 3);
  }
  int state;
  waitpid(pid, &state, 0);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0 ? 0 : 4;
}

/* Runs before anything else of this process touches CUDA. */
START_TEST(forks) {
  int state;
  pid_t pid = fork();
  if (!pid) {
    GOOD(fg_cuda_load(&cuda));
    _exit(in_child());
  }
  waitpid(pid, &state, 0);
  ck_assert_msg(WIFEXITED(state) && !WEXITSTATUS(state), "the child ended with %d", state);
}
END_TEST

static void load_cuda(void) {
  GOOD(fg_cuda_load(&cuda));
  find_graphs();
}

static int no_gpu(void) {
  fg_device *device;
  pid_t pid = fork(); /* the parent must not touch CUDA yet */
  if (!pid) _exit(fg_device_open("cuda:0", &device) == FG_OK ? 0 : 1);
  int state;
  waitpid(pid, &state, 0);
  return state != 0;
}

int main(void) {
  const char *required = getenv("FLASHGEN_REQUIRE");
  if (no_gpu()) {
    fprintf(stderr, "no GPU can be used: nothing is run\n");
    return required && strstr(required, "gpu") ? 1 : SKIP;
  }
  Suite *suite = suite_create("gpu");
  TCase *first = tcase_create("first"), *tests = tcase_create("gpu");
  tcase_add_unchecked_fixture(first, scratch_enter, scratch_leave);
  suite_add(first, forks);
  suite_add_tcase(suite, first);
  tcase_add_unchecked_fixture(tests, scratch_enter, scratch_leave);
  tcase_add_checked_fixture(tests, load_cuda, NULL);
  suite_add(tests, capture);
  suite_add(tests, contexts_beside_each_other);
  suite_add(tests, threads);
  suite_add(tests, refusals_leave_no_trace);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
