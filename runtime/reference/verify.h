/* verify.h - one launch with fresh random inputs, judged against the float64 oracle.
 *
 * `flashgen check` and the numeric suites share it. Outputs start as NaN, strides are padded, the
 * oracle sees the same rounded inputs. */
#ifndef FG_TESTS_VERIFY_H
#define FG_TESTS_VERIFY_H

#include "device/device.h"
#include "npy.h"

/* What is drawn: all from normal numbers, then ... */
typedef enum verify_style {
  VERIFY_PLAIN,  /* ... as they are */
  VERIFY_LARGE,  /* ... q large: scores of some hundreds, whose exp overflows */
  VERIFY_ABSENT, /* ... a bias of many -inf and some thousands; without a bias as VERIFY_PLAIN */
  VERIFY_STYLES
} verify_style;

typedef struct verify_case {
  fg_shape shape;
  uint32_t given; /* FG_GIVEN_SCALE, else the scale is 1/sqrt(d) */
  float scale;
  fg_launch_values
      launch; /* numbers that some kernels take; one that must be given has a usual value */
  int64_t sm_margin;
  verify_style style;
  uint64_t seed;  /* of the inputs, the padding and the host device's order */
  int contiguous; /* no padding: rows and heads follow each other */
  int far;        /* offsets exceed 32 bits: FG_PROBLEM_FAR */
  int leaves_out; /* some outputs that may be left out are: others with the next seed */
  int again;      /* what is promised to be equal in equal launches is launched twice */
  int n_numbers;  /* numbers that are set: inputs by name; others are drawn */
  const struct verify_number *number;
  int n_arrays; /* tensors that are given: inputs by name; others are drawn */
  const struct verify_array *array;
  /* The same kernel without tile skipping, whose results must be these; NULL: they are not compared
   */
  const fg_source *unskipped;
  fg_module *unskipped_module;
} verify_case;

typedef struct verify_number {
  const char *name;
  double value;
} verify_number;

typedef struct verify_array {
  const char *name;
  const fg_array *array;
} verify_array;

/* One output tensor: its error, what counts as right, and what a plain unfused computation in the
 * spec's dtype would give (0 for lse, which is float32 in both). Errors are relative to the whole
 * tensor (oracle_error) but for those in lse's own unit: of its worst element, with the limit
 * there. */
typedef struct verify_error {
  char name[40];
  double error, limit, plain;
  bool own_unit;
} verify_error;

enum { VERIFY_MAX = 16 };
typedef struct verify_verdict {
  int n;
  verify_error tensor[VERIFY_MAX];
  int pass;
  bool nothing;        /* all exact outputs are 0, or below 2^-14 in f16 */
  bool undefined;      /* an exact output is NaN: of a score that is no number at this scale */
  int64_t pairs, seen; /* all of rows and keys, and those that the mask shows */
  char reason[96];     /* what of the numbers a kernel cannot hold, where it is wrong; "" */
  char wrong[320];     /* the element of the first wrong output, a sentence; "": none is wrong */
  char skipping[384];  /* how skipping tiles changed a result, a sentence; "": it did not */
  char claim[96];      /* the pair at which a given(range, test) is false; "": none was found */
  char order[256];     /* how a second launch gave other bits, a sentence; "": none did */
} verify_verdict;

/* Has the array the tensor's extents at the shape, and values of its kind? FG_EARGUMENT. */
fg_status verify_array_check(const fg_recipe *recipe, const fg_recipe_tensor *tensor,
                             const fg_shape *shape, const fg_array *array);

/* Runs the variant on the case. A kernel that faults is a failure of the call; wrong numbers are a
 * verdict. `plain` asks for the unfused comparison, which costs a second oracle. */
fg_status verify_run(const fg_variant *variant, const fg_source *source, fg_module *module,
                     const verify_case *which, int plain, verify_verdict *verdict);

#endif
