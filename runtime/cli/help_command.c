/* help_command.c - the help of one command: its options, words and examples. */
#include "help.h"
#include "options.h"

#include <string.h>

static void print_option(cli_page *page, const cli_option *o) {
  const bool is_table = o->form == TABLE;
  char name[64];
  snprintf(name, sizeof name, "%s%s--%s%s%s%s", o->letter ? o->letter : "",
           o->letter        ? ", "
           : page->markdown ? ""
                            : "    ",
           o->name,
           is_table   ? "[="
           : o->value ? " "
                      : "",
           o->value ? o->value : "", is_table ? "]" : "");
  cli_page_row(page, (const char *[]){name, o->help});
}

/* "the result, or ...: forward, backward"; "... (restricts plans of wgmma)" */
static void print_field(cli_page *page, const fg_field *field) {
  char text[512];
  int n = snprintf(text, sizeof text, "%s%s", field->help, field->plan ? " (restricts plans" : "");
  for (int i = 0; field->families && field->families[i]; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", i ? ", " : " of ", field->families[i]);
  if (field->plan) n += snprintf(text + n, sizeof text - (size_t)n, ")");
  for (int i = 0; field->type == &fg_type_choice && field->choices[i]; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", i ? ", " : ": ", field->choices[i]);
  cli_page_row(page, (const char *[]){field->name, text});
}

/* Text has all that a reader needs at once; Markdown has pages of fields and archs. */
static void print_tables(cli_page *page, const cli_command *command) {
  const bool has_archs = strstr(command->options, " arch "),
             has_words = strstr(command->usage, "WORD");
  if (page->markdown && has_words)
    fprintf(page->to, "Words are `field=value`, or `field=value,value` for several values: [the "
                      "fields of a spec](../fields/problem.md).\n\n");
  if (page->markdown && has_archs)
    fprintf(page->to, "[The archs](../archs.md) are a page of their own.\n\n");
  if (page->markdown) return;
  if (has_archs) {
    cli_page_text(page, "\narchs, and which families compute there:");
    cli_page_table(page, 3, (const cli_column[]){{"arch", 12}, {"families", 17}, {"GPUs", 0}});
    for (int i = 0; i < fg_n_archs; i++)
      cli_page_row(page, (const char *[]){fg_archs[i].name, fg_arch_families(&fg_archs[i]),
                                          fg_archs[i].gpus});
  }
  if (!has_words) return;
  cli_page_text(page, "\nwords are field=value, or field=value,value for several:");
  cli_page_table(page, 2, (const cli_column[]){{"field", 13}, {"meaning", 0}});
  for (int i = 0; i < FG_FIELDS; i++) print_field(page, &fg_fields[i]);
}

/* Options of one name, whose meanings differ from command to command, are rows of their own. */
fg_status cli_help_command(cli_page *page, const cli_command *command) {
  const bool takes_more = *command->usage != 0;
  if (page->markdown) {
    cli_page_title(page, 1, "flashgen %s", command->name);
    cli_page_text(page, "%s.", command->line);
    fprintf(page->to, "Usage: `flashgen %s%s%s`\n\n", command->name, takes_more ? " " : "",
            command->usage);
  } else {
    cli_page_title(page, 1, "flashgen %s: %s", command->name, command->line);
    cli_page_text(page, "usage: flashgen %s %s\n", command->name, command->usage);
  }
  cli_page_table(page, 2, (const cli_column[]){{"`option", 26}, {"meaning", 0}});
  for (int i = 0; i < cli_n_options; i++)
    if (cli_takes(command, &cli_options[i])) print_option(page, &cli_options[i]);
  cli_page_end(page);
  print_tables(page, command);
  if (page->markdown)
    cli_page_title(page, 2, "Examples");
  else
    cli_page_text(page, "\nexamples:");
  cli_page_code(page, command->examples);
  return FG_OK;
}

static const char *command_name(const cli *c, int i) {
  return c->commands[i] ? c->commands[i]->name : NULL;
}

static fg_status print_command(cli_page *page, const cli *c, int i) {
  return cli_help_command(page, c->commands[i]);
}

const cli_topic cli_topic_commands = {.name = "commands",
                                      .line = "each command with its options and examples",
                                      .page = command_name,
                                      .print = print_command};
