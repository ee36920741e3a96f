/* t_wgmma_compile.c - NVRTC takes products by a warpgroup of every width and form, in arrays and as
 * scalars, without a spill or a word of ptxas about wgmma that it had to serialise.
 *
 * The kernel takes the place of the simplest family's. Label compile: skipped where there is no
 * libnvrtc, unless FLASHGEN_REQUIRE names the label. */
#include "cuda/nvrtc.h"
#include "device/compile.h"
#include "expand/expand.h"
#include "hopper_case.h"
#include "hopper_pipeline.h"
#include "scratch.h"
#include "suite.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 77 };

/* S = Q K^T, then O = P V or O += P V with P from S: what attention does. CASE is a table. */
static const char products[] =
    "@ local registers = run('tile/registers.lua')\n"
    "@ local function reg(name, i)\n"
    "@   return case.scalars and registers.at(name, i) or name .. '[' .. i .. ']'\n"
    "@ end\n"
    "@ local function declare(kind, name, n)\n"
    "@   if case.scalars then return registers.declare(kind, name, n) end\n"
    "@   return kind .. ' ' .. name .. '[' .. n .. '];'\n"
    "@ end\n"
    "@ local rows = function(major, n, swizzle, stride)\n"
    "@   return { major = major, swizzle = swizzle, block = n * swizzle, stride = stride }\n"
    "@ end\n"
    "@ instance { 'wgmma', name = 'scores', n = case.keys, k = case.d, scalars = case.scalars,\n"
    "@            a = rows(case.major, 64, case.swizzle), b = rows(case.major, case.keys, "
    "case.swizzle) }\n"
    "@ instance { 'wgmma', name = 'values', n = case.d, k = case.keys, scalars = case.scalars,\n"
    "@            init = case.init, b = rows('mn', case.keys, case.swizzle) }\n"
    "@ instance { 'wgmma_wait', name = 'wait', pending = 0, scalars = case.scalars,\n"
    "@            floats = { case.keys // 2, case.d // 2 } }\n"
    "$(kernel('attn_fwd')) {\n"
    "$(declare('float', 's', case.keys // 2))\n"
    "$(declare('float', 'o', case.d // 2))\n"
    "$(declare('u32', 'x', case.keys // 4))\n"
    "const u32 q = matrix_at(shared_base()), k = q + 4096, v = q + 8192;\n"
    "float sum = 0.0f;\n"
    "@ for i = 0, case.d // 2 - 1 do\n"
    "$(reg('o', i)) = 0.0f;\n"
    "@ end\n"
    "for (int i = 0; i < p.nk; i++) {\n"
    "scores(s, q, k + i);\n"
    "wait(s, o);\n"
    "@ for i = 0, case.keys // 4 - 1 do\n"
    "$(reg('x', i)) = pack_$(spec.elem)($(reg('s', 2 * i)), $(reg('s', 2 * i + 1)));\n"
    "@ end\n"
    "values(o, x, v + i$(case.init == 'either' and ', i > 0' or ''));\n"
    "wait(s, o);\n"
    "}\n"
    "@ for i = 0, case.d // 2 - 1 do\n"
    "sum += $(reg('o', i));\n"
    "@ end\n"
    "stg_f32(p.lse + threadIdx.x, sum);\n"
    "}\n";

static const char *const cases[] = {
    "{ keys = 128, d = 128, major = 'k', swizzle = 128, init = 'sum', scalars = true }",
    "{ keys = 128, d = 128, major = 'k', swizzle = 128, init = 'sum' }",
    "{ keys = 128, d = 128, major = 'mn', swizzle = 128, init = 'zero', scalars = true }",
    "{ keys = 176, d = 64, major = 'k', swizzle = 64, init = 'either', scalars = true }",
    "{ keys = 64, d = 256, major = 'k', swizzle = 128, init = 'sum', scalars = true }",
    "{ keys = 16, d = 96, major = 'k', swizzle = 32, init = 'either' }",
    "{ keys = 256, d = 16, major = 'k', swizzle = 32, init = 'zero' }",
    "{ keys = 80, d = 208, major = 'mn', swizzle = 64, init = 'either', scalars = true }",
};
enum { CASES = sizeof cases / sizeof *cases };

static fg_source *expand(const char *which, const char *name) {
  char text[sizeof products + 256];
  fg_variant variant;
  fg_source *source;
  fg_gen *gen;
  int n = snprintf(text, sizeof text, "@ local case = %s\n%s", which, products);
  scratch_put("t/attention/simt/forward.cut", text, (size_t)n);
  ck_assert_msg(fg_variant_parse(name, &variant) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_gen_new("t", &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s", fg_error());
  fg_gen_free(gen);
  return source;
}

/* With TMA, mbarriers and the pool of registers around them; and what blocks tell each other. */
static const struct {
  const char *recipe, *text, *figures;
} kernels_of_blocks[] = {{pipeline_recipe, pipeline, "registers 168 "},
                         {halves_recipe, halves, "registers "},
                         {exchange_recipe, exchange, "registers "},
                         {units_recipe, units, "registers "}};

START_TEST(kernels_of_blocks_compile) {
  fg_variant variant;
  fg_source *source;
  fg_gen *gen;
  fg_code code;
  hopper_write(kernels_of_blocks[_i].recipe, kernels_of_blocks[_i].text);
  ck_assert_msg(fg_variant_parse("attn_fwd-bf16-d128.simt-q16-k32-w4.sm_90a", &variant) == FG_OK,
                "%s", fg_error());
  ck_assert_msg(fg_gen_new("t", &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_compile("sm_90a", "kernel", source, &code) == FG_OK, "%s", fg_error());
  ck_assert_msg(strstr(code.figures, kernels_of_blocks[_i].figures) != NULL, "%s", code.figures);
  free(code.data);
  fg_source_free(source);
  fg_gen_free(gen);
}
END_TEST

START_TEST(products_compile) {
  const char *const name[] = {"attn_fwd-bf16-d64.simt-q16-k32-w4.sm_90a",
                              "attn_fwd-f16-d64.simt-q16-k32-w4.sm_90a"};
  fg_source *source = expand(cases[_i], name[_i % 2]);
  fg_code code;
  ck_assert_msg(fg_compile("sm_90a", cases[_i], source, &code) == FG_OK, "%s", fg_error());
  free(code.data);
  fg_source_free(source);
}
END_TEST

static int required(void) {
  const char *labels = getenv("FLASHGEN_REQUIRE");
  return labels && strstr(labels, "compile");
}

int main(void) {
  const fg_nvrtc *nvrtc;
  if (fg_nvrtc_load(&nvrtc) != FG_OK) {
    fprintf(stderr, "%s: nothing is compiled\n", fg_error());
    return required() ? 1 : SKIP;
  }
  Suite *suite = suite_create("wgmma compile");
  TCase *tests = tcase_create("wgmma compile");
  tcase_add_checked_fixture(tests, templates_enter, templates_leave);
  suite_loop(tests, products_compile, CASES);
  suite_loop(tests, kernels_of_blocks_compile,
             sizeof kernels_of_blocks / sizeof *kernels_of_blocks);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
