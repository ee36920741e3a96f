/* point.c - one checked point: what its fields mean together, and its name.
 *
 * The name is the fields' tags in the order of the table: "attn_bwd-f16-d192v128-causal-bias_hqk".
 * It reads back: fg_point_parse(fg_point_name(p)) = p. */
#include "spec.h"

#include "base/text.h"

#include <string.h>

enum { DIM_B = 1, DIM_Q = 4, DIM_K = 8, ALL_DIMS = 15 };

/* Columns of e4m3 come 16 bytes at a time. */
enum { E4M3_STEP = 16 };

/* A dtype choice whose index 0 means "that of `base`": index i > 0 is element type i - 1. */
static int settle_dtype(int choice, int base) { return choice - 1 == base ? 0 : choice; }

/* The type of 16 bits or more that goes with the point's dtype: that itself, or of e4m3 that of o.
 */
enum { O_BF16 = 2, O_F16 };
static int wide_dtype(const fg_point *p) {
  if (p->dtype != FG_ELEM_E4M3) return p->dtype;
  return p->o_dtype == O_F16 ? FG_ELEM_F16 : FG_ELEM_BF16;
}

/* A choice of o's type that says what it is anyway. */
static int settle_o_dtype(const fg_point *p) {
  const bool is_usual =
      (p->o_dtype == O_BF16 && (p->dtype == FG_ELEM_BF16 || p->dtype == FG_ELEM_E4M3)) ||
      (p->o_dtype == O_F16 && p->dtype == FG_ELEM_F16);
  return is_usual ? 0 : p->o_dtype;
}

/* Has the bias an axis of tokens, which says the sequence too? */
static bool has_tokens(const fg_point *p) {
  return (p->q_layout == FG_PACKED && p->bias_dims & DIM_Q) ||
         (p->kv_layout == FG_PACKED && p->bias_dims & DIM_K);
}

/* What is of the forward alone. */
static void forget_forward(fg_point *p) {
  const uint64_t fields = fg_point_kind(p)->of_forward;
  for (int i = 0; i < FG_SPEC_FIELDS; i++)
    if (fields >> i & 1) *(int *)fg_field_place(&fg_fields[i], p) = 0;
}

void fg_point_settle(fg_point *p) {
  if (p->pass == FG_PASS_FORWARD && p->bias == FG_BIAS_GRAD) p->bias = FG_BIAS_ON;
  if (p->pass == FG_PASS_FORWARD && p->sink == FG_SINK_GRAD) p->sink = FG_SINK_ON;
  if (p->pass == FG_PASS_FORWARD) p->deterministic = 0; /* it always is */
  if (p->pass == FG_PASS_BACKWARD) forget_forward(p);
  if (has_tokens(p)) p->bias_dims &= ~DIM_B;
  if (p->bias == FG_BIAS_OFF || !fg_kind_has_field(fg_point_kind(p), FG_FIELD_BIAS_DIMS))
    p->bias_dims = ALL_DIMS, p->bias_dtype = 0;
  p->o_dtype = settle_o_dtype(p);
  if (p->dtype == FG_ELEM_E4M3) p->kv_dtype = 0;
  if (!fg_point_has_descales(p)) p->descale_block = 0;
  p->bias_dtype = settle_dtype(p->bias_dtype, wide_dtype(p));
  int bias_elem = p->bias_dtype ? p->bias_dtype - 1 : wide_dtype(p);
  p->grad_dtype = p->bias == FG_BIAS_GRAD ? settle_dtype(p->grad_dtype, bias_elem) : 0;
  if (p->pass == FG_PASS_FORWARD) p->dqkv_dtype = 0;
  if (fg_point_elem(p) == FG_ELEM_F32) p->o_dtype = p->dqkv_dtype = p->parts_dtype = 0;
  if (!p->rotary) p->rotary_dim = p->rotary_dtype = 0;
  if (p->rotary_dim == p->d) p->rotary_dim = 0;
  if (!strchr(fg_point_kind(p)->widths, 'd')) p->d = p->dv; /* there are no q and k */
}

fg_layout fg_point_layout(const fg_point *p) {
  return (fg_layout){p->q_layout, p->kv_layout, p->slices, p->shard, p->latent};
}

fg_status fg_point_check_layout(const fg_point *p) {
  const char *const *words = fg_layout_words;
  if (p->pass == FG_PASS_BACKWARD && p->kv_layout > FG_PACKED)
    return fg_fail(FG_ESPEC, "kv_layout: backward takes dense or packed keys, not %s",
                   words[p->kv_layout]);
  if (p->slices && (p->q_layout || p->kv_layout))
    return fg_fail(FG_ESPEC, "slices: they are of dense tokens, not of q_layout=%s, kv_layout=%s",
                   words[p->q_layout], words[p->kv_layout]);
  if (p->slices && p->shard)
    return fg_fail(FG_ESPEC, "shard: the tokens of slices=true are all there, not a part of them");
  if (p->latent && p->dv > p->d)
    return fg_fail(FG_ESPEC, "latent: v is the first %d columns of k, which has %d", p->dv, p->d);
  return FG_OK;
}

fg_elem fg_point_elem(const fg_point *p) { return (fg_elem)p->dtype; }

fg_elem fg_point_kv_elem(const fg_point *p) {
  return p->kv_dtype ? FG_ELEM_E4M3 : fg_point_elem(p);
}

bool fg_point_has_descales(const fg_point *p) { return fg_point_kv_elem(p) == FG_ELEM_E4M3; }

fg_elem fg_point_bias_elem(const fg_point *p) {
  return (fg_elem)(p->bias_dtype ? p->bias_dtype - 1 : wide_dtype(p));
}

fg_elem fg_point_grad_elem(const fg_point *p) {
  return p->grad_dtype ? (fg_elem)(p->grad_dtype - 1) : fg_point_bias_elem(p);
}

fg_elem fg_point_o_elem(const fg_point *p) {
  return p->o_dtype && p->o_dtype < O_BF16 ? FG_ELEM_F32 : (fg_elem)wide_dtype(p);
}

fg_elem fg_point_dqkv_elem(const fg_point *p) {
  return p->dqkv_dtype ? FG_ELEM_F32 : fg_point_elem(p);
}

fg_elem fg_point_parts_elem(const fg_point *p) {
  return p->parts_dtype ? fg_point_elem(p) : FG_ELEM_F32;
}

fg_elem fg_point_rotary_elem(const fg_point *p) {
  return p->rotary_dtype ? FG_ELEM_F32 : fg_point_elem(p);
}

/* What e4m3 goes with: weights are rounded to it too, and so have a largest one. */
static fg_status check_e4m3(const fg_point *p) {
  if (p->pass == FG_PASS_BACKWARD)
    return fg_fail(FG_ESPEC, "%s: e4m3 is of the forward; backward takes bf16 and f16",
                   p->kv_dtype ? "kv_dtype" : "dtype");
  if (p->d % E4M3_STEP || p->dv % E4M3_STEP)
    return fg_fail(FG_ESPEC, "head_dim: e4m3 takes multiples of %d, not %d/%d", E4M3_STEP, p->d,
                   p->dv);
  if (fg_point_elem(p) == FG_ELEM_E4M3 && p->normalizer)
    return fg_fail(FG_ESPEC,
                   "normalizer: dtype=e4m3 takes softmax, whose weights are at most 1, not %s",
                   p->normalizer);
  return FG_OK;
}

fg_status fg_point_check_dtype(const fg_point *p) {
  const fg_kind *kind = fg_point_kind(p);
  const fg_elem elem = fg_point_elem(p);
  if ((elem == FG_ELEM_F32 && !kind->has_f32) || (elem == FG_ELEM_E4M3 && !kind->has_e4m3))
    return fg_fail(FG_ESPEC, "dtype: kernel=%s takes bf16%s and %s, not %s", kind->name,
                   kind->has_f32 || kind->has_e4m3 ? ", f16" : "",
                   kind->has_f32    ? "f32"
                   : kind->has_e4m3 ? "e4m3"
                                    : "f16",
                   fg_elem_name(elem));
  if (p->o_dtype >= O_BF16 && elem != FG_ELEM_E4M3)
    return fg_fail(FG_ESPEC, "o_dtype: with dtype=%s it is that or f32, not %s", fg_elem_name(elem),
                   p->o_dtype == O_F16 ? "f16" : "bf16");
  return fg_point_has_descales(p) ? check_e4m3(p) : FG_OK;
}

fg_status fg_point_check_widths(const fg_point *p) {
  const fg_kind *kind = fg_point_kind(p);
  int width[FG_WIDTHS_MAX] = {0};
  fg_point_widths(p, width);
  if (fg_field_find(kind->width_field)->type != &fg_type_width) return FG_OK;
  if (!kind->widths[1] && p->width != p->width_out)
    return fg_fail(FG_ESPEC, "width: rows of kernel=%s have one width, not %d/%d", kind->name,
                   p->width, p->width_out);
  for (int i = 0; kind->widths[i]; i++)
    if (kind->width_step && width[i] % kind->width_step)
      return fg_fail(FG_ESPEC, "width: kernel=%s takes multiples of %d, not %d", kind->name,
                     kind->width_step, width[i]);
  return FG_OK;
}

bool fg_point_equal(const fg_point *a, const fg_point *b) { return !memcmp(a, b, sizeof *a); }

const fg_kind *fg_point_kind(const fg_point *p) { return &fg_kinds[p->kernel]; }

bool fg_kind_has_spec_field(const fg_kind *kind, const fg_field *field) {
  const int i = (int)(field - fg_fields);
  return i < FG_SPEC_FIELDS && fg_kind_has_field(kind, i);
}

bool fg_field_belongs(const fg_field *field, const fg_point *p) {
  return fg_kind_has_spec_field(fg_point_kind(p), field);
}

void fg_point_widths(const fg_point *p, int width[FG_WIDTHS_MAX]) {
  const fg_kind *kind = fg_point_kind(p);
  const fg_field *field = fg_field_find(kind->width_field);
  memcpy(width, (const char *)p + field->value, strlen(kind->widths) * sizeof *width);
}

/* Does the field count in this point, whose kernel is known? */
static bool counts(const fg_field *field, const fg_point *p) {
  if (!fg_field_belongs(field, p)) return false;
  return !field->with || *(const int *)(const void *)((const char *)p + field->with);
}

/* Has the field a place in names: a tag, and in the point a value? */
static bool is_named(const fg_field *field) {
  return field->type->tag && (field->value || !field->type->is_list);
}

/* The tags of all fields in their order; before: as earlier versions spelled them. */
static int print_name(const fg_point *p, bool before, size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    const fg_field *field = &fg_fields[i];
    if (!is_named(field) || !counts(field, p)) continue;
    const void *value = (const char *)p + field->value;
    n += field->type->tag(field, value, before, fg_room(size, n), fg_room_at(size, text, n));
  }
  return n;
}

int fg_point_name(const fg_point *p, size_t size, char *text) {
  return print_name(p, false, size, text);
}

int fg_point_name_before(const fg_point *p, size_t size, char *text) {
  return print_name(p, true, size, text);
}

const char *fg_point_parse(const char *name, fg_point *point) {
  fg_point p = {.bias_dims = ALL_DIMS};
  for (int i = 0; i < FG_SPEC_FIELDS && name; i++) {
    const fg_field *field = &fg_fields[i];
    if (is_named(field) && counts(field, &p))
      name = field->type->untag(field, name, fg_field_place(field, &p));
  }
  if (name) *point = p;
  return name;
}
