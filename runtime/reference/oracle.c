/* oracle.c - float64 attention, one query row at a time; oracle_backward.c has the gradients.
 *
 * Every row is recomputed from q, k, bias and mask in both passes; only pairs with P != 0 do work
 * over d and dv. */
#include "oracle_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- forward ---- */

/* The weights that a product of e4m3 has in their place. */
static void round_weights(const oracle_problem *x, double *p) {
  double most = 0;
  for (int64_t k = 0; k < x->nk; k++) most = fmax(most, p[k]);
  if (most == 0) return;
  for (int64_t k = 0; k < x->nk; k++)
    p[k] = oracle_round(FG_ELEM_E4M3)(256 * p[k] / most) * most / 256;
}

/* The size of what a value is multiplied with, as a product takes it: at least `least` in the unit
 * of the operand. top: the row's largest weight. */
static double operand_size(const oracle_problem *x, double p, double second, double top) {
  const oracle_normalizer *n = oracle_normalizer_of(x);
  const double least = x->formats.operand;
  if (n->size) return n->size(p, second, least);
  return fmax(fabs(p), least * (n->unit ? n->unit(top, second) : 1));
}

/* How far formats may put the row's LSE and the head's largest logit off. */
static void cut_row(const oracle_problem *x, oracle_place at, oracle_result *r) {
  double *max_logit_cut = r->max_logit_cut + at.b * x->h + at.h;
  if (!(x->formats.term > 0)) return;
  const oracle_row_size size = oracle_size_row(x, at);
  r->lse_cut[at.row] = size.lse_cut;
  *max_logit_cut = fmax(*max_logit_cut, size.max_logit_cut);
}

/* Samples factors 1 - tanh^2 of some pairs of some rows. */
static void sample_slopes(const oracle_problem *x, oracle_place at, oracle_result *r) {
  double name[ORACLE_VALUES];
  if (!x->score || !oracle_formula_has_tanh(x->score) || at.q % 5) return;
  for (int64_t k = at.q % 7; k < x->nk; k += 11) {
    if (!oracle_is_visible(x, at, k)) continue;
    const double s =
        x->scale * oracle_dot(x->d, x->q + at.row * x->d, x->k + (at.kv * x->nk + k) * x->d);
    oracle_name_pair(x, at, k, s, name);
    oracle_formula_value(x->score, name);
    r->sampled++;
    r->steep += oracle_formula_slopes(x->score, 0, NULL, NULL).flattest > 1.0 / 16;
  }
}

static void forward_row(const oracle_problem *x, oracle_place at, double *p, char *hidden,
                        oracle_result *r) {
  const oracle_normalizer *n = oracle_normalizer_of(x);
  const int64_t out = at.row * x->dv;
  double top = 0;
  double *most = r->max_logit + at.b * x->h + at.h;
  oracle_tally tally = {0, *most};
  const double lse = oracle_weigh_row(x, at, p, hidden, &tally);
  *most = tally.max_logit, r->seen += tally.seen;
  r->lse[at.row] = lse;
  cut_row(x, at, r);
  sample_slopes(x, at, r);
  if (x->is_e4m3) round_weights(x, p);
  for (int64_t k = 0; k < x->nk; k++) top = fmax(top, p[k]);
  for (int64_t k = 0; k < x->nk; k++) {
    const double *v = x->v + (at.kv * x->nk + k) * x->dv;
    if (hidden[k]) continue;
    const double z = oracle_dropped(x, at, k);
    oracle_accumulate(x->dv, p[k] * z, operand_size(x, p[k], lse, top) * z, v, r->o + out,
                      r->o_rss + out);
    if (n->sums_values) oracle_accumulate(x->dv, 1, 1, v, r->u + out, r->u_rss + out);
  }
}

int oracle_forward(const oracle_problem *x, oracle_result *r) {
  int64_t rows = x->b * x->h * x->nq,
          sums = oracle_normalizer_of(x)->sums_values ? rows * x->dv : 0;
  double *p = NULL;
  char *hidden = malloc((size_t)x->nk + 1);
  int ok = hidden && oracle_renew(&p, x->nk) && oracle_renew(&r->o, rows * x->dv) &&
           oracle_renew(&r->o_rss, rows * x->dv) && oracle_renew(&r->lse, rows);
  ok = ok && oracle_renew(&r->max_logit, x->b * x->h) && oracle_renew(&r->lse_cut, rows) &&
       oracle_renew(&r->max_logit_cut, x->b * x->h);
  for (int64_t i = 0; ok && i < x->b * x->h; i++) r->max_logit[i] = -INFINITY;
  if (ok && sums) ok = oracle_renew(&r->u, sums) && oracle_renew(&r->u_rss, sums);
  if (ok) {
    r->seen = r->sampled = r->steep = 0;
    for (int64_t row = 0; row < rows; row++) forward_row(x, oracle_place_of(x, row), p, hidden, r);
    oracle_finish(x, rows * x->dv, r->o, r->o_rss);
    for (int64_t i = 0; i < sums; i++) r->u_rss[i] = sqrt(r->u_rss[i]);
  }
  free(p), free(hidden);
  return ok ? 0 : -1;
}

int64_t oracle_count_visible(const oracle_problem *x, int64_t step) {
  int64_t seen = 0;
  for (int64_t row = 0; row < x->b * x->h * x->nq; row++) {
    const oracle_place at = oracle_place_of(x, row);
    for (int64_t k = 0; k < x->nk && at.h % step == 0; k++)
      seen += oracle_is_visible(x, at, k) != 0;
  }
  return seen;
}

void oracle_free(oracle_result *r) {
  free(r->o), free(r->lse), free(r->u), free(r->u_rss), free(r->dq), free(r->dk), free(r->dv),
      free(r->dbias);
  free(r->o_rss), free(r->dq_rss), free(r->dk_rss), free(r->dv_rss), free(r->dbias_rss);
  free(r->dsink), free(r->dsink_rss), free(r->max_logit), free(r->lse_cut), free(r->max_logit_cut);
  for (int i = 0; i < ORACLE_INPUTS; i++) free(r->dinput[i]), free(r->dinput_rss[i]);
  memset(r, 0, sizeof *r);
}
