/* formula.h - what a point computes between its two products: a mask, a score, and their inputs.
 *
 * Texts of users become trees here, and only what is printed from a tree is ever kept or emitted.
 * Definitions are expanded while they are read; inputs that are not used are dropped. */
#ifndef FG_FORMULA_H
#define FG_FORMULA_H

#include "base/elem.h"
#include "tree.h"

enum { FG_INPUT_MAX = 8, FG_INPUT_NAME = 24, FG_FORMULA_TEXT = 1 << 16, FG_DEFINITION_MAX = 10000 };

/* An input: a number of the launch, or a tensor of `rank` axes. An extent is "b", "h", "hk", "q" or
 * "k", the length of that axis; "1"; or an integer expression in nq and nk. */
typedef struct fg_input {
  char name[FG_INPUT_NAME];
  fg_type type; /* of a value */
  bool tensor, grad, monotone;
  bool named; /* some text names it, though folding may have removed it */
  fg_elem elem;
  int rank;
  char extent[FG_NODE_ARGS][64];
} fg_input;

typedef struct fg_formula {
  fg_tree tree;
  int mask, score; /* nodes */
  bool unskipped;  /* no tile is skipped or known to be whole: each pair is tested */
  int n_inputs;
  fg_input input[FG_INPUT_MAX + 1]; /* the last place is that of a spec's bias */
} fg_formula;

/* "slope", "f32[h] grad" of `inputs`, or "strided(n)", "(q - k) % n == 0" of `define`. */
typedef struct fg_pair {
  const char *name, *value;
} fg_pair;

typedef struct fg_texts_of_formula {
  const char *mask, *score; /* NULL: full, s */
  int n_inputs, n_definitions;
  const fg_pair *input, *definition;
  bool forward; /* gradients of inputs are not asked for */
} fg_formula_texts;

/* FG_ESPEC with the column, what was found there and what was expected. unused[i] (may be NULL) is
 * cleared where input i is used, so that it may be asked of many points. Free it in any case. */
fg_status fg_formula_read(const fg_formula_texts *texts, fg_formula *formula, bool *unused);
void fg_formula_free(fg_formula *formula);

/* Checks declarations and heads of definitions, so that errors come before any use. */
fg_status fg_formula_check(const fg_formula_texts *texts);

/* Canonical texts: of a node, and of the inputs ("slope=f32[h] grad, width=int"). Lengths as
 * snprintf's. */
int fg_formula_print(const fg_formula *formula, int node, size_t size, char *text);
int fg_formula_inputs(const fg_formula *formula, size_t size, char *text);

/* The name of a definition without parameters that is this mask or score, else NULL. */
const char *fg_formula_known(const char *text);

/* Appends bias[...] to the score: its axes are those of `dims` (bit 0 = b, 1 = h, 2 = q, 3 = k). */
fg_status fg_formula_add_bias(fg_formula *formula, int dims, fg_elem elem, bool grad);

#endif
