/* verify_wrong.h - which element of an output is wrong. */
#ifndef FG_TESTS_VERIFY_WRONG_H
#define FG_TESTS_VERIFY_WRONG_H

#include "launch.h"

/* Are the two orders of a tensor's elements different? Tensors of heads are stored b n h d, the
 * oracle's arrays are b h n d. Extents of the axes as stored, 1 behind the last. */
bool verify_wrong_swapped(const fg_recipe *recipe, int tensor, const fg_shape *shape,
                          int64_t extent[FG_AXES_MAX]);

/* One sentence on values x beside ref, both in the oracle's order: "o[0, 3, 1, 5] is NaN, expected
 * 0.12, ..." of the first that is not finite as it should be, else of the one that is furthest off.
 * Indices are in the order of the axes as stored. */
void verify_wrong_tell(const fg_recipe *recipe, int tensor, const fg_shape *shape, const double *x,
                       const double *ref, size_t size, char *text);

/* Are all values 0 where the exact ones are not, beyond what rounding takes from them? Sums that
 * cancel are small beside their terms (rss), so that their error alone does not show it. */
bool verify_wrong_blank(int64_t n, fg_elem elem, const double *x, const double *ref,
                        const double *rss);

#endif
