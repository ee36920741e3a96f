/* exit.c - how a command ends: exit codes, failures, and whether its output arrived. */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

volatile int cli_interrupted;

/* Who must act decides: the user, whoever wrote the kernel, or the machine's owner. */
int cli_exit_code(fg_status status) {
  switch (status) {
  case FG_OK:
    return CLI_OK;
  case FG_EARGUMENT:
  case FG_ESPEC:
    return CLI_USAGE;
  case FG_ETEMPLATE:
  case FG_ECOMPILER:
  case FG_EBUG:
    return CLI_KERNEL;
  default:
    return CLI_MACHINE;
  }
}

int cli_fail(fg_status status) {
  if (!cli_interrupted) fprintf(stderr, "flashgen: %s\n", fg_error()); /* else its consequence */
  return cli_exit_code(status);
}

static int output_error; /* of the first flush that failed: later ones may have nothing to write */

int cli_flush(void) {
  int failed = fflush(stdout) != 0;
  if (failed && !output_error) output_error = errno;
  return !failed;
}

/* Results that did not reach stdout are a failure; a reader that has seen enough is not: a pipe
 * whose reader left polls as an error. Of a run that broke off a file gets nothing. */
int cli_output_close(int code) {
  struct pollfd reader = {.fd = 1, .events = POLLOUT};
  const char *name = cli_result_name();
  const bool whole = cli_flush() && !ferror(stdout);
  const fg_status status = cli_result_keep(whole && code != CLI_USAGE && code != CLI_MACHINE);
  if (status != FG_OK) return cli_fail(status), code ? code : CLI_MACHINE;
  if (whole || (poll(&reader, 1, 0) > 0 && reader.revents & POLLERR)) return code;
  fprintf(stderr, "flashgen: %s cannot be written%s%s\n", name ? name : "stdout",
          output_error ? ": " : "", output_error ? strerror(output_error) : "");
  return code ? code : CLI_MACHINE;
}
