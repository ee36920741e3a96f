/* state.h - the Lua states: the one place that includes Lua, and the one protected call.
 *
 * Specs run in a sandboxed state: what can hang or reach outside is absent, and steps and memory
 * are bounded. It guards against accidents; specs are trusted as build files are. Templates run in
 * a state with Lua's standard pure libraries. */
#ifndef FG_STATE_H
#define FG_STATE_H

#include "base/error.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdbool.h>

/* A sandboxed state: its globals are what a spec file may use. */
fg_status fg_sandbox_new(lua_State **L);
/* A template state: base, string, table and math; `pairs` goes in the order of the keys. */
fg_status fg_template_state_new(lua_State **L);
/* Closes either kind. */
void fg_state_free(lua_State *L);

/* Calls the function below its n_args arguments on the stack. A failure pops all, and is raised as
 * `code` (FG_EMEMORY when memory ran out) with Lua's message, which names file and line. */
fg_status fg_lua_call(lua_State *L, int n_args, int n_results, fg_status code);

/* The same for function(argument), which gets a light userdata and returns nothing. What C does to
 * a state goes through here, but for pushing what is not text: almost all of Lua's functions
 * allocate, and outside a protected call Lua ends the process when it finds no memory. A jump out
 * of the function loses what it has allocated itself: that belongs to the argument. */
fg_status fg_lua_run(lua_State *L, lua_CFunction function, void *argument, fg_status code);

/* In a function that Lua calls: raises our last failure, which comes out of the protected call with
 * its own status; `here` puts the place of the running line in front. */
int fg_lua_raise(lua_State *L, fg_status status, bool here);

/* In a function that Lua calls: counts bytes that C keeps of what the state holds as the state's
 * own; raises FG_ESPEC when they are more than it may have. */
void fg_lua_charge(lua_State *L, size_t bytes);

/* Sandboxed states end with an error soon after *flag is set, by an interrupt. */
void fg_lua_stop_when(const volatile int *flag);

/* Pushes "file:line: " of the nearest line of a chunk that is running, from `level` up, or "". */
void fg_lua_place(lua_State *L, int level);

/* Loads a text chunk (never bytecode) and leaves its function on the stack. */
fg_status fg_lua_load(lua_State *L, const char *name, const char *text, size_t size,
                      fg_status code);

#endif
