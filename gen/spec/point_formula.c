/* point_formula.c - a point's expressions. A mask, score or list of inputs is kept as its canonical
 * text, or, where a definition without parameters says the same, as that definition's name. */
#include "point_formula.h"

#include "base/intern.h"
#include "base/text.h"
#include "formula/formula_call.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The definition without parameters that is this very node, NULL if none is. */
static const char *known_name(fg_formula *f, fg_place place, int node) {
  const fg_definitions definitions[2] = {{NULL, 0}, fg_formula_builtin()};
  for (int i = 0; i < definitions[1].n; i++) {
    const char *name = definitions[1].list[i].name;
    int other;
    if (strchr(name, '(')) continue;
    if (fg_formula_parse(f, definitions, "", place, name, &other) == FG_OK && other == node)
      return name;
  }
  return NULL;
}

/* Records the call that stands in names for the interned text. */
static fg_status learn_call(fg_place place, const char *text) {
  char call[FG_CALL_MAX];
  if (fg_intern_called(text)) return FG_OK;
  TRY(fg_formula_call(place, text, call));
  return fg_intern_call(text, call);
}

/* NULL for the default, so that points without expressions are zero there. */
static fg_status keep_node(fg_formula *f, fg_place place, int node, const char *fallback,
                           const char **kept) {
  const char *known = known_name(f, place, node);
  char *text = NULL;
  if (!known) {
    int n = fg_formula_print(f, node, 0, NULL);
    if (n >= FG_FORMULA_TEXT)
      return fg_fail(FG_ESPEC, "%s: with its definitions it is longer than %d bytes",
                     place == FG_IN_MASK ? "mask" : "score", FG_FORMULA_TEXT - 1);
    if (!(text = malloc((size_t)n + 1))) return fg_fail(FG_EMEMORY, "no memory for an expression");
    fg_formula_print(f, node, (size_t)n + 1, text);
  }
  const char *name = known ? known : text;
  *kept = NULL;
  fg_status status = strcmp(name, fallback) ? fg_intern(name, kept) : FG_OK;
  if (status == FG_OK && *kept && !known) status = learn_call(place, *kept);
  free(text);
  return status;
}

fg_status fg_point_set_formula(fg_point *point, const fg_formula_texts *texts, bool *unused) {
  fg_formula f;
  char inputs[4096];
  const char *mask, *score, *kept = NULL;
  fg_status status = FG_OK;
  TRY_OUT(fg_formula_read(texts, &f, unused));
  TRY_OUT(keep_node(&f, FG_IN_MASK, f.mask, "full", &mask));
  TRY_OUT(keep_node(&f, FG_IN_SCORE, f.score, "s", &score));
  fg_formula_inputs(&f, sizeof inputs, inputs);
  if (*inputs) TRY_OUT(fg_intern(inputs, &kept));
  point->mask = mask, point->score = score, point->inputs = kept;
out:
  fg_formula_free(&f);
  return status;
}

fg_status fg_pairs_split(char *const *text, int n, char *copy, fg_pair *pair) {
  for (int i = 0; i < n; i++) {
    size_t size = strlen(text[i]) + 1;
    memcpy(copy, text[i], size);
    char *equals = strchr(copy, '=');
    if (!equals || equals == copy)
      return fg_fail(FG_ESPEC, "\"%.64s\": expected name=value", text[i]);
    char *end = equals;
    while (end > copy && end[-1] == ' ') end--;
    *end = 0;
    pair[i] = (fg_pair){copy, equals + 1 + strspn(equals + 1, " ")};
    copy += size;
  }
  return FG_OK;
}

/* The declarations of canonical inputs, taken apart at commas outside brackets. */
static int split_inputs(char *text, fg_pair *pair) {
  int n = 0, depth = 0;
  if (!*text) return 0;
  pair[n++].name = text;
  for (char *at = text; *at; at++) {
    depth += (*at == '[') - (*at == ']');
    if (*at == '=' && !depth) *at = 0, pair[n - 1].value = at + 1;
    if (*at == ',' && !depth && n < FG_INPUT_MAX) *at = 0, pair[n++].name = at + 2, at++;
  }
  return n;
}

fg_status fg_point_forget_gradients(fg_point *point) {
  char inputs[4096];
  fg_pair pair[FG_INPUT_MAX] = {{0}};
  snprintf(inputs, sizeof inputs, "%s", point->inputs ? point->inputs : "");
  fg_formula_texts read = {.mask = point->mask,
                           .score = point->score,
                           .input = pair,
                           .n_inputs = split_inputs(inputs, pair),
                           .forward = true};
  return fg_point_set_formula(point, &read, NULL);
}

fg_status fg_point_formula(const fg_point *point, fg_formula *f) {
  char inputs[4096];
  fg_pair pair[FG_INPUT_MAX] = {{0}};
  const char *const texts[] = {point->mask, point->score, point->inputs};
  *f = (fg_formula){0};
  for (int i = 0; i < 3; i++)
    if (texts[i] && *texts[i] == '#')
      return fg_fail(FG_EARGUMENT,
                     "the name has only the hash of an expression, %s: give the spec's words",
                     texts[i] + 1);
  snprintf(inputs, sizeof inputs, "%s", point->inputs ? point->inputs : "");
  fg_formula_texts read = {.mask = point->mask,
                           .score = point->score,
                           .input = pair,
                           .n_inputs = split_inputs(inputs, pair)};
  TRY(fg_formula_read(&read, f, NULL));
  for (int i = 0; point->shard && i < f->n_inputs;
       i++) /* its length is a part's, not the whole's */
    f->input[i].monotone = false;
  if (point->bias == FG_BIAS_OFF) return FG_OK;
  return fg_formula_add_bias(f, point->bias_dims, fg_point_bias_elem(point),
                             point->bias == FG_BIAS_GRAD);
}

/* A part has the rows and keys of its own of what a whole sequence's inputs have, and tensors are
 * checked by lengths of the launch. */
static fg_status check_parts(fg_formula *f) {
  fg_tree *t = &f->tree;
  for (int i = 0; i < f->n_inputs; i++)
    for (int a = 0; a < f->input[i].rank; a++)
      if (strstr(f->input[i].extent[a], "nq") || strstr(f->input[i].extent[a], "nk"))
        return fg_fail(FG_ESPEC,
                       "inputs.%s: with shard=true an extent is a number, b, h, hk, q or k, not %s",
                       f->input[i].name, f->input[i].extent[a]);
  for (int node = 1; node < t->n; node++) {
    const fg_node *x = &t->node[node];
    for (int a = 0; x->op == FG_NODE_READ && a < f->input[x->which].rank; a++) {
      const char *extent = f->input[x->which].extent[a];
      const fg_name own = !strcmp(extent, "q") ? FG_NAME_Q : FG_NAME_K;
      if (strcmp(extent, fg_name_text[own]) || x->arg[a] == fg_tree_name(t, own)) continue;
      return fg_fail(FG_ESPEC,
                     "inputs.%s: with shard=true its axis %s is indexed by %s alone: a part of a "
                     "sequence has no other %s",
                     f->input[x->which].name, extent, extent, *extent == 'q' ? "rows" : "keys");
    }
  }
  return FG_OK;
}

fg_status fg_point_check_parts(const fg_point *point) {
  fg_formula f;
  fg_status status = FG_OK;
  if (!point->shard || !point->inputs || !*point->inputs) return FG_OK;
  TRY_OUT(fg_point_formula(point, &f));
  TRY_OUT(check_parts(&f));
out:
  fg_formula_free(&f);
  return status;
}

int fg_point_expression(const fg_point *point, size_t size, char *text) {
  static const char *const labels[] = {"mask", "score", "inputs"};
  const char *const texts[] = {point->mask, point->score, point->inputs};
  int n = 0;
  if (size) *text = 0;
  for (int i = 0; i < 3; i++) {
    if (!texts[i] || !strcmp(texts[i], "causal")) continue;
    n = fg_append(size, text, n, "%s%s=%s", n ? "; " : "", labels[i], texts[i]);
  }
  return n;
}

bool fg_expression_of(const char *name, const char *expression) {
  char own[FG_FORMULA_TEXT];
  fg_point point;
  if (!fg_point_parse(name, &point)) return false;
  return fg_point_expression(&point, sizeof own, own) < FG_FORMULA_TEXT && !strcmp(own, expression);
}

/* NULL: there is none. */
static fg_status learn(fg_place place, const char *text) {
  const char *kept;
  if (!text) return FG_OK;
  TRY(fg_intern(text, &kept));
  return learn_call(place, kept);
}

fg_status fg_point_learn(const fg_point *point) {
  TRY(learn(FG_IN_MASK, point->mask));
  return learn(FG_IN_SCORE, point->score);
}

fg_status fg_expression_learn(const char *expression) {
  static const char *const labels[] = {"mask=", "score=", "inputs="};
  char *copy = strdup(expression), *rest = copy;
  fg_status status = FG_OK;
  if (!copy) return fg_fail(FG_EMEMORY, "no memory for an expression");
  for (char *part; (part = strsep(&rest, ";")) && status == FG_OK;) {
    part += *part == ' ';
    for (int i = 0; i < 3 && status == FG_OK; i++) {
      const char *kept, *text = part + strlen(labels[i]);
      if (!strncmp(part, labels[i], strlen(labels[i])))
        status = i < 2 ? learn(i ? FG_IN_SCORE : FG_IN_MASK, text) : fg_intern(text, &kept);
    }
  }
  free(copy);
  return status;
}
