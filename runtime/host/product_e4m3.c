/* product_e4m3.c - wgmma's step of 32 products of e4m3, with the sums that Hopper gives.
 *
 * The sum so far and the 32 products are added as integers. Their unit is 2^-13 of the largest
 * power of 2 among them: a product's is that of its operands' exponents, 2^-6 for a subnormal
 * operand, a sum's that of its own exponent. What is below the unit is cut off each of them, and
 * what is below 2^-13 of the result's own power off the result. So a step may lose 33 units, and
 * more than half of a long sum's last bits (measured on an H200: equal bits for 65536 random sums
 * of like, of very different and of cancelling products, in one step and in four). */
#include "warpgroup.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { DEPTH = FGH_DEPTH_MAX, LANES = 8 };
typedef float floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int ints __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

enum { EXPONENT = 0x7f800000, REST = 0x3ff }; /* of a float's bits; 10 of its fraction's 23 */

/* The power of 2 of each number of e4m3, of subnormal ones that of the least normal one; 0 of 0. */
static void powers(const float *x, int n, float *power) {
  const float least = 0x1p-6f;
  for (int i = 0; i < n; i++) {
    int bits;
    memcpy(&bits, &x[i], sizeof bits);
    bits &= EXPONENT;
    memcpy(&power[i], &bits, sizeof bits);
    if (power[i] < least) power[i] = fabsf(x[i]) > 0 ? least : 0;
  }
}

/* A sum that has a NaN is one. */
static void mark(float *c, const float *a, const float *b, int n) {
  for (int i = 0; i < FGH_ROWS; i++)
    for (int k = 0; k < DEPTH; k++)
      for (int j = 0; isnan(a[i * DEPTH + k]) && j < n; j++) c[i * n + j] = NAN;
  for (int k = 0; k < DEPTH; k++)
    for (int j = 0; j < n; j++)
      for (int i = 0; isnan(b[k * n + j]) && i < FGH_ROWS; i++) c[i * n + j] = NAN;
}

/* Rows of eight columns. Powers of 2 are in the same order as their bits. */
__attribute__((target_clones("avx2,fma", "default"))) static void add(float *c, const float *a,
                                                                      const float *b, int n,
                                                                      const float *row_power,
                                                                      const float *column_power) {
  const floats least = (floats){0} + FLT_MIN * 0x1p24f;
  for (int i = 0; i < FGH_ROWS; i++)
    for (int j = 0; j < n; j += LANES) {
      floats *at = (floats *)(c + i * n + j);
      const ints power = (ints)*at & EXPONENT, is_less = power < (ints)least;
      ints most = (power & ~is_less) | ((ints)least & is_less);
      for (int k = 0; k < DEPTH; k++) {
        const ints of_k =
            (ints)(row_power[i * DEPTH + k] * *(const floats *)(column_power + k * n + j));
        const ints is_more = of_k > most;
        most = (of_k & is_more) | (most & ~is_more);
      }
      const floats unit = (floats)most * 0x1p-13f, inverse = 1 / unit;
      ints units = __builtin_convertvector(*at * inverse, ints);
      for (int k = 0; k < DEPTH; k++)
        units += __builtin_convertvector(
            a[i * DEPTH + k] * *(const floats *)(b + k * n + j) * inverse, ints);
      const floats sum = __builtin_convertvector(units, floats) * unit;
      *at = (floats)((ints)sum & ~REST);
    }
}

void fgh_multiply_e4m3(float *c, const float *a, const float *b, int n) {
  static float row_power[FGH_ROWS * DEPTH], column_power[DEPTH * 256];
  powers(a, FGH_ROWS * DEPTH, row_power);
  powers(b, DEPTH * n, column_power);
  static bool was_nan[FGH_ROWS * 256];
  for (int i = 0; i < FGH_ROWS * n; i++) was_nan[i] = isnan(c[i]);
  add(c, a, b, n, row_power, column_power);
  for (int i = 0; i < FGH_ROWS * n; i++)
    if (was_nan[i]) c[i] = NAN;
  mark(c, a, b, n);
}
