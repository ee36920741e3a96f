/* measure.h - how long a kernel takes: what `bench`, `tune` and `report` share. */
#ifndef FG_MEASURE_H
#define FG_MEASURE_H

#include "cli.h"

#include "reference/problem.h"

/* The protocol: launches to warm up, launches that are timed. The host device runs a model, whose
 * times mean little. */
enum { CLI_WARM_UPS = 5, CLI_LAUNCHES = 20, CLI_HOST_LAUNCHES = 3 };

/* Tensors of a spec's launches, the same for all its plans: sets of them, as many as it takes that
 * a launch finds nothing in a cache that an earlier one left there. */
typedef struct cli_tensors {
  fg_device *device;
  fg_recipe recipe; /* of one of the plans, without workspace */
  fg_problem **problem;
  fg_args *args; /* of each */
  int n;
} cli_tensors;

/* Inputs are normal numbers of the command line's seed; its scale and numbers are set, and what
 * --without names is NULL. FG_ECUDA: there is no memory for them. */
fg_status cli_tensors_new(const cli *c, fg_device *device, const fg_recipe *recipe,
                          const fg_shape *shape, cli_tensors **tensors);
void cli_tensors_free(cli_tensors *tensors);

/* The median of the launches, in ms, after as many warm-ups. */
fg_status cli_time(const cli_tensors *tensors, const fg_kernel *kernel, int warm_ups, int launches,
                   bool pause, double *ms);

/* Spoils samples of the outputs; after launches FG_ETEMPLATE names an output that was not written.
 */
fg_status cli_poison(cli_tensors *tensors);
fg_status cli_poison_gone(cli_tensors *tensors);

/* What a GPU reaches: a bf16 matrix product of 8192^3 by cuBLAS in TFLOP/s, a copy on the device in
 * TB/s, counting bytes read and written; and where that was measured. */
typedef struct cli_rates {
  const char *gpu;
  double matrix, copy;
  const char *source;
} cli_rates;
/* The rates of a device's model; NULL: not known. */
const cli_rates *cli_rates_of(const char *model);

/* Operations of a launch: 2 products of 2 a visible pair and column forward, 2.5 times that
 * backward. Of a mask that reads a tensor, or a number that no word sets, all pairs count as
 * visible: they are not known. */
double cli_flops(const cli *c, const fg_point *point, const fg_shape *shape);
bool cli_flops_known(const cli *c, const fg_point *point);

/* Does --without name the tensor? */
bool cli_leaves_out(const cli *c, const char *tensor);

/* Bytes of a launch's tensors, each once, without those that are NULL and, where the mask tells, the
 * keys that no row sees: the least that memory has to move. */
double cli_bytes(const cli *c, const fg_point *point, const fg_recipe *recipe,
                 const fg_shape *shape);

#endif
