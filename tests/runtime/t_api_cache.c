/* t_api_cache.c - the cache seen through flashgen.h: what a warm start does not do, what makes it
 * miss, and what becomes of entries that are no good. */
#include "api_case.h"
#include "scratch.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL   "head_dim=8 block_q=4"
#define FORWARD "attention/simt/forward.cut"

static void enter(void) {
  api_enter();
  api_leave();
  templates_enter();
}

/* Asks for the kernel of the words in a context of the templates ("" = built in) and the forced
 * plan, and expects that many hits and compiles. */
static void ask(const char *templates, const char *plan, const char *words, int hits,
                int compiles) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.templates = templates;
  config.plan = plan;
  GOOD(fg_open(&config, &context));
  api_kernel(context, words);
  api_counts(context, hits, 1, compiles, 1);
  fg_close(context);
}

/* Plans and kernel are two entries: a warm start finds both. */
TEST(test_warm) {
  fg_context *cold = api_open("cache"), *warm = api_open("cache");
  fg_kernel *a = api_kernel(cold, SMALL), *b;
  fg_info info = FG_INIT(fg_info);
  api_counts(cold, 0, 1, 1, 1);
  b = api_kernel(warm, SMALL);
  api_counts(warm, 2, 1, 0, 1);
  ck_assert_ptr_null(warm->gen); /* no Lua ran */
  GOOD(fg_kernel_info(a, &info));
  ck_assert_int_eq(info.from_cache, 0);
  GOOD(fg_kernel_info(b, &info));
  ck_assert_int_eq(info.from_cache, 1);
  ck_assert_str_eq(info.name, a->name);
  fg_problem *p = api_problem(a, api_shape, 3), *q = api_problem(b, api_shape, 3);
  GOOD(api_launch(a, p));
  GOOD(api_launch(b, q));
  api_same_outputs(p, q);
  fg_problem_free(p);
  fg_problem_free(q);
  fg_close(cold);
  fg_close(warm);
}

/* Every part of the key tells entries apart, and nothing else does. */
TEST(test_key) {
  ask("", "", "head_dim=8", 0, 1);
  ask("", "", "head_dim=8/8 dtype=bf16 mask=full", 2, 0); /* another spelling */
  setenv("LANG", "xx_YY", 1);
  setenv("TZ", "Asia/Tokyo", 1);
  ask("", "", "head_dim=8", 2, 0);
  ask("", "simt-q16-*", "head_dim=8", 1, 1); /* the list of plans is the same */
  ask("", "simt-q16-*", "head_dim=8", 2, 0);
  ask("", "", "head_dim=8 dtype=f16", 0, 1);
  ask("", "", "head_dim=8/16", 0, 1);
  ask("t", "", "head_dim=8", 2, 0); /* equal files over the built-in ones */
  ck_assert_int_eq(rename("t", "u"), 0);
  ask("u", "", "head_dim=8", 2, 0); /* the same text in another place */
  ck_assert_int_eq(rename("u", "t"), 0);
  templates_append(FORWARD, "// one line more\n");
  ask("t", "", "head_dim=8", 0, 1);
  ask("t", "", "head_dim=8", 2, 0);
  api_compiler("compiler", "another compiler 1.0", "exec $CC \"$@\"");
  ask("", "", "head_dim=8", 1, 1);
  ask("", "", "head_dim=8", 2, 0);
  ck_assert_int_eq(api_compiled("compiler"), 1);
  api_compiler("compiler", NULL, "exec $CC \"$@\""); /* the first one by another path */
  ask("", "", "head_dim=8", 2, 0);
}

/* A fault of a kernel from the cache has the template's line. */
TEST(test_fault_from_cache) {
  char said[2][4096], place[64];
  fg_config config = api_config("cache");
  config.templates = "t";
  templates_replace(FORWARD, "block_sync(); // the last", "(void)0; // the last");
  for (int warm = 0; warm < 2; warm++) {
    fg_context *context;
    GOOD(fg_open(&config, &context));
    fg_kernel *kernel = api_kernel(context, SMALL);
    api_counts(context, 2 * warm, 1, !warm, 1);
    fg_problem *p = api_problem(kernel, (fg_shape)SHAPE(1, 1, 1, 8, 100, 0), 1);
    ck_assert_int_eq(api_launch(kernel, p), FG_ETEMPLATE);
    snprintf(said[warm], sizeof said[warm], "%s", fg_error());
    fg_problem_free(p);
    fg_close(context);
  }
  ck_assert_msg(strstr(said[0], "race: shared") || strstr(said[0], "never written"), "%s", said[0]);
  snprintf(place, sizeof place, "at %s:", "tile/rows.cut");
  ck_assert_msg(strstr(said[0], place) || strstr(said[0], "at " FORWARD ":"), "%s", said[0]);
  char *at[2] = {strstr(said[0], "\n  at "), strstr(said[1], "\n  at ")};
  ck_assert(at[0] && at[1]);
  ck_assert_str_eq(at[0], at[1]);
}

/* As a meta text: the entry's own, launching a function that its code has not. */
static const char other_entry[] = "other entry";

static const char *with_other_entry(const char *meta) {
  static char text[32768];
  ck_assert_uint_lt(strlen(meta), sizeof text);
  strcpy(text, meta);
  char *name = strstr(text, "launch attn_fwd");
  ck_assert_ptr_nonnull(name);
  memcpy(name, "launch attn_bwd", 15);
  return text;
}

/* Replaces the entry of the kernel (plans = 0) or of the list of plans by this meta and code,
 * NULL = what it has; its checksum is right. */
static void forge(int plans, const char *meta, const char *code) {
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, SMALL);
  fg_kernel *kernel = api_select(op, api_shape);
  const fg_entry *entry;
  fg_key key = {0};
  api_counts(context, 2, 1, 0, 1);
  GOOD(plans ? fg_plans_key(op, &key) : fg_kernel_key(context, kernel->name, &key));
  ck_assert(fg_cache_get(context->cache, &key, &entry));
  if (meta == other_entry) meta = with_other_entry(entry->meta);
  ck_assert(fg_cache_put(context->cache, &key, meta ? meta : entry->meta, code ? code : entry->code,
                         code ? strlen(code) : entry->code_n));
  fg_entry_free(entry);
  fg_key_free(&key);
  fg_close(context);
}

static const struct {
  int plans;
  const char *meta, *code;
} forged[] = {
    {0, NULL, "this is no shared object"},
    {0, NULL, ""},
    {0, "", NULL},
    {0, "no recipe", NULL},
    {0, "--- recipe\nhead_dim 8 8\nnonsense\n", NULL},
    {0, other_entry, NULL},
    {1, "", NULL},
    {1, "plan x\n--- end\n", NULL},
    {1, "plan attn_fwd-bf16-d8.simt-q4-k32-w4.host\nnonsense\n--- end\n", NULL},
};
enum { FORGED = sizeof forged / sizeof *forged };

/* An entry that checks out and does not load: dropped, made once more, and good again. */
TEST_LOOP(test_forged_entry, FORGED) {
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  ask("", "", SMALL, 0, 1);
  forge(forged[_i].plans, forged[_i].meta, forged[_i].code);
  fg_context *context = api_open("cache");
  fg_kernel *kernel = api_kernel(context, SMALL);
  fg_info info = FG_INIT(fg_info);
  api_counts(context, 2, 1, !forged[_i].plans, 1);
  GOOD(fg_kernel_info(kernel, &info));
  ck_assert_int_eq(info.from_cache, forged[_i].plans);
  verify_case which = {.shape = api_shape};
  api_verify(kernel, API_PADDED, &which);
  fg_close(context);
  ask("", "", SMALL, 2, 0);
  ck_assert_int_eq(api_compiled("compiler"), 1 + !forged[_i].plans);
}

/* o = the file that the compiler is to make. */
#define OUTPUT "for a; do [ \"$p\" = -o ] && o=$a; p=$a; done; "

/* When the new one does not load either, that is the answer; the next call tries again. */
TEST_LOOP(test_forged_compiler, 2) {
  static const struct {
    const char *body, *why;
    fg_status status;
  } rows[] = {{OUTPUT "echo rubbish >$o", "cannot be loaded", FG_ECOMPILER},
              {OUTPUT "echo 'int x;' >x.c; exec $CC -shared -fPIC x.c -o $o", "has no fgh_bind",
               FG_ETEMPLATE}};
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  ask("", "", SMALL, 0, 1);
  forge(0, NULL, "this is no shared object");
  api_compiler("compiler", NULL, rows[_i].body);
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, SMALL);
  fg_kernel *kernel = NULL;
  for (int n = 1; n <= 2; n++) {
    FAILS(rows[_i].status, rows[_i].why, fg_select(op, &api_shape, NULL, &kernel));
    ck_assert_ptr_null(kernel);
    ck_assert_int_eq(api_compiled("compiler"), 1 + n);
  }
  api_counts(context, 3, 0, 2, 0);
  fg_close(context);
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  context = api_open("cache");
  api_kernel(context, SMALL);
  api_counts(context, 2, 1, 1, 1);
  fg_close(context);
}

/* A directory that cannot be used: memory only, with a warning through the context's own function.
 */
static int warnings;
static void count_warning(void *context, const char *sentence) {
  ck_assert_ptr_eq(context, &warnings);
  ck_assert_ptr_nonnull(strstr(sentence, "file-in-the-way"));
  warnings++;
}

TEST(test_memory_only) {
  fg_config config = api_config("file-in-the-way");
  fg_context *context;
  scratch_put("file-in-the-way", "", 0);
  config.warn = count_warning;
  config.warn_context = &warnings;
  GOOD(fg_open(&config, &context));
  fg_kernel *kernel = api_kernel(context, SMALL);
  api_counts(context, 0, 1, 1, 1);
  ck_assert_int_eq(warnings, 1);
  verify_case which = {.shape = api_shape};
  api_verify(kernel, API_PADDED, &which);
  fg_close(context);
}

TEST_FIXTURE(enter, templates_leave)
