/* oracle_normalizer.c - softmax, log-softmax, retention, sigmoid and none. */
#include "oracle_normalizer.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static double rounded(double (*round)(double), double x) { return round ? round(x) : x; }

static double weigh_softmax(int64_t n, double *p, double sink, double (*round)(double)) {
  double max = sink, sum = 0;
  for (int64_t k = 0; k < n; k++)
    if (!(p[k] <= max)) max = p[k]; /* so that a NaN stays one */
  if (max == -INFINITY) {
    for (int64_t k = 0; k < n; k++) p[k] = 0;
    return -INFINITY;
  }
  for (int64_t k = 0; k < n; k++) sum += p[k] = exp(p[k] - max);
  sum += exp(sink - max);
  for (int64_t k = 0; k < n; k++) p[k] = rounded(round, p[k] / sum);
  return max + log(sum);
}

static double slope_softmax(double p, double dp, double delta, double second, double *size) {
  (void)second;
  *size = p * (fabs(dp) + fabs(delta));
  return p * (dp - delta);
}

static double weigh_none(int64_t n, double *p, double own, double (*round)(double)) {
  (void)own;
  for (int64_t k = 0; k < n; k++) p[k] = p[k] == -INFINITY ? 0 : rounded(round, p[k]);
  return 0;
}

static double slope_none(double p, double dp, double delta, double second, double *size) {
  (void)p, (void)delta, (void)second;
  *size = fabs(dp);
  return dp;
}

static double weigh_retention(int64_t n, double *p, double own, double (*round)(double)) {
  double r = 0;
  weigh_none(n, p, own, NULL);
  for (int64_t k = 0; k < n; k++) r += fabs(p[k]);
  for (int64_t k = 0; k < n; k++) p[k] = rounded(round, p[k] / fmax(r, 1));
  return r;
}

/* Behind a sum of 1 the divisor moves with each score. */
static double slope_retention(double p, double dp, double delta, double r, double *size) {
  const double sign = p > 0 ? 1 : p < 0 ? -1 : 0, moved = r > 1 ? delta : 0;
  *size = (fabs(dp) + fabs(moved)) / fmax(r, 1);
  return (dp - sign * moved) / fmax(r, 1);
}

static double weigh_sigmoid(int64_t n, double *p, double bias, double (*round)(double)) {
  for (int64_t k = 0; k < n; k++) p[k] = rounded(round, 1 / (1 + exp(-(p[k] + bias))));
  return 0;
}

static double slope_sigmoid(double p, double dp, double delta, double second, double *size) {
  (void)delta, (void)second;
  *size = p * (1 - p) * fabs(dp);
  return p * (1 - p) * dp;
}

static double weigh_logsoftmax(int64_t n, double *p, double own, double (*round)(double)) {
  double max = -INFINITY, sum = 0;
  (void)own;
  for (int64_t k = 0; k < n; k++)
    if (!(p[k] <= max)) max = p[k];
  for (int64_t k = 0; k < n; k++) sum += p[k] > -INFINITY ? exp(p[k] - max) : 0;
  const double lse = max > -INFINITY ? max + log(sum) : -INFINITY;
  for (int64_t k = 0; k < n; k++) p[k] = p[k] == -INFINITY ? 0 : rounded(round, p[k] - lse);
  return lse;
}

static double slope_logsoftmax(double p, double dp, double delta, double second, double *size) {
  (void)second;
  *size = fabs(dp) + exp(p) * fabs(delta);
  return dp - exp(p) * delta;
}

/* O is a difference of sums of scores and of LSEs. */
static double size_logsoftmax(double p, double lse, double least) {
  return fmax(fabs(p + lse), least) + fabs(lse);
}

/* The operands are exp(s - max). */
static double unit_softmax(double top, double lse) { return (void)lse, top; }

static double unit_retention(double top, double r) { return (void)top, 1 / fmax(r, 1); }

static const oracle_normalizer rows[] = {
    {"softmax", "lse", -INFINITY, OWN_SINK, 1, 1, 0, weigh_softmax, slope_softmax, NULL,
     unit_softmax},
    {"logsoftmax", "lse", -INFINITY, OWN_NOTHING, 0, 1, 1, weigh_logsoftmax, slope_logsoftmax,
     size_logsoftmax, NULL},
    {"retention", "r", 0, OWN_NOTHING, 0, 0, 0, weigh_retention, slope_retention, NULL,
     unit_retention},
    {"sigmoid", NULL, 0, OWN_BIAS, 0, 1, 0, weigh_sigmoid, slope_sigmoid, NULL, NULL},
    {"none", NULL, 0, OWN_NOTHING, 0, 0, 0, weigh_none, slope_none, NULL, NULL},
};

const oracle_normalizer *oracle_normalizer_find(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!name || !strcmp(rows[i].name, name)) return &rows[i];
  return NULL;
}
