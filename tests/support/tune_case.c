/* tune_case.c - files of wisdom that `flashgen tune` wrote. */
#include "tune_case.h"

#include <stdio.h>
#include <stdlib.h>

fg_wisdom_report tune_count(const char *file) {
  fg_wisdom w;
  fg_wisdom_report r;
  ck_assert_msg(fg_wisdom_read(file, false, &w) == FG_OK, "%s", fg_error());
  fg_wisdom_count(&w, &r);
  fg_wisdom_free(&w);
  return r;
}

fg_measured_list tune_list(const char *file) {
  fg_wisdom w;
  fg_measured_list list = {0};
  ck_assert_int_eq(fg_wisdom_read(file, false, &w), FG_OK);
  ck_assert_int_eq(fg_measured_add(w.text, w.n, &list), FG_OK);
  fg_wisdom_free(&w);
  fg_measured_sort(&list);
  return list;
}

int tune_having(const char *file, fg_measured_status status, const char *reason) {
  fg_measured_list list = tune_list(file);
  int n = 0;
  for (int i = 0; i < list.n; i++) {
    if (list.item[i]->status != status) continue;
    n++;
    if (reason)
      program_says(list.item[i]->reason, reason);
    else
      ck_assert_str_eq(list.item[i]->reason, "");
  }
  fg_measured_free(&list);
  return n;
}

bool tune_json_is_right(const char *wisdom, const char *table) {
  char command[1024];
  snprintf(command, sizeof command,
           PYTHON " -B " FLASHGEN_SOURCE "/tests/wisdom_json.py %s %s > json.out 2>&1", wisdom,
           table);
  return system(command) == 0;
}

void tune_check_json(const char *wisdom, const char *table) {
  ck_assert_msg(tune_json_is_right(wisdom, table), "%s", program_text("json.out"));
}
