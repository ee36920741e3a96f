/* t_primitives.c - one table of primitives, two targets: both have every body and no other, and
 * each compiler takes a kernel that calls them all.
 *
 * The kernel takes the place of the simplest family's, so that nothing else of it need be made.
 * Label compile: without libnvrtc only the host's half is run, and the suite counts as skipped
 * unless FLASHGEN_REQUIRE names the label. */
#include "cuda/nvrtc.h"
#include "device/compile.h"
#include "expand/expand.h"
#include "scratch.h"
#include "suite.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 77 };

/* Notes, while the libraries are loaded, which file of the target declares which part. */
static const char watch[] = "function family.describe(spec, plan)\n"
                            "  bodies, file = {}, ''\n"
                            "  local read, declare = include, part\n"
                            "  function include(name)\n"
                            "    local outer = file\n"
                            "    file = name\n"
                            "    read(name)\n"
                            "    file = outer\n"
                            "  end\n"
                            "  function part(name)\n"
                            "    if file:find('^' .. target .. '/') then bodies[name] = file end\n"
                            "    declare(name)\n"
                            "  end\n";

/* A call of every row, its arguments by their declarations; what they give is stored, so that
 * compilers keep them. A row with a parameter of a new kind needs a line here. */
static const char kernel[] =
    "@ local argument = {\n"
    "@   ['u32 address'] = 'sm', ['u32 to'] = 'sm', ['int bytes'] = '0', ['u32 lanes'] = "
    "'ALL_LANES',\n"
    "@   ['u32 *v'] = 'u', ['u32 *r'] = 'u', ['const u32 *v'] = 'u', ['const u32 *a'] = 'u',\n"
    "@   ['const u32 *b'] = 'u', ['float *v'] = 'f', ['float *d'] = 'f', ['const float *v'] = "
    "'f',\n"
    "@   ['u32 v'] = 'u[0]', ['u32 bits'] = 'u[1]', ['u16 v'] = '(u16)u[2]', ['u16 x'] = "
    "'(u16)u[3]',\n"
    "@   ['float v'] = 'f[0]', ['float x'] = 'f[1]', ['float a'] = 'f[2]', ['float b'] = 'f[3]',\n"
    "@   ['float c'] = 'f[0]', ['float d'] = 'f[1]', ['u32 low'] = 'u[0]', ['u32 high'] = 'u[1]', "
    "['float low'] = 'f[2]', ['float high'] = "
    "'f[3]', ['int from'] = '5', ['int mask'] = '1',\n"
    "@   ['int predicate'] = 'f[0] > 0.0f', ['int id'] = '1', ['int threads'] = 'THREADS',\n"
    "@   ['const u16 *from'] = 'p.q', ['const void *from'] = 'p.q', ['const float *from'] = "
    "'p.lse',\n"
    "@   ['u16 *to'] = 'p.o', ['void *to'] = 'p.o', ['float *to'] = 'p.lse',\n"
    "@   ['u64 *to'] = '(u64 *)p.lse', ['u64 v'] = '1', ['u64 from'] = '0', ['u32 bar'] = 'sm',\n"
    "@   ['u32 from'] = 'sm', ['int count'] = '1', ['const u32 *r'] = 'u', ['u32 *pairs'] = 'u', "
    "['u32 x'] = 'u[0]',\n"
    "@   ['int parity'] = '0', ['int rank'] = '0', ['int ranks'] = '1', ['u64 policy'] = "
    "'L2_LAST',\n"
    "@   ['const tensor_map *map'] = '(const tensor_map *)p.q',\n"
    "@   ['u32 a'] = 'u[0]', ['u32 b'] = 'u[1]', ['u32 selector'] = '0xbb99',\n"
    "@   ['u32 *to'] = '(u32 *)p.lse', ['const u32 *from'] = '(const u32 *)p.lse',\n"
    "@   ['u8 x'] = '(u8)u[1]',\n"
    "@   ['const u32 *flag'] = '(const u32 *)p.lse', ['u32 until'] = '1',\n"
    "@ }\n"
    "@ for i = 0, 4 do argument['int c' .. i] = tostring(i) end\n"
    "@ local called = {}\n"
    "$(kernel('attn_fwd')) {\n"
    "const u32 sm = shared_base();\n"
    "u32 u[4] = {sm, sm, sm, sm};\n"
    "float f[4] = {p.scale, p.scale, p.scale, p.scale}, sum = 0.0f;\n"
    "@ for _, file in ipairs(run('primitives.lua')) do\n"
    "@   for _, row in ipairs(file.on ~= false and file or {}) do\n"
    "@     local name, result, list = row[1], row[2], {}\n"
    "@     local want = target .. '/' .. file.name .. '.cut'\n"
    "@     if bodies[name] ~= want then error(want .. ' has no ' .. name) end\n"
    "@     called[name] = true\n"
    "@     for one in row[3]:gsub('^void$', ''):gmatch('[^,]+') do\n"
    "@       one = one:match('^%s*(.*)')\n"
    "@       list[#list + 1] = argument[one] or error('no argument for ' .. one)\n"
    "@     end\n"
    "@     local call = name .. '(' .. table.concat(list, ', ') .. ');'\n"
    "$(result == 'void' and call or 'sum += (float)' .. call)\n"
    "@   end\n"
    "@ end\n"
    "@ for name, file in pairs(bodies) do\n"
    "@   if not called[name] and name ~= 'shared_bytes' then error(file .. ': no row for ' .. "
    "name) end\n"
    "@ end\n"
    "for (int i = 0; i < 4; i++) { sum += f[i] + (float)u[i]; }\n"
    "stg_f32(p.lse + threadIdx.x, sum);\n"
    "}\n";

static fg_source *expand(const char *arch) {
  char name[96];
  fg_variant variant;
  fg_source *source;
  fg_gen *gen;
  templates_replace("attention/simt/forward.lua", "function family.describe(spec, plan)\n", watch);
  scratch_put("t/attention/simt/forward.cut", kernel, sizeof kernel - 1);
  snprintf(name, sizeof name, "attn_fwd-bf16-d64.simt-q16-k32-w4.%s", arch);
  ck_assert_msg(fg_variant_parse(name, &variant) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_gen_new("t", &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s", fg_error());
  fg_gen_free(gen);
  return source;
}

static const char *const archs[] = {"host", "sm_80", "sm_90a", "sm_100a", "sm_89"};

START_TEST(every_primitive_compiles) {
  fg_source *source = expand(archs[_i]);
  fg_code code;
  ck_assert_msg(fg_compile(archs[_i], "primitives", source, &code) == FG_OK, "%s", fg_error());
  free(code.data);
  fg_source_free(source);
}
END_TEST

/* The one vector reduction is there from sm_90 on. */
START_TEST(reduction_is_one_or_four) {
  for (int i = 1; i < 4; i++) {
    fg_source *source = expand(archs[i]);
    ck_assert_int_eq(strstr(source->text, "red.global.add.v4.f32") != NULL, i > 1);
    ck_assert_int_eq(strstr(source->text, "red_add_f32(to + 3, v[3]);") != NULL, i == 1);
    fg_source_free(source);
  }
}
END_TEST

static int required(void) {
  const char *labels = getenv("FLASHGEN_REQUIRE");
  return labels && strstr(labels, "compile");
}

int main(void) {
  const fg_nvrtc *nvrtc;
  int compiles = fg_nvrtc_load(&nvrtc) == FG_OK;
  if (!compiles) fprintf(stderr, "%s: nothing is compiled for GPUs\n", fg_error());
  Suite *suite = suite_create("primitives");
  TCase *tests = tcase_create("primitives");
  tcase_add_checked_fixture(tests, templates_enter, templates_leave);
  suite_add(tests, reduction_is_one_or_four);
  suite_loop(tests, every_primitive_compiles, compiles ? 5 : 1);
  suite_add_tcase(suite, tests);
  int failed = suite_run(suite);
  return failed || (!compiles && required()) ? 1 : compiles ? 0 : SKIP;
}
