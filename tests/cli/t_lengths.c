/* t_lengths.c - lengths of sequences that are timed: they follow from the shape, add up to its
 * totals, and are spread as lengths.h says. */
#include "cli/lengths.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fg_layout packed = {FG_PACKED, FG_PACKED, 0, 0, 0},
                       paged = {FG_DENSE, FG_PAGED, 0, 0, 0};

static cli_lengths lengths_of(fg_layout layout, const fg_shape *shape) {
  cli_lengths made;
  ck_assert_int_eq(cli_lengths_new(layout, shape, &made), FG_OK);
  ck_assert_int_eq(made.n, shape->b);
  return made;
}

static int64_t sum(int64_t n, const int64_t *length) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) total += length[i];
  return total;
}

static int falling(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a < b) - (a > b);
}

TEST(equal) {
  static const fg_shape shapes[] = {
      {.b = 8, .nq = 512, .nk = 512, .tokens_q = 4096, .tokens_k = 4096},
      {.b = 8, .tokens_q = 4096, .tokens_k = 4096},                       /* not known */
      {.b = 8, .nq = 9, .nk = 9, .tokens_q = 4096, .tokens_k = 4096},     /* too short a bound */
      {.b = 8, .nq = 512, .nk = 512, .tokens_q = 4096, .tokens_k = 4096}, /* dense */
      {.b = 8, .nq = 512, .nk = 512, .page = 16, .pages = 8 * 32},
      {.b = 8, .nq = 512, .nk = 512, .page = 7, .pages = 8 * 74},
      {.b = 8, .nq = 512, .nk = 512, .page = 16, .pages = 100000}};
  static const fg_layout layouts[] = {
      {FG_PACKED, FG_PACKED, 0, 0, 0}, {FG_PACKED, FG_PACKED, 0, 0, 0},
      {FG_PACKED, FG_PACKED, 0, 0, 0}, {FG_DENSE, FG_CACHED, 0, 0, 0},
      {FG_DENSE, FG_PAGED, 0, 0, 0},   {FG_DENSE, FG_PAGED, 0, 0, 0},
      {FG_DENSE, FG_PAGED, 0, 0, 0}};
  for (int s = 0; s < 7; s++) {
    cli_lengths l = lengths_of(layouts[s], &shapes[s]);
    for (int i = 0; i < 8; i++)
      ck_assert_msg(l.q[i] == 512 && l.k[i] == 512, "shape %d: %d, %d", s, (int)l.q[i],
                    (int)l.k[i]);
    cli_lengths_free(&l);
  }
  const fg_shape slices = {.b = 1, .nq = 4096, .nk = 2048, .slices = 8};
  cli_lengths of_slices;
  ck_assert_int_eq(cli_lengths_new((fg_layout){.slices = 1}, &slices, &of_slices), FG_OK);
  ck_assert_int_eq(of_slices.n, 8);
  for (int i = 0; i < 8; i++) ck_assert(of_slices.q[i] == 512 && of_slices.k[i] == 256);
  cli_lengths_free(&of_slices);
  const fg_shape ragged = {.b = 3, .tokens_q = 11, .tokens_k = 10};
  cli_lengths l = lengths_of(packed, &ragged);
  ck_assert(l.q[0] == 3 && l.q[1] == 4 && l.q[2] == 4 && l.k[0] == 3 && l.k[1] == 3 && l.k[2] == 4);
  cli_lengths_free(&l);
}

/* The longest one is nq; logarithms have equal distances, to a row; the order is another one. */
TEST(mixture) {
  enum { B = 18, TOKENS = 32768, LONGEST = 8192 };
  const fg_shape shape = {
      .b = B, .nq = LONGEST, .nk = LONGEST, .tokens_q = TOKENS, .tokens_k = TOKENS};
  cli_lengths l = lengths_of(packed, &shape), again = lengths_of(packed, &shape);
  ck_assert_int_eq(memcmp(l.q, again.q, sizeof(int64_t[B])), 0);
  ck_assert_int_eq(memcmp(l.q, l.k, sizeof(int64_t[B])), 0); /* each one's keys are its rows */
  ck_assert_int_eq(sum(B, l.q), TOKENS);
  qsort(l.q, B, sizeof *l.q, falling);
  ck_assert_int_ne(memcmp(l.q, l.k, sizeof(int64_t[B])), 0);
  ck_assert_int_eq(l.q[0], LONGEST);
  ck_assert_int_gt(l.q[B - 1], 60);
  ck_assert_int_lt(l.q[B - 1], 68);
  const double slope = log((double)l.q[0] / (double)l.q[B - 1]) / (B - 1);
  for (int i = 0; i < B; i++)
    ck_assert_double_eq_tol((double)l.q[i], LONGEST * exp(-slope * i), 8192 * 1e-2 / (1 + i) + 2);
  cli_lengths_free(&l);
  cli_lengths_free(&again);
}

/* Totals that hardly are a mixture, and bounds beyond all tokens. */
TEST(corners) {
  static const struct {
    int64_t b, longest, tokens;
  } list[] = {{1, 100, 40}, {5, 100, 99},       {5, 100, 101},       {5, 100, 499},   {5, 100, 5},
              {5, 100, 0},  {3, 1 << 29, 1000}, {100000, 7, 100001}, {2, 1000, 1001}, {0, 100, 0}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const fg_shape shape = {.b = list[i].b,
                            .nq = list[i].longest,
                            .nk = 1,
                            .tokens_q = list[i].tokens,
                            .tokens_k = list[i].b};
    cli_lengths l = lengths_of(packed, &shape);
    if (list[i].b) ck_assert_int_le(llabs(sum(l.n, l.q) - list[i].tokens), 1);
    ck_assert_int_le(sum(l.n, l.q), list[i].tokens);
    for (int64_t b = 0; b < l.n; b++) ck_assert(l.q[b] >= 0 && l.q[b] <= list[i].longest);
    cli_lengths_free(&l);
  }
}

/* Pages are enough for all keys, each key has one, none has two owners. */
TEST(tables) {
  static const fg_shape shapes[] = {{.b = 64, .nk = 16000, .page = 16, .pages = 12592},
                                    {.b = 64, .nk = 16000, .page = 256, .pages = 846},
                                    {.b = 5, .nk = 50, .page = 1, .pages = 77},
                                    {.b = 5, .nk = 50, .page = 7, .pages = 5},
                                    {.b = 3, .nk = 50, .page = 16, .pages = 12}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    const fg_shape *shape = &shapes[s];
    const int64_t columns = (shape->nk + shape->page - 1) / shape->page;
    cli_lengths l = lengths_of(paged, shape);
    int64_t *table = calloc((size_t)(shape->b * columns), sizeof *table);
    char *has_owner = calloc((size_t)shape->pages, 1);
    cli_lengths_table(&l, shape, table);
    for (int64_t i = 0; i < shape->b * columns; i++) {
      const bool has_keys = i % columns * shape->page < l.k[i / columns];
      ck_assert_msg((table[i] >= 0) == has_keys, "shape %d, place %d", (int)s, (int)i);
      if (!has_keys) continue;
      ck_assert(table[i] < shape->pages && !has_owner[table[i]]);
      has_owner[table[i]] = 1;
    }
    free(table);
    free(has_owner);
    cli_lengths_free(&l);
  }
  const fg_shape many = shapes[0];
  cli_lengths l = lengths_of(paged, &many);
  ck_assert_int_eq(sum(l.n, l.k), 12592 * 16 - 64 * 15);
  cli_lengths_free(&l);
}
