/* reference_sequence.h - the sequences of a case of attention, whatever their layout: where their
 * rows and keys lie among the case's values, and how layouts are drawn.
 *
 * Layouts are those of flashgen.h, fg_args. Values are in the oracle's order, heads before rows,
 * but for packed ones: [tokens, heads, d]. */
#ifndef FG_REFERENCE_SEQUENCE_H
#define FG_REFERENCE_SEQUENCE_H

#include "reference.h"

/* The shape of a launch of the recipe with as many sequences, rows and keys as a dense one of this
 * shape: of packed sequences the sums. A shape that has the layout's extents stays as it is. */
fg_shape reference_lay_out(const fg_recipe *recipe, const fg_shape *shape, uint64_t seed);

/* Draws a tensor that says where sequences are; false: it is none. What comes before it in the
 * recipe is drawn. Entries of a table that no sequence needs are wild. */
bool reference_draw_layout(const reference_case *c, int tensor, double *values);

typedef struct reference_sequence {
  const reference_case *c;
  int64_t b, nq, nk;
  int64_t first_q, first_k; /* of packed ones the first token; of caches the first row */
  /* the sequence that these rows and keys are a part of: where in it they begin, and its lengths */
  int64_t pos_q, pos_k, whole_q, whole_k;
} reference_sequence;

/* The sequence of batch b. */
reference_sequence reference_sequence_of(const reference_case *c, int64_t b);

/* Rows of a tensor among the case's values: of queries and their like by query head, of keys by
 * key/value head, of numbers kept of rows. */
typedef int64_t reference_row(const reference_sequence *s, int64_t head, int64_t i);
reference_row reference_row_q, reference_row_k, reference_row_kept;

/* Values of a tensor's rows, of `width` columns and with that many heads, in the sequence's order:
 * [heads, n, width], and back. The caller frees what is gathered; NULL: no memory. */
double *reference_gather(const reference_sequence *s, const double *values, reference_row *row,
                         int64_t heads, int64_t n, int64_t width);
void reference_scatter(const reference_sequence *s, const double *part, reference_row *row,
                       int64_t heads, int64_t n, int64_t width, double *values);

/* Makes what inputs hold where no sequence reads NaN. */
fg_status reference_poison(reference_case *c);

#endif
