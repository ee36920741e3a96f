/* t_dropout.c - what is dropped: it depends on the pair, the seed and the offset alone; and its
 * numbers themselves. The designs judge kernels that drop. */
#include "launch_case.h"
#include "reference/oracle_dropout.h"
#include "words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fg_shape shape = SHAPE(2, 4, 2, 70, 150, 0);

static launch new_launch(const kernel *k, float keep, const int64_t words[4]) {
  launch l = launch_new(k, shape, 1);
  launch_set_ints(&l, "seed", words);
  l.problem->args.given |= FG_GIVEN_KEEP, l.problem->args.keep = keep;
  return l;
}

/* Of the kernels, the one of that plan; NULL: there is none. */
static const kernel *of_plan(const kernels *made, const fg_plan *plan) {
  char wanted[FG_NAME_MAX], own[FG_NAME_MAX];
  fg_plan_name(plan, sizeof wanted, wanted);
  for (int i = 0; i < made->n; i++) {
    fg_plan_name(&made->list[i].variant.plan, sizeof own, own);
    if (!strcmp(own, wanted)) return &made->list[i];
  }
  return NULL;
}

static const char *const families[] = {"simt", "mma", "wgmma"};
enum { FAMILIES = sizeof families / sizeof *families };

/* All kept: the bits of the kernel without. Nothing kept: O is 0, and LSE as it was. */
TEST_TENTH(of_all_and_of_nothing, FAMILIES) {
  static const int64_t words[4] = {1, 2, 3, 4};
  const char *spec = "head_dim=64 mask=causal block_q=16,64,128";
  kernels with = kernels_new("%s family=%s dropout=true", spec, families[_i]);
  kernels without = kernels_new("%s family=%s", spec, families[_i]);
  int compared = 0;
  for (int i = 0; i < with.n; i++) {
    const kernel *twin = of_plan(&without, &with.list[i].variant.plan);
    if (!twin) continue;
    launch plain = launch_new(twin, shape, 1);
    launch all = new_launch(&with.list[i], 1, words), none = new_launch(&with.list[i], 0, words);
    launch_run(&plain, 1), launch_run(&all, 1), launch_run(&none, 1);
    launch_same_outputs(&all, &plain);
    launch_same(&none, &plain, "lse");
    float *o = launch_get(&none, "o");
    for (int64_t e = 0; e < launch_count(&none, "o"); e++) ck_assert_float_eq(o[e], 0);
    free(o);
    launch_free(&plain), launch_free(&all), launch_free(&none);
    compared++;
  }
  ck_assert_int_gt(compared, 0);
  kernels_free(&with);
  kernels_free(&without);
}

/* Each word of seed and offset counts, beyond 32 bits too; the high ones count together. */
TEST(of_other_words) {
  static const int64_t words[][4] = {{7, 0, 0, 0}, {8, 0, 0, 0}, {7, 1, 0, 0},
                                     {7, 0, 1, 0}, {7, 0, 0, 2}, {-7, -1, -1, -1}};
  enum { WORDS = sizeof words / sizeof *words };
  kernels made = kernels_of_families(0, "head_dim=64 dropout=true");
  for (int i = 0; i < made.n; i++) {
    launch l[WORDS];
    for (int n = 0; n < WORDS; n++) {
      l[n] = new_launch(&made.list[i], 0.5F, words[n]);
      launch_run(&l[n], 1);
      for (int m = 0; m < n; m++)
        ck_assert_msg(launch_difference(&l[n], &l[m], "o") > 0.1, "%s: %d and %d are alike",
                      made.list[i].name, n, m);
    }
    launch again = new_launch(&made.list[i], 0.5F, words[0]);
    launch_run(&again, 2);
    launch_same_outputs(&again, &l[0]);
    launch_free(&again);
    for (int n = 0; n < WORDS; n++) launch_free(&l[n]);
  }
  kernels_free(&made);
}

/* Names of what only other specs have are free for inputs. */
TEST(free_names) {
  kernels made = kernels_of_families(
      0, "pass=backward head_dim=64 mask=causal score=s+u[h]*r[h]*seed[h] inputs.u=f32[h]grad "
         "inputs.r=f32[h] inputs.seed=f32[h]");
  const verify_case which = {.shape = SHAPE(2, 4, 2, 70, 150, 0), .seed = 3};
  ck_assert_int_gt(made.n, 1);
  for (int i = 0; i < made.n; i++) kernel_verify(&made.list[i], &which);
  kernels_free(&made);
}

/* Known answers of Philox 4x32-10: mathematics.md section 3. */
TEST(known_answers) {
  static const uint32_t answers[][4] = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                        {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}};
  for (int i = 0; i < 2; i++) {
    const uint32_t word = i ? 0xffffffff : 0, key[2] = {word, word};
    uint32_t counter[4] = {word, word, word, word};
    oracle_philox(key, counter);
    ck_assert_mem_eq(counter, answers[i], sizeof counter);
  }
}

/* Of 10^7 pairs as many are kept as should be, within five deviations. */
TEST_TENTH(mean, 3) {
  static const float keeps[] = {0.9F, 0.5F, 0.1F};
  const oracle_dropout x = {{5, 6, 7, 8}, oracle_dropout_below(keeps[_i])};
  const double keep = x.below / 65536.0, n = 1e7;
  int64_t kept = 0;
  for (int64_t q = 0; q < 2500; q++)
    for (int64_t k = 0; k < 4000; k++) kept += oracle_dropout_keeps(&x, 3, q, k);
  ck_assert_double_lt(fabs((double)kept - keep * n), 5 * sqrt(n * keep * (1 - keep)));
}

TEST(refused) {
  fg_gen *gen;
  fg_variant *list = NULL;
  int n;
  GOOD(fg_gen_new(NULL, &gen));
  FAILS(
      FG_ESPEC, "normalizer=retention takes no dropout",
      words_variants(gen, "normalizer=retention dropout=true head_dim=64", "sm_90a", 0, &list, &n));
  free(list);
  fg_gen_free(gen);
  kernels made = kernels_first("head_dim=64 dropout=true family=simt");
  launch l = launch_new(&made.list[0], shape, 1);
  FAILS_AS(FG_EARGUMENT, "keep is missing: dropout=true needs it",
           fg_problem_run(l.problem, made.list[0].module));
  l.problem->args.given = FG_GIVEN_KEEP, l.problem->args.keep = 1.5F;
  FAILS_AS(FG_EARGUMENT, "keep = 1.5: expected a number from 0 to 1",
           fg_problem_run(l.problem, made.list[0].module));
  l.problem->args.keep = 0.5F;
  l.problem->args.seed.data = NULL;
  FAILS(FG_EARGUMENT, "seed", fg_problem_run(l.problem, made.list[0].module));
  launch_free(&l);
  kernels_free(&made);
}
