/* numeric_case.c - numbers of one family's kernels, against the oracle, over a covering design.
 *
 * The full product of the axes would take days. Rows are picked one by one, each the best of some
 * random ones, until every pair of levels of two axes has met in a row. A row has a cost at most:
 * long sequences meet wide heads and many of them only where the other length is short. Compiling
 * takes longer than most rows: up to three share a kernel, the best of all and two of its own. */
#include "numeric_case.h"

#include "kernel_case.h"
#include "numeric_axes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 600, PICKED_FROM = 3000, MORE_FROM = 500, TOGETHER = 3 };

static const int heads[][3] = {{1, 1, 1}, {2, 4, 2}, {1, 4, 1}, {1, 6, 3}}; /* b h hk */
static const float scales[] = {0, 0.2f, -0.2f};

/* What the families differ in. Few rows or keys hide most mistakes: a pair of levels meets only
 * where each length that is not one of them is at least `several`, or, where the other length is,
 * at least `some`. */
typedef struct family {
  const char *name;
  struct {
    int n, kind;
  } length[LEVELS];
  int lengths, kinds, some, several;
  int64_t most; /* of what `cost` counts */
} family;

static const family families[] = {
    {"simt",
     {{0, 0}, {1, 1}, {3, 2}, {113, 3}, {203, 4}, {339, 5}, {799, 6}, {1023, 7}},
     .lengths = 8,
     .kinds = 8,
     .some = 113,
     .several = 113,
     .most = (int64_t)1023 * 1023 * (16 + 48)},
    /* one less than tiles have rows and keys, as many, one more; then several tiles of each */
    {"mma",
     {{0, 0},
      {1, 1},
      {31, 2},
      {32, 3},
      {33, 4},
      {63, 2},
      {64, 3},
      {65, 4},
      {95, 2},
      {96, 3},
      {97, 4},
      {127, 2},
      {128, 3},
      {129, 4},
      {203, 5},
      {339, 5}},
     .lengths = 16,
     .kinds = 6,
     .some = 31,
     .several = 203,
     .most = (int64_t)203 * 203 * (512 + 48) * 8},
    {"wgmma",
     {{0, 0},
      {1, 1},
      {63, 2},
      {64, 3},
      {65, 4},
      {128, 3},
      {129, 4},
      {193, 5},
      {200, 5},
      {255, 2},
      {257, 5}},
     .lengths = 11,
     .kinds = 6,
     .some = 63,
     .several = 193,
     .most = (int64_t)257 * 257 * (512 + 48) * 8},
    /* rows of a head around what a tile has of one head and of several; then long lines of keys,
     * which blocks divide */
    {"decode",
     {{0, 0},
      {1, 1},
      {7, 2},
      {8, 3},
      {9, 4},
      {15, 2},
      {16, 3},
      {17, 4},
      {31, 2},
      {33, 4},
      {64, 3},
      {511, 5},
      {513, 5},
      {1100, 6}},
     .lengths = 14,
     .kinds = 7,
     .some = 7,
     .several = 16,
     .most = (int64_t)64 * 1100 * (512 + 48) * 4},
};

static const family *of;
static row rows[ROWS_MAX];
static int n_rows;
static int first[ROWS_MAX + 1], n_kernels; /* row of each kernel; then the end */

/* ---- the design ---- */

static uint64_t state;

static int below(int n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)n);
}

static int nq_of(const row *r) { return of->length[r->level[NQ]].n; }
static int nk_of(const row *r) { return of->length[r->level[NK]].n; }

/* Products of a row, counted as elements of Q K^T times what each takes. An element takes some work
 * whatever its width. Heads wider than 256/256 count as these, so that they meet the same lengths.
 */
static int64_t cost(const row *r) {
  enum { COUNTED = 512 };
  const int *h = heads[r->level[HEADS]], width = numeric_width(r);
  return (int64_t)h[0] * h[1] * nq_of(r) * nk_of(r) * ((width < COUNTED ? width : COUNTED) + 48);
}

static int is_length(int axis) { return axis == NQ || axis == NK; }
static int is_q(int axis) { return axis == NQ || axis == Q_KIND; }
static int is_k(int axis) { return axis == NK || axis == K_KIND; }

/* Each length meets each plan and mask; what else there is, its kind meets. */
static int wanted(int a, int b) {
  if ((is_q(a) && is_q(b)) || (is_k(a) && is_k(b))) return 0;
  if (is_length(a) || is_length(b)) {
    int other = is_length(a) ? b : a;
    return other == PLAN || other == MASK;
  }
  return 1;
}

static int shows(const row *r, int a, int b) {
  int q = is_q(a) || is_q(b), k = is_k(a) || is_k(b);
  return (q || nq_of(r) >= (k ? of->some : of->several)) &&
         (k || nk_of(r) >= (q ? of->some : of->several));
}

static unsigned char met[AXES][LEVELS][AXES][LEVELS];

/* The pairs that first meet in the row; marks them if asked to. */
static int gain(const row *r, int mark) {
  int n = 0;
  for (int a = 0; a < AXES; a++)
    for (int b = a + 1; b < AXES; b++) {
      unsigned char *known = &met[a][r->level[a]][b][r->level[b]];
      if (*known || !wanted(a, b) || !shows(r, a, b)) continue;
      n++;
      if (mark) *known = 1;
    }
  return n;
}

static int pairs(void) {
  int n = 0;
  for (int a = 0; a < AXES; a++)
    for (int b = a + 1; b < AXES; b++)
      for (int x = 0; wanted(a, b) && x < numeric_levels[a] * numeric_levels[b]; x++)
        n += numeric_can_meet(a, x / numeric_levels[b], b, x % numeric_levels[b]);
  return n;
}

/* of_kernel: the row whose kernel it is to have; NULL = any. */
static row random_row(const row *of_kernel) {
  row r;
  do {
    for (int a = 0; a < AXES; a++)
      r.level[a] = of_kernel && a < HEADS ? of_kernel->level[a] : below(numeric_levels[a]);
    r.level[Q_KIND] = of->length[r.level[NQ]].kind;
    r.level[K_KIND] = of->length[r.level[NK]].kind;
  } while (cost(&r) > of->most || !numeric_fits(&r));
  return r;
}

/* The best of so many random rows, or of more until one gains where any kernel will do: of those
 * that gain as much the cheapest. */
static row best_row(const row *of_kernel, int among) {
  row best = random_row(of_kernel);
  int gained = 0;
  for (int i = 0; i < among || (!of_kernel && !gained); i++) {
    row r = random_row(of_kernel);
    int gains = gain(&r, 0);
    if (gains < gained || (gains == gained && cost(&r) >= cost(&best))) continue;
    best = r;
    gained = gains;
  }
  return best;
}

static void make_design(void) {
  for (int left = pairs(); left > 0 && n_rows + TOGETHER < ROWS_MAX; n_kernels++) {
    first[n_kernels] = n_rows;
    for (int i = 0; i < TOGETHER && left > 0; i++) {
      row r;
      do r = i ? best_row(&rows[first[n_kernels]], MORE_FROM) : best_row(NULL, PICKED_FROM);
      while (!i && !numeric_has_plan(&r));
      int gained = gain(&r, 1);
      left -= gained;
      if (gained) rows[n_rows++] = r;
    }
  }
  first[n_kernels] = n_rows;
}

/* ---- a kernel ---- */

/* An odd and an even seed are without and with the optional tensors, buffers at either end. */
static void test_row(const kernel *k, int number) {
  const row *r = &rows[number];
  const int *l = r->level, *h = heads[l[HEADS]];
  kernel_verify(
      k, &(verify_case){.shape = {.b = h[0], .h = h[1], .hk = h[2], .nq = nq_of(r), .nk = nk_of(r)},
                        .given = l[SCALE] ? FG_GIVEN_SCALE : 0,
                        .scale = scales[l[SCALE]],
                        .style = (verify_style)l[STYLE],
                        .seed = 1000 + 2 * (uint64_t)number + (uint64_t)l[SEED]});
}

START_TEST(test_kernel) {
  const row *r = &rows[first[_i]];
  char words[384];
  numeric_spec_words(r, sizeof words, words);
  kernels made = kernels_new("%s%s", words, numeric_plan_words(r));
  ck_assert_int_eq(made.n, 1);
  for (int i = first[_i]; i < first[_i + 1]; i++) test_row(made.list, i);
  kernels_free(&made);
}
END_TEST

/* The design is what it claims to be, by a count of its own. */
START_TEST(test_design) {
  ck_assert_int_lt(n_rows + TOGETHER, ROWS_MAX);
  for (int a = 0; a < AXES; a++)
    for (int b = a + 1; b < AXES; b++)
      for (int x = 0; wanted(a, b) && x < numeric_levels[a] * numeric_levels[b]; x++) {
        int found = !numeric_can_meet(a, x / numeric_levels[b], b, x % numeric_levels[b]);
        for (int i = 0; i < n_rows; i++)
          found += rows[i].level[a] == x / numeric_levels[b] &&
                   rows[i].level[b] == x % numeric_levels[b] && shows(&rows[i], a, b);
        ck_assert_msg(found > 0, "axes %d and %d: levels %d and %d never meet", a, b,
                      x / numeric_levels[b], x % numeric_levels[b]);
      }
}
END_TEST

Suite *numeric_suite(const char *of_family, const char *pass) {
  for (int i = 0; i < COUNT(families); i++)
    if (!strcmp(families[i].name, of_family)) of = &families[i];
  numeric_levels[NQ] = numeric_levels[NK] = of->lengths;
  numeric_levels[Q_KIND] = numeric_levels[K_KIND] = of->kinds;
  numeric_levels[HEADS] = COUNT(heads), numeric_levels[STYLE] = VERIFY_STYLES;
  numeric_levels[SCALE] = COUNT(scales), numeric_levels[SEED] = 2;
  numeric_find_plans(of_family, pass);
  make_design();
  numeric_forget_plans();
  Suite *suite = suite_create(of->name);
  TCase *cases = tcase_create(pass);
  suite_add(cases, test_design);
  suite_loop(cases, test_kernel, n_kernels);
  suite_add_tcase(suite, cases);
  return suite;
}
