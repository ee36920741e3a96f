/* lengths.h - how long the sequences of a launch that is timed are, and where their keys are: a
 * function of its shape alone, so that a line of wisdom says it all.
 *
 * Packed sequences share the tokens, paged ones the pages. Where these are too few for all to be as
 * long as nq or nk says, the longest one is, and the logarithms of the lengths are spread evenly
 * below. Their order is random, and the same in each launch. */
#ifndef FG_CLI_LENGTHS_H
#define FG_CLI_LENGTHS_H

#include "flashgen.h"
#include "recipe/layout.h"

typedef struct cli_lengths {
  int64_t n;      /* sequences */
  int64_t *q, *k; /* rows and keys of each */
} cli_lengths;

fg_status cli_lengths_new(fg_layout layout, const fg_shape *shape, cli_lengths *lengths);
void cli_lengths_free(cli_lengths *lengths);

/* The table of such a launch, [b, cdiv(nk, page)]: each sequence has pages of its own, all over the
 * pool; places that no key needs are -1. */
void cli_lengths_table(const cli_lengths *lengths, const fg_shape *shape, int64_t *table);

#endif
