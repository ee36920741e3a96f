/* t_sandbox.c - spec files that hang, hoard or are no text end soon, with a sentence. */
#include "clock.h"
#include "scratch.h"
#include "spec/spec.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECONDS = 2 }; /* that a bad spec may take */

/* The file fails in time; returns the text. */
static const char *failure(const char *path) {
  fg_grid *grid = NULL;
  double start = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  ck_assert_int_eq(fg_grid_read(1, &path, 0, NULL, &grid), FG_ESPEC);
  double seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
  ck_assert_msg(seconds < SECONDS, "%.1f s: %s", seconds, fg_error());
  ck_assert_ptr_null(grid);
  return fg_error();
}

static void fails(const char *text, const char *why) {
  scratch_put("a.lua", text, strlen(text));
  ck_assert_str_eq(failure("a.lua"), why);
}

/* The chunk runs, and so its assertions hold. */
static void runs(const char *text) {
  const char *path = "a.lua";
  char whole[2048];
  fg_grid *grid = NULL;
  int n = snprintf(whole, sizeof whole, "%s\nreturn { head_dim = 64 }", text);
  scratch_put(path, whole, (size_t)n);
  ck_assert_msg(fg_grid_read(1, &path, 0, NULL, &grid) == FG_OK, "%s", fg_error());
  fg_grid_free(grid);
}

#define STEPS "ran for more than 200 million steps (FLASHGEN_SPEC_STEPS raises the limit)"
#define MEMORY                                                                                     \
  "Lua ran out of its 64 MiB of memory (FLASHGEN_SPEC_MEMORY raises the limit of spec files)"

#define LONG "a text of more than 1 MiB"
#define TEXTS                                                                                      \
  "its texts and Lua's need more than 64 MiB of memory (FLASHGEN_SPEC_MEMORY raises the limit)"

/* What each chunk that never ends, or asks for too much, is stopped by. */
static const struct {
  const char *text, *why;
} attack[] = {
    {"\nwhile true do end", "a.lua:2: " STEPS},
    {"local function f() while true do end end\nf()", "a.lua:1: " STEPS},
    {"\n\n::again:: goto again", "a.lua:3: " STEPS},
    {"while true do pcall(function() while true do end end) end", "a.lua:1: " STEPS},
    {"local function f() return pcall(f) or f() end f()", "a.lua:1: " STEPS},
    {"return { head_dim = 64,\nwhen = function() while true do end end }",
     "a.lua: table 1: when: a.lua:2: " STEPS},
    {"local t = {} while true do table.insert(t, 1, 0) end", "a.lua:1: " STEPS},
    {"local t = {} for i = 1, 100000 do t[i] = i end\nwhile true do table.sort(t) end",
     "a.lua:2: " STEPS},
    {"local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }) "
     "while true do pcall(function() return t[1] end) end",
     "a.lua:1: " STEPS},
    {"while true do pcall(error) end", "a.lua:1: " STEPS},
    {"while true do pcall(string.rep, 'x', 50000000) end", "a.lua:1: " STEPS},
    {"local t = {} for i = 1, 1e9 do t[i] = i end", "a.lua: " MEMORY},
    {"while true do local t = {} for i = 1, 1000000 do t[i] = i end end", "a.lua:1: " STEPS},
    {"local s = 'x' while true do s = s .. s end", "a.lua: " LONG},
    {"return { head_dim = 64, mask = ('x'):rep(30000000) }", "a.lua: " LONG},
    {"local s, t = ('x'):rep(1000000), {} for i = 1, 90000 do t[i] = s end\n"
     "return { head_dim = t }",
     "a.lua: " TEXTS},
    {"local s, t = ('x'):rep(1000000), {} for i = 1, 90 do t['f' .. i] = s end\n"
     "return { head_dim = 64, define = t }",
     "a.lua: " TEXTS},
    {"local s = ('1'):rep(1000000) while true do tonumber(s, 2) end", "a.lua:1: " STEPS},
    {"return { head_dim = 64, mask = table.concat(setmetatable({}, { __index = function() return "
     "'' end }), '', 1, 1 << 62) }",
     "a.lua: " MEMORY},
    {"local t = setmetatable({ '', '', '', '', '', '', '', '' }, { __index = table.concat })\n"
     "return { mask = table.concat(t, '', 1, 1 << 62) }",
     "a.lua:2: " STEPS},
    {"local x = table.unpack({}, math.mininteger, math.maxinteger)",
     "a.lua:1: table.unpack: more than 1000 values"},
    {"local s = string.rep('x', 1 << 40)", "a.lua:1: resulting string too large"},
    {"local s = string.rep('x', 1 << 62, 'y')", "a.lua:1: resulting string too large"},
    {"local s = string.format('%s%s', ('x'):rep(40000000), ('y'):rep(40000000))", "a.lua: " MEMORY},
    {"local s = table.concat({ ('x'):rep(600000), ('y'):rep(600000) })", "a.lua: " LONG},
    {"local f\nfunction f() return 1 + f() end f()", "a.lua: " MEMORY},
    {"table.insert(nil, 1)", "a.lua:1: table.insert: expected a table"},
    {"\ntable.sort({ 1, 'x' })", "a.lua:2: attempt to compare string with number"},
    {"for k in pairs(nil) do end",
     "a.lua:1: bad argument #1 to 'for iterator' (table expected, got nil)"},
    {"table.unpack({}, 1, 10000000)", "a.lua:1: table.unpack: more than 1000 values"},
    {"local s = string.format('%99999d', 1)",
     "a.lua:1: invalid conversion specification: '%99999d'"},
};

TEST_LOOP(attacks_are_stopped, sizeof attack / sizeof *attack) {
  scratch_put("a.lua", attack[_i].text, strlen(attack[_i].text));
  const char *why = failure("a.lua");
  ck_assert_str_eq(why, attack[_i].why);
}

/* A finalizer runs unhooked: none can be set, also not later. */
TEST(finalizers) {
  fails("\nsetmetatable({}, { __gc = function() while true do end end })",
        "a.lua:2: setmetatable: __gc and __close are not allowed in a spec file");
  fails("setmetatable({}, { __close = print })",
        "a.lua:1: setmetatable: __gc and __close are not allowed in a spec file");
  runs("local m = {}\nsetmetatable({}, m)\nm.__gc = function() while true do end end\n"
       "for i = 1, 100000 do local t = {} end");
  runs("local t = setmetatable({}, { __index = { x = 1 } }) assert(t.x == 1)");
}

TEST(what_is_gone) {
  runs("for _, name in ipairs({ 'load', 'loadfile', 'dofile', 'loadstring', 'require', 'package',\n"
       "  'io', 'os', 'debug', 'coroutine', 'utf8', 'collectgarbage', 'rawset', 'getmetatable',\n"
       "  'xpcall', 'next', 'warn' }) do assert(rawget(_G, name) == nil, name) end\n"
       "for _, name in ipairs({ 'dump', 'find', 'match', 'gmatch', 'gsub', 'pack', 'unpack' }) do\n"
       "  assert(string[name] == nil and (''):len() == 0 and (''  )[name] == nil, name) end\n"
       "assert(table.move == nil and math.random == nil and math.randomseed == nil)\n"
       "assert(_G._G == _G and _ENV == _G)");
  fails("local s = ('a'):rep(30)\nreturn s:find(('a-'):rep(30) .. 'b')",
        "a.lua:2: attempt to call a nil value (method 'find')");
  fails("table.move({}, 1, math.maxinteger - 1, 2)",
        "a.lua:1: attempt to call a nil value (field 'move')");
  fails("os.exit(0)", "a.lua:1: os is no variable (a text stands in quotes)");
  fails("getmetatable('').__index = nil",
        "a.lua:1: getmetatable is no variable (a text stands in quotes)");
  fails("return { head_dim = 64,\n  mask = causal }",
        "a.lua:2: causal is no variable (a text stands in quotes)");
}

TEST(what_is_left) {
  runs("assert(('abc'):upper() == 'ABC' and #('x'):rep(3) == 3 and ('%d'):format(7) == '7')\n"
       "assert(math.max(1, 2) == 2 and math.huge > 1 and math.type(1) == 'integer')\n"
       "assert(select('#', table.unpack({ 1, 2, 3 })) == 3 and table.concat({ 1, 2 }, ',') == "
       "'1,2')\n"
       "assert(not pcall(error, 'x') and tonumber('7') == 7 and type(print) == 'function')\n"
       "local t = { 3, 1, 2 } table.sort(t) assert(table.concat(t) == '123')\n"
       "table.sort(t, function(a, b) return a > b end) assert(table.concat(t) == '321')\n"
       "table.insert(t, 4) table.insert(t, 1, 0) table.insert(t, 3, 9)\n"
       "assert(table.concat(t) == '039214')\n"
       "assert(table.remove(t, 1) == 0 and table.remove(t) == 4 and table.remove(t, 2) == 9)\n"
       "assert(table.concat(t) == '321' and table.remove({}) == nil)\n"
       "assert(not pcall(table.insert, t, 9, 1) and not pcall(table.remove, t, 9))\n"
       "assert(not pcall(table.insert, t) and not pcall(table.insert, t, 1, 2, 3))");
}

/* Iteration is by key, so that a spec cannot depend on the hashing of one run. */
TEST(pairs_is_ordered) {
  runs("local t = { zeta = 1, alpha = 2, [3] = 3, [1] = 4, mid = 5, [2.5] = 6, [true] = 7 }\n"
       "local seen = {}\nfor k, v in pairs(t) do seen[#seen + 1] = tostring(k) .. '=' .. v end\n"
       "local text = table.concat(seen, ' ')\n"
       "assert(text == 'true=7 1=4 2.5=6 3=3 alpha=2 mid=5 zeta=1', text)");
}

TEST(errors_that_are_no_text) {
  fails("\nerror({ code = 1 })", "a.lua:2: an error that is a table value, not a message");
  fails("\nerror(nil)", "a.lua:2: an error that is a nil value, not a message");
  fails("error()", "a.lua:1: an error that is a nil value, not a message");
  fails("error(print)", "a.lua:1: an error that is a function value, not a message");
  fails("error(setmetatable({}, { __tostring = function() error('x') end }))",
        "a.lua:1: an error that is a table value, not a message");
  fails("error(setmetatable({}, { __tostring = function() while true do end end }))",
        "a.lua:1: an error that is a table value, not a message");
  fails("error(42)", "a.lua: 42");
  fails("error('text', 0)", "a.lua: text");
  fails("error('text')", "a.lua:1: text");
  fails("error('a.lua is bad', 2)", "a.lua is bad");
}

TEST(deep_nesting) {
  char text[2048] = "return ";
  for (int i = 0; i < 250; i++) strcat(text, "{");
  scratch_put("a.lua", text, strlen(text));
  ck_assert_str_eq(failure("a.lua"), "a.lua: its brackets or blocks are nested too deep");
  for (int i = 0; i < 250; i++) text[7 + i] = '(';
  scratch_put("a.lua", text, strlen(text));
  ck_assert_str_eq(failure("a.lua"), "a.lua: its brackets or blocks are nested too deep");
}

TEST(a_million_points) {
  fails(
      "local t = {} for i = 1, 1000000 do t[i] = 64 end\nreturn { head_dim = t }",
      "a.lua: table 1: the grid has more than 100000 combinations (FLASHGEN_MAX_POINTS raises the "
      "limit)");
  fails(
      "local t, p = {}, {} for i = 1, 1000 do t[i], p[i] = 64, 'forward' end\n"
      "return { head_dim = t, pass = p }",
      "a.lua: table 1: the grid has more than 100000 combinations (FLASHGEN_MAX_POINTS raises the "
      "limit)");
}

/* A spec that holds all of its memory when it returns: what C then does is not refused. */
TEST(full_memory_at_return) {
  const char *text = "local t, u = {}, nil\n"
                     "pcall(function() for i = 1, 1e9 do t[i] = { i } end end)\n"
                     "pcall(function() while true do u = { u } end end)\n"
                     "return { { head_dim = 64, bias = { true, 'grad', false }, block_q = 16,\n"
                     "  when = function() return t ~= u end }, { head_dim = 72 } }";
  const char *path = "a.lua";
  fg_grid *grid = NULL;
  scratch_put(path, text, strlen(text));
  double start = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  fg_status status = fg_grid_read(1, &path, 0, NULL, &grid);
  ck_assert_msg(status == FG_OK || status == FG_ESPEC, "%s", fg_error());
  ck_assert(clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start < SECONDS);
  fg_grid_free(grid);
}

TEST(budgets_are_settings) {
  setenv("FLASHGEN_SPEC_STEPS", "1", 1);
  fails("for i = 1, 10000000 do end", "a.lua:1: ran for more than 1 million steps "
                                      "(FLASHGEN_SPEC_STEPS raises the limit)");
  setenv("FLASHGEN_SPEC_STEPS", "99999999999999999999", 1); /* as good as none */
  runs("for i = 1, 10000000 do end");
  setenv("FLASHGEN_SPEC_MEMORY", "1", 1);
  fails("local t = {} for i = 1, 100000 do t[i] = i end",
        "a.lua: Lua ran out of its 1 MiB of memory (FLASHGEN_SPEC_MEMORY raises the limit of spec "
        "files)");
  setenv("FLASHGEN_SPEC_MEMORY", "8", 1);
  runs("local t = {} for i = 1, 100000 do t[i] = i end");
}

/* An interrupt ends what would run on, whatever a pcall makes of it. */
TEST(interrupted) {
  static volatile int flag = 1;
  fg_spec_stop_when(&flag);
  fails("while true do pcall(function() while true do end end) end", "a.lua: interrupted");
  flag = 0;
  runs("for i = 1, 100000 do end");
  fg_spec_stop_when(NULL);
}

/* Files that are no text. */
TEST(bytes) {
  static const struct {
    const char *bytes;
    size_t n;
    const char *why;
  } file[] = {
      {"\x1bLua\x54\x00\x19\x93", 8, "a.lua: is compiled Lua; a spec file is text"},
      {"\xef\xbb\xbfreturn {}", 12,
       "a.lua: is text with a byte order mark; save it as UTF-8 without one"},
      {"\xff\xfer\0e\0", 6, "a.lua: is UTF-16; save it as UTF-8"},
      {"\xfe\xff\0r\0e", 6, "a.lua: is UTF-16; save it as UTF-8"},
      {"return {}\0", 10, "a.lua: is not text: it holds a zero byte"},
      {"\0", 1, "a.lua: is not text: it holds a zero byte"},
      {"return \"\n", 9, "a.lua:1: unfinished string near '\"'"},
      {"head_dim = 64", 13,
       "a.lua: returns a nil; a spec file returns a table or a list of tables"},
  };
  for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
    scratch_put("a.lua", file[i].bytes, file[i].n);
    ck_assert_str_eq(failure("a.lua"), file[i].why);
  }
}

TEST(no_regular_file) {
  ck_assert_str_eq(failure("none.lua"), "none.lua: cannot be opened: No such file or directory");
  ck_assert_str_eq(failure(""), ": cannot be opened: No such file or directory");
  ck_assert_int_eq(mkdir("dir.lua", 0700), 0);
  ck_assert_str_eq(failure("dir.lua"), "dir.lua: is a directory, not a file");
  ck_assert_int_eq(mkfifo("pipe.lua", 0600), 0);
  ck_assert_str_eq(failure("pipe.lua"), "pipe.lua: is a device or pipe, not a file");
  ck_assert_str_eq(failure("/dev/zero"), "/dev/zero: is a device or pipe, not a file");
  scratch_put("big.lua", "", 0);
  ck_assert_int_eq(truncate("big.lua", 100 << 20), 0);
  ck_assert_str_eq(failure("big.lua"),
                   "big.lua: is 104857600 bytes long; a spec file has at most 1048576");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
