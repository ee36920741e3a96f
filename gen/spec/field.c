/* field.c - the table of spec and plan fields: parsing, printing and naming derive from its rows.
 *
 * To add a field: its number in kind.h, a row here, a member in fg_spec and one in fg_point. To
 * rename one: its old name as a row behind the others, and as its `former`. */
#include "point_formula.h"

#include "base/spelling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SPEC(n)    .name = #n, .text = offsetof(fg_spec, n)
#define POINT(n)   SPEC(n), .value = offsetof(fg_point, n)

/* Rows are in the order of names. A tag of a later row must not begin with one of an earlier row
 * that may be empty, or a name would not read back; plan fields of different families may share a
 * tag. */
const fg_field fg_fields[FG_FIELD_ROWS] = {
    [FG_FIELD_KERNEL] = {POINT(kernel), .type = &fg_type_kind, .fallback = "attention",
                         .help = "what is computed"},
    [FG_FIELD_PASS] = {POINT(pass), .type = &fg_type_choice, .fallback = "forward",
                       .choices = NAMES("forward", "backward"), .tags = NAMES("_fwd", "_bwd"),
                       .help = "the result, or the gradients of its inputs"},
    [FG_FIELD_DTYPE] = {POINT(dtype), .type = &fg_type_choice, .fallback = "bf16",
                        .choices = NAMES("bf16", "f16", "f32", "e4m3"),
                        .tags = NAMES("-bf16", "-f16", "-f32", "-e4m3"),
                        .help = "of q k v o and their gradients; sums are float32. Rows and parts "
                                "may be f32, q k v of a "
                                "forward e4m3"},
    [FG_FIELD_HEAD_DIM] = {SPEC(head_dim), .value = offsetof(fg_point, d), .type = &fg_type_widths,
                           .help =
                               "d of q and k, or d/dv: multiples of 8 from 8 to 576, dv to 512"},
    [FG_FIELD_WIDTH] = {POINT(width), .type = &fg_type_width, .tags = NAMES("-w"),
                        .help =
                            "columns of a row; of linear in/out, multiples of 8: 1024, 512/2048"},
    [FG_FIELD_MASK] = {POINT(mask), .type = &fg_type_formula, .fallback = "full",
                       .tags = NAMES("mask"),
                       .help =
                           "visible keys: full, causal, window(1023, 0), k <= p && p - k < width"},
    [FG_FIELD_SCORE] = {POINT(score), .type = &fg_type_formula, .fallback = "s",
                        .tags = NAMES("score"),
                        .help = "of s, the scaled product: softcap(30.0), s + slope[h] * (k - p)"},
    [FG_FIELD_INPUTS] =
        {POINT(inputs), .type = &fg_type_named, .fallback = "", .tags = NAMES("in"),
         .help = "what expressions may use: inputs.slope=f32[h] grad, inputs.width=int"},
    [FG_FIELD_DEFINE] = {SPEC(define), .type = &fg_type_named, .fallback = "",
                         .help = "expressions by a name: define.strided(n)=(q - k) % n == 0"},
    [FG_FIELD_BIAS] = {POINT(bias), .type = &fg_type_choice, .fallback = "false",
                       .choices = NAMES("false", "true", "grad"),
                       .tags = NAMES("", "-bias", "-biasgrad"),
                       .help = "adds bias[b,h,q,k] to the score, or a vector to each row; grad: "
                               "backward writes dbias "
                               "too"},
    [FG_FIELD_BIAS_DIMS] = {POINT(bias_dims), .type = &fg_type_axes,
                            .with = offsetof(fg_point, bias), .fallback = "b,h,q,k",
                            .help = "the axes of the bias that are not broadcast: of b,h,q,k"},
    [FG_FIELD_BIAS_DTYPE] = {POINT(bias_dtype), .type = &fg_type_choice, .fallback = "spec",
                             .choices = NAMES("spec", "bf16", "f16", "f32"),
                             .tags = NAMES("", "-biasbf16", "-biasf16", "-biasf32"),
                             .help = "of bias; spec = dtype"},
    [FG_FIELD_GRAD_DTYPE] = {POINT(grad_dtype), .type = &fg_type_choice, .fallback = "spec",
                             .choices = NAMES("spec", "bf16", "f16", "f32"),
                             .tags = NAMES("", "-gradbf16", "-gradf16", "-gradf32"),
                             .help = "of dbias; spec = that of bias"},
    [FG_FIELD_O_DTYPE] =
        {POINT(o_dtype), .type = &fg_type_choice, .fallback = "spec",
         .choices = NAMES("spec", "f32", "bf16", "f16"),
         .tags = NAMES("", "-of32", "-obf16", "-of16"),
         .help = "of o, a result or what backward reads; spec = dtype, bf16 where that is e4m3"},
    [FG_FIELD_DQKV_DTYPE] = {POINT(dqkv_dtype), .type = &fg_type_choice, .fallback = "spec",
                             .choices = NAMES("spec", "f32"), .tags = NAMES("", "-dqkvf32"),
                             .help = "of dq, dk and dv; spec = dtype"},
    [FG_FIELD_KV_DTYPE] = {POINT(kv_dtype), .type = &fg_type_choice, .fallback = "spec",
                           .choices = NAMES("spec", "e4m3"), .tags = NAMES("", "-kve4m3"),
                           .help = "of k and v, forward alone; spec = dtype"},
    [FG_FIELD_DESCALE_BLOCK] = {POINT(descale_block), .type = &fg_type_even, .fallback = "0",
                                .tags = NAMES("-descale"),
                                .help =
                                    "of e4m3: tokens of a sequence that share a descale, 0 = all"},
    [FG_FIELD_NORMALIZER] =
        {POINT(normalizer), .type = &fg_type_word, .fallback = "softmax", .tags = NAMES("norm"),
         .help =
             "what turns scores into weights, a file of templates/attention/normalizers: softmax, "
             "logsoftmax, retention, sigmoid, none"},
    [FG_FIELD_SINK] = {POINT(sink), .type = &fg_type_choice, .fallback = "false",
                       .choices = NAMES("false", "true", "grad"),
                       .tags = NAMES("", "-sink", "-sinkgrad"),
                       .help = "a logit of each head that takes weight and adds nothing; grad: "
                               "backward writes dsink"},
    [FG_FIELD_DROPOUT] =
        {POINT(dropout), .type = &fg_type_choice, .fallback = "false",
         .choices = NAMES("false", "true"), .tags = NAMES("", "-drop"),
         .help = "weights are dropped at random: the launch has keep, seed and offset"},
    [FG_FIELD_MAX_LOGIT] =
        {POINT(max_logit), .type = &fg_type_choice, .fallback = "false",
         .choices = NAMES("false", "true"), .tags = NAMES("", "-maxlogit"),
         .help = "forward: the largest scaled product of a head's visible pairs is an output"},
    [FG_FIELD_DETERMINISTIC] = {POINT(deterministic), .type = &fg_type_choice, .fallback = "false",
                                .choices = NAMES("false", "true"), .tags = NAMES("", "-det"),
                                .help = "backward: equal launches give equal bits"},
    [FG_FIELD_BATCH_INVARIANT] =
        {POINT(batch_invariant), .type = &fg_type_choice, .fallback = "false",
         .choices = NAMES("false", "true"), .tags = NAMES("", "-inv"),
         .help = "forward: the bits of a sequence's rows do not depend on the sequences beside it"},
    [FG_FIELD_Q_LAYOUT] = {POINT(q_layout), .type = &fg_type_choice, .fallback = "dense",
                           .choices = NAMES("dense", "packed"), .tags = NAMES("", "-qpacked"),
                           .help = "packed: sequences of queries one behind the other"},
    [FG_FIELD_KV_LAYOUT] = {POINT(kv_layout), .type = &fg_type_choice, .fallback = "dense",
                            .choices = fg_layout_words,
                            .tags = NAMES("", "-kvpacked", "-kvcached", "-kvpaged"),
                            .help = "of keys: packed, cached with lengths, paged by a table"},
    [FG_FIELD_SLICES] =
        {POINT(slices), .type = &fg_type_choice, .fallback = "false",
         .choices = NAMES("false", "true"), .tags = NAMES("", "-slices"),
         .help = "the mask is a list of slices of the launch, in each of which `mask` is tested"},
    [FG_FIELD_SHARD] = {POINT(shard), .type = &fg_type_choice, .fallback = "false",
                        .choices = NAMES("false", "true"), .tags = NAMES("", "-shard"),
                        .help = "the launch has a part of each sequence, and says where it is"},
    [FG_FIELD_LATENT] = {POINT(latent), .type = &fg_type_choice, .fallback = "false",
                         .choices = NAMES("false", "true"), .tags = NAMES("", "-latent"),
                         .help = "forward: v is the first columns of k"},
    [FG_FIELD_PARTS_DTYPE] = {POINT(parts_dtype), .type = &fg_type_choice, .fallback = "f32",
                              .choices = NAMES("f32", "spec"), .tags = NAMES("", "-partsspec"),
                              .help = "of parts of o that are combined; spec = dtype"},
    [FG_FIELD_ROTARY] =
        {POINT(rotary), .type = &fg_type_choice, .fallback = "none",
         .choices = NAMES("none", "interleaved", "halves"),
         .tags = NAMES("", "-interleaved", "-halves"),
         .help = "turns q and new k: columns 2i and 2i + 1, or i and i + rotary_dim / 2"},
    [FG_FIELD_ROTARY_DIM] = {POINT(rotary_dim), .type = &fg_type_even,
                             .with = offsetof(fg_point, rotary), .fallback = "0",
                             .tags = NAMES("-r"),
                             .help = "columns that turn, 0 = all; the others pass"},
    [FG_FIELD_ROTARY_DTYPE] = {POINT(rotary_dtype), .type = &fg_type_choice,
                               .with = offsetof(fg_point, rotary), .fallback = "spec",
                               .choices = NAMES("spec", "f32"), .tags = NAMES("", "-rotaryf32"),
                               .help = "of cosines and sines; spec = dtype"},
    [FG_FIELD_RESIDUAL] = {POINT(residual), .type = &fg_type_choice, .fallback = "false",
                           .choices = NAMES("false", "true"), .tags = NAMES("", "-residual"),
                           .help = "adds rows of another tensor"},
    [FG_FIELD_NORM] = {POINT(norm), .type = &fg_type_choice, .fallback = "layer",
                       .choices = NAMES("layer", "rms"), .tags = NAMES("", "-rms"),
                       .help = "rms: by the mean square, without a mean and beta"},
    [FG_FIELD_TARGET] = {POINT(target), .type = &fg_type_choice, .fallback = "false",
                         .choices = NAMES("false", "true"), .tags = NAMES("", "-target"),
                         .help = "of log-softmax: cross entropy with a column of each row"},
    [FG_FIELD_EPILOGUE] =
        {POINT(epilogue), .type = &fg_type_word, .fallback = "none", .tags = NAMES("act"),
         .help =
             "of linear, a row of templates/linear/epilogue.lua: none, relu, gelu, gelu_erf, silu, "
             "reglu, geglu, swiglu, layernorm, rmsnorm"},
    /* plan fields: `tags` holds the letter that names give them; families in order of preference */
    {SPEC(family), .type = &fg_type_choice, .plan = true,
     .choices = NAMES("wgmma", "mma", "decode", "simt"), .help = "how"},
    {SPEC(block_q), .type = &fg_type_number, .plan = true, .tags = NAMES("q"),
     .help = "query rows of a tile; of linear rows of the result"},
    {SPEC(block_kv), .type = &fg_type_number, .plan = true, .tags = NAMES("k"),
     .help = "keys of a tile; of linear columns of the result"},
    {SPEC(stages), .type = &fg_type_number, .plan = true, .tags = NAMES("s"),
     .help = "tiles in flight"},
    {SPEC(warps), .type = &fg_type_number, .plan = true, .tags = NAMES("w"),
     .help = "warps of a block"},
    {SPEC(warps_per_key), .type = &fg_type_number, .plan = true, .tags = NAMES("p"),
     .families = NAMES("mma"), .former = "parts", .help = "warps that share the same keys"},
    {SPEC(key_parts), .type = &fg_type_number, .plan = true, .tags = NAMES("p"),
     .families = NAMES("wgmma"), .former = "parts",
     .help = "parts of the keys of the last rows, a block each, at most"},
    /* former names */
    {SPEC(parts), .type = &fg_type_number, .plan = true},
};

const fg_field *fg_field_find(const char *name) {
  for (int i = 0; i < FG_FIELD_ROWS; i++)
    if (!strcmp(fg_fields[i].name, name)) return &fg_fields[i];
  return NULL;
}

const char *fg_field_nearest(const char *name) {
  const char *names[FG_FIELDS];
  for (int i = 0; i < FG_FIELDS; i++) names[i] = fg_fields[i].name;
  return fg_nearest(name, names, FG_FIELDS);
}

bool fg_field_is_of(const fg_field *field, const char *family) {
  if (!field->families) return true;
  for (int i = 0; field->families[i]; i++)
    if (!strcmp(field->families[i], family)) return true;
  return false;
}

/* The sentence says what is allowed and, among choices, which is near. */
static fg_status refuse(const fg_field *field, const char *text) {
  enum { MOST = 32 };
  char allowed[256];
  const char *choices[MOST];
  int n = 0;
  field->type->allowed(field, sizeof allowed, allowed);
  while (field->type->choice && n < MOST && (choices[n] = field->type->choice(field, n))) n++;
  const char *near = n ? fg_nearest(text, choices, n) : NULL;
  return fg_fail(FG_ESPEC, "%s: \"%.64s\"%s is not allowed; expected %s%s%s%s", field->name, text,
                 strlen(text) > 64 ? "..." : "", allowed, near ? " (did you mean \"" : "",
                 near ? near : "", near ? "\"?)" : "");
}

fg_status fg_field_read(const fg_field *field, const char *text, fg_point *point, int *plan_value) {
  void *value = field->plan ? plan_value : fg_field_place(field, point);
  if (field->type->read(field, text, value)) return FG_OK;
  return field->type->is_expression ? FG_ESPEC
                                    : refuse(field, text); /* which has its own sentence */
}

void *fg_field_place(const fg_field *field, fg_point *point) {
  return (char *)point + field->value;
}

/* A field without a place, definitions, has its default's text. */
const char *fg_field_text(const fg_field *field, const fg_point *point) {
  const char *const *text = fg_field_place(field, (fg_point *)(uintptr_t)point);
  return field->value && *text ? *text : field->fallback;
}

int fg_field_print(const fg_field *field, const fg_point *point, size_t size, char *text) {
  if (field->plan) return 0; /* it has no place in a point */
  if (!field->value && field->type->is_expression)
    return snprintf(text, size, "%s", field->fallback);
  return field->type->print(field, fg_field_place(field, (fg_point *)(uintptr_t)point), size, text);
}
