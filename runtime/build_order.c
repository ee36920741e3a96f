/* build_order.c - fg_build: a zoo out of specs, by threads that compile. */
#include "build.h"
#include "kernels.h"
#include "plain.h"
#include "sized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Threads: NVRTC takes 100 MB and 20 more for each; stacks are of address space. */
enum { JOBS_MAX = 64, JOBS_DEFAULT = 8, STACK = 8 << 20 };

/* What a thread leaves of a variant. */
typedef struct {
  bool done, kept;
  fg_status status;
  char *text; /* of a failure, or why another plan is taken; NULL */
  fg_zoo_record record;
} outcome;

typedef struct {
  fg_context *context;
  const fg_order *order;
  fg_gen *gen; /* of the caller's thread */
  fg_grid *grid;
  fg_zoo_make *make;
  fg_variant *variant; /* sorted by name */
  fg_build_compilers compilers;
  int n;
  fg_built built;

  pthread_mutex_t lock; /* of the rest */
  pthread_cond_t landed;
  outcome *outcome; /* of each variant */
  int next;         /* variant that nobody is at */
  bool stop;
} job;

static const volatile int never; /* a build that nothing interrupts */

/* What there is to make ------------------------------------------------------------------------ */

static fg_status read_specs(job *j) {
  const fg_order *o = j->order;
  const char **text = calloc(2 * (size_t)o->n_specs + 1, sizeof *text);
  int files = 0, words = 0;
  if (!text) return fg_fail(FG_EMEMORY, "no memory for %d specs", o->n_specs);
  const char **word = text + o->n_specs;
  for (int i = 0; i < o->n_specs; i++) {
    size_t n = strlen(o->specs[i]);
    if (n > 4 && !strcmp(o->specs[i] + n - 4, ".lua"))
      text[files++] = o->specs[i];
    else
      word[words++] = o->specs[i];
  }
  fg_status status = fg_grid_read(files, text, words, word, &j->grid);
  if (status == FG_OK) status = fg_grid_without_launch(j->grid);
  free(text);
  return status;
}

static fg_status add_variant(job *j, const fg_point *point, const fg_plan *plan, const char *arch) {
  fg_variant *grown = realloc(j->variant, ((size_t)j->n + 1) * sizeof *grown);
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d variants", j->n + 1);
  j->variant = grown;
  grown[j->n] = (fg_variant){.point = *point, .plan = *plan};
  strcpy(grown[j->n++].arch, arch);
  return FG_OK;
}

/* The best plans of a point that may join. */
static fg_status add_point(job *j, const fg_point *point, const fg_limits *limits,
                           const char *arch) {
  int most = j->order->plans > 0 ? j->order->plans : j->order->plans < 0 ? INT32_MAX : 1;
  int n, taken = 0;
  char name[FG_NAME_MAX];
  fg_plan *plans;
  fg_status status = fg_gen_plans(j->gen, point, arch, limits, &plans, &n);
  fg_point_name(point, sizeof name, name);
  if (status != FG_OK) return fg_fail_in(status, "%s", name);
  for (int i = 0; i < n && taken < most && status == FG_OK; i++) {
    if (!fg_build_takes(point, limits, &plans[i])) continue;
    status = add_variant(j, point, &plans[i], arch);
    taken++;
  }
  j->built.left_out += !taken;
  free(plans);
  return status;
}

static fg_status add_archs(job *j) {
  const char *archs = j->order->arch ? j->order->arch : j->context->device->arch;
  do {
    char arch[FG_ARCH_MAX];
    TRY(fg_arch_take(&archs, arch));
    for (int i = 0; i < j->grid->n; i++)
      TRY(add_point(j, &j->grid->point[i], j->grid->limits[i], arch));
  } while (*archs);
  return FG_OK;
}

static fg_status start(job *j) {
  char note[1024];
  TRY(fg_gen_new(j->context->templates, &j->gen));
  TRY(read_specs(j));
  TRY(add_archs(j));
  if (!j->n) return fg_build_nothing();
  j->n = j->built.variants = fg_build_sort(j->n, j->variant); /* two tables may share one */
  TRY(fg_build_find_compilers(j->n, j->variant, &j->compilers));
  j->outcome = calloc((size_t)j->n, sizeof *j->outcome);
  if (!j->outcome) return fg_fail(FG_EMEMORY, "no memory for %d variants", j->n);
  TRY(fg_zoo_make_open(j->order->directory, &never, sizeof note, note, &j->make));
  if (*note) fg_context_warn(j->context, "%s", note);
  return FG_OK;
}

/* Making it, in a thread ----------------------------------------------------------------------- */

static void build_one(job *j, fg_gen *gen, fg_variant *variant, outcome *o) {
  const fg_grid *best = j->order->plans == 0 || j->order->plans == 1 ? j->grid : NULL;
  fg_build_made made = {0};
  o->status = fg_build_best(j->make, gen, best, variant, &j->compilers, &never, &made);
  if (o->status == FG_OK) {
    variant->plan = made.plan;
    o->status = fg_build_record(variant, &made, &o->record);
  }
  if (o->status != FG_OK || *made.refused)
    o->text = strdup(o->status != FG_OK ? fg_error() : made.refused);
  o->kept = made.kept;
}

/* A thread without a template state leaves its part to the others; the caller's has one. */
static void *work(void *context) {
  job *j = context;
  fg_gen *own = NULL, *gen;
  fg_plain_begin(); /* for as long as the thread lives */
  pthread_mutex_lock(&j->lock);
  gen = j->gen; /* the first thread takes it */
  j->gen = NULL;
  if (!gen) {
    pthread_mutex_unlock(&j->lock);
    if (fg_gen_new(j->context->templates, &own) != FG_OK) return NULL;
    gen = own;
    pthread_mutex_lock(&j->lock);
  }
  while (!j->stop && j->next < j->n) {
    int i = j->next++;
    pthread_mutex_unlock(&j->lock);
    build_one(j, gen, &j->variant[i], &j->outcome[i]);
    pthread_mutex_lock(&j->lock);
    j->outcome[i].done = true;
    pthread_cond_signal(&j->landed);
  }
  if (!own) j->gen = gen;
  pthread_mutex_unlock(&j->lock);
  fg_gen_free(own);
  return NULL;
}

/* Its results, in the caller's ------------------------------------------------------------------
 */

/* NULL: it is in the zoo. */
static const char *reason_of(const outcome *o) {
  return o->status == FG_OK ? NULL : o->text ? o->text : "no memory for the reason";
}

static fg_status fail_with(const outcome *o) { return fg_fail(o->status, "%s", reason_of(o)); }

/* Outcome i, in order; *go_on = false: the order's owner has enough. */
static fg_status take(job *j, int i, fg_status *failure, int *failed, bool *go_on) {
  const fg_order *order = j->order;
  const outcome *o = &j->outcome[i];
  char name[FG_NAME_MAX];
  if (fg_build_ends(o->status)) return fail_with(o);
  j->built.made += o->status == FG_OK && !o->kept;
  j->built.kept += o->status == FG_OK && o->kept;
  if (o->status != FG_OK && !j->built.failed++) *failure = o->status, *failed = i;
  if (o->status == FG_OK && o->text)
    fg_context_warn(j->context, "another plan is taken: %s", o->text);
  fg_variant_name(&j->variant[i], sizeof name, name);
  if (order->progress && order->progress(order->progress_context, name, reason_of(o), i + 1, j->n))
    *go_on = false;
  return FG_OK;
}

static fg_status finish(job *j) {
  const fg_order *o = j->order;
  fg_zoo_record *record = calloc((size_t)j->n, sizeof *record);
  int n = 0;
  bool changed;
  if (!record) return fg_fail(FG_EMEMORY, "no memory for %d variants", j->n);
  for (int i = 0; i < j->n; i++) {
    fg_zoo_record *own = &j->outcome[i].record;
    if (j->outcome[i].status == FG_OK) record[n++] = *own, own->block = NULL;
  }
  n = fg_build_sort_records(n, record); /* another plan may have another place */
  fg_status status = fg_zoo_finish(j->make, n, record, &j->built.removed, &changed);
  if (status == FG_OK && o->embed)
    status = fg_zoo_embed(j->make, o->directory, o->embed, n, record, &changed);
  while (n--) free(record[n].block);
  free(record);
  return status;
}

static fg_status take_all(job *j) {
  fg_status failure = FG_OK, status = FG_OK;
  int failed = 0, i = 0;
  bool go_on = true;
  for (; i < j->n && go_on && status == FG_OK; i++) {
    pthread_mutex_lock(&j->lock);
    while (!j->outcome[i].done) pthread_cond_wait(&j->landed, &j->lock);
    pthread_mutex_unlock(&j->lock);
    status = take(j, i, &failure, &failed, &go_on);
  }
  TRY(status);
  if (i == j->n) TRY(finish(j));
  return failure == FG_OK ? FG_OK : fail_with(&j->outcome[failed]);
}

static int jobs_of(const job *j) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  long jobs = j->order->jobs > 0 ? j->order->jobs : cores <= JOBS_DEFAULT ? cores : JOBS_DEFAULT;
  if (jobs > JOBS_MAX) jobs = JOBS_MAX;
  return jobs < 1 ? 1 : jobs > j->n ? j->n : (int)jobs;
}

static fg_status build_all(job *j) {
  pthread_t thread[JOBS_MAX];
  pthread_attr_t attr;
  int n = 0;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, STACK);
  for (int jobs = jobs_of(j); n < jobs; n++)
    if (pthread_create(&thread[n], &attr, work, j)) break;
  pthread_attr_destroy(&attr);
  fg_status status = n ? take_all(j) : fg_fail(FG_EMEMORY, "no thread to compile in");
  pthread_mutex_lock(&j->lock);
  j->stop = true;
  pthread_mutex_unlock(&j->lock);
  while (n--) pthread_join(thread[n], NULL);
  return status;
}

static void end(job *j) {
  for (int i = 0; i < j->n && j->outcome; i++) {
    free(j->outcome[i].record.block);
    free(j->outcome[i].text);
  }
  fg_zoo_make_close(j->make);
  fg_grid_free(j->grid);
  fg_gen_free(j->gen);
  free(j->outcome);
  free(j->variant);
  pthread_mutex_destroy(&j->lock);
  pthread_cond_destroy(&j->landed);
}

fg_status fg_build(fg_context *c, const fg_order *given, fg_built *built) {
  fg_order order = {0};
  TRY(FG_GIVEN({"context", c}, {"order", given}));
  TRY(fg_context_check(c));
  TRY(fg_size_check("order", given->size, sizeof order));
  if (built) TRY(fg_size_check("built", built->size, sizeof *built));
  memcpy(&order, given, given->size);
  if (!order.directory || order.n_specs < 0 || (order.n_specs && !order.specs))
    return fg_fail(FG_EARGUMENT, "order: it needs a directory, and specs where n_specs is not 0");
  if (order.plans < -1 || order.jobs < 0)
    return fg_fail(FG_EARGUMENT, "order: plans = %d and jobs = %d: there are no so many",
                   order.plans, order.jobs);
  for (int i = 0; i < order.n_specs; i++)
    if (!order.specs[i]) return fg_fail(FG_EARGUMENT, "order: specs[%d] is NULL", i);
  if (order.embed) TRY(fg_zoo_embed_check(order.directory, order.embed));
  job *j = calloc(1, sizeof *j); /* large */
  if (!j) return fg_fail(FG_EMEMORY, "no memory for a zoo");
  j->context = c;
  j->order = &order;
  pthread_mutex_init(&j->lock, NULL);
  pthread_cond_init(&j->landed, NULL);
  locale_t own = fg_plain_begin();
  fg_status status = start(j);
  fg_plain_end(own);
  if (status == FG_OK) {
    status = build_all(j);
    if (built) {
      j->built.size = built->size;
      memcpy(built, &j->built, built->size);
    }
  }
  end(j);
  free(j);
  return status;
}
