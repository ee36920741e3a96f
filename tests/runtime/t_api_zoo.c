/* t_api_zoo.c - contexts with zoos: what they take from one without compiler or Lua, and what
 * happens to one that is no good. */
#include "api_zoo.h"
#include "scratch.h"
#include "templates.h"
#include "zoo/zoo_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define D8      "attn_fwd-bf16-d8.simt-q16-k32-w4.host"
#define D8_FOUR "attn_fwd-bf16-d8.simt-q4-k32-w4.host"

/* Neither compiler nor templates are looked for. */
TEST(test_zoo) {
  api_zoo_make("zoo", "head_dim=8 family=simt");
  setenv("FLASHGEN_CC", "/nonexistent/cc", 1);
  setenv("FLASHGEN_TEMPLATES", "no-such-directory", 1);
  fg_context *context = api_zoo_open("zoo", NULL, 0);
  fg_op *op = api_define(context, "head_dim=8");
  fg_kernel *kernel = api_select(op, api_shape), *large;
  fg_info info = FG_INIT(fg_info);
  api_counts(context, 0, 1, 0, 1);
  api_zoo_hits(context, 1);
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

/* Zoos of another arch are of no use to the device, which is said once. */
TEST(test_zoo_of_another_arch) {
  const fg_zoo one = {.size = sizeof one, .directory = "one"},
               two = {.size = sizeof two, .directory = "two"}, *const zoos[] = {&one, &two};
  fg_config config = api_config("other-cache");
  fg_context *context;
  api_zoo_make("one", "head_dim=8 family=simt block_q=4");
  api_zoo_make("two", "head_dim=16 family=simt block_q=4");
  config.zoos = zoos, config.n_zoos = 2;
  config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  ck_assert_int_eq(api_warnings, 0);
  fg_close(context);
  config.device = "sm_80";
  GOOD(fg_open(&config, &context));
  ck_assert_int_eq(api_warnings, 1);
  ck_assert_str_eq(api_warned,
                   "no kernel of the zoos is for sm_80, the arch of sm_80; they are for host");
  fg_close(context);
  config.device = "sm_90";
  FAILS(FG_EARGUMENT, "arch \"sm_90\" is not known; expected one of host, sm_75, ",
        fg_open(&config, &context));
  ck_assert_ptr_nonnull(strstr(fg_error(), "(did you mean \"sm_90a\"?)"));
}

/* What a zoo lacks is compiled and kept as ever; the first zoo that has a kernel gives it. */
TEST(test_zoo_and_cache) {
  const fg_zoo one = {.size = sizeof one, .directory = "one"},
               two = {.size = sizeof two, .directory = "two"}, *const zoos[] = {&one, &two};
  fg_config config = api_config("other-cache");
  api_zoo_make("one", "head_dim=8 family=simt block_q=4");
  api_zoo_make("two", "head_dim=8,16 family=simt block_q=4");
  config.zoos = zoos, config.n_zoos = 2;
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  for (int warm = 0; warm < 2; warm++) {
    fg_context *context;
    GOOD(fg_open(&config, &context));
    api_kernel(context, "head_dim=8");
    api_kernel(context, "head_dim=16");
    api_zoo_hits(context, 2);
    ck_assert(!context->identified);
    api_kernel(context, "head_dim=24 block_q=4");
    api_zoo_hits(context, 2);
    api_counts(context, 2 * warm, 3, !warm, 3);
    fg_close(context);
  }
  ck_assert_int_eq(api_compiled("compiler"), 1);
}

TEST(test_zoo_forced) {
  api_zoo_make("zoo", "head_dim=8 family=simt");
  api_zoo_make("part", "head_dim=8 family=simt block_q=16");
  fg_context *context = api_zoo_open("zoo", "simt-q16-*", 0);
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8);
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
  context = api_zoo_open("part", "simt-q4-*", 0); /* not there, and can be had */
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8_FOUR);
  api_counts(context, 0, 1, 1, 1);
  api_zoo_hits(context, 0);
  fg_close(context);
  setenv("FLASHGEN_TEMPLATES", "no-such-directory", 1);
  context = api_zoo_open("part", "simt-q4-*", 0); /* it cannot be had: as usual */
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8);
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
}

/* The family's own reason, where a forced plan names a family that does not apply. */
TEST(test_forced_refused) {
  fg_kernel *kernel = NULL;
  api_zoo_make("zoo", "head_dim=8 family=simt");
  templates_replace("attention/simt/forward.lua",
                    "return not hooks.norm.refused, hooks.norm.refused",
                    "return false, \"it is out of order\"");
  setenv("FLASHGEN_TEMPLATES", "t", 1);
  fg_context *context = api_zoo_open("zoo", "simt-q99-*", 0);
  fg_op *op = api_define(context, "head_dim=8");
  FAILS(FG_EARGUMENT, "attn_fwd-bf16-d8: the plan simt-q99-* is forced and does not apply: ",
        fg_select(op, &api_shape, NULL, &kernel));
  ck_assert_ptr_nonnull(strstr(fg_error(), "simt: it is out of order"));
  fg_close(context);
  context = api_zoo_open("zoo", "*-q99-*,sim-*", 0); /* it names no family: as usual */
  ck_assert_str_eq(api_kernel(context, "head_dim=8")->name, D8_FOUR);
  fg_close(context);
}

/* A kernel that is no good is looked for elsewhere, with a warning; a zoo that is not is an error.
 */
TEST(test_bad_zoo) {
  fg_zoo missing = FG_INIT(fg_zoo);
  const fg_zoo *zoos = &missing;
  fg_config config = api_config("other-cache");
  fg_context *untouched = (fg_context *)1, *context = untouched;
  api_zoo_make("zoo", "head_dim=8 family=simt block_q=4");
  ck_assert_int_eq(truncate("zoo/" D8_FOUR ".so", 100), 0);
  for (int warm = 0; warm < 2; warm++) {
    context = api_zoo_open("zoo", NULL, 0);
    api_kernel(context, "head_dim=8");
    api_counts(context, warm, 1, !warm, 1);
    api_zoo_hits(context, 0);
    ck_assert_msg(
        strstr(api_warned, "a kernel of a zoo cannot be used: zoo/" D8_FOUR ".so is damaged"), "%s",
        api_warned);
    ck_assert_int_eq(api_warnings, 1 + warm);
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

/* The recipe of the zoo's only kernel is none, under a checksum that fits. */
TEST(test_bad_recipe) {
  static char text[1 << 15];
  char digest[FG_DIGEST_HEX];
  api_zoo_make("zoo", "head_dim=8 family=simt block_q=4");
  FILE *file = fopen("zoo/manifest.txt", "r+");
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  memcpy(strstr(text, "\nlaunch "), "\nlunch  ", 8);
  char *end = strstr(text, "checksum ");
  fg_zoo_digest(text, (size_t)(end - text), digest);
  sprintf(end, "checksum %s\n", digest);
  rewind(file);
  fputs(text, file);
  fclose(file);
  fg_context *context = api_zoo_open("zoo", NULL, 0);
  api_kernel(context, "head_dim=8");
  api_zoo_hits(context, 0);
  ck_assert_int_eq(api_warnings, 1);
  ck_assert_msg(strstr(api_warned,
                       "a kernel of a zoo cannot be used: zoo/manifest.txt is damaged: " D8_FOUR
                       ": recipe line "),
                "%s", api_warned);
  fg_close(context);
}

static void enter(void) {
  templates_enter();
  api_reset();
}

TEST_FIXTURE(enter, templates_leave)
