/* words.h - words as on a command line ("pass=backward head_dim=8,40", parted by spaces) to the
 * variants that they describe; a semicolon begins another grid. */
#ifndef FG_TESTS_WORDS_H
#define FG_TESTS_WORDS_H

#include "expand/expand.h"

/* The grid of words without a semicolon. */
fg_status words_grid(const char *words, fg_grid **grid);

/* The first `most` plans (0 = all) of every point of the words' grids. *list is the caller's to
 * free, also on failure. */
fg_status words_variants(fg_gen *gen, const char *words, const char *arch, int most,
                         fg_variant **list, int *n);

/* The same of every point of a spec file. */
fg_status words_file_variants(fg_gen *gen, const char *path, const char *arch, int most,
                              fg_variant **list, int *n);

/* The generation of the first of them on the host device; 0 where there is none. */
int words_generation(const char *words);

#endif
