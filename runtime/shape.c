/* shape.c - classes of shapes. */
#include "shape.h"

#include "base/text.h"
#include "recipe/extent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int log2_of(uint64_t n) { return n ? 63 - __builtin_clzll(n) : 0; }

/* Blocks along y or z (CUDA). A batch beyond it is for the plans that have it along x, whatever
 * wins below: it is a class of its own. */
enum { GRID_MAX = 65535 };

/* Quarter octaves: 0, then 1 + 4 log2 n and the two bits below the leading one. */
static int quarters(int64_t length) {
  const uint64_t n = (uint64_t)length;
  if (!n) return 0;
  const int zeros = __builtin_clzll(n);
  return 1 + 4 * (63 - zeros) + (int)(n << zeros >> 61 & 3);
}

/* The quarters of 1, and of 2 and 3, are single lengths. */
void fg_shape_lengths(int64_t length, int64_t *least, int64_t *most) {
  int octave = log2_of((uint64_t)length);
  int64_t step = octave >= 2 ? (int64_t)1 << (octave - 2) : 1;
  *least = length / step * step, *most = *least + step - 1;
}

/* Query heads of a key/value head: 1, up to 8, up to 16, more: as many rows of one query a kernel
 * for few of them has in a tile. */
static int sharing(const fg_shape *s) {
  if (!s->hk || s->h == s->hk) return 0;
  return (s->h / 2 >= s->hk) + (s->h / 9 >= s->hk) + (s->h / 17 >= s->hk);
}

/* What only some shapes have: rows or parts, never both, and extents of layouts. */
static uint64_t rare_class(const fg_shape *s) {
  if (!(s->rows | s->parts | s->tokens_q | s->tokens_k | s->page)) return 0;
  return (uint64_t)quarters(s->rows + s->parts) << 30 | (uint64_t)quarters(s->tokens_q) << 38 |
         (uint64_t)quarters(s->tokens_k) << 46 | (uint64_t)quarters(s->page) << 54;
}

/* log2 of the bytes that all addresses are multiples of: 16 at most, and where nobody says. */
static int alignment(const fg_shape *s) {
  const int bytes = s->align ? __builtin_ctzll((uint64_t)s->align) : 4;
  return bytes < 4 ? bytes : 4;
}

uint64_t fg_shape_class(const fg_shape *s) {
  const int shared = sharing(s);
  return 1 | (uint64_t)quarters(s->nq) << 1 | (uint64_t)quarters(s->nk) << 9 |
         (uint64_t)log2_of((uint64_t)(s->b * s->h)) << 17 |
         (uint64_t)alignment(s) << 25 | (uint64_t)(shared & 1) << 28 |
         (uint64_t)(s->b > GRID_MAX) << 29 | rare_class(s) | (uint64_t)(shared >> 1) << 62;
}

fg_shape fg_shape_typical(const fg_shape *shape) {
  fg_shape s = *shape;
  if (!s.b) return s;
  if (s.tokens_q) s.nq = (s.tokens_q + s.b - 1) / s.b;
  if (s.tokens_k) s.nk = (s.tokens_k + s.b - 1) / s.b;
  int64_t keys;
  if (s.page && !__builtin_mul_overflow(s.pages, s.page, &keys) && keys / s.b < s.nk)
    s.nk = keys / s.b;
  return s;
}

uint64_t fg_shape_timed_class(const fg_shape *shape) {
  fg_shape s = fg_shape_typical(shape);
  s.tokens_q = s.tokens_k = 0;
  return fg_shape_class(&s);
}

int fg_shape_distance(const fg_shape *left, const fg_shape *right) {
  const fg_shape x = fg_shape_typical(left), y = fg_shape_typical(right), *a = &x, *b = &y;
  int heads = log2_of((uint64_t)(a->b * a->h)) - log2_of((uint64_t)(b->b * b->h));
  return abs(quarters(a->nq) - quarters(b->nq)) + abs(quarters(a->nk) - quarters(b->nk)) +
         abs(quarters(a->rows + a->parts) - quarters(b->rows + b->parts)) +
         abs(quarters(a->page) - quarters(b->page)) + 2 * abs(heads) +
         3 * abs(sharing(a) - sharing(b));
}

int fg_shape_print(const fg_shape *s, size_t size, char *text) {
  const fg_shape_form *form = fg_shape_form_of(s);
  int n = 0;
  for (const char *letter = form->letters; *letter; letter++) {
    const fg_extent_row *extent = fg_extent_of(*letter);
    if (form != fg_shape_forms) n = fg_append(size, text, n, "%s=", extent->name);
    n = fg_append(size, text, n, "%" PRId64 ",", fg_extent_get(extent, s));
  }
  for (const char *letter = form->layout; *letter; letter++) {
    const fg_extent_row *extent = fg_extent_of(*letter);
    const int64_t value = fg_extent_get(extent, s);
    if (value) n = fg_append(size, text, n, "%s=%" PRId64 ",", extent->name, value);
  }
  return fg_append(size, text, n, "%" PRId64, s->align ? s->align : 16);
}
