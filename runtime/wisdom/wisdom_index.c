/* wisdom_index.c - the lines of a text by the spec of their variant. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wisdom_index.h"

#include <stdlib.h>
#include <string.h>

/* A line's head is behind its format, a tab, 16 digits and a tab. */
enum { HEAD = 20 };

bool fg_wisdom_next(const char *text, size_t size, size_t *at, const char **line, size_t *n,
                    bool *whole) {
  if (*at >= size) return false;
  const char *end = memchr(text + *at, '\n', size - *at);
  *line = text + *at;
  *n = end ? (size_t)(end - *line) : size - *at;
  *whole = end != NULL;
  *at += *n + *whole;
  return true;
}

static uint64_t hash_of(const char *head, size_t n) { return XXH3_64bits(head, n); }

/* The length of a line's head, which ends with the dot behind the spec; 0: it has none. */
static size_t head_of(const char *line, size_t n) {
  const char *dot = n > HEAD ? memchr(line + HEAD, '.', n - HEAD) : NULL;
  return dot ? (size_t)(dot + 1 - (line + HEAD)) : 0;
}

static int by_hash(const void *left, const void *right) {
  const fg_indexed_line *a = left, *b = right;
  if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
  return (a->at > b->at) - (a->at < b->at);
}

fg_status fg_wisdom_index_new(const char *text, size_t size, fg_wisdom_index *index) {
  const char *line;
  size_t at = 0, n;
  bool whole;
  int count = 0, room = 0;
  while (fg_wisdom_next(text, size, &at, &line, &n, &whole)) room += head_of(line, n) > 0;
  fg_indexed_line *list = malloc(((size_t)room + 1) * sizeof *list);
  if (!list) return fg_fail(FG_EMEMORY, "no memory for %d lines of wisdom", room);
  for (at = 0; fg_wisdom_next(text, size, &at, &line, &n, &whole);) {
    const size_t head = head_of(line, n);
    if (head)
      list[count++] = (fg_indexed_line){
          .hash = hash_of(line + HEAD, head), .at = (uint32_t)(line - text), .n = (uint32_t)n};
  }
  qsort(list, (size_t)count, sizeof *list, by_hash);
  *index = (fg_wisdom_index){text, list, count};
  return FG_OK;
}

void fg_wisdom_index_free(fg_wisdom_index *index) {
  free((void *)(uintptr_t)index->line);
  *index = (fg_wisdom_index){0};
}

const fg_indexed_line *fg_wisdom_lines(const fg_wisdom_index *index, const char *head, size_t n,
                                       const fg_indexed_line **end) {
  const uint64_t hash = hash_of(head, n);
  const fg_indexed_line *const last = index->line + index->n;
  const fg_indexed_line *first = index->line;
  for (size_t left = (size_t)index->n; left;) {
    const size_t half = left / 2;
    const bool is_before = first[half].hash < hash;
    first = is_before ? first + half + 1 : first;
    left = is_before ? left - half - 1 : half;
  }
  for (*end = first; *end < last && (*end)->hash == hash;) ++*end;
  return first;
}

bool fg_wisdom_line_is(const fg_wisdom_index *index, const fg_indexed_line *line, const char *head,
                       size_t n) {
  return line->n >= HEAD + n && !memcmp(index->text + line->at + HEAD, head, n);
}
