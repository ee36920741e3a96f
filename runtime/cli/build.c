/* build.c - `flashgen build`: variants compiled into a zoo directory, by worker processes. */
#include "cli.h"

#include "build.h"
#include "pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What one variant's job leaves. */
typedef struct {
  int interrupted;
  fg_status status;
  char text[1024]; /* of a failure */
  fg_build_made made;
} outcome;

typedef struct {
  const cli *c;
  cli_variants v; /* sorted by name */
  fg_zoo_make *make;
  fg_build_compilers compilers;
  fg_zoo_record *record;
  int taken, made, kept, failed, removed, n_records;
  bool changed;      /* the zoo's manifest */
  fg_status machine; /* what stopped the build: the machine, not a kernel */
  cli_progress progress;
} job;

/* ---- one variant, in a worker ---- */

/* For specs whose first plans are asked for; a name or a filter means that plan. */
static bool takes_next(const cli *c) {
  return !c->n_names && !c->plan && !c->filter && (!c->plans || !strcmp(c->plans, "first"));
}

static void build_variant(void *context, int i, void *result) {
  const job *j = context;
  outcome *o = result;
  const fg_variant *variant = &j->v.variant[i];
  o->status = fg_build_best(j->make, j->v.gen, takes_next(j->c) ? j->v.grid : NULL, variant,
                            &j->compilers, &cli_interrupted, &o->made);
  o->interrupted =
      o->status != FG_OK && cli_interrupted; /* as the compiler was, by the same signal */
  if (o->status != FG_OK) snprintf(o->text, sizeof o->text, "%s", fg_error());
}

/* ---- results ---- */

static const char *word_of(const outcome *o, int died) {
  return died || o->status != FG_OK ? "FAIL" : o->made.kept ? "kept" : "made";
}

/* Kept ones are no news. */
static void print_row(const job *j, const char *name, const outcome *o, int died) {
  int failed = died || o->status != FG_OK;
  if (o->made.kept && !*o->made.refused && !j->c->verbose) return;
  printf("%s  %s", word_of(o, died), name);
  if (!failed) printf("  %" PRIu64 " bytes", o->made.size);
  printf("\n");
  if (died)
    printf("      its process died of signal %d\n", died);
  else if (failed)
    printf("      %s\n", o->text);
  else if (*o->made.refused)
    printf("      instead of another plan: %s\n", o->made.refused);
}

static void print_json_row(const char *name, const outcome *o, int died, int first) {
  printf("%s\n  {\"name\": \"%s\", \"result\": \"%s\", \"bytes\": %" PRIu64
         ", \"signal\": %d, \"text\": ",
         first ? "" : ",", name, word_of(o, died), o->made.size, died);
  cli_json_string(stdout, !died && o->status == FG_OK ? o->made.refused : o->text);
  printf("}");
}

/* Ends the build when the machine fails, which would fail every variant alike. */
static int take(void *context, int i, const void *result, int died) {
  job *j = context;
  const outcome *o = result;
  char name[FG_NAME_MAX];
  int failed = died || o->status != FG_OK;
  if (j->machine != FG_OK || o->interrupted) return 1;
  if (!failed) j->v.variant[i].plan = o->made.plan;
  fg_variant_name(&j->v.variant[i], sizeof name, name);
  if (fg_build_ends(o->status)) return j->machine = fg_fail(o->status, "%s", o->text), 1;
  if (!failed) {
    j->machine = fg_build_record(&j->v.variant[i], &o->made, &j->record[j->n_records]);
    if (j->machine != FG_OK) return 1;
    j->n_records++;
  }
  cli_progress_end(&j->progress);
  if (j->c->json)
    print_json_row(name, o, died, j->taken == 0);
  else
    print_row(j, name, o, died);
  cli_flush();
  j->taken++;
  j->failed += failed;
  j->kept += !failed && o->made.kept;
  j->made += !failed && !o->made.kept;
  cli_progress_step(&j->progress, failed, name);
  return 0; /* though nobody may read the rows any more: the zoo is the result */
}

/* ---- the build ---- */

/* As --arch says, or the device that is there; else that of `flashgen list`. */
static fg_status find_archs(const cli *c, char of_device[FG_ARCH_MAX], const char **archs) {
  fg_device *device;
  if (c->arch && c->device) return fg_fail(FG_EARGUMENT, "--arch and --device: give one of them");
  *archs = c->arch ? c->arch : c->device ? of_device : FG_ARCH_USUAL;
  if (!c->device) return FG_OK;
  TRY(fg_device_open(c->device, &device));
  strcpy(of_device, device->arch);
  fg_device_close(device); /* its context would not survive the fork */
  return FG_OK;
}

static fg_status start(job *j) {
  char of_device[FG_ARCH_MAX], note[1024];
  const char *archs = NULL;
  if (!j->c->directory) return fg_fail(FG_EARGUMENT, "build needs -o DIR, the zoo");
  if (j->c->embed) TRY(fg_zoo_embed_check(j->c->directory, j->c->embed));
  TRY(find_archs(j->c, of_device, &archs));
  TRY(cli_variants_read(j->c, archs, &j->v));
  if (j->v.left_out)
    fprintf(stderr, "flashgen: %d spec%s left out: simt joins a zoo only when named: family=simt\n",
            j->v.left_out, j->v.left_out == 1 ? " is" : "s are");
  j->v.n = fg_build_sort(j->v.n, j->v.variant);
  TRY(fg_build_find_compilers(j->v.n, j->v.variant, &j->compilers));
  j->record = calloc((size_t)j->v.n, sizeof *j->record);
  if (!j->record) return fg_fail(FG_EMEMORY, "no memory for %d variants", j->v.n);
  TRY(fg_zoo_make_open(j->c->directory, &cli_interrupted, sizeof note, note, &j->make));
  if (*note) fprintf(stderr, "flashgen: %s\n", note);
  return FG_OK;
}

static fg_status finish(job *j) {
  bool embedded;
  j->n_records = fg_build_sort_records(j->n_records, j->record); /* another plan, another place */
  TRY(fg_zoo_finish(j->make, j->n_records, j->record, &j->removed, &j->changed));
  if (!j->c->embed) return FG_OK;
  TRY(fg_zoo_embed(j->make, j->c->directory, j->c->embed, j->n_records, j->record, &embedded));
  j->changed |= embedded;
  return FG_OK;
}

static fg_status build(job *j) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  fg_pool pool = {.n = j->v.n,
                  .workers = j->c->jobs > 0 ? j->c->jobs
                             : cores > 0    ? cores
                                            : 1,
                  .result_size = sizeof(outcome),
                  .job = build_variant,
                  .done = take,
                  .context = j,
                  .stop = &cli_interrupted};
  cli_progress_start(&j->progress, j->c, j->v.n);
  fg_status status = fg_pool_run(&pool);
  cli_progress_end(&j->progress);
  TRY(status);
  TRY(j->machine);
  if (j->taken < j->v.n) return FG_OK; /* interrupted: the journal knows what is done */
  return finish(j);
}

static void print_sum(const job *j, fg_status status) {
  int complete = status == FG_OK && j->taken == j->v.n;
  if (j->c->json) {
    printf("\n], \"variants\": %d, \"made\": %d, \"kept\": %d, \"failed\": %d, \"removed\": "
           "%d, \"complete\": %s}\n",
           j->v.n, j->made, j->kept, j->failed, j->removed, complete ? "true" : "false");
  } else if (complete && !j->made && !j->failed && !j->removed && !j->changed) {
    printf("%s is up to date: %d variant%s, nothing to do\n", j->c->directory, j->v.n,
           cli_s(j->v.n));
  } else if (complete) {
    printf("%s: %d variant%s: %d made, %d kept, %d failed, %d removed\n", j->c->directory, j->v.n,
           cli_s(j->v.n), j->made, j->kept, j->failed, j->removed);
  }
  if (!complete)
    fprintf(stderr, "flashgen: %d of %d variants are done; the same command goes on from there\n",
            j->made + j->kept, j->v.n);
}

static int run(cli *c) {
  static job j; /* large */
  j.c = c;
  fg_status status = start(&j);
  int started = status == FG_OK;
  if (started) {
    if (c->json) printf("{\"schema\": 1, \"results\": [");
    status = build(&j);
  }
  int code = status != FG_OK ? cli_fail(status) : j.failed ? CLI_KERNEL : CLI_OK;
  if (started) print_sum(&j, status);
  if (code == CLI_OK && c->stamp && j.taken == j.v.n) {
    status = cli_stamp(c);
    if (status != FG_OK) code = cli_fail(status);
  }
  for (int i = 0; i < j.n_records; i++) free(j.record[i].block);
  free(j.record);
  fg_zoo_make_close(j.make);
  cli_variants_free(&j.v);
  return code;
}

const cli_command cli_build = {
    .name = "build",
    .line = "variants compiled into a zoo directory",
    .usage = "[NAME ...] [SPEC.lua ...] [WORD ...] -o DIR",
    .options = " help json quiet verbose filter plan plans arch device jobs output embed stamp ",
    .examples =
        "  flashgen build specs/quickstart.lua family=simt -o zoo\n"
        "  flashgen build head_dim=64,128 mask=full,causal family=simt --arch host -o zoo\n"
        "  flashgen build specs/quickstart.lua family=simt --arch sm_80 -o zoo -j 4 --json\n"
        "  flashgen build head_dim=128 --arch sm_90a -o zoo --embed kernels   # zoo/kernels.c, .h\n"
        "what an earlier or interrupted build has made already is kept\n",
    .makes_zoo = 1,
    .run = run};
