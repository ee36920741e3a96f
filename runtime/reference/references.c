/* references.c - what judges which kind of kernel. */
#include "reference.h"

#include <string.h>

/* In the order of fg_kinds. */
static const reference *const rows[FG_KINDS] = {&reference_attention, &reference_logsoftmax,
                                                &reference_combine, &reference_append,
                                                &reference_layernorm, &reference_linear};

bool reference_is_saved(const reference *of, const fg_recipe_tensor *t) {
  const char *const *saved = of->saved;
  while (*saved && strcmp(*saved, t->name)) saved++;
  return t->slot < 0 && *saved;
}

const reference *reference_of(const fg_kind *kind) { return rows[kind - fg_kinds]; }
