/* simt_case.c - numbers of simt kernels, against the oracle, over a covering design.
 *
 * The full product of the axes would take days. Rows are picked one by one, each the best of some
 * random ones, until every pair of levels of two axes has met in a row. A row has a cost at most:
 * long sequences meet wide heads and many of them only where the other length is short. */
#include "simt_case.h"

#include "kernel_case.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum axis { DTYPE, DIMS, MASK, BIAS, BIAS_ELEM, GRAD_ELEM, BLOCK, HEADS, NQ, NK, STYLE, AXES };
enum { LEVELS = 12, ROWS_MAX = 300, PICKED_FROM = 3000 };

static const char *const dtypes[] = {"bf16", "f16"};
static const char *const dims[] = {"8", "40", "64", "72", "128", "256", "192/128"};
static const int widths[] = {16, 80, 128, 144, 256, 512, 320}; /* d + dv */
static const char *const masks[] = {"full", "causal"};
static const char *const biases[] = {"false",
                                     "true",
                                     "true bias_dims=[b,h,k]",
                                     "grad",
                                     "grad bias_dims=[]",
                                     "grad bias_dims=[b,k]",
                                     "grad bias_dims=[h,q,k]",
                                     "grad bias_dims=[q]",
                                     "grad bias_dims=[k]",
                                     "grad bias_dims=[h]",
                                     "grad bias_dims=[b,q]"};
static const char *const elems[] = {"spec", "f32"};
static const int blocks[] = {16, 4};
static const int heads[][3] = {{1, 1, 1}, {2, 4, 2}, {1, 4, 1}, {1, 6, 3}}; /* b h hk */
static const int lengths[] = {0, 1, 3, 113, 203, 339, 799, 1023};

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
static const int levels[AXES] = {
    [DTYPE] = COUNT(dtypes), [DIMS] = COUNT(dims),       [MASK] = COUNT(masks),
    [BIAS] = COUNT(biases),  [BIAS_ELEM] = COUNT(elems), [GRAD_ELEM] = COUNT(elems),
    [BLOCK] = COUNT(blocks), [HEADS] = COUNT(heads),     [NQ] = COUNT(lengths),
    [NK] = COUNT(lengths),   [STYLE] = VERIFY_STYLES,
};

typedef struct row {
  int level[AXES];
} row;

static const char *pass;
static row rows[ROWS_MAX];
static int n_rows;

/* ---- the design ---- */

static uint64_t state;

static int below(int n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)n);
}

/* Products of a row, counted as elements of Q K^T times what each takes; most: one head of the
 * longest sequences and the least width. An element takes some work whatever its width. */
static int64_t cost(const row *r) {
  const int *h = heads[r->level[HEADS]];
  return (int64_t)h[0] * h[1] * lengths[r->level[NQ]] * lengths[r->level[NK]] *
         (widths[r->level[DIMS]] + 48);
}
static const int64_t most = (int64_t)1023 * 1023 * (16 + 48);

static unsigned char met[AXES][LEVELS][AXES][LEVELS];

/* Few rows or keys hide most mistakes: a pair of levels meets only where each length that is not
 * one of them is of several tiles. */
static int shows(const row *r, int a, int b) {
  int long_q = lengths[r->level[NQ]] >= 113, long_k = lengths[r->level[NK]] >= 113;
  return (long_q || a == NQ || b == NQ) && (long_k || a == NK || b == NK);
}

/* The pairs that first meet in the row; marks them if asked to. */
static int gain(const row *r, int mark) {
  int n = 0;
  for (int a = 0; a < AXES; a++)
    for (int b = a + 1; b < AXES; b++) {
      unsigned char *known = &met[a][r->level[a]][b][r->level[b]];
      if (*known || !shows(r, a, b)) continue;
      n++;
      if (mark) *known = 1;
    }
  return n;
}

static int pairs(void) {
  int n = 0;
  for (int a = 0; a < AXES; a++)
    for (int b = a + 1; b < AXES; b++) n += levels[a] * levels[b];
  return n;
}

static row random_row(void) {
  row r;
  do
    for (int a = 0; a < AXES; a++) r.level[a] = below(levels[a]);
  while (cost(&r) > most);
  return r;
}

/* Of rows that gain as much the cheapest is taken. */
static void make_design(void) {
  for (int left = pairs(); left > 0 && n_rows < ROWS_MAX;) {
    row best = random_row();
    int gained = 0;
    for (int i = 0; i < PICKED_FROM || !gained; i++) {
      row r = random_row();
      int gains = gain(&r, 0);
      if (gains < gained || (gains == gained && cost(&r) >= cost(&best))) continue;
      best = r;
      gained = gains;
    }
    left -= gain(&best, 1);
    rows[n_rows++] = best;
  }
}

/* ---- a row ---- */

static void words_of(const row *r, size_t size, char *words) {
  const int *l = r->level;
  int biased = l[BIAS] > 0;
  int graded = !strncmp(biases[l[BIAS]], "grad", 4) && !strcmp(pass, "backward");
  size_t n = (size_t)snprintf(
      words, size, "pass=%s dtype=%s head_dim=%s mask=%s bias=%s block_q=%d", pass,
      dtypes[l[DTYPE]], dims[l[DIMS]], masks[l[MASK]], biases[l[BIAS]], blocks[l[BLOCK]]);
  if (biased) n += (size_t)snprintf(words + n, size - n, " bias_dtype=%s", elems[l[BIAS_ELEM]]);
  if (graded) snprintf(words + n, size - n, " grad_dtype=%s", elems[l[GRAD_ELEM]]);
}

START_TEST(test_row) {
  const row *r = &rows[_i];
  const int *l = r->level, *h = heads[l[HEADS]];
  char words[256];
  words_of(r, sizeof words, words);
  kernels made = kernels_new("%s", words);
  ck_assert_int_eq(made.n, 1);
  /* an odd and an even seed: without and with the optional tensors, buffers at either end; long
   * rows take one of them in turn */
  for (uint64_t seed = 0; seed < 2; seed++) {
    if (cost(r) > most / 16 && (uint64_t)_i % 2 != seed) continue;
    kernel_verify(
        made.list,
        &(verify_case){
            .shape = {.b = h[0], .h = h[1], .hk = h[2], .nq = lengths[l[NQ]], .nk = lengths[l[NK]]},
            .scale = seed ? 0.2f : 0,
            .style = (verify_style)l[STYLE],
            .seed = 1000 + 2 * (uint64_t)_i + seed});
  }
  kernels_free(&made);
}
END_TEST

/* The design is what it claims to be, by a count of its own. */
START_TEST(test_design) {
  ck_assert_int_lt(n_rows, ROWS_MAX);
  for (int a = 0; a < AXES; a++)
    for (int b = a + 1; b < AXES; b++)
      for (int x = 0; x < levels[a] * levels[b]; x++) {
        int found = 0;
        for (int i = 0; i < n_rows; i++)
          found += rows[i].level[a] == x / levels[b] && rows[i].level[b] == x % levels[b] &&
                   shows(&rows[i], a, b);
        ck_assert_msg(found > 0, "axes %d and %d: levels %d and %d never meet", a, b, x / levels[b],
                      x % levels[b]);
      }
}
END_TEST

Suite *simt_suite(const char *of_pass) {
  pass = of_pass;
  make_design();
  Suite *suite = suite_create(pass);
  TCase *cases = tcase_create(pass);
  tcase_add_test(cases, test_design);
  tcase_add_loop_test(cases, test_row, 0, n_rows);
  suite_add_tcase(suite, cases);
  return suite;
}
