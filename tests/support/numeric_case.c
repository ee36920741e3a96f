/* numeric_case.c - numbers of one family's kernels, against the oracle, over a covering design.
 *
 * The full product of the axes would take days. Rows are picked one by one, each the best of some
 * random ones, until every pair of levels of two axes has met in a row. A row has a cost at most:
 * long sequences meet wide heads and many of them only where the other length is short. Compiling
 * takes longer than most rows: up to three share a kernel, the best of all and two of its own. */
#include "numeric_case.h"

#include "kernel_case.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Q_KIND and K_KIND follow from NQ and NK: what pairs with too much to be met length by length. */
enum axis {
  DTYPE,
  DIMS,
  MASK,
  BIAS,
  BIAS_ELEM,
  GRAD_ELEM,
  ORDER,
  PLAN,
  HEADS,
  NQ,
  NK,
  Q_KIND,
  K_KIND,
  STYLE,
  SCALE,
  SEED,
  AXES
};
enum { LEVELS = 20, ROWS_MAX = 400, PICKED_FROM = 3000, MORE_FROM = 500, TOGETHER = 3 };

static const char *const dtypes[] = {"bf16", "f16"};
static const char *const dims[] = {"8", "40", "64", "72", "128", "256", "192/128", "32/96"};
static const int widths[] = {16, 80, 128, 144, 256, 512, 320, 128}; /* d + dv */
static const char *const masks[] = {"full", "causal", "window(20,3)", "chunked(48)"};
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
static const char *const orders[] = {"false", "true"}; /* deterministic; forward always is */
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
};

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
static int levels[AXES] = {[DTYPE] = COUNT(dtypes),    [DIMS] = COUNT(dims),
                           [MASK] = COUNT(masks),      [BIAS] = COUNT(biases),
                           [BIAS_ELEM] = COUNT(elems), [GRAD_ELEM] = COUNT(elems),
                           [HEADS] = COUNT(heads),     [STYLE] = VERIFY_STYLES,
                           [SCALE] = COUNT(scales),    [SEED] = 2};

typedef struct row {
  int level[AXES];
} row;

static const family *of;
static const char *pass;
static row rows[ROWS_MAX];
static int n_rows;
static int first[ROWS_MAX + 1], n_kernels; /* row of each kernel; then the end */

/* ---- plans ---- */

/* The family's plans for any spec, by their words. What plans a spec has depends on the first six
 * of these axes: `fits`, by their levels. */
enum { DECIDE = 7 };
static const enum axis decide[DECIDE] = {DTYPE, DIMS, ORDER, MASK, BIAS, BIAS_ELEM, PLAN};
static char plans[LEVELS][96];
static unsigned char fits[COUNT(dtypes)][COUNT(dims)][COUNT(orders)][COUNT(masks)][COUNT(biases)]
                         [COUNT(elems)][LEVELS];

/* Pairs of levels of two of these axes that some spec and plan have. */
static unsigned char can[DECIDE][LEVELS][DECIDE][LEVELS];

/* Check takes assertions in a test only, and the design is made before the first. */
static void need(int good) {
  if (good) return;
  fprintf(stderr, "no design: %s\n", fg_error());
  exit(EXIT_FAILURE);
}

static int find_plan(const fg_plan *plan) {
  char words[96];
  size_t n = 0;
  for (int i = 1; i < FG_FIELDS - FG_SPEC_FIELDS; i++)
    n += (size_t)snprintf(words + n, sizeof words - n, " %s=%d", fg_fields[FG_SPEC_FIELDS + i].name,
                          plan->value[i] ? plan->value[i] : 1);
  for (int i = 0; i < levels[PLAN]; i++)
    if (!strcmp(plans[i], words)) return i;
  need(levels[PLAN] < LEVELS);
  strcpy(plans[levels[PLAN]], words);
  return levels[PLAN]++;
}

/* Of the row's spec, parted by spaces. */
static void spec_words(const row *r, size_t size, char *words) {
  const int *l = r->level;
  int biased = l[BIAS] > 0;
  int graded = !strncmp(biases[l[BIAS]], "grad", 4) && !strcmp(pass, "backward");
  size_t n = (size_t)snprintf(
      words, size, "pass=%s dtype=%s head_dim=%s mask=%s bias=%s deterministic=%s family=%s", pass,
      dtypes[l[DTYPE]], dims[l[DIMS]], masks[l[MASK]], biases[l[BIAS]], orders[l[ORDER]], of->name);
  if (biased) n += (size_t)snprintf(words + n, size - n, " bias_dtype=%s", elems[l[BIAS_ELEM]]);
  if (graded) snprintf(words + n, size - n, " grad_dtype=%s", elems[l[GRAD_ELEM]]);
}

static void find_plans(fg_gen *gen, const row *r) {
  const int *l = r->level;
  char words[384], *rest;
  const char *word[16];
  fg_grid *grid;
  fg_plan *list = NULL;
  int n = 0;
  spec_words(r, sizeof words, words);
  for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) word[n++] = w;
  need(fg_grid_read(0, NULL, n, word, &grid) == FG_OK);
  if (fg_gen_plans(gen, grid->point, kernel_device()->arch, grid->limits[0], &list, &n) ==
      FG_ESPEC) { /* the family leaves the spec to others */
    fg_grid_free(grid);
    return;
  }
  need(list != NULL);
  for (int i = 0; i < n; i++) {
    row with = *r;
    with.level[PLAN] = find_plan(&list[i]);
    fits[l[DTYPE]][l[DIMS]][l[ORDER]][l[MASK]][l[BIAS]][l[BIAS_ELEM]][with.level[PLAN]] = 1;
    for (int a = 0; a < DECIDE; a++)
      for (int b = 0; b < DECIDE; b++) can[a][with.level[decide[a]]][b][with.level[decide[b]]] = 1;
  }
  free(list);
  fg_grid_free(grid);
}

static void make_levels(void) {
  fg_gen *gen;
  levels[ORDER] = strcmp(pass, "forward") ? COUNT(orders) : 1;
  levels[NQ] = levels[NK] = of->lengths;
  levels[Q_KIND] = levels[K_KIND] = of->kinds;
  need(fg_gen_new(NULL, &gen) == FG_OK);
  row r = {0};
  for (r.level[DTYPE] = 0; r.level[DTYPE] < levels[DTYPE]; r.level[DTYPE]++)
    for (r.level[DIMS] = 0; r.level[DIMS] < levels[DIMS]; r.level[DIMS]++)
      for (r.level[ORDER] = 0; r.level[ORDER] < levels[ORDER]; r.level[ORDER]++)
        for (r.level[MASK] = 0; r.level[MASK] < levels[MASK]; r.level[MASK]++)
          for (r.level[BIAS] = 0; r.level[BIAS] < levels[BIAS]; r.level[BIAS]++)
            for (r.level[BIAS_ELEM] = 0; r.level[BIAS_ELEM] < levels[BIAS_ELEM];
                 r.level[BIAS_ELEM]++)
              find_plans(gen, &r);
  fg_gen_free(gen);
}

/* ---- the design ---- */

static uint64_t state;

static int below(int n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)n);
}

static int nq_of(const row *r) { return of->length[r->level[NQ]].n; }
static int nk_of(const row *r) { return of->length[r->level[NK]].n; }

/* Products of a row, counted as elements of Q K^T times what each takes. An element takes some work
 * whatever its width. */
static int64_t cost(const row *r) {
  const int *h = heads[r->level[HEADS]];
  return (int64_t)h[0] * h[1] * nq_of(r) * nk_of(r) * (widths[r->level[DIMS]] + 48);
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

static int can_meet(int a, int x, int b, int y) {
  int i = 0, j = 0;
  while (i < DECIDE && (int)decide[i] != a) i++;
  while (j < DECIDE && (int)decide[j] != b) j++;
  if ((i < DECIDE && !can[i][x][i][x]) || (j < DECIDE && !can[j][y][j][y])) return 0;
  return i == DECIDE || j == DECIDE || can[i][x][j][y];
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
      for (int x = 0; wanted(a, b) && x < levels[a] * levels[b]; x++)
        n += can_meet(a, x / levels[b], b, x % levels[b]);
  return n;
}

static int fitting(const row *r) {
  const int *l = r->level;
  return fits[l[DTYPE]][l[DIMS]][l[ORDER]][l[MASK]][l[BIAS]][l[BIAS_ELEM]][l[PLAN]];
}

/* of_kernel: the row whose kernel it is to have; NULL = any. */
static row random_row(const row *of_kernel) {
  row r;
  do {
    for (int a = 0; a < AXES; a++)
      r.level[a] = of_kernel && a < HEADS ? of_kernel->level[a] : below(levels[a]);
    r.level[Q_KIND] = of->length[r.level[NQ]].kind;
    r.level[K_KIND] = of->length[r.level[NK]].kind;
  } while (cost(&r) > of->most || !fitting(&r));
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
      row r = i ? best_row(&rows[first[n_kernels]], MORE_FROM) : best_row(NULL, PICKED_FROM);
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
  spec_words(r, sizeof words, words);
  kernels made = kernels_new("%s%s", words, plans[r->level[PLAN]]);
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
      for (int x = 0; wanted(a, b) && x < levels[a] * levels[b]; x++) {
        int found = !can_meet(a, x / levels[b], b, x % levels[b]);
        for (int i = 0; i < n_rows; i++)
          found += rows[i].level[a] == x / levels[b] && rows[i].level[b] == x % levels[b] &&
                   shows(&rows[i], a, b);
        ck_assert_msg(found > 0, "axes %d and %d: levels %d and %d never meet", a, b, x / levels[b],
                      x % levels[b]);
      }
}
END_TEST

Suite *numeric_suite(const char *of_family, const char *of_pass) {
  for (int i = 0; i < COUNT(families); i++)
    if (!strcmp(families[i].name, of_family)) of = &families[i];
  pass = of_pass;
  make_levels();
  make_design();
  Suite *suite = suite_create(of->name);
  TCase *cases = tcase_create(pass);
  tcase_add_test(cases, test_design);
  suite_loop(cases, test_kernel, n_kernels);
  suite_add_tcase(suite, cases);
  return suite;
}
