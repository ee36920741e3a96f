/* fit.c - fits the cost model to wisdom, and says how good choices are: a row for each pass and
 * mask.
 *
 *   fit [-o templates/attention/cost.lua] WISDOM...
 *
 * needs no GPU. Of each spec's shapes every third is held out: constants are fitted to the others,
 * and on the ones held out the plan that is chosen, by the nearest shape that was measured and by
 * the model alone, is compared with the best one that there is: geometric means and the worst. The
 * constants that are written are then fitted to all shapes. */
#include "context.h"
#include "cost.h"
#include "point_formula.h"
#include "setting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 32, PLANS = 1024, ROUNDS = 60 };

/* A family and pass: "mma_forward". */
typedef struct {
  char name[48];
  fg_cost_terms terms;
} kind;

/* A plan for heads of about one width. */
typedef struct {
  char name[64]; /* "mma-q128-k64-s1-w4" */
  int kind, width, scale;
} plan;

enum { WIDTHS = 3 }; /* up to 64, 128, 256 */

/* One variant of the file. */
typedef struct {
  char name[FG_NAME_MAX];
  fg_variant variant;
  fg_recipe recipe;
  int plan;
} variant;

/* One measured time. */
typedef struct {
  const fg_measured *m;
  variant *v;
} sample;

/* The times of a spec at a shape. */
typedef struct {
  int first, n;
  bool held_out;
  double best;
} group;

static struct {
  kind kind[KINDS];
  plan plan[PLANS];
  variant **variant;
  sample *sample;
  group *group;
  fg_measured_list list;
  int n_kinds, n_plans, n_variants, n_samples, n_groups;
} all;

static void good(fg_status status) {
  if (status == FG_OK) return;
  fprintf(stderr, "fit: %s\n", fg_error());
  exit(1);
}

static void *more(void *list, int n, size_t size) {
  void *grown = realloc(list, ((size_t)n + 1) * size);
  if (!grown) good(fg_fail(FG_EMEMORY, "no memory"));
  return grown;
}

static int kind_of(const fg_variant *v) {
  char name[48];
  snprintf(name, sizeof name, "%s_%s", fg_plan_family(&v->plan),
           v->point.pass == FG_PASS_BACKWARD ? "backward" : "forward");
  int i = 0;
  while (i < all.n_kinds && strcmp(all.kind[i].name, name)) i++;
  if (i == KINDS) good(fg_fail(FG_EBUG, "more than %d families", KINDS));
  if (i == all.n_kinds) {
    all.kind[all.n_kinds++].terms = fg_cost_plain;
    strcpy(all.kind[i].name, name);
  }
  return i;
}

static int plan_of(const fg_variant *v) {
  char name[64];
  const int k = kind_of(v), most = v->point.d > v->point.dv ? v->point.d : v->point.dv;
  const int width = most <= 64 ? 0 : most <= 128 ? 1 : 2;
  int i = 0;
  fg_plan_name(&v->plan, sizeof name, name);
  while (i < all.n_plans &&
         (all.plan[i].kind != k || all.plan[i].width != width || strcmp(all.plan[i].name, name)))
    i++;
  if (i == PLANS) good(fg_fail(FG_EBUG, "more than %d plans", PLANS));
  if (i == all.n_plans) {
    all.plan[all.n_plans++] = (plan){.kind = k, .width = width, .scale = 1000};
    strcpy(all.plan[i].name, name);
  }
  return i;
}

static variant *variant_of(fg_gen *gen, const fg_measured *m) {
  fg_source *source;
  for (int i = 0; i < all.n_variants; i++)
    if (!strcmp(all.variant[i]->name, m->name)) return all.variant[i];
  variant *v = more(NULL, 0, sizeof *v);
  if (*m->expression) good(fg_expression_learn(m->expression));
  strcpy(v->name, m->name);
  good(fg_variant_parse(m->name, &v->variant));
  v->plan = plan_of(&v->variant);
  v->recipe = (fg_recipe){0};
  if (fg_gen_expand(gen, &v->variant, &source) == FG_OK) { /* else a plan that is no more */
    v->recipe = source->recipe;
    fg_source_free(source);
  }
  all.variant = more(all.variant, all.n_variants, sizeof *all.variant);
  return all.variant[all.n_variants++] = v;
}

static bool has_time(const fg_measured *m) {
  return m->status <= FG_MEASURED_SLOW && m->ms > 0 && m->ms < 1e7;
}

static void add_group(int first) {
  group g = {.first = first, .n = all.n_samples - first, .best = INFINITY};
  for (int i = first; i < all.n_samples; i++)
    if (fg_measured_counts(all.sample[i].m) && all.sample[i].m->ms < g.best)
      g.best = all.sample[i].m->ms;
  if (g.n < 2 || !isfinite(g.best)) { /* no choice */
    all.n_samples = first;
    return;
  }
  all.group = more(all.group, all.n_groups, sizeof *all.group);
  all.group[all.n_groups++] = g;
}

static bool same_spec(const char *a, const char *b) {
  size_t n = strcspn(a, ".");
  return n == strcspn(b, ".") && !strncmp(a, b, n);
}

/* The list is sorted: groups follow each other, and the groups of a spec. */
static void make_groups(fg_gen *gen) {
  int first = 0, of_spec = 0;
  for (int i = 0; i < all.list.n; i++) {
    const fg_measured *m = all.list.item[i];
    if (i && !fg_measured_peers(all.list.item[i - 1], m)) {
      add_group(first);
      first = all.n_samples;
    }
    if (!has_time(m)) continue;
    variant *v = variant_of(gen, m);
    if (!v->recipe.n_steps || v->recipe.generation != m->generation) continue;
    all.sample = more(all.sample, all.n_samples, sizeof *all.sample);
    all.sample[all.n_samples++] = (sample){m, v};
  }
  add_group(first);
  for (int g = 0; g < all.n_groups; g++) {
    const char *name = all.sample[all.group[g].first].m->name;
    if (!g || !same_spec(name, all.sample[all.group[g - 1].first].m->name)) of_spec = 0;
    all.group[g].held_out = of_spec++ % 3 == 1;
  }
}

static double cost_of(const sample *s) {
  fg_recipe *r = &s->v->recipe;
  const plan *p = &all.plan[s->v->plan];
  r->cost = all.kind[p->kind].terms;
  r->cost.scale = p->scale;
  return fg_cost(r, &s->m->shape, s->v->variant.arch, s->m->multiprocessors);
}

/* What the choice takes, of those whose time counts. */
static double chosen(const group *g) {
  double least = INFINITY, ms = g->best;
  for (int i = g->first; i < g->first + g->n; i++) {
    double cost = cost_of(&all.sample[i]);
    if (cost < least) least = cost, ms = all.sample[i].m->ms;
  }
  return ms;
}

/* How far costs are from being proportional to times; plans that are near the best one count. */
static double spread(const group *g) {
  double sum = 0, weights = 0, squares = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int i = g->first; i < g->first + g->n; i++) {
      double ms = all.sample[i].m->ms, weight = g->best * g->best / (ms * ms);
      double ratio = log(cost_of(&all.sample[i]) / ms);
      if (pass)
        squares += weight * (ratio - sum / weights) * (ratio - sum / weights);
      else
        sum += weight * ratio, weights += weight;
    }
  return squares / weights;
}

static double loss(bool with_held_out) {
  double sum = 0;
  for (const group *g = all.group; g < all.group + all.n_groups; g++)
    if (with_held_out || !g->held_out) sum += log(chosen(g) / g->best) + spread(g);
  return sum;
}

/* Keeps the value that loses least of itself and two others. */
static double try_values(int *value, int down, int up, bool with_held_out, double least) {
  const int tried[] = {down, up}, before = *value;
  int best = before;
  for (int i = 0; i < 2; i++) {
    if (tried[i] < 0 || tried[i] == before) continue;
    *value = tried[i];
    double x = loss(with_held_out);
    if (x < least - 1e-9) least = x, best = tried[i];
  }
  *value = best;
  return least;
}

/* Coordinate descent by steps that shrink. */
static void fit(bool with_held_out) {
  double least = loss(with_held_out), step = 0.3;
  for (int round = 0; round < ROUNDS && step > 0.004; round++) {
    double before = least;
    for (int p = 0; p < all.n_plans; p++) {
      int *x = &all.plan[p].scale, by = (int)(*x * step) + 1;
      least = try_values(x, *x > by ? *x - by : 1, *x + by, with_held_out, least);
    }
    for (int k = 0; k < all.n_kinds; k++) {
      fg_cost_terms *t = &all.kind[k].terms;
      int by = (int)(t->block * step) + (int)(2000 * step), tail = (int)(1000 * step);
      least = try_values(&t->block, t->block - by, t->block + by, with_held_out, least);
      least = try_values(&t->tail, t->tail - tail, t->tail + tail < 1000 ? t->tail + tail : 1000,
                         with_held_out, least);
      by = (int)(t->hide * step) + 1;
      least = try_values(&t->hide, t->hide - by, t->hide + by, with_held_out, least);
    }
    if (before - least < 1e-4 * before) step /= 2;
  }
}

static void forget_fit(void) {
  for (int k = 0; k < all.n_kinds; k++) all.kind[k].terms = fg_cost_plain;
  for (int p = 0; p < all.n_plans; p++) all.plan[p].scale = 1000;
}

/* What dispatch would take for the group, had its spec been measured at the shapes that are not
 * held out alone; where none of them is near, what the model takes. */
static double recalled(const group *g) {
  fg_candidate *candidates = calloc((size_t)g->n, sizeof *candidates);
  bool *closed = calloc((size_t)g->n, sizeof *closed);
  fg_op op = {.candidate = candidates, .n_candidates = g->n};
  const sample *mine = &all.sample[g->first];
  fg_recalled r;
  double least = INFINITY, ms = chosen(g);
  if (!candidates || !closed) good(fg_fail(FG_EMEMORY, "no memory"));
  for (int o = 0; o < all.n_groups; o++) {
    const group *other = &all.group[o];
    if (other->held_out || !same_spec(all.sample[other->first].m->name, mine->m->name)) continue;
    for (int i = other->first; i < other->first + other->n; i++)
      for (int c = 0; c < g->n; c++) {
        const fg_measured *m = all.sample[i].m;
        if (strcmp(m->name, mine[c].m->name) || !fg_measured_counts(m)) continue;
        op.memory = more(op.memory, op.n_memory, sizeof *op.memory);
        op.memory[op.n_memory++] = (fg_memory){.shape = m->shape, .candidate = c, .ms = m->ms};
      }
  }
  good(fg_op_recall(&op, &mine->m->shape, closed, &r));
  for (int c = 0; c < g->n && r.shape; c++)
    if (r.ratio[c] > 0 && r.ratio[c] < least) least = r.ratio[c], ms = mine[c].m->ms;
  fg_recalled_free(&r);
  free(op.memory);
  free(candidates);
  free(closed);
  return ms;
}

typedef struct {
  char name[128];
  int n;
  double wisdom, model, worst_wisdom, worst_model;
} row;

static void add_to(row *r, double wisdom, double model) {
  r->n++;
  r->wisdom += log(wisdom), r->model += log(model);
  r->worst_wisdom = fmax(r->worst_wisdom, wisdom), r->worst_model = fmax(r->worst_model, model);
}

static void print_row(const row *r) {
  if (r->n)
    printf("%-40s %4d   %6.3f %6.3f   %6.3f %6.3f\n", r->name, r->n, exp(r->wisdom / r->n),
           r->worst_wisdom, exp(r->model / r->n), r->worst_model);
}

static void print_quality(void) {
  row rows[64] = {0}, total = {.name = "all"};
  int n = 0;
  for (int g = 0; g < all.n_groups; g++) {
    const group *x = &all.group[g];
    const fg_point *point = &all.sample[x->first].v->variant.point;
    char name[128];
    if (!x->held_out) continue;
    snprintf(name, sizeof name, "%s %.100s",
             point->pass == FG_PASS_BACKWARD ? "backward" : "forward",
             fg_field_text(&fg_fields[FG_FIELD_MASK], point));
    int i = 0;
    while (i < n && strcmp(rows[i].name, name)) i++;
    if (i == 64) continue;
    if (i == n) strcpy(rows[n++].name, name);
    double wisdom = recalled(x) / x->best, model = chosen(x) / x->best;
    add_to(&rows[i], wisdom, model);
    add_to(&total, wisdom, model);
  }
  printf("time of the choice / least time, on shapes held out\n%-40s %4s   %13s   %13s\n"
         "%-40s %4s   %6s %6s   %6s %6s\n",
         "", "", "by wisdom", "by the model", "", "n", "mean", "worst", "mean", "worst");
  for (int i = 0; i < n; i++) print_row(&rows[i]);
  print_row(&total);
}

static void write_plans(FILE *to, int k) {
  for (int p = 0; p < all.n_plans; p++) {
    const plan *x = &all.plan[p];
    int scale[WIDTHS] = {0}, first = p;
    for (int i = 0; i < all.n_plans; i++)
      if (all.plan[i].kind == k && !strcmp(all.plan[i].name, x->name)) {
        scale[all.plan[i].width] = all.plan[i].scale;
        if (i < first) first = i;
      }
    if (x->kind == k && first == p)
      fprintf(to, "      [\"%s\"] = { %d, %d, %d },\n", x->name, scale[0], scale[1], scale[2]);
  }
}

static void write_lua(FILE *to) {
  fprintf(
      to,
      "-- cost.lua: what the cost model (runtime/cost.c) makes of the work that families state, "
      "by family and\n-- pass: `scale`, and the plans' own for heads up to 64, 128 and 256 wide "
      "(0: not measured), `tail` and\n-- `hide` in thousandths, `block` in units of work. Made "
      "by tests/bench/fit from measurements; a family\n-- that is not here counts as it says.\n"
      "-- %d choices on %s.\nreturn {\n",
      all.n_groups, all.list.item[0]->device);
  for (int k = 0; k < all.n_kinds; k++) {
    const fg_cost_terms *t = &all.kind[k].terms;
    double sum = 0;
    int n = 0;
    for (int p = 0; p < all.n_plans; p++)
      if (all.plan[p].kind == k) sum += log(all.plan[p].scale), n++;
    fprintf(to, "  %s = {\n    scale = %d, block = %d, tail = %d, hide = %d,\n    plans = {\n",
            all.kind[k].name, (int)(exp(sum / n) + 0.5), t->block, t->tail, t->hide);
    write_plans(to, k);
    fprintf(to, "    },\n  },\n");
  }
  fprintf(to, "}\n");
}

int main(int argc, char **argv) {
  const char *output = argc > 2 && !strcmp(argv[1], "-o") ? argv[2] : NULL;
  const int first = output ? 3 : 1;
  fg_gen *gen;
  if (first >= argc) {
    fprintf(stderr, "usage: fit [-o templates/attention/cost.lua] WISDOM...\n");
    return 2;
  }
  good(fg_gen_new(fg_setting_text(FG_SET_TEMPLATES, NULL), &gen));
  for (int i = first; i < argc; i++) {
    fg_wisdom w;
    good(fg_wisdom_read(argv[i], false, &w));
    good(fg_measured_add(w.text, w.n, &all.list));
    fg_wisdom_free(&w);
  }
  fg_measured_sort(&all.list);
  make_groups(gen);
  if (!all.n_groups) good(fg_fail(FG_EARGUMENT, "no shape has times of two plans"));
  printf("%d times of %d variants, %d choices\n", all.n_samples, all.n_variants, all.n_groups);
  fit(false);
  print_quality();
  fg_gen_free(gen);
  if (!output) return 0;
  forget_fit();
  fit(true);
  FILE *f = fopen(output, "w");
  if (f) write_lua(f);
  if (!f || fclose(f)) good(fg_fail(FG_EIO, "%s cannot be written", output));
  return 0;
}
