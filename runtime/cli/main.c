/* main.c - `flashgen`: finds the subcommand and hands over. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const cli_command *const commands[] = {&cli_list, &cli_emit, &cli_run, &cli_check,
                                              &cli_doctor};
enum { COMMANDS = sizeof commands / sizeof *commands };

volatile int cli_interrupted;

static void on_interrupt(int signal) {
  (void)signal;
  if (cli_interrupted) _exit(CLI_STOPPED);
  cli_interrupted = 1;
}

static void usage(FILE *to) {
  fprintf(to, "flashgen %s: attention kernels from specs\n\n", FG_VERSION);
  for (int i = 0; i < COMMANDS; i++)
    fprintf(to, "  flashgen %-7s %s\n", commands[i]->name, commands[i]->line);
  fprintf(to, "\nflashgen COMMAND --help says more; flashgen --version prints the version.\n");
}

static const cli_command *find(const char *name) {
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(commands[i]->name, name)) return commands[i];
  return NULL;
}

static int unknown(const char *name) {
  const char *names[COMMANDS];
  for (int i = 0; i < COMMANDS; i++) names[i] = commands[i]->name;
  const char *near = fg_nearest(name, names, COMMANDS);
  fprintf(stderr, "flashgen: unknown command \"%s\"%s%s%s\n", name, near ? " (did you mean \"" : "",
          near ? near : "", near ? "\"?)" : "");
  usage(stderr);
  return CLI_USAGE;
}

int cli_fail(fg_status status) {
  fprintf(stderr, "flashgen: %s\n", fg_error());
  switch (status) {
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

/* Results that did not reach stdout are a failure; a reader that has seen enough is not. */
static int close_output(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  if (errno == EPIPE) return code;
  fprintf(stderr, "flashgen: stdout cannot be written: %s\n", strerror(errno));
  return code ? code : CLI_MACHINE;
}

int main(int argc, char **argv) {
  static cli c; /* large */
  if (argc < 2) {
    usage(stderr);
    return CLI_USAGE;
  }
  if (!strcmp(argv[1], "--version")) {
    printf("flashgen %s\n", FG_VERSION);
    return close_output(CLI_OK);
  }
  int help = !strcmp(argv[1], "help");
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (help && argc == 2)) {
    usage(stdout);
    return close_output(CLI_OK);
  }
  c.command = find(argv[help ? 2 : 1]);
  if (!c.command) return unknown(argv[help ? 2 : 1]);
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  if (!help && cli_parse(argc - 2, argv + 2, &c) != FG_OK) {
    cli_fail(FG_EARGUMENT);
    fprintf(stderr, "flashgen %s --help says what it takes\n", c.command->name);
    return CLI_USAGE;
  }
  if (help || c.help) {
    cli_help(stdout, c.command);
    return close_output(CLI_OK);
  }
  int code = c.command->run(&c);
  return close_output(cli_interrupted ? CLI_STOPPED : code);
}
