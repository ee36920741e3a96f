/* reference_attention_keep.c - the results of a sequence among those of all. */
#include "reference_attention.h"

#include <math.h>

/* The results of one sequence in those of all. Rows are its own; sums are of all sequences. */
static void keep_rows(const reference_sequence *s, const double *part, reference_row *row,
                      int64_t heads, int64_t n, int64_t width, double *all) {
  if (part && all) reference_scatter(s, part, row, heads, n, width, all);
}

static void add_sums(int64_t n, const double *part, const double *part_rss, double *all,
                     double *all_rss) {
  for (int64_t i = 0; part && all && i < n; i++) {
    all[i] += part[i];
    all_rss[i] = hypot(all_rss[i], part_rss[i]);
  }
}

void attention_keep(const reference_case *c, const reference_sequence *s, const oracle_result *part,
                    oracle_result *all) {
  const attention *a = c->own;
  const fg_shape *x = &c->problem->shape;
  const int64_t d = a->oracle.d, dv = a->oracle.dv;
  keep_rows(s, part->o, reference_row_q, x->h, s->nq, dv, all->o);
  keep_rows(s, part->o_rss, reference_row_q, x->h, s->nq, dv, all->o_rss);
  for (int64_t h = 0; part->max_logit && h < x->h; h++) {
    all->max_logit[s->b * x->h + h] = part->max_logit[h];
    all->max_logit_cut[s->b * x->h + h] = part->max_logit_cut[h];
  }
  keep_rows(s, part->lse_cut, reference_row_kept, x->h, s->nq, 1, all->lse_cut);
  keep_rows(s, part->u, reference_row_q, x->h, s->nq, dv, all->u);
  keep_rows(s, part->u_rss, reference_row_q, x->h, s->nq, dv, all->u_rss);
  keep_rows(s, part->lse, reference_row_kept, x->h, s->nq, 1, all->lse);
  keep_rows(s, part->dq, reference_row_q, x->h, s->nq, d, all->dq);
  keep_rows(s, part->dq_rss, reference_row_q, x->h, s->nq, d, all->dq_rss);
  keep_rows(s, part->dk, reference_row_k, x->hk, s->nk, d, all->dk);
  keep_rows(s, part->dk_rss, reference_row_k, x->hk, s->nk, d, all->dk_rss);
  keep_rows(s, part->dv, reference_row_k, x->hk, s->nk, dv, all->dv);
  keep_rows(s, part->dv_rss, reference_row_k, x->hk, s->nk, dv, all->dv_rss);
  const int dbias = fg_problem_find(c->problem, "dbias");
  if (dbias >= 0)
    add_sums(fg_problem_count(c->problem, dbias), part->dbias, part->dbias_rss, all->dbias,
             all->dbias_rss);
  if (fg_problem_find(c->problem, "dsink") >= 0)
    add_sums(x->h, part->dsink, part->dsink_rss, all->dsink, all->dsink_rss);
  for (int i = 0; i < a->formula.n_inputs; i++) {
    const oracle_input *in = &a->formula.inputs[i];
    int64_t n = in->rank < 0 ? 0 : 1;
    for (int axis = 0; axis < in->rank; axis++) n *= in->extent[axis];
    add_sums(n, part->dinput[i], part->dinput_rss[i], all->dinput[i], all->dinput_rss[i]);
  }
  all->largest_ds = fmax(all->largest_ds, part->largest_ds);
}
