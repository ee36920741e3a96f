/* state.c - Lua states with bounds, and the protected call. */
#include "state.h"

#include "base/setting.h"
#include "embedded.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The hook looks at the budget every HOOK_STEPS instructions; once it is spent, at each one, so
 * that no pcall in the spec can run on. One instruction may fill megabytes or call a slow function:
 * steps are also charged by bytes allocated and by CPU time, 200 million of them being 1.6 s at
 * most. */
enum { HOOK_STEPS = 1000, STEP_BYTES = 4, STEP_NS = 5, BIG = 1 << 16 };

/* Bytes of a text in a spec: Lua's functions may go over each one between two looks at the budget.
 */
enum { TEXT_MAX = 1 << 20 };

typedef struct {
  size_t used, limit;
  size_t text_max;      /* 0: any */
  int64_t steps, since; /* CPU time when they were last charged, ns */
  bool spent;
  bool bounded;     /* inside a protected call: outside, a refusal would be Lua's panic */
  bool starved;     /* the machine refused a block, not the limit */
  bool long_text;   /* text_max did */
  fg_status raised; /* by fg_lua_raise; FG_OK = not */
  char place[96];   /* where the hook last looked, "a.lua:2: "; "" for none */
} budget;

static int64_t cpu_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Out of steps only a big block is refused: the hook, which ends the run at its line, is not far.
 */
static void *allocate(void *user, void *p, size_t old, size_t size) {
  budget *b = user;
  size_t before = p ? old : 0; /* of a new block `old` says what it is for */
  if (size == 0) {
    free(p);
    b->used -= before;
    return NULL;
  }
  if (size > before && b->bounded) {
    b->steps -= (int64_t)((size - before) / STEP_BYTES);
    if (b->steps <= 0 && size > BIG) return NULL;
    if (b->used - before + size > b->limit) return NULL;
    if (!p && old == LUA_TSTRING && b->text_max && size > b->text_max)
      return b->long_text = true, NULL;
  }
  void *q = realloc(p, size);
  b->starved |= !q;
  if (q) b->used += size - before;
  return q;
}

static budget *budget_of(lua_State *L) {
  void *user;
  lua_getallocf(L, &user);
  return user;
}

/* Chunks that are part of the library: their lines are no place that an author knows. */
static bool is_own(const char *name) { return fg_embedded_find(fg_embedded_gen, name) != NULL; }

/* The line of the author's that runs, from the level on; takes no memory of Lua's. */
static void find_place(lua_State *L, int level, size_t size, char *text) {
  lua_Debug at;
  *text = 0;
  for (; lua_getstack(L, level, &at); level++) {
    lua_getinfo(L, "Sl", &at);
    if (at.currentline <= 0 || is_own(at.short_src)) continue;
    snprintf(text, size, "%s:%d: ", at.short_src, at.currentline);
    return;
  }
}

void fg_lua_place(lua_State *L, int level) {
  char text[LUA_IDSIZE + 16];
  find_place(L, level, sizeof text, text);
  lua_pushstring(L, text);
}

static const volatile int *stop; /* set: what runs in a sandbox ends */
void fg_lua_stop_when(const volatile int *flag) { stop = flag; }

static void count_steps(lua_State *L, lua_Debug *event) {
  (void)event;
  budget *b = budget_of(L);
  if (stop && *stop) { /* at each instruction from now on: no pcall keeps it */
    lua_sethook(L, count_steps, LUA_MASKCOUNT, 1);
    luaL_error(L, "interrupted");
  }
  find_place(L, 0, sizeof b->place, b->place);
  int64_t now = cpu_time(), charge = (now - b->since) / STEP_NS;
  b->since = now;
  b->steps -= b->spent ? 0 : charge > HOOK_STEPS ? charge : HOOK_STEPS;
  if (b->steps > 0) return;
  b->spent = true;
  lua_sethook(L, count_steps, LUA_MASKCOUNT, 1);
  b->bounded = false; /* room for the message */
  fg_lua_place(L, 0);
  lua_pushfstring(L, "%sran for more than %d million steps (%s raises the limit)",
                  lua_tostring(L, -1), (int)fg_setting_number(FG_SET_SPEC_STEPS),
                  fg_settings[FG_SET_SPEC_STEPS].name);
  b->bounded = true;
  lua_error(L);
}

static int log_line(lua_State *L) {
  fprintf(stderr, "%s\n", luaL_checkstring(L, 1));
  return 0;
}

/* A C function, so that opening libraries runs inside the protected call. */
static int open_libraries(lua_State *L) {
  static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},
                                       {LUA_STRLIBNAME, luaopen_string},
                                       {LUA_TABLIBNAME, luaopen_table},
                                       {LUA_MATHLIBNAME, luaopen_math}};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
    lua_pop(L, 1);
  }
  return 0;
}

/* A state with the libraries that specs, or templates, may use; memory: its limit in bytes. */
static fg_status state_new(bool spec, size_t memory, lua_State **state) {
  const fg_embedded *boot = fg_embedded_find(fg_embedded_gen, "sandbox.lua");
  budget *b = calloc(1, sizeof *b);
  lua_State *L = b ? lua_newstate(allocate, b) : NULL;
  fg_status status = FG_OK;
  if (!L) {
    free(b);
    return fg_fail(FG_EMEMORY, "no memory for a Lua state");
  }
  b->limit = memory;
  b->steps = INT64_MAX;
  lua_pushcfunction(L, open_libraries);
  TRY_OUT(fg_lua_call(L, 0, 0, FG_EBUG));
  TRY_OUT(fg_lua_load(L, "=sandbox.lua", boot->text, boot->size, FG_EBUG));
  lua_pushboolean(L, spec);
  lua_pushcfunction(L, log_line);
  TRY_OUT(fg_lua_call(L, 2, 0, FG_EBUG));
  *state = L;
  L = NULL;
out:
  fg_state_free(L);
  return status;
}

fg_status fg_sandbox_new(lua_State **L) {
  TRY(state_new(true, (size_t)fg_setting_number(FG_SET_SPEC_MEMORY) << 20, L));
  budget_of(*L)->steps = fg_setting_number(FG_SET_SPEC_STEPS) * 1000000;
  budget_of(*L)->text_max = TEXT_MAX;
  lua_sethook(*L, count_steps, LUA_MASKCOUNT, HOOK_STEPS);
  return FG_OK;
}

fg_status fg_template_state_new(lua_State **L) { return state_new(false, (size_t)1 << 30, L); }

void fg_state_free(lua_State *L) {
  if (!L) return;
  budget *b = budget_of(L);
  lua_close(L);
  free(b);
}

/* Error objects need not be strings; no metamethod of theirs is called. An error in a function of
 * sandbox.lua is one of the line that called it. */
static int describe(lua_State *L) {
  const char *text = lua_tostring(L, 1);
  if (text && strncmp(text, "sandbox.lua", 11)) return 1;
  fg_lua_place(L, 1);
  if (!text)
    lua_pushfstring(L, "an error that is a %s value, not a message", luaL_typename(L, 1));
  else
    lua_pushstring(L, strchr(text, ' ') ? strchr(text, ' ') + 1 : text);
  lua_concat(L, 2);
  return 1;
}

/* Takes the error value off the stack and makes it a sentence: what ran out, and which variable
 * raises the limit. */
static fg_status fail_from(lua_State *L, int result, fg_status code) {
  const char *text = lua_tostring(L, -1);
  const budget *b = budget_of(L);
  fg_status status;
  if (text && !strcmp(text, "C stack overflow")) /* of the parser: it is not given a place */
    status = fg_fail(code, "its brackets or blocks are nested too deep");
  else if (result != LUA_ERRMEM)
    status =
        fg_fail(b->raised ? b->raised : code, "%s", text ? text : "an error without a message");
  else if (b->steps <= 0)
    status =
        fg_fail(code, "%sran for more than %d million steps (%s raises the limit)", b->place,
                (int)fg_setting_number(FG_SET_SPEC_STEPS), fg_settings[FG_SET_SPEC_STEPS].name);
  else if (b->long_text)
    status = fg_fail(code, "a text of more than %d MiB", TEXT_MAX >> 20);
  else if (!b->starved)
    status = fg_fail(code == FG_ESPEC ? code : FG_EMEMORY,
                     "Lua ran out of its %d MiB of memory (%s raises the limit of spec files)",
                     (int)(b->limit >> 20), fg_settings[FG_SET_SPEC_MEMORY].name);
  else
    status = fg_fail(FG_EMEMORY, "no memory for Lua");
  lua_pop(L, 1);
  return status;
}

static void enter(lua_State *L) {
  budget *b = budget_of(L);
  b->bounded = true;
  b->starved = b->long_text = false;
  b->raised = FG_OK;
  b->place[0] = 0;
  b->since = cpu_time();
}

void fg_lua_charge(lua_State *L, size_t bytes) {
  budget *b = budget_of(L);
  b->used += bytes;
  if (b->used <= b->limit) return;
  fg_fail(FG_ESPEC, "its texts and Lua's need more than %d MiB of memory (%s raises the limit)",
          (int)(b->limit >> 20), fg_settings[FG_SET_SPEC_MEMORY].name);
  b->bounded = false; /* room for the message */
  fg_lua_raise(L, FG_ESPEC, false);
}

int fg_lua_raise(lua_State *L, fg_status status, bool here) {
  budget_of(L)->raised = status;
  if (here) fg_lua_place(L, 1);
  lua_pushstring(L, fg_error());
  if (here) lua_concat(L, 2);
  return lua_error(L);
}

fg_status fg_lua_call(lua_State *L, int n_args, int n_results, fg_status code) {
  int base = lua_gettop(L) - n_args;
  lua_pushcfunction(L, describe);
  lua_insert(L, base);
  enter(L);
  int result = lua_pcall(L, n_args, n_results, base);
  budget_of(L)->bounded = false;
  lua_remove(L, base);
  return result == LUA_OK ? FG_OK : fail_from(L, result, code);
}

fg_status fg_lua_run(lua_State *L, lua_CFunction function, void *argument, fg_status code) {
  lua_pushcfunction(L, function);
  lua_pushlightuserdata(L, argument);
  return fg_lua_call(L, 1, 0, code);
}

fg_status fg_lua_load(lua_State *L, const char *name, const char *text, size_t size,
                      fg_status code) {
  enter(L);
  int result = luaL_loadbufferx(L, text, size, name, "t");
  budget_of(L)->bounded = false;
  return result == LUA_OK ? FG_OK : fail_from(L, result, code);
}
