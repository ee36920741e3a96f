/* t_variants.c - the examples of specs/expressions.md, each as it stands
 * there, and the spec file of all named masks and scores. */
#define _GNU_SOURCE /* mkdtemp */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 8, SIZE = 1 << 16 };
static char page[SIZE], *example[EXAMPLES + 1];

/* The indented commands of the page, without "flashgen". */
static int find_examples(void) {
  FILE *file = fopen(FLASHGEN_SOURCE "/specs/expressions.md", "r");
  int n = 0;
  ck_assert_ptr_nonnull(file);
  page[fread(page, 1, SIZE - 1, file)] = 0;
  fclose(file);
  for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n"))
    if (!strncmp(line, "    flashgen ", 13) && n <= EXAMPLES) example[n++] = line + 13;
  return n;
}

/* As a shell runs it, with a cache of its own. */
static void passes(const char *words, const char *more) {
  char line[8192], cache[] = "/tmp/flashgen_variants_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(cache));
  snprintf(line, sizeof line,
           "env -u FLASHGEN_PLAN FLASHGEN_CACHE=%s %s %s %s --device host -q -j 1 > %s/out 2>&1 || "
           "{ cat %s/out; false; }; code=$?; rm -rf %s; exit $code",
           cache, FLASHGEN_PROGRAM, words, more, cache, cache, cache);
  ck_assert_msg(system(line) == 0, "%s", line);
}

START_TEST(page_examples) {
  ck_assert_int_eq(find_examples(), EXAMPLES);
  passes(example[_i], "--seed 1");
}
END_TEST

START_TEST(spec_file) {
  passes("check " FLASHGEN_SOURCE "/specs/variants.lua",
         "--seed 2 left=20 right=3 cap=20 width=30 b=2 h=4 hk=2 nq=113 nk=203");
}
END_TEST

/* The same on simt, and with one key/value head for each query head and rows that see nothing. */
START_TEST(spec_file_by_simt) {
  passes("check " FLASHGEN_SOURCE "/specs/variants.lua",
         "--seed 3 family=simt dtype=f16 head_dim=16 left=5 right=0 cap=3 width=9 b=1 h=3 hk=3 "
         "nq=70 nk=41");
}
END_TEST

/* Equal launches give equal bits: of a table by distance too, while buckets have no order. */
START_TEST(deterministic_gradients) {
  passes("check pass=backward head_dim=16 deterministic=true --plans all",
         "'score=softcap(relative(t), 4.0),alibi(u)' 'inputs.t=f32[h, nq + nk - 1] grad' "
         "'inputs.u=f32[h] grad' mask=causal --seed 4");
  passes(
      "check pass=backward head_dim=24/16 family=mma deterministic=true",
      "'score=s + u[q] * t[q - k + nk],s * t[h % 2 + k - q + nq] + c' 'inputs.t=bf16[2 * nq + 2 * "
      "nk + 300] grad' 'inputs.u=f32[q] grad' inputs.c=float 'mask=dilated(3),window(40, 9)' "
      "--seed 5");
  passes(
      "check pass=backward head_dim=16 deterministic=true 'inputs.t=f32[4 * nq + 4 * nk + 9] grad'",
      "'score=s + t[q + k],s + t[2 * q + 1] * t[3 * k],s + t[2 * nk + 3 * q - 2 * k],s + t[h + 2]' "
      "mask=full,causal --seed 6");
  passes(
      "check pass=backward head_dim=16 deterministic=true 'inputs.u=f32[b, 2 * nq, nq + nk] grad'",
      "'score=s + u[b, 2 * q + 1, q + k],softcap(s + u[b, q + nq - 1, q - k + nk], 3.0),s + u[0, "
      "k, h]' "
      "mask=causal --seed 7 b=2 nq=40 nk=53");
  passes("check pass=backward head_dim=16 deterministic=true 'inputs.t=f32[b, b, nq + nk] grad' "
         "'inputs.u=f32[h, h] grad'",
         "'score=s + t[b, b, k - q + nq - 1],s + u[h, h]' --seed 8 b=3 nq=20 nk=33");
  static const char refused[] =
      FLASHGEN_PROGRAM " list pass=backward head_dim=16 deterministic=true 'score=t5(t, 8, 64)' "
                       "'inputs.t=f32[h, 8] grad' 2>&1 | grep -q \"simt: deterministic=true: t's "
                       "gradient has no fixed "
                       "order: its index is not affine in q and k\"";
  ck_assert_int_eq(system(refused), 0);
}
END_TEST

/* An element for each pair: of one batch and of several, under each kind of score, of pairs that
 * are seen and of those that are not. */
START_TEST(dense_gradients) {
  passes("check pass=backward head_dim=16 family=mma,simt --plans 2",
         "'score=softcap(s + t[q, h, k], 4.0),s + c * t[q, h, k],s + t[q, h, k] / (2.0 + u[q, k] * "
         "u[q, k])' 'inputs.t=f32[q, h, k] grad' inputs.c=float 'inputs.u=f32[q, k]' "
         "'mask=dilated(3),causal' --seed 3");
  passes("check pass=backward head_dim=16 family=mma bias=grad 'bias_dims=[h,q,k],[q,k],[b,q,k]'",
         "'score=s,softcap(9.0)' 'mask=causal,window(20, 5)' deterministic=false,true --seed 4");
}
END_TEST

/* Two inputs of pairs, of which one may wait in shared memory, and one that multiplies it; and the
 * diagonals of every plan's tiles. */
START_TEST(inputs_of_pairs) {
  passes("check pass=forward,backward head_dim=16 family=mma --plans 2",
         "'score=s + x[q, k] * 2.0 + y[h, q, k],s + y[h, q, k] * z[k]' 'inputs.x=f32[q, k] grad' "
         "'inputs.y=bf16[h, q, k] grad' 'inputs.z=f32[k] grad' mask=full,causal --seed 5");
  passes("check pass=backward head_dim=16 family=mma --plans all",
         "'score=relative(t)' 'inputs.t=f32[h, nq + nk - 1] grad' mask=full,causal --seed 6");
}
END_TEST

/* Numbers of a table by distance, either way, of each type, behind a mask that hides what lies
 * beyond it; and their gradients' sums, where tiles' rows are taken in turns too. */
START_TEST(tables_by_distance) {
  static const char start[] = "check pass=backward family=wgmma head_dim=64,128";
  passes(start, "'score=relative(t),softcap(s + t[h, q - k + nk - 1], 5.0)' mask=full,causal "
                "'inputs.t=f32[h, nq + nk - 1] grad' --seed 7");
  passes(start, "'score=s + t[b, p - k]' 'inputs.t=bf16[b, 40] grad' 'mask=window(39, 0)' "
                "--seed 8");
  passes(start, "'score=s + t[max(0, min(30, p - k))]' 'inputs.t=f16[31] grad' mask=causal "
                "dtype=f16 --seed 9");
}
END_TEST

/* So long that kernels evaluate them in a loop. */
START_TEST(large_expressions) {
  char score[1024], mask[1024], words[4096];
  int n = sprintf(score, "s"), m = sprintf(mask, "k <= p && (p - k < 9");
  for (int i = 1; i < 24; i++) {
    n += sprintf(score + n, " + 0.%02d * %s", i, i % 2 ? "tanh(s)" : "float((k - p) % 7)");
    m += sprintf(mask + m, " || (p - k) %% %d == %d", i + 9, i);
  }
  snprintf(words, sizeof words,
           "'score=%s,%s + t[h, k - q + nq - 1] + u[b, k]' 'mask=dilated(3),%s)' "
           "'inputs.t=f32[h, nq + nk - 1] grad' 'inputs.u=f32[b, k] grad' scale=0.1 --seed 6",
           score, score, mask);
  passes("check head_dim=24 pass=forward,backward family=mma", words);
  passes("check head_dim=24 pass=backward family=mma deterministic=true bias=grad bias_dims=h,q,k",
         words);
}
END_TEST

/* A mask's first key or its end that is a choice, by head or where a tensor that is read may be
 * empty, stands in what a wgmma kernel makes of it as one value. */
START_TEST(choices_as_bounds) {
  passes(
      "check head_dim=64 family=wgmma",
      "'mask=k >= (h % 2 == 0 ? 20 : 60),starts[b, q] <= k && k < ends[b, q]' 'inputs.starts="
      "i32[b, q] monotone' 'inputs.ends=i32[b, q] monotone' --seed 7 b=2 h=4 hk=2 nq=113 nk=203");
  passes("check head_dim=64,128 family=wgmma",
         "'mask=k >= 5 && k < (h % 2 == 0 ? 190 : 290)' --seed 7 b=2 h=4 hk=2 nq=113 nk=303");
}
END_TEST

/* Ends of which only an interval is known, of one row too: a remainder, a choice by row. */
START_TEST(intervals_as_bounds) {
  passes("check head_dim=64 family=wgmma,mma",
         "'mask=k <= p && k >= p - p % 64,k > q % 64 && k < p,k >= (q < 64 ? 0 : q - 30),"
         "k >= (h % 2 == 0 ? 1 : p - 20) && k <= p' --seed 5 b=1 h=2 hk=1 nq=203 nk=113");
}
END_TEST

/* What is the same for a head is declared where a score is nothing else, or only a row's besides.
 */
START_TEST(scores_without_s) {
  passes("check head_dim=64 family=mma,simt --plans 2",
         "'score=float(b),slope[h] + q,float(k)' 'inputs.slope=f32[h]' mask=full,causal --seed 8 "
         "b=2 h=4 hk=2 nq=113 nk=203");
  passes("check head_dim=64 family=wgmma",
         "'score=float(b),slope[h] + q' 'inputs.slope=f32[h]' --seed 9 b=2 h=4 hk=2 nq=113 nk=203");
}
END_TEST

/* Elements that the score leaves out, whose indices lie outside of the tensor. */
START_TEST(guarded_indices) {
  passes("check head_dim=16 pass=backward family=simt,mma",
         "'score=k > 0 ? s + u[k - 1] : s,s + (abs(k - p) < 20 ? u[k - p + 20] * u[20] : 0.0)' "
         "'inputs.u=f32[max(nk, 40)] grad' --seed 5 b=1 h=2 hk=1 nq=113 nk=103");
}
END_TEST

/* Caps that change little or nothing, the launch's too: tanh is right however small its number is.
 */
START_TEST(large_caps) {
  static const char *const families[] = {"simt", "mma", "wgmma"};
  for (int i = 0; i < 3; i++) {
    char words[256];
    snprintf(words, sizeof words, "check head_dim=64 family=%s b=1 h=2 hk=1 nq=70 nk=90 scale=0.5",
             families[i]);
    passes(words, "'score=softcap(100.0),softcap(3000.0),softcap(100000000.0)' --seed 13");
    passes(words, "'score=softcap(c),s * tanh(s / c) * c' inputs.c=float c=10000000 dtype=f16 "
                  "mask=causal --seed 14");
    passes(words, "'score=softcap(c)' inputs.c=float c=0 --seed 14");
    passes(words, "'score=softcap(c)' inputs.c=float c=inf --seed 14");
    if (i == 2) break;
    strcat(words, " pass=backward");
    passes(words, "'score=softcap(c),softcap(1000000.0)' inputs.c=float c=10000000 dtype=f16 "
                  "--seed 15");
  }
}
END_TEST

/* An extent that has a comma in it. */
START_TEST(extents_of_functions) {
  passes("check head_dim=16 pass=forward,backward family=mma",
         "'score=s + t[h, max(q, k)]' 'inputs.t=f32[h, max(nq, nk)] grad' --seed 12 b=1 h=2 hk=1 "
         "nq=33 nk=20");
}
END_TEST

/* Ints are exact beyond 32 bits, which they pass between one key and the next: in a test and in
 * what is skipped by it, in scores, by increments too, and in indices, of a gradient too. */
START_TEST(exact_ints) {
  static const char *const families[] = {"wgmma", "mma", "simt"};
  for (int i = 0; i < 3; i++) {
    char words[256];
    snprintf(words, sizeof words, "check head_dim=32 family=%s b=1 h=2 hk=1 nq=113 nk=203",
             families[i]);
    passes(words,
           "'mask=k * 100000000 > 0,k + 2147483647 > p,-2147483648 < k,(q + 1) * 100000000 "
           "> k,(q + 1) * (k + 1) * 4 > 5,k * 30000000 <= 3000000000,abs(k - p) * 30000000 < "
           "4000000000,k * w <= p * w,k * 5000000000 + q < 300000000000' inputs.w=int "
           "w=1073741824 --seed 11");
    passes(words, "'score=s + 0.000000001 * float(k * 30000000),s + (k * w < 100000000000 ? 0.5 : "
                  "0.0)' inputs.w=int w=1073741823 mask=causal --seed 12");
    if (i == 0) continue; /* wgmma leaves quotients of 64 bits to mma */
    passes(words, "'mask=(p - k) * 40000000 % 7 == 0,k * 50000000 / 3 < q * 16000000' --seed 11");
    passes(words, "'score=s + 0.1 * float((p - k) * 40000000 % 5),s + t[h, k * 30000000 / "
                  "30000000],s + t[0, (k * 1000000007 + q) % nk]' 'inputs.t=f32[h, k]' mask=causal "
                  "--seed 12");
    strcat(words, " pass=backward");
    passes(words, "'score=s + t[h, k * 30000000 / 30000000],s * t[0, (k * 1000000007 + q) % nk]' "
                  "'inputs.t=f32[h, k] grad' 'mask=k * 30000000 <= 3000000000' --seed 13");
  }
  /* extents too, and the ways from an element of a gradient to its pairs */
  passes(
      "check head_dim=16 family=mma pass=backward",
      "'score=s + t[q * nk + k],s + u[h, q * 5 % 7, max(q, k) * 3]' 'inputs.t=f32[nq * nk] grad' "
      "'inputs.u=f32[h, 7, 3 * max(nq, nk)] grad' mask=causal --seed 14 b=1 h=2 hk=1 nq=19 "
      "nk=23");
  passes("check head_dim=16 family=simt pass=backward deterministic=true",
         "'score=s + t[k * 100000 + 3 - 100000 * q],s + t[2 * q - k * 99991 + nk * 100000]' "
         "'inputs.t=f32[nk * 100001] grad' 'mask=k >= q && k * 100000 < 2000000' --seed 14 b=1 h=1 "
         "hk=1 nq=19 nk=23");
}
END_TEST

/* A range of so many ends that what a row sees of it has no expression that a recipe can hold. */
START_TEST(many_ends) {
  passes("check head_dim=64 pass=forward,backward family=mma",
         "'mask=given(k >= p - 10, k == p - 10 || k == p)' --seed 10 b=2 h=4 hk=2 nq=113 nk=203");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("variants");
  TCase *cases = tcase_create("examples");
  tcase_set_timeout(cases, 300);
  suite_loop(cases, page_examples, EXAMPLES);
  suite_add(cases, spec_file);
  suite_add(cases, dense_gradients);
  suite_add(cases, inputs_of_pairs);
  suite_add(cases, tables_by_distance);
  suite_add(cases, large_expressions);
  suite_add(cases, deterministic_gradients);
  suite_add(cases, spec_file_by_simt);
  suite_add(cases, choices_as_bounds);
  suite_add(cases, intervals_as_bounds);
  suite_add(cases, scores_without_s);
  suite_add(cases, guarded_indices);
  suite_add(cases, large_caps);
  suite_add(cases, extents_of_functions);
  suite_add(cases, exact_ints);
  suite_add(cases, many_ends);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
