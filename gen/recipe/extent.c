/* extent.c - the table of a launch's extents. */
#include "extent.h"

#include <stdio.h>
#include <string.h>

const fg_extent_row fg_extents[FG_EXTENTS] = {
    {"b", "b", 'b', "batch", offsetof(fg_shape, b)},
    {"h", "h", 'h', "heads", offsetof(fg_shape, h)},
    {"hk", "hk", 'g', "key/value heads", offsetof(fg_shape, hk)},
    {"nq", "q", 'q', "query length", offsetof(fg_shape, nq)},
    {"nk", "k", 'k', "key length", offsetof(fg_shape, nk)},
};

_Static_assert(sizeof(fg_shape) == sizeof(size_t) + (FG_EXTENTS + 1) * sizeof(int64_t),
               "each member of fg_shape but its size and align has a row");

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
    if (strlen(fg_extents[i].axis) == n && !strncmp(fg_extents[i].axis, axis, n))
      return &fg_extents[i];
  return NULL;
}

int64_t fg_extent_get(const fg_extent_row *extent, const fg_shape *shape) {
  return *(const int64_t *)(const void *)((const char *)shape + extent->place);
}

void fg_extent_set(const fg_extent_row *extent, fg_shape *shape, int64_t value) {
  *(int64_t *)(void *)((char *)shape + extent->place) = value;
}

int fg_extent_names(const char *separator, size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < FG_EXTENTS; i++)
    n += snprintf(text + n, size - (size_t)n, "%s%s", i ? separator : "", fg_extents[i].name);
  return n;
}
