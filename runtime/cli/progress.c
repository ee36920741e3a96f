/* progress.c - one line of progress.
 *
 * On a terminal it is written over in place with nothing but a carriage return and spaces, which
 * TERM=dumb can do too, and cut to the terminal's width. */
#include "cli.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int width(void) {
  struct winsize size;
  return ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
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
    char line[FG_NAME_MAX + 64];
    snprintf(line, sizeof line, "[%d/%d] %d failed, %.0f s left  %s", p->done, p->total, p->failed,
             left, name);
    int shown = (int)strnlen(line, (size_t)(width() - 1)); /* the last column may wrap */
    fprintf(stderr, "\r%.*s%*s\r%.*s", shown, line, p->shown > shown ? p->shown - shown : 0, "",
            shown, line);
    p->shown = shown;
  } else if (10 * p->done / p->total > before) {
    fprintf(stderr, "%d/%d done, %d failed, %.0f s left\n", p->done, p->total, p->failed, left);
  }
}

void cli_progress_end(cli_progress *p) {
  if (p->shown) fprintf(stderr, "\r%*s\r", p->shown, "");
  p->shown = 0;
}
