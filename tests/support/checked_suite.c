/* checked_suite.c - the frame of the suites of bugs that `flashgen check` must see. */
#include "checked_suite.h"

#include "base/setting.h"
#include "cli/cli.h"
#include "planted_suite.h"
#include "program.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 32 };

static const checked_bug *given;

/* The command's exit code; what it prints is in the file "out". */
static int check_here(const char *line) {
  static cli c; /* large */
  char text[1024], *word[WORDS], *rest;
  int n = 0;
  snprintf(text, sizeof text, "%s", line);
  for (char *w = strtok_r(text, " ", &rest); w && n < WORDS; w = strtok_r(NULL, " ", &rest))
    word[n++] = w;
  for (int i = 0; i < FG_SETTINGS; i++)
    if (!strncmp(fg_settings[i].name, "FLASHGEN_", 9)) unsetenv(fg_settings[i].name);
  setenv("FLASHGEN_DEVICE", "host", 1);
  setenv("FLASHGEN_CACHE", "cache", 1);
  setenv("FLASHGEN_TEMPLATES", "t", 1);
  c.command = &cli_check;
  GOOD(cli_parse(n, word, &c));
  ck_assert_ptr_nonnull(freopen("out", "w", stdout));
  const int code = c.command->run(&c);
  fflush(stdout);
  return code;
}

static int check_by_program(const char *line) {
  static const program_setup with_templates = {.env = {"FLASHGEN_TEMPLATES=t"}};
  const program_result r = program_run(&with_templates, "check %s", line);
  scratch_put("out", r.out, strlen(r.out));
  return r.code;
}

START_TEST(test_bug) {
  const checked_bug *b = &given[_i];
  char line[512], said[4096] = "";
  snprintf(line, sizeof line, "-q --seed 1 %s", b->words);
  planted_in_t(b->where, b->text, b->instead);
  const bool by_program = b->code > BY_PROGRAM;
  const int code = by_program ? BY_PROGRAM + check_by_program(line) : check_here(line);
  FILE *out = fopen("out", "r");
  if (out) said[fread(said, 1, sizeof said - 1, out)] = 0, fclose(out);
  ck_assert_msg(code == b->code, "%s: %s -> %s: exit %d\n%s", b->where, b->text, b->instead, code,
                said);
}
END_TEST

static int list_bugs(const char *name, int n) {
  for (int i = 0; i < n; i++) {
    const checked_bug *b = &given[i];
    const planted_bug bug = {.where = b->where,
                             .text = b->text,
                             .instead = b->instead,
                             .words = b->words,
                             .fault = b->code % BY_PROGRAM == 1 ? "1" : "4"};
    planted_print(name, i, &bug);
  }
  return EXIT_SUCCESS;
}

int checked_suite_run(const char *name, int n, const checked_bug *bugs, int argc, char **argv) {
  given = bugs;
  if (planted_lists(argc, argv)) return list_bugs(name, n);
  Suite *suite = suite_create(name);
  TCase *tests = tcase_create(name);
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_tenth(tests, test_bug, n);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
