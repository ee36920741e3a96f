/* measure.c - tensors that launches are timed with, and what the times are of. */
#include "measure.h"

#include "lengths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Twice the L2 cache of an H200, and more sets than launches are of no use. */
enum { CACHES = 128 << 20, SETS = CLI_WARM_UPS + CLI_LAUNCHES };

bool cli_leaves_out(const cli *c, const char *tensor) {
  const size_t n = strlen(tensor);
  for (const char *at = c->without; at && *at; at += strcspn(at, ","), at += *at == ',')
    if (strcspn(at, ",") == n && !strncmp(at, tensor, n)) return true;
  return false;
}

/* Filling ---------------------------------------------------------------------------------- */

/* Prime, so that no axis of a power of 2 repeats with it. */
enum { PERIOD = 1000003 };

static float normal(uint64_t *state) {
  float sum = 0; /* of 4 uniform numbers: near enough */
  for (int u = 0; u < 4; u++) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    sum += (float)(*state >> 40) * 0x1p-24f - 0.5f;
  }
  return 1.7320508f * sum;
}

/* Are there caches, which the launch adds rows to? */
static bool adds_rows(const fg_recipe *r) {
  bool adds = false;
  for (int i = 0; i < r->n_tensors; i++) adds |= r->tensor[i].kept;
  return adds;
}

/* Keys that a cache has before the new rows. */
static int64_t before(const cli_lengths *lengths, int64_t i) {
  return lengths->k[i] > lengths->q[i] ? lengths->k[i] - lengths->q[i] : 0;
}

/* Integers of a tensor: of an input that a spec declares documents of 1024 tokens; where sequences
 * are as lengths.h has it, a cache of their own for each, without the new rows where rows are added
 * to it. words: seed and offset of dropout. */
static void fill_ints(const fg_problem *p, int tensor, const cli_lengths *lengths,
                      const int64_t *words, int64_t *values) {
  const fg_shape *s = &p->shape;
  const fg_recipe_tensor *t = &p->recipe->tensor[tensor];
  const int64_t n = fg_problem_count(p, tensor);
  const bool is_q = t->name[strlen(t->name) - 1] == 'q', adds = adds_rows(p->recipe);
  const int64_t *length = is_q ? lengths->q : lengths->k;
  if (t->argument->elem == FG_RULE_WORDS) {
    memcpy(values, words, (size_t)n * sizeof *values);
    return;
  }
  if (t->slot < 0 && !strcmp(t->name, "table")) {
    cli_lengths_table(lengths, s, values);
    return;
  }
  if (t->slot < 0 && !strcmp(t->axes, "la")) { /* slices side by side */
    const int64_t *tokens = *t->name == 'q' ? lengths->q : lengths->k;
    for (int64_t i = 0; i < n; i++)
      values[i] = (i ? values[i - 1] : 0) + (i % 2 ? tokens[i / 2] : 0);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    if (t->slot >= 0)
      values[i] = i / 1024;
    else if (*t->axes == 'c')
      values[i] = i ? values[i - 1] + length[i - 1] : 0;
    else if (!strncmp(t->name, "used_", 5))
      values[i] = adds && !is_q ? before(lengths, i) : length[i];
    else if (t->argument->elem == FG_RULE_COLUMN)
      values[i] = i * 7919 % p->recipe->width[0];
    else if (!strcmp(t->name, "rows"))
      values[i] = i % (s->pages ? s->pages : s->b);
    else if (!strcmp(t->name, "row_positions"))
      values[i] = s->positions ? i % s->positions : 0;
    else if (!strncmp(t->name, "whole_", 6)) /* the launch has all of a sequence */
      values[i] = length[i];
    else
      values[i] = 0; /* first_k, kinds, pos_q, pos_k */
  }
}

/* Zeros would run faster than real data. */
static fg_status fill(fg_problem *p, int tensor, uint64_t *state) {
  const bool is_descale = p->recipe->tensor[tensor].argument->elem == FG_RULE_DESCALE;
  const fg_elem elem = p->recipe->tensor[tensor].elem;
  const size_t n = (size_t)fg_problem_count(p, tensor), size = fg_elem_size(elem);
  const size_t period = n > PERIOD ? PERIOD : n;
  char *bytes = p->staged[tensor];
  if (!n) return FG_OK;
  for (size_t i = 0; i < period; i++) {
    const float x = normal(state);
    fg_elem_store(elem, bytes, (int64_t)i, is_descale ? 0.5F + 0.1F * fabsf(x) : x);
  }
  for (size_t at = period * size; at < n * size; at += period * size)
    memcpy(bytes + at, bytes, n * size - at < period * size ? n * size - at : period * size);
  return p->device->class->upload(p->device, p->buffer[tensor], bytes, n * size);
}

static fg_status fill_places(fg_problem *p, int tensor, const int64_t *words) {
  const int64_t n = fg_problem_count(p, tensor);
  cli_lengths lengths;
  int64_t *values = malloc(((size_t)n + 1) * sizeof *values);
  if (!values) return fg_fail(FG_EMEMORY, "no memory for integers");
  fg_status status = cli_lengths_new(p->recipe->layout, &p->shape, &lengths);
  if (status == FG_OK) {
    fill_ints(p, tensor, &lengths, words, values);
    cli_lengths_free(&lengths);
    status = fg_problem_set_ints(p, tensor, values);
  }
  free(values);
  return status;
}

static fg_status add_set(const cli *c, const fg_shape *shape, uint64_t seed, cli_tensors *t) {
  fg_problem *p;
  uint64_t state = seed * 2 + 1;
  TRY(fg_problem_new(t->device, &t->recipe, shape, 0, 1, &p));
  fg_args *args = &t->args[t->n];
  t->problem[t->n++] = p;
  fg_launch_values launch = c->arguments.launch;
  fg_launch_values_fill(&t->recipe, 0, &launch);
  cli_numbers_set(c, p);
  fg_launch_values_give(&launch, &p->args);
  for (int i = 0; i < t->recipe.n_tensors; i++) {
    const fg_recipe_tensor *tensor = &t->recipe.tensor[i];
    if (cli_leaves_out(c, tensor->name)) {
      fg_problem_drop(p, i);
      continue;
    }
    if (tensor->output && !tensor->kept) continue;
    TRY(tensor->elem == FG_ELEM_I32 ? fill_places(p, i, c->arguments.words) : fill(p, i, &state));
  }
  *args = p->args;
  return FG_OK;
}

static fg_status new_tensors(const cli *c, const fg_shape *shape, cli_tensors *t) {
  const uint64_t seed = c->seed >= 0 ? (uint64_t)c->seed : 1;
  double bytes = 0;
  for (int i = 0; i < t->recipe.n_tensors; i++)
    bytes += (double)fg_tensor_count(&t->recipe, &t->recipe.tensor[i], shape) *
             (double)fg_elem_size(t->recipe.tensor[i].elem);
  double wanted = bytes > 0 ? CACHES / bytes + 1 : 1;
  int sets = fg_arch_is_host(t->device->arch) ? 1 : wanted > SETS ? SETS : (int)wanted;
  t->problem = calloc((size_t)sets, sizeof(fg_problem *));
  t->args = calloc((size_t)sets, sizeof *t->args);
  if (!t->problem || !t->args) return fg_fail(FG_EMEMORY, "no memory for %d sets of tensors", sets);
  while (t->n < sets) TRY(add_set(c, shape, seed + (uint64_t)t->n, t));
  return FG_OK;
}

fg_status cli_tensors_new(const cli *c, fg_device *device, const fg_recipe *recipe,
                          const fg_shape *shape, cli_tensors **tensors) {
  cli_tensors *t = calloc(1, sizeof *t);
  if (!t) return fg_fail(FG_EMEMORY, "no memory for tensors");
  t->device = device, t->recipe = *recipe;
  t->recipe.n_regions = 0;
  fg_status status = new_tensors(c, shape, t);
  if (status == FG_OK)
    *tensors = t;
  else
    cli_tensors_free(t);
  return status;
}

void cli_tensors_free(cli_tensors *t) {
  if (!t) return;
  for (int i = 0; i < t->n; i++) fg_problem_free(t->problem[i]);
  free(t->problem);
  free(t->args);
  free(t);
}

/* Timing ----------------------------------------------------------------------------------- */

fg_status cli_time(const cli_tensors *t, const fg_kernel *kernel, int warm_ups, int launches,
                   bool pause, double *ms) {
  const fg_shape *shape = &t->problem[0]->shape;
  fg_timing timing = {t->args, t->n, NULL, warm_ups, launches, pause};
  int64_t bytes;
  TRY(fg_workspace_size(fg_kernel_recipe(kernel), shape, &bytes));
  if (bytes) TRY(t->device->class->allocate(t->device, (size_t)bytes, &timing.workspace));
  fg_status status = fg_module_time(fg_kernel_module(kernel), shape, &timing, ms);
  if (bytes) t->device->class->release(t->device, timing.workspace, (size_t)bytes);
  return status;
}

/* Poison ----------------------------------------------------------------------------------- */

/* Is each element of the tensor written? */
static bool is_written(const fg_recipe_tensor *t) { return t->output && !t->kept; }

/* Runs of bytes all over an output, its ends among them; of the first set, which is launched with
 * in any protocol. */
enum { SAMPLES = 64, SAMPLE = 256 };

static size_t sample_place(size_t bytes, int i, size_t *n) {
  *n = bytes < SAMPLE ? bytes : SAMPLE;
  return (size_t)((double)(bytes - *n) * i / (SAMPLES - 1)) / 16 * 16;
}

fg_status cli_poison(cli_tensors *t) {
  char poison[SAMPLE];
  memset(poison, 0xff, sizeof poison); /* NaN in every dtype */
  const fg_problem *p = t->problem[0];
  for (int i = 0; i < t->recipe.n_tensors; i++)
    for (int x = 0; x < SAMPLES && is_written(&t->recipe.tensor[i]) && p->bytes[i]; x++) {
      size_t n, at = sample_place(p->bytes[i], x, &n);
      TRY(t->device->class->upload(t->device, (char *)p->buffer[i] + at, poison, n));
    }
  return FG_OK;
}

static bool is_poison(const char *bytes, size_t n, size_t elem) {
  for (size_t at = 0; at + elem <= n; at += elem) {
    size_t b = 0;
    while (b < elem && (unsigned char)bytes[at + b] == 0xff) b++;
    if (b == elem) return true;
  }
  return false;
}

fg_status cli_poison_gone(cli_tensors *t) {
  const fg_problem *p = t->problem[0];
  for (int i = 0; i < t->recipe.n_tensors; i++)
    for (int x = 0; x < SAMPLES && is_written(&t->recipe.tensor[i]) && p->bytes[i]; x++) {
      char bytes[SAMPLE];
      size_t n, at = sample_place(p->bytes[i], x, &n);
      TRY(t->device->class->download(t->device, bytes, (char *)p->buffer[i] + at, n));
      if (is_poison(bytes, n, fg_elem_size(t->recipe.tensor[i].elem)))
        return fg_fail(FG_ETEMPLATE, "%s: elements near byte %zu were not written",
                       t->recipe.tensor[i].name, at);
    }
  return FG_OK;
}
