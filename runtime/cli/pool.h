/* pool.h - jobs in worker processes: the host device runs one launch a process, and a job that dies
 * takes nothing with it. */
#ifndef FG_POOL_H
#define FG_POOL_H

#include "error.h"

typedef struct fg_pool {
  int n, workers;
  size_t result_size;
  void (*job)(void *context, int i, void *result);                  /* in a worker */
  void (*done)(void *context, int i, const void *result, int died); /* in the caller, in order */
  void *context;
  const volatile int *stop; /* once set, no new job starts */
} fg_pool;

/* Runs job(0) .. job(n - 1). A job whose process died (its signal in `died`, else 0) has a result
 * of zero bytes. *finished: the jobs that were run. */
fg_status fg_pool_run(const fg_pool *pool, int *finished);

#endif
