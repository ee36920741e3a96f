/* judge.h - how good choices of plans are, by files in which all plans were measured: for the fit
 * of the cost model, and for reports.
 *
 * Every third shape of a spec is held out: choices there are judged by what was measured at the
 * other shapes alone. */
#ifndef FG_JUDGE_H
#define FG_JUDGE_H

#include "cost.h"
#include "expand/expand.h"
#include "wisdom.h"

/* One variant of the list. The model goes by `cost`, which may be changed. */
typedef struct fg_judged {
  char name[FG_NAME_MAX];
  int index; /* in fg_judge */
  fg_variant variant;
  fg_recipe recipe; /* n_steps = 0: of a plan that is no more */
  fg_cost_terms cost;
} fg_judged;

/* One time. */
typedef struct fg_trial {
  const fg_measured *m; /* the list's */
  const fg_judged *v;
} fg_trial;

/* The times of a spec at a shape, of two plans at least. */
typedef struct fg_contest {
  int first, n; /* trials */
  bool held_out;
  double best; /* ms, of those that count; with one that counts at least */
} fg_contest;

typedef struct fg_judge {
  fg_judged **variant;
  fg_trial *trial;
  fg_contest *contest;
  int n_variants, n_trials, n_contests;
} fg_judge;

/* Made of a list that is sorted, and outlives it. Times of other generations than the plans now
 * have, and of variants that do not exist, are passed over. FG_EMEMORY. */
fg_status fg_judge_new(fg_gen *gen, const fg_measured_list *list, fg_judge **judge);
void fg_judge_free(fg_judge *judge);

/* The cost model's figure for a trial. */
double fg_trial_cost(const fg_trial *trial);

/* ms of the plan that the model takes. */
double fg_judge_model(const fg_judge *judge, const fg_contest *contest);

/* ms of the plan that dispatch takes when the spec was measured at the shapes that are not held out
 * alone; where none of them is near, the model's. FG_EMEMORY. */
fg_status fg_judge_wisdom(const fg_judge *judge, const fg_contest *contest, double *ms);

#endif
