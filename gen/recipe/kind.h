/* kind.h - the kinds of kernels, the values of the spec field `kernel`: one row each.
 *
 * Which spec fields count, which extents a launch has, what Params holds and how shapes are told
 * follow from the row. To add a kind: a row here, rows for its tensors in argument.c, a row of
 * templates/kinds.lua with a folder of templates, and a row of runtime/reference/references.c, by
 * which `check` judges it. */
#ifndef FG_KIND_H
#define FG_KIND_H

#include "extent.h"

/* The spec fields in the order of names: rows of fg_fields (spec.h). */
enum {
  FG_FIELD_KERNEL,
  FG_FIELD_PASS,
  FG_FIELD_DTYPE,
  FG_FIELD_HEAD_DIM,
  FG_FIELD_WIDTH,
  FG_FIELD_MASK,
  FG_FIELD_SCORE,
  FG_FIELD_INPUTS,
  FG_FIELD_DEFINE,
  FG_FIELD_BIAS,
  FG_FIELD_BIAS_DIMS,
  FG_FIELD_BIAS_DTYPE,
  FG_FIELD_GRAD_DTYPE,
  FG_FIELD_O_DTYPE,
  FG_FIELD_DQKV_DTYPE,
  FG_FIELD_KV_DTYPE,
  FG_FIELD_DESCALE_BLOCK,
  FG_FIELD_NORMALIZER,
  FG_FIELD_SINK,
  FG_FIELD_DROPOUT,
  FG_FIELD_MAX_LOGIT,
  FG_FIELD_DETERMINISTIC,
  FG_FIELD_BATCH_INVARIANT,
  FG_FIELD_Q_LAYOUT,
  FG_FIELD_KV_LAYOUT,
  FG_FIELD_SLICES,
  FG_FIELD_SHARD,
  FG_FIELD_LATENT,
  FG_FIELD_PARTS_DTYPE,
  FG_FIELD_ROTARY,
  FG_FIELD_ROTARY_DIM,
  FG_FIELD_ROTARY_DTYPE,
  FG_FIELD_RESIDUAL,
  FG_FIELD_NORM,
  FG_FIELD_TARGET,
  FG_FIELD_EPILOGUE,
  FG_SPEC_FIELDS
};

/* Compile-time extents of a kind: attention has d and dv. */
enum { FG_WIDTHS_MAX = 4 };

typedef struct fg_kind {
  const char *name;          /* in specs: "attention" */
  const char *tag;           /* how names of variants begin: "attn" */
  const char *example;       /* words that give a spec of the kind, the plainest */
  uint64_t fields;           /* the spec fields that count: bit FG_FIELD_... */
  const fg_shape_form *form; /* a launch's extents */
  uint64_t of_forward;       /* the fields that no backward has */
  const char *width_field;   /* the spec field that gives its widths: "head_dim" */
  const char *widths;        /* their letters as axes of tensors: "dv" */
  const char *more_widths;   /* those that a description gives: e, pairs of a rotation */
  int width_step;            /* what they are multiples of; 0: any */
  bool has_scale;            /* a launch has a scale */
  bool has_f32;              /* its tensors may be float32 */
  bool has_e4m3;             /* those that go in may be e4m3 */
  const char *fallback;      /* the family that answers when no other does, slowly; NULL: none */
} fg_kind;

enum { FG_KINDS = 6 };
extern const fg_kind fg_kinds[FG_KINDS];

/* The letters of all its widths, in the order of a recipe's. */
const char *fg_kind_widths(const fg_kind *kind, char letters[FG_WIDTHS_MAX + 1]);

/* Does the spec field, FG_FIELD_..., count for the kind? */
static inline bool fg_kind_has_field(const fg_kind *kind, int field) {
  return kind->fields >> field & 1;
}

/* The kind of a spec or variant by its name, "attn_fwd-bf16-d64"; NULL: it is none of these. */
const fg_kind *fg_kind_of_name(const char *name);
/* The kind of a value of the field `kernel`; NULL: there is none. */
const fg_kind *fg_kind_find(const char *kernel);

#endif
