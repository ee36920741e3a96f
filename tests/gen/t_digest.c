/* t_digest.c - what moves the digest of templates and what does not. */
#include "expand/digest.h"
#include "expand/essence.h"
#include "expand/expand.h"
#include "expand/overlay.h"
#include "expand/template.h"
#include "scratch.h"
#include "suite.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The essence without line ends, which is what kernels of GPUs are kept under, and with them. */
static const struct {
  const char *name, *text, *essence, *with_lines;
} cases[] = {
    {"a.lua", "-- one\nlocal a = 1 -- two\n\n\nreturn a\n", "local a = 1 return a ",
     "\nlocal a = 1 \n\n\nreturn a\n"},
    {"a.lua", "a = '--no' .. \"--\\\"--\" -- yes", "a = '--no' .. \"--\\\"--\" ",
     "a = '--no' .. \"--\\\"--\" "},
    {"a.lua", "a = [[--\n--]] .. [==[ ]] --]==] --[[ x\n]] .. b",
     "a = [[--\n--]] .. [==[ ]] --]==] .. b", "a = [[--\n--]] .. [==[ ]] --]==] \n.. b"},
    {"a.lua", "a--[==[ ]] ]==]b --[=x\nc", "a b c", "a b \nc"},
    {"a.lua", "a[b[1]] - - c", "a[b[1]] - - c", "a[b[1]] - - c"},
    /* What does not end is taken as it is. */
    {"a.lua", "a --[[ b -- c\n", "a --[[ b -- c\n", "a --[[ b -- c\n"},
    {"a.lua", "a 'b -- c\n", "a 'b -- c\n", "a 'b -- c\n"},
    {"a.lua", "a [=[ b ]] -- c\n", "a [=[ b ]] -- c\n", "a [=[ b ]] -- c\n"},
    /* Text of a kernel is none of Lua's. */
    {"a.cut", "@ -- head\n  x--; // -- kept\n  @ for i = 1, 2 do -- twice\n\n@\n@ end\n",
     "  x--; // -- kept\n@ for i = 1, 2 do\n\n@ end\n",
     "@\n  x--; // -- kept\n@ for i = 1, 2 do\n\n@\n@ end\n"},
    {"a.cut", "@ a = '--' -- b", "@ a = '--'\n", "@ a = '--'\n"},
    {"a.cut", "@ a -- b\n@ --[[ open\n@ c -- d\n", "@ a\n@ --[[ open\n@ c -- d\n",
     "@ a\n@ --[[ open\n@ c -- d\n"},
    /* Spots, and what is none. */
    {"a.cut", "  @ spot \"a.b\"\nx;\n", "x;\n", "@\nx;\n"},
    {"a.cut", "@ spot \"a.b\" \"c\"\nx;\n", "@ spot \"a.b\" \"c\"\nx;\n",
     "@ spot \"a.b\" \"c\"\nx;\n"},
    {"a.lua", "-- spot \"a.b\"\na = 1", "a = 1", "\na = 1"},
    /* Reasons and measurements. */
    {"x_switches.lua",
     "{ name = 'a', why = \"b, } --\", when = c,\n  gain = {\n h(1, 2), { 3 } } }",
     "{ name = 'a', when = c }", "{ name = 'a', when = c,\n\n}"},
    {"x_switches.lua", "{ name = 'a', when = c }", "{ name = 'a', when = c }",
     "{ name = 'a', when = c }"},
    {"x_switches.lua", "{ why = 'a' }", "{ }", "{ }"},
    {"x_switches.lua", "{ gain == b, x.gain, c gain = d, gains = e, again = f }",
     "{ gain == b, x.gain, c gain = d, gains = e, again = f }",
     "{ gain == b, x.gain, c gain = d, gains = e, again = f }"},
    {"x_switches.lua", "{ a, gain = 'b -- c\n", "{ a, 'b -- c\n", "{ a, 'b -- c\n"},
    {"x_plans.lua", "{ block_q = 1, measured = { { 'd', 350 } }, about = 'a', when = f }",
     "{ block_q = 1, when = f }", "{ block_q = 1, when = f }"},
    {"x_refused.lua", "{ spare = 16, spilled = { { 'd', 72 } }, what = 'a' }",
     "{ spare = 16, what = 'a' }", "{ spare = 16, what = 'a' }"},
    {"x.lua", "{ why = 'a', gain = 2 }", "{ why = 'a', gain = 2 }", "{ why = 'a', gain = 2 }"},
};

TEST_LOOP(essences, sizeof cases / sizeof *cases) {
  const char *text = cases[_i].text;
  char essence[256];
  for (int with_lines = 0; with_lines < 2; with_lines++) {
    const char *expected = with_lines ? cases[_i].with_lines : cases[_i].essence;
    size_t n = fg_template_essence(cases[_i].name, text, strlen(text), with_lines, essence);
    ck_assert_uint_le(n, strlen(text) + 1);
    essence[n] = 0;
    ck_assert_str_eq(essence, expected);
  }
}

/* Is the digest of the directory another than it was? */
static bool moved(char digest[2][40]) {
  bool moved = false;
  for (int with_lines = 0; with_lines < 2; with_lines++) {
    char now[40];
    ck_assert_msg(fg_gen_digest("t", with_lines, sizeof now, now) == FG_OK, "%s", fg_error());
    moved |= strcmp(now, digest[with_lines]) != 0;
    strcpy(digest[with_lines], now);
  }
  return moved;
}

/* A comment that is reworded keeps the digest; a statement, a number and a line of a kernel that is
 * a comment there move it. */
TEST(comments) {
  char digest[2][40] = {"", ""};
  ck_assert(moved(digest));
  ck_assert(!moved(digest));
  templates_change("attention/simt/forward.lua", "\nlocal ", " -- of words\nlocal ");
  ck_assert(!moved(digest));
  templates_change("attention/simt/forward.lua", " -- of words\n", " -- of other words\n");
  ck_assert(!moved(digest));
  templates_change("attention/simt/forward.lua", "block_q = 16", "block_q = 32");
  ck_assert(moved(digest));
  templates_append("attention/simt/forward.cut", "@ local x = 1 -- one\n");
  ck_assert(moved(digest));
  templates_change("attention/simt/forward.cut", "-- one\n", "-- a number\n");
  ck_assert(!moved(digest));
  templates_change("attention/simt/forward.cut", "// O += P V", "// O is the sum of P V");
  ck_assert(moved(digest));
}

/* A comment of one line more: only where the places of lines are kept. */
TEST(lines) {
  char digest[2][40] = {"", ""}, before[2][40];
  ck_assert(moved(digest));
  memcpy(before, digest, sizeof before);
  templates_change("attention/simt/forward.lua", "\nlocal ", "\n-- of words\n--\nlocal ");
  ck_assert(moved(digest));
  ck_assert_str_eq(digest[0], before[0]);
  ck_assert_str_ne(digest[1], before[1]);
}

/* Without comments; the rows of switches need their reasons to be read. */
static fg_status put_essence(void *with_lines, const char *path, const char *name) {
  char *text;
  size_t size;
  TRY(fg_template_read(path, &text, &size));
  const char *kind = strstr(name, ".cut") ? "a.cut" : "a.lua";
  char *essence = malloc(size + 1);
  ck_assert_ptr_nonnull(essence);
  scratch_put(path, essence,
              fg_template_essence(kind, text, size, *(const bool *)with_lines, essence));
  free(essence);
  free(text);
  return FG_OK;
}

static char *text_of(fg_gen *gen, const char *name) {
  fg_variant variant;
  fg_source *source;
  ck_assert_int_eq(fg_variant_parse(name, &variant), FG_OK);
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s", fg_error());
  char *text = source->text;
  source->text = NULL;
  fg_source_free(source);
  return text;
}

/* What is left out changes nothing: templates that are their own essence emit the same. */
TEST(essence_is_enough) {
  static const char *const names[] = {"attn_fwd-bf16-d64-causal.simt-q16-k32-w4.host",
                                      "attn_bwd-bf16-d64-causal.mma-q64-k64-s2-w4.sm_80",
                                      "attn_fwd-bf16-d128-causal-bias_hqk.mma-q64-k64-s2-w4.sm_90a",
                                      "attn_fwd-bf16-d128-causal.wgmma-q128-k128-s2-w12.sm_90a",
                                      "attn_fwd-bf16-d128-causal.wgmma-q128-k128-s2-w12.host"};
  for (int with_lines = 0; with_lines < 2; with_lines++) {
    fg_gen *built_in, *essential;
    bool counted = with_lines;
    templates_copy();
    ck_assert_msg(fg_overlay_each("t", put_essence, &counted) == FG_OK, "%s", fg_error());
    ck_assert_int_eq(fg_gen_new(NULL, &built_in), FG_OK);
    ck_assert_int_eq(fg_gen_new("t", &essential), FG_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      char *expected = text_of(built_in, names[i]), *text = text_of(essential, names[i]);
      ck_assert_str_eq(text, expected);
      free(expected);
      free(text);
    }
    fg_gen_free(built_in);
    fg_gen_free(essential);
  }
}

/* The digest of what is used: equal files count as the built-in ones do, others replace them, and
 * names that no built-in template has count, too. */
/* What the build made of the built-in templates is what would be made of them now. */
TEST(built_in) {
  char hex[40], again[40];
  for (int with_lines = 0; with_lines < 2; with_lines++) {
    ck_assert_int_eq(fg_gen_digest(NULL, with_lines, sizeof hex, hex), FG_OK);
    ck_assert_int_eq(fg_gen_digest_make(NULL, with_lines, sizeof again, again), FG_OK);
    ck_assert_str_eq(hex, again);
  }
}

TEST(overlay) {
  static const char cut[] = "attention/simt/forward.cut", text[] = "x\n";
  char built_in[40], digest[2][40] = {"", ""};
  ck_assert_int_eq(fg_gen_digest(NULL, false, sizeof built_in, built_in), FG_OK);
  ck_assert(moved(digest));
  ck_assert_str_eq(digest[0], built_in);
  templates_replace(cut, "// O += P V", "// O += P V");
  ck_assert(!moved(digest));
  templates_replace(cut, "// O += P V", "// O is the sum of P V");
  ck_assert(moved(digest));
  scratch_put("t/attention/simt/other.cut", text, sizeof text - 1);
  ck_assert(moved(digest));
  scratch_put("t/attention/simt/notes.txt", text, sizeof text - 1);
  ck_assert(!moved(digest));
  ck_assert_int_eq(symlink("..", "t/attention/outer"), 0); /* a folder that the walk is in */
  ck_assert_int_eq(symlink("nothing", "t/attention/none.cut"), 0);
  ck_assert(!moved(digest));
}

TEST(missing_directory) {
  char digest[40];
  ck_assert_int_eq(fg_gen_digest("nowhere", false, sizeof digest, digest), FG_ETEMPLATE);
  ck_assert_str_eq(fg_error(), "templates nowhere: No such file or directory");
  ck_assert_int_eq(system("rm -r t && mkdir t"), 0);
  ck_assert_int_eq(fg_gen_digest("t", false, sizeof digest, digest), FG_ETEMPLATE);
  ck_assert_str_eq(fg_error(), "templates t: there is no .cut or .lua file");
}

TEST_FIXTURE(templates_enter, templates_leave)
