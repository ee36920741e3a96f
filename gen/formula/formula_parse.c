/* formula_parse.c - reads expressions: C's operators and precedence, names, inputs, definitions.
 *
 * A definition's body is read anew at each use with its parameters standing for what they are
 * given; so a parameter has the type of its argument, and may be a tensor. Nesting is bounded,
 * whether by parentheses or by definitions, and every error has a column. */
#include "formula_parser.h"

#include "base/spelling.h"
#include "spec/spec.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NESTING = 100 };

/* Bytes of definitions that are read for one expression, 0.1 s at most: 22
 * definitions that each use the one before twice would be 4 million. */
enum { READ_MOST = 1 << 20 };

static fg_status read_choice(fg_parser *p, int *out);

/* "(a, b)" or "[a, b]" behind its opening. */
static fg_status read_list(fg_parser *p, const char *close, int most, int *n, int *list) {
  *n = 0;
  if (fg_parse_is(p, close)) {
    fg_parse_next(p);
    return FG_OK;
  }
  for (;;) {
    if (*n == most) return fg_parse_bad(p, p->word, "more than %d values in a list", most);
    TRY(read_choice(p, &list[*n]));
    ++*n;
    if (!fg_parse_is(p, ",")) return fg_parse_expect(p, close);
    fg_parse_next(p);
  }
}

/* The functions of the language, by what they take: numbers of one type (any), or floats. */
static const struct {
  const char *name;
  fg_node_op op;
  int arity;
  bool floats;
} functions[] = {
    {"min", FG_NODE_MIN, 2, false},     {"max", FG_NODE_MAX, 2, false},
    {"abs", FG_NODE_ABS, 1, false},     {"exp", FG_NODE_EXP, 1, true},
    {"log", FG_NODE_LOG, 1, true},      {"tanh", FG_NODE_TANH, 1, true},
    {"sqrt", FG_NODE_SQRT, 1, true},    {"sigmoid", FG_NODE_SIGMOID, 1, true},
    {"floor", FG_NODE_FLOOR, 1, false}, {"float", FG_NODE_FLOAT, 1, false},
    {"given", FG_NODE_GIVEN, 2, false},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

bool fg_formula_function(const char *name) {
  for (int i = 0; i < FUNCTIONS; i++)
    if (!strcmp(functions[i].name, name)) return true;
  return false;
}

static fg_status apply_function(fg_parser *p, const char *where, int i, int n, int *arg, int *out) {
  bool tests = functions[i].op == FG_NODE_GIVEN;
  if (n != functions[i].arity)
    return fg_parse_bad(p, where, "%s takes %d value%s, found %d", functions[i].name,
                        functions[i].arity, functions[i].arity > 1 ? "s" : "", n);
  for (int a = 0; a < n; a++) {
    if ((fg_parse_type(p, arg[a]) == FG_TYPE_BOOL) != tests)
      return fg_parse_bad(p, where, "%s takes %s, found %s", functions[i].name,
                          tests ? "tests" : "numbers", fg_parse_type_name(p, arg[a]));
    for (int g = 0; functions[i].op == FG_NODE_FLOOR && g < p->f->n_inputs; g++)
      if (p->f->input[g].grad && fg_tree_takes(&p->f->tree, arg[a], g))
        return fg_parse_bad(p, where,
                            "%s has a gradient and cannot stand under floor: it would be 0",
                            p->f->input[g].name);
    if (functions[i].floats) arg[a] = fg_parse_float(p, arg[a]);
  }
  if (n == 2 && !tests) fg_parse_promote(p, &arg[0], &arg[1]);
  return fg_parse_made(
      p, where, fg_tree_make(&p->f->tree, functions[i].op, arg[0], n > 1 ? arg[1] : 0, 0), out);
}

static int find_input(const fg_parser *p, const char *word, size_t n) {
  for (int i = 0; i < p->f->n_inputs; i++)
    if (strlen(p->f->input[i].name) == n && !strncmp(p->f->input[i].name, word, n)) return i;
  return -1;
}

static const fg_binding *find_binding(const fg_parser *p, const char *word, size_t n) {
  for (int i = 0; i < p->n_bindings; i++)
    if (strlen(p->bound[i].name) == n && !strncmp(p->bound[i].name, word, n)) return &p->bound[i];
  return NULL;
}

/* A tensor's element, its `[` being the token. */
static fg_status read_element(fg_parser *p, const char *where, int input, int *out) {
  const fg_input *x = &p->f->input[input];
  int index[FG_NODE_ARGS], n;
  fg_parse_next(p);
  TRY(read_list(p, "]", FG_NODE_ARGS, &n, index));
  if (n != x->rank)
    return fg_parse_bad(p, where, "%s has %d ax%ss, found %d ind%s", x->name, x->rank,
                        x->rank == 1 ? "i" : "e", n, n == 1 ? "ex" : "ices");
  for (int i = 0; i < n; i++) {
    if (fg_parse_type(p, index[i]) != FG_TYPE_INT)
      return fg_parse_bad(p, where, "index %d of %s is %s, expected an int", i + 1, x->name,
                          fg_parse_type_name(p, index[i]));
    for (int g = 0; g < p->f->n_inputs; g++)
      if (p->f->input[g].grad && fg_tree_takes(&p->f->tree, index[i], g))
        return fg_parse_bad(p, where, "%s has a gradient and cannot stand in an index",
                            p->f->input[g].name);
  }
  return fg_parse_made(p, where, fg_tree_read(&p->f->tree, input, x->type, n, index), out);
}

static fg_status use_input(fg_parser *p, const char *where, int input, int *out) {
  const fg_input *x = &p->f->input[input];
  p->f->input[input].named = true;
  if (x->grad && p->place == FG_IN_MASK)
    return fg_parse_bad(p, where, "%s has a gradient and cannot stand in a mask", x->name);
  if (fg_parse_is(p, "[")) {
    if (!x->tensor) return fg_parse_bad(p, where, "%s is no tensor: it has no elements", x->name);
    return read_element(p, where, input, out);
  }
  if (x->tensor)
    return fg_parse_bad(p, where, "%s is a tensor: expected %s[...]", x->name, x->name);
  return fg_parse_made(p, where, fg_tree_scalar(&p->f->tree, input, x->type), out);
}

/* A definition's argument: an expression, or the bare name of a tensor. */
static fg_status read_argument(fg_parser *p, fg_binding *b) {
  const char *word = p->word;
  size_t n = p->n;
  const fg_binding *bound = find_binding(p, word, n);
  int input = bound ? (bound->node ? -1 : bound->input) : find_input(p, word, n);
  const char *behind = p->at + strspn(p->at, " \t\n");
  if (input >= 0 && p->f->input[input].tensor && (*behind == ',' || *behind == ')')) {
    fg_parse_next(p);
    p->f->input[input].named = true;
    b->node = 0, b->input = input;
    return FG_OK;
  }
  return read_choice(p, &b->node);
}

/* The definition of that name and number of parameters; *named: one of that name, NULL if there is
 * none. */
static const fg_pair *find_definition(const fg_parser *p, const char *word, size_t n, int arity,
                                      fg_head *head, const fg_pair **named) {
  *named = NULL;
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < p->definitions[l].n; i++) {
      const fg_pair *d = &p->definitions[l].list[i];
      if (strncmp(d->name, word, n) || fg_formula_word(d->name[n])) continue;
      *named = &p->definitions[l].list[i];
      if (fg_formula_head(d->name, head) == FG_OK && head->n == arity) return d;
    }
  return NULL;
}

/* Refuses an unknown name, and says which known one is near. */
static fg_status unknown(const fg_parser *p, const char *where, size_t length) {
  const char *list[160], *near;
  char head[128][FG_INPUT_NAME], word[33];
  int n = 0;
  for (int i = 0; i < FG_NAME_Q0; i++) list[n++] = fg_name_text[i];
  for (int i = 0; i < FUNCTIONS; i++) list[n++] = functions[i].name;
  for (int i = 0; i < p->f->n_inputs; i++) list[n++] = p->f->input[i].name;
  for (int l = 0, heads = 0; l < 2; l++)
    for (int i = 0; i < p->definitions[l].n && heads < 100; i++) {
      size_t size = strcspn(p->definitions[l].list[i].name, "( ");
      snprintf(head[heads], FG_INPUT_NAME, "%.*s", (int)size, p->definitions[l].list[i].name);
      list[n++] = head[heads++];
    }
  snprintf(word, sizeof word, "%.*s", (int)length, where);
  near = length > 1 ? fg_nearest(word, list, n) : NULL;
  return fg_parse_bad(p, where, "\"%s\" is no name, input or definition%s%s%s", word,
                      near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static bool in_use(const fg_parser *p, const fg_pair *definition) {
  while (p && p->definition != definition) p = p->outer;
  return p != NULL;
}

/* A definition's use, its name read; its body becomes a node. */
static fg_status read_definition(fg_parser *p, const char *where, size_t length, int *out) {
  fg_parser inner = {.f = p->f, .definitions = p->definitions, .place = p->place, .read = p->read};
  fg_head head;
  char field[160];
  const fg_pair *named;
  int n = 0;
  if (fg_parse_is(p, "(")) {
    fg_parse_next(p);
    for (; !fg_parse_is(p, ")"); n++) {
      if (n == FG_PARAMETER_NAMES) return fg_parse_bad(p, p->word, "too many values in a list");
      TRY(read_argument(p, &inner.bound[n]));
      if (fg_parse_is(p, ")")) continue;
      if (!fg_parse_is(p, ",")) return fg_parse_unexpected(p, "\",\" or \")\"");
      fg_parse_next(p);
    }
    fg_parse_next(p);
  }
  const fg_pair *d = find_definition(p, where, length, n, &head, &named);
  if (!d && named)
    return fg_parse_bad(p, where, "%.*s does not take %d value%s: write %s", (int)length, where, n,
                        n == 1 ? "" : "s", named->name);
  if (!d) return unknown(p, where, length);
  if (in_use(p, d)) return fg_parse_bad(p, where, "%.60s uses itself", d->name);
  *p->read += strlen(d->value);
  if (*p->read > READ_MOST)
    return fg_parse_bad(p, where, "with its definitions the expression is longer than %d bytes",
                        READ_MOST);
  snprintf(field, sizeof field, "%.80s: in %.60s", p->field, d->name);
  inner.outer = p, inner.definition = d;
  inner.field = field, inner.text = inner.at = d->value;
  inner.nesting = p->nesting + 1;
  inner.n_bindings = n;
  for (int i = 0; i < n; i++) inner.bound[i].name = head.parameter[i];
  if (inner.nesting > NESTING) return fg_parse_bad(p, where, "nested deeper than %d", NESTING);
  fg_parse_next(&inner);
  TRY(read_choice(&inner, out));
  return inner.n ? fg_parse_unexpected(&inner, "an operator or the end") : FG_OK;
}

/* Refuses a name that the place does not have. */
static fg_status use_name(fg_parser *p, const char *where, fg_name name, int *out) {
  if (p->place == FG_IN_MASK && name == FG_NAME_S)
    return fg_parse_bad(p, where, "a mask cannot use the score s");
  if (p->place == FG_IN_EXTENT && name != FG_NAME_NQ && name != FG_NAME_NK)
    return fg_parse_bad(p, where, "an extent is an expression in nq and nk");
  return fg_parse_made(p, where, fg_tree_name(&p->f->tree, name), out);
}

static fg_status read_word(fg_parser *p, int *out) {
  const char *word = p->word;
  size_t n = p->n;
  fg_parse_next(p);
  const fg_binding *b = find_binding(p, word, n);
  if (b && b->node) {
    *out = b->node;
    return FG_OK;
  }
  if (b) return use_input(p, word, b->input, out);
  for (int i = 0; i < FG_NAME_Q0; i++)
    if (strlen(fg_name_text[i]) == n && !strncmp(fg_name_text[i], word, n))
      return use_name(p, word, (fg_name)i, out);
  bool yes = n == 4 && !strncmp(word, "true", n), no = n == 5 && !strncmp(word, "false", n);
  if (yes || no)
    return fg_parse_made(p, word, fg_tree_constant(&p->f->tree, FG_TYPE_BOOL, yes), out);
  for (int i = 0; i < FUNCTIONS; i++) {
    int arg[FG_NODE_ARGS], count;
    if (strlen(functions[i].name) != n || strncmp(functions[i].name, word, n)) continue;
    TRY(fg_parse_expect(p, "("));
    TRY(read_list(p, ")", FG_NODE_ARGS, &count, arg));
    return apply_function(p, word, i, count, arg, out);
  }
  int input = find_input(p, word, n);
  return input >= 0 ? use_input(p, word, input, out) : read_definition(p, word, n, out);
}

/* The word at hand; sign: the minus before it, so that -2^31 is a number. */
static fg_status read_number(fg_parser *p, double sign, int *out) {
  char text[64], *end;
  const char *where = p->word;
  if (p->n >= sizeof text) return fg_parse_bad(p, where, "a number has at most 63 digits");
  memcpy(text, p->word, p->n);
  text[p->n] = 0;
  errno = 0;
  double number = sign * strtod(text, &end);
  bool real = strpbrk(text, ".eE") != NULL;
  if (*end || strpbrk(text, "xX")) return fg_parse_unexpected(p, "a number");
  if (!real && fabs(number) > FG_INT_MOST)
    return fg_parse_bad(p, where, "%.40s is no int: it is above 2^53 - 1", text);
  if (real && (number > 1e38 || number < -1e38))
    return fg_parse_bad(p, where, "%.40s is above 1e38", text);
  fg_parse_next(p);
  return fg_parse_made(
      p, where, fg_tree_constant(&p->f->tree, real ? FG_TYPE_FLOAT : FG_TYPE_INT, number), out);
}

/* A number, a name, a call, or an expression in parentheses. */
static fg_status read_primary(fg_parser *p, int *out) {
  char c = p->n ? *p->word : 0;
  if (isdigit((unsigned char)c) || (c == '.' && p->n > 1)) return read_number(p, 1, out);
  if (fg_formula_word(c)) return read_word(p, out);
  if (!fg_parse_is(p, "(")) return fg_parse_unexpected(p, "a value");
  fg_parse_next(p);
  TRY(read_choice(p, out));
  return fg_parse_expect(p, ")");
}

/* A minus takes a number, a ! takes a test. */
static fg_status read_unary(fg_parser *p, int *out) {
  const char *where = p->word;
  bool minus = fg_parse_is(p, "-");
  if (!minus && !fg_parse_is(p, "!")) return read_primary(p, out);
  fg_parse_next(p);
  if (minus && (isdigit((unsigned char)*p->word) || *p->word == '.'))
    return read_number(p, -1, out);
  if (++p->nesting > NESTING) return fg_parse_bad(p, where, "nested deeper than %d", NESTING);
  TRY(read_unary(p, out));
  p->nesting--;
  if ((fg_parse_type(p, *out) == FG_TYPE_BOOL) == minus)
    return fg_parse_bad(p, where, "%s takes a %s, found %s", minus ? "-" : "!",
                        minus ? "number" : "test", fg_parse_type_name(p, *out));
  return fg_parse_made(p, where,
                       fg_tree_unary(&p->f->tree, minus ? FG_NODE_NEGATE : FG_NODE_NOT, *out), out);
}

/* Binary operators; `swapped` ones are the other comparison with its operands exchanged. */
static const struct {
  const char *text;
  fg_node_op op;
  int rank;
  bool swapped;
} infix[] = {
    {"||", FG_NODE_OR, 1, false},      {"&&", FG_NODE_AND, 2, false},
    {"==", FG_NODE_EQUAL, 3, false},   {"!=", FG_NODE_DIFFERENT, 3, false},
    {"<", FG_NODE_LESS, 4, false},     {"<=", FG_NODE_AT_MOST, 4, false},
    {">", FG_NODE_LESS, 4, true},      {">=", FG_NODE_AT_MOST, 4, true},
    {"+", FG_NODE_ADD, 5, false},      {"-", FG_NODE_SUBTRACT, 5, false},
    {"*", FG_NODE_MULTIPLY, 6, false}, {"/", FG_NODE_DIVIDE, 6, false},
    {"%", FG_NODE_MODULO, 6, false},
};
enum { INFIX = sizeof infix / sizeof *infix };

/* Operators of at least `rank`, left to right. */
static fg_status read_infix(fg_parser *p, int rank, int *out) {
  int a, b;
  TRY(read_unary(p, &a));
  for (;;) {
    int i = 0;
    while (i < INFIX && !fg_parse_is(p, infix[i].text)) i++;
    if (i == INFIX || infix[i].rank < rank) break;
    const char *where = p->word;
    fg_parse_next(p);
    TRY(read_infix(p, infix[i].rank + 1, &b));
    TRY(fg_parse_combine(p, where, infix[i].text, infix[i].op, infix[i].swapped ? b : a,
                         infix[i].swapped ? a : b, &a));
  }
  *out = a;
  return FG_OK;
}

/* test ? a : b, where both have one type */
static fg_status read_choice(fg_parser *p, int *out) {
  int test, a, b;
  const char *where = p->word;
  if (++p->nesting > NESTING) return fg_parse_bad(p, where, "nested deeper than %d", NESTING);
  TRY(read_infix(p, 1, &test));
  where = p->word;
  if (fg_parse_is(p, "?")) {
    if (fg_parse_type(p, test) != FG_TYPE_BOOL)
      return fg_parse_bad(p, where, "? takes a test, found %s", fg_parse_type_name(p, test));
    fg_parse_next(p);
    TRY(read_choice(p, &a));
    TRY(fg_parse_expect(p, ":"));
    TRY(read_choice(p, &b));
    if ((fg_parse_type(p, a) == FG_TYPE_BOOL) != (fg_parse_type(p, b) == FG_TYPE_BOOL))
      return fg_parse_bad(p, where, "?: has %s and %s, expected one type", fg_parse_type_name(p, a),
                          fg_parse_type_name(p, b));
    fg_parse_promote(p, &a, &b);
    TRY(fg_parse_made(p, where, fg_tree_make(&p->f->tree, FG_NODE_CHOOSE, test, a, b), &test));
  }
  p->nesting--;
  *out = test;
  return FG_OK;
}

fg_status fg_formula_parse(fg_formula *f, const fg_definitions definitions[2], const char *field,
                           fg_place place, const char *text, int *node) {
  static const fg_type wanted[] = {FG_TYPE_BOOL, FG_TYPE_FLOAT, FG_TYPE_INT};
  static const char *const kinds[] = {"a test", "a number", "an int"};
  fg_parser p = {.f = f, .definitions = definitions, .field = field, .text = text, .at = text};
  size_t read = 0;
  p.place = place;
  p.read = &read;
  if (strlen(text) >= FG_FORMULA_TEXT)
    return fg_fail(FG_ESPEC, "%s: it is longer than %d bytes", field, FG_FORMULA_TEXT - 1);
  fg_parse_next(&p);
  TRY(read_choice(&p, node));
  if (p.n) return fg_parse_unexpected(&p, "an operator or the end");
  if (place == FG_IN_SCORE && fg_parse_type(&p, *node) == FG_TYPE_INT)
    *node = fg_parse_float(&p, *node);
  if (*node && fg_parse_type(&p, *node) != wanted[place])
    return fg_parse_bad(&p, text, "the %s is %s, expected %s", field, fg_parse_type_name(&p, *node),
                        kinds[place]);
  return fg_tree_check(&f->tree, *node);
}
