/* wgmma_planted.h - what the suites of bugs planted in the warpgroup templates share. */
#ifndef FG_TESTS_WGMMA_PLANTED_H
#define FG_TESTS_WGMMA_PLANTED_H

#include "planted_suite.h"

#define WGMMA_BACKWARD "family=wgmma pass=backward "

/* What is said where something is read or written too early, and where a wait never ends or a
 * barrier counts wrongly. */
#define WGMMA_RACE  "race: shared|have come|never written|still filling it|wrong numbers"
#define WGMMA_STUCK "deadlock|second time|more arrivals|has no wait|ends with|still reads"

/* Where a fault may show: files of those that multiply, of a job's rows and keys, of weights, and
 * of movers. */
#define WGMMA_FORWARD                                                                              \
  {"attention/wgmma/forward.cut", NULL}, {"attention/wgmma/values.cut", NULL}, {                   \
    "attention/wgmma/keys_slices.cut", NULL                                                        \
  }
#define WGMMA_JOB                                                                                  \
  {"attention/wgmma/job.cut", NULL}, {"attention/wgmma/keys_range.cut", NULL},                     \
      {"attention/wgmma/turns.cut", NULL}, {                                                       \
    "attention/wgmma/unit.cut", NULL                                                               \
  }
#define WGMMA_WEIGHTS                                                                              \
  {"attention/wgmma/weights.cut", NULL}, {"attention/wgmma/seen.cut", NULL},                       \
      {"attention/wgmma/trials.cut", NULL}, {                                                      \
    "attention/wgmma/most.cut", NULL                                                               \
  }
#define WGMMA_MOVERS                                                                               \
  {"attention/wgmma/movers.cut", NULL}, {"attention/wgmma/queries.cut", NULL}, {                   \
    "attention/wgmma/load_range.cut", NULL                                                         \
  }

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
