/* wgmma_planted.h - what the suites of bugs planted in the warpgroup templates share. */
#ifndef FG_TESTS_WGMMA_PLANTED_H
#define FG_TESTS_WGMMA_PLANTED_H

#include "planted_suite.h"

#define WGMMA_BACKWARD "family=wgmma pass=backward "

/* What is said where something is read or written too early, and where a wait never ends or a
 * barrier counts wrongly. */
#define WGMMA_RACE  "race: shared|have come|never written|still filling it|wrong numbers"
#define WGMMA_STUCK "deadlock|second time|more arrivals|has no wait|ends with|still reads"

/* Orders enough that a wait behind which a slot may go on is met too late in one. */
enum { ORDERS = 16 };

/* Scores so far apart that no weights of a first tile are safe. */
static const verify_case wgmma_far[] = {{.shape = {.b = 1, .h = 1, .hk = 1, .nq = 150, .nk = 391},
                                         .scale = 9.0f,
                                         .given = FG_GIVEN_SCALE},
                                        {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 130, .nk = 300},
                                         .scale = -9.0f,
                                         .given = FG_GIVEN_SCALE},
                                        {.seed = 0}};

#endif
