/* tune.h - what the parts of `flashgen tune` share: tune.c (the command), tune_grid.c (what there
 * is to measure), tune_measure.c (measuring a cell, in a process of the device's own).
 *
 * The program itself never touches the CUDA driver, which would not survive a fork: devices are
 * asked for, kernels compiled and cells measured by worker processes. */
#ifndef FG_TUNE_H
#define FG_TUNE_H

#include "measure.h"

enum { TUNE_DEVICES = 16 };

/* A plan of a point, as the compiler left it. */
typedef struct tune_plan {
  fg_variant variant;
  char name[FG_NAME_MAX];
  bool needed;  /* by a cell */
  bool skipped; /* not compiled: the budget, or an interrupt */
  bool failed;
  int generation;
  double compile; /* seconds; 0: the cache had it */
  char reason[FG_REASON_MAX];
} tune_plan;

/* A point at a shape. */
typedef struct tune_cell {
  int point, first, n; /* its plans */
  fg_shape shape;
  bool again; /* not finished: its process had to end */
  int rounds;
} tune_cell;

typedef struct tune_device {
  char name[16], arch[FG_ARCH_MAX], model[FG_MODEL_MAX];
  int multiprocessors;
} tune_device;

typedef struct tune {
  const cli *c;
  char wisdom[4096]; /* the file */
  fg_gen *gen;
  fg_grid *grid;
  tune_device device[TUNE_DEVICES];
  int n_devices;
  tune_plan *plan;
  tune_cell *cell;
  int n_plans, n_cells, left_out;
  double start, deadline; /* 0: none */
  int64_t began;          /* seconds since 1970 */
} tune;

/* Seconds of a clock that only goes forward; whether there is time to begin something. */
double tune_now(void);
bool tune_is_late(const tune *t, double share);

/* Points, plans and cells, the most important shapes first: those that come first in the file, for
 * every spec. The devices are known. */
fg_status tune_grid_read(tune *t);
void tune_grid_free(tune *t);

/* Compiles the plans that cells need; those that the budget or an interrupt left out are `skipped`.
 * A failure is the machine's. */
fg_status tune_compile(tune *t);

/* What came of a cell. */
typedef struct tune_outcome {
  fg_status status; /* of the cell, or of the machine: tune_ends() */
  char text[1024];
  bool interrupted, late, again;
  int fault; /* index of the plan that broke the device, if `again`, */
  bool hung; /* or whose launch did not end */
  int measured, slow, wrong, refused, broken, known;
  char best[FG_NAME_MAX];
  double ms;
} tune_outcome;

/* Jobs of a pool: of device i, of plan i, of cell i. */
void tune_measure_start(void *t, int worker);
void tune_measure(void *t, int cell, void *outcome);
/* Must the process end, since its device can do nothing any more? */
int tune_measure_spent(void *t);

/* The record of a plan at a shape, as far as it is known before it is measured. */
void tune_record(const tune *t, const tune_plan *plan, const fg_shape *shape, fg_measured *m);

#endif
