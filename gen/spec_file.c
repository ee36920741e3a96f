/* spec_file.c - runs a spec file in its sandbox and takes the texts out of the tables it returns. */
#include "spec_file.h"

#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 }; /* bytes: far above any spec written by hand */

struct fg_spec_file {
  char *path;
  lua_State *L;
  fg_table *table;
  int n;
};

void fg_report_add(fg_report *report, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n >= (int)sizeof line) n = (int)sizeof line - 1;
  char *text = realloc(report->text, report->n + (size_t)n + 2);
  if (!text) return; /* the count of lines still says that something is wrong */
  report->lines++;
  if (report->n) text[report->n++] = '\n';
  memcpy(text + report->n, line, (size_t)n + 1);
  report->text = text;
  report->n += (size_t)n;
}

void fg_report_free(fg_report *report) {
  free(report->text);
  *report = (fg_report){0};
}

/* The whole of a regular file of moderate size; a device or pipe is never read. */
static fg_status read_regular(const char *path, char **text, size_t *size) {
  struct stat info;
  char *data = NULL;
  size_t n = 0;
  fg_status status = FG_OK;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fg_fail(FG_ESPEC, "%s: cannot be opened: %s", path, strerror(errno));
  if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
    status = fg_fail(FG_ESPEC, "%s: is %s, not a file", path,
                     S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
    goto out;
  }
  if (info.st_size > FILE_MAX) {
    status = fg_fail(FG_ESPEC, "%s: is %lld bytes long; a spec file has at most %d", path,
                     (long long)info.st_size, FILE_MAX);
    goto out;
  }
  if (!(data = malloc((size_t)info.st_size + 1))) {
    status = fg_fail(FG_EMEMORY, "%s: no memory to read it", path);
    goto out;
  }
  for (ssize_t got; (got = read(fd, data + n, (size_t)info.st_size - n)) != 0; n += (size_t)got) {
    if (got > 0) continue;
    status = fg_fail(FG_ESPEC, "%s: cannot be read: %s", path, strerror(errno));
    goto out;
  }
  *text = data, *size = n;
  data = NULL;
out:
  free(data);
  close(fd);
  return status;
}

static fg_status check_text(const char *path, const char *text, size_t size) {
  const char *what = NULL;
  if (size >= 1 && text[0] == '\x1b') what = "compiled Lua; a spec file is text";
  else if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) what = "text with a byte order mark; save it as UTF-8 without one";
  else if (size >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2))) what = "UTF-16; save it as UTF-8";
  else if (memchr(text, 0, size)) what = "not text: it holds a zero byte";
  return what ? fg_fail(FG_ESPEC, "%s: is %s", path, what) : FG_OK;
}

/* The text form of the value on top of the stack; false for what has none. Booleans and numbers
 * read as they are written in Lua, so 64.0 is not the integer 64. */
static bool value_text(lua_State *L, fg_texts *texts) {
  const char *text = NULL;
  size_t size = 0;
  if (lua_type(L, -1) == LUA_TBOOLEAN) text = lua_toboolean(L, -1) ? "true" : "false";
  else if (lua_isstring(L, -1)) text = lua_tolstring(L, -1, &size);
  if (!text || strlen(text) < size) return false;
  char **grown = realloc(texts->text, sizeof *grown * (size_t)(texts->n + 1));
  if (!grown) return false;
  texts->text = grown;
  return (grown[texts->n] = strdup(text)) != NULL && ++texts->n;
}

/* One field of one table: its value, or a list of values, is on top of the stack. */
static void read_field(fg_spec_file *f, fg_table *t, const fg_field *field, fg_report *errors) {
  lua_State *L = f->L;
  fg_texts *texts = &t->field[field - fg_fields];
  if (!lua_istable(L, -1)) {
    if (!value_text(L, texts))
      fg_report_add(errors, "%s: table %d: %s: a %s is no value; expected text, a number or a list",
                    f->path, t->number, field->name, luaL_typename(L, -1));
    return;
  }
  lua_Unsigned n = lua_rawlen(L, -1);
  if (!n)
    fg_report_add(errors, "%s: table %d: %s: the list is empty", f->path, t->number, field->name);
  for (lua_Unsigned i = 1; i <= n; i++) {
    lua_pushvalue(L, -1);
    lua_rawgeti(L, -1, (lua_Integer)i);
    bool good = value_text(L, texts);
    if (!good)
      fg_report_add(errors, "%s: table %d: %s: item %d is a %s; expected text or a number",
                    f->path, t->number, field->name, (int)i, luaL_typename(L, -1));
    lua_pop(L, 2);
  }
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keys that are no field. Lua gives them in hash order; the report sorts them. */
static void read_unknown(const fg_spec_file *f, const fg_table *t, fg_report *errors) {
  enum { MOST = 32 };
  lua_State *L = f->L;
  const char *unknown[MOST];
  int n = 0;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
    if (key && (fg_field_find(key) || !strcmp(key, "when"))) continue;
    if (n < MOST) unknown[n++] = key ? key : "a key that is not text";
  }
  qsort(unknown, (size_t)n, sizeof *unknown, by_text);
  for (int i = 0; i < n; i++) {
    const char *near = fg_field_nearest(unknown[i]);
    fg_report_add(errors, "%s: table %d: unknown field \"%.64s\"%s%s%s", f->path, t->number,
                  unknown[i], near ? " (did you mean \"" : "", near ? near : "",
                  near ? "\"?)" : "");
  }
}

/* The table on top of the stack. */
static void read_table(fg_spec_file *f, fg_table *t, fg_report *errors) {
  lua_State *L = f->L;
  for (int i = 0; i < FG_FIELDS; i++) {
    lua_pushstring(L, fg_fields[i].name);
    lua_rawget(L, -2);
    if (!lua_isnil(L, -1)) read_field(f, t, &fg_fields[i], errors);
    lua_pop(L, 1);
  }
  lua_pushliteral(L, "when");
  lua_rawget(L, -2);
  if (lua_isfunction(L, -1)) {
    lua_pushvalue(L, -1);
    t->when = luaL_ref(L, LUA_REGISTRYINDEX);
  } else if (!lua_isnil(L, -1)) {
    fg_report_add(errors, "%s: table %d: when: a %s; expected a function", f->path, t->number,
                  luaL_typename(L, -1));
  }
  lua_pop(L, 1);
  read_unknown(f, t, errors);
}

/* What the chunk returned is on top of the stack: one table of fields, or a list of them. */
static fg_status read_tables(fg_spec_file *f, fg_report *errors) {
  lua_State *L = f->L;
  if (!lua_istable(L, -1))
    return fg_fail(FG_ESPEC, "%s: returns a %s; a spec file returns a table or a list of tables",
                   f->path, luaL_typename(L, -1));
  int n = (int)lua_rawlen(L, -1);
  bool list = n > 0;
  if (!(f->table = calloc((size_t)(list ? n : 1), sizeof *f->table)))
    return fg_fail(FG_EMEMORY, "%s: no memory for %d tables", f->path, n);
  f->n = list ? n : 1;
  for (int i = 0; i < f->n; i++) {
    f->table[i].number = i + 1;
    if (list) lua_rawgeti(L, -1, i + 1);
    if (lua_istable(L, -1)) read_table(f, &f->table[i], errors);
    else
      fg_report_add(errors, "%s: item %d of the list is a %s; expected a table", f->path, i + 1,
                    luaL_typename(L, -1));
    if (list) lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return FG_OK;
}

fg_status fg_spec_file_open(const char *path, fg_report *errors, fg_spec_file **file) {
  char *text = NULL, *name = NULL;
  size_t size = 0;
  fg_spec_file *f = NULL;
  fg_status status = FG_OK;
  TRY_OUT(read_regular(path, &text, &size));
  TRY_OUT(check_text(path, text, size));
  f = calloc(1, sizeof *f);
  name = malloc(strlen(path) + 2);
  if (!f || !name || !(f->path = strdup(path)) || !(f->L = fg_sandbox_new())) {
    status = fg_fail(FG_EMEMORY, "%s: no memory to run it", path);
    goto out;
  }
  sprintf(name, "@%s", path);
  TRY_OUT(fg_lua_load(f->L, name, text, size, FG_ESPEC));
  TRY_OUT(fg_lua_call(f->L, 0, 1, FG_ESPEC));
  TRY_OUT(read_tables(f, errors));
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
  for (int i = 0; i < f->n; i++)
    for (int j = 0; j < FG_FIELDS; j++) fg_texts_free(&f->table[i].field[j]);
  fg_state_free(f->L);
  free(f->table);
  free(f->path);
  free(f);
}

const char *fg_spec_file_path(const fg_spec_file *f) { return f->path; }
int fg_spec_file_tables(const fg_spec_file *f) { return f->n; }
fg_table *fg_spec_file_table(const fg_spec_file *f, int i) { return &f->table[i]; }

/* `when` sees booleans as booleans, head dims as numbers, all else as its text. */
static void push_field(lua_State *L, const fg_field *field, const fg_point *point) {
  char text[64];
  fg_field_print(field, point, sizeof text, text);
  if (field->kind == FG_HEAD_DIM) {
    lua_pushinteger(L, point->d);
    lua_setfield(L, -2, "head_dim");
    lua_pushinteger(L, point->dv);
    lua_setfield(L, -2, "head_dim_v");
    return;
  }
  if (!strcmp(text, "true") || !strcmp(text, "false")) lua_pushboolean(L, text[0] == 't');
  else lua_pushstring(L, text);
  lua_setfield(L, -2, field->name);
}

fg_status fg_spec_file_when(fg_spec_file *f, const fg_table *t, const fg_point *point,
                            bool *keep) {
  *keep = true;
  if (!t->when) return FG_OK;
  lua_rawgeti(f->L, LUA_REGISTRYINDEX, t->when);
  lua_createtable(f->L, 0, FG_SPEC_FIELDS + 1);
  for (int i = 0; i < FG_SPEC_FIELDS; i++) push_field(f->L, &fg_fields[i], point);
  TRY(fg_lua_call(f->L, 1, 1, FG_ESPEC));
  *keep = lua_toboolean(f->L, -1);
  lua_pop(f->L, 1);
  return FG_OK;
}
