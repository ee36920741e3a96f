/* t_mma_plans.c - the tensor-core family has a plan for every spec that simt takes, on every arch
 * that it knows: one whose registers and shared memory fit. */
#include "suite.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const archs[] = {"host",   "sm_80",   "sm_86",  "sm_89",
                                    "sm_90a", "sm_100a", "sm_120a"};
enum { ARCHS = sizeof archs / sizeof *archs, WIDEST = 576, WIDEST_V = 512, TENTHS = 10 };

/* What takes more of a kernel than the plain pass. */
static const char *const specs[] = {"pass=forward",
                                    "pass=forward bias=true",
                                    "pass=forward bias=true bias_dtype=f32",
                                    "pass=forward bias=true bias_dims=[h]",
                                    "pass=backward",
                                    "pass=backward bias=true",
                                    "pass=backward bias=true bias_dtype=f32",
                                    "pass=backward bias=grad bias_dims=[h]",
                                    "pass=backward deterministic=true",
                                    "pass=backward deterministic=true bias=grad"};
enum { SPECS = sizeof specs / sizeof *specs };

/* 1, and which, where the widths have no plan. */
static int missing(fg_gen *gen, const char *arch, const char *spec, int d, int dv) {
  char words[256];
  fg_variant *list;
  int n;
  snprintf(words, sizeof words, "family=mma mask=causal head_dim=%d/%d %s", d, dv, spec);
  fg_status status = words_variants(gen, words, arch, 1, &list, &n);
  free(list);
  if (status == FG_OK && n == 1) return 0;
  fprintf(stderr, "%s: %s: %s\n", arch, words, status == FG_OK ? "none" : fg_error());
  return 1;
}

/* Equal widths, and the widest beside any: those in between take no more. A tenth of the widths of
 * an arch. */
TEST_TENTH(every_spec_has_a_plan, ARCHS *TENTHS) {
  const char *arch = archs[_i / TENTHS];
  fg_gen *gen;
  int none = 0;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  for (int i = 0; i < SPECS; i++)
    for (int d = 8 * (1 + _i % TENTHS); d <= WIDEST; d += 8 * TENTHS) {
      if (d <= WIDEST_V) none += missing(gen, arch, specs[i], d, d);
      if (d != WIDEST_V) none += missing(gen, arch, specs[i], d, WIDEST_V);
      if (d < WIDEST_V) none += missing(gen, arch, specs[i], WIDEST, d);
    }
  fg_gen_free(gen);
  ck_assert_msg(!none, "%s: %d specs have no plan", arch, none);
}

/* What a compiler refused is no plan, and the reason says of which kernels that is. */
TEST(refused_plans) {
  static const struct {
    const char *name, *why;
  } refused[] = {
      {"attn_fwd-bf16-d128-causal.mma-q128-k64-s1-w4.sm_100a",
       "mma-q128-k64-s1-w4: NVRTC 13.0 spills in it: warps of 32 rows on sm_100"},
      {"attn_fwd-bf16-d40v64-prefix_64.mma-q128-k96-s2-w4.sm_90a",
       "mma-q128-k96-s2-w4: NVRTC 13.0 spills in it: warps of 32 rows with a V wider than K, whose "
       "loop over d leaves nothing to wait for; warps of 32 rows under a mask with holes"},
      {"attn_bwd-bf16-d256-biasgrad_bhqk.wgmma-q64-k128-s2-w16.sm_90a",
       "wgmma-q64-k128-s2-w16: NVRTC 13.0 spills in it: a dense gradient of which each pair has an "
       "element of its own, without a mask"},
      {"attn_bwd-bf16-d224-causal-softcap_30.wgmma-q64-k128-s2-w16.sm_90a",
       "wgmma-q64-k128-s2-w16: NVRTC 13.0 spills in it: a score that is more than s and terms "
       "beside it, and more than 208 columns of V"},
  };
  fg_gen *gen;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    fg_variant variant;
    fg_source *source;
    ck_assert_msg(fg_variant_parse(refused[i].name, &variant) == FG_OK, "%s", fg_error());
    ck_assert_int_eq(fg_gen_expand(gen, &variant, &source), FG_EARGUMENT);
    const char *at = strstr(fg_error(), refused[i].why);
    ck_assert_msg(at && !at[strlen(refused[i].why)], "%s", fg_error());
  }
  fg_gen_free(gen);
}

/* What wgmma's backward has no kernel for. */
TEST(left_to_mma) {
  static const struct {
    const char *words, *why;
  } left[] = {
      {"head_dim=256 score=s*u[h] inputs.u=f32[h]grad",
       "wgmma: leaves heads wider than 128 to mma where an input of a score that is more than s "
       "and terms beside it has a gradient"},
      {"head_dim=64 bias=grad deterministic=true",
       "wgmma: leaves deterministic=true to mma where an input has a gradient"},
  };
  fg_gen *gen;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
    char words[256];
    fg_variant *list;
    int n;
    snprintf(words, sizeof words, "family=wgmma pass=backward %s", left[i].words);
    ck_assert_int_eq(words_variants(gen, words, "sm_90a", 1, &list, &n), FG_ESPEC);
    ck_assert_msg(strstr(fg_error(), left[i].why), "%s", fg_error());
  }
  fg_gen_free(gen);
}
