/* t_sink.c - a sink beside the scores of a row: -inf is none, of a row without keys it is all. Its
 * numbers are judged where those of all kernels are. */
#include "launch_case.h"
#include "words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 4 };
static const float sinks[HEADS] = {0.5f, -80.0f, 20.0f, -INFINITY};
static const fg_shape shape = SHAPE(2, HEADS, 2, 21, 45, 0);

/* The same bits as the kernel without a sink. */
TEST_TENTH(of_minus_infinity, 2) {
  kernels with = kernels_of_families(_i, "head_dim=64 mask=causal sink=true");
  kernels without = kernels_of_families(_i, "head_dim=64 mask=causal");
  ck_assert_int_eq(with.n, without.n);
  for (int i = 0; i < with.n; i++) {
    launch a = launch_new(&with.list[i], shape, 1), b = launch_new(&without.list[i], shape, 1);
    launch_fill(&a, "sink", -INFINITY);
    launch_run(&a, 1);
    launch_run(&b, 1);
    launch_same_outputs(&a, &b);
    launch_set(&a, "sink", sinks);
    launch_run(&a, 1);
    ck_assert_msg(launch_difference(&a, &b, "o") > 0.01, "%s", a.kernel->name);
    launch_free(&a);
    launch_free(&b);
  }
  kernels_free(&with);
  kernels_free(&without);
}

/* O is 0 and LSE the sink. */
static void check_empty(const launch *l, int64_t nq) {
  float *o = launch_get(l, "o"), *lse = launch_get(l, "lse");
  for (int64_t i = 0; i < launch_count(l, "o"); i++) ck_assert_float_eq(o[i], 0);
  for (int64_t i = 0; i < launch_count(l, "lse"); i++) {
    const float sink = sinks[i / nq % HEADS];
    const int same =
        isinf(sink) ? lse[i] == sink : fabsf(lse[i] - sink) < 1e-5f + 2e-7f * fabsf(sink);
    ck_assert_msg(same, "%s: %g, not %g", l->kernel->name, (double)lse[i], (double)sink);
  }
  free(o);
  free(lse);
}

/* All rows of a capped score have one reference, which is far above some sinks. */
static const char *const nothing[] = {"mask=full", "mask=k<q-1000",
                                      "mask=k<q-1000 score=softcap(30.0)",
                                      "mask=full score=softcap(30.0)"};
static const int64_t keys[] = {0, 45, 45, 0};

TEST_TENTH(of_rows_without_keys, 4) {
  kernels made = kernels_of_families(_i, "head_dim=64 sink=true %s", nothing[_i]);
  for (int i = 0; i < made.n; i++) {
    launch l = launch_new(&made.list[i], (fg_shape)SHAPE(2, HEADS, 2, 21, keys[_i], 0), 1);
    launch_set(&l, "sink", sinks);
    launch_run(&l, 1);
    check_empty(&l, 21);
    launch_free(&l);
  }
  kernels_free(&made);
}

/* Combine adds the sink that its parts do not have. */
TEST_TENTH(of_parts, 1) {
  kernels whole = kernels_first("family=simt head_dim=64 sink=true");
  kernels part = kernels_first("family=simt head_dim=64"),
          both = kernels_first("kernel=combine head_dim=64 sink=true");
  launch l = launch_new(whole.list, shape, 1);
  launch all = launch_new(
      both.list, (fg_shape){.size = sizeof(fg_shape), .parts = 2, .b = 2, .h = HEADS, .nq = 21}, 1);
  const int64_t n = launch_count(&l, "o"), rows = launch_count(&l, "lse");
  float *o = malloc(2 * (size_t)n * sizeof *o), *lse = malloc(2 * (size_t)rows * sizeof *lse);
  ck_assert(o && lse);
  for (int p = 0; p < 2; p++) { /* all keys, and none */
    launch of = launch_new(part.list, p ? (fg_shape)SHAPE(2, HEADS, 2, 21, 0, 0) : shape, 1);
    launch_run(&of, 1);
    float *own = launch_get(&of, "o"), *own_lse = launch_get(&of, "lse");
    for (int64_t i = 0; i < n; i++) o[p * n + i] = own[i];
    for (int64_t i = 0; i < rows; i++) lse[p * rows + i] = own_lse[i];
    free(own);
    free(own_lse);
    launch_free(&of);
  }
  launch_set(&l, "sink", sinks);
  launch_set(&all, "sink", sinks);
  launch_set(&all, "o_parts", o);
  launch_set(&all, "lse_parts", lse);
  launch_run(&l, 1);
  launch_run(&all, 1);
  ck_assert_double_lt(launch_difference(&all, &l, "o"), 5e-3);
  ck_assert_double_lt(launch_difference(&all, &l, "lse"), 1e-5);
  free(o);
  free(lse);
  launch_free(&l);
  launch_free(&all);
  kernels_free(&whole), kernels_free(&part), kernels_free(&both);
}

/* Of other normalisers no row has a sum that it could be in. */
TEST_LOOP(refused, 3) {
  static const char *const words[] = {"normalizer=none sink=true head_dim=64",
                                      "normalizer=retention sink=grad pass=backward head_dim=64",
                                      "kernel=combine normalizer=none sink=true head_dim=64"};
  fg_gen *gen;
  fg_variant *list = NULL;
  int n;
  GOOD(fg_gen_new(NULL, &gen));
  ck_assert_int_eq(words_variants(gen, words[_i], "sm_90a", 0, &list, &n), FG_ESPEC);
  ck_assert_msg(strstr(fg_error(), " takes no sink") != NULL, "%s", fg_error());
  free(list);
  fg_gen_free(gen);
}
