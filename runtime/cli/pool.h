/* pool.h - jobs in worker processes: the host device runs one launch a process, and a job that dies
 * takes nothing with it. Workers end when the caller does, after the job they are at. */
#ifndef FG_POOL_H
#define FG_POOL_H

#include "base/error.h"

/* A job may end its process by _exit(FG_POOL_RENEW): its result counts as it stands, and another
 * worker takes the process's place. */
enum { FG_POOL_RENEW = 1 };

typedef struct fg_pool {
  int n;
  int64_t workers; /* no more than n are started; 0: the jobs run in the caller itself */
  size_t result_size;
  void (*job)(void *context, int i, void *result); /* in a worker */
  /* A worker's functions, both may be NULL: called when it starts, with its number below `workers`;
   * and after a job: nonzero, another process takes its place. */
  void (*start)(void *context, int worker);
  int (*spent)(void *context);
  /* in the caller, in order; nonzero: no new job starts */
  int (*done)(void *context, int i, const void *result, int died);
  void *context;
  const volatile int *stop; /* once set, in the caller or a worker, no new job starts there */
} fg_pool;

/* Runs job(0) .. job(n - 1). A job whose process died (its signal in `died`, else 0) has a result
 * of zero bytes. */
fg_status fg_pool_run(const fg_pool *pool);

#endif
