/* help.h - the pages of `flashgen help`: topics, each of one page or several. */
#ifndef FG_CLI_HELP_H
#define FG_CLI_HELP_H

#include "cli.h"
#include "page.h"

typedef struct cli_topic {
  const char *name, *line;
  /* The name of page i of a topic of several pages, NULL behind the last. NULL: it is one page. */
  const char *(*page)(const cli *c, int i);
  fg_status (*print)(cli_page *page, const cli *c, int i);
} cli_topic;

extern const cli_topic cli_topic_commands, cli_topic_fields, cli_topic_kinds, cli_topic_masks,
    cli_topic_scores, cli_topic_support;

/* Prints the commands and topics, as the program does without a command. */
void cli_help_overview(const cli *c, FILE *to);
/* The command of that name; NULL: there is none. */
const cli_command *cli_command_find(const cli *c, const char *name);
/* What `flashgen COMMAND --help` prints. */
fg_status cli_help_command(cli_page *page, const cli_command *command);
/* One field, as a section, and the page of the topic fields that has it. */
const char *cli_help_field_page(const fg_field *field);
void cli_help_field(cli_page *page, const fg_field *field);

/* The table of which families compute what, on which archs: of these points, or with n = 0 of every
 * value of every field (support.c). */
fg_status cli_support_print(cli_page *page, int n, const fg_point *point);

#endif
