/* cost.c - the cost model. */
#include "cost.h"

#include "launch.h"
#include "recipe/arch.h"
#include "shape.h"

#include <math.h>
#include <string.h>

const fg_cost_terms fg_cost_plain = {.scale = 1000, .hide = 1000};

int fg_cost_width(const fg_point *point) {
  const int width = point->d > point->dv ? point->d : point->dv;
  return width <= 64 ? 0 : width <= 128 ? 1 : 2;
}

static bool is_of(const fg_variant *v, const char *kernel, int pass) {
  return v->point.pass == pass && !strcmp(fg_point_kind(&v->point)->name, kernel);
}

/* The fitted row of the variant's kind, family and pass, or NULL. */
static const fg_cost_family *find_family(const fg_variant *v) {
  const char *name = fg_plan_family(&v->plan);
  for (const fg_cost_family *row = fg_cost_families; row->name; row++)
    if (is_of(v, row->kernel, row->pass) && !strcmp(row->name, name)) return row;
  return NULL;
}

/* The fitted row of the variant's kind, plan and pass, or NULL. */
static const fg_cost_plan *find_plan(const fg_variant *v) {
  char name[64];
  fg_plan_name(&v->plan, sizeof name, name);
  for (const fg_cost_plan *row = fg_cost_plans; row->name; row++)
    if (is_of(v, row->kernel, row->pass) && !strcmp(row->name, name)) return row;
  return NULL;
}

/* The scale is that of the plan's row where it was measured at this width of heads, else that of
 * its family's row. */
fg_cost_terms fg_cost_terms_of(const fg_variant *v) {
  const fg_cost_family *family = fg_arch_is_host(v->arch) ? NULL : find_family(v);
  if (!family) return fg_cost_plain;
  fg_cost_terms terms = family->terms;
  const fg_cost_plan *plan = find_plan(v);
  const int scale = plan ? plan->scale[fg_cost_width(&v->point)] : 0;
  if (scale) terms.scale = scale;
  return terms;
}

/* KB of shared memory of a multiprocessor. A line of wisdom may name an arch that is not known any
 * more; it counts as the first one. */
static int shared_kb(const char *arch) {
  const fg_arch *row = fg_arch_find(arch);
  return row ? row->shared_kb : fg_archs[0].shared_kb;
}

/* The blocks of a step that run on one multiprocessor at a time, 1 at least. The driver takes 1 KB
 * of shared memory for each block besides its own; a multiprocessor of sm_80 and newer has 2048
 * threads and 64 K registers. */
static int resident_blocks(const fg_step *step, const char *arch) {
  enum { THREADS = 2048, REGISTERS = 64 << 10, BLOCKS = 32 };
  int blocks[] = {THREADS / step->threads, (shared_kb(arch) << 10) / (step->shared_bytes + 1024),
                  REGISTERS / (step->threads * step->registers)};
  int least = BLOCKS;
  for (int i = 0; i < 3; i++)
    if (blocks[i] < least) least = blocks[i];
  return least > 1 ? least : 1;
}

/* The time of one launch, in units of its family's work; 0: nothing is launched. The model is waves
 * of blocks over the multiprocessors; a wave lasts as long as the blocks that share a
 * multiprocessor take one after another. The constants are fitted to measurements
 * (cost_table.c). */
static double step_cost(const fg_step *step, const fg_cost_terms *terms, const fg_shape *shape,
                        const char *arch, int multiprocessors) {
  uint32_t grid[3];
  int64_t work;
  bool empty;
  const fg_shape typical = fg_shape_typical(shape);
  if (step->kind != FG_STEP_LAUNCH || fg_step_grid(step, shape, grid, &empty) != FG_OK || empty ||
      fg_expr_eval(&step->work, &typical, &work) != FG_OK)
    return 0;
  const double blocks = (double)grid[0] * grid[1] * grid[2];
  const double each = ceil(blocks / multiprocessors); /* blocks of the busiest multiprocessor */
  double resident = resident_blocks(step, arch);
  if (each < resident) resident = each;
  const double warps = resident * step->threads / 32, waves = blocks / (multiprocessors * resident);
  const double rest = ceil(waves) - waves, length = fmax(1, waves + terms->tail / 1e3 * rest);
  const double busy = warps / (warps + terms->hide / 1e3); /* share of the full speed */
  return length * resident * ((double)work + terms->block) / busy;
}

/* Steps run one after another, so that their costs add. */
double fg_cost(const fg_recipe *recipe, const fg_cost_terms *terms, const fg_shape *shape,
               const char *arch, int multiprocessors) {
  enum { H100 = 132 }; /* the host device is no GPU, and ranks plans as an H100 does */
  double sum = 0;
  if (fg_arch_is_host(arch)) multiprocessors = H100;
  for (int i = 0; i < recipe->n_steps; i++)
    sum += step_cost(&recipe->step[i], terms, shape, arch, multiprocessors);
  return sum * terms->scale / 1e3;
}
