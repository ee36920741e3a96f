/* lengths.c - lengths of sequences that are timed. */
#include "lengths.h"

#include "base/error.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The length of sequence i of n before it is rounded: the first one is the longest. */
static double length_at(int64_t i, int64_t n, int64_t longest, double slope) {
  return (double)longest * exp(-slope * (double)i / (double)(n > 1 ? n - 1 : 1));
}

/* The slope at which n lengths add up to the total; what the shortest one is the longest one's
 * e^-slope of. */
static double find_slope(int64_t n, int64_t total, int64_t longest) {
  double low = 0, high = 64;
  for (int step = 0; step < 100; step++) {
    const double slope = (low + high) / 2;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += length_at(i, n, longest, slope);
    *(sum > (double)total ? &low : &high) = slope;
  }
  return low;
}

static void shuffle(int64_t n, int64_t *list) {
  uint64_t state = 1;
  for (int64_t i = n - 1; i > 0; i--) {
    const int64_t j = (int64_t)(fg_random_next(&state) % (uint64_t)(i + 1)), x = list[i];
    list[i] = list[j], list[j] = x;
  }
}

/* n lengths of at most `longest`, 0: not known, that add up to the total if so many can. */
static void spread(int64_t n, int64_t total, int64_t longest, int64_t *length) {
  double carry = 0;
  longest = least(longest, total);
  if (longest == 0 || total >= n * longest) {
    for (int64_t i = 0; i < n; i++) length[i] = (i + 1) * total / n - i * total / n;
    return;
  }
  const double slope = find_slope(n, total, longest);
  for (int64_t i = 0; i < n; i++) {
    carry += length_at(i, n, longest, slope);
    length[i] = least((int64_t)carry, longest);
    carry -= (double)length[i];
  }
  shuffle(n, length);
}

/* Keys for which there are pages however they end. */
static int64_t keys_of_pages(const fg_shape *s) {
  const int64_t columns = (s->nk + s->page - 1) / s->page;
  const int64_t keys = s->pages * s->page - s->b * (s->page - 1);
  if (s->pages >= s->b * columns) return s->b * s->nk;
  return keys > 0 ? keys : 0;
}

fg_status cli_lengths_new(fg_layout layout, const fg_shape *s, cli_lengths *lengths) {
  const int64_t n = layout.slices ? s->slices : s->b;
  int64_t *q = calloc(2 * (size_t)n + 1, sizeof *q);
  if (!q) return fg_fail(FG_EMEMORY, "no memory for lengths");
  const bool is_paged = layout.kv == FG_PAGED && s->page > 0;
  if (n) {
    /* the tokens of slices are of one batch, nq */
    spread(n, layout.q == FG_PACKED ? s->tokens_q : s->b * s->nq, layout.slices ? 0 : s->nq, q);
    spread(n,
           layout.kv == FG_PACKED ? s->tokens_k
           : is_paged             ? keys_of_pages(s)
                                  : s->b * s->nk,
           layout.slices ? 0 : s->nk, q + n);
  }
  *lengths = (cli_lengths){n, q, q + n};
  return FG_OK;
}

void cli_lengths_free(cli_lengths *lengths) { free(lengths->q); }

/* A step that goes through all of n pages, and far. */
static int64_t far_step(int64_t n) {
  for (int64_t step = n * 5 / 8 | 1;; step += 2) {
    int64_t a = n, b = step;
    while (b) {
      const int64_t rest = a % b;
      a = b, b = rest;
    }
    if (a == 1) return step;
  }
}

void cli_lengths_table(const cli_lengths *lengths, const fg_shape *s, int64_t *table) {
  const int64_t columns = (s->nk + s->page - 1) / s->page, step = far_step(s->pages);
  int64_t used = 0;
  for (int64_t b = 0; b < lengths->n; b++)
    for (int64_t c = 0; c < columns; c++) {
      const bool has_keys = c * s->page < lengths->k[b] && used < s->pages;
      table[b * columns + c] = has_keys ? used++ * step % s->pages : -1;
    }
}
