/* oracle_epilogue.c - the table of activations. */
#include "oracle_epilogue.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const double root_2_over_pi = 0.79788456080286535588;

static double same(double h) { return h; }
static double one(double h) { return (void)h, 1; }

static double relu(double h) { return h < 0 ? 0 : h; }
static double relu_slope(double h) { return h > 0; }

static double sigma(double h) { return 1 / (1 + exp(-h)); }
static double silu(double h) { return h * sigma(h); }
static double silu_slope(double h) { return sigma(h) * (1 + h * (1 - sigma(h))); }

static double phi(double h) { return erfc(-h * M_SQRT1_2) / 2; }
static double gelu_erf(double h) { return h * phi(h); }
static double gelu_erf_slope(double h) {
  return phi(h) + h * exp(-h * h / 2) * M_SQRT1_2 * M_2_SQRTPI / 2;
}

static double hyperbolic(double h) { return tanh(root_2_over_pi * (h + 0.044715 * h * h * h)); }
static double gelu(double h) { return h * (1 + hyperbolic(h)) / 2; }
static double gelu_slope(double h) {
  const double t = hyperbolic(h);
  return (1 + t) / 2 + h * (1 - t * t) * root_2_over_pi * (1 + 0.134145 * h * h) / 2;
}

static const oracle_epilogue rows[] = {
    {"none", .value = same, .derivative = one},
    {"relu", .is_test = true, .value = relu, .derivative = relu_slope},
    {"gelu", .value = gelu, .derivative = gelu_slope},
    {"gelu_erf", .value = gelu_erf, .derivative = gelu_erf_slope},
    {"silu", .value = silu, .derivative = silu_slope},
    {"reglu", .is_gated = true, .is_test = true, .value = relu, .derivative = relu_slope},
    {"geglu", .is_gated = true, .value = gelu, .derivative = gelu_slope},
    {"swiglu", .is_gated = true, .value = silu, .derivative = silu_slope},
    {"layernorm", .is_norm = true, .value = same, .derivative = one},
    {"rmsnorm", .is_norm = true, .is_rms = true, .value = same, .derivative = one},
};

const oracle_epilogue *oracle_epilogue_find(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name ? name : "none")) return &rows[i];
  return NULL;
}
