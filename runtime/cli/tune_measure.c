/* tune_measure.c - one cell: its plans raced at a shape, each result kept in the file at once.
 *
 * First few launches of each plan, in the order that older times or the cost model expect, the
 * first one alone deciding where a plan is far behind; then, for the better half of those that are
 * near the best one, the oracle's verdict on small inputs and the whole protocol; and for the best
 * one of each family, which a spec may ask for alone. A plan whose launch breaks a GPU ends the
 * process: another one goes on with the others. */
#include "tune.h"

#include "base/setting.h"
#include "pool.h"
#include "reference/verify.h"
#include "spec/point_formula.h"
#include "wisdom/cost.h"
#include "work.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A first launch beyond FAR times the best one, and few launches beyond NEAR times, lose. */
static const double FAR = 3, NEAR = 1.25;
enum { QUICK = 3 };

/* What a process keeps: its device, and what was verified there. */
typedef struct {
  int worker;
  fg_context *context;
  fg_measured_list known;
  struct verdict {
    bool known, good;
    double error;
    char reason[FG_REASON_MAX];
  } * verdict; /* by plan */
  int spent;
} process;
static process here;

/* One plan in the race. */
typedef struct {
  tune_plan *plan;
  int index;
  fg_kernel *kernel;
  double expected, ms; /* ms of few launches; 0: not in the race */
  bool older;          /* `expected` is a time that an older generation took */
  bool right;          /* has a time that counts */
} runner;

typedef struct {
  tune *t;
  tune_cell *cell;
  tune_outcome *out;
  cli_tensors *tensors;
  runner *runner;
  double best; /* of whatever was measured here; 0: nothing yet */
  bool host;
} race;

void tune_measure_start(void *context, int worker) {
  (void)context;
  here = (process){.worker = worker};
}

int tune_measure_spent(void *context) {
  (void)context;
  return here.spent;
}

static fg_status open_process(const tune *t) {
  fg_wisdom w;
  if (here.context) return FG_OK;
  here.verdict = calloc((size_t)t->n_plans, sizeof *here.verdict);
  if (!here.verdict) return fg_fail(FG_EMEMORY, "no memory for %d plans", t->n_plans);
  TRY(fg_wisdom_read(t->wisdom, true, &w));
  fg_status status = fg_measured_add(w.text, w.n, &here.known);
  fg_wisdom_free(&w);
  TRY(status);
  fg_measured_sort(&here.known);
  return cli_context(t->device[here.worker % t->n_devices].name, &here.context);
}

/* Records ----------------------------------------------------------------------------------- */

void tune_record(const tune *t, const tune_plan *plan, const fg_shape *shape, fg_measured *m) {
  *m = (fg_measured){.multiprocessors = t->device[0].multiprocessors,
                     .shape = *shape,
                     .generation = plan->generation,
                     .compile = plan->compile,
                     .when = (int64_t)time(NULL)};
  strcpy(m->name, plan->name);
  strcpy(m->device, t->device[0].model);
  fg_point_expression(&plan->variant.point, sizeof m->expression, m->expression);
}

/* The most of all entry points: "attn_fwd registers 80 spill 0 stack 0" each. */
static void read_figures(const char *figures, fg_measured *m) {
  for (const char *at = figures; at && *at; at = strchr(at, '\n'), at += at != NULL) {
    int registers, spill;
    if (sscanf(at, "%*s registers %d spill %d", &registers, &spill) != 2) continue;
    if (registers > m->registers) m->registers = registers;
    if (spill > m->spill) m->spill = spill;
  }
}

static fg_status keep(const race *r, const runner *x, fg_measured_status status, double ms,
                      const char *reason) {
  fg_measured m;
  const struct verdict *v = &here.verdict[x->index];
  tune_record(r->t, x->plan, &r->cell->shape, &m);
  m.status = status, m.ms = ms;
  if (x->kernel) read_figures(cli_info(x->kernel).figures, &m);
  if (v->known) m.verified = v->good, m.error = v->error;
  snprintf(m.reason, sizeof m.reason, "%.*s", (int)strcspn(reason, "\n"), reason);
  int *const count[FG_MEASURED_KINDS] = {&r->out->measured, &r->out->slow, &r->out->wrong,
                                         &r->out->refused, &r->out->broken};
  ++*count[status];
  return fg_wisdom_append(r->t->wisdom, &m);
}

static void note_best(race *r, const char *name, double ms) {
  if (*r->out->best && ms >= r->out->ms) return;
  snprintf(r->out->best, sizeof r->out->best, "%s", name);
  r->out->ms = ms;
}

/* Before the race --------------------------------------------------------------------------- */

/* The time that an older generation took, 0 if none did. */
static double older_time(const fg_measured *like) {
  fg_measured m = *like;
  while (--m.generation > 0) {
    const fg_measured *found = fg_measured_find(&here.known, &m);
    if (found && fg_measured_counts(found)) return found->ms;
  }
  return 0;
}

/* Is it in the file already? Then it is not measured again; failures are, by a later run: the
 * kernel may be another by then. */
static bool is_known(race *r, runner *x) {
  fg_measured like;
  tune_record(r->t, x->plan, &r->cell->shape, &like);
  const fg_measured *found = fg_measured_find(&here.known, &like);
  double older = found ? 0 : older_time(&like);
  if (found && fg_measured_failed(found) && found->when < r->t->began) found = NULL;
  if (older > 0) x->expected = older, x->older = true;
  if (!found) return false;
  r->out->known++;
  if (!fg_measured_counts(found)) return true;
  x->right = true;
  note_best(r, found->name, found->ms);
  if (r->best <= 0 || found->ms < r->best) r->best = found->ms;
  return true;
}

/* Loads the plan's kernel, unless it is known or does not compile. */
static fg_status enter(race *r, runner *x) {
  const fg_device *device = fg_context_device(here.context);
  if (x->plan->skipped) return r->out->late = true, FG_OK;
  if (is_known(r, x)) return FG_OK;
  if (x->plan->failed) return keep(r, x, FG_MEASURED_REFUSED, 0, x->plan->reason);
  fg_status status = fg_variant_kernel(here.context, &x->plan->variant, &x->kernel);
  if (status == FG_ECOMPILER || status == FG_ETEMPLATE)
    return keep(r, x, FG_MEASURED_REFUSED, 0, fg_error());
  TRY(status);
  const fg_recipe *recipe = fg_kernel_recipe(x->kernel);
  const fg_cost_terms terms = fg_cost_terms_of(&x->plan->variant);
  x->plan->generation = recipe->generation;
  if (!x->older)
    x->expected = fg_cost(recipe, &terms, &r->cell->shape, device->arch, device->multiprocessors);
  return FG_OK;
}

static int by_expected(const void *left, const void *right) {
  const runner *a = left, *b = right;
  if (a->older != b->older) return a->older ? -1 : 1;
  return (a->expected > b->expected) - (a->expected < b->expected);
}

static int by_ms(const void *left, const void *right) {
  const runner *a = left, *b = right;
  if ((a->ms > 0) != (b->ms > 0)) return a->ms > 0 ? -1 : 1;
  return (a->ms > b->ms) - (a->ms < b->ms);
}

/* The race ---------------------------------------------------------------------------------- */

/* What is a kernel's fault is kept; what ended the GPU's context is told to the program, which
 * finds out whether the GPU is still there. */
static fg_status judge(race *r, runner *x, fg_status status) {
  x->ms = 0;
  if (status == FG_ETEMPLATE) return keep(r, x, FG_MEASURED_FAULT, 0, fg_error());
  if (status == FG_EARGUMENT || status == FG_EMEMORY) /* too many blocks, too large a workspace */
    return keep(r, x, FG_MEASURED_REFUSED, 0, fg_error());
  if (status != FG_ECUDA) return status;
  r->out->again = true, r->out->fault = x->index;
  here.spent = 1;
  return status;
}

/* A GPU that hangs lets nobody go: the process ends, and the program hears which plan it was. The
 * host device finds such kernels itself. */
static tune_outcome *watched;

static void on_alarm(int signal) {
  (void)signal;
  watched->again = watched->hung = true;
  _exit(FG_POOL_RENEW);
}

static void watch(const race *r, const runner *x) {
  struct sigaction action = {.sa_handler = on_alarm};
  if (r->host) return;
  watched = r->out, r->out->fault = x->index;
  sigaction(SIGALRM, &action, NULL);
  alarm((unsigned)fg_setting_number(FG_SET_TUNE_SECONDS));
}

static fg_status time_watched(const race *r, const runner *x, int warm_ups, int launches,
                              bool pause, double *ms) {
  watch(r, x);
  fg_status status = cli_time(r->tensors, x->kernel, warm_ups, launches, pause, ms);
  alarm(0);
  return status;
}

/* Few launches; one that is far behind has its time at once. */
static fg_status run_quick(race *r, runner *x) {
  double ms = 0;
  fg_status status = time_watched(r, x, !r->host, 1, false, &ms);
  bool far = r->best > 0 && ms > FAR * r->best;
  if (status == FG_OK && !far && !r->host) status = time_watched(r, x, 0, QUICK, false, &ms);
  if (status != FG_OK) return judge(r, x, status);
  x->ms = ms;
  if (r->best <= 0 || ms < r->best) r->best = ms;
  return FG_OK;
}

static fg_status verify(const race *r, runner *x) {
  verify_number numbers[16];
  verify_verdict verdict;
  struct verdict *v = &here.verdict[x->index];
  const cli *c = r->t->c;
  verify_case which = {.shape = cli_work_of(&x->plan->variant.point)->tune,
                       .given = c->arguments.has_scale ? FG_GIVEN_SCALE : 0,
                       .scale = (float)c->arguments.scale,
                       .launch = c->arguments.launch,
                       .seed = 2,
                       .n_numbers = c->n_numbers,
                       .number = numbers};
  if (v->known) return FG_OK;
  for (int i = 0; i < c->n_numbers; i++)
    numbers[i] = (verify_number){c->number[i].name, c->number[i].value};
  TRY(verify_run(&x->plan->variant, fg_kernel_source(x->kernel), fg_kernel_module(x->kernel),
                 &which, 0, &verdict));
  v->known = true, v->good = verdict.pass, v->error = 0;
  for (int i = 0; i < verdict.n; i++) {
    double share = verdict.tensor[i].error / verdict.tensor[i].limit;
    if (share <= v->error) continue;
    v->error = share;
    snprintf(v->reason, sizeof v->reason, "%s: %.3g times the error that counts as right",
             verdict.tensor[i].name, share);
  }
  return FG_OK;
}

/* The verdict, then the protocol. */
static fg_status run_final(race *r, runner *x) {
  const struct verdict *v = &here.verdict[x->index];
  double ms = 0;
  watch(r, x);
  fg_status status = verify(r, x);
  alarm(0);
  if (status != FG_OK) return judge(r, x, status);
  if (!v->good) return keep(r, x, FG_MEASURED_WRONG, 0, v->reason);
  status = cli_poison(r->tensors);
  if (status == FG_OK)
    status = time_watched(r, x, r->host ? 0 : CLI_WARM_UPS, r->host ? 1 : CLI_LAUNCHES,
                          !r->host && r->best > 0.1, &ms);
  if (status == FG_OK) status = cli_poison_gone(r->tensors);
  if (status != FG_OK) return judge(r, x, status);
  x->right = true;
  note_best(r, x->plan->name, ms);
  return keep(r, x, FG_MEASURED_OK, ms, "");
}

/* Has its family no time that counts yet? */
static bool leads_family(const race *r, const runner *x) {
  const char *family = fg_plan_family(&x->plan->variant.plan);
  for (int i = 0; i < r->cell->n; i++) {
    const runner *other = &r->runner[i];
    if (other->right && !strcmp(fg_plan_family(&other->plan->variant.plan), family)) return false;
  }
  return true;
}

/* In the order of their times. Once half of them have a time, or one that is near, those that are
 * behind have lost, but for the first one of a family that is not far behind; as long as the first
 * ones are wrong the next ones run. */
static fg_status run_finals(race *r) {
  const int n = r->cell->n;
  double first = *r->out->best ? r->out->ms : 0; /* of those that are right */
  int racing = 0;
  qsort(r->runner, (size_t)n, sizeof *r->runner, by_ms);
  while (racing < n && r->runner[racing].ms > 0) racing++;
  const int most = r->out->measured + (racing > 4 ? (racing + 1) / 2 : racing);
  for (int i = 0; i < racing; i++) {
    runner *x = &r->runner[i];
    const int right = r->out->measured;
    const double ms = x->ms;
    const bool lost = right >= most || (first > 0 && ms > NEAR * first);
    if (lost && (ms > FAR * first || !leads_family(r, x))) {
      TRY(keep(r, x, FG_MEASURED_SLOW, ms, ""));
      continue;
    }
    if (cli_interrupted) return r->out->interrupted = true, FG_OK;
    if (tune_is_late(r->t, 1)) return r->out->late = true, FG_OK;
    TRY(run_final(r, x));
    if (r->out->measured > right && first <= 0) first = ms;
  }
  return FG_OK;
}

static fg_status run_race(race *r) {
  const int n = r->cell->n;
  for (int i = 0; i < n; i++) TRY(enter(r, &r->runner[i]));
  qsort(r->runner, (size_t)n, sizeof *r->runner, by_expected);
  for (int i = 0; i < n; i++) {
    runner *x = &r->runner[i];
    if (!x->kernel) continue;
    if (cli_interrupted) return r->out->interrupted = true, FG_OK;
    if (tune_is_late(r->t, 1)) return r->out->late = true, FG_OK;
    if (!r->tensors)
      TRY(cli_tensors_new(r->t->c, fg_context_device(here.context), fg_kernel_recipe(x->kernel),
                          &r->cell->shape, &r->tensors));
    TRY(run_quick(r, x));
  }
  return run_finals(r);
}

void tune_measure(void *context, int i, void *result) {
  tune *t = context;
  race r = {.t = t, .cell = &t->cell[i], .out = result};
  fg_status status = FG_OK;
  if (tune_is_late(t, 1)) {
    r.out->late = true;
    return;
  }
  TRY_OUT(open_process(t));
  r.host = fg_arch_is_host(fg_context_device(here.context)->arch);
  r.runner = calloc((size_t)r.cell->n, sizeof *r.runner);
  if (!r.runner) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for %d plans", r.cell->n));
  for (int p = 0; p < r.cell->n; p++)
    r.runner[p] = (runner){.plan = &t->plan[r.cell->first + p], .index = r.cell->first + p};
  status = run_race(&r);
out:
  r.out->status = status;
  if (status != FG_OK) snprintf(r.out->text, sizeof r.out->text, "%s", fg_error());
  if (status != FG_OK && cli_interrupted) r.out->interrupted = true;
  cli_tensors_free(r.tensors);
  for (int p = 0; p < r.cell->n && r.runner; p++) fg_kernel_free(r.runner[p].kernel);
  free(r.runner);
}
