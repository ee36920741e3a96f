/* reference_slices.h - lists of slices, of a case whose layout has them. */
#ifndef FG_REFERENCE_SLICES_H
#define FG_REFERENCE_SLICES_H

#include "oracle.h"
#include "reference.h"

/* How many slices the lists of a seed have. */
int64_t reference_count_slices(uint64_t seed);
/* Draws q_ranges, k_ranges or kinds: documents side by side, overlapping, equal, empty and reversed
 * ranges, and such as leave the tokens. False: the tensor is none of them. */
bool reference_draw_slices(const reference_case *c, const char *name, double *values);

/* The slices within the tokens, and for each pair [nq, nk] the first one that shows it, -1: none.
 */
typedef struct reference_slices {
  oracle_slice *slice;
  int *slice_of;
} reference_slices;
fg_status reference_slices_new(const reference_case *c, reference_slices *slices);
void reference_slices_free(reference_slices *slices);

#endif
