/* kind.c - the table of kinds of kernels. */
#include "kind.h"

#include <string.h>

#define BIT(field) ((uint64_t)1 << FG_FIELD_##field)

const fg_kind fg_kinds[FG_KINDS] = {
    {.name = "attention",
     .tag = "attn",
     .example = "head_dim=64",
     .fields = BIT(KERNEL) | BIT(PASS) | BIT(DTYPE) | BIT(HEAD_DIM) | BIT(MASK) | BIT(SCORE) |
               BIT(INPUTS) | BIT(DEFINE) | BIT(BIAS) | BIT(BIAS_DIMS) | BIT(BIAS_DTYPE) |
               BIT(GRAD_DTYPE) | BIT(O_DTYPE) | BIT(DQKV_DTYPE) | BIT(KV_DTYPE) |
               BIT(DESCALE_BLOCK) | BIT(NORMALIZER) | BIT(SINK) | BIT(DROPOUT) | BIT(MAX_LOGIT) |
               BIT(DETERMINISTIC) | BIT(BATCH_INVARIANT) | BIT(Q_LAYOUT) | BIT(KV_LAYOUT) |
               BIT(SLICES) | BIT(SHARD) | BIT(LATENT),
     .form = &fg_shape_forms[FG_FORM_PAIRS],
     .width_field = "head_dim",
     .widths = "dv",
     .more_widths = "",
     .of_forward = BIT(MAX_LOGIT) | BIT(BATCH_INVARIANT) | BIT(LATENT), /* of one launch alone */
     .has_scale = true,
     .has_e4m3 = true,
     .fallback = "simt"},
    {.name = "logsoftmax",
     .tag = "logsoftmax",
     .example = "kernel=logsoftmax width=1024",
     .fields = BIT(KERNEL) | BIT(PASS) | BIT(DTYPE) | BIT(WIDTH) | BIT(TARGET),
     .form = &fg_shape_forms[FG_FORM_ROWS],
     .width_field = "width",
     .widths = "w",
     .more_widths = "",
     .has_f32 = true},
    {.name = "combine",
     .tag = "combine",
     .example = "kernel=combine head_dim=64",
     .fields =
         BIT(KERNEL) | BIT(DTYPE) | BIT(HEAD_DIM) | BIT(NORMALIZER) | BIT(SINK) | BIT(PARTS_DTYPE),
     .form = &fg_shape_forms[FG_FORM_PARTS],
     .width_field = "head_dim",
     .widths = "v",
     .more_widths = "",
     .has_f32 = true},
    {.name = "append",
     .tag = "append",
     .example = "kernel=append head_dim=64 kv_layout=cached",
     .fields = BIT(KERNEL) | BIT(DTYPE) | BIT(HEAD_DIM) | BIT(KV_DTYPE) | BIT(Q_LAYOUT) |
               BIT(KV_LAYOUT) | BIT(ROTARY) | BIT(ROTARY_DIM) | BIT(ROTARY_DTYPE),
     .form = &fg_shape_forms[FG_FORM_APPEND],
     .width_field = "head_dim",
     .widths = "dv",
     .more_widths = "e"},
    {.name = "layernorm",
     .tag = "layernorm",
     .example = "kernel=layernorm width=1024",
     .fields =
         BIT(KERNEL) | BIT(PASS) | BIT(DTYPE) | BIT(WIDTH) | BIT(BIAS) | BIT(RESIDUAL) | BIT(NORM),
     .form = &fg_shape_forms[FG_FORM_ROWS],
     .width_field = "width",
     .widths = "w",
     .more_widths = "",
     .has_f32 = true},
    {.name = "linear",
     .tag = "linear",
     .example = "kernel=linear width=1024",
     .fields = BIT(KERNEL) | BIT(PASS) | BIT(DTYPE) | BIT(WIDTH) | BIT(BIAS) | BIT(RESIDUAL) |
               BIT(EPILOGUE),
     .form = &fg_shape_forms[FG_FORM_ROWS],
     .of_forward = BIT(RESIDUAL), /* whose gradient is that of y */
     .width_field = "width",
     .widths = "jo",
     .more_widths = "fx",
     .width_step = 8,
     .fallback = "simt"},
};

const char *fg_kind_widths(const fg_kind *kind, char letters[FG_WIDTHS_MAX + 1]) {
  strcpy(letters, kind->widths);
  return strcat(letters, kind->more_widths);
}

const fg_kind *fg_kind_of_name(const char *name) {
  for (int i = 0; i < FG_KINDS; i++) {
    const size_t n = strlen(fg_kinds[i].tag);
    if (!strncmp(name, fg_kinds[i].tag, n) && (name[n] == '_' || name[n] == '-'))
      return &fg_kinds[i];
  }
  return NULL;
}

const fg_kind *fg_kind_find(const char *kernel) {
  for (int i = 0; i < FG_KINDS; i++)
    if (!strcmp(fg_kinds[i].name, kernel)) return &fg_kinds[i];
  return NULL;
}
