/* suite.c - runs a Check suite. */
#include "suite.h"

#include "scratch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Check reads the variable when a test case is created, hence before main(). */
__attribute__((constructor)) static void set_timeout(void) {
  setenv("CK_DEFAULT_TIMEOUT", "120", 0);
}

bool suite_is_quick(void) {
  const char *text = getenv("FLASHGEN_TEST_QUICK");
  return text && *text == '1';
}

void suite_loop(TCase *cases, const TTest *test, int n) {
  const char *text = getenv("FLASHGEN_TEST_CASES");
  int first = 0, last = n - 1, part, parts;
  if (text && sscanf(text, "%d%%%d", &part, &parts) == 2 && part >= 0 && parts >= 1) {
    for (int i = part; i < n; i += parts) tcase_add_loop_test(cases, test, i, i + 1);
    return;
  }
  if (text && sscanf(text, "%d/%d", &part, &parts) == 2 && part >= 1 && part <= parts)
    first = (int)((int64_t)n * (part - 1) / parts), last = (int)((int64_t)n * part / parts) - 1;
  else if (text && sscanf(text, "%d-%d", &first, &last) == 1)
    last = first;
  if (first < 0) first = 0;
  if (last >= n) last = n - 1;
  tcase_add_loop_test(cases, test, first, last + 1);
}

int suite_run(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  scratch_begin();
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  scratch_end();
  return failed != 0;
}
