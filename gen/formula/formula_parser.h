/* formula_parser.h - what reads an expression: its state, its tokens, and the types of what it
 * reads. For formula_parse.c alone. */
#ifndef FG_FORMULA_PARSER_H
#define FG_FORMULA_PARSER_H

#include "formula_parse.h"

/* What a parameter stands for: a node, or (node 0) an input that is a tensor. */
typedef struct fg_binding {
  const char *name;
  int node, input;
} fg_binding;

typedef struct fg_parser {
  fg_formula *f;
  const fg_definitions *definitions;
  const struct fg_parser *outer; /* what reads the text that uses this definition, or NULL */
  const fg_pair *definition;
  const char *field, *text, *at; /* `at` is behind the token */
  fg_place place;
  int nesting;
  size_t *read;     /* bytes of definitions so far */
  const char *word; /* the token: its start and length; 0 at the end */
  size_t n;
  int n_bindings;
  fg_binding bound[FG_PARAMETER_NAMES];
} fg_parser;

/* formula_token.c: to the next token; is it this one? */
void fg_parse_next(fg_parser *p);
bool fg_parse_is(const fg_parser *p, const char *text);

/* Passes the token that has to be this one. */
fg_status fg_parse_expect(fg_parser *p, const char *text);

/* FG_ESPEC: the sentence, the line of text around the column, and a caret. */
fg_status fg_parse_bad(const fg_parser *p, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* FG_ESPEC: the token is not what was expected. */
fg_status fg_parse_unexpected(const fg_parser *p, const char *expected);

/* formula_type.c: of a node, and as a message has it ("an int"). */
fg_type fg_parse_type(const fg_parser *p, int node);
const char *fg_parse_type_name(const fg_parser *p, int node);

/* A node that could not be made (0) is an error, at the operator that asked for it. */
fg_status fg_parse_made(const fg_parser *p, const char *where, int node, int *out);

/* An int as a float; two numbers become of one type. */
int fg_parse_float(fg_parser *p, int node);
void fg_parse_promote(fg_parser *p, int *a, int *b);

/* a OP b, of types that the operator takes. */
fg_status fg_parse_combine(fg_parser *p, const char *where, const char *symbol, fg_node_op op,
                           int a, int b, int *out);

#endif
