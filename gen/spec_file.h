/* spec_file.h - a spec file: a Lua chunk read into tables of texts, and its `when` functions. */
#ifndef FG_SPEC_FILE_H
#define FG_SPEC_FILE_H

#include "spec.h"

/* A text that grows, for reports of several lines. NULL data = empty. */
typedef struct fg_report {
  char *text;
  size_t n;
  int lines;
} fg_report;
void fg_report_add(fg_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fg_report_free(fg_report *report);

typedef struct fg_spec_file fg_spec_file;

/* Reads and runs the file. Mistakes in its tables go to *errors, all of them; what keeps the whole
 * file from being read (it is no text file, does not parse, raises, runs too long) is a failure. */
fg_status fg_spec_file_open(const char *path, fg_report *errors, fg_spec_file **file);
void fg_spec_file_free(fg_spec_file *file);

const char *fg_spec_file_path(const fg_spec_file *file);
int fg_spec_file_tables(const fg_spec_file *file);
fg_table *fg_spec_file_table(const fg_spec_file *file, int i);

/* Calls the table's `when` with the point's fields; no `when` keeps every point. */
fg_status fg_spec_file_when(fg_spec_file *file, const fg_table *table, const fg_point *point,
                            bool *keep);

#endif
