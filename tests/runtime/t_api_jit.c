/* t_api_jit.c - contexts that compile nothing, and what is said where a family without tensor cores
 * is all that there is. */
#include "api_zoo.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define D8      "attn_fwd-bf16-d8.simt-q16-k32-w4.host"
#define D8_FOUR "attn_fwd-bf16-d8.simt-q4-k32-w4.host"

static fg_context *open_jit(int jit) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.jit = jit;
  GOOD(fg_open(&config, &context));
  return context;
}

TEST(test_jit_off) {
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

/* Zoos alone: the cache has the kernel, and it is not taken. */
TEST(test_zoos_alone) {
  fg_kernel *kernel = NULL;
  api_zoo_make("zoo", "head_dim=16 family=simt block_q=4");
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

TEST(test_jit_off_zoo) {
  fg_kernel *kernel = NULL;
  api_zoo_make("zoo", "head_dim=8,16,128 family=simt block_q=16 mask=full,causal");
  fg_context *context = api_zoo_open("zoo", NULL, -1);
  api_kernel(context, "head_dim=8");
  FAILS(FG_EENVIRONMENT, "the plans of attn_fwd-bf16-d120 for host: no zoo has it, ",
        fg_select(api_define(context, "head_dim=120"), &api_shape, NULL, &kernel));
  ck_assert_msg(strstr(fg_error(), "there are: attn_fwd-bf16-d128-causal.simt-q16-k32-w4.host, "
                                   "attn_fwd-bf16-d128.simt-q16-k32-w4.host, attn_fwd-bf16-d16"),
                "%s", fg_error());
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
  ck_assert_int_eq(truncate("zoo/" D8 ".so", 100), 0);
  context = api_zoo_open("zoo", NULL, -1);
  FAILS(FG_EENVIRONMENT, "a kernel of a zoo cannot be used (zoo/" D8 ".so is damaged",
        fg_select(api_define(context, "head_dim=8"), &api_shape, NULL, &kernel));
  ck_assert_msg(strstr(fg_error(), "), and elsewhere: " D8 ": no zoo has it, "), "%s", fg_error());
  fg_close(context);
}

/* simt ---------------------------------------------------------------------------------------- */

TEST(test_slow) {
  static const fg_shape at_limit = SHAPE(1, 1, 1, 1 << 14, 1 << 14, 0),
                        above = SHAPE(2, 1, 1, 1 << 14, 1 << 14, 0),
                        longer = SHAPE(1, 1, 1, 1 << 16, 1 << 16, 0);
  fg_config config = api_config("cache");
  fg_context *context;
  config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  api_select(api_define(context, "head_dim=8 block_q=4"), at_limit);
  api_select(api_define(context, "head_dim=8 block_q=4 mask=causal"), above);
  api_select(api_define(context, "head_dim=8 block_q=4 family=simt"), longer);
  api_select(api_define(context, "head_dim=8"), longer); /* tensor cores compute it */
  ck_assert_int_eq(api_warnings, 0);
  api_select(api_define(context, "head_dim=8 block_q=4"), above);
  ck_assert_int_eq(api_warnings, 1);
  ck_assert_msg(strstr(api_warned,
                       "attn_fwd-bf16-d8: only simt, which uses no tensor cores, computes "
                       "it: 5.4e+08 pairs of rows and keys take long"),
                "%s", api_warned);
  api_select(api_define(context, "head_dim=8 block_q=4"), longer);
  ck_assert_int_eq(api_warnings, 1); /* once a context */
  fg_close(context);
}

/* Tensors that tensor cores do not take are as slow. */
TEST(test_slow_tensors) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  api_select(api_define(context, "head_dim=8"), (fg_shape)SHAPE(2, 1, 1, 1 << 14, 1 << 14, 2));
  ck_assert_int_eq(api_warnings, 1);
  ck_assert_msg(strstr(api_warned, "attn_fwd-bf16-d8: only simt, which uses no tensor cores"), "%s",
                api_warned);
  fg_close(context);
}

/* A family joins a zoo unnamed, simt does not join with it; and it is what the zoo gives, unless
 * the tensors want what the zoo lacks. */
TEST(test_zoo_of_mma) {
  fg_kernel *kernel = NULL;
  api_zoo_make("zoo", "head_dim=8 block_q=64 block_kv=64");
  setenv("FLASHGEN_CC", "/nonexistent/cc", 1);
  setenv("FLASHGEN_TEMPLATES", "no-such-directory", 1);
  fg_context *context = api_zoo_open("zoo", NULL, 0);
  fg_op *op = api_define(context, "head_dim=8");
  kernel = api_select(op, api_shape);
  ck_assert_msg(!strncmp(kernel->name, "attn_fwd-bf16-d8.mma-q64-k64-", 29), "%s", kernel->name);
  api_zoo_hits(context, 1);
  verify_case which = {.shape = api_shape};
  api_verify(kernel, API_PADDED, &which);
  FAILS(FG_EARGUMENT, "no plan that may be taken computes tensors aligned to 2 bytes",
        fg_select(op, &(fg_shape)SHAPE(1, 2, 1, 20, 37, 2), NULL, &kernel));
  fg_close(context);
}

/* Both families in a zoo: the cost model does not come to simt. */
TEST(test_zoo_of_both) {
  api_zoo_make("zoo", "head_dim=8 family=mma,simt block_q=64,4");
  setenv("FLASHGEN_TEMPLATES", "no-such-directory", 1);
  fg_context *context = api_zoo_open("zoo", NULL, 0);
  fg_op *op = api_define(context, "head_dim=8");
  ck_assert_ptr_nonnull(strstr(api_select(op, api_shape)->name, ".mma-"));
  ck_assert_str_eq(api_select(op, (fg_shape)SHAPE(1, 2, 1, 20, 37, 2))->name, D8_FOUR);
  api_zoo_hits(context, 2);
  fg_close(context);
  context = api_zoo_open("zoo", "simt-*", 0);
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8_FOUR);
  fg_close(context);
}

TEST(test_settings) {
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

static void enter(void) {
  templates_enter();
  api_reset();
}

TEST_FIXTURE(enter, templates_leave)
