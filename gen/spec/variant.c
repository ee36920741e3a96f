/* variant.c - names of plans and variants, both ways, and plan restrictions. */
#include "variant.h"

#include "base/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fg_field *plan_field(int i) { return &fg_fields[FG_SPEC_FIELDS + i]; }

const char *fg_plan_family(const fg_plan *plan) { return plan_field(0)->choices[plan->value[0]]; }

bool fg_plan_is_fallback(const fg_point *point, const fg_plan *plan) {
  const char *fallback = fg_point_kind(point)->fallback;
  return fallback && !strcmp(fg_plan_family(plan), fallback);
}

bool fg_plan_matches(const char *globs, const fg_plan *plan) {
  char name[64], glob[128];
  if (*globs) fg_plan_name(plan, sizeof name, name);
  for (const char *at = globs; *at;) {
    size_t n = strcspn(at, ",");
    if (n < sizeof glob) {
      memcpy(glob, at, n);
      glob[n] = 0;
      if (!fnmatch(glob, name, 0)) return true;
    }
    at += n + (at[n] == ',');
  }
  return false;
}

int fg_plan_name(const fg_plan *plan, size_t size, char *text) {
  int n = snprintf(text, size, "%s", fg_plan_family(plan));
  for (int i = 1; i < FG_PLAN_FIELDS; i++)
    if (plan->value[i])
      n = fg_append(size, text, n, "-%s%d", plan_field(i)->tags[0], plan->value[i]);
  return n;
}

/* Appends plan and arch to the n bytes of the point's name. */
static int print_plan(const fg_variant *variant, int n, size_t size, char *text) {
  n = fg_append(size, text, n, ".");
  n += fg_plan_name(&variant->plan, fg_room(size, n), fg_room_at(size, text, n));
  return fg_append(size, text, n, ".%s", variant->arch);
}

int fg_variant_name(const fg_variant *variant, size_t size, char *text) {
  return print_plan(variant, fg_point_name(&variant->point, size, text), size, text);
}

int fg_variant_name_before(const fg_variant *variant, size_t size, char *text) {
  return print_plan(variant, fg_point_name_before(&variant->point, size, text), size, text);
}

/* A tag is that of the family's own field. */
const char *fg_plan_parse(const char *name, fg_plan *plan) {
  size_t n = strcspn(name, "-.");
  int family = 0;
  const char *const *choices = plan_field(0)->choices;
  while (choices[family] && (strlen(choices[family]) != n || strncmp(choices[family], name, n)))
    family++;
  if (!choices[family]) return NULL;
  plan->value[0] = family;
  name += n;
  for (int i = 1; i < FG_PLAN_FIELDS; i++) {
    if (name[0] != '-' || name[1] != plan_field(i)->tags[0][0] ||
        !fg_field_is_of(plan_field(i), choices[family]))
      continue;
    char *end;
    long value = strtol(name + 2, &end, 10);
    if (end == name + 2 || value <= 0 || value > FG_PLAN_MAX) return NULL;
    plan->value[i] = (int)value;
    name = end;
  }
  return name;
}

/* Are the widths, which the grammar of names does not bound, ones that a spec may have? */
static bool point_is_good(const fg_point *point) {
  fg_point again = {0};
  char text[64];
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    if (!fg_field_belongs(&fg_fields[i], point)) continue;
    if (fg_fields[i].type == &fg_type_widths &&
        (point->d > FG_HEAD_DIM_MAX || point->dv > FG_HEAD_DIM_V_MAX))
      return false;
    if (fg_fields[i].type->is_expression) continue;
    fg_field_print(&fg_fields[i], point, sizeof text, text);
    if (fg_field_read(&fg_fields[i], text, &again, NULL) != FG_OK) return false;
  }
  again.mask = point->mask, again.score = point->score, again.inputs = point->inputs;
  fg_point_settle(&again);
  return fg_point_check_dtype(point) == FG_OK && fg_point_check_widths(point) == FG_OK &&
         fg_point_equal(point, &again);
}

/* The failure of a name, with that of its arch where there is one. */
static fg_status name_arch(const char *name, const char *arch) {
  if (fg_arch_check(arch) == FG_OK)
    return fg_fail(FG_EARGUMENT, "\"%.352s\" is not the name of a variant", name);
  return fg_fail_in(FG_EARGUMENT, "\"%.352s\" is not the name of a variant", name);
}

/* A name is taken only if fg_variant_name, or that of before, writes it. */
fg_status fg_variant_parse(const char *name, fg_variant *variant) {
  fg_variant v = {0};
  char again[FG_NAME_MAX], before[FG_NAME_MAX];
  const char *at = fg_point_parse(name, &v.point);
  at = at && *at == '.' ? fg_plan_parse(at + 1, &v.plan) : NULL;
  if (at && *at == '.' && strlen(at + 1) < FG_ARCH_MAX && fg_arch_check(at + 1) == FG_OK &&
      point_is_good(&v.point)) {
    strcpy(v.arch, at + 1);
    fg_variant_name(&v, sizeof again, again);
    fg_variant_name_before(&v, sizeof before, before);
    if (!strcmp(name, again) || !strcmp(name, before)) {
      *variant = v;
      return FG_OK;
    }
  }
  fg_fail(FG_EARGUMENT, "\"%.352s\" is not the name of a variant", name);
  return at && *at == '.' ? name_arch(name, at + 1) : FG_EARGUMENT;
}

/* Every field that is restricted has one of its values. */
bool fg_limits_allow(const fg_limits *limits, const fg_plan *plan) {
  for (int i = 0; i < FG_PLAN_FIELDS; i++) {
    const bool one = !plan->value[i] && fg_fields[FG_SPEC_FIELDS + i].type == &fg_type_number;
    bool allowed = limits->n[i] == 0;
    for (int j = 0; j < limits->n[i]; j++)
      allowed |= limits->value[i][j] == plan->value[i] || (one && limits->value[i][j] == 1);
    if (!allowed) return false;
  }
  return true;
}

const fg_limits *fg_grid_limits(const fg_grid *grid, const fg_point *point) {
  for (int i = 0; i < grid->n; i++)
    if (fg_point_equal(&grid->point[i], point)) return grid->limits[i];
  return NULL;
}
