/* t_spec_error.c - everything wrong with specs, in one text, each with its place and what is right.
 */
#include "scratch.h"
#include "spec/spec.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define DIMS "d or d/dv, multiples of 8 from 8 to 576, dv to 512 (128 or 192/128)"

static void put(const char *path, const char *text) { scratch_put(path, text, strlen(text)); }

/* The files and words of one line fail with exactly this text. */
static void fails(const char *line, const char *why) {
  const char *files[8], *words[32];
  int n_files = 0, n_words = 0;
  char copy[512], *next = copy;
  fg_grid *grid = NULL;
  snprintf(copy, sizeof copy, "%s", line);
  for (char *item; (item = strsep(&next, " "));) {
    if (!strchr(item, '=') && strstr(item, ".lua"))
      files[n_files++] = item;
    else if (*item)
      words[n_words++] = item;
  }
  ck_assert_int_eq(fg_grid_read(n_files, files, n_words, words, &grid), FG_ESPEC);
  ck_assert_str_eq(fg_error(), why);
  ck_assert_ptr_null(grid);
}

static void file_fails(const char *text, const char *why) {
  put("a.lua", text);
  fails("a.lua", why);
}

TEST(all_errors_of_all_files_in_one_text) {
  put("a.lua", "return {\n"
               "  { head_dim = 12, maks = 'causal', dtype = { 'bf16', 'fp16' }, zebra = 1 },\n"
               "  { head_dim = { 64, 7.5 }, when = 3 },\n"
               "  { mask = {} },\n"
               "  { head_dim = 64, when = function(s) return s.x.y end },\n"
               "}\n");
  put("b.lua", "return {\n\n  head_dim = 64\n  mask = 'full' }");
  put("c.lua", "return { head_dim = print, pass = { 'forward', {} }, block_q = 0 }");
  fails(
      "a.lua b.lua missing.lua c.lua bais=true dtype",
      "unknown field \"bais\" (did you mean \"bias\"?)\n"
      "\"dtype\": expected field=value or a spec file\n"
      "a.lua: table 1: unknown field \"maks\" (did you mean \"mask\"?)\n"
      "a.lua: table 1: unknown field \"zebra\"\n"
      "a.lua: table 1: dtype: \"fp16\" is not allowed; expected bf16, f16, f32, e4m3 (did you mean "
      "\"f16\"?)\n"
      "a.lua: table 1: head_dim: \"12\" is not allowed; expected " DIMS "\n"
      "a.lua: table 2: when: a number; expected a function\n"
      "a.lua: table 2: head_dim: \"7.5\" is not allowed; expected " DIMS "\n"
      "a.lua: table 3: mask: the list is empty\n"
      "a.lua: table 3: head_dim: missing; it must be given\n"
      "b.lua:4: '}' expected (to close '{' at line 1) near 'mask'\n"
      "missing.lua: cannot be opened: No such file or directory\n"
      "c.lua: table 1: pass: item 2 is a table; expected text, a number or a boolean\n"
      "c.lua: table 1: head_dim: a function is no value; expected text, a number, a boolean or a "
      "list\n"
      "c.lua: table 1: block_q: \"0\" is not allowed; expected a positive integer");
  fails("a.lua",
        "a.lua: table 1: unknown field \"maks\" (did you mean \"mask\"?)\n"
        "a.lua: table 1: unknown field \"zebra\"\n"
        "a.lua: table 1: dtype: \"fp16\" is not allowed; expected bf16, f16, f32, e4m3 (did you "
        "mean \"f16\"?)\n"
        "a.lua: table 1: head_dim: \"12\" is not allowed; expected " DIMS "\n"
        "a.lua: table 2: when: a number; expected a function\n"
        "a.lua: table 2: head_dim: \"7.5\" is not allowed; expected " DIMS "\n"
        "a.lua: table 3: mask: the list is empty\n"
        "a.lua: table 3: head_dim: missing; it must be given\n"
        "a.lua: table 4: when: a.lua:5: s has no field \"x\"");
}

TEST(unknown_fields) {
  file_fails("return { head_dim = 64, zeta = 1, maks = 'full', blockq = 64, alpha = 2, [1.5] = 3,\n"
             "  [true] = 4, ['mask\\0'] = 5 }",
             "a.lua: table 1: unknown field \"alpha\"\n"
             "a.lua: table 1: unknown field \"blockq\" (did you mean \"block_q\"?)\n"
             "a.lua: table 1: unknown field \"maks\" (did you mean \"mask\"?)\n"
             "a.lua: table 1: unknown field \"zeta\"\n"
             "a.lua: table 1: 3 of its keys are no names of fields; expected field = value");
  fails("head_dim=64 maks=full", "unknown field \"maks\" (did you mean \"mask\"?)");
}

TEST(wrong_types) {
  file_fails(
      "return { head_dim = 64.0, mask = function() end, bias = { 1e2, {}, 'x\\0y' },\n"
      "  warps = '4\\0' }",
      "a.lua: table 1: mask: a function is no value; expected text, a number, a boolean or a "
      "list\n"
      "a.lua: table 1: bias: item 2 is a table; expected text, a number or a boolean\n"
      "a.lua: table 1: bias: item 3 is a text with a zero byte; expected text, a number or a "
      "boolean\n"
      "a.lua: table 1: warps: a text with a zero byte is no value; expected text, a number, "
      "a boolean or a list\n"
      "a.lua: table 1: head_dim: \"64.0\" is not allowed; expected " DIMS "\n"
      "a.lua: table 1: bias: \"100.0\" is not allowed; expected false, true, grad");
  file_fails("return { head_dim = 2^53 + 1 }",
             "a.lua: table 1: head_dim: \"9.007199254741e+15\" is not allowed; expected " DIMS);
  file_fails("return { head_dim = 64, when = 'true' }",
             "a.lua: table 1: when: a string; expected a function");
}

TEST(lists) {
  file_fails(
      "return { head_dim = {}, mask = { 'full', x = 'causal' }, dtype = { 'f16', nil, 'bf16' },"
      "  pass = { [2] = 'forward' } }",
      "a.lua: table 1: pass: a list has values only, without names or gaps\n"
      "a.lua: table 1: dtype: a list has values only, without names or gaps\n"
      "a.lua: table 1: head_dim: the list is empty\n"
      "a.lua: table 1: mask: a list has values only, without names or gaps");
}

TEST(missing_head_dim) {
  file_fails("return {}", "a.lua: table 1: head_dim: missing; it must be given");
  file_fails("return { { mask = 'full' }, { head_dim = 64 }, { dtype = 'f16' } }",
             "a.lua: table 1: head_dim: missing; it must be given\n"
             "a.lua: table 3: head_dim: missing; it must be given");
  fails("mask=full", "head_dim: missing; it must be given");
}

TEST(shape_of_the_result) {
  file_fails("", "a.lua: returns a nil; a spec file returns a table or a list of tables");
  file_fails("return 64",
             "a.lua: returns a number; a spec file returns a table or a list of tables");
  file_fails("return { { head_dim = 64 }, 64 }",
             "a.lua: item 2 of the list is a number; expected a table");
  file_fails(
      "return { { head_dim = 64 }, mask = 'causal' }",
      "a.lua: returns a list of tables that has named fields too; they belong into its tables");
}

TEST(words) {
  fails("head_dim=64 head_dim=128", "head_dim: given twice; a list is head_dim=a,b");
  fails("head_dim=", "head_dim: \"\" is not allowed; expected " DIMS);
  fails("head_dim=64,", "head_dim: \"\" is not allowed; expected " DIMS);
  fails("=64 head_dim=64", "\"=64\": expected field=value or a spec file");
  fails("head_dim=64 mask=full=causal",
        "mask: column 5: expected an operator or the end, found \"=\"\n  full=causal\n      ^");
  put("a.lua", "return { { head_dim = 64 }, { head_dim = 7 } }"); /* a word is wrong once */
  fails("a.lua mask=casual",
        "mask: column 1: \"casual\" is no name, input or definition (did you mean \"causal\"?)\n"
        "  casual\n  ^\n"
        "a.lua: table 2: head_dim: \"7\" is not allowed; expected " DIMS);
}

TEST(too_many_restrictions) {
  char line[256] = "head_dim=64 block_q=1";
  for (int i = 2; i <= 33; i++) snprintf(line + strlen(line), sizeof line - strlen(line), ",%d", i);
  fails(line, "block_q: more than 32 values");
}

TEST(empty_grid) {
  file_fails("return { head_dim = { 64, 128 }, when = function(s) return s.head_dim > 128 end }",
             "the grid is empty: `when` rejected all 2 combinations");
}

TEST(bias_fields_without_bias) {
  file_fails("return { { head_dim = 64, bias_dims = 'h' }, { head_dim = 72 } }",
             "bias_dims: given, but no point has a bias");
  fails("head_dim=64 bias_dtype=f32 grad_dtype=f32",
        "bias_dtype: given, but no point has a bias\n"
        "grad_dtype: given, but no backward point has bias=grad");
  fails("head_dim=64 pass=forward bias=grad grad_dtype=f32",
        "grad_dtype: given, but no backward point has bias=grad");
}

TEST(layouts) {
  fails("head_dim=64 q_layout=paged",
        "q_layout: \"paged\" is not allowed; expected dense, packed (did you mean \"packed\"?)");
  fails("head_dim=64 pass=backward kv_layout=paged",
        "kv_layout: backward takes dense or packed keys, not paged");
  fails("head_dim=64 slices=true q_layout=packed kv_layout=packed",
        "slices: they are of dense tokens, not of q_layout=packed, kv_layout=packed");
  fails("head_dim=64 slices=true shard=true",
        "shard: the tokens of slices=true are all there, not a part of them");
  fails("head_dim=64/128 latent=true", "latent: v is the first 128 columns of k, which has 64");
  fails("head_dim=64 shard=true inputs.x=f32[k] score=s+x[k-1]",
        "inputs.x: with shard=true its axis k is indexed by k alone: a part of a sequence has no "
        "other keys");
  fails("head_dim=64 shard=true inputs.t=f32[nq+nk] score=s+t[k-q+nq]",
        "inputs.t: with shard=true an extent is a number, b, h, hk, q or k, not nq + nk");
  fails("kernel=append head_dim=64 slices=true", "slices: no kernel of the spec has such a field");
  file_fails("return { head_dim = 64, pass = 'backward', kv_layout = 'cached' }",
             "a.lua: table 1: kv_layout: backward takes dense or packed keys, not cached");
}

TEST(errors_in_when) {
  file_fails("return {\n  head_dim = 64,\n  when = function(s)\n    return s.zebra.x\n  end,\n}",
             "a.lua: table 1: when: a.lua:4: s has no field \"zebra\"");
  file_fails("return { head_dim = 64,\n  when = function(s) return s.maks == 'full' end }",
             "a.lua: table 1: when: a.lua:2: s has no field \"maks\" (did you mean \"mask\"?)");
  file_fails("return { head_dim = 64, when = function(s) return s.block_q == nil end }",
             "a.lua: table 1: when: a.lua:1: block_q is of plans, and s is a spec");
  file_fails("return { head_dim = 64, when = function(s) return not s[1] end }",
             "a.lua: table 1: when: a.lua:1: s has no field \"number\"");
  file_fails("return { head_dim = 64, when = function(s) return not s[{}] end }",
             "a.lua: table 1: when: a.lua:1: s has no field \"table\"");
  file_fails("return { { head_dim = 64, when = function() error({}) end },\n"
             "  { head_dim = 64, when = function() error('no', 0) end } }",
             "a.lua: table 1: when: a.lua:1: an error that is a table value, not a message\n"
             "a.lua: table 2: when: no");
}

/* A report that is too long for one text ends with how many it leaves out. */
TEST(many_errors) {
  put("a.lua", "local t = {}\nfor i = 1, 100000 do t[i] = 'x' .. i end\nreturn { head_dim = t }");
  const char *files[] = {"a.lua"};
  fg_grid *grid = NULL;
  ck_assert_int_eq(fg_grid_read(1, files, 0, NULL, &grid), FG_ESPEC);
  const char *last = strrchr(fg_error(), '\n');
  int left_out = 0, lines = 0;
  for (const char *c = fg_error(); *c; c++) lines += *c == '\n';
  ck_assert_ptr_nonnull(last);
  ck_assert_int_eq(sscanf(last, "\nand %d errors more", &left_out), 1);
  ck_assert_int_gt(lines, 50);
  ck_assert_int_eq(lines + left_out, 100000);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
