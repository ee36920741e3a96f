/* bench.c - `flashgen bench`: how long variants take on a device, and what share of it that is. */
#include "cli.h"

#include "measure.h"
#include "recipe/extent.h"
#include "work.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
  const cli *c;
  fg_context *context;
  fg_device *device; /* the context's */
  cli_variants v;
  int failed, rows;
  bool has[FG_EXTENTS]; /* of a variant's kind and layout: columns */
} job;

/* Has a launch of the point the extent? */
static bool has_extent(const fg_point *point, const fg_extent_row *extent) {
  char more[FG_LAYOUT_EXTENTS + 1];
  return strchr(fg_point_kind(point)->form->letters, extent->letter) ||
         strchr(fg_layout_extents(fg_point_layout(point), more), extent->letter);
}

static void print_columns(job *j) {
  printf("name");
  for (int i = 0; i < FG_EXTENTS; i++) {
    for (int v = 0; v < j->v.n; v++)
      j->has[i] |= has_extent(&j->v.variant[v].point, &fg_extents[i]);
    if (j->has[i]) printf(",%s", fg_extents[i].name);
  }
  printf(",ms,tflops,tb_per_s\n");
}

static fg_status shapes_of(const job *j, const fg_point *point, int *n,
                           fg_shape shapes[CLI_BENCH_SHAPES]) {
  *n = cli_work_of(point)->bench(point, fg_arch_is_host(j->device->arch), shapes);
  if (cli_shape_is_given(&j->c->arguments.shape)) {
    const fg_shape usual = shapes[0];
    *n = 1;
    TRY(cli_shape_fill(j->c, point, &usual, shapes));
  }
  for (int i = 0; i < *n; i++) TRY(cli_shape_lay_out(j->c, point, &shapes[i]));
  return FG_OK;
}

static fg_status measure(const job *j, const fg_kernel *kernel, const fg_shape *shape, double *ms) {
  cli_tensors *tensors;
  const bool host = fg_arch_is_host(j->device->arch);
  TRY(cli_tensors_new(j->c, j->device, fg_kernel_recipe(kernel), shape, &tensors));
  fg_status status = cli_time(tensors, kernel, host ? 1 : CLI_WARM_UPS,
                              host ? CLI_HOST_LAUNCHES : CLI_LAUNCHES, true, ms);
  cli_tensors_free(tensors);
  return status;
}

/* A row of a table or an object of a list. A table has a column for each extent that one of the
 * variants has. */
static void print_data(const job *j, const char *name, const fg_shape *s, double ms, double tflops,
                       double tbs) {
  if (j->c->json) {
    printf("%s\n  {\"name\": \"%s\", \"shape\": ", j->rows ? "," : "", name);
    cli_json_shape(stdout, fg_shape_form_of(s), s);
  }
  if (j->c->csv) printf("%s", name);
  for (int i = 0; i < FG_EXTENTS && j->c->csv; i++)
    if (j->has[i]) printf(",%" PRId64, fg_extent_get(&fg_extents[i], s));
  printf(j->c->csv ? ",%.6g,%.6g,%.6g\n" : ", \"ms\": %.6g, \"tflops\": %.6g, \"tb_per_s\": %.6g}",
         ms, tflops, tbs);
}

static void print_row(const job *j, const char *name, const fg_shape *s, double ms, double tflops,
                      double tbs) {
  const cli_rates *rates = cli_rates_of(j->device->model);
  char shape[FG_BRIEF_MAX];
  if (j->c->csv || j->c->json) {
    print_data(j, name, s, ms, tflops, tbs);
    return;
  }
  fg_shape_brief(s, sizeof shape, shape);
  printf("%-52s %s  %9.3f ms  %8.2f TFLOP/s", name, shape, ms, tflops);
  if (rates)
    printf(" %4.1f%%  %6.3f TB/s %4.1f%%", 100 * tflops / rates->matrix, tbs,
           100 * tbs / rates->copy);
  printf("\n");
}

static fg_status bench_variant(job *j, const fg_variant *variant) {
  fg_kernel *kernel;
  fg_shape shapes[CLI_BENCH_SHAPES];
  int n;
  fg_status status = FG_OK;
  TRY(shapes_of(j, &variant->point, &n, shapes));
  TRY(fg_variant_kernel(j->context, variant, &kernel));
  for (int i = 0; i < n && !cli_interrupted; i++) {
    const fg_point *point = &variant->point;
    const fg_recipe *recipe = fg_kernel_recipe(kernel);
    double ms;
    TRY_OUT(measure(j, kernel, &shapes[i], &ms));
    print_row(j, cli_info(kernel).name, &shapes[i], ms,
              cli_flops(j->c, point, &shapes[i]) / ms * 1e-9,
              cli_bytes(j->c, point, recipe, &shapes[i]) / ms * 1e-9);
    j->rows++;
    cli_flush();
  }
out:
  fg_kernel_free(kernel);
  return status;
}

/* A name of --without that no variant's kind has is a slip. */
static fg_status check_without(const job *j) {
  for (const char *at = j->c->without; at && *at; at += strcspn(at, ","), at += *at == ',') {
    char name[64];
    bool known = false;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
    for (int v = 0; v < j->v.n && !known; v++)
      known = fg_argument_find(fg_point_kind(&j->v.variant[v].point), name) != NULL;
    if (!known) return fg_fail(FG_EARGUMENT, "--without %s: there is no tensor of that name", name);
  }
  return FG_OK;
}

static fg_status run_all(job *j) {
  TRY(cli_measuring_opened(j->c, cli_context(cli_measuring_device(j->c), &j->context)));
  j->device = fg_context_device(j->context);
  TRY(cli_variants_read(j->c, j->device->arch, &j->v));
  TRY(check_without(j));
  if (j->v.grid) cli_numbers_say(j->c, j->v.grid->n, j->v.grid->point);
  if (j->c->csv)
    print_columns(j);
  else if (j->c->json)
    printf("{\"schema\": 2, \"device\": \"%s\", \"model\": \"%s\", \"rows\": [", j->device->name,
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
    .options = " help json csv filter plan plans device seed without ",
    .examples =
        "  flashgen bench head_dim=64,128 mask=full,causal pass=forward,backward\n"
        "  flashgen bench head_dim=128 --plans all b=4 h=16 nq=4096 --json\n"
        "  flashgen bench kernel=linear width=4096/14336 epilogue=swiglu --without keep\n"
        "other words: b= h= hk= nq= nk= rows= choose one shape; scale=X; sm_margin=N leaves so\n"
        "many multiprocessors free. Protocol: a pause of 0.1 s, 5 launches to warm up, 20 queued,\n"
        "the median of their times by events on the device\n",
    .takes_arguments = 1,
    .run = run};
