/* t_template.c - the template language: what it makes, and that every mistake has its line. */
#include "expand/expand.h"
#include "expand/template.h"
#include "scratch.h"
#include "suite.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORWARD "attn_fwd-bf16-d64.simt-q16-k32-w4.host"
#define CUT     "attention/simt/forward.cut"

/* Appends lines to the forward kernel's file; `text` must be how they come out. */
static void makes(const char *lines, const char *text) {
  fg_source *source = NULL;
  templates_append(CUT, lines);
  ck_assert_msg(templates_expand(FORWARD, &source) == FG_OK, "%s", fg_error());
  const char *end = strstr(source->text, "\n\nvoid attn_fwd_entry");
  ck_assert_ptr_nonnull(end);
  size_t n = strlen(text);
  ck_assert_msg(!strncmp(end - n, text, n), "%.*s", (int)(n + 20), end - n - 20);
  fg_source_free(source);
}

TEST(values_in_text) {
  makes("// $(1 + 2) $(\"a\" .. ('b'):rep(2)) $(-7 // 2)$(plan.block_q)\n", "\n// 3 abb -416");
}

TEST(parentheses_and_strings_in_values) {
  makes(
      "// $(\")\") $(')') $('\"') $(#\"((\") $(\"\\\")\") $((1) + (2)) \"$(\"q\")\" $x $ ( $$(1)\n",
      "\n// ) ) \" 2 \") 3 \"q\" $x $ ( $1");
}

TEST(text_is_kept) {
  makes("// a \\n \"quoted\" 'c' %d @ here [[x]] -- no comment\r\n",
        "\n// a \\n \"quoted\" 'c' %d @ here [[x]] -- no comment");
}

TEST(lua_lines) {
  makes("   @ for i = 1, 3 do\n// line $(i)\n\t@ if i == 2 then\n// two\n@ end\n@ end\n",
        "\n// line 1\n// line 2\n// two\n// line 3");
}

/* Between lines of Lua that are one statement too. */
TEST(spots_make_nothing) {
  makes("// one\n@ spot \"a.first_1\"\n// two\n@ local x = {\n  @\tspot  \"b\"\t\n@ 'three' }\n// "
        "$(x[1])\n",
        "\n// one\n// two\n// three");
}

TEST(lines_of_empty_values) {
  makes("// one\n  $('')$('')\n// two $('')\n$('// three\\n// four')\n",
        "\n// one\n// two\n// three\n// four");
}

TEST(text_is_indented) {
  makes(
      "static int f(int a,\nint b) {\nif (a) {\n      return b;\n} else {\nreturn 1;\n    }\n}\n",
      "\nstatic int f(int a,\n    int b) {\n  if (a) {\n    return b;\n  } else {\n    return 1;\n"
      "  }\n}");
}

/* Before the comment, and in it between words, which stay a comment. */
TEST(long_lines_break) {
#define CODE  "int long_name_of_a_variable = another_long_name(of, a, function), and_a_third = 1;"
#define WORDS "// one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve"
  makes(CODE " " WORDS "\nint after;\n", "\n" CODE "\n    " WORDS "\nint after;");
  makes(WORDS ", thirteen, fourteen, fifteen\n", "\n" WORDS ", thirteen, fourteen,\n// fifteen");
  makes("int x; " WORDS ", thirteen, fourteen\n",
        "\nint x;\n    " WORDS ", thirteen,\n    // fourteen");
}

static const struct {
  const char *lines, *why;
} mistake[] = {
    {"// $(1.5)\n", "a value in $( ) is the float 1.5; it must be text or an integer"},
    {"// $(4 / 2)\n", "a value in $( ) is the float 2.0; it must be text or an integer"},
    {"// $(nil)\n", "a value in $( ) is nil; it must be text or an integer"},
    {"// $(true)\n", "a value in $( ) is a boolean; it must be text or an integer"},
    {"// $({})\n", "a value in $( ) is a table; it must be text or an integer"},
    {"// $(ipairs)\n", "a value in $( ) is a function; it must be text or an integer"},
    {"// $(nosuch)\n", "undefined name 'nosuch'"},
    {"@ nosuch = nosuch\n", "undefined name 'nosuch'"},
    {"@ os.exit(0)\n", "undefined name 'os'"},
    {"// $(f(1)\n", "$( is not closed on its line"},
    {"// $(\"x)\n", "$( is not closed on its line"},
    {"// $()\n", "unexpected symbol near ')'"},
    {"// $(1 2)\n", "')' expected near '2'"},
    {"@ x = = 1\n", "unexpected symbol near '='"},
    {"@ end\n", "<eof> expected near 'end'"},
    {"@ spot \"a.B\"\n", "undefined name 'spot'"},
    {"@ error('mine')\n", "mine"},
    {"@ error({})\n", "an error that is a table value, not a message"},
    {"@ local x = plan.block_q .. {}\n", "attempt to concatenate a table value"},
    {"@ mask.nosuch('q')\n", "attempt to call a nil value (field 'nosuch')"},
    {"f(\n", "'(' is not closed"},
    {"if (1) {\n", "'{' is not closed"},
    {"}\n", "'}' closes nothing"},
    {"} {\n", "'}' closes nothing"},
    {"f())\n", "')' closes nothing"},
    {"@ part 'warp_max'\n", "part 'warp_max' is declared twice"},
    {"int x = $(tostring(nil));\n", "'nil' stands where a value belongs"},
    {"int x = $(plan.block_q .. ' * nil');\n", "'nil' stands where a value belongs"},
    {"// $(string.format('%s', plan.none))\n", "value 1 of a format is nil"},
    {"// $(('%d %s'):format(1, {}))\n", "value 2 of a format is a table"},
    {"// $(string.format('%s', plan.block_q > 1))\n", "value 1 of a format is a boolean"},
    {"int x = $('$' .. 'name');\n", "'$name' has no value"},
    {"int x = $('');\n", "there is no value in '= ;'"},
    {"int x = 2 * $('');\n", "there is no value in '* ;'"},
    {"int x = (2 + $(''));\n", "there is no value in ' + )'"},
    {"int x = 2 - $('');\n", "there is no value in ' - ;'"},
    {"f(1, $(''));\n", "there is no value in ', )'"},
    {"f($(''), 1);\n", "there is no value in '(,'"},
    {"if ($('')) {\n}\n", "there is no value in 'if ()'"},
    {"while ($('')) {\n}\n", "there is no value in 'while ()'"},
    {"int x = y ? $('') : 1;\n", "there is no value in '?  :'"},
    {"int x = y[$('') / 2];\n", "there is no value in '[ /'"},
    {"$(kernel('nosuch')) {\n}\n", "kernel 'nosuch' is no step of the recipe"},
    {"@ instance { 'nosuch', name = 'f' }\n", "no instances of 'nosuch' on host"},
    {"@ instance { 'wgmma', name = 'f', n = 12, k = 16 }\n",
     "f: n must be a multiple of 8 up to 256"},
    {"@ instance { 'wgmma', name = 'f', n = 8, k = 272 }\n",
     "f: k must be a multiple of 16 up to 256"},
    {"@ instance { 'wgmma', name = 'f', n = 8, k = 16, init = 'one' }\n", "f: init is none"},
    {"@ instance { 'wgmma', name = 'f', n = 8, k = 16 }\n", "f: b is missing"},
    {"@ instance { 'wgmma', name = 'f', n = 8, k = 16, b = { swizzle = 16 } }\n",
     "f: b: swizzle must be 128, 64 or 32"},
    {"@ instance { 'wgmma', name = 'f', n = 8, k = 16, b = { swizzle = 64, major = 'n' } }\n",
     "f: b: major must be \"k\" or \"mn\""},
    {"@ instance { 'wgmma', name = 'f', n = 8, k = 48, b = { swizzle = 64, major = 'k' } }\n",
     "f: b: block is missing"},
    {"@ instance { 'wgmma', name = 'f', n = 8, k = 16, a = { major = 'k', swizzle = 8 } }\n",
     "f: a: swizzle must be 128, 64 or 32"},
    {"@ instance { 'wgmma_wait', name = 'block_sync', pending = 0, floats = { 4 } }\n",
     "part 'block_sync' is declared twice"},
    {"@ include 'no.cut'\n", "template no.cut: there is none of that name"},
    {"@ run('no.lua')\n", "template no.lua: there is none of that name"},
    {"@ include 'attention'\n", "template t/attention: cannot be read"},
};

TEST_LOOP(mistakes_have_their_line, sizeof mistake / sizeof *mistake) {
  templates_fail(FORWARD, CUT, templates_append(CUT, mistake[_i].lines), mistake[_i].why);
}

/* Constants that nothing uses go, with what only they use; not those of another scope's name, nor
 * what a call may do. */
TEST(unused_constants_go) {
  makes("static int f(int n) {\nconst int a = n;\nconst int b = imax(a, 2);\n{\nconst int a = 3;\n"
        "const int e = a;\nf(e);\n}\nconst int c = n;\nconst float *at = p.q + c;\nif (n) {\n"
        "return c;\n}\nconst int d = f(n);\nconst int g = 1, h = imax(1, n), i = 2 * g, *j = f(n); "
        "// i\n"
        "const int k = 1, l = k;\nreturn i; // a b at\n}\n",
        "\nstatic int f(int n) {\n  {\n    const int a = 3;\n    const int e = a;\n    f(e);\n  }\n"
        "  const int c = n;\n  if (n) {\n    return c;\n  }\n  const int d = f(n);\n"
        "  const int g = 1, i = 2 * g, *j = f(n); // i\n  return i; // a b at\n}");
  /* a macro uses what its words stand for, in each scope again */
  makes("@ macro('TWICE', 'x', 'x += 2 * a;')\nstatic int f(int n) {\nif (n) {\nconst int a = "
        "1;\nTWICE(n)\n"
        "} else {\nconst int a = 3;\nTWICE(n)\n{\nconst int a = 4;\nTWICE(n)\n}\n}\nreturn n;\n}\n",
        "\nstatic int f(int n) {\n  if (n) {\n    const int a = 1;\n    TWICE(n)\n  } else {\n"
        "    const int a = 3;\n    TWICE(n)\n    {\n      const int a = 4;\n      TWICE(n)\n    "
        "}\n  }\n"
        "  return n;\n}");
  /* its parameters are its own */
  makes("@ macro('ADD', 'x, a', 'x += a;')\nstatic int f(int n) {\nconst int a = 1;\nADD(n, "
        "2)\nreturn n;\n}\n",
        "\nstatic int f(int n) {\n  ADD(n, 2)\n  return n;\n}");
}

/* Code that looks like a missing value and is none. */
TEST(no_value_is_missing) {
  makes("for (;;) {$('')\n$('')int *x = (int *)y, *z = &x[i++], nil_ = f(), w = -1; f(i++, i--);\n"
        "$('')asm(\"= ; $x nil\" : \"=r\"(w) : : \"memory\"); // nil $x = ;\n}\n",
        "\nfor (;;) {\n  int *x = (int *)y, *z = &x[i++], nil_ = f(), w = -1; f(i++, i--);\n"
        "  asm(\"= ; $x nil\" : \"=r\"(w) : : \"memory\"); // nil $x = ;\n}");
}

/* Mistakes far from the kernel's own file. */
TEST(mistakes_in_other_files) {
  int line = templates_append("attention/contract.lua", "x x\n");
  templates_fail(FORWARD, "attention/contract.lua", line, "<eof> expected near 'x'");
  templates_replace("attention/contract.lua", "(spec.normalizer)", "(nosuch)");
  line = templates_line("attention/contract.lua", "(spec.normalizer)");
  templates_fail(FORWARD, "attention/contract.lua", line, "undefined name 'nosuch'");
  templates_replace("attention/contract.lua", "local hooks = {", "local hooks = {");
  templates_replace("tile/rows.cut", "DEV u16 from_f32", "DEV $(u16) from_f32");
  line = templates_line("tile/rows.cut", "DEV u16 from_f32");
  templates_fail(FORWARD, "tile/rows.cut", line, "undefined name 'u16'");
  templates_replace("tile/rows.cut", "DEV float to_f32(u16 x) {", "DEV float to_f32(u16 x) {{");
  line = templates_line("tile/rows.cut", "DEV float to_f32(u16 x) {");
  templates_fail(FORWARD, "tile/rows.cut", line, "'{' is not closed");
}

/* The text of FORWARD with the folder's templates; the caller frees it. */
static char *text_of_forward(void) {
  fg_source *source = NULL;
  ck_assert_msg(templates_expand(FORWARD, &source) == FG_OK, "%s", fg_error());
  char *text = strdup(source->text);
  fg_source_free(source);
  return text;
}

/* A template that the folder lacks is the built-in one; a name that neither has is an error. */
TEST(folder_lies_over_the_built_in) {
  static const char more[] = "@ include(\"tile/dropout.cut\")\n";
  char *whole = text_of_forward();
  templates_append("prelude.cut", "");
  char *text = text_of_forward();
  ck_assert_str_eq(text, whole);
  free(text);
  templates_replace("attention/simt/forward.lua", "tile/dropout.cut", "tile/more.cut");
  templates_fail(FORWARD, NULL, 0, "template tile/more.cut: there is none of that name");
  scratch_put("t/tile/more.cut", more, sizeof more - 1);
  text = text_of_forward();
  ck_assert_str_eq(text, whole);
  free(text);
  free(whole);
}

TEST(folders_that_cannot_be_used) {
  ck_assert_int_eq(mkdir("t/prelude.cut", 0777), 0);
  templates_fail(FORWARD, NULL, 0, "template t/prelude.cut: cannot be read");
  ck_assert_int_eq(system("rm -r t && mkdir t && echo >t/notes.txt"), 0);
  templates_fail(FORWARD, NULL, 0, "templates t: there is no .cut or .lua file");
  ck_assert_int_eq(system("rm -r t"), 0);
  templates_fail(FORWARD, NULL, 0, "templates t: No such file or directory");
}

/* Which templates a gen reads is its own choice; a failure leaves it usable. */
TEST(directory_replaces_the_built_in) {
  fg_variant variant;
  fg_source *built_in = NULL, *copy = NULL, *changed = NULL;
  fg_gen *gen;
  ck_assert_int_eq(fg_variant_parse(FORWARD, &variant), FG_OK);
  ck_assert_int_eq(fg_gen_new("", &gen), FG_OK);
  ck_assert_int_eq(fg_gen_expand(gen, &variant, &built_in), FG_OK);
  fg_gen_free(gen);
  ck_assert_int_eq(fg_gen_new("t", &gen), FG_OK);
  ck_assert_int_eq(fg_gen_expand(gen, &variant, &copy), FG_OK);
  ck_assert_str_eq(copy->text, built_in->text);
  templates_append(CUT, "// $(nil)\n");
  for (int i = 0; i < 100; i++)
    ck_assert_int_eq(fg_gen_expand(gen, &variant, &changed), FG_ETEMPLATE);
  templates_replace(CUT, "// O += P V", "// changed");
  ck_assert_msg(fg_gen_expand(gen, &variant, &changed) == FG_OK, "%s", fg_error());
  ck_assert_ptr_nonnull(strstr(changed->text, "// changed"));
  fg_gen_free(gen);
  fg_source_free(built_in);
  fg_source_free(copy);
  fg_source_free(changed);
}

/* A macro is emitted where its name is used, with its comment, and has one text. */
TEST(macros) {
  static const char twice[] = "@ macro(\"TWICE\", \"x\", \"x += x;\", \"Doubles.\")\n";
  char two[256];
  fg_source *source = NULL;
  templates_append(CUT, twice);
  ck_assert_msg(templates_expand(FORWARD, &source) == FG_OK, "%s", fg_error());
  ck_assert_ptr_null(strstr(source->text, "TWICE"));
  fg_source_free(source);
  templates_append(CUT, twice);
  templates_append(CUT, "// TWICE\n");
  ck_assert_msg(templates_expand(FORWARD, &source) == FG_OK, "%s", fg_error());
  ck_assert_ptr_null(strstr(source->text, "#define TWICE")); /* a comment is no use */
  fg_source_free(source);
  templates_append(CUT, "static int a; TWICE(a)\n");
  ck_assert_msg(templates_expand(FORWARD, &source) == FG_OK, "%s", fg_error());
  ck_assert_ptr_nonnull(strstr(source->text, "\n\n// Doubles.\n#define TWICE(x) x += x;\n"));
  fg_source_free(source);
  templates_replace(CUT, "@ -- forward.cut", "@ -- forward.cut");
  snprintf(two, sizeof two, "%s@ macro(\"TWICE\", \"x\", \"x *= 2;\")\n", twice);
  int line = templates_append(CUT, two);
  templates_fail(FORWARD, CUT, line + 1, "part 'TWICE' is declared twice");
}

/* A body of several lines goes on behind backslashes. */
TEST(macros_of_many_lines) {
  fg_source *source = NULL;
  templates_append(CUT, "@ macro(\"SWAP\", \"a, b\", \"{\\nint c = a;\\na = b;\\nb = c;\\n}\")\n");
  templates_append(CUT, "static int a, b; SWAP(a, b)\n");
  ck_assert_msg(templates_expand(FORWARD, &source) == FG_OK, "%s", fg_error());
  ck_assert_ptr_nonnull(strstr(source->text, "\n#define SWAP(a, b) \\\n  { \\\n    int c = a; \\\n"
                                             "    a = b; \\\n    b = c; \\\n  }\n"));
  fg_source_free(source);
}

TEST(translation_is_line_for_line) {
  static const char text[] = "a $(b) c\n  @ x()\n\n\"\\\"\n$(1)$(2)\n\t@y\nlast";
  char *lua;
  size_t size;
  ck_assert_int_eq(fg_template_translate("n", text, sizeof text - 1, &lua, &size), FG_OK);
  ck_assert_str_eq(lua,
                   "local emit, given = ...; emit(1, \"a \", (b), \" c\");\n x()\nemit(3, \"\");\n"
                   "emit(4, \"\\\"\\\\\\\"\");\nemit(5, \"\", (1), \"\", (2), \"\");\ny\n"
                   "emit(7, \"last\");\n");
  ck_assert_uint_eq(size, strlen(lua));
  free(lua);
  ck_assert_int_eq(fg_template_translate("n", "", 0, &lua, &size), FG_OK);
  ck_assert_str_eq(lua, "local emit, given = ...; ");
  free(lua);
}

TEST_FIXTURE(templates_enter, templates_leave)
