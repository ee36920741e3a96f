/* t_elem.c - 16-bit and 8-bit elements: every value, and the rounding between them. */
#include "base/elem.h"
#include "suite.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static float load(fg_elem elem, uint32_t bits) {
  uint16_t h = (uint16_t)bits;
  return fg_elem_load(elem, &h, 0);
}

static uint32_t store(fg_elem elem, float x) {
  uint16_t h;
  fg_elem_store(elem, &h, 0, x);
  return h;
}

/* The fraction's width, and the bits of +infinity. */
static int fraction(fg_elem elem) { return elem == FG_ELEM_BF16 ? 7 : 10; }
static uint32_t infinite(fg_elem elem) { return elem == FG_ELEM_BF16 ? 0x7f80 : 0x7c00; }

/* The value of `bits`, by the definition of IEEE formats. */
static double value(fg_elem elem, uint32_t bits) {
  int f = fraction(elem), bias = elem == FG_ELEM_BF16 ? 127 : 15;
  int exponent = (int)((bits & 0x7fff) >> f), m = (int)(bits & ((1u << f) - 1));
  double x = exponent ? ldexp((1 << f) + m, exponent - bias - f) : ldexp(m, 1 - bias - f);
  return bits & 0x8000 ? -x : x;
}

TEST(test_names) {
  ck_assert_str_eq(fg_elem_name(FG_ELEM_BF16), "bf16");
  ck_assert_str_eq(fg_elem_name(FG_ELEM_F16), "f16");
  ck_assert_str_eq(fg_elem_name(FG_ELEM_F32), "f32");
  ck_assert_uint_eq(fg_elem_size(FG_ELEM_BF16), 2);
  ck_assert_uint_eq(fg_elem_size(FG_ELEM_F16), 2);
  ck_assert_uint_eq(fg_elem_size(FG_ELEM_F32), 4);
}

/* In loops _i is the element type: bf16 or f16. */
TEST_LOOP(test_every_value, FG_ELEM_F32) {
  fg_elem elem = (fg_elem)_i;
  for (uint32_t bits = 0; bits < 65536; bits++) {
    float x = load(elem, bits);
    uint32_t back = store(elem, x), magnitude = bits & 0x7fff;
    if (magnitude > infinite(elem)) { /* a NaN keeps all but its signalling */
      ck_assert(isnan(x));
      ck_assert_uint_eq(back, bits | 1u << (fraction(elem) - 1));
      continue;
    }
    ck_assert_uint_eq(back, bits);
    if (magnitude == infinite(elem))
      ck_assert(isinf(x));
    else
      ck_assert_double_eq((double)x, value(elem, bits));
    ck_assert_int_eq(signbit(x) != 0, bits >> 15);
  }
}

/* Between each two neighbours (the last neighbour being infinity, one step above the largest): the
 * middle goes to the even one, a float beside it to the nearer. Subnormals are among them. */
TEST_LOOP(test_halfway, FG_ELEM_F32) {
  fg_elem elem = (fg_elem)_i;
  for (uint32_t low = 0; low < infinite(elem); low++) {
    float middle = (float)((value(elem, low) + value(elem, low + 1)) / 2);
    uint32_t even = low + (low & 1), u = bits_of(middle);
    ck_assert_uint_eq(store(elem, middle), even);
    ck_assert_uint_eq(store(elem, -middle), even | 0x8000);
    ck_assert_uint_eq(store(elem, float_of(u - 1)), low);
    ck_assert_uint_eq(store(elem, float_of(u + 1)), low + 1);
  }
}

TEST_LOOP(test_overflow, FG_ELEM_F32) {
  fg_elem elem = (fg_elem)_i;
  uint32_t inf = infinite(elem);
  ck_assert_uint_eq(store(elem, INFINITY), inf);
  ck_assert_uint_eq(store(elem, -INFINITY), inf | 0x8000);
  ck_assert_uint_eq(store(elem, 3.402823466e38f), inf);
  ck_assert_uint_eq(store(FG_ELEM_F16, 65519.99f), 0x7bff);
  ck_assert_uint_eq(store(FG_ELEM_F16, 65520.0f), 0x7c00);
  ck_assert_uint_eq(store(FG_ELEM_F16, 65536.0f), 0x7c00);
  ck_assert_uint_eq(store(FG_ELEM_F16, -1e30f), 0xfc00);
}

TEST(test_underflow) {
  ck_assert_uint_eq(store(FG_ELEM_F16, 0x1p-25f), 0); /* a tie with 0 */
  ck_assert_uint_eq(store(FG_ELEM_F16, 0x1.000002p-25f), 1);
  ck_assert_uint_eq(store(FG_ELEM_F16, -0x1p-26f), 0x8000);
  ck_assert_uint_eq(store(FG_ELEM_F16, 0x1p-149f), 0);
  ck_assert_uint_eq(store(FG_ELEM_BF16, 0x1p-149f), 0);
}

TEST_LOOP(test_nan, FG_ELEM_F32) {
  fg_elem elem = (fg_elem)_i;
  /* the payload lies in bits that 16-bit types lack: still a NaN, not infinity */
  uint32_t quiet = infinite(elem) | 1u << (fraction(elem) - 1);
  ck_assert_uint_eq(store(elem, float_of(0x7f800001)), quiet);
  ck_assert_uint_eq(store(elem, float_of(0xffffffff)), 0xffff);
}

TEST(test_f32_and_index) {
  unsigned char place[13]; /* unaligned on purpose */
  for (int i = 0; i < 3; i++) fg_elem_store(FG_ELEM_F32, place + 1, i, (float)i + 0.1f);
  for (int i = 0; i < 3; i++)
    ck_assert_float_eq(fg_elem_load(FG_ELEM_F32, place + 1, i), (float)i + 0.1f);
  for (int i = 0; i < 3; i++) fg_elem_store(FG_ELEM_BF16, place + 1, i, (float)i + 0.5f);
  for (int i = 0; i < 3; i++)
    ck_assert_float_eq(fg_elem_load(FG_ELEM_BF16, place + 1, i), (float)i + 0.5f);
}

static uint8_t store_e4m3(float x) {
  uint8_t e;
  fg_elem_store(FG_ELEM_E4M3, &e, 0, x);
  return e;
}

/* The value of its bits by definition: 2^-9 steps below 2^-6, then 8 steps an octave. */
static double value_e4m3(uint32_t bits) {
  const int exponent = (int)(bits >> 3 & 15), m = (int)(bits & 7);
  const double x = exponent ? ldexp(8 + m, exponent - 10) : ldexp(m, -9);
  return bits & 0x80 ? -x : x;
}

TEST(test_e4m3_values) {
  ck_assert_str_eq(fg_elem_name(FG_ELEM_E4M3), "e4m3");
  ck_assert_uint_eq(fg_elem_size(FG_ELEM_E4M3), 1);
  for (uint32_t bits = 0; bits < 256; bits++) {
    const uint8_t e = (uint8_t)bits;
    const float x = fg_elem_load(FG_ELEM_E4M3, &e, 0);
    ck_assert_int_eq(signbit(x) != 0, bits >> 7);
    if ((bits & 0x7f) == 0x7f) {
      ck_assert(isnan(x));
      ck_assert_uint_eq(store_e4m3(x), 0x7f);
      continue;
    }
    ck_assert_double_eq((double)x, value_e4m3(bits));
    ck_assert_uint_eq(store_e4m3(x), bits);
  }
}

TEST(test_e4m3_halfway) {
  for (uint32_t low = 0; low < 0x7e; low++) {
    const float middle = (float)((value_e4m3(low) + value_e4m3(low + 1)) / 2);
    const uint32_t even = low + (low & 1), u = bits_of(middle);
    ck_assert_uint_eq(store_e4m3(middle), even);
    ck_assert_uint_eq(store_e4m3(-middle), even | 0x80);
    ck_assert_uint_eq(store_e4m3(float_of(u - 1)), low);
    ck_assert_uint_eq(store_e4m3(float_of(u + 1)), low + 1);
  }
}

/* Nothing is infinite: cvt.rn.satfinite. */
TEST(test_e4m3_ends) {
  const float large[] = {448.0f, 463.99f, 464.0f, 480.0f, 65504.0f, 3.4e38f, INFINITY};
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    ck_assert_uint_eq(store_e4m3(large[i]), 0x7e);
    ck_assert_uint_eq(store_e4m3(-large[i]), 0xfe);
  }
  ck_assert_uint_eq(store_e4m3(0x1p-10f), 0); /* a tie with 0 */
  ck_assert_uint_eq(store_e4m3(0x1.000002p-10f), 1);
  ck_assert_uint_eq(store_e4m3(-0x1p-11f), 0x80);
  ck_assert_uint_eq(store_e4m3(0x1p-149f), 0);
  ck_assert_uint_eq(store_e4m3(float_of(0x7f800001)), 0x7f);
  ck_assert_uint_eq(store_e4m3(float_of(0xffc00000)), 0x7f);
}

TEST(test_e4m3_index) {
  unsigned char place[8] = {0};
  for (int i = 0; i < 4; i++) fg_elem_store(FG_ELEM_E4M3, place + 1, i, (float)(i - 1));
  for (int i = 0; i < 4; i++)
    ck_assert_float_eq(fg_elem_load(FG_ELEM_E4M3, place + 1, i), (float)(i - 1));
  ck_assert(place[0] == 0 && place[5] == 0);
}
