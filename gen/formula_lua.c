/* formula_lua.c - hands trees, bounds, derivatives and C text to the templates. */
#include "formula_lua.h"

#include "formula_parse.h"
#include "tree_bound.h"
#include "tree_diff.h"
#include "tree_emit.h"
#include "tree_extent.h"
#include "tree_linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fg_formula *self(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

static void set_node(lua_State *L, const char *key, int node) {
  if (!node) return;
  lua_pushinteger(L, node);
  lua_setfield(L, -2, key);
}

static void set_text(lua_State *L, const char *key, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

static void set_bool(lua_State *L, const char *key, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, key);
}

static int check_node(lua_State *L, int at) {
  lua_Integer node = luaL_checkinteger(L, at);
  luaL_argcheck(L, node > 0 && node < self(L)->tree.n, at, "no node");
  return (int)node;
}

static int lua_uses(lua_State *L) {
  const char *name = luaL_checkstring(L, 2);
  bool found = false;
  for (int i = 0; i < FG_NAMES; i++)
    found |= !strcmp(fg_name_text[i], name) &&
             fg_tree_uses(&self(L)->tree, check_node(L, 1), (fg_name)i);
  lua_pushboolean(L, found);
  return 1;
}

static int lua_wide(lua_State *L) {
  lua_pushboolean(L, fg_tree_wide(&self(L)->tree, check_node(L, 1)));
  return 1;
}

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

static fg_emit_names read_names(lua_State *L, int table) {
  const fg_formula *f = self(L);
  fg_emit_names names = {.k_base = text_of(L, table, "k_base"),
                         .k_offset = text_of(L, table, "k_offset"),
                         .s_unit = text_of(L, table, "s_unit"),
                         .s_raw = text_of(L, table, "s_raw"),
                         .origin = text_of(L, table, "origin"),
                         .reach = text_of(L, table, "reach"),
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
  lua_createtable(L, 0, 3);
  set_text(L, "head", texts->head);
  set_text(L, "row", texts->row);
  lua_createtable(L, texts->n, 0);
  for (int i = 0; i < texts->n; i++) {
    lua_pushstring(L, texts->value[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "values");
  return 1;
}

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

static int lua_address(lua_State *L) {
  const fg_formula *f = self(L);
  lua_Integer i = luaL_checkinteger(L, 1);
  const char *index[FG_NODE_ARGS] = {NULL};
  char text[4096];
  luaL_argcheck(L, i >= 1 && i <= f->n_inputs, 1, "no input");
  luaL_checktype(L, 3, LUA_TTABLE);
  for (int a = 0; a < f->input[i - 1].rank; a++) {
    lua_rawgeti(L, 3, a + 1);
    index[a] = luaL_checkstring(L, -1);
  }
  int n = fg_input_address(&f->input[i - 1], lua_toboolean(L, 2), index, sizeof text, text);
  luaL_argcheck(L, (size_t)n < sizeof text, 3, "the indices are too long");
  lua_pushstring(L, text);
  return 1;
}

/* ---- reads of inputs ---- */

static const char *axis_of(const fg_formula *f, const fg_input *input, int axis, int index) {
  static const struct {
    const char *extent;
    fg_name name;
  } own[] = {{"b", FG_NAME_B}, {"h", FG_NAME_H}, {"q", FG_NAME_Q}, {"k", FG_NAME_K}};
  const fg_node *x = &f->tree.node[index];
  if (!strcmp(input->extent[axis], "1")) return "1";
  for (int i = 0; i < 4; i++)
    if (!strcmp(own[i].extent, input->extent[axis]) && x->op == FG_NODE_NAME &&
        x->which == (int)own[i].name)
      return own[i].extent;
  return "other";
}

/* read.linear, where each index is: its factors of q and k. */
static void push_factors(lua_State *L, const fg_formula *f, const fg_node *read, int rank) {
  double q, k;
  lua_createtable(L, rank, 0);
  for (int i = 0; i < rank; i++) {
    if (!fg_linear_in_q_and_k(&f->tree, read->arg[i], &q, &k)) {
      lua_pop(L, 1);
      return;
    }
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (lua_Integer)q);
    lua_setfield(L, -2, "q");
    lua_pushinteger(L, (lua_Integer)k);
    lua_setfield(L, -2, "k");
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "linear");
}

static void push_read(lua_State *L, fg_formula *f, int node) {
  const fg_node x = f->tree.node[node];
  const fg_input *input = &f->input[x.which];
  int other = 0, others = 0, batches = 0, heads = 0;
  bool diagonal = true, plain = true;
  lua_createtable(L, 0, 8);
  set_node(L, "node", node);
  push_factors(L, f, &x, input->rank);
  if (input->grad) set_node(L, "slope", fg_tree_diff(&f->tree, f->score, node));
  lua_createtable(L, input->rank, 0);
  lua_createtable(L, input->rank, 0);
  for (int i = 0; i < input->rank; i++) {
    lua_pushinteger(L, x.arg[i]);
    lua_rawseti(L, -3, i + 1);
    const char *axis = axis_of(f, input, i, x.arg[i]);
    lua_pushstring(L, axis);
    lua_rawseti(L, -2, i + 1);
    if (!strcmp(axis, "other")) other = i, others++;
    batches += !strcmp(axis, "b"), heads += !strcmp(axis, "h");
    plain &= strcmp(axis, "q") && strcmp(axis, "k") && batches < 2 && heads < 2;
    diagonal &= fg_tree_by_distance(&f->tree, x.arg[i]);
  }
  lua_setfield(L, -3, "axis");
  lua_setfield(L, -2, "index");
  set_bool(L, "diagonal", diagonal);
  double q, k;
  if (others != 1 || !plain || !fg_linear_in_q_and_k(&f->tree, x.arg[other], &q, &k)) return;
  if (fabs(k) > 1 || fabs(k) < 1 || q + k > 0 || q + k < 0) return;
  lua_pushinteger(L, k > 0 ? 1 : -1);
  lua_setfield(L, -2, "affine");
  lua_pushinteger(L, other + 1);
  lua_setfield(L, -2, "affine_axis");
}

/* Is node a part of root? */
static bool occurs(const fg_tree *t, int root, int node) {
  if (root == node) return true;
  for (int i = 0; i < FG_NODE_ARGS && t->node[root].arg[i]; i++)
    if (occurs(t, t->node[root].arg[i], node)) return true;
  return false;
}

static void push_reads(lua_State *L, fg_formula *f, int input) {
  int count = 0, n = f->tree.n;
  lua_newtable(L);
  for (int i = 1; i < n; i++) {
    const fg_node *x = &f->tree.node[i];
    if (x->op != FG_NODE_READ || x->which != input || !occurs(&f->tree, f->score, i)) continue;
    push_read(L, f, i);
    lua_rawseti(L, -2, ++count);
  }
}

/* May an extent exceed 32 bits? That of an axis does not. */
static bool is_wide_extent(fg_formula *f, const char *extent) {
  static const fg_definitions none[2];
  int node;
  if (!strpbrk(extent, "*+-/%(")) return false;
  return fg_formula_parse(f, none, "inputs", FG_IN_EXTENT, extent, &node) != FG_OK ||
         fg_tree_wide(&f->tree, node);
}

static void push_input(lua_State *L, fg_formula *f, int i) {
  const fg_input *x = &f->input[i];
  lua_createtable(L, 0, 8);
  set_text(L, "name", x->name);
  set_text(L, "type", x->type == FG_TYPE_INT ? "int" : "float");
  if (x->tensor) set_text(L, "elem", fg_elem_name(x->elem));
  set_bool(L, "tensor", x->tensor);
  set_bool(L, "grad", x->grad);
  lua_createtable(L, x->rank, 0);
  for (int a = 0; a < x->rank; a++) {
    lua_pushstring(L, x->extent[a]);
    lua_rawseti(L, -2, a + 1);
  }
  lua_setfield(L, -2, "extents");
  lua_createtable(L, x->rank, 0);
  for (int a = 0; a < x->rank; a++) {
    lua_pushboolean(L, is_wide_extent(f, x->extent[a]));
    lua_rawseti(L, -2, a + 1);
  }
  lua_setfield(L, -2, "wide");
  push_reads(L, f, i);
  lua_setfield(L, -2, "reads");
}

static void push_range(lua_State *L, const char *key, fg_visible range) {
  lua_createtable(L, 0, 4);
  set_node(L, "first", range.first);
  set_node(L, "last", range.end);
  set_bool(L, "exact", range.exact);
  set_bool(L, "by_one", range.by_one);
  lua_setfield(L, -2, key);
}

void fg_formula_push(lua_State *L, fg_formula *f, bool backward) {
  static const luaL_Reg functions[] = {
      {"uses", lua_uses}, {"text", lua_text}, {"tanhs", lua_tanhs},     {"emit", lua_emit},
      {"wide", lua_wide}, {"far", lua_far},   {"address", lua_address}, {NULL, NULL}};
  luaL_newlibtable(L, functions);
  lua_pushlightuserdata(L, f);
  luaL_setfuncs(L, functions, 1);
  int s = fg_tree_name(&f->tree, FG_NAME_S);
  set_node(L, "mask", f->mask);
  set_node(L, "score", backward ? fg_formula_backward_score(f) : f->score);
  set_bool(L, "linear", f->score == s);
  set_node(L, "slope", fg_tree_diff(&f->tree, f->score, s));
  lua_createtable(L, f->n_inputs, 0);
  for (int i = 0; i < f->n_inputs; i++) {
    push_input(L, f, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "inputs");
  fg_tile_test tile = fg_formula_tile(f);
  char whole[256];
  if (fg_formula_whole(f, sizeof whole, whole)) set_text(L, "whole", whole);
  set_node(L, "never", tile.never);
  set_node(L, "always", tile.always);
  push_range(L, "keys", fg_formula_visible(f, false));
  push_range(L, "queries", fg_formula_visible(f, true));
  push_range(L, "seen_by_all", fg_formula_seen_by_all(f));
  set_node(L, "first_key", fg_formula_first_key(f));
}
