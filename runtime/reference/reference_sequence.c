/* reference_sequence.c - rows and keys of sequences among the values of a case. */
#include "reference_sequence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t int_at(const reference_case *c, const char *name, int64_t i, int64_t otherwise) {
  const double *values = reference_value(c, name);
  return values ? (int64_t)values[i] : otherwise;
}

static int64_t within(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

/* A packed sequence's first token and how many of its rows count. */
static int64_t packed(const reference_case *c, const char *starts, const char *used, int64_t b,
                      int64_t *first) {
  const int64_t rows = int_at(c, starts, b + 1, 0) - int_at(c, starts, b, 0);
  *first = int_at(c, starts, b, 0);
  return within(int_at(c, used, b, rows), rows);
}

reference_sequence reference_sequence_of(const reference_case *c, int64_t b) {
  const fg_shape *shape = &c->problem->shape;
  const fg_layout layout = c->problem->recipe->layout;
  reference_sequence s = {.c = c, .b = b, .nq = shape->nq, .nk = shape->nk};
  if (layout.q == FG_PACKED) s.nq = packed(c, "starts_q", "used_q", b, &s.first_q);
  if (layout.kv == FG_PACKED) s.nk = packed(c, "starts_k", "used_k", b, &s.first_k);
  if (layout.kv == FG_CACHED || layout.kv == FG_PAGED) {
    s.first_k = int_at(c, "first_k", b, 0);
    s.nk = within(int_at(c, "used_k", b, 0), shape->nk) - s.first_k;
    s.nk = s.nk < 0 ? 0 : s.nk;
  }
  s.whole_q = s.nq, s.whole_k = s.nk;
  if (!layout.shard) return s;
  s.pos_q = int_at(c, "pos_q", b, 0), s.pos_k = int_at(c, "pos_k", b, 0);
  s.whole_q = int_at(c, "whole_q", b, s.nq), s.whole_k = int_at(c, "whole_k", b, s.nk);
  return s;
}

int64_t reference_row_q(const reference_sequence *s, int64_t h, int64_t i) {
  const fg_shape *shape = &s->c->problem->shape;
  if (s->c->problem->recipe->layout.q == FG_PACKED) return (s->first_q + i) * shape->h + h;
  return (s->b * shape->h + h) * shape->nq + i;
}

int64_t reference_row_kept(const reference_sequence *s, int64_t h, int64_t i) {
  const fg_shape *shape = &s->c->problem->shape;
  if (s->c->problem->recipe->layout.q == FG_PACKED) return h * shape->tokens_q + s->first_q + i;
  return reference_row_q(s, h, i);
}

int64_t reference_row_k(const reference_sequence *s, int64_t g, int64_t j) {
  const fg_shape *shape = &s->c->problem->shape;
  const int64_t at = s->first_k + j, columns = shape->page ? (shape->nk - 1) / shape->page + 1 : 0;
  switch (s->c->problem->recipe->layout.kv) {
  case FG_PACKED:
    return at * shape->hk + g;
  case FG_CACHED:
    return (int_at(s->c, "rows", s->b, s->b) * shape->hk + g) * shape->nk + at;
  case FG_PAGED: {
    const int64_t page = int_at(s->c, "table", s->b * columns + at / shape->page, 0);
    return (page * shape->hk + g) * shape->page + at % shape->page;
  }
  default:
    return (s->b * shape->hk + g) * shape->nk + j;
  }
}

double *reference_gather(const reference_sequence *s, const double *values, reference_row *row,
                         int64_t heads, int64_t n, int64_t width) {
  double *part = malloc(((size_t)(heads * n * width) + 1) * sizeof *part);
  for (int64_t r = 0; part && r < heads * n; r++)
    memcpy(part + r * width, values + row(s, r / n, r % n) * width, (size_t)width * sizeof *values);
  return part;
}

void reference_scatter(const reference_sequence *s, const double *part, reference_row *row,
                       int64_t heads, int64_t n, int64_t width, double *values) {
  for (int64_t r = 0; r < heads * n; r++)
    memcpy(values + row(s, r / n, r % n) * width, part + r * width, (size_t)width * sizeof *values);
}

/* ---- rows that no sequence reads ---- */

/* A tensor of rows, or of keys; what a forward leaves is as it leaves it. */
typedef struct {
  const char *name;
  bool of_keys;
  reference_row *row;
} row_tensor;
static const row_tensor row_tensors[] = {{"q", false, reference_row_q},
                                         {"k", true, reference_row_k},
                                         {"v", true, reference_row_k},
                                         {"do", false, reference_row_q},
                                         {"dlse", false, reference_row_kept}};

static fg_status poison(reference_case *c, const row_tensor *x, int tensor) {
  const fg_shape *shape = &c->problem->shape;
  const int64_t heads = x->of_keys ? shape->hk : shape->h, n = fg_problem_count(c->problem, tensor);
  const char *axes = c->problem->recipe->tensor[tensor].axes;
  const char last = axes[strlen(axes) - 1];
  const int64_t width = strchr("dv", last) ? fg_recipe_extent(c->problem->recipe, last, shape) : 1;
  char *is_read = calloc((size_t)(n / width) + 1, 1);
  if (!is_read) return fg_fail(FG_EMEMORY, "no memory for inputs");
  for (int64_t b = 0; b < shape->b; b++) {
    const reference_sequence s = reference_sequence_of(c, b);
    const int64_t rows = x->of_keys ? s.nk : s.nq;
    for (int64_t r = 0; r < heads * rows; r++) is_read[x->row(&s, r / rows, r % rows)] = 1;
  }
  for (int64_t i = 0; i < n; i++)
    if (!is_read[i / width]) c->value[tensor][i] = (double)NAN;
  free(is_read);
  return reference_put(c, tensor, c->value[tensor]);
}

fg_status reference_poison(reference_case *c) {
  const fg_layout layout = c->problem->recipe->layout;
  for (size_t i = 0; i < sizeof row_tensors / sizeof *row_tensors; i++) {
    const row_tensor *x = &row_tensors[i];
    const int tensor = fg_problem_find(c->problem, x->name);
    if (tensor < 0 || !c->value[tensor] || c->problem->recipe->tensor[tensor].output) continue;
    if ((x->of_keys ? layout.kv : layout.q) != FG_DENSE) TRY(poison(c, x, tensor));
  }
  return FG_OK;
}
