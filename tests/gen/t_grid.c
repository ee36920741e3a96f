/* t_grid.c - grids: axes, `when`, merging, words over files, and that all three forms agree. */
#include "scratch.h"
#include "spec/spec.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fg_grid *grid; /* of the running test; freed by leave() */

static void leave(void) {
  fg_grid_free(grid);
  grid = NULL;
  scratch_leave();
}

static void put(const char *path, const char *text) { scratch_put(path, text, strlen(text)); }

/* Reads the files and words of one line: "a.lua b.lua head_dim=64". */
static fg_status read_line(const char *line) {
  const char *files[8], *words[64];
  int n_files = 0, n_words = 0;
  char copy[1024], *next = copy;
  snprintf(copy, sizeof copy, "%s", line);
  for (char *item; (item = strsep(&next, " "));) {
    if (!strchr(item, '=') && strstr(item, ".lua"))
      files[n_files++] = item;
    else if (*item)
      words[n_words++] = item;
  }
  fg_grid_free(grid);
  grid = NULL;
  return fg_grid_read(n_files, files, n_words, words, &grid);
}

static void reads(const char *line, int points, int64_t combinations, int64_t rejected,
                  int64_t merged) {
  ck_assert_msg(read_line(line) == FG_OK, "%s: %s", line, fg_error());
  ck_assert_int_eq(grid->n, points);
  ck_assert_int_eq(grid->combinations, combinations);
  ck_assert_int_eq(grid->rejected, rejected);
  ck_assert_int_eq(grid->merged, merged);
}

static const char *name_of(int i) {
  static char name[160];
  fg_point_name(&grid->point[i], sizeof name, name);
  return name;
}

TEST(one_table) {
  put("a.lua", "return { head_dim = 64 }");
  reads("a.lua", 1, 1, 0, 0);
  ck_assert_str_eq(name_of(0), "attn_fwd-bf16-d64");
}

/* An input that some text names may be declared, also where folding leaves nothing of it. */
TEST(inputs_that_fold_away) {
  put("a.lua", "return { head_dim = 64, inputs = { w = 'i32[h]' },"
               " mask = { 'k <= p', 'true ? k <= p : w[h] > 0', 'k <= p || never(w)' },"
               " define = { ['never(x)'] = '3 < 2' } }");
  reads("a.lua", 1, 3, 0, 2);
  ck_assert_str_eq(name_of(0), "attn_fwd-bf16-d64-causal");
  ck_assert_int_eq(read_line("head_dim=64 inputs.w=i32[h] mask=causal"), FG_ESPEC);
  ck_assert_str_eq(fg_error(), "inputs.w: declared, but no point uses it");
}

static void put_definitions(int n) {
  char *text = malloc((size_t)n * 48 + 128), *at = text;
  ck_assert_ptr_nonnull(text);
  at += sprintf(at, "return { head_dim = 64, mask = 'n7(q)', define = {");
  for (int i = 0; i < n; i++) at += sprintf(at, "['n%d(x)'] = 'k - x < %d', ", i, i);
  strcpy(at, "} }");
  put("many.lua", text);
  free(text);
}

TEST(many_definitions) {
  put_definitions(10000);
  reads("many.lua", 1, 1, 0, 0);
  put_definitions(10001);
  ck_assert_int_eq(read_line("many.lua"), FG_ESPEC);
  ck_assert_str_eq(fg_error(), "many.lua: table 1: define: 10001 definitions; at most 10000");
}

TEST(axes_last_fastest) {
  put("a.lua", "return { pass = { 'forward', 'backward' }, head_dim = { 64, '192/128' },\n"
               "  mask = { 'causal', 'full' } }");
  static const char *const names[] = {"attn_fwd-bf16-d64-causal",      "attn_fwd-bf16-d64",
                                      "attn_fwd-bf16-d192v128-causal", "attn_fwd-bf16-d192v128",
                                      "attn_bwd-bf16-d64-causal",      "attn_bwd-bf16-d64",
                                      "attn_bwd-bf16-d192v128-causal", "attn_bwd-bf16-d192v128"};
  reads("a.lua", 8, 8, 0, 0);
  for (int i = 0; i < 8; i++) ck_assert_str_eq(name_of(i), names[i]);
}

TEST(lists_of_tables_and_files) {
  put("a.lua", "return { { head_dim = 64 }, { head_dim = 128, mask = 'causal' } }");
  put("b.lua", "return { head_dim = { 72, 64 } }");
  reads("a.lua b.lua", 3, 4, 0, 1);
  ck_assert_str_eq(name_of(0), "attn_fwd-bf16-d64");
  ck_assert_str_eq(name_of(1), "attn_fwd-bf16-d128-causal");
  ck_assert_str_eq(name_of(2), "attn_fwd-bf16-d72");
  reads("b.lua a.lua", 3, 4, 0, 1);
  ck_assert_str_eq(name_of(0), "attn_fwd-bf16-d72");
}

TEST(equal_points_merge) {
  put("a.lua", "return { pass = { 'forward', 'backward' }, head_dim = { 64, 64, '64/64' },\n"
               "  bias = { true, 'grad' } }");
  reads("a.lua", 3, 12, 0, 9); /* forward reads grad as true */
  put("b.lua", "return { head_dim = 64, bias = { false, true }, bias_dims = { 'h', 'q,h' } }");
  reads("b.lua", 3, 4, 0, 1); /* without a bias its dims are dropped */
}

TEST(when_sees_values) {
  put("a.lua",
      "return { pass = { 'forward', 'backward' }, dtype = { 'bf16', 'f16' },\n"
      "  head_dim = { 64, '192/128' }, bias = { false, true, 'grad' }, bias_dims = 'h,q',\n"
      "  when = function(s)\n"
      "    assert(math.type(s.head_dim) == 'integer' and s.head_dim_v <= s.head_dim)\n"
      "    assert(s.bias == true or s.bias == false or s.bias == 'grad')\n"
      "    assert(s.pass == 'backward' or s.bias ~= 'grad', 'settled')\n"
      "    assert(s.bias_dims == (s.bias and 'h,q' or 'b,h,q,k'))\n"
      "    assert(s.kernel == 'attention' and s.mask == 'full' and s.normalizer == 'softmax')\n"
      "    assert(s.bias_dtype == 'spec' and s.grad_dtype == 'spec')\n"
      "    return not (s.bias and s.head_dim_v == 128) and s.dtype == 'f16'\n"
      "  end }");
  /* f16 only: forward d64 x {no, yes, yes}, 192 x no; backward 3 + 1 */
  reads("a.lua", 7, 24, 16, 1);
}

TEST(when_of_each_table) {
  put("a.lua",
      "local n = 0\n"
      "return { { head_dim = { 64, 128 }, when = function(s) n = n + 1 return n == 2 end },\n"
      "  { head_dim = 72, when = function() return n == 2 end }, { head_dim = 80 } }");
  reads("a.lua", 3, 4, 1, 0);
  ck_assert_str_eq(name_of(0), "attn_fwd-bf16-d128");
}

TEST(words_replace_fields) {
  put("a.lua",
      "return { { head_dim = { 64, 128 }, dtype = { 'bf16', 'f16' } }, { head_dim = 72 } }");
  reads("a.lua head_dim=40,48 mask=causal", 4, 6, 0, 2);
  for (int i = 0; i < grid->n; i++) ck_assert_ptr_nonnull(strstr(name_of(i), "-causal"));
  reads("head_dim=64,192/128 pass=forward,backward", 4, 4, 0, 0);
  reads("head_dim=64 bias=true bias_dims=h,q", 1, 1, 0, 0);
  ck_assert_str_eq(name_of(0), "attn_fwd-bf16-d64-bias_hq");
  reads("head_dim=64 bias=true bias_dims=[h,q],[],[k]", 3, 3, 0, 0);
}

TEST(words_hide_values_of_files) {
  put("a.lua", "return { head_dim = 7, mask = 'full', bogus = 1 }");
  ck_assert_int_eq(read_line("a.lua head_dim=64"), FG_ESPEC);
  ck_assert_str_eq(fg_error(), "a.lua: table 1: unknown field \"bogus\"");
  put("a.lua", "return { head_dim = 7 }");
  reads("a.lua head_dim=64", 1, 1, 0, 0);
}

TEST(blanks_around_words) {
  const char *words[] = {"head_dim= 64 , 128 ", "bias=true", "bias_dims= [h , q] , [k]"};
  ck_assert_msg(fg_grid_read(0, NULL, 3, words, &grid) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(grid->n, 4);
}

TEST(plan_fields_restrict) {
  enum { BLOCK_Q = 1, WARPS = 4 };
  put("a.lua", "return { { head_dim = { 64, 128 }, block_q = { 64, 128 } }, { head_dim = 72 } }");
  reads("a.lua warps=4", 3, 3, 0, 0);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(grid->limits[i]->n[BLOCK_Q], i < 2 ? 2 : 0);
    ck_assert_int_eq(grid->limits[i]->n[WARPS], 1);
    ck_assert_int_eq(grid->limits[i]->value[WARPS][0], 4);
  }
  ck_assert_int_eq(grid->limits[0]->value[BLOCK_Q][0], 64);
  ck_assert_int_eq(grid->limits[0]->value[BLOCK_Q][1], 128);
}

/* Equal points with other restrictions ask for other plans: dropping one would drop those. */
TEST(restrictions_keep_points_apart) {
  put("a.lua", "return { { head_dim = 64, block_q = 16 }, { head_dim = 64, block_q = 4 },\n"
               "  { head_dim = 64, block_q = 16 } }");
  reads("a.lua", 2, 3, 0, 1);
  ck_assert_int_eq(grid->limits[0]->value[1][0], 16);
  ck_assert_int_eq(grid->limits[1]->value[1][0], 4);
}

/* A value other than the default for every field, as a word, as Lua and in the C struct. */
static const struct {
  size_t place;
  const char *field, *text, *lua;
} forms[] = {
#define FORM(field, text, lua)                                                                     \
  { offsetof(fg_spec, field), #field, text, lua }
    FORM(kernel, "attention", "'attention'"),
    FORM(pass, "backward,forward", "{ 'backward', 'forward' }"),
    FORM(dtype, "f16,bf16", "{ 'f16', 'bf16' }"),
    FORM(head_dim, "64,192/128", "{ 64, '192/128' }"),
    FORM(width, "8,1000", "{ 8, 1000 }"),
    FORM(mask, "causal", "'causal'"),
    FORM(score, "s,s+slope[h]", "{ 's', 's + slope[h]' }"),
    FORM(inputs, "slope=f32[h]grad", "{ slope = 'f32[h] grad' }"),
    FORM(define, "near(n)=p-k<n", "{ ['near(n)'] = 'p - k < n' }"),
    FORM(bias, "grad,true,false", "{ 'grad', true, false }"),
    FORM(bias_dims, "[h,q],[k]", "{ 'h,q', 'k' }"),
    FORM(bias_dtype, "f32", "'f32'"),
    FORM(grad_dtype, "f16", "{ 'f16' }"),
    FORM(o_dtype, "spec,f32", "{ 'spec', 'f32' }"),
    FORM(dqkv_dtype, "f32", "'f32'"),
    FORM(kv_dtype, "spec", "'spec'"),
    FORM(descale_block, "0,64", "{ 0, 64 }"),
    FORM(normalizer, "softmax", "'softmax'"),
    FORM(sink, "grad", "{ 'grad' }"),
    FORM(dropout, "true", "true"),
    FORM(max_logit, "true", "true"),
    FORM(deterministic, "true,false", "{ true, false }"),
    FORM(batch_invariant, "true", "true"),
    FORM(q_layout, "packed,dense", "{ 'packed', 'dense' }"),
    FORM(kv_layout, "packed", "'packed'"),
    FORM(slices, "false", "false"),
    FORM(shard, "true", "true"),
    FORM(latent, "true", "true"),
    FORM(parts_dtype, "spec,f32", "{ 'spec', 'f32' }"),
    FORM(rotary, "halves", "'halves'"),
    FORM(rotary_dim, "0,16", "{ 0, 16 }"),
    FORM(rotary_dtype, "f32,spec", "{ 'f32', 'spec' }"),
    FORM(residual, "true", "true"),
    FORM(norm, "rms,layer", "{ 'rms', 'layer' }"),
    FORM(target, "false,true", "{ false, true }"),
    FORM(epilogue, "relu,gelu", "{ 'relu', 'gelu' }"),
    FORM(family, "simt", "'simt'"),
    FORM(block_q, "16,4", "{ 16, 4 }"),
    FORM(block_kv, "32", "32"),
    FORM(stages, "2", "'2'"),
    FORM(warps, "4,8", "{ 4, '8' }"),
    FORM(warps_per_key, "2", "2"),
    FORM(key_parts, "16,1", "{ 16, 1 }"),
};
enum { FORMS = sizeof forms / sizeof *forms };

/* Every field of the kind and of plans; the combinations of their values. */
static void three_forms(const fg_kind *kind, int combinations) {
  char words[1024] = "", lua[1024] = "return { ";
  fg_spec spec = FG_INIT(fg_spec);
  for (int i = 0; i < FORMS; i++) {
    const bool names_kind = fg_fields[i].type == &fg_type_kind;
    const char *text = names_kind ? kind->name : forms[i].text;
    if (!fg_fields[i].plan && !fg_kind_has_field(kind, i)) continue;
    *(const char **)(void *)((char *)&spec + forms[i].place) = text;
    snprintf(words + strlen(words), sizeof words - strlen(words), "%s=%s ", forms[i].field, text);
    snprintf(lua + strlen(lua), sizeof lua - strlen(lua), names_kind ? "%s = '%s', " : "%s = %s, ",
             forms[i].field, names_kind ? text : forms[i].lua);
  }
  strcat(lua, "}");
  put("a.lua", lua);
  fg_grid *grids[3];
  ck_assert_msg(read_line("a.lua") == FG_OK, "%s", fg_error());
  grids[0] = grid, grid = NULL;
  ck_assert_msg(read_line(words) == FG_OK, "%s", fg_error());
  grids[1] = grid, grid = NULL;
  ck_assert_msg(fg_grid_from_spec(&spec, &grids[2]) == FG_OK, "%s", fg_error());
  for (int g = 0; g < 3; g++) {
    ck_assert_int_eq(grids[g]->n, grids[0]->n);
    ck_assert_int_eq(grids[g]->combinations, combinations);
    for (int i = 0; i < grids[g]->n; i++) {
      ck_assert(fg_point_equal(&grids[g]->point[i], &grids[0]->point[i]));
      ck_assert_mem_eq(grids[g]->limits[i], grids[0]->limits[i], sizeof(fg_limits));
    }
  }
  for (int g = 0; g < 3; g++) fg_grid_free(grids[g]);
}

TEST(three_forms_agree) {
  ck_assert_int_eq(FORMS, FG_FIELDS); /* no field without a form */
  for (int i = 0; i < FORMS; i++) ck_assert_str_eq(forms[i].field, fg_fields[i].name);
  three_forms(&fg_kinds[0], 2 * 2 * 2 * 2 * 3 * 2 * 2 * 2 * 2 * 2);
  three_forms(&fg_kinds[1], 2 * 2 * 2 * 2);
  three_forms(&fg_kinds[2], 2 * 2 * 2);
  three_forms(&fg_kinds[3], 2 * 2 * 2 * 2 * 2);
  three_forms(&fg_kinds[4], 2 * 2 * 2 * 3 * 2);
}

/* A host built against an older header has a shorter struct. */
TEST(short_struct) {
  fg_spec spec = FG_INIT(fg_spec);
  spec.head_dim = "64", spec.mask = "causal", spec.warps = "no number";
  spec.size = offsetof(fg_spec, mask);
  ck_assert_msg(fg_grid_from_spec(&spec, &grid) == FG_OK, "%s", fg_error());
  ck_assert_str_eq(name_of(0), "attn_fwd-bf16-d64");
  spec.size = 0;
  fg_grid *none = NULL;
  ck_assert_int_eq(fg_grid_from_spec(&spec, &none), FG_ESPEC);
  ck_assert_str_eq(fg_error(), "head_dim: missing; it must be given");
  ck_assert_ptr_null(none);
}

TEST(grid_limit) {
  put("a.lua", "return { head_dim = { 8, 16, 24, 32, 40 }, dtype = { 'bf16', 'f16' } }");
  setenv("FLASHGEN_MAX_POINTS", "9", 1);
  ck_assert_int_eq(read_line("a.lua"), FG_ESPEC);
  ck_assert_str_eq(fg_error(), "a.lua: table 1: the grid has more than 9 combinations "
                               "(FLASHGEN_MAX_POINTS raises the limit)");
  setenv("FLASHGEN_MAX_POINTS", "10", 1);
  reads("a.lua", 10, 10, 0, 0);
  setenv("FLASHGEN_MAX_POINTS", "99999999999999999999", 1);
  reads("a.lua", 10, 10, 0, 0);
  setenv("FLASHGEN_MAX_POINTS", "none", 1); /* no number: the default */
  reads("a.lua", 10, 10, 0, 0);
}

TEST_FIXTURE(scratch_enter, leave)
