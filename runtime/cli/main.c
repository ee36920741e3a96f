/* main.c - `flashgen`: finds the subcommand and hands over. */
#define _GNU_SOURCE
#include "help.h"

#include "base/setting.h"
#include "base/spelling.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const cli_command *const commands[] = {
    &cli_list,   &cli_emit,   &cli_build, &cli_run,  &cli_check,  &cli_bench, &cli_tune,
    &cli_wisdom, &cli_report, &cli_cache, &cli_draw, &cli_doctor, &cli_help,  NULL};
enum { COMMANDS = sizeof commands / sizeof *commands - 1 };

static void on_interrupt(int signal) {
  (void)signal;
  if (cli_interrupted) {
    cli_result_drop();
    _exit(CLI_STOPPED);
  }
  cli_interrupted = 1;
}

static int unknown(const cli *c, const char *name) {
  const char *names[COMMANDS + 1] = {"version"};
  for (int i = 0; i < COMMANDS; i++) names[i + 1] = commands[i]->name;
  const char *near = fg_nearest(name, names, COMMANDS + 1);
  fprintf(stderr, "flashgen: unknown command \"%s\"%s%s%s\n", name, near ? " (did you mean \"" : "",
          near ? near : "", near ? "\"?)" : "");
  cli_help_overview(c, stderr);
  return CLI_USAGE;
}

/* A standard stream that is closed gets a place that cannot be used, so that no file of ours is
 * opened in its stead and receives what is printed. */
static void hold_streams(void) {
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY); /* the lowest that is free: fd */
}

/* An interrupt that the caller has switched off, as nohup does, stays off. */
static void catch_interrupt(int number) {
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART}, before;
  sigaction(number, NULL, &before);
  if (before.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
}

/* None of what is read gives way to what comes of it. */
static fg_status open_result(const cli *c) {
  if (!c->result) return FG_OK;
  TRY(cli_result_open(c->result));
  for (int i = 0; i < c->n_names; i++) TRY(cli_result_spares(c->names[i]));
  for (int i = 0; i < c->n_files; i++) TRY(cli_result_spares(c->files[i]));
  return c->shapes ? cli_result_spares(c->shapes) : FG_OK;
}

/* Compilers take much memory and give it back, kernel after kernel: kept, it saves 60 % of the page
 * faults of a build, and 1 to 6 % of the processor's time (four of mma's forwards, three rounds,
 * two cores, NVRTC 13.0, 2026-11-22). */
static void keep_memory(void) {
#ifdef __GLIBC__
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

int main(int argc, char **argv) {
  static cli c = {.commands = commands}; /* large */
  keep_memory();
  hold_streams();
  signal(SIGPIPE, SIG_IGN);
  fg_spec_stop_when(&cli_interrupted);
  if (argc < 2) {
    cli_help_overview(&c, stderr);
    return CLI_USAGE;
  }
  if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V") || !strcmp(argv[1], "version")) {
    printf("flashgen %s\n", FG_VERSION);
    return cli_output_close(CLI_OK);
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
    cli_help_overview(&c, stdout);
    return cli_output_close(CLI_OK);
  }
  c.command = cli_command_find(&c, argv[1]);
  if (!c.command) return unknown(&c, argv[1]);
  catch_interrupt(SIGINT);
  catch_interrupt(SIGTERM);
  if (cli_parse(argc - 2, argv + 2, &c) != FG_OK) {
    cli_fail(FG_EARGUMENT);
    fprintf(stderr, "flashgen %s --help says what it takes\n", c.command->name);
    return CLI_USAGE;
  }
  if (c.help) {
    cli_page page = {.to = stdout};
    cli_help_command(&page, c.command);
    return cli_output_close(CLI_OK);
  }
  if (c.command == &cli_help) return cli_output_close(c.command->run(&c));
  /* doctor shows what is wrong with them */
  if (c.command != &cli_doctor && fg_settings_check() != FG_OK)
    return cli_output_close(cli_fail(FG_EARGUMENT));
  /* tune makes the file that its measurements go to */
  if (c.command != &cli_doctor)
    fg_settings_warn(c.command == &cli_tune ? FG_SET_WISDOM : FG_SETTINGS, NULL, NULL);
  fg_status status = open_result(&c);
  int code = status == FG_OK ? c.command->run(&c) : cli_fail(status);
  return cli_output_close(cli_interrupted ? CLI_STOPPED : code);
}
