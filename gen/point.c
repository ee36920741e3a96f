/* point.c - one checked point: what its fields mean together, and its name.
 *
 * The name is the fields' tags in the order of the table: "attn_bwd-f16-d192v128-causal-bias_hqk".
 * It reads back: fg_point_parse(fg_point_name(p)) = p. */
#include "formula_call.h"
#include "formula_parse.h"
#include "intern.h"
#include "spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_DIMS = 15 };

static const int *place(const fg_field *field, const fg_point *point) {
  return (const int *)(const void *)((const char *)point + field->value);
}

/* A dtype choice whose index 0 means "that of `base`": index i > 0 is element type i - 1. */
static int settle_dtype(int choice, int base) { return choice - 1 == base ? 0 : choice; }

void fg_point_settle(fg_point *p) {
  if (p->pass == FG_PASS_FORWARD && p->bias == FG_BIAS_GRAD) p->bias = FG_BIAS_ON;
  if (p->pass == FG_PASS_FORWARD) p->deterministic = 0; /* it always is */
  if (p->bias == FG_BIAS_OFF) p->bias_dims = ALL_DIMS, p->bias_dtype = 0;
  p->bias_dtype = settle_dtype(p->bias_dtype, p->dtype);
  int bias_elem = p->bias_dtype ? p->bias_dtype - 1 : p->dtype;
  p->grad_dtype = p->bias == FG_BIAS_GRAD ? settle_dtype(p->grad_dtype, bias_elem) : 0;
}

fg_elem fg_point_elem(const fg_point *p) { return (fg_elem)p->dtype; }

fg_elem fg_point_bias_elem(const fg_point *p) {
  return (fg_elem)(p->bias_dtype ? p->bias_dtype - 1 : p->dtype);
}

fg_elem fg_point_grad_elem(const fg_point *p) {
  return p->grad_dtype ? (fg_elem)(p->grad_dtype - 1) : fg_point_bias_elem(p);
}

bool fg_point_equal(const fg_point *a, const fg_point *b) { return !memcmp(a, b, sizeof *a); }

/* Does the text stand for itself in names of points? A definition of flashgen's does, which reads
 * back; an input's name does not, whatever it is. */
static bool is_plain(const char *text) {
  fg_definitions known = fg_formula_builtin();
  for (int i = 0; i < known.n; i++)
    if (!strcmp(known.list[i].name, text)) return !strchr(text, '(');
  return !strcmp(text, "false");
}

/* "-causal", "-window_128_0" unless it is the name before, or "-mask_" and the hash of a text. */
static int formula_name(const fg_field *field, const char *text, bool before, size_t size,
                        char *name) {
  char hex[FG_INTERN_HEX];
  if (!text) return 0;
  if (is_plain(text)) return snprintf(name, size, "-%s", text);
  const char *call = before ? NULL : fg_intern_called(text);
  if (call && *call) return snprintf(name, size, "-%s", call);
  fg_intern_hash(text, hex);
  return snprintf(name, size, "-%s_%s", field->tags[0], hex);
}

static int print_name(const fg_point *p, bool before, size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    const fg_field *field = &fg_fields[i];
    const int *value = place(field, p);
    char *end = text + n;
    size_t room = size - (size_t)n;
    switch (field->kind) {
    case FG_CHOICE:
      n += snprintf(end, room, "%s", field->tags[*value]);
      break;
    case FG_HEAD_DIM:
      n += value[0] == value[1] ? snprintf(end, room, "-d%d", value[0])
                                : snprintf(end, room, "-d%dv%d", value[0], value[1]);
      break;
    case FG_DIMS:
      if (p->bias == FG_BIAS_OFF) break;
      n += snprintf(end, room, "_%s%s%s%s%s", *value & 1 ? "b" : "", *value & 2 ? "h" : "",
                    *value & 4 ? "q" : "", *value & 8 ? "k" : "", *value ? "" : "1");
      break;
    case FG_FORMULA:
    case FG_NAMED:
      if (field->value)
        n += formula_name(field, *(const char *const *)(const void *)value, before, room, end);
      break;
    case FG_PLAN_INT:
      break;
    }
  }
  return n;
}

int fg_point_name(const fg_point *p, size_t size, char *text) {
  return print_name(p, false, size, text);
}

int fg_point_name_before(const fg_point *p, size_t size, char *text) {
  return print_name(p, true, size, text);
}

/* The longest tag that `name` begins with. */
static const char *parse_choice(const fg_field *field, const char *name, int *value) {
  size_t longest = 0;
  bool found = false;
  for (int i = 0; field->tags[i]; i++) {
    size_t n = strlen(field->tags[i]);
    if (strncmp(name, field->tags[i], n) || (found && n <= longest)) continue;
    *value = i, longest = n, found = true;
  }
  return found ? name + longest : NULL;
}

static const char *parse_head_dim(const char *name, int *dims) {
  char *end;
  if (strncmp(name, "-d", 2) || name[2] < '1' || name[2] > '9') return NULL;
  dims[0] = dims[1] = (int)strtol(name + 2, &end, 10);
  if (*end == 'v' && end[1] >= '1' && end[1] <= '9') dims[1] = (int)strtol(end + 1, &end, 10);
  return end;
}

static const char *parse_dims(const char *name, int *set) {
  static const char axes[] = "bhqk";
  if (*name++ != '_') return NULL;
  *set = 0;
  if (*name == '1') return name + 1;
  for (int i = 0; i < 4; i++)
    if (*name == axes[i]) *set |= 1 << i, name++;
  return *set ? name : NULL;
}

/* Its inverse; a field that is not named keeps its default. */
static const char *parse_formula(const fg_field *field, const char *name, const char **text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
  char label[16], hex[FG_INTERN_HEX], word[64], call[128];
  fg_point read = {0};
  *text = NULL;
  size_t n = (size_t)snprintf(label, sizeof label, "-%s_", field->tags[0]);
  if (!strncmp(name, label, n)) {
    if (strspn(name + n, "0123456789abcdef") < FG_INTERN_HEX - 1) return NULL;
    memcpy(hex, name + n, FG_INTERN_HEX - 1);
    hex[FG_INTERN_HEX - 1] = 0;
    return fg_intern_find(hex, text) == FG_OK ? name + n + FG_INTERN_HEX - 1 : NULL;
  }
  n = *name == '-' ? strspn(name + 1, letters) : 0;
  if (!n || n >= sizeof word || field->kind != FG_FORMULA) return name;
  snprintf(word, sizeof word, "%.*s", (int)n, name + 1);
  const bool is_call = fg_formula_call_text(word, sizeof call, call);
  if (!is_call && !is_plain(word)) return name;
  if (fg_field_read(field, is_call ? call : word, &read, NULL) != FG_OK) return name;
  *text = field == &fg_fields[FG_FIELD_MASK] ? read.mask : read.score;
  return *text ? name + 1 + n : name;
}

const char *fg_point_parse(const char *name, fg_point *point) {
  fg_point p = {0};
  for (int i = 0; i < FG_SPEC_FIELDS && name; i++) {
    const fg_field *field = &fg_fields[i];
    int *value = (int *)(void *)((char *)&p + field->value);
    if (field->kind == FG_FORMULA || (field->kind == FG_NAMED && field->value))
      name = parse_formula(field, name, (const char **)(void *)value);
    if (field->kind == FG_CHOICE) name = parse_choice(field, name, value);
    if (field->kind == FG_HEAD_DIM) name = parse_head_dim(name, value);
    if (field->kind == FG_DIMS) {
      if (p.bias == FG_BIAS_OFF)
        *value = ALL_DIMS;
      else
        name = parse_dims(name, value);
    }
  }
  if (name) *point = p;
  return name;
}
