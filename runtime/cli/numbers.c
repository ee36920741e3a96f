/* numbers.c - words that set numbers: the extents of a shape, and those of a spec's inputs. */
#include "cli.h"

#include "base/spelling.h"
#include "launch.h"
#include "recipe/extent.h"
#include "spec/table.h"

#include <string.h>

bool cli_shape_is_given(const fg_shape *words) {
  for (int i = 0; i < FG_EXTENTS; i++)
    if (fg_extent_get(&fg_extents[i], words) >= 0) return true;
  return false;
}

/* The type that the point's list of inputs, "cap=float, width=int", declares the number with; NULL:
 * it does not. */
static const char *type_of(const fg_point *point, const char *name) {
  size_t n = strlen(name);
  for (const char *at = point->inputs; at && *at;
       at = strstr(at, ", ") ? strstr(at, ", ") + 2 : NULL)
    if (!strncmp(at, name, n) && at[n] == '=' &&
        (!strncmp(at + n + 1, "int", 3) || !strncmp(at + n + 1, "float", 5)))
      return at + n + 1;
  return NULL;
}

/* The nearest of fields, run-time arguments and the points' numbers. */
static void report_unknown(fg_report *report, const char *name, int n, const fg_point *point) {
  char number[FG_INPUT_SLOTS][64];
  const char *names[FG_FIELDS + FG_EXTENTS + CLI_LAUNCH_NUMBERS + FG_LAUNCH_NUMBERS + FG_INPUT_SLOTS];
  int count = 0, numbers = 0;
  for (int i = 0; i < FG_FIELDS; i++) names[count++] = fg_fields[i].name;
  for (int i = 0; i < FG_EXTENTS; i++) names[count++] = fg_extents[i].name;
  for (int i = 0; i < CLI_LAUNCH_NUMBERS; i++) names[count++] = cli_launch_numbers[i].name;
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++) names[count++] = fg_launch_numbers[i].name;
  for (int j = 0; j < n; j++)
    for (const char *at = point[j].inputs; at && *at && numbers < FG_INPUT_SLOTS;
         at = strstr(at, ", ") ? strstr(at, ", ") + 2 : NULL) {
      snprintf(number[numbers], sizeof *number, "%.*s", (int)strcspn(at, "="), at);
      if (type_of(&point[j], number[numbers])) names[count++] = number[numbers++];
    }
  const char *near = fg_nearest(name, names, count);
  fg_report_add(report, "unknown field \"%.64s\"%s%s%s", name, near ? " (did you mean \"" : "",
                near ? near : "", near ? "\"?)" : "");
}

fg_status cli_grid_read(const cli *c, int n, const char *const *more, fg_grid **grid) {
  const char *words[3 * CLI_LIST_MAX];
  int count = 0;
  for (int i = 0; i < c->n_words; i++) words[count++] = c->words[i];
  for (int i = 0; i < c->n_either; i++) words[count++] = c->either[i];
  for (int i = 0; i < n && i < CLI_LIST_MAX; i++) words[count++] = more[i];
  TRY(fg_grid_read(c->n_files, c->files, count, words, grid));
  return c->command->takes_arguments ? FG_OK : fg_grid_without_launch(*grid);
}

/* All mistakes come in one report. */
fg_status cli_numbers_check(const cli *c, int n, const fg_point *point) {
  fg_report report = {0};
  for (int i = 0; i < c->n_numbers; i++) {
    const char *type = NULL;
    for (int j = 0; j < n && !type; j++) type = type_of(&point[j], c->number[i].name);
    if (!type && fg_field_find(c->number[i].name)) continue; /* a field; the grid judged it */
    if (!type)
      report_unknown(&report, c->number[i].name, n, point);
    else if (fg_number_check(c->number[i].name, *type == 'f', c->number[i].value) != FG_OK)
      fg_report_add(&report, "%s", fg_error());
  }
  fg_status status = fg_report_raise(&report);
  fg_report_free(&report);
  return status;
}

const cli_number *cli_number_find(const cli *c, const char *name) {
  for (int i = 0; i < c->n_numbers; i++)
    if (!strcmp(c->number[i].name, name)) return &c->number[i];
  return NULL;
}

/* Says of a number that no word sets what it counts as, unless it is in the list already. */
static void say_unset(const cli *c, const char *name, cli_number *said, int *n) {
  for (int i = 0; i < *n; i++)
    if (!strcmp(said[i].name, name)) return;
  if (cli_number_find(c, name) || *n == FG_INPUT_SLOTS) return;
  snprintf(said[(*n)++].name, sizeof said->name, "%s", name);
  fprintf(stderr, "flashgen: %s is not given and counts as 1; %s=NUMBER sets it\n", name, name);
}

void cli_numbers_say(const cli *c, int n, const fg_point *point) {
  cli_number said[FG_INPUT_SLOTS];
  int n_said = 0;
  for (int j = 0; j < n; j++)
    for (const char *at = point[j].inputs; at && *at;
         at = strstr(at, ", ") ? strstr(at, ", ") + 2 : NULL) {
      char name[sizeof said->name];
      snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "="), at);
      if (type_of(&point[j], name)) say_unset(c, name, said, &n_said);
    }
}

void cli_numbers_set(const cli *c, fg_problem *problem) {
  if (c->arguments.has_scale) problem->args.given |= FG_GIVEN_SCALE;
  problem->args.scale = (float)c->arguments.scale;
  fg_launch_values_give(&c->arguments.launch, &problem->args);
  problem->args.sm_margin = c->arguments.sm_margin;
  for (int i = 0; i < problem->recipe->n_numbers; i++) {
    const fg_recipe_number *x = &problem->recipe->number[i];
    const cli_number *given = cli_number_find(c, x->name);
    problem->input[x->slot].number = given ? given->value : 1;
  }
}
