/* exit.c - how a command ends: exit codes, failures, and whether its output arrived. */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

volatile int cli_interrupted;

const cli_exit cli_exits[CLI_EXITS] = {
    {CLI_OK, "success"},
    {CLI_KERNEL, "a kernel failed, or check had nothing to judge"},
    {CLI_USAGE, "usage, or a bad spec"},
    {CLI_MACHINE, "the machine lacks something: a compiler, a GPU, memory, a file"},
    {CLI_NUMBERS, "wrong numbers"},
    {CLI_STOPPED, "interrupted; build and tune continue where they stopped"},
};

#define STATUS(code, help) [code] = {code, #code, help}
const cli_status cli_statuses[CLI_STATUSES] = {
    STATUS(FG_OK, "nobody: the call succeeded"),
    STATUS(FG_EARGUMENT, "the caller: an argument, tensor or shape is wrong"),
    STATUS(FG_ESPEC, "the author of the spec"),
    STATUS(FG_ETEMPLATE,
           "the author of a template or family; also a fault that the host device found"),
    STATUS(FG_ECOMPILER, "the author of a template: the compiler rejected the kernel's text"),
    STATUS(FG_ECUDA, "the owner of the machine: the CUDA driver failed"),
    STATUS(FG_EIO, "the owner of the machine: a file or directory cannot be used"),
    STATUS(FG_EMEMORY, "the owner of the machine: memory ran out"),
    STATUS(FG_ECAPTURE,
           "the caller: the stream is capturing, and the call would have to compile or load"),
    STATUS(FG_EENVIRONMENT, "the owner of the machine: it lacks a compiler or a GPU"),
    STATUS(FG_EBUG, "the authors of flashgen"),
};

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
