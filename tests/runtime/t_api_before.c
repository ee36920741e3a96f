/* t_api_before.c - what earlier versions of flashgen wrote: their wisdom and their zoos still
 * count, by the names that kernels and fields had then. */
#include "api_zoo.h"
#include "templates.h"
#include "wisdom/wisdom.h"
#include "words.h"
#include "zoo/zoo_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW "head_dim=8 family=mma mask=window(9,0)"
static const fg_shape shape = {
    .size = sizeof shape, .b = 2, .h = 4, .hk = 4, .nq = 1000, .nk = 1000, .align = 16};

/* Wisdom ------------------------------------------------------------------------------------ */

/* A context with the wisdom of w.txt, or without any. */
static fg_context *open_with(bool wisdom) {
  static const char *const file[] = {"w.txt"};
  fg_config config = api_config("cache");
  fg_context *context;
  config.n_wisdom = wisdom ? 1 : -1, config.wisdom = file;
  GOOD(fg_open(&config, &context));
  return context;
}

static void plan_name(const fg_op *op, int candidate, char name[64]) {
  fg_plan_name(&op->candidate[candidate].plan, 64, name);
}

/* The plan that wisdom makes the library choose; nothing is compiled. */
static const char *chosen(const char *words) {
  static char name[64];
  int index;
  fg_context *context = open_with(true);
  fg_op *op = api_define(context, words);
  GOOD(fg_op_candidates(op));
  GOOD(fg_op_choose(op, &shape, &index));
  plan_name(op, index, name);
  fg_close(context);
  return name;
}

/* Two plans of the words that the model alone does not take. */
static void find_others(const char *words, char a[64], char b[64]) {
  char *const names[] = {a, b};
  int model, n = 0;
  fg_context *context = open_with(false);
  fg_op *op = api_define(context, words);
  GOOD(fg_op_candidates(op));
  GOOD(fg_op_choose(op, &shape, &model));
  for (int i = op->n_candidates - 1; i >= 0 && n < 2; i--)
    if (i != model) plan_name(op, i, names[n++]);
  ck_assert_int_eq(n, 2);
  fg_close(context);
}

/* A line of that spec and plan, of the kernels of now. */
static fg_measured line_of(const char *words, const char *spec, const char *plan) {
  fg_measured m = {.shape = shape, .ms = 1, .verified = true, .when = 1000};
  m.generation = words_generation(words);
  snprintf(m.name, sizeof m.name, "%.80s.%.60s.host", spec, plan);
  strcpy(m.device, "host");
  return m;
}

/* Lines that were written while calls stood in names as hashes. */
TEST(wisdom_of_hashes) {
  char before[FG_NAME_MAX], other[64], b[64];
  fg_context *context = api_open("cache");
  fg_point_name_before(&api_define(context, WINDOW)->point, sizeof before, before);
  ck_assert_int_eq(strncmp(before, "attn_fwd-bf16-d8-mask_", 22), 0);
  fg_close(context);
  find_others(WINDOW, other, b);
  fg_measured m = line_of(WINDOW, before, other);
  strcpy(m.expression, "mask=k - p <= 0 && p - k <= 9");
  GOOD(fg_wisdom_append("w.txt", &m));
  ck_assert_str_eq(chosen(WINDOW), other);
  fg_measured_list list = {0}; /* and the tools call it by its name of now */
  fg_wisdom w;
  GOOD(fg_wisdom_read("w.txt", false, &w));
  GOOD(fg_measured_add(w.text, w.n, &list));
  ck_assert_int_eq(list.n, 1);
  ck_assert_int_eq(strncmp(list.item[0]->name, "attn_fwd-bf16-d8-window_9_0.", 28), 0);
  fg_measured_free(&list);
  fg_wisdom_free(&w);
}

/* Lines of plans from when warps_per_key was called parts, asked for by either name. */
TEST(wisdom_of_parts) {
  static const char words[] = "head_dim=8 pass=backward family=mma";
  static const char *const plans[] = {"mma-q64-k64-s2-w8-p4", "mma-q64-k128-s2-w8-p2"};
  for (int i = 0; i < 2; i++) {
    fg_measured m = line_of(words, "attn_bwd-bf16-d8", plans[i]);
    m.ms = i + 1;
    GOOD(fg_wisdom_append("w.txt", &m));
  }
  ck_assert_str_eq(chosen(words), plans[0]);
  ck_assert_str_eq(chosen("head_dim=8 pass=backward family=mma warps_per_key=2"), plans[1]);
  ck_assert_str_eq(chosen("head_dim=8 pass=backward family=mma parts=2"), plans[1]);
}

/* An older generation ranks where nothing newer is known. */
TEST(generations) {
  static const char words[] = "head_dim=8 family=mma", spec[] = "attn_fwd-bf16-d8";
  char a[64], b[64];
  find_others(words, a, b);
  fg_measured m = line_of(words, spec, a), other = line_of(words, spec, b);
  templates_change("attention/mma/forward.lua", "local tiles",
                   "family.generation = 1003\nlocal tiles");
  setenv("FLASHGEN_TEMPLATES", "t", 1);
  GOOD(fg_wisdom_append("w.txt", &m));
  ck_assert_str_eq(chosen(words), a);
  m.generation = 1002, m.ms = 7;
  GOOD(fg_wisdom_append("w.txt", &m)); /* replaces it, though slower */
  other.ms = 5;
  GOOD(fg_wisdom_append("w.txt", &other));
  ck_assert_str_eq(chosen(words), b);
  m.generation = 1003, m.ms = 4;
  GOOD(fg_wisdom_append("w.txt", &m));
  ck_assert_str_eq(chosen(words), a);
  m.generation = 1004, m.ms = 9;
  GOOD(fg_wisdom_append("w.txt", &m)); /* not of this flashgen */
  ck_assert_str_eq(chosen(words), a);
}

/* Zoos -------------------------------------------------------------------------------------- */

/* Gives the only kernel of the zoo the name `before` instead of `now`, in the manifest and as a
 * file; `rest` is how both go on. */
static void rename_kernel(const char *now, const char *before, const char *rest) {
  static char text[1 << 15], made[1 << 15];
  char digest[FG_DIGEST_HEX], from[FG_NAME_MAX + 16], to[FG_NAME_MAX + 16];
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
  snprintf(from, sizeof from, "zoo/%.100s%.40s", now, rest);
  snprintf(to, sizeof to, "zoo/%.100s%.40s", before, rest);
  ck_assert_int_eq(rename(from, to), 0);
}

/* The zoo has the kernel of the words; nothing is compiled. */
static void expect_kernel(const char *words) {
  fg_context *context = api_zoo_open("zoo", NULL, -1);
  api_kernel(context, words);
  api_zoo_hits(context, 1);
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
}

/* The zoo's only kernel as it was called while calls stood in names as hashes. */
TEST(zoo_of_hashes) {
  char before[FG_NAME_MAX];
  api_zoo_make("zoo", "head_dim=8 family=simt block_q=4 mask=window(9,0)");
  fg_context *context = api_zoo_open("zoo", NULL, -1);
  fg_op *op = api_define(context, "head_dim=8 mask=window(9,0)");
  fg_point_name_before(&op->point, sizeof before, before);
  fg_close(context);
  rename_kernel("attn_fwd-bf16-d8-window_9_0", before, ".simt-q4-k32-w4.host.so");
  expect_kernel("head_dim=8 mask=window(9,0)");
}

/* A zoo from when warps_per_key was called parts: the files of its kernels are called as now. */
TEST(zoo_of_parts) {
  api_zoo_make("zoo", "head_dim=8 pass=backward family=mma parts=2 block_q=32 block_kv=32");
  ck_assert_int_eq(access("zoo/attn_bwd-bf16-d8.mma-q32-k32-s1-w4-p2.host.so", F_OK), 0);
  expect_kernel("head_dim=8 pass=backward family=mma");
  expect_kernel("head_dim=8 pass=backward family=mma warps_per_key=2");
  expect_kernel("head_dim=8 pass=backward family=mma parts=2");
}

static void enter(void) {
  templates_enter();
  api_reset();
}

TEST_FIXTURE(enter, templates_leave)
