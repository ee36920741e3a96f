/* oracle_epilogue.h - activations of a linear layer in float64: mathematics.md section 5. */
#ifndef FG_ORACLE_EPILOGUE_H
#define FG_ORACLE_EPILOGUE_H

#include <stdbool.h>

typedef struct oracle_epilogue {
  const char *name; /* the value of the spec field `epilogue` */
  bool is_gated;    /* the activation of h's first half times the second one */
  bool is_test;     /* the derivative is 0 or 1, and jumps at 0 */
  bool is_norm;     /* rows of h + residual are normalised (oracle_norm.h) */
  bool is_rms;
  double (*value)(double h);
  double (*derivative)(double h);
} oracle_epilogue;

/* The row of that name, NULL for none; NULL: there is none. */
const oracle_epilogue *oracle_epilogue_find(const char *name);

#endif
