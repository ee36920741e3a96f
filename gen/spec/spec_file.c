/* spec_file.c - runs a spec file in its sandbox and takes the texts out of the tables it returns.
 */
#define _GNU_SOURCE /* asprintf */
#include "spec_file.h"

#include "expand/state.h"
#include "grid.h"
#include "spec_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fg_spec_file {
  char *path;
  lua_State *L;
  fg_table *table;
  int n;
  fg_status status; /* of reading the tables */
};

/* The type of the value on top of the stack, for messages. */
static const char *kind(lua_State *L) {
  return lua_type(L, -1) == LUA_TSTRING ? "text with a zero byte" : luaL_typename(L, -1);
}

enum { TEXT_BYTES = 32 }; /* about what a text of a table takes besides its letters */

/* Takes the text form of the value on top of the stack; false for what has none. Booleans and
 * numbers read as they are written in Lua, so 64.0 is not the integer 64. */
static bool value_text(lua_State *L, fg_texts *texts) {
  const char *text = NULL;
  size_t size = 0;
  if (lua_type(L, -1) == LUA_TBOOLEAN)
    text = lua_toboolean(L, -1) ? "true" : "false";
  else if (lua_isstring(L, -1))
    text = lua_tolstring(L, -1, &size);
  if (!text || strlen(text) < size) return false;
  fg_lua_charge(L, strlen(text) + TEXT_BYTES);
  return fg_texts_add(texts, text, strlen(text)) == FG_OK;
}

/* How many keys the table on top of the stack has. */
static lua_Unsigned count_keys(lua_State *L) {
  lua_Unsigned n = 0;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) n++;
  return n;
}

/* The values of the list on top of the stack. */
static void read_list(lua_State *L, const char *where, const fg_field *field, fg_table *t) {
  lua_Unsigned n = lua_rawlen(L, -1), keys = count_keys(L);
  fg_texts *texts = &t->field[field - fg_fields];
  texts->bad = n != keys || !n;
  if (n != keys)
    fg_report_add(&t->errors, "%s%s: a list has values only, without names or gaps", where,
                  field->name);
  else if (!n)
    fg_report_add(&t->errors, "%s%s: the list is empty", where, field->name);
  for (lua_Unsigned i = 1; i <= n && n == keys; i++) {
    lua_rawgeti(L, -1, (lua_Integer)i);
    if (!value_text(L, texts)) {
      texts->bad = true;
      fg_report_add(&t->errors, "%s%s: item %d is a %s; expected text, a number or a boolean",
                    where, field->name, (int)i, kind(L));
    }
    lua_pop(L, 1);
  }
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The key below the top of the stack, NULL when it is no text and so no field's name. */
static const char *key_name(lua_State *L) {
  size_t size;
  const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tolstring(L, -2, &size) : NULL;
  return key && strlen(key) == size ? key : NULL;
}

/* { name = "value" } on top of the stack: texts "name=value", sorted, since the table has no order.
 */
static void read_named(lua_State *L, const char *where, const fg_field *field, fg_table *t) {
  fg_texts *texts = &t->field[field - fg_fields];
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    fg_texts value = {0};
    const char *key = key_name(L);
    char *pair = NULL;
    texts->bad |= !key || !value_text(L, &value);
    if (!texts->bad && asprintf(&pair, "%s=%s", key, value.text[0]) >= 0)
      texts->bad |= fg_texts_add(texts, pair, strlen(pair)) != FG_OK;
    free(pair);
    for (int i = 0; i < value.n; i++) free(value.text[i]);
    free(value.text);
  }
  if (texts->n) qsort(texts->text, (size_t)texts->n, sizeof *texts->text, by_text);
  if (texts->bad)
    fg_report_add(&t->errors, "%s%s: expected names with texts: { %s }", where, field->name,
                  field == &fg_fields[FG_FIELD_INPUTS] ? "slope = \"f32[h] grad\""
                                                       : "[\"strided(n)\"] = \"(q - k) % n == 0\"");
}

/* One field of one table: its value, or a list of values, is on top of the stack. */
static void read_field(lua_State *L, const char *where, const fg_field *field, fg_table *t) {
  fg_texts *texts = &t->field[field - fg_fields];
  if (field->type->is_list && lua_istable(L, -1)) {
    read_named(L, where, field, t);
  } else if (lua_istable(L, -1)) {
    read_list(L, where, field, t);
  } else if (!value_text(L, texts)) {
    texts->bad = true;
    fg_report_add(&t->errors,
                  "%s%s: a %s is no value; expected text, a number, a boolean or a list", where,
                  field->name, kind(L));
  }
}

/* Keys that are no field. Lua gives them in hash order; the report sorts them. */
static fg_status read_unknown(lua_State *L, const char *where, fg_table *t) {
  const char **unknown = calloc(count_keys(L) + 1, sizeof *unknown);
  size_t n = 0;
  int other = 0;
  if (!unknown) return fg_fail(FG_EMEMORY, "no memory for the fields of a table");
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    const char *key = key_name(L);
    if (!key)
      other++;
    else if (!fg_field_find(key) && strcmp(key, "when"))
      unknown[n++] = key;
  }
  qsort(unknown, n, sizeof *unknown, by_text);
  for (size_t i = 0; i < n; i++) fg_report_unknown(&t->errors, where, unknown[i]);
  if (other)
    fg_report_add(&t->errors, "%s%d of its keys are no names of fields; expected field = value",
                  where, other);
  free(unknown);
  return FG_OK;
}

/* The table on top of the stack. */
static fg_status read_table(const fg_spec_file *f, fg_table *t) {
  lua_State *L = f->L;
  char where[512];
  snprintf(where, sizeof where, "%s: table %d: ", f->path, t->number);
  for (int i = 0; i < FG_FIELD_ROWS; i++) {
    lua_pushstring(L, fg_fields[i].name);
    if (lua_rawget(L, -2) != LUA_TNIL) read_field(L, where, &fg_fields[i], t);
    lua_pop(L, 1);
  }
  lua_pushliteral(L, "when");
  int type = lua_rawget(L, -2);
  if (type != LUA_TFUNCTION && type != LUA_TNIL)
    fg_report_add(&t->errors, "%swhen: a %s; expected a function", where, luaL_typename(L, -1));
  if (type == LUA_TFUNCTION)
    t->when = luaL_ref(L, LUA_REGISTRYINDEX);
  else
    lua_pop(L, 1);
  return read_unknown(L, where, t);
}

/* What the chunk returned is on top of the stack: one table of fields, or a list of them. */
static fg_status read_tables(fg_spec_file *f) {
  lua_State *L = f->L;
  if (!lua_istable(L, -1))
    return fg_fail(FG_ESPEC, "%s: returns a %s; a spec file returns a table or a list of tables",
                   f->path, luaL_typename(L, -1));
  int n = (int)lua_rawlen(L, -1);
  bool list = n > 0;
  if (list && count_keys(L) != (lua_Unsigned)n)
    return fg_fail(FG_ESPEC,
                   "%s: returns a list of tables that has named fields too; they belong "
                   "into its tables",
                   f->path);
  if (!(f->table = calloc((size_t)(list ? n : 1), sizeof *f->table)))
    return fg_fail(FG_EMEMORY, "%s: no memory for %d tables", f->path, n);
  f->n = list ? n : 1;
  for (int i = 0; i < f->n; i++) {
    f->table[i].number = i + 1;
    if (list) lua_rawgeti(L, -1, i + 1);
    if (!lua_istable(L, -1))
      return fg_fail(FG_ESPEC, "%s: item %d of the list is a %s; expected a table", f->path, i + 1,
                     luaL_typename(L, -1));
    TRY(read_table(f, &f->table[i]));
    if (list) lua_pop(L, 1);
  }
  return FG_OK;
}

/* Reads the value that the chunk returned, the first on the stack. */
static int take_tables(lua_State *L) {
  fg_spec_file *f = lua_touserdata(L, 2);
  lua_settop(L, 1);
  f->status = read_tables(f);
  return 0;
}

/* Lua's messages have the file in front when they come from one of its lines; others get it here.
 */
static fg_status name_file(fg_status status, const char *path) {
  bool named = status == FG_OK || !strncmp(fg_error(), path, strlen(path));
  return named ? status : fg_fail_in(status, "%s", path);
}

fg_status fg_spec_file_open(const char *path, fg_spec_file **file) {
  char *text = NULL, *name = NULL;
  size_t size = 0;
  fg_spec_file *f = NULL;
  fg_status status = FG_OK;
  TRY_OUT(fg_spec_text_read(path, &text, &size));
  f = calloc(1, sizeof *f);
  name = malloc(strlen(path) + 2);
  if (!f || !name || !(f->path = strdup(path))) {
    status = fg_fail(FG_EMEMORY, "%s: no memory to run it", path);
    goto out;
  }
  TRY_OUT(fg_sandbox_new(&f->L));
  sprintf(name, "@%s", path);
  TRY_OUT(name_file(fg_lua_load(f->L, name, text, size, FG_ESPEC), path));
  TRY_OUT(name_file(fg_lua_call(f->L, 0, 1, FG_ESPEC), path));
  lua_pushcfunction(f->L, take_tables);
  lua_insert(f->L, -2);
  lua_pushlightuserdata(f->L, f);
  TRY_OUT(name_file(fg_lua_call(f->L, 2, 0, FG_ESPEC), path));
  TRY_OUT(f->status);
  *file = f;
  f = NULL;
out:
  fg_spec_file_free(f);
  free(name);
  free(text);
  return status;
}

void fg_spec_file_free(fg_spec_file *f) {
  if (!f) return;
  for (int i = 0; i < f->n; i++) fg_table_free(&f->table[i]);
  fg_state_free(f->L);
  free(f->table);
  free(f->path);
  free(f);
}

void fg_spec_stop_when(const volatile int *flag) { fg_lua_stop_when(flag); }

const char *fg_spec_file_path(const fg_spec_file *f) { return f->path; }
int fg_spec_file_tables(const fg_spec_file *f) { return f->n; }
fg_table *fg_spec_file_table(const fg_spec_file *f, int i) { return &f->table[i]; }

/* The widths of the point's kind: head_dim and head_dim_v, width and width_out. */
static void push_widths(lua_State *L, const fg_field *field, const fg_point *point) {
  int width[FG_WIDTHS_MAX];
  const size_t n = strlen(fg_point_kind(point)->widths);
  fg_point_widths(point, width);
  for (size_t i = 0; i < n; i++) {
    lua_pushfstring(L, "%s%s", field->name,
                    !i                              ? ""
                    : field->type == &fg_type_width ? "_out"
                                                    : "_v");
    lua_pushinteger(L, width[i]);
    lua_settable(L, -3);
  }
}

/* `when` sees booleans as booleans, widths as numbers, all else as its text. */
static void push_field(lua_State *L, const fg_field *field, const fg_point *point) {
  char text[1024];
  if (!strcmp(field->name, fg_point_kind(point)->width_field)) {
    push_widths(L, field, point);
    return;
  }
  fg_field_print(field, point, sizeof text, text);
  if (!strcmp(text, "true") || !strcmp(text, "false"))
    lua_pushboolean(L, text[0] == 't');
  else
    lua_pushstring(L, text);
  lua_setfield(L, -2, field->name);
}

/* Raises on a field that does not exist, `s.maks`: nil would silently count as false. */
static int refuse_field(lua_State *L) {
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
  const fg_field *field = fg_field_find(name);
  const char *near = fg_field_nearest(name);
  luaL_where(L, 1);
  if (field && field->plan)
    lua_pushfstring(L, "%s is of plans, and s is a spec", name);
  else if (field)
    lua_pushfstring(L, "s is of a kernel that has no %s", name);
  else
    lua_pushfstring(L, "s has no field \"%s\"%s%s%s", name, near ? " (did you mean \"" : "",
                    near ? near : "", near ? "\"?)" : "");
  lua_concat(L, 2);
  return lua_error(L);
}

/* One question to a `when`. */
typedef struct {
  int when;
  const fg_point *point;
  bool keep;
} question;

/* Calls `when` with a table of the fields of the point's kind; another name in it is an error of
 * the spec. */
static int ask_when(lua_State *L) {
  question *q = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, q->when);
  lua_createtable(L, 0, FG_SPEC_FIELDS + 1);
  for (int i = 0; i < FG_SPEC_FIELDS; i++)
    if (fg_field_belongs(&fg_fields[i], q->point)) push_field(L, &fg_fields[i], q->point);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, refuse_field);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_call(L, 1, 1);
  q->keep = lua_toboolean(L, -1);
  return 0;
}

fg_status fg_spec_ask_when(lua_State *L, int when, const fg_point *point, bool *keep) {
  question q = {when, point, true};
  if (when) TRY(fg_lua_run(L, ask_when, &q, FG_ESPEC));
  *keep = q.keep;
  return FG_OK;
}

fg_status fg_spec_file_when(fg_spec_file *f, const fg_table *t, const fg_point *point, bool *keep) {
  return fg_spec_ask_when(f->L, t->when, point, keep);
}

fg_status fg_grid_read(int n_files, const char *const *files, int n_words, const char *const *words,
                       fg_grid **grid) {
  static const fg_spec_reader reader = {fg_spec_file_open,   fg_spec_file_free,  fg_spec_file_path,
                                        fg_spec_file_tables, fg_spec_file_table, fg_spec_file_when};
  return fg_grid_read_with(&reader, n_files, files, n_words, words, grid);
}
