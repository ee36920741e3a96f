/* clock.h - seconds, by the clock on the wall or of the processor. */
#ifndef FG_TESTS_CLOCK_H
#define FG_TESTS_CLOCK_H

#include <time.h>

static inline double clock_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Since some time in the past. */
static inline double clock_now(void) { return clock_seconds(CLOCK_MONOTONIC); }

#endif
