/* point_formula.h - the mask, score and inputs of a point: from texts, and back to trees. */
#ifndef FG_POINT_FORMULA_H
#define FG_POINT_FORMULA_H

#include "formula/formula.h"
#include "spec.h"

/* Sets the point's mask, score and inputs from texts as users write them. The point's pass is set.
 * `unused` as for fg_formula_read. */
fg_status fg_point_set_formula(fg_point *point, const fg_formula_texts *texts, bool *unused);

/* The inputs without their gradients, as a forward has them. */
fg_status fg_point_forget_gradients(fg_point *point);

/* Makes known what stands in names for the texts of a point that another library has read, whose
 * names are not this one's. */
fg_status fg_point_learn(const fg_point *point);

/* The point's trees and inputs, its bias among them. Free it in any case. */
fg_status fg_point_formula(const fg_point *point, fg_formula *formula);

/* The texts whose hashes stand in the point's name, "mask=...; score=...; inputs=...", "" for none.
 * Returns the length, as snprintf does. Its inverse makes the texts known, so that such names read
 * back. */
int fg_point_expression(const fg_point *point, size_t size, char *text);
/* Is it the expression of the point (or variant) of that name? */
bool fg_expression_of(const char *name, const char *expression);
fg_status fg_expression_learn(const char *expression);

/* "name=value" texts to pairs, which point into `copy`, a copy of the texts that is cut up. */
fg_status fg_pairs_split(char *const *text, int n, char *copy, fg_pair *pair);

/* FG_ESPEC: an input's axes are not those that a part of a sequence has. */
fg_status fg_point_check_parts(const fg_point *point);

#endif
