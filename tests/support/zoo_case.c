/* zoo_case.c - zoos of made-up code, made by the functions of zoo_make.h. */
#include "zoo_case.h"

#include "scratch.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const zoo_names[ZOO_ITEMS] = {"attn_fwd-bf16-d16.simt-q16-k32-w4.sm_80",
                                          "attn_fwd-bf16-d8.simt-q16-k32-w4.host",
                                          "attn_fwd-f16-d8.simt-q4-k32-w4.sm_90a"};
const volatile int zoo_never;

fg_zoo_make *zoo_open_make(void) {
  char note[256];
  fg_zoo_make *make = NULL;
  ck_assert_msg(fg_zoo_make_open("zoo", &zoo_never, sizeof note, note, &make) == FG_OK, "%s",
                fg_error());
  ck_assert_str_eq(note, "");
  return make;
}

fg_code zoo_code(int i) {
  static char bytes[ZOO_CODE];
  fg_code code = {.data = bytes, .size = ZOO_CODE - (size_t)i};
  for (int b = 0; b < ZOO_CODE; b++) bytes[b] = (char)(b * 7 + b / 256 + i);
  snprintf(code.figures, sizeof code.figures, "f registers %d spill 0 stack 8\n", 40 + i);
  return code;
}

fg_zoo_item zoo_item(int i) {
  fg_zoo_item item = {
      .name = zoo_names[i], .expression = "", .compiler = "cc 1.0 -O1", .recipe = ZOO_RECIPE};
  fg_zoo_digest(zoo_names[i], strlen(zoo_names[i]), item.source);
  return item;
}

int zoo_give(fg_zoo_make *make, int i, fg_zoo_record *record) {
  static char block[ZOO_ITEMS][FG_ZOO_BLOCK];
  fg_code code = zoo_code(i);
  fg_zoo_item item = zoo_item(i);
  int recalled = fg_zoo_recall(make, &item);
  if (!recalled) {
    item.figures = code.figures;
    ck_assert_msg(fg_zoo_stage(make, &code, &item) == FG_OK, "%s", fg_error());
  }
  ck_assert_str_eq(item.figures, code.figures);
  ck_assert_int_eq(fg_zoo_print(&item, block[i]), FG_OK);
  snprintf(record->name, sizeof record->name, "%s", zoo_names[i]);
  record->block = block[i];
  return recalled;
}

bool zoo_changed;
int zoo_made(int expect_removed) {
  fg_zoo_record record[ZOO_ITEMS];
  fg_zoo_make *make = zoo_open_make();
  int recalled = 0, removed;
  for (int i = 0; i < ZOO_ITEMS; i++) recalled += zoo_give(make, i, &record[i]);
  ck_assert_msg(fg_zoo_finish(make, ZOO_ITEMS, record, &removed, &zoo_changed) == FG_OK, "%s",
                fg_error());
  ck_assert_int_eq(removed, expect_removed);
  fg_zoo_make_close(make);
  return recalled;
}

size_t zoo_slurp(const char *path, char text[ZOO_TEXT]) {
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f != NULL, "no file %s", path);
  size_t n = fread(text, 1, ZOO_TEXT - 1, f);
  text[n] = 0;
  fclose(f);
  return n;
}

int zoo_files(void) {
  ck_assert_int_eq(chdir("zoo"), 0);
  int n = scratch_files();
  ck_assert_int_eq(chdir(".."), 0);
  return n;
}
