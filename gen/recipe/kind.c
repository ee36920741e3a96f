/* kind.c - the table of kinds of kernels. */
#include "kind.h"

#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

const fg_kind fg_kinds[FG_KINDS] = {
    {.name = "attention",
     .tag = "attn",
     .fields =
         NAMES("kernel", "pass", "dtype", "head_dim", "mask", "score", "inputs", "define", "bias",
               "bias_dims", "bias_dtype", "grad_dtype", "o_dtype", "dqkv_dtype", "kv_dtype",
               "descale_block", "normalizer", "sink", "dropout", "max_logit", "deterministic",
               "batch_invariant", "q_layout", "kv_layout", "slices", "shard", "latent"),
     .form = &fg_shape_forms[FG_FORM_PAIRS],
     .width_field = "head_dim",
     .widths = "dv",
     .more_widths = "",
     .of_forward = NAMES("max_logit", "batch_invariant", "latent"), /* of one launch alone */
     .has_scale = true,
     .has_e4m3 = true,
     .fallback = "simt"},
    {.name = "logsoftmax",
     .tag = "logsoftmax",
     .fields = NAMES("kernel", "pass", "dtype", "width", "target"),
     .form = &fg_shape_forms[FG_FORM_ROWS],
     .width_field = "width",
     .widths = "w",
     .more_widths = "",
     .has_f32 = true},
    {.name = "combine",
     .tag = "combine",
     .fields = NAMES("kernel", "dtype", "head_dim", "normalizer", "sink", "parts_dtype"),
     .form = &fg_shape_forms[FG_FORM_PARTS],
     .width_field = "head_dim",
     .widths = "v",
     .more_widths = "",
     .has_f32 = true},
    {.name = "append",
     .tag = "append",
     .fields = NAMES("kernel", "dtype", "head_dim", "kv_dtype", "q_layout", "kv_layout", "rotary",
                     "rotary_dim", "rotary_dtype"),
     .form = &fg_shape_forms[FG_FORM_APPEND],
     .width_field = "head_dim",
     .widths = "dv",
     .more_widths = "e"},
    {.name = "layernorm",
     .tag = "layernorm",
     .fields = NAMES("kernel", "pass", "dtype", "width", "bias", "residual", "norm"),
     .form = &fg_shape_forms[FG_FORM_ROWS],
     .width_field = "width",
     .widths = "w",
     .more_widths = "",
     .has_f32 = true},
    {.name = "linear",
     .tag = "linear",
     .fields = NAMES("kernel", "pass", "dtype", "width", "bias", "residual", "epilogue"),
     .form = &fg_shape_forms[FG_FORM_ROWS],
     .of_forward = NAMES("residual"), /* whose gradient is that of y */
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

bool fg_kind_has_field(const fg_kind *kind, const char *field) {
  for (const char *const *name = kind->fields; *name; name++)
    if (!strcmp(*name, field)) return true;
  return false;
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
