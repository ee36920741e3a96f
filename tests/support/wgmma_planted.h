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

#endif
