/* formula_case.h - random expressions, and one formula beside the oracle's reading of it. */
#ifndef FG_TESTS_FORMULA_CASE_H
#define FG_TESTS_FORMULA_CASE_H

#include "formula/formula.h"
#include "reference/oracle_formula.h"
#include "base/random.h"

#include <stddef.h>

/* The inputs of every case: numbers w (int) and c, t f32[h, 7] grad, u f32[b] grad, ids i32[b, k]
 * monotone; problems have at most these extents. */
enum { CASE_INPUTS = 5, CASE_B = 2, CASE_H = 3, CASE_LENGTH = 40 };
extern const fg_pair case_declared[CASE_INPUTS];

/* Reads a mask, a score or both (NULL: the usual one) with these inputs. */
fg_status case_formula(const char *mask, const char *score, fg_formula *formula);

int case_below(uint64_t *state, int n);

/* The text of a random test, int or float. `twin` (may be NULL) gets the same expression with
 * commutative operands exchanged here and there, and other spellings. */
enum { CASE_TEXT = 4096 };
void case_text(uint64_t *state, fg_type type, int depth, char text[CASE_TEXT],
               char twin[CASE_TEXT]);

/* A problem: lengths, and values of the inputs as the oracle takes them, sorted by name as the
 * formula's are. */
typedef struct case_problem {
  int b, h, hk, nq, nk;
  oracle_input input[CASE_INPUTS];
  double t[CASE_H * 7], u[CASE_B], ids[CASE_B * CASE_LENGTH];
} case_problem;
void case_problem_new(uint64_t *state, case_problem *problem);
void case_names(const case_problem *problem, int b, int h, int q, int k, double s,
                double name[ORACLE_NAMES]);

/* Fails where an int of the formula's last value exceeded 64 bits. */
void case_fits(const oracle_formula *formula);

/* The oracle's reading of a node of the formula, by its canonical text. */
oracle_formula *case_read(const fg_formula *formula, int node, const case_problem *problem);

#endif
