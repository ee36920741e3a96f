/* t_switches.c - the decisions of families as data: what `use` knows, what FLASHGEN_SWITCH forces,
 * and that no kernel made under it is kept under another's name. */
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

START_TEST(header_lists_them) {
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
END_TEST

/* The header's command makes the same text again. */
START_TEST(forced_off) {
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
END_TEST

/* A switch that is not possible in a kernel stays off there. */
START_TEST(forced_on_where_possible) {
  fg_source *plain = expanded(PLAIN);
  setenv("FLASHGEN_SWITCH", "begin_at_mask=1", 1);
  fg_source *forced = expanded(PLAIN);
  ck_assert_ptr_null(strstr(forced->text, "begin_at_mask,"));
  ck_assert_str_eq(strstr(plain->text, "\n// made by"), strstr(forced->text, "\n// made by"));
  fg_source_free(plain);
  fg_source_free(forced);
}
END_TEST

START_TEST(list_says_them) {
  program_says(program_gives(0, "list --verbose " NAMED).out, ", begin_at_mask\n");
  const program_setup setup = {.env = {"FLASHGEN_SWITCH=begin_at_mask=0"}};
  const program_result r = program_run(&setup, "list --verbose " NAMED);
  ck_assert_int_eq(r.code, 0);
  ck_assert_ptr_null(strstr(r.out, "begin_at_mask"));
}
END_TEST

/* ---- mistakes ---- */

START_TEST(unknown_name_forced) {
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
END_TEST

START_TEST(unknown_name_read) {
  const int line = templates_append(CUT, "@ if use.begin_at_mast then\n@ end\n");
  char sentence[256];
  snprintf(sentence, sizeof sentence,
           CUT ":%d: there is no switch 'begin_at_mast'; did you mean 'begin_at_mask'?", line);
  fails(FG_ETEMPLATE, sentence);
}
END_TEST

/* What is wrong with a row, and how it is said. */
static const struct fault {
  const char *row, *said;
} faults[] = {
    {"why = 'Good.', when = false", ROWS ": row 1 needs a name of small letters"},
    {"name = 'Good', why = 'Good.', when = false", ROWS ": row 1 needs a name of small letters"},
    {"name = 'a', why = 'Good.', when = true",
     ROWS ": the switch 'a' needs a function as when, or false"},
    {"name = 'a', why = 'Good.', when = false, possible = true",
     ROWS ": the switch 'a' needs a function as possible, or none"},
    {"name = 'a', why = 'good', when = false", ROWS ": the switch 'a' needs a sentence as why"},
    {"name = 'a', why = 'Good.', when = false, wen = 1",
     ROWS ": the switch 'a' has no column 'wen'"},
    {"name = 'a', why = 'Good.', when = false }, { name = 'a', why = 'Good.', when = false",
     ROWS ": the switch 'a' has two rows"},
    {"name = 'begin_at_mask', why = 'Good.', when = function() end",
     "the switch 'begin_at_mask': when must give true or false, not a nil"},
    {"name = 'begin_at_mask', why = 'Good.', when = function() return true end, possible = "
     "function() "
     "return 1 end",
     "the switch 'begin_at_mask': possible must give true or false, not a number"},
    {"name = 'a', why = 'Good.', when = false, gain = { 1 }",
     ROWS ": the switch 'a': a row of gain is no table"},
    {"name = 'a', why = 'Good.', when = false, gain = { { shape = 'd 64', without = 1 } }",
     ROWS ": the switch 'a': a row of gain has no with"},
    {"name = 'a', why = 'Good.', when = false, gain = { { shape = 'd 64', without = '2', with = 1 "
     "} }",
     ROWS ": the switch 'a': without must be a number"},
    {"name = 'a', why = 'Good.', when = false, gain = { { shape = 64, without = 2, with = 1 } }",
     ROWS ": the switch 'a': shape must be a text"},
    {"name = 'a', why = 'Good.', when = false, gain = { { shape = '', without = 2, with = 1, unit "
     "= "
     "'ms', day = '' } }",
     ROWS ": the switch 'a': gain has no column 'day'"},
    {"name = 'a', why = 'Good.', when = false, gain = { { shape = '', without = 2, with = 1, unit "
     "= "
     "'h' } }",
     ROWS ": the switch 'a': there is no unit 'h'"},
    {"name = 'a', why = 'Good.', when = false, gain = { { shape = '', without = 2, with = 1, unit "
     "= "
     "'ms' } }",
     ROWS ": the switch 'a': a row of gain needs a card or a compiler"},
    {"name = 'a', why = 'Good.', when = false, gain = { { shape = '', without = 2, with = 1, unit "
     "= "
     "'ms', card = 'H200' } }",
     ROWS ": the switch 'a': a row of gain has no date"},
    {"name = 'a', why = 'Good.', when = false, gain = { { shape = '', without = 2, with = 1, unit "
     "= "
     "'ms', card = 'H200', date = 'today' } }",
     ROWS ": the switch 'a': 'today' is no date"},
};

START_TEST(bad_rows) {
  char rows[512];
  snprintf(rows, sizeof rows, "\ndo return { { %s } } end\nreturn {", faults[_i].row);
  templates_replace(ROWS, "\nreturn {", rows);
  fails(FG_ETEMPLATE, faults[_i].said);
}
END_TEST

START_TEST(bad_settings) {
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
END_TEST

/* ---- what is kept ---- */

#define WORDS "head_dim=8 mask=window(16,0) family=mma block_q=64 block_kv=32 stages=2"

static void ask(int hits, int compiles) {
  fg_context *context = api_open("cache");
  api_kernel(context, WORDS);
  api_counts(context, hits, 1, compiles, 1);
  fg_close(context);
}

START_TEST(cache_tells_them_apart) {
  ask(0, 1);
  ask(2, 0);
  setenv("FLASHGEN_SWITCH", "begin_at_mask=0", 1);
  ask(0, 1);
  ask(2, 0);
  unsetenv("FLASHGEN_SWITCH");
  ask(2, 0);
}
END_TEST

static void keep(void *context, const char *sentence) { snprintf(context, 512, "%s", sentence); }

/* What a zoo has was made without them. */
START_TEST(zoos_are_left) {
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
END_TEST

START_TEST(build_and_tune_refuse) {
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
END_TEST

/* ---- each of them, off ---- */

#define FORWARD(words)   "family=mma pass=forward " words
#define BACKWARD(words)  "family=mma pass=backward " words
#define PLAN(q, k, s, w) " block_q=" #q " block_kv=" #k " stages=" #s " warps=" #w
#define WGMMA            "family=wgmma head_dim=64 block_q=192 block_kv=128 "
#define WINDOW           "mask=window(70,0) "

/* A kernel that has the switch on, on the host device. */
static const struct decision {
  const char *name, *words;
} decisions[] = {
    {"starts_early", FORWARD("head_dim=8" PLAN(64, 64, 2, 4))},
    {"batches_side_by_side", FORWARD("bias=true bias_dims=[h,q,k] head_dim=8" PLAN(64, 64, 2, 4))},
    {"heads_side_by_side", FORWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"short_rows_first", FORWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"first_row_is_shuffled", FORWARD(WINDOW "head_dim=8/72" PLAN(64, 64, 2, 4))},
    {"begin_at_mask", FORWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"warps_leave_tiles", FORWARD("mask=causal head_dim=8" PLAN(128, 64, 2, 8))},
    {"loads_next_k_early", FORWARD("head_dim=8" PLAN(64, 64, 1, 4))},
    {"one_bound", FORWARD("mask=causal_top_left head_dim=8" PLAN(64, 64, 2, 4))},
    {"hides_by_columns", FORWARD(WINDOW "head_dim=8" PLAN(128, 96, 2, 4))},
    {"capped_exponents", FORWARD("score=softcap(30.0) head_dim=8" PLAN(64, 64, 2, 4))},
    {"small_tanh_in_cut_tiles",
     FORWARD("mask=causal score=softcap(30.0) head_dim=8" PLAN(64, 64, 2, 4))},
    {"batches_side_by_side", BACKWARD("bias=grad bias_dims=[h,q,k] head_dim=8" PLAN(64, 64, 2, 4))},
    {"heads_side_by_side", BACKWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"some_short_tiles_first", BACKWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"tiles_in_halves", BACKWARD(WINDOW "head_dim=8" PLAN(64, 128, 2, 4))},
    {"small_tanh_in_cut_tiles",
     BACKWARD("mask=causal score=softcap(30.0) head_dim=8" PLAN(64, 64, 2, 4))},
    {"turns", WGMMA "mask=causal"},
    {"first_tile_in_turn", WGMMA "mask=full"},
    {"turn_ends_behind_output", WGMMA "score=softcap(30.0)"},
    {"separate_whole_tiles", "family=wgmma head_dim=64 block_q=128 block_kv=128 mask=causal"},
    {"whole_tiles_by_range", WGMMA "mask=window(70,0)"},
    {"first_tile_in_halves", WGMMA "mask=causal"},
    {"wait_before_weights", "family=wgmma head_dim=64 mask=causal score=softcap(30.0)"},
    {"two_sums_a_row", WGMMA "mask=full"},
    {"scale_stays_in_register", WGMMA "mask=causal score=alibi"},
    {"number_stays_in_register", "family=wgmma head_dim=64 score=s+t[0] inputs.t=f32[1]"},
    {"lane_of_output_shuffled", "family=wgmma head_dim=64 score=alibi key_parts=16"},
    {"claims", WGMMA "mask=causal"},
    {"sections_of_heads", WGMMA "mask=causal"},
    {"starts_early", "family=wgmma pass=backward head_dim=64 mask=full"},
    {"stays", "family=wgmma pass=backward head_dim=64 mask=full"},
    {"queries_in_turns", "family=wgmma pass=backward head_dim=72/128 score=softcap(30.0)"},
    {"sections_of_heads", "family=wgmma pass=backward head_dim=64 mask=causal"},
};
enum { DECISIONS = sizeof decisions / sizeof *decisions };

/* The line of the header that names what is on in the words' kernel, whose results are right. */
static void launch(const struct decision *d, size_t size, char *line) {
  const verify_case which = {
      .shape = {.size = sizeof(fg_shape), .b = 2, .h = 2, .hk = 1, .nq = 150, .nk = 150},
      .seed = 5};
  kernels made = kernels_first("%s", d->words);
  ck_assert_int_eq(made.n, 1);
  kernel_verify(&made.list[0], &which);
  const char *at = strstr(made.list[0].source->text, "\n// switches: ");
  ck_assert_ptr_nonnull(at);
  const char *end = strstr(at, "\n// made by ");
  ck_assert_ptr_nonnull(end);
  snprintf(line, size, "%.*s", (int)(end - at), at);
  kernels_free(&made);
}

START_TEST(right_without) {
  const struct decision *d = &decisions[_i];
  char line[1024], off[64];
  launch(d, sizeof line, line);
  ck_assert_msg(strstr(line, d->name), "%s: %s", d->words, line);
  snprintf(off, sizeof off, "%s=0", d->name);
  setenv("FLASHGEN_SWITCH", off, 1);
  launch(d, sizeof line, line);
  ck_assert_msg(!strstr(line, d->name), "%s: %s", d->words, line);
}
END_TEST

/* The list of an unknown name's error has them all. */
START_TEST(all_are_tried) {
  fg_source *source;
  setenv("FLASHGEN_SWITCH", "none=0", 1);
  ck_assert_int_eq(expand(NULL, NAMED, &source), FG_EARGUMENT);
  const char *at = strstr(fg_error(), "there are: ") + 11;
  ck_assert_ptr_null(strstr(strstr(at, "starts_early") + 1, "starts_early")); /* of two passes */
  while (*at) {
    const size_t n = strcspn(at, ",");
    bool found = false;
    for (int i = 0; i < DECISIONS; i++)
      found |= strlen(decisions[i].name) == n && !strncmp(decisions[i].name, at, n);
    ck_assert_msg(found, "no kernel is tried without %.*s", (int)n, at);
    at += n + (at[n] ? 2 : 0);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("switches");
  TCase *c = tcase_create("switches");
  suite_add_tcase(s, c);
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, enter, leave);
  tcase_add_test(c, header_lists_them);
  tcase_add_test(c, forced_off);
  tcase_add_test(c, forced_on_where_possible);
  tcase_add_test(c, list_says_them);
  tcase_add_test(c, unknown_name_forced);
  tcase_add_test(c, unknown_name_read);
  tcase_add_loop_test(c, bad_rows, 0, sizeof faults / sizeof *faults);
  tcase_add_test(c, bad_settings);
  tcase_add_test(c, cache_tells_them_apart);
  tcase_add_test(c, zoos_are_left);
  tcase_add_test(c, build_and_tune_refuse);
  tcase_add_loop_test(c, right_without, 0, DECISIONS);
  tcase_add_test(c, all_are_tried);
  return suite_run(s);
}
