/* tune_grid.c - from spec and shape files to cells. */
#include "tune.h"

#include "base/setting.h"
#include "build.h"
#include "spec/shape_file.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* The plans of a point that may be measured: simt only where it is named. */
static fg_status add_plans(tune *t, int point, int *n_of_point) {
  fg_variant v = {.point = t->grid->point[point]};
  char name[FG_NAME_MAX];
  fg_plan *plans;
  int n;
  fg_point_name(&v.point, sizeof name, name);
  strcpy(v.arch, t->device[0].arch);
  fg_status status = fg_gen_plans(t->gen, &v.point, v.arch, t->grid->limits[point], &plans, &n);
  if (status != FG_OK) return fg_fail_in(status, "%s", name);
  tune_plan *grown = realloc(t->plan, (size_t)(t->n_plans + n) * sizeof *grown);
  if (!grown) {
    free(plans);
    return fg_fail(FG_EMEMORY, "no memory for %d plans", t->n_plans + n);
  }
  t->plan = grown;
  *n_of_point = 0;
  for (int i = 0; i < n; i++) {
    v.plan = plans[i];
    fg_variant_name(&v, sizeof name, name);
    if (!fg_build_takes(&v.point, t->grid->limits[point], &plans[i])) continue;
    if (t->c->filter && fnmatch(t->c->filter, name, 0)) continue;
    tune_plan *added = &t->plan[t->n_plans++];
    *added = (tune_plan){.variant = v, .generation = 1};
    strcpy(added->name, name);
    ++*n_of_point;
  }
  free(plans);
  t->left_out += !*n_of_point;
  return FG_OK;
}

static fg_status read_shard(const cli *c, int *part, int *parts) {
  int used = 0;
  *part = *parts = 1;
  if (!c->shard) return FG_OK;
  if (strspn(c->shard, "0123456789/") != strlen(c->shard) ||
      sscanf(c->shard, "%9d/%9d%n", part, parts, &used) != 2 || c->shard[used] || *part < 1 ||
      *part > *parts)
    return fg_fail(FG_EARGUMENT, "--shard %s: expected I/N, from 1/N to N/N", c->shard);
  return FG_OK;
}

/* Where a point's plans are. */
typedef struct {
  int first, n;
} range;

static fg_status add_cell(tune *t, int point, range plans, const fg_shape *shape) {
  tune_cell *grown = realloc(t->cell, ((size_t)t->n_cells + 1) * sizeof *grown);
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d cells", t->n_cells + 1);
  t->cell = grown;
  grown[t->n_cells++] =
      (tune_cell){.point = point, .first = plans.first, .n = plans.n, .shape = *shape};
  for (int i = 0; i < plans.n; i++) t->plan[plans.first + i].needed = true;
  return FG_OK;
}

/* All specs at the first shape, then at the second, so that a budget is spent on what comes first.
 */
static fg_status add_cells(tune *t, fg_shape_file *shapes, const range *plans) {
  int part, parts, number = 0;
  TRY(read_shard(t->c, &part, &parts));
  for (int s = 0; s < fg_shape_file_count(shapes); s++)
    for (int p = 0; p < t->grid->n; p++) {
      fg_shape shape;
      bool keep = plans[p].n > 0;
      if (keep) TRY(fg_shape_file_for(shapes, s, &t->grid->point[p], &shape, &keep));
      if (keep && number++ % parts == part - 1) TRY(add_cell(t, p, plans[p], &shape));
    }
  if (number) return FG_OK; /* a part of few cells may be empty */
  if (t->c->filter && t->left_out)
    return fg_fail(FG_EARGUMENT, "no plan matches --filter %s", t->c->filter);
  return t->left_out
             ? fg_fail(FG_ESPEC, "there is nothing to choose from: only simt computes these, "
                                 "and family=simt does not name it")
             : fg_fail(FG_ESPEC, "%s: no shape is for any of these specs", t->c->shapes);
}

fg_status tune_grid_read(tune *t) {
  const cli *c = t->c;
  fg_shape_file *shapes = NULL;
  range *plans = NULL;
  fg_status status = FG_OK;
  TRY(fg_gen_new(fg_setting_text(FG_SET_TEMPLATES, NULL), &t->gen));
  TRY(cli_grid_read(c, 0, NULL, &t->grid));
  TRY(cli_numbers_check(c, t->grid->n, t->grid->point));
  if (!c->quiet) cli_numbers_say(c, t->grid->n, t->grid->point);
  TRY(fg_shape_file_open(c->shapes, &shapes));
  if (!(plans = calloc((size_t)t->grid->n + 1, sizeof *plans)))
    TRY_OUT(fg_fail(FG_EMEMORY, "no memory for %d specs", t->grid->n));
  for (int i = 0; i < t->grid->n; i++) {
    plans[i].first = t->n_plans;
    TRY_OUT(add_plans(t, i, &plans[i].n));
  }
  TRY_OUT(add_cells(t, shapes, plans));
out:
  fg_shape_file_free(shapes);
  free(plans);
  return status;
}

void tune_grid_free(tune *t) {
  fg_gen_free(t->gen);
  fg_grid_free(t->grid);
  free(t->plan);
  free(t->cell);
}
