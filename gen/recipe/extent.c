/* extent.c - the table of a launch's extents. */
#include "extent.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const fg_extent_row fg_extents[FG_EXTENTS] = {
    {"b", "b", 'b', "batch", 0, .place = offsetof(fg_shape, b)},
    {"h", "h", 'h', "heads", 'g', .place = offsetof(fg_shape, h)},
    {"hk", "hk", 'g', "key/value heads", 'h', .place = offsetof(fg_shape, hk)},
    {"nq", "q", 'q', "query length", 'k', .place = offsetof(fg_shape, nq)},
    {"nk", "k", 'k', "key length", 'q', .place = offsetof(fg_shape, nk)},
    {"rows", NULL, 'r', "rows", 0, .place = offsetof(fg_shape, rows)},
    {"tokens_q", NULL, 's', "query tokens", 't', .place = offsetof(fg_shape, tokens_q)},
    {"tokens_k", NULL, 't', "key tokens", 's', .place = offsetof(fg_shape, tokens_k)},
    {"pages", NULL, 'y', "pages", 0, .place = offsetof(fg_shape, pages)},
    {"page", NULL, 'z', "keys of a page", 0, .place = offsetof(fg_shape, page)},
    {"parts", NULL, 'p', "parts", 0, .place = offsetof(fg_shape, parts), .least = 1, .most = 256},
    {"positions", NULL, 'n', "positions", 0, .place = offsetof(fg_shape, positions)},
    {"slices", NULL, 'l', "slices", 0, .place = offsetof(fg_shape, slices)},
};

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
  for (int i = 0; i < FG_EXTENTS; i++)
    if (fg_extents[i].letter == letter) return &fg_extents[i];
  return NULL;
}

const fg_extent_row *fg_extent_of_axis(const char *axis, size_t n) {
  for (int i = 0; i < FG_EXTENTS; i++)
    if (fg_extents[i].axis && strlen(fg_extents[i].axis) == n &&
        !strncmp(fg_extents[i].axis, axis, n))
      return &fg_extents[i];
  return NULL;
}

int64_t fg_extent_get(const fg_extent_row *extent, const fg_shape *shape) {
  return *(const int64_t *)(const void *)((const char *)shape + extent->place);
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
