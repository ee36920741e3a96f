/* recipe_read.h - a family's description, a Lua table, to a recipe. */
#ifndef FG_RECIPE_READ_H
#define FG_RECIPE_READ_H

#include "formula/formula.h"
#include "recipe/recipe.h"
#include "spec/spec.h"
#include "state.h"

/* The table on top of the stack, left there: inputs, outputs, regions, steps, as the families in
 * templates/attention write them. FG_ETEMPLATE names what is missing or wrong. */
fg_status fg_recipe_read(lua_State *L, const fg_formula *formula, const fg_point *point,
                         fg_recipe *recipe);

#endif
