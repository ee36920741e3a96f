/* t_switches.c - the decisions of families as data: what `use` knows, what FLASHGEN_SWITCH forces,
 * and that no kernel made under it is kept under another's name; t_switches_off.c tries each. */
#include "api_case.h"
#include "kernel_case.h"
#include "program.h"
#include "scratch.h"
#include "templates.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUT   "attention/mma/forward.cut"
#define ROWS  "attention/mma/forward_switches.lua"
#define NAMED "attn_fwd-bf16-d64-window_70_0.mma-q64-k64-s2-w4.host"
#define PLAIN "attn_fwd-bf16-d64.mma-q64-k64-s2-w4.host"

static void enter(void) {
  api_enter();
  api_leave();
  templates_enter();
}

static void leave(void) {
  unsetenv("FLASHGEN_SWITCH");
  templates_leave();
}

/* Expands a variant with the templates of a directory, NULL = the built-in ones. */
static fg_status expand(const char *templates, const char *name, fg_source **source) {
  fg_variant variant;
  fg_gen *gen;
  GOOD(fg_variant_parse(name, &variant));
  GOOD(fg_gen_new(templates, &gen));
  fg_status status = fg_gen_expand(gen, &variant, source);
  fg_gen_free(gen);
  return status;
}

static fg_source *expanded(const char *name) {
  fg_source *source;
  GOOD(expand(NULL, name, &source));
  return source;
}

/* The kernel of the directory's templates fails with this sentence behind its name. */
static void fails(fg_status code, const char *sentence) {
  char expected[1024];
  fg_source *source = NULL;
  snprintf(expected, sizeof expected, "%s: %s", NAMED, sentence);
  ck_assert_int_eq(expand("t", NAMED, &source), code);
  ck_assert_str_eq(fg_error(), expected);
}

/* ---- what the text says ---- */

TEST(header_lists_them) {
  fg_source *named = expanded(NAMED), *plain = expanded(PLAIN);
  fg_source *simt = expanded("attn_fwd-bf16-d64.simt-q16-k32-w4.host");
  ck_assert_ptr_nonnull(strstr(named->text, ", begin_at_mask\n"));
  ck_assert_ptr_null(strstr(plain->text, "begin_at_mask"));
  ck_assert_ptr_nonnull(strstr(plain->text, "\n// switches: "));
  ck_assert_ptr_null(strstr(simt->text, "switches:"));
  fg_source_free(named);
  fg_source_free(plain);
  fg_source_free(simt);
}

/* The header's command makes the same text again. */
TEST(forced_off) {
  fg_source *on = expanded(NAMED);
  setenv("FLASHGEN_SWITCH", "begin_at_mask=0", 1);
  fg_source *off = expanded(NAMED);
  ck_assert_ptr_null(strstr(on->text, " / BLOCK_KV * BLOCK_KV;"));
  ck_assert_ptr_nonnull(strstr(off->text, " / BLOCK_KV * BLOCK_KV;"));
  ck_assert_ptr_null(strstr(off->text, "begin_at_mask,"));
  ck_assert_ptr_nonnull(
      strstr(off->text, "\n// again:  FLASHGEN_SWITCH=begin_at_mask=0 flashgen emit"));
  const program_setup setup = {.env = {"FLASHGEN_SWITCH=begin_at_mask=0"}};
  ck_assert_str_eq(program_run(&setup, "emit " NAMED).out, off->text);
  fg_source_free(on);
  fg_source_free(off);
}

/* A switch that is not possible in a kernel stays off there. */
TEST(forced_on_where_possible) {
  fg_source *plain = expanded(PLAIN);
  setenv("FLASHGEN_SWITCH", "begin_at_mask=1", 1);
  fg_source *forced = expanded(PLAIN);
  ck_assert_ptr_null(strstr(forced->text, "begin_at_mask,"));
  ck_assert_str_eq(strstr(plain->text, "\n// made by"), strstr(forced->text, "\n// made by"));
  fg_source_free(plain);
  fg_source_free(forced);
}

TEST(list_says_them) {
  program_says(program_gives(0, "list --verbose " NAMED).out, ", begin_at_mask\n");
  const program_setup setup = {.env = {"FLASHGEN_SWITCH=begin_at_mask=0"}};
  const program_result r = program_run(&setup, "list --verbose " NAMED);
  ck_assert_int_eq(r.code, 0);
  ck_assert_ptr_null(strstr(r.out, "begin_at_mask"));
}

/* ---- mistakes ---- */

TEST(unknown_name_forced) {
  templates_replace(
      ROWS, "\nreturn {",
      "\ndo return {\n"
      "  { name = \"begin_at_mask\", why = \"It is faster.\", when = function() return true end "
      "},\n"
      "  { name = \"by_columns\", why = \"It is faster.\", when = function() return true end },\n"
      "  { name = \"by_rows\", why = \"It is not faster.\", when = false },\n} end\nreturn {");
  setenv("FLASHGEN_SWITCH", "begin_at_mast=0", 1);
  fg_source *source;
  ck_assert_int_eq(expand("t", NAMED, &source), FG_EARGUMENT);
  ck_assert_msg(strstr(fg_error(), NAMED ": FLASHGEN_SWITCH: there is no switch 'begin_at_mast'; "
                                         "did you mean 'begin_at_mask'?; there are: "),
                "%s", fg_error());
  ck_assert_msg(strstr(fg_error(), ", by_columns"), "%s", fg_error());
  ck_assert_msg(!strstr(fg_error(), "by_rows"), "%s", fg_error());
  setenv("FLASHGEN_SWITCH", "by_rows=1", 1);
  fails(FG_EARGUMENT, "FLASHGEN_SWITCH: 'by_rows' was tried and lost: no template has it any more");
}

TEST(unknown_name_read) {
  const int line = templates_append(CUT, "@ if use.begin_at_mast then\n@ end\n");
  char sentence[256];
  snprintf(sentence, sizeof sentence,
           CUT ":%d: there is no switch 'begin_at_mast'; did you mean 'begin_at_mask'?", line);
  fails(FG_ETEMPLATE, sentence);
}

#define LOST "name = 'a', why = 'Good.', when = false"
#define GAIN LOST ", gain = "
#define OF_A ROWS ": the switch 'a'"

/* What is wrong with a row, and how it is said. */
static const struct fault {
  const char *row, *said;
} faults[] = {
    {"why = 'Good.', when = false", ROWS ": row 1 needs a name of small letters"},
    {"name = 'Good', why = 'Good.', when = false", ROWS ": row 1 needs a name of small letters"},
    {"name = 'a', why = 'Good.', when = true", OF_A " needs a function as when, or false"},
    {LOST ", possible = true", OF_A " needs a function as possible, or none"},
    {"name = 'a', why = 'good', when = false", OF_A " needs a sentence as why"},
    {LOST ", wen = 1", OF_A " has no column 'wen'"},
    {LOST " }, { " LOST, OF_A " has two rows"},
    {"name = 'begin_at_mask', why = 'Good.', when = function() end",
     "the switch 'begin_at_mask': when must give true or false, not a nil"},
    {"name = 'begin_at_mask', why = 'Good.', when = function() return true end, possible = "
     "function() return 1 end",
     "the switch 'begin_at_mask': possible must give true or false, not a number"},
    {GAIN "{ 1 }", OF_A ": a row of gain is no table"},
    {GAIN "{ { shape = 'd 64', without = 1 } }", OF_A ": a row of gain has no with"},
    {GAIN "{ { shape = 'd 64', without = '2', with = 1 } }", OF_A ": without must be a number"},
    {GAIN "{ { shape = 64, without = 2, with = 1 } }", OF_A ": shape must be a text"},
    {GAIN "{ { shape = '', without = 2, with = 1, unit = 'ms', day = '' } }",
     OF_A ": gain has no column 'day'"},
    {GAIN "{ { shape = '', without = 2, with = 1, unit = 'h' } }", OF_A ": there is no unit 'h'"},
    {GAIN "{ { shape = '', without = 2, with = 1, unit = 'ms' } }",
     OF_A ": a row of gain needs a card or a compiler"},
    {GAIN "{ { shape = '', without = 2, with = 1, unit = 'ms', card = 'H200' } }",
     OF_A ": a row of gain has no date"},
    {GAIN "{ { shape = '', without = 2, with = 1, unit = 'ms', card = 'H200', date = 'today' } }",
     OF_A ": 'today' is no date"},
};

TEST_LOOP(bad_rows, sizeof faults / sizeof *faults) {
  char rows[512];
  snprintf(rows, sizeof rows, "\ndo return { { %s } } end\nreturn {", faults[_i].row);
  templates_replace(ROWS, "\nreturn {", rows);
  fails(FG_ETEMPLATE, faults[_i].said);
}

TEST(bad_settings) {
  static const char *const bad[] = {
      "begin_at_mask", "begin_at_mask=2", "=0", "a=0,", "a=0;b=1", "a=01", "A=0"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char env[64], said[256];
    snprintf(env, sizeof env, "FLASHGEN_SWITCH=%s", bad[i]);
    snprintf(said, sizeof said,
             "flashgen: FLASHGEN_SWITCH: \"%s\" is not allowed; expected name=0 or name=1, "
             "separated by commas\n",
             bad[i]);
    const program_setup setup = {.env = {env}};
    const program_result r = program_run(&setup, "emit " NAMED);
    ck_assert_int_eq(r.code, 2);
    ck_assert_str_eq(r.err, said);
  }
}

/* ---- what is kept ---- */

#define WORDS "head_dim=8 mask=window(16,0) family=mma block_q=64 block_kv=32 stages=2"

static void ask(int hits, int compiles) {
  fg_context *context = api_open("cache");
  api_kernel(context, WORDS);
  api_counts(context, hits, 1, compiles, 1);
  fg_close(context);
}

TEST(cache_tells_them_apart) {
  ask(0, 1);
  ask(2, 0);
  setenv("FLASHGEN_SWITCH", "begin_at_mask=0", 1);
  ask(0, 1);
  ask(2, 0);
  unsetenv("FLASHGEN_SWITCH");
  ask(2, 0);
}

static void keep(void *context, const char *sentence) { snprintf(context, 512, "%s", sentence); }

/* What a zoo has was made without them. */
TEST(zoos_are_left) {
  fg_context *context = api_open("cache");
  fg_order order = FG_INIT(fg_order);
  fg_built built = FG_INIT(fg_built);
  fg_zoo zoo = FG_INIT(fg_zoo);
  const fg_zoo *zoos[] = {&zoo};
  char said[512] = "";
  order.directory = zoo.directory = "zoo";
  GOOD(api_build(context, order, WORDS, &built));
  setenv("FLASHGEN_SWITCH", "begin_at_mask=0", 1);
  FAILS(FG_EARGUMENT,
        "build refuses kernels that are made under FLASHGEN_SWITCH: their names do not show it; "
        "unset it",
        api_build(context, order, WORDS, &built));
  fg_close(context);
  fg_config config = api_config("other");
  config.zoos = zoos, config.n_zoos = 1;
  config.warn = keep, config.warn_context = said;
  GOOD(fg_open(&config, &context));
  ck_assert_str_eq(said,
                   "FLASHGEN_SWITCH is set: zoos, whose kernels are made without it, are not used");
  api_kernel(context, WORDS);
  api_counts(context, 0, 1, 1, 1);
  fg_close(context);
}

TEST(build_and_tune_refuse) {
  const program_setup setup = {.env = {"FLASHGEN_SWITCH=begin_at_mask=0"}};
  program_result r = program_run(&setup, "build head_dim=8 family=mma --arch host -o zoo");
  ck_assert_int_eq(r.code, 2);
  ck_assert_str_eq(r.err, "flashgen: build refuses kernels that are made under FLASHGEN_SWITCH: "
                          "their names do not show it; unset it\n");
  r = program_run(&setup, "tune head_dim=8 --shapes s.lua --wisdom w.txt");
  ck_assert_int_eq(r.code, 2);
  ck_assert_str_eq(r.err, "flashgen: tune refuses kernels that are made under FLASHGEN_SWITCH: "
                          "their names do not show it; unset it\n");
}

TEST_FIXTURE(enter, leave)
TEST_TIMEOUT(120)
