/* check_plan.c - the kernel that `flashgen check` tries: of the plan that was named, or of the
 * first one that the compiler takes, which dispatch would launch. */
#include "check.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static fg_status make(const check_plans *plans, check_pair *p) {
  TRY(fg_variant_kernel(plans->context, p->variant, &p->kernel));
  if (!fg_context_compiles(plans->context))
    return FG_OK; /* and nothing can be compiled to compare with */
  TRY(fg_gen_expand_unskipped(plans->v->gen, p->variant, &p->unskipped));
  if (!p->unskipped) return FG_OK;
  return fg_module_new(fg_context_device(plans->context), p->unskipped, cli_info(p->kernel).name,
                       &p->unskipped_module);
}

/* The first plan counts as one that nobody named where none of these options says which. */
static bool may_be_another(const cli *c) {
  return !c->n_names && !c->filter && (!c->plans || !strcmp(c->plans, "first"));
}

/* The plan behind *at that --plan lets through; false: there is no further one. */
static bool next_plan(const cli *c, const fg_plan *plans, int n, const fg_plan *first, int *at) {
  for (; *at < n; ++*at) {
    char name[64];
    fg_plan_name(&plans[*at], sizeof name, name);
    if (memcmp(&plans[*at], first, sizeof *first) && (!c->plan || !fnmatch(c->plan, name, 0)))
      return true;
  }
  return false;
}

fg_status check_pair_make(const check_plans *plans, check_pair *p, check_outcome *o) {
  const cli *c = plans->c;
  fg_plan *list;
  int n, at = 0;
  fg_status status = make(plans, p);
  if (status != FG_ECOMPILER || !may_be_another(c)) return status;
  const fg_variant *first = p->variant;
  const fg_limits *limits = fg_grid_limits(plans->v->grid, &first->point);
  char *why = strdup(fg_error());
  if (!why) return fg_fail(FG_EMEMORY, "no memory for a failure");
  snprintf(o->refused, sizeof o->refused, "%s", why);
  TRY_OUT(fg_gen_plans(plans->v->gen, &first->point, first->arch, limits, &list, &n));
  status = FG_ECOMPILER;
  p->other = *first;
  p->variant = &p->other;
  for (; status == FG_ECOMPILER && next_plan(c, list, n, &first->plan, &at); at++) {
    check_pair_free(p);
    p->other.plan = list[at];
    status = make(plans, p);
  }
  free(list);
  if (status == FG_ECOMPILER) {
    p->variant = first;
    fg_fail(status, "%s", why);
    *o->refused = 0;
  }
out:
  free(why);
  return status;
}

void check_pair_free(check_pair *p) {
  fg_module_free(p->unskipped_module);
  fg_source_free(p->unskipped);
  fg_kernel_free(p->kernel);
  p->unskipped_module = NULL, p->unskipped = NULL, p->kernel = NULL;
}
