/* expand.c - hands a variant to expand.lua and takes plans, text, map and recipe back. */
#include "gen.h"

#include "base/spelling.h"
#include "embedded.h"
#include "formula/tree_bound.h"
#include "overlay.h"
#include "recipe_read.h"
#include "template.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fg_gen *self(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

/* Returns a text to Lua; while that copies it, the state holds it. */
static int hand_over(lua_State *L, char *text, size_t size) {
  fg_gen *gen = self(L);
  free(gen->handed);
  gen->handed = text;
  lua_pushlstring(L, text, size);
  gen->handed = NULL;
  free(text);
  return 1;
}

/* A folder that is not there or is empty is an error, once something is read. */
static fg_status check_folder(fg_gen *gen) {
  if (!gen->templates || gen->is_checked) return FG_OK;
  TRY(fg_overlay_check(gen->templates));
  gen->is_checked = true;
  return FG_OK;
}

/* gen.read(name) -> text */
static int lua_read(lua_State *L) {
  fg_gen *gen = self(L);
  fg_template_text text;
  fg_status status = check_folder(gen);
  if (status == FG_OK) status = fg_overlay_read(gen->templates, luaL_checkstring(L, 1), &text);
  if (status != FG_OK) return fg_lua_raise(L, status, true);
  if (text.own) return hand_over(L, text.own, text.size);
  lua_pushlstring(L, text.data, text.size);
  return 1;
}

/* gen.translate(name, text) -> Lua */
static int lua_translate(lua_State *L) {
  size_t size, lua_size;
  const char *name = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &size);
  char *lua;
  fg_status status = fg_template_translate(name, text, size, &lua, &lua_size);
  if (status != FG_OK) return fg_lua_raise(L, status, false);
  return hand_over(L, lua, lua_size);
}

/* gen.recipe(description) -> the members of Params */
static int lua_recipe(lua_State *L) {
  fg_gen *gen = self(L);
  char text[8192] = "";
  lua_settop(L, 1);
  fg_status status = fg_recipe_read(L, &gen->formula, gen->point, gen->recipe);
  if (status == FG_OK) status = fg_recipe_params(gen->recipe, sizeof text, text);
  if (status != FG_OK) return fg_lua_raise(L, status, false);
  gen->recipe = NULL;
  lua_pushstring(L, text);
  return 1;
}

/* gen.has(name): is there a template of that name? */
static int lua_has(lua_State *L) {
  lua_pushboolean(L, fg_overlay_has(self(L)->templates, luaL_checkstring(L, 1)));
  return 1;
}

/* A text of names, a line each. */
typedef struct {
  char text[4096];
  size_t n;
} file_names;

/* Adds the name of a file that ends so, without its ending; others, and what has no room, are left
 * out. */
static void add_name(file_names *list, const char *name, const char *ending) {
  const size_t n = strlen(name), end = strlen(ending);
  if (n <= end || strcmp(name + n - end, ending) || list->n + n > sizeof list->text) return;
  list->n += (size_t)snprintf(list->text + list->n, sizeof list->text - list->n, "%.*s\n",
                              (int)(n - end), name);
}

/* Adds what the folder has and the library has not; a missing folder adds nothing. */
static fg_status add_new_names(file_names *list, const char *templates, const char *folder) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", templates, folder);
  DIR *directory = opendir(path);
  if (!directory && errno == ENOMEM)
    return fg_fail(FG_EMEMORY, "templates %s: no memory to read it", path);
  for (struct dirent *e; directory && (e = readdir(directory));)
    if (!fg_overlay_has(NULL, (snprintf(path, sizeof path, "%s/%s", folder, e->d_name), path)))
      add_name(list, e->d_name, ".lua");
  if (directory) closedir(directory);
  return FG_OK;
}

/* gen.files(folder) -> the names of its Lua files, a line each, in any order */
static int lua_files(lua_State *L) {
  const fg_gen *gen = self(L);
  const char *folder = luaL_checkstring(L, 1);
  const size_t n = strlen(folder);
  file_names list = {.n = 0};
  for (const fg_embedded *file = fg_embedded_templates; file->name; file++)
    if (!strncmp(file->name, folder, n) && file->name[n] == '/')
      add_name(&list, file->name + n + 1, ".lua");
  if (gen->templates) {
    const fg_status status = add_new_names(&list, gen->templates, folder);
    if (status != FG_OK) return fg_lua_raise(L, status, false);
  }
  lua_pushlstring(L, list.text, list.n);
  return 1;
}

/* gen.nearest(name, names) -> the one of the list that is nearest in spelling, or nil */
static int lua_nearest(lua_State *L) {
  enum { MOST = 200 };
  const char *names[MOST];
  const char *name = luaL_checkstring(L, 1);
  int n = 0;
  luaL_checkstack(L, MOST, NULL);
  for (int i = 1; i <= (int)lua_rawlen(L, 2) && n < MOST; i++) {
    lua_rawgeti(L, 2, i);
    names[n++] = lua_tostring(L, -1);
  }
  lua_pushstring(L, fg_nearest(name, names, n));
  return 1;
}

/* gen.refuse(sentence): raises FG_EARGUMENT; what the user asks for is wrong, not a template. */
static int lua_refuse(lua_State *L) {
  return fg_lua_raise(L, fg_fail(FG_EARGUMENT, "%s", luaL_checkstring(L, 1)), false);
}

/* gen.plan(candidate) -> the plan with all its fields, or nil */
static int lua_plan(lua_State *L) { return fg_gen_take_plan(L, self(L)); }

/* gen's own chunks: expand.lua, which is given those behind it. */
static const char *const chunks[] = {"expand.lua", "layout.lua", "switches.lua", "family.lua",
                                     "parts.lua", "environment.lua"};
enum { CHUNKS = sizeof chunks / sizeof *chunks };

/* Runs the first of the chunks below `gen` with the functions that it may call and the other
 * chunks, and keeps the table that it returns. */
static int boot_expand(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"read", lua_read},     {"translate", lua_translate}, {"recipe", lua_recipe},
      {"has", lua_has},       {"files", lua_files},         {"nearest", lua_nearest},
      {"refuse", lua_refuse}, {"plan", lua_plan},           {NULL, NULL},
  };
  fg_gen *gen = lua_touserdata(L, CHUNKS + 1);
  lua_pushvalue(L, 1);
  luaL_newlibtable(L, functions);
  lua_pushlightuserdata(L, gen);
  luaL_setfuncs(L, functions, 1);
  for (int i = 2; i <= CHUNKS; i++) lua_pushvalue(L, i);
  lua_call(L, CHUNKS, 1);
  gen->expand = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}

static fg_status no_memory(void) { return fg_fail(FG_EMEMORY, "no memory for the template state"); }

fg_status fg_gen_use(fg_gen *gen, const char *templates) {
  char *own = NULL;
  if (templates && *templates && !(own = strdup(templates))) return no_memory();
  free(gen->templates);
  gen->templates = own;
  gen->is_checked = false;
  gen->listed.n = 0; /* the plans of other templates */
  return FG_OK;
}

fg_status fg_gen_new(const char *templates, fg_gen **out) {
  fg_status status = FG_OK;
  fg_gen *gen = calloc(1, sizeof *gen);
  if (!gen) return no_memory();
  TRY_OUT(fg_gen_use(gen, templates));
  TRY_OUT(fg_template_state_new(&gen->L));
  lua_pushcfunction(gen->L, boot_expand);
  for (int i = 0; i < CHUNKS; i++) {
    const fg_embedded *own = fg_embedded_find(fg_embedded_gen, chunks[i]);
    char name[32];
    snprintf(name, sizeof name, "=%s", own->name);
    TRY_OUT(fg_lua_load(gen->L, name, own->text, own->size, FG_EBUG));
  }
  lua_pushlightuserdata(gen->L, gen);
  TRY_OUT(fg_lua_call(gen->L, CHUNKS + 1, 0, FG_EBUG));
  *out = gen;
  gen = NULL;
out:
  fg_gen_free(gen);
  return status;
}

void fg_gen_free(fg_gen *gen) {
  if (!gen) return;
  fg_state_free(gen->L);
  fg_formula_free(&gen->formula);
  free(gen->templates);
  free(gen->handed);
  free(gen->listed.plan);
  free(gen);
}

const char *fg_gen_lua(void) { return LUA_RELEASE; }

/* The index of a template's name among the source's files; adds it when new. */
static fg_status file_index(fg_source *s, const char *name, int *index) {
  for (*index = 0; *index < s->n_files; ++*index)
    if (!strcmp(s->file[*index], name)) return FG_OK;
  char **grown = realloc(s->file, sizeof *grown * (size_t)(s->n_files + 1));
  if (grown) s->file = grown;
  if (!grown || !(grown[s->n_files] = strdup(name)))
    return fg_fail(FG_EMEMORY, "no memory for the map of lines");
  s->n_files++;
  return FG_OK;
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
    s->line_file[i] = -1;
    if (lua_type(L, -2) == LUA_TSTRING) TRY(file_index(s, lua_tostring(L, -2), &s->line_file[i]));
    s->line[i] = (int)lua_tointeger(L, -1);
    lua_pop(L, 4);
  }
  *at = 0;
  return FG_OK;
}

/* One request for a text; the source is its caller's. */
typedef struct {
  fg_gen *gen;
  const fg_variant *variant;
  const char *name;
  fg_source *source;
  fg_status status;
} request;

/* job for expand(): the variant's, with its plan and name. */
static void push_variant(fg_gen *gen, const fg_variant *variant, const char *name) {
  lua_State *L = gen->L;
  fg_gen_push_job(gen, &variant->point, variant->arch);
  fg_gen_set_text(L, "name", name);
  fg_gen_set_text(L, "family", fg_plan_family(&variant->plan));
  fg_gen_push_plan(L, &variant->plan);
  lua_setfield(L, -2, "plan");
  fg_gen_push_plan_fields(L, &variant->plan);
  lua_setfield(L, -2, "plan_fields");
}

static int ask_text(lua_State *L) {
  request *r = lua_touserdata(L, 1);
  fg_gen_push_function(r->gen, "expand");
  push_variant(r->gen, r->variant, r->name);
  lua_call(L, 1, 1);
  r->status = take_lines(L, r->source);
  return 0;
}

static int ask_recipe(lua_State *L) {
  request *r = lua_touserdata(L, 1);
  fg_gen_push_function(r->gen, "recipe");
  push_variant(r->gen, r->variant, r->name);
  lua_call(L, 1, 0);
  return 0;
}

/* Expands with the formula that gen holds. */
static fg_status expand(fg_gen *gen, const fg_variant *variant, fg_source **source) {
  char name[FG_NAME_MAX];
  fg_status status = FG_OK;
  fg_source *s = calloc(1, sizeof *s);
  if (!s) return fg_fail(FG_EMEMORY, "no memory for a source");
  request r = {.gen = gen, .variant = variant, .name = name, .source = s};
  fg_variant_name(variant, sizeof name, name);
  gen->point = &variant->point;
  gen->recipe = &s->recipe;
  TRY_OUT(fg_gen_run(gen, ask_text, &r));
  TRY_OUT(r.status);
  *source = s;
  s = NULL;
out:
  if (status != FG_OK) fg_fail_in(status, "%s", name);
  fg_source_free(s);
  return status;
}

/* Checks that the plan is one of the point's and makes its formula the current one. Errors begin
 * with the name of the variant. */
static fg_status read_variant(fg_gen *gen, const fg_variant *variant) {
  char name[FG_NAME_MAX];
  fg_status status = fg_gen_check_plan(gen, variant);
  if (status == FG_OK) status = fg_gen_read_formula(gen, &variant->point);
  if (status == FG_OK) return FG_OK;
  fg_variant_name(variant, sizeof name, name);
  return fg_fail_in(status, "%s", name);
}

fg_status fg_gen_expand(fg_gen *gen, const fg_variant *variant, fg_source **source) {
  TRY(read_variant(gen, variant));
  return expand(gen, variant, source);
}

fg_status fg_gen_recipe(fg_gen *gen, const fg_variant *variant, fg_recipe *recipe) {
  char name[FG_NAME_MAX];
  fg_recipe made = {0};
  TRY(read_variant(gen, variant));
  request r = {.gen = gen, .variant = variant, .name = name};
  fg_variant_name(variant, sizeof name, name);
  gen->point = &variant->point;
  gen->recipe = &made;
  fg_status status = fg_gen_run(gen, ask_recipe, &r);
  if (status != FG_OK) return fg_fail_in(status, "%s", name);
  *recipe = made;
  return FG_OK;
}

typedef struct {
  fg_gen *gen;
  const fg_variant *variant;
  const char *name;
  size_t size;
  char *text;
} switches_request;

static int ask_switches(lua_State *L) {
  switches_request *r = lua_touserdata(L, 1);
  fg_gen_push_function(r->gen, "switches");
  push_variant(r->gen, r->variant, r->name);
  lua_call(L, 1, 1);
  snprintf(r->text, r->size, "%s", lua_tostring(L, -1));
  return 0;
}

fg_status fg_gen_switches(fg_gen *gen, const fg_variant *variant, size_t size, char *text) {
  char name[FG_NAME_MAX];
  TRY(read_variant(gen, variant));
  fg_variant_name(variant, sizeof name, name);
  switches_request r = {gen, variant, name, size, text};
  fg_status status = fg_gen_run(gen, ask_switches, &r);
  return status == FG_OK ? FG_OK : fg_fail_in(status, "%s", name);
}

fg_status fg_gen_expand_unskipped(fg_gen *gen, const fg_variant *variant, fg_source **source) {
  TRY(read_variant(gen, variant));
  if (!fg_formula_bounds(&gen->formula)) {
    *source = NULL;
    return FG_OK;
  }
  gen->formula.unskipped = true;
  TRY(expand(gen, variant, source));
  (*source)->unskipped = true;
  return FG_OK;
}
