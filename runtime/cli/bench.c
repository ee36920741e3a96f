/* bench.c - `flashgen bench`: how long variants take on a device, and what share of it that is. */
#include "cli.h"

#include "measure.h"

#include <inttypes.h>
#include <string.h>

/* As many tokens as fill a GPU: 16384, in rows of two lengths, 2048 columns of heads. On the host
 * device a block is a process's work: one small problem. */
enum { TOKENS = 16384, WIDTH = 2048 };
static const int64_t lengths[] = {1024, 4096};

typedef struct {
  const cli *c;
  fg_context *context;
  fg_device *device; /* the context's */
  cli_variants v;
  int failed, rows;
} job;

static int shapes_of(const job *j, const fg_point *point, fg_shape shapes[2]) {
  const fg_shape *w = &j->c->arguments.shape;
  int host = fg_arch_is_host(j->device->arch);
  if (host || cli_shape_is_given(w)) {
    cli_shape_fill(w, host ? 1 : WIDTH / point->d, host ? 128 : lengths[0], shapes);
    return 1;
  }
  for (int i = 0; i < 2; i++) {
    int64_t h = WIDTH / point->d > 0 ? WIDTH / point->d : 1;
    shapes[i] =
        (fg_shape){.b = TOKENS / lengths[i], .h = h, .hk = h, .nq = lengths[i], .nk = lengths[i]};
  }
  return 2;
}

static fg_status measure(const job *j, const fg_kernel *kernel, const fg_shape *shape, double *ms) {
  cli_tensors *tensors;
  const bool host = fg_arch_is_host(j->device->arch);
  TRY(cli_tensors_new(j->c, j->device, &kernel->source->recipe, shape, &tensors));
  fg_status status = cli_time(tensors, kernel, host ? 1 : CLI_WARM_UPS,
                              host ? CLI_HOST_LAUNCHES : CLI_LAUNCHES, true, ms);
  cli_tensors_free(tensors);
  return status;
}

static void print_row(const job *j, const char *name, const fg_shape *s, double ms, double tflops,
                      double tbs) {
  const cli_rates *rates = cli_rates_of(j->device->model);
  if (j->c->csv) {
    printf("%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.6g,%.6g,%.6g\n", name,
           s->b, s->h, s->hk, s->nq, s->nk, ms, tflops, tbs);
    return;
  }
  if (j->c->json) {
    printf("%s\n  {\"name\": \"%s\", \"b\": %" PRId64 ", \"h\": %" PRId64 ", \"hk\": %" PRId64
           ", \"nq\": %" PRId64 ", \"nk\": %" PRId64
           ", \"ms\": %.6g, \"tflops\": %.6g, \"tb_per_s\": %.6g}",
           j->rows ? "," : "", name, s->b, s->h, s->hk, s->nq, s->nk, ms, tflops, tbs);
    return;
  }
  printf("%-52s b%" PRId64 " h%" PRId64 "/%" PRId64 " %" PRId64 "x%" PRId64
         "  %9.3f ms  %8.2f TFLOP/s",
         name, s->b, s->h, s->hk, s->nq, s->nk, ms, tflops);
  if (rates)
    printf(" %4.1f%%  %6.3f TB/s %4.1f%%", 100 * tflops / rates->matrix, tbs,
           100 * tbs / rates->copy);
  printf("\n");
}

static fg_status bench_variant(job *j, const fg_variant *variant) {
  fg_kernel *kernel;
  fg_shape shapes[2];
  fg_status status = FG_OK;
  TRY(cli_kernel(j->context, variant, &kernel));
  int n = shapes_of(j, &variant->point, shapes);
  for (int i = 0; i < n && !cli_interrupted; i++) {
    const fg_point *point = &variant->point;
    const fg_recipe *recipe = &kernel->source->recipe;
    double ms;
    TRY_OUT(measure(j, kernel, &shapes[i], &ms));
    print_row(j, kernel->name, &shapes[i], ms, cli_flops(j->c, point, &shapes[i]) / ms * 1e-9,
              cli_bytes(j->c, point, recipe, &shapes[i]) / ms * 1e-9);
    j->rows++;
    cli_flush();
  }
out:
  fg_kernel_free(kernel);
  return status;
}

static fg_status run_all(job *j) {
  TRY(cli_measuring_opened(j->c, cli_context(cli_measuring_device(j->c), &j->context)));
  j->device = j->context->device;
  TRY(cli_variants_read(j->c, j->device->arch, &j->v));
  if (j->v.grid) cli_numbers_say(j->c, j->v.grid->n, j->v.grid->point);
  if (j->c->csv)
    printf("name,b,h,hk,nq,nk,ms,tflops,tb_per_s\n");
  else if (j->c->json)
    printf("{\"schema\": 1, \"device\": \"%s\", \"model\": \"%s\", \"rows\": [", j->device->name,
           j->device->model);
  else
    printf("device %s, %s; medians of %d launches\n", j->device->name, j->device->model,
           fg_arch_is_host(j->device->arch) ? CLI_HOST_LAUNCHES : CLI_LAUNCHES);
  for (int i = 0; i < j->v.n && !cli_interrupted; i++) {
    fg_status status = bench_variant(j, &j->v.variant[i]);
    if (status == FG_OK) continue;
    if (cli_exit_code(status) != CLI_KERNEL) return status;
    cli_fail(status);
    j->failed++;
  }
  if (j->c->json) printf("\n], \"failed\": %d}\n", j->failed);
  return FG_OK;
}

static int run(cli *c) {
  job j = {.c = c};
  fg_status status = run_all(&j);
  int code = status != FG_OK ? cli_fail(status) : j.failed ? CLI_KERNEL : CLI_OK;
  cli_variants_free(&j.v);
  fg_close(j.context);
  return code;
}

const cli_command cli_bench = {
    .name = "bench",
    .line = "how long variants take",
    .usage = "[NAME ...] [SPEC.lua ...] [WORD ...]",
    .options = " help json csv filter plan plans device seed ",
    .examples =
        "  flashgen bench head_dim=64,128 mask=full,causal pass=forward,backward\n"
        "  flashgen bench head_dim=128 --plans all b=4 h=16 nq=4096 --json\n"
        "other words: b= h= hk= nq= nk= choose one shape; scale=X. Protocol: a pause of 0.1 s, 5\n"
        "launches to warm up, 20 queued, the median of their times by events on the device\n",
    .takes_arguments = 1,
    .run = run};
