/* overhead.c - what flashgen adds to a launch, in one run on a GPU: prints the figures of
 * runtime/docs/doors/c.md.
 *
 *   overhead [cuda:N]        on a GPU
 *   overhead_fake            with a driver that does nothing: flashgen's own work on the host
 *
 * fg_launch against the bare driver calls of the same recipe, hot fg_select, opening, a kernel from
 * a warm cache to its first launch done, expansions, cold compiles. Host clock; medians, of
 * launches and hot selections the least too, which other programs disturb less; the GPU's queue is
 * kept short by a synchronisation every 256 launches, which is outside the timed part. */
#include "bench.h"
#include "cuda/cuda_launch.h"
#include "kernels.h"
#include "ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 41, BATCH = 256 };

/* A small problem: the time is the host's. */
static const fg_shape shape = FG_INIT(fg_shape, .b = 1, .h = 2, .hk = 2, .nq = 64, .nk = 64);

typedef struct {
  fg_context *context;
  fg_op *op;
  fg_kernel *kernel;
  fg_args args;
  void *workspace;
} bench;

static void *allocate(const bench *b, size_t bytes) {
  void *p;
  GOOD(b->context->device->class->allocate(b->context->device, bytes, &p));
  return p;
}

static const char *family; /* of the kernels that are measured */

static double least(const double *list, int n) {
  double x = list[0];
  for (int i = 1; i < n; i++) x = list[i] < x ? list[i] : x;
  return x;
}

static fg_op *define(fg_context *context, const char *pass, const char *head_dim) {
  fg_spec spec = FG_INIT(fg_spec);
  fg_op *op;
  spec.family = family;
  spec.pass = pass;
  spec.head_dim = head_dim;
  GOOD(fg_define(context, &spec, &op));
  return op;
}

/* False: the family has no such pass on the GPU. */
static bool bind(bench *b, const char *pass) {
  b->op = define(b->context, pass, "64");
  const fg_status status = fg_select(b->op, &shape, NULL, &b->kernel);
  if (status == FG_ESPEC) return false;
  GOOD(status);
  b->args = (fg_args)FG_INIT(fg_args);
  for (int i = 0; i < b->kernel->source->recipe.n_tensors; i++) {
    const fg_recipe_tensor *t = &b->kernel->source->recipe.tensor[i];
    if (t->argument->optional) continue;
    *fg_args_tensor_of(&b->args, t) =
        (fg_tensor){allocate(b, 64 * 64 * 2 * 4), {2 * 64 * 64, 64, 2 * 64, 1}};
  }
  b->workspace = allocate(b, fg_workspace_bytes(b->kernel, &shape) + 256);
  return true;
}

/* The same launches without flashgen in the way: parameters ready, functions known. */
typedef struct {
  const fg_cuda *cuda;
  CUfunction function[FG_STEP_MAX];
  uint32_t grid[FG_STEP_MAX][3];
  CUdeviceptr zero[FG_STEP_MAX]; /* of a step that fills a region, and its bytes */
  int64_t bytes[FG_STEP_MAX];
  _Alignas(64) char params[FG_PARAMS_MAX];
} bare;

static void prepare_bare(const bench *b, bare *x) {
  const fg_recipe *r = &b->kernel->source->recipe;
  bool empty;
  GOOD(fg_cuda_load(&x->cuda));
  GOOD(fg_params_fill(r, &shape, &b->args, b->workspace, x->params));
  GOOD(fg_cuda_encode_maps(x->cuda, r, &shape, &b->args, NULL, x->params));
  for (int i = 0; i < r->n_steps; i++) {
    if (r->step[i].kind == FG_STEP_ZERO) {
      int64_t offset;
      GOOD(fg_workspace_fill(r, &shape, &r->step[i], &offset, &x->bytes[i]));
      x->zero[i] = (CUdeviceptr)(uintptr_t)b->workspace + (CUdeviceptr)offset;
      continue;
    }
    x->function[i] = fg_device_cuda_function(b->kernel->module, i);
    GOOD(fg_step_grid(&r->step[i], &shape, x->grid[i], &empty));
    fg_step_limit(&r->step[i], b->context->device->multiprocessors, 0, x->grid[i]);
  }
}

static void launch_bare(const bench *b, bare *x) {
  const fg_recipe *r = &b->kernel->source->recipe;
  for (int i = 0; i < r->n_steps; i++) {
    const fg_step *step = &r->step[i];
    if (step->kind == FG_STEP_ZERO)
      x->cuda->cuMemsetD8Async(x->zero[i], 0, (size_t)x->bytes[i], NULL);
    else
      GOOD(fg_cuda_launch(x->cuda, x->function[i], step, x->grid[i], NULL, x->params));
  }
}

/* Microseconds a launch; the two are timed in turn. */
static void time_launch(bench *b, const char *pass) {
  double ours[ROUNDS], theirs[ROUNDS];
  bare x;
  prepare_bare(b, &x);
  for (int round = -5; round < ROUNDS; round++) {
    double start = clock_now();
    for (int i = 0; i < BATCH; i++) launch_bare(b, &x);
    double middle = clock_now();
    GOOD(b->context->device->class->synchronize(b->context->device));
    double again = clock_now();
    for (int i = 0; i < BATCH; i++)
      GOOD(fg_launch(b->kernel, &shape, &b->args, b->workspace, NULL));
    double end = clock_now();
    GOOD(b->context->device->class->synchronize(b->context->device));
    if (round < 0) continue;
    theirs[round] = (middle - start) / BATCH;
    ours[round] = (end - again) / BATCH;
  }
  const double t = bench_median(theirs, ROUNDS), o = bench_median(ours, ROUNDS);
  printf("%-9s launch: fg_launch %.2f us, its %d steps by the driver %.2f us, ratio %.2f, "
         "difference %.2f us, at least %.2f\n",
         pass, o * 1e6, b->kernel->source->recipe.n_steps, t * 1e6, o / t, (o - t) * 1e6,
         (least(ours, ROUNDS) - least(theirs, ROUNDS)) * 1e6);
}

static void time_select(const bench *b) {
  enum { CALLS = 100000 };
  double list[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    fg_kernel *kernel;
    double start = clock_now();
    for (int i = 0; i < CALLS; i++) {
      fg_shape s = shape;
      s.nq += i & 7;
      GOOD(fg_select(b->op, &s, NULL, &kernel));
    }
    list[round] = (clock_now() - start) / CALLS;
  }
  printf("hot fg_select: %.1f ns, at least %.1f\n", bench_median(list, ROUNDS) * 1e9,
         least(list, ROUNDS) * 1e9);
}

/* Another context: its own modules, the same cache and CUDA context. */
static void time_warm(const char *device, const bench *b, const char *pass) {
  double opened[ROUNDS], selected[ROUNDS], all[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    fg_config config = FG_INIT(fg_config);
    fg_context *context;
    fg_kernel *kernel;
    config.device = device;
    const double start = clock_now();
    GOOD(fg_open(&config, &context));
    opened[round] = clock_now() - start;
    GOOD(fg_select(define(context, pass, "64"), &shape, NULL, &kernel));
    selected[round] = clock_now() - start - opened[round];
    GOOD(fg_launch(kernel, &shape, &b->args, b->workspace, NULL));
    GOOD(context->device->class->synchronize(context->device));
    all[round] = clock_now() - start;
    if (!kernel->from_cache) printf("the cache did not have it\n");
    fg_close(context);
  }
  printf("%-9s from a warm cache: fg_open %.2f ms, fg_define and fg_select %.2f ms, first launch "
         "done after %.2f ms\n",
         pass, bench_median(opened, ROUNDS) * 1e3, bench_median(selected, ROUNDS) * 1e3,
         bench_median(all, ROUNDS) * 1e3);
}

/* Texts alone, of head dims that have been expanded before: one point after another. */
static void time_expand(const bench *b, const char *pass) {
  double list[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    fg_spec spec = FG_INIT(fg_spec);
    char *text;
    spec.family = family, spec.pass = pass, spec.head_dim = round % 2 ? "64" : "128";
    const double start = clock_now();
    GOOD(fg_emit(b->context, &spec, NULL, &text));
    list[round] = clock_now() - start;
    free(text);
  }
  printf("%-9s fg_emit: %.1f ms, at least %.1f\n", pass, bench_median(list, ROUNDS) * 1e3,
         least(list, ROUNDS) * 1e3);
}

/* New kernels each: the head dims have not been used. */
static void time_cold(const bench *b, const char *pass) {
  static const char *const dims[] = {"80", "96", "112", "144", "160"};
  enum { DIMS = sizeof dims / sizeof *dims };
  double list[DIMS], worst = 0;
  int n = 0;
  for (int i = 0; i < DIMS; i++) {
    fg_kernel *kernel;
    double start = clock_now();
    const fg_status status = fg_select(define(b->context, pass, dims[i]), &shape, NULL, &kernel);
    if (status == FG_ESPEC) continue;
    GOOD(status);
    if (kernel->from_cache) printf("the cache had one: give FLASHGEN_CACHE an empty directory\n");
    list[n] = clock_now() - start;
    worst = list[n] > worst ? list[n] : worst;
    n++;
  }
  if (n)
    printf("%-9s cold fg_select, %d kernels: median %.3f s, worst %.3f s\n", pass, n,
           bench_median(list, n), worst);
}

int main(int argc, char **argv) {
  fg_config config = FG_INIT(fg_config);
  bench b = {0};
  config.device = argc > 1 ? argv[1] : "cuda:0";
  GOOD(fg_open(&config, &b.context));
  printf("device %s, %s\n", b.context->device->name, b.context->device->arch);
  static const char *const passes[] = {"forward", "backward"};
  for (const char *const *f = fg_fields[FG_SPEC_FIELDS].choices; *f; f++) {
    family = *f;
    printf("%s\n", family);
    for (int i = 0; i < 2; i++) {
      if (!bind(&b, passes[i])) continue;
      time_launch(&b, passes[i]);
      time_select(&b);
      time_warm(config.device, &b, passes[i]);
      time_expand(&b, passes[i]);
      time_cold(&b, passes[i]);
    }
  }
  return 0;
}
