/* expand.c - hands a variant to expand.lua and takes plans, text, map and recipe back. */
#include "expand.h"

#include "embedded.h"
#include "recipe_read.h"
#include "state.h"
#include "template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fg_gen {
  lua_State *L;
  char *templates;       /* a directory, NULL = the built-in ones */
  int expand;            /* registry reference of expand.lua's table */
  const fg_point *point; /* of the running expansion */
  fg_recipe *recipe;
};

static fg_gen *self(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

/* Raises the last failure as a Lua error; its text already says where. */
static int raise(lua_State *L) {
  lua_pushstring(L, fg_error());
  return lua_error(L);
}

/* The same with the template line that is running in front. */
static int raise_here(lua_State *L) {
  fg_lua_place(L, 1);
  lua_pushstring(L, fg_error());
  lua_concat(L, 2);
  return lua_error(L);
}

static fg_status read_file(const char *directory, const char *name, char **text, size_t *size) {
  char path[1024];
  fg_status status = FG_OK;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *file = fopen(path, "rb");
  if (!file) return fg_fail(FG_ETEMPLATE, "template %s: %s", path, strerror(errno));
  char *data = NULL;
  size_t n = 0, room = 0;
  do {
    if (n == room) {
      char *grown = realloc(data, room = 2 * room + 16384);
      if (!grown) {
        status = fg_fail(FG_EMEMORY, "template %s: no memory to read it", path);
        goto out;
      }
      data = grown;
    }
    n += fread(data + n, 1, room - n, file);
  } while (n == room);
  if (ferror(file)) {
    status = fg_fail(FG_ETEMPLATE, "template %s: cannot be read", path);
    goto out;
  }
  *text = data, *size = n;
  data = NULL;
out:
  free(data);
  fclose(file);
  return status;
}

/* gen.read(name) -> text */
static int lua_read(lua_State *L) {
  fg_gen *gen = self(L);
  const char *name = luaL_checkstring(L, 1);
  if (gen->templates) {
    char *text;
    size_t size;
    if (read_file(gen->templates, name, &text, &size) != FG_OK) return raise_here(L);
    lua_pushlstring(L, text, size);
    free(text);
    return 1;
  }
  const fg_embedded *file = fg_embedded_find(fg_embedded_templates, name);
  if (!file) {
    fg_fail(FG_ETEMPLATE, "template %s: there is none of that name", name);
    return raise_here(L);
  }
  lua_pushlstring(L, file->text, file->size);
  return 1;
}

/* gen.translate(name, text) -> Lua */
static int lua_translate(lua_State *L) {
  size_t size, lua_size;
  const char *name = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &size);
  char *lua;
  if (fg_template_translate(name, text, size, &lua, &lua_size) != FG_OK) return raise(L);
  lua_pushlstring(L, lua, lua_size);
  free(lua);
  return 1;
}

/* gen.recipe(description) -> the members of Params */
static int lua_recipe(lua_State *L) {
  fg_gen *gen = self(L);
  char text[8192] = "";
  lua_settop(L, 1);
  if (fg_recipe_read(L, gen->point, gen->recipe) != FG_OK ||
      fg_recipe_params(gen->recipe, sizeof text, text) != FG_OK)
    return raise(L);
  lua_pushstring(L, text);
  return 1;
}

fg_status fg_gen_new(const char *templates, fg_gen **out) {
  static const luaL_Reg functions[] = {
      {"read", lua_read}, {"translate", lua_translate}, {"recipe", lua_recipe}, {NULL, NULL}};
  const fg_embedded *boot = fg_embedded_find(fg_embedded_gen, "expand.lua");
  fg_status status = FG_OK;
  fg_gen *gen = calloc(1, sizeof *gen);
  if (!gen || (templates && *templates && !(gen->templates = strdup(templates)))) {
    status = fg_fail(FG_EMEMORY, "no memory for the template state");
    goto out;
  }
  TRY_OUT(fg_template_state_new(&gen->L));
  TRY_OUT(fg_lua_load(gen->L, "=expand.lua", boot->text, boot->size, FG_EBUG));
  luaL_newlibtable(gen->L, functions);
  lua_pushlightuserdata(gen->L, gen);
  luaL_setfuncs(gen->L, functions, 1);
  TRY_OUT(fg_lua_call(gen->L, 1, 1, FG_EBUG));
  gen->expand = luaL_ref(gen->L, LUA_REGISTRYINDEX);
  *out = gen;
  gen = NULL;
out:
  fg_gen_free(gen);
  return status;
}

void fg_gen_free(fg_gen *gen) {
  if (!gen) return;
  fg_state_free(gen->L);
  free(gen->templates);
  free(gen);
}

const char *fg_gen_lua(void) { return LUA_RELEASE; }

static void set_text(lua_State *L, const char *key, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, int value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

/* job.spec: each field's text, and what templates compute with; words: "field=value ..." */
static void push_spec(lua_State *L, const fg_point *point, size_t size, char *words) {
  int n = 0;
  lua_newtable(L);
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    char text[64];
    fg_field_print(&fg_fields[i], point, sizeof text, text);
    set_text(L, fg_fields[i].name, text);
    if (fg_fields[i].fallback && !strcmp(text, fg_fields[i].fallback)) continue;
    n += snprintf(words + n, size - (size_t)n, "%s%s=%s", n ? " " : "", fg_fields[i].name, text);
  }
  set_number(L, "d", point->d);
  set_number(L, "dv", point->dv);
  set_text(L, "elem", fg_elem_name(fg_point_elem(point)));
  set_text(L, "bias_elem", fg_elem_name(fg_point_bias_elem(point)));
  set_text(L, "grad_elem", fg_elem_name(fg_point_grad_elem(point)));
}

/* The job table: what plans() and expand() share. */
static void push_job(lua_State *L, const fg_point *point, const char *arch) {
  char words[512];
  lua_newtable(L);
  push_spec(L, point, sizeof words, words);
  lua_setfield(L, -2, "spec");
  set_text(L, "spec_words", words);
  set_text(L, "arch", arch);
  set_text(L, "version", FG_VERSION);
  lua_newtable(L);
  const char *const *families = fg_fields[FG_SPEC_FIELDS].choices;
  for (int i = 0; families[i]; i++) {
    lua_pushstring(L, families[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "families");
}

static void push_function(fg_gen *gen, const char *name) {
  lua_rawgeti(gen->L, LUA_REGISTRYINDEX, gen->expand);
  lua_getfield(gen->L, -1, name);
  lua_remove(gen->L, -2);
}

/* The plan table on top of the stack, as expand.plans gave it. */
static fg_status read_plan(lua_State *L, fg_plan *plan) {
  *plan = (fg_plan){0};
  lua_getfield(L, -1, "family");
  const char *family = lua_tostring(L, -1);
  if (fg_field_read(&fg_fields[FG_SPEC_FIELDS], family, NULL, &plan->value[0]) != FG_OK)
    return fg_fail_in(FG_ETEMPLATE, "a candidate");
  lua_pop(L, 1);
  for (int i = 1; i < FG_PLAN_FIELDS; i++) {
    const char *name = fg_fields[FG_SPEC_FIELDS + i].name;
    int good = lua_getfield(L, -1, name) == LUA_TNIL;
    lua_Integer value = good ? 0 : lua_tointegerx(L, -1, &good);
    if (!good || value < 0 || value > FG_PLAN_MAX)
      return fg_fail(FG_ETEMPLATE, "a candidate of %s: %s must be an integer up to %d",
                     fg_plan_family(plan), name, FG_PLAN_MAX);
    plan->value[i] = (int)value;
    lua_pop(L, 1);
  }
  return FG_OK;
}

/* The list of plans, and above it the refusals' text, are on top of the stack. */
static fg_status take_plans(lua_State *L, const fg_limits *limits, fg_plan **plans, int *n) {
  const char *refused = lua_tostring(L, -1);
  int total = (int)lua_rawlen(L, -2), kept = 0;
  fg_plan *list = calloc((size_t)total + 1, sizeof *list);
  if (!list) return fg_fail(FG_EMEMORY, "no memory for %d plans", total);
  lua_pushvalue(L, -2);
  for (int i = 1; i <= total; i++) {
    lua_rawgeti(L, -1, i);
    fg_status status = read_plan(L, &list[kept]);
    if (status != FG_OK) {
      free(list);
      return status;
    }
    lua_pop(L, 1);
    if (!limits || fg_limits_allow(limits, &list[kept])) kept++;
  }
  if (!kept) {
    free(list);
    return fg_fail(FG_ESPEC, "no plan fits: %d candidates, none within the restrictions%s%s", total,
                   *refused ? "; " : "", refused);
  }
  *plans = list, *n = kept;
  return FG_OK;
}

fg_status fg_gen_plans(fg_gen *gen, const fg_point *point, const char *arch,
                       const fg_limits *limits, fg_plan **plans, int *n) {
  lua_State *L = gen->L;
  int top = lua_gettop(L);
  push_function(gen, "plans");
  push_job(L, point, arch);
  fg_status status = fg_lua_call(L, 1, 2, FG_ETEMPLATE);
  if (status == FG_OK) status = take_plans(L, limits, plans, n);
  lua_settop(L, top);
  return status;
}

/* FG_EARGUMENT unless the family has the plan for this point: a kernel of other sizes would be
 * expanded without complaint and be wrong. */
static fg_status check_plan(fg_gen *gen, const fg_variant *variant) {
  fg_limits exact = {0};
  fg_plan *plans = NULL;
  int n = 0;
  for (int i = 0; i < FG_PLAN_FIELDS; i++)
    exact.n[i] = 1, exact.value[i][0] = variant->plan.value[i];
  fg_status status = fg_gen_plans(gen, &variant->point, variant->arch, &exact, &plans, &n);
  free(plans);
  if (status != FG_ESPEC) return status;
  char plan[FG_NAME_MAX];
  fg_plan_name(&variant->plan, sizeof plan, plan);
  return fg_fail(FG_EARGUMENT, "%s is no plan for this spec and arch: %s", plan, fg_error());
}

/* The index of a template's name among the source's files; adds it when new. -1: no memory. */
static int file_index(fg_source *s, const char *name) {
  for (int i = 0; i < s->n_files; i++)
    if (!strcmp(s->file[i], name)) return i;
  char **grown = realloc(s->file, sizeof *grown * (size_t)(s->n_files + 1));
  if (!grown) return -1;
  s->file = grown;
  if (!(grown[s->n_files] = strdup(name))) return -1;
  return s->n_files++;
}

/* Joins the list of { text, file, line } on top of the stack. */
static fg_status take_lines(lua_State *L, fg_source *s) {
  s->n_lines = (int)lua_rawlen(L, -1);
  for (int i = 1; i <= s->n_lines; i++) {
    lua_rawgeti(L, -1, i);
    lua_getfield(L, -1, "text");
    s->size += lua_rawlen(L, -1) + 1;
    lua_pop(L, 2);
  }
  s->text = malloc(s->size + 1);
  s->line_file = calloc((size_t)s->n_lines + 1, sizeof *s->line_file);
  s->line = calloc((size_t)s->n_lines + 1, sizeof *s->line);
  if (!s->text || !s->line_file || !s->line) return fg_fail(FG_EMEMORY, "no memory for the text");
  char *at = s->text;
  for (int i = 0; i < s->n_lines; i++) {
    size_t n;
    lua_rawgeti(L, -1, i + 1);
    lua_getfield(L, -1, "text");
    lua_getfield(L, -2, "file");
    lua_getfield(L, -3, "line");
    const char *text = lua_tolstring(L, -3, &n);
    memcpy(at, text, n);
    at[n] = '\n';
    at += n + 1;
    s->line_file[i] = lua_type(L, -2) == LUA_TSTRING ? file_index(s, lua_tostring(L, -2)) : -1;
    s->line[i] = (int)lua_tointeger(L, -1);
    lua_pop(L, 4);
  }
  *at = 0;
  return FG_OK;
}

/* job for expand(): the variant's, with its plan and name. */
static void push_variant(lua_State *L, const fg_variant *variant, const char *name) {
  push_job(L, &variant->point, variant->arch);
  set_text(L, "name", name);
  set_text(L, "family", fg_plan_family(&variant->plan));
  lua_newtable(L);
  for (int i = 1; i < FG_PLAN_FIELDS; i++)
    set_number(L, fg_fields[FG_SPEC_FIELDS + i].name, variant->plan.value[i]);
  lua_setfield(L, -2, "plan");
}

fg_status fg_gen_expand(fg_gen *gen, const fg_variant *variant, fg_source **source) {
  lua_State *L = gen->L;
  char name[FG_NAME_MAX];
  fg_status status = FG_OK;
  int top = lua_gettop(L);
  fg_source *s = calloc(1, sizeof *s);
  if (!s) return fg_fail(FG_EMEMORY, "no memory for a source");
  fg_variant_name(variant, sizeof name, name);
  TRY_OUT(check_plan(gen, variant));
  gen->point = &variant->point;
  gen->recipe = &s->recipe;
  push_function(gen, "expand");
  push_variant(L, variant, name);
  TRY_OUT(fg_lua_call(L, 1, 1, FG_ETEMPLATE));
  TRY_OUT(take_lines(L, s));
  *source = s;
  s = NULL;
out:
  if (status != FG_OK) fg_fail_in(status, "%s", name);
  lua_settop(L, top);
  fg_source_free(s);
  return status;
}
