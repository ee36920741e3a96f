/* oracle_linear.h - a linear layer and its gradients in float64: mathematics.md section 5.
 *
 * Written from mathematics.md alone; it shares nothing with the templates. Arrays are contiguous;
 * `_rss`
 * is the size of the terms behind each element (mathematics.md section 6), NULL where nobody asks.
 * */
#ifndef FG_ORACLE_LINEAR_H
#define FG_ORACLE_LINEAR_H

#include "oracle_epilogue.h"

#include <stdint.h>

typedef struct oracle_linear {
  const oracle_epilogue *epilogue;
  int64_t rows, in, out;
  const double *x, *w;         /* [rows, in], [columns, in] */
  const double *bias;          /* [columns]; NULL: 0 */
  const double *residual, *dy; /* [rows, out]; residual NULL: 0 */
  const double *dx_more;       /* [rows, in], added to dx; NULL: 0 */
  /* [rows, columns]: what dy is multiplied with where it is given; NULL: as oracle_linear_kept has
   * it */
  const double *kept;
  /* NULL = exact. Else applied to the gradient of h, which tensor cores take in 16 bits, before it
   * is multiplied. */
  double (*round)(double);
} oracle_linear;

/* Columns of h: two halves of `out` where the epilogue is gated. */
int64_t oracle_linear_columns(const oracle_linear *problem);

/* h [rows, columns]. */
void oracle_linear_h(const oracle_linear *problem, double *h, double *h_rss);
/* y [rows, out], of h. */
void oracle_linear_y(const oracle_linear *problem, const double *h, const double *h_rss, double *y,
                     double *y_rss);
/* What dy is multiplied with to be the gradient of h, [rows, columns]. */
void oracle_linear_kept(const oracle_linear *problem, const double *h, const double *h_rss,
                        double *kept, double *kept_rss);

/* Gradients: dx [rows, in], dw [columns, in], dbias [columns]; NULL where nobody asks. */
typedef struct oracle_linear_gradients {
  double *dx, *dx_rss, *dw, *dw_rss, *dbias, *dbias_rss;
} oracle_linear_gradients;
/* What stood there is replaced. kept is given. */
void oracle_linear_backward(const oracle_linear *problem, const oracle_linear_gradients *to);

#endif
