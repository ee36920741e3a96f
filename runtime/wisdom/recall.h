/* recall.h - what wisdom says of an op's candidates: the lines that are its own, taken out of the
 * context's files when its candidates are listed. */
#ifndef FG_RECALL_H
#define FG_RECALL_H

#include "wisdom.h"

typedef struct fg_op fg_op;
typedef struct fg_context fg_context;

/* A measured time of a candidate, by its index. */
typedef struct fg_memory {
  fg_shape shape;
  int candidate, generation, source; /* source: of two the lower counts */
  int64_t when;
  double ms;
  char device[FG_MODEL_MAX]; /* the near device that it was measured on; "": this one */
} fg_memory;

/* What the nearest class that was measured says for a shape. */
typedef struct fg_recalled {
  const fg_shape *shape; /* one of that class; NULL: none is near, nothing else is filled in */
  int distance;          /* fg_shape_distance; 0: the shape's own class */
  double *ratio;         /* of each candidate's time to the best one's; 0: not measured there */
  double *ms;            /* at `shape`, or another of the class */
  const char *device;    /* whose times they are: a near device's model; "": this one's */
} fg_recalled;

/* Reads the context's files, config's or those of FLASHGEN_WISDOM. FG_EIO: one that config names
 * cannot be read. */
fg_status fg_context_wisdom(fg_context *context, int n, const char *const *files);
void fg_context_forget(fg_context *context);

/* Fills op->memory and marks candidates that were found wrong; the caller holds op->lock. */
fg_status fg_op_remember(fg_op *op);

/* For the candidates that are not closed (an array of n_candidates): times of this device where
 * some are near, else those of a near one. Free with fg_recalled_free, also after a failure. */
fg_status fg_op_recall(const fg_op *op, const fg_shape *shape, const bool *closed,
                       fg_recalled *recalled);
void fg_recalled_free(fg_recalled *recalled);

#endif
