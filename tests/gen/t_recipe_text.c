/* t_recipe_text.c - a recipe's text parses back to the recipe; any other is refused by line. */
#include "expand/expand.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fg_gen *gen;

static void enter(void) { ck_assert_int_eq(fg_gen_new(NULL, &gen), FG_OK); }
static void leave(void) { fg_gen_free(gen); }

static fg_recipe recipe_of(const fg_variant *variant) {
  fg_source *source = NULL;
  fg_recipe alone;
  ck_assert_msg(fg_gen_expand(gen, variant, &source) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_gen_recipe(gen, variant, &alone) == FG_OK, "%s", fg_error());
  ck_assert(!memcmp(&source->recipe, &alone, sizeof alone)); /* with the text and without it */
  fg_source_free(source);
  return alone;
}

static int same_expr(const fg_expr *a, const fg_expr *b) {
  return a->n == b->n && !memcmp(a->op, b->op, sizeof a->op) &&
         !memcmp(a->constant, b->constant, sizeof a->constant);
}

static int same_tensor(const fg_recipe_tensor *a, const fg_recipe_tensor *b) {
  return a->argument == b->argument && a->elem == b->elem && a->output == b->output &&
         !memcmp(a->axes, b->axes, sizeof a->axes);
}

static int same_step(const fg_step *a, const fg_step *b) {
  int same = a->kind == b->kind && !strcmp(a->entry, b->entry) && a->threads == b->threads &&
             a->shared_bytes == b->shared_bytes && a->registers == b->registers &&
             same_expr(&a->work, &b->work) && a->region == b->region && a->regions == b->regions &&
             (a->kind == FG_STEP_ZERO ||
              (a->cluster == b->cluster && a->resident == b->resident && a->early == b->early));
  for (int i = 0; i < 3; i++) same &= same_expr(&a->grid[i], &b->grid[i]);
  return same;
}

static int same_map(const fg_map *a, const fg_map *b) {
  return !strcmp(a->name, b->name) && a->tensor == b->tensor && a->columns == b->columns &&
         a->rows == b->rows && a->blocks == b->blocks && a->swizzle == b->swizzle &&
         a->ragged == b->ragged && a->region == b->region;
}

static int same_parameter(const fg_parameter *a, const fg_parameter *b) {
  return a->from == b->from && a->index == b->index && a->axis == b->axis && a->offset == b->offset;
}

static int same(const fg_recipe *a, const fg_recipe *b) {
  int same = a->n_tensors == b->n_tensors && a->n_regions == b->n_regions &&
             a->n_steps == b->n_steps && a->n_maps == b->n_maps &&
             a->n_parameters == b->n_parameters && a->generation == b->generation &&
             a->kernel == b->kernel && !memcmp(a->width, b->width, sizeof a->width) &&
             a->align == b->align && a->params_bytes == b->params_bytes;
  for (int i = 0; i < FG_TENSOR_MAX; i++) same &= same_tensor(&a->tensor[i], &b->tensor[i]);
  for (int i = 0; i < FG_REGION_MAX; i++)
    same &= !strcmp(a->region[i].name, b->region[i].name) &&
            a->region[i].elem == b->region[i].elem && a->region[i].width == b->region[i].width &&
            same_expr(&a->region[i].count, &b->region[i].count);
  for (int i = 0; i < FG_MAP_MAX; i++) same &= same_map(&a->map[i], &b->map[i]);
  for (int i = 0; i < FG_STEP_MAX; i++) same &= same_step(&a->step[i], &b->step[i]);
  for (int i = 0; i < FG_PARAMETER_MAX; i++)
    same &= same_parameter(&a->parameter[i], &b->parameter[i]);
  return same;
}

/* What is read from anything is a recipe: it prints and parses back to itself. */
static void parses_to_itself(const fg_recipe *recipe) {
  char text[FG_RECIPE_TEXT];
  fg_recipe back;
  fg_recipe_print(recipe, sizeof text, text);
  ck_assert_msg(fg_recipe_parse(text, &back) == FG_OK, "%s in\n%s", fg_error(), text);
  ck_assert_msg(same(recipe, &back), "another recipe from\n%s", text);
}

enum { TENTHS = 10 };

/* A tenth of the points of a grid. */
TEST_TENTH(every_variant_parses_back, 2 * TENTHS) {
  static const char *const words[][8] = {
      {"pass=forward,backward", "dtype=f16", "head_dim=64,192/128", "mask=full,causal",
       "bias=false,true,grad", "bias_dims=[],[h],[q,k],[b,h,q,k]", "bias_dtype=spec,f32",
       "grad_dtype=spec,f32"},
      {"dtype=bf16,e4m3", "kv_dtype=e4m3", "head_dim=64,192/128", "descale_block=0,64",
       "kv_layout=dense,packed,cached,paged", "q_layout=dense,packed", "sink=false,true",
       "mask=full,causal"}};
  static const char *const archs[] = {"host", "sm_90a"};
  fg_grid *grid = NULL;
  ck_assert_int_eq(fg_grid_read(0, NULL, 8, words[_i / TENTHS], &grid), FG_OK);
  ck_assert_int_gt(grid->n, 50);
  for (int i = 0; i < 2 * grid->n; i++) {
    if (i / 2 % TENTHS != _i % TENTHS) continue;
    fg_variant variant = {.point = grid->point[i / 2]};
    fg_plan *plans;
    int n;
    snprintf(variant.arch, sizeof variant.arch, "%s", archs[i % 2]);
    ck_assert_int_eq(fg_gen_plans(gen, &variant.point, variant.arch, NULL, &plans, &n), FG_OK);
    variant.plan = plans[i / 2 / TENTHS % n];
    fg_recipe recipe = recipe_of(&variant);
    parses_to_itself(&recipe);
    free(plans);
  }
  fg_grid_free(grid);
}

/* A family that is asked for plan after plan describes each as if it were the only one. */
TEST(a_listing_has_the_recipes) {
  static const char *const words[] = {
      "pass=forward,backward",
      "head_dim=64,128",
      "mask=full,window(300, 0)",
      "score=softcap(s, cap) + slope[h] * (k - p) + table[h, k - p + nq - 1]",
      "inputs.slope=f32[h] grad",
      "inputs.table=f32[h, nq + nk - 1] grad",
      "inputs.cap=float"};
  static const char *const archs[] = {"host", "sm_80", "sm_90a"};
  fg_grid *grid = NULL;
  int count = 0;
  ck_assert_msg(fg_grid_read(0, NULL, 7, words, &grid) == FG_OK, "%s", fg_error());
  for (int i = 0; i < 3 * grid->n; i++) {
    fg_variant variant = {.point = grid->point[i / 3]};
    fg_planned *list;
    int n;
    snprintf(variant.arch, sizeof variant.arch, "%s", archs[i % 3]);
    ck_assert_int_eq(fg_gen_candidates(gen, &variant.point, variant.arch, NULL, &list, &n), FG_OK);
    for (int p = 0; p < n; p++, count++) {
      fg_recipe alone;
      variant.plan = list[p].plan;
      ck_assert_int_eq(fg_gen_recipe(gen, &variant, &alone), FG_OK);
      ck_assert_msg(!memcmp(&list[p].recipe, &alone, sizeof alone), "plan %d of %d", p, n);
    }
    free(list);
  }
  ck_assert_int_gt(count, 100);
  fg_grid_free(grid);
}

/* The richest text there is: broadcast axes, regions, maps, several steps with attributes, and a
 * zero step. */
static int rich_text(char text[FG_RECIPE_TEXT]) {
  fg_variant variant;
  ck_assert_int_eq(
      fg_variant_parse("attn_bwd-f16-d64v128-causal-biasgrad_hq-biasf32.simt-q16-k32-w4.host",
                       &variant),
      FG_OK);
  fg_recipe recipe = recipe_of(&variant);
  ck_assert_int_gt(recipe.n_regions, 0);
  fg_region *region = &recipe.region[recipe.n_regions++];
  *region = recipe.region[0];
  snprintf(region->name, sizeof region->name, "sums");
  char params[8192];
  recipe.align = 16, recipe.generation = 3;
  region->elem = FG_ELEM_BF16, region->width = 512;
  recipe.n_maps = 3;
  recipe.map[0] = (fg_map){"q_map", 0, 64, 128, 1, 128, false, 0};
  recipe.map[1] = (fg_map){"k_map", 1, 16, 256, 0, 32, true, 0};
  recipe.map[2] = (fg_map){"sums_map", 0, 64, 64, 0, 128, false, recipe.n_regions};
  ck_assert_int_eq(fg_recipe_params(&recipe, sizeof params, params), FG_OK);
  ck_assert_ptr_nonnull(strstr(params, "tensor_map q_map; // of q: boxes of 128 rows of 64, 1 "));
  ck_assert_ptr_nonnull(strstr(params, "tensor_map sums_map; // of sums: boxes of 64 rows of 64"));
  recipe.step[0].cluster = 2, recipe.step[0].resident = 1;
  recipe.step[0].early = recipe.step[1].early = true;
  fg_step *zero = &recipe.step[recipe.n_steps++];
  *zero = (fg_step){.kind = FG_STEP_ZERO, .region = recipe.n_regions - 2, .regions = 2};
  parses_to_itself(&recipe);
  return fg_recipe_print(&recipe, FG_RECIPE_TEXT, text);
}

/* An error that names its line, or a recipe; the copy has the length of the text, so that a read
 * past it is seen by the address sanitizer. */
static int refused(const char *text, int n) {
  fg_recipe recipe;
  char *copy = malloc((size_t)n + 1);
  memcpy(copy, text, (size_t)n);
  copy[n] = 0;
  fg_status status = fg_recipe_parse(copy, &recipe);
  if (status == FG_OK)
    parses_to_itself(&recipe);
  else
    ck_assert_msg(status == FG_EIO && !strncmp(fg_error(), "recipe line ", 12), "%s", fg_error());
  free(copy);
  return status != FG_OK;
}

/* Zoos have recipes with a line that is not written any more. */
TEST(line_of_former_recipes) {
  static const char former[] = "cost scale 1250 block 70 tail 300 hide 2000\n";
  char text[FG_RECIPE_TEXT], with[FG_RECIPE_TEXT + sizeof former];
  fg_recipe expected, recipe;
  rich_text(text);
  ck_assert_int_eq(fg_recipe_parse(text, &expected), FG_OK);
  const char *at = strstr(text, "generation 3\n");
  ck_assert_ptr_nonnull(at);
  at = strchr(at, '\n') + 1;
  snprintf(with, sizeof with, "%.*s%s%s", (int)(at - text), text, former, at);
  ck_assert_msg(fg_recipe_parse(with, &recipe) == FG_OK, "%s", fg_error());
  ck_assert(same(&expected, &recipe));
}

TEST(truncated) {
  char text[FG_RECIPE_TEXT];
  int n = rich_text(text), errors = 0;
  for (int i = 0; i < n; i++) errors += refused(text, i);
  ck_assert_int_ge(errors, n - FG_STEP_MAX); /* a text that ends behind a step is a recipe */
}

TEST(mutated) {
  char text[FG_RECIPE_TEXT];
  int n = rich_text(text), errors = 0;
  uint32_t random = 1;
  for (int i = 0; i < 2000; i++) {
    random = random * 1664525 + 1013904223;
    int at = (int)(random >> 8) % n;
    char was = text[at];
    text[at] = i % 2 ? (char)(random >> 3) : " 019,:[]\nbhnqkd"[(random >> 3) % 15];
    errors += refused(text, n);
    text[at] = was;
  }
  ck_assert_int_gt(errors, 1000);
}

#define HEAD   "head_dim 64 64\nalign 16\n"
#define Q      "tensor q in bf16 [b, nq, h, 64]\n"
#define REST   " registers 80 work b nk *\n" /* of a launch */
#define LAUNCH "launch f grid 1, 1, 1 threads 32 shared 0"
#define FWD    LAUNCH REST
typedef struct {
  const char *text, *error;
} refusal;

static const refusal malformed[] = {
    {"", "recipe line 1: it ends before its first step"},
    {HEAD Q, "recipe line 4: it ends before its first step"},
    {HEAD FWD, "recipe line 4: it ends before its first step"},
    {"hello\n", "recipe line 1: \"hello\" begins no line of a recipe"},
    {HEAD "\n", "recipe line 3: \"\" begins no line of a recipe"},
    {"head_dim 0 64\n", "recipe line 1: d is not a number from 1 to 1048576"},
    {"head_dim 64\n", "recipe line 1: dv is not a number from 1 to 1048576"},
    {HEAD "head_dim 64 64\n", "recipe line 3: the head_dim comes a second time"},
    {HEAD Q Q, "recipe line 4: q comes twice"},
    {HEAD "tensor x in bf16 []\n", "recipe line 3: no argument is \"x\""},
    {HEAD "tensor q to bf16 []\n", "recipe line 3: q is neither in nor out"},
    {HEAD "tensor q in f64 []\n", "recipe line 3: \"f64\" is no element type"},
    {HEAD "tensor lse in f16 [b, h, nq]\n", "recipe line 3: lse is not f32"},
    {HEAD "tensor q in bf16 [b, nk, h, 64]\n", "recipe line 3: q has \"nk\" for the axis [nq]"},
    {HEAD "tensor q in bf16 [1, nq, h, 64]\n", "recipe line 3: q has \"1\" for the axis [b]"},
    {HEAD "tensor q in bf16 [b, nq, h, 65]\n", "recipe line 3: q has \"65\" for the axis [64]"},
    {HEAD "tensor q in bf16 [b, nq]\n", "recipe line 3: q has \"\" for the axis [h]"},
    {HEAD Q "region 1x f32: b\n", "recipe line 4: \"1x\" is no name"},
    {HEAD Q "region x f32\n", "recipe line 4: region x has no count"},
    {HEAD Q "region x f32: b *\n", "recipe line 4: \"*\" has too few operands"},
    {HEAD Q "region x f32: b h\n", "recipe line 4: an expression leaves 2 values, not one"},
    {HEAD Q "region x f32: b  h *\n", "recipe line 4: an expression has a word of 0 letters"},
    {HEAD Q "region x f32: nv\n", "recipe line 4: \"nv\" is no word of an expression"},
    {HEAD Q "region x f32: 9223372036854775808\n",
     "recipe line 4: 9223372036854775808 is above 2^63 - 1"},
    {HEAD Q "region x f32: b\nregion x f32: b\n", "recipe line 5: region x comes twice"},
    {HEAD Q "zero x\n", "recipe line 4: no region is \"x\""},
    {HEAD Q "region x f32: b\nregion y f32: b\nzero y x\n",
     "recipe line 6: region x does not lie behind the one before it"},
    {HEAD Q "region x f32: b\nzero x y\n", "recipe line 5: no region is \"y\""},
    {HEAD Q "launch a-b grid 1, 1, 1 threads 32 shared 0" REST,
     "recipe line 4: \"a-b\" is no name"},
    {HEAD Q "launch f threads 32 shared 0" REST,
     "recipe line 4: f lacks grid, threads, shared, registers or work"},
    {HEAD Q "launch f grid 1, 1 threads 32 shared 0" REST,
     "recipe line 4: the grid of f is not three expressions"},
    {HEAD Q "launch f grid 1, 1, 1 threads 1025 shared 0" REST,
     "recipe line 4: threads is not a number from 1 to 1024"},
    {HEAD Q "launch f grid 1, 1, 1 threads 32 shared -1" REST,
     "recipe line 4: shared is not a number from 0 to 1048576"},
    {HEAD Q FWD "tensor k in bf16 [b, nk, hk, 64]\n",
     "recipe line 4: it is not spelled as a recipe is"},
    {HEAD Q "launch f grid 01, 1, 1 threads 32 shared 0" REST,
     "recipe line 4: it is not spelled as a recipe is"},
    {Q HEAD FWD, "recipe line 1: q has \"64\" for the axis [0]"},
    {"head_dim 64 64\n" Q FWD, "recipe line 4: it ends before its first step"}, /* no alignment */
    {HEAD "align 16\n", "recipe line 3: the alignment comes a second time"},
    {"align \n", "recipe line 1: the alignment is not a number from 2 to 1024"},
    {"align 1\n", "recipe line 1: the alignment is not a number from 2 to 1024"},
    {"align 2048\n", "recipe line 1: the alignment is not a number from 2 to 1024"},
    {"align -16\n", "recipe line 1: the alignment is not a number from 2 to 1024"},
    {"align 16 16\n", "recipe line 1: the alignment is not a number from 2 to 1024"},
    {HEAD "cost scale 0 block 0 tail 0 hide 0\n" Q
          "launch f grid 01, 1, 1 threads 32 shared 0" REST,
     "recipe line 5: it is not spelled as a recipe is"},
    {"costs 1\n", "recipe line 1: \"costs\" begins no line of a recipe"},
    {"generation 1\n", "recipe line 1: the generation is not a number from 2 to 1048576"},
    {"align 24\n", "recipe line 1: the alignment is no power of 2"},
    {HEAD Q LAUNCH "\n", "recipe line 4: f lacks grid, threads, shared, registers or work"},
    {HEAD Q LAUNCH " work nk\n", "recipe line 4: f lacks grid, threads, shared, registers or work"},
    {HEAD Q LAUNCH " registers 80\n",
     "recipe line 4: f lacks grid, threads, shared, registers or work"},
    {HEAD Q "launch f grid 1, 1, 1 threads 32 registers 80 shared 0 work nk\n",
     "recipe line 4: f lacks grid, threads, shared, registers or work"},
    {HEAD Q LAUNCH " registers 0 work nk\n",
     "recipe line 4: registers is not a number from 1 to 255"},
    {HEAD Q LAUNCH " registers 256 work nk\n",
     "recipe line 4: registers is not a number from 1 to 255"},
    {HEAD Q LAUNCH " registers 80 work \n", "recipe line 4: an expression has a word of 0 letters"},
    {HEAD Q LAUNCH " registers 80 work nk *\n", "recipe line 4: \"*\" has too few operands"},
    {HEAD Q LAUNCH " registers 80 work rows\n",
     "recipe line 4: \"rows\" is no word of an expression"},
    {HEAD Q LAUNCH " registers 080 work nk\n", "recipe line 4: it is not spelled as a recipe is"},
};

#define MAP(rest)   HEAD Q "map q_map q " rest "\n"
#define TRAIT(text) HEAD Q LAUNCH " registers 80 " text " work nk\n"
static const refusal malformed_maps[] = {
    {HEAD Q "map 1 q 64 64 swizzle 128\n", "recipe line 4: \"1\" is no name"},
    {HEAD Q "map q_map k 64 64 swizzle 128\n", "recipe line 4: map q_map has no tensor"},
    {HEAD Q "map q_map\n", "recipe line 4: map q_map has no tensor"},
    {MAP("x 64 swizzle 128"), "recipe line 4: columns is not a number from 1 to 256"},
    {MAP("64 257 swizzle 128"), "recipe line 4: rows is not a number from 1 to 256"},
    {MAP("64 64 0 swizzle 128"), "recipe line 4: blocks is not a number from 1 to 256"},
    {MAP("64 64 1"), "recipe line 4: map q_map has no swizzle"},
    {MAP("64 64 swizzle 129"), "recipe line 4: swizzle is not a number from 0 to 128"},
    {MAP("64 64 swizzle 16"),
     "recipe line 4: map q_map: there are swizzles of 32, 64 and 128 bytes"},
    {MAP("32 64 swizzle 128"),
     "recipe line 4: map q_map: a row is not as wide as the swizzle, or no multiple of 16 bytes"},
    {MAP("12 64 swizzle 0"),
     "recipe line 4: map q_map: a row is not as wide as the swizzle, or no multiple of 16 bytes"},
    {MAP("48 64 1 swizzle 0"),
     "recipe line 4: map q_map: the head dim is no multiple of its columns"},
    {"head_dim 64 64\nalign 8\n" Q "map q_map q 64 64 swizzle 128\n",
     "recipe line 4: map q_map: the recipe's alignment is less than 16"},
    {HEAD "tensor lse in f32 [b, h, nq]\nmap x lse 32 64 swizzle 128\n",
     "recipe line 4: map x: its tensor is no 16-bit one of [.., q, k]"},
    {MAP("64 64 swizzle 128") FWD "map k_map q 64 64 swizzle 128\n",
     "recipe line 5: it is not spelled as a recipe is"},
    {TRAIT("cluster 1"), "recipe line 4: cluster is not a number from 2 to 8"},
    {TRAIT("cluster 9"), "recipe line 4: cluster is not a number from 2 to 8"},
    {TRAIT("resident 0"), "recipe line 4: resident is not a number from 1 to 32"},
    {TRAIT("late"), "recipe line 4: \"late\" is no attribute of a launch"},
    {TRAIT("early early"), "recipe line 4: it is not spelled as a recipe is"},
    {TRAIT("resident 1 cluster 2"), "recipe line 4: it is not spelled as a recipe is"},
};

static void refused_with(const char *text, const char *error) {
  fg_recipe recipe = {.width = {77}};
  ck_assert_int_eq(fg_recipe_parse(text, &recipe), FG_EIO);
  ck_assert_str_eq(fg_error(), error);
  ck_assert_int_eq(recipe.width[0], 77); /* left as it was */
}

TEST_LOOP(malformed_maps_and_traits, sizeof malformed_maps / sizeof *malformed_maps) {
  refused_with(malformed_maps[_i].text, malformed_maps[_i].error);
}

TEST_LOOP(malformed_texts, sizeof malformed / sizeof *malformed) {
  refused_with(malformed[_i].text, malformed[_i].error);
}

TEST(too_much) {
  char text[FG_RECIPE_TEXT] = HEAD Q;
  char *at = text + strlen(text);
  for (int i = 0; i <= FG_STEP_MAX; i++) at += sprintf(at, "%s", FWD);
  ck_assert_int_eq(refused(text, (int)(at - text)), 1);
  ck_assert_str_eq(fg_error(), "recipe line 28: too many steps");
  at = text + strlen(HEAD Q);
  for (int i = 0; i <= FG_REGION_MAX; i++) at += sprintf(at, "region r%d f32: b\n", i);
  ck_assert_int_eq(refused(text, (int)(at - text)), 1);
  ck_assert_str_eq(fg_error(), "recipe line 16: too many regions");
  at = text + sprintf(text, "%sregion r f32: b", HEAD Q);
  for (int i = 0; i < FG_EXPR_MAX; i++) at += sprintf(at, " b");
  ck_assert_int_eq(refused(text, (int)(at - text)), 1);
  ck_assert_str_eq(fg_error(), "recipe line 4: an expression is too long");
  memset(text, 'x', 5000);
  ck_assert_int_eq(refused(text, 5000), 1);
  ck_assert_str_eq(fg_error(), "recipe line 1: it is too long");
}

TEST_FIXTURE(enter, leave)
