/* check.c - `flashgen check`: every variant on fresh random inputs, against the float64 oracle. */
#include "cli.h"

#include "check.h"
#include "pool.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

typedef struct {
  check_cases cases;
  fg_device *device;
  fg_context *context; /* of the process that runs the jobs: a worker opens its own */
  cli_variants v;
  int variants, failed, wrong, empty, tried;
  fg_status machine; /* what stopped the check: the machine, not a kernel */
  int dead;          /* the device can run nothing any more */
  int width;         /* of the longest name */
  cli_progress progress;
} job;

/* What can be said of the shapes before a kernel is made. */
static fg_status try_shapes(const job *j) {
  fg_shape shapes[CLI_CHECK_SHAPES];
  int n;
  for (int i = 0; i < j->v.n; i++)
    TRY(check_shapes(j->cases.c, &j->v.variant[i].point, &n, shapes));
  return FG_OK;
}

static fg_status make_pair(job *j, check_pair *p, check_outcome *o) {
  if (!j->context) TRY(cli_context(j->device->name, &j->context));
  const check_plans plans = {.c = j->cases.c, .context = j->context, .v = &j->v};
  return check_pair_make(&plans, p, o);
}

static void check_variant(void *context, int i, void *result) {
  job *j = context;
  check_outcome *o = result;
  check_pair p = {.variant = &j->v.variant[i]};
  fg_status status = make_pair(j, &p, o);
  if (status == FG_OK) status = check_cases_run(&j->cases, &p, o);
  o->plan = p.variant->plan;
  o->status = status;
  o->interrupted = status != FG_OK && cli_interrupted; /* as the compiler was, by the same signal */
  if (status != FG_OK) snprintf(o->text, sizeof o->text, "%s", fg_error());
  check_pair_free(&p);
}

/* NaN and infinity have no JSON. */
static void print_json_number(const char *name, double x) {
  if (x <= 1e300)
    printf("\"%s\": %.3g", name, x);
  else
    printf("\"%s\": null", name);
}

/* Nothing of it was judged, and nothing has failed. */
static bool is_empty(const check_outcome *o, int died) {
  return !died && o->status == FG_OK && !o->wrong && o->pairs && !o->judged;
}

static const char *verdict_word(const check_outcome *o, int died) {
  if (is_empty(o, died)) return "EMPTY";
  return died || o->status != FG_OK || o->wrong ? "FAIL" : "PASS";
}

/* One line a variant: the worst error of each output, as the number and as a share of its limit,
 * which is told where it depends on the element; with -v what a plain unfused computation in the
 * same dtype would have. */
static void print_row(const job *j, const char *name, const check_outcome *o, int died) {
  printf("%s  %-*s", verdict_word(o, died), j->width, name);
  for (int i = 0; i < o->worst.n; i++) {
    const verify_error *e = &o->worst.tensor[i];
    printf("  %s %.1e (%.0f%%", e->name, e->error, 100 * e->error / e->limit);
    if (e->own_unit) printf(" of %.1e", e->limit);
    if (j->cases.c->verbose && e->plain > 0) printf(", unfused %.1e", e->plain);
    printf(")");
  }
  if (o->pairs) printf("  sees %.3g%% of pairs", 100 * (double)o->seen / (double)o->pairs);
  if (o->pairs && o->judged && o->judged < o->cases)
    printf("  %d of %d cases judged nothing", o->cases - o->judged, o->cases);
  printf("\n");
  if (died)
    printf("      its process died of signal %d\n", died);
  else if (*o->text)
    printf("      %s\n", o->text);
  if (!died && *o->refused) printf("      instead of another plan: %s\n", o->refused);
}

static void print_json_row(const char *name, const check_outcome *o, int died, int first) {
  printf("%s\n  {\"name\": \"%s\", \"result\": \"%s\", \"cases\": %d, \"signal\": %d, ",
         first ? "" : ",", name, verdict_word(o, died), o->cases, died);
  print_json_number("seen", o->pairs ? (double)o->seen / (double)o->pairs : NAN);
  printf(", \"text\": ");
  cli_json_string(stdout, o->text);
  printf(", \"refused\": ");
  cli_json_string(stdout, died ? "" : o->refused);
  printf(", \"errors\": {");
  for (int i = 0; i < o->worst.n; i++) {
    const verify_error *e = &o->worst.tensor[i];
    printf("%s\"%s\": {", i ? ", " : "", e->name);
    print_json_number("error", e->error);
    printf(", \"limit\": %g, ", e->limit);
    print_json_number("unfused", e->plain);
    printf("}");
  }
  printf("}}");
}

/* Ends the check when the machine fails, which would fail every variant alike, and when nobody
 * reads the results any more. */
static int take(void *context, int i, const void *result, int died) {
  job *j = context;
  const check_outcome *o = result;
  char name[FG_NAME_MAX];
  if (j->machine != FG_OK || o->interrupted) return 1;
  if (cli_exit_code(o->status) == CLI_MACHINE && o->status != FG_ECUDA) {
    j->machine = fg_fail(o->status, "%s", o->text);
    return 1;
  }
  fg_variant tried = j->v.variant[i];
  if (!died) tried.plan = o->plan;
  fg_variant_name(&tried, sizeof name, name);
  cli_progress_end(&j->progress);
  if (j->cases.c->json)
    print_json_row(name, o, died, i == 0);
  else
    print_row(j, name, o, died);
  cli_flush();
  j->variants++;
  j->failed += died || o->status != FG_OK;
  j->wrong += o->wrong > 0;
  j->empty += is_empty(o, died);
  j->tried += o->cases;
  cli_progress_step(&j->progress, strcmp(verdict_word(o, died), "PASS") != 0, name);
  j->dead = o->status == FG_ECUDA; /* a kernel's fault ends the GPU's context: nothing runs after */
  return ferror(stdout) || j->dead;
}

static int finish(const job *j) {
  if (j->cases.c->json) {
    printf("\n], \"variants\": %d, \"cases\": %d, \"failed\": %d, \"wrong\": %d, \"empty\": %d}\n",
           j->variants, j->tried, j->failed, j->wrong, j->empty);
  } else if (j->machine == FG_OK) {
    printf("%d variant%s, %d case%s, seed %" PRIu64 ": %d failed, %d wrong", j->variants,
           cli_s(j->variants), j->tried, cli_s(j->tried), j->cases.seed, j->failed, j->wrong);
    if (j->empty) printf(", %d empty", j->empty);
    printf("\n");
  }
  if (j->machine != FG_OK) return cli_fail(j->machine);
  if (j->variants < j->v.n && !cli_interrupted && !ferror(stdout)) {
    fg_fail(FG_EBUG, "%d of %d variants were not tried%s", j->v.n - j->variants, j->v.n,
            j->dead ? ": the kernel that failed ended the GPU's context" : "");
    return cli_fail(FG_EBUG);
  }
  return j->wrong ? CLI_NUMBERS : j->failed || j->empty ? CLI_KERNEL : CLI_OK;
}

static fg_status start(job *j) {
  TRY(cli_device_open(j->cases.c, &j->device));
  TRY(fg_margin_check(j->cases.c->arguments.sm_margin, j->device->multiprocessors));
  j->cases.host = fg_arch_is_host(j->device->arch);
  if (j->cases.c->seed >= 0)
    j->cases.seed = (uint64_t)j->cases.c->seed;
  else if (getrandom(&j->cases.seed, 4, 0) != 4)
    return fg_fail(FG_EIO, "no random seed can be had");
  TRY(cli_variants_read(j->cases.c, j->device->arch, &j->v));
  for (int i = 0; i < j->v.n; i++) {
    char name[FG_NAME_MAX];
    int n = fg_variant_name(&j->v.variant[i], sizeof name, name);
    if (strcmp(j->v.variant[i].arch, j->device->arch))
      return fg_fail(FG_EARGUMENT, "%s is for %s; the device is %s", name, j->v.variant[i].arch,
                     j->device->arch);
    if (n > j->width) j->width = n;
  }
  TRY(try_shapes(j));
  return check_arrays_read(j->cases.c, &j->v, &j->cases.arrays);
}

static int run(cli *c) {
  job j = {.cases = {.c = c}};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  fg_status status = start(&j);
  if (status == FG_OK) {
    const int shapes = cli_shape_is_given(&c->arguments.shape) ? 1 : CLI_CHECK_SHAPES;
    if (c->json)
      printf("{\"schema\": 1, \"device\": \"%s\", \"seed\": %" PRIu64 ", \"results\": [",
             j.device->name, j.cases.seed);
    else
      printf("device %s, seed %" PRIu64
             "; the worst error of each output over %d shape%s (%% of its limit)\n",
             j.device->name, j.cases.seed, shapes, cli_s(shapes));
    cli_flush();
    int cuda = !j.cases.host; /* a context does not survive a fork */
    cli_progress_start(&j.progress, c, j.v.n);
    fg_pool pool = {.n = j.v.n,
                    .workers = cuda          ? 0
                               : c->jobs > 0 ? c->jobs
                               : cores > 0   ? cores
                                             : 1,
                    .result_size = sizeof(check_outcome),
                    .job = check_variant,
                    .done = take,
                    .context = &j,
                    .stop = &cli_interrupted};
    status = fg_pool_run(&pool);
    cli_progress_end(&j.progress);
  }
  int code = status == FG_OK ? finish(&j) : cli_fail(status);
  check_arrays_free(&j.cases.arrays);
  cli_variants_free(&j.v);
  fg_close(j.context);
  fg_device_close(j.device);
  return code;
}

const cli_command cli_check = {
    .name = "check",
    .line = "variants on random inputs against the float64 oracle",
    .usage = "[NAME ...] [SPEC.lua ...] [WORD ...]",
    .options = " help json quiet verbose filter plan plans device jobs seed in ",
    .examples =
        "  flashgen check specs/quickstart.lua\n"
        "  flashgen check head_dim=128 mask=causal pass=forward,backward --plans all\n"
        "  flashgen check head_dim=64 bias=grad pass=backward b=1 h=8 hk=2 nq=300 nk=500\n"
        "  flashgen check head_dim=64 'mask=k < length[b]' 'inputs.length=i32[b]' b=2 nk=500 \\\n"
        "      --in length=length.npy\n"
        "other words: b= h= hk= nq= nk= rows= choose one shape in place of the usual ones;\n"
        "scale=X; sm_margin=N leaves so many multiprocessors free;\n"
        "width=128 sets an input that is a number, --in NAME=FILE the values of one that is a "
        "tensor.\n"
        "Others are drawn: integers by what the mask and the score use them for. EMPTY: nothing "
        "was\n"
        "judged, for the mask shows no pair in any case. Where a mask lets tiles be skipped, the\n"
        "kernel is also compared with one that skips none, unless FLASHGEN_JIT=0 forbids to "
        "compile\n"
        "that.\n"
        "Where the compiler refuses the first plan of a spec, the next one is tried, as by the "
        "library;\nthe line says instead of which.\n",
    .takes_arguments = 1,
    .run = run};
