/* recall.h - what wisdom says of a spec's candidates on a device: times, and which candidates are
 * bad. The lines of the spec are read once, when its candidates are listed. */
#ifndef FG_RECALL_H
#define FG_RECALL_H

#include "wisdom.h"

/* A candidate, by the part of its variant's name behind the spec. */
typedef struct fg_asked {
  char name[64]; /* "mma-q64-k64-s2-w4.sm_90a" */
  int generation;
} fg_asked;

/* Who asks: a spec with its candidates, for a device. */
typedef struct fg_question {
  fg_point point;
  const char *model; /* of the device */
  int multiprocessors;
  int n; /* candidates */
  const fg_asked *candidate;
  bool times_only; /* lines do not judge candidates as bad */
} fg_question;

/* A measured time of a candidate, by its index. */
typedef struct fg_memory {
  fg_shape shape;
  int candidate, generation, source; /* source: the number of its file; the lower one counts */
  int64_t when;                      /* seconds since 1970 */
  double ms;
  char device[FG_MODEL_MAX]; /* the near device that it was measured on; "": this one */
} fg_memory;

/* The last verdict on a candidate's numbers or launch. */
typedef struct fg_verdict {
  bool bad;  /* its numbers were wrong or its launch broke */
  bool here; /* by this device, whose verdict outweighs later ones of others */
  int64_t when;
} fg_verdict;

/* All that wisdom has of a spec's candidates; zeroed before the first read. */
typedef struct fg_memories {
  fg_memory *memory;
  int n;
  int n_candidates;
  fg_verdict *verdict; /* by candidate; NULL: no line was read */
} fg_memories;

/* Adds what a text says. source: the place of the text among all, from 0. FG_EMEMORY. */
fg_status fg_memories_read(const fg_question *question, const fg_wisdom_index *text, int source,
                           fg_memories *memories);
void fg_memories_free(fg_memories *memories);

/* The times of the measured class that is nearest to a shape. */
typedef struct fg_recalled {
  const fg_shape *shape; /* one of that class; NULL: no class is near, and nothing else is set */
  int distance;          /* fg_shape_distance; 0: the shape's own class */
  double *ratio;         /* by candidate: its time to the best candidate's; 0: not measured */
  double *ms;            /* by candidate: at `shape`, or at another one of the class */
  const char *device;    /* that was measured: the model of a near one; "": this one */
} fg_recalled;

/* The times of the candidates that are not closed (`closed` has n_candidates members): times of
 * this device if a class of them is near, else of a near device. Free with fg_recalled_free, also
 * after a failure. FG_EMEMORY. */
fg_status fg_memories_recall(const fg_memories *memories, const fg_shape *shape, const bool *closed,
                             fg_recalled *recalled);
void fg_recalled_free(fg_recalled *recalled);

#endif
