/* shape_file.c - runs a file of shapes in the sandbox of spec files and takes the numbers out. */
#include "shape_file.h"

#include "base/spelling.h"
#include "expand/state.h"
#include "recipe/extent.h"
#include "spec_file.h"
#include "spec_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  fg_shape shape;
  const fg_shape_form *form;
  int when; /* a reference in the state; 0: for all points */
} item;

struct fg_shape_file {
  const char *path; /* while it is read */
  lua_State *L;
  item *item;
  int n;
  fg_report report;
};

enum { MOST = (1 << 30) - 1 };

static void complain(fg_shape_file *f, int number, const char *key, const char *what) {
  fg_report_add(&f->report, "%s: shape %d: %s: %s", f->path, number, key, what);
}

/* The extent at a key of the table on top; -1: not given. */
static int64_t read_extent(fg_shape_file *f, int number, const char *key) {
  lua_State *L = f->L;
  lua_pushstring(L, key);
  lua_rawget(L, -2);
  int64_t value = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
  if (!lua_isnil(L, -1) && (value < 0 || value > MOST)) {
    complain(f, number, key, "expected an integer from 0 to 2^30 - 1");
    value = 0;
  }
  lua_pop(L, 1);
  return value;
}

/* Keeps the function at the key `when` of the table on top, where there is one. */
static void read_when(fg_shape_file *f, item *x, int number) {
  lua_State *L = f->L;
  lua_pushliteral(L, "when");
  int type = lua_rawget(L, -2);
  if (type == LUA_TFUNCTION) {
    x->when = luaL_ref(L, LUA_REGISTRYINDEX);
    return;
  }
  if (type != LUA_TNIL) complain(f, number, "when", "expected a function");
  lua_pop(L, 1);
}

/* Keys that are no extent. */
static void read_unknown(fg_shape_file *f, int number) {
  const char *known[FG_EXTENTS + 1];
  lua_State *L = f->L;
  for (int i = 0; i < FG_EXTENTS; i++) known[i] = fg_extents[i].name;
  known[FG_EXTENTS] = "when";
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "a key";
    int k = 0;
    while (k <= FG_EXTENTS && strcmp(known[k], key)) k++;
    if (k <= FG_EXTENTS) continue;
    char text[256], names[128];
    const char *near = fg_nearest(key, known, FG_EXTENTS + 1);
    fg_extent_names(NULL, ", ", sizeof names, names);
    snprintf(text, sizeof text, "no such field%s%s%s; a shape has %s and when",
             near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "", names);
    complain(f, number, key, text);
  }
}

/* The form that has all extents that are given; of none, that which has the first. */
static const fg_shape_form *form_of(const int64_t extent[FG_EXTENTS]) {
  for (int i = 0; i < FG_SHAPE_FORMS; i++) {
    bool all = true;
    for (int x = 0; x < FG_EXTENTS; x++)
      all &= extent[x] < 0 || fg_form_has(&fg_shape_forms[i], fg_extents[x].letter);
    if (all) return &fg_shape_forms[i];
  }
  for (int x = 0; x < FG_EXTENTS; x++)
    for (int i = 0; extent[x] >= 0 && i < FG_SHAPE_FORMS; i++)
      if (fg_form_has(&fg_shape_forms[i], fg_extents[x].letter)) return &fg_shape_forms[i];
  return fg_shape_forms;
}

/* An extent that is not given is 1 for a batch, 0 for one that not every layout has, for another
 * its fellow's, which stands before it. */
static int64_t default_extent(const fg_shape_form *form, const fg_extent_row *extent,
                              const int64_t given[FG_EXTENTS]) {
  const fg_extent_row *fellow = extent->fellow ? fg_extent_of(extent->fellow) : NULL;
  if (extent->letter == 'b') return 1;
  if (strchr(form->layout, extent->letter)) return 0;
  return fellow && fellow < extent ? given[fellow - fg_extents] : -1;
}

static void check_bounds(fg_shape_file *f, int number, const fg_extent_row *extent, int64_t n) {
  char text[80];
  if (!extent->most || (n >= extent->least && n <= extent->most)) return;
  snprintf(text, sizeof text, "expected an integer from %" PRId64 " to %" PRId64, extent->least,
           extent->most);
  complain(f, number, extent->name, text);
}

/* The table on top of the stack. */
static void read_shape(fg_shape_file *f, item *x, int number) {
  fg_shape *s = &x->shape;
  int64_t given[FG_EXTENTS];
  for (int i = 0; i < FG_EXTENTS; i++) given[i] = read_extent(f, number, fg_extents[i].name);
  read_when(f, x, number);
  read_unknown(f, number);
  x->form = form_of(given);
  s->align = 16;
  for (int i = 0; i < FG_EXTENTS; i++) {
    const fg_extent_row *extent = &fg_extents[i];
    const bool has = fg_form_has(x->form, extent->letter);
    const int64_t n = has && given[i] < 0 ? default_extent(x->form, extent, given) : given[i];
    const bool missing = n < 0 && !(extent->fellow && fg_extent_of(extent->fellow) < extent);
    if (has && missing) complain(f, number, extent->name, "is missing");
    if (!has && n >= 0) complain(f, number, extent->name, "does not go with the others");
    if (has && !missing) check_bounds(f, number, extent, n);
    fg_extent_set(extent, s, has ? n : 0);
  }
  if (fg_form_has(x->form, 'g') && s->h >= 0 && (s->hk ? s->h % s->hk : s->h))
    complain(f, number, "h", "is not a multiple of hk");
}

/* Reads the value that the chunk returned, the first on the stack. */
static int take_shapes(lua_State *L) {
  fg_shape_file *f = lua_touserdata(L, 2);
  lua_settop(L, 1);
  int n = lua_istable(L, 1) ? (int)lua_rawlen(L, 1) : 0;
  if (n == 0) {
    fg_report_add(&f->report,
                  "%s: returns no list of shapes; expected { { b = 1, h = 16, nq = "
                  "4096 }, ... }",
                  f->path);
    return 0;
  }
  if (!(f->item = calloc((size_t)n, sizeof *f->item))) return luaL_error(L, "no memory");
  for (f->n = 0; f->n < n; f->n++) {
    lua_rawgeti(L, 1, f->n + 1);
    if (lua_istable(L, -1))
      read_shape(f, &f->item[f->n], f->n + 1);
    else
      complain(f, f->n + 1, "it", "is no table; expected { b = 1, h = 16, nq = 4096 }");
    lua_pop(L, 1);
  }
  return 0;
}

/* Runs the chunk under the limits of spec files and takes its shapes; all mistakes are one
 * error. */
static fg_status run(fg_shape_file *f, const char *path) {
  char *text = NULL, name[4096];
  size_t size = 0;
  fg_status status = FG_OK;
  f->path = path;
  snprintf(name, sizeof name, "@%s", path);
  TRY_OUT(fg_spec_text_read(path, &text, &size));
  TRY_OUT(fg_sandbox_new(&f->L));
  TRY_OUT(fg_lua_load(f->L, name, text, size, FG_ESPEC));
  TRY_OUT(fg_lua_call(f->L, 0, 1, FG_ESPEC));
  lua_pushcfunction(f->L, take_shapes);
  lua_insert(f->L, -2);
  lua_pushlightuserdata(f->L, f);
  TRY_OUT(fg_lua_call(f->L, 2, 0, FG_ESPEC));
  status = fg_report_raise(&f->report);
out:
  free(text);
  return status;
}

fg_status fg_shape_file_open(const char *path, fg_shape_file **file) {
  fg_shape_file *f = calloc(1, sizeof *f);
  if (!f) return fg_fail(FG_EMEMORY, "%s: no memory to run it", path);
  fg_status status = run(f, path);
  f->path = NULL;
  if (status == FG_OK)
    *file = f;
  else
    fg_shape_file_free(f);
  return status;
}

void fg_shape_file_free(fg_shape_file *f) {
  if (!f) return;
  fg_state_free(f->L);
  fg_report_free(&f->report);
  free(f->item);
  free(f);
}

int fg_shape_file_count(const fg_shape_file *f) { return f->n; }
const fg_shape *fg_shape_file_at(const fg_shape_file *f, int i) { return &f->item[i].shape; }

fg_status fg_shape_file_for(fg_shape_file *f, int i, const fg_point *point, fg_shape *shape,
                            bool *keep) {
  *shape = f->item[i].shape;
  *keep = f->item[i].form == fg_point_kind(point)->form &&
          fg_layout_fill(fg_point_layout(point), shape);
  return *keep ? fg_spec_ask_when(f->L, f->item[i].when, point, keep) : FG_OK;
}
