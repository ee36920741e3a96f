/* wgmma_planted.h - what the suites of bugs planted in the warpgroup templates share. */
#ifndef FG_TESTS_WGMMA_PLANTED_H
#define FG_TESTS_WGMMA_PLANTED_H

#include "planted.h"

#define WGMMA_BACKWARD "family=wgmma pass=backward "

/* What is said where something is read or written too early, and where a wait never ends or a
 * barrier counts wrongly. */
#define WGMMA_RACE  "race: shared|have come|never written|still filling it|wrong numbers"
#define WGMMA_STUCK "deadlock|second time|more arrivals|has no wait|ends with|still reads"

/* The whole program: a suite of that name, in which each of the bugs is planted, and in which
 * nothing is wrong with each of `whole`, which name no bug, in many orders. The cases count for all
 * that have none. Returns the exit code. */
int wgmma_planted_run(const char *name, int n_bugs, const planted_bug *bugs, int n_whole,
                      const planted_bug *whole, const verify_case *cases);

#endif
