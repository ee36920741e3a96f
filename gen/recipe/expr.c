/* expr.c - integer expressions over a launch's extents: infix text to postfix code to numbers. */
#include "extent.h"
#include "recipe.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An op code: 0 a constant, then the extents by their table, then the rows of this one. */
typedef enum { CONSTANT, EXTENT, INFIX, CALL } form;
enum { ADD = 1 + FG_EXTENTS, SUB, MUL, DIV, MOD, MIN, MAX, CDIV, ROUNDUP, OPS };
static const struct {
  const char *text;
  form form;
  int rank; /* of infix operators: higher binds tighter */
} operators[] = {{"+", INFIX, 1},  {"-", INFIX, 1},   {"*", INFIX, 2},
                 {"/", INFIX, 2},  {"%", INFIX, 2},   {"min", CALL, 0},
                 {"max", CALL, 0}, {"cdiv", CALL, 0}, {"roundup", CALL, 0}};

static form form_of(int op) {
  return op == FG_OP_CONST ? CONSTANT : op < ADD ? EXTENT : operators[op - ADD].form;
}

static const char *text_of(int op) {
  return op < ADD ? fg_extents[op - 1].name : operators[op - ADD].text;
}

/* The op of a word, n bytes long, where the extents are those of the letters; OPS: it is none. */
static int find_op(const char *word, size_t n, const char *letters) {
  int op = 1;
  for (; op < OPS; op++) {
    const char *text = text_of(op);
    const bool is_there = op >= ADD || strchr(letters, fg_extents[op - 1].letter);
    if (is_there && strlen(text) == n && !strncmp(word, text, n)) break;
  }
  return op;
}

typedef struct {
  const char *text, *at;
  const char *letters;
  fg_expr *out;
  int nesting;
} reader;

static void skip(reader *r) { r->at += strspn(r->at, " \t"); }

static fg_status bad(const reader *r, const char *what) {
  return fg_fail(FG_ETEMPLATE, "expression \"%.80s\", column %d: %s", r->text,
                 (int)(r->at - r->text) + 1, what);
}

static fg_status push(reader *r, int op, int64_t constant) {
  if (r->out->n == FG_EXPR_MAX) return bad(r, "the expression is too long");
  r->out->op[r->out->n] = (unsigned char)op;
  r->out->constant[r->out->n++] = constant;
  return FG_OK;
}

static fg_status read_infix(reader *r, int rank);

static fg_status expect(reader *r, char c) {
  skip(r);
  if (*r->at != c) return bad(r, (char[]){'e', 'x', 'p', 'e', 'c', 't', 'e', 'd', ' ', c, 0});
  r->at++;
  return FG_OK;
}

static fg_status read_call(reader *r, int op) {
  TRY(expect(r, '('));
  TRY(read_infix(r, 1));
  TRY(expect(r, ','));
  TRY(read_infix(r, 1));
  TRY(expect(r, ')'));
  return push(r, op, 0);
}

/* A number, an extent, a call of two arguments, or an expression in parentheses. */
static fg_status read_operand(reader *r) {
  char names[64], expected[128];
  skip(r);
  if (*r->at == '(') {
    r->at++;
    TRY(read_infix(r, 1));
    return expect(r, ')');
  }
  if (isdigit((unsigned char)*r->at)) {
    char *end;
    errno = 0;
    int64_t value = strtoll(r->at, &end, 10);
    if (errno) return bad(r, "the number is above 2^63 - 1");
    TRY(push(r, FG_OP_CONST, value));
    r->at = end;
    return FG_OK;
  }
  size_t n = 0;
  while (isalpha((unsigned char)r->at[n]) || r->at[n] == '_') n++;
  const int op = n ? find_op(r->at, n, r->letters) : OPS;
  if (op < OPS) {
    r->at += n;
    return form_of(op) == EXTENT ? push(r, op, 0) : read_call(r, op);
  }
  fg_extent_names(r->letters, " ", sizeof names, names);
  snprintf(expected, sizeof expected, "expected a number, an extent (%s) or a function", names);
  return bad(r, expected);
}

/* Operators of at least `rank`, left to right. */
static fg_status read_infix(reader *r, int rank) {
  if (++r->nesting > FG_EXPR_MAX) return bad(r, "nested too deep");
  TRY(read_operand(r));
  for (;;) {
    skip(r);
    int op = ADD;
    while (op <= MOD && *r->at != text_of(op)[0]) op++;
    if (op > MOD || operators[op - ADD].rank < rank) break;
    r->at++;
    TRY(read_infix(r, operators[op - ADD].rank + 1));
    TRY(push(r, op, 0));
  }
  r->nesting--;
  return FG_OK;
}

fg_status fg_expr_compile(const char *text, const char *letters, fg_expr *expr) {
  fg_expr out = {0};
  reader r = {text, text, letters, &out, 0};
  TRY(read_infix(&r, 1));
  skip(&r);
  if (*r.at) return bad(&r, "unexpected text");
  *expr = out;
  return FG_OK;
}

/* x = a op b; false on overflow, or a divisor that is not positive: sizes are. */
static bool apply(int op, int64_t a, int64_t b, int64_t *x) {
  switch (op) {
  case ADD:
    return !__builtin_add_overflow(a, b, x);
  case SUB:
    return !__builtin_sub_overflow(a, b, x);
  case MUL:
    return !__builtin_mul_overflow(a, b, x);
  case MIN:
    *x = a < b ? a : b;
    return true;
  case MAX:
    *x = a > b ? a : b;
    return true;
  default:
    break;
  }
  if (b <= 0) return false;
  int64_t up = a / b + (a % b > 0);
  *x = op == DIV ? a / b : op == MOD ? a % b : up;
  return op != ROUNDUP || !__builtin_mul_overflow(up, b, x);
}

fg_status fg_expr_eval(const fg_expr *expr, const fg_shape *shape, int64_t *value) {
  int64_t stack[FG_EXPR_MAX];
  int n = 0;
  for (int i = 0; i < expr->n; i++) {
    int op = expr->op[i];
    if (op == FG_OP_CONST) {
      stack[n++] = expr->constant[i];
    } else if (op < ADD) {
      stack[n++] = fg_extent_get(&fg_extents[op - 1], shape);
    } else {
      n--;
      if (!apply(op, stack[n - 1], stack[n], &stack[n - 1])) {
        char text[256];
        fg_expr_print(expr, sizeof text, text);
        return fg_fail(FG_EARGUMENT,
                       "the launch size \"%s\" overflows or divides by 0 for this shape", text);
      }
    }
  }
  *value = stack[0];
  return FG_OK;
}

int fg_expr_print(const fg_expr *expr, size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < expr->n; i++) {
    const char *space = i ? " " : "";
    n = expr->op[i] == FG_OP_CONST
            ? fg_append(size, text, n, "%s%" PRId64, space, expr->constant[i])
            : fg_append(size, text, n, "%s%s", space, text_of(expr->op[i]));
  }
  return n;
}

/* Appends one word of postfix text. */
static fg_status parse_word(const char *word, const char *letters, fg_expr *out) {
  int op = FG_OP_CONST;
  int64_t constant = 0;
  if (out->n == FG_EXPR_MAX) return fg_fail(FG_EIO, "an expression is too long");
  if (word[strspn(word, "0123456789")]) {
    op = find_op(word, strlen(word), letters);
    if (op == OPS) return fg_fail(FG_EIO, "\"%.40s\" is no word of an expression", word);
  } else {
    errno = 0;
    constant = strtoll(word, NULL, 10);
    if (errno) return fg_fail(FG_EIO, "%.40s is above 2^63 - 1", word);
  }
  out->op[out->n] = (unsigned char)op;
  out->constant[out->n++] = constant;
  return FG_OK;
}

fg_status fg_expr_parse(const char *text, const char *letters, fg_expr *expr) {
  fg_expr out = {0};
  int depth = 0; /* operands on the stack; an operator takes two and leaves one */
  for (const char *at = text;; at++) {
    char word[32];
    size_t n = strcspn(at, " ");
    if (n == 0 || n >= sizeof word)
      return fg_fail(FG_EIO, "an expression has a word of %zu letters", n);
    memcpy(word, at, n);
    word[n] = 0;
    TRY(parse_word(word, letters, &out));
    form kind = form_of(out.op[out.n - 1]);
    depth += kind == CONSTANT || kind == EXTENT ? 1 : -1;
    if (depth < 1) return fg_fail(FG_EIO, "\"%s\" has too few operands", word);
    at += n;
    if (!*at) break;
  }
  if (depth != 1) return fg_fail(FG_EIO, "an expression leaves %d values, not one", depth);
  *expr = out;
  return FG_OK;
}
