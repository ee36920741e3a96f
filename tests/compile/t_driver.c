/* t_driver.c - a GPU's device with a driver of the tests' own: what comes of each of its answers,
 * and what the hot calls allocate and lock, which is nothing.
 *
 * Label compile: skipped where there is no libnvrtc, unless FLASHGEN_REQUIRE names the label. */
#include "alloc_watch.h"
#include "api_case.h"
#include "cuda/nvrtc.h"
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL    "head_dim=8 block_q=4"
#define BACKWARD "pass=backward head_dim=8 block_q=4"
#define BEFORE   "work that the GPU was given before this call has failed"

static fg_context *open_gpu(void) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.device = "cuda:0";
  GOOD(fg_open(&config, &context));
  return context;
}

/* The call fails with the result the next so many times. */
static void answer(const char *call, CUresult result, int times) {
  fake_cuda.call = call;
  fake_cuda.result = result;
  fake_cuda.times = times;
}

TEST(test_hot) {
  if (!ALLOC_WATCH) return;
  fg_context *context = open_gpu();
  fg_op *op = api_define(context, BACKWARD);
  fg_kernel *kernel = api_select(op, api_shape), *hot = NULL;
  fg_problem *p = api_problem(kernel, api_shape, 1);
  GOOD(api_launch(kernel, p));
  int before = fake_cuda.launches;
  alloc_start();
  fg_status status[2] = {fg_select(op, &api_shape, NULL, &hot), api_launch(kernel, p)};
  alloc_seen seen = alloc_stop();
  ck_assert(!status[0] && !status[1] && hot == kernel);
  ck_assert_int_eq(fake_cuda.launches - before, kernel->source->recipe.n_steps);
  ck_assert_int_eq(seen.allocations + seen.frees + seen.locks, 0);
  fg_problem_free(p);
  fg_close(context);
}

/* A GPU's arch is that of the table's row; one without a row has no kernels. */
TEST(test_archs) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.device = "cuda:0";
  for (int i = 1; i < fg_n_archs; i++) {
    char capability[8];
    snprintf(capability, sizeof capability, "%d", fg_archs[i].number);
    setenv("FAKE_CUDA_CAPABILITY", capability, 1);
    GOOD(fg_open(&config, &context));
    ck_assert_str_eq(context->device->arch, fg_archs[i].name);
    fg_close(context);
  }
  setenv("FAKE_CUDA_CAPABILITY", "70", 1);
  FAILS(FG_EENVIRONMENT,
        "device cuda:0: fake GPU has compute capability 7.0; there are kernels for host, sm_75, ",
        fg_open(&config, &context));
}

/* Errors of a launch: those of work before it are not blamed on it. */
TEST(test_launch) {
  static const struct {
    CUresult result;
    int before;
  } rows[] = {{700, 1}, {719, 1}, {1, 0}, {701, 0}};
  fg_context *context = open_gpu();
  fg_kernel *kernel = api_kernel(context, SMALL);
  fg_problem *p = api_problem(kernel, api_shape, 1);
  for (int i = 0; i < 4; i++) {
    char head[64];
    answer("cuLaunchKernel", rows[i].result, 1);
    snprintf(head, sizeof head, "attn_fwd: CUDA_ERROR_%d (an error of the test)", rows[i].result);
    FAILS(FG_ECUDA, head, api_launch(kernel, p));
    ck_assert_int_eq(strstr(fg_error(), BEFORE) != NULL, rows[i].before);
  }
  GOOD(api_launch(kernel, p));
  fg_problem_free(p);
  fg_close(context);
}

/* A persistent grid has a block for each multiprocessor but those of the margin; one that is of the
 * shape alone has them all. */
TEST(test_margin) {
  enum { ALL = 4 };
  const fg_shape shape = SHAPE(2, 4, 4, 700, 100, 16);
  fg_context *context = open_gpu();
  fg_kernel *kernel[] = {api_select(api_define(context, "family=wgmma head_dim=64"), shape),
                         api_select(api_define(context, SMALL), shape)};
  const unsigned most[] = {ALL, 0};
  for (int i = 0; i < 2; i++) {
    fg_problem *p = api_problem(kernel[i], shape, 1);
    for (int margin = 0; margin < ALL; margin++) {
      p->args.sm_margin = margin;
      GOOD(api_launch(kernel[i], p));
      unsigned blocks = fake_cuda.grid[0];
      if (most[i])
        ck_assert_uint_eq(blocks, most[i] - (unsigned)margin);
      else
        ck_assert_uint_gt(blocks, ALL);
    }
    p->args.sm_margin = ALL;
    FAILS(FG_EARGUMENT, "sm_margin = 4: expected 0 to 3 on a device of 4 multiprocessors",
          api_launch(kernel[i], p));
    fg_problem_free(p);
  }
  fg_close(context);
}

/* A context that work before us has lost: nothing is compiled anew or called a capture, and the
 * cache's entries stay. */
TEST(test_load_after_a_loss) {
  fg_context *context = open_gpu();
  fg_kernel *kernel;
  api_kernel(context, SMALL);
  fg_close(context);
  context = open_gpu();
  fg_op *op = api_define(context, SMALL);
  answer("cuModuleLoadData", 700, 9);
  FAILS(FG_ECUDA, BEFORE, fg_select(op, &api_shape, NULL, &kernel));
  ck_assert_int_eq(fake_cuda.times, 8);
  answer("cuStreamIsCapturing", 700, 1);
  GOOD(fg_select(op, &api_shape, NULL, &kernel));
  api_counts(context, 3, 1, 0, 1);
  fg_close(context);
}

TEST(test_no_gpu_memory) {
  fg_context *context = open_gpu();
  fg_op *op = api_define(context, SMALL);
  fg_kernel *kernel;
  void *p;
  answer("cuModuleLoadData", CU_OUT_OF_MEMORY, 1);
  FAILS(FG_EMEMORY, "CUDA_ERROR_2", fg_select(op, &api_shape, NULL, &kernel));
  answer("cuMemAlloc_v2", CU_OUT_OF_MEMORY, 1);
  FAILS(FG_EMEMORY, "GPU memory: CUDA_ERROR_2",
        context->device->class->allocate(context->device, 100, &p));
  GOOD(fg_select(op, &api_shape, NULL, &kernel));
  fg_close(context);
}

/* The application resets the context: nothing of it is used again, and a new one works. */
TEST(test_reset) {
  fg_context *context = open_gpu();
  fg_op *op = api_define(context, SMALL), *cold = api_define(context, BACKWARD);
  fg_kernel *kernel = api_select(op, api_shape), *none;
  fg_problem *p = api_problem(kernel, api_shape, 1);
  int launches = fake_cuda.launches, loads = fake_cuda.loads;
  for (int i = 0; i < 2; i++) {
    fake_cuda.id += !i;
    if (i) answer("cuCtxGetId", CU_CONTEXT_DESTROYED, 4);
    FAILS(FG_ECUDA, "cuda:0: the application has reset the GPU's CUDA context",
          api_launch(kernel, p));
    ck_assert_int_eq(fg_select(cold, &api_shape, NULL, &none), FG_ECUDA);
  }
  ck_assert_int_eq(fake_cuda.launches, launches);
  ck_assert_int_eq(fake_cuda.loads, loads);
  fg_close(context);
  ck_assert_int_eq(fake_cuda.unloads, 0);
  context = open_gpu();
  GOOD(api_launch(api_kernel(context, SMALL), p));
  fg_close(context);
}

/* A context of the application's is current: ours is, from the next call on, and stays it. */
TEST(test_another_context) {
  fg_context *context = open_gpu();
  fg_kernel *kernel = api_kernel(context, SMALL);
  fg_problem *p = api_problem(kernel, api_shape, 1);
  for (int i = 0; i < 2; i++) {
    int sets = fake_cuda.sets, launches = fake_cuda.launches;
    fake_cuda.another = 1;
    GOOD(api_launch(kernel, p));
    GOOD(api_launch(kernel, p));
    ck_assert_int_eq(fake_cuda.another, 0);
    ck_assert_int_eq(fake_cuda.sets - sets, 1);
    ck_assert_int_eq(fake_cuda.launches - launches, 2);
  }
  fake_cuda.another = 1;
  answer("cuCtxSetCurrent", 1, 1);
  FAILS(FG_ECUDA, "cuCtxSetCurrent: CUDA_ERROR_1", api_launch(kernel, p));
  fg_problem_free(p);
  fg_close(context);
}

/* An entry that the driver does not take, or that lacks the function: made once more. */
TEST_LOOP(test_bad_entry, 3) {
  static const struct {
    const char *call;
    CUresult result;
  } rows[] = {{"cuModuleLoadData", 209}, {"cuModuleLoadData", 200}, {"cuModuleGetFunction", 500}};
  fg_context *context = open_gpu();
  fg_kernel *kernel;
  api_kernel(context, SMALL);
  fg_close(context);
  for (int again = 0; again < 2; again++) {
    context = open_gpu();
    answer(rows[_i].call, rows[_i].result, 1 + again);
    fg_op *op = api_define(context, SMALL);
    fg_status status = fg_select(op, &api_shape, NULL, &kernel);
    api_counts(context, 2, !again, 1, !again);
    ck_assert_msg(status == (again ? FG_ECOMPILER : FG_OK), "%d: %s", status, fg_error());
    fg_close(context);
  }
}

/* NVRTC goes away: kernels that it made are found, others end in where it was looked for. */
TEST(test_no_nvrtc) {
  fg_kernel *kernel;
  pid_t pid = fork(); /* NVRTC is looked for once a process */
  if (!pid) {
    api_kernel(open_gpu(), SMALL);
    _exit(0);
  }
  int state = -1;
  ck_assert_int_eq(waitpid(pid, &state, 0), pid);
  ck_assert_int_eq(state, 0);
  setenv("FLASHGEN_NVRTC", "/nonexistent/libnvrtc.so", 1);
  fg_context *context = open_gpu();
  api_kernel(context, SMALL);
  api_counts(context, 3, 1, 0, 1); /* hits: NVRTC's name, the plans, the kernel */
  ck_assert_uint_eq(fg_cache_count(context->cache, FG_COUNT_PUBLISHED), 0);
  FAILS(FG_EENVIRONMENT, "NVRTC is not to be found: tried /nonexistent/libnvrtc.so",
        fg_select(api_define(context, BACKWARD), &api_shape, NULL, &kernel));
  api_counts(context, 3, 1, 0, 1);
  fg_close(context);
}

/* A driver that finds no GPU is the machine's matter. */
TEST(test_no_gpu) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.device = "cuda:0";
  setenv("FAKE_CUDA_INIT", "100", 1);
  FAILS(FG_EENVIRONMENT, "device cuda:0: the CUDA driver does not start: CUDA_ERROR_100",
        fg_open(&config, &context));
}

/* In a process of its own: a test has this one's state. */
static int no_nvrtc(void) {
  const fg_nvrtc *nvrtc;
  pid_t pid = fork();
  if (!pid) {
    fg_status status = fg_nvrtc_load(&nvrtc);
    if (status != FG_OK) fprintf(stderr, "%s: nothing is compiled\n", fg_error());
    _exit(status != FG_OK);
  }
  int state;
  waitpid(pid, &state, 0);
  return state != 0;
}

TEST_FIXTURE(api_enter, api_leave)
TEST_BEGIN {
  if (no_nvrtc()) suite_skip("compile", "there is no NVRTC");
}
