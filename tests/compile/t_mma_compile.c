/* t_mma_compile.c - NVRTC takes every plan of the tensor-core families: no error, no warning, no
 * spill, on every arch family.
 *
 * Each plan of mma of each head dim is compiled for two of three arches, with masks, scores, biases
 * and dtypes in turn; those of wgmma for sm_90a, at three head dims more, those of backward with
 * two specs each. Of each mask and score that has a plan of wgmma with parts by keys this one is
 * compiled too: it has the fewest registers to spare. Each plan of decode is compiled for each
 * mask, score and layout that its loops know, for either arch in turn. Label compile: skipped where
 * there is no libnvrtc, unless FLASHGEN_REQUIRE names the label. */
#include "compile_case.h"
#include "suite.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2 };

static const fg_nvrtc *nvrtc;

static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a"};
static const char *const dims[] = {"8",   "40",  "64",      "96",  "128", "192/128", "192",
                                   "256", "264", "576/512", "104", "224", "128/192"};
enum { HOPPER = 1, ARCHS = sizeof archs / sizeof *archs, DIMS = 10, HOPPER_DIMS = DIMS + 3 };
enum {
  MMA = 2 * ARCHS * DIMS,
  PLANS = MMA + 2 * HOPPER_DIMS
}; /* cases: a dim, an arch and a pass */
_Static_assert(HOPPER_DIMS == sizeof dims / sizeof *dims, "dims");
enum { KEY_PARTS = FG_PLAN_FIELDS - 1 }; /* field of a plan */

/* What else a kernel may be asked for, an odd number so that the turns meet every plan and arch. */
static const char *const forward[] = {
    "",
    "mask=causal dtype=f16",
    "bias=true dtype=f16",
    "bias=true bias_dims=[b,k]",
    "bias=true bias_dtype=f32",
    "score=s+0.01*k",
    "score=s*x[h] inputs.x=f32[h] dtype=f16",
    "mask=causal bias=true",
    "mask=causal bias=true bias_dtype=f32",
    "score=softcap(30.0)",
    "mask=window(63,0) score=alibi",
    "mask=k<=p+hk dtype=f16",
    "mask=causal_top_left",
    "mask=chunked(48) bias=true dtype=f16",
    "score=2.0*tanh(s)",
    "score=relative(t) inputs.t=f32[h,nq+nk-1] dtype=f16",
    "mask=causal score=softcap(30.0)",
    "mask=causal score=s+0.01*k",
    "score=alibi",
    "score=s-0.02*abs(k-p)",
    "mask=document(ids) inputs.ids=i32[b,nk]",
    "mask=dilated(3)",
    "mask=causal score=s-0.1*(k-p)*(k-p) bias=true bias_dims=[b,k] bias_dtype=f32",
    "score=s+0.1*tanh(s)+0.2*tanh(0.2*s)+0.3*tanh(0.3*s)+tanh(4.0*s)",
    "score=s+0.1*tanh(s)+0.2*tanh(0.2*s)+0.3*tanh(0.3*s)+tanh(4.0*s)"
    "+exp(0.1*s)+exp(0.2*s)+exp(0.3*s)+sqrt(s*s)+sqrt(s*s+1.0)+abs(s"
    "+4.0)+abs(s-3.0)+sigmoid(s)+sigmoid(2.0*s)+max(s,4.0)+min(s,2.0)"};
static const char *const backward[] = {"dtype=f16",
                                       "mask=causal",
                                       "mask=causal bias=true",
                                       "mask=causal bias=grad",
                                       "bias=grad bias_dims=[h,q,k] dtype=f16 deterministic=true",
                                       "bias=grad bias_dims=[q]",
                                       "mask=causal bias=grad bias_dims=[h,k] bias_dtype=f32",
                                       "mask=causal deterministic=true",
                                       "mask=causal bias=true bias_dtype=f32 deterministic=true",
                                       "mask=causal score=softcap(9.0) bias=grad bias_dims=[h,q,k]",
                                       "score=relative(t) inputs.t=f32[h,nq+nk-1]grad "
                                       "deterministic=true",
                                       "mask=causal score=relative(t) "
                                       "inputs.t=f32[h,nq+nk-1]grad",
                                       "bias=grad bias_dims=[h,q,k]",
                                       "mask=window(63,0)",
                                       "mask=window(1023,5) score=softcap(30.0) dtype=f16"};

enum { FORWARD = sizeof forward / sizeof *forward, BACKWARD = sizeof backward / sizeof *backward };

static bool same_plan(const fg_variant *a, const fg_variant *b) {
  return !memcmp(&a->plan, &b->plan, sizeof a->plan);
}

/* Of each plan in the list one variant, the turn-th of those that have it; every third turn none:
 * arches begin at different ones. Of plans of wgmma with parts, all. */
static void pick(fg_gen *gen, int n, const fg_variant *list, int *turn, compile_list *all) {
  for (int i = 0; i < n; i++) {
    if (list[i].plan.value[KEY_PARTS] == 16) {
      ck_assert_msg(compile_add(all, gen, 1, &list[i]) == FG_OK, "%s", fg_error());
      continue;
    }
    int first = 1, count = 0;
    for (int j = 0; j < n; j++) {
      if (!same_plan(&list[i], &list[j])) continue;
      first &= j >= i;
      count++;
    }
    if (!first || ++*turn % 3 == 0) continue;
    int at = i;
    for (int skip = *turn % count; skip > 0; skip--)
      while (!same_plan(&list[i], &list[++at])) continue;
    ck_assert_msg(compile_add(all, gen, 1, &list[at]) == FG_OK, "%s", fg_error());
  }
}

/* Adds the variants of a spec to the list. A spec that the family leaves to another one, or whose
 * plans are all known to spill, has none. */
static void add_spec(fg_gen *gen, const char *words, const char *arch, fg_variant **list, int *n) {
  fg_variant *more;
  int count;
  fg_status status = words_variants(gen, words, arch, 0, &more, &count);
  ck_assert_msg(status == FG_OK || strstr(fg_error(), "no plan fits"), "%s", fg_error());
  if (status != FG_OK) count = 0;
  *list = realloc(*list, ((size_t)*n + (size_t)count + 1) * sizeof **list);
  ck_assert_ptr_nonnull(*list);
  if (count) memcpy(*list + *n, more, (size_t)count * sizeof *more);
  *n += count;
  free(more);
}

static void add_dim(fg_gen *gen, const char *family, const char *arch, int pass, int dim, int *turn,
                    compile_list *all) {
  fg_variant *list = NULL;
  int n = 0;
  for (int i = 0; i < (pass ? BACKWARD : FORWARD); i++) {
    char words[1024];
    snprintf(words, sizeof words, "family=%s pass=%s head_dim=%s %s", family,
             pass ? "backward" : "forward", dims[dim], pass ? backward[i] : forward[i]);
    add_spec(gen, words, arch, &list, &n);
  }
  pick(gen, n, list, turn, all);
  free(list);
}

/* Plans that are known to spill. Each must, so that its line goes when it no longer does. */
static const char *const known[] = {"attn_fwd-bf16-d576v512-alibi.mma-q64-k64-s1-w4.sm_100a"};

static bool is_known(const char *name) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i], name)) return true;
  return false;
}

/* Says what is wrong with one; 1 if something is. */
static int judge(const compile_one *one) {
  const bool good = one->status == FG_OK && fg_cubin_accept(one->name, &one->cubin) == FG_OK;
  if (good != is_known(one->name)) return 0;
  fprintf(stderr, "%s: %s\n", one->name,
          good                   ? "it is known to spill, and does not"
          : one->status == FG_OK ? fg_error()
                                 : one->error);
  return 1;
}

/* Compiles all, which is freed. */
static void expect_right(const char *what, compile_list *all) {
  int wrong = 0;
  ck_assert_msg(compile_run(nvrtc, all, THREADS) == FG_OK, "%s", fg_error());
  for (int i = 0; i < all->n; i++) wrong += judge(&all->list[i]);
  ck_assert_msg(!wrong, "%s: of %d variants %d are not right", what, all->n, wrong);
  compile_free(all);
}

/* One head dim of mma for an arch, or of wgmma, and a pass. Of a plan of mma two arches of three
 * have a variant. */
TEST_TENTH(every_plan_compiles, PLANS) {
  bool hopper = _i >= MMA;
  int pass = _i % 2, dim = _i / 2 % DIMS, arch = hopper ? HOPPER : _i / 2 / DIMS;
  if (hopper) dim = (_i - MMA) / 2;
  int turn = arch + 5 * dim,
      rounds = hopper && pass ? 3 : 1; /* it has few plans, each of many specs */
  compile_list all = {0};
  fg_gen *gen;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  for (int round = 0; round < rounds; round++)
    add_dim(gen, hopper ? "wgmma" : "mma", archs[arch], pass, dim, &turn, &all);
  fg_gen_free(gen);
  ck_assert_int_gt(all.n, 0);
  expect_right(archs[arch], &all);
}

static const char *const widths[] = {"64", "128", "256", "192/128"};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* Attention of few rows, of a width, for one of two archs: of each spec every second plan. Specs
 * are an odd number, so that the plans of each arch change with the widths. */
TEST_TENTH(every_plan_of_decode_compiles, 2 * WIDTHS) {
  const int arch = _i % 2, width = _i / 2;
  static const char *const specs[] = {
      "",
      "mask=causal",
      "mask=window(1023,0) dtype=f16",
      "mask=causal score=alibi kv_layout=paged",
      "score=softcap(30.0)",
      "mask=causal kv_layout=paged",
      "q_layout=packed kv_layout=packed mask=causal",
      "q_layout=packed kv_layout=cached batch_invariant=true",
      "mask=k<=p-h bias=true bias_dims=[h,k]",
      "kv_dtype=e4m3 mask=causal kv_layout=paged",
      "kv_dtype=e4m3 dtype=f16 score=softcap(30.0) kv_layout=cached"};
  enum { SPECS = sizeof specs / sizeof *specs };
  compile_list all = {0};
  fg_gen *gen;
  int turn = arch + width * SPECS;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  for (int spec = 0; spec < SPECS; spec++, turn++) {
    fg_variant *list = NULL;
    char words[256];
    int n = 0;
    snprintf(words, sizeof words, "family=decode head_dim=%s %s", widths[width], specs[spec]);
    add_spec(gen, words, archs[arch], &list, &n);
    for (int i = turn % 2; i < n; i += 2)
      ck_assert_msg(compile_add(&all, gen, 1, &list[i]) == FG_OK, "%s", fg_error());
    free(list);
  }
  fg_gen_free(gen);
  ck_assert_int_gt(all.n, SPECS);
  expect_right(archs[arch], &all);
}

/* Many rows beside a cache of e4m3: every plan of mma. */
static const char caches[] =
    "family=mma kv_dtype=e4m3 head_dim=128 mask=causal score=alibi kv_layout=paged;"
    "family=mma kv_dtype=e4m3 head_dim=64,256 dtype=f16 mask=window(63,0) q_layout=packed "
    "kv_layout=cached;";

TEST_TENTH(every_plan_of_caches_compiles, HOPPER + 1) {
  compile_list all = {0};
  fg_gen *gen;
  fg_variant *list;
  int n;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(words_variants(gen, caches, archs[_i], 0, &list, &n) == FG_OK, "%s", fg_error());
  ck_assert_int_gt(n, 9);
  ck_assert_msg(compile_add(&all, gen, n, list) == FG_OK, "%s", fg_error());
  free(list);
  fg_gen_free(gen);
  expect_right(archs[_i], &all);
}

/* Specs of which a plan, of dims or masks that the turns above may not meet, has spilled. */
static const char *const spilled[] = {
    "family=mma pass=backward head_dim=128/192 mask=window(63,0)",
    "family=wgmma head_dim=200,240 dtype=f16 mask=dilated(3)",
    "family=wgmma head_dim=72,80 mask=document(ids) inputs.ids=i32[b,nk]",
    "family=wgmma head_dim=128/192 mask=x[h,k]>0.0 inputs.x=f32[h,nk]",
    "family=wgmma dtype=e4m3 head_dim=128 mask=causal descale_block=128 slices=false,true",
    "family=wgmma dtype=e4m3 head_dim=64,256 mask=causal max_logit=true q_layout=packed "
    "kv_layout=packed",
    "family=wgmma dtype=e4m3 head_dim=128 mask=causal slices=true",
    "family=wgmma dtype=e4m3 head_dim=192 q_layout=packed kv_layout=packed",
    "family=mma kv_dtype=e4m3 head_dim=128 descale_block=64 block_q=128"};
enum { SPILLED = sizeof spilled / sizeof *spilled };

TEST_TENTH(none_spills_again, SPILLED) {
  compile_list all = {0};
  fg_gen *gen;
  fg_variant *list;
  int n;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(words_variants(gen, spilled[_i], archs[HOPPER], 0, &list, &n) == FG_OK, "%s",
                fg_error());
  ck_assert_int_gt(n, 0);
  ck_assert_msg(compile_add(&all, gen, n, list) == FG_OK, "%s", fg_error());
  free(list);
  fg_gen_free(gen);
  expect_right("what has spilled", &all);
}

TEST_TIMEOUT(300) /* of some dozens of compiles, beside whatever else runs */
TEST_BEGIN {
  if (fg_nvrtc_load(&nvrtc) != FG_OK) suite_skip("compile", fg_error());
}
