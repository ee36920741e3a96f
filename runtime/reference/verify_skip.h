/* verify_skip.h - a kernel's results beside those of the same kernel without tile skipping. */
#ifndef FG_TESTS_VERIFY_SKIP_H
#define FG_TESTS_VERIFY_SKIP_H

#include "problem.h"
#include "verify.h"

/* Launches `twin` on the inputs of a problem that has been run: *again is the caller's to free, in
 * any case. */
fg_status verify_skip_run(const fg_problem *done, const fg_source *twin, fg_module *module,
                          int padding, uint64_t seed, fg_problem **again);

/* Are the sums of the variant's outputs made in a fixed order, so that skipping leaves their bits?
 * wgmma's rows begin with another tile, and so another maximum, decode divides keys that it skips
 * too; and on a GPU the compiler may contract the two texts in different ways. */
bool verify_skip_exact(const fg_variant *variant);

/* The outputs' values; rss as the oracle's, NULL for lse. False, with a sentence, where the two
 * differ: in any value if `exact`, else by more than counts as right. */
bool verify_skip_equal(const char *name, int64_t n, const float *skipping, const float *whole,
                       const double *rss, double limit, bool exact, size_t size, char *text);

#endif
