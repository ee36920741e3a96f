/* problem.h - one launch with its tensors: a device's buffers for every argument of a recipe,
 * filled from and read as float arrays, or filled from integers.
 *
 * On the host device a buffer lies between guard pages; with padding, its rows and heads lie apart,
 * so that strides are not the contiguous ones and the gaps between them are out of bounds. Outputs
 * start as NaN. */
#ifndef FG_PROBLEM_H
#define FG_PROBLEM_H

#include "device/device.h"

typedef struct fg_problem {
  fg_device *device;
  const fg_recipe *recipe;
  fg_shape shape;
  fg_args args; /* points into the buffers and to `input`; scale is the caller's to set */
  fg_input_value input[FG_INPUT_SLOTS]; /* numbers are the caller's to set */
  void *buffer[FG_TENSOR_MAX], *workspace;
  char *staged[FG_TENSOR_MAX]; /* the host's copy of each buffer */
  size_t bytes[FG_TENSOR_MAX], workspace_bytes;
  bool far[FG_TENSOR_MAX];    /* staged is the buffer itself */
  bool shares[FG_TENSOR_MAX]; /* its buffer is that of a tensor before it, which has its place */
} fg_problem;

/* padding: 0, or the most elements that a stride exceeds its contiguous value by; FG_PROBLEM_FAR,
 * on the host device alone: rows, heads and batches lie so far apart that offsets along each exceed
 * 2^33 elements, in memory that is mapped and but for the rows not touched. FG_EMEMORY where there
 * are no addresses for that. */
enum { FG_PROBLEM_FAR = -1 };
fg_status fg_problem_new(fg_device *device, const fg_recipe *recipe, const fg_shape *shape,
                         int padding, uint64_t seed, fg_problem **problem);
void fg_problem_free(fg_problem *problem);

/* The index of the tensor of that name in the recipe, -1 if it takes none. */
int fg_problem_find(const fg_problem *problem, const char *name);
int64_t fg_problem_count(const fg_problem *problem, int tensor);

/* Fills tensor i from row-major values in the storage order of its axes, rounded to its dtype.
 * FG_EARGUMENT when a finite value overflows it. */
fg_status fg_problem_set(fg_problem *problem, int tensor, const float *values);
/* The same of a tensor of i32; FG_EARGUMENT for a value of more bits. */
fg_status fg_problem_set_ints(fg_problem *problem, int tensor, const int64_t *values);
/* Reads it back in the same order. */
fg_status fg_problem_get(const fg_problem *problem, int tensor, float *values);
fg_status fg_problem_get_ints(const fg_problem *problem, int tensor, int64_t *values);
/* Makes room for the scratch of the problem's shape, where it has become another. */
fg_status fg_problem_room(fg_problem *problem);
/* Launches the module, which was made from the recipe's source, and waits for it. */
fg_status fg_problem_run(fg_problem *problem, fg_module *module);

/* An optional tensor that is not given. */
void fg_problem_drop(fg_problem *problem, int tensor);

#endif
