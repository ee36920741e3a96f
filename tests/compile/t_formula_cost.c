/* t_formula_cost.c - what a long expression costs before it runs: parsing and deriving it, and the
 * compile of its kernels beside the plain ones. Times are of the processor, medians, and printed;
 * the limits that fail are far from what is promised, so that a busy machine passes. */
#include "clock.h"
#include "compile_case.h"
#include "suite.h"

#include "formula/formula.h"
#include "formula/tree_bound.h"
#include "formula/tree_diff.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 77, TERMS = 64, RUNS = 5, TEXT = 4096 };

static const fg_nvrtc *nvrtc;

/* 64 terms without spaces, of four kinds in turn. */
static const char *score_text(void) {
  static char text[TEXT];
  int n = sprintf(text, "s");
  for (int i = 1; i < TERMS; i++) {
    static const char *const kinds[] = {"+0.%02d*tanh(0.%02d*s)", "+0.%02d*float((k-p)%%%d)",
                                        "+(p-k<%d?0.%02d:s)", "+0.%02d*s*s/(s*s+%d.0)"};
    n += snprintf(text + n, (size_t)(TEXT - n), kinds[i % 4], i, i + 1);
  }
  ck_assert_int_lt(n, TEXT);
  return text;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *list, int n) {
  qsort(list, (size_t)n, sizeof *list, by_value);
  return list[n / 2];
}

/* 5 ms are promised. */
START_TEST(parse_and_derive) {
  const fg_formula_texts texts = {.mask = "k <= p && (p - k) % 7 < 4 && p / 64 == k / 64",
                                  .score = score_text()};
  double ms[RUNS];
  for (int i = 0; i < RUNS; i++) {
    fg_formula f;
    double start = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    ck_assert_msg(fg_formula_read(&texts, &f, NULL) == FG_OK, "%s", fg_error());
    int slope = fg_tree_diff(&f.tree, f.score, fg_tree_name(&f.tree, FG_NAME_S));
    fg_tile_test tile = fg_formula_tile(&f);
    fg_visible keys = fg_formula_visible(&f, false), queries = fg_formula_visible(&f, true);
    ms[i] = 1e3 * (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    ck_assert(slope && tile.never && keys.end && queries.first);
    ck_assert(!f.tree.no_memory && !f.tree.too_large);
    fg_formula_free(&f);
  }
  double middle = median(ms, RUNS);
  printf("%d terms: parsed and derived in %.2f ms\n", TERMS, middle);
  ck_assert_msg(middle < 25, "%.1f ms", middle);
}
END_TEST

/* The processor's seconds of one compile: of the first plan of mma. */
static double compile_seconds(const char *pass, const char *more) {
  char words[TEXT + 128];
  compile_list all = {0};
  fg_variant *list;
  fg_gen *gen;
  int n;
  snprintf(words, sizeof words, "family=mma head_dim=64 pass=%s%s", pass, more);
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(words_variants(gen, words, "sm_90a", 1, &list, &n) == FG_OK, "%s", fg_error());
  ck_assert_msg(compile_add(&all, gen, n, list) == FG_OK, "%s", fg_error());
  ck_assert_msg(compile_run(nvrtc, &all, 1) == FG_OK, "%s", fg_error());
  ck_assert_msg(all.list->status == FG_OK, "%s", all.list->error);
  ck_assert_msg(fg_cubin_accept(all.list->name, &all.list->cubin) == FG_OK, "%s", fg_error());
  double seconds = all.list->processor_seconds;
  compile_free(&all);
  free(list);
  fg_gen_free(gen);
  return seconds;
}

/* Twice the plain kernel's time is promised. */
START_TEST(compile) {
  const char *pass = _i ? "backward" : "forward";
  char more[TEXT];
  double plain[3], large[3];
  snprintf(more, sizeof more, " score=%s", score_text());
  for (int i = 0; i < 3; i++) {
    plain[i] = compile_seconds(pass, "");
    large[i] = compile_seconds(pass, more);
  }
  double x = median(large, 3), y = median(plain, 3);
  printf("%s, %d terms: compiled in %.2f s, %.2f x the plain kernel's %.2f s\n", pass, TERMS, x,
         x / y, y);
  ck_assert_msg(x < 3 * y, "%.2f s and %.2f s", x, y);
}
END_TEST

int main(void) {
  const char *required = getenv("FLASHGEN_REQUIRE");
  int compiles = fg_nvrtc_load(&nvrtc) == FG_OK;
  if (!compiles) fprintf(stderr, "%s: nothing is compiled\n", fg_error());
  if (!compiles && required && strstr(required, "compile")) return EXIT_FAILURE;
  Suite *suite = suite_create("formula_cost");
  TCase *cases = tcase_create("cost");
  suite_add(cases, parse_and_derive);
  if (compiles) suite_loop(cases, compile, 2);
  suite_add_tcase(suite, cases);
  int failed = suite_run(suite);
  return failed || compiles ? failed : SKIP;
}
