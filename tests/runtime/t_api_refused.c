/* t_api_refused.c - fg_select where compilers refuse plans: the next best one is taken, and what is
 * nobody else's to make good fails. */
#include "api_case.h"
#include "scratch.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *family_of(const fg_kernel *kernel) {
  return fg_plan_family(&kernel->variant.plan);
}

static char warned[4096]; /* all sentences */
static int warnings;
static void keep_warning(void *context, const char *sentence) {
  (void)context;
  size_t n = strlen(warned);
  snprintf(warned + n, sizeof warned - n, "%s\n", sentence);
  warnings++;
}

/* A context on templates of which a kernel with the condition does not compile; each compile is
 * counted. */
static fg_context *open_broken(const char *file, const char *condition, int no_fallback) {
  char from[] = "$(kernel(\"attn_fwd\")) {\n", to[256];
  fg_config config = api_config("other-cache");
  fg_context *context;
  snprintf(to, sizeof to, "%s  @ if %s then\n  broken;\n  @ end\n", from, condition);
  templates_change(file, from, to);
  setenv("FLASHGEN_TEMPLATES", "t", 1);
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  config.warn = keep_warning;
  config.no_fallback = no_fallback;
  GOOD(fg_open(&config, &context));
  return context;
}

#define MMA_FORWARD "attention/mma/forward.cut"

/* One plan of a family is refused: the next best is taken, with a warning, and the refused one is
 * not tried again for other shapes. */
TEST(test_next_best) {
  fg_context *context = api_open("cache");
  char first[FG_NAME_MAX], condition[128];
  const fg_kernel *usual = api_kernel(context, "head_dim=8 family=mma,simt");
  snprintf(first, sizeof first, "%s", usual->name);
  const int *v = usual->variant.plan.value;
  snprintf(condition, sizeof condition,
           "plan.block_q == %d and plan.block_kv == %d and plan.stages == %d and plan.warps == %d",
           v[1], v[2], v[3], v[4]);
  fg_close(context);
  context = open_broken(MMA_FORWARD, condition, 0);
  fg_op *op = api_define(context, "head_dim=8 family=mma,simt");
  fg_kernel *kernel = api_select(op, api_shape);
  ck_assert_str_eq(family_of(kernel), "mma");
  ck_assert_str_ne(kernel->name, first);
  ck_assert_int_eq(warnings, 1);
  ck_assert_msg(!strncmp(warned, "another plan is taken: attn_fwd-bf16-d8.mma-", 43) &&
                    strstr(warned, first) && strstr(warned, "refused it (exit 1)"),
                "%s", warned);
  api_counts(context, 0, 1, 1, 1);
  ck_assert_int_eq(api_compiled("compiler"), 2);
  verify_case which = {.shape = api_shape};
  api_verify(kernel, API_PADDED, &which);
  fg_shape other = api_shape;
  other.nk = 64;
  ck_assert_ptr_eq(api_select(op, other), kernel);
  ck_assert_ptr_eq(api_select(op, api_shape), kernel);
  ck_assert_int_eq(warnings, 1);
  ck_assert_int_eq(api_compiled("compiler"), 2);
  fg_close(context);
}

/* Those that compute a spec beside mma and simt. */
static void break_others(void) {
  static const char *const files[] = {"attention/wgmma/forward.cut",
                                      "attention/decode/forward.cut"};
  for (int i = 0; i < 2; i++)
    templates_change(files[i], "$(kernel(\"attn_fwd\")) {\n",
                     "$(kernel(\"attn_fwd\")) {\n  broken;\n");
}

/* All plans of the families are: then simt is what computes it, if it may. */
TEST(test_family_refused) {
  fg_kernel *kernel = NULL;
  break_others();
  fg_context *context = open_broken(MMA_FORWARD, "true", 0);
  fg_op *op = api_define(context, "head_dim=8");
  ck_assert_str_eq(family_of(api_select(op, api_shape)), "simt");
  int tried = warnings;
  ck_assert_int_gt(tried, 1); /* a warning for each */
  ck_assert_int_eq(api_compiled("compiler"), tried + 1);
  FAILS(FG_ECOMPILER, "refused it (exit 1)",
        fg_select(api_define(context, "head_dim=8 family=mma"), &api_shape, NULL, &kernel));
  ck_assert_ptr_null(kernel);
  fg_close(context);
  context = open_broken(MMA_FORWARD, "true", 1);
  FAILS(FG_ESPEC, "only simt computes it, and no_fallback is set",
        fg_select(api_define(context, "head_dim=8"), &api_shape, NULL, &kernel));
  fg_close(context);
}

/* None compiles: the last one's failure. What was refused for its text is kept with the reason: no
 * later call and no other process compiles it again. */
TEST(test_all_refused) {
  fg_kernel *untouched = (fg_kernel *)1, *kernel = untouched;
  templates_change("attention/simt/forward.cut", "$(kernel(\"attn_fwd\")) {\n",
                   "$(kernel(\"attn_fwd\")) {\n  broken;\n");
  break_others();
  fg_context *context = open_broken(MMA_FORWARD, "true", 0);
  fg_op *op = api_define(context, "head_dim=8");
  int plans = 0;
  for (int again = 1; again <= 2; again++) {
    FAILS(FG_ECOMPILER, "refused it (exit 1)", fg_select(op, &api_shape, NULL, &kernel));
    ck_assert_ptr_nonnull(strstr(fg_error(), "attn_fwd-bf16-d8.simt-"));
    if (!plans) plans = api_compiled("compiler");
    ck_assert_int_gt(plans, 2);
    ck_assert_int_eq(api_compiled("compiler"), plans);
    api_counts(context, (again - 1) * plans, 0, 0, 0);
  }
  fg_close(context);
  char said[1024];
  snprintf(said, sizeof said, "%s", fg_error());
  ck_assert_ptr_nonnull(strstr(said, "kernel.c:"));
  fg_config config = api_config("other-cache");
  GOOD(fg_open(&config, &context));
  FAILS(FG_ECOMPILER, said,
        fg_select(api_define(context, "head_dim=8"), &api_shape, NULL, &kernel));
  ck_assert_int_eq(api_compiled("compiler"), plans);
  api_counts(context, plans + 1, 0, 0, 0); /* and the list of plans */
  ck_assert_ptr_eq(kernel, untouched);
  fg_close(context);
}

/* A compile that fails as late as one may take ends the search of its family: one try of each. */
TEST(test_late) {
  fg_kernel *kernel = NULL;
  setenv("FLASHGEN_COMPILE_SECONDS", "1", 1);
  api_compiler("late", "compiler 1.0", "sleep 1; exit 1");
  fg_context *context = api_open("cache");
  FAILS(FG_ECOMPILER, "refused it (exit 1)",
        fg_select(api_define(context, "head_dim=8 family=mma,simt"), &api_shape, NULL, &kernel));
  ck_assert_int_eq(api_compiled("late"), 2);
  FAILS(FG_ECOMPILER, "attn_fwd-bf16-d16.mma-",
        fg_select(api_define(context, "head_dim=16 family=mma"), &api_shape, NULL, &kernel));
  ck_assert_int_eq(api_compiled("late"), 3);
  api_counts(context, 0, 0, 0, 0);
  fg_close(context);
}

#define TWO_PLANS "head_dim=8 family=mma block_q=64 block_kv=64"

/* Lateness is kept with the time that there was: more of it is another try. What a compiler says of
 * no line of the text is not kept. */
TEST_LOOP(test_late_again, 2) {
  static const char *const said[] = {"echo kernel.c:1:1: error: x", "echo something else"};
  fg_kernel *kernel = NULL;
  char script[128];
  snprintf(script, sizeof script, "%s; sleep 1.1; exit 1", said[_i]);
  setenv("FLASHGEN_COMPILE_SECONDS", "1", 1);
  api_compiler("late", "compiler 1.0", script);
  for (int n = 1; n <= 3; n++) {
    if (n == 3) setenv("FLASHGEN_COMPILE_SECONDS", "2", 1);
    fg_context *context = api_open("cache");
    FAILS(FG_ECOMPILER, "refused it (exit 1)",
          fg_select(api_define(context, TWO_PLANS), &api_shape, NULL, &kernel));
    const int compiled = api_compiled("late");
    ck_assert_msg(n == 3 ? compiled > 2 : compiled == (_i ? n : 1), "%d: %d", n, compiled);
    fg_close(context);
  }
}

/* What is no refusal of the compiler is nobody else's to make good. */
TEST(test_other_failures_stand) {
  fg_kernel *kernel = NULL;
  setenv("FLASHGEN_CC", "/nonexistent/cc", 1);
  fg_config config = api_config("cache");
  fg_context *context;
  config.warn = keep_warning;
  GOOD(fg_open(&config, &context));
  warnings = 0; /* of the variable */
  FAILS(FG_EENVIRONMENT, "/nonexistent/cc",
        fg_select(api_define(context, "head_dim=8"), &api_shape, NULL, &kernel));
  ck_assert_int_eq(warnings, 0);
  fg_close(context);
}

static void enter_templates(void) {
  templates_enter();
  api_reset();
}

TEST_FIXTURE(enter_templates, templates_leave)
