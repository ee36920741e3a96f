/* progress.c - one line of progress. */
#include "cli.h"

#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress_start(cli_progress *p, const cli *c, int total) {
  *p = (cli_progress){.total = total, .quiet = c->quiet, .start = now()};
}

void cli_progress_step(cli_progress *p, int failed, const char *name) {
  int before = 10 * p->done / p->total;
  p->done++;
  p->failed += failed;
  if (p->quiet) return;
  double left = (now() - p->start) / p->done * (p->total - p->done);
  if (isatty(2)) {
    fprintf(stderr, "\r\033[K[%d/%d] %d failed, %.0f s left  %.60s", p->done, p->total, p->failed,
            left, name);
    p->shown = 1;
  } else if (10 * p->done / p->total > before) {
    fprintf(stderr, "%d/%d done, %d failed, %.0f s left\n", p->done, p->total, p->failed, left);
  }
}

void cli_progress_end(cli_progress *p) {
  if (p->shown) fputs("\r\033[K", stderr);
}
