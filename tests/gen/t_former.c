/* t_former.c - former names of fields: as whose values words, files, C and names of variants read
 * what was written under them, and what is no longer clear. */
#include "scratch.h"
#include "spec/spec.h"
#include "spec/variant.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(const char *path, const char *text) { scratch_put(path, text, strlen(text)); }

/* Reads the files and words of one line: "a.lua head_dim=64". */
static fg_status read_line(const char *line, fg_grid **grid) {
  const char *files[2], *words[8];
  int n_files = 0, n_words = 0;
  char copy[256], *next = copy;
  snprintf(copy, sizeof copy, "%s", line);
  for (char *item; (item = strsep(&next, " "));) {
    if (strstr(item, ".lua"))
      files[n_files++] = item;
    else
      words[n_words++] = item;
  }
  return fg_grid_read(n_files, files, n_words, words, grid);
}

/* Both lines restrict the plans of all their points in the same way. */
static void same(const char *former, const char *now) {
  fg_grid *a = NULL, *b = NULL;
  ck_assert_msg(read_line(former, &a) == FG_OK, "%s: %s", former, fg_error());
  ck_assert_msg(read_line(now, &b) == FG_OK, "%s: %s", now, fg_error());
  ck_assert_int_eq(a->n, b->n);
  for (int i = 0; i < a->n; i++) {
    ck_assert(fg_point_equal(&a->point[i], &b->point[i]));
    ck_assert_msg(!memcmp(a->limits[i], b->limits[i], sizeof *a->limits[i]), "%s: point %d", former,
                  i);
  }
  fg_grid_free(a);
  fg_grid_free(b);
}

static void fails(const char *line, const char *why) {
  fg_grid *grid = NULL;
  ck_assert_int_eq(read_line(line, &grid), FG_ESPEC);
  ck_assert_str_eq(fg_error(), why);
  ck_assert_ptr_null(grid);
}

/* Each family has its field. */
TEST(beside_a_family) {
  same("head_dim=64 family=mma parts=2,4", "head_dim=64 family=mma warps_per_key=2,4");
  same("head_dim=64 parts=16 family=wgmma", "head_dim=64 family=wgmma key_parts=16");
  same("head_dim=64 family=simt,mma parts=2", "head_dim=64 family=simt,mma warps_per_key=2");
  put("a.lua", "return { { head_dim = 64, family = 'mma', parts = { 1, 2 } },\n"
               "         { head_dim = 64, family = { 'wgmma', 'simt' }, parts = '16' } }");
  put("b.lua", "return { { head_dim = 64, family = 'mma', warps_per_key = { 1, 2 } },\n"
               "         { head_dim = 64, family = { 'wgmma', 'simt' }, key_parts = 16 } }");
  same("a.lua", "b.lua");
}

/* Words replace fields of tables, whichever of the names either has. */
TEST(words_and_files) {
  put("a.lua", "return { head_dim = 64, family = 'mma', parts = 2 }");
  put("b.lua", "return { head_dim = 64, family = 'mma', warps_per_key = 2 }");
  same("a.lua parts=4", "b.lua warps_per_key=4");
  same("a.lua warps_per_key=4", "b.lua warps_per_key=4");
  same("b.lua parts=4", "b.lua warps_per_key=4");
  same("a.lua family=wgmma", "head_dim=64 family=wgmma key_parts=2");
}

TEST(in_c) {
  fg_spec spec = FG_INIT(fg_spec);
  fg_grid *grid = NULL;
  spec.head_dim = "64", spec.family = "mma", spec.parts = "2";
  ck_assert_msg(fg_grid_from_spec(&spec, &grid) == FG_OK, "%s", fg_error());
  const fg_plan two = {{1, 64, 64, 2, 8, 2, 0}}, four = {{1, 64, 64, 2, 8, 4, 0}};
  ck_assert(fg_limits_allow(grid->limits[0], &two));
  ck_assert(!fg_limits_allow(grid->limits[0], &four));
  fg_grid_free(grid);
}

/* Where none of the families has such a field, plans without one are what 1 allows. */
TEST(beside_another_family) {
  static const char *const lines[] = {"head_dim=64 family=simt parts=1",
                                      "head_dim=64 family=simt parts=2"};
  const fg_plan plan = {{3, 16, 32, 0, 4}};
  for (int i = 0; i < 2; i++) {
    fg_grid *grid = NULL;
    ck_assert_msg(read_line(lines[i], &grid) == FG_OK, "%s", fg_error());
    ck_assert_int_eq(fg_limits_allow(grid->limits[0], &plan), !i);
    fg_grid_free(grid);
  }
}

#define CALLED "warps_per_key (family mma) or key_parts (family wgmma)"
TEST(not_clear) {
  static const char why[] =
      "parts: it is called " CALLED " now: write the one that is meant, or its family";
  fails("head_dim=64 parts=2", why);
  fails("head_dim=64 family=wgmma,mma parts=2", why);
  fails("head_dim=64 family=mma parts=2 warps_per_key=2",
        "parts: it is called warps_per_key now, which is given too");
  fails("head_dim=64 family=mma parts=2x",
        "parts: \"2x\" is not allowed; expected a positive integer");
  put("a.lua", "return { { head_dim = 64, parts = 2 },\n"
               "         { head_dim = 64, family = 'wgmma', key_parts = 2, parts = 'x' },\n"
               "         { head_dim = 64, family = 'wgmma', parts = {} } }");
  fails("a.lua", "a.lua: table 1: parts: it is called " CALLED
                 " now: write the one that is meant, or its family\n"
                 "a.lua: table 2: parts: it is called key_parts now, which is given too\n"
                 "a.lua: table 2: parts: \"x\" is not allowed; expected a positive integer\n"
                 "a.lua: table 3: parts: the list is empty");
}

/* Names of plans are what they were: their letter is of the field that the family has. */
TEST(names_of_plans) {
  static const struct {
    const char *name;
    int warps_per_key, key_parts;
  } rows[] = {{"attn_bwd-bf16-d64-det.mma-q64-k128-s2-w8-p2.sm_90a", 2, 0},
              {"attn_fwd-bf16-d64.wgmma-q192-k128-s2-w16-p16.sm_90a", 0, 16}};
  for (int i = 0; i < 2; i++) {
    fg_variant v;
    char again[FG_NAME_MAX];
    ck_assert_msg(fg_variant_parse(rows[i].name, &v) == FG_OK, "%s", fg_error());
    ck_assert_int_eq(v.plan.value[FG_PLAN_FIELDS - 2], rows[i].warps_per_key);
    ck_assert_int_eq(v.plan.value[FG_PLAN_FIELDS - 1], rows[i].key_parts);
    fg_variant_name(&v, sizeof again, again);
    ck_assert_str_eq(again, rows[i].name);
  }
}

/* No field is called as another was, and each former name is some field's. */
TEST(rows) {
  for (int i = FG_FIELDS; i < FG_FIELD_ROWS; i++) {
    int n = 0;
    for (int j = 0; j < FG_FIELDS; j++) {
      n += fg_fields[j].former && !strcmp(fg_fields[j].former, fg_fields[i].name);
      ck_assert_str_ne(fg_fields[j].name, fg_fields[i].name);
    }
    ck_assert_int_ge(n, 1);
    ck_assert_ptr_eq(fg_field_find(fg_fields[i].name), &fg_fields[i]);
  }
  const char *near = fg_field_nearest("parts"); /* and none is proposed */
  ck_assert_msg(!near || strcmp(near, "parts"), "%s", near);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
