/* extent.c - the table of a launch's extents. */
#include "extent.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ROW(member, axis, letter, title, fellow, least, most), a name being that of fg_shape's member. */
#define EXTENTS(ROW)                                                                               \
  ROW(b, "b", 'b', "batch", 0, 0, 0)                                                               \
  ROW(h, "h", 'h', "heads", 'g', 0, 0)                                                             \
  ROW(hk, "hk", 'g', "key/value heads", 'h', 0, 0)                                                 \
  ROW(nq, "q", 'q', "query length", 'k', 0, 0)                                                     \
  ROW(nk, "k", 'k', "key length", 'q', 0, 0)                                                       \
  ROW(rows, NULL, 'r', "rows", 0, 0, 0)                                                            \
  ROW(tokens_q, NULL, 's', "query tokens", 't', 0, 0)                                              \
  ROW(tokens_k, NULL, 't', "key tokens", 's', 0, 0)                                                \
  ROW(pages, NULL, 'y', "pages", 0, 0, 0)                                                          \
  ROW(page, NULL, 'z', "keys of a page", 0, 0, 0)                                                  \
  ROW(parts, NULL, 'p', "parts", 0, 1, 256)                                                        \
  ROW(positions, NULL, 'n', "positions", 0, 0, 0)                                                  \
  ROW(slices, NULL, 'l', "slices", 0, 0, 0)

#define NUMBER(member, ...) ROW_##member,
enum { EXTENTS(NUMBER) ROWS };
_Static_assert((int)ROWS == FG_EXTENTS, "as extent.h says");

#define AS_ROW(member, axis, letter, title, fellow, least, most)                                   \
  {#member, axis, letter, title, fellow, offsetof(fg_shape, member), least, most},
const fg_extent_row fg_extents[FG_EXTENTS] = {EXTENTS(AS_ROW)};

/* 1 + the row, by letter. */
#define BY_LETTER(member, axis, letter, ...) [letter] = 1 + ROW_##member,
static const unsigned char row_of[128] = {EXTENTS(BY_LETTER)};

_Static_assert(sizeof(fg_shape) == sizeof(size_t) + (FG_EXTENTS + 1) * sizeof(int64_t),
               "each member of fg_shape but its size and align has a row");

const fg_shape_form fg_shape_forms[FG_SHAPE_FORMS] = {
    [FG_FORM_PAIRS] = {.letters = "bhgqk",
                       .layout = "styzl",
                       .brief = "b$b h$h/$g $qx$k",
                       .length = 'k'},
    [FG_FORM_ROWS] = {.letters = "r", .layout = "", .brief = "$r rows", .length = 'r'},
    [FG_FORM_PARTS] = {.letters = "pbhq",
                       .layout = "",
                       .brief = "$p parts b$b h$h $q",
                       .length = 'q'},
    [FG_FORM_APPEND] = {.letters = "bhgqkn",
                        .layout = "syz",
                        .brief = "b$b h$h/$g $q to $k",
                        .length = 'q'},
};

/* The bits of a number that is negative, or no length. */
#define TOO_LONG (~(uint64_t)(FG_LENGTH_MAX - 1))

fg_form_rule fg_form_rule_of(const fg_shape_form *form) {
  fg_form_rule rule = {.has_hk = fg_form_has(form, 'g')};
  for (int i = 0; i < FG_EXTENTS; i++) {
    const fg_extent_row *x = &fg_extents[i];
    const bool has = fg_form_has(form, x->letter);
    rule.wrong[i] = has ? TOO_LONG : UINT64_MAX;
    if (has && x->most) rule.bounded = x;
  }
  return rule;
}

bool fg_shape_is_good(const fg_form_rule *rule, const fg_shape *s) {
#define LOOK_AT(member, ...) wrong |= (uint64_t)s->member & rule->wrong[ROW_##member];
  uint64_t wrong = (uint64_t)s->align & TOO_LONG;
  EXTENTS(LOOK_AT)
  if (wrong) return false;
  const fg_extent_row *x = rule->bounded;
  if (x && (fg_extent_get(x, s) < x->least || fg_extent_get(x, s) > x->most)) return false;
  if (s->h == s->hk || !s->h || !rule->has_hk) return true;
  return s->hk && (uint32_t)s->h % (uint32_t)s->hk == 0;
}

bool fg_form_has(const fg_shape_form *form, char letter) {
  return letter && (strchr(form->letters, letter) || strchr(form->layout, letter));
}

const fg_shape_form *fg_shape_form_of(const fg_shape *shape) {
  for (int i = 0; i < FG_SHAPE_FORMS; i++) {
    bool all = true;
    for (int x = 0; x < FG_EXTENTS; x++)
      all &= !fg_extent_get(&fg_extents[x], shape) ||
             fg_form_has(&fg_shape_forms[i], fg_extents[x].letter);
    if (all) return &fg_shape_forms[i];
  }
  return fg_shape_forms;
}

bool fg_shape_is_full(const fg_shape *shape) {
  bool full = true;
  for (const char *letter = fg_shape_form_of(shape)->letters; *letter; letter++)
    full &= fg_extent_get(fg_extent_of(*letter), shape) > 0;
  return full;
}

/* What is before the first extent and each other one, around a name, and before a number. */
typedef struct {
  const char *open, *between, *quote, *equals;
} style;
static const style in_words = {"", " ", "", "="}, in_json = {"{", ", ", "\"", ": "};

/* Appends "b=4 h=16", of the letters; `all`: of extents that are 0 too. */
static int put_extents(const fg_shape *shape, const char *letters, bool all, const style *s,
                       size_t size, char *text, int n) {
  for (const char *letter = letters; *letter; letter++) {
    const fg_extent_row *extent = fg_extent_of(*letter);
    const int64_t value = fg_extent_get(extent, shape);
    if (all || value)
      n = fg_append(size, text, n, "%s%s%s%s%s%" PRId64, n ? s->between : s->open, s->quote,
                    extent->name, s->quote, s->equals, value);
  }
  return n;
}

int fg_shape_words(const fg_shape_form *form, const fg_shape *shape, size_t size, char *text) {
  const int n = put_extents(shape, form->letters, true, &in_words, size, text, 0);
  return put_extents(shape, form->layout, false, &in_words, size, text, n);
}

int fg_shape_json(const fg_shape_form *form, const fg_shape *shape, size_t size, char *text) {
  int n = put_extents(shape, form->letters, true, &in_json, size, text, 0);
  n = put_extents(shape, form->layout, false, &in_json, size, text, n);
  if (shape->align) n = fg_append(size, text, n, ", \"align\": %" PRId64, shape->align);
  return fg_append(size, text, n, "}");
}

int fg_shape_brief(const fg_shape *shape, size_t size, char *text) {
  const fg_shape_form *form = fg_shape_form_of(shape);
  int n = 0;
  for (const char *at = form->brief; *at; at++)
    n = *at == '$' ? fg_append(size, text, n, "%" PRId64, fg_extent_get(fg_extent_of(*++at), shape))
                   : fg_append(size, text, n, "%c", *at);
  return put_extents(shape, form->layout, false, &in_words, size, text, n);
}

const fg_extent_row *fg_extent_find(const char *name) {
  for (int i = 0; i < FG_EXTENTS; i++)
    if (!strcmp(fg_extents[i].name, name)) return &fg_extents[i];
  return NULL;
}

const fg_extent_row *fg_extent_of(char letter) {
  const int row = letter > 0 ? row_of[(int)letter] : 0;
  return row ? &fg_extents[row - 1] : NULL;
}

const fg_extent_row *fg_extent_of_axis(const char *axis, size_t n) {
  for (int i = 0; i < FG_EXTENTS; i++)
    if (fg_extents[i].axis && strlen(fg_extents[i].axis) == n &&
        !strncmp(fg_extents[i].axis, axis, n))
      return &fg_extents[i];
  return NULL;
}

void fg_extent_set(const fg_extent_row *extent, fg_shape *shape, int64_t value) {
  *(int64_t *)(void *)((char *)shape + extent->place) = value;
}

int fg_extent_names(const char *letters, const char *separator, size_t size, char *text) {
  const int count = letters ? (int)strlen(letters) : FG_EXTENTS;
  int n = 0;
  for (int i = 0; i < count; i++) {
    const fg_extent_row *extent = letters ? fg_extent_of(letters[i]) : &fg_extents[i];
    n = fg_append(size, text, n, "%s%s", n ? separator : "", extent->name);
  }
  return n;
}
