/* launch_sequences.h - launches of any layout of sequences: where these are is drawn. */
#ifndef FG_TESTS_LAUNCH_SEQUENCES_H
#define FG_TESTS_LAUNCH_SEQUENCES_H

#include "launch_case.h"

/* The words of a random layout that the pass may have, with a space before them; "": dense. */
const char *launch_draw_layout(bool backward, uint64_t *state);

/* A launch of the recipe's layout with about as many sequences, rows and keys as a dense one of
 * this shape. Equal `draw`, equal launches, whatever the kernel. What the layout may leave out is
 * now and then not given, and what inputs hold where no sequence reads is NaN. */
launch launch_new_sequences(const kernel *k, fg_shape shape, uint64_t draw);

#endif
