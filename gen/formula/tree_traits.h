/* tree_traits.h - facts about a formula's score and mask, by which templates choose how to compute
 * them.
 *
 * A value is a head's, a row's or a pair's by what it depends on (tree_term.h). What a pair
 * computes is what is left when the values of its head and row are known, each named once. */
#ifndef FG_TREE_TRAITS_H
#define FG_TREE_TRAITS_H

#include "formula.h"

typedef struct fg_traits {
  /* The score is s; it is s and terms that do not depend on it. */
  bool is_s, adds_to_s;
  /* It is a multiple of s, one of k, both the same for a head, and terms of the row that read
   * nothing of a row: of one key the scores of two rows differ by the rows alone. */
  bool is_linear_in_s_and_k;
  /* Besides reads of memory, more than a multiple of k differs from key to key: |k - p|, or a part
   * that is evaluated only for some keys. The second: and a pair computes a choice. */
  bool is_uneven_in_k, chooses_unevenly;
  /* How many tanh there are; whether there are some, and each takes s times or over at least one
   * value of a head that is not read from memory. */
  int tanh_count;
  bool tanhs_are_of_scaled_s;
  /* The factor of such a tanh that is all of the score and may be off by 1e-7; 0: the score is no
   * such cap. */
  double cap;
  /* A pair's test reads memory; it uses an input, a number or a tensor. */
  bool mask_reads, mask_uses_inputs;
  /* What a pair computes: sizes of mask and score, see tree_traits.c; an integer quotient or
   * remainder of 64 bits is in it. */
  int mask_size, score_size;
  bool has_wide_quotient;
} fg_traits;

/* The traits of a formula whose score is taken as `score`: backward passes have one of their own.
 */
fg_traits fg_formula_traits(fg_formula *formula, int score);

/* Does a pair read memory for the node, or call a function of floats? Else its value is finite
 * where those of head and row are. */
bool fg_formula_reads_or_calls(fg_formula *formula, int node);

/* Does a test or value read memory, or use an input, where it is evaluated? What given(range, test)
 * says of its range is not. */
bool fg_tree_reads_memory(const fg_tree *tree, int node);
bool fg_tree_uses_inputs(const fg_tree *tree, int node);

#endif
