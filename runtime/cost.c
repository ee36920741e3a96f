/* cost.c - the cost model. */
#include "cost.h"

#include "launch.h"

#include <string.h>

/* KB of shared memory of a multiprocessor (CUDA programming guide, table of compute capabilities).
 */
static int shared_kb(const char *arch) {
  static const struct {
    const char *arch;
    int kb;
  } table[] = {{"sm_80", 164}, {"sm_86", 100}, {"sm_87", 164}, {"sm_89", 100}, {"sm_120", 100}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strncmp(arch, table[i].arch, strlen(table[i].arch))) return table[i].kb;
  return 228;
}

/* A first model: waves of blocks over the multiprocessors, each as long as the blocks that share a
 * multiprocessor take one after another. It knows no clocks: it ranks. A block has 1 KB of shared
 * memory beside its own; a multiprocessor of sm_80 and newer 2048 threads and 64 K registers. */
static int resident_blocks(const fg_step *step, const char *arch) {
  enum { THREADS = 2048, REGISTERS = 64 << 10, BLOCKS = 32 };
  int blocks[] = {THREADS / step->threads, (shared_kb(arch) << 10) / (step->shared_bytes + 1024),
                  REGISTERS / (step->threads * step->registers)};
  int least = BLOCKS;
  for (int i = 0; i < 3; i++)
    if (blocks[i] < least) least = blocks[i];
  return least > 1 ? least : 1;
}

static double step_cost(const fg_step *step, const fg_shape *shape, const char *arch,
                        int multiprocessors) {
  uint32_t grid[3];
  int64_t work;
  bool empty;
  if (step->kind != FG_STEP_LAUNCH || fg_step_grid(step, shape, grid, &empty) != FG_OK || empty ||
      fg_expr_eval(&step->work, shape, &work) != FG_OK)
    return 0;
  int resident = resident_blocks(step, arch), warps = resident * step->threads / 32;
  double blocks = (double)grid[0] * grid[1] * grid[2];
  double waves = blocks / ((double)multiprocessors * resident);
  double busy = warps / (warps + 1.0); /* 8 warps hide 1.1 times what 4 do */
  return (waves > 1 ? waves : 1) * resident * (double)work / busy;
}

double fg_cost(const fg_recipe *recipe, const fg_shape *shape, const char *arch,
               int multiprocessors) {
  double sum = 0;
  for (int i = 0; i < recipe->n_steps; i++)
    sum += step_cost(&recipe->step[i], shape, arch, multiprocessors);
  return sum;
}
