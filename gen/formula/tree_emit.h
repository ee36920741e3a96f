/* tree_emit.h - expressions as C text.
 *
 * What is the same for a row, or for a head, is taken out of a pair's text into declarations that
 * the caller puts where the row or the head is known. */
#ifndef FG_TREE_EMIT_H
#define FG_TREE_EMIT_H

#include "formula.h"

/* How the text names things: C expressions that are sums or tighter. */
typedef struct fg_emit_names {
  const char *name[FG_NAMES];
  /* k = k_base + k_offset, the offset known when loops are unrolled: linear terms in k are made by
   * increments. NULL: there is no such split. */
  const char *k_base, *k_offset;
  /* s = s_unit * s_raw, the unit the same for all pairs: constant factors join it. May be NULL. */
  const char *s_unit, *s_raw;
  const char *staged[FG_INPUT_MAX + 1]; /* an input's value where the caller has it, or NULL */
  bool hoist;                           /* head and row are wanted */
  /* The node of the list, from 1, that is wanted in units of log 2 and less `origin`, which is the
   * same for a row: 0 none. Constants of the terms and of rows are folded. */
  int log2;
  const char *origin;
  /* tanh is that of small numbers, whose largest goes to this float, "": nowhere. NULL: of any. */
  const char *reach;
  bool s_first;                 /* of log2: what is beside the multiple of s is one term */
  const char *of_head, *of_row; /* what names of declarations begin with; NULL: these words */
  bool score_is_weight; /* it is, or its sigmoid: a tanh may be off by a part of itself only */
  bool join; /* a factor of that tanh joins its polynomial: a product less, more constants */
  /* The place of query 0, of key 0, along an axis of queries or keys of an input; NULL: 0. */
  const char *first_q, *first_k;
  const char *has_row; /* the test that row q is one of the sequence's; NULL: q < nq */
} fg_emit_names;

/* Texts of n nodes. The strings are the caller's to free, by fg_emitted_free. */
typedef struct fg_emitted {
  char *head, *row; /* declarations, a line each */
  char **value;
  bool *reads, row_reads; /* does that value, or a declaration of the row, read memory? */
  int n;
} fg_emitted;
fg_status fg_formula_emit(const fg_formula *formula, int n, const int *node,
                          const fg_emit_names *names, fg_emitted *emitted);
/* The factor of the raw product in a node that is a scaled s (tree_term.h) and has no read, the
 * same for a head; the text is the caller's to free. */
fg_status fg_formula_emit_unit(const fg_formula *formula, int node, const fg_emit_names *names,
                               char **text);
void fg_emitted_free(fg_emitted *emitted);

/* "p.in_slope + ((i64)h * p.in_slope_0 + ...)": the address of an element by texts of its indices,
 * of which queries and keys are counted from `first_q` and `first_k` of the names. */
int fg_input_address(const fg_input *input, bool gradient, const char *const *index,
                     const fg_emit_names *names, size_t size, char *text);

#endif
