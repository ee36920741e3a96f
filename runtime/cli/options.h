/* options.h - the table of options: what the command line is read by, and what help prints. */
#ifndef FG_CLI_OPTIONS_H
#define FG_CLI_OPTIONS_H

#include "cli.h"

/* TABLE: a flag, or =FILE. */
typedef enum cli_form { FLAG, TEXT, COUNT, SEED, PAIR, TABLE } cli_form;

typedef struct cli_option {
  const char *name, *letter, *value, *help;
  cli_form form;
  size_t place;    /* in cli */
  const char *key; /* by which commands list it; NULL: its name */
} cli_option;
extern const cli_option cli_options[];
extern const int cli_n_options;

/* Does the command take the option? */
bool cli_takes(const cli_command *command, const cli_option *option);

#endif
