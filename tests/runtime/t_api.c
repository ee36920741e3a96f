/* t_api.c - contexts and ops through flashgen.h: what opens, what is refused and by which sentence,
 * what text a spec has, and what is said of a kernel. */
#include "api_case.h"
#include "expand/expand.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SMALL "head_dim=8 block_q=4" /* one plan, the fastest to compile */

static fg_status open_as(const char *device, const char *templates, size_t size) {
  fg_config config = api_config("cache");
  fg_context *untouched = (fg_context *)1, *context = untouched;
  if (device) config.device = device;
  config.templates = templates;
  config.size = size;
  fg_status status = fg_open(&config, &context);
  if (status == FG_OK)
    fg_close(context);
  else
    ck_assert_ptr_eq(context, untouched);
  return status;
}

TEST(test_open) {
  fg_context *context;
  setenv("FLASHGEN_CACHE", "from-environment", 1);
  GOOD(fg_open(NULL, &context));
  fg_close(context);
  fg_close(NULL);
  ck_assert_str_eq(fg_version(), FG_VERSION);
  GOOD(open_as("host", NULL, sizeof(fg_config)));
  FAILS(FG_EARGUMENT, "device toaster: expected host or cuda:N",
        open_as("toaster", NULL, sizeof(fg_config)));
  FAILS(FG_EARGUMENT, "device cuda:x", open_as("cuda:x", NULL, sizeof(fg_config)));
  FAILS(FG_EARGUMENT, "config: its size is", open_as("host", NULL, sizeof(fg_config) + 8));
  FAILS(FG_EARGUMENT, "config: its size is 0", open_as("host", NULL, 0));
  FAILS(FG_ETEMPLATE, "no-such-directory", open_as("host", "no-such-directory", sizeof(fg_config)));
  setenv("FLASHGEN_TEMPLATES", "none-here-either", 1);
  FAILS(FG_ETEMPLATE, "none-here-either", open_as("host", NULL, sizeof(fg_config)));
}

/* No GPU is said once, with the reason, where nobody named the device. */
TEST(test_no_gpu) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  ck_assert_int_eq(api_warnings, 0);
  fg_close(context);
  config.device = NULL;
  GOOD(fg_open(&config, &context));
  const bool host = !strcmp(context->device->name, "host");
  ck_assert_int_eq(api_warnings, host);
  if (host) {
    ck_assert_msg(!strncmp(api_warned, "no GPU can be used (", 20), "%s", api_warned);
    ck_assert_ptr_nonnull(strstr(api_warned, context->device->no_gpu));
    ck_assert(*context->device->no_gpu);
  }
  fg_close(context);
  setenv("FLASHGEN_DEVICE", "host", 1);
  GOOD(fg_open(&config, &context));
  ck_assert_str_eq(context->device->name, "host");
  ck_assert_int_eq(api_warnings, host);
  fg_close(context);
  setenv("FLASHGEN_DEVICE", "toaster", 1);
  FAILS(FG_EARGUMENT, "FLASHGEN_DEVICE: device toaster: expected host or cuda:N",
        fg_open(&config, &context));
}

/* What a variable names and is not there is said once in a process, whoever opens first. */
TEST(test_named_and_not_there) {
  fg_config config = api_config("cache");
  fg_context *one, *two;
  config.warn = api_keep_warning;
  setenv("FLASHGEN_WISDOM", "absent.txt", 1);
  GOOD(fg_open(&config, &one));
  ck_assert_int_eq(api_warnings, 1);
  ck_assert_str_eq(api_warned,
                   "FLASHGEN_WISDOM: absent.txt cannot be used: No such file or directory");
  setenv("FLASHGEN_CACHE_RO", "none-here", 1);
  GOOD(fg_open(&config, &two));
  ck_assert_int_eq(api_warnings, 2);
  ck_assert_str_eq(api_warned,
                   "FLASHGEN_CACHE_RO: none-here cannot be used: No such file or directory");
  fg_close(one);
  fg_close(two);
}

TEST(test_null) {
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, SMALL);
  fg_kernel *kernel = api_select(op, api_shape), *other;
  fg_spec spec = api_spec(SMALL);
  fg_args args = FG_INIT(fg_args);
  fg_info info = FG_INIT(fg_info);
  fg_order order = FG_INIT(fg_order);
  fg_config config = api_config("cache");
  const char *const none[] = {NULL};
  char *text;
  FAILS(FG_EARGUMENT, "context is NULL", fg_open(NULL, NULL));
  FAILS(FG_EARGUMENT, "context is NULL", fg_define(NULL, &spec, &op));
  FAILS(FG_EARGUMENT, "spec is NULL", fg_define(context, NULL, &op));
  FAILS(FG_EARGUMENT, "op is NULL", fg_define(context, &spec, NULL));
  FAILS(FG_EARGUMENT, "op is NULL", fg_select(NULL, &api_shape, NULL, &other));
  FAILS(FG_EARGUMENT, "shape is NULL", fg_select(op, NULL, NULL, &other));
  FAILS(FG_EARGUMENT, "kernel is NULL", fg_select(op, &api_shape, NULL, NULL));
  FAILS(FG_EARGUMENT, "kernel is NULL", fg_launch(NULL, &api_shape, &args, NULL, NULL));
  FAILS(FG_EARGUMENT, "shape is NULL", fg_launch(kernel, NULL, &args, NULL, NULL));
  FAILS(FG_EARGUMENT, "args is NULL", fg_launch(kernel, &api_shape, NULL, NULL, NULL));
  ck_assert_uint_eq(fg_workspace_bytes(NULL, &api_shape), 0);
  ck_assert_uint_eq(fg_workspace_bytes(kernel, NULL), 0);
  FAILS(FG_EARGUMENT, "kernel is NULL", fg_kernel_info(NULL, &info));
  FAILS(FG_EARGUMENT, "info is NULL", fg_kernel_info(kernel, NULL));
  FAILS(FG_EARGUMENT, "spec is NULL", fg_emit(context, NULL, NULL, &text));
  FAILS(FG_EARGUMENT, "text is NULL", fg_emit(context, &spec, NULL, NULL));
  FAILS(FG_EARGUMENT, "order is NULL", fg_build(context, NULL, NULL));
  order.directory = "zoo", order.specs = none, order.n_specs = 1;
  FAILS(FG_EARGUMENT, "specs[0] is NULL", fg_build(context, &order, NULL));
  fg_context_counts(NULL, NULL);
  config.wisdom = none, config.n_wisdom = 1;
  fg_close(context);
  FAILS(FG_EARGUMENT, "wisdom[0] is NULL", fg_open(&config, &context));
}

/* The fields of an older header: the rest has its defaults. */
TEST(test_older_structs) {
  fg_context *context = api_open("cache");
  fg_spec spec = api_spec("head_dim=8 warps=3");
  fg_op *op;
  GOOD(open_as("host", "no-such-directory", offsetof(fg_config, templates)));
  FAILS(FG_EARGUMENT, "config: its size is 9; expected FG_INIT's", open_as("host", NULL, 9));
  spec.size = offsetof(fg_spec, warps) + 4; /* within a member */
  FAILS(FG_EARGUMENT, "spec: its size is", fg_define(context, &spec, &op));
  spec.size = offsetof(fg_spec, warps);
  GOOD(fg_define(context, &spec, &op));
  ck_assert_ptr_eq(op, api_define(context, "head_dim=8"));
  fg_close(context);
}

TEST(test_define) {
  static const struct {
    const char *words, *why;
  } wrong[] = {
      {"mask=full", "head_dim: missing; it must be given"},
      {"head_dim=12", "head_dim: \"12\" is not allowed; expected d or d/dv, multiples of 8 from 8"},
      {"head_dim=64 dtype=fp16",
       "dtype: \"fp16\" is not allowed; expected bf16, f16, f32, e4m3 (did you"},
      {"head_dim=64 block_q=0", "block_q: \"0\" is not allowed; expected a positive integer"},
      {"head_dim=64 bias_dims=h", "bias_dims: given, but no point has a bias"},
      {"head_dim=64 mask=full,causal", "the spec is 2 kernels; a list is for grids"},
      {"head_dim=64 mask=", "mask: column 1: expected a value, found the end"},
  };
  fg_context *context = api_open("cache");
  fg_op *untouched = (fg_op *)1, *op = untouched;
  fg_spec spec;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    spec = api_spec(wrong[i].words);
    FAILS(FG_ESPEC, wrong[i].why, fg_define(context, &spec, &op));
  }
  spec = api_spec("head_dim=7 mask=round"); /* all mistakes in one text */
  FAILS(FG_ESPEC, "head_dim: \"7\"", fg_define(context, &spec, &op));
  ck_assert_ptr_nonnull(strstr(fg_error(), "mask: column 1: \"round\" is no name"));
  spec.size = 0;
  FAILS(FG_EARGUMENT, "spec: its size is 0", fg_define(context, &spec, &op));
  ck_assert_ptr_eq(op, untouched);
  fg_close(context);
}

TEST(test_equal_specs) {
  fg_context *context = api_open("cache");
  char *words = strdup(SMALL " mask=causal");
  fg_op *op = api_define(context, words);
  memset(words, 'x', strlen(words)); /* the spec's texts were copied */
  free(words);
  ck_assert_ptr_eq(op, api_define(context, "mask=causal head_dim=8/8 block_q=4 dtype=bf16"));
  ck_assert_ptr_ne(op, api_define(context, "head_dim=8 mask=causal"));
  ck_assert_ptr_ne(op, api_define(context, SMALL));
  fg_info info = FG_INIT(fg_info);
  GOOD(fg_kernel_info(api_select(op, api_shape), &info));
  ck_assert_str_eq(info.name, "attn_fwd-bf16-d8-causal.simt-q4-k32-w4.host");
  fg_close(context);
}

static char *expanded(const char *name) {
  fg_variant variant;
  fg_source *source;
  fg_gen *gen;
  GOOD(fg_variant_parse(name, &variant));
  GOOD(fg_gen_new(NULL, &gen));
  GOOD(fg_gen_expand(gen, &variant, &source));
  char *text = strdup(source->text);
  fg_source_free(source);
  fg_gen_free(gen);
  return text;
}

/* An op lives as long as somebody uses it, however many there are. */
TEST(test_release) {
  enum { SPECS = 3000 };
  static fg_op *op[SPECS];
  fg_context *context = api_open("cache");
  fg_spec spec = api_spec("head_dim=8");
  char score[32];
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < SPECS; i++) {
      fg_op *again;
      snprintf(score, sizeof score, "s * %d.5", i);
      spec.score = score;
      GOOD(fg_define(context, &spec, &again));
      if (round) ck_assert_ptr_eq(again, op[i]);
      op[i] = again;
    }
  ck_assert_uint_eq(context->ops.n, SPECS);
  for (int i = 0; i < 2 * SPECS; i++) {
    ck_assert_uint_eq(context->ops.n, (size_t)(i < SPECS ? SPECS : 2 * SPECS - i));
    fg_release(op[i % SPECS]);
  }
  ck_assert_uint_eq(context->ops.n, 0);
  fg_release(NULL);
  fg_op *used = api_define(context, SMALL);
  api_select(used, api_shape);
  api_counts(context, 0, 1, 1, 1);
  fg_release(used);
  api_select(api_define(context, SMALL), api_shape); /* loaded anew */
  api_counts(context, 2, 2, 1, 2);
  fg_close(context);
}

TEST(test_emit) {
  static const struct {
    const char *words, *arch, *name;
  } rows[] = {
      {"head_dim=64 mask=causal", NULL, "attn_fwd-bf16-d64-causal.wgmma-q192-k128-s2-w16.host"},
      {"head_dim=64 mask=causal", "sm_75", "attn_fwd-bf16-d64-causal.simt-q16-k32-w4.sm_75"},
      {"head_dim=64 family=simt", NULL, "attn_fwd-bf16-d64.simt-q16-k32-w4.host"},
      {"head_dim=64 pass=backward deterministic=true warps=8 stages=1", "sm_90a",
       "attn_bwd-bf16-d64-det.mma-q64-k64-s1-w8-p4.sm_90a"},
      {"head_dim=64 block_q=4", "sm_90a", "attn_fwd-bf16-d64.simt-q4-k32-w4.sm_90a"},
      {"head_dim=40/24 pass=backward bias=grad block_q=4", "sm_80",
       "attn_bwd-bf16-d40v24-biasgrad_bhqk.simt-q4-k32-w4.sm_80"},
  };
  fg_context *context = api_open("cache");
  char *text = NULL;
  fg_spec spec;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    spec = api_spec(rows[i].words);
    GOOD(fg_emit(context, &spec, rows[i].arch, &text));
    char *expected = expanded(rows[i].name);
    ck_assert_str_eq(text, expected);
    free(expected);
    free(text);
    text = NULL;
  }
  FAILS(FG_EARGUMENT, "arch \"sm_9x\" is not known; expected one of host, sm_75, ",
        fg_emit(context, &spec, "sm_9x", &text));
  FAILS(FG_EARGUMENT, "long", fg_emit(context, &spec, "a_very_long_architecture", &text));
  spec = api_spec("head_dim=8,16");
  FAILS(FG_ESPEC, "the spec is 2 kernels", fg_emit(context, &spec, NULL, &text));
  spec = api_spec("head_dim=8 warps=9");
  FAILS(FG_ESPEC, "no plan fits", fg_emit(context, &spec, NULL, &text));
  ck_assert_ptr_null(text);
  api_counts(context, 0, 0, 0, 0);
  fg_close(context);
}

/* A locale of glibc's with a comma in numbers, which few machines have installed. */
static void use_comma(void) {
  static const unsigned char numeric[] = {
      0x14, 0x11, 0x03, 0x20, 6, 0, 0,  0,   32, 0, 0,  0,   34,  0,   0,   0,   36,  0,
      0,    0,    40,   0,    0, 0, 44, 0,   0,  0, 48, 0,   0,   0,   ',', 0,   '.', 0,
      3,    3,    0,    ',',  0, 0, 0,  '.', 0,  0, 0,  'U', 'T', 'F', '-', '8', 0};
  ck_assert_int_eq(mkdir("comma", 0700), 0);
  FILE *file = fopen("comma/LC_NUMERIC", "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(numeric, 1, sizeof numeric, file), sizeof numeric);
  fclose(file);
  setenv("LOCPATH", ".", 1);
  ck_assert_ptr_nonnull(setlocale(LC_NUMERIC, "comma"));
  ck_assert_str_eq(localeconv()->decimal_point, ",");
}

/* A host application's comma reaches no text, and stays the application's. */
TEST(test_locale) {
  static const struct {
    const char *words, *arch;
  } rows[] = {{"head_dim=64 family=wgmma score=softcap(30.5)+0.5*s", "sm_90a"},
              {"head_dim=64 family=mma pass=backward score=s*1.5 mask=dilated(3)", "sm_80"}};
  fg_context *context = api_open("cache");
  fg_built built = FG_INIT(fg_built);
  char *text, *plain;
  use_comma();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    fg_spec spec = api_spec(rows[i].words);
    GOOD(fg_emit(context, &spec, rows[i].arch, &text));
    setlocale(LC_NUMERIC, "C");
    GOOD(fg_emit(context, &spec, rows[i].arch, &plain));
    setlocale(LC_NUMERIC, "comma");
    ck_assert_str_eq(text, plain);
    free(plain);
    free(text);
  }
  api_kernel(context, SMALL " family=simt score=softcap(30.5)");
  fg_order order = {.size = sizeof order, .directory = "zoo", .arch = "host", .jobs = 2};
  GOOD(api_build(context, order, SMALL " family=simt score=softcap(30.5)", &built));
  ck_assert_int_eq(built.made, 1);
  ck_assert_str_eq(localeconv()->decimal_point, ",");
  fg_close(context);
  setlocale(LC_NUMERIC, "C");
}

TEST(test_info) {
  fg_context *context = api_open("cache");
  fg_kernel *kernel = api_kernel(context, SMALL " dtype=f16");
  fg_info info = FG_INIT(fg_info), older = {.size = offsetof(fg_info, figures)};
  GOOD(fg_kernel_info(kernel, &info));
  ck_assert_str_eq(info.name, "attn_fwd-f16-d8.simt-q4-k32-w4.host");
  ck_assert_ptr_nonnull(info.figures);
  ck_assert_int_eq(info.from_cache, 0);
  ck_assert_uint_eq(info.size, sizeof info);
  older.figures = "kept";
  GOOD(fg_kernel_info(kernel, &older));
  ck_assert_ptr_eq(older.name, info.name);
  ck_assert_str_eq(older.figures, "kept");
  older.size = 0;
  FAILS(FG_EARGUMENT, "info: its size is 0", fg_kernel_info(kernel, &older));
  fg_close(context);
}

TEST_FIXTURE(api_enter, api_leave)
