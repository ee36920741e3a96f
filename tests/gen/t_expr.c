/* t_expr.c - integer expressions: against plain C, their postfix text, and every way to be wrong.
 */
#include "recipe/recipe.h"
#include "suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fg_shape shape = {.b = 2, .h = 6, .hk = 3, .nq = 1000, .nk = 77};

/* Of attention. */
static fg_status compile(const char *text, fg_expr *expr) {
  return fg_expr_compile(text, fg_kinds[0].form->letters, expr);
}

static int64_t value_of(const char *text, const fg_shape *at) {
  fg_expr expr;
  int64_t value = -1;
  ck_assert_msg(compile(text, &expr) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_expr_eval(&expr, at, &value) == FG_OK, "%s", fg_error());
  return value;
}

TEST(values) {
  static const struct {
    const char *text;
    int64_t value;
  } row[] = {{"7", 7},
             {" 9223372036854775807 ", INT64_MAX},
             {"b + h * hk", 20},
             {"(b + h) * hk", 24},
             {"nq - nk - b", 921},
             {"nq / hk / b", 166},
             {"nq % nk * b", 152},
             {"nq / nk * nk + nq % nk", 1000},
             {"100 - 10 + 1", 91},
             {"100/10%4", 2},
             {"b-h-hk", -7},
             {"min(nq, nk)", 77},
             {"max(nq, nk)", 1000},
             {"cdiv(nq, 128)", 8},
             {"cdiv(1024, 128)", 8},
             {"cdiv(0, 128)", 0},
             {"cdiv(0 - 5, 2)", -2},
             {"roundup(nk, 32)", 96},
             {"roundup(96, 32)", 96},
             {"cdiv(nq, 128) * h * b", 96},
             {"max(min(b, h), min(hk, cdiv(nk, 2)))", 3},
             {"((((nq))))", 1000},
             {"\thk\t*\tnk ", 231}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    ck_assert_msg(value_of(row[i].text, &shape) == row[i].value, "%s = %" PRId64, row[i].text,
                  value_of(row[i].text, &shape));
}

static uint64_t seed = 42;
static int64_t draw(int64_t most) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)(seed >> 33) % most;
}

/* A random expression over positive operands, as text and, by plain C, as a value. */
static int64_t grow(int depth, char *text, size_t size, const fg_shape *at) {
  static const char *const form[][2] = {{"(", " + "},   {"(", " - "},    {"(", " * "},
                                        {"(", " / "},   {"(", " % "},    {"min(", ", "},
                                        {"max(", ", "}, {"cdiv(", ", "}, {"roundup(", ", "}};
  const int64_t extents[] = {at->b, at->h, at->hk, at->nq, at->nk};
  static const char *const names[] = {"b", "h", "hk", "nq", "nk"};
  if (depth == 0 || draw(5) == 0) {
    int64_t i = draw(6), number = draw(1000);
    if (i < 5)
      snprintf(text, size, "%s", names[i]);
    else
      snprintf(text, size, "%" PRId64, number);
    return i < 5 ? extents[i] : number;
  }
  char left[512], right[512];
  int64_t a = grow(depth - 1, left, sizeof left, at), c = grow(depth - 1, right, sizeof right, at);
  int op = (int)draw(9);
  if (c <= 0 && op >= 3 && op != 5 && op != 6) op = 0; /* no divisor */
  snprintf(text, size, "%s%s%s%s)", form[op][0], left, form[op][1], right);
  switch (op) {
  case 0:
    return a + c;
  case 1:
    return a - c;
  case 2:
    return a * c;
  case 3:
    return a / c;
  case 4:
    return a % c;
  case 5:
    return a < c ? a : c;
  case 6:
    return a > c ? a : c;
  case 7:
    return a > 0 ? (a + c - 1) / c : a / c;
  default:
    return (a > 0 ? (a + c - 1) / c : a / c) * c;
  }
}

TEST(random_expressions) {
  for (int i = 0; i < 20000; i++) {
    fg_shape at = {.b = draw(9), .h = draw(99), .hk = draw(9), .nq = draw(9999), .nk = draw(9999)};
    char text[1100];
    int64_t value = grow(3, text, sizeof text, &at);
    if (value_of(text, &at) != value)
      ck_abort_msg("%s = %" PRId64 ", not %" PRId64, text, value, value_of(text, &at));
  }
}

/* Without parentheses: precedence and association are C's. */
TEST(precedence) {
  static const char ops[] = "+-*/%";
  for (int i = 0; i < 125; i++) {
    char text[64];
    int o[3] = {i % 5, i / 5 % 5, i / 25};
    int64_t v[4] = {91, 7, 5, 3};
    snprintf(text, sizeof text, "91 %c 7 %c 5 %c 3", ops[o[0]], ops[o[1]], ops[o[2]]);
    int64_t terms[4], n = 0;
    int sign[4] = {1, 1, 1, 1};
    terms[0] = v[0];
    for (int k = 0; k < 3; k++) {
      if (o[k] == 2)
        terms[n] *= v[k + 1];
      else if (o[k] == 3)
        terms[n] /= v[k + 1];
      else if (o[k] == 4)
        terms[n] %= v[k + 1];
      else
        terms[++n] = v[k + 1], sign[n] = o[k] == 0 ? 1 : -1;
    }
    int64_t sum = 0;
    for (int k = 0; k <= n; k++) sum += sign[k] * terms[k];
    ck_assert_msg(value_of(text, &shape) == sum, "%s", text);
  }
}

TEST(postfix_text) {
  static const char *const row[][2] = {{"cdiv(nq, 16) * h * b", "nq 16 cdiv h * b *"},
                                       {"1 + 2 * 3", "1 2 3 * +"},
                                       {"(1 + 2) * 3", "1 2 + 3 *"},
                                       {"roundup(max(nq, nk), 8) % hk", "nq nk max 8 roundup hk %"},
                                       {"b - h - min(1, nk / 2)", "b h - 1 nk 2 / min -"}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    fg_expr expr;
    char text[128], cut[6];
    ck_assert_int_eq(compile(row[i][0], &expr), FG_OK);
    ck_assert_int_eq(fg_expr_print(&expr, sizeof text, text), (int)strlen(row[i][1]));
    ck_assert_str_eq(text, row[i][1]);
    fg_expr_print(&expr, sizeof cut, cut);
    ck_assert_int_eq(strncmp(cut, row[i][1], 5), 0);
    ck_assert_int_eq((int)strlen(cut), 5);
  }
}

#define OPERAND "expected a number, an extent (b h hk nq nk) or a function"
static const struct {
  const char *text;
  int column;
  const char *why;
} bad[] = {{"", 1, OPERAND},
           {"   ", 4, OPERAND},
           {"nq +", 5, OPERAND},
           {"* nq", 1, OPERAND},
           {"nq ++ nk", 5, OPERAND},
           {"-1", 1, OPERAND},
           {"n", 1, OPERAND},
           {"nqk", 1, OPERAND},
           {"q + 1", 1, OPERAND},
           {"b + d", 5, OPERAND},
           {"foo(1, 2)", 1, OPERAND},
           {"MIN(1, 2)", 1, OPERAND},
           {"(nq", 4, "expected )"},
           {"nq)", 3, "unexpected text"},
           {"nq nk", 4, "unexpected text"},
           {"nq2", 3, "unexpected text"},
           {"12ab", 3, "unexpected text"},
           {"0x10", 2, "unexpected text"},
           {"1.5", 2, "unexpected text"},
           {"nq = 1", 4, "unexpected text"},
           {"b(1)", 2, "unexpected text"},
           {"min", 4, "expected ("},
           {"min 1", 5, "expected ("},
           {"min(1)", 6, "expected ,"},
           {"min(1, 2, 3)", 9, "expected )"},
           {"cdiv(nq 2)", 9, "expected ,"},
           {"cdiv(, 2)", 6, OPERAND},
           {"9223372036854775808", 1, "the number is above 2^63 - 1"},
           {"1 + 99999999999999999999", 5, "the number is above 2^63 - 1"}};

TEST_LOOP(syntax_errors, sizeof bad / sizeof *bad) {
  fg_expr expr, before;
  char why[200];
  memset(&expr, 0x5a, sizeof expr);
  before = expr;
  snprintf(why, sizeof why, "expression \"%s\", column %d: %s", bad[_i].text, bad[_i].column,
           bad[_i].why);
  ck_assert_msg(compile(bad[_i].text, &expr) == FG_ETEMPLATE, "%s compiles", bad[_i].text);
  ck_assert_str_eq(fg_error(), why);
  ck_assert_mem_eq(&expr, &before, sizeof expr);
}

/* A kind of kernel has its own extents. */
TEST(extents_of_rows) {
  const char *letters = fg_kind_find("logsoftmax")->form->letters;
  const fg_shape rows = {.rows = 41};
  fg_expr expr;
  int64_t value;
  ck_assert_int_eq(fg_expr_compile("cdiv(rows, 4)", letters, &expr), FG_OK);
  ck_assert_int_eq(fg_expr_eval(&expr, &rows, &value), FG_OK);
  ck_assert_int_eq(value, 11);
  ck_assert_int_eq(fg_expr_compile("nq", letters, &expr), FG_ETEMPLATE);
  ck_assert_str_eq(fg_error(),
                   "expression \"nq\", column 1: expected a number, an extent (rows) or "
                   "a function");
  ck_assert_int_eq(fg_expr_parse("rows 4 cdiv", letters, &expr), FG_OK);
  ck_assert_int_eq(fg_expr_parse("nq 4 cdiv", letters, &expr), FG_EIO);
  ck_assert_str_eq(fg_error(), "\"nq\" is no word of an expression");
}

TEST(too_long_too_deep) {
  fg_expr expr;
  char text[512] = "b";
  for (int i = 1; i < (FG_EXPR_MAX + 1) / 2; i++) strcat(text, "+b");
  ck_assert_int_eq(compile(text, &expr), FG_OK);
  strcat(text, "+b");
  strcat(text, "+b");
  ck_assert_int_eq(compile(text, &expr), FG_ETEMPLATE);
  ck_assert_ptr_nonnull(strstr(fg_error(), "the expression is too long"));
  for (int depth = 30; depth <= 200; depth += 170) {
    memset(text, '(', (size_t)depth);
    text[depth] = 'b';
    memset(text + depth + 1, ')', (size_t)depth);
    text[2 * depth + 1] = 0;
    ck_assert_int_eq(compile(text, &expr), depth == 30 ? FG_OK : FG_ETEMPLATE);
  }
  ck_assert_ptr_nonnull(strstr(fg_error(), "column 65: nested too deep"));
}

TEST(overflow_and_division) {
  static const char *const wrong[] = {"9223372036854775807 + 1",
                                      "0 - 9223372036854775807 - 2",
                                      "9223372036854775807 * 2",
                                      "nq * nq * nq * nq * nq * nq * nq",
                                      "1 / (b - b)",
                                      "1 % (b - b)",
                                      "cdiv(1, b - b)",
                                      "roundup(1, b - b)",
                                      "1 / (b - h)",
                                      "roundup(9223372036854775807, 2)"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    fg_expr expr;
    char postfix[128], why[256];
    int64_t value = 7;
    ck_assert_int_eq(compile(wrong[i], &expr), FG_OK);
    fg_expr_print(&expr, sizeof postfix, postfix);
    snprintf(why, sizeof why, "the launch size \"%s\" overflows or divides by 0 for this shape",
             postfix);
    ck_assert_msg(fg_expr_eval(&expr, &shape, &value) == FG_EARGUMENT, "%s", wrong[i]);
    ck_assert_str_eq(fg_error(), why);
    ck_assert_int_eq(value, 7);
  }
}
