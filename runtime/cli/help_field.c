/* help_field.c - the fields of a spec: a page a group, a section a field. */
#include "help.h"

#include "base/text.h"

#include <string.h>

/* Groups are runs of the table: each begins with a field, and ends where the next one begins. */
typedef struct {
  const char *page, *first, *title;
} group;
static const group groups[] = {{"problem", "kernel", "What is computed"},
                               {"expressions", "mask", "Masks and scores"},
                               {"bias", "bias", "Bias"},
                               {"dtypes", "o_dtype", "Types of tensors"},
                               {"options", "normalizer", "Options of attention"},
                               {"layouts", "q_layout", "Layouts of sequences"},
                               {"kinds", "parts_dtype", "Fields of other kernels"},
                               {"plans", "family", "Restrictions of plans"}};
enum { GROUPS = sizeof groups / sizeof *groups };

/* "attention (forward only), linear" */
static void list_kinds(const fg_field *field, size_t size, char *text) {
  const int at = (int)(field - fg_fields);
  int n = 0;
  *text = 0;
  for (int i = 0; i < FG_KINDS && at < FG_SPEC_FIELDS; i++)
    if (fg_kind_has_field(&fg_kinds[i], at))
      n = fg_append(size, text, n, "%s%s%s", n ? ", " : "", fg_kinds[i].name,
                    fg_kinds[i].of_forward >> at & 1 ? " (forward only)" : "");
}

static void list_families(const fg_field *field, size_t size, char *text) {
  int n = 0;
  snprintf(text, size, "all");
  for (int i = 0; field->families && field->families[i]; i++)
    n = fg_append(size, text, n, "%s%s", i ? ", " : "", field->families[i]);
}

void cli_help_field(cli_page *page, const fg_field *field) {
  char text[512], example[512];
  if (page->markdown)
    fprintf(page->to, "## `%s`\n\n", field->name);
  else
    cli_page_title(page, 2, "%s", field->name);
  cli_page_text(page, "%s%s", page->markdown ? "" : "  ", field->help);
  cli_page_table(page, 2, (const cli_column[]){{"", 8}, {"", 0}});
  field->type->allowed(field, sizeof text, text);
  cli_page_row(page, (const char *[]){"values", text});
  const char *quote = page->markdown && field->fallback && *field->fallback ? "`" : "";
  snprintf(text, sizeof text, "%s%s%s", quote,
           field->plan         ? "any"
           : !field->fallback  ? "none: it must be given"
           : !*field->fallback ? "none"
                               : field->fallback,
           quote);
  cli_page_row(page, (const char *[]){"default", text});
  if (field->plan)
    list_families(field, sizeof text, text);
  else
    list_kinds(field, sizeof text, text);
  cli_page_row(page, (const char *[]){field->plan ? "families" : "kernels", text});
  snprintf(text, sizeof text, page->markdown ? "`fg_spec.%s`" : "fg_spec.%s", field->name);
  cli_page_row(page, (const char *[]){"in C", text});
  cli_page_end(page);
  int n = snprintf(example, sizeof example, "  flashgen list ");
  n += cli_shell_words(field->example, fg_room(sizeof example, n),
                       fg_room_at(sizeof example, example, n));
  fg_append(sizeof example, example, n, "\n");
  cli_page_code(page, example);
}

/* Fields of a spec are in the table's order, so that the last group that begins before one has it.
 */
const char *cli_help_field_page(const fg_field *field) {
  int i = GROUPS - 1;
  while (i && field < fg_field_find(groups[i].first)) i--;
  return groups[i].page;
}

static const char *group_name(const cli *c, int i) {
  (void)c;
  return i < GROUPS ? groups[i].page : NULL;
}

static int first_of(int i) {
  return i < GROUPS ? (int)(fg_field_find(groups[i].first) - fg_fields) : FG_FIELDS;
}

static fg_status print_group(cli_page *page, const cli *c, int i) {
  (void)c;
  cli_page_title(page, 1, "%s", groups[i].title);
  if (!i)
    cli_page_text(page,
                  "A field is given as field=value, in a spec file as field = \"value\". Several "
                  "values are an axis of a grid: each combination is a spec.");
  for (int f = first_of(i); f < first_of(i + 1); f++) cli_help_field(page, &fg_fields[f]);
  return FG_OK;
}

const cli_topic cli_topic_fields = {
    .name = "fields", .line = "the fields of a spec", .page = group_name, .print = print_group};
