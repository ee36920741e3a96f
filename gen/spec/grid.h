/* grid.h - grids read spec files through a table of functions, so that grids of words and of
 * fg_spec need no Lua. */
#ifndef FG_GRID_H
#define FG_GRID_H

#include "table.h"

typedef struct fg_spec_file fg_spec_file;

/* What spec_file.h declares, where it is linked. */
typedef struct fg_spec_reader {
  fg_status (*open)(const char *path, fg_spec_file **file);
  void (*free)(fg_spec_file *file);
  const char *(*path)(const fg_spec_file *file);
  int (*tables)(const fg_spec_file *file);
  fg_table *(*table)(const fg_spec_file *file, int i);
  fg_status (*when)(fg_spec_file *file, const fg_table *table, const fg_point *point, bool *keep);
} fg_spec_reader;

/* fg_grid_read through the reader; without files it may be NULL. */
fg_status fg_grid_read_with(const fg_spec_reader *reader, int n_files, const char *const *files,
                            int n_words, const char *const *words, fg_grid **grid);

#endif
