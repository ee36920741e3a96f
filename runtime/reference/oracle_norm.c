/* oracle_norm.c - layer and RMS norm of rows in float64. */
#include "oracle_norm.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static double size_of(const oracle_norm *p, int64_t i) {
  return p->z_rss ? p->z_rss[i] : fabs(p->z[i]);
}

double oracle_norm_statistics(const oracle_norm *p, double *mean_rss) {
  double worst = 0;
  for (int64_t r = 0; r < p->rows; r++) {
    const int64_t first = r * p->width;
    double sum = 0, squares = 0, sizes = 0;
    for (int64_t i = first; i < first + p->width; i++) sum += p->z[i];
    const double mean = p->is_rms ? 0 : sum / (double)p->width;
    for (int64_t i = first; i < first + p->width; i++)
      squares += (p->z[i] - mean) * (p->z[i] - mean);
    for (int64_t i = first; i < first + p->width; i++) sizes += size_of(p, i) * size_of(p, i);
    p->mean[r] = mean;
    p->rstd[r] = 1 / sqrt(squares / (double)p->width + p->eps);
    if (mean_rss) mean_rss[r] = sqrt(sizes) / (double)p->width;
    worst = fmax(worst, fabs(mean) * p->rstd[r]);
  }
  return worst;
}

void oracle_norm_out(const oracle_norm *p, double *out, double *out_rss) {
  for (int64_t i = 0; i < p->rows * p->width; i++) {
    const int64_t row = i / p->width, column = i % p->width;
    const double factor = p->rstd[row] * p->gamma[column], b = p->beta ? p->beta[column] : 0;
    const double scaled = (p->z[i] - p->mean[row]) * factor;
    out[i] = scaled + b, out_rss[i] = hypot(scaled, b);
  }
}

/* A sum, and the root of the sum of the squares of what is added. */
static void add(double *sum, double *rss, int64_t i, double term, double size) {
  if (!sum) return;
  sum[i] += term;
  rss[i] = hypot(rss[i], size);
}

static void backward_row(const oracle_norm *p, int64_t row, const oracle_norm_gradients *to) {
  const int64_t first = row * p->width;
  const double *dout = p->dout + first, *z = p->z + first, rstd = p->rstd[row];
  double mean_gy = 0, mean_product = 0;
  for (int64_t i = 0; i < p->width; i++) {
    const double gy = dout[i] * p->gamma[i], xhat = (z[i] - p->mean[row]) * rstd;
    mean_gy += p->is_rms ? 0 : gy / (double)p->width;
    mean_product += gy * xhat / (double)p->width;
  }
  for (int64_t i = 0; i < p->width; i++) {
    const double gy = dout[i] * p->gamma[i], xhat = (z[i] - p->mean[row]) * rstd;
    const double in = p->dz ? p->dz[first + i] : 0;
    const double dz = rstd * (gy - mean_gy - xhat * mean_product) + in;
    const double size = rstd * (fabs(gy) + fabs(mean_gy) + fabs(xhat * mean_product)) + fabs(in);
    if (to->dz) to->dz[first + i] = dz, to->dz_rss[first + i] = size;
    add(to->dgamma, to->dgamma_rss, i, dout[i] * xhat, dout[i] * xhat);
    add(to->dbeta, to->dbeta_rss, i, dout[i], dout[i]);
    add(to->dbias, to->dbias_rss, i, dz, size);
  }
}

void oracle_norm_backward(const oracle_norm *p, const oracle_norm_gradients *to) {
  double *const sums[] = {to->dgamma,    to->dgamma_rss, to->dbeta,
                          to->dbeta_rss, to->dbias,      to->dbias_rss};
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
    if (sums[i]) memset(sums[i], 0, (size_t)p->width * sizeof(double));
  for (int64_t r = 0; r < p->rows; r++) backward_row(p, r, to);
}
