/* t_fit.c - the fit of the cost model finds constants that made the times it is given. */
#include "expand/expand.h"
#include "scratch.h"
#include "suite.h"
#include "wisdom/cost.h"
#include "wisdom/wisdom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A GPU on which each plan is as much slower than its family thinks as its place in the list says,
 * the order being the other way round, and blocks cost more than their work. */
static double slowness(int plan) { return 2.0 / (1 + 0.3 * plan); }

static void put_times(fg_gen *gen, const char *words, const char *more) {
  const char *const word[] = {words, "pass=forward,backward", "family=mma", more};
  fg_grid *grid;
  ck_assert_msg(fg_grid_read(0, NULL, 4, word, &grid) == FG_OK, "%s", fg_error());
  for (int p = 0; p < grid->n; p++) {
    fg_plan *plans;
    int n;
    ck_assert_int_eq(fg_gen_plans(gen, &grid->point[p], "sm_90a", grid->limits[p], &plans, &n),
                     FG_OK);
    for (int i = 0; i < n; i++) {
      fg_variant v = {.point = grid->point[p], .plan = plans[i], .arch = "sm_90a"};
      fg_source *source;
      ck_assert_int_eq(fg_gen_expand(gen, &v, &source), FG_OK);
      const fg_cost_terms terms = {.scale = 1000, .block = 3000, .tail = 700, .hide = 1000};
      for (int64_t nq = 512; nq <= 16384; nq *= 2) {
        fg_measured m = {
            .multiprocessors = 132, .generation = source->recipe.generation, .verified = true};
        m.shape = (fg_shape)SHAPE(16384 / nq, 16, 16, nq, nq, 16);
        if (!strchr(fg_point_kind(&v.point)->form->letters, 'q'))
          m.shape = (fg_shape){.rows = nq, .align = 16};
        m.ms = 1e-7 * slowness(i) * fg_cost(&source->recipe, &terms, &m.shape, "sm_90a", 132);
        fg_variant_name(&v, sizeof m.name, m.name);
        strcpy(m.device, "GPU of the test");
        ck_assert_int_eq(fg_wisdom_append("w.txt", &m), FG_OK);
      }
      fg_source_free(source);
    }
    free(plans);
  }
  fg_grid_free(grid);
}

/* The row "all" of what fit prints: means and worst cases by wisdom, by the model; of so many
 * choices. */
static void fitted(int choices, double quality[4], char text[1 << 14]) {
  ck_assert_int_eq(system(FIT_PROGRAM " -o cost_table.c w.txt > out.txt"), 0);
  FILE *f = fopen("out.txt", "r");
  text[fread(text, 1, (1 << 14) - 1, f)] = 0;
  fclose(f);
  const char *row = strstr(text, "\nall ");
  int n;
  ck_assert_msg(row != NULL, "%s", text);
  ck_assert_int_eq(sscanf(row, " all %d %lf %lf %lf %lf", &n, &quality[0], &quality[1], &quality[2],
                          &quality[3]),
                   5);
  ck_assert_int_eq(n, choices);
}

/* The table that was written, which a compiler takes. */
static void read_table(char table[1 << 14]) {
  FILE *f = fopen("cost_table.c", "r");
  table[fread(table, 1, (1 << 14) - 1, f)] = 0;
  fclose(f);
  ck_assert_int_eq(system("cc -std=c11 -Wall -Werror -c cost_table.c -I " FLASHGEN_SOURCE
                          "/runtime/wisdom -I " FLASHGEN_SOURCE "/runtime -I " FLASHGEN_SOURCE
                          "/gen"),
                   0);
}

TEST(finds_constants) {
  double quality[4];
  char text[1 << 14], table[1 << 14];
  fg_gen *gen;
  ck_assert_int_eq(fg_gen_new("", &gen), FG_OK);
  put_times(gen, "head_dim=64,128", "mask=causal,full");
  fg_gen_free(gen);
  fitted(16, quality, text); /* 8 specs, 2 of 6 shapes */
  for (int i = 0; i < 4; i++) ck_assert_msg(quality[i] < 1.05, "%d: %g", i, quality[i]);
  read_table(table);
  ck_assert_ptr_nonnull(strstr(table, " * 48 choices on GPU of the test. */\n"));
  ck_assert_ptr_nonnull(strstr(table, "    {\"attention\", \"mma\", FG_PASS_FORWARD, {"));
  ck_assert_ptr_nonnull(strstr(table, "    {\"attention\", \"mma\", FG_PASS_BACKWARD, {"));
  ck_assert_ptr_nonnull(
      strstr(table, "    {\"attention\", \"mma-q128-k64-s1-w4\", FG_PASS_FORWARD, {"));
}

/* Kinds of kernels have rows of their own, though families have one name and plans may. */
TEST(kinds_apart) {
  double quality[4];
  char text[1 << 14], table[1 << 14];
  fg_gen *gen;
  ck_assert_int_eq(fg_gen_new("", &gen), FG_OK);
  put_times(gen, "head_dim=64", "mask=full");
  put_times(gen, "kernel=linear", "width=512,1024");
  fg_gen_free(gen);
  fitted(12, quality, text); /* 6 specs, 2 of 6 shapes */
  ck_assert_msg(quality[2] < 1.05 && quality[3] < 1.05, "%g, %g", quality[2], quality[3]);
  ck_assert_msg(strstr(text, "\nforward full ") && strstr(text, "\nforward linear "), "%s", text);
  read_table(table);
  ck_assert_ptr_nonnull(strstr(table, "    {\"attention\", \"mma\", FG_PASS_FORWARD, {"));
  ck_assert_ptr_nonnull(strstr(table, "    {\"linear\", \"mma\", FG_PASS_FORWARD, {"));
  ck_assert_ptr_nonnull(strstr(table, "    {\"linear\", \"mma\", FG_PASS_BACKWARD, {"));
  ck_assert_ptr_nonnull(
      strstr(table, "    {\"linear\", \"mma-q128-k128-s3-w4\", FG_PASS_FORWARD, {"));
}

static fg_variant variant_of(const char *spec, const char *plan, const char *arch) {
  fg_variant v;
  char name[FG_NAME_MAX];
  snprintf(name, sizeof name, "%s.%s.%s", spec, plan, arch);
  ck_assert_msg(fg_variant_parse(name, &v) == FG_OK, "%s", fg_error());
  return v;
}

static const fg_cost_family *family_of(const fg_variant *v) {
  const fg_cost_family *row = fg_cost_families;
  while (row->name && (row->pass != v->point.pass || strcmp(row->name, fg_plan_family(&v->plan))))
    row++;
  ck_assert_ptr_nonnull(row->name);
  return row;
}

static void terms_are(const fg_variant *v, const fg_cost_terms *expected, int scale) {
  const fg_cost_terms terms = fg_cost_terms_of(v);
  ck_assert_int_eq(terms.scale, scale);
  ck_assert_int_eq(terms.block, expected->block);
  ck_assert_int_eq(terms.tail, expected->tail);
  ck_assert_int_eq(terms.hide, expected->hide);
}

/* Each plan of the table has its own scale where it was measured, else its family's. */
TEST(terms_of_the_table) {
  static const char *const specs[2][FG_COST_WIDTHS] = {
      {"attn_fwd-bf16-d64", "attn_fwd-bf16-d64v128", "attn_fwd-bf16-d136"},
      {"attn_bwd-bf16-d8", "attn_bwd-bf16-d72", "attn_bwd-bf16-d256v64"}};
  int measured = 0, other = 0;
  for (const fg_cost_plan *row = fg_cost_plans; row->name; row++)
    for (int w = 0; w < FG_COST_WIDTHS; w++) {
      const fg_variant v = variant_of(specs[row->pass][w], row->name, "sm_90a");
      const fg_cost_family *family = family_of(&v);
      terms_are(&v, &family->terms, row->scale[w] ? row->scale[w] : family->terms.scale);
      *(row->scale[w] ? &measured : &other) += 1;
    }
  ck_assert_int_gt(measured, 0);
  ck_assert_int_gt(other, 0);
}

/* A plan that is not in it has its family's; a family that is not in it, one of another kind, and
 * the host device, have the work as it is stated. */
TEST(terms_of_others) {
  static const char spec[] = "attn_fwd-bf16-d64";
  fg_variant v = variant_of(spec, "mma-q16-k16-s1-w1", "sm_80");
  terms_are(&v, &family_of(&v)->terms, family_of(&v)->terms.scale);
  v = variant_of(spec, "simt-q16-k32-w4", "sm_90a");
  terms_are(&v, &fg_cost_plain, fg_cost_plain.scale);
  v = variant_of(spec, fg_cost_plans[0].name, "host");
  terms_are(&v, &fg_cost_plain, fg_cost_plain.scale);
  v = variant_of("linear_fwd-bf16-w64", "mma-q128-k128-s3-w4", "sm_90a"); /* of another kind */
  terms_are(&v, &fg_cost_plain, fg_cost_plain.scale);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
