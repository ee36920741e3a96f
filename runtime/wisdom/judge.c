/* judge.c - measurements as choices between plans, and the times that the choices cost. */
#include "judge.h"

#include "recall.h"
#include "spec/point_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The list with room for n + 1 elements of `size` bytes; NULL after an FG_EMEMORY. */
static void *more(void *list, int n, size_t size) {
  void *grown = realloc(list, ((size_t)n + 1) * size);
  if (!grown) fg_fail(FG_EMEMORY, "no memory for %d measurements", n + 1);
  return grown;
}

/* Variants ---------------------------------------------------------------------------------- */

/* Whether the name of the line is a variant of today. */
static bool parse(const fg_measured *m, fg_variant *variant) {
  if (*m->expression && fg_expression_learn(m->expression) != FG_OK) return false;
  return fg_variant_parse(m->name, variant) == FG_OK;
}

/* A variant that does not exist any more is added too, with a recipe without steps. */
static fg_status add_variant(fg_judge *j, fg_gen *gen, const fg_measured *m) {
  fg_judged **list = more(j->variant, j->n_variants, sizeof *list), *v;
  if (!list) return FG_EMEMORY;
  j->variant = list;
  if (!(v = calloc(1, sizeof *v))) return fg_fail(FG_EMEMORY, "no memory for a variant");
  strcpy(v->name, m->name);
  v->index = j->n_variants;
  j->variant[j->n_variants++] = v;
  if (!parse(m, &v->variant)) return FG_OK;
  v->cost = fg_cost_terms_of(&v->variant);
  return fg_gen_recipe(gen, &v->variant, &v->recipe) == FG_EMEMORY ? FG_EMEMORY : FG_OK;
}

/* *at: the index of the line's variant, which is added if it is new. */
static fg_status find_variant(fg_judge *j, fg_gen *gen, const fg_measured *m, int *at) {
  for (*at = 0; *at < j->n_variants; ++*at)
    if (!strcmp(j->variant[*at]->name, m->name)) return FG_OK;
  return add_variant(j, gen, m);
}

/* Contests ---------------------------------------------------------------------------------- */

/* Leaves out lines without a time, and those of variants or generations that do not exist. */
static fg_status add_trial(fg_judge *j, fg_gen *gen, const fg_measured *m) {
  int i;
  if (!fg_measured_has_time(m)) return FG_OK;
  TRY(find_variant(j, gen, m, &i));
  const fg_judged *v = j->variant[i];
  if (!v->recipe.n_steps || v->recipe.generation != m->generation) return FG_OK;
  fg_trial *list = more(j->trial, j->n_trials, sizeof *list);
  if (!list) return FG_EMEMORY;
  j->trial = list;
  j->trial[j->n_trials++] = (fg_trial){m, v};
  return FG_OK;
}

/* The first measurement of a contest. */
static const fg_measured *of(const fg_judge *j, const fg_contest *c) {
  return j->trial[c->first].m;
}

/* Makes a contest of the trials from `first` on, or drops them where they offer no choice. *of_spec
 * counts the contests of one spec. */
static fg_status add_contest(fg_judge *j, int first, int *of_spec) {
  fg_contest c = {.first = first, .n = j->n_trials - first, .best = INFINITY};
  for (int i = first; i < j->n_trials; i++)
    if (fg_measured_counts(j->trial[i].m)) c.best = fmin(c.best, j->trial[i].m->ms);
  if (c.n < 2 || !isfinite(c.best)) { /* no choice */
    j->n_trials = first;
    return FG_OK;
  }
  fg_contest *list = more(j->contest, j->n_contests, sizeof *list);
  if (!list) return FG_EMEMORY;
  j->contest = list;
  const fg_contest *before = j->n_contests ? &list[j->n_contests - 1] : NULL;
  if (!before || !fg_measured_kin(of(j, &c), of(j, before))) *of_spec = 0;
  c.held_out = (*of_spec)++ % 3 == 1;
  j->contest[j->n_contests++] = c;
  return FG_OK;
}

/* The list is sorted, so that the lines of a contest follow each other, and so do the contests of a
 * spec. */
static fg_status fill(fg_judge *j, fg_gen *gen, const fg_measured_list *list) {
  int first = 0, of_spec = 0;
  for (int i = 0; i < list->n; i++) {
    if (i && !fg_measured_peers(list->item[i - 1], list->item[i])) {
      TRY(add_contest(j, first, &of_spec));
      first = j->n_trials;
    }
    TRY(add_trial(j, gen, list->item[i]));
  }
  return add_contest(j, first, &of_spec);
}

fg_status fg_judge_new(fg_gen *gen, const fg_measured_list *list, fg_judge **judge) {
  fg_judge *j = calloc(1, sizeof *j);
  if (!j) return fg_fail(FG_EMEMORY, "no memory for measurements");
  fg_status status = fill(j, gen, list);
  if (status == FG_OK)
    *judge = j;
  else
    fg_judge_free(j);
  return status;
}

void fg_judge_free(fg_judge *j) {
  if (!j) return;
  for (int i = 0; i < j->n_variants; i++) free(j->variant[i]);
  free(j->variant);
  free(j->trial);
  free(j->contest);
  free(j);
}

/* Choices ----------------------------------------------------------------------------------- */

double fg_trial_cost(const fg_trial *t) {
  return fg_cost(&t->v->recipe, &t->v->cost, &t->m->shape, t->v->variant.arch,
                 t->m->multiprocessors);
}

double fg_judge_model(const fg_judge *j, const fg_contest *c) {
  double least = INFINITY, ms = c->best;
  for (int i = c->first; i < c->first + c->n; i++) {
    double cost = fg_trial_cost(&j->trial[i]);
    if (cost < least) least = cost, ms = j->trial[i].m->ms;
  }
  return ms;
}

/* Adds to `all` the times that the contest `other` has of plans of `c`; candidates are the
 * trials of `c`, by index. */
static fg_status remember(const fg_judge *j, const fg_contest *c, const fg_contest *other,
                          fg_memories *all) {
  for (int i = other->first; i < other->first + other->n; i++)
    for (int p = 0; p < c->n; p++) {
      const fg_measured *m = j->trial[i].m;
      if (strcmp(m->name, j->trial[c->first + p].m->name) || !fg_measured_counts(m)) continue;
      fg_memory *list = more(all->memory, all->n, sizeof *list);
      if (!list) return FG_EMEMORY;
      all->memory = list;
      list[all->n++] = (fg_memory){.shape = m->shape, .candidate = p, .ms = m->ms};
    }
  return FG_OK;
}

fg_status fg_judge_wisdom(const fg_judge *j, const fg_contest *c, double *ms) {
  fg_memories all = {.n_candidates = c->n};
  fg_recalled r = {0};
  fg_status status = FG_OK;
  double least = INFINITY, taken = fg_judge_model(j, c);
  bool *closed = calloc((size_t)c->n, sizeof *closed);
  if (!closed) return fg_fail(FG_EMEMORY, "no memory for a choice");
  for (int o = 0; o < j->n_contests; o++) {
    const fg_contest *other = &j->contest[o];
    if (!other->held_out && fg_measured_kin(of(j, other), of(j, c)))
      TRY_OUT(remember(j, c, other, &all));
  }
  TRY_OUT(fg_memories_recall(&all, &of(j, c)->shape, closed, &r));
  for (int p = 0; p < c->n && r.shape; p++)
    if (r.ratio[p] > 0 && r.ratio[p] < least)
      least = r.ratio[p], taken = j->trial[c->first + p].m->ms;
  *ms = taken;
out:
  fg_recalled_free(&r);
  fg_memories_free(&all);
  free(closed);
  return status;
}
