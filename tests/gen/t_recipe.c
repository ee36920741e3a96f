/* t_recipe.c - the recipe agrees with the text: Params' members lie where the launcher writes them.
 */
#include "expand/expand.h"
#include "scratch.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fg_gen *gen;

static void enter(void) {
  scratch_enter();
  ck_assert_int_eq(fg_gen_new(NULL, &gen), FG_OK);
}

static void leave(void) {
  fg_gen_free(gen);
  scratch_leave();
}

static fg_source *expand(const char *name) {
  fg_variant variant;
  fg_source *source = NULL;
  ck_assert_msg(fg_variant_parse(name, &variant) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s", fg_error());
  return source;
}

static int size_of(const fg_parameter *p) {
  if (p->from == FG_FROM_MAP) return FG_MAP_BYTES;
  return p->from >= FG_FROM_EXTENT ? 4 : 8;
}

/* What the member of a parameter is called in the text. */
static void ident_of(const fg_recipe *r, const fg_parameter *p, size_t size, char *ident) {
  const fg_argument *argument = r->tensor[p->index].argument;
  switch (p->from) {
  case FG_FROM_MAP:
    snprintf(ident, size, "%s", r->map[p->index].name);
    break;
  case FG_FROM_TENSOR:
    snprintf(ident, size, "%s", argument->ident);
    break;
  case FG_FROM_STRIDE:
    snprintf(ident, size, "%s_%c", argument->ident, fg_axis_suffix(argument->axes, p->axis));
    break;
  case FG_FROM_REGION:
    snprintf(ident, size, "%s", r->region[p->index].name);
    break;
  case FG_FROM_EXTENT:
    snprintf(ident, size, "%s",
             p->axis == 'b'   ? "b"
             : p->axis == 'h' ? "h"
             : p->axis == 'g' ? "hk"
             : p->axis == 'q' ? "nq"
                              : "nk");
    break;
  case FG_FROM_SCALE:
    snprintf(ident, size, "scale");
    break;
  case FG_FROM_LAUNCH:
    snprintf(ident, size, "%s", fg_launch_numbers[p->index].name);
    break;
  case FG_FROM_NUMBER:
    snprintf(ident, size, "in_%s", r->number[p->index].name);
    break;
  case FG_FROM_CACHE:
    snprintf(ident, size, "%s_cache", argument->ident);
    break;
  case FG_FROM_MADE:
    snprintf(ident, size, "%s_made", r->map[p->index].name);
    break;
  }
}

/* Offsets are aligned, increasing and disjoint, within the struct. */
static void look_at_offsets(const char *name, const fg_recipe *r) {
  int end = 0;
  for (int i = 0; i < r->n_parameters; i++) {
    const fg_parameter *p = &r->parameter[i];
    if (p->offset % size_of(p) || p->offset < end) ck_abort_msg("%s: parameter %d", name, i);
    end = p->offset + size_of(p);
  }
  int unit = r->n_maps ? 64 : 8;
  if (end > r->params_bytes || r->params_bytes - end >= unit || r->params_bytes % unit)
    ck_abort_msg("%s: %d bytes of %d", name, end, r->params_bytes);
}

/* The struct of the text as `Params<number>`, and assertions about its members. */
static void write_struct(FILE *f, int number, const char *name, const fg_source *source) {
  const fg_recipe *r = &source->recipe;
  const char *start = strstr(source->text, "typedef struct Params {");
  const char *end = start ? strstr(start, "} Params;") : NULL;
  ck_assert_msg(end != NULL, "%s has no Params", name);
  start = strchr(start, '{');
  fprintf(f, "// %s\ntypedef struct %.*s} Params%d;\n", name, (int)(end - start), start, number);
  fprintf(f, "_Static_assert(sizeof(Params%d) == %d, \"size\");\n", number, r->params_bytes);
  for (int i = 0; i < r->n_parameters; i++) {
    char ident[32];
    ident_of(r, &r->parameter[i], sizeof ident, ident);
    fprintf(f, "_Static_assert(offsetof(Params%d, %s) == %d, \"%s\");\n", number, ident,
            r->parameter[i].offset, ident);
    fprintf(f, "_Static_assert(sizeof(((Params%d *)0)->%s) == %d, \"%s\");\n", number, ident,
            size_of(&r->parameter[i]), ident);
  }
}

static const char *const specs[][8] = {
    {"dtype=bf16,e4m3", "kv_dtype=e4m3", "head_dim=64", "descale_block=0,64", "mask=full,causal",
     "score=s,softcap(5.0)", "sink=false,true", "o_dtype=spec,f32"},
    {"pass=forward,backward", "head_dim=64", "bias=false,true,grad",
     "bias_dims=[],[b],[h],[q],[k],[b,h],[b,q],[b,k],[h,q],[h,k],[q,k],[b,h,q],[b,h,k],[b,q,k],"
     "[h,q,k],[b,h,q,k]",
     "bias_dtype=spec,f32", "grad_dtype=spec,f32", "o_dtype=f32", "dqkv_dtype=f32"}};

TEST_LOOP(params_are_where_the_recipe_says, 2) {
  fg_grid *grid = NULL;
  FILE *f = fopen("params.c", "w");
  ck_assert_ptr_nonnull(f);
  fprintf(f, "#include <stddef.h>\ntypedef unsigned char u8;\ntypedef unsigned short u16;\n"
             "typedef long long i64;\n");
  ck_assert_int_eq(fg_grid_read(0, NULL, 8, specs[_i], &grid), FG_OK);
  ck_assert_int_gt(grid->n, 40);
  for (int i = 0; i < grid->n; i++) {
    fg_variant variant = {.point = grid->point[i], .plan = {{3, 16, 32, 0, 4}}, .arch = "host"};
    char name[FG_NAME_MAX];
    fg_variant_name(&variant, sizeof name, name);
    fg_source *source = expand(name);
    look_at_offsets(name, &source->recipe);
    write_struct(f, i, name, source);
    fg_source_free(source);
  }
  fg_grid_free(grid);
  ck_assert_int_eq(fclose(f), 0);
  ck_assert_int_eq(system("cc -std=c11 -fsyntax-only params.c"), 0);
}

/* The whole recipe of one backward kernel, as text and as numbers for a shape. */
TEST(backward_recipe) {
  fg_source *source =
      expand("attn_bwd-f16-d64v128-causal-biasgrad_hq-biasf32.simt-q16-k32-w4.host");
  const fg_recipe *r = &source->recipe;
  char text[2048];
  int n = fg_recipe_print(r, sizeof text, text);
  ck_assert_int_eq(n, (int)strlen(text));
  static const char *const lines[] = {
      "tensor q in f16 [b, nq, h, 64]\n",
      "tensor v in f16 [b, nk, hk, 128]\n",
      "tensor bias in f32 [1, h, nq, 1]\n",
      "tensor lse in f32 [b, h, nq]\n",
      "tensor dlse in f32 [b, h, nq]\n",
      "tensor dk out f16 [b, nk, hk, 64]\n",
      "tensor dbias out f32 [1, h, nq, 1]\n",
      "region delta f32: b h * nq *\n",
      "launch attn_bwd_dq grid nq 16 cdiv h * b *, 1, 1 threads 128 "};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    ck_assert_msg(strstr(text, lines[i]), "%s is not in\n%s", lines[i], text);
  fg_shape shape = {.b = 2, .h = 6, .hk = 3, .nq = 100, .nk = 7};
  for (int i = 0; i < r->n_steps; i++) {
    int64_t blocks;
    ck_assert_int_eq(fg_expr_eval(&r->step[i].grid[0], &shape, &blocks), FG_OK);
    if (!strcmp(r->step[i].entry, "attn_bwd_dq")) ck_assert_int_eq(blocks, 7 * 6 * 2);
    if (!strcmp(r->step[i].entry, "attn_bwd_dk_dv")) ck_assert_int_eq(blocks, 1 * 3 * 2);
    if (!strcmp(r->step[i].entry, "attn_bwd_dbias")) ck_assert_int_eq(blocks, 7 * 6);
    ck_assert_int_gt(r->step[i].shared_bytes, 0);
  }
  ck_assert_int_eq(fg_recipe_extent(r, 'v', &shape), 128);
  ck_assert_int_eq(fg_recipe_extent(r, 'g', &shape), 3);
  ck_assert_int_eq(fg_recipe_extent(r, '1', &shape), 1);
  fg_source_free(source);
}

TEST(arguments) {
  for (int i = 0; i < FG_ARGUMENTS; i++) {
    int kinds = 0;
    for (int k = 0; k < FG_KINDS; k++)
      kinds += fg_argument_find(&fg_kinds[k], fg_arguments[i].name) == &fg_arguments[i];
    ck_assert_int_ge(kinds, 1);
  }
  ck_assert_ptr_null(fg_argument_find(fg_kind_find("logsoftmax"), "q"));
  ck_assert_ptr_null(fg_argument_find(fg_kinds, "o_parts"));
  ck_assert_int_eq(fg_axis_index("pbqhv", 'p'), 0);
  ck_assert_int_eq(fg_axis_index("pbqhv", 'q'), 3);
  ck_assert_int_eq(fg_axis_index("pbqhv", 'v'), FG_STRIDES); /* it has none */
  ck_assert_int_eq(fg_axis_suffix("pbhq", 'q'), 'n');
  ck_assert_ptr_null(fg_argument_find(&fg_kinds[0], "dout")); /* files say "do" */
  ck_assert_int_eq(fg_axis_index("bkgd", 'g'), 1);
  ck_assert_int_eq(fg_axis_index("bkgd", 'k'), 2);
  ck_assert_int_eq(fg_axis_index("bhqk", 'k'), 3);
  ck_assert_int_eq(fg_axis_suffix("bqhd", 'q'), 'n');
  ck_assert_int_eq(fg_axis_suffix("bhqk", 'q'), 'q');
}

/* A plan that no family proposes would be expanded to a kernel that skips rows. */
TEST(only_candidates_expand) {
  static const char *const names[] = {"attn_fwd-bf16-d64.simt-q7-k32-w2.host",
                                      "attn_fwd-bf16-d64.simt.host",
                                      "attn_fwd-bf16-d64.simt-q16-k32-s2-w4.host"};
  static const char *const plans[] = {"simt-q7-k32-w2", "simt", "simt-q16-k32-s2-w4"};
  for (int i = 0; i < 3; i++) {
    fg_variant variant;
    fg_source *source = NULL;
    char why[300];
    ck_assert_int_eq(fg_variant_parse(names[i], &variant), FG_OK);
    ck_assert_int_eq(fg_gen_expand(gen, &variant, &source), FG_EARGUMENT);
    snprintf(why, sizeof why, "%s: %s is no plan for this spec and arch: no plan fits: ", names[i],
             plans[i]);
    ck_assert_msg(!strncmp(fg_error(), why, strlen(why)), "%s", fg_error());
    ck_assert_ptr_null(source);
  }
}

/* What was listed last is known to be a plan: of that spec, on that arch, and nothing else is. */
TEST(only_what_was_listed_is_known) {
  fg_variant variant, other;
  fg_plan *plans = NULL;
  fg_source *source = NULL;
  int n = 0;
  ck_assert_int_eq(fg_variant_parse("attn_fwd-bf16-d64.wgmma.sm_90a", &variant), FG_OK);
  ck_assert_int_eq(fg_gen_plans(gen, &variant.point, "sm_90a", NULL, &plans, &n), FG_OK);
  for (int i = 0; i < 3; i++) {
    other = variant;
    other.plan = plans[0];
    if (i == 0) other.plan.value[1]++;
    if (i == 1) strcpy(other.arch, "sm_80");
    if (i == 2) other.point.d = other.point.dv = 256;
    ck_assert_int_eq(fg_gen_expand(gen, &other, &source), FG_EARGUMENT);
    ck_assert_ptr_nonnull(strstr(fg_error(), " is no plan for this spec and arch: no plan fits: "));
    free(plans);
    ck_assert_int_eq(fg_gen_plans(gen, &variant.point, "sm_90a", NULL, &plans, &n), FG_OK);
  }
  variant.plan = plans[0];
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s", fg_error());
  fg_source_free(source);
  free(plans);
}

TEST(plans_within_restrictions) {
  fg_variant variant;
  fg_plan *plans = NULL, *all = NULL;
  int n = 0, n_all = 0;
  ck_assert_int_eq(fg_variant_parse("attn_fwd-bf16-d64.simt.host", &variant), FG_OK);
  ck_assert_int_eq(fg_gen_plans(gen, &variant.point, "host", NULL, &all, &n_all), FG_OK);
  fg_limits limits = {.n = {[1] = 1}, .value = {[1] = {4}}};
  ck_assert_int_eq(fg_gen_plans(gen, &variant.point, "host", &limits, &plans, &n), FG_OK);
  ck_assert_int_eq(n, 1);
  ck_assert_int_gt(n_all, 1);
  ck_assert_int_eq(plans[0].value[1], 4);
  free(plans);
  free(all);
  limits.value[1][0] = 5;
  ck_assert_int_eq(fg_gen_plans(gen, &variant.point, "host", &limits, &plans, &n), FG_ESPEC);
  char why[100];
  snprintf(why, sizeof why, "no plan fits: %d candidates, none within the restrictions", n_all);
  ck_assert_str_eq(fg_error(), why);
}

TEST_FIXTURE(enter, leave)
