/* verify_again.h - a launch once more, in another order or of fewer sequences. */
#ifndef FG_TESTS_VERIFY_AGAIN_H
#define FG_TESTS_VERIFY_AGAIN_H

#include "problem.h"
#include "verify.h"

/* Are equal launches of the variant promised to give equal bits? */
bool verify_again_promised(const fg_variant *variant);

/* Launches a problem that has been run once more, on the host device with blocks, warps and lanes
 * in another order than that of the seed. text: a sentence on the first output whose bits differ
 * from before,
 * "" where all are the same. The problem's outputs are those of the second launch then. */
fg_status verify_again(fg_problem *problem, const fg_variant *variant, fg_module *module,
                       size_t size, char *text);

/* Launches the first sequence of a problem that has been run alone, of which batch_invariant=true
 * promises the same bits; text as above. The problem's outputs are of both launches then. */
fg_status verify_alone(fg_problem *problem, fg_module *module, size_t size, char *text);

#endif
