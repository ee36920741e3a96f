/* tune.c - `flashgen tune`: times the plans of specs at shapes and keeps what comes of it. */
#include "tune.h"

#include "base/setting.h"
#include "pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  tune t;
  int *list, n_list; /* cells of this round */
  struct fault {
    int plan, cell;
    bool hung;
  } * fault; /* plans that broke a GPU in it */
  int n_fault;
  fg_status machine; /* what stopped it: the machine, not a kernel */
  int finished, best, failed, wrong, late;
  cli_progress progress;
} job;

/* Devices ----------------------------------------------------------------------------------- */

typedef struct {
  fg_status status;
  char text[1024];
  tune_device device;
} probe;

static void probe_device(void *context, int i, void *result) {
  const tune *t = context;
  probe *p = result;
  fg_device *d;
  p->status = fg_device_open(t->device[i].name, &d);
  if (p->status != FG_OK) {
    snprintf(p->text, sizeof p->text, "%s", fg_error());
    return;
  }
  p->device.multiprocessors = d->multiprocessors;
  strcpy(p->device.name, d->name);
  strcpy(p->device.arch, d->arch);
  strcpy(p->device.model, d->model);
  fg_device_close(d);
}

static fg_status probed; /* the worst of all */
static int take_device(void *context, int i, const void *result, int died) {
  tune *t = context;
  const probe *p = result;
  if (died) probed = fg_fail(FG_EENVIRONMENT, "the driver's process died of signal %d", died);
  if (!died && p->status != FG_OK) probed = fg_fail(p->status, "%s", p->text);
  if (!died && p->status == FG_OK) t->device[i] = p->device;
  return probed != FG_OK;
}

/* In processes of their own: this one stays fit to fork. */
static fg_status probe_devices(tune *t) {
  static const volatile int never;
  fg_pool pool = {.n = t->n_devices,
                  .workers = t->n_devices,
                  .result_size = sizeof(probe),
                  .job = probe_device,
                  .done = take_device,
                  .context = t,
                  .stop = &never};
  probed = FG_OK;
  TRY(fg_pool_run(&pool));
  return probed;
}

/* "cuda:0,cuda:1" */
static fg_status read_devices(tune *t) {
  const char *const names = cli_measuring_device(t->c), *at = names;
  do {
    size_t n = strcspn(at, ",");
    if (t->n_devices == TUNE_DEVICES || n >= sizeof t->device[0].name)
      return fg_fail(FG_EARGUMENT, "--device %s: expected host, or up to %d like cuda:0,cuda:1",
                     names, TUNE_DEVICES);
    snprintf(t->device[t->n_devices++].name, sizeof t->device[0].name, "%.*s", (int)n, at);
    at += n + (at[n] == ',');
  } while (*at);
  TRY(cli_measuring_opened(t->c, probe_devices(t)));
  for (int i = 0; i < t->n_devices; i++)
    if (!fg_arch_is_host(t->device[i].arch) && !strcmp(t->device[i].name, t->device[i].arch))
      return fg_fail(FG_EARGUMENT, "--device %s: it compiles only, and nothing is measured there",
                     t->device[i].name);
  for (int i = 1; i < t->n_devices; i++) {
    const tune_device *a = &t->device[0], *b = &t->device[i];
    for (int k = 0; k < i; k++)
      if (!strcmp(t->device[k].name, b->name))
        return fg_fail(FG_EARGUMENT, "--device: %s is given twice", b->name);
    if (fg_arch_is_host(b->arch) || strcmp(a->model, b->model))
      return fg_fail(FG_EARGUMENT,
                     "--device: %s is %s and %s is %s; only GPUs of one model share a "
                     "grid",
                     a->name, a->model, b->name, b->model);
  }
  return FG_OK;
}

/* Measuring --------------------------------------------------------------------------------- */

static void print_counts(const tune_outcome *o) {
  const struct {
    int n;
    const char *word;
  } counts[] = {{o->known, "known"}, {o->measured, "timed"},  {o->slow, "slow"},
                {o->wrong, "WRONG"}, {o->refused, "refused"}, {o->broken, "broken"}};
  const char *separator = "  ";
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    if (counts[i].n) printf("%s%d %s", separator, counts[i].n, counts[i].word), separator = ", ";
}

static void print_cell(const job *j, const tune_cell *cell, const tune_outcome *o, int died) {
  const tune *t = &j->t;
  const fg_shape *s = &cell->shape;
  char shape[FG_BRIEF_MAX], name[FG_NAME_MAX];
  if (t->c->json || t->c->csv) return;
  fg_shape_brief(s, sizeof shape, shape);
  fg_point_name(&t->grid->point[cell->point], sizeof name, name);
  printf("%-24s ", shape);
  if (died)
    printf("%s: its process died of signal %d", name, died);
  else if (!*o->best)
    printf("%s: no plan has a time%s%s", name, *o->text ? ": " : "", o->text);
  else
    printf("%-56s %10.4f ms %8.2f TFLOP/s", o->best, o->ms,
           cli_flops(t->c, &t->grid->point[cell->point], s) / o->ms * 1e-9);
  if (!died) print_counts(o);
  printf("\n");
}

static void measure_cell(void *context, int i, void *result) {
  job *j = context;
  tune_measure(&j->t, j->list[i], result);
}

static int spent(void *context) { return tune_measure_spent(context); }

static bool is_machine(fg_status status) {
  return status == FG_EIO || status == FG_EENVIRONMENT || status == FG_ECUDA;
}

static int take_cell(void *context, int i, const void *result, int died) {
  job *j = context;
  const tune_outcome *o = result;
  tune_cell *cell = &j->t.cell[j->list[i]];
  if (o->interrupted) return 1;
  cell->again = !died && o->again && ++cell->rounds <= cell->n;
  if (cell->again) {
    j->fault[j->n_fault++] = (struct fault){o->fault, j->list[i], o->hung};
    return 0;
  }
  if (is_machine(o->status)) return j->machine = fg_fail(o->status, "%s", o->text), 1;
  j->late += o->late;
  cli_progress_end(&j->progress);
  if (!o->late || *o->best) print_cell(j, cell, o, died);
  cli_flush();
  j->finished += !o->late;
  j->best += *o->best != 0;
  j->failed += !o->late && !*o->best;
  j->wrong += o->wrong;
  char line[FG_NAME_MAX + 32];
  snprintf(line, sizeof line, "%s %.4f ms", o->best, o->ms);
  if (!o->late || *o->best) cli_progress_step(&j->progress, !*o->best, *o->best ? line : "");
  return 0;
}

/* The GPU is there: so it was the kernels. The next round passes over them. */
static fg_status keep_faults(job *j) {
  for (int i = 0; i < j->n_fault; i++) {
    const struct fault *f = &j->fault[i];
    fg_measured m;
    tune_record(&j->t, &j->t.plan[f->plan], &j->t.cell[f->cell].shape, &m);
    m.status = FG_MEASURED_FAULT;
    if (f->hung)
      snprintf(m.reason, sizeof m.reason, "its launches did not end within %d seconds (%s)",
               (int)fg_setting_number(FG_SET_TUNE_SECONDS), fg_settings[FG_SET_TUNE_SECONDS].name);
    else
      strcpy(m.reason, "its launch ended the GPU's context");
    TRY(fg_wisdom_append(j->t.wisdom, &m));
  }
  j->n_fault = 0;
  return FG_OK;
}

static fg_status measure_round(job *j) {
  fg_pool pool = {.n = j->n_list,
                  .workers = j->t.n_devices,
                  .result_size = sizeof(tune_outcome),
                  .job = measure_cell,
                  .done = take_cell,
                  .start = tune_measure_start,
                  .spent = spent,
                  .context = j,
                  .stop = &cli_interrupted};
  fg_status status = fg_pool_run(&pool);
  cli_progress_end(&j->progress);
  TRY(status);
  if (j->machine != FG_OK) return j->machine;
  if (j->n_fault) TRY(probe_devices(&j->t));
  return keep_faults(j);
}

/* Cells whose process had to end come again. */
static fg_status measure_all(job *j) {
  tune *t = &j->t;
  for (int i = 0; i < t->n_cells; i++) t->cell[i].again = true;
  if (!t->c->quiet)
    fprintf(stderr, "%d cell%s to measure on %d device%s\n", t->n_cells, cli_s(t->n_cells),
            t->n_devices, cli_s(t->n_devices));
  cli_progress_start(&j->progress, t->c, t->n_cells);
  for (;;) {
    j->n_list = 0;
    for (int i = 0; i < t->n_cells; i++)
      if (t->cell[i].again) j->list[j->n_list++] = i, t->cell[i].again = false;
    if (!j->n_list || cli_interrupted) return FG_OK;
    TRY(measure_round(j));
  }
}

/* What is in the file of this grid's cells. */
static fg_status print_all(const job *j) {
  const tune *t = &j->t;
  fg_measured_list list = {0};
  fg_wisdom w;
  int printed = 0;
  TRY(fg_wisdom_read(t->wisdom, true, &w));
  fg_status status = fg_measured_add(w.text, w.n, &list);
  fg_wisdom_free(&w);
  TRY(status);
  fg_measured_sort(&list);
  if (t->c->csv) cli_measured_csv(NULL);
  for (int c = 0; c < t->n_cells; c++)
    for (int p = 0; p < t->cell[c].n; p++) {
      fg_measured like;
      tune_record(t, &t->plan[t->cell[c].first + p], &t->cell[c].shape, &like);
      const fg_measured *found = fg_measured_find(&list, &like);
      if (!found) continue;
      if (t->c->csv)
        cli_measured_csv(found);
      else
        cli_measured_json(found, printed == 0);
      printed++;
    }
  fg_measured_free(&list);
  return FG_OK;
}

static fg_status print_sum(const job *j, fg_status ended) {
  const tune *t = &j->t;
  const bool complete = j->finished == t->n_cells;
  if (t->c->json) printf("{\"schema\": 2, \"device\": \"%s\", \"measured\": [", t->device[0].model);
  if (t->c->json || t->c->csv) TRY(print_all(j));
  if (t->c->json)
    printf("\n], \"cells\": %d, \"finished\": %d, \"failed\": %d, \"wrong\": %d, \"complete\": "
           "%s}\n",
           t->n_cells, j->finished, j->failed, j->wrong, complete ? "true" : "false");
  else if (!t->c->csv)
    printf("%d of %d cell%s finished, %d with a best plan; %s\n", j->finished, t->n_cells,
           cli_s(t->n_cells), j->best, t->wisdom);
  const bool broken = ended != FG_OK && !cli_interrupted; /* which was said */
  if (complete || t->c->quiet || broken) return FG_OK;
  fprintf(stderr, "flashgen: %s: the same command goes on where this one ended\n",
          cli_interrupted ? "interrupted" : "the budget is spent");
  return FG_OK;
}

/* ---------------------------------------------------------------------------------------- */

/* --wisdom, else the first file of FLASHGEN_WISDOM. */
static fg_status find_file(tune *t) {
  const char *text = t->c->wisdom ? t->c->wisdom : fg_setting_text(FG_SET_WISDOM, NULL);
  size_t n = t->c->wisdom ? strlen(text) : strcspn(text, ":");
  if (!n || (!t->c->wisdom && !strcmp(text, "none")))
    return fg_fail(FG_EARGUMENT, "tune needs --wisdom FILE, where measurements go, or %s",
                   fg_settings[FG_SET_WISDOM].name);
  if (n >= sizeof t->wisdom) return fg_fail(FG_EARGUMENT, "--wisdom: the name is too long");
  snprintf(t->wisdom, sizeof t->wisdom, "%.*s", (int)n, text);
  return FG_OK;
}

/* What is in it that this flashgen cannot go on from. */
static fg_status check_file(const tune *t) {
  fg_wisdom w;
  fg_wisdom_report lines;
  TRY(fg_wisdom_check(t->wisdom));
  TRY(cli_result_spares(t->wisdom));
  TRY(fg_wisdom_read(t->wisdom, false, &w));
  fg_wisdom_count(&w, &lines);
  fg_wisdom_free(&w);
  cli_wisdom_warn(t->wisdom, &lines);
  return FG_OK;
}

static fg_status start(job *j) {
  tune *t = &j->t;
  t->start = tune_now();
  t->began = (int64_t)time(NULL);
  TRY(fg_switches_refuse("tune"));
  if (t->c->budget > 0) t->deadline = t->start + (double)t->c->budget;
  if (t->c->arguments.sm_margin)
    return fg_fail(FG_EARGUMENT, "tune takes no sm_margin: wisdom is of launches on a whole GPU");
  if (!t->c->shapes) return fg_fail(FG_EARGUMENT, "tune needs --shapes FILE.lua");
  TRY(find_file(t));
  TRY(read_devices(t));
  TRY(tune_grid_read(t));
  TRY(check_file(t));
  if (t->left_out)
    fprintf(stderr, "flashgen: %d spec%s left out: nothing is to be chosen there%s\n", t->left_out,
            t->left_out == 1 ? " is" : "s are",
            t->c->filter ? " within --filter" : ", only simt computes them");
  const int most = t->n_plans > t->n_cells ? t->n_plans : t->n_cells;
  j->list = calloc((size_t)most + 1, sizeof *j->list);
  j->fault = calloc((size_t)t->n_cells + 1, sizeof *j->fault);
  if (!j->list || !j->fault) return fg_fail(FG_EMEMORY, "no memory for %d cells", most);
  return FG_OK;
}

static int run(cli *c) {
  static job j; /* large */
  j.t.c = c;
  fg_status status = start(&j);
  if (status == FG_OK) status = tune_compile(&j.t);
  if (status == FG_OK && !cli_interrupted) status = measure_all(&j);
  if (status != FG_OK && *j.t.wisdom && j.list) {
    cli_fail(status);
    if (!cli_interrupted)
      fprintf(stderr,
              "flashgen: what was measured until then is in %s; the same command goes on from "
              "there\n",
              j.t.wisdom);
  } else if (status != FG_OK) {
    cli_fail(status);
  }
  if (j.list) print_sum(&j, status);
  tune_grid_free(&j.t);
  free(j.list);
  free(j.fault);
  if (status != FG_OK) return cli_exit_code(status);
  return j.wrong ? CLI_NUMBERS : j.failed ? CLI_KERNEL : CLI_OK;
}

const cli_command cli_tune = {
    .name = "tune",
    .line = "times every plan of specs at shapes, and keeps it as wisdom",
    .usage = "SPEC.lua ... --shapes FILE.lua [WORD ...]",
    .options = " help json csv quiet filter shapes wisdom device budget shard jobs seed ",
    .examples =
        "  flashgen tune specs/training.lua --shapes specs/shapes/llm.lua --wisdom h200.txt\n"
        "  flashgen tune specs/training.lua --shapes specs/shapes/llm.lua --wisdom h200.txt \\\n"
        "      --device cuda:0,cuda:1 --budget 500 --filter 'attn_bwd*'\n"
        "  flashgen tune head_dim=64 --shapes specs/shapes/small.lua --device host --wisdom w.txt\n"
        "  flashgen tune ... --wisdom part1.txt --shard 1/4      one of four machines; then\n"
        "  flashgen wisdom merge all.txt part1.txt part2.txt part3.txt part4.txt\n"
        "What is in the file is not measured again: the same command goes on where one ended.\n"
        "other words: scale=X; width=128 sets an input that is a number\n",
    .takes_arguments = 1,
    .run = run};
