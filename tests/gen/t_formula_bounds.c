/* t_formula_bounds.c - what a mask is over a tile, and of one row, against brute force. */
#include "suite.h"

#include "formula/tree_bound.h"
#include "formula/tree_extent.h"
#include "formula_case.h"

#include <math.h>
#include <string.h>

enum { MASKS = 3000, PAIRS = 6 };

typedef struct {
  int q0, q1, k0, k1, b, h;
} tile;

static double of_tile(oracle_formula *f, const case_problem *x, const tile *t) {
  double name[ORACLE_NAMES];
  case_names(x, t->b, t->h, 0, 0, 0, name);
  name[ORACLE_Q0] = t->q0, name[ORACLE_Q1] = t->q1;
  name[ORACLE_K0] = t->k0, name[ORACLE_K1] = t->k1;
  double value = oracle_formula_value(f, name);
  case_fits(f);
  return value;
}

/* What brute force finds in a tile: pairs that are visible, the first and the last of keys, rows.
 */
typedef struct {
  int visible, first[2], last[2];
} found;

static found look(oracle_formula *mask, const case_problem *x, const tile *t) {
  found r = {0, {1 << 30, 1 << 30}, {-1, -1}};
  double name[ORACLE_NAMES];
  for (int q = t->q0; q < t->q1; q++)
    for (int k = t->k0; k < t->k1; k++) {
      const int at[2] = {k, q};
      case_names(x, t->b, t->h, q, k, 0, name);
      bool seen = oracle_formula_value(mask, name) != 0;
      case_fits(mask);
      if (!seen) continue;
      r.visible++;
      for (int a = 0; a < 2; a++) {
        if (at[a] < r.first[a]) r.first[a] = at[a];
        if (at[a] > r.last[a]) r.last[a] = at[a];
      }
    }
  return r;
}

static tile random_tile(uint64_t *state, const case_problem *x) {
  tile t = {.b = case_below(state, x->b), .h = case_below(state, x->h)};
  t.q0 = case_below(state, x->nq), t.k0 = case_below(state, x->nk);
  t.q1 = t.q0 + 1 + case_below(state, x->nq - t.q0),
  t.k1 = t.k0 + 1 + case_below(state, x->nk - t.k0);
  return t;
}

/* Of one side: keys that the rows of t see at all (side 0), or rows that see its keys. */
static void check_range(fg_formula *f, oracle_formula *mask, const case_problem *x, tile t,
                        int side, const char *text) {
  fg_visible range = fg_formula_visible(f, side == 1);
  if (side == 0)
    t.k0 = 0, t.k1 = x->nk;
  else
    t.q0 = 0, t.q1 = x->nq;
  found r = look(mask, x, &t);
  if (!r.visible) return;
  if (range.first) {
    oracle_formula *first = case_read(f, range.first, x);
    ck_assert_msg(of_tile(first, x, &t) <= r.first[side], "%s: side %d begins too late", text,
                  side);
    oracle_formula_free(first);
  }
  if (range.end) {
    oracle_formula *end = case_read(f, range.end, x);
    ck_assert_msg(of_tile(end, x, &t) > r.last[side], "%s: side %d ends too early", text, side);
    oracle_formula_free(end);
  }
}

/* [begin, end), what a range leaves of it. */
static void clip(fg_formula *f, const case_problem *x, const tile *t, fg_visible range,
                 double *begin, double *end) {
  if (range.first) {
    oracle_formula *first = case_read(f, range.first, x);
    *begin = fmax(*begin, of_tile(first, x, t));
    oracle_formula_free(first);
  }
  if (range.end) {
    oracle_formula *last = case_read(f, range.end, x);
    *end = fmin(*end, of_tile(last, x, t));
    oracle_formula_free(last);
  }
}

/* A range that claims to be all of what one row, or one key, sees. */
static int check_one(fg_formula *f, oracle_formula *mask, const case_problem *x, tile t, int side,
                     const char *text) {
  fg_visible range = fg_formula_visible(f, side == 1);
  if (!range.exact_for_one || (!range.first && !range.end)) return 0;
  double begin = 0, end = side ? x->nq : x->nk;
  if (side == 0)
    t.q1 = t.q0 + 1, t.k0 = 0, t.k1 = x->nk;
  else
    t.k1 = t.k0 + 1, t.q0 = 0, t.q1 = x->nq;
  clip(f, x, &t, range, &begin, &end);
  ck_assert_msg(look(mask, x, &t).visible == (int)fmax(0, end - begin), "%s: side %d of one", text,
                side);
  return 1;
}

/* Keys that all rows of t see: each of a range that is known (1, else 0), and where `all` no
 * others. */
static int check_seen_by_all(fg_formula *f, oracle_formula *mask, const case_problem *x, tile t,
                             bool all, const char *text) {
  fg_visible range = fg_formula_seen_by_all(f);
  ck_assert_msg(!all || range.exact, "%s: no keys of all rows", text);
  if (!range.exact) return 0;
  double begin = 0, end = x->nk;
  int count = 0;
  clip(f, x, &t, range, &begin, &end);
  for (int k = 0; k < x->nk; k++) {
    t.k0 = k, t.k1 = k + 1;
    bool seen = look(mask, x, &t).visible == t.q1 - t.q0;
    ck_assert_msg(seen || k < begin || k >= end, "%s: key %d is not seen by all", text, k);
    count += seen;
  }
  ck_assert_msg(!all || count == (int)fmax(0, end - begin), "%s: %d keys are seen by all", text,
                count);
  return 1;
}

TEST(bounds_hold) {
  uint64_t state = 4;
  int sure = 0, masks = 0, of_one = 0, by_all = 0;
  for (int i = 0; masks < MASKS && i < 8 * MASKS; i++) {
    char text[CASE_TEXT];
    fg_formula f;
    case_problem x;
    case_text(&state, FG_TYPE_BOOL, 1 + i % 4, text, NULL);
    case_problem_new(&state, &x);
    if (case_formula(text, NULL, &f) == FG_OK) {
      masks++;
      fg_tile_test test = fg_formula_tile(&f);
      oracle_formula *mask = case_read(&f, f.mask, &x);
      oracle_formula *never = case_read(&f, test.never, &x);
      oracle_formula *always = case_read(&f, test.always, &x);
      ck_assert(fg_tree_fits(&f.tree, test.never) && fg_tree_fits(&f.tree, test.always));
      for (int j = 0; j < PAIRS; j++) {
        tile t = random_tile(&state, &x);
        found r = look(mask, &x, &t);
        int pairs = (t.q1 - t.q0) * (t.k1 - t.k0);
        bool no = of_tile(never, &x, &t) != 0, yes = of_tile(always, &x, &t) != 0;
        ck_assert_msg(!no || r.visible == 0, "%s: a tile of %d is called empty", text, r.visible);
        ck_assert_msg(!yes || r.visible == pairs, "%s: %d of %d is called full", text, r.visible,
                      pairs);
        sure += no || yes;
        check_range(&f, mask, &x, t, 0, text);
        check_range(&f, mask, &x, t, 1, text);
        of_one += check_one(&f, mask, &x, t, 0, text) + check_one(&f, mask, &x, t, 1, text);
        by_all += check_seen_by_all(&f, mask, &x, t, false, text);
      }
      oracle_formula_free(mask), oracle_formula_free(never), oracle_formula_free(always);
    }
    fg_formula_free(&f);
  }
  ck_assert_int_eq(masks, MASKS);
  ck_assert_int_gt(sure, MASKS); /* they are worth something */
  ck_assert_int_gt(of_one, MASKS);
  ck_assert_int_gt(by_all, MASKS);
}

/* What one row, or key, sees is its range, or it is not said to be. */
TEST(ranges_of_one) {
  static const struct {
    const char *text;
    bool by_row;
  } masks[] = {{"window(5, 2)", true},
               {"chunked(8)", false},
               {"k >= abs(q - 6) && k < min(q, 7) + 2 * h", true},
               {"k >= (h % 2 == 0 ? 1 : 9) && k <= p", true},
               {"3 * k <= q * 2 + 5", true},
               {"k > q % 7", false},
               {"k <= p && k >= p - p % 8", false},
               {"k >= (q < 9 ? 0 : q - 3)", false},
               {"k >= (h % 2 == 0 ? 1 : p - 2) && k <= p", false},
               {"k <= max(3, (q + 1) % 5)", false}};
  uint64_t state = 6;
  for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
    fg_formula f;
    ck_assert_msg(case_formula(masks[m].text, NULL, &f) == FG_OK, "%s", fg_error());
    ck_assert_msg(fg_formula_visible(&f, false).exact_for_one == masks[m].by_row, "%s",
                  masks[m].text);
    for (int i = 0; i < 100; i++) {
      case_problem x;
      case_problem_new(&state, &x);
      oracle_formula *mask = case_read(&f, f.mask, &x);
      tile t = random_tile(&state, &x);
      for (int side = 0; side < 2; side++) check_one(&f, mask, &x, t, side, masks[m].text);
      oracle_formula_free(mask);
    }
    fg_formula_free(&f);
  }
}

/* Conjunctions that are linear in k and q: a tile is empty or full when its bounds say so, and the
 * ranges are the least there are. */
TEST(linear_bounds_are_exact) {
  static const char *const masks[] = {"causal",         "causal_top_left", "window(5, 2)",
                                      "window(w, 0)",   "k < 9",           "k >= p - 3",
                                      "2 * k <= q + 5", "prefix(6)",       "chunked(8)"};
  uint64_t state = 5;
  for (int m = 0; m < 9; m++) {
    fg_formula f;
    ck_assert_msg(case_formula(masks[m], NULL, &f) == FG_OK, "%s", fg_error());
    for (int i = 0; i < 100; i++) {
      case_problem x;
      case_problem_new(&state, &x);
      oracle_input *w = &x.input[4];
      w->number = fabs(w->number);
      fg_tile_test test = fg_formula_tile(&f);
      tile t = random_tile(&state, &x), all = t;
      all.k0 = 0, all.k1 = x.nk;
      oracle_formula *mask = case_read(&f, f.mask, &x);
      oracle_formula *never = case_read(&f, test.never, &x);
      oracle_formula *always = case_read(&f, test.always, &x);
      found r = look(mask, &x, &t), whole = look(mask, &x, &all);
      int pairs = (t.q1 - t.q0) * (t.k1 - t.k0);
      if (m < 7)
        ck_assert_msg((r.visible == 0) == (of_tile(never, &x, &t) != 0), "%s: never", masks[m]);
      if (m < 7)
        ck_assert_msg((r.visible == pairs) == (of_tile(always, &x, &t) != 0), "%s: always",
                      masks[m]);
      if (m < 7) check_seen_by_all(&f, mask, &x, t, true, masks[m]);
      fg_visible keys = fg_formula_visible(&f, false);
      if (whole.visible && keys.end && m != 8) {
        oracle_formula *end = case_read(&f, keys.end, &x);
        double got = of_tile(end, &x, &t);
        ck_assert_msg((got < x.nk ? got : x.nk) == whole.last[0] + 1, "%s: ends at %g", masks[m],
                      got);
        oracle_formula_free(end);
      }
      oracle_formula_free(mask), oracle_formula_free(never), oracle_formula_free(always);
    }
    fg_formula_free(&f);
  }
}

/* Far out, where products pass 32 bits between two keys. */
TEST(bounds_far_out) {
  static const char *const masks[] = {"k * nk + q < 1000000000",
                                      "abs(k - p) * w <= w * 20",
                                      "k * w <= p * w",
                                      "k * k <= p * p",
                                      "k * 100000 + q * 70000 < 3000000000",
                                      "k * 100000 / 7 <= p * 100000 / 7",
                                      "(k * 100003 + q) % 65536 < 60000",
                                      "k * 9000000 - p * 9000000 < w",
                                      "max(k * 65536, w) <= p * 65536",
                                      "k * 9007199254740991 / 9007199254740991 <= p"};
  uint64_t state = 9;
  int sure = 0;
  for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
    fg_formula f;
    fg_status status = case_formula(masks[m], NULL, &f);
    ck_assert_int_eq(status, strstr(masks[m], "9007") ? FG_ESPEC : FG_OK);
    for (int i = 0; status == FG_OK && i < 60; i++) {
      case_problem x;
      case_problem_new(&state, &x);
      x.nq = 30 + case_below(&state, 100), x.nk = 50000;
      fg_tile_test test = fg_formula_tile(&f);
      oracle_formula *mask = case_read(&f, f.mask, &x);
      oracle_formula *never = case_read(&f, test.never, &x);
      oracle_formula *always = case_read(&f, test.always, &x);
      tile t = random_tile(&state, &x);
      if (t.q1 > t.q0 + 4) t.q1 = t.q0 + 4;
      if (t.k1 > t.k0 + 64) t.k1 = t.k0 + 64;
      found r = look(mask, &x, &t);
      int pairs = (t.q1 - t.q0) * (t.k1 - t.k0);
      bool no = of_tile(never, &x, &t) != 0, yes = of_tile(always, &x, &t) != 0;
      ck_assert_msg(!no || r.visible == 0, "%s: a tile of %d is called empty", masks[m], r.visible);
      ck_assert_msg(!yes || r.visible == pairs, "%s: %d of %d", masks[m], r.visible, pairs);
      sure += no || yes;
      t.q1 = t.q0 + 1;
      if (i % 30 == 0) check_range(&f, mask, &x, t, 0, masks[m]);
      if (i % 30 == 0) check_one(&f, mask, &x, t, 0, masks[m]);
      oracle_formula_free(mask), oracle_formula_free(never), oracle_formula_free(always);
    }
    fg_formula_free(&f);
  }
  ck_assert_int_gt(sure, 250);
}

/* A mask that 64 bits hold, and bounds of it that they may not: those are not claimed. */
TEST(bounds_beyond_64_bits) {
  fg_formula f;
  ck_assert_int_eq(case_formula("k / 7 <= w * w * 4", NULL, &f), FG_OK);
  fg_visible keys = fg_formula_visible(&f, false), all = fg_formula_seen_by_all(&f);
  ck_assert(!keys.first && !keys.end && !keys.exact && !keys.exact_for_one && !all.exact);
  fg_formula_free(&f);
  ck_assert_int_eq(case_formula("k / 7 <= w * w", NULL, &f), FG_OK);
  keys = fg_formula_visible(&f, false);
  ck_assert(keys.end && keys.exact);
  fg_formula_free(&f);
}
