/* oracle_linear.c - a linear layer in float64. */
#include "oracle_linear.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

int64_t oracle_linear_columns(const oracle_linear *p) {
  return p->epilogue->is_gated ? 2 * p->out : p->out;
}

void oracle_linear_h(const oracle_linear *p, double *h, double *h_rss) {
  const int64_t columns = oracle_linear_columns(p);
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t j = 0; j < columns; j++) {
      double sum = p->bias ? p->bias[j] : 0, squares = sum * sum;
      for (int64_t k = 0; k < p->in; k++) {
        const double term = p->x[r * p->in + k] * p->w[j * p->in + k];
        sum += term;
        squares += term * term;
      }
      h[r * columns + j] = sum, h_rss[r * columns + j] = sqrt(squares);
    }
}

void oracle_linear_y(const oracle_linear *p, const double *h, const double *h_rss, double *y,
                     double *y_rss) {
  const oracle_epilogue *e = p->epilogue;
  const int64_t columns = oracle_linear_columns(p);
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t j = 0; j < p->out; j++) {
      const int64_t at = r * columns + j, beside = at + p->out, to = r * p->out + j;
      const double more = p->residual ? p->residual[to] : 0;
      const double value = e->value(h[at]), slope = e->derivative(h[at]);
      const double v = e->is_gated ? h[beside] : 1, v_rss = e->is_gated ? h_rss[beside] : 0;
      y[to] = value * v + more;
      y_rss[to] = hypot(hypot(value * v_rss, v * slope * h_rss[at]), more);
    }
}

void oracle_linear_kept(const oracle_linear *p, const double *h, const double *h_rss, double *kept,
                        double *kept_rss) {
  const oracle_epilogue *e = p->epilogue;
  const int64_t columns = oracle_linear_columns(p);
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t j = 0; j < p->out; j++) {
      const int64_t at = r * columns + j, beside = at + p->out;
      const double slope = e->derivative(h[at]);
      kept[at] = kept_rss[at] = slope;
      if (!e->is_gated) continue;
      kept[at] = h[beside] * slope, kept_rss[at] = h_rss[beside] * slope;
      kept[beside] = kept_rss[beside] = e->value(h[at]);
    }
}

/* A sum, and the root of the sum of the squares of what is added. */
static void add(double *sum, double *rss, int64_t i, double term) {
  if (!sum) return;
  sum[i] += term;
  rss[i] = hypot(rss[i], term);
}

static void clear(double *x, int64_t n) {
  if (x) memset(x, 0, (size_t)n * sizeof *x);
}

void oracle_linear_backward(const oracle_linear *p, const oracle_linear_gradients *to) {
  const int64_t columns = oracle_linear_columns(p), of_x = p->rows * p->in, of_w = columns * p->in;
  clear(to->dx, of_x), clear(to->dx_rss, of_x), clear(to->dw, of_w), clear(to->dw_rss, of_w);
  clear(to->dbias, columns), clear(to->dbias_rss, columns);
  for (int64_t i = 0; i < of_x && p->dx_more; i++) add(to->dx, to->dx_rss, i, p->dx_more[i]);
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t j = 0; j < columns; j++) {
      const double dh = p->dy[r * p->out + j % p->out] * p->kept[r * columns + j];
      const double taken = p->round ? p->round(dh) : dh;
      for (int64_t k = 0; k < p->in; k++) {
        add(to->dx, to->dx_rss, r * p->in + k, taken * p->w[j * p->in + k]);
        add(to->dw, to->dw_rss, j * p->in + k, taken * p->x[r * p->in + k]);
      }
      add(to->dbias, to->dbias_rss, j, dh);
    }
}
