/* variant.h - one kernel to be made: a point, a plan (how) and an arch, and its canonical name. */
#ifndef FG_VARIANT_H
#define FG_VARIANT_H

#include "recipe/arch.h"
#include "spec.h"

/* A plan: its family, and its fields by the rows of fg_fields (index - FG_SPEC_FIELDS; the family
 * is field 0, an index into its choices). 0 = the family has no such field. */
typedef struct fg_plan {
  int value[FG_PLAN_FIELDS];
} fg_plan;

enum { FG_NAME_MAX = 352, FG_PLAN_MAX = 1 << 20 };
typedef struct fg_variant {
  fg_point point;
  fg_plan plan;
  char arch[FG_ARCH_MAX]; /* "host", "sm_80", "sm_90a" */
} fg_variant;

/* "simt-q16-k32-w4"; returns the length. */
int fg_plan_name(const fg_plan *plan, size_t size, char *text);
/* Reads the name that a text begins with into a zeroed plan; returns what follows it, NULL: there is
 * no plan. A name that fg_plan_name does not write may pass. */
const char *fg_plan_parse(const char *name, fg_plan *plan);
const char *fg_plan_family(const fg_plan *plan);
/* Is its family the one that answers for the point's kind when no other does? */
bool fg_plan_is_fallback(const fg_point *point, const fg_plan *plan);
/* Does one of the comma-separated globs match the plan's name? */
bool fg_plan_matches(const char *globs, const fg_plan *plan);

/* "attn_fwd-bf16-d128-causal.simt-q16-k32-w4.sm_90a", and back: FG_EARGUMENT if it is no name that
 * fg_variant_name writes. */
int fg_variant_name(const fg_variant *variant, size_t size, char *text);
/* As fg_point_name_before; what fg_variant_parse reads, too. */
int fg_variant_name_before(const fg_variant *variant, size_t size, char *text);
fg_status fg_variant_parse(const char *name, fg_variant *variant);

/* Does the plan lie within the restrictions? A number that it does not name is 1. */
bool fg_limits_allow(const fg_limits *limits, const fg_plan *plan);

#endif
