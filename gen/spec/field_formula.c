/* field_formula.c - fields whose values are expressions: their texts, and their names in a
 * kernel's, which are a word, a call, or a hash of the text. */
#include "base/intern.h"
#include "formula/formula_call.h"
#include "formula/formula_parse.h"
#include "point_formula.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const fg_field *field, const void *value) {
  const char *text = *(const char *const *)value;
  return text ? text : field->fallback;
}

static int print_text(const fg_field *field, const void *value, size_t size, char *text) {
  return snprintf(text, size, "%s", text_of(field, value));
}

static int allow_expression(const fg_field *field, size_t size, char *text) {
  (void)field;
  return snprintf(text, size, "an expression");
}

/* Does the text stand for itself in names of points? A definition of flashgen's does, which reads
 * back; an input's name does not, whatever it is. */
static bool is_plain(const char *text) {
  fg_definitions known = fg_formula_builtin();
  for (int i = 0; i < known.n; i++)
    if (!strcmp(known.list[i].name, text)) return !strchr(text, '(');
  return !strcmp(text, "false");
}

/* "-causal", "-window_128_0" unless it is the name before, or "-mask_" and the hash of a text. */
static int tag_text(const fg_field *field, const void *value, bool before, size_t size,
                    char *name) {
  const char *text = *(const char *const *)value;
  char hex[FG_INTERN_HEX];
  if (!text) return 0;
  if (is_plain(text)) return snprintf(name, size, "-%s", text);
  const char *call = before ? NULL : fg_intern_called(text);
  if (call && *call) return snprintf(name, size, "-%s", call);
  fg_intern_hash(text, hex);
  return snprintf(name, size, "-%s_%s", field->tags[0], hex);
}

/* A hash behind the field's label: 1 and *name behind it, 0 where there is no label, -1 where the
 * hash is of no known text. */
static int take_hash(const fg_field *field, const char **name, const char **text) {
  char label[16], hex[FG_INTERN_HEX];
  const size_t n = (size_t)snprintf(label, sizeof label, "-%s_", field->tags[0]);
  const char *at = *name + n;
  if (strncmp(*name, label, n)) return 0;
  if (strspn(at, "0123456789abcdef") < FG_INTERN_HEX - 1) return -1;
  memcpy(hex, at, FG_INTERN_HEX - 1);
  hex[FG_INTERN_HEX - 1] = 0;
  *name = at + FG_INTERN_HEX - 1;
  return fg_intern_find(hex, text) == FG_OK ? 1 : -1;
}

/* A list of inputs is named by its hash alone. */
static const char *untag_named(const fg_field *field, const char *name, void *value) {
  const char **text = value;
  *text = NULL;
  return take_hash(field, &name, text) < 0 ? NULL : name;
}

/* The expression alone, of which a point has two. */
static bool read_formula(const fg_field *field, const char *text, void *value) {
  const bool is_mask = field == &fg_fields[FG_FIELD_MASK];
  const fg_formula_texts texts = {.mask = is_mask ? text : NULL, .score = is_mask ? NULL : text};
  fg_point read = {0};
  if (fg_point_set_formula(&read, &texts, NULL) != FG_OK) return false;
  *(const char **)value = is_mask ? read.mask : read.score;
  return true;
}

/* A field that is not named keeps its default. */
static const char *untag_formula(const fg_field *field, const char *name, void *value) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
  char word[64], call[128];
  const char **text = value;
  *text = NULL;
  const int hashed = take_hash(field, &name, text);
  if (hashed) return hashed < 0 ? NULL : name;
  const size_t n = *name == '-' ? strspn(name + 1, letters) : 0;
  if (!n || n >= sizeof word) return name;
  snprintf(word, sizeof word, "%.*s", (int)n, name + 1);
  const bool is_call = fg_formula_call_text(word, sizeof call, call);
  if (!is_call && !is_plain(word)) return name;
  if (!read_formula(field, is_call ? call : word, text)) return name;
  return *text ? name + 1 + n : name;
}

/* grid.c reads inputs and definitions, all of a table together. */
static bool read_named(const fg_field *field, const char *text, void *value) {
  (void)field, (void)text, (void)value;
  return true;
}

const fg_field_type fg_type_formula = {.is_expression = true,
                                       .read = read_formula,
                                       .print = print_text,
                                       .allowed = allow_expression,
                                       .tag = tag_text,
                                       .untag = untag_formula};
const fg_field_type fg_type_named = {.is_expression = true,
                                     .is_list = true,
                                     .read = read_named,
                                     .print = print_text,
                                     .allowed = allow_expression,
                                     .tag = tag_text,
                                     .untag = untag_named};
