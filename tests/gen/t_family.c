/* t_family.c - what a family of kernels has to provide: each mistake in it is a sentence. */
#include "expand/expand.h"
#include "suite.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORWARD "attn_fwd-bf16-d64.simt-q16-k32-w4.host"

static const struct {
  const char *from, *to, *why;
} description[] = {
    {"outputs = hooks", "output = hooks",
     "attention/simt/forward.lua: a description has no 'output'; did you mean 'outputs'?"},
    {"outputs = hooks", "inputs = hooks", "description: outputs is missing"},
    {"outputs = hooks.norm.outputs", "outputs = { \"out\" }",
     "description: outputs: no argument \"out\""},
    {"outputs = hooks.norm.outputs", "outputs = { {} }", "description: outputs: no argument \"?\""},
    {"regions = {},", "regions = { {} },", "description: a name is missing or longer than 15"},
    {"regions = {},", "regions = { { name = 'x' } },", "description: region x has no count"},
    {"regions = {},", "regions = { { name = 'x', count = 'b', elem = 'f64' } },",
     "description: \"f64\" is no element type"},
    {"regions = {},", "regions = { 7 },", "description: an item of regions is no table"},
    {"regions = {},", "regions = { { name = 'x', count = 'b * q' } },",
     "expression \"b * q\", column 5: expected a number, an extent (b h hk nq nk) or a function"},
    {"threads = 32 * plan.warps,", "threads = 32.5,",
     "description: threads must be an integer, not negative"},
    {"threads = 32 * plan.warps,", "threads = -32,",
     "description: threads must be an integer, not negative"},
    {"registers = family.registers(spec, plan)", "registers = 80.5",
     "description: registers must be an integer, not negative"},
    {"registers = family.registers(spec, plan), ", "",
     "description: registers must be an integer, not negative"},
    {"work = simt.work(\"nk\", plan)", "work = nil", "description: step attn_fwd has no work"},
    {"work = simt.work(\"nk\", plan)", "work = 'rows'",
     "expression \"rows\", column 1: expected a number, an extent (b h hk nq nk) or a function"},
    {"align = 2,", "", "description: align must be an integer, not negative"},
    {"align = 2,", "align = 1,", "description: align must be a power of 2, 2 or more"},
    {"align = 2,", "align = 24,", "description: align must be a power of 2, 2 or more"},
    {"grid = {", "grids = {",
     "attention/simt/forward.lua: step 1 has no 'grids'; did you mean 'grid'?"},
    {"grid = {", "work = {", "description: step attn_fwd has no grid"},
    {"threads = ", "cluster = 9, threads = ",
     "description: step attn_fwd: a cluster has 1 to 8 blocks, a multiprocessor 32 at most"},
    {"threads = ", "resident = 33, threads = ",
     "description: step attn_fwd: a cluster has 1 to 8 blocks, a multiprocessor 32 at most"},
    {"regions = {},", "regions = {}, maps = 3,", "description: maps is missing"},
    {"regions = {},", "regions = {}, maps = { { name = 'm', tensor = 'dq' } },",
     "description: map m: no tensor \"dq\""},
    {"regions = {},", "regions = {}, maps = { { name = 'm', tensor = 'q', columns = 64 } },",
     "description: rows must be an integer, not negative"},
    {"regions = {},",
     "regions = {}, maps = { { name = 'm', tensor = 'q', columns = 64, rows = 1, swizzle = 128 } "
     "},",
     "description: map m: the recipe's alignment is less than 16"},
    {"{ entry = \"attn_fwd\"", "{ zero = 'x' }, { entry = \"attn_fwd\"",
     "description: zero: no region \"x\""},
    {"(\"%s * h * %s\"", "(\"%s * (h * %s\"",
     "expression \"cdiv(nq, 16) * (h * b\", column 22: expected )"},
};

TEST_LOOP(mistakes_in_a_description, sizeof description / sizeof *description) {
  templates_replace("attention/simt/forward.lua", description[_i].from, description[_i].to);
  templates_fail(FORWARD, NULL, 0, description[_i].why);
}

/* Widths that no field of a spec gives. */
TEST(mistakes_in_widths) {
  static const char name[] = "append-bf16-d64-kvcached-halves.simt-q4-w4.host";
  static const char said[] = "widths = { pairs = append.pairs },";
  static const char *const list[][2] = {
      {"", "description: widths are missing"},
      {"widths = {},", "description: pairs must be an integer, not negative"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    templates_replace("attention/append/simt.lua", said, list[i][0]);
    templates_fail(name, NULL, 0, list[i][1]);
  }
}

/* Fills of regions that lie one behind the other are one step, whatever order lists them. */
TEST(fills_are_joined) {
  static const char regions[] = "regions = { { name = 'x', count = 'b' }, { name = 'y', count = "
                                "'h' }, { name = 'z', count = 'b' } },";
  static const struct {
    const char *steps, *text;
  } list[] = {
      {"{ zero = 'x' }, { zero = 'y' }, ", "zero x y\nlaunch "},
      {"{ zero = 'y' }, { zero = 'x' }, ", "zero x y\nlaunch "},
      {"{ zero = 'y' }, { zero = 'z' }, { zero = 'x' }, ", "zero x y z\nlaunch "},
      {"{ zero = 'x' }, { zero = 'z' }, ", "zero x\nzero z\nlaunch "},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    fg_source *source;
    char steps[256], text[FG_RECIPE_TEXT];
    snprintf(steps, sizeof steps, "%s{ entry = \"attn_fwd\"", list[i].steps);
    templates_replace("attention/simt/forward.lua", "regions = {},", regions);
    templates_change("attention/simt/forward.lua", "{ entry = \"attn_fwd\"", steps);
    ck_assert_msg(templates_expand(FORWARD, &source) == FG_OK, "%s", fg_error());
    fg_recipe_print(&source->recipe, sizeof text, text);
    const char *at = strstr(text, "\nzero ");
    ck_assert_msg(at && !strncmp(at + 1, list[i].text, strlen(list[i].text)), "%s", text);
    fg_source_free(source);
  }
}

static const struct {
  const char *from, *to, *why;
} family[] = {
    {"function family.applies", "function family.apply",
     "a family needs a function as 'applies', not a nil"},
    {"function family.applies", "family.name = 'simt'\nfunction family.applies",
     "a family has no 'name'"},
    {"library = { \"tile/warp.cut\", \"tile/rows.cut\", \"tile/sequences.cut\", "
     "\"tile/slices.cut\", \"tile/dropout.cut\" }",
     "library = 'tile/rows.cut'", "a family needs a table as 'library', not a string"},
    {"return family", "return 7", "it returns a number, not a family"},
    {"return description\n", "return 7, description\n",
     "describe gives a number, not a description"},
};

/* Each is a sentence with the file's name, from the listing of plans as from an expansion. */
TEST_LOOP(mistakes_in_a_family, sizeof family / sizeof *family) {
  char why[256];
  snprintf(why, sizeof why, "attention/simt/forward.lua: %s", family[_i].why);
  templates_replace("attention/simt/forward.lua", family[_i].from, family[_i].to);
  templates_fail(FORWARD, NULL, 0, why);
}

/* A feature that no architecture has, asked for by a family or named by a row of its plans. */
TEST(features_of_the_machine) {
  templates_replace("attention/simt/forward.lua", "return not hooks.norm.refused",
                    "return machine.mmaa and not hooks.norm.refused");
  templates_fail(FORWARD, "attention/simt/forward.lua",
                 templates_line("attention/simt/forward.lua", "function family.applies"),
                 "no machine has a 'mmaa'");
  templates_replace("attention/mma/forward_plans.lua", "on = { \"hopper\"", "on = { \"hoper\"");
  templates_fail("attn_fwd-bf16-d64.mma-q128-k64-s2-w4.host", "attention/mma/mma.lua",
                 templates_line("attention/mma/mma.lua", "machine[set]"),
                 "no machine has a 'hoper'");
}

/* Of a listing that fails, the plan that it was at. */
TEST(listing_names_the_plan) {
  fg_variant variant;
  fg_gen *gen;
  fg_planned *list = NULL;
  int n = 0;
  ck_assert_int_eq(fg_variant_parse(FORWARD, &variant), FG_OK);
  const fg_limits limits = {.n = {1}, .value = {{variant.plan.value[0]}}};
  templates_replace("attention/simt/forward.lua", description[0].from, description[0].to);
  ck_assert_int_eq(fg_gen_new("t", &gen), FG_OK);
  ck_assert_int_eq(fg_gen_candidates(gen, &variant.point, "host", &limits, &list, &n),
                   FG_ETEMPLATE);
  ck_assert_msg(!strncmp(fg_error(), "attn_fwd-bf16-d64.simt-q", 24), "%s", fg_error());
  ck_assert_ptr_nonnull(strstr(fg_error(), description[0].why));
  fg_gen_free(gen);
}

TEST(candidates_are_checked) {
  fg_variant variant;
  fg_gen *gen;
  fg_plan *plans = NULL;
  int n = 0;
  ck_assert_int_eq(fg_variant_parse(FORWARD, &variant), FG_OK);
  static const char *const wrong[] = {"16.5", "'x'", "-1", "1 << 40"};
  for (int i = 0; i < 4; i++) {
    char to[64];
    snprintf(to, sizeof to, "return { { block_q = %s } }, simt.candidates(", wrong[i]);
    templates_replace("attention/simt/forward.lua", "return simt.candidates(", to);
    ck_assert_int_eq(fg_gen_new("t", &gen), FG_OK);
    ck_assert_int_eq(fg_gen_plans(gen, &variant.point, "host", NULL, &plans, &n), FG_ETEMPLATE);
    ck_assert_str_eq(fg_error(), "a candidate of simt: block_q must be an integer up to 1048576");
    fg_gen_free(gen);
  }
  templates_replace("attention/simt/forward.lua", "return simt.candidates(",
                    "return { { key_parts = 2, block_q = 16 } }, simt.candidates(");
  ck_assert_int_eq(fg_gen_new("t", &gen), FG_OK);
  ck_assert_int_eq(fg_gen_plans(gen, &variant.point, "host", NULL, &plans, &n), FG_ETEMPLATE);
  ck_assert_str_eq(fg_error(), "a candidate of simt: its plans have no field key_parts");
  fg_gen_free(gen);
}

TEST_FIXTURE(templates_enter, templates_leave)
