/* t_formula.c - what is derived from expressions, against brute force: canonical text, derivatives,
 * bounds of tiles; and any text at all, which must end in a formula or a sentence. */
#include "suite.h"

#include "formula_case.h"
#include "tree_bound.h"
#include "tree_diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPRESSIONS = 4000, MASKS = 3000, PAIRS = 6 };

static fg_status read_both(const char *mask, const char *score, fg_formula *f) {
  fg_formula_texts texts = {.mask = mask, .score = score, .n_inputs = CASE_INPUTS};
  texts.input = case_declared;
  return fg_formula_read(&texts, f, NULL);
}

static bool alike(double a, double b, double tolerance) {
  return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tolerance * (1 + fabs(a) + fabs(b));
}

/* ---- canonical text ---- */

START_TEST(canonical_text_has_the_same_values) {
  uint64_t state = 1;
  int good = 0;
  for (int i = 0; i < EXPRESSIONS; i++) {
    char text[CASE_TEXT], twin[CASE_TEXT], first[1 << 15], second[1 << 15];
    double name[ORACLE_NAMES];
    fg_formula f, g, again;
    case_problem x;
    bool test = i % 3 == 0;
    case_text(&state, test ? FG_TYPE_BOOL : FG_TYPE_FLOAT, 1 + i % 5, text, twin);
    if (test && strpbrk(text, "stu") &&
        (strstr(text, "s") || strstr(text, "t[") || strstr(text, "u[")))
      continue; /* no score and no gradient in a mask; "tanh" and "abs" go with them */
    case_problem_new(&state, &x);
    if (read_both(test ? text : NULL, test ? NULL : text, &f) != FG_OK) {
      ck_assert_msg(strstr(fg_error(), "by a constant 0") != NULL, "%s: %s", text, fg_error());
      fg_formula_free(&f);
      continue;
    }
    good++;
    int node = test ? f.mask : f.score;
    fg_formula_print(&f, node, sizeof first, first);
    ck_assert_msg(read_both(test ? twin : NULL, test ? NULL : twin, &g) == FG_OK, "%s", fg_error());
    fg_formula_print(&g, test ? g.mask : g.score, sizeof second, second);
    ck_assert_msg(!strcmp(first, second), "%s\n%s\n%s\n%s", text, twin, first, second);
    ck_assert_msg(read_both(test ? first : NULL, test ? NULL : first, &again) == FG_OK, "%s\n%s",
                  first, fg_error());
    fg_formula_print(&again, test ? again.mask : again.score, sizeof second, second);
    ck_assert_msg(!strcmp(first, second), "%s does not read back: %s", first, second);
    oracle_formula *plain = oracle_formula_new(text, CASE_INPUTS, x.input, NULL);
    oracle_formula *made = oracle_formula_new(first, CASE_INPUTS, x.input, NULL);
    ck_assert_msg(plain && made, "%s\n%s", text, first);
    for (int j = 0; j < PAIRS; j++) {
      case_names(&x, case_below(&state, x.b), case_below(&state, x.h), case_below(&state, x.nq),
                 case_below(&state, x.nk), case_below(&state, 4000) * 1e-3 - 2, name);
      double a = oracle_formula_value(plain, name), b = oracle_formula_value(made, name);
      ck_assert_msg(alike(a, b, 1e-9), "%s = %g\n%s = %g", text, a, first, b);
    }
    oracle_formula_free(plain), oracle_formula_free(made);
    fg_formula_free(&f), fg_formula_free(&g), fg_formula_free(&again);
  }
  ck_assert_int_gt(good, EXPRESSIONS / 2);
}
END_TEST

START_TEST(spellings_of_one_mask) {
  static const char *const same[][2] = {{"causal", "p >= k"},
                                        {"k <= p", "!(k > p)"},
                                        {"window(3 + 4, 0)", "window(7, 0)"},
                                        {"k < 4 || k <= p", "k <= p || k < 4"},
                                        {"!(k <= p && q < 3)", "q >= 3 || k > p"},
                                        {"q + 1 < k", "k > 1 + q"},
                                        {"k - 1 <= p", "k + -1 <= p"},
                                        {"full", "0 < 1"},
                                        {"k <= p && h < 2 && q > 1", "q > 1 && (h < 2 && k <= p)"}};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    char a[512], b[512];
    fg_formula f;
    ck_assert_msg(read_both(same[i][0], NULL, &f) == FG_OK, "%s", fg_error());
    fg_formula_print(&f, f.mask, sizeof a, a);
    fg_formula_free(&f);
    ck_assert_msg(read_both(same[i][1], NULL, &f) == FG_OK, "%s", fg_error());
    fg_formula_print(&f, f.mask, sizeof b, b);
    fg_formula_free(&f);
    ck_assert_str_eq(a, b);
  }
}
END_TEST

/* ---- derivatives ---- */

typedef struct {
  int input;
  int64_t element;
  double sum;
} wanted;

static void add_slope(void *context, int input, int64_t element, double slope) {
  wanted *w = context;
  if (input == w->input && element == w->element) w->sum += slope;
}

/* The derivative at s by differences, NAN where two step sizes disagree: a kink, or too steep. */
static double by_differences(oracle_formula *f, const double *name) {
  double d[2];
  for (int i = 0; i < 2; i++) {
    double step = i ? 1e-5 : 4e-5, n[ORACLE_NAMES];
    memcpy(n, name, sizeof n);
    n[ORACLE_S] = name[ORACLE_S] + step;
    double above = oracle_formula_value(f, n);
    n[ORACLE_S] = name[ORACLE_S] - step;
    d[i] = (above - oracle_formula_value(f, n)) / (2 * step);
  }
  return alike(d[0], d[1], 1e-5) ? d[1] : NAN;
}

START_TEST(derivatives_by_s) {
  uint64_t state = 2;
  int compared = 0;
  for (int i = 0; i < EXPRESSIONS; i++) {
    char text[CASE_TEXT];
    double name[ORACLE_NAMES];
    fg_formula f;
    case_problem x;
    case_text(&state, FG_TYPE_FLOAT, 1 + i % 4, text, NULL);
    case_problem_new(&state, &x);
    if (read_both(NULL, text, &f) == FG_OK) {
      oracle_formula *value = case_read(&f, f.score, &x);
      int slope = fg_tree_diff(&f.tree, f.score, fg_tree_name(&f.tree, FG_NAME_S));
      ck_assert_msg(slope > 0, "%s", text);
      char printed[1 << 16];
      ck_assert_int_lt(fg_formula_print(&f, slope, sizeof printed, printed), sizeof printed);
      oracle_formula *derived = oracle_formula_new(printed, CASE_INPUTS, x.input, NULL);
      ck_assert_msg(derived != NULL, "%s", printed);
      for (int j = 0; j < PAIRS; j++) {
        case_names(&x, case_below(&state, x.b), case_below(&state, x.h), case_below(&state, x.nq),
                   case_below(&state, x.nk), case_below(&state, 4000) * 1e-3 - 2 + 3e-4, name);
        double want = by_differences(value, name), got = oracle_formula_value(derived, name);
        if (!isfinite(want) || !isfinite(got) || fabs(want) > 1e3) continue;
        if (!(fabs(oracle_formula_value(value, name)) < 1e5)) continue; /* differences drown */
        compared++;
        ck_assert_msg(alike(want, got, 1e-3), "%s: %g, not %g\n%s", text, got, want, printed);
      }
      oracle_formula_free(value), oracle_formula_free(derived);
    }
    fg_formula_free(&f);
  }
  ck_assert_int_gt(compared, EXPRESSIONS);
}
END_TEST

/* Each read's derivative, against the oracle's sweep, which goes the other way round. */
START_TEST(derivatives_by_inputs) {
  uint64_t state = 3;
  int compared = 0;
  for (int i = 0; i < EXPRESSIONS; i++) {
    char text[CASE_TEXT], printed[1 << 16];
    double name[ORACLE_NAMES];
    fg_formula f;
    case_problem x;
    case_text(&state, FG_TYPE_FLOAT, 1 + i % 4, text, NULL);
    case_problem_new(&state, &x);
    if (read_both(NULL, text, &f) == FG_OK) {
      case_names(&x, 1, 2, case_below(&state, x.nq), case_below(&state, x.nk), 0.3, name);
      oracle_formula *value = case_read(&f, f.score, &x);
      double got = 0;
      wanted w = {3, 1, 0}; /* u[b] at b = 1 */
      for (int n = f.tree.n - 1; n > 0; n--) {
        const fg_node *node = &f.tree.node[n];
        if (node->op != FG_NODE_READ || strcmp(f.input[node->which].name, "u")) continue;
        fg_formula_print(&f, fg_tree_diff(&f.tree, f.score, n), sizeof printed, printed);
        oracle_formula *derived = oracle_formula_new(printed, CASE_INPUTS, x.input, NULL);
        got += oracle_formula_value(derived, name);
        oracle_formula_free(derived);
        break;
      }
      double v = oracle_formula_value(value, name);
      oracle_formula_slope(value, add_slope, &w);
      if (isfinite(v) && isfinite(w.sum) && isfinite(got)) {
        compared++;
        ck_assert_msg(alike(w.sum, got, 1e-6), "%s: %g, not %g", text, got, w.sum);
      }
      oracle_formula_free(value);
    }
    fg_formula_free(&f);
  }
  ck_assert_int_gt(compared, EXPRESSIONS / 2);
}
END_TEST

/* ---- bounds ---- */

typedef struct {
  int q0, q1, k0, k1, b, h;
} tile;

static double of_tile(oracle_formula *f, const case_problem *x, const tile *t) {
  double name[ORACLE_NAMES];
  case_names(x, t->b, t->h, 0, 0, 0, name);
  name[ORACLE_Q0] = t->q0, name[ORACLE_Q1] = t->q1;
  name[ORACLE_K0] = t->k0, name[ORACLE_K1] = t->k1;
  return oracle_formula_value(f, name);
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
      if (oracle_formula_value(mask, name) == 0) continue;
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

/* A range that claims to be all of what one row, or one key, sees. */
static int check_one(fg_formula *f, oracle_formula *mask, const case_problem *x, tile t, int side,
                     const char *text) {
  fg_visible range = fg_formula_visible(f, side == 1);
  if (!range.by_one || (!range.first && !range.end)) return 0;
  double begin = 0, end = side ? x->nq : x->nk;
  if (side == 0)
    t.q1 = t.q0 + 1, t.k0 = 0, t.k1 = x->nk;
  else
    t.k1 = t.k0 + 1, t.q0 = 0, t.q1 = x->nq;
  if (range.first) {
    oracle_formula *first = case_read(f, range.first, x);
    begin = fmax(begin, of_tile(first, x, &t));
    oracle_formula_free(first);
  }
  if (range.end) {
    oracle_formula *last = case_read(f, range.end, x);
    end = fmin(end, of_tile(last, x, &t));
    oracle_formula_free(last);
  }
  ck_assert_msg(look(mask, x, &t).visible == (int)fmax(0, end - begin), "%s: side %d of one", text,
                side);
  return 1;
}

START_TEST(bounds_hold) {
  uint64_t state = 4;
  int sure = 0, masks = 0, of_one = 0;
  for (int i = 0; masks < MASKS && i < 8 * MASKS; i++) {
    char text[CASE_TEXT];
    fg_formula f;
    case_problem x;
    case_text(&state, FG_TYPE_BOOL, 1 + i % 4, text, NULL);
    case_problem_new(&state, &x);
    if (read_both(text, NULL, &f) == FG_OK) {
      masks++;
      fg_tile_test test = fg_formula_tile(&f);
      oracle_formula *mask = case_read(&f, f.mask, &x);
      oracle_formula *never = case_read(&f, test.never, &x);
      oracle_formula *always = case_read(&f, test.always, &x);
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
      }
      oracle_formula_free(mask), oracle_formula_free(never), oracle_formula_free(always);
    }
    fg_formula_free(&f);
  }
  ck_assert_int_eq(masks, MASKS);
  ck_assert_int_gt(sure, MASKS); /* they are worth something */
  ck_assert_int_gt(of_one, MASKS);
}
END_TEST

/* What one row, or key, sees is its range, or it is not said to be. */
START_TEST(ranges_of_one) {
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
    ck_assert_msg(read_both(masks[m].text, NULL, &f) == FG_OK, "%s", fg_error());
    ck_assert_msg(fg_formula_visible(&f, false).by_one == masks[m].by_row, "%s", masks[m].text);
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
END_TEST

/* Conjunctions that are linear in k and q: a tile is empty or full when its bounds say so, and the
 * ranges are the least there are. */
START_TEST(linear_bounds_are_exact) {
  static const char *const masks[] = {"causal",         "causal_top_left", "window(5, 2)",
                                      "window(w, 0)",   "k < 9",           "k >= p - 3",
                                      "2 * k <= q + 5", "prefix(6)",       "chunked(8)"};
  uint64_t state = 5;
  for (int m = 0; m < 9; m++) {
    fg_formula f;
    ck_assert_msg(read_both(masks[m], NULL, &f) == FG_OK, "%s", fg_error());
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
END_TEST

/* ---- any text ---- */

static void mutate(uint64_t *state, char *text) {
  static const char letters[] = "()[]<>=!&|?:+-*/%., 019eskqphbntuwc";
  for (int i = case_below(state, 6); i >= 0; i--) {
    size_t n = strlen(text), at = n ? (size_t)case_below(state, (int)n) : 0;
    int kind = case_below(state, 3);
    if (kind == 0 && n) text[at] = letters[case_below(state, sizeof letters - 1)];
    if (kind == 1 && n) memmove(text + at, text + at + 1, n - at);
    if (kind == 2 && n + 1 < CASE_TEXT) {
      memmove(text + at + 1, text + at, n - at + 1);
      text[at] = case_below(state, 50) ? letters[case_below(state, sizeof letters - 1)]
                                       : (char)(1 + case_below(state, 255));
    }
  }
}

START_TEST(any_text_ends_well) {
  const char *asked = getenv("FLASHGEN_FUZZ_INPUTS");
  long inputs = asked ? atol(asked) : 60000;
  uint64_t state = asked ? (uint64_t)inputs : 6;
  for (long i = 0; i < inputs; i++) {
    char text[CASE_TEXT];
    fg_formula f;
    case_text(&state, i % 2 ? FG_TYPE_BOOL : FG_TYPE_FLOAT, 1 + (int)(i % 6), text, NULL);
    if (i % 4) mutate(&state, text);
    fg_status status = read_both(i % 2 ? text : NULL, i % 2 ? NULL : text, &f);
    ck_assert_msg(status == FG_OK || status == FG_ESPEC, "%d: %s", status, text);
    if (status == FG_OK) {
      fg_formula_tile(&f);
      fg_formula_visible(&f, false);
      fg_formula_visible(&f, true);
      fg_tree_diff(&f.tree, f.score, fg_tree_name(&f.tree, FG_NAME_S));
    } else {
      ck_assert_msg(strlen(fg_error()) > 10, "%s", text);
    }
    fg_formula_free(&f);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("formula");
  TCase *cases = tcase_create("derivations");
  tcase_add_test(cases, canonical_text_has_the_same_values);
  tcase_add_test(cases, spellings_of_one_mask);
  tcase_add_test(cases, derivatives_by_s);
  tcase_add_test(cases, derivatives_by_inputs);
  tcase_add_test(cases, bounds_hold);
  tcase_add_test(cases, ranges_of_one);
  tcase_add_test(cases, linear_bounds_are_exact);
  tcase_add_test(cases, any_text_ends_well);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
