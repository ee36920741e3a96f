/* t_api_zoo.c - contexts with zoos: what they take from one without compiler or Lua, and what
 * happens where compiling is switched off. */
#include "api_case.h"
#include "scratch.h"
#include "base/setting.h"
#include "templates.h"
#include "zoo/zoo_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define D8      "attn_fwd-bf16-d8.simt-q16-k32-w4.host"
#define D8_FOUR "attn_fwd-bf16-d8.simt-q4-k32-w4.host"

static void enter(void) {
  templates_enter();
  for (int i = 0; i < FG_SETTINGS; i++)
    if (i != FG_SET_TMPDIR && i != FG_SET_HOME) unsetenv(fg_settings[i].name);
}

static char warned[2048];
static int warnings;
static void keep_warning(void *context, const char *sentence) {
  (void)context;
  snprintf(warned, sizeof warned, "%s", sentence);
  warnings++;
}

/* A zoo of the words; all plans of each. */
static void make_zoo(const char *directory, const char *words) {
  fg_context *context = api_open("cache");
  fg_order order = FG_INIT(fg_order);
  order.directory = directory;
  order.plans = -1;
  GOOD(api_build(context, order, words, NULL));
  fg_close(context);
}

/* Contexts with zoos ------------------------------------------------------------------------ */

static fg_context *open_with(const char *zoo, const char *plan, int jit) {
  const fg_zoo directory = {.size = sizeof directory, .directory = zoo}, *zoos = &directory;
  fg_config config = api_config("other-cache");
  fg_context *context;
  config.zoos = &zoos, config.n_zoos = 1;
  config.plan = plan, config.jit = jit;
  config.warn = keep_warning;
  GOOD(fg_open(&config, &context));
  return context;
}

static void expect_zoo_hits(const fg_context *context, int n) {
  fg_counts counts = FG_INIT(fg_counts);
  fg_context_counts(context, &counts);
  ck_assert_int_eq((int)counts.zoo_hits, n);
}

/* Neither compiler nor templates are looked for. */
START_TEST(test_zoo) {
  make_zoo("zoo", "head_dim=8 family=simt");
  setenv("FLASHGEN_CC", "/nonexistent/cc", 1);
  setenv("FLASHGEN_TEMPLATES", "no-such-directory", 1);
  fg_context *context = open_with("zoo", NULL, 0);
  fg_op *op = api_define(context, "head_dim=8");
  fg_kernel *kernel = api_select(op, api_shape), *large;
  fg_info info = FG_INIT(fg_info);
  api_counts(context, 0, 1, 0, 1);
  expect_zoo_hits(context, 1);
  ck_assert(!context->gen && !context->identified);
  GOOD(fg_kernel_info(kernel, &info));
  ck_assert_str_eq(info.name, D8_FOUR); /* the cost model chooses: few rows */
  ck_assert_int_eq(info.from_cache, 1);
  large = api_select(op, (fg_shape)SHAPE(4, 16, 16, 4096, 4096, 0));
  ck_assert_str_eq(large->name, D8);
  api_counts(context, 0, 2, 0, 2);
  verify_case which = {.shape = api_shape};
  api_verify(kernel, API_PADDED, &which);
  FAILS(FG_ETEMPLATE, "no-such-directory",
        fg_select(api_define(context, "head_dim=16"), &api_shape, NULL, &kernel));
  FAILS(FG_ETEMPLATE, "no-such-directory", /* what the zoo has is not what the spec allows */
        fg_select(api_define(context, "head_dim=8 block_q=5"), &api_shape, NULL, &kernel));
  fg_close(context);
  ck_assert_int_ne(access("other-cache", F_OK), 0);
}
END_TEST

/* Zoos of another arch are of no use to the device, which is said once. */
START_TEST(test_zoo_of_another_arch) {
  const fg_zoo one = {.size = sizeof one, .directory = "one"},
               two = {.size = sizeof two, .directory = "two"}, *const zoos[] = {&one, &two};
  fg_config config = api_config("other-cache");
  fg_context *context;
  make_zoo("one", "head_dim=8 family=simt block_q=4");
  make_zoo("two", "head_dim=16 family=simt block_q=4");
  config.zoos = zoos, config.n_zoos = 2;
  config.warn = keep_warning;
  GOOD(fg_open(&config, &context));
  ck_assert_int_eq(warnings, 0);
  fg_close(context);
  config.device = "sm_80";
  GOOD(fg_open(&config, &context));
  ck_assert_int_eq(warnings, 1);
  ck_assert_str_eq(warned,
                   "no kernel of the zoos is for sm_80, the arch of sm_80; they are for host");
  fg_close(context);
  config.device = "sm_90";
  FAILS(FG_EARGUMENT, "arch \"sm_90\" is not known; expected one of host, sm_75, ",
        fg_open(&config, &context));
  ck_assert_ptr_nonnull(strstr(fg_error(), "(did you mean \"sm_90a\"?)"));
}
END_TEST

/* What a zoo lacks is compiled and kept as ever; the first zoo that has a kernel gives it. */
START_TEST(test_zoo_and_cache) {
  const fg_zoo one = {.size = sizeof one, .directory = "one"},
               two = {.size = sizeof two, .directory = "two"}, *const zoos[] = {&one, &two};
  fg_config config = api_config("other-cache");
  make_zoo("one", "head_dim=8 family=simt block_q=4");
  make_zoo("two", "head_dim=8,16 family=simt block_q=4");
  config.zoos = zoos, config.n_zoos = 2;
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  for (int warm = 0; warm < 2; warm++) {
    fg_context *context;
    GOOD(fg_open(&config, &context));
    api_kernel(context, "head_dim=8");
    api_kernel(context, "head_dim=16");
    expect_zoo_hits(context, 2);
    ck_assert(!context->identified);
    api_kernel(context, "head_dim=24 block_q=4");
    expect_zoo_hits(context, 2);
    api_counts(context, 2 * warm, 3, !warm, 3);
    fg_close(context);
  }
  ck_assert_int_eq(api_compiled("compiler"), 1);
}
END_TEST

START_TEST(test_zoo_forced) {
  make_zoo("zoo", "head_dim=8 family=simt");
  make_zoo("part", "head_dim=8 family=simt block_q=16");
  fg_context *context = open_with("zoo", "simt-q16-*", 0);
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8);
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
  context = open_with("part", "simt-q4-*", 0); /* not there, and can be had */
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8_FOUR);
  api_counts(context, 0, 1, 1, 1);
  expect_zoo_hits(context, 0);
  fg_close(context);
  setenv("FLASHGEN_TEMPLATES", "no-such-directory", 1);
  context = open_with("part", "simt-q4-*", 0); /* it cannot be had: as usual */
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8);
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
}
END_TEST

/* The family's own reason, where a forced plan names a family that does not apply. */
START_TEST(test_forced_refused) {
  fg_kernel *kernel = NULL;
  make_zoo("zoo", "head_dim=8 family=simt");
  templates_replace("attention/simt/forward.lua", "return true",
                    "return false, \"it is out of order\"");
  setenv("FLASHGEN_TEMPLATES", "t", 1);
  fg_context *context = open_with("zoo", "simt-q99-*", 0);
  fg_op *op = api_define(context, "head_dim=8");
  FAILS(FG_EARGUMENT, "attn_fwd-bf16-d8: the plan simt-q99-* is forced and does not apply: ",
        fg_select(op, &api_shape, NULL, &kernel));
  ck_assert_ptr_nonnull(strstr(fg_error(), "simt: it is out of order"));
  fg_close(context);
  context = open_with("zoo", "*-q99-*,sim-*", 0); /* it names no family: as usual */
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8_FOUR);
  fg_close(context);
}
END_TEST

/* A kernel that is no good is looked for elsewhere, with a warning; a zoo that is not is an error.
 */
START_TEST(test_bad_zoo) {
  fg_zoo missing = FG_INIT(fg_zoo);
  const fg_zoo *zoos = &missing;
  fg_config config = api_config("other-cache");
  fg_context *untouched = (fg_context *)1, *context = untouched;
  make_zoo("zoo", "head_dim=8 family=simt block_q=4");
  ck_assert_int_eq(truncate("zoo/" D8_FOUR ".so", 100), 0);
  for (int warm = 0; warm < 2; warm++) {
    context = open_with("zoo", NULL, 0);
    api_kernel(context, "head_dim=8");
    api_counts(context, warm, 1, !warm, 1);
    expect_zoo_hits(context, 0);
    ck_assert_msg(strstr(warned, "a kernel of a zoo cannot be used: zoo/" D8_FOUR ".so is damaged"),
                  "%s", warned);
    ck_assert_int_eq(warnings, 1 + warm);
    fg_close(context);
  }
  config.zoos = &zoos, config.n_zoos = 1;
  context = untouched;
  missing.directory = "no-zoo";
  FAILS(FG_EIO, "the zoo no-zoo cannot be read", fg_open(&config, &context));
  missing.directory = NULL;
  FAILS(FG_EARGUMENT, "a zoo has neither a directory nor a place in memory",
        fg_open(&config, &context));
  missing.size = 0;
  FAILS(FG_EARGUMENT, "zoo: its size is 0", fg_open(&config, &context));
  zoos = NULL;
  FAILS(FG_EARGUMENT, "config: zoos[0] is NULL", fg_open(&config, &context));
  config.n_zoos = -1;
  FAILS(FG_EARGUMENT, "config: n_zoos is -1", fg_open(&config, &context));
  config.zoos = NULL, config.n_zoos = 1;
  FAILS(FG_EARGUMENT, "zoos is NULL", fg_open(&config, &context));
  ck_assert_ptr_eq(context, untouched);
}
END_TEST

/* The recipe of the zoo's only kernel is none, under a checksum that fits. */
START_TEST(test_bad_recipe) {
  static char text[1 << 15];
  char digest[FG_DIGEST_HEX];
  make_zoo("zoo", "head_dim=8 family=simt block_q=4");
  FILE *file = fopen("zoo/manifest.txt", "r+");
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  memcpy(strstr(text, "\nlaunch "), "\nlunch  ", 8);
  char *end = strstr(text, "checksum ");
  fg_zoo_digest(text, (size_t)(end - text), digest);
  sprintf(end, "checksum %s\n", digest);
  rewind(file);
  fputs(text, file);
  fclose(file);
  fg_context *context = open_with("zoo", NULL, 0);
  api_kernel(context, "head_dim=8");
  expect_zoo_hits(context, 0);
  ck_assert_int_eq(warnings, 1);
  ck_assert_msg(strstr(warned,
                       "a kernel of a zoo cannot be used: zoo/manifest.txt is damaged: " D8_FOUR
                       ": recipe line "),
                "%s", warned);
  fg_close(context);
}
END_TEST

/* The zoo's only kernel as it was called while calls stood in names as hashes. */
START_TEST(test_names_from_before) {
  static char text[1 << 15], made[1 << 15];
  char digest[FG_DIGEST_HEX], before[FG_NAME_MAX], file[FG_NAME_MAX + 16];
  static const char now[] = "attn_fwd-bf16-d8-window_9_0";
  make_zoo("zoo", "head_dim=8 family=simt block_q=4 mask=window(9,0)");
  fg_context *context = open_with("zoo", NULL, -1);
  fg_op *op = api_define(context, "head_dim=8 mask=window(9,0)");
  fg_point_name_before(&op->point, sizeof before, before);
  fg_close(context);
  FILE *manifest = fopen("zoo/manifest.txt", "r+");
  text[fread(text, 1, sizeof text - 1, manifest)] = 0;
  char *at = strstr(text, now);
  ck_assert_ptr_nonnull(at);
  int n = snprintf(made, sizeof made, "%.*s%s%s", (int)(at - text), text, before, at + strlen(now));
  char *end = strstr(made, "checksum ");
  fg_zoo_digest(made, (size_t)(end - made), digest);
  sprintf(end, "checksum %s\n", digest);
  ck_assert_int_lt(n, (int)sizeof made);
  rewind(manifest);
  fputs(made, manifest);
  fclose(manifest);
  snprintf(file, sizeof file, "zoo/%.100s.simt-q4-k32-w4.host.so", before);
  ck_assert_int_eq(rename("zoo/attn_fwd-bf16-d8-window_9_0.simt-q4-k32-w4.host.so", file), 0);
  context = open_with("zoo", NULL, -1);
  api_kernel(context, "head_dim=8 mask=window(9,0)");
  expect_zoo_hits(context, 1);
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
}
END_TEST

/* No compiling ------------------------------------------------------------------------------- */

static fg_context *open_jit(int jit) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.jit = jit;
  GOOD(fg_open(&config, &context));
  return context;
}

START_TEST(test_jit_off) {
  fg_kernel *kernel = NULL;
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  setenv("FLASHGEN_JIT", "0", 1);
  fg_context *context = open_jit(0);
  FAILS(FG_EENVIRONMENT,
        "the plans of attn_fwd-bf16-d8 for host: no zoo and no cache has it, and compiling is "
        "switched off (FLASHGEN_JIT=0); nor is there another like it",
        fg_select(api_define(context, "head_dim=8 family=simt"), &api_shape, NULL, &kernel));
  api_counts(context, 0, 0, 0, 0);
  fg_close(context);
  context = open_jit(1); /* the API goes first */
  api_kernel(context, "head_dim=8 family=simt");
  api_counts(context, 0, 1, 1, 1);
  fg_close(context);
  context = open_jit(0);
  fg_op *op = api_define(context, "head_dim=8 family=simt");
  api_select(op, api_shape); /* what is there is there */
  api_counts(context, 2, 1, 0, 1);
  FAILS(FG_EENVIRONMENT, D8 ": no zoo and no cache has it, ", /* another plan, listed already */
        fg_select(op, &(fg_shape)SHAPE(4, 16, 16, 4096, 4096, 0), NULL, &kernel));
  ck_assert_msg(strstr(fg_error(), "the nearest there are: " D8_FOUR), "%s", fg_error());
  ck_assert_ptr_null(kernel);
  ck_assert_int_eq(api_compiled("compiler"), 1);
  fg_close(context);
}
END_TEST

/* Zoos alone: the cache has the kernel, and it is not taken. */
START_TEST(test_zoos_alone) {
  fg_kernel *kernel = NULL;
  make_zoo("zoo", "head_dim=16 family=simt block_q=4");
  fg_context *context = open_jit(1);
  api_kernel(context, "head_dim=8 block_q=4");
  fg_close(context);
  context = open_jit(-1);
  FAILS(FG_EENVIRONMENT,
        "the plans of attn_fwd-bf16-d8 for host: no zoo has it, and jit of the context is -1: "
        "zoos alone; nor is there another like it",
        fg_select(api_define(context, "head_dim=8 block_q=4"), &api_shape, NULL, &kernel));
  api_counts(context, 0, 0, 0, 0);
  fg_close(context);
  const fg_zoo zoo = {.size = sizeof zoo, .directory = "zoo"}, *const zoos = &zoo;
  fg_config config = api_config("cache"); /* of the kernel above */
  config.zoos = &zoos, config.n_zoos = 1, config.jit = -1;
  GOOD(fg_open(&config, &context));
  api_kernel(context, "head_dim=16 block_q=4");
  FAILS(FG_EENVIRONMENT, "no zoo has it, and jit of the context is -1: zoos alone; the nearest",
        fg_select(api_define(context, "head_dim=8 block_q=4"), &api_shape, NULL, &kernel));
  ck_assert_ptr_null(kernel);
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
}
END_TEST

START_TEST(test_jit_off_zoo) {
  fg_kernel *kernel = NULL;
  make_zoo("zoo", "head_dim=8,16,128 family=simt block_q=16 mask=full,causal");
  fg_context *context = open_with("zoo", NULL, -1);
  api_kernel(context, "head_dim=8");
  FAILS(FG_EENVIRONMENT, "the plans of attn_fwd-bf16-d120 for host: no zoo has it, ",
        fg_select(api_define(context, "head_dim=120"), &api_shape, NULL, &kernel));
  ck_assert_msg(strstr(fg_error(), "there are: attn_fwd-bf16-d128-causal.simt-q16-k32-w4.host, "
                                   "attn_fwd-bf16-d128.simt-q16-k32-w4.host, attn_fwd-bf16-d16"),
                "%s", fg_error());
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
  ck_assert_int_eq(truncate("zoo/" D8 ".so", 100), 0);
  context = open_with("zoo", NULL, -1);
  FAILS(FG_EENVIRONMENT, "a kernel of a zoo cannot be used (zoo/" D8 ".so is damaged",
        fg_select(api_define(context, "head_dim=8"), &api_shape, NULL, &kernel));
  ck_assert_msg(strstr(fg_error(), "), and elsewhere: " D8 ": no zoo has it, "), "%s", fg_error());
  fg_close(context);
}
END_TEST

/* simt ---------------------------------------------------------------------------------------- */

START_TEST(test_slow) {
  static const fg_shape at_limit = SHAPE(1, 1, 1, 1 << 14, 1 << 14, 0),
                        above = SHAPE(2, 1, 1, 1 << 14, 1 << 14, 0),
                        longer = SHAPE(1, 1, 1, 1 << 16, 1 << 16, 0);
  fg_config config = api_config("cache");
  fg_context *context;
  config.warn = keep_warning;
  GOOD(fg_open(&config, &context));
  api_select(api_define(context, "head_dim=8 block_q=16"), at_limit);
  api_select(api_define(context, "head_dim=8 block_q=16 mask=causal"), above);
  api_select(api_define(context, "head_dim=8 block_q=16 family=simt"), longer);
  api_select(api_define(context, "head_dim=8"), longer); /* tensor cores compute it */
  ck_assert_int_eq(warnings, 0);
  api_select(api_define(context, "head_dim=8 block_q=16"), above);
  ck_assert_int_eq(warnings, 1);
  ck_assert_msg(strstr(warned, "attn_fwd-bf16-d8: only simt, which uses no tensor cores, computes "
                               "it: 5.4e+08 pairs of rows and keys take long"),
                "%s", warned);
  api_select(api_define(context, "head_dim=8 block_q=16"), longer);
  ck_assert_int_eq(warnings, 1); /* once a context */
  fg_close(context);
}
END_TEST

/* Tensors that tensor cores do not take are as slow. */
START_TEST(test_slow_tensors) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.warn = keep_warning;
  GOOD(fg_open(&config, &context));
  api_select(api_define(context, "head_dim=8"), (fg_shape)SHAPE(2, 1, 1, 1 << 14, 1 << 14, 2));
  ck_assert_int_eq(warnings, 1);
  ck_assert_msg(strstr(warned, "attn_fwd-bf16-d8: only simt, which uses no tensor cores"), "%s",
                warned);
  fg_close(context);
}
END_TEST

/* A family joins a zoo unnamed, simt does not join with it; and it is what the zoo gives, unless
 * the tensors want what the zoo lacks. */
START_TEST(test_zoo_of_mma) {
  fg_kernel *kernel = NULL;
  make_zoo("zoo", "head_dim=8 block_q=64 block_kv=64");
  setenv("FLASHGEN_CC", "/nonexistent/cc", 1);
  setenv("FLASHGEN_TEMPLATES", "no-such-directory", 1);
  fg_context *context = open_with("zoo", NULL, 0);
  fg_op *op = api_define(context, "head_dim=8");
  kernel = api_select(op, api_shape);
  ck_assert_msg(!strncmp(kernel->name, "attn_fwd-bf16-d8.mma-q64-k64-", 29), "%s", kernel->name);
  expect_zoo_hits(context, 1);
  verify_case which = {.shape = api_shape};
  api_verify(kernel, API_PADDED, &which);
  FAILS(FG_EARGUMENT, "no plan that may be taken computes tensors aligned to 2 bytes",
        fg_select(op, &(fg_shape)SHAPE(1, 2, 1, 20, 37, 2), NULL, &kernel));
  fg_close(context);
}
END_TEST

/* Both families in a zoo: the cost model does not come to simt. */
START_TEST(test_zoo_of_both) {
  make_zoo("zoo", "head_dim=8 family=mma,simt block_q=64,4");
  setenv("FLASHGEN_TEMPLATES", "no-such-directory", 1);
  fg_context *context = open_with("zoo", NULL, 0);
  fg_op *op = api_define(context, "head_dim=8");
  ck_assert_ptr_nonnull(strstr(api_select(op, api_shape)->name, ".mma-"));
  ck_assert_str_eq(api_select(op, (fg_shape)SHAPE(1, 2, 1, 20, 37, 2))->name, D8_FOUR);
  expect_zoo_hits(context, 2);
  fg_close(context);
  context = open_with("zoo", "simt-*", 0);
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8_FOUR);
  fg_close(context);
}
END_TEST

START_TEST(test_settings) {
  static const struct {
    const char *name, *value, *why;
  } wrong[] = {
      {"FLASHGEN_CACHE_SIZE", "2GB",
       "FLASHGEN_CACHE_SIZE: \"2GB\" is not allowed; expected a number"},
      {"FLASHGEN_LOCK_SECONDS", "0", "FLASHGEN_LOCK_SECONDS: \"0\" is not allowed"},
      {"FLASHGEN_JIT", "off", "FLASHGEN_JIT: \"off\" is not allowed; expected 0 or 1"},
      {"FLASHGEN_VERBOSE", "cache,all",
       "FLASHGEN_VERBOSE: \"cache,all\" is not allowed; expected words of dispatch,cache,compile"},
  };
  const fg_config config = api_config("cache");
  fg_context *untouched = (fg_context *)1, *context = untouched;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv(wrong[i].name, wrong[i].value, 1);
    FAILS(FG_EARGUMENT, wrong[i].why, fg_open(&config, &context));
    unsetenv(wrong[i].name);
  }
  ck_assert_ptr_eq(context, untouched);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("api_zoo");
  TCase *cases = tcase_create("api_zoo");
  tcase_add_checked_fixture(cases, enter, templates_leave);
  tcase_add_test(cases, test_zoo);
  tcase_add_test(cases, test_zoo_of_another_arch);
  tcase_add_test(cases, test_zoo_and_cache);
  tcase_add_test(cases, test_zoo_forced);
  tcase_add_test(cases, test_forced_refused);
  tcase_add_test(cases, test_bad_zoo);
  tcase_add_test(cases, test_bad_recipe);
  tcase_add_test(cases, test_names_from_before);
  tcase_add_test(cases, test_jit_off);
  tcase_add_test(cases, test_zoos_alone);
  tcase_add_test(cases, test_jit_off_zoo);
  tcase_add_test(cases, test_slow);
  tcase_add_test(cases, test_slow_tensors);
  tcase_add_test(cases, test_zoo_of_mma);
  tcase_add_test(cases, test_zoo_of_both);
  tcase_add_test(cases, test_settings);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
