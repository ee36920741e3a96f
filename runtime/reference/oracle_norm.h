/* oracle_norm.h - layer and RMS norm of rows and their gradients in float64: mathematics.md section
 * 5.
 *
 * Written from mathematics.md alone; it shares nothing with the templates. Arrays are contiguous;
 * `_rss`
 * is the size of the terms behind each element (mathematics.md section 6). */
#ifndef FG_ORACLE_NORM_H
#define FG_ORACLE_NORM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct oracle_norm {
  bool is_rms;
  int64_t rows, width;
  double eps;
  const double *z, *z_rss;    /* [rows, width]; z_rss NULL: what z is made of has its size */
  const double *gamma, *beta; /* [width]; beta NULL: 0 */
  const double *dout, *dz;    /* [rows, width]; dz, the gradient of z from elsewhere, NULL: 0 */
  double *mean, *rstd;        /* [rows], which oracle_norm_statistics makes of z; mean 0 of RMS */
} oracle_norm;

/* mean_rss [rows]: NULL where nobody asks. Returns the largest mean of a row, in deviations. */
double oracle_norm_statistics(const oracle_norm *problem, double *mean_rss);
/* out [rows, width]. */
void oracle_norm_out(const oracle_norm *problem, double *out, double *out_rss);

/* Gradients: dz [rows, width], all of it; dgamma, dbeta, dbias [width]; NULL where nobody asks. */
typedef struct oracle_norm_gradients {
  double *dz, *dz_rss, *dgamma, *dgamma_rss, *dbeta, *dbeta_rss, *dbias, *dbias_rss;
} oracle_norm_gradients;
/* What stood there is replaced. */
void oracle_norm_backward(const oracle_norm *problem, const oracle_norm_gradients *to);

#endif
