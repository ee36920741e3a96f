/* pairs.h - which pairs of levels can meet, by the library's own answers, and how many rows each
 * pair has. Of a pair of axes the first one has the smaller number. */
#ifndef FG_TESTS_PAIRS_H
#define FG_TESTS_PAIRS_H

#include "design_rules.h"

typedef struct pair {
  int a, x, b, y;
} pair;

typedef struct pairs {
  design *d;
  fg_gen *gen;
  int n_known;
  design_known known[DESIGN_KNOWN];
  uint64_t random;
} pairs;

/* What is known of a pair. */
enum { PAIR_UNMET, PAIR_CAN, PAIR_EMPTY /* one level leaves the other axis without a meaning */ };

int pairs_below(pairs *s, int n); /* a random number */
design_row pairs_default(const pairs *s);

/* Asks the library; remembers what it accepts. Ends the program where a refusal has no rule and
 * where the library fails. The answer has no plans where it is a refusal. */
design_answer pairs_ask(pairs *s, const design_row *row);

/* Finds out for each pair of spec and plan axes whether it can meet. */
void pairs_find(pairs *s);

int pairs_state(const pairs *s, pair p);
/* The rule of a pair that cannot meet, or of a level that has no row (pair's b is -1). */
int pairs_rule(const pairs *s, pair p);
bool pairs_has_level(const pairs *s, int a, int x);
/* An accepted row that has both levels of a pair that can meet. */
design_row pairs_witness(const pairs *s, pair p);

/* Does the row count for a pair of its axes? A row that fails because of a known fault counts for
 * pairs that have the fault by themselves. `line` is the row's text. */
bool pairs_counts(const pairs *s, const design_row *row, const char *line, int a, int b);

/* Pairs of the row that no row has yet, and adds the row to or takes it from the counts. */
int pairs_gain(pairs *s, const design_row *row);
void pairs_add(pairs *s, const design_row *row, int times);
int pairs_count(const pairs *s, pair p);
/* Does each pair of the row have more than `most` rows? */
bool pairs_is_spare(pairs *s, const design_row *row, int most);

#endif
