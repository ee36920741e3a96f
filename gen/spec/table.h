/* table.h - one table of a spec on its way to points: a list of texts for every field.
 *
 * Spec files, words and fg_spec all become tables of texts, and so meet the same parser. */
#ifndef FG_TABLE_H
#define FG_TABLE_H

#include "spec.h"

/* Errors, a line each. Once the text is long, lines are only counted. NULL text = none kept. */
typedef struct fg_report {
  char *text;
  size_t n;
  int64_t lines, left_out;
} fg_report;
void fg_report_add(fg_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds the lines of another report. */
void fg_report_append(fg_report *report, const fg_report *more);

/* FG_ESPEC with all lines; FG_OK when there are none. */
fg_status fg_report_raise(const fg_report *report);
void fg_report_free(fg_report *report);

/* "<where>unknown field "maks" (did you mean "mask"?)" */
void fg_report_unknown(fg_report *report, const char *where, const char *name);

typedef struct fg_texts {
  char **text;
  int n, room;
  bool bad; /* a value was given that has no text: reported already */
} fg_texts;

/* Appends a copy of n bytes of text, without the blanks around them. */
fg_status fg_texts_add(fg_texts *texts, const char *text, size_t n);

/* Splits "a,b(c,d)" at its outer commas and appends the parts; a field whose values hold commas is
 * split only when its text starts with a bracket: "[h,q,k],[q,k]". */
fg_status fg_texts_split(const fg_field *field, const char *value, fg_texts *texts);

typedef struct fg_table {
  fg_texts field[FG_FIELD_ROWS]; /* empty where not given */
  int number;                    /* 1, 2, ... within its file; 0: words only */
  int when;                      /* a reference in the spec file's Lua state, or 0 */
  fg_texts unknown;              /* words, "name=value", whose name is no field */
  fg_report errors;              /* of its structure; those of its values are found later */
} fg_table;
void fg_table_free(fg_table *table);

/* Words, "field=value", to a table. Several words of one field are an error, not a silent
 * last-wins. */
void fg_table_read_words(fg_table *table, int n_words, const char *const *words);

#endif
