/* field.c - the table of spec and plan fields: parsing, printing and naming derive from its rows.
 *
 * To add a field: a row here, a member in fg_spec and one in fg_point, and FG_FIELDS. */
#include "point_formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SPEC(n)    .name = #n, .text = offsetof(fg_spec, n)
#define POINT(n)   SPEC(n), .value = offsetof(fg_point, n)

/* Rows are in the order of names. A tag of a later row must not begin with one of an earlier row
 * that may be empty, or a name would not read back. */
const fg_field fg_fields[FG_FIELDS] = {
    {POINT(kernel), .kind = FG_CHOICE, .fallback = "attention", .choices = NAMES("attention"),
     .tags = NAMES("attn"), .help = "what is computed"},
    {POINT(pass), .kind = FG_CHOICE, .fallback = "forward", .choices = NAMES("forward", "backward"),
     .tags = NAMES("_fwd", "_bwd"), .help = "the result, or the gradients of its inputs"},
    {POINT(dtype), .kind = FG_CHOICE, .fallback = "bf16", .choices = NAMES("bf16", "f16"),
     .tags = NAMES("-bf16", "-f16"), .help = "of q k v o and their gradients; sums are float32"},
    {SPEC(head_dim), .value = offsetof(fg_point, d), .kind = FG_HEAD_DIM,
     .help = "d of q and k, or d/dv: multiples of 8 from 8 to 256"},
    {POINT(mask), .kind = FG_FORMULA, .fallback = "full", .tags = NAMES("mask"),
     .help = "visible keys: full, causal, window(1023, 0), k <= p && p - k < width"},
    {POINT(score), .kind = FG_FORMULA, .fallback = "s", .tags = NAMES("score"),
     .help = "of s, the scaled product: softcap(30.0), s + slope[h] * (k - p)"},
    {POINT(inputs), .kind = FG_NAMED, .fallback = "", .tags = NAMES("in"),
     .help = "what expressions may use: inputs.slope=f32[h] grad, inputs.width=int"},
    {SPEC(define), .kind = FG_NAMED, .fallback = "",
     .help = "expressions by a name: define.strided(n)=(q - k) % n == 0"},
    {POINT(bias), .kind = FG_CHOICE, .fallback = "false", .choices = NAMES("false", "true", "grad"),
     .tags = NAMES("", "-bias", "-biasgrad"),
     .help = "adds bias[b,h,q,k] to the score; grad: backward writes dbias too"},
    {POINT(bias_dims), .kind = FG_DIMS, .fallback = "b,h,q,k",
     .help = "the axes of the bias that are not broadcast: of b,h,q,k"},
    {POINT(bias_dtype), .kind = FG_CHOICE, .fallback = "spec",
     .choices = NAMES("spec", "bf16", "f16", "f32"),
     .tags = NAMES("", "-biasbf16", "-biasf16", "-biasf32"), .help = "of bias; spec = dtype"},
    {POINT(grad_dtype), .kind = FG_CHOICE, .fallback = "spec",
     .choices = NAMES("spec", "bf16", "f16", "f32"),
     .tags = NAMES("", "-gradbf16", "-gradf16", "-gradf32"),
     .help = "of dbias; spec = that of bias"},
    {POINT(normalizer), .kind = FG_CHOICE, .fallback = "softmax", .choices = NAMES("softmax"),
     .tags = NAMES(""), .help = "what turns scores into weights"},
    {POINT(deterministic), .kind = FG_CHOICE, .fallback = "false",
     .choices = NAMES("false", "true"), .tags = NAMES("", "-det"),
     .help = "backward: equal launches give equal bits"},
    /* plan fields: `tags` holds the letter that names give them; families in order of preference */
    {SPEC(family), .kind = FG_CHOICE, .plan = true, .choices = NAMES("wgmma", "mma", "simt"),
     .help = "how"},
    {SPEC(block_q), .kind = FG_PLAN_INT, .plan = true, .tags = NAMES("q"),
     .help = "query rows of a tile"},
    {SPEC(block_kv), .kind = FG_PLAN_INT, .plan = true, .tags = NAMES("k"),
     .help = "keys of a tile"},
    {SPEC(stages), .kind = FG_PLAN_INT, .plan = true, .tags = NAMES("s"),
     .help = "tiles in flight"},
    {SPEC(warps), .kind = FG_PLAN_INT, .plan = true, .tags = NAMES("w"),
     .help = "warps of a block"},
    {SPEC(parts), .kind = FG_PLAN_INT, .plan = true, .tags = NAMES("p"),
     .help = "warps that share keys, or blocks that share rows, at most"},
};

static const char axes[] = "bhqk"; /* bit i of a set of dims is axes[i] */

const fg_field *fg_field_find(const char *name) {
  for (int i = 0; i < FG_FIELDS; i++)
    if (!strcmp(fg_fields[i].name, name)) return &fg_fields[i];
  return NULL;
}

static int *place(const fg_field *field, fg_point *point) {
  return (int *)(void *)((char *)point + field->value);
}

/* A decimal integer that is the whole text. */
static bool whole_int(const char *text, size_t length, int *value) {
  if (length == 0 || length > 9) return false;
  int v = 0;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    v = 10 * v + (text[i] - '0');
  }
  *value = v;
  return length == 1 || text[0] != '0';
}

static bool good_dim(int d) {
  return d >= FG_HEAD_DIM_STEP && d <= FG_HEAD_DIM_MAX && d % FG_HEAD_DIM_STEP == 0;
}

static bool read_head_dim(const char *text, int *dims) {
  const char *slash = strchr(text, '/');
  size_t first = slash ? (size_t)(slash - text) : strlen(text);
  if (!whole_int(text, first, &dims[0])) return false;
  dims[1] = dims[0];
  if (slash && !whole_int(slash + 1, strlen(slash + 1), &dims[1])) return false;
  return good_dim(dims[0]) && good_dim(dims[1]);
}

/* "h,q,k" or "[h,q,k]", in any order, each axis once; "[]" is a bias of one number. */
static bool read_dims(const char *text, int *set) {
  size_t n = strlen(text);
  bool bracketed = n >= 2 && text[0] == '[' && text[n - 1] == ']';
  const char *at = text + bracketed, *end = text + n - bracketed;
  *set = 0;
  if (at == end) return bracketed;
  for (;; at++) {
    while (at < end && *at == ' ') at++;
    const char *axis = at < end && *at ? strchr(axes, *at) : NULL;
    if (!axis || *set >> (axis - axes) & 1) return false;
    *set |= 1 << (axis - axes);
    for (at++; at < end && *at == ' ';) at++;
    if (at == end) return true;
    if (*at != ',') return false;
  }
}

/* Optimal string alignment: edits of one letter, and two neighbours swapped, cost 1. */
static int distance(const char *a, const char *b) {
  enum { MAX = 32 };
  int n = (int)strlen(a), m = (int)strlen(b), d[MAX + 1][MAX + 1];
  if (n > MAX || m > MAX) return n + m; /* near nothing */
  for (int i = 0; i <= n; i++) {
    for (int j = 0; j <= m; j++) {
      if (!i || !j) {
        d[i][j] = i + j;
        continue;
      }
      int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
      if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && d[i - 2][j - 2] + 1 < best) best = d[i - 2][j - 2] + 1;
      d[i][j] = best;
    }
  }
  return d[n][m];
}

const char *fg_nearest(const char *name, const char *const *names, int n) {
  const char *best = NULL;
  int least = (int)strlen(name) / 3 + 1; /* one slip in a short word, more in a long one */
  for (int i = 0; i < n; i++) {
    int far = distance(name, names[i]);
    if (far <= least && (!best || far < least)) best = names[i], least = far;
  }
  return best;
}

const char *fg_field_nearest(const char *name) {
  const char *names[FG_FIELDS];
  for (int i = 0; i < FG_FIELDS; i++) names[i] = fg_fields[i].name;
  return fg_nearest(name, names, FG_FIELDS);
}

static fg_status refuse(const fg_field *field, const char *text) {
  char allowed[256];
  int n = 0, choices = 0;
  switch (field->kind) {
  case FG_HEAD_DIM:
    snprintf(allowed, sizeof allowed, "d or d/dv, multiples of %d from %d to %d (128 or 192/128)",
             FG_HEAD_DIM_STEP, FG_HEAD_DIM_STEP, FG_HEAD_DIM_MAX);
    break;
  case FG_DIMS:
    snprintf(allowed, sizeof allowed, "a list of the axes b, h, q, k, each once (h,q,k)");
    break;
  case FG_PLAN_INT:
    snprintf(allowed, sizeof allowed, "a positive integer");
    break;
  case FG_FORMULA:
  case FG_NAMED:
    snprintf(allowed, sizeof allowed, "an expression");
    break;
  case FG_CHOICE:
    for (; field->choices[choices]; choices++)
      n += snprintf(allowed + n, sizeof allowed - (size_t)n, "%s%s", choices ? ", " : "",
                    field->choices[choices]);
    break;
  }
  const char *near = field->kind == FG_CHOICE ? fg_nearest(text, field->choices, choices) : NULL;
  return fg_fail(FG_ESPEC, "%s: \"%.64s\"%s is not allowed; expected %s%s%s%s", field->name, text,
                 strlen(text) > 64 ? "..." : "", allowed, near ? " (did you mean \"" : "",
                 near ? near : "", near ? "\"?)" : "");
}

/* The expression alone; the point's other one stays. */
static fg_status read_formula(const fg_field *field, const char *text, fg_point *point) {
  bool mask = field == &fg_fields[FG_FIELD_MASK];
  fg_point read = {0};
  TRY(fg_point_set_formula(
      &read, &(fg_formula_texts){.mask = mask ? text : NULL, .score = mask ? NULL : text}, NULL));
  *(mask ? &point->mask : &point->score) = mask ? read.mask : read.score;
  return FG_OK;
}

fg_status fg_field_read(const fg_field *field, const char *text, fg_point *point, int *plan_value) {
  if (field->kind == FG_FORMULA) return read_formula(field, text, point);
  int *value = field->plan ? plan_value : place(field, point);
  switch (field->kind) {
  case FG_CHOICE:
    for (int i = 0; field->choices[i]; i++) {
      if (strcmp(field->choices[i], text)) continue;
      *value = i;
      return FG_OK;
    }
    break;
  case FG_HEAD_DIM:
    if (read_head_dim(text, value)) return FG_OK;
    break;
  case FG_DIMS:
    if (read_dims(text, value)) return FG_OK;
    break;
  case FG_PLAN_INT:
    if (whole_int(text, strlen(text), value) && *value > 0) return FG_OK;
    break;
  case FG_FORMULA:
  case FG_NAMED: /* grid.c reads them, all of a table together */
    return FG_OK;
  }
  return refuse(field, text);
}

const char *fg_field_text(const fg_field *field, const fg_point *point) {
  const void *at = (const char *)point + field->value;
  const char *text = field->value ? *(const char *const *)at : NULL;
  return text ? text : field->fallback;
}

int fg_field_print(const fg_field *field, const fg_point *point, size_t size, char *text) {
  const int *value = place(field, (fg_point *)point);
  int n = 0;
  switch (field->kind) {
  case FG_FORMULA:
  case FG_NAMED:
    return snprintf(text, size, "%s", fg_field_text(field, point));
  case FG_CHOICE:
    return snprintf(text, size, "%s", field->choices[*value]);
  case FG_HEAD_DIM:
    if (value[0] == value[1]) return snprintf(text, size, "%d", value[0]);
    return snprintf(text, size, "%d/%d", value[0], value[1]);
  case FG_DIMS:
    if (*value == 0) return snprintf(text, size, "[]");
    for (int i = 0; i < 4; i++)
      if (*value >> i & 1) n += snprintf(text + n, size - (size_t)n, n ? ",%c" : "%c", axes[i]);
    return n;
  case FG_PLAN_INT:
    break; /* plan fields have no place in a point */
  }
  return n;
}
