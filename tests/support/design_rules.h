/* design_rules.h - what the library answers to a row's spec: its plans, or a refusal and the rule
 * that the refusal follows; and the list of known faults. */
#ifndef FG_TESTS_DESIGN_RULES_H
#define FG_TESTS_DESIGN_RULES_H

#include "design.h"
#include "expand/expand.h"

/* Why levels do not meet. `words` are a spec that provokes the refusal, `text` is a part of it. */
typedef struct design_rule {
  const char *name, *words, *text;
} design_rule;

extern const design_rule design_rules[]; /* ends with a row without a name */

/* The number of the rule whose text the refusal has, -1 if there is none. family: whose sentence
 * counts where no plan fits. */
int design_rule_of(const char *family, const char *refusal);

/* The number of the rule of that name, -1 if there is none. */
int design_rule_find(const char *name);

/* In place of a rule: the name of a variant with all the row's fields is too long. */
enum { DESIGN_TOO_LONG = -2 };

/* What the library says of a spec. */
typedef struct design_answer {
  bool accepted;
  uint64_t plans; /* bits: the levels of its plans */
  int rule;       /* of a refusal; -1: none has its text, which fg_error() has */
} design_answer;

/* Asks for the plans of the row's spec in the design's family, and adds new plans to the design. A
 * spec whose variant's name does not fit has the answer DESIGN_TOO_LONG. Fails where the library
 * fails. */
fg_status design_ask(fg_gen *gen, design *d, const design_row *row, design_answer *answer);

/* Faults that are known: lines of tests/design/known.txt, a number and the words of rows that fail
 * because of it. */
enum { DESIGN_KNOWN = 64 };
typedef struct design_known {
  char fault[16], words[256];
} design_known;

/* Reads the file; returns how many there are, -1 if it cannot be read. */
int design_known_read(const char *path, design_known known[DESIGN_KNOWN]);

/* The first fault whose words the row's line has; NULL: there is none. */
const design_known *design_known_find(int n, const design_known *known, const char *line);

#endif
