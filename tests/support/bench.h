/* bench.h - what measurements share: a call that must succeed, and the median of many times. */
#ifndef FG_TESTS_BENCH_H
#define FG_TESTS_BENCH_H

#include "clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

/* The call succeeds, or the program ends with its sentence. */
#define GOOD(call)                                                                                 \
  do {                                                                                             \
    if ((call) != FG_OK) {                                                                         \
      fprintf(stderr, "%s: %s\n", #call, fg_error());                                              \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static inline int bench_by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the list. */
static inline double bench_median(double *list, int n) {
  qsort(list, (size_t)n, sizeof *list, bench_by_value);
  return list[n / 2];
}

#endif
