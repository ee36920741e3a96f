/* oracle_formula.c - values and derivatives, by a walk over what has been read. */
#include "oracle_node.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2^(-8 (h + 1) / n) for a power of 2, as the ALiBi paper has it; other numbers of heads take those
 * of the power below, then every second one of the power above. */
static double alibi_slope(double h, double heads) {
  double power = exp2(floor(log2(heads)));
  return h < power ? exp2(-8 * (h + 1) / power) : exp2(-4 * (2 * (h - power) + 1) / power);
}

static double evaluate(oracle_formula *f, node *x);
static int64_t whole(oracle_formula *f, node *x);

static double read_element(oracle_formula *f, node *x) {
  const oracle_input *in = &f->inputs[x->name];
  int64_t at = 0;
  x->element = -1;
  for (int i = 0; i < in->rank; i++) {
    int64_t index = whole(f, x->arg[i]);
    if (in->extent[i] == 1 && !in->slice_axis[i]) index = 0;
    index += in->first[i];
    if (in->slice_axis[i])
      index += (int64_t)f->names[in->slice_axis[i] == 'q' ? ORACLE_FIRST_Q : ORACLE_FIRST_K];
    if (index < 0 || index >= in->extent[i]) {
      if (!*f->fault)
        snprintf(f->fault, ORACLE_FAULT,
                 "%.*s: index %d is %" PRId64 ", not in 0 to %d, at b=%.0f h=%.0f q=%.0f k=%.0f",
                 x->end - x->from < 160 ? (int)(x->end - x->from) : 160, x->from, i + 1, index,
                 (int)in->extent[i] - 1, f->names[ORACLE_B], f->names[ORACLE_H], f->names[ORACLE_Q],
                 f->names[ORACLE_K]);
      return 0;
    }
    at = at * in->extent[i] + index;
  }
  x->element = at;
  return in->values[at];
}

/* Integers are exact: one that 64 bits do not hold is a fault. */
static int64_t of_integers(oracle_formula *f, char op, int64_t a, int64_t b) {
  int64_t r = 0;
  bool over = false;
  if (op == '+') over = __builtin_add_overflow(a, b, &r);
  if (op == '-') over = __builtin_sub_overflow(a, b, &r);
  if (op == '*') over = __builtin_mul_overflow(a, b, &r);
  if (over && !*f->fault)
    snprintf(f->fault, ORACLE_FAULT, "%" PRId64 " %c %" PRId64 " exceeds 64 bits", a, op, b);
  if (op == 'm') return a < b ? a : b;
  if (op == 'M') return a > b ? a : b;
  if (strchr("+-*", op)) return over ? 0 : r;
  if (b == 0) return 0;
  if (b == -1) return op == '/' ? of_integers(f, '-', 0, a) : 0;
  r = a % b;
  bool below = r != 0 && (r < 0) != (b < 0);
  return op == '/' ? a / b - below : below ? r + b : r;
}

static int64_t floor_of(double a) {
  a = floor(a);
  return isnan(a) ? 0 : a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : (int64_t)a;
}

static int64_t whole(oracle_formula *f, node *x) {
  node **arg = x->arg;
  switch (x->op) {
  case 'c':
    return (int64_t)x->value;
  case 'n':
    return (int64_t)f->names[x->name];
  case 'N':
    return (int64_t)f->inputs[x->name].number;
  case 'R':
    return (int64_t)read_element(f, x);
  case '?':
    return whole(f, evaluate(f, arg[0]) != 0 ? arg[1] : arg[2]);
  case 'f':
    return arg[0]->type == INTEGER ? whole(f, arg[0]) : floor_of(evaluate(f, arg[0]));
  case '_':
    return of_integers(f, '-', 0, whole(f, arg[0]));
  case 'a': {
    int64_t a = whole(f, arg[0]);
    return a < 0 ? of_integers(f, '-', 0, a) : a;
  }
  default: {
    int64_t a = whole(f, arg[0]);
    return of_integers(f, x->op, a, whole(f, arg[1]));
  }
  }
}

static double of_reals(char op, double a, double b) {
  return op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b;
}

static double of_one(char op, double a) {
  switch (op) {
  case 'a':
    return fabs(a);
  case 'e':
    return exp(a);
  case 'l':
    return log(a);
  case 't':
    return tanh(a);
  case 'q':
    return sqrt(a);
  case 's':
    return 1 / (1 + exp(-a));
  case '_':
    return -a;
  case '~':
    return a == 0;
  default:
    return a;
  }
}

/* Compares reals, or integers by their difference's sign. */
static double compare(char op, double a, double b) {
  switch (op) {
  case '=':
    return a == b;
  case '!':
    return a != b;
  case 'L':
    return a <= b;
  case 'G':
    return a >= b;
  case '<':
    return a < b;
  default:
    return a > b;
  }
}

/* A false claim, at the pair at hand. */
static void note_claim(oracle_formula *f) {
  if (!*f->claim)
    snprintf(f->claim, sizeof f->claim, "at b=%.0f h=%.0f q=%.0f k=%.0f", f->names[ORACLE_B],
             f->names[ORACLE_H], f->names[ORACLE_Q], f->names[ORACLE_K]);
}

static double evaluate_pair(oracle_formula *f, node *x) {
  if (x->type == BOOLEAN && x->arg[0]->type == INTEGER) {
    int64_t first = whole(f, x->arg[0]), second = whole(f, x->arg[1]);
    return compare(x->op, (first > second) - (first < second), 0);
  }
  double a = evaluate(f, x->arg[0]);
  if (x->op == '&' && a == 0) return 0;
  if (x->op == '|' && a != 0) return 1;
  double b = evaluate(f, x->arg[1]);
  if (x->op == '&' || x->op == '|') return b != 0;
  if (x->op == 'm') return fmin(a, b);
  if (x->op == 'M') return fmax(a, b);
  if (x->op == 'g') {
    if (b != 0 && a == 0) note_claim(f);
    return b;
  }
  if (strchr("+-*/", x->op)) return of_reals(x->op, a, b);
  return compare(x->op, a, b);
}

static double evaluate(oracle_formula *f, node *x) {
  const double *n = f->names;
  if (x->type == INTEGER) return x->value = x->op == 'c' ? x->value : (double)whole(f, x);
  switch (x->op) {
  case 'c':
    return x->value;
  case 'n':
    return x->value = n[x->name];
  case 'N':
    return x->value = f->inputs[x->name].number;
  case 'R':
    return x->value = read_element(f, x);
  case 'A':
    return x->value =
               n[ORACLE_S] + alibi_slope(n[ORACLE_H], n[ORACLE_NH]) * (n[ORACLE_K] - n[ORACLE_P]);
  case '?':
    return x->value = evaluate(f, x->arg[0]) != 0 ? evaluate(f, x->arg[1]) : evaluate(f, x->arg[2]);
  default:
    break;
  }
  if (x->n == 2) return x->value = evaluate_pair(f, x);
  return x->value = of_one(x->op, evaluate(f, x->arg[0]));
}

double oracle_formula_value(oracle_formula *f, const double name[ORACLE_NAMES]) {
  f->names = name;
  return evaluate(f, f->root);
}

/* ---- derivatives: what a change of each node does to the root, from the root down ---- */

typedef struct {
  oracle_slope *each;
  void *context;
  double least_tanh, alibi; /* alibi: the term that it adds at this pair */
  oracle_slopes found;
} sweep;

/* The size of the run-time factors of positions in a term. */
static double position_slope(const node *x, bool at_run_time) {
  const node *a = x->arg[0], *b = x->arg[1];
  if (x->type != REAL || !x->of_positions) return 0;
  switch (x->op) {
  case 'r':
    return at_run_time;
  case '+':
  case '-':
    return position_slope(a, at_run_time) + position_slope(b, at_run_time);
  case '*':
    return fabs(b->value) * position_slope(a, at_run_time || b->of_inputs) +
           fabs(a->value) * position_slope(b, at_run_time || a->of_inputs);
  case '/':
    return position_slope(a, at_run_time || b->of_inputs) / fabs(b->value);
  case '_':
  case 'a':
    return position_slope(a, at_run_time);
  default:
    return 0;
  }
}

/* A value without s that is added to one with s, times `by`. */
static void add_terms(sweep *w, const node *x, double by) {
  if (x->op == '+' || x->op == '-') {
    add_terms(w, x->arg[0], by);
    add_terms(w, x->arg[1], by);
    return;
  }
  w->found.terms += fabs(by * x->value);
  w->found.position += fabs(by) * position_slope(x, false);
}

static void push(sweep *w, const node *x, double by, double more);

/* To an operand that is added to the others. */
static void push_term(sweep *w, const node *x, double by, double more) {
  if (!x->of_s) add_terms(w, x, by);
  push(w, x, by, more);
}

/* by: d root / d x. more: how much larger its size counts. */
static void push(sweep *w, const node *x, double by, double more) {
  if (x->type != REAL || (by == 0 && more == 0)) return;
  const node *a = x->arg[0], *b = x->arg[1];
  double v = x->value, one;
  switch (x->op) {
  case 'n':
  case 'A':
    w->found.s += by, w->found.s_size += more;
    if (x->op == 'A') w->found.terms += fabs(by * w->alibi);
    return;
  case 'R':
    if (w->each && x->element >= 0) w->each(w->context, x->name, x->element, by, fabs(by) + more);
    return;
  case '+':
  case '-':
    push_term(w, a, by, more);
    push_term(w, b, x->op == '+' ? by : -by, more);
    return;
  case '*':
    push(w, a, by * b->value, more * fabs(b->value));
    push(w, b, by * a->value, more * fabs(a->value));
    return;
  case '/':
    push(w, a, by / b->value, more / fabs(b->value));
    push(w, b, -by * v / b->value, more * fabs(v / b->value));
    return;
  case 'm':
    push_term(w, a->value < b->value || isnan(b->value) ? a : b, by, more); /* a NaN loses */
    return;
  case 'M':
    push_term(w, a->value > b->value || isnan(b->value) ? a : b, by, more);
    return;
  case '?':
    push_term(w, a->value != 0 ? b : x->arg[2], by, more);
    return;
  case 'c':
  case 'N':
  case 'r':
    return;
  default:
    break;
  }
  one = x->op == 'e'   ? v
        : x->op == 'l' ? 1 / a->value
        : x->op == 't' ? 1 - v * v
        : x->op == 'q' ? 0.5 / v
        : x->op == 's' ? v * (1 - v)
        : x->op == 'a' ? (a->value > 0) - (a->value < 0)
                       : -1; /* a sign */
  if (x->op == 't') {
    const double size = fmax(one, w->least_tanh);
    w->found.flattest = fmin(w->found.flattest, one);
    more = more * size + fabs(by) * (size - one);
  } else {
    more *= fabs(one);
  }
  push(w, a, by * one, more);
}

oracle_slopes oracle_formula_slopes(oracle_formula *f, double least_tanh, oracle_slope *each,
                                    void *context) {
  sweep w = {.each = each, .context = context, .least_tanh = least_tanh, .found.flattest = 1};
  w.alibi = alibi_slope(f->names[ORACLE_H], f->names[ORACLE_NH]) *
            (f->names[ORACLE_K] - f->names[ORACLE_P]);
  push_term(&w, f->root, 1, 0);
  w.found.s_size += fabs(w.found.s);
  return w.found;
}

int oracle_formula_has_tanh(const oracle_formula *f) { return f->has_tanh; }

const char *oracle_formula_claim(const oracle_formula *f) { return *f->claim ? f->claim : NULL; }

const char *oracle_formula_fault(const oracle_formula *f) { return *f->fault ? f->fault : NULL; }
