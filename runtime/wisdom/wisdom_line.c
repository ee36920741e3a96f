/* wisdom_line.c - a measurement as a line of text, and back. */
#define _GNU_SOURCE /* strsep */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wisdom.h"

#include "base/text.h"
#include "recipe/extent.h"
#include "shape.h"
#include "spec/point_formula.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEX = 16 };

const char *const fg_measured_words[FG_MEASURED_KINDS] = {"ok", "slow", "wrong", "refused",
                                                          "fault"};

/* The table of keys, in the order of a line. `size`: bytes of the member; a line without a required
 * key is bad. */
typedef enum { TEXT, INT, LONG, REAL, FLAG, SHAPE, STATUS } value_kind;
#define KEY(key, member, kind, required)                                                           \
  { key, kind, offsetof(fg_measured, member), sizeof(((fg_measured *)0)->member), required }
static const struct {
  const char *key;
  value_kind kind;
  size_t place, size;
  bool required;
} keys[] = {KEY("variant", name, TEXT, true),
            KEY("device", device, TEXT, true),
            KEY("multiprocessors", multiprocessors, INT, false),
            KEY("shape", shape, SHAPE, true),
            KEY("generation", generation, INT, true),
            KEY("status", status, STATUS, true),
            KEY("ms", ms, REAL, false),
            KEY("error", error, REAL, false),
            KEY("verified", verified, FLAG, false),
            KEY("registers", registers, INT, false),
            KEY("spill", spill, INT, false),
            KEY("compile", compile, REAL, false),
            KEY("when", when, LONG, false),
            KEY("expression", expression, TEXT, false),
            KEY("reason", reason, TEXT, false)};
enum { KEYS = sizeof keys / sizeof *keys };

static void checksum(const char *text, size_t n, char hex[HEX + 1]) {
  snprintf(hex, HEX + 1, "%016" PRIx64, (uint64_t)XXH3_64bits(text, n));
}

/* Writing ---------------------------------------------------------------------------------- */

/* Prints a member as text and returns its length; 0: the value is not known, and the key is left
 * out. */
static int print_value(value_kind kind, const void *place, size_t size, char *text) {
  const fg_shape *s = place;
  switch (kind) {
  case TEXT:
    return snprintf(text, size, "%s", (const char *)place);
  case INT:
    return *(const int *)place ? snprintf(text, size, "%d", *(const int *)place) : 0;
  case LONG:
    return snprintf(text, size, "%" PRId64, *(const int64_t *)place);
  case REAL: /* a NaN too: the reader judges it */
    return *(const double *)place != 0 ? snprintf(text, size, "%.6g", *(const double *)place) : 0;
  case FLAG:
    return snprintf(text, size, "%d", *(const bool *)place);
  case SHAPE:
    return fg_shape_print(s, size, text);
  case STATUS:
    return snprintf(text, size, "%s", fg_measured_words[*(const fg_measured_status *)place]);
  }
  return 0;
}

int fg_measured_print(const fg_measured *m, char line[FG_WISDOM_LINE]) {
  char hex[HEX + 1];
  const int head = snprintf(line, FG_WISDOM_LINE, "w%d\t%016d\t", FG_WISDOM_FORMAT, 0);
  int n = head;
  for (int i = 0; i < KEYS; i++) {
    char value[FG_WISDOM_LINE / 2];
    int length = print_value(keys[i].kind, (const char *)m + keys[i].place, sizeof value, value);
    if (!length) continue;
    for (char *c = value; *c; c++)
      if ((unsigned char)*c < ' ') *c = ' ';
    n = fg_append(FG_WISDOM_LINE, line, n, "%s%s=%s", n > head ? "\t" : "", keys[i].key, value);
  }
  checksum(line + head, (size_t)(n - head), hex);
  memcpy(line + head - HEX - 1, hex, HEX);
  line[n++] = '\n';
  line[n] = 0;
  return n;
}

/* Reading ---------------------------------------------------------------------------------- */

/* Reads 1 to 18 digits and `end` behind them; *rest is behind both. */
static bool read_long(const char *text, char end, int64_t *value, const char **rest) {
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 18 || text[digits] != end) return false;
  *value = strtoll(text, NULL, 10);
  *rest = text + digits + (end != 0);
  return true;
}

/* Reads "rows=", the name of the extent and a sign, and moves behind both. */
static bool read_name(const fg_extent_row *extent, const char **text) {
  const size_t n = strlen(extent->name);
  if (strncmp(*text, extent->name, n) || (*text)[n] != '=') return false;
  *text += n + 1;
  return true;
}

/* Reads a shape as fg_shape_print writes it. With names the first one tells the form. */
static bool read_shape(const char *text, fg_shape *s) {
  const fg_shape_form *form = fg_shape_forms;
  const bool named = *text >= 'a' && *text <= 'z';
  int64_t n;
  for (int i = 1; i < FG_SHAPE_FORMS && named; i++) {
    const char *at = text;
    if (read_name(fg_extent_of(*fg_shape_forms[i].letters), &at)) form = &fg_shape_forms[i];
  }
  for (const char *letter = form->letters; *letter; letter++) {
    const fg_extent_row *extent = fg_extent_of(*letter);
    if (named && !read_name(extent, &text)) return false;
    if (!read_long(text, ',', &n, &text)) return false;
    fg_extent_set(extent, s, n);
  }
  for (const char *letter = form->layout; *letter; letter++) {
    const fg_extent_row *extent = fg_extent_of(*letter);
    if (!read_name(extent, &text)) continue;
    if (!read_long(text, ',', &n, &text)) return false;
    fg_extent_set(extent, s, n);
  }
  if (!read_long(text, 0, &s->align, &text)) return false;
  return s->h < INT64_MAX >> 32 && s->b < INT64_MAX >> 32;
}

static bool read_status(const char *text, fg_measured_status *status) {
  for (int i = 0; i < FG_MEASURED_KINDS; i++)
    if (!strcmp(fg_measured_words[i], text)) return *status = (fg_measured_status)i, true;
  return false;
}

/* Reads the value of key i into its member; false if it is not of its kind. */
static bool read_value(int i, const char *text, fg_measured *m) {
  void *place = (char *)m + keys[i].place;
  int64_t value;
  char *end;
  switch (keys[i].kind) {
  case TEXT:
    if (strlen(text) >= keys[i].size) return false;
    strcpy(place, text);
    return true;
  case INT:
    if (!read_long(text, 0, &value, &text) || value > 1 << 30) return false;
    *(int *)place = (int)value;
    return true;
  case LONG:
    return read_long(text, 0, place, &text);
  case REAL:
    *(double *)place = strtod(text, &end);
    return *text && !*end;
  case FLAG:
    *(bool *)place = !strcmp(text, "1");
    return !strcmp(text, "0") || !strcmp(text, "1");
  case SHAPE:
    return read_shape(text, place);
  case STATUS:
    return read_status(text, place);
  }
  return false;
}

/* The row of a key, looked for from row `from` on, where it is if lines keep the order of keys;
 * KEYS: it is none. */
static int find_key(const char *key, int from) {
  for (int i = 0; i < KEYS; i++) {
    const int at = (from + i) % KEYS;
    if (!strcmp(keys[at].key, key)) return at;
  }
  return KEYS;
}

/* Cuts `text` up and reads its pairs; keys that are not known are skipped. What is wrong, or
 * NULL. */
static const char *read_pairs(char *text, fg_measured *m) {
  unsigned seen = 0;
  int next = 0;
  for (char *pair; (pair = strsep(&text, "\t"));) {
    char *value = strchr(pair, '=');
    if (!value) return "a field has no value";
    *value++ = 0;
    const int i = find_key(pair, next);
    if (i == KEYS) continue;
    if (seen >> i & 1) return "a field comes twice";
    if (!read_value(i, value, m)) return "a field has no value of its kind";
    seen |= 1u << i;
    next = i + 1;
  }
  for (int i = 0; i < KEYS; i++)
    if (keys[i].required && !(seen >> i & 1)) return "a field is missing";
  return m->generation ? NULL : "its generation is 0";
}

/* Checks the checksum of a line of format 1, then reads its pairs. What is wrong, or NULL. */
static const char *read_line(const char *line, size_t n, fg_measured *m) {
  char hex[HEX + 1], copy[FG_WISDOM_LINE];
  const size_t head = 3 + HEX + 1; /* "w1", tab, digits, tab */
  if (n >= sizeof copy) return "it is too long";
  if (memchr(line, 0, n)) return "it holds a zero byte";
  if (n <= head || line[head - 1] != '\t') return "it is cut off, or no line of wisdom";
  checksum(line + head, n - head, hex);
  if (memcmp(line + 3, hex, HEX)) return "its checksum is not that of its text";
  memcpy(copy, line + head, n - head);
  copy[n - head] = 0;
  return read_pairs(copy, m);
}

/* Gives the line the variant's present name: older lines have hashes where names now have calls. */
static void rename_variant(fg_measured *m) {
  fg_variant variant;
  if (!*m->expression || !(strstr(m->name, "-mask_") || strstr(m->name, "-score_"))) return;
  if (fg_expression_learn(m->expression) == FG_OK && fg_variant_parse(m->name, &variant) == FG_OK)
    fg_variant_name(&variant, sizeof m->name, m->name);
}

fg_line_kind fg_measured_parse(const char *line, size_t n, fg_measured *measured,
                               const char **why) {
  fg_measured m = {0};
  const char *unused;
  if (!why) why = &unused;
  if (n && line[n - 1] == '\r') n--; /* an editor added it */
  if (n == 0 || *line == '#') return FG_LINE_COMMENT;
  size_t digits = *line == 'w' && n > 2 ? strspn(line + 1, "0123456789") : 0;
  if (digits == 0 || digits > 6 || digits + 1 >= n || line[1 + digits] != '\t') {
    *why = "it is no line of wisdom";
    return FG_LINE_BAD;
  }
  if (strtol(line + 1, NULL, 10) > FG_WISDOM_FORMAT) return FG_LINE_NEWER;
  if (strncmp(line, "w1\t", 3)) return *why = "its format is none", FG_LINE_BAD;
  if ((*why = read_line(line, n, &m))) return FG_LINE_BAD;
  rename_variant(&m);
  *measured = m;
  return FG_LINE_GOOD;
}

/* Judging ---------------------------------------------------------------------------------- */

bool fg_measured_failed(const fg_measured *m) { return m->status > FG_MEASURED_SLOW; }

bool fg_measured_has_time(const fg_measured *m) {
  return !fg_measured_failed(m) && m->ms > 0 && m->ms < 1e7;
}

bool fg_measured_counts(const fg_measured *m) { return m->verified && fg_measured_has_time(m); }

const char *fg_measured_nonsense(const fg_measured *m) {
  const fg_shape *s = &m->shape;
  const char *dot = strchr(m->name, '.');
  if (!dot || !strchr(dot + 1, '.')) return "its variant is none: spec.plan.arch";
  if (!fg_shape_is_full(s) || (s->hk && s->h % s->hk))
    return "its shape is none: h is a multiple of hk, and all are 1 at least";
  if (!fg_measured_failed(m) && !fg_measured_has_time(m)) return "its time is none";
  if (!(m->error >= 0 && m->compile >= 0)) return "its error or compile time is none";
  return NULL;
}

bool fg_measured_same(const fg_measured *a, const fg_measured *b) {
  return a->generation == b->generation && !memcmp(&a->shape, &b->shape, sizeof a->shape) &&
         !strcmp(a->name, b->name) && !strcmp(a->device, b->device) &&
         !strcmp(a->expression, b->expression);
}

const char *fg_measured_field(const fg_measured *m, int i, size_t size, char *text,
                              fg_measured_value *value) {
  if (i >= KEYS) return NULL;
  *text = 0;
  *value = keys[i].kind == SHAPE                            ? FG_VALUE_SHAPE
           : keys[i].kind == TEXT || keys[i].kind == STATUS ? FG_VALUE_TEXT
                                                            : FG_VALUE_NUMBER;
  print_value(keys[i].kind, (const char *)m + keys[i].place, size, text);
  return keys[i].key;
}
