/* table.c - texts, the tables they make, and reports of what is wrong with them. */
#include "table.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_MAX = 12000 }; /* bytes: what fg_error() can hold, with room for a context */

/* Appends `lines` lines of text, n bytes; a report that is full only counts them. */
static void keep(fg_report *report, const char *text, size_t n, int64_t lines) {
  report->lines += lines;
  char *grown = report->n + n > REPORT_MAX ? NULL : realloc(report->text, report->n + n + 2);
  if (!grown) {
    report->left_out += lines;
    return;
  }
  report->text = grown;
  if (report->n) grown[report->n++] = '\n';
  memcpy(grown + report->n, text, n);
  grown[report->n += n] = 0;
}

void fg_report_add(fg_report *report, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  keep(report, line, strlen(line), 1);
}

void fg_report_append(fg_report *report, const fg_report *more) {
  if (more->text) keep(report, more->text, more->n, more->lines - more->left_out);
  report->lines += more->left_out;
  report->left_out += more->left_out;
}

fg_status fg_report_raise(const fg_report *report) {
  if (!report->lines) return FG_OK;
  const char *text = report->text ? report->text : "no memory for the errors";
  if (!report->left_out) return fg_fail(FG_ESPEC, "%s", text);
  return fg_fail(FG_ESPEC, "%s\nand %lld errors more", text, (long long)report->left_out);
}

void fg_report_free(fg_report *report) {
  free(report->text);
  *report = (fg_report){0};
}

void fg_report_unknown(fg_report *report, const char *where, const char *name) {
  const char *near = fg_field_nearest(name);
  fg_report_add(report, "%sunknown field \"%.64s\"%s%s%s", where, name,
                near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

fg_status fg_texts_add(fg_texts *texts, const char *text, size_t n) {
  while (n && isspace((unsigned char)*text)) text++, n--;
  while (n && isspace((unsigned char)text[n - 1])) n--;
  if (texts->n == texts->room) {
    int room = 2 * texts->room + 4;
    char **grown = realloc(texts->text, sizeof *grown * (size_t)room);
    if (!grown) return fg_fail(FG_EMEMORY, "no memory for a list of values");
    texts->text = grown, texts->room = room;
  }
  if (!(texts->text[texts->n] = strndup(text, n)))
    return fg_fail(FG_EMEMORY, "no memory for a value");
  texts->n++;
  return FG_OK;
}

fg_status fg_texts_split(const fg_field *field, const char *value, fg_texts *texts) {
  bool one = field->type == &fg_type_axes && value[strspn(value, " ")] != '[';
  int depth = 0;
  const char *start = value, *at = value;
  for (; *at; at++) {
    if (strchr("([{", *at)) depth++;
    if (strchr(")]}", *at)) depth--;
    if (*at != ',' || depth > 0 || one) continue;
    TRY(fg_texts_add(texts, start, (size_t)(at - start)));
    start = at + 1;
  }
  return fg_texts_add(texts, start, (size_t)(at - start));
}

static void free_texts(fg_texts *texts) {
  for (int i = 0; i < texts->n; i++) free(texts->text[i]);
  free(texts->text);
}

void fg_table_free(fg_table *table) {
  for (int i = 0; i < FG_FIELD_ROWS; i++) free_texts(&table->field[i]);
  free_texts(&table->unknown);
  fg_report_free(&table->errors);
  *table = (fg_table){0};
}

/* The field of "inputs.slope" */
static const fg_field *find_named(const char *name, const char *dot) {
  char before[96];
  snprintf(before, sizeof before, "%.*s", (int)(dot - name), name);
  const fg_field *field = fg_field_find(before);
  return field && field->type->is_list ? field : NULL;
}

void fg_table_read_words(fg_table *table, int n_words, const char *const *words) {
  for (int i = 0; i < n_words; i++) {
    const char *equals = strchr(words[i], '=');
    char name[96];
    if (!equals || equals == words[i]) {
      fg_report_add(&table->errors, "\"%.64s\": expected field=value or a spec file", words[i]);
      continue;
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - words[i]), words[i]);
    const char *dot = strchr(name, '.');
    const fg_field *field = dot ? find_named(name, dot) : fg_field_find(name);
    if (field && dot) {
      const char *pair = words[i] + (dot + 1 - name);
      if (fg_texts_add(&table->field[field - fg_fields], pair, strlen(pair)) != FG_OK)
        fg_report_add(&table->errors, "%s", fg_error());
      continue;
    }
    if (!field) {
      if (fg_texts_add(&table->unknown, words[i], strlen(words[i])) != FG_OK)
        fg_report_add(&table->errors, "%s", fg_error());
      continue;
    }
    fg_texts *texts = &table->field[field - fg_fields];
    if (texts->n)
      fg_report_add(&table->errors, "%s: given twice; a list is %s=a,b", name, name);
    else if (fg_texts_split(field, equals + 1, texts) != FG_OK)
      fg_report_add(&table->errors, "%s", fg_error());
  }
}
