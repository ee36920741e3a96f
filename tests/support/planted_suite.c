/* planted_suite.c - the frame of the suites of planted bugs. */
#include "planted_suite.h"

#include "host/engine.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS = sizeof((planted_suite *)0)->bugs / sizeof(planted_list) };

static const planted_suite *given;

/* The bug that all calls of all lists have the number of: 0 is the first. */
static planted_bug bug_of(int number) {
  for (const planted_list *list = given->bugs;; list++)
    for (int i = 0; i < list->n; i++) {
      const int n = planted_count(&list->bug[i]);
      if (number < n) {
        planted_bug bug = list->bug[i];
        bug.nth = number;
        return bug;
      }
      number -= n;
    }
}

static int count_bugs(void) {
  int sum = 0;
  for (int k = 0; k < LISTS; k++)
    for (int i = 0; i < given->bugs[k].n; i++) sum += planted_count(&given->bugs[k].bug[i]);
  return sum;
}

/* Sets what holds for the whole suite. */
static void fill(planted_bug *bug) {
  setenv("FLASHGEN_SWITCH", bug->switches ? bug->switches : "", 1);
  if (!bug->cases) bug->cases = given->cases;
  if (!bug->place[0].where) memcpy(bug->place, given->place, sizeof bug->place);
}

START_TEST(test_bug) {
  planted_bug bug = bug_of(_i);
  fill(&bug);
  planted_try(&bug);
}
END_TEST

START_TEST(test_none) {
  planted_bug none = given->whole.bug[_i];
  fill(&none);
  if (!none.seeds) none.seeds = given->whole_seeds;
  planted_try_none(&none);
}
END_TEST

/* On one line. */
static void print_text(const char *text, char end) {
  for (const char *c = text ? text : "-"; *c; c++)
    if (*c == '\n')
      fputs("\\n", stdout);
    else
      putchar(*c);
  putchar(end);
}

void planted_print(const char *suite, int number, const planted_bug *bug) {
  printf("%s\t%d\t", suite, number);
  print_text(bug->where, '\t');
  print_text(bug->text, '\t');
  print_text(bug->instead, '\t');
  print_text(bug->words, '\t');
  print_text(bug->fault, '\n');
}

bool planted_lists(int argc, char **argv) { return argc > 1 && !strcmp(argv[1], "--list"); }

static int list_bugs(void) {
  const int n = count_bugs();
  for (int i = 0; i < n; i++) {
    const planted_bug bug = bug_of(i);
    planted_print(given->name, i, &bug);
  }
  return EXIT_SUCCESS;
}

int planted_suite_run(const planted_suite *planted, int argc, char **argv) {
  given = planted;
  if (planted_lists(argc, argv)) return list_bugs();
  Suite *suite = suite_create(given->name);
  TCase *tests = tcase_create(given->name);
  fg_host_watchdog_seconds = 1;
  planted_begin();
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_tenth(tests, test_bug, count_bugs());
  suite_tenth(tests, test_none, given->whole.n);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
