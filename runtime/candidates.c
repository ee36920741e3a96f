/* candidates.c - what there is to choose from for an op: the plans that the zoos have, else those
 * that the families give, kept in the cache, so that a warm start runs no Lua. */
#include "kernels.h"
#include "ops.h"

#include "base/text.h"
#include "spec/point_formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char end_mark[] = "--- end\n"; /* of a plan in a list of candidates */

typedef struct {
  char *text;
  size_t n;
} listing;

/* Appends the plan and its recipe to the text of an entry; read_candidate takes it apart. */
static fg_status add_plan(listing *l, const fg_op *op, const fg_planned *planned) {
  fg_variant variant = {.point = op->point, .plan = planned->plan};
  char name[FG_NAME_MAX], recipe[FG_RECIPE_TEXT];
  strcpy(variant.arch, op->context->device->arch);
  fg_variant_name(&variant, sizeof name, name);
  fg_recipe_print(&planned->recipe, sizeof recipe, recipe);
  size_t more = strlen(name) + strlen(recipe) + 16;
  char *text = realloc(l->text, l->n + more);
  if (!text) return fg_fail(FG_EMEMORY, "no memory for a list of plans");
  l->text = text;
  l->n += (size_t)snprintf(text + l->n, more, "plan %s\n%s--- end\n", name, recipe);
  return FG_OK;
}

/* A request for an op's plans; they are here where this request made the list. */
typedef struct {
  const fg_op *op;
  fg_planned *planned;
  int n;
} order;

/* A producer: every plan within the op's restrictions, and its recipe. */
static fg_status list_plans(void *context, fg_product *product) {
  order *o = context;
  const fg_op *op = o->op;
  fg_context *c = op->context;
  listing l = {0};
  free(o->planned);
  o->planned = NULL, o->n = 0;
  pthread_mutex_lock(&c->gen_lock);
  fg_status status = fg_context_gen(c);
  if (status == FG_OK)
    status =
        fg_gen_candidates(c->gen, &op->point, c->device->arch, &op->limits, &o->planned, &o->n);
  pthread_mutex_unlock(&c->gen_lock);
  if (status == FG_ESPEC || status == FG_EARGUMENT) {
    char name[FG_NAME_MAX];
    fg_point_name(&op->point, sizeof name, name);
    fg_fail_in(status, "%s", name);
  }
  for (int i = 0; i < o->n && status == FG_OK; i++) status = add_plan(&l, op, &o->planned[i]);
  if (status != FG_OK) {
    free(l.text);
    return status;
  }
  product->meta = l.text;
  return FG_OK;
}

/* The plans of this request become the op's candidates. */
static fg_status take_planned(fg_op *op, const order *o) {
  fg_candidate *list = calloc((size_t)o->n, sizeof *list);
  if (!list) return fg_fail(FG_EMEMORY, "no memory for %d plans", o->n);
  for (int i = 0; i < o->n; i++)
    list[i].plan = o->planned[i].plan, list[i].recipe = o->planned[i].recipe;
  op->candidate = list;
  op->n_candidates = o->n;
  return FG_OK;
}

/* The plan of a line "plan SPEC.PLAN.ARCH", of n bytes; false: add_plan wrote no such line. before:
 * what the line begins with, up to the plan; arch: what follows it. */
static bool read_plan(const char *line, size_t n, const char *before, const char *arch,
                      fg_plan *plan) {
  char again[FG_NAME_MAX + 8];
  const size_t m = strlen(before);
  *plan = (fg_plan){0};
  if (n <= m || strncmp(line, before, m) || !fg_plan_parse(line + m, plan)) return false;
  int length = snprintf(again, sizeof again, "%s", before);
  length += fg_plan_name(plan, sizeof again - m, again + m);
  length = fg_append(sizeof again, again, length, ".%s", arch);
  return (size_t)length == n && !strncmp(line, again, n);
}

/* One plan of an entry; FG_EIO where the text is none that add_plan wrote. */
static fg_status read_candidate(const char *text, size_t length, const char *before,
                                const char *arch, fg_candidate *candidate) {
  char recipe[FG_RECIPE_TEXT];
  const size_t line = strcspn(text, "\n");
  if (line >= length || length - line - 1 >= sizeof recipe ||
      !read_plan(text, line, before, arch, &candidate->plan))
    return fg_fail(FG_EIO, "a cached list of plans is damaged");
  snprintf(recipe, sizeof recipe, "%.*s", (int)(length - line - 1), text + line + 1);
  return fg_recipe_parse(recipe, &candidate->recipe);
}

/* The candidates of an entry become the op's; at a failure it has none. */
static fg_status read_candidates(fg_op *op, const char *meta) {
  char before[FG_NAME_MAX + 8] = "plan ";
  strcpy(before + 5 + fg_point_name(&op->point, FG_NAME_MAX, before + 5), ".");
  int room = 0, n = 0;
  for (const char *at = meta; (at = strstr(at, end_mark)); at += strlen(end_mark)) room++;
  fg_candidate *list = calloc((size_t)room + 1, sizeof *list);
  if (!list) return fg_fail(FG_EMEMORY, "no memory for %d plans", room);
  fg_status status = FG_OK;
  for (const char *at = meta, *end; status == FG_OK && (end = strstr(at, end_mark));
       at = end + strlen(end_mark))
    status = read_candidate(at, (size_t)(end - at), before, op->context->device->arch, &list[n++]);
  if (status == FG_OK && !n) status = fg_fail(FG_EIO, "a cached list of plans is empty");
  if (status != FG_OK) {
    free(list);
    return status;
  }
  op->candidate = list;
  op->n_candidates = n;
  return FG_OK;
}

fg_status fg_plans_key(const fg_op *op, fg_key *key) {
  char name[FG_NAME_MAX];
  fg_point_name(&op->point, sizeof name, name);
  TRY(fg_key_start(op->context, "plans", name, key));
  return fg_key_add(key, "limits", &op->limits, sizeof op->limits);
}

/* In place of an entry that a good checksum protects and that still does not read. */
static fg_status relist(order *o, fg_op *op, const fg_key *key) {
  fg_product product = {0};
  TRY(list_plans(o, &product));
  fg_cache_put(op->context->cache, key, product.meta, NULL, 0);
  free(product.meta);
  return take_planned(op, o);
}

/* The families' plans, from the cache if it has them; a damaged entry is made again. */
static fg_status list_all(fg_op *op) {
  order o = {.op = op};
  const fg_entry *entry;
  fg_key key = {0};
  char what[FG_NAME_MAX + FG_ARCH_MAX + 32] = "the plans of ", *name = what + strlen(what);
  fg_status status = FG_OK;
  int n = fg_point_name(&op->point, FG_NAME_MAX, name);
  fg_append(FG_NAME_MAX + FG_ARCH_MAX + 8, name, n, " for %s", op->context->device->arch);
  TRY_OUT(fg_plans_key(op, &key));
  TRY_OUT(fg_context_entry(op->context, what, &key, list_plans, &o, &entry));
  if (!entry) {
    status = fg_op_missing(op, what, name);
    goto out;
  }
  status = o.planned ? take_planned(op, &o) : read_candidates(op, entry->meta);
  fg_entry_free(entry);
  if (status != FG_OK && status != FG_EMEMORY && op->context->jit) status = relist(&o, op, &key);
out:
  free(o.planned);
  fg_key_free(&key);
  return status;
}

/* Zoos ---------------------------------------------------------------------------------------- */

static bool is_listed(const fg_op *op, const fg_plan *plan) {
  for (int i = 0; i < op->n_candidates; i++)
    if (!memcmp(&op->candidate[i].plan, plan, sizeof *plan)) return true;
  return false;
}

/* Adds the item if it is a kernel of the op, and one that can be launched. */
static fg_status add_item(fg_op *op, const fg_zoo_reader *zoo, const fg_zoo_item *item) {
  fg_variant variant;
  fg_recipe recipe;
  if (!fg_expression_of(item->name, item->expression) ||
      fg_variant_parse(item->name, &variant) != FG_OK ||
      !fg_point_equal(&variant.point, &op->point) ||
      strcmp(variant.arch, op->context->device->arch) ||
      !fg_limits_allow(&op->limits, &variant.plan) || is_listed(op, &variant.plan))
    return FG_OK;
  if (fg_zoo_recipe(zoo, item, &recipe) != FG_OK) {
    fg_context_warn(op->context, "a kernel of a zoo cannot be used: %s", fg_error());
    return FG_OK;
  }
  size_t n = (size_t)op->n_candidates;
  fg_candidate *grown = realloc(op->candidate, (n + 1) * sizeof *grown);
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %s", item->name);
  op->candidate = grown;
  grown[n] = (fg_candidate){.plan = variant.plan, .recipe = recipe};
  op->n_candidates++;
  return FG_OK;
}

/* Names begin with the point's: the others are not even taken apart. */
static fg_status list_zoos(fg_op *op) {
  const fg_context *c = op->context;
  fg_status status = FG_OK;
  char name[FG_NAME_MAX], before[FG_NAME_MAX];
  size_t n = (size_t)fg_point_name(&op->point, sizeof name, name);
  size_t m = (size_t)fg_point_name_before(&op->point, sizeof before, before);
  for (int z = 0; z < c->n_zoos; z++)
    for (int i = 0; i < fg_zoo_count(c->zoo[z]) && status == FG_OK; i++) {
      const fg_zoo_item *item = fg_zoo_at(c->zoo[z], i);
      if ((!strncmp(item->name, name, n) && item->name[n] == '.') ||
          (!strncmp(item->name, before, m) && item->name[m] == '.'))
        status = add_item(op, c->zoo[z], item);
    }
  if (status != FG_OK) {
    free(op->candidate);
    op->candidate = NULL;
    op->n_candidates = 0;
  }
  return status;
}

bool fg_op_has_forced(const fg_op *op) {
  for (int i = 0; i < op->n_candidates; i++)
    if (fg_plan_matches(op->context->plan, &op->candidate[i].plan)) return true;
  return false;
}

/* A zoo is what somebody chose: its plans are the choice, without a look at what else there could
 * be; unless a plan is forced that it does not have, and can be had. */
static fg_status list(fg_op *op) {
  TRY(list_zoos(op));
  op->from_zoo = op->n_candidates > 0;
  if (!op->n_candidates) return list_all(op);
  if (!*op->context->plan || fg_op_has_forced(op)) return FG_OK;
  fg_candidate *of_zoos = op->candidate, *unused = of_zoos;
  int n = op->n_candidates;
  if (list_all(op) != FG_OK) return FG_OK;
  if (!fg_op_has_forced(op)) {
    unused = op->candidate;
    op->candidate = of_zoos;
    op->n_candidates = n;
  }
  free(unused);
  return FG_OK;
}

/* Lists once; at a failure the next call tries again. */
fg_status fg_op_candidates(fg_op *op) {
  if (op->n_candidates) return FG_OK;
  TRY(list(op));
  fg_status status = fg_op_remember(op);
  if (status != FG_OK) {
    free(op->candidate);
    fg_memories_free(&op->memories);
    op->candidate = NULL;
    op->n_candidates = 0;
  }
  return status;
}

/* Forced plans -------------------------------------------------------------------------------- */

/* Asks for the plans of one family alone, whose reason is in the failure. */
static fg_status ask_family(fg_op *op, int family) {
  fg_context *c = op->context;
  fg_limits limits = {.n = {1}, .value = {{family}}};
  fg_plan *plans = NULL;
  int n;
  pthread_mutex_lock(&c->gen_lock);
  fg_status status = fg_context_gen(c);
  if (status == FG_OK)
    status = fg_gen_plans(c->gen, &op->point, c->device->arch, &limits, &plans, &n);
  pthread_mutex_unlock(&c->gen_lock);
  free(plans);
  return status;
}

/* The glob begins with the family's name: "mma-*", "mma*". */
static bool names_family(const char *glob, const char *family) {
  size_t n = strlen(family);
  return !strncmp(glob, family, n) && strchr("-*?[,", glob[n]); /* its end, too */
}

static bool allows_family(const fg_limits *limits, int family) {
  bool allowed = limits->n[0] == 0;
  for (int i = 0; i < limits->n[0]; i++) allowed |= limits->value[0][i] == family;
  return allowed;
}

/* Asks each family that a glob names, to have its reason. */
fg_status fg_op_check_forced(fg_op *op) {
  const char *const *families = fg_fields[FG_SPEC_FIELDS].choices;
  char name[FG_NAME_MAX];
  fg_point_name(&op->point, sizeof name, name);
  for (const char *at = op->context->plan, *next; *at; at = next + (*next == ',')) {
    next = at + strcspn(at, ",");
    for (int f = 0; families[f]; f++) {
      if (!names_family(at, families[f]) || !allows_family(&op->limits, f)) continue;
      if (ask_family(op, f) != FG_ESPEC) continue;
      return fg_fail_in(FG_EARGUMENT, "%s: the plan %.*s is forced and does not apply", name,
                        (int)(next - at), at);
    }
  }
  return FG_OK;
}
