/* variants.c - from the command line to variants; the device; small output helpers. */
#include "cli.h"

#include "base/setting.h"
#include "build.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static fg_status add(cli_variants *v, const fg_variant *variant, const char *filter) {
  char name[FG_NAME_MAX];
  fg_variant_name(variant, sizeof name, name);
  if (filter && fnmatch(filter, name, 0)) return FG_OK;
  /* A table's points are distinct; under the restrictions of another a first plan may recur. */
  for (int i = 0; i < v->n && (!v->grid || v->grid->n_tables > 1); i++)
    if (!memcmp(&v->variant[i], variant, sizeof *variant)) return FG_OK;
  fg_variant *grown = realloc(v->variant, sizeof *grown * (size_t)(v->n + 1));
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d variants", v->n + 1);
  v->variant = grown;
  v->variant[v->n++] = *variant;
  return FG_OK;
}

static int is_taken(const cli *c, const fg_point *point, const fg_limits *limits,
                    const fg_plan *plan) {
  return !c->command || !c->command->makes_zoo || fg_build_takes(point, limits, plan);
}

static fg_status no_plan(const cli *c, const char *name, const fg_plan *first) {
  char plan[64];
  fg_plan_name(first, sizeof plan, plan);
  return fg_fail(FG_ESPEC, "%s: no plan matches --plan %s; the first is %s", name, c->plan, plan);
}

/* The first `most` plans of each point that --plan lets through. */
static fg_status add_plans(const cli *c, cli_variants *v, int point, const char *arch, int most) {
  fg_variant variant = {.point = v->grid->point[point]};
  char name[FG_NAME_MAX];
  fg_plan *plans;
  int n, taken = 0, seen = 0;
  fg_status status = FG_OK;
  snprintf(variant.arch, sizeof variant.arch, "%s", arch);
  fg_point_name(&variant.point, sizeof name, name);
  status = fg_gen_plans(v->gen, &variant.point, arch, v->grid->limits[point], &plans, &n);
  if (status != FG_OK) return fg_fail_in(status, "%s", name);
  for (int i = 0; i < n && taken < most; i++) {
    char plan[64];
    fg_plan_name(&plans[i], sizeof plan, plan);
    if (c->plan && fnmatch(c->plan, plan, 0)) continue;
    seen++;
    if (!is_taken(c, &variant.point, v->grid->limits[point], &plans[i])) continue;
    variant.plan = plans[i];
    taken++;
    TRY_OUT(add(v, &variant, c->filter));
  }
  if (!seen) status = no_plan(c, name, &plans[0]);
  v->left_out += seen && !taken;
out:
  free(plans);
  return status;
}

static fg_status plans_count(const cli *c, int *most) {
  char *end;
  *most = 1;
  if (!c->plans || !strcmp(c->plans, "first")) return FG_OK;
  if (!strcmp(c->plans, "all")) {
    *most = 1 << 20;
    return FG_OK;
  }
  long n = strtol(c->plans, &end, 10);
  if (end == c->plans || *end || n < 1 || n > 1 << 20)
    return fg_fail(FG_EARGUMENT, "--plans %s: expected first, all or a number", c->plans);
  *most = (int)n;
  return FG_OK;
}

static fg_status check_archs(const char *archs) {
  char arch[FG_ARCH_MAX];
  do TRY(fg_arch_take(&archs, arch));
  while (*archs);
  return FG_OK;
}

static fg_status read_variants(const cli *c, const char *archs, cli_variants *v) {
  int most;
  TRY(check_archs(archs));
  TRY(fg_gen_new(fg_setting_text(FG_SET_TEMPLATES, NULL), &v->gen));
  for (int i = 0; i < c->n_names; i++) {
    fg_variant variant;
    TRY(fg_variant_parse(c->names[i], &variant));
    TRY(add(v, &variant, c->filter));
  }
  if (!c->n_names || c->n_files || c->n_words) {
    TRY(cli_grid_read(c, 0, NULL, &v->grid));
    TRY(cli_numbers_check(c, v->grid->n, v->grid->point));
    TRY(plans_count(c, &most));
    do {
      char arch[FG_ARCH_MAX];
      TRY(fg_arch_take(&archs, arch));
      for (int i = 0; i < v->grid->n; i++) TRY(add_plans(c, v, i, arch, most));
    } while (*archs);
  }
  if (!v->n && v->left_out) return fg_build_nothing();
  if (!v->n) return fg_fail(FG_EARGUMENT, "no variant matches --filter %s", c->filter);
  return FG_OK;
}

fg_status cli_variants_read(const cli *c, const char *archs, cli_variants *variants) {
  cli_variants v = {0};
  fg_status status = read_variants(c, archs, &v);
  if (status == FG_OK)
    *variants = v;
  else
    cli_variants_free(&v);
  return status;
}

void cli_variants_free(cli_variants *v) {
  fg_gen_free(v->gen);
  fg_grid_free(v->grid);
  free(v->variant);
  *v = (cli_variants){0};
}

/* fg_kernel_info fails only without a kernel. */
fg_info cli_info(const fg_kernel *kernel) {
  fg_info info = FG_INIT(fg_info);
  fg_kernel_info(kernel, &info);
  return info;
}

fg_status cli_device_open(const cli *c, fg_device **device) {
  TRY(fg_device_open(c->device, device));
  if (*(*device)->no_gpu)
    fprintf(stderr, "flashgen: no GPU can be used (%s): --device host\n", (*device)->no_gpu);
  return FG_OK;
}

const char *cli_measuring_device(const cli *c) {
  const char *set = fg_setting_text(FG_SET_DEVICE, NULL);
  return c->device ? c->device : *set ? set : "cuda:0";
}

fg_status cli_measuring_opened(const cli *c, fg_status status) {
  const bool named = c->device || *fg_setting_text(FG_SET_DEVICE, NULL);
  if (status == FG_OK || named || strncmp(fg_error(), "device cuda:0: ", 15)) return status;
  char reason[512];
  snprintf(reason, sizeof reason, "%s", fg_error() + 15);
  return fg_fail(status, "no GPU to measure on (%s); --device host measures on the host device",
                 reason);
}

fg_status cli_context(const char *device, fg_context **context) {
  fg_config config = FG_INIT(fg_config);
  config.device = device;
  return fg_open(&config, context);
}

void cli_json_string(FILE *to, const char *text) {
  fputc('"', to);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      fprintf(to, "\\%c", c);
    else if (c == '\n')
      fputs("\\n", to);
    else if (c < 0x20)
      fprintf(to, "\\u%04x", c);
    else
      fputc(c, to);
  }
  fputc('"', to);
}

void cli_json_shape(FILE *to, const fg_shape_form *form, const fg_shape *shape) {
  char text[FG_SHAPE_JSON];
  fg_shape_json(form, shape, sizeof text, text);
  fputs(text, to);
}
