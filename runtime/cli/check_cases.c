/* check_cases.c - what `flashgen check` tries on one variant, and what it says of it. */
#include "check.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Their scales: the default, one that turns the order of scores, none, others; and those of two
 * launches each: with several tiles in both directions, and many of keys. */
static const struct {
  uint32_t given;
  float scale;
  int again;
} usual[CLI_CHECK_SHAPES] = {{0, 0, 0},
                             {FG_GIVEN_SCALE, -0.3f, 1},
                             {FG_GIVEN_SCALE, 0, 0},
                             {FG_GIVEN_SCALE, 1e-3f, 1},
                             {FG_GIVEN_SCALE, 0.5f, 0}};

/* Where integers are drawn: one shape more, of many sequences, which have a length each; of a shape
 * that is named, as many draws. */
enum { DRAWS = 3 };

fg_status check_shapes(const cli *c, const fg_point *point, int *n,
                       fg_shape shapes[CLI_CHECK_SHAPES]) {
  const cli_work *work = cli_work_of(point);
  memcpy(shapes, work->check, sizeof work->check);
  *n = CLI_CHECK_SHAPES;
  if (!cli_shape_is_given(&c->arguments.shape)) return FG_OK;
  *n = 1;
  return cli_shape_fill(c, point, &work->one, shapes);
}

/* The worst of an output so far; one that no case had before joins. */
static verify_error *worst_of(verify_verdict *worst, const verify_error *e) {
  for (int i = 0; i < worst->n; i++)
    if (!strcmp(worst->tensor[i].name, e->name)) return &worst->tensor[i];
  worst->tensor[worst->n] = *e;
  return &worst->tensor[worst->n++];
}

static void keep_worst(verify_verdict *worst, const verify_verdict *v) {
  for (int i = 0; i < v->n; i++) {
    const verify_error *e = &v->tensor[i];
    verify_error *w = worst_of(worst, e);
    const double plain = e->plain > w->plain ? e->plain : w->plain;
    /* a NaN is worst, and stays */
    if (w->error <= w->error && !(e->error / e->limit <= w->error / w->limit)) *w = *e;
    w->plain = plain;
  }
}

/* What is wrong in one case: where, and whose bounds are when skipping tiles changed a result. */
static void tell_wrong(const fg_variant *variant, const verify_case *which,
                       const verify_verdict *verdict, check_outcome *o) {
  static const char claimed[] =
      "the range of given(range, test) does not hold wherever its test does";
  const bool stated = variant->point.mask && strstr(variant->point.mask, "given(");
  char scale[32] = "", numbers[96] = "", shape[FG_SHAPE_WORDS];
  fg_shape_words(fg_point_kind(&variant->point)->form, &which->shape, sizeof shape, shape);
  if (which->given & FG_GIVEN_SCALE)
    snprintf(scale, sizeof scale, " scale=%g", (double)which->scale);
  for (int i = 0, at = 0; i < FG_LAUNCH_NUMBERS; i++)
    if (which->launch.given & fg_launch_numbers[i].given)
      at = fg_append(sizeof numbers, numbers, at, " %s=%g", fg_launch_numbers[i].name,
                     (double)which->launch.value[i]);
  int n = snprintf(o->text, sizeof o->text, "first wrong at %s%s%s%s: ", shape, scale, numbers,
                   which->far ? " with offsets beyond 32 bits" : "");
  if (*verdict->reason)
    fg_append(sizeof o->text, o->text, n, "%s; %s", verdict->wrong, verdict->reason);
  else if (*verdict->skipping)
    fg_append(sizeof o->text, o->text, n, "%s: %s", verdict->skipping,
              stated ? claimed : "a bound that flashgen derives from the mask is wrong");
  else if (*verdict->claim)
    fg_append(sizeof o->text, o->text, n, "%s: %s", verdict->claim, claimed);
  else if (*verdict->wrong)
    fg_append(sizeof o->text, o->text, n, "%s", verdict->wrong);
  else
    fg_append(sizeof o->text, o->text, n, "%s: both launches are to give equal bits",
              verdict->order);
}

/* Does what the kernel sees depend on integers that are drawn? */
static bool has_integers(const fg_recipe *r) {
  for (int i = 0; i < r->n_tensors; i++)
    if (r->tensor[i].elem == FG_ELEM_I32) return true;
  return false;
}

/* One case; what it leaves goes to *o. A score that is no number at a scale that nobody asked for
 * is judged at the default one. */
static fg_status check_case(const check_cases *j, const check_pair *p, verify_case which,
                            check_outcome *o) {
  verify_verdict verdict;
  TRY(verify_run(p->variant, fg_kernel_source(p->kernel), fg_kernel_module(p->kernel), &which, 1,
                 &verdict));
  if (verdict.undefined && which.given & FG_GIVEN_SCALE && !j->c->arguments.has_scale) {
    which.given &= ~(uint32_t)FG_GIVEN_SCALE, which.scale = 0;
    return check_case(j, p, which, o);
  }
  o->cases++;
  o->judged += !verdict.nothing;
  o->pairs += verdict.pairs, o->seen += verdict.seen;
  keep_worst(&o->worst, &verdict);
  if (!verdict.pass && !o->wrong++) tell_wrong(p->variant, &which, &verdict, o);
  return FG_OK;
}

/* A kernel under which no case has a result but 0 was not judged. */
static void tell_empty(const fg_variant *variant, check_outcome *o) {
  if (o->judged || !o->pairs) return;
  if (!o->seen)
    snprintf(o->text, sizeof o->text,
             "the mask shows no pair of a row and a key in any of %d cases, so that nothing was "
             "judged: give inputs that show some, as NAME=X or --in NAME=FILE",
             o->cases);
  else
    snprintf(o->text, sizeof o->text,
             "the exact outputs are 0%s in all of %d cases, so that nothing was judged",
             fg_point_elem(&variant->point) == FG_ELEM_F16 ? ", or below 2^-14," : "", o->cases);
}

/* Where a machine has no addresses for it, that is said. */
static fg_status check_far(const check_cases *j, const check_pair *p, const verify_number *numbers,
                           check_outcome *o) {
  const verify_case which = {.shape = cli_work_of(&p->variant->point)->far,
                             .far = 1,
                             .sm_margin = j->c->arguments.sm_margin,
                             .launch = j->c->arguments.launch,
                             .seed = j->seed,
                             .n_numbers = j->c->n_numbers,
                             .number = numbers};
  if (j->arrays.n) return FG_OK; /* of other shapes */
  const fg_status status = check_case(j, p, which, o);
  if (status != FG_EMEMORY) return status;
  if (!o->wrong)
    snprintf(o->text, sizeof o->text, "offsets beyond 32 bits were not tried: %s", fg_error());
  return FG_OK;
}

/* One row of as many query heads a key head as no tile of rows has. */
static void widen_groups(const check_pair *p, fg_shape *shape) {
  const fg_point *point = &p->variant->point;
  if (fg_point_kind(point) != fg_kind_find("attention")) return;
  shape->h = point->latent ? 80 : 12, shape->hk = 1;
}

fg_status check_cases_run(const check_cases *j, const check_pair *p, check_outcome *o) {
  verify_number numbers[16];
  const bool integers = has_integers(fg_kernel_recipe(p->kernel));
  const fg_kind *kind = fg_point_kind(&p->variant->point);
  fg_shape shapes[CLI_CHECK_SHAPES];
  int n_shapes;
  TRY(check_shapes(j->c, &p->variant->point, &n_shapes, shapes));
  if (n_shapes > 1) widen_groups(p, &shapes[3]);
  const int n = n_shapes > 1 ? n_shapes + integers : integers ? DRAWS : 1;
  for (int i = 0; i < j->c->n_numbers; i++)
    numbers[i] = (verify_number){j->c->number[i].name, j->c->number[i].value};
  for (int i = 0; i < n; i++) {
    const bool more = n_shapes > 1 && i == n_shapes, is_usual = n_shapes > 1 && !more;
    const bool scaled = is_usual && kind->has_scale;
    verify_case which = {.shape =
                             more ? cli_work_of(&p->variant->point)->many : shapes[i % n_shapes],
                         .given = scaled ? usual[i].given : 0,
                         .scale = scaled ? usual[i].scale : 0,
                         .leaves_out = is_usual && (i == 2 || i == 3),
                         .again = is_usual ? usual[i].again : p->variant->point.deterministic,
                         .style = (verify_style)(i % VERIFY_STYLES),
                         .sm_margin = j->c->arguments.sm_margin,
                         .seed = j->seed + (uint64_t)i,
                         .n_numbers = j->c->n_numbers,
                         .number = numbers,
                         .n_arrays = j->arrays.n,
                         .array = j->arrays.array,
                         .unskipped = p->unskipped,
                         .unskipped_module = p->unskipped_module};
    if (j->c->arguments.has_scale)
      which.given = FG_GIVEN_SCALE, which.scale = (float)j->c->arguments.scale;
    which.launch = j->c->arguments.launch;
    if (is_usual && i % 2) fg_launch_values_fill(fg_kernel_recipe(p->kernel), 1, &which.launch);
    /* 0, which is no default, and weights within 2^-20 of 1 */
    if (is_usual && i % 2 && !(j->c->arguments.launch.given & FG_GIVEN_SIGMOID_BIAS))
      which.launch.value[FG_NUMBER_SIGMOID_BIAS] = i == 1 ? 0 : 15;
    TRY(check_case(j, p, which, o));
  }
  if (n_shapes > 1 && j->host) TRY(check_far(j, p, numbers, o));
  if (!o->wrong) tell_empty(p->variant, o);
  return FG_OK;
}
