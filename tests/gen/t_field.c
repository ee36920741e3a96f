/* t_field.c - the table of fields: one text form for every value, exact, refused by name. */
#include "spec/spec.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

/* Reads `text` as the field's value into *point; plan fields give *value. */
static fg_status read_value(const char *name, const char *text, fg_point *point, int *value) {
  const fg_field *field = fg_field_find(name);
  ck_assert_msg(field != NULL, "no field %s", name);
  return fg_field_read(field, text, point, value);
}

static void accepts(const char *name, const char *text, const char *printed) {
  fg_point point = {0};
  int value = 0;
  char again[64] = "";
  ck_assert_msg(read_value(name, text, &point, &value) == FG_OK, "%s=%s: %s", name, text,
                fg_error());
  if (fg_field_find(name)->plan)
    snprintf(again, sizeof again, "%d", value);
  else
    ck_assert_int_eq(fg_field_print(fg_field_find(name), &point, sizeof again, again),
                     (int)strlen(printed));
  ck_assert_str_eq(again, printed);
}

static void refuses(const char *name, const char *text, const char *why) {
  fg_point point = {0};
  int value = -1;
  ck_assert_int_eq(read_value(name, text, &point, &value), FG_ESPEC);
  ck_assert_str_eq(fg_error(), why);
}

TEST(choices_read_and_print) {
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    const fg_field *field = &fg_fields[i];
    for (int c = 0; field->type->choice && field->type->choice(field, c); c++)
      accepts(field->name, field->type->choice(field, c), field->type->choice(field, c));
    if (field->fallback) accepts(field->name, field->fallback, field->fallback);
  }
}

TEST(head_dims_read_and_print) {
  char text[32];
  for (int d = 8; d <= 512; d += 8) {
    snprintf(text, sizeof text, "%d", d);
    accepts("head_dim", text, text);
    snprintf(text, sizeof text, "%d/%d", 584 - d, d);
    if (d != 292) accepts("head_dim", text, text);
  }
  accepts("head_dim", "128/128", "128");
}

TEST(bias_dims_read_and_print) {
  accepts("bias_dims", "b,h,q,k", "b,h,q,k");
  accepts("bias_dims", "k,q,h,b", "b,h,q,k"); /* a set: order is the table's */
  accepts("bias_dims", "[h,q,k]", "h,q,k");
  accepts("bias_dims", " h , q ", "h,q");
  accepts("bias_dims", "[ k ]", "k");
  accepts("bias_dims", "[]", "[]");
}

TEST(plan_numbers_read) {
  static const char *const fields[] = {"block_q", "block_kv",      "stages",
                                       "warps",   "warps_per_key", "key_parts"};
  for (int i = 0; i < 6; i++) {
    accepts(fields[i], "1", "1");
    accepts(fields[i], "176", "176");
    accepts(fields[i], "999999999", "999999999");
  }
  accepts("family", "mma", "1");
  accepts("family", "simt", "3");
}

TEST(choices_refused) {
  refuses("kernel", "attn",
          "kernel: \"attn\" is not allowed; expected attention, logsoftmax, combine, append, "
          "layernorm, linear");
  refuses(
      "pass", "foward",
      "pass: \"foward\" is not allowed; expected forward, backward (did you mean \"forward\"?)");
  refuses("dtype", "bf61",
          "dtype: \"bf61\" is not allowed; expected bf16, f16, f32, e4m3 "
          "(did you mean \"bf16\"?)");
  refuses("mask", "Causal",
          "mask: column 1: \"Causal\" is no name, input or definition (did you mean \"causal\"?)\n"
          "  Causal\n  ^");
  refuses("mask", "window(1)",
          "mask: column 1: window does not take 1 value: write window(l, r)\n  window(1)\n  ^");
  refuses("bias", "", "bias: \"\" is not allowed; expected false, true, grad");
  refuses("bias", "1", "bias: \"1\" is not allowed; expected false, true, grad");
  refuses("bias_dtype", "f23",
          "bias_dtype: \"f23\" is not allowed; expected spec, bf16, f16, f32 "
          "(did you mean \"f32\"?)");
  refuses("grad_dtype", "double",
          "grad_dtype: \"double\" is not allowed; expected spec, bf16, f16, f32");
  refuses("o_dtype", "float32",
          "o_dtype: \"float32\" is not allowed; expected spec, f32, bf16, f16");
  refuses("kv_dtype", "f16", "kv_dtype: \"f16\" is not allowed; expected spec, e4m3");
  refuses("descale_block", "63",
          "descale_block: \"63\" is not allowed; expected an even number from 0 to 576");
  refuses("dqkv_dtype", "bf16", "dqkv_dtype: \"bf16\" is not allowed; expected spec, f32");
  refuses("normalizer", "Softmax",
          "normalizer: \"Softmax\" is not allowed; expected a word of at most 24 letters a-z, "
          "digits and _");
  refuses(
      "normalizer", "a_normaliser_of_25_letters",
      "normalizer: \"a_normaliser_of_25_letters\" is not allowed; expected a word of at most 24 "
      "letters a-z, digits and _");
  refuses("parts_dtype", "f16",
          "parts_dtype: \"f16\" is not allowed; expected f32, spec (did you mean \"f32\"?)");
  refuses("rotary", "half", "rotary: \"half\" is not allowed; expected none, interleaved, halves");
  refuses("rotary_dim", "3",
          "rotary_dim: \"3\" is not allowed; expected an even number from 0 to 576");
  refuses("rotary_dim", "578",
          "rotary_dim: \"578\" is not allowed; expected an even number from 0 to 576");
  refuses("deterministic", "yes", "deterministic: \"yes\" is not allowed; expected false, true");
  refuses("family", "smit",
          "family: \"smit\" is not allowed; expected wgmma, mma, decode, simt (did you mean "
          "\"simt\"?)");
}

TEST(long_text_is_cut) {
  char text[201] = "", why[256];
  memset(text, 'x', 200);
  snprintf(why, sizeof why, "dtype: \"%.64s\"... is not allowed; expected bf16, f16, f32, e4m3",
           text);
  refuses("dtype", text, why);
}

/* Conversions are exact: no other spelling of a number is one, and nothing is rounded or wrapped.
 */
TEST(head_dims_refused) {
  static const char *const bad[] = {"",           "0",
                                    "7",          "12",
                                    "132",        "520",
                                    "-64",        "+64",
                                    "064",        "64.",
                                    "64.0",       "1e2",
                                    "0x40",       "64 ",
                                    " 64",        "64/",
                                    "/64",        "64/0",
                                    "//",         "64//8",
                                    "64/7",       "584/264",
                                    "192/128/64", "d64",
                                    "64d",        "6 4",
                                    "causal",     "18446744073709551680",
                                    "4294967360", "64/4294967360",
                                    "584/64",     "64/520",
                                    "576",        "99999999999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char why[200];
    snprintf(why, sizeof why,
             "head_dim: \"%s\" is not allowed; expected d or d/dv, multiples of 8 from 8 to 576, "
             "dv to 512 (128 or 192/128)",
             bad[i]);
    refuses("head_dim", bad[i], why);
  }
}

TEST(bias_dims_refused) {
  static const char *const bad[] = {"",  "h,h", "x",   "h,",   ",h",       "hq",    "[",
                                    "]", "[h",  "h]",  "[h,]", "h q",      "[[h]]", "1",
                                    "d", "h;q", "B,H", "[,]",  "b,h,q,k,b"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char why[200];
    snprintf(why, sizeof why,
             "bias_dims: \"%s\" is not allowed; expected a list of the axes b, h, q, k, each once "
             "(h,q,k)",
             bad[i]);
    refuses("bias_dims", bad[i], why);
  }
}

TEST(plan_numbers_refused) {
  static const char *const bad[] = {"", "0", "-1", "1.0", "064", "1e2", "1000000000", "64k", "64 "};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char why[100];
    snprintf(why, sizeof why, "block_q: \"%s\" is not allowed; expected a positive integer",
             bad[i]);
    refuses("block_q", bad[i], why);
  }
}

TEST(nearest_name) {
  static const struct {
    const char *given, *meant;
  } slip[] = {{"maks", "mask"},
              {"head_dims", "head_dim"},
              {"headdim", "head_dim"},
              {"blockq", "block_q"},
              {"block_k", "block_q"},
              {"bais", "bias"},
              {"warp", "warps"},
              {"normaliser", "normalizer"},
              {"xyzzy", NULL},
              {"", NULL},
              {"d", NULL},
              {"a_very_long_name_that_no_field_has_at_all", NULL}};
  for (size_t i = 0; i < sizeof slip / sizeof *slip; i++) {
    const char *near = fg_field_nearest(slip[i].given);
    if (!slip[i].meant)
      ck_assert_msg(!near, "%s: %s", slip[i].given, near);
    else
      ck_assert_msg(near && !strcmp(near, slip[i].meant), "%s: %s", slip[i].given, near);
  }
  for (int i = 0; i < FG_FIELDS; i++) {
    ck_assert_ptr_eq(fg_field_find(fg_fields[i].name), &fg_fields[i]);
    ck_assert_str_eq(fg_field_nearest(fg_fields[i].name), fg_fields[i].name);
  }
  ck_assert_ptr_null(fg_field_find("maks"));
}

/* Reads "field=value" words into one settled point. */
static fg_point settled(const char *words) {
  fg_point p = {0};
  for (int i = 0; i < FG_SPEC_FIELDS; i++)
    if (fg_fields[i].fallback)
      ck_assert_int_eq(fg_field_read(&fg_fields[i], fg_fields[i].fallback, &p, NULL), FG_OK);
  char copy[256], *next = copy;
  snprintf(copy, sizeof copy, "%s", words);
  for (char *word; (word = strsep(&next, " "));) {
    char *equals = strchr(word, '=');
    *equals = 0;
    ck_assert_int_eq(read_value(word, equals + 1, &p, NULL), FG_OK);
  }
  fg_point_settle(&p);
  return p;
}

TEST(unused_fields_settle) {
  static const char *const same[][2] = {
      {"head_dim=64 bias=grad", "head_dim=64 bias=true"}, /* forward */
      {"head_dim=64 bias=grad grad_dtype=f32", "head_dim=64 bias=true"},
      {"head_dim=64 bias_dims=h bias_dtype=f32 grad_dtype=f32", "head_dim=64"},
      {"pass=backward head_dim=64 bias_dims=h grad_dtype=f32", "pass=backward head_dim=64"},
      {"pass=backward head_dim=64 bias=true grad_dtype=f32", "pass=backward head_dim=64 bias=true"},
      {"head_dim=64 bias=true bias_dtype=bf16", "head_dim=64 bias=true"},
      {"head_dim=64 dtype=f16 bias=true bias_dtype=f16", "head_dim=64 dtype=f16 bias=true"},
      {"pass=backward head_dim=64 bias=grad bias_dtype=f32 grad_dtype=f32",
       "pass=backward head_dim=64 bias=grad bias_dtype=f32"},
      {"head_dim=64/64", "head_dim=64"},
      {"head_dim=64 dqkv_dtype=f32", "head_dim=64"}, /* of backward */
      {"head_dim=64 dtype=f32 o_dtype=f32", "head_dim=64 dtype=f32"},
      {"pass=backward head_dim=64 dtype=f32 o_dtype=f32 dqkv_dtype=f32",
       "pass=backward head_dim=64 dtype=f32"},
      {"kernel=combine head_dim=64 dtype=f32 parts_dtype=spec",
       "kernel=combine head_dim=64 dtype=f32 parts_dtype=f32"},
      {"head_dim=64 deterministic=true", "head_dim=64"}, /* forward always is */
  };
  static const char *const different[][2] = {
      {"pass=backward head_dim=64 bias=grad", "pass=backward head_dim=64 bias=true"},
      {"head_dim=64 bias=true bias_dtype=f16", "head_dim=64 bias=true"},
      {"head_dim=64 bias=true bias_dims=h", "head_dim=64 bias=true"},
      {"pass=backward head_dim=64 bias=grad bias_dtype=f32 grad_dtype=bf16",
       "pass=backward head_dim=64 bias=grad bias_dtype=f32"},
      {"head_dim=64/128", "head_dim=64"},
      {"head_dim=64 o_dtype=f32", "head_dim=64"},
      {"pass=backward head_dim=64 o_dtype=f32", "pass=backward head_dim=64"},
      {"pass=backward head_dim=64 dqkv_dtype=f32", "pass=backward head_dim=64"},
      {"pass=backward head_dim=64 deterministic=true", "pass=backward head_dim=64"},
  };
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    fg_point a = settled(same[i][0]), b = settled(same[i][1]);
    ck_assert_msg(fg_point_equal(&a, &b), "%s != %s", same[i][0], same[i][1]);
  }
  for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
    fg_point a = settled(different[i][0]), b = settled(different[i][1]);
    ck_assert_msg(!fg_point_equal(&a, &b), "%s == %s", different[i][0], different[i][1]);
  }
}

TEST(element_types) {
  fg_point p = settled("pass=backward head_dim=64 dtype=f16 bias=grad");
  ck_assert_int_eq(fg_point_elem(&p), FG_ELEM_F16);
  ck_assert_int_eq(fg_point_bias_elem(&p), FG_ELEM_F16);
  ck_assert_int_eq(fg_point_grad_elem(&p), FG_ELEM_F16);
  p = settled("pass=backward head_dim=64 bias=grad bias_dtype=f32");
  ck_assert_int_eq(fg_point_elem(&p), FG_ELEM_BF16);
  ck_assert_int_eq(fg_point_bias_elem(&p), FG_ELEM_F32);
  ck_assert_int_eq(fg_point_grad_elem(&p), FG_ELEM_F32);
  p = settled("pass=backward head_dim=64 bias=grad bias_dtype=f32 grad_dtype=f16");
  ck_assert_int_eq(fg_point_grad_elem(&p), FG_ELEM_F16);
  ck_assert_int_eq(fg_point_o_elem(&p), FG_ELEM_BF16);
  ck_assert_int_eq(fg_point_dqkv_elem(&p), FG_ELEM_BF16);
  p = settled("pass=backward head_dim=64 dtype=f16 o_dtype=f32");
  ck_assert_int_eq(fg_point_elem(&p), FG_ELEM_F16);
  ck_assert_int_eq(fg_point_o_elem(&p), FG_ELEM_F32);
  ck_assert_int_eq(fg_point_dqkv_elem(&p), FG_ELEM_F16);
  p = settled("pass=backward head_dim=64 dtype=f16 dqkv_dtype=f32");
  ck_assert_int_eq(fg_point_o_elem(&p), FG_ELEM_F16);
  ck_assert_int_eq(fg_point_dqkv_elem(&p), FG_ELEM_F32);
}
