/* t_layout.c - strides: whatever the layout of the tensors, the bits are those of the contiguous
 * one. */
#include "launch_case.h"

#include <stdlib.h>

static const fg_shape shape = {.b = 2, .h = 4, .hk = 2, .nq = 21, .nk = 45};
static const char words[] =
    "pass=forward,backward head_dim=40/24 mask=causal bias=grad bias_dims=[b,h,q,k] "
    "deterministic=true";

/* One layout of all tensors: the axes' order, slowest first, and the least elements between them:
 * more where the kernel wants its tensors aligned. */
typedef struct layout {
  const char *axes;
  int gap;
} layout;

static const layout layouts[] = {{"bhnd", 0}, {"nbhd", 0},  {"hbnd", 0}, {"bnhd", 1},
                                 {"bnhd", 7}, {"bhnd", 17}, {"nhbd", 3}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static void lay_out_all(launch *l, layout how) {
  const fg_recipe *r = l->problem->recipe;
  for (int i = 0; i < r->n_tensors; i++) {
    const fg_argument *a = r->tensor[i].argument;
    int gap = how.gap ? how.gap + i : 0;
    int step = (int)(fg_tensor_align(r, &r->tensor[i]) / fg_elem_size(r->tensor[i].elem));
    if (!a->contiguous) launch_layout(l, a->name, how.axes, (gap + step - 1) / step * step);
  }
}

TEST_TENTH(test_layout, LAYOUTS) {
  kernels made = kernels_some(_i, "%s", words);
  for (int i = 0; i < made.n; i++) {
    launch a = launch_new(&made.list[i], shape, 1), b = launch_new(&made.list[i], shape, 1);
    lay_out_all(&b, layouts[_i]);
    launch_run(&a, 1);
    launch_run(&b, 1);
    launch_same_outputs(&a, &b);
    launch_free(&a);
    launch_free(&b);
  }
  kernels_free(&made);
}

/* Inputs along which an axis has stride 0 are as if what is there were repeated. */
static const struct {
  const char *name, *axes;
} broadcasts[] = {{"k", "bnd"}, {"v", "bnd"},    {"k", "nhd"},   {"q", "bnd"},
                  {"v", "d"},   {"bias", "hnd"}, {"bias", "bhd"}};
enum { BROADCASTS = sizeof broadcasts / sizeof *broadcasts };

TEST_TENTH(test_broadcast, BROADCASTS) {
  const char *name = broadcasts[_i].name;
  kernels made = kernels_some(_i, "%s", words);
  for (int i = 0; i < made.n; i++) {
    launch a = launch_new(&made.list[i], shape, 2), b = launch_new(&made.list[i], shape, 2);
    launch_layout(&b, name, broadcasts[_i].axes, 0);
    float *repeated = launch_get(&b, name);
    launch_set(&a, name, repeated);
    free(repeated);
    launch_run(&a, 1);
    launch_run(&b, 1);
    launch_same_outputs(&a, &b);
    launch_free(&a);
    launch_free(&b);
  }
  kernels_free(&made);
}

/* Two inputs may be one tensor: keys that are their own values. */
TEST_TENTH(test_shared, 1) {
  kernels made = kernels_new("head_dim=40");
  for (int i = 0; i < made.n; i++) {
    launch a = launch_new(&made.list[i], shape, 3), b = launch_new(&made.list[i], shape, 3);
    float *k = launch_get(&a, "k");
    launch_set(&a, "v", k);
    b.problem->args.v = b.problem->args.k;
    free(k);
    launch_run(&a, 1);
    launch_run(&b, 1);
    launch_same_outputs(&a, &b);
    launch_free(&a);
    launch_free(&b);
  }
  kernels_free(&made);
}

/* Every tensor out of line on its own, by its address and by its strides: those of the spec's dtype
 * are refused by name where the kernel copies 16 bytes at a time, all others are of no consequence.
 */
TEST_TENTH(test_out_of_line, 3) {
  kernels made = kernels_some(_i, "%s family=mma", words);
  for (int i = 0; i < made.n; i++) {
    launch a = launch_new(&made.list[i], shape, 4);
    const fg_recipe *r = a.problem->recipe;
    launch_run(&a, 1);
    for (int t = 0; t < r->n_tensors; t++) {
      const fg_argument *argument = r->tensor[t].argument;
      if (argument->contiguous) continue;
      launch b = launch_new(&made.list[i], shape, 4);
      launch_layout(&b, argument->name, "bnhd", 3);
      if (fg_tensor_aligned(&r->tensor[t])) {
        launch_refused(&b, argument->name, "elements is not a multiple of 16 bytes");
      } else {
        launch_run(&b, 1);
        launch_same_outputs(&a, &b);
      }
      launch_free(&b);
    }
    launch_free(&a);
  }
  kernels_free(&made);
}
