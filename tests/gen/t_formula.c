/* t_formula.c - what is derived from expressions, against brute force: canonical text and
 * derivatives; and any text at all, which must end in a formula or a sentence. */
#include "suite.h"

#include "formula/tree_bound.h"
#include "formula/tree_diff.h"
#include "formula_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPRESSIONS = 4000, PAIRS = 6 };

static bool alike(double a, double b, double tolerance) {
  return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tolerance * (1 + fabs(a) + fabs(b));
}

/* ---- canonical text ---- */

TEST(canonical_text_has_the_same_values) {
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
    if (case_formula(test ? text : NULL, test ? NULL : text, &f) != FG_OK) {
      ck_assert_msg(strstr(fg_error(), "by a constant 0") || strstr(fg_error(), "exceed 64 bits"),
                    "%s: %s", text, fg_error());
      fg_formula_free(&f);
      continue;
    }
    good++;
    int node = test ? f.mask : f.score;
    fg_formula_print(&f, node, sizeof first, first);
    ck_assert_msg(case_formula(test ? twin : NULL, test ? NULL : twin, &g) == FG_OK, "%s",
                  fg_error());
    fg_formula_print(&g, test ? g.mask : g.score, sizeof second, second);
    ck_assert_msg(!strcmp(first, second), "%s\n%s\n%s\n%s", text, twin, first, second);
    ck_assert_msg(case_formula(test ? first : NULL, test ? NULL : first, &again) == FG_OK, "%s\n%s",
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
      case_fits(plain), case_fits(made);
      ck_assert_msg(alike(a, b, 1e-9), "%s = %g\n%s = %g", text, a, first, b);
    }
    oracle_formula_free(plain), oracle_formula_free(made);
    fg_formula_free(&f), fg_formula_free(&g), fg_formula_free(&again);
  }
  ck_assert_int_gt(good, EXPRESSIONS / 2);
}

TEST(spellings_of_one_mask) {
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
    ck_assert_msg(case_formula(same[i][0], NULL, &f) == FG_OK, "%s", fg_error());
    fg_formula_print(&f, f.mask, sizeof a, a);
    fg_formula_free(&f);
    ck_assert_msg(case_formula(same[i][1], NULL, &f) == FG_OK, "%s", fg_error());
    fg_formula_print(&f, f.mask, sizeof b, b);
    fg_formula_free(&f);
    ck_assert_str_eq(a, b);
  }
}

/* ---- derivatives ---- */

typedef struct {
  int input;
  int64_t element;
  double sum;
} wanted;

static void add_slope(void *context, int input, int64_t element, double slope, double size) {
  wanted *w = context;
  (void)size;
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

TEST(derivatives_by_s) {
  uint64_t state = 2;
  int compared = 0;
  for (int i = 0; i < EXPRESSIONS; i++) {
    char text[CASE_TEXT];
    double name[ORACLE_NAMES];
    fg_formula f;
    case_problem x;
    case_text(&state, FG_TYPE_FLOAT, 1 + i % 4, text, NULL);
    case_problem_new(&state, &x);
    if (case_formula(NULL, text, &f) == FG_OK) {
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

/* Each read's derivative, against the oracle's sweep, which goes the other way round. */
TEST(derivatives_by_inputs) {
  uint64_t state = 3;
  int compared = 0;
  for (int i = 0; i < EXPRESSIONS; i++) {
    char text[CASE_TEXT], printed[1 << 16];
    double name[ORACLE_NAMES];
    fg_formula f;
    case_problem x;
    case_text(&state, FG_TYPE_FLOAT, 1 + i % 4, text, NULL);
    case_problem_new(&state, &x);
    if (case_formula(NULL, text, &f) == FG_OK) {
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
      oracle_formula_slopes(value, 0, add_slope, &w);
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

/* A NaN loses in min and max, and the gradient goes to the operand that is a number: in each order,
 * whichever of the two the canonical text puts first. */
TEST(a_nan_takes_no_gradient) {
  static const struct {
    const char *score;
    double s, value, slope;
  } scores[] = {{"min(s, sqrt(s - 1.0))", 0.5, 0.5, 1},
                {"min(sqrt(s - 1.0), s)", 0.5, 0.5, 1},
                {"max(s, sqrt(s - 1.0))", 0.5, 0.5, 1},
                {"max(sqrt(s - 1.0), s)", 0.5, 0.5, 1},
                {"min(log(s), 3.0 * s)", -2, -6, 3},
                {"max(3.0 * s, log(s))", -2, -6, 3},
                {"min(2.0 * s, log(s))", 1e3, 6.9078, 1e-3},
                {"max(log(s), 2.0 * s)", 1e3, 2e3, 2},
                {"min(0.25, sqrt(s))", -1, 0.25, 0},
                {"max(sqrt(s), 0.25)", -1, 0.25, 0},
                {"min(float(q), sqrt(s))", -1, 1, 0},
                {"max(log(s), float(q))", -1, 1, 0},
                {"max(log(s), float(q))", 8, 2.07944, 0.125},
                {"min(float(q), sqrt(s))", 0.25, 0.5, 1},
                {"min(s, c / u[b])", 0.5, 0.5, 1},
                {"max(c / u[b], s)", 0.5, 0.5, 1}};
  for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
    uint64_t state = 8;
    char printed[1 << 12];
    double name[ORACLE_NAMES];
    fg_formula f;
    case_problem x;
    case_problem_new(&state, &x);
    x.input[0].number = x.u[0] = x.u[1] = 0; /* c / u[b] is 0 / 0 */
    ck_assert_msg(case_formula(NULL, scores[i].score, &f) == FG_OK, "%s", fg_error());
    case_names(&x, 0, 0, 1, 0, scores[i].s, name);
    oracle_formula *value = case_read(&f, f.score, &x);
    ck_assert_msg(alike(oracle_formula_value(value, name), scores[i].value, 1e-5), "%s",
                  scores[i].score);
    double swept = oracle_formula_slopes(value, 0, NULL, NULL).s;
    int slope = fg_tree_diff(&f.tree, f.score, fg_tree_name(&f.tree, FG_NAME_S));
    fg_formula_print(&f, slope, sizeof printed, printed);
    oracle_formula *derived = oracle_formula_new(printed, CASE_INPUTS, x.input, NULL);
    double got = oracle_formula_value(derived, name);
    ck_assert_msg(alike(swept, scores[i].slope, 1e-5), "%s: the oracle has %g", scores[i].score,
                  swept);
    ck_assert_msg(alike(got, scores[i].slope, 1e-5), "%s: %g by %s", scores[i].score, got, printed);
    oracle_formula_free(value), oracle_formula_free(derived);
    fg_formula_free(&f);
  }
}

/* A cap of the launch that is 0 or infinite is none. */
TEST(caps_that_are_none) {
  static const double caps[] = {0, INFINITY, -INFINITY, 2, -2};
  for (int i = 0; i < 5; i++) {
    uint64_t state = 8;
    char printed[1 << 12];
    double name[ORACLE_NAMES], c = caps[i], t = tanh(1.5 / c);
    fg_formula f;
    case_problem x;
    case_problem_new(&state, &x);
    x.input[0].number = c;
    ck_assert_msg(case_formula(NULL, "softcap(c)", &f) == FG_OK, "%s", fg_error());
    case_names(&x, 0, 0, 0, 0, 1.5, name);
    oracle_formula *value = case_read(&f, f.score, &x);
    double got = oracle_formula_value(value, name), want = i < 3 ? 1.5 : c * t;
    ck_assert_msg(alike(got, want, 1e-9), "cap %g: %g", c, got);
    int slope = fg_tree_diff(&f.tree, f.score, fg_tree_name(&f.tree, FG_NAME_S));
    fg_formula_print(&f, slope, sizeof printed, printed);
    oracle_formula *derived = oracle_formula_new(printed, CASE_INPUTS, x.input, NULL);
    got = oracle_formula_value(derived, name);
    ck_assert_msg(alike(got, i < 3 ? 1 : 1 - t * t, 1e-9), "cap %g: slope %g", c, got);
    oracle_formula_free(value), oracle_formula_free(derived);
    fg_formula_free(&f);
  }
}

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

TEST(any_text_ends_well) {
  const char *asked = getenv("FLASHGEN_FUZZ_INPUTS");
  long inputs = asked ? atol(asked) : 60000;
  uint64_t state = asked ? (uint64_t)inputs : 6;
  for (long i = 0; i < inputs; i++) {
    char text[CASE_TEXT];
    fg_formula f;
    case_text(&state, i % 2 ? FG_TYPE_BOOL : FG_TYPE_FLOAT, 1 + (int)(i % 6), text, NULL);
    if (i % 4) mutate(&state, text);
    fg_status status = case_formula(i % 2 ? text : NULL, i % 2 ? NULL : text, &f);
    ck_assert_msg(status == FG_OK || status == FG_ESPEC, "%d: %s", status, text);
    if (status == FG_OK) {
      fg_formula_tile(&f);
      fg_formula_visible(&f, false);
      fg_formula_visible(&f, true);
      fg_formula_seen_by_all(&f);
      fg_tree_diff(&f.tree, f.score, fg_tree_name(&f.tree, FG_NAME_S));
    } else {
      ck_assert_msg(strlen(fg_error()) > 10, "%s", text);
    }
    fg_formula_free(&f);
  }
}
