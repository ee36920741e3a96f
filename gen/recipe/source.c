/* source.c - the functions of a source that need no Lua. */
#include "expand/expand.h"

#include <stdio.h>
#include <stdlib.h>

void fg_source_free(fg_source *s) {
  if (!s) return;
  for (int i = 0; i < s->n_files; i++) free(s->file[i]);
  free(s->file);
  free(s->line_file);
  free(s->line);
  free(s->text);
  free(s);
}

int fg_source_place(const fg_source *s, int line, size_t size, char *text) {
  bool known = line >= 1 && line <= s->n_lines && s->line_file[line - 1] >= 0;
  if (!known) return snprintf(text, size, "%s", "");
  return snprintf(text, size, "%s:%d", s->file[s->line_file[line - 1]], s->line[line - 1]);
}
