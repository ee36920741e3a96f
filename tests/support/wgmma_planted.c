/* wgmma_planted.c - the frame of the suites of bugs planted in the warpgroup templates. */
#include "wgmma_planted.h"

#include "host/engine.h"
#include "scratch.h"

#include <stdlib.h>

/* Orders enough that a wait behind which a slot may go on is met too late in one. */
enum { ORDERS = 16 };

static struct {
  const planted_bug *bugs, *whole;
  const verify_case *cases;
} given;

static void force(const char *switches) { setenv("FLASHGEN_SWITCH", switches ? switches : "", 1); }

START_TEST(test_bug) {
  planted_bug bug = given.bugs[_i];
  force(bug.switches);
  if (!bug.cases) bug.cases = given.cases;
  planted_try(&bug);
}
END_TEST

START_TEST(test_none) {
  planted_bug none = given.whole[_i];
  force(none.switches);
  if (!none.cases) none.cases = given.cases;
  if (!none.seeds) none.seeds = ORDERS;
  planted_try_none(&none);
}
END_TEST

int wgmma_planted_run(const char *name, int n_bugs, const planted_bug *bugs, int n_whole,
                      const planted_bug *whole, const verify_case *cases) {
  fg_host_watchdog_seconds = 1;
  given.bugs = bugs, given.whole = whole, given.cases = cases;
  Suite *suite = suite_create(name);
  TCase *tests = tcase_create(name);
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_loop(tests, test_bug, n_bugs);
  suite_loop(tests, test_none, n_whole);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
