/* t_variants.c - commands of `flashgen check` that end well: the examples of own_formula.md, each
 * as it stands there, the spec file of all named masks and scores, and masks and scores that
 * families take in ways of their own. */
#define _GNU_SOURCE /* mkdtemp */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 8, SIZE = 1 << 16 };
static char page[SIZE], *example[EXAMPLES + 1];

/* The page's commands that name no device, without "flashgen". */
static int find_examples(void) {
  FILE *file = fopen(FLASHGEN_SOURCE "/runtime/docs/tutorials/own_formula.md", "r");
  int n = 0;
  ck_assert_ptr_nonnull(file);
  page[fread(page, 1, SIZE - 1, file)] = 0;
  fclose(file);
  for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n"))
    if (!strncmp(line, "flashgen check ", 15) && !strstr(line, "--device") && n <= EXAMPLES)
      example[n++] = line + 9;
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

TEST_TENTH(page_example, EXAMPLES) {
  ck_assert_int_eq(find_examples(), EXAMPLES);
  passes(example[_i], "--seed 1");
}

/* The file of all named masks and scores. */
#define SPECS_OF_64                                                                                \
  "check " FLASHGEN_SOURCE "/specs/variants.lua --seed 2 left=20 right=3 cap=20 width=30 b=1 h=2 " \
  "hk=1 nq=73 nk=140 --filter "
#define SPECS_OF_16                                                                                \
  "check " FLASHGEN_SOURCE                                                                         \
  "/specs/variants.lua --seed 3 family=simt dtype=f16 head_dim=16 left=5 "                         \
  "right=0 cap=3 width=9 b=1 h=3 hk=3 nq=70 nk=41 --filter "

static const char *const commands[] = {
    /* The spec file, in four parts by the pass and the first letter behind the head dim; then on
     * simt with one key/value head for each query head and rows that see nothing. */
    SPECS_OF_64 "'attn_fwd*-d64-c*'",
    SPECS_OF_64 "'attn_fwd*-d64[-.][!c]*'",
    SPECS_OF_64 "'attn_bwd*-d64-c*'",
    SPECS_OF_64 "'attn_bwd*-d64[-.][!c]*'",
    SPECS_OF_16 "'attn_fwd*-d16-c*'",
    SPECS_OF_16 "'attn_fwd*-d16[-.][!c]*'",
    SPECS_OF_16 "'attn_bwd*-d16-c*'",
    SPECS_OF_16 "'attn_bwd*-d16[-.][!c]*'",
    /* Equal launches give equal bits: of a table by distance too, while buckets have no order. */
    "check pass=backward head_dim=16 deterministic=true --plans all "
    "'score=softcap(relative(t), 4.0),alibi(u)' 'inputs.t=f32[h, nq + nk - 1] grad' "
    "'inputs.u=f32[h] grad' mask=causal --seed 4",
    "check pass=backward head_dim=24/16 family=mma deterministic=true 'score=s + u[q] * t[q"
    " - k + nk],s * t[h % 2 + k - q + nq] + c' 'inputs.t=bf16[2 * nq + 2 * nk + 300] grad' "
    "'inputs.u=f32[q] grad' inputs.c=float 'mask=dilated(3),window(40, 9)' --seed 5",
    "check pass=backward head_dim=16 deterministic=true 'inputs.t=f32[4 * nq + 4 * nk + 9] "
    "grad' 'score=s + t[q + k],s + t[2 * q + 1] * t[3 * k],s + t[2 * nk + 3 * q - 2 * k],s "
    "+ t[h + 2]' mask=full,causal --seed 6",
    "check pass=backward head_dim=16 deterministic=true 'inputs.u=f32[b, 2 * nq, nq + nk] "
    "grad' 'score=s + u[b, 2 * q + 1, q + k],softcap(s + u[b, q + nq - 1, q - k + nk], "
    "3.0),s + u[0, k, h]' mask=causal --seed 7 b=2 nq=40 nk=53",
    "check pass=backward head_dim=16 deterministic=true 'inputs.t=f32[b, b, nq + nk] grad' "
    "'inputs.u=f32[h, h] grad' 'score=s + t[b, b, k - q + nq - 1],s + u[h, h]' --seed 8 b=3"
    " nq=20 nk=33",
    /* An element for each pair: of one batch and of several, under each kind of score, of visible
       and of masked pairs. */
    "check pass=backward head_dim=16 family=mma,simt --plans 2 'score=softcap(s + t[q, h, "
    "k], 4.0),s + c * t[q, h, k],s + t[q, h, k] / (2.0 + u[q, k] * u[q, k])' "
    "'inputs.t=f32[q, h, k] grad' inputs.c=float 'inputs.u=f32[q, k]' "
    "'mask=dilated(3),causal' --seed 3",
    "check pass=backward head_dim=16 family=mma bias=grad 'bias_dims=[h,q,k],[q,k],[b,q,k]'"
    " 'score=s,softcap(9.0)' 'mask=causal,window(20, 5)' deterministic=false,true --seed 4",
    /* Two inputs of pairs, of which one may wait in shared memory, and one that multiplies it; and
       the diagonals of every plan's tiles. */
    "check pass=forward,backward head_dim=16 family=mma --plans 2 'score=s + x[q, k] * 2.0 "
    "+ y[h, q, k],s + y[h, q, k] * z[k]' 'inputs.x=f32[q, k] grad' 'inputs.y=bf16[h, q, k] "
    "grad' 'inputs.z=f32[k] grad' mask=full,causal --seed 5",
    "check pass=backward head_dim=16 family=mma --plans all 'score=relative(t)' "
    "'inputs.t=f32[h, nq + nk - 1] grad' mask=full,causal --seed 6",
    /* Numbers of a table by distance, either way, of each type, with a mask that hides pairs beyond
       it; and their gradients' sums. */
    "check pass=backward family=wgmma head_dim=64,128 'score=relative(t),softcap(s + t[h, q"
    " - k + nk - 1], 5.0)' mask=full,causal 'inputs.t=f32[h, nq + nk - 1] grad' --seed 7",
    "check pass=backward family=wgmma head_dim=64,128 'score=s + t[b, p - k]' "
    "'inputs.t=bf16[b, 40] grad' 'mask=window(39, 0)' --seed 8",
    "check pass=backward family=wgmma head_dim=64,128 'score=s + t[max(0, min(30, p - k))]'"
    " 'inputs.t=f16[31] grad' mask=causal dtype=f16 --seed 9",
    /* A mask's first key or its end that is a choice, by head or where a tensor that is read may be
       empty, stands in what a wgmma kernel makes of it as one value. */
    "check head_dim=64 family=wgmma 'mask=k >= (h % 2 == 0 ? 20 : 60),starts[b, q] <= k && "
    "k < ends[b, q]' 'inputs.starts=i32[b, q] monotone' 'inputs.ends=i32[b, q] monotone' "
    "--seed 7 b=2 h=4 hk=2 nq=113 nk=203",
    "check head_dim=64,128 family=wgmma 'mask=k >= 5 && k < (h % 2 == 0 ? 190 : 290)' "
    "--seed 7 b=2 h=4 hk=2 nq=113 nk=303",
    /* Ends of which only an interval is known, of one row too: a remainder, a choice by row. */
    "check head_dim=64 family=wgmma,mma 'mask=k <= p && k >= p - p % 64,k > q % 64 && k < "
    "p,k >= (q < 64 ? 0 : q - 30),k >= (h % 2 == 0 ? 1 : p - 20) && k <= p' --seed 5 b=1 "
    "h=2 hk=1 nq=203 nk=113",
    /* Scores without s: a value of a head is declared where a score is nothing else, or only a
       row's besides. */
    "check head_dim=64 family=mma,simt --plans 2 'score=float(b),slope[h] + q,float(k)' "
    "'inputs.slope=f32[h]' mask=full,causal --seed 8 b=2 h=4 hk=2 nq=113 nk=203",
    "check head_dim=64 family=wgmma 'score=float(b),slope[h] + q' 'inputs.slope=f32[h]' "
    "--seed 9 b=2 h=4 hk=2 nq=113 nk=203",
    /* Elements that the score leaves out, whose indices lie outside of the tensor. */
    "check head_dim=16 pass=backward family=simt,mma 'score=k > 0 ? s + u[k - 1] : s,s + "
    "(abs(k - p) < 20 ? u[k - p + 20] * u[20] : 0.0)' 'inputs.u=f32[max(nk, 40)] grad' "
    "--seed 5 b=1 h=2 hk=1 nq=113 nk=103",
    /* Inputs with names of the kernel's own tensors and numbers, given as inputs.NAME. */
    "check head_dim=16 family=simt,mma q_layout=packed kv_layout=paged 'mask=k < table[b]' "
    "'score=s + rows[h, min(max(p - k, 0), 31)]' 'inputs.table=i32[b]' "
    "'inputs.rows=f32[h, 32]' --seed 3",
    "check head_dim=16 family=simt,mma pass=backward shard=true 'score=s * pos_q[q] + whole_k[k]' "
    "'inputs.pos_q=f32[q] grad' 'inputs.whole_k=f32[k]' --seed 4",
    "check head_dim=16 family=simt,mma slices=true 'mask=kinds[k] == 0' 'inputs.kinds=i32[k]' "
    "--seed 5",
    "check head_dim=16 family=simt normalizer=logsoftmax 'score=s + u[k]' 'inputs.u=f32[k]' "
    "pass=forward,backward --seed 6",
    "check head_dim=16 family=simt dropout=true 'score=s * seed' inputs.seed=float inputs.seed=0.5 "
    "seed=7 --seed 7",
    /* An extent that has a comma in it. */
    "check head_dim=16 pass=forward,backward family=mma 'score=s + t[h, max(q, k)]' "
    "'inputs.t=f32[h, max(nq, nk)] grad' --seed 12 b=1 h=2 hk=1 nq=33 nk=20",
    /* Extents beyond 32 bits, and the ways from an element of a gradient to its pairs. */
    "check head_dim=16 family=mma pass=backward 'score=s + t[q * nk + k],s + u[h, q * 5 % "
    "7, max(q, k) * 3]' 'inputs.t=f32[nq * nk] grad' 'inputs.u=f32[h, 7, 3 * max(nq, nk)] "
    "grad' mask=causal --seed 14 b=1 h=2 hk=1 nq=19 nk=23",
    "check head_dim=16 family=simt pass=backward deterministic=true 'score=s + t[k * 100000"
    " + 3 - 100000 * q],s + t[2 * q - k * 99991 + nk * 100000]' 'inputs.t=f32[nk * 100001] "
    "grad' 'mask=k >= q && k * 100000 < 2000000' --seed 14 b=1 h=1 hk=1 nq=19 nk=23",
    /* A range of so many ends that what a row sees of it has no expression that a recipe can hold.
     */
    "check head_dim=64 pass=forward,backward family=mma 'mask=given(k >= p - 10, k == p - "
    "10 || k == p)' --seed 10 b=2 h=4 hk=2 nq=113 nk=203",
};
enum { COMMANDS = sizeof commands / sizeof *commands };

TEST_TENTH(command, COMMANDS) { passes(commands[_i], ""); }

/* The same of several families, of which wgmma has some alone. */
#define CAPPED "check head_dim=64 b=1 h=2 hk=1 nq=70 nk=90 scale=0.5 "
#define LARGE  "check head_dim=32 b=1 h=2 hk=1 nq=113 nk=203 "
static const struct {
  const char *words;
  bool has_wgmma;
} of_families[] = {
    /* Caps that change little or nothing, the launch's too: tanh is right however small its number
       is. */
    {CAPPED "'score=softcap(100.0),softcap(3000.0),softcap(100000000.0)' --seed 13", true},
    {CAPPED "'score=softcap(c),s * tanh(s / c) * c' inputs.c=float c=10000000 dtype=f16 "
            "mask=causal --seed 14",
     true},
    {CAPPED "'score=softcap(c)' inputs.c=float c=0 --seed 14", true},
    {CAPPED "'score=softcap(c)' inputs.c=float c=inf --seed 14", true},
    {CAPPED "pass=backward 'score=softcap(c),softcap(1000000.0)' inputs.c=float c=10000000 "
            "dtype=f16 --seed 15",
     false},
    /* Ints are exact beyond 32 bits, which they pass between one key and the next: in a test and in
       the tiles that it skips, in scores, by increments too, and in indices, of a gradient too.
       Quotients of 64 bits have no plan of wgmma. */
    {LARGE "'mask=k * 100000000 > 0,k + 2147483647 > p,-2147483648 < k,(q + 1) * 100000000 > k,"
           "(q + 1) * (k + 1) * 4 > 5' --seed 11",
     true},
    {LARGE "'mask=k * 30000000 <= 3000000000,abs(k - p) * 30000000 < 4000000000,k * w <= p * w,"
           "k * 5000000000 + q < 300000000000' inputs.w=int w=1073741824 --seed 11",
     true},
    {LARGE "'score=s + 0.000000001 * float(k * 30000000),s + (k * w < 100000000000 ? 0.5 : 0.0)' "
           "inputs.w=int w=1073741823 mask=causal --seed 12",
     true},
    {LARGE "'mask=(p - k) * 40000000 % 7 == 0,k * 50000000 / 3 < q * 16000000' --seed 11", false},
    {LARGE "'score=s + 0.1 * float((p - k) * 40000000 % 5),s + t[h, k * 30000000 / 30000000],"
           "s + t[0, (k * 1000000007 + q) % nk]' 'inputs.t=f32[h, k]' mask=causal --seed 12",
     false},
    {LARGE "pass=backward 'score=s + t[h, k * 30000000 / 30000000],s * t[0, (k * 1000000007 + q) "
           "% nk]' 'inputs.t=f32[h, k] grad' 'mask=k * 30000000 <= 3000000000' --seed 13",
     false},
};
enum { OF_FAMILIES = sizeof of_families / sizeof *of_families };

TEST_TENTH(command_of_family, 3 * OF_FAMILIES) {
  static const char *const families[] = {"family=simt", "family=mma", "family=wgmma"};
  if (_i % 3 < 2 || of_families[_i / 3].has_wgmma)
    passes(of_families[_i / 3].words, families[_i % 3]);
}

/* So long that kernels evaluate them in a loop. */
TEST_TENTH(large_expressions, 2) {
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
  passes(
      _i ? "check head_dim=24 pass=backward family=mma deterministic=true bias=grad bias_dims=h,q,k"
         : "check head_dim=24 pass=forward,backward family=mma",
      words);
}

/* Buckets of a distance have no order. */
TEST(no_fixed_order) {
  static const char refused[] =
      FLASHGEN_PROGRAM " list pass=backward head_dim=16 deterministic=true 'score=t5(t, 8, 64)' "
                       "'inputs.t=f32[h, 8] grad' 2>&1 | grep -q \"simt: deterministic=true: t's "
                       "gradient has no fixed "
                       "order: its index is not affine in q and k\"";
  ck_assert_int_eq(system(refused), 0);
}

TEST_TIMEOUT(300)
