/* tune_compile.c - the plans of a grid compiled into the cache, by worker processes. */
#include "tune.h"

#include "pool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The share of a budget after which no more is compiled. */
static const double COMPILING = 0.5;

typedef struct {
  tune *t;
  int *list, n_list; /* plans */
  fg_status machine; /* what stopped it: the machine, not a kernel */
  cli_progress progress;
} job;

static int64_t workers_of(const cli *c) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return c->jobs > 0 ? c->jobs : cores > 0 ? cores : 1;
}

typedef struct {
  fg_status status;
  bool skipped;
  int generation;
  double seconds;
  char text[1024];
} compiled;

static int generation_of(const tune *t, const fg_variant *variant) {
  fg_source *source;
  if (fg_gen_expand(t->gen, variant, &source) != FG_OK) return 1;
  int generation = source->recipe.generation;
  fg_source_free(source);
  return generation;
}

static void compile_plan(void *context, int i, void *result) {
  static fg_context *compiling; /* of the process: for the arch alone, no GPU */
  const job *j = context;
  const tune_plan *plan = &j->t->plan[j->list[i]];
  compiled *o = result;
  fg_kernel *kernel;
  double start = tune_now();
  if ((o->skipped = tune_is_late(j->t, COMPILING))) return;
  if (!compiling) o->status = cli_context(j->t->device[0].arch, &compiling);
  if (o->status == FG_OK) o->status = fg_variant_kernel(compiling, &plan->variant, &kernel);
  if (o->status != FG_OK) {
    snprintf(o->text, sizeof o->text, "%s", fg_error());
    o->skipped = cli_interrupted; /* as the compiler was, by the same signal */
    o->generation = generation_of(j->t, &plan->variant);
    return;
  }
  o->seconds = cli_info(kernel).from_cache ? 0 : tune_now() - start;
  o->generation = fg_kernel_recipe(kernel)->generation;
  fg_kernel_free(kernel);
}

static int take_compiled(void *context, int i, const void *result, int died) {
  job *j = context;
  const compiled *o = result;
  tune_plan *plan = &j->t->plan[j->list[i]];
  if (!died && !o->skipped && cli_exit_code(o->status) == CLI_MACHINE)
    return j->machine = fg_fail(o->status, "%s", o->text), 1;
  plan->skipped = !died && o->skipped;
  plan->failed = died || (o->status != FG_OK && !o->skipped);
  plan->compile = o->seconds;
  if (!died && o->generation > 0) plan->generation = o->generation;
  if (died)
    snprintf(plan->reason, sizeof plan->reason, "its compiler died of signal %d", died);
  else
    snprintf(plan->reason, sizeof plan->reason, "%.*s", FG_REASON_MAX - 1, o->text);
  cli_progress_step(&j->progress, plan->failed, plan->name);
  return 0;
}

static fg_status compile_all(job *j) {
  tune *t = j->t;
  for (int i = 0; i < t->n_plans; i++) {
    t->plan[i].skipped = true; /* until it was tried */
    if (t->plan[i].needed) j->list[j->n_list++] = i;
  }
  fg_pool pool = {.n = j->n_list,
                  .workers = workers_of(t->c),
                  .result_size = sizeof(compiled),
                  .job = compile_plan,
                  .done = take_compiled,
                  .context = j,
                  .stop = &cli_interrupted};
  if (!j->n_list) return FG_OK;
  if (!t->c->quiet) fprintf(stderr, "%d plans to compile\n", j->n_list);
  cli_progress_start(&j->progress, t->c, j->n_list);
  fg_status status = fg_pool_run(&pool);
  cli_progress_end(&j->progress);
  TRY(status);
  return j->machine;
}

fg_status tune_compile(tune *t) {
  job j = {.t = t, .list = calloc((size_t)t->n_plans + 1, sizeof *j.list)};
  if (!j.list) return fg_fail(FG_EMEMORY, "no memory for %d plans", t->n_plans);
  fg_status status = compile_all(&j);
  free(j.list);
  return status;
}
