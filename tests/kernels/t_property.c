/* t_property.c - what holds of attention whatever the numbers: no oracle is asked. */
#include "base/random.h"
#include "launch_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fg_shape shape = {.b = 2, .h = 4, .hk = 2, .nq = 37, .nk = 77};

static void for_each(kernels made, void (*test)(const kernel *)) {
  for (int i = 0; i < made.n; i++) test(&made.list[i]);
  kernels_free(&made);
}

static void multiply(launch *l, const char *name, float factor) {
  float *x = launch_get(l, name);
  for (int64_t i = 0; i < launch_count(l, name); i++) x[i] *= factor;
  launch_set(l, name, x);
  free(x);
}

/* It has no backward, whose plans others are counted with. */
#define DECODE "family=decode "

static int is_simt(const kernel *k) { return !strcmp(fg_plan_family(&k->variant.plan), "simt"); }

/* Half a unit in the last place of numbers near 1, in the kernel's dtype. */
static float half_ulp(const kernel *k) {
  return fg_point_elem(&k->variant.point) == FG_ELEM_BF16 ? 0x1p-9f : 0x1p-12f;
}

/* Weights sum to 1. In float32 the rounding of the sum is far below that of a 16-bit o, and 1 comes
 * out exactly; each weight that tensor cores take is rounded, and so is a 16-bit o. */
static void ones(const kernel *k) {
  launch l = launch_new(k, shape, 1);
  const float sum = 0x1p-18f; /* what 77 weights, and their sum's inverse, are rounded by */
  float limit = is_simt(k) ? 0 : 4 * half_ulp(k); /* o below 1 may be 1 - half an ulp, twice */
  if (k->variant.point.o_dtype) limit = sum + (is_simt(k) ? 0 : half_ulp(k));
  launch_fill(&l, "v", 1);
  launch_run(&l, 1);
  float *o = launch_get(&l, "o");
  for (int64_t i = 0; i < launch_count(&l, "o"); i++)
    ck_assert_msg(fabsf(o[i] - 1) <= limit, "%s: o[%d] = %.9g", k->name, (int)i, (double)o[i]);
  free(o);
  launch_free(&l);
}

TEST_TENTH(test_ones, 1) {
  for_each(kernels_some(0, "head_dim=8,72/40 dtype=bf16,f16 mask=full,causal bias=true"), ones);
  for_each(kernels_first(DECODE "head_dim=8,72/40 dtype=bf16,f16 mask=full,causal bias=true"),
           ones);
  for_each(kernels_some(1, "head_dim=8,72/40 dtype=bf16,f16 mask=full,causal o_dtype=f32"), ones);
  for_each(kernels_first(DECODE "head_dim=8,72/40 dtype=bf16,f16 mask=full o_dtype=f32"), ones);
}

/* A row that sees one key is that key's value, to the bit, whatever the weight was before it was
 * divided by itself. */
static void alone(const kernel *k, fg_shape of) {
  launch l = launch_new(k, of, 8);
  multiply(&l, "q", 2);
  launch_run(&l, 0);
  float *o = launch_get(&l, "o"), *v = launch_get(&l, "v");
  int64_t dv = k->variant.point.dv, group = of.h / of.hk;
  for (int64_t i = 0; i < launch_count(&l, "o"); i++) {
    int64_t c = i % dv, h = i / dv % of.h, q = i / dv / of.h % of.nq, b = i / dv / of.h / of.nq;
    int64_t key = of.nk == 1 ? 0 : q; /* of of.nk == of.nq, the one in the same place */
    float expected = v[((b * of.nk + key) * of.hk + h / group) * dv + c];
    ck_assert_msg(o[i] == expected, "%s: row %d of head %d is %.9g and its one value %.9g", k->name,
                  (int)q, (int)h, (double)o[i], (double)expected);
  }
  free(o);
  free(v);
  launch_free(&l);
}

TEST_TENTH(test_alone, 4) {
  static const struct {
    const char *mask;
    int nk;
  } of[] = {{"full", 1}, {"window(0,0)", 77}};
  static const char *const dtypes[] = {"bf16", "f16"};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    fg_shape one = {.b = 2, .h = 4, .hk = 2, .nq = of[i].nk == 1 ? 37 : of[i].nk, .nk = of[i].nk};
    kernels made =
        kernels_of_families(_i, "dtype=%s head_dim=64 mask=%s", dtypes[_i % 2], of[i].mask);
    ck_assert_int_gt(made.n, 1);
    for (int j = 0; j < made.n; j++) alone(&made.list[j], one);
    kernels_free(&made);
  }
}

/* Rows of `width` values at index j of the middle axis go to (31 j + 5) % n. */
static void permute(launch *l, const char *name, int64_t outer, int64_t n, int64_t width) {
  float *from = launch_get(l, name), *to = launch_get(l, name);
  ck_assert_int_eq(outer * n * width, launch_count(l, name));
  for (int64_t i = 0; i < outer; i++)
    for (int64_t j = 0; j < n; j++)
      memcpy(to + (i * n + (31 * j + 5) % n) * width, from + (i * n + j) * width,
             (size_t)width * sizeof *to);
  launch_set(l, name, to);
  free(from);
  free(to);
}

/* The order of keys is of no consequence but for rounding: half an ulp of few elements of o; where
 * weights are rounded, they are so against another maximum of the row so far. */
static void permuted(const kernel *k) {
  launch a = launch_new(k, shape, 2), b = launch_new(k, shape, 2);
  permute(&b, "k", shape.b, shape.nk, shape.hk * k->variant.point.d);
  permute(&b, "v", shape.b, shape.nk, shape.hk * k->variant.point.dv);
  permute(&b, "bias", shape.h * shape.nq, shape.nk, 1);
  launch_run(&a, 1);
  launch_run(&b, 1);
  double o = launch_difference(&a, &b, "o"), lse = launch_difference(&a, &b, "lse");
  ck_assert_msg(o < (is_simt(k) ? 1e-4 : (double)half_ulp(k)) && lse < 1e-6, "%s: o %g, lse %g",
                k->name, o, lse);
  launch_free(&a);
  launch_free(&b);
}

TEST_TENTH(test_permuted, 1) {
  for_each(kernels_new("head_dim=40 dtype=bf16,f16 bias=true bias_dims=[h,q,k]"), permuted);
}

/* Adds 3 to the keys, values and biases of places behind `place`. */
static void change_behind(launch *l, int64_t place) {
  static const char *const names[] = {"k", "v", "bias"};
  for (int t = 0; t < 3; t++) {
    float *x = launch_get(l, names[t]);
    const fg_point *point = &l->kernel->variant.point;
    int64_t width = t == 2 ? 1 : shape.hk * (t ? point->dv : point->d);
    for (int64_t i = 0; i < launch_count(l, names[t]); i++)
      if (i / width % shape.nk > place) x[i] += 3;
    launch_set(l, names[t], x);
    free(x);
  }
}

/* No row sees a bit of what comes after it; the next row does. */
static void causal(const kernel *k) {
  launch a = launch_new(k, shape, 3);
  launch_run(&a, 1);
  float *before = launch_get(&a, "o");
  int64_t width = shape.h * k->variant.point.dv;
  for (int64_t row = 0; row < shape.nq; row += 5) {
    launch b = launch_new(k, shape, 3);
    change_behind(&b, row + shape.nk - shape.nq);
    launch_run(&b, 1);
    float *after = launch_get(&b, "o");
    int next_differs = 0;
    for (int64_t i = 0; i < launch_count(&a, "o"); i++) {
      int64_t q = i / width % shape.nq;
      int same = !memcmp(before + i, after + i, sizeof *before);
      ck_assert_msg(q > row || same, "%s: row %d sees what comes after row %d", k->name, (int)q,
                    (int)row);
      next_differs |= q == row + 1 && !same;
    }
    ck_assert_msg(next_differs || row + 1 == shape.nq, "%s: row %d does not see its own key",
                  k->name, (int)row + 1);
    free(after);
    launch_free(&b);
  }
  free(before);
  launch_free(&a);
}

TEST_TENTH(test_causal, 2) {
  for_each(kernels_some(_i, "head_dim=24 dtype=bf16,f16 mask=causal bias=true bias_dims=[q,k]"),
           causal);
  for_each(kernels_some(_i, DECODE "head_dim=24 dtype=bf16,f16 mask=causal bias=true "
                                   "bias_dims=[q,k]"),
           causal);
}

/* The order of blocks, warps and lanes is of no consequence, not even for rounding. */
static void ordered(const kernel *k) {
  launch a = launch_new(k, shape, 4), b = launch_new(k, shape, 4);
  launch_run(&a, 0);
  for (int n = 1; n < 4; n++) {
    launch_run(&b, launch_order(&b, n));
    launch_same_outputs(&a, &b);
  }
  launch_free(&a);
  launch_free(&b);
}

/* The designs have gradients of all dims. */
static const char *const ordered_dims[] = {"", "k", "b,q", "h,q,k"};

TEST_TENTH(test_ordered, sizeof ordered_dims / sizeof *ordered_dims) {
  const char *dims = ordered_dims[_i];
  for_each(kernels_some(_i,
                        "pass=forward,backward mask=causal bias=grad head_dim=16 bias_dims=[%s] "
                        "deterministic=true",
                        dims),
           ordered);
  for_each(kernels_some(_i, DECODE "mask=causal bias=true head_dim=16 bias_dims=[%s]", dims),
           ordered);
}

/* Scores of 4 q scaled by 1/4 are those of q, to the bit; so are the gradients but dq, a quarter.
 */
static void scaled(const kernel *k, const kernel *forward) {
  launch a = launch_new(k, shape, 5), b = launch_new(k, shape, 5);
  a.problem->args.scale = 0.25f, a.problem->args.given = FG_GIVEN_SCALE;
  b.problem->args.scale = 1, b.problem->args.given = FG_GIVEN_SCALE;
  multiply(&a, "q", 4); /* which is exact: q / 4 may be subnormal in float16 */
  if (forward) launch_take_forward(&a, forward);
  if (forward) launch_take_forward(&b, forward);
  launch_run(&a, 0);
  launch_run(&b, 0);
  if (launch_has(&b, "dq")) multiply(&b, "dq", 0.25f);
  launch_same_outputs(&a, &b);
  launch_free(&a);
  launch_free(&b);
}

TEST_TENTH(test_scaled, 2) {
  kernels decode = kernels_some(_i, DECODE "dtype=bf16,f16 head_dim=40 mask=causal");
  for (int i = 0; i < decode.n; i++) scaled(&decode.list[i], NULL);
  kernels_free(&decode);
  kernels forward = kernels_some(_i, "dtype=bf16,f16 head_dim=40 mask=causal");
  kernels backward =
      kernels_some(_i, "pass=backward dtype=bf16,f16 head_dim=40 mask=causal deterministic=true");
  ck_assert_int_eq(forward.n, backward.n);
  for (int i = 0; i < forward.n; i++) {
    scaled(&forward.list[i], NULL);
    scaled(&backward.list[i], &forward.list[i]);
  }
  kernels_free(&forward);
  kernels_free(&backward);
}

/* A negative scale is a positive one of -q, to the bit; so are the gradients, but dq is -dq. */
static void negated(const kernel *k, const kernel *forward) {
  launch a = launch_new(k, shape, 7), b = launch_new(k, shape, 7);
  a.problem->args.scale = -0.3f, a.problem->args.given = FG_GIVEN_SCALE;
  b.problem->args.scale = 0.3f, b.problem->args.given = FG_GIVEN_SCALE;
  multiply(&b, "q", -1);
  if (forward) launch_take_forward(&a, forward);
  if (forward) launch_take_forward(&b, forward);
  launch_run(&a, 0);
  launch_run(&b, 0);
  if (launch_has(&b, "dq")) multiply(&b, "dq", -1);
  launch_same_outputs(&a, &b);
  launch_free(&a);
  launch_free(&b);
}

TEST_TENTH(test_negated, 2) {
  static const char *const biases[] = {"false", "true bias_dims=[h,k]"};
  const char *bias = biases[_i % 2];
  kernels decode = kernels_some(_i, DECODE "head_dim=40 mask=causal bias=%s", bias);
  for (int i = 0; i < decode.n; i++) negated(&decode.list[i], NULL);
  kernels_free(&decode);
  kernels forward = kernels_some(_i, "dtype=bf16,f16 head_dim=40 mask=causal bias=%s", bias);
  kernels backward = kernels_some(
      _i, "pass=backward dtype=bf16,f16 head_dim=40 mask=causal deterministic=true bias=%s", bias);
  ck_assert_int_eq(forward.n, backward.n);
  for (int i = 0; i < forward.n; i++) {
    negated(&forward.list[i], NULL);
    negated(&backward.list[i], &forward.list[i]);
  }
  kernels_free(&forward);
  kernels_free(&backward);
}

/* No scale given is 1/sqrt(d). */
static void default_scale(const kernel *k) {
  launch a = launch_new(k, shape, 5), b = launch_new(k, shape, 5);
  a.problem->args.scale = 0.125f, a.problem->args.given = FG_GIVEN_SCALE;
  launch_run(&a, 0);
  launch_run(&b, 0);
  launch_same_outputs(&a, &b);
  launch_free(&a);
  launch_free(&b);
}

TEST_TENTH(test_default_scale, 1) {
  for_each(kernels_some(0, "pass=forward,backward head_dim=64/40 deterministic=true"),
           default_scale);
  for_each(kernels_first(DECODE "head_dim=64/40"), default_scale);
}

/* With dO = 0 a row's dS is p dLSE: it sums to dLSE, a bias of one number a row gets just that, and
 * values get nothing. Without dLSE there is nothing at all. */
TEST_TENTH(test_dlse, 2) {
  kernels forward = kernels_some(_i, "head_dim=40 mask=causal bias=true bias_dims=[b,h,q]");
  kernels made = kernels_some(
      _i, "pass=backward head_dim=40 mask=causal bias=grad bias_dims=[b,h,q] grad_dtype=f32");
  ck_assert_int_eq(forward.n, made.n);
  for (int i = 0; i < made.n; i++) {
    launch l = launch_new(&made.list[i], shape, 6);
    launch_take_forward(&l, &forward.list[i]);
    launch_fill(&l, "do", 0);
    launch_run(&l, 0);
    float *dbias = launch_get(&l, "dbias"), *dlse = launch_get(&l, "dlse"),
          *dv = launch_get(&l, "dv");
    for (int64_t j = 0; j < launch_count(&l, "dlse"); j++)
      ck_assert_msg(fabsf(dbias[j] - dlse[j]) <= 1e-5f * fabsf(dlse[j]), "dbias[%d] = %g, not %g",
                    (int)j, (double)dbias[j], (double)dlse[j]);
    for (int64_t j = 0; j < launch_count(&l, "dv"); j++) ck_assert_float_eq(dv[j], 0);
    free(dbias);
    fg_problem_drop(l.problem, fg_problem_find(l.problem, "dlse"));
    launch_run(&l, 0);
    dbias = launch_get(&l, "dbias");
    for (int64_t j = 0; j < launch_count(&l, "dbias"); j++) ck_assert_float_eq(dbias[j], 0);
    free(dbias);
    free(dlse);
    free(dv);
    launch_free(&l);
  }
  kernels_free(&made);
  kernels_free(&forward);
}

/* What a kernel writes in float32 is what another one of the plan rounds to the spec's dtype, and
 * few of its numbers are rounded already. */
static void rounds(const kernel *wide, const kernel *narrow, const char *name) {
  ck_assert_mem_eq(&wide->variant.plan, &narrow->variant.plan, sizeof wide->variant.plan);
  launch a = launch_new(wide, shape, 9), b = launch_new(narrow, shape, 9);
  launch_run(&a, 1);
  launch_run(&b, 1);
  float *exact = launch_get(&a, name), *rounded = launch_get(&b, name);
  const fg_elem elem = fg_point_elem(&wide->variant.point);
  const int64_t n = launch_count(&a, name);
  int64_t already = 0;
  for (int64_t i = 0; i < n; i++) {
    uint16_t slot;
    fg_elem_store(elem, &slot, 0, exact[i]);
    const float expected = fg_elem_load(elem, &slot, 0);
    ck_assert_msg(!(rounded[i] < expected || rounded[i] > expected),
                  "%s: %s[%d] = %.9g, and %.9g in 16 bits", wide->name, name, (int)i,
                  (double)exact[i], (double)rounded[i]);
    already += !(exact[i] < expected || exact[i] > expected);
  }
  ck_assert_msg(already < n / 4, "%s: %d of %d numbers of %s are rounded", wide->name, (int)already,
                (int)n, name);
  free(exact);
  free(rounded);
  launch_free(&a);
  launch_free(&b);
}

TEST_TENTH(test_rounds, 4) {
  static const char *const forward[] = {"o", NULL}, *const backward[] = {"dq", "dk", "dv", NULL};
  static const struct {
    const char *words, *in_f32;
    const char *const *names;
  } of[] = {{"head_dim=72/40", "o_dtype=f32", forward},
            {"head_dim=64 normalizer=logsoftmax", "o_dtype=f32", forward},
            {"head_dim=72/40 pass=backward deterministic=true", "dqkv_dtype=f32", backward},
            {"head_dim=160 pass=backward deterministic=true", "dqkv_dtype=f32", backward}};
  setenv("FLASHGEN_SWITCH", "background=0", 1); /* which sums delta in another order */
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    const char *dtype = _i % 2 ? "f16" : "bf16";
    kernels wide = kernels_of_families(_i, "dtype=%s %s %s", dtype, of[i].words, of[i].in_f32);
    kernels narrow = kernels_of_families(_i, "dtype=%s %s", dtype, of[i].words);
    ck_assert_int_gt(wide.n, 1);
    ck_assert_int_eq(wide.n, narrow.n);
    for (int j = 0; j < wide.n; j++)
      for (const char *const *name = of[i].names; *name; name++)
        rounds(&wide.list[j], &narrow.list[j], *name);
    kernels_free(&wide);
    kernels_free(&narrow);
  }
}

/* What holds of narrow heads, of dims of more than 256 by chance, d up to 576 and dv up to 512. */
TEST_TENTH(test_wide, 2) {
  uint64_t chance = (uint64_t)_i;
  const int d = 264 + 8 * (int)(fg_random_next(&chance) % 40);
  const int dv = 264 + 8 * (int)(fg_random_next(&chance) % 32);
  const char *dtype = _i % 2 ? "f16" : "bf16";
  for_each(kernels_of_families(_i, "head_dim=%d/%d dtype=%s mask=causal", d, dv, dtype), ones);
  for_each(kernels_of_families(_i, "head_dim=%d/%d dtype=%s mask=causal bias=true bias_dims=[q,k]",
                               d, dv, dtype),
           causal);
  for_each(
      kernels_of_families(_i, "head_dim=%d/%d dtype=%s bias=true bias_dims=[h,q,k]", d, dv, dtype),
      permuted);
  /* bf16: a quarter of a number is exact */
  kernels forward = kernels_of_families(_i, "head_dim=%d/%d mask=causal", d, dv);
  kernels backward =
      kernels_of_families(_i, "pass=backward head_dim=%d/%d mask=causal deterministic=true", d, dv);
  for (int i = 0; i < forward.n; i++) scaled(&forward.list[i], NULL);
  for (int i = 0; i < backward.n; i++) {
    scaled(&backward.list[i], &forward.list[0]);
    negated(&backward.list[i], &forward.list[0]);
  }
  kernels_free(&forward);
  kernels_free(&backward);
}
