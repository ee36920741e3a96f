/* gen.h - what a fg_gen holds: shared by expand.c (life, text) and plans.c (candidates). */
#ifndef FG_GEN_H
#define FG_GEN_H

#include "expand.h"
#include "formula/formula.h"
#include "state.h"

/* The plans of a point on an arch, all that the families have. */
typedef struct fg_listed {
  fg_point point;
  char arch[FG_ARCH_MAX];
  fg_plan *plan;
  int n; /* 0: nothing was listed */
} fg_listed;

struct fg_listing; /* plans.c */

struct fg_gen {
  lua_State *L;
  char *templates;     /* a directory over the built-in ones, NULL = those only */
  bool is_checked;     /* `templates` is a directory with a template in it */
  int expand;          /* registry reference of expand.lua's table */
  char *handed;        /* a text on its way into Lua, which may find no memory for its copy */
  fg_formula formula;  /* of the running request, or of the last one */
  fg_point formula_of; /* its point, where has_formula */
  bool has_formula;
  const fg_point *point;      /* of the running request */
  fg_recipe *recipe;          /* where the recipe of the description goes that is being made */
  struct fg_listing *listing; /* the running one */
  fg_listed listed;           /* the last one: what stands in it is not asked for again */
};

/* Inside fg_lua_run: pushes expand.lua's function of that name. */
void fg_gen_push_function(const fg_gen *gen, const char *name);

/* Inside fg_lua_run: pushes the job table that plans() and expand() share. */
void fg_gen_push_job(fg_gen *gen, const fg_point *point, const char *arch);
/* Sets a member of the table on top. */
void fg_gen_set_text(lua_State *L, const char *key, const char *text);
void fg_gen_set_number(lua_State *L, const char *key, int value);

/* Reads the point's expressions into gen->formula, for the job that is pushed next; not where the
 * last request was for the same point. */
fg_status fg_gen_read_formula(fg_gen *gen, const fg_point *point);

/* Runs a function of a request, which reads the formula. */
fg_status fg_gen_run(fg_gen *gen, lua_CFunction function, void *request);

/* gen.plan(candidate) of expand.lua, while fg_gen_plans or fg_gen_candidates runs. */
int fg_gen_take_plan(lua_State *L, fg_gen *gen);
/* Pushes a plan as templates know it: the fields of its family by name, but for the family. */
void fg_gen_push_plan(lua_State *L, const fg_plan *plan);
/* Pushes the names of these fields, in the order of the table. */
void fg_gen_push_plan_fields(lua_State *L, const fg_plan *plan);

/* FG_EARGUMENT unless the family has the plan for this point: a kernel of other sizes would be
 * expanded without complaint and be wrong. A plan that was listed last costs no second listing. */
fg_status fg_gen_check_plan(fg_gen *gen, const fg_variant *variant);

#endif
