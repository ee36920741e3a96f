/* field_type.c - choices, head dims, sets of axes, numbers of plans, words: reading, printing,
 * naming. */
#include "spec.h"

#include "base/intern.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char axes[] = "bhqk"; /* bit i of a set of axes is axes[i] */

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

/* ---- one of a list ---- */

static const char *choice(const fg_field *field, int i) { return field->choices[i]; }
static const char *choice_tag(const fg_field *field, int i) { return field->tags[i]; }

/* The value is the index of the text among the choices. */
static bool read_choice(const fg_field *field, const char *text, void *value) {
  for (int i = 0; field->type->choice(field, i); i++) {
    if (strcmp(field->type->choice(field, i), text)) continue;
    *(int *)value = i;
    return true;
  }
  return false;
}

static int print_choice(const fg_field *field, const void *value, size_t size, char *text) {
  return snprintf(text, size, "%s", field->type->choice(field, *(const int *)value));
}

static int allow_choice(const fg_field *field, size_t size, char *text) {
  int n = 0;
  for (int i = 0; field->type->choice(field, i); i++)
    n = fg_append(size, text, n, "%s%s", i ? ", " : "", field->type->choice(field, i));
  return n;
}

static int tag_choice(const fg_field *field, const void *value, bool before, size_t size,
                      char *name) {
  (void)before;
  return snprintf(name, size, "%s", field->type->choice_tag(field, *(const int *)value));
}

/* The longest tag that `name` begins with. */
static const char *untag_choice(const fg_field *field, const char *name, void *value) {
  size_t longest = 0;
  bool found = false;
  for (int i = 0; field->type->choice(field, i); i++) {
    const char *tag = field->type->choice_tag(field, i);
    const size_t n = strlen(tag);
    if (strncmp(name, tag, n) || (found && n <= longest)) continue;
    *(int *)value = i, longest = n, found = true;
  }
  return found ? name + longest : NULL;
}

/* ---- kinds of kernels ---- */

static const char *kind_name(const fg_field *field, int i) {
  (void)field;
  return i < FG_KINDS ? fg_kinds[i].name : NULL;
}

static const char *kind_tag(const fg_field *field, int i) {
  (void)field;
  return fg_kinds[i].tag;
}

const fg_field_type fg_type_kind = {.choice = kind_name,
                                    .choice_tag = kind_tag,
                                    .read = read_choice,
                                    .print = print_choice,
                                    .allowed = allow_choice,
                                    .tag = tag_choice,
                                    .untag = untag_choice};

const fg_field_type fg_type_choice = {.choice = choice,
                                      .choice_tag = choice_tag,
                                      .read = read_choice,
                                      .print = print_choice,
                                      .allowed = allow_choice,
                                      .tag = tag_choice,
                                      .untag = untag_choice};

/* ---- head dims ---- */

static bool good_dim(int d, int most) {
  return d >= FG_HEAD_DIM_STEP && d <= most && d % FG_HEAD_DIM_STEP == 0;
}

/* "64" is 64/64. */
static bool read_widths(const fg_field *field, const char *text, void *value) {
  const char *slash = strchr(text, '/');
  size_t first = slash ? (size_t)(slash - text) : strlen(text);
  int *dims = value;
  (void)field;
  if (!whole_int(text, first, &dims[0])) return false;
  dims[1] = dims[0];
  if (slash && !whole_int(slash + 1, strlen(slash + 1), &dims[1])) return false;
  return good_dim(dims[0], FG_HEAD_DIM_MAX) && good_dim(dims[1], FG_HEAD_DIM_V_MAX);
}

static int print_widths(const fg_field *field, const void *value, size_t size, char *text) {
  const int *dims = value;
  (void)field;
  if (dims[0] == dims[1]) return snprintf(text, size, "%d", dims[0]);
  return snprintf(text, size, "%d/%d", dims[0], dims[1]);
}

static int allow_widths(const fg_field *field, size_t size, char *text) {
  (void)field;
  return snprintf(text, size, "d or d/dv, multiples of %d from %d to %d, dv to %d (128 or 192/128)",
                  FG_HEAD_DIM_STEP, FG_HEAD_DIM_STEP, FG_HEAD_DIM_MAX, FG_HEAD_DIM_V_MAX);
}

static int tag_widths(const fg_field *field, const void *value, bool before, size_t size,
                      char *name) {
  const int *dims = value;
  (void)field, (void)before;
  if (dims[0] == dims[1]) return snprintf(name, size, "-d%d", dims[0]);
  return snprintf(name, size, "-d%dv%d", dims[0], dims[1]);
}

/* Its numbers are not bounded by this grammar: fg_variant_parse does. */
static const char *untag_widths(const fg_field *field, const char *name, void *value) {
  int *dims = value;
  char *end;
  (void)field;
  if (strncmp(name, "-d", 2) || name[2] < '1' || name[2] > '9') return NULL;
  dims[0] = dims[1] = (int)strtol(name + 2, &end, 10);
  if (*end == 'v' && end[1] >= '1' && end[1] <= '9') dims[1] = (int)strtol(end + 1, &end, 10);
  return end;
}

const fg_field_type fg_type_widths = {.read = read_widths,
                                      .print = print_widths,
                                      .allowed = allow_widths,
                                      .tag = tag_widths,
                                      .untag = untag_widths};

/* ---- widths of rows ---- */

static bool good_width(int width) { return width > 0 && width <= FG_WIDTH_MAX; }

/* "64", or "64/32" of rows that go in and that come out; "64" is 64/64. */
static bool read_width(const fg_field *field, const char *text, void *value) {
  const char *slash = strchr(text, '/');
  const size_t first = slash ? (size_t)(slash - text) : strlen(text);
  int *width = value;
  (void)field;
  if (!whole_int(text, first, &width[0])) return false;
  width[1] = width[0];
  if (slash && !whole_int(slash + 1, strlen(slash + 1), &width[1])) return false;
  return good_width(width[0]) && good_width(width[1]);
}

static int allow_width(const fg_field *field, size_t size, char *text) {
  (void)field;
  return snprintf(text, size, "an integer from 1 to %d, of linear also in/out: 512/2048",
                  FG_WIDTH_MAX);
}

static int tag_width(const fg_field *field, const void *value, bool before, size_t size,
                     char *name) {
  const int *width = value;
  (void)before;
  if (width[0] == width[1]) return snprintf(name, size, "%s%d", field->tags[0], width[0]);
  return snprintf(name, size, "%s%do%d", field->tags[0], width[0], width[1]);
}

/* A width has no leading zero in a name, so that equal points have one name. */
static bool untag_one(const char **name, int *width) {
  char *end;
  if (**name < '1' || **name > '9') return false;
  const long n = strtol(*name, &end, 10);
  if (n > FG_WIDTH_MAX) return false;
  *width = (int)n;
  *name = end;
  return true;
}

static const char *untag_width(const fg_field *field, const char *name, void *value) {
  const size_t n = strlen(field->tags[0]);
  int *width = value;
  if (strncmp(name, field->tags[0], n)) return NULL;
  name += n;
  if (!untag_one(&name, &width[0])) return NULL;
  width[1] = width[0];
  if (*name != 'o') return name;
  name++;
  return untag_one(&name, &width[1]) && width[1] != width[0] ? name : NULL;
}

const fg_field_type fg_type_width = {.read = read_width,
                                     .print = print_widths,
                                     .allowed = allow_width,
                                     .tag = tag_width,
                                     .untag = untag_width};

/* ---- numbers of a plan ---- */

static bool read_number(const fg_field *field, const char *text, void *value) {
  (void)field;
  return whole_int(text, strlen(text), value) && *(int *)value > 0;
}

static int print_number(const fg_field *field, const void *value, size_t size, char *text) {
  (void)field;
  return snprintf(text, size, "%d", *(const int *)value);
}

static int allow_number(const fg_field *field, size_t size, char *text) {
  (void)field;
  return snprintf(text, size, "a positive integer");
}

const fg_field_type fg_type_number = {
    .read = read_number, .print = print_number, .allowed = allow_number};

/* ---- an even number of columns ---- */

static bool read_even(const fg_field *field, const char *text, void *value) {
  int *n = value;
  (void)field;
  return whole_int(text, strlen(text), n) && *n % 2 == 0 && *n <= FG_HEAD_DIM_MAX;
}

static int allow_even(const fg_field *field, size_t size, char *text) {
  (void)field;
  return snprintf(text, size, "an even number from 0 to %d", FG_HEAD_DIM_MAX);
}

/* 0 has no name of its own. */
static int tag_even(const fg_field *field, const void *value, bool before, size_t size,
                    char *name) {
  const int n = *(const int *)value;
  (void)before;
  return n ? snprintf(name, size, "%s%d", field->tags[0], n) : 0;
}

static const char *untag_even(const fg_field *field, const char *name, void *value) {
  const size_t n = strlen(field->tags[0]);
  char *end;
  *(int *)value = 0;
  if (strncmp(name, field->tags[0], n) || name[n] < '1' || name[n] > '9') return name;
  const long even = strtol(name + n, &end, 10);
  if (even > FG_HEAD_DIM_MAX || even % 2) return NULL;
  *(int *)value = (int)even;
  return end;
}

const fg_field_type fg_type_even = {.read = read_even,
                                    .print = print_number,
                                    .allowed = allow_even,
                                    .tag = tag_even,
                                    .untag = untag_even};

/* ---- sets of axes ---- */

/* "h,q,k" or "[h,q,k]", in any order, each axis once; "[]" is one number for all. */
static bool read_axes(const fg_field *field, const char *text, void *value) {
  size_t n = strlen(text);
  bool bracketed = n >= 2 && text[0] == '[' && text[n - 1] == ']';
  const char *at = text + bracketed, *end = text + n - bracketed;
  int *set = value;
  (void)field;
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

/* The axes in the order of the table, whatever the order in which they were given. */
static int print_axes(const fg_field *field, const void *value, size_t size, char *text) {
  const int set = *(const int *)value;
  int n = 0;
  (void)field;
  if (set == 0) return snprintf(text, size, "[]");
  for (int i = 0; i < 4; i++)
    if (set >> i & 1) n = fg_append(size, text, n, n ? ",%c" : "%c", axes[i]);
  return n;
}

static int allow_axes(const fg_field *field, size_t size, char *text) {
  (void)field;
  return snprintf(text, size, "a list of the axes b, h, q, k, each once (h,q,k)");
}

static int tag_axes(const fg_field *field, const void *value, bool before, size_t size,
                    char *name) {
  const int set = *(const int *)value;
  (void)field, (void)before;
  return snprintf(name, size, "_%s%s%s%s%s", set & 1 ? "b" : "", set & 2 ? "h" : "",
                  set & 4 ? "q" : "", set & 8 ? "k" : "", set ? "" : "1");
}

/* "_hqk", or "_1" for no axis; the order is fixed, so that equal points have one name. */
static const char *untag_axes(const fg_field *field, const char *name, void *value) {
  int *set = value;
  (void)field;
  if (*name++ != '_') return NULL;
  *set = 0;
  if (*name == '1') return name + 1;
  for (int i = 0; i < 4; i++)
    if (*name == axes[i]) *set |= 1 << i, name++;
  return *set ? name : NULL;
}

const fg_field_type fg_type_axes = {.read = read_axes,
                                    .print = print_axes,
                                    .allowed = allow_axes,
                                    .tag = tag_axes,
                                    .untag = untag_axes};

/* ---- words of the templates ---- */

/* Which ones there are is known where templates are read (kinds.lua). */
static const char word_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
enum { WORD_MAX = 24 };

/* The length of the word that the text begins with, 0 where it begins with none. */
static size_t word_length(const char *text) {
  const size_t n = strspn(text, word_letters);
  return n <= WORD_MAX && *text >= 'a' && *text <= 'z' ? n : 0;
}

/* NULL for the default, so that points without the field are zero there. */
static bool keep_word(const fg_field *field, const char *word, const char **kept) {
  *kept = NULL;
  return !strcmp(word, field->fallback) || fg_intern(word, kept) == FG_OK;
}

static bool read_word(const fg_field *field, const char *text, void *value) {
  const size_t n = word_length(text);
  return n && !text[n] && keep_word(field, text, value);
}

static int print_word(const fg_field *field, const void *value, size_t size, char *text) {
  const char *word = *(const char *const *)value;
  return snprintf(text, size, "%s", word ? word : field->fallback);
}

static int allow_word(const fg_field *field, size_t size, char *text) {
  (void)field;
  return snprintf(text, size, "a word of at most %d letters a-z, digits and _", WORD_MAX);
}

/* "-norm_none"; nothing for the default. */
static int tag_word(const fg_field *field, const void *value, bool before, size_t size,
                    char *name) {
  const char *word = *(const char *const *)value;
  (void)before;
  if (!word) return 0;
  return snprintf(name, size, "-%s_%s", field->tags[0], word);
}

/* The default has no name of its own. */
static const char *untag_word(const fg_field *field, const char *name, void *value) {
  char label[16], word[WORD_MAX + 1];
  const char **kept = value;
  const size_t begin = (size_t)snprintf(label, sizeof label, "-%s_", field->tags[0]);
  *kept = NULL;
  if (strncmp(name, label, begin)) return name;
  const size_t n = word_length(name + begin);
  snprintf(word, sizeof word, "%.*s", (int)n, name + begin);
  return n && keep_word(field, word, kept) && *kept ? name + begin + n : NULL;
}

const fg_field_type fg_type_word = {.read = read_word,
                                    .print = print_word,
                                    .allowed = allow_word,
                                    .tag = tag_word,
                                    .untag = untag_word};
