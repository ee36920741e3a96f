/* expand.h - from a variant to its text: candidates, expansion of templates, recipe, line map.
 *
 * Output is a pure function of variant, templates and this library. A fg_gen is used by one thread
 * at a time; sources and plans are plain data of their own. */
#ifndef FG_EXPAND_H
#define FG_EXPAND_H

#include "recipe/recipe.h"
#include "spec/variant.h"

typedef struct fg_gen fg_gen;

/* templates: a directory whose files replace the built-in templates of their names; NULL or "" =
 * the built-in ones only. */
fg_status fg_gen_new(const char *templates, fg_gen **gen);
/* The same for a fg_gen that exists, which keeps what it has compiled of files that do not differ.
 */
fg_status fg_gen_use(fg_gen *gen, const char *templates);
void fg_gen_free(fg_gen *gen);

/* "Lua 5.4.4": what runs specs and templates. */
const char *fg_gen_lua(void);

/* The plans that may compute the point on the arch, best guess first: every family's candidates
 * within the limits (NULL = none). *plans is the caller's to free. FG_ESPEC with each family's
 * reason when there is none. */
fg_status fg_gen_plans(fg_gen *gen, const fg_point *point, const char *arch,
                       const fg_limits *limits, fg_plan **plans, int *n);

/* The same with their recipes, for ranking; hardly slower than the list of plans. */
typedef struct fg_planned {
  fg_plan plan;
  fg_recipe recipe;
} fg_planned;
fg_status fg_gen_candidates(fg_gen *gen, const fg_point *point, const char *arch,
                            const fg_limits *limits, fg_planned **list, int *n);

/* One variant's text, how to launch it, and where each of its lines comes from. */
typedef struct fg_source {
  char *text;
  size_t size;
  fg_recipe recipe;
  int n_lines, n_files;
  char **file;    /* template names */
  int *line_file; /* of line i + 1: an index into `file`, -1 = made by the engine */
  int *line;      /* the line in that template */
  bool unskipped; /* made for comparisons alone: its code may spill and draw warnings */
} fg_source;
fg_status fg_gen_expand(fg_gen *gen, const fg_variant *variant, fg_source **source);
/* The recipe alone, at a fifth of the time. */
fg_status fg_gen_recipe(fg_gen *gen, const fg_variant *variant, fg_recipe *recipe);
/* The decisions that are on in a variant, "begin_at_mask, by_columns"; "" where none is, or the
 * family has none (gen/expand/switches.lua). */
fg_status fg_gen_switches(fg_gen *gen, const fg_variant *variant, size_t size, char *text);
/* The same kernel for comparisons: nothing is derived about its mask's tiles, so that it skips no
 * tile and tests each pair. *source = NULL: the two kernels are one. */
fg_status fg_gen_expand_unskipped(fg_gen *gen, const fg_variant *variant, fg_source **source);
void fg_source_free(fg_source *source);

/* "attention/simt/forward.cut:31" for a line of the text (1-based), "" when it has no template. */
int fg_source_place(const fg_source *source, int line, size_t size, char *text);

#endif
