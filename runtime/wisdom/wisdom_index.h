/* wisdom_index.h - where a text of wisdom has the lines of each spec. The index of the wisdom that
 * comes with flashgen is made when it is built in; the index of a file when the file is read. */
#ifndef FG_WISDOM_INDEX_H
#define FG_WISDOM_INDEX_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line: the hash of its head, "variant=attn_fwd-bf16-d64.", and its bytes in the text. */
typedef struct fg_indexed_line {
  uint64_t hash;
  uint32_t at, n;
} fg_indexed_line;

/* The lines that have a head, by hash, then by place. */
typedef struct fg_wisdom_index {
  const char *text;
  const fg_indexed_line *line;
  int n;
} fg_wisdom_index;

/* The next line of a text, n bytes without its end; *at starts as 0; false after the last line.
 * *whole: the line has its end. */
bool fg_wisdom_next(const char *text, size_t size, size_t *at, const char **line, size_t *n,
                    bool *whole);

/* The text must outlive its index. FG_EMEMORY. */
fg_status fg_wisdom_index_new(const char *text, size_t size, fg_wisdom_index *index);
void fg_wisdom_index_free(fg_wisdom_index *index);

/* The first of the lines that may begin with the head, which has `n` bytes; *end is behind the last
 * one. Other heads may have the same hash. */
const fg_indexed_line *fg_wisdom_lines(const fg_wisdom_index *index, const char *head, size_t n,
                                       const fg_indexed_line **end);

/* Does the line begin with the head? */
bool fg_wisdom_line_is(const fg_wisdom_index *index, const fg_indexed_line *line, const char *head,
                       size_t n);

#endif
