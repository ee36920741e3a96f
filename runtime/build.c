/* build.c - what joins a zoo, and how one variant gets into it. */
#include "build.h"

#include "spec/point_formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fg_build_takes(const fg_point *point, const fg_limits *limits, const fg_plan *plan) {
  return limits->n[0] || !fg_plan_is_fallback(point, plan);
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

static const char *find_compiler(const fg_build_compilers *c, const char *arch) {
  for (int i = 0; i < c->n; i++)
    if (!strcmp(c->of[i].arch, arch)) return c->of[i].identity;
  return NULL;
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

fg_status fg_build_find_compilers(int n, const fg_variant *variants,
                                  fg_build_compilers *compilers) {
  fg_build_compilers *c = compilers;
  for (int i = 0; i < n; i++) {
    const char *arch = variants[i].arch;
    if (find_compiler(c, arch)) continue;
    if (c->n == FG_BUILD_ARCHS)
      return fg_fail(FG_EARGUMENT, "variants of more than %d archs", FG_BUILD_ARCHS);
    TRY(fg_compiler_check(arch));
    TRY(fg_compiler_identity(arch, FG_COMPILER_MAX, c->of[c->n].identity));
    strcpy(c->of[c->n++].arch, arch);
  }
  return FG_OK;
}

fg_status fg_build_variant(fg_zoo_make *make, fg_gen *gen, const fg_variant *variant,
                           const fg_build_compilers *compilers, fg_build_made *made) {
  fg_source *source;
  char name[FG_NAME_MAX], recipe[FG_RECIPE_TEXT], expression[FG_ZOO_EXPRESSION];
  fg_zoo_item item = {.name = name,
                      .expression = expression,
                      .compiler = find_compiler(compilers, variant->arch),
                      .recipe = recipe};
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

static fg_status build_next(fg_zoo_make *make, fg_gen *gen, const fg_limits *limits,
                            const fg_variant *first, const fg_build_compilers *compilers,
                            const volatile int *stop, fg_build_made *made) {
  fg_variant variant = *first;
  fg_status status = FG_ECOMPILER;
  fg_plan *plans;
  int n;
  TRY(fg_gen_plans(gen, &first->point, first->arch, limits, &plans, &n));
  for (int i = 0; i < n && status == FG_ECOMPILER && !*stop; i++) {
    if (!fg_build_takes(&first->point, limits, &plans[i]) ||
        !memcmp(&plans[i], &first->plan, sizeof *plans))
      continue;
    variant.plan = made->plan = plans[i];
    status = fg_build_variant(make, gen, &variant, compilers, made);
  }
  free(plans);
  return status;
}

fg_status fg_build_best(fg_zoo_make *make, fg_gen *gen, const fg_grid *grid,
                        const fg_variant *variant, const fg_build_compilers *compilers,
                        const volatile int *stop, fg_build_made *made) {
  const fg_limits *limits = grid ? fg_grid_limits(grid, &variant->point) : NULL;
  made->plan = variant->plan;
  made->refused[0] = 0;
  fg_status status = fg_build_variant(make, gen, variant, compilers, made);
  if (status != FG_ECOMPILER || !limits) return status;
  snprintf(made->refused, sizeof made->refused, "%s", fg_error());
  char *why = strdup(fg_error());
  if (!why) return fg_fail(FG_EMEMORY, "no memory for a failure");
  status = build_next(make, gen, limits, variant, compilers, stop, made);
  if (status == FG_ECOMPILER) fg_fail(status, "%s", why);
  free(why);
  return status;
}

static int by_name(const void *left, const void *right) {
  char a[FG_NAME_MAX], b[FG_NAME_MAX];
  fg_variant_name(left, sizeof a, a);
  fg_variant_name(right, sizeof b, b);
  return strcmp(a, b);
}

int fg_build_sort(int n, fg_variant *variants) {
  int left = 0;
  qsort(variants, (size_t)n, sizeof *variants, by_name);
  for (int i = 0; i < n; i++)
    if (!left || by_name(&variants[left - 1], &variants[i])) variants[left++] = variants[i];
  return left;
}

fg_status fg_build_record(const fg_variant *variant, const fg_build_made *made,
                          fg_zoo_record *record) {
  if (!(record->block = strdup(made->block)))
    return fg_fail(FG_EMEMORY, "no memory for a manifest");
  fg_variant_name(variant, sizeof record->name, record->name);
  return FG_OK;
}

static int by_record_name(const void *left, const void *right) {
  return strcmp(((const fg_zoo_record *)left)->name, ((const fg_zoo_record *)right)->name);
}

int fg_build_sort_records(int n, fg_zoo_record *records) {
  int left = 0;
  qsort(records, (size_t)n, sizeof *records, by_record_name);
  for (int i = 0; i < n; i++)
    if (left && !by_record_name(&records[left - 1], &records[i]))
      free(records[i].block);
    else
      records[left++] = records[i];
  return left;
}
