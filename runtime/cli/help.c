/* help.c - `flashgen help`: the reference, printed from the tables that the program works by. */
#include "help.h"

#include "base/setting.h"
#include "base/spelling.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

const cli_command *cli_command_find(const cli *c, const char *name) {
  for (int i = 0; c->commands[i]; i++)
    if (!strcmp(c->commands[i]->name, name)) return c->commands[i];
  return NULL;
}

/* ---- pages of one table each ---- */

static fg_status print_environment(cli_page *page, const cli *c, int i) {
  (void)c, (void)i;
  cli_page_title(page, 1, "Environment variables");
  cli_page_text(page, "An empty value counts as not set. `flashgen doctor` prints each value.");
  const cli_column columns[] = {{"`variable", 24}, {"`default", 7}, {"meaning", 0}};
  cli_page_table(page, 3, columns);
  for (int s = 0; s < FG_SETTINGS; s++)
    cli_page_row(
        page, (const char *[]){fg_settings[s].name, fg_settings[s].fallback, fg_settings[s].help});
  cli_page_end(page);
  return FG_OK;
}

static fg_status print_archs(cli_page *page, const cli *c, int i) {
  (void)c, (void)i;
  cli_page_title(page, 1, "Archs");
  cli_page_text(page,
                "An arch names the GPUs that a kernel runs on; these families compute there.");
  const cli_column columns[] = {{"`arch", 12}, {"families", 25}, {"GPUs", 0}};
  cli_page_table(page, 3, columns);
  for (int a = 0; a < fg_n_archs; a++)
    cli_page_row(
        page, (const char *[]){fg_archs[a].name, fg_arch_families(&fg_archs[a]), fg_archs[a].gpus});
  cli_page_end(page);
  return FG_OK;
}

static fg_status print_exits(cli_page *page, const cli *c, int i) {
  char number[8], code[8];
  (void)c, (void)i;
  cli_page_title(page, 1, "Exit codes and errors");
  cli_page_text(page, "Results go to stdout and everything else to stderr.");
  const cli_column exits[] = {{"`exit code", 4}, {"meaning", 0}};
  cli_page_table(page, 2, exits);
  for (int e = 0; e < CLI_EXITS; e++) {
    snprintf(number, sizeof number, "%d", cli_exits[e].code);
    cli_page_row(page, (const char *[]){number, cli_exits[e].help});
  }
  cli_page_end(page);
  cli_page_title(page, 2, "Errors of the library");
  cli_page_text(page,
                "A function that fails returns who must act, and fg_error() has the sentence. "
                "The program ends with the exit code on the right.");
  const cli_column errors[] = {
      {"`fg_status", 16}, {"`value", 5}, {"`exit code", 9}, {"who acts", 0}};
  cli_page_table(page, 4, errors);
  for (int s = 0; s < CLI_STATUSES; s++) {
    snprintf(number, sizeof number, "%d", (int)cli_statuses[s].status);
    snprintf(code, sizeof code, "%d", cli_exit_code(cli_statuses[s].status));
    cli_page_row(page, (const char *[]){cli_statuses[s].name, number, code, cli_statuses[s].help});
  }
  cli_page_end(page);
  return FG_OK;
}

/* ---- topics ---- */

static const cli_topic environment = {
    .name = "environment", .line = "environment variables", .print = print_environment};
static const cli_topic archs = {
    .name = "archs", .line = "the GPUs, and which families compute there", .print = print_archs};
static const cli_topic exits = {
    .name = "exit_codes", .line = "exit codes and errors", .print = print_exits};
static const cli_topic *const topics[] = {
    &cli_topic_fields,  &cli_topic_kinds, &cli_topic_masks, &cli_topic_scores,
    &environment,       &exits,           &archs,           &cli_topic_support,
    &cli_topic_commands};
enum { TOPICS = sizeof topics / sizeof *topics };

static int page_count(const cli *c, const cli_topic *topic) {
  int n = 1;
  while (topic->page && topic->page(c, n)) n++;
  return n;
}

void cli_help_overview(const cli *c, FILE *to) {
  fprintf(to, "flashgen %s: attention kernels from specs\n\n", FG_VERSION);
  for (int i = 0; c->commands[i]; i++)
    fprintf(to, "  flashgen %-7s %s\n", c->commands[i]->name, c->commands[i]->line);
  fprintf(to, "\nflashgen COMMAND --help says more; flashgen version prints the version.\n"
              "flashgen help TOPIC prints a table of the reference:\n\n");
  for (int i = 0; i < TOPICS; i++)
    fprintf(to, "  flashgen help %-12s %s\n", topics[i]->name, topics[i]->line);
}

static fg_status unknown(const cli *c, const char *name) {
  enum { MOST = TOPICS + FG_FIELDS + 32 };
  const char *names[MOST];
  int n = 0;
  for (int i = 0; i < TOPICS; i++) names[n++] = topics[i]->name;
  for (int i = 0; i < FG_FIELDS; i++) names[n++] = fg_fields[i].name;
  for (int i = 0; c->commands[i] && n < MOST; i++) names[n++] = c->commands[i]->name;
  const char *near = fg_nearest(name, names, n);
  return fg_fail(FG_EARGUMENT, "help has no topic \"%s\"%s%s%s", name,
                 near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

/* A topic with all its pages, one of its pages, or a field. */
static fg_status print_name(cli_page *page, const cli *c, const char *name) {
  for (int t = 0; t < TOPICS; t++)
    if (!strcmp(topics[t]->name, name)) {
      for (int i = 0; i < page_count(c, topics[t]); i++) TRY(topics[t]->print(page, c, i));
      return FG_OK;
    }
  const cli_command *command = cli_command_find(c, name);
  if (command) return cli_help_command(page, command);
  for (int t = 0; t < TOPICS; t++)
    for (int i = 0; topics[t]->page && topics[t]->page(c, i); i++)
      if (!strcmp(topics[t]->page(c, i), name)) return topics[t]->print(page, c, i);
  const fg_field *field = fg_field_find(name);
  if (!field || !field->help) return unknown(c, name);
  cli_help_field(page, field);
  return FG_OK;
}

static fg_status make_folder(const char *path) {
  if (!mkdir(path, 0777) || errno == EEXIST) return FG_OK;
  return fg_fail(FG_EIO, "cannot make the directory %s: %s", path, strerror(errno));
}

static fg_status write_page(const cli *c, const cli_topic *topic, int i) {
  char folder[PATH_MAX], path[PATH_MAX + 64];
  const char *suffix = c->markdown ? "md" : "txt";
  snprintf(folder, sizeof folder, "%.3000s%s%s", c->directory, topic->page ? "/" : "",
           topic->page ? topic->name : "");
  snprintf(path, sizeof path, "%s/%s.%s", folder, topic->page ? topic->page(c, i) : topic->name,
           suffix);
  TRY(make_folder(folder));
  cli_page page = {.to = fopen(path, "we"), .markdown = c->markdown, .folder = folder};
  if (!page.to) return fg_fail(FG_EIO, "cannot write %s: %s", path, strerror(errno));
  fg_status status = topic->print(&page, c, i);
  const bool failed = ferror(page.to) != 0;
  if ((fclose(page.to) || failed) && status == FG_OK)
    status = fg_fail(FG_EIO, "cannot write %s: %s", path, strerror(errno));
  return status;
}

static fg_status write_all(const cli *c) {
  TRY(make_folder(c->directory));
  for (int t = 0; t < TOPICS; t++)
    for (int i = 0; i < page_count(c, topics[t]); i++) TRY(write_page(c, topics[t], i));
  return FG_OK;
}

static int run(cli *c) {
  cli_page page = {.to = stdout, .markdown = c->markdown};
  fg_status status = FG_OK;
  if (c->directory && !c->n_names)
    status = write_all(c);
  else if (c->directory)
    status = fg_fail(FG_EARGUMENT, "-o DIR takes all pages: name no topic");
  else if (!c->n_names)
    cli_help_overview(c, stdout);
  for (int i = 0; i < c->n_names && status == FG_OK; i++)
    status = print_name(&page, c, c->names[i]);
  return status == FG_OK ? CLI_OK : cli_fail(status);
}

const cli_command cli_help = {
    .name = "help",
    .line = "the reference: commands, fields, tensors, masks, environment",
    .usage = "[COMMAND|TOPIC|FIELD]",
    .options = " help markdown pages ",
    .examples = "  flashgen help fields\n"
                "  flashgen help head_dim\n"
                "  flashgen help attention          the tensors of a launch of kernel=attention\n"
                "  flashgen help masks --markdown\n"
                "  flashgen help --markdown -o reference\n",
    .takes_names = 1,
    .run = run};
