/* t_cuts.c - where decisions and measurements of templates stand: no .cut compares a size with a
 * number, and no comment has a timing or a date. Both belong to rows of switches and plans. */
#include "expand/embedded.h"
#include "suite.h"

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096 };

/* Files whose comparisons are of other numbers: an arch, which has an instruction or not, and the
 * rank of a tensor map. */
static const char *const allowed[] = {"ptx/base.cut", "host/tma.cut"};

static regex_t pattern;

static void compile(const char *text) {
  ck_assert_int_eq(regcomp(&pattern, text, REG_EXTENDED | REG_NOSUB), 0);
}

static bool matches(const char *text) { return !regexec(&pattern, text, 0, NULL, 0); }

static bool ends_in(const char *name, const char *end) {
  const size_t n = strlen(name), m = strlen(end);
  return n >= m && !strcmp(name + n - m, end);
}

static bool is_allowed(const char *name) {
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
    if (!strcmp(allowed[i], name)) return true;
  return false;
}

/* Calls look with each line of the text and its place, "file:line". */
static void each_line(const fg_embedded *file, void (*look)(const char *line, const char *place)) {
  int number = 0;
  for (const char *at = file->text; *at;) {
    char line[LONGEST], place[256];
    const size_t n = strcspn(at, "\n");
    ck_assert_uint_lt(n, sizeof line);
    snprintf(line, sizeof line, "%.*s", (int)n, at);
    snprintf(place, sizeof place, "%s:%d", file->name, ++number);
    look(line, place);
    at += n + (at[n] == '\n');
  }
}

/* Lua without its strings, each of which becomes "", and without its comment. */
static void lua_of(const char *text, size_t n, char *code) {
  char quote = 0;
  for (size_t i = 0; i < n; i++) {
    if (quote && text[i] == '\\')
      i++;
    else if (quote && text[i] == quote)
      quote = 0;
    else if (!quote && text[i] == '-' && i + 1 < n && text[i + 1] == '-')
      break;
    else if (!quote) {
      *code++ = text[i];
      if (strchr("\"'", text[i])) quote = text[i];
    }
  }
  *code = 0;
}

/* The end of the value that $( opens, behind its last character. */
static const char *end_of_value(const char *at) {
  int depth = 0;
  for (; *at; at++) {
    depth += *at == '(';
    if (*at == ')' && --depth == 0) return at;
  }
  return at;
}

/* Text that Lua runs: a line behind "@", else the values in the line. */
static void each_lua(const char *line, void (*look)(const char *code, const char *place),
                     const char *place) {
  char code[LONGEST];
  const char *start = line + strspn(line, " \t");
  if (*start == '@') {
    lua_of(start + 1, strlen(start + 1), code);
    look(code, place);
    return;
  }
  for (const char *at = line; (at = strstr(at, "$("));) {
    const char *end = end_of_value(at + 1);
    lua_of(at + 2, (size_t)(end - at - 2), code);
    look(code, place);
    at = end;
  }
}

static int found;

static void compares(const char *code, const char *place) {
  if (!matches(code)) return;
  if (*place) fprintf(stderr, "%s: compares with a number: %s\n", place, code);
  found++;
}

static void look_at_lua(const char *line, const char *place) { each_lua(line, compares, place); }

/* A number on either side of a comparison. The length of a list is no size, nor is the index of a
 * loop: one small letter. */
#define NUMBER     "-?[0-9][0-9.]*"
#define COMPARISON "(<=?|>=?|==|~=)"

TEST(no_size_is_compared) {
  compile("(^|[^#A-Za-z0-9_.>])([a-z][A-Za-z0-9_.]+|[A-Z_][A-Za-z0-9_.]*) *" COMPARISON " *" NUMBER
          "|[])] *" COMPARISON " *" NUMBER "|(^|[^A-Za-z0-9_.#])" NUMBER " *" COMPARISON);
  found = 0;
  for (const fg_embedded *file = fg_embedded_templates; file->name; file++)
    if (ends_in(file->name, ".cut") && !is_allowed(file->name)) each_line(file, look_at_lua);
  ck_assert_int_eq(found, 0);
  /* what it must find, and what not; without a place nothing is said of it */
  look_at_lua("  @ if BLOCK_KV > 64 then", "");
  look_at_lua("@ local wide = 64 < D", "");
  look_at_lua("f($(plan.stages == 1 and \"a\" or \"b\"));", "");
  look_at_lua("@ while width(x) ~= 8 do", "");
  ck_assert_int_eq(found, 4);
  look_at_lua("@ if i > 0 then", "");
  look_at_lua("@ if #terms > 0 then -- D > 64", "");
  look_at_lua("@ local test = tile.always ~= \"1\" and f(\"D > 64\")", "");
  look_at_lua("if (D > 64) { f($(x), 3); }", "");
  ck_assert_int_eq(found, 4);
  regfree(&pattern);
}

static void look_at_comment(const char *line, const char *place) {
  const char *lua = strstr(line, "--"), *cuda = strstr(line, "//");
  const char *comment = !lua || (cuda && cuda < lua) ? cuda : lua;
  if (!comment || !matches(comment)) return;
  if (*place) fprintf(stderr, "%s: has a measurement: %s\n", place, comment);
  found++;
}

TEST(no_comment_has_a_timing) {
  compile("[0-9] ?([mun]s|TFLOP(/s)?|[GT]B/s)([^A-Za-z0-9_]|$)|20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]|"
          "[0-9.]+ -> [0-9.]+");
  found = 0;
  for (const fg_embedded *file = fg_embedded_templates; file->name; file++)
    each_line(file, look_at_comment);
  ck_assert_int_eq(found, 0);
  look_at_comment("@ -- d 64: 0.473 ms", "");
  look_at_comment("x = 1 -- 300 TFLOP/s", "");
  look_at_comment("// (H200, 2026-11-20)", "");
  look_at_comment("-- 1.27 -> 1.25", "");
  ck_assert_int_eq(found, 4);
  look_at_comment("local ms = { 0.473, \"ms\" } -- in milliseconds", "");
  look_at_comment("-- 16 KB, x->y, NVRTC 13.0", "");
  ck_assert_int_eq(found, 4);
  regfree(&pattern);
}
