/* formula_call.c - from a canonical text to the call of a definition that it is, and back.
 *
 * Which arguments a definition would need is not computed: numbers that stand in the tree are
 * tried, and a call that becomes the very node is the one. */
#include "formula_call.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 2, NUMBERS = ARGUMENTS + 1 }; /* a definition has a number of its own at most */

/* The distinct numbers below the node, in the order of the walk; false: more than NUMBERS. */
static bool collect(const fg_tree *tree, int node, double *number, int *n) {
  const fg_node *x = &tree->node[node];
  if (x->op == FG_NODE_CONSTANT) {
    int i = 0;
    if (x->type == FG_TYPE_BOOL) return true;
    while (i < *n && (number[i] < x->number || number[i] > x->number)) i++;
    if (i < *n) return true;
    if (*n == NUMBERS) return false;
    number[(*n)++] = x->number;
    return true;
  }
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++)
    if (!collect(tree, x->arg[i], number, n)) return false;
  return true;
}

/* The shortest digits that read back, an integer without a point. */
static void print_number(double x, size_t size, char *text) {
  int digits = 1;
  if (floor(x) >= x && fabs(x) < 1e15) {
    snprintf(text, size, "%.0f", x);
    return;
  }
  do snprintf(text, size, "%.*g", digits, x);
  while (digits++ < 17 && fabs(strtod(text, NULL) - x) > 0);
}

/* "0.5" <-> "0p5", "-1e-05" -> "m1em05". */
static void spell(const char *number, size_t size, char *text) {
  size_t n = 0;
  for (; *number && n + 1 < size; number++)
    if (*number != '+') text[n++] = *number == '.' ? 'p' : *number == '-' ? 'm' : *number;
  text[n] = 0;
}

static size_t unspell(const char *spelt, size_t n, size_t size, char *text) {
  if (!n || n + 1 > size || n != strspn(spelt, "0123456789pme") || *spelt == 'p' || *spelt == 'e')
    return 0;
  for (size_t i = 0; i < n; i++) text[i] = spelt[i] == 'p' ? '.' : spelt[i] == 'm' ? '-' : spelt[i];
  text[n] = 0;
  return n;
}

/* The call as text, "window(1023, 0)", and as it stands in names, "window_1023_0"; call: ""
 * where that is too long. */
static void print_call(const fg_head *head, const double *number, const int *chosen, size_t size,
                       char *text, char call[FG_CALL_MAX]) {
  char spelt[64 * (ARGUMENTS + 1)];
  int n = snprintf(text, size, "%s", head->name);
  int m = snprintf(spelt, sizeof spelt, "%s", head->name);
  for (int i = 0; i < head->n; i++) {
    char digits[32], letters[32];
    print_number(number[chosen[i]], sizeof digits, digits);
    spell(digits, sizeof letters, letters);
    n = fg_append(size, text, n, "%s%s", i ? ", " : "(", digits);
    m = fg_append(sizeof spelt, spelt, m, "_%s", letters);
  }
  fg_append(size, text, n, ")");
  *call = 0;
  if (m < FG_CALL_MAX) memcpy(call, spelt, (size_t)m + 1);
}

/* Tries the definition with every choice of the numbers. */
static fg_status try_definition(fg_formula *f, fg_place place, int node, const fg_head *head,
                                const double *number, int n, char call[FG_CALL_MAX]) {
  const fg_definitions definitions[2] = {{NULL, 0}, fg_formula_builtin()};
  int chosen[ARGUMENTS] = {0};
  for (;;) {
    char text[128];
    int other, at = head->n - 1;
    print_call(head, number, chosen, sizeof text, text, call);
    if (*call) {
      fg_status status = fg_formula_parse(f, definitions, "", place, text, &other);
      if (status == FG_OK && other == node) return FG_OK;
      if (status == FG_EMEMORY) return status;
    }
    while (at >= 0 && ++chosen[at] == n) chosen[at--] = 0;
    if (at < 0) break;
  }
  *call = 0;
  return FG_OK;
}

fg_status fg_formula_call(fg_place place, const char *text, char call[FG_CALL_MAX]) {
  const bool mask = place == FG_IN_MASK;
  const fg_formula_texts texts = {.mask = mask ? text : NULL, .score = mask ? NULL : text};
  const fg_definitions all = fg_formula_builtin();
  double number[NUMBERS];
  fg_formula f;
  fg_head head;
  int n = 0;
  *call = 0;
  fg_status status = fg_formula_read(&texts, &f, NULL);
  const int node = mask ? f.mask : f.score;
  if (status == FG_OK && collect(&f.tree, node, number, &n) && n > 0)
    for (int i = 0; i < all.n && status == FG_OK && !*call; i++)
      if (fg_formula_head(all.list[i].name, &head) == FG_OK && head.n > 0 && head.n <= ARGUMENTS &&
          n <= head.n + 1)
        status = try_definition(&f, place, node, &head, number, n, call);
  fg_formula_free(&f);
  return status == FG_EMEMORY ? status : FG_OK; /* a text that has inputs does not read here */
}

bool fg_formula_call_text(const char *call, size_t size, char *text) {
  const fg_definitions all = fg_formula_builtin();
  for (int i = 0; i < all.n; i++) {
    fg_head head;
    if (fg_formula_head(all.list[i].name, &head) != FG_OK || !head.n) continue;
    const char *at = call + strlen(head.name);
    if (strncmp(call, head.name, strlen(head.name)) || *at != '_') continue;
    int n = snprintf(text, size, "%s", head.name);
    int arguments = 0;
    for (; *at == '_'; arguments++) {
      char digits[32];
      const size_t length = strcspn(++at, "_");
      if (!unspell(at, length, sizeof digits, digits)) break;
      n = fg_append(size, text, n, "%s%s", arguments ? ", " : "(", digits);
      at += length;
    }
    if (!*at && arguments == head.n && fg_append(size, text, n, ")") < (int)size) return true;
  }
  return false;
}
