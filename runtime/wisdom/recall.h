/* recall.h - what wisdom says of an op's candidates. The op's lines are read from the context's
 * files when its candidates are listed. */
#ifndef FG_RECALL_H
#define FG_RECALL_H

#include "wisdom.h"

typedef struct fg_op fg_op;
typedef struct fg_context fg_context;

/* A measured time of a candidate, by its index. */
typedef struct fg_memory {
  fg_shape shape;
  int candidate, generation, source; /* source: the number of its file; the lower one counts */
  int64_t when;                      /* seconds since 1970 */
  double ms;
  char device[FG_MODEL_MAX]; /* the near device that it was measured on; "": this one */
} fg_memory;

/* The times of the measured class that is nearest to a shape. */
typedef struct fg_recalled {
  const fg_shape *shape; /* one of that class; NULL: no class is near, and nothing else is set */
  int distance;          /* fg_shape_distance; 0: the shape's own class */
  double *ratio;         /* by candidate: its time to the best candidate's; 0: not measured */
  double *ms;            /* by candidate: at `shape`, or at another one of the class */
  const char *device;    /* that was measured: the model of a near one; "": this one */
} fg_recalled;

/* Reads the context's files, config's or those of FLASHGEN_WISDOM. FG_EIO: a file cannot be read;
 * only those of FLASHGEN_WISDOM may be missing. */
fg_status fg_context_wisdom(fg_context *context, int n, const char *const *files);
void fg_context_forget(fg_context *context);

/* Fills op->memory and marks as bad the candidates with wrong numbers or a broken launch; the
 * caller holds op->lock. FG_EMEMORY. */
fg_status fg_op_remember(fg_op *op);

/* The times of the candidates that are not closed (`closed` has n_candidates members): times of
 * this device if a class of them is near, else of a near device. Free with fg_recalled_free, also
 * after a failure. FG_EMEMORY. */
fg_status fg_op_recall(const fg_op *op, const fg_shape *shape, const bool *closed,
                       fg_recalled *recalled);
void fg_recalled_free(fg_recalled *recalled);

#endif
