/* t_name_refused.c - what is no canonical name of a variant, and no arch. */
#include "spec/variant.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const char *const bad[] = {
    "attn_fwd-bf16-d64-window_0128_0.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-window_128.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-window_128_0_0.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-window_128_.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-window__0.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-softcap_30p0.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-softcap_30-window_1_0.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-windows_1_0.simt-q16-k32-w4.host",
    "",
    "attn_fwd",
    "attn_fwd-bf16-d64",
    "attn_fwd-bf16-d64.simt-q16-k32-w4",
    "attn_fwd-bf16-d64..host",
    "attn_fwd-bf16-d7.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d520.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d0.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d064.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d-64.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d4294967360.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d99999999999999999999.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d128v128.simt-q16-k32-w4.host", /* is d128 */
    "attn_fwd-bf16-d128v.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d128v0.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d128v7.simt-q16-k32-w4.host",
    "attn_fwd-f32-d64.simt-q16-k32-w4.host",
    "attn_fwd-d64-bf16.simt-q16-k32-w4.host",
    "attn_FWD-bf16-d64.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-full.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-causal-causal.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-bias_hqk-causal.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-bias.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-bias_.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-bias_qh.simt-q16-k32-w4.host", /* is bias_hq */
    "attn_fwd-bf16-d64-bias_hh.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-bias_1h.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64-bias_hqk-biasbf16.simt-q16-k32-w4.host", /* the default */
    "attn_fwd-bf16-d64-biasf32.simt-q16-k32-w4.host",           /* no bias */
    "attn_fwd-bf16-d64-biasgrad_hqk.simt-q16-k32-w4.host",      /* forward has no gradient */
    "attn_bwd-bf16-d64-bias_hqk-gradf32.simt-q16-k32-w4.host",
    "attn_bwd-bf16-d64-biasgrad_hqk-biasf32-gradf32.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64.tmma-q16-k32-w4.host",
    "attn_fwd-bf16-d64.simtx-q16-k32-w4.host",
    "attn_fwd-bf16-d64.simt-k32-q16-w4.host",
    "attn_fwd-bf16-d64.simt-q16-q16-w4.host",
    "attn_fwd-bf16-d64.simt-q-k32-w4.host",
    "attn_fwd-bf16-d64.simt-q0-k32-w4.host",
    "attn_fwd-bf16-d64.simt-q+16-k32-w4.host",
    "attn_fwd-bf16-d64.simt-q016-k32-w4.host",
    "attn_fwd-bf16-d64.simt-q1048577-k32-w4.host",
    "attn_fwd-bf16-d64.simt-q16-k32-w4-z1.host",
    "attn_fwd-bf16-d64.simt-q16-k32-w4-p2.host", /* of other families */
    "attn_fwd-bf16-d64.simt-q16-k32-w4.HOST",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.hosts",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.host ",
    " attn_fwd-bf16-d64.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.host.sm_80",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.sm_",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.sm_9",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.sm_1000",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.sm_90b",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.sm_90aa",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.compute_90",
    "attn_fwd-bf16-d64.simt-q16-k32-w4.sm_90a; rm -rf /",
    "../attn_fwd-bf16-d64.simt-q16-k32-w4.host",
    "attn_fwd-bf16-d64\n.simt-q16-k32-w4.host",
};

TEST_LOOP(other_names_are_refused, sizeof bad / sizeof *bad) {
  fg_variant v = {.arch = "untouched"};
  char why[300];
  int n = snprintf(why, sizeof why, "\"%s\" is not the name of a variant", bad[_i]);
  ck_assert_msg(fg_variant_parse(bad[_i], &v) == FG_EARGUMENT, "%s reads", bad[_i]);
  ck_assert_int_eq(strncmp(fg_error(), why, (size_t)n), 0);
  ck_assert(!fg_error()[n] || !strncmp(fg_error() + n, ": arch \"", 8));
  ck_assert_str_eq(v.arch, "untouched");
}

#define ARCHS                                                                                      \
  "host, sm_75, sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, sm_121a"

TEST(archs) {
  static const struct {
    const char *arch, *near;
  } wrong[] = {{"", NULL},
               {"Host", "host"},
               {"sm_", NULL},
               {"sm_8", NULL},
               {"sm_80x", "sm_80"},
               {"sm_90af", "sm_90a"},
               {"gfx90a", "sm_90a"},
               {"80", "sm_80"},
               {"sm_90", "sm_90a"},
               {"sm_100", "sm_100a"},
               {"sm_120", "sm_120a"},
               {"sm_999", NULL},
               {"sm_100f", "sm_100a"},
               {"sm_80a", "sm_80"},
               {"sm90", "sm_90a"}};
  for (int i = 0; i < fg_n_archs; i++) {
    ck_assert_int_eq(fg_arch_check(fg_archs[i].name), FG_OK);
    ck_assert_int_lt((int)strlen(fg_archs[i].name), FG_ARCH_MAX);
    if (i)
      ck_assert_ptr_eq(fg_arch_of(fg_archs[i].number / 10, fg_archs[i].number % 10), &fg_archs[i]);
  }
  ck_assert_ptr_null(fg_arch_of(99, 9));
  ck_assert_ptr_null(fg_arch_of(7, 0));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char why[300];
    const char *near = wrong[i].near;
    snprintf(why, sizeof why, "arch \"%s\" is not known; expected one of " ARCHS "%s%s%s",
             wrong[i].arch, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    ck_assert_int_eq(fg_arch_check(wrong[i].arch), FG_EARGUMENT);
    ck_assert_str_eq(fg_error(), why);
  }
}
