/* check.h - the parts of `flashgen check`: what is tried, and tensors that files give. */
#ifndef FG_CLI_CHECK_H
#define FG_CLI_CHECK_H

#include "cli.h"
#include "reference/verify.h"
#include "work.h"

/* The shapes of a point's cases, the one that words name or the usual ones of its kind; *n = how
 * many. */
fg_status check_shapes(const cli *c, const fg_point *point, int *n,
                       fg_shape shapes[CLI_CHECK_SHAPES]);

/* Files of --in: tensors that take their values from them in place of random ones. */
typedef struct check_arrays {
  int n;
  fg_array file[16];
  verify_array array[16];
} check_arrays;

/* Reads them. Each must fit, at every shape, every variant that has such an input, and there must
 * be one. FG_EARGUMENT. */
fg_status check_arrays_read(const cli *c, const cli_variants *variants, check_arrays *arrays);
void check_arrays_free(check_arrays *arrays);

/* The cases of a check. */
typedef struct check_cases {
  const cli *c;
  bool host; /* the device is the host device */
  uint64_t seed;
  check_arrays arrays;
} check_cases;

/* A kernel, and the same without tile skipping where the mask lets tiles be skipped. */
typedef struct {
  const fg_variant *variant;
  fg_variant other; /* where the compiler refuses the first plan */
  fg_kernel *kernel;
  fg_source *unskipped; /* NULL: nothing can be skipped */
  fg_module *unskipped_module;
} check_pair;

/* What one variant's job leaves: the worst of each output over its cases. */
typedef struct {
  fg_plan plan;      /* that was tried */
  char refused[512]; /* "", or why it is not the variant's */
  int cases, wrong, interrupted;
  int judged; /* cases with an exact result that is not 0 */
  int64_t pairs, seen;
  fg_status status;
  char text[1024]; /* of a failure, or of the first wrong case */
  verify_verdict worst;
} check_outcome;

typedef struct {
  const cli *c;
  fg_context *context;
  const cli_variants *v;
} check_plans;

/* Makes both kernels of the pair's variant. Where the compiler refuses the first plan of a spec,
 * and no option names it, the next one that it takes is tried, as the library does. If it takes
 * none the first one's failure stands. The caller frees the pair in any case. */
fg_status check_pair_make(const check_plans *plans, check_pair *pair, check_outcome *outcome);
void check_pair_free(check_pair *pair);

/* Runs a variant's cases: at each shape, more draws and shapes where integers are drawn, and on the
 * host device one with offsets beyond 32 bits. What comes of them is left in *outcome; a kernel
 * that faults is a failure of the call. */
fg_status check_cases_run(const check_cases *cases, const check_pair *pair, check_outcome *outcome);

#endif
