/* oracle_read.c - a recursive-descent reader of the oracle's expressions. */
#include "oracle_node.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 40000 };

static const char *const names[ORACLE_NAMES] = {"s",  "q",  "k",  "p",  "b",  "h",  "hk",
                                                "nq", "nk", "nh", "q0", "q1", "k0", "k1"};
/* Functions by letter: the ones of the language, and the operators. */
static const struct {
  const char *name;
  char op;
  int n;
} functions[] = {{"min", 'm', 2},   {"max", 'M', 2},   {"abs", 'a', 1},  {"exp", 'e', 1},
                 {"log", 'l', 1},   {"tanh", 't', 1},  {"sqrt", 'q', 1}, {"sigmoid", 's', 1},
                 {"floor", 'f', 1}, {"float", 'r', 1}, {"given", 'g', 2}};
static const struct {
  const char *text;
  char op;
  int rank;
} infix[] = {{"||", '|', 1}, {"&&", '&', 2}, {"==", '=', 3}, {"!=", '!', 3}, {"<=", 'L', 4},
             {">=", 'G', 4}, {"<", '<', 4},  {">", '>', 4},  {"+", '+', 5},  {"-", '-', 5},
             {"*", '*', 6},  {"/", '/', 6},  {"%", '%', 6}};
/* Names that points keep, by what fields.md says of them. */
static const struct {
  const char *name, *text;
} known[] = {{"full", "true"}, {"causal", "k <= p"}, {"causal_top_left", "k <= q"}};
enum {
  FUNCTIONS = sizeof functions / sizeof *functions,
  INFIX = sizeof infix / sizeof *infix,
  KNOWN = sizeof known / sizeof *known
};

static node *fail(oracle_formula *f) {
  f->failed = 1;
  return &f->all[0];
}

static node *make(oracle_formula *f, char op, int type, int n, node *a, node *b, node *c) {
  if (f->n == NODES) return fail(f);
  node *x = &f->all[f->n++];
  *x = (node){.op = op, .type = type, .n = n, .arg = {a, b, c}, .element = -1};
  return x;
}

static void skip(oracle_formula *f) { f->at += strspn(f->at, " \t\n"); }

static int take(oracle_formula *f, const char *text) {
  skip(f);
  if (strncmp(f->at, text, strlen(text))) return 0;
  f->at += strlen(text);
  return 1;
}

static node *read_choice(oracle_formula *f);

static node *real(oracle_formula *f, node *x) {
  return x->type == INTEGER ? make(f, 'r', REAL, 1, x, NULL, NULL) : x;
}

static node *read_list(oracle_formula *f, node *x, const char *close) {
  x->n = 0;
  do {
    if (x->n == ORACLE_RANK) return fail(f);
    node *arg = read_choice(f);
    x->arg[x->n++] = arg;
  } while (take(f, ","));
  if (!take(f, close)) return fail(f);
  x->end = f->at;
  return x;
}

static node *read_function(oracle_formula *f, int i) {
  node *x = make(f, functions[i].op, REAL, 0, NULL, NULL, NULL);
  if (!take(f, "(")) return fail(f);
  read_list(f, x, ")");
  if (f->failed || x->n != functions[i].n) return fail(f);
  char op = functions[i].op;
  if (op == 'g') x->type = BOOLEAN;
  f->has_tanh |= op == 't';
  if (op == 'f') x->type = INTEGER;
  if (op == 'a') x->type = x->arg[0]->type;
  if (op == 'm' || op == 'M') {
    x->type = x->arg[0]->type > x->arg[1]->type ? x->arg[0]->type : x->arg[1]->type;
    if (x->type == REAL) x->arg[0] = real(f, x->arg[0]), x->arg[1] = real(f, x->arg[1]);
  }
  return x;
}

static node *read_input(oracle_formula *f, int i, const char *from) {
  const oracle_input *in = &f->inputs[i];
  node *x = make(f, in->rank < 0 ? 'N' : 'R', in->is_int ? INTEGER : REAL, 0, NULL, NULL, NULL);
  x->name = i;
  x->from = from;
  if (in->rank < 0) return x;
  if (!take(f, "[")) return fail(f);
  read_list(f, x, "]");
  return x->n == in->rank ? x : fail(f);
}

static node *read_word(oracle_formula *f) {
  const char *from = f->at;
  size_t n = 0;
  while (isalnum((unsigned char)from[n]) || from[n] == '_') n++;
  f->at += n;
#define IS(word) (strlen(word) == n && !strncmp(word, from, n))
  for (int i = 0; i < f->n_inputs; i++)
    if (IS(f->inputs[i].name)) return read_input(f, i, from);
  for (int i = 0; i < ORACLE_NAMES; i++)
    if (IS(names[i])) {
      node *x = make(f, 'n', i == ORACLE_S ? REAL : INTEGER, 0, NULL, NULL, NULL);
      x->name = i;
      return x;
    }
  if (IS("true") || IS("false")) {
    node *x = make(f, 'c', BOOLEAN, 0, NULL, NULL, NULL);
    x->value = n == 4;
    return x;
  }
  for (int i = 0; i < FUNCTIONS; i++)
    if (IS(functions[i].name)) return read_function(f, i);
  if (IS("alibi")) return make(f, 'A', REAL, 0, NULL, NULL, NULL);
#undef IS
  return fail(f);
}

static node *read_number(oracle_formula *f) {
  char *end;
  node *x = make(f, 'c', INTEGER, 0, NULL, NULL, NULL);
  x->value = strtod(f->at, &end);
  if (memchr(f->at, '.', (size_t)(end - f->at)) || memchr(f->at, 'e', (size_t)(end - f->at)))
    x->type = REAL;
  f->at = end;
  return x;
}

static node *read_unary(oracle_formula *f) {
  skip(f);
  if (f->failed || ++f->depth > 4000) return fail(f);
  node *x;
  if (*f->at == '-' || (*f->at == '!' && f->at[1] != '=')) {
    char op = *f->at++ == '-' ? '_' : '~';
    node *a = read_unary(f);
    x = make(f, op, a->type, 1, a, NULL, NULL);
  } else if (take(f, "(")) {
    x = read_choice(f);
    if (!take(f, ")")) return fail(f);
  } else {
    x = isdigit((unsigned char)*f->at) || *f->at == '.' ? read_number(f) : read_word(f);
  }
  f->depth--;
  return x;
}

static node *combine(oracle_formula *f, int i, node *a, node *b) {
  int rank = infix[i].rank, type = a->type > b->type ? a->type : b->type;
  if (type == REAL) a = real(f, a), b = real(f, b);
  return make(f, infix[i].op, rank < 5 ? BOOLEAN : type, 2, a, b, NULL);
}

static node *read_infix(oracle_formula *f, int rank) {
  node *a = read_unary(f);
  for (;;) {
    int i = 0;
    skip(f);
    while (i < INFIX && strncmp(f->at, infix[i].text, strlen(infix[i].text))) i++;
    if (i == INFIX || infix[i].rank < rank || f->failed) return a;
    f->at += strlen(infix[i].text);
    a = combine(f, i, a, read_infix(f, infix[i].rank + 1));
  }
}

static node *read_choice(oracle_formula *f) {
  if (f->failed || ++f->depth > 4000) return fail(f);
  node *test = read_infix(f, 1);
  if (take(f, "?")) {
    node *a = read_choice(f), *b = take(f, ":") ? read_choice(f) : fail(f);
    if (a->type == REAL || b->type == REAL) a = real(f, a), b = real(f, b);
    test = make(f, '?', a->type, 3, test, a, b);
  }
  f->depth--;
  return test;
}

/* Notes what each value depends on. */
static void note_uses(node *x) {
  const int name = x->op == 'n' ? x->name : -1;
  x->of_s = name == ORACLE_S || x->op == 'A';
  x->of_inputs = x->op == 'N' || x->op == 'R';
  x->of_positions = name == ORACLE_Q || name == ORACLE_K || name == ORACLE_P;
  for (int i = 0; i < x->n; i++) {
    note_uses(x->arg[i]);
    x->of_s |= x->arg[i]->of_s, x->of_inputs |= x->arg[i]->of_inputs;
    x->of_positions |= x->arg[i]->of_positions;
  }
}

oracle_formula *oracle_formula_new(const char *text, int n_inputs, const oracle_input *inputs,
                                   int *column) {
  oracle_formula *f = calloc(1, sizeof *f);
  for (int i = 0; i < KNOWN; i++)
    if (!strcmp(known[i].name, text)) text = known[i].text;
  if (!f || !(f->text = strdup(text)) || !(f->all = malloc(NODES * sizeof *f->all))) abort();
  f->at = f->text, f->inputs = inputs, f->n_inputs = n_inputs;
  f->all[f->n++] = (node){.op = 'c'};
  f->root = read_choice(f);
  skip(f);
  if (!f->failed && !*f->at) {
    note_uses(f->root);
    return f;
  }
  if (column) *column = (int)(f->at - f->text) + 1;
  oracle_formula_free(f);
  return NULL;
}

void oracle_formula_free(oracle_formula *f) {
  if (!f) return;
  free(f->all);
  free(f->text);
  free(f);
}
