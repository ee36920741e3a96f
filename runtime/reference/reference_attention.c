/* reference_attention.c - attention, judged by the oracle (mathematics.md sections 1 to 3). */
#include "reference_attention.h"

#include "reference_sequence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fg_status start(reference_case *c) {
  TRY(reference_check_normalizer(c));
  attention *a = c->own = calloc(1, sizeof *a);
  if (!a) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  return verify_formula_new(&c->variant->point, c->problem, c->which, &a->formula);
}

/* Which slices pairs are of; inputs are told by tokens. */
static fg_status set_slices(reference_case *c) {
  attention *a = c->own;
  reference_slices_free(&a->slices);
  if (!c->problem->recipe->layout.slices) return FG_OK;
  TRY(reference_slices_new(c, &a->slices));
  a->oracle.slice_of = a->slices.slice_of, a->oracle.slices = a->slices.slice;
  return FG_OK;
}

/* What the formats of the variant's family cost. Products of 8-bit q and k by wgmma add 32 columns
 * in a step, and cut each of 33 terms below 2^-13 of the largest; errors of steps add up as random
 * ones do: of the size of the terms, random products lose up to 0.8 x 2^-13 sqrt(d / 32). */
static oracle_formats formats_of(const fg_variant *v) {
  const fg_elem elem = fg_point_elem(&v->point);
  const char *family = fg_plan_family(&v->plan);
  const bool by_wgmma = !strcmp(family, "wgmma"), by_cores = strcmp(family, "simt") != 0;
  const bool cuts = by_wgmma && elem == FG_ELEM_E4M3;
  return (oracle_formats){.operand = by_cores && elem == FG_ELEM_F16 ? 0x1p-14 : 0,
                          .tanh = elem == FG_ELEM_BF16  ? 0x1p-12
                                  : elem == FG_ELEM_F16 ? 0x1p-9
                                                        : 0,
                          .product = cuts ? 0x1p-12 * sqrt(v->point.d / 32.0) : 0x1p-22,
                          .term = v->point.pass == FG_PASS_FORWARD ? 0x1p-22 : 0,
                          .slope = by_wgmma || !strcmp(family, "mma") ? 1e-5 : 0};
}

/* What all sequences share. */
static void set_oracle(reference_case *c) {
  attention *a = c->own;
  const fg_shape *s = &c->problem->shape;
  const fg_recipe *r = c->problem->recipe;
  const int d = c->variant->point.d, dv = c->variant->point.dv;
  const bool given = c->which->given & FG_GIVEN_SCALE;
  a->oracle = (oracle_problem){.b = 1,
                               .h = s->h,
                               .hk = s->hk,
                               .d = d,
                               .dv = dv,
                               .scale = (double)(given ? c->which->scale : 1 / sqrtf((float)d))};
  a->oracle.formats = formats_of(c->variant);
  a->oracle.bias = reference_value(c, "bias");
  a->oracle.sink = reference_value(c, "sink");
  a->oracle.normalizer = attention_normalizer(c);
  a->sigmoid_bias = (double)c->which->launch.value[FG_NUMBER_SIGMOID_BIAS];
  if (c->which->launch.given & FG_GIVEN_SIGMOID_BIAS) a->oracle.sigmoid_bias = &a->sigmoid_bias;
  const double *words = c->variant->point.dropout ? reference_value(c, "seed") : NULL;
  for (int i = 0; words && i < 4; i++) a->dropout.words[i] = (uint32_t)(int32_t)words[i];
  a->dropout.below = oracle_dropout_below(c->which->launch.value[FG_NUMBER_KEEP]);
  if (words) a->oracle.dropout = &a->dropout;
  const int bias = fg_problem_find(c->problem, "bias");
  for (int axis = 0; axis < 4 && bias >= 0; axis++)
    a->oracle.bias_extent[axis] = fg_recipe_extent(r, r->tensor[bias].axes[axis], s);
  a->oracle.mask = a->formula.mask, a->oracle.score = a->formula.score;
  a->oracle.n_inputs = a->formula.n_inputs;
  a->oracle.inputs = a->formula.inputs, a->oracle.grad = a->formula.grad;
}

/* What a row's Delta is made of. */
static const double *forward_of_delta(const attention *a) {
  return a->oracle.normalizer->sums_values ? a->exact.u : a->exact.o;
}

/* Values of q, k or v, [heads, n, width], become what they stand for: times the descale of their
 * key/value head, or of their block of tokens. */
static void descale(const reference_case *c, const reference_sequence *s, const char *tensor,
                    int64_t heads, int64_t n, int64_t width, double *values) {
  const int at = fg_problem_find(c->problem, tensor);
  const double *scale = at < 0 ? NULL : c->value[at];
  const int64_t hk = c->problem->shape.hk, block = c->variant->point.descale_block;
  if (!scale) return;
  const fg_recipe_tensor *t = &c->problem->recipe->tensor[at];
  const int64_t blocks =
      block ? fg_recipe_extent(c->problem->recipe, t->axes[2], &c->problem->shape) : 1;
  for (int64_t h = 0; h < heads; h++)
    for (int64_t i = 0; i < n; i++) {
      const int64_t head = (s->b * hk + h / (heads / hk)) * blocks;
      const double own = scale[head + (block ? i / block : 0)];
      for (int64_t j = 0; j < width; j++) values[(h * n + i) * width + j] *= own;
    }
}

/* One pass of the oracle over one sequence; rounded: NULL, or the rounding of its results. */
static fg_status solve_sequence(reference_case *c, const reference_sequence *s,
                                int (*oracle)(const oracle_problem *, oracle_result *),
                                double (*rounded)(double), oracle_result *all) {
  attention *a = c->own;
  const fg_shape *shape = &c->problem->shape;
  const struct {
    const double *values, **place;
    reference_row *row;
    int64_t heads, n, width;
    const char *scale;
  } parts[] = {
      {reference_value(c, "q"), &a->oracle.q, reference_row_q, shape->h, s->nq, a->oracle.d,
       "q_descale"},
      {reference_value(c, "k"), &a->oracle.k, reference_row_k, shape->hk, s->nk, a->oracle.d,
       "k_descale"},
      {reference_value(c, "v"), &a->oracle.v, reference_row_k, shape->hk, s->nk, a->oracle.dv,
       "v_descale"},
      {reference_value(c, "do"), &a->oracle.dout, reference_row_q, shape->h, s->nq, a->oracle.dv,
       NULL},
      {oracle == oracle_backward ? forward_of_delta(a) : NULL, &a->oracle.o, reference_row_q,
       shape->h, s->nq, a->oracle.dv, NULL},
      {reference_value(c, "dlse"), &a->oracle.dlse, reference_row_kept, shape->h, s->nq, 1, NULL}};
  enum { PARTS = sizeof parts / sizeof *parts };
  double *gathered[PARTS] = {NULL};
  oracle_result part = {0};
  fg_status status = FG_OK;
  a->oracle.nq = s->nq, a->oracle.nk = s->nk, a->oracle.round = rounded;
  attention_set_first(a, c->problem, s);
  for (int i = 0; i < PARTS; i++) {
    *parts[i].place = NULL;
    if (!parts[i].values) continue;
    *parts[i].place = gathered[i] = reference_gather(s, parts[i].values, parts[i].row,
                                                     parts[i].heads, parts[i].n, parts[i].width);
    if (!gathered[i]) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for the oracle"));
    if (parts[i].scale)
      descale(c, s, parts[i].scale, parts[i].heads, parts[i].n, parts[i].width, gathered[i]);
  }
  if (oracle(&a->oracle, &part)) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for the oracle"));
  attention_keep(c, s, &part, all);
  all->seen += part.seen, all->sampled += part.sampled, all->steep += part.steep;
out:
  for (int i = 0; i < PARTS; i++) free(gathered[i]);
  oracle_free(&part);
  return status;
}

/* Zeros for as many values as the tensor of that name has; rows that no sequence has stay so. */
static bool make(const reference_case *c, const char *name, double **values, double **rss) {
  const int tensor = fg_problem_find(c->problem, name);
  const size_t n = tensor < 0 ? 0 : (size_t)fg_problem_count(c->problem, tensor);
  free(*values);
  *values = calloc(n + 1, sizeof **values);
  if (!rss) return *values != NULL;
  free(*rss);
  *rss = calloc(n + 1, sizeof **rss);
  return *values && *rss;
}

static bool make_results(const reference_case *c, bool backward, oracle_result *r) {
  const attention *a = c->own;
  bool good = true;
  if (backward) r->largest_ds = 0;
  if (!backward) {
    r->seen = r->sampled = r->steep = 0;
    const int64_t rows = c->problem->recipe->layout.q == FG_PACKED
                             ? c->problem->shape.h * c->problem->shape.tokens_q
                             : c->problem->shape.b * c->problem->shape.h * c->problem->shape.nq;
    const size_t n = (size_t)(rows * c->variant->point.dv) + 1;
    free(r->o), free(r->o_rss), free(r->u), free(r->u_rss); /* of a backward that reads none, too */
    r->o = calloc(n, sizeof *r->o), r->o_rss = calloc(n, sizeof *r->o_rss);
    r->u = calloc(n, sizeof *r->u), r->u_rss = calloc(n, sizeof *r->u_rss);
    free(r->max_logit), free(r->lse_cut), free(r->max_logit_cut);
    const int64_t heads = c->problem->shape.b * c->problem->shape.h;
    r->max_logit = malloc(((size_t)heads + 1) * sizeof *r->max_logit);
    r->lse_cut = calloc((size_t)rows + 1, sizeof *r->lse_cut);
    r->max_logit_cut = calloc((size_t)heads + 1, sizeof *r->max_logit_cut);
    for (int64_t i = 0; r->max_logit && i < heads; i++) r->max_logit[i] = -INFINITY;
    good = r->o && r->o_rss && r->u && r->u_rss && r->max_logit && r->lse_cut && r->max_logit_cut;
    free(r->lse);
    r->lse = malloc(((size_t)rows + 1) * sizeof *r->lse);
    for (int64_t i = 0; r->lse && i < rows; i++) r->lse[i] = attention_normalizer(c)->empty;
    return good && r->lse;
  }
  good = make(c, "dq", &r->dq, &r->dq_rss) && make(c, "dk", &r->dk, &r->dk_rss) &&
         make(c, "dv", &r->dv, &r->dv_rss) && make(c, "dbias", &r->dbias, &r->dbias_rss) &&
         make(c, "dsink", &r->dsink, &r->dsink_rss);
  for (int i = 0; i < a->formula.n_inputs; i++) {
    char name[FG_NAME_SIZE + 1];
    snprintf(name, sizeof name, "d%s", a->formula.inputs[i].name);
    good = good && make(c, name, &r->dinput[i], &r->dinput_rss[i]);
  }
  return good;
}

/* One pass over all sequences. */
static fg_status solve_all(reference_case *c, bool backward, double (*rounded)(double),
                           oracle_result *all) {
  if (!make_results(c, backward, all)) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  for (int64_t b = 0; b < c->problem->shape.b; b++) {
    const reference_sequence s = reference_sequence_of(c, b);
    TRY(solve_sequence(c, &s, backward ? oracle_backward : oracle_forward, rounded, all));
  }
  return FG_OK;
}

/* What backward reads of forward's results, if it does. */
static fg_status put_saved(reference_case *c, const char *name, double *values) {
  const int tensor = name ? fg_problem_find(c->problem, name) : -1;
  if (tensor < 0 || c->problem->recipe->tensor[tensor].slot >= 0) return FG_OK;
  return reference_put(c, tensor, values);
}

/* What rounding weights to e4m3 costs, and the limits that follow. */
static fg_status solve_e4m3(reference_case *c) {
  attention *a = c->own;
  const int64_t n = fg_problem_count(c->problem, fg_problem_find(c->problem, "o"));
  a->oracle.is_e4m3 = 1;
  TRY(solve_all(c, false, NULL, &a->plain));
  a->oracle.is_e4m3 = 0;
  a->o_limit = fmax(oracle_limit(FG_ELEM_E4M3),
                    1.2 * oracle_error(n, a->plain.o, a->exact.o, a->exact.o_rss));
  return FG_OK;
}

static fg_status solve_forward(reference_case *c) {
  attention *a = c->own;
  TRY(set_slices(c));
  return solve_all(c, false, NULL, &a->exact);
}

/* Inputs are drawn again or made smaller until the case judges something. */
static fg_status solve_drawn(reference_case *c) {
  TRY(solve_forward(c));
  for (int turn = 1; turn <= 8 && attention_sees_little(c); turn++) {
    TRY(attention_draw_again(c, turn));
    TRY(solve_forward(c));
  }
  for (int turn = 0; turn < 6; turn++) {
    const int shift = attention_shift_of_q(c);
    if (!shift) break;
    TRY(attention_scale(c, "q", -shift));
    TRY(solve_forward(c));
  }
  return FG_OK;
}

/* Gradients are linear in dO and dLSE: they are made as large as f16 holds well. */
static fg_status solve_backward(reference_case *c) {
  attention *a = c->own;
  TRY(solve_all(c, true, NULL, &a->exact));
  const int shift = attention_shift_of_gradients(c);
  if (!shift) return FG_OK;
  TRY(attention_scale(c, "do", shift));
  TRY(attention_scale(c, "dlse", shift));
  return solve_all(c, true, NULL, &a->exact);
}

/* Backward is judged from the o and lse that the kernel is given: rounded by reference_put. */
static fg_status solve(reference_case *c, int plain) {
  attention *a = c->own;
  const bool backward = c->variant->point.pass == FG_PASS_BACKWARD;
  double (*const rounding)(double) = oracle_round(fg_point_elem(&c->variant->point));
  TRY(reference_poison(c));
  verify_formula_bind(&a->formula, c->problem, c->value);
  set_oracle(c);
  TRY(solve_drawn(c));
  if (backward) {
    TRY(put_saved(c, "o", a->exact.o));
    TRY(put_saved(c, "u", a->exact.u));
    TRY(put_saved(c, attention_normalizer(c)->second, a->exact.lse));
    TRY(solve_backward(c));
  }
  if (fg_point_elem(&c->variant->point) == FG_ELEM_E4M3)
    TRY(solve_e4m3(c));
  else if (plain)
    TRY(solve_all(c, backward, rounding, &a->plain));
  return verify_formula_check(&a->formula);
}

const oracle_problem *reference_attention_problem(const reference_case *c) {
  attention *a = c->own;
  const fg_shape *s = &c->problem->shape;
  const reference_sequence first = {.c = c};
  attention_set_first(a, c->problem, &first);
  a->oracle.b = s->b, a->oracle.nq = s->nq, a->oracle.nk = s->nk;
  a->oracle.q = reference_value(c, "q"), a->oracle.k = reference_value(c, "k");
  a->oracle.v = reference_value(c, "v"), a->oracle.o = forward_of_delta(a);
  a->oracle.dout = reference_value(c, "do"), a->oracle.dlse = reference_value(c, "dlse");
  a->oracle.round = NULL;
  return &a->oracle;
}

static reference_values find(const reference_case *c, const char *name) {
  const attention *a = c->own;
  const struct {
    const char *name;
    reference_values values;
  } rows[] = {
      {"o", {.ref = a->exact.o, .rss = a->exact.o_rss, .plain = a->plain.o, .limit = a->o_limit}},
      {"lse", {.ref = a->exact.lse, .cut = a->exact.lse_cut}},
      {"r", {.ref = a->exact.lse, .limit = 1e-5}},
      {"u", {.ref = a->exact.u, .rss = a->exact.u_rss, .limit = 1e-4}},
      {"max_logit", {.ref = a->exact.max_logit, .cut = a->exact.max_logit_cut}},
      {"dq", {.ref = a->exact.dq, .rss = a->exact.dq_rss, .plain = a->plain.dq}},
      {"dk", {.ref = a->exact.dk, .rss = a->exact.dk_rss, .plain = a->plain.dk}},
      {"dv", {.ref = a->exact.dv, .rss = a->exact.dv_rss, .plain = a->plain.dv}},
      {"dbias", {.ref = a->exact.dbias, .rss = a->exact.dbias_rss, .plain = a->plain.dbias}},
      {"dsink", {.ref = a->exact.dsink, .rss = a->exact.dsink_rss, .plain = a->plain.dsink}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name)) return rows[i].values;
  const char *bare = fg_input_bare(name);
  for (int i = 0; i < a->formula.n_inputs && *bare == 'd'; i++)
    if (!strcmp(a->formula.inputs[i].name, bare + 1))
      return (reference_values){
          .ref = a->exact.dinput[i], .rss = a->exact.dinput_rss[i], .plain = a->plain.dinput[i]};
  return (reference_values){0};
}

/* dS goes to the products of dQ and dK in the spec's dtype. */
static void tell(const reference_case *c, verify_verdict *verdict) {
  const attention *a = c->own;
  const fg_shape *s = &c->problem->shape;
  const double most = a->exact.largest_ds;
  if (!verdict->pass && fg_point_elem(&c->variant->point) == FG_ELEM_F16 && most > 65504)
    snprintf(verdict->reason, sizeof verdict->reason,
             "dS reaches %.3g, beyond f16's range of 65504", most);
  for (int64_t b = 0; b < s->b; b++) {
    const reference_sequence own = reference_sequence_of(c, b);
    verdict->pairs += s->h * own.nq * own.nk;
  }
  verdict->seen = a->exact.seen;
  attention_find_claim(c, sizeof verdict->claim, verdict->claim);
}

static void free_own(reference_case *c) {
  attention *a = c->own;
  if (!a) return;
  verify_formula_free(&a->formula);
  reference_slices_free(&a->slices);
  oracle_free(&a->exact);
  oracle_free(&a->plain);
  free(a);
}

static const char *const saved[] = {"o", "lse", "r", "u", NULL};
const reference reference_attention = {saved, start, attention_draw, solve,
                                       find,  tell,  free_own,       NULL};
