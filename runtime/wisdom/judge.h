/* judge.h - how good choices of plans are, judged by files in which all plans were measured: for
 * the fit of the cost model, and for reports.
 *
 * Every third shape of a spec is held out: a choice there may use only the times that were measured
 * at the other shapes. */
#ifndef FG_JUDGE_H
#define FG_JUDGE_H

#include "cost.h"
#include "expand/expand.h"
#include "wisdom.h"

/* One variant of the list. The model reads `cost`, which a fit may change. */
typedef struct fg_judged {
  char name[FG_NAME_MAX];
  int index; /* in fg_judge.variant */
  fg_variant variant;
  fg_recipe recipe; /* n_steps = 0: the plan does not exist any more */
  fg_cost_terms cost;
} fg_judged;

/* One measured time. */
typedef struct fg_trial {
  const fg_measured *m; /* owned by the list */
  const fg_judged *v;
} fg_trial;

/* The times of a spec at one shape on one device, of two plans at least. */
typedef struct fg_contest {
  int first, n; /* its trials in fg_judge.trial */
  bool held_out;
  double best; /* ms: the least of the times that count (fg_measured_counts), one at least */
} fg_contest;

typedef struct fg_judge {
  fg_judged **variant;
  fg_trial *trial;
  fg_contest *contest;
  int n_variants, n_trials, n_contests;
} fg_judge;

/* Reads a sorted list, which must outlive the judge. Skips times of generations that the plans do
 * not have now, and of variants that do not exist. FG_EMEMORY. */
fg_status fg_judge_new(fg_gen *gen, const fg_measured_list *list, fg_judge **judge);
void fg_judge_free(fg_judge *judge);

/* The cost model's figure for a trial. */
double fg_trial_cost(const fg_trial *trial);

/* ms of the plan that the cost model chooses. */
double fg_judge_model(const fg_judge *judge, const fg_contest *contest);

/* ms of the plan that dispatch would choose if only the shapes that are not held out had been
 * measured; where none of them is near, of the model's choice. FG_EMEMORY. */
fg_status fg_judge_wisdom(const fg_judge *judge, const fg_contest *contest, double *ms);

#endif
