/* formula_case.c - a generator of expressions, and problems to evaluate them on. */
#include "formula_case.h"

#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fg_pair case_declared[CASE_INPUTS] = {{"c", "float"},
                                            {"ids", "i32[b, k] monotone"},
                                            {"t", "f32[h, 7] grad"},
                                            {"u", "f32[b] grad"},
                                            {"w", "int"}};

int case_below(uint64_t *state, int n) { return (int)(fg_random_next(state) % (uint64_t)n); }

/* Two texts that grow alike, but for what twins may differ in. */
typedef struct {
  uint64_t *state;
  char *text, *twin;
} writer;

static void put(char *text, const char *more) {
  if (text && strlen(text) + strlen(more) < CASE_TEXT) strcat(text, more);
}

static void both(const writer *w, const char *more) {
  put(w->text, more);
  put(w->twin, more);
}

static void write(writer *w, fg_type type, int depth);

/* "(a op b)", in the twin perhaps "(b op a)" */
static void pair(writer *w, fg_type type, int depth, const char *op, const char *turned) {
  char a[CASE_TEXT] = "", b[CASE_TEXT] = "", c[CASE_TEXT] = "", d[CASE_TEXT] = "";
  writer left = {w->state, a, c}, right = {w->state, b, d};
  write(&left, type, depth);
  write(&right, type, depth);
  bool turn = turned && case_below(w->state, 2);
  const char *parts[] = {"(", a, " ", op, " ", b, ")"};
  const char *twins[] = {"( ", turn ? d : c, "", turn ? turned : op, "", turn ? c : d, " )"};
  for (int i = 0; i < 7; i++) put(w->text, parts[i]), put(w->twin, twins[i]);
}

static void leaf(writer *w, fg_type type) {
  static const char *const tests[] = {"true", "false", "k <= p", "q == k", "h == 1"};
  static const char *const ints[] = {
      "q", "k", "p", "b", "h", "hk", "nq", "nk", "nh", "w",         "k",      "p",
      "q", "0", "1", "2", "7", "w",  "k",  "-3", "64", "ids[b, k]", "100000", "1000000007"};
  static const char *const floats[] = {
      "s",       "s", "c", "0.5", "2.0", "1.25e-1", "t[h, k % 7]", "u[b]", "t[h, (p - k) % 7]",
      "float(q)"};
  both(w, type == FG_TYPE_BOOL  ? tests[case_below(w->state, 5)]
          : type == FG_TYPE_INT ? ints[case_below(w->state, 24)]
                                : floats[case_below(w->state, 10)]);
}

static void call(writer *w, const char *name, fg_type type, int depth, int n) {
  both(w, name);
  both(w, "(");
  for (int i = 0; i < n; i++) {
    both(w, i ? ", " : "");
    write(w, type, depth);
  }
  both(w, strchr(name, '(') ? "))" : ")"); /* sqrt and log of what they have a value for */
}

static void choose(writer *w, fg_type type, int depth) {
  both(w, "(");
  write(w, FG_TYPE_BOOL, depth);
  both(w, " ? ");
  write(w, type, depth);
  both(w, " : ");
  write(w, type, depth);
  both(w, ")");
}

static void write_test(writer *w, int depth) {
  static const char *const order[][2] = {{"<", ">"},   {"<=", ">="}, {">", "<"},
                                         {">=", "<="}, {"==", "=="}, {"!=", "!="}};
  int i = case_below(w->state, 6), kind = case_below(w->state, 10);
  if (kind < 6)
    pair(w, kind < 5 ? FG_TYPE_INT : FG_TYPE_FLOAT, depth, order[i][0], order[i][1]);
  else if (kind < 8)
    pair(w, FG_TYPE_BOOL, depth, kind == 6 ? "&&" : "||", NULL);
  else if (kind == 8)
    call(w, "!", FG_TYPE_BOOL, depth, 1);
  else
    choose(w, FG_TYPE_BOOL, depth);
}

static void write_int(writer *w, int depth) {
  static const char *const ops[] = {"+", "-", "*", "/", "%"};
  static const char *const turned[] = {"+", NULL, "*", NULL, NULL};
  int kind = case_below(w->state, 10), i = case_below(w->state, 5);
  if (kind < 7)
    pair(w, FG_TYPE_INT, depth, ops[kind < 4 ? kind % 2 : i], turned[kind < 4 ? kind % 2 : i]);
  else if (kind == 7)
    call(w, case_below(w->state, 2) ? "min" : "max", FG_TYPE_INT, depth, 2);
  else if (kind == 8)
    call(w, case_below(w->state, 2) ? "abs" : "-", FG_TYPE_INT, depth, 1);
  else
    choose(w, FG_TYPE_INT, depth);
}

static void write_float(writer *w, int depth) {
  static const char *const ops[] = {"+", "-", "*", "/"};
  static const char *const turned[] = {"+", NULL, "*", NULL};
  static const char *const functions[] = {
      "tanh", "sigmoid", "abs", "exp", "sqrt(0.25 + abs", "log(0.5 + abs", "-"};
  int kind = case_below(w->state, 10), i = case_below(w->state, 4);
  if (kind < 5)
    pair(w, FG_TYPE_FLOAT, depth, ops[i], turned[i]);
  else if (kind < 8)
    call(w, functions[case_below(w->state, 7)], FG_TYPE_FLOAT, depth, 1);
  else if (kind == 8)
    call(w, case_below(w->state, 2) ? "min" : "max", FG_TYPE_FLOAT, depth, 2);
  else
    choose(w, FG_TYPE_FLOAT, depth);
}

static void write(writer *w, fg_type type, int depth) {
  if (depth <= 0 || case_below(w->state, 6) == 0)
    leaf(w, type);
  else if (type == FG_TYPE_BOOL)
    write_test(w, depth - 1);
  else if (type == FG_TYPE_INT)
    write_int(w, depth - 1);
  else
    write_float(w, depth - 1);
}

void case_text(uint64_t *state, fg_type type, int depth, char text[CASE_TEXT],
               char twin[CASE_TEXT]) {
  writer w = {state, text, twin};
  *text = 0;
  if (twin) *twin = 0;
  write(&w, type, depth);
}

/* ---- problems ---- */

void case_problem_new(uint64_t *state, case_problem *x) {
  /* one in three has numbers of any size, so that sums and products pass 32 bits between two keys
   */
  const bool large = case_below(state, 3) == 0;
  const int begin = !large ? 0 : case_below(state, 2) ? INT32_MIN : INT32_MAX - CASE_LENGTH;
  int run = begin, w = case_below(state, 30) - 5;
  if (large) w = (case_below(state, 2) ? 1 : -1) * (1 << (12 + case_below(state, 19)));
  *x = (case_problem){.b = CASE_B,
                      .h = CASE_H,
                      .hk = 1,
                      .nq = 1 + case_below(state, CASE_LENGTH),
                      .nk = 1 + case_below(state, CASE_LENGTH)};
  for (int i = 0; i < CASE_H * 7; i++) x->t[i] = case_below(state, 1000) * 1e-3 - 0.4;
  for (int i = 0; i < CASE_B; i++) x->u[i] = case_below(state, 1000) * 1e-3 + 0.1;
  for (int i = 0; i < x->b * x->nk; i++) {
    run = i % x->nk ? run + (case_below(state, 6) == 0) : begin;
    x->ids[i] = run;
  }
  x->input[0] =
      (oracle_input){.name = "c", .rank = -1, .number = 1 + case_below(state, 100) * 0.02};
  x->input[1] = (oracle_input){
      .name = "ids", .is_int = 1, .rank = 2, .extent = {x->b, x->nk}, .values = x->ids};
  x->input[2] =
      (oracle_input){.name = "t", .is_int = 0, .rank = 2, .extent = {x->h, 7}, .values = x->t};
  x->input[3] =
      (oracle_input){.name = "u", .is_int = 0, .rank = 1, .extent = {x->b}, .values = x->u};
  x->input[4] = (oracle_input){.name = "w", .is_int = 1, .rank = -1, .number = w};
}

void case_names(const case_problem *x, int b, int h, int q, int k, double s,
                double name[ORACLE_NAMES]) {
  const int values[ORACLE_NAMES] = {0, q, k, q + x->nk - x->nq, b, h, 0, x->nq, x->nk, x->h};
  for (int i = 0; i < ORACLE_NAMES; i++) name[i] = values[i];
  name[ORACLE_S] = s;
}

fg_status case_formula(const char *mask, const char *score, fg_formula *f) {
  fg_formula_texts texts = {.mask = mask, .score = score, .n_inputs = CASE_INPUTS};
  texts.input = case_declared;
  return fg_formula_read(&texts, f, NULL);
}

oracle_formula *case_read(const fg_formula *f, int node, const case_problem *x) {
  static char text[1 << 20];
  int n = fg_formula_print(f, node, sizeof text, text);
  ck_assert_int_lt(n, (int)sizeof text);
  oracle_formula *read = oracle_formula_new(text, CASE_INPUTS, x->input, NULL);
  ck_assert_msg(read != NULL, "the oracle cannot read %.2000s", text);
  return read;
}

void case_fits(const oracle_formula *f) {
  const char *fault = oracle_formula_fault(f);
  ck_assert_msg(!fault || !strstr(fault, "64 bits"), "%s", fault);
}
