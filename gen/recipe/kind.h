/* kind.h - the kinds of kernels, the values of the spec field `kernel`: one row each.
 *
 * Which spec fields count, which extents a launch has, what Params holds and how shapes are told
 * follow from the row. To add a kind: a row here, rows for its tensors in argument.c, a row of
 * templates/kinds.lua with a folder of templates, and a row of runtime/reference/references.c, by
 * which `check` judges it. */
#ifndef FG_KIND_H
#define FG_KIND_H

#include "extent.h"

/* Compile-time extents of a kind: attention has d and dv. */
enum { FG_WIDTHS_MAX = 4 };

typedef struct fg_kind {
  const char *name;              /* in specs: "attention" */
  const char *tag;               /* how names of variants begin: "attn" */
  const char *const *fields;     /* the spec fields that count, NULL-terminated */
  const fg_shape_form *form;     /* a launch's extents */
  const char *const *of_forward; /* those that no backward has; NULL: none */
  const char *width_field;       /* the spec field that gives its widths: "head_dim" */
  const char *widths;            /* their letters as axes of tensors: "dv" */
  const char *more_widths;       /* those that a description gives: e, pairs of a rotation */
  int width_step;                /* what they are multiples of; 0: any */
  bool has_scale;                /* a launch has a scale */
  bool has_f32;                  /* its tensors may be float32 */
  bool has_e4m3;                 /* those that go in may be e4m3 */
  const char *fallback; /* the family that answers when no other does, slowly; NULL: none */
} fg_kind;

enum { FG_KINDS = 6 };
extern const fg_kind fg_kinds[FG_KINDS];

/* The letters of all its widths, in the order of a recipe's. */
const char *fg_kind_widths(const fg_kind *kind, char letters[FG_WIDTHS_MAX + 1]);

/* Does a spec field of that name count for the kind? */
bool fg_kind_has_field(const fg_kind *kind, const char *field);

/* The kind of a spec or variant by its name, "attn_fwd-bf16-d64"; NULL: it is none of these. */
const fg_kind *fg_kind_of_name(const char *name);
/* The kind of a value of the field `kernel`; NULL: there is none. */
const fg_kind *fg_kind_find(const char *kernel);

#endif
