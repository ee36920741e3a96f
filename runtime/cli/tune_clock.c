/* tune_clock.c - the time that a tune has spent of its budget. */
#include "tune.h"

#include <time.h>

double tune_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool tune_is_late(const tune *t, double share) {
  return t->deadline > 0 && tune_now() > t->start + share * (t->deadline - t->start);
}
