/* spec_file.h - a spec file: a Lua chunk read into tables of texts, and its `when` functions. */
#ifndef FG_SPEC_FILE_H
#define FG_SPEC_FILE_H

#include "expand/state.h"
#include "table.h"

typedef struct fg_spec_file fg_spec_file; /* as in grid.h */

/* Reads and runs the file. Mistakes in a table go to its errors, all of them; what keeps the whole
 * file from being read (it is no text file, does not parse, raises, runs too long) is a failure,
 * and its text names the file. */
fg_status fg_spec_file_open(const char *path, fg_spec_file **file);
void fg_spec_file_free(fg_spec_file *file);

const char *fg_spec_file_path(const fg_spec_file *file);
int fg_spec_file_tables(const fg_spec_file *file);
fg_table *fg_spec_file_table(const fg_spec_file *file, int i);

/* Calls the table's `when` with the point's fields; no `when` keeps every point. */
fg_status fg_spec_file_when(fg_spec_file *file, const fg_table *table, const fg_point *point,
                            bool *keep);

/* Calls the function of that reference, 0 for none, with the point's fields. */
fg_status fg_spec_ask_when(lua_State *L, int when, const fg_point *point, bool *keep);

#endif
