/* fit.c - fits the cost model to wisdom, and says how good choices are: a row for each pass and
 * mask.
 *
 *   fit [-o runtime/wisdom/cost_table.c] WISDOM...
 *
 * needs no GPU. Of each spec's shapes every third is held out: constants are fitted to the others,
 * and on the ones held out the plan that is chosen, by the nearest shape that was measured and by
 * the model alone, is compared with the best one that there is: geometric means and the worst, and
 * each choice that loses more than a twentieth. The constants that are written are then fitted to
 * all shapes. */
#include "base/setting.h"
#include "recipe/extent.h"
#include "wisdom/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 32, PLANS = 1024, ROUNDS = 60 };

/* A family and pass of a kind of kernel. */
typedef struct {
  const char *kernel; /* the kind's name */
  const char *family; /* of the plan field's choices */
  int pass;
  fg_cost_terms terms;
} kind;

/* A plan for heads of about one width. */
typedef struct {
  char name[64]; /* "mma-q128-k64-s1-w4" */
  int kind, width, scale;
} plan;

static struct {
  kind kind[KINDS];
  plan plan[PLANS];
  int *plan_of; /* of each variant */
  fg_judge *judge;
  fg_measured_list list;
  int n_kinds, n_plans;
} all;

static void good(fg_status status) {
  if (status == FG_OK) return;
  fprintf(stderr, "fit: %s\n", fg_error());
  exit(1);
}

static int kind_of(const fg_variant *v) {
  const char *family = fg_plan_family(&v->plan), *kernel = fg_point_kind(&v->point)->name;
  int i = 0;
  while (i < all.n_kinds &&
         (all.kind[i].pass != v->point.pass || strcmp(all.kind[i].family, family) ||
          strcmp(all.kind[i].kernel, kernel)))
    i++;
  if (i == KINDS) good(fg_fail(FG_EBUG, "more than %d families", KINDS));
  if (i == all.n_kinds)
    all.kind[all.n_kinds++] = (kind){kernel, family, v->point.pass, fg_cost_plain};
  return i;
}

static int plan_of(const fg_variant *v) {
  char name[64];
  const int k = kind_of(v), width = fg_cost_width(&v->point);
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

static void find_plans(void) {
  const fg_judge *j = all.judge;
  if (!(all.plan_of = calloc((size_t)j->n_variants + 1, sizeof(int))))
    good(fg_fail(FG_EMEMORY, "no memory for %d variants", j->n_variants));
  for (int i = 0; i < j->n_variants; i++)
    if (j->variant[i]->recipe.n_steps) all.plan_of[i] = plan_of(&j->variant[i]->variant);
}

/* The constants as they stand, to the variants. */
static void set_costs(void) {
  for (int i = 0; i < all.judge->n_variants; i++) {
    fg_cost_terms *cost = &all.judge->variant[i]->cost;
    const plan *p = &all.plan[all.plan_of[i]];
    *cost = all.kind[p->kind].terms;
    cost->scale = p->scale;
  }
}

/* How far costs are from being proportional to times; plans that are near the best one count. */
static double spread(const fg_contest *g) {
  double sum = 0, weights = 0, squares = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int i = g->first; i < g->first + g->n; i++) {
      const fg_trial *t = &all.judge->trial[i];
      double ms = t->m->ms, weight = g->best * g->best / (ms * ms);
      double ratio = log(fg_trial_cost(t) / ms);
      if (pass)
        squares += weight * (ratio - sum / weights) * (ratio - sum / weights);
      else
        sum += weight * ratio, weights += weight;
    }
  return squares / weights;
}

static double loss(bool with_held_out) {
  const fg_judge *j = all.judge;
  double sum = 0;
  set_costs();
  for (const fg_contest *g = j->contest; g < j->contest + j->n_contests; g++)
    if (with_held_out || !g->held_out) sum += log(fg_judge_model(j, g) / g->best) + spread(g);
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

/* A choice that loses much, with the plan that is best. */
static void print_loss(const fg_contest *x, double wisdom, double model) {
  const fg_trial *t = &all.judge->trial[x->first];
  char shape[FG_SHAPE_WORDS];
  if (wisdom <= 1.05 * x->best && model <= 1.05) return;
  fg_shape_words(fg_shape_form_of(&t->m->shape), &t->m->shape, sizeof shape, shape);
  for (int i = 0; i < x->n; i++)
    if (fg_measured_counts(t[i].m) && t[i].m->ms <= x->best)
      printf("  %.3f by wisdom, %.3f by the model: %s is best at %s on %s\n", wisdom / x->best,
             model, t[i].m->name, shape, t[i].m->device);
}

/* What a row of the table is of: attention under a mask, or another kind of kernel. */
static const char *sort_of(const fg_point *point) {
  if (!fg_kind_has_field(fg_point_kind(point), FG_FIELD_MASK)) return fg_point_kind(point)->name;
  return fg_field_text(&fg_fields[FG_FIELD_MASK], point);
}

static void print_quality(void) {
  row rows[64] = {0}, total = {.name = "all"};
  const fg_judge *j = all.judge;
  int n = 0;
  set_costs();
  for (int g = 0; g < j->n_contests; g++) {
    const fg_contest *x = &j->contest[g];
    const fg_point *point = &j->trial[x->first].v->variant.point;
    double wisdom, model = fg_judge_model(j, x) / x->best;
    char name[128];
    if (!x->held_out) continue;
    snprintf(name, sizeof name, "%s %.100s",
             point->pass == FG_PASS_BACKWARD ? "backward" : "forward", sort_of(point));
    int i = 0;
    while (i < n && strcmp(rows[i].name, name)) i++;
    if (i == 64) continue;
    if (i == n) strcpy(rows[n++].name, name);
    good(fg_judge_wisdom(j, x, &wisdom));
    print_loss(x, wisdom, model);
    add_to(&rows[i], wisdom / x->best, model);
    add_to(&total, wisdom / x->best, model);
  }
  printf("time of the choice / least time, on shapes held out\n%-40s %4s   %13s   %13s\n"
         "%-40s %4s   %6s %6s   %6s %6s\n",
         "", "", "by wisdom", "by the model", "", "n", "mean", "worst", "mean", "worst");
  for (int i = 0; i < n; i++) print_row(&rows[i]);
  print_row(&total);
}

static const char *pass_of(const kind *k) {
  return k->pass == FG_PASS_BACKWARD ? "FG_PASS_BACKWARD" : "FG_PASS_FORWARD";
}

static void write_family(FILE *to, int k) {
  const fg_cost_terms *t = &all.kind[k].terms;
  double sum = 0;
  int n = 0;
  for (int p = 0; p < all.n_plans; p++)
    if (all.plan[p].kind == k) sum += log(all.plan[p].scale), n++;
  fprintf(to, "    {\"%s\", \"%s\", %s, {%d, %d, %d, %d}},\n", all.kind[k].kernel,
          all.kind[k].family, pass_of(&all.kind[k]), (int)(exp(sum / n) + 0.5), t->block, t->tail,
          t->hide);
}

static void write_plans(FILE *to, int k) {
  for (int p = 0; p < all.n_plans; p++) {
    const plan *x = &all.plan[p];
    int scale[FG_COST_WIDTHS] = {0}, first = p;
    for (int i = 0; i < all.n_plans; i++)
      if (all.plan[i].kind == k && !strcmp(all.plan[i].name, x->name)) {
        scale[all.plan[i].width] = all.plan[i].scale;
        if (i < first) first = i;
      }
    if (x->kind == k && first == p)
      fprintf(to, "    {\"%s\", \"%s\", %s, {%d, %d, %d}},\n", all.kind[k].kernel, x->name,
              pass_of(&all.kind[k]), scale[0], scale[1], scale[2]);
  }
}

static void write_table(FILE *to) {
  fprintf(to,
          "/* cost_table.c - the constants of the cost model. Made by tests/bench/fit from "
          "measurements:\n * %d choices on %s. */\n#include \"cost.h\"\n\n"
          "const fg_cost_family fg_cost_families[] = {\n",
          all.judge->n_contests, all.list.item[0]->device);
  for (int k = 0; k < all.n_kinds; k++) write_family(to, k);
  fprintf(to, "    {0},\n};\n\nconst fg_cost_plan fg_cost_plans[] = {\n");
  for (int k = 0; k < all.n_kinds; k++) write_plans(to, k);
  fprintf(to, "    {0},\n};\n");
}

int main(int argc, char **argv) {
  const char *output = argc > 2 && !strcmp(argv[1], "-o") ? argv[2] : NULL;
  const int first = output ? 3 : 1;
  fg_gen *gen;
  if (first >= argc) {
    fprintf(stderr, "usage: fit [-o runtime/wisdom/cost_table.c] WISDOM...\n");
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
  good(fg_judge_new(gen, &all.list, &all.judge));
  if (!all.judge->n_contests) good(fg_fail(FG_EARGUMENT, "no shape has times of two plans"));
  printf("%d times of %d variants, %d choices\n", all.judge->n_trials, all.judge->n_variants,
         all.judge->n_contests);
  find_plans();
  fit(false);
  print_quality();
  fg_gen_free(gen);
  if (!output) return 0;
  forget_fit();
  fit(true);
  FILE *f = fopen(output, "w");
  if (f) write_table(f);
  if (!f || fclose(f)) good(fg_fail(FG_EIO, "%s cannot be written", output));
  return 0;
}
