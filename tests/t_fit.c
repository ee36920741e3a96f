/* t_fit.c - the fit of the cost model finds constants that made the times it is given. */
#include "cost.h"
#include "expand.h"
#include "scratch.h"
#include "suite.h"
#include "wisdom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A GPU on which each plan is as much slower than its family thinks as its place in the list says,
 * the order being the other way round, and blocks cost more than their work. */
static double slowness(int plan) { return 2.0 / (1 + 0.3 * plan); }

static void put_times(fg_gen *gen, const char *words) {
  const char *const word[] = {words, "pass=forward,backward", "mask=causal,full", "family=mma"};
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
      source->recipe.cost =
          (fg_cost_terms){.scale = 1000, .block = 3000, .tail = 700, .hide = 1000};
      for (int64_t nq = 512; nq <= 16384; nq *= 2) {
        fg_measured m = {
            .multiprocessors = 132, .generation = source->recipe.generation, .verified = true};
        m.shape = (fg_shape)SHAPE(16384 / nq, 16, 16, nq, nq, 16);
        m.ms = 1e-7 * slowness(i) * fg_cost(&source->recipe, &m.shape, "sm_90a", 132);
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

/* The row "all" of what fit prints: means and worst cases by wisdom, by the model. */
static void fitted(double quality[4]) {
  char text[1 << 14];
  ck_assert_int_eq(system(FIT_PROGRAM " -o cost.lua w.txt > out.txt"), 0);
  FILE *f = fopen("out.txt", "r");
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  const char *row = strstr(text, "\nall ");
  int n;
  ck_assert_msg(row != NULL, "%s", text);
  ck_assert_int_eq(sscanf(row, " all %d %lf %lf %lf %lf", &n, &quality[0], &quality[1], &quality[2],
                          &quality[3]),
                   5);
  ck_assert_int_eq(n, 16); /* 8 specs, 2 of 6 shapes */
}

START_TEST(finds_constants) {
  double quality[4];
  char lua[1 << 14];
  fg_gen *gen;
  ck_assert_int_eq(fg_gen_new("", &gen), FG_OK);
  put_times(gen, "head_dim=64,128");
  fg_gen_free(gen);
  fitted(quality);
  for (int i = 0; i < 4; i++) ck_assert_msg(quality[i] < 1.05, "%d: %g", i, quality[i]);
  FILE *f = fopen("cost.lua", "r");
  lua[fread(lua, 1, sizeof lua - 1, f)] = 0;
  fclose(f);
  ck_assert_ptr_nonnull(strstr(lua, "mma_forward = {\n"));
  ck_assert_ptr_nonnull(strstr(lua, "mma_backward = {\n"));
  ck_assert_ptr_nonnull(strstr(lua, "[\"mma-q128-k64-s1-w4\"] = { "));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("fit");
  TCase *tests = tcase_create("fit");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  tcase_add_test(tests, finds_constants);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
