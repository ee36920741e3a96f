/* entry.c - the table behind libflashgen-gen.so's symbol. */
#include "entry.h"

#include "digest.h"
#include "recipe/recipe.h"

const fg_gen_entry *fg_gen_entry_0(void) {
  static const fg_gen_entry entry = {
      FG_VERSION,    fg_error,      fg_gen_new,    fg_gen_free, fg_gen_plans, fg_gen_candidates,
      fg_gen_expand, fg_gen_recipe, fg_gen_digest, fg_gen_lua,  fg_grid_read, fg_argument_number};
  return &entry;
}
