/* launch_case.h - single launches whose inputs, layouts and outputs a test has in hand.
 *
 * Tensors are known by name; their values are float arrays, row-major in the storage order of the
 * axes: [b, n, h, d], bias and dbias [b|1, h|1, nq|1, nk|1], lse and dlse [b, h, nq]. */
#ifndef FG_TESTS_LAUNCH_CASE_H
#define FG_TESTS_LAUNCH_CASE_H

#include "kernel_case.h"
#include "reference/problem.h"

typedef struct launch {
  const kernel *kernel;
  fg_problem *problem;
} launch;

/* Contiguous tensors; inputs are drawn from normal numbers: equal `draw`, equal values, whatever
 * the kernel and the layout. */
launch launch_new(const kernel *k, fg_shape shape, uint64_t draw);
void launch_free(launch *l);

int launch_has(const launch *l, const char *name);
int64_t launch_count(const launch *l, const char *name);
/* The caller's to free. */
float *launch_get(const launch *l, const char *name);
void launch_set(const launch *l, const char *name, const float *values);
void launch_fill(const launch *l, const char *name, float value);
/* Of a tensor of integers; one that the kernel has not is left out. */
void launch_set_ints(const launch *l, const char *name, const int64_t *values);
/* The kernel is launched without the optional tensor. */
void launch_drop(const launch *l, const char *name);

/* Lays the tensor out anew, keeping its values: axes from the slowest to the fastest, by letters of
 * b h n d, each `gap` elements further apart than it need be; an axis left out has stride 0. */
void launch_layout(launch *l, const char *name, const char *axes, int gap);

void launch_run(launch *l, uint64_t seed);

/* The seed of the host device's nth order of threads: any, but of a kernel that leaves parts of
 * rows in memory, whose bits depend on how many blocks share the keys, one with as many blocks. */
uint64_t launch_order(const launch *l, int n);

/* The launch is refused as FG_EARGUMENT, in a sentence of this tensor that ends so. */
void launch_refused(launch *l, const char *tensor, const char *end);

/* Gives a backward launch the o and lse of this forward kernel on its own inputs and layout. */
void launch_take_forward(launch *backward, const kernel *forward);

/* All outputs become NaN. */
void launch_poison(const launch *l);

/* The tensor, or all outputs, have the same bits. */
void launch_same(const launch *a, const launch *b, const char *name);
void launch_same_outputs(const launch *a, const launch *b);
/* Two launches of equal inputs give all outputs the same bits. */
void launch_repeats(const kernel *k, fg_shape shape, uint64_t draw);

/* ||a - b|| / ||b|| of the tensor. */
double launch_difference(const launch *a, const launch *b, const char *name);

/* Has an output the same bits in equal launches? Sums of dQ and of inputs' gradients have an order
 * only where the spec is deterministic. */
bool launch_promised(const launch *l, const char *name);

/* The outputs are as equal as is promised: the same bits, or the same but for the order of sums. */
void launch_same_as_promised(const launch *a, const launch *b);

#endif
