/* tree_address.c - the address of an input's element, and the end of emitted texts. */
#include "tree_emit.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of the place along axis i from the tensor's first one. */
static void put_place(const fg_input *input, int i, const char *index, const fg_emit_names *names,
                      size_t size, char *text) {
  const bool of_q = !strcmp(input->extent[i], "q"), of_k = !strcmp(input->extent[i], "k");
  const char *first = of_q ? names->first_q : of_k ? names->first_k : NULL;
  const bool is_zero = first && !strcmp(index, "0");
  if (is_zero || !first)
    snprintf(text, size, "%s", first ? first : index);
  else
    snprintf(text, size, strpbrk(index, "?<>=&|") ? "%s + (%s)" : "%s + %s", first, index);
}

int fg_input_address(const fg_input *input, bool gradient, const char *const *index,
                     const fg_emit_names *names, size_t size, char *text) {
  bool bias = !strcmp(input->name, "bias");
  const char *prefix = bias ? "" : "in_", *d = gradient ? "d" : "";
  int n = snprintf(text, size, "p.%s%s%s + (", d, prefix, input->name), terms = 0;
  for (int i = 0; i < input->rank; i++) {
    char suffix = bias ? "bhqk"[i] : (char)('0' + i), place[4096];
    if (!strcmp(input->extent[i], "1")) continue;
    put_place(input, i, index[i], names, sizeof place, place);
    const char *sum = terms++ ? " + " : "";
    bool bare = !strpbrk(place, " ");
    if (i == input->rank - 1)
      n = fg_append(size, text, n, bare ? "%s%s" : "%s(%s)", sum, place);
    else
      n = fg_append(size, text, n, bare ? "%s%s * p.%s%s%s_%c" : "%s(%s) * p.%s%s%s_%c", sum, place,
                    d, prefix, input->name, suffix);
  }
  return fg_append(size, text, n, "%s)", terms ? "" : "0");
}

void fg_emitted_free(fg_emitted *x) {
  for (int i = 0; x->value && i < x->n; i++) free(x->value[i]);
  free(x->value);
  free(x->reads);
  free(x->head);
  free(x->row);
  *x = (fg_emitted){0};
}
