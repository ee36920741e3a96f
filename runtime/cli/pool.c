/* pool.c - workers take jobs from a shared counter and leave results in shared memory. */
#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAITING, RUNNING, DONE, DIED };
enum { TICK = 50 }; /* milliseconds between looks for workers that died */

/* Shared by all processes. */
typedef struct {
  _Atomic int next, stop;
  struct {
    _Atomic int state, worker, signal;
  } job[];
} board;

typedef struct {
  const fg_pool *pool;
  board *board;
  char *results;
  size_t board_bytes, result_bytes;
  pid_t *pid, caller;
  int workers;
  int pipe[2]; /* a byte for each job that ends */
  int reported;
} run;

static int work(run *r, int worker) {
  board *b = r->board;
  if (r->pool->start) r->pool->start(r->pool->context, worker);
  for (int i; !b->stop && !*r->pool->stop && (i = atomic_fetch_add(&b->next, 1)) < r->pool->n;) {
    b->job[i].worker = worker;
    b->job[i].state = RUNNING;
    r->pool->job(r->pool->context, i, r->results + (size_t)i * r->pool->result_size);
    b->job[i].state = DONE;
    if (write(r->pipe[1], "", 1) < 0) break;
    if (r->pool->spent && r->pool->spent(r->pool->context)) return FG_POOL_RENEW;
  }
  return 0;
}

static fg_status start(run *r, int worker) {
  fflush(NULL);
  r->pid[worker] = fork();
  if (r->pid[worker] < 0) return fg_fail(FG_EIO, "fork: %s", strerror(errno));
  if (r->pid[worker]) return FG_OK;
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* which sets *stop: a second interrupt ends the caller */
  _exit(getppid() == r->caller ? work(r, worker) : 0);
}

/* Hands results on in the order of the jobs. */
static void report(run *r) {
  for (; r->reported < r->pool->n; r->reported++) {
    int i = r->reported, state = r->board->job[i].state;
    if (state != DONE && state != DIED) return;
    if (r->pool->done(r->pool->context, i, r->results + (size_t)i * r->pool->result_size,
                      r->board->job[i].signal))
      r->board->stop = 1;
  }
}

/* Ended workers: the job that one was at when a signal killed it has died, and another worker takes
 * its place. Returns how many still run. */
static int reap(run *r) {
  int running = 0;
  for (int w = 0; w < r->workers; w++) {
    int state;
    if (!r->pid[w]) continue;
    if (waitpid(r->pid[w], &state, WNOHANG) == 0) {
      running++;
      continue;
    }
    r->pid[w] = 0;
    const bool spent = WIFEXITED(state) && WEXITSTATUS(state) == FG_POOL_RENEW;
    bool again = spent;
    for (int i = 0; i < r->pool->n && (spent || WIFSIGNALED(state)); i++) {
      if (r->board->job[i].state != RUNNING || r->board->job[i].worker != w) continue;
      again = true;
      if (!spent) {
        memset(r->results + (size_t)i * r->pool->result_size, 0, r->pool->result_size);
        r->board->job[i].signal = WTERMSIG(state);
      }
      r->board->job[i].state = spent ? DONE : DIED;
    }
    if (again && !r->board->stop && start(r, w) == FG_OK) running++;
  }
  return running;
}

static fg_status map(size_t bytes, void **p) {
  *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *p == MAP_FAILED ? (*p = NULL, fg_fail(FG_EMEMORY, "no memory for the workers")) : FG_OK;
}

static fg_status run_jobs(run *r) {
  void *board_place, *results;
  r->board_bytes = sizeof(board) + (size_t)r->pool->n * sizeof r->board->job[0];
  r->result_bytes = (size_t)r->pool->n * r->pool->result_size;
  TRY(map(r->board_bytes, &board_place));
  r->board = board_place;
  TRY(map(r->result_bytes, &results));
  r->results = results;
  r->pid = calloc((size_t)r->workers, sizeof *r->pid);
  if (!r->pid || pipe2(r->pipe, O_CLOEXEC)) return fg_fail(FG_EMEMORY, "no memory for the workers");
  for (int w = 0; w < r->workers; w++) TRY(start(r, w));
  struct pollfd ended = {.fd = r->pipe[0], .events = POLLIN};
  for (int running = 1; running;) {
    char bytes[64];
    if (poll(&ended, 1, TICK) > 0 && read(r->pipe[0], bytes, sizeof bytes) < 0) break;
    if (*r->pool->stop) r->board->stop = 1;
    running = reap(r);
    report(r);
  }
  return FG_OK;
}

/* Without workers. */
static fg_status run_here(const fg_pool *pool) {
  void *result = malloc(pool->result_size);
  if (!result) return fg_fail(FG_EMEMORY, "no memory for a result");
  int enough = 0;
  if (pool->start) pool->start(pool->context, 0);
  for (int i = 0; i < pool->n && !*pool->stop && !enough; i++) {
    memset(result, 0, pool->result_size);
    pool->job(pool->context, i, result);
    enough = pool->done(pool->context, i, result, 0);
  }
  free(result);
  return FG_OK;
}

fg_status fg_pool_run(const fg_pool *pool) {
  if (pool->workers == 0) return run_here(pool);
  run r = {.pool = pool,
           .pipe = {-1, -1},
           .caller = getpid(),
           .workers = (int)(pool->workers < pool->n ? pool->workers : pool->n)};
  if (pool->n == 0) return FG_OK;
  fg_status status = run_jobs(&r);
  for (int w = 0; r.pid && w < r.workers; w++)
    if (r.pid[w] > 0) kill(r.pid[w], SIGKILL), waitpid(r.pid[w], NULL, 0);
  if (r.board) munmap(r.board, r.board_bytes);
  if (r.results) munmap(r.results, r.result_bytes);
  for (int i = 0; i < 2; i++)
    if (r.pipe[i] >= 0) close(r.pipe[i]);
  free(r.pid);
  return status;
}
