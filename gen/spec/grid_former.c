/* grid_former.c - former names of fields in the tables of a grid. */
#include "grid_former.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static bool had_name(const fg_field *field, const fg_field *former) {
  return field->former && !strcmp(field->former, former->name);
}

/* Has one of the families that the texts name the field? */
static bool is_of_any(const fg_field *field, const fg_texts *families) {
  bool any = false;
  for (int i = 0; i < families->n; i++) any |= fg_field_is_of(field, families->text[i]);
  return any;
}

/* "a (family x) or b (family y)": the fields that had the name. */
static void name_fields(const fg_field *former, size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < FG_FIELDS; i++) {
    const fg_field *field = &fg_fields[i];
    if (!had_name(field, former)) continue;
    n = fg_append(size, text, n, "%s%s", n ? " or " : "", field->name);
    for (int j = 0; field->families && field->families[j]; j++)
      n = fg_append(size, text, n, "%s%s%s", j ? ", " : " (family ", field->families[j],
                    field->families[j + 1] ? "" : ")");
  }
}

/* The row of the field that the former name means beside the families; -1: it may be several. Where
 * none of the families has one, it is the first: a restriction that no plan but one without the
 * field meets. */
static int find_field(const fg_field *former, const fg_texts *families) {
  int first = -1, found = -1, n = 0, all = 0;
  for (int i = FG_FIELDS - 1; i >= 0; i--) {
    if (!had_name(&fg_fields[i], former)) continue;
    first = i, all++;
    if (is_of_any(&fg_fields[i], families)) found = i, n++;
  }
  if (n == 1) return found;
  return all == 1 || (!n && families->n) ? first : -1;
}

/* Does the table have the texts from words? */
static bool is_from_words(const fg_texts *texts, const fg_texts *words) {
  return texts >= words && texts < words + FG_FIELD_ROWS;
}

static void take(const fg_field *former, const fg_texts *field[FG_FIELD_ROWS],
                 const fg_texts *words, const char *where, fg_report *errors) {
  const fg_texts *given = field[former - fg_fields];
  char names[256];
  if (!given->n) return;
  const int place = find_field(former, field[FG_SPEC_FIELDS]);
  if (place < 0) {
    name_fields(former, sizeof names, names);
    fg_report_add(errors, "%s%s: it is called %s now: write the one that is meant, or its family",
                  where, former->name, names);
    return;
  }
  const bool replaces = is_from_words(given, words);
  if (field[place]->n && replaces == is_from_words(field[place], words))
    fg_report_add(errors, "%s%s: it is called %s now, which is given too", where, former->name,
                  fg_fields[place].name);
  else if (!field[place]->n || replaces)
    field[place] = given;
}

void fg_grid_take_former(const fg_texts *field[FG_FIELD_ROWS], const fg_texts *words,
                         const char *where, fg_report *errors) {
  for (int i = FG_FIELDS; i < FG_FIELD_ROWS; i++) take(&fg_fields[i], field, words, where, errors);
}
