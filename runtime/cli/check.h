/* check.h - the parts of `flashgen check`: what is tried, and tensors that files give. */
#ifndef FG_CLI_CHECK_H
#define FG_CLI_CHECK_H

#include "cli.h"
#include "verify.h"

/* Files of --in: tensors that take their values from them in place of random ones. */
typedef struct check_arrays {
  int n;
  fg_array file[16];
  verify_array array[16];
} check_arrays;

/* Reads them. Each must fit, at every shape, every variant that has such an input, and there must
 * be one. FG_EARGUMENT. */
fg_status check_arrays_read(const cli *c, const cli_variants *variants, int n_shapes,
                            const fg_shape *shapes, check_arrays *arrays);
void check_arrays_free(check_arrays *arrays);

#endif
