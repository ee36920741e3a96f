/* run.h - what the two halves of `flashgen run` share: the job, and its files. */
#ifndef FG_RUN_H
#define FG_RUN_H

#include "cli.h"

#include "recipe/extent.h"
#include "reference/npy.h"

/* Axes are known by their letters: extents of a launch and widths of kinds. */
enum { RUN_LETTERS = 128 };

enum { RUN_EXTRA = 2 * FG_INPUT_SLOTS + 1, RUN_TENSORS = FG_ARGUMENTS + RUN_EXTRA };

typedef struct run_job {
  const cli *c;
  fg_context *context;
  fg_array file[RUN_TENSORS];          /* what --in gave; rank 0 and no data where it did not */
  float *value[RUN_TENSORS];           /* of a tensor that was computed */
  char extra[RUN_EXTRA][FG_NAME_SIZE]; /* names of the tensors behind FG_ARGUMENTS: of inputs */
  int n_extra;
  const fg_kind *kind; /* of the spec */
  fg_layout layout;
  const char *normalizer;        /* of the spec; NULL: softmax */
  const char *epilogue;          /* of the spec; NULL: none */
  int dropout;                   /* of its sequences */
  int64_t extent[RUN_LETTERS];   /* by letter; -1: not known yet */
  const char *from[RUN_LETTERS]; /* the tensor that said so */
  fg_shape shape;
  fg_grid *grid;
} run_job;

/* The row of fg_arguments, -1 if the kind has no tensor of that name. */
int run_index(const run_job *job, const char *name);

/* The tensor of that name; inputs of the spec and their gradients get a place when first named. */
int run_tensor(run_job *job, const char *name);

/* Is the tensor of that name known, from a file or computed? */
int run_knows(run_job *job, const char *name);

/* Reads the files of --in; they and the words give all extents and the shape. */
fg_status run_read(run_job *job);

/* The places and lengths of sequences that files give lie within the tensors: starts do not fall,
 * and no more rows count than there are. */
fg_status run_check_lengths(run_job *job);

/* Every tensor that was given is an input of the recipe, or of the one that runs before it (NULL:
 * none does), and of its type; every one asked for is an output. */
fg_status run_check_names(run_job *job, const fg_recipe *recipe, const fg_recipe *before);

/* What would fail after the run, said before it: two outputs in one file, and a place where no file
 * can be made. */
fg_status run_check_places(const run_job *job);

/* Writes the files of --out: all of them, or none. */
fg_status run_write(run_job *job, const fg_recipe *recipe);

/* run_mask.c: is the output the mask of the spec's dropout, of no kernel? FG_EARGUMENT unless its
 * sequences are dense. */
bool run_is_mask(const run_job *j, const char *name);
fg_status run_mask_check(const run_job *j);
/* given: the words of a file, NULL: of the command line. Its extents [b, h, nq, nk], and 1 where a
 * weight is kept, 0 where it is dropped; the caller's to free. */
fg_status run_mask_new(const run_job *j, const int64_t *given, int64_t extent[FG_AXES_MAX],
                       float **mask);

#endif
