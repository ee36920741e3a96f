/* suite.c - runs a Check suite. */
#include "suite.h"

#include "scratch.h"

#include <stdlib.h>

/* Check reads the variable when a test case is created, hence before main(). */
__attribute__((constructor)) static void set_timeout(void) {
  setenv("CK_DEFAULT_TIMEOUT", "120", 0);
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
