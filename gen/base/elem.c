/* elem.c - element types of tensors, and the rounding of float to 16 and to 8 bits. */
#include "elem.h"

#include <string.h>

static const struct {
  const char *name;
  size_t size;
} type[] = {
    [FG_ELEM_BF16] = {"bf16", 2}, [FG_ELEM_F16] = {"f16", 2}, [FG_ELEM_F32] = {"f32", 4},
    [FG_ELEM_E4M3] = {"e4m3", 1}, [FG_ELEM_I32] = {"i32", 4},
};

/* Magnitudes, as the bits of a float. */
#define INFINITE       0x7f800000u
#define F16_OVERFLOW   0x47800000u /* 2^16: everything from here on is infinite in f16 */
#define F16_NORMAL     0x38800000u /* 2^-14: the smallest normal f16 */
#define F16_EXPONENT   0x38000000u /* (127 - 15) << 23: the difference of the exponent biases */
#define F16_FRACTION   13          /* 23 - 10: fraction bits that f16 lacks */
#define F16_TINY_SHIFT 126         /* a fraction at exponent e is m * 2^(e - 126) steps of 2^-24 */
#define BF16_FRACTION  16          /* 23 - 7 */

#define E4M3_NORMAL     0x3c800000u /* 2^-6: the smallest normal e4m3 */
#define E4M3_EXPONENT   0x3c000000u /* (127 - 7) << 23 */
#define E4M3_FRACTION   20          /* 23 - 3 */
#define E4M3_TINY_SHIFT 141         /* a fraction at exponent e is m * 2^(e - 141) steps of 2^-9 */
#define E4M3_LARGEST    0x7eu       /* 448 */
#define E4M3_NAN        0x7fu

size_t fg_elem_size(fg_elem elem) { return type[elem].size; }

const char *fg_elem_name(fg_elem elem) { return type[elem].name; }

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

/* m / 2^shift to the nearest integer, ties to even; 0 < shift < 32. Because exponent and fraction
 * are adjacent in a float, a carry out of the fraction lands in the exponent, where it belongs. */
static uint32_t round_shift(uint32_t m, uint32_t shift) {
  uint32_t whole = m >> shift, rest = m & ((1u << shift) - 1), half = 1u << (shift - 1);
  return whole + (rest > half || (rest == half && (whole & 1)));
}

static uint32_t to_bf16(uint32_t magnitude) {
  if (magnitude > INFINITE) return (magnitude >> BF16_FRACTION) | 0x40; /* quiet */
  return round_shift(magnitude, BF16_FRACTION);
}

/* Magnitude bits of a float to those of f16, rounded to nearest even. */
static uint32_t to_f16(uint32_t magnitude) {
  if (magnitude > INFINITE) return 0x7e00 | ((magnitude >> F16_FRACTION) & 0x3ff); /* quiet */
  if (magnitude >= F16_OVERFLOW) return 0x7c00;
  if (magnitude >= F16_NORMAL) return round_shift(magnitude - F16_EXPONENT, F16_FRACTION);
  uint32_t shift = F16_TINY_SHIFT - (magnitude >> 23);
  if (shift > 24) return 0; /* below half of the smallest subnormal */
  return round_shift((magnitude & 0x7fffff) | 0x800000, shift);
}

/* Rounded to nearest even among 2^-9 m; what is beyond the largest is the largest. */
static uint8_t to_e4m3(uint32_t u) {
  const uint32_t magnitude = u & 0x7fffffff, sign = u >> 24 & 0x80;
  if (magnitude > INFINITE) return E4M3_NAN;
  if (magnitude >= E4M3_NORMAL) {
    const uint32_t bits = round_shift(magnitude - E4M3_EXPONENT, E4M3_FRACTION);
    return (uint8_t)(sign | (bits < E4M3_LARGEST ? bits : E4M3_LARGEST));
  }
  const uint32_t shift = E4M3_TINY_SHIFT - (magnitude >> 23);
  if (shift > 24) return (uint8_t)sign; /* below half of the smallest subnormal */
  return (uint8_t)(sign | round_shift((magnitude & 0x7fffff) | 0x800000, shift));
}

/* Exact. */
static float from_e4m3(uint32_t e) {
  const uint32_t sign = (e & 0x80) << 24, magnitude = e & 0x7f;
  if (magnitude == E4M3_NAN) return float_of(sign | INFINITE | 0x400000);
  if (magnitude >= 8) return float_of(sign | ((magnitude << E4M3_FRACTION) + E4M3_EXPONENT));
  const float x = (float)magnitude * 0x1p-9f;
  return sign ? -x : x;
}

/* Exact: every f16 is a float. */
static float from_f16(uint32_t h) {
  uint32_t sign = (h & 0x8000) << 16, magnitude = (h & 0x7fff) << F16_FRACTION;
  if (h & 0x7c00) {
    int special = (h & 0x7c00) == 0x7c00;
    return float_of(sign | (special ? magnitude | INFINITE : magnitude + F16_EXPONENT));
  }
  float x = (float)(h & 0x3ff) * 0x1p-24f;
  return sign ? -x : x;
}

float fg_elem_load(fg_elem elem, const void *p, int64_t i) {
  const char *at = (const char *)p + i * (int64_t)type[elem].size;
  if (elem == FG_ELEM_F32) {
    float x;
    memcpy(&x, at, sizeof x);
    return x;
  }
  if (elem == FG_ELEM_I32) {
    int32_t x;
    memcpy(&x, at, sizeof x);
    return (float)x;
  }
  if (elem == FG_ELEM_E4M3) return from_e4m3(*(const unsigned char *)at);
  uint16_t h;
  memcpy(&h, at, sizeof h);
  return elem == FG_ELEM_BF16 ? float_of((uint32_t)h << BF16_FRACTION) : from_f16(h);
}

void fg_elem_store(fg_elem elem, void *p, int64_t i, float x) {
  char *at = (char *)p + i * (int64_t)type[elem].size;
  if (elem == FG_ELEM_F32) {
    memcpy(at, &x, sizeof x);
    return;
  }
  if (elem == FG_ELEM_I32) {
    int32_t whole = x >= 0x1p31f ? INT32_MAX : x >= -0x1p31f ? (int32_t)x : INT32_MIN;
    memcpy(at, &whole, sizeof whole);
    return;
  }
  uint32_t u = bits_of(x), magnitude = u & 0x7fffffff;
  if (elem == FG_ELEM_E4M3) {
    *(uint8_t *)at = to_e4m3(u);
    return;
  }
  uint32_t bits = elem == FG_ELEM_BF16 ? to_bf16(magnitude) : to_f16(magnitude);
  uint16_t h = (uint16_t)((u >> 16 & 0x8000) | bits);
  memcpy(at, &h, sizeof h);
}
