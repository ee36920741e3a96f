/* build.c - a zoo out of specs: fg_build, one variant after the other. */
#include "build.h"
#include "context.h"
#include "point_formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One variant ---------------------------------------------------------------------------------- */

bool fg_build_takes(const fg_limits *limits, const fg_plan *plan) {
  return limits->n[0] || strcmp(fg_plan_family(plan), "simt") != 0;
}

fg_status fg_build_nothing(void) {
  return fg_fail(FG_ESPEC,
                 "simt joins a zoo only when named: family=simt; no other family computes "
                 "any of these");
}

bool fg_build_ends(fg_status status) {
  return status == FG_EIO || status == FG_EMEMORY || status == FG_EENVIRONMENT ||
         status == FG_ECUDA;
}

static fg_status add_code(fg_zoo_make *make, const fg_variant *variant, const fg_source *source,
                          fg_zoo_item *item, fg_build_made *made) {
  fg_code code = {0};
  fg_status status = FG_OK;
  fg_zoo_digest(source->text, source->size, item->source);
  made->kept = fg_zoo_recall(make, item);
  if (!made->kept) {
    TRY_OUT(fg_compile(variant->arch, item->name, source, &code));
    item->figures = code.figures;
    TRY_OUT(fg_zoo_stage(make, &code, item));
  }
  made->size = item->size;
  TRY_OUT(fg_zoo_print(item, made->block));
out:
  free(code.data);
  return status;
}

fg_status fg_build_variant(fg_zoo_make *make, fg_gen *gen, const fg_variant *variant,
                           const char *compiler, fg_build_made *made) {
  fg_source *source;
  char name[FG_NAME_MAX], recipe[FG_RECIPE_TEXT], expression[FG_ZOO_EXPRESSION];
  fg_zoo_item item = {
      .name = name, .expression = expression, .compiler = compiler, .recipe = recipe};
  if (fg_point_expression(&variant->point, sizeof expression, expression) >= FG_ZOO_EXPRESSION)
    return fg_fail(FG_ESPEC, "the expressions are longer than %d bytes: too long for a zoo",
                   FG_ZOO_EXPRESSION - 1);
  fg_variant_name(variant, sizeof name, name);
  TRY(fg_gen_expand(gen, variant, &source));
  fg_recipe_print(&source->recipe, sizeof recipe, recipe);
  fg_status status = add_code(make, variant, source, &item, made);
  fg_source_free(source);
  return status;
}

int fg_build_by_name(const void *left, const void *right) {
  char a[FG_NAME_MAX], b[FG_NAME_MAX];
  fg_variant_name(left, sizeof a, a);
  fg_variant_name(right, sizeof b, b);
  return strcmp(a, b);
}

fg_status fg_build_record(const fg_variant *variant, const fg_build_made *made,
                          fg_zoo_record *record) {
  if (!(record->block = strdup(made->block)))
    return fg_fail(FG_EMEMORY, "no memory for a manifest");
  fg_variant_name(variant, sizeof record->name, record->name);
  return FG_OK;
}

/* The order ------------------------------------------------------------------------------------ */

typedef struct {
  const fg_order *order;
  const char *arch;
  fg_gen *gen;
  fg_grid *grid;
  fg_zoo_make *make;
  fg_variant *variant; /* sorted by name */
  fg_zoo_record *record;
  int n, n_records;
  char compiler[FG_COMPILER_MAX], sentence[1024]; /* sentence: of the first variant that failed */
  fg_status failure;
  fg_built built;
} job;

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
  free(text);
  return status;
}

static fg_status add_variant(job *j, const fg_point *point, const fg_plan *plan) {
  fg_variant *grown = realloc(j->variant, ((size_t)j->n + 1) * sizeof *grown);
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d variants", j->n + 1);
  j->variant = grown;
  grown[j->n] = (fg_variant){.point = *point, .plan = *plan};
  strcpy(grown[j->n++].arch, j->arch);
  return FG_OK;
}

/* The best plans of a point that may join. */
static fg_status add_point(job *j, const fg_point *point, const fg_limits *limits) {
  int most = j->order->plans > 0 ? j->order->plans : j->order->plans < 0 ? INT32_MAX : 1;
  int n, taken = 0;
  char name[FG_NAME_MAX];
  fg_plan *plans;
  fg_status status = fg_gen_plans(j->gen, point, j->arch, limits, &plans, &n);
  fg_point_name(point, sizeof name, name);
  if (status != FG_OK) return fg_fail_in(status, "%s", name);
  for (int i = 0; i < n && taken < most && status == FG_OK; i++) {
    if (!fg_build_takes(limits, &plans[i])) continue;
    status = add_variant(j, point, &plans[i]);
    taken++;
  }
  j->built.left_out += !taken;
  free(plans);
  return status;
}

/* Two tables may come to one variant. */
static void sort_variants(job *j) {
  int n = 0;
  qsort(j->variant, (size_t)j->n, sizeof *j->variant, fg_build_by_name);
  for (int i = 0; i < j->n; i++)
    if (!n || fg_build_by_name(&j->variant[n - 1], &j->variant[i])) j->variant[n++] = j->variant[i];
  j->n = j->built.variants = n;
}

static fg_status start(fg_context *c, job *j) {
  static const volatile int never;
  char note[1024];
  TRY(fg_arch_check(j->arch));
  TRY(fg_gen_new(c->templates, &j->gen));
  TRY(read_specs(j));
  for (int i = 0; i < j->grid->n; i++) TRY(add_point(j, &j->grid->point[i], j->grid->limits[i]));
  if (!j->n) return fg_build_nothing();
  sort_variants(j);
  TRY(fg_compiler_check(j->arch));
  TRY(fg_compiler_identity(j->arch, sizeof j->compiler, j->compiler));
  j->record = calloc((size_t)j->n, sizeof *j->record);
  if (!j->record) return fg_fail(FG_EMEMORY, "no memory for %d variants", j->n);
  TRY(fg_zoo_make_open(j->order->directory, &never, sizeof note, note, &j->make));
  if (*note) fg_context_warn(c, "%s", note);
  return FG_OK;
}

/* Making it ------------------------------------------------------------------------------------ */

static fg_status build_one(job *j, const fg_variant *variant, bool *go_on) {
  char name[FG_NAME_MAX];
  fg_build_made made = {0};
  fg_status status = fg_build_variant(j->make, j->gen, variant, j->compiler, &made);
  if (fg_build_ends(status)) return status;
  if (status == FG_OK) {
    TRY(fg_build_record(variant, &made, &j->record[j->n_records]));
    j->n_records++;
    j->built.made += !made.kept;
    j->built.kept += made.kept;
  }
  if (status != FG_OK && !j->built.failed++) {
    j->failure = status;
    snprintf(j->sentence, sizeof j->sentence, "%s", fg_error());
  }
  fg_variant_name(variant, sizeof name, name);
  const fg_order *o = j->order;
  const int done = j->n_records + j->built.failed;
  if (o->progress &&
      o->progress(o->progress_context, name, status == FG_OK ? NULL : fg_error(), done, j->n))
    *go_on = false;
  return FG_OK;
}

static fg_status finish(job *j) {
  const fg_order *o = j->order;
  bool changed;
  TRY(fg_zoo_finish(j->make, j->n_records, j->record, &j->built.removed, &changed));
  if (!o->embed) return FG_OK;
  return fg_zoo_embed(j->make, o->directory, o->embed, j->n_records, j->record, &changed);
}

static fg_status build_all(job *j) {
  bool go_on = true;
  for (int i = 0; i < j->n && go_on; i++) TRY(build_one(j, &j->variant[i], &go_on));
  if (j->n_records + j->built.failed == j->n) TRY(finish(j));
  return j->failure == FG_OK ? FG_OK : fg_fail(j->failure, "%s", j->sentence);
}

static void end(job *j) {
  for (int i = 0; i < j->n_records; i++) free(j->record[i].block);
  fg_zoo_make_close(j->make);
  fg_grid_free(j->grid);
  fg_gen_free(j->gen);
  free(j->record);
  free(j->variant);
}

fg_status fg_build(fg_context *c, const fg_order *given, fg_built *built) {
  fg_order order = {0};
  job j = {.order = &order};
  TRY(fg_context_check(c));
  TRY(fg_size_check("order", given->size, sizeof order));
  if (built) TRY(fg_size_check("built", built->size, sizeof *built));
  memcpy(&order, given, given->size);
  if (!order.directory || order.n_specs < 0 || (order.n_specs && !order.specs))
    return fg_fail(FG_EARGUMENT, "order: it needs a directory, and specs where n_specs is not 0");
  if (order.embed) TRY(fg_zoo_embed_check(order.directory, order.embed));
  j.arch = order.arch ? order.arch : c->device->arch;
  fg_status status = start(c, &j);
  if (status == FG_OK) {
    status = build_all(&j);
    if (built) {
      j.built.size = built->size;
      memcpy(built, &j.built, built->size);
    }
  }
  end(&j);
  return status;
}
