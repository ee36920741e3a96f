/* hopper_case.h - small kernels of a test's own, with tensor maps, clusters and all that a recipe
 * may have, in the place of the simplest family's. For use with the fixture of templates.h.
 *
 * A kernel is the text of a template and a Lua table, `case`, which the template sees as a global
 * and whose fields fill the recipe: maps (a list), threads (128), shared (bytes, 1024), grid ("1"),
 * cluster, early, words (a text: so many words of the workspace, p.words, that are 0 at the
 * launch). Its tensors are q, k, v, o and lse of one head. */
#ifndef FG_TESTS_HOPPER_CASE_H
#define FG_TESTS_HOPPER_CASE_H

#include "kernel_case.h"
#include "reference/problem.h"

typedef struct hopper {
  kernels made;
  fg_problem *problem;
} hopper;

/* Makes it for a head dim and a type ("bf16", "f16"), with tensors for the shape. */
hopper hopper_new(const char *which, const char *text, const char *type, int d, fg_shape shape);
void hopper_free(hopper *h);

/* Tensors as arrays of floats, in the order of [b, n, h, d]. */
void hopper_set(const hopper *h, const char *tensor, const float *values);
void hopper_get(const hopper *h, const char *tensor, float *values);

void hopper_run(const hopper *h);

/* Small integers: every sum is exact, in any order. */
void hopper_fill(float *x, int n);

#endif
