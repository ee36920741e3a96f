/* formula_parse.h - texts to trees: what formula.c needs of the parser. */
#ifndef FG_FORMULA_PARSE_H
#define FG_FORMULA_PARSE_H

#include "formula.h"

enum { FG_PARAMETER_NAMES = 6 };

/* Definitions come in lists that are searched one after the other. */
typedef struct fg_definitions {
  const fg_pair *list;
  int n;
} fg_definitions;

/* Where a text may stand decides which names it has. */
typedef enum fg_place { FG_IN_MASK, FG_IN_SCORE, FG_IN_EXTENT } fg_place;

/* Reads an expression; field: "mask", for messages. */
fg_status fg_formula_parse(fg_formula *formula, const fg_definitions definitions[2],
                           const char *field, fg_place place, const char *text, int *node);

/* Takes "window(l, r)" apart: the length of its name and its parameters. FG_ESPEC if it is no head.
 */
typedef struct fg_head {
  char name[FG_INPUT_NAME];
  int n;
  char parameter[FG_PARAMETER_NAMES][FG_INPUT_NAME];
} fg_head;
fg_status fg_formula_head(const char *text, fg_head *head);

/* May the letter stand in a name? Is the name that of a function? */
bool fg_formula_word(char c);
bool fg_formula_function(const char *name);

/* What the language itself calls so ("a name of the language"), NULL for a free name. */
const char *fg_formula_reserved(const char *name);

/* Letters, digits and _, no digit first, at most FG_INPUT_NAME - 1. */
bool fg_formula_good_name(const char *name);

/* The definitions that come with flashgen. */
fg_definitions fg_formula_builtin(void);

/* The help of definition i: words that use it ("mask=window(2,0)", and numbers by which
 * `flashgen draw` draws a mask), and what it means. NULL: it is a part of other definitions. */
typedef struct fg_definition_note {
  const char *example, *help;
} fg_definition_note;
fg_definition_note fg_formula_note(int i);

#endif
