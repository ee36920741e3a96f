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
                         .help = "what is computed", .example = "kernel=linear width=1024"},
    [FG_FIELD_PASS] = {POINT(pass), .type = &fg_type_choice, .fallback = "forward",
                       .choices = NAMES("forward", "backward"), .tags = NAMES("_fwd", "_bwd"),
                       .help = "the result, or the gradients of its inputs",
                       .example = "head_dim=64 pass=backward"},
    [FG_FIELD_DTYPE] = {POINT(dtype), .type = &fg_type_choice, .fallback = "bf16",
                        .choices = NAMES("bf16", "f16", "f32", "e4m3"),
                        .tags = NAMES("-bf16", "-f16", "-f32", "-e4m3"),
                        .help = "of q k v o and their gradients; sums are float32. Rows and parts "
                                "may be f32, q k v of a "
                                "forward e4m3",
                        .example = "head_dim=64 dtype=f16"},
    [FG_FIELD_HEAD_DIM] = {SPEC(head_dim), .value = offsetof(fg_point, d), .type = &fg_type_widths,
                           .help = "d of q and k, or d/dv: multiples of 8 from 8 to 576, dv to 512",
                           .example = "head_dim=64,128,256,512,192/128,576/512"},
    [FG_FIELD_WIDTH] = {POINT(width), .type = &fg_type_width, .tags = NAMES("-w"),
                        .help =
                            "columns of a row; of linear in/out, multiples of 8: 1024, 512/2048",
                        .example = "kernel=layernorm width=1024,4096"},
    [FG_FIELD_MASK] = {POINT(mask), .type = &fg_type_formula, .fallback = "full",
                       .tags = NAMES("mask"),
                       .help =
                           "visible keys: full, causal, window(1023, 0), k <= p && p - k < width",
                       .example = "head_dim=64 mask=causal,window(127,0),k<=p&&(p-k)%2==0"},
    [FG_FIELD_SCORE] = {POINT(score), .type = &fg_type_formula, .fallback = "s",
                        .tags = NAMES("score"),
                        .help = "of s, the scaled product: softcap(30.0), s + slope[h] * (k - p)",
                        .example = "head_dim=64 score=softcap(30.0),alibi,s*exp((k-p)*0.1)"},
    [FG_FIELD_INPUTS] = {POINT(inputs), .type = &fg_type_named, .fallback = "", .tags = NAMES("in"),
                         .help =
                             "what expressions may use: inputs.slope=f32[h] grad, inputs.width=int",
                         .example = "head_dim=64 mask=k<=p&&p-k<width inputs.width=int"},
    [FG_FIELD_DEFINE] = {SPEC(define), .type = &fg_type_named, .fallback = "",
                         .help = "expressions by a name: define.strided(n)=(q - k) % n == 0",
                         .example = "head_dim=64 mask=strided(4) define.strided(n)=(q-k)%n==0"},
    [FG_FIELD_BIAS] = {POINT(bias), .type = &fg_type_choice, .fallback = "false",
                       .choices = NAMES("false", "true", "grad"),
                       .tags = NAMES("", "-bias", "-biasgrad"),
                       .help = "adds bias[b,h,q,k] to the score, or a vector to each row; grad: "
                               "backward writes dbias "
                               "too",
                       .example = "head_dim=64 bias=true"},
    [FG_FIELD_BIAS_DIMS] = {POINT(bias_dims), .type = &fg_type_axes,
                            .with = offsetof(fg_point, bias), .fallback = "b,h,q,k",
                            .help = "the axes of the bias that are not broadcast: of b,h,q,k",
                            .example = "head_dim=64 bias=true bias_dims=[q,k]"},
    [FG_FIELD_BIAS_DTYPE] = {POINT(bias_dtype), .type = &fg_type_choice, .fallback = "spec",
                             .choices = NAMES("spec", "bf16", "f16", "f32"),
                             .tags = NAMES("", "-biasbf16", "-biasf16", "-biasf32"),
                             .help = "of bias; spec = dtype",
                             .example = "head_dim=64 bias=true bias_dtype=f32"},
    [FG_FIELD_GRAD_DTYPE] = {POINT(grad_dtype), .type = &fg_type_choice, .fallback = "spec",
                             .choices = NAMES("spec", "bf16", "f16", "f32"),
                             .tags = NAMES("", "-gradbf16", "-gradf16", "-gradf32"),
                             .help = "of dbias; spec = that of bias",
                             .example = "head_dim=64 pass=backward bias=grad grad_dtype=f32"},
    [FG_FIELD_O_DTYPE] =
        {POINT(o_dtype), .type = &fg_type_choice, .fallback = "spec",
         .choices = NAMES("spec", "f32", "bf16", "f16"),
         .tags = NAMES("", "-of32", "-obf16", "-of16"),
         .help = "of o, a result or what backward reads; spec = dtype, bf16 where that is e4m3",
         .example = "head_dim=64 o_dtype=f32"},
    [FG_FIELD_DQKV_DTYPE] = {POINT(dqkv_dtype), .type = &fg_type_choice, .fallback = "spec",
                             .choices = NAMES("spec", "f32"), .tags = NAMES("", "-dqkvf32"),
                             .help = "of dq, dk and dv; spec = dtype",
                             .example = "head_dim=64 pass=backward dqkv_dtype=f32"},
    [FG_FIELD_KV_DTYPE] = {POINT(kv_dtype), .type = &fg_type_choice, .fallback = "spec",
                           .choices = NAMES("spec", "e4m3"), .tags = NAMES("", "-kve4m3"),
                           .help = "of k and v, forward alone; spec = dtype",
                           .example = "head_dim=64 kv_dtype=e4m3"},
    [FG_FIELD_DESCALE_BLOCK] = {POINT(descale_block), .type = &fg_type_even, .fallback = "0",
                                .tags = NAMES("-descale"),
                                .help =
                                    "of e4m3: tokens of a sequence that share a descale, 0 = all",
                                .example = "head_dim=64 dtype=e4m3 descale_block=128"},
    [FG_FIELD_NORMALIZER] =
        {POINT(normalizer), .type = &fg_type_word, .fallback = "softmax", .tags = NAMES("norm"),
         .help =
             "what turns scores into weights, a file of templates/attention/normalizers: softmax, "
             "logsoftmax, retention, sigmoid, none",
         .example = "head_dim=64 normalizer=logsoftmax,retention,sigmoid,none"},
    [FG_FIELD_SINK] = {POINT(sink), .type = &fg_type_choice, .fallback = "false",
                       .choices = NAMES("false", "true", "grad"),
                       .tags = NAMES("", "-sink", "-sinkgrad"),
                       .help = "a logit of each head that takes weight and adds nothing; grad: "
                               "backward writes dsink",
                       .example = "head_dim=64 sink=true"},
    [FG_FIELD_DROPOUT] = {POINT(dropout), .type = &fg_type_choice, .fallback = "false",
                          .choices = NAMES("false", "true"), .tags = NAMES("", "-drop"),
                          .help =
                              "weights are dropped at random: the launch has keep, seed and offset",
                          .example = "head_dim=64 dropout=true"},
    [FG_FIELD_MAX_LOGIT] =
        {POINT(max_logit), .type = &fg_type_choice, .fallback = "false",
         .choices = NAMES("false", "true"), .tags = NAMES("", "-maxlogit"),
         .help = "forward: the largest scaled product of a head's visible pairs is an output",
         .example = "head_dim=64 max_logit=true"},
    [FG_FIELD_DETERMINISTIC] = {POINT(deterministic), .type = &fg_type_choice, .fallback = "false",
                                .choices = NAMES("false", "true"), .tags = NAMES("", "-det"),
                                .help = "backward: equal launches give equal bits",
                                .example = "head_dim=64 pass=backward deterministic=true"},
    [FG_FIELD_BATCH_INVARIANT] =
        {POINT(batch_invariant), .type = &fg_type_choice, .fallback = "false",
         .choices = NAMES("false", "true"), .tags = NAMES("", "-inv"),
         .help = "forward: the bits of a sequence's rows do not depend on the sequences beside it",
         .example = "head_dim=64 batch_invariant=true"},
    [FG_FIELD_Q_LAYOUT] = {POINT(q_layout), .type = &fg_type_choice, .fallback = "dense",
                           .choices = NAMES("dense", "packed"), .tags = NAMES("", "-qpacked"),
                           .help = "packed: sequences of queries one behind the other",
                           .example = "head_dim=64 q_layout=packed kv_layout=packed"},
    [FG_FIELD_KV_LAYOUT] = {POINT(kv_layout), .type = &fg_type_choice, .fallback = "dense",
                            .choices = fg_layout_words,
                            .tags = NAMES("", "-kvpacked", "-kvcached", "-kvpaged"),
                            .help = "of keys: packed, cached with lengths, paged by a table",
                            .example = "head_dim=64 kv_layout=paged"},
    [FG_FIELD_SLICES] =
        {POINT(slices), .type = &fg_type_choice, .fallback = "false",
         .choices = NAMES("false", "true"), .tags = NAMES("", "-slices"),
         .help = "the mask is a list of slices of the launch, in each of which `mask` is tested",
         .example = "head_dim=64 slices=true"},
    [FG_FIELD_SHARD] = {POINT(shard), .type = &fg_type_choice, .fallback = "false",
                        .choices = NAMES("false", "true"), .tags = NAMES("", "-shard"),
                        .help = "the launch has a part of each sequence, and says where it is",
                        .example = "head_dim=64 shard=true"},
    [FG_FIELD_LATENT] = {POINT(latent), .type = &fg_type_choice, .fallback = "false",
                         .choices = NAMES("false", "true"), .tags = NAMES("", "-latent"),
                         .help = "forward: v is the first columns of k",
                         .example = "head_dim=576/512 latent=true"},
    [FG_FIELD_PARTS_DTYPE] = {POINT(parts_dtype), .type = &fg_type_choice, .fallback = "f32",
                              .choices = NAMES("f32", "spec"), .tags = NAMES("", "-partsspec"),
                              .help = "of parts of o that are combined; spec = dtype",
                              .example = "kernel=combine head_dim=64 parts_dtype=spec"},
    [FG_FIELD_ROTARY] =
        {POINT(rotary), .type = &fg_type_choice, .fallback = "none",
         .choices = NAMES("none", "interleaved", "halves"),
         .tags = NAMES("", "-interleaved", "-halves"),
         .help = "turns q and new k: columns 2i and 2i + 1, or i and i + rotary_dim / 2",
         .example = "kernel=append head_dim=64 kv_layout=cached rotary=halves"},
    [FG_FIELD_ROTARY_DIM] =
        {POINT(rotary_dim), .type = &fg_type_even, .with = offsetof(fg_point, rotary),
         .fallback = "0", .tags = NAMES("-r"),
         .help = "columns that turn, 0 = all; the others pass",
         .example = "kernel=append head_dim=64 kv_layout=cached rotary=halves rotary_dim=32"},
    [FG_FIELD_ROTARY_DTYPE] =
        {POINT(rotary_dtype), .type = &fg_type_choice, .with = offsetof(fg_point, rotary),
         .fallback = "spec", .choices = NAMES("spec", "f32"), .tags = NAMES("", "-rotaryf32"),
         .help = "of cosines and sines; spec = dtype",
         .example = "kernel=append head_dim=64 kv_layout=cached rotary=halves rotary_dtype=f32"},
    [FG_FIELD_RESIDUAL] = {POINT(residual), .type = &fg_type_choice, .fallback = "false",
                           .choices = NAMES("false", "true"), .tags = NAMES("", "-residual"),
                           .help = "adds rows of another tensor",
                           .example = "kernel=layernorm width=1024 residual=true"},
    [FG_FIELD_NORM] = {POINT(norm), .type = &fg_type_choice, .fallback = "layer",
                       .choices = NAMES("layer", "rms"), .tags = NAMES("", "-rms"),
                       .help = "rms: by the mean square, without a mean and beta",
                       .example = "kernel=layernorm width=1024 norm=rms"},
    [FG_FIELD_TARGET] = {POINT(target), .type = &fg_type_choice, .fallback = "false",
                         .choices = NAMES("false", "true"), .tags = NAMES("", "-target"),
                         .help = "of log-softmax: cross entropy with a column of each row",
                         .example = "kernel=logsoftmax width=1024 target=true"},
    [FG_FIELD_EPILOGUE] =
        {POINT(epilogue), .type = &fg_type_word, .fallback = "none", .tags = NAMES("act"),
         .help =
             "of linear, a row of templates/linear/epilogue.lua: none, relu, gelu, gelu_erf, silu, "
             "reglu, geglu, swiglu, layernorm, rmsnorm",
         .example = "kernel=linear width=1024 "
                    "epilogue=relu,gelu,gelu_erf,silu,reglu,geglu,swiglu,layernorm,rmsnorm"},
    /* plan fields: `tags` holds the letter that names give them; families in order of preference */
    {SPEC(family), .type = &fg_type_choice, .plan = true,
     .choices = NAMES("wgmma", "mma", "decode", "simt"), .help = "how",
     .example = "head_dim=64 family=mma,simt"},
    {SPEC(block_q), .type = &fg_type_number, .plan = true, .tags = NAMES("q"),
     .help = "query rows of a tile; of linear rows of the result",
     .example = "head_dim=64 block_q=64,128"},
    {SPEC(block_kv), .type = &fg_type_number, .plan = true, .tags = NAMES("k"),
     .help = "keys of a tile; of linear columns of the result",
     .example = "head_dim=64 block_kv=64"},
    {SPEC(stages), .type = &fg_type_number, .plan = true, .tags = NAMES("s"),
     .help = "tiles in flight", .example = "head_dim=64 stages=2"},
    {SPEC(warps), .type = &fg_type_number, .plan = true, .tags = NAMES("w"),
     .help = "warps of a block", .example = "head_dim=64 family=mma warps=4"},
    {SPEC(warps_per_key), .type = &fg_type_number, .plan = true, .tags = NAMES("p"),
     .families = NAMES("mma"), .former = "parts", .help = "warps that share the same keys",
     .example = "head_dim=64 pass=backward deterministic=true warps_per_key=2 block_kv=128"},
    {SPEC(key_parts), .type = &fg_type_number, .plan = true, .tags = NAMES("p"),
     .families = NAMES("wgmma"), .former = "parts",
     .help = "parts of the keys of the last rows, a block each, at most",
     .example = "head_dim=128 key_parts=16"},
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
