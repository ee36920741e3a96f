/* formula.c - declarations of inputs, and a point's mask and score as trees. */
#include "formula.h"

#include "base/text.h"
#include "formula_parse.h"
#include "recipe/extent.h"
#include "recipe/recipe.h"
#include "tree_extent.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fg_formula_free(fg_formula *f) {
  fg_tree_free(&f->tree);
  f->n_inputs = 0;
}

/* ---- declarations ---- */

static fg_status bad_type(const fg_pair *pair) {
  return fg_fail(FG_ESPEC,
                 "inputs.%.40s: \"%.80s\" is no type; expected int, float, or f32, bf16, f16, i32 "
                 "with extents (f32[h] grad): b h hk q k, 1, or an expression in nq and nk",
                 pair->name, pair->value);
}

/* One extent, n bytes at `at`, in canonical form. */
static fg_status read_extent(const fg_pair *pair, const char *at, size_t n, char out[64]) {
  static const fg_definitions none[2];
  char text[256], field[64];
  fg_formula f = {0};
  fg_expr size;
  int node;
  while (n && isspace((unsigned char)*at)) at++, n--;
  while (n && isspace((unsigned char)at[n - 1])) n--;
  const fg_extent_row *axis = fg_extent_of_axis(at, n);
  if (axis || (n == 1 && *at == '1')) {
    strcpy(out, axis ? axis->axis : "1");
    return FG_OK;
  }
  if (!n || n >= sizeof text) return bad_type(pair);
  memcpy(text, at, n);
  text[n] = 0;
  snprintf(field, sizeof field, "inputs.%.40s", pair->name);
  fg_status status = fg_formula_parse(&f, none, field, FG_IN_EXTENT, text, &node);
  if (status == FG_OK && fg_formula_print(&f, node, 64, out) >= 64)
    status = fg_fail(FG_ESPEC, "%s: the extent \"%s\" is longer than 63 letters", field, text);
  if (status == FG_OK &&
      fg_expr_compile(out, fg_shape_forms[FG_FORM_PAIRS].letters, &size) != FG_OK)
    status = fg_fail(FG_ESPEC,
                     "%s: the extent \"%s\" (%s) is none that a launch can work out: + - * / %% "
                     "min max of nq, nk and numbers, without a sign in front",
                     field, text, out);
  fg_formula_free(&f);
  return status;
}

/* The words behind the type. */
static fg_status read_marks(const fg_pair *pair, const char *at, fg_input *x) {
  while (*at) {
    at += strspn(at, " ");
    size_t n = strcspn(at, " ");
    if (n == 4 && !strncmp(at, "grad", n) && x->tensor && x->elem != FG_ELEM_I32)
      x->grad = true;
    else if (n == 8 && !strncmp(at, "monotone", n) && x->tensor && x->elem == FG_ELEM_I32)
      x->monotone = true;
    else if (n && (n == 4 || n == 8) && (!strncmp(at, "grad", n) || !strncmp(at, "monotone", n)))
      return fg_fail(FG_ESPEC, "inputs.%.40s: \"%.80s\": %s", pair->name, pair->value,
                     n == 4 ? "only a tensor of floats has a gradient"
                            : "only a tensor of i32 can be monotone");
    else if (n)
      return bad_type(pair);
    at += n;
  }
  return FG_OK;
}

/* The length of one extent: up to a comma outside parentheses, or the end of the list. */
static size_t extent_length(const char *at) {
  size_t n = 0;
  for (int depth = 0; at[n] && at[n] != ']' && (depth > 0 || at[n] != ','); n++)
    depth += (at[n] == '(') - (at[n] == ')');
  return n;
}

/* "[h, nq + nk - 1] grad", from its bracket on. */
static fg_status read_axes(const fg_pair *pair, const char *open, fg_input *x) {
  const char *close = strchr(open, ']'), *at = open + 1;
  if (!close) return bad_type(pair);
  for (;;) {
    size_t n = extent_length(at);
    if (x->rank == FG_NODE_ARGS)
      return fg_fail(FG_ESPEC, "inputs.%.40s: a tensor has at most %d axes", pair->name,
                     FG_NODE_ARGS);
    TRY(read_extent(pair, at, n, x->extent[x->rank++]));
    at += n;
    if (*at == ']') return read_marks(pair, at + 1, x);
    at++;
  }
}

/* Is it an argument of each kernel of a kind whose specs declare inputs? Those of some layouts and
 * normalisers are no names of the language. */
static bool is_argument(const char *name) {
  bool is = !strcmp(name, "scale");
  for (int i = 0; i < FG_KINDS; i++) {
    const fg_argument *a =
        fg_kind_has_field(&fg_kinds[i], FG_FIELD_INPUTS) ? fg_argument_find(&fg_kinds[i], name) : NULL;
    is |= a && a->elem != FG_RULE_I32 && a->elem != FG_RULE_WORDS && !a->normalizer;
  }
  return is;
}

/* One declaration, "slope=f32[h] grad" or "width=int". */
static fg_status read_input(const fg_pair *pair, fg_input *out) {
  static const struct {
    const char *name;
    fg_elem elem;
  } types[] = {
      {"f32", FG_ELEM_F32}, {"bf16", FG_ELEM_BF16}, {"f16", FG_ELEM_F16}, {"i32", FG_ELEM_I32}};
  fg_input x = {.tensor = true};
  if (!fg_formula_good_name(pair->name))
    return fg_fail(FG_ESPEC,
                   "inputs: \"%.60s\" is no name; expected letters, digits and _, at most %d",
                   pair->name, FG_INPUT_NAME - 1);
  strcpy(x.name, pair->name);
  const char *reserved = fg_formula_reserved(x.name);
  if (!reserved && is_argument(x.name)) reserved = "an argument of every kernel";
  if (!reserved && !strcmp(x.name, "sm_margin")) reserved = "a number of every launch";
  if (reserved)
    return fg_fail(FG_ESPEC, "inputs.%s: the name is taken: it is %s", x.name, reserved);
  const char *value = pair->value + strspn(pair->value, " ");
  size_t n = 0;
  while (isalnum((unsigned char)value[n])) n++;
  const char *rest = value + n + strspn(value + n, " ");
  bool is_int = n == 3 && !strncmp(value, "int", n),
       is_float = n == 5 && !strncmp(value, "float", n);
  if (is_int || is_float) {
    x.tensor = false;
    x.type = is_int ? FG_TYPE_INT : FG_TYPE_FLOAT;
    *out = x;
    TRY(read_marks(pair, rest, &x));
    return FG_OK;
  }
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strlen(types[i].name) != n || strncmp(types[i].name, value, n) || *rest != '[') continue;
    x.elem = types[i].elem;
    x.type = x.elem == FG_ELEM_I32 ? FG_TYPE_INT : FG_TYPE_FLOAT;
    TRY(read_axes(pair, rest, &x));
    *out = x;
    return FG_OK;
  }
  return bad_type(pair);
}

/* A parameter hides inputs and definitions of its name, but nothing of the language. */
static fg_status check_parameters(const char *name, const fg_head *head) {
  for (int i = 0; i < head->n; i++) {
    const char *parameter = head->parameter[i], *taken = fg_formula_reserved(parameter);
    for (int j = 0; j < i; j++)
      if (!strcmp(head->parameter[j], parameter)) taken = "a parameter before it";
    if (taken)
      return fg_fail(FG_ESPEC, "define.%s: the parameter's name %s is taken: it is %s", name,
                     parameter, taken);
  }
  return FG_OK;
}

/* Definitions of one name differ in how many parameters they have; a table finds them by both. */
typedef struct {
  fg_head *head; /* of each definition */
  int *slot;     /* a definition's number + 1; 0: free */
  size_t slots;  /* a power of 2, more than there are definitions */
} heads;

/* The number of an earlier definition like definition d, which else is entered; -1: there is none.
 */
static int enter_head(heads *h, int d) {
  const fg_head *head = &h->head[d];
  size_t i = (size_t)head->n;
  for (const char *c = head->name; *c; c++) i = i * 31 + (unsigned char)*c;
  for (i &= h->slots - 1; h->slot[i]; i = (i + 1) & (h->slots - 1)) {
    const fg_head *other = &h->head[h->slot[i] - 1];
    if (other->n == head->n && !strcmp(other->name, head->name)) return h->slot[i] - 1;
  }
  h->slot[i] = d + 1;
  return -1;
}

static fg_status check_definition(const fg_pair *definition, const fg_formula *f, heads *h, int d) {
  const fg_definitions builtin = fg_formula_builtin();
  fg_head *head = &h->head[d], other;
  fg_status status = fg_formula_head(definition->name, head);
  if (status != FG_OK) return fg_fail_in(status, "define");
  const char *taken = fg_formula_reserved(head->name);
  for (int i = 0; i < f->n_inputs; i++)
    if (!strcmp(f->input[i].name, head->name)) taken = "an input";
  for (int j = 0; j < builtin.n; j++)
    if (fg_formula_head(builtin.list[j].name, &other) == FG_OK && !strcmp(other.name, head->name))
      taken = "a definition of flashgen";
  if (enter_head(h, d) >= 0) taken = "defined already";
  if (taken)
    return fg_fail(FG_ESPEC, "define.%s: the name is taken: it is %s", definition->name, taken);
  return check_parameters(definition->name, head);
}

static fg_status check_definitions(const fg_formula_texts *texts, const fg_formula *f) {
  const int n = texts->n_definitions;
  heads h = {.slots = 16};
  fg_status status = FG_OK;
  if (!n) return FG_OK;
  if (n > FG_DEFINITION_MAX)
    return fg_fail(FG_ESPEC, "define: %d definitions; at most %d", n, FG_DEFINITION_MAX);
  while (h.slots < 2 * (size_t)n) h.slots *= 2;
  h.head = malloc((size_t)n * sizeof *h.head);
  h.slot = calloc(h.slots, sizeof *h.slot);
  if (!h.head || !h.slot) status = fg_fail(FG_EMEMORY, "no memory for definitions");
  for (int d = 0; d < n && status == FG_OK; d++)
    status = check_definition(&texts->definition[d], f, &h, d);
  free(h.head);
  free(h.slot);
  return status;
}

/* Names of inputs and definitions are one space, with those of the language. */
static fg_status check_clashes(const fg_formula_texts *texts, const fg_formula *f) {
  fg_definitions builtin = fg_formula_builtin();
  fg_head head;
  for (int i = 0; i < f->n_inputs; i++)
    for (int j = 0; j < f->n_inputs; j++)
      if (f->input[j].grad && *f->input[i].name == 'd' &&
          !strcmp(f->input[i].name + 1, f->input[j].name))
        return fg_fail(FG_ESPEC, "inputs.%s: the name is taken: it is the gradient of %s",
                       f->input[i].name, f->input[j].name);
  for (int i = 0; i < f->n_inputs; i++)
    for (int j = 0; j < builtin.n; j++)
      if (fg_formula_head(builtin.list[j].name, &head) == FG_OK &&
          !strcmp(head.name, f->input[i].name))
        return fg_fail(FG_ESPEC, "inputs.%s: the name is taken: %s is a definition of flashgen",
                       head.name, builtin.list[j].name);
  return check_definitions(texts, f);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const fg_input *)a)->name, ((const fg_input *)b)->name);
}

/* Inputs are kept in the order of their names: tables of Lua have none. */
static fg_status read_inputs(const fg_formula_texts *texts, fg_formula *f) {
  if (texts->n_inputs > FG_INPUT_MAX)
    return fg_fail(FG_ESPEC, "inputs: more than %d", FG_INPUT_MAX);
  for (int i = 0; i < texts->n_inputs; i++) {
    TRY(read_input(&texts->input[i], &f->input[i]));
    for (int j = 0; j < i; j++)
      if (!strcmp(f->input[j].name, f->input[i].name))
        return fg_fail(FG_ESPEC, "inputs.%s: given twice", f->input[i].name);
  }
  f->n_inputs = texts->n_inputs;
  qsort(f->input, (size_t)f->n_inputs, sizeof *f->input, by_name);
  TRY(check_clashes(texts, f));
  for (int i = 0; i < f->n_inputs && texts->forward; i++) f->input[i].grad = false;
  return FG_OK;
}

fg_status fg_formula_check(const fg_formula_texts *texts) {
  fg_formula f = {0};
  fg_status status = read_inputs(texts, &f);
  fg_formula_free(&f);
  return status;
}

/* ---- a point ---- */

/* Reads mask and score with f's inputs. */
static fg_status read_both(const fg_formula_texts *texts, fg_formula *f) {
  const fg_definitions definitions[2] = {{texts->definition, texts->n_definitions},
                                         fg_formula_builtin()};
  fg_tree_free(&f->tree);
  TRY(fg_formula_parse(f, definitions, "mask", FG_IN_MASK, texts->mask ? texts->mask : "full",
                       &f->mask));
  return fg_formula_parse(f, definitions, "score", FG_IN_SCORE, texts->score ? texts->score : "s",
                          &f->score);
}

/* FG_ESPEC naming a part that may exceed 64 bits. */
static fg_status check_sizes(fg_formula *f, const char *field, int root) {
  char text[160];
  fg_extent extent = {0};
  int part = fg_tree_misfit(&f->tree, root, &extent);
  if (!part) return FG_OK;
  TRY(fg_tree_check(&f->tree, f->tree.no_memory ? 0 : part));
  if (fg_formula_print(f, part, sizeof text, text) >= (int)sizeof text)
    strcpy(text + sizeof text - 4, "...");
  return fg_fail(
      FG_ESPEC,
      "%s: %s may exceed 64 bits: by the ranges of what it names, its size is up to %.1e "
      "(positions, lengths and int inputs may be 2^30, elements of i32 2^31)",
      field, text, fmax(fabs(extent.lo), fabs(extent.hi)));
}

fg_status fg_formula_read(const fg_formula_texts *texts, fg_formula *f, bool *unused) {
  *f = (fg_formula){0};
  TRY(read_inputs(texts, f));
  TRY(read_both(texts, f));
  fg_input others[FG_INPUT_MAX];
  int kept = 0, left = 0;
  for (int i = 0; i < f->n_inputs; i++) {
    bool used = fg_tree_takes(&f->tree, f->mask, i) || fg_tree_takes(&f->tree, f->score, i);
    for (int j = 0; f->input[i].named && unused && j < texts->n_inputs; j++)
      if (!strcmp(texts->input[j].name, f->input[i].name)) unused[j] = false;
    *(used ? &f->input[kept++] : &others[left++]) = f->input[i];
  }
  /* Nodes hold the numbers of inputs, so the texts are read again. They may still name inputs that
   * folding has removed: those go last, and are forgotten afterwards. */
  if (left) {
    memcpy(f->input + kept, others, (size_t)left * sizeof *others);
    TRY(read_both(texts, f));
    f->n_inputs = kept;
  }
  TRY(check_sizes(f, "mask", f->mask));
  return check_sizes(f, "score", f->score);
}

int fg_formula_print(const fg_formula *f, int node, size_t size, char *text) {
  const char *names[FG_INPUT_MAX + 1];
  for (int i = 0; i < f->n_inputs; i++) names[i] = f->input[i].name;
  return fg_tree_print(&f->tree, node, names, size, text);
}

int fg_formula_inputs(const fg_formula *f, size_t size, char *text) {
  int n = 0;
  if (size) *text = 0;
  for (int i = 0; i < f->n_inputs; i++) {
    const fg_input *x = &f->input[i];
    char type[400] = "";
    int m = snprintf(type, sizeof type, "%s",
                     !x->tensor ? x->type == FG_TYPE_INT ? "int" : "float" : fg_elem_name(x->elem));
    for (int a = 0; a < x->rank; a++)
      m = fg_append(sizeof type, type, m, "%s%s", a ? ", " : "[", x->extent[a]);
    fg_append(sizeof type, type, m, "%s%s%s", x->rank ? "]" : "", x->grad ? " grad" : "",
              x->monotone ? " monotone" : "");
    n = fg_append(size, text, n, "%s%s=%s", i ? ", " : "", x->name, type);
  }
  return n;
}

/* The place of a read of each axis of the bias: its own index, or 0 where it is broadcast. */
fg_status fg_formula_add_bias(fg_formula *f, int dims, fg_elem elem, bool grad) {
  static const fg_name names[] = {FG_NAME_B, FG_NAME_H, FG_NAME_Q, FG_NAME_K};
  static const char *const axes[] = {"b", "h", "q", "k"};
  fg_input *x = &f->input[f->n_inputs];
  int index[4];
  *x = (fg_input){
      .name = "bias", .type = FG_TYPE_FLOAT, .tensor = true, .grad = grad, .elem = elem, .rank = 4};
  for (int a = 0; a < 4; a++) {
    bool kept = dims >> a & 1;
    strcpy(x->extent[a], kept ? axes[a] : "1");
    index[a] = kept ? fg_tree_name(&f->tree, names[a]) : fg_tree_constant(&f->tree, FG_TYPE_INT, 0);
  }
  int read = fg_tree_read(&f->tree, f->n_inputs++, FG_TYPE_FLOAT, 4, index);
  f->score = fg_tree_binary(&f->tree, FG_NODE_ADD, f->score, read);
  return fg_tree_check(&f->tree, f->score);
}
