/* plans.c - asks expand.lua for the plans of a point. */
#include "gen.h"

#include "base/setting.h"
#include "base/text.h"
#include "formula_lua.h"
#include "spec/point_formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fg_gen_set_text(lua_State *L, const char *key, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

void fg_gen_set_number(lua_State *L, const char *key, int value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

/* Pushes the field's text; only an expression may be long. */
static void push_text(lua_State *L, const fg_field *field, const fg_point *point) {
  char text[64];
  if (field->type->is_expression)
    lua_pushstring(L, fg_field_text(field, point));
  else
    lua_pushlstring(L, text, (size_t)fg_field_print(field, point, sizeof text, text));
}

/* Appends "field=value" to the words on top of the stack, quoted where a shell needs it. */
static void add_word(lua_State *L, const fg_field *field, const char *text) {
  const char *quote = strpbrk(text, " ()<>&|*;[]?!") ? "'" : "";
  const char *space = *lua_tostring(L, -1) ? " " : "";
  lua_pushfstring(L, "%s%s%s=%s%s", space, quote, field->name, text, quote);
  lua_concat(L, 2);
}

/* The point's widths as numbers under their names: d and dv. */
static void push_widths(lua_State *L, const fg_point *point) {
  const char *letters = fg_point_kind(point)->widths;
  int width[FG_WIDTHS_MAX];
  fg_point_widths(point, width);
  for (int i = 0; letters[i]; i++) fg_gen_set_number(L, fg_axis_name(letters[i]), width[i]);
}

/* job.spec: each field's text, and what templates compute with; leaves it, and above it the words
 * that say the same, "field=value ...". */
static void push_spec(lua_State *L, const fg_point *point) {
  lua_newtable(L);
  lua_pushliteral(L, "");
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    if (!fg_field_belongs(&fg_fields[i], point)) continue;
    push_text(L, &fg_fields[i], point);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, fg_fields[i].name);
    const char *text = lua_tostring(L, -1);
    bool usual = fg_fields[i].fallback && !strcmp(text, fg_fields[i].fallback);
    lua_insert(L, -2);
    if (!usual) add_word(L, &fg_fields[i], text);
    lua_remove(L, -2);
  }
  lua_insert(L, -2);
  push_widths(L, point);
  fg_gen_set_text(L, "elem", fg_elem_name(fg_point_elem(point)));
  fg_gen_set_text(L, "kv_elem", fg_elem_name(fg_point_kv_elem(point)));
  fg_gen_set_text(L, "bias_elem", fg_elem_name(fg_point_bias_elem(point)));
  fg_gen_set_text(L, "o_elem", fg_elem_name(fg_point_o_elem(point)));
  fg_gen_set_text(L, "dqkv_elem", fg_elem_name(fg_point_dqkv_elem(point)));
  fg_gen_set_text(L, "grad_elem", fg_elem_name(fg_point_grad_elem(point)));
  lua_insert(L, -2);
}

/* Requests for one point follow each other: its plans, its texts. */
fg_status fg_gen_read_formula(fg_gen *gen, const fg_point *point) {
  gen->formula.unskipped = false;
  if (gen->has_formula && fg_point_equal(&gen->formula_of, point)) return FG_OK;
  gen->has_formula = false;
  fg_formula_free(&gen->formula);
  TRY(fg_point_learn(point));
  TRY(fg_point_formula(point, &gen->formula));
  gen->formula_of = *point;
  gen->has_formula = true;
  return FG_OK;
}

/* A failure may be one of memory in the midst of the formula. */
fg_status fg_gen_run(fg_gen *gen, lua_CFunction function, void *request) {
  const fg_status status = fg_lua_run(gen->L, function, request, FG_ETEMPLATE);
  gen->has_formula &= status == FG_OK;
  return status;
}

/* What families ask of an architecture. */
static void push_machine(lua_State *L, const fg_arch *arch) {
  lua_newtable(L);
  fg_gen_set_number(L, "block_kb", arch->block_kb);
  fg_gen_set_number(L, "cluster_threads", fg_arch_cluster_threads(arch));
  for (const fg_feature_name *x = fg_feature_names; x->name; x++) {
    lua_pushboolean(L, fg_arch_has(arch, x->feature));
    lua_setfield(L, -2, x->name);
  }
}

/* All that a family may know of a spec and an arch; the plan is added by whoever asks for one. */
void fg_gen_push_job(fg_gen *gen, const fg_point *point, const char *arch) {
  lua_State *L = gen->L;
  lua_newtable(L);
  push_spec(L, point);
  lua_setfield(L, -3, "spec_words");
  lua_setfield(L, -2, "spec");
  fg_formula_push(L, &gen->formula, point->pass == FG_PASS_BACKWARD);
  lua_setfield(L, -2, "formula");
  push_machine(L, fg_arch_find(arch));
  lua_setfield(L, -2, "machine");
  push_text(L, fg_field_find("pass"), point);
  lua_setfield(L, -2, "pass");
  fg_gen_set_text(L, "arch", arch);
  fg_gen_set_text(L, "version", FG_VERSION);
  fg_gen_set_text(L, "switches", fg_switches_forced());
  lua_newtable(L);
  const char *const *families = fg_fields[FG_SPEC_FIELDS].choices;
  for (int i = 0; families[i]; i++) {
    lua_pushstring(L, families[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "families");
}

void fg_gen_push_function(const fg_gen *gen, const char *name) {
  lua_rawgeti(gen->L, LUA_REGISTRYINDEX, gen->expand);
  lua_getfield(gen->L, -1, name);
  lua_remove(gen->L, -2);
}

void fg_gen_push_plan(lua_State *L, const fg_plan *plan) {
  lua_newtable(L);
  for (int i = 1; i < FG_PLAN_FIELDS; i++)
    if (fg_field_is_of(&fg_fields[FG_SPEC_FIELDS + i], fg_plan_family(plan)))
      fg_gen_set_number(L, fg_fields[FG_SPEC_FIELDS + i].name, plan->value[i]);
}

/* Pushes the names of the fields that plans of the family have, in the order of names. */
void fg_gen_push_plan_fields(lua_State *L, const fg_plan *plan) {
  int n = 0;
  lua_newtable(L);
  for (int i = 1; i < FG_PLAN_FIELDS; i++) {
    const fg_field *field = &fg_fields[FG_SPEC_FIELDS + i];
    if (!fg_field_is_of(field, fg_plan_family(plan))) continue;
    lua_pushstring(L, field->name);
    lua_rawseti(L, -2, ++n);
  }
}

/* The plan table on top of the stack, as a family gives it. */
static fg_status read_plan(lua_State *L, fg_plan *plan) {
  *plan = (fg_plan){0};
  lua_getfield(L, -1, "family");
  const char *family = lua_tostring(L, -1);
  if (fg_field_read(&fg_fields[FG_SPEC_FIELDS], family, NULL, &plan->value[0]) != FG_OK)
    return fg_fail_in(FG_ETEMPLATE, "a candidate");
  lua_pop(L, 1);
  for (int i = 1; i < FG_PLAN_FIELDS; i++) {
    const fg_field *field = &fg_fields[FG_SPEC_FIELDS + i];
    const char *name = field->name;
    const int absent = lua_getfield(L, -1, name) == LUA_TNIL;
    int good = absent;
    lua_Integer value = good ? 0 : lua_tointegerx(L, -1, &good);
    if (!absent && !fg_field_is_of(field, fg_plan_family(plan)))
      return fg_fail(FG_ETEMPLATE, "a candidate of %s: its plans have no field %s",
                     fg_plan_family(plan), name);
    if (!good || value < 0 || value > FG_PLAN_MAX)
      return fg_fail(FG_ETEMPLATE, "a candidate of %s: %s must be an integer up to %d",
                     fg_plan_family(plan), name, FG_PLAN_MAX);
    plan->value[i] = (int)value;
    lua_pop(L, 1);
  }
  return FG_OK;
}

/* One request for plans; the lists are its caller's when it ends well. */
typedef struct fg_listing {
  fg_gen *gen;
  const fg_limits *limits;
  fg_listed all;       /* every family's that is asked */
  bool narrow;         /* those that the limits name are; else every one */
  fg_planned *planned; /* those within the limits; NULL: their recipes are not wanted */
  bool recipes;        /* they are */
  int kept;            /* within the limits */
  fg_status status;
} request;

/* Room for one more in both lists. */
static fg_status grow(request *r) {
  fg_plan *all = realloc(r->all.plan, ((size_t)r->all.n + 1) * sizeof *all);
  if (all) r->all.plan = all;
  fg_planned *planned =
      r->recipes && all ? realloc(r->planned, ((size_t)r->kept + 1) * sizeof *planned) : NULL;
  if (planned) r->planned = planned;
  return all && (planned || !r->recipes)
             ? FG_OK
             : fg_fail(FG_EMEMORY, "no memory for %d plans", r->all.n + 1);
}

/* Keeps the plan; returns it with all its fields to Lua, which then describes it, or nothing. */
int fg_gen_take_plan(lua_State *L, fg_gen *gen) {
  request *r = gen->listing;
  fg_plan plan;
  lua_settop(L, 1);
  fg_status status = read_plan(L, &plan);
  if (status == FG_OK) status = grow(r);
  if (status != FG_OK) return fg_lua_raise(L, status, false);
  r->all.plan[r->all.n++] = plan;
  if (r->limits && !fg_limits_allow(r->limits, &plan)) return 0;
  const int place = r->kept++;
  if (!r->recipes) return 0;
  r->planned[place] = (fg_planned){.plan = plan};
  gen->recipe = &r->planned[place].recipe;
  fg_gen_push_plan(L, &plan);
  return 1;
}

/* Plans within the limits that do not fit, from the list on top: "; wgmma-q128-...: its tiles need
 * 321 KB ...", of the first few. */
static fg_status take_unfit(lua_State *L, const request *r, size_t size, char *text) {
  enum { FEW = 3 };
  int told = 0, n = 0;
  *text = 0;
  for (int i = 1; i <= (int)lua_rawlen(L, -1) && told < FEW; i++) {
    fg_plan plan;
    char name[64];
    lua_rawgeti(L, -1, i);
    TRY(read_plan(L, &plan));
    lua_getfield(L, -1, "why");
    if (!r->limits || fg_limits_allow(r->limits, &plan)) {
      fg_plan_name(&plan, sizeof name, name);
      n = fg_append(size, text, n, "; %s: %s", name, lua_tostring(L, -1));
      told++;
    }
    lua_pop(L, 2);
  }
  return FG_OK;
}

/* The text of refusals, above it the plans that do not fit. */
static fg_status check_kept(lua_State *L, const request *r) {
  char unfit[1024];
  if (r->kept) return FG_OK;
  TRY(take_unfit(L, r, sizeof unfit, unfit));
  const char *refused = lua_tostring(L, -2);
  return fg_fail(FG_ESPEC, "no plan fits: %d candidates, none within the restrictions%s%s%s",
                 r->all.n, *refused ? "; " : "", refused, unfit);
}

/* Replaces job.families of the job on top by those that the limits name, in their order. */
static void narrow_families(lua_State *L, const fg_limits *limits) {
  const char *const *families = fg_fields[FG_SPEC_FIELDS].choices;
  int n = 0;
  lua_newtable(L);
  for (int i = 0; families[i]; i++)
    for (int v = 0; v < limits->n[0]; v++)
      if (limits->value[0][v] == i) {
        lua_pushstring(L, families[i]);
        lua_rawseti(L, -2, ++n);
        break;
      }
  lua_setfield(L, -2, "families");
}

/* Runs expand.plans, which calls back for each plan. */
static int ask_plans(lua_State *L) {
  request *r = lua_touserdata(L, 1);
  fg_gen_push_function(r->gen, "plans");
  fg_gen_push_job(r->gen, &r->all.point, r->all.arch);
  if (r->narrow) narrow_families(L, r->limits);
  lua_call(L, 1, 2);
  r->status = check_kept(L, r);
  return 0;
}

/* The plan whose description failed. */
static fg_status name_failure(const request *r, fg_status status) {
  char name[FG_NAME_MAX];
  fg_variant variant = {.point = r->all.point, .plan = r->planned[r->kept - 1].plan};
  strcpy(variant.arch, r->all.arch);
  fg_variant_name(&variant, sizeof name, name);
  return fg_fail_in(status, "%s", name);
}

/* Asks the families that the limits name, which is quicker than all; where they have nothing, all,
 * so that the failure says what each of them has. */
static fg_status ask(request *r) {
  r->narrow = r->limits && r->limits->n[0] > 0;
  const fg_status status = fg_gen_run(r->gen, ask_plans, r);
  if (status != FG_OK || r->kept || !r->narrow) return status;
  r->narrow = false, r->all.n = 0;
  return fg_gen_run(r->gen, ask_plans, r);
}

/* Fills the request's lists; where all goes well, the gen knows them as the last ones. */
static fg_status list(request *r, const fg_point *point, const char *arch) {
  fg_gen *gen = r->gen;
  TRY(fg_arch_check(arch));
  TRY(fg_gen_read_formula(gen, point));
  r->all.point = *point;
  strcpy(r->all.arch, arch);
  gen->point = point, gen->recipe = NULL, gen->listing = r;
  fg_status status = ask(r);
  gen->listing = NULL;
  if (status != FG_OK && gen->recipe) status = name_failure(r, status);
  if (status == FG_OK) status = r->status;
  if (status != FG_OK) {
    free(r->all.plan);
    free(r->planned);
    return status;
  }
  free(gen->listed.plan);
  gen->listed = r->all;
  return FG_OK;
}

/* Lists all plans and copies those within the limits. */
fg_status fg_gen_plans(fg_gen *gen, const fg_point *point, const char *arch,
                       const fg_limits *limits, fg_plan **plans, int *n) {
  request r = {.gen = gen, .limits = limits};
  TRY(list(&r, point, arch));
  fg_plan *kept = malloc((size_t)r.kept * sizeof *kept);
  if (!kept) return fg_fail(FG_EMEMORY, "no memory for %d plans", r.kept);
  *n = 0;
  for (int i = 0; i < r.all.n; i++)
    if (!limits || fg_limits_allow(limits, &r.all.plan[i])) kept[(*n)++] = r.all.plan[i];
  *plans = kept;
  return FG_OK;
}

fg_status fg_gen_candidates(fg_gen *gen, const fg_point *point, const char *arch,
                            const fg_limits *limits, fg_planned **planned, int *n) {
  request r = {.gen = gen, .limits = limits, .recipes = true};
  TRY(list(&r, point, arch));
  *planned = r.planned, *n = r.kept;
  return FG_OK;
}

/* Is the variant's plan one of the last listing? */
static bool was_listed(const fg_listed *listed, const fg_variant *variant) {
  if (!listed->n || strcmp(listed->arch, variant->arch) ||
      !fg_point_equal(&listed->point, &variant->point))
    return false;
  for (int i = 0; i < listed->n; i++)
    if (!memcmp(&listed->plan[i], &variant->plan, sizeof variant->plan)) return true;
  return false;
}

/* Lists the plan's equals, unless the last listing has it. */
fg_status fg_gen_check_plan(fg_gen *gen, const fg_variant *variant) {
  fg_limits exact = {0};
  fg_plan *plans = NULL;
  int n = 0;
  if (was_listed(&gen->listed, variant)) return FG_OK;
  for (int i = 0; i < FG_PLAN_FIELDS; i++)
    exact.n[i] = 1, exact.value[i][0] = variant->plan.value[i];
  fg_status status = fg_gen_plans(gen, &variant->point, variant->arch, &exact, &plans, &n);
  free(plans);
  if (status != FG_ESPEC) return status;
  char plan[FG_NAME_MAX];
  fg_plan_name(&variant->plan, sizeof plan, plan);
  return fg_fail(FG_EARGUMENT, "%s is no plan for this spec and arch: %s", plan, fg_error());
}
