/* entry.h - libflashgen-gen.so's one exported symbol: the functions of gen that the runtime calls.
 *
 * The runtime opens the library only when something must be expanded, and privately, so that a host
 * with another Lua in it is safe. Both sides are of one build: `version` says so. */
#ifndef FG_ENTRY_H
#define FG_ENTRY_H

#include "expand.h"

typedef struct fg_gen_entry {
  const char *version;        /* FG_VERSION of the library */
  const char *(*error)(void); /* its own last sentence, in this thread */
  fg_status (*gen_new)(const char *templates, fg_gen **gen);
  void (*gen_free)(fg_gen *gen);
  fg_status (*plans)(fg_gen *gen, const fg_point *point, const char *arch, const fg_limits *limits,
                     fg_plan **plans, int *n);
  fg_status (*candidates)(fg_gen *gen, const fg_point *point, const char *arch,
                          const fg_limits *limits, fg_planned **list, int *n);
  fg_status (*expand)(fg_gen *gen, const fg_variant *variant, fg_source **source);
  fg_status (*recipe)(fg_gen *gen, const fg_variant *variant, fg_recipe *recipe);
  fg_status (*digest)(const char *templates, bool with_lines, size_t size, char *hex);
  const char *(*lua)(void);
  fg_status (*grid_read)(int n_files, const char *const *files, int n_words,
                         const char *const *words, fg_grid **grid);
  int (*argument_number)(const fg_argument *argument);
} fg_gen_entry;

const fg_gen_entry *fg_gen_entry_0(void);

#endif
