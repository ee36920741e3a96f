/* formula_lua_set.h - members of the table on top of the stack, for formula_lua.c and
 * formula_lua_inputs.c. */
#ifndef FG_FORMULA_LUA_SET_H
#define FG_FORMULA_LUA_SET_H

#include "formula/formula.h"
#include "state.h"

/* Nothing where there is no node. */
static inline void set_node(lua_State *L, const char *key, int node) {
  if (!node) return;
  lua_pushinteger(L, node);
  lua_setfield(L, -2, key);
}

static inline void set_text(lua_State *L, const char *key, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

static inline void set_bool(lua_State *L, const char *key, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, key);
}

/* Pushes the table of input i, from 0. */
void fg_formula_push_input(lua_State *L, fg_formula *formula, int i);

#endif
