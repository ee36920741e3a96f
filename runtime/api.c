/* api.c - the public functions on contexts, ops and kernels, but for choosing and building. */
#include "kernels.h"
#include "ops.h"

#include "base/setting.h"
#include "base/text.h"
#include "plain.h"
#include "recipe/extent.h"
#include "sized.h"
#include "spec/point_formula.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fg_version(void) { return FG_VERSION; }

static fg_status copy_text(const char *given, fg_setting setting, char **copy) {
  const char *text = given ? given : fg_setting_text(setting, NULL);
  *copy = strdup(text);
  return *copy ? FG_OK : fg_fail(FG_EMEMORY, "no memory for a context");
}

/* Opens the zoos of the config in order; those that are open at a failure are the context's to
 * close. */
static fg_status open_zoos(fg_context *c, const fg_config *config) {
  if (config->n_zoos < 0 || (config->n_zoos && !config->zoos))
    return fg_fail(FG_EARGUMENT, "config: n_zoos is %d, zoos %s", config->n_zoos,
                   config->zoos ? "is given" : "is NULL");
  c->zoo = calloc((size_t)config->n_zoos + 1, sizeof *c->zoo);
  if (!c->zoo) return fg_fail(FG_EMEMORY, "no memory for a context");
  for (; c->n_zoos < config->n_zoos; c->n_zoos++) {
    const fg_zoo *given = config->zoos[c->n_zoos];
    fg_zoo zoo = {0};
    if (!given) return fg_fail(FG_EARGUMENT, "config: zoos[%d] is NULL", c->n_zoos);
    TRY(fg_size_check("zoo", given->size, sizeof zoo));
    memcpy(&zoo, given, given->size);
    TRY(fg_zoo_open_given(&zoo, &c->zoo[c->n_zoos]));
  }
  return FG_OK;
}

/* Their kernels are made without what FLASHGEN_SWITCH forces, under the same names. */
static void leave_zoos(fg_context *c) {
  if (!*fg_switches_forced() || !c->n_zoos) return;
  fg_context_warn(c, "%s is set: zoos, whose kernels are made without it, are not used",
                  fg_settings[FG_SET_SWITCH].name);
  while (c->n_zoos) fg_zoo_free(c->zoo[--c->n_zoos]);
}

static const char *arch_of(const fg_zoo_item *item) {
  const char *dot = strrchr(item->name, '.');
  return dot ? dot + 1 : "";
}

/* A GPU takes kernels of its own arch alone: where no zoo has one, they are shipped for nothing. */
static void check_zoos(const fg_context *c) {
  const char *seen[16];
  char archs[256];
  int n = 0, length = 0;
  for (int z = 0; z < c->n_zoos; z++)
    for (int i = 0; i < fg_zoo_count(c->zoo[z]); i++) {
      const char *arch = arch_of(fg_zoo_at(c->zoo[z], i));
      int at = 0;
      if (!strcmp(arch, c->device->arch)) return;
      while (at < n && strcmp(seen[at], arch)) at++;
      if (at < n || n == 16) continue;
      seen[n++] = arch;
      length =
          fg_append(sizeof archs, archs, length, "%s%.*s", at ? ", " : "", FG_ARCH_MAX - 4, arch);
    }
  if (n)
    fg_context_warn(c, "no kernel of the zoos is for %s, the arch of %s; they are for %s",
                    c->device->arch, c->device->name, archs);
}

/* What a kernel would be made with is looked for at once, so that what is missing is said here; a
 * context with zoos may never make one. */
static fg_status open_parts(fg_context *c, const fg_config *config) {
  TRY(fg_settings_check());
  fg_settings_warn(FG_SETTINGS, c->warn, c->warn_context);
  c->topics = fg_context_topics();
  TRY(copy_text(config->templates, FG_SET_TEMPLATES, &c->templates));
  TRY(copy_text(config->plan, FG_SET_PLAN, &c->plan));
  c->zoos_alone = config->jit < 0;
  c->jit = config->jit ? config->jit > 0 : fg_setting_number(FG_SET_JIT) != 0;
  TRY(open_zoos(c, config));
  leave_zoos(c);
  TRY(fg_context_wisdom(c, config->n_wisdom, config->wisdom));
  TRY(fg_device_open(config->device, &c->device));
  if (*c->device->no_gpu)
    fg_context_warn(c, "no GPU can be used (%s): kernels run on the host device, which is slow",
                    c->device->no_gpu);
  check_zoos(c);
  c->device->seed = config->seed;
  TRY(fg_cache_open(config->cache, config->warn, config->warn_context, &c->cache));
  return c->n_zoos ? FG_OK : fg_context_identify(c);
}

/* A context that fails half-way is closed like one that is open. */
fg_status fg_open(const fg_config *given, fg_context **context) {
  fg_config config = FG_INIT(fg_config);
  TRY(FG_GIVEN({"context", context}));
  if (given) {
    TRY(fg_size_check("config", given->size, sizeof config));
    memcpy(&config, given, given->size);
  }
  fg_context *c = calloc(1, sizeof *c);
  if (!c) return fg_fail(FG_EMEMORY, "no memory for a context");
  pthread_mutex_init(&c->gen_lock, NULL);
  pthread_mutex_init(&c->lock, NULL);
  fg_context_tie(c);
  atomic_flag_clear(&c->slow);
  atomic_flag_clear(&c->unforced);
  c->no_fallback = config.no_fallback;
  c->warn = config.warn;
  c->warn_context = config.warn_context;
  locale_t own = fg_plain_begin();
  fg_status status = open_parts(c, &config);
  fg_plain_end(own);
  if (status == FG_OK)
    *context = c;
  else
    fg_close(c);
  return status;
}

/* Takes a context that is open in part, too; kernels go with their ops, before the device. */
void fg_close(fg_context *c) {
  if (!c) return;
  fg_ops_free(&c->ops);
  fg_gen_free(c->gen);
  if (c->cache) fg_cache_close(c->cache);
  for (int i = 0; i < c->n_zoos; i++) fg_zoo_free(c->zoo[i]);
  free(c->zoo);
  fg_context_forget(c);
  fg_device_close(c->device);
  pthread_mutex_destroy(&c->gen_lock);
  pthread_mutex_destroy(&c->lock);
  free(c->templates);
  free(c->plan);
  free(c);
}

/* The one point of a spec, and its restrictions; a spec of several is refused. */
static fg_status one_point(const fg_spec *spec, fg_point *point, fg_limits *limits) {
  fg_grid *grid;
  locale_t own = fg_plain_begin();
  fg_status status = fg_grid_from_spec(spec, &grid);
  fg_plain_end(own);
  TRY(status);
  if (grid->n != 1)
    status = fg_fail(FG_ESPEC, "the spec is %d kernels; a list is for grids", grid->n);
  else
    *point = grid->point[0], *limits = *grid->limits[0];
  fg_grid_free(grid);
  return status;
}

/* Reads the spec's strings, and is the only call that does. */
fg_status fg_define(fg_context *c, const fg_spec *spec, fg_op **result) {
  fg_point point;
  fg_limits limits;
  TRY(FG_GIVEN({"context", c}, {"spec", spec}, {"op", result}));
  TRY(fg_context_check(c));
  TRY(fg_size_check("spec", spec->size, sizeof *spec));
  TRY(one_point(spec, &point, &limits));
  return fg_context_op(c, &point, &limits, result);
}

/* The first plan's text; gen_lock is held. */
static fg_status emit(fg_context *c, const fg_point *point, const fg_limits *limits,
                      const char *arch, char **text) {
  fg_variant variant = {.point = *point};
  fg_source *source;
  fg_plan *plans;
  int n;
  TRY(fg_context_gen(c));
  TRY(fg_arch_check(arch));
  strcpy(variant.arch, arch);
  TRY(fg_gen_plans(c->gen, point, arch, limits, &plans, &n));
  variant.plan = plans[0];
  free(plans);
  TRY(fg_gen_expand(c->gen, &variant, &source));
  char *copy = strdup(source->text);
  fg_source_free(source);
  if (!copy) return fg_fail(FG_EMEMORY, "no memory for a text");
  *text = copy;
  return FG_OK;
}

/* The text is the caller's to free; nothing is cached. */
fg_status fg_emit(fg_context *c, const fg_spec *spec, const char *arch, char **text) {
  fg_point point;
  fg_limits limits;
  TRY(FG_GIVEN({"context", c}, {"spec", spec}, {"text", text}));
  TRY(fg_context_check(c));
  TRY(fg_size_check("spec", spec->size, sizeof *spec));
  TRY(one_point(spec, &point, &limits));
  pthread_mutex_lock(&c->gen_lock);
  locale_t own = fg_plain_begin();
  fg_status status = emit(c, &point, &limits, arch ? arch : c->device->arch, text);
  fg_plain_end(own);
  pthread_mutex_unlock(&c->gen_lock);
  return status;
}

size_t fg_workspace_bytes(const fg_kernel *kernel, const fg_shape *shape) {
  int64_t bytes;
  fg_shape own;
  if (FG_GIVEN({"kernel", kernel}, {"shape", shape}) != FG_OK) return 0;
  const fg_recipe *recipe = &kernel->source->recipe;
  if (fg_shape_read(shape, &own, &shape) != FG_OK ||
      fg_shape_check_of(fg_recipe_kind(recipe), shape) != FG_OK)
    return 0;
  return fg_workspace_size(recipe, shape, &bytes) == FG_OK ? (size_t)bytes : 0;
}

const char *fg_op_inputs(const fg_op *op) { return op && op->point.inputs ? op->point.inputs : ""; }

/* The extent of an axis: the length in the shape that it names, 1, or an expression's value. */
static fg_status input_extent(const char *text, fg_layout layout, const fg_shape *shape,
                              int64_t *value) {
  const fg_extent_row *row = fg_extent_of_axis(text, strlen(text));
  fg_expr expr;
  if (row) {
    const char letter = layout.q == FG_PACKED && row->letter == 'q'    ? 's'
                        : layout.kv == FG_PACKED && row->letter == 'k' ? 't'
                                                                       : row->letter;
    *value = fg_extent_get(fg_extent_of(letter), shape);
    return FG_OK;
  }
  TRY(fg_expr_compile(text, fg_shape_forms[FG_FORM_PAIRS].letters, &expr));
  TRY(fg_expr_eval(&expr, shape, value));
  return *value >= 0 ? FG_OK : fg_fail(FG_EARGUMENT, "it is %" PRId64 " at this shape", *value);
}

fg_status fg_input_extents(const fg_op *op, int64_t input, const fg_shape *shape,
                           int64_t extents[4]) {
  int64_t made[FG_NODE_ARGS] = {-1, -1, -1, -1};
  fg_formula formula = {0};
  fg_shape own;
  TRY(FG_GIVEN({"op", op}, {"shape", shape}, {"extents", extents}));
  TRY(fg_shape_read(shape, &own, &shape));
  if (input < 0 || input >= op->n_inputs)
    return fg_fail(FG_EARGUMENT, "input = %" PRId64 ": mask and score read %d", input,
                   op->n_inputs);
  locale_t plain = fg_plain_begin();
  fg_status status = fg_point_formula(&op->point, &formula);
  const fg_input *x = &formula.input[input];
  for (int i = 0; status == FG_OK && i < x->rank; i++) {
    status = input_extent(x->extent[i], fg_point_layout(&op->point), shape, &made[i]);
    if (status != FG_OK) fg_fail_in(status, "inputs.%s: the extent %s", x->name, x->extent[i]);
  }
  fg_plain_end(plain);
  fg_formula_free(&formula);
  if (status == FG_OK) memcpy(extents, made, sizeof made);
  return status;
}

/* One too many would be taken for its neighbour. */
static fg_status check_inputs(const fg_op *op, const fg_args *args) {
  if (!args->inputs || args->n_inputs <= op->n_inputs) return FG_OK;
  return fg_fail(FG_EARGUMENT, "args.n_inputs = %" PRId64 ": mask and score read %d: %s",
                 args->n_inputs, op->n_inputs, op->n_inputs ? op->point.inputs : "none");
}

/* Not part of fg_launch, which would zero `all` at every call. */
__attribute__((noinline)) static fg_status launch_older(fg_kernel *kernel, const fg_shape *shape,
                                                        const fg_args *args, void *workspace,
                                                        fg_stream stream) {
  fg_args all = {0};
  TRY(fg_args_size_check(args->size));
  memcpy(&all, args, args->size);
  TRY(check_inputs(kernel->op, &all));
  return fg_module_launch(kernel->module, shape, &all, workspace, stream);
}

/* Hot: it looks at numbers alone, and takes no lock. */
fg_status fg_launch(fg_kernel *kernel, const fg_shape *shape, const fg_args *args, void *workspace,
                    fg_stream stream) {
  fg_shape own;
  if (!kernel || !shape || !args)
    return FG_GIVEN({"kernel", kernel}, {"shape", shape}, {"args", args});
  TRY(fg_context_check(kernel->op->context));
  TRY(fg_shape_read(shape, &own, &shape));
  if (kernel->adopted) TRY(fg_kernel_check_proved(kernel, shape));
  if (args->size != sizeof *args) return launch_older(kernel, shape, args, workspace, stream);
  TRY(check_inputs(kernel->op, args));
  return fg_module_launch(kernel->module, shape, args, workspace, stream);
}

fg_status fg_kernel_info(const fg_kernel *kernel, fg_info *info) {
  TRY(FG_GIVEN({"kernel", kernel}, {"info", info}));
  const fg_info all = {info->size, kernel->name, kernel->figures, kernel->from_cache};
  TRY(fg_size_check("info", info->size, sizeof all));
  memcpy(info, &all, info->size);
  return FG_OK;
}

/* Counts go on while they are read: each is right by itself. */
void fg_context_counts(const fg_context *c, fg_counts *counts) {
  if (FG_GIVEN({"context", c}, {"counts", counts}) != FG_OK) return;
  const fg_counts all = {sizeof all, fg_cache_count(c->cache, FG_COUNT_HITS),
                         c->choices, c->compiles,
                         c->loads,   c->zoo_hits};
  size_t size = counts->size < sizeof all ? counts->size : sizeof all;
  memcpy(counts, &all, size);
  counts->size = size;
}
