/* formula_lua.c - hands trees, bounds, derivatives and C text to the templates. */
#include "formula_lua.h"

#include "formula/tree_bound.h"
#include "formula/tree_diff.h"
#include "formula/tree_emit.h"
#include "formula/tree_extent.h"
#include "formula/tree_recipe.h"
#include "formula/tree_term.h"
#include "formula/tree_traits.h"
#include "formula_lua_set.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fg_formula *self(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

static int check_node(lua_State *L, int at) {
  lua_Integer node = luaL_checkinteger(L, at);
  luaL_argcheck(L, node > 0 && node < self(L)->tree.n, at, "no node");
  return (int)node;
}

/* formula.uses(node, "k"): does the value depend on that name? */
static int lua_uses(lua_State *L) {
  const char *name = luaL_checkstring(L, 2);
  bool found = false;
  for (int i = 0; i < FG_NAMES; i++)
    found |= !strcmp(fg_name_text[i], name) &&
             fg_tree_uses(&self(L)->tree, check_node(L, 1), (fg_name)i);
  lua_pushboolean(L, found);
  return 1;
}

static int lua_takes(lua_State *L) {
  lua_Integer i = luaL_checkinteger(L, 2);
  luaL_argcheck(L, i >= 1 && i <= self(L)->n_inputs, 2, "no input");
  lua_pushboolean(L, fg_tree_takes(&self(L)->tree, check_node(L, 1), (int)i - 1));
  return 1;
}

static int lua_reads(lua_State *L) {
  lua_pushboolean(L, fg_tree_reads_memory(&self(L)->tree, check_node(L, 1)));
  return 1;
}

static int lua_reads_or_calls(lua_State *L) {
  lua_pushboolean(L, fg_formula_reads_or_calls(self(L), check_node(L, 1)));
  return 1;
}

/* formula.known(node): true or false for a test that is constant, else nil. */
static int lua_known(lua_State *L) {
  const fg_node *x = &self(L)->tree.node[check_node(L, 1)];
  if (x->op != FG_NODE_CONSTANT || x->type != FG_TYPE_BOOL) return 0;
  lua_pushboolean(L, x->number > 0);
  return 1;
}

static int lua_wide(lua_State *L) {
  lua_pushboolean(L, fg_tree_wide(&self(L)->tree, check_node(L, 1)));
  return 1;
}

/* Has the expression a number that may lie beyond 2^30, which float32 does not hold exactly? */
static bool has_far_part(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node];
  if (x->op == FG_NODE_CONSTANT) return fabs(x->number) > 0x1p30;
  if (x->op == FG_NODE_READ || x->op == FG_NODE_FLOOR) return x->type == FG_TYPE_INT;
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++)
    if (has_far_part(t, x->arg[i])) return true;
  return false;
}

/* May a bound lie so far out that its distance from a position exceeds 32 bits? */
static int lua_far(lua_State *L) {
  int node = check_node(L, 1);
  lua_pushboolean(L, fg_tree_wide(&self(L)->tree, node) || has_far_part(&self(L)->tree, node));
  return 1;
}

/* formula.text(node): as users write it. */
static int lua_text(lua_State *L) {
  const fg_formula *f = self(L);
  int node = check_node(L, 1), n = fg_formula_print(f, node, 0, NULL);
  luaL_Buffer b;
  char *text = luaL_buffinitsize(L, &b, (size_t)n + 1);
  fg_formula_print(f, node, (size_t)n + 1, text);
  luaL_pushresultsize(&b, (size_t)n);
  return 1;
}

/* Appends what tanh is taken of in the node to the list on the stack. */
static void list_tanhs(lua_State *L, int node) {
  const fg_node *x = &self(L)->tree.node[node];
  luaL_checkstack(L, 2, NULL);
  if (x->op == FG_NODE_TANH) {
    lua_pushinteger(L, x->arg[0]);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++) list_tanhs(L, x->arg[i]);
}

static int lua_tanhs(lua_State *L) {
  int node = check_node(L, 1);
  lua_newtable(L);
  list_tanhs(L, node);
  return 1;
}

static const char *text_of(lua_State *L, int table, const char *key) {
  const char *text = lua_getfield(L, table, key) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1); /* the table holds it */
  return text;
}

static bool flag_of(lua_State *L, int table, const char *key) {
  lua_getfield(L, table, key);
  bool flag = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return flag;
}

/* The names that the families give: texts stay in the table's strings, which outlive the call. A
 * name that is not given stands for itself. */
static fg_emit_names read_names(lua_State *L, int table) {
  const fg_formula *f = self(L);
  fg_emit_names names = {.k_base = text_of(L, table, "k_base"),
                         .k_offset = text_of(L, table, "k_offset"),
                         .s_unit = text_of(L, table, "s_unit"),
                         .s_raw = text_of(L, table, "s_raw"),
                         .origin = text_of(L, table, "origin"),
                         .reach = text_of(L, table, "reach"),
                         .first_q = text_of(L, table, "first_q"),
                         .first_k = text_of(L, table, "first_k"),
                         .has_row = text_of(L, table, "has_row"),
                         .of_head = text_of(L, table, "of_head"),
                         .of_row = text_of(L, table, "of_row"),
                         .s_first = flag_of(L, table, "s_first"),
                         .score_is_weight = flag_of(L, table, "score_is_weight"),
                         .join = flag_of(L, table, "join"),
                         .hoist = flag_of(L, table, "hoist")};
  for (int i = 0; i < FG_NAMES; i++) {
    names.name[i] = text_of(L, table, fg_name_text[i]);
    if (!names.name[i]) names.name[i] = fg_name_text[i];
  }
  lua_getfield(L, table, "log2");
  names.log2 = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  if (lua_getfield(L, table, "staged") == LUA_TTABLE)
    for (int i = 0; i < f->n_inputs; i++)
      names.staged[i] = text_of(L, lua_gettop(L), f->input[i].name);
  lua_pop(L, 1);
  return names;
}

/* The nodes of the list in the first place. */
static int *read_nodes(lua_State *L, int *n) {
  luaL_checktype(L, 1, LUA_TTABLE);
  *n = (int)lua_rawlen(L, 1);
  int *nodes = lua_newuserdatauv(L, (size_t)(*n + 1) * sizeof *nodes, 0);
  for (int i = 0; i < *n; i++) {
    lua_rawgeti(L, 1, i + 1);
    lua_Integer node = lua_tointeger(L, -1);
    luaL_argcheck(L, node >= 0 && node < self(L)->tree.n, 1, "no node");
    nodes[i] = (int)node;
    lua_pop(L, 1);
  }
  return nodes;
}

/* Hands the texts over: protected, so that they are freed when Lua has no memory. */
static int push_texts(lua_State *L) {
  const fg_emitted *texts = lua_touserdata(L, 1);
  lua_createtable(L, 0, 5);
  set_text(L, "head", texts->head);
  set_text(L, "row", texts->row);
  lua_pushboolean(L, texts->row_reads);
  lua_setfield(L, -2, "row_reads");
  lua_createtable(L, texts->n, 0);
  for (int i = 0; i < texts->n; i++) {
    lua_pushboolean(L, texts->reads[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "reads");
  lua_createtable(L, texts->n, 0);
  for (int i = 0; i < texts->n; i++) {
    lua_pushstring(L, texts->value[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "values");
  return 1;
}

/* The same for one text. */
static int push_text(lua_State *L) {
  lua_pushstring(L, lua_touserdata(L, 1));
  return 1;
}

/* formula.emit(nodes, names): the C texts of the values, and the declarations before them. */
static int lua_emit(lua_State *L) {
  int n;
  luaL_checktype(L, 2, LUA_TTABLE);
  const int *nodes = read_nodes(L, &n);
  fg_emit_names names = read_names(L, 2);
  fg_emitted texts;
  fg_status status = fg_formula_emit(self(L), n, nodes, &names, &texts);
  if (status != FG_OK) return fg_lua_raise(L, status, false);
  lua_pushcfunction(L, push_texts);
  lua_pushlightuserdata(L, &texts);
  int failed = lua_pcall(L, 1, 1, 0);
  fg_emitted_free(&texts);
  return failed ? lua_error(L) : 1;
}

/* formula.unit(node, names): the factor between s and a scaled s, of which the node is one. */
static int lua_unit(lua_State *L) {
  const fg_formula *f = self(L);
  int node = check_node(L, 1);
  char *text;
  luaL_checktype(L, 2, LUA_TTABLE);
  fg_emit_names names = read_names(L, 2);
  luaL_argcheck(L, fg_tree_is_scaled_s(&f->tree, node) && !fg_tree_reads(&f->tree, node), 1,
                "no scaled s");
  luaL_argcheck(L, names.s_unit != NULL, 2, "no s_unit");
  fg_status status = fg_formula_emit_unit(f, node, &names, &text);
  if (status != FG_OK) return fg_lua_raise(L, status, false);
  lua_pushcfunction(L, push_text);
  lua_pushlightuserdata(L, text);
  int failed = lua_pcall(L, 1, 1, 0);
  free(text);
  return failed ? lua_error(L) : 1;
}

/* formula.recipe(node, at): the node as an expression over the extents of a launch, names
 * replaced by the texts of `at`; nil where it is none. */
static int lua_recipe(lua_State *L) {
  fg_formula *f = self(L);
  fg_node_text at[FG_NAMES];
  char text[FG_LENGTHS_TEXT];
  int node = check_node(L, 1), n = 0;
  luaL_checktype(L, 2, LUA_TTABLE);
  for (int i = 0; i < FG_NAMES; i++) {
    const char *lengths = text_of(L, 2, fg_name_text[i]);
    if (lengths) at[n++] = (fg_node_text){(fg_name)i, lengths};
  }
  if (!fg_formula_recipe(f, node, n, at, sizeof text, text)) return 0;
  lua_pushstring(L, text);
  return 1;
}

/* formula.entries(text): how many entries the compiled expression of a recipe has; nil where the
 * text is none. */
static int lua_entries(lua_State *L) {
  fg_expr expr;
  if (fg_expr_compile(luaL_checkstring(L, 1), fg_shape_forms[FG_FORM_PAIRS].letters, &expr) !=
      FG_OK)
    return 0;
  lua_pushinteger(L, expr.n);
  return 1;
}

/* formula.address(input, gradient, indices, names): the C text of an element's address. */
static int lua_address(lua_State *L) {
  const fg_formula *f = self(L);
  lua_Integer i = luaL_checkinteger(L, 1);
  const char *index[FG_NODE_ARGS] = {NULL};
  char text[4096];
  luaL_argcheck(L, i >= 1 && i <= f->n_inputs, 1, "no input");
  luaL_checktype(L, 3, LUA_TTABLE);
  luaL_checktype(L, 4, LUA_TTABLE);
  const fg_emit_names names = {.first_q = text_of(L, 4, "first_q"),
                               .first_k = text_of(L, 4, "first_k")};
  for (int a = 0; a < f->input[i - 1].rank; a++) {
    lua_rawgeti(L, 3, a + 1);
    index[a] = luaL_checkstring(L, -1);
  }
  int n = fg_input_address(&f->input[i - 1], lua_toboolean(L, 2), index, &names, sizeof text, text);
  luaL_argcheck(L, (size_t)n < sizeof text, 3, "the indices are too long");
  lua_pushstring(L, text);
  return 1;
}

/* Sets table[key] to the range of keys or rows that a mask leaves visible. */
static void push_range(lua_State *L, const char *key, fg_visible range) {
  lua_createtable(L, 0, 4);
  set_node(L, "first", range.first);
  set_node(L, "last", range.end);
  set_bool(L, "exact", range.exact);
  set_bool(L, "exact_for_one", range.exact_for_one);
  lua_setfield(L, -2, key);
}

/* Sets table.traits (tree_traits.h says what each means). */
static void push_traits(lua_State *L, const fg_traits *x) {
  const struct {
    const char *name;
    bool value;
  } bools[] = {{"is_s", x->is_s},
               {"adds_to_s", x->adds_to_s},
               {"is_linear_in_s_and_k", x->is_linear_in_s_and_k},
               {"is_uneven_in_k", x->is_uneven_in_k},
               {"chooses_unevenly", x->chooses_unevenly},
               {"tanhs_are_of_scaled_s", x->tanhs_are_of_scaled_s},
               {"mask_reads", x->mask_reads},
               {"mask_uses_inputs", x->mask_uses_inputs},
               {"has_wide_quotient", x->has_wide_quotient}};
  lua_createtable(L, 0, 16);
  for (size_t i = 0; i < sizeof bools / sizeof *bools; i++)
    set_bool(L, bools[i].name, bools[i].value);
  set_node(L, "tanh_count", x->tanh_count);
  set_node(L, "mask_size", x->mask_size);
  set_node(L, "score_size", x->score_size);
  if (fabs(x->cap) > 0) {
    lua_pushnumber(L, x->cap);
    lua_setfield(L, -2, "cap");
  }
  lua_setfield(L, -2, "traits");
}

/* Raises why a node could not be made. */
static void check_made(lua_State *L, const fg_formula *f, int node) {
  fg_status status = fg_tree_check(&f->tree, node);
  if (status != FG_OK) fg_lua_raise(L, status, false);
}

void fg_formula_push(lua_State *L, fg_formula *f, bool backward) {
  static const luaL_Reg functions[] = {{"uses", lua_uses},
                                       {"takes", lua_takes},
                                       {"reads", lua_reads},
                                       {"reads_or_calls", lua_reads_or_calls},
                                       {"known", lua_known},
                                       {"wide", lua_wide},
                                       {"far", lua_far},
                                       {"text", lua_text},
                                       {"recipe", lua_recipe},
                                       {"entries", lua_entries},
                                       {"tanhs", lua_tanhs},
                                       {"emit", lua_emit},
                                       {"unit", lua_unit},
                                       {"address", lua_address},
                                       {NULL, NULL}};
  luaL_newlibtable(L, functions);
  lua_pushlightuserdata(L, f);
  luaL_setfuncs(L, functions, 1);
  const int score = backward ? fg_formula_backward_score(f) : f->score;
  const int slope = fg_tree_diff(&f->tree, f->score, fg_tree_name(&f->tree, FG_NAME_S));
  if (backward) check_made(L, f, score), check_made(L, f, slope);
  set_node(L, "mask", f->mask);
  set_node(L, "score", score);
  set_node(L, "terms_of_pair", fg_tree_terms_of_pair(&f->tree, score));
  set_node(L, "slope", slope);
  lua_createtable(L, f->n_inputs, 0);
  for (int i = 0; i < f->n_inputs; i++) {
    fg_formula_push_input(L, f, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "inputs");
  fg_traits traits = fg_formula_traits(f, score);
  push_traits(L, &traits);
  fg_tile_test tile = fg_formula_tile(f);
  char whole[256];
  if (fg_formula_whole(f, sizeof whole, whole)) set_text(L, "whole", whole);
  set_node(L, "never", tile.never);
  set_node(L, "always", tile.always);
  set_node(L, "always_end", fg_formula_always_end(f));
  push_range(L, "keys", fg_formula_visible(f, false));
  push_range(L, "queries", fg_formula_visible(f, true));
  push_range(L, "seen_by_all", fg_formula_seen_by_all(f));
  set_node(L, "first_key", fg_formula_first_key(f));
  check_made(L, f, f->tree.no_memory ? 0 : f->score);
}
