/* launch_case.c - single launches. */
#include "launch_case.h"

#include "host/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find(const launch *l, const char *name) {
  int i = fg_problem_find(l->problem, name);
  ck_assert_msg(i >= 0, "%s has no tensor %s", l->kernel->name, name);
  return i;
}

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static void draw_tensor(launch *l, int tensor, uint64_t draw) {
  const char *name = l->problem->recipe->tensor[tensor].argument->name;
  int64_t n = fg_problem_count(l->problem, tensor);
  uint64_t state = draw * 1000003;
  for (const char *c = name; *c; c++) state = state * 31 + (uint64_t)*c;
  float *values = malloc((size_t)n * sizeof *values + 1);
  ck_assert_ptr_nonnull(values);
  for (int64_t i = 0; i < n; i++) {
    double radius = sqrt(-2 * log(uniform(&state)));
    values[i] = (float)(radius * cos(6.283185307179586 * uniform(&state)));
  }
  GOOD(fg_problem_set(l->problem, tensor, values));
  free(values);
}

launch launch_new(const kernel *k, fg_shape shape, uint64_t draw) {
  launch l = {.kernel = k};
  GOOD(fg_problem_new(kernel_device(), &k->source->recipe, &shape, 0, draw, &l.problem));
  for (int i = 0; i < k->source->recipe.n_tensors; i++)
    if (!k->source->recipe.tensor[i].output) draw_tensor(&l, i, draw);
  return l;
}

void launch_free(launch *l) {
  fg_problem_free(l->problem);
  l->problem = NULL;
}

int launch_has(const launch *l, const char *name) { return fg_problem_find(l->problem, name) >= 0; }

int64_t launch_count(const launch *l, const char *name) {
  return fg_problem_count(l->problem, find(l, name));
}

float *launch_get(const launch *l, const char *name) {
  float *values = malloc((size_t)launch_count(l, name) * sizeof *values + 1);
  ck_assert_ptr_nonnull(values);
  GOOD(fg_problem_get(l->problem, find(l, name), values));
  return values;
}

void launch_set(const launch *l, const char *name, const float *values) {
  GOOD(fg_problem_set(l->problem, find(l, name), values));
}

void launch_fill(const launch *l, const char *name, float value) {
  int64_t n = launch_count(l, name);
  float *values = malloc((size_t)n * sizeof *values + 1);
  ck_assert_ptr_nonnull(values);
  for (int64_t i = 0; i < n; i++) values[i] = value;
  launch_set(l, name, values);
  free(values);
}

void launch_set_ints(const launch *l, const char *name, const int64_t *values) {
  if (launch_has(l, name)) GOOD(fg_problem_set_ints(l->problem, find(l, name), values));
}

void launch_drop(const launch *l, const char *name) {
  if (launch_has(l, name)) fg_problem_drop(l->problem, find(l, name));
}

/* The tensors that say where sequences are become those of the other launch. */
static void take_layout(launch *l, const launch *from) {
  const fg_recipe *r = l->problem->recipe;
  for (int i = 0; i < r->n_tensors; i++) {
    const char *name = r->tensor[i].name;
    if (r->tensor[i].argument->elem != FG_RULE_I32) continue;
    if (!fg_args_tensor(&from->problem->args, &r->tensor[i])->data) {
      launch_drop(l, name);
      continue;
    }
    float *values = launch_get(from, name); /* exact up to 2^24 */
    launch_set(l, name, values);
    free(values);
  }
}

void launch_layout(launch *l, const char *name, const char *axes, int gap) {
  static const char order[] = "bhnd";
  fg_problem *p = l->problem;
  int tensor = find(l, name);
  const fg_recipe_tensor *t = &p->recipe->tensor[tensor];
  fg_tensor *place = fg_args_tensor_of(&p->args, t);
  float *values = launch_get(l, name);
  int64_t extent[4], span = 1;
  for (int a = 0; a < 4 && t->argument->axes[a]; a++)
    extent[fg_axis_index(t->argument->axes, t->argument->axes[a])] =
        fg_recipe_extent(p->recipe, t->axes[a], &p->shape);
  memset(place->stride, 0, sizeof place->stride);
  for (int i = (int)strlen(axes) - 1; i >= 0; i--) {
    int axis = (int)(strchr(order, axes[i]) - order);
    place->stride[axis] = span;
    span = span * extent[axis] + gap;
  }
  p->device->class->release(p->device, p->buffer[tensor], p->bytes[tensor]);
  p->bytes[tensor] = (size_t)(span - gap) * fg_elem_size(t->elem);
  GOOD(p->device->class->allocate(p->device, p->bytes[tensor], &p->buffer[tensor]));
  free(p->staged[tensor]);
  ck_assert_ptr_nonnull(p->staged[tensor] = malloc(p->bytes[tensor]));
  memset(p->staged[tensor], 0xff, p->bytes[tensor]);
  place->data = p->buffer[tensor];
  if (!t->output) launch_set(l, name, values);
  free(values);
}

void launch_run(launch *l, uint64_t seed) {
  l->problem->device->seed = seed;
  fg_status status = fg_problem_run(l->problem, l->kernel->module);
  ck_assert_msg(status == FG_OK, "%s, seed %d: %s", l->kernel->name, (int)seed, fg_error());
}

uint64_t launch_order(const launch *l, int n) {
  const fg_recipe *r = l->problem->recipe;
  for (int i = 0; i < r->n_regions; i++)
    if (!strcmp(r->region[i].name, "parts"))
      return (uint64_t)(n * l->problem->device->multiprocessors);
  return (uint64_t)n;
}

void launch_refused(launch *l, const char *tensor, const char *end) {
  char start[16];
  fg_status status = fg_problem_run(l->problem, l->kernel->module);
  int n = snprintf(start, sizeof start, "%s: ", tensor);
  size_t length = strlen(fg_error()), tail = strlen(end);
  ck_assert_msg(status == FG_EARGUMENT && !strncmp(fg_error(), start, (size_t)n) && length > tail &&
                    !strcmp(fg_error() + length - tail, end),
                "%s: %s: expected \"... %s\", got %d: %s", l->kernel->name, tensor, end, status,
                status == FG_OK ? "" : fg_error());
}

void launch_take_forward(launch *backward, const kernel *forward) {
  static const char *const in[] = {"q", "k", "v", "bias"}, *const out[] = {"o", "lse"};
  launch l = launch_new(forward, backward->problem->shape, 0);
  for (int i = 0; i < 4; i++) {
    if (!launch_has(&l, in[i])) continue;
    float *values = launch_get(backward, in[i]);
    launch_set(&l, in[i], values);
    free(values);
  }
  take_layout(&l, backward);
  l.problem->args.given = backward->problem->args.given;
  l.problem->args.scale = backward->problem->args.scale;
  launch_run(&l, 0);
  for (int i = 0; i < 2; i++) {
    float *values = launch_get(&l, out[i]);
    launch_set(backward, out[i], values);
    free(values);
  }
  launch_free(&l);
}

void launch_same(const launch *a, const launch *b, const char *name) {
  int64_t n = launch_count(a, name);
  float *x = launch_get(a, name), *y = launch_get(b, name);
  ck_assert_int_eq(n, launch_count(b, name));
  for (int64_t i = 0; i < n; i++) { /* an assertion of its own for each takes a microsecond */
    if (!memcmp(x + i, y + i, sizeof *x)) continue;
    ck_abort_msg("%s: %s[%d]: %.9g and %.9g", a->kernel->name, name, (int)i, (double)x[i],
                 (double)y[i]);
  }
  free(x);
  free(y);
}

void launch_same_outputs(const launch *a, const launch *b) {
  const fg_recipe *r = a->problem->recipe;
  for (int i = 0; i < r->n_tensors; i++)
    if (r->tensor[i].output) launch_same(a, b, r->tensor[i].argument->name);
}

void launch_repeats(const kernel *k, fg_shape shape, uint64_t draw) {
  launch l = launch_new(k, shape, draw), again = launch_new(k, shape, draw);
  launch_run(&l, 1), launch_run(&again, 2);
  launch_same_outputs(&l, &again);
  launch_free(&l), launch_free(&again);
}

void launch_poison(const launch *l) {
  const fg_recipe *r = l->problem->recipe;
  for (int i = 0; i < r->n_tensors; i++)
    if (r->tensor[i].output) launch_fill(l, r->tensor[i].argument->name, NAN);
}

double launch_difference(const launch *a, const launch *b, const char *name) {
  double error = 0, norm = 0;
  const int64_t n = launch_count(a, name);
  float *x = launch_get(a, name), *y = launch_get(b, name);
  for (int64_t i = 0; i < n; i++) {
    const double off = (double)x[i] - (double)y[i];
    error += off * off;
    norm += (double)y[i] * (double)y[i];
  }
  free(x);
  free(y);
  return sqrt(error / norm);
}

bool launch_promised(const launch *l, const char *name) {
  static const char *const always[] = {"o", "lse", "dk", "dv"};
  bool promised = l->kernel->variant.point.deterministic;
  for (int i = 0; i < 4; i++) promised |= !strcmp(always[i], name);
  return promised;
}

void launch_same_as_promised(const launch *a, const launch *b) {
  const fg_recipe *r = a->problem->recipe;
  for (int i = 0; i < r->n_tensors; i++) {
    const char *name = r->tensor[i].argument->name;
    if (!r->tensor[i].output) continue;
    if (launch_promised(a, name)) {
      launch_same(a, b, name);
      continue;
    }
    const double difference = launch_difference(a, b, name);
    ck_assert_msg(difference <= 1e-3, "%s: %s differs by %g of its norm", a->kernel->name, name,
                  difference);
  }
}
