/* work_watch.c - functions of the library and of libc that count their calls. */
#include "work_watch.h"

#include "alloc_watch.h"
#include "expand/overlay.h"
#include "formula/formula.h"
#include "recipe/recipe.h"
#include "spec/variant.h"
#include "wisdom/wisdom.h"

#include <string.h>

const char *const work_names[WORK_KINDS] = {"names",   "lines",  "compared",  "formulas",
                                            "printed", "parsed", "templates", "allocations"};

static long counted[WORK_KINDS];

void work_start(void) {
  memset(counted, 0, sizeof counted);
  alloc_start();
}

void work_stop(long work[WORK_KINDS]) {
  counted[WORK_ALLOCATIONS] = alloc_stop().unspared;
  memcpy(work, counted, sizeof counted);
}

/* COUNTED(kind, type, name, (parameters), (arguments)) */
#define COUNTED(kind, type, name, parameters, arguments)                                           \
  type __real_##name parameters;                                                                   \
  type __wrap_##name parameters;                                                                   \
  type __wrap_##name parameters {                                                                  \
    counted[kind]++;                                                                               \
    return __real_##name arguments;                                                                \
  }

COUNTED(WORK_NAMES, int, fg_point_name, (const fg_point *p, size_t size, char *text),
        (p, size, text))
COUNTED(WORK_NAMES, int, fg_point_name_before, (const fg_point *p, size_t size, char *text),
        (p, size, text))
COUNTED(WORK_NAMES, int, fg_plan_name, (const fg_plan *p, size_t size, char *text), (p, size, text))
COUNTED(WORK_LINES, fg_line_kind, fg_measured_parse,
        (const char *line, size_t n, fg_measured *m, const char **why), (line, n, m, why))
COUNTED(WORK_COMPARED, int, strcmp, (const char *a, const char *b), (a, b))
COUNTED(WORK_COMPARED, int, strncmp, (const char *a, const char *b, size_t n), (a, b, n))
COUNTED(WORK_FORMULAS, fg_status, fg_formula_read,
        (const fg_formula_texts *texts, fg_formula *formula, bool *unused),
        (texts, formula, unused))
COUNTED(WORK_PRINTED, int, fg_recipe_print, (const fg_recipe *r, size_t size, char *text),
        (r, size, text))
COUNTED(WORK_PARSED, fg_status, fg_recipe_parse, (const char *text, fg_recipe *r), (text, r))
COUNTED(WORK_TEMPLATES, fg_status, fg_overlay_read,
        (const char *folder, const char *name, fg_template_text *text), (folder, name, text))
