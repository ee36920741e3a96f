/* report_data.c - measurements by spec, shape and plan. */
#include "report.h"

#include "shape.h"
#include "spec/point_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double report_share(const report_cell *cell, const fg_measured *m) {
  return cell->best && fg_measured_has_time(m) ? cell->best->ms / m->ms : 0;
}

double report_tflops(const report_cell *c) { return c->best ? c->flops / c->best->ms * 1e-9 : 0; }
double report_tbs(const report_cell *c) { return c->best ? c->bytes / c->best->ms * 1e-9 : 0; }

/* Names are SPEC.PLAN.ARCH; a file may hold any text as one. */
void report_plan_name(const char *variant, char plan[REPORT_PLAN]) {
  const char *first = strchr(variant, '.'), *last = strrchr(variant, '.');
  const char *from = first ? first + 1 : variant;
  int n = last > first ? (int)(last - from) : (int)strlen(from);
  snprintf(plan, REPORT_PLAN, "%.*s", n, from);
}

void report_family(const char *plan, char family[REPORT_PLAN]) {
  snprintf(family, REPORT_PLAN, "%.*s", (int)strcspn(plan, "-"), plan);
}

const char *report_pass(const fg_measured *m) {
  return strstr(m->name, "_bwd-") ? "backward" : "forward";
}

bool report_is_square(const fg_shape *s) {
  const fg_shape mean = fg_shape_typical(s);
  return s->nq == s->nk && mean.nq == mean.nk;
}

/* Cells ------------------------------------------------------------------------------------- */

static int count_cells(const fg_measured_list *list, int first, int n) {
  int cells = 1;
  for (int i = first + 1; i < first + n; i++)
    cells += !fg_measured_peers(list->item[i - 1], list->item[i]);
  return cells;
}

/* The plan's place in the spec; a new one behind the others. */
static int place_of(report_spec *s, const char *variant) {
  char name[REPORT_PLAN];
  int p = 0;
  report_plan_name(variant, name);
  while (p < s->n_plans && strcmp(s->plan[p].name, name)) p++;
  if (p == s->n_plans) {
    s->plan[s->n_plans++] = (report_plan){.rank = -1};
    strcpy(s->plan[p].name, name);
  }
  return p;
}

/* The list has a plan's newest generation first: older ones are no rivals to it. */
static void fill_table(const report *r, report_spec *s) {
  int c = -1;
  for (int i = s->first; i < s->first + s->n; i++) {
    const fg_measured *m = r->list.item[i];
    if (i == s->first || !fg_measured_peers(r->list.item[i - 1], m)) s->cell[++c].shape = m->shape;
    const fg_measured **at = &s->table[place_of(s, m->name) * s->n_cells + c];
    if (!*at) *at = m;
  }
}

static void find_best(report_spec *s, int cell) {
  report_cell *c = &s->cell[cell];
  int winner = -1;
  for (int p = 0; p < s->n_plans; p++) {
    const fg_measured *m = s->table[p * s->n_cells + cell];
    if (!m || !fg_measured_counts(m)) continue;
    if (!c->best || m->ms < c->best->ms) {
      c->next = c->best, c->best = m, winner = p;
    } else if (!c->next || m->ms < c->next->ms) {
      c->next = m;
    }
  }
  if (winner >= 0) s->plan[winner].wins++;
}

/* Plans ------------------------------------------------------------------------------------- */

static void find_share(report_spec *s, int plan) {
  double sum = 0;
  int n = 0;
  for (int c = 0; c < s->n_cells; c++) {
    const fg_measured *m = s->table[plan * s->n_cells + c];
    double share = m ? report_share(&s->cell[c], m) : 0;
    if (share > 0) sum += log(share), n++;
  }
  s->plan[plan].share = n ? exp(sum / n) : 0;
}

static int by_share(const void *left, const void *right) {
  const report_plan *a = left, *b = right;
  if (a->share > b->share || a->share < b->share) return a->share > b->share ? -1 : 1;
  return strcmp(a->name, b->name);
}

static int by_wins(const void *left, const void *right) {
  const report_plan *a = *(report_plan *const *)left, *b = *(report_plan *const *)right;
  return a->wins != b->wins ? b->wins - a->wins : by_share(a, b);
}

/* Winners are told apart by their rank, the most frequent first. */
static fg_status rank_plans(report_spec *s) {
  report_plan **winner = calloc((size_t)s->n_plans + 1, sizeof(report_plan *));
  if (!winner) return fg_fail(FG_EMEMORY, "no memory for %d plans", s->n_plans);
  for (int p = 0; p < s->n_plans; p++)
    if (s->plan[p].wins) winner[s->n_winners++] = &s->plan[p];
  qsort(winner, (size_t)s->n_winners, sizeof *winner, by_wins);
  for (int i = 0; i < s->n_winners; i++) winner[i]->rank = i;
  free(winner);
  return FG_OK;
}

/* The fastest plan first, its row of the table with it. */
static fg_status sort_plans(const report *r, report_spec *s) {
  for (int p = 0; p < s->n_plans; p++) find_share(s, p);
  qsort(s->plan, (size_t)s->n_plans, sizeof *s->plan, by_share);
  memset(s->table, 0, (size_t)(s->n_plans * s->n_cells) * sizeof *s->table);
  fill_table(r, s);
  return rank_plans(s);
}

/* ------------------------------------------------------------------------------------------- */

/* The point, and a recipe of it; the names of a file may be of nothing. */
static fg_status read_point(report *r, report_spec *s, fg_recipe *recipe) {
  for (int i = s->first; i < s->first + s->n && !recipe->n_steps; i++) {
    const fg_measured *m = r->list.item[i];
    fg_variant v;
    if (*m->expression && fg_expression_learn(m->expression) != FG_OK) continue;
    if (fg_variant_parse(m->name, &v) != FG_OK) continue;
    s->known = true, s->point = v.point;
    if (fg_gen_recipe(r->gen, &v, recipe) == FG_EMEMORY) return FG_EMEMORY;
  }
  return FG_OK;
}

static fg_status find_work(report *r, report_spec *s) {
  fg_recipe recipe = {0};
  TRY(read_point(r, s, &recipe));
  const bool flops = s->known && cli_flops_known(r->c, &s->point);
  for (int c = 0; c < s->n_cells; c++) {
    report_cell *cell = &s->cell[c];
    if (fg_shape_check(&cell->shape) != FG_OK) continue; /* nothing was ever launched with it */
    if (flops && cell->best) cell->flops = cli_flops(r->c, &s->point, &cell->shape);
    if (recipe.n_steps) cell->bytes = cli_bytes(r->c, &s->point, &recipe, &cell->shape);
  }
  return FG_OK;
}

static fg_status add_spec(report *r, int first, int n) {
  report_spec *grown = realloc(r->spec, ((size_t)r->n_specs + 1) * sizeof *grown);
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d specs", r->n_specs + 1);
  r->spec = grown;
  report_spec *s = &grown[r->n_specs++];
  *s = (report_spec){.first = first, .n = n, .like = r->list.item[first]};
  snprintf(s->name, sizeof s->name, "%.*s", (int)strcspn(s->like->name, "."), s->like->name);
  s->n_cells = count_cells(&r->list, first, n);
  s->cell = calloc((size_t)s->n_cells, sizeof *s->cell);
  s->plan = calloc((size_t)n, sizeof *s->plan);
  s->table = calloc((size_t)n * (size_t)s->n_cells, sizeof *s->table);
  if (!s->cell || !s->plan || !s->table) return fg_fail(FG_EMEMORY, "no memory for %s", s->name);
  fill_table(r, s);
  for (int c = 0; c < s->n_cells; c++) find_best(s, c);
  r->n_cells += s->n_cells;
  TRY(sort_plans(r, s));
  return find_work(r, s);
}

fg_status report_data_new(report *r) {
  int first = 0;
  for (int i = 1; i <= r->list.n; i++) {
    if (i < r->list.n && fg_measured_kin(r->list.item[i - 1], r->list.item[i])) continue;
    TRY(add_spec(r, first, i - first));
    first = i;
  }
  return FG_OK;
}

void report_data_free(report *r) {
  for (int i = 0; i < r->n_specs; i++) {
    free(r->spec[i].cell);
    free(r->spec[i].plan);
    free(r->spec[i].table);
  }
  free(r->spec);
}
