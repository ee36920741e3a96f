/* wisdom_list.c - the measurements of files, sorted for reports and tables. */
#include "wisdom.h"

#include "recipe/extent.h"

#include <stdlib.h>
#include <string.h>

fg_status fg_measured_add(const char *text, size_t size, fg_measured_list *list) {
  const char *line;
  size_t at = 0, n;
  bool whole;
  while (fg_wisdom_next(text, size, &at, &line, &n, &whole)) {
    fg_measured m;
    if (fg_measured_parse(line, n, &m, NULL) != FG_LINE_GOOD) continue;
    fg_measured *copy = malloc(sizeof *copy);
    fg_measured **grown = realloc(list->item, ((size_t)list->n + 1) * sizeof *grown);
    if (grown) list->item = grown;
    if (!copy || !grown) {
      free(copy);
      return fg_fail(FG_EMEMORY, "no memory for %d measurements", list->n + 1);
    }
    *copy = m;
    list->item[list->n++] = copy;
  }
  return FG_OK;
}

void fg_measured_free(fg_measured_list *list) {
  for (int i = 0; i < list->n; i++) free(list->item[i]);
  free(list->item);
  *list = (fg_measured_list){0};
}

static int by_int(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* Orders names, which are SPEC.PLAN.ARCH, by spec, then by arch. */
static int by_spec(const char *a, const char *b) {
  size_t n = strcspn(a, "."), m = strcspn(b, ".");
  int order = strncmp(a, b, n < m ? n : m);
  if (order || n != m) return order ? order : by_int((int64_t)n, (int64_t)m);
  return strcmp(strrchr(a, '.') ? strrchr(a, '.') : a, strrchr(b, '.') ? strrchr(b, '.') : b);
}

static int by_kin(const fg_measured *a, const fg_measured *b) {
  int order = by_spec(a->name, b->name);
  if (!order) order = strcmp(a->device, b->device);
  return order ? order : strcmp(a->expression, b->expression);
}

bool fg_measured_kin(const fg_measured *a, const fg_measured *b) { return by_kin(a, b) == 0; }

/* Orders shapes by the length of their keys first, then by all other extents. */
static int by_peers(const fg_measured *a, const fg_measured *b) {
  static const char letters[] = "kqbhgrpnstzyl";
  _Static_assert(sizeof letters == FG_EXTENTS + 1, "each extent tells two shapes apart");
  int order = by_kin(a, b);
  for (const char *letter = letters; *letter && !order; letter++)
    order = by_int(fg_extent_get(fg_extent_of(*letter), &a->shape),
                   fg_extent_get(fg_extent_of(*letter), &b->shape));
  return order ? order : by_int(a->shape.align, b->shape.align);
}

bool fg_measured_peers(const fg_measured *a, const fg_measured *b) { return by_peers(a, b) == 0; }

/* Brings the lines of one thing together, the latest first; newer generations come before older
 * ones. */
static int by_thing(const void *left, const void *right) {
  const fg_measured *a = *(fg_measured *const *)left, *b = *(fg_measured *const *)right;
  int order = by_peers(a, b);
  if (!order) order = strcmp(a->name, b->name);
  if (!order) order = by_int(b->generation, a->generation);
  return order ? order : by_int(b->when, a->when);
}

/* The order of a sorted list: see fg_measured_sort. */
static int by_time(const void *left, const void *right) {
  const fg_measured *a = *(fg_measured *const *)left, *b = *(fg_measured *const *)right;
  const bool x = fg_measured_counts(a), y = fg_measured_counts(b);
  int order = by_peers(a, b);
  if (!order) order = by_int(a->outdated, b->outdated);
  if (!order) order = by_int(y, x);
  if (!order && x) order = by_int(a->status, b->status); /* a time of few launches ranks behind */
  if (!order && x) order = (a->ms > b->ms) - (a->ms < b->ms);
  if (!order) order = strcmp(a->name, b->name);
  return order ? order : by_int(b->generation, a->generation);
}

void fg_measured_sort(fg_measured_list *list) {
  int n = 0;
  if (!list->n) return;
  qsort(list->item, (size_t)list->n, sizeof *list->item, by_thing);
  for (int i = 0; i < list->n; i++) {
    fg_measured *m = list->item[i], *before = n ? list->item[n - 1] : NULL;
    if (n && fg_measured_same(before, m)) {
      free(m);
      continue;
    }
    m->outdated = n && !strcmp(before->name, m->name) && fg_measured_peers(before, m);
    list->item[n++] = m;
  }
  list->n = n;
  qsort(list->item, (size_t)list->n, sizeof *list->item, by_time);
}

const fg_measured *fg_measured_find(const fg_measured_list *list, const fg_measured *like) {
  for (int i = 0; i < list->n; i++)
    if (fg_measured_same(list->item[i], like)) return list->item[i];
  return NULL;
}
