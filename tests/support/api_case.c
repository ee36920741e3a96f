/* api_case.c - contexts and launches through the public functions. */
#define _GNU_SOURCE /* realpath */
#include "api_case.h"
#include "base/setting.h"
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const fg_shape api_shape = {.size = sizeof api_shape, .b = 1, .h = 2, .hk = 1, .nq = 20, .nk = 37};

char api_warned[2048];
int api_warnings;

void api_keep_warning(void *context, const char *sentence) {
  (void)context;
  snprintf(api_warned, sizeof api_warned, "%s", sentence);
  api_warnings++;
}

void api_reset(void) {
  for (int i = 0; i < FG_SETTINGS; i++)
    if (i != FG_SET_TMPDIR && i != FG_SET_HOME) unsetenv(fg_settings[i].name);
  api_warnings = 0;
}

void api_enter(void) {
  api_reset();
  scratch_enter();
}

void api_leave(void) { scratch_leave(); }

static void drop(void *context, const char *sentence) { (void)context, (void)sentence; }

fg_config api_config(const char *cache) {
  fg_config config = FG_INIT(fg_config);
  config.device = "host";
  config.cache = cache;
  config.warn = drop;
  return config;
}

fg_context *api_open(const char *cache) {
  const fg_config config = api_config(cache);
  fg_context *context;
  GOOD(fg_open(&config, &context));
  return context;
}

fg_spec api_spec(const char *words) {
  static _Thread_local char text[512];
  fg_spec spec = FG_INIT(fg_spec);
  char *rest;
  snprintf(text, sizeof text, "%s", words);
  for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(word, '=');
    ck_assert_ptr_nonnull(value);
    *value = 0;
    const fg_field *field = fg_field_find(word);
    ck_assert_msg(field != NULL, "no field %s", word);
    *(const char **)(void *)((char *)&spec + field->text) = value + 1;
  }
  return spec;
}

fg_op *api_define(fg_context *context, const char *words) {
  const fg_spec spec = api_spec(words);
  fg_op *op;
  GOOD(fg_define(context, &spec, &op));
  return op;
}

fg_kernel *api_select(fg_op *op, fg_shape shape) {
  fg_kernel *kernel;
  GOOD(fg_select(op, &shape, NULL, &kernel));
  return kernel;
}

fg_kernel *api_kernel(fg_context *context, const char *words) {
  return api_select(api_define(context, words), api_shape);
}

fg_status api_build(fg_context *context, fg_order order, const char *words, fg_built *built) {
  char text[512], *rest;
  const char *word[16];
  order.n_specs = 0;
  snprintf(text, sizeof text, "%s", words);
  for (char *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
    word[order.n_specs++] = w;
  order.specs = word;
  return fg_build(context, &order, built);
}

void api_counts(const fg_context *context, int hits, int choices, int compiles, int loads) {
  fg_counts n = FG_INIT(fg_counts);
  fg_context_counts(context, &n);
  ck_assert_msg((int)n.cache_hits == hits && (int)n.choices == choices &&
                    (int)n.compiles == compiles && (int)n.loads == loads,
                "hits %d choices %d compiles %d loads %d; expected %d %d %d %d", (int)n.cache_hits,
                (int)n.choices, (int)n.compiles, (int)n.loads, hits, choices, compiles, loads);
}

/* Launches --------------------------------------------------------------------------------- */

static float next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)(*state >> 40) * 0x1p-23f - 1;
}

fg_problem *api_problem(fg_kernel *kernel, fg_shape shape, uint64_t seed) {
  const fg_recipe *r = &kernel->source->recipe;
  fg_problem *p;
  GOOD(fg_problem_new(kernel->op->context->device, r, &shape, 0, 0, &p));
  for (int i = 0; i < r->n_tensors; i++) {
    int64_t n = fg_problem_count(p, i);
    uint64_t state = seed * 31 + (uint64_t)i;
    float *values = malloc((size_t)n * sizeof *values + 1);
    ck_assert_ptr_nonnull(values);
    for (int64_t j = 0; j < n; j++) values[j] = r->tensor[i].output ? NAN : next(&state);
    GOOD(fg_problem_set(p, i, values));
    free(values);
  }
  return p;
}

fg_status api_launch(fg_kernel *kernel, const fg_problem *p) {
  return fg_launch(kernel, &p->shape, &p->args, p->workspace, NULL);
}

void api_same_outputs(const fg_problem *a, const fg_problem *b) {
  for (int i = 0; i < a->recipe->n_tensors; i++) {
    if (!a->recipe->tensor[i].output) continue;
    ck_assert_uint_eq(a->bytes[i], b->bytes[i]);
    ck_assert_msg(!memcmp(a->buffer[i], b->buffer[i], a->bytes[i]), "%s differs",
                  a->recipe->tensor[i].argument->name);
  }
}

void api_untouched(const fg_problem *p) {
  for (int i = 0; i < p->recipe->n_tensors; i++)
    if (p->recipe->tensor[i].output)
      ck_assert_msg(!memcmp(p->buffer[i], p->staged[i], p->bytes[i]), "%s was written",
                    p->recipe->tensor[i].argument->name);
}

/* A device that launches through fg_launch, so that verify_run judges that. */
typedef struct {
  fg_module base;
  fg_device device;
  fg_device_class class;
  fg_kernel *kernel;
  api_layout layout;
} relay;

/* A tensor laid out anew: the axes of its strides' order (b h n d), each with a gap. */
typedef struct {
  const fg_recipe_tensor *tensor;
  const fg_tensor *given;
  fg_tensor moved;
  int64_t extent[FG_AXES_MAX];
} move;

static move move_new(const relay *r, int i, const fg_shape *shape, const fg_args *args) {
  const fg_recipe *recipe = &r->base.source->recipe;
  move m = {.tensor = &recipe->tensor[i], .extent = {1, 1, 1, 1, 1}};
  const fg_argument *argument = m.tensor->argument;
  m.given = fg_args_tensor(args, m.tensor);
  if (!m.given->data || argument->contiguous) return m;
  for (int a = 0; m.tensor->axes[a]; a++)
    m.extent[fg_axis_index(argument->axes, argument->axes[a])] =
        fg_recipe_extent(recipe, m.tensor->axes[a], shape);
  int64_t span = 1,
          step = (int64_t)(fg_tensor_align(recipe, m.tensor) / fg_elem_size(m.tensor->elem));
  const int last = strlen(argument->axes) > FG_STRIDES ? FG_STRIDES : FG_STRIDES - 1;
  for (int a = last; a >= 0; a--) {
    if (a < FG_STRIDES) m.moved.stride[a] = span;
    span = span * m.extent[a] + (3 + step - 1) / step * step;
  }
  size_t bytes = (size_t)span * fg_elem_size(m.tensor->elem);
  m.moved.data = malloc(bytes);
  ck_assert_ptr_nonnull(m.moved.data);
  memset(m.moved.data, 0xff, bytes);
  return m;
}

static void copy(const move *m, const fg_tensor *to, const fg_tensor *from) {
  size_t size = fg_elem_size(m->tensor->elem);
  int64_t count = 1;
  for (int a = 0; a < FG_AXES_MAX; a++) count *= m->extent[a];
  for (int64_t number = 0; number < count; number++) {
    int64_t i = 0, j = 0, rest = number;
    for (int a = FG_AXES_MAX - 1; a >= 0; a--) {
      const int64_t at = rest % m->extent[a];
      rest /= m->extent[a];
      i += at ? at * (a < FG_STRIDES ? to->stride[a] : 1) : 0;
      j += at ? at * (a < FG_STRIDES ? from->stride[a] : 1) : 0;
    }
    memcpy((char *)to->data + (size_t)i * size, (const char *)from->data + (size_t)j * size, size);
  }
}

static fg_status launch_moved(const relay *r, const fg_shape *shape, const fg_args *args,
                              void *workspace) {
  int n = r->base.source->recipe.n_tensors;
  move list[FG_TENSOR_MAX];
  fg_args moved = *args;
  fg_input_value inputs[FG_INPUT_SLOTS];
  ck_assert_int_le(args->n_inputs, FG_INPUT_SLOTS);
  for (int i = 0; i < args->n_inputs; i++) inputs[i] = args->inputs[i];
  moved.inputs = inputs;
  for (int i = 0; i < n; i++) {
    move *m = &list[i];
    *m = move_new(r, i, shape, args);
    if (!m->moved.data) continue;
    *fg_args_tensor_of(&moved, m->tensor) = m->moved;
    if (!m->tensor->output || m->tensor->kept) copy(m, &m->moved, m->given);
  }
  fg_status status = fg_launch(r->kernel, shape, &moved, workspace, NULL);
  for (int i = 0; i < n; i++) {
    if (list[i].moved.data && list[i].tensor->output) copy(&list[i], list[i].given, &list[i].moved);
    free(list[i].moved.data);
  }
  return status;
}

static fg_status relay_launch(fg_module *module, const fg_shape *shape, const fg_args *args,
                              void *workspace, void *stream) {
  const relay *r = (const relay *)module;
  int64_t bytes;
  GOOD(fg_workspace_size(&module->source->recipe, shape, &bytes));
  ck_assert_uint_eq(fg_workspace_bytes(r->kernel, shape), (size_t)bytes);
  if (r->layout == API_TRANSPOSED) return launch_moved(r, shape, args, workspace);
  return fg_launch(r->kernel, shape, args, workspace, stream);
}

void api_verify(fg_kernel *kernel, api_layout layout, const verify_case *which) {
  fg_device *device = kernel->op->context->device;
  relay r = {.base = *kernel->module,
             .device = *device,
             .class = *device->class,
             .kernel = kernel,
             .layout = layout};
  verify_verdict verdict;
  r.class.launch = relay_launch;
  r.device.class = &r.class;
  r.base.device = &r.device;
  GOOD(verify_run(&kernel->variant, kernel->source, &r.base, which, 0, &verdict));
  for (int i = 0; i < verdict.n; i++)
    ck_assert_msg(verdict.tensor[i].error <= verdict.tensor[i].limit, "%s: %s: error %g above %g",
                  kernel->name, verdict.tensor[i].name, verdict.tensor[i].error,
                  verdict.tensor[i].limit);
  ck_assert_int_gt(verdict.n, 0);
}

/* Compilers -------------------------------------------------------------------------------- */

void api_compiler(const char *name, const char *version, const char *body) {
  char text[2048];
  int n = snprintf(text, sizeof text,
                   "#!/bin/sh\nCC=cc\n"
                   "if [ \"$1\" = --version ]; then %s%s%s; exit; fi\n"
                   "echo . >>\"$0.log\"\n%s\n",
                   version ? "echo '" : "exec $CC --version", version ? version : "",
                   version ? "'" : "", body);
  ck_assert_int_lt(n, (int)sizeof text);
  scratch_put(name, text, (size_t)n);
  ck_assert_int_eq(chmod(name, 0700), 0);
  char *path = realpath(name, NULL);
  ck_assert_ptr_nonnull(path);
  setenv("FLASHGEN_CC", path, 1);
  free(path);
}

int api_compiled(const char *name) {
  char path[64];
  int lines = 0;
  snprintf(path, sizeof path, "%s.log", name);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
  fclose(file);
  return lines;
}
