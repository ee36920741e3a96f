/* numeric_axes.h - axes of the numeric suites' design, and what each family has of them. */
#ifndef FG_TESTS_NUMERIC_AXES_H
#define FG_TESTS_NUMERIC_AXES_H

#include <stdbool.h>
#include <stddef.h>

/* Q_KIND and K_KIND follow from NQ and NK: what pairs with too much to be met length by length. */
enum axis {
  DTYPE,
  DIMS,
  MASK,
  BIAS,
  BIAS_ELEM,
  GRAD_ELEM,
  O_ELEM,
  DQKV_ELEM,
  SINK,
  ORDER,
  LAYOUT,
  PLAN,
  HEADS,
  NQ,
  NK,
  Q_KIND,
  K_KIND,
  STYLE,
  SCALE,
  SEED,
  AXES
};
enum { LEVELS = 20 };

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

typedef struct row {
  int level[AXES];
} row;

/* How many levels each axis has; numeric_find_plans fills in those of specs and plans. */
extern int numeric_levels[AXES];

/* Finds the plans of the family's specs of the pass, until they are forgotten. Ends the program
 * where it cannot. */
void numeric_find_plans(const char *family, const char *pass);
void numeric_forget_plans(void);

/* The words of the row's spec, separated by spaces; of its plan, a space before each. */
void numeric_spec_words(const row *r, size_t size, char *words);
const char *numeric_plan_words(const row *r);
/* d + dv of the row's spec. */
int numeric_width(const row *r);

/* Does the row's spec have its plan, as far as the levels by themselves say? */
int numeric_fits(const row *r);
/* Has a row that fits its plan in truth? They differ where the layout is not dense. */
bool numeric_has_plan(const row *r);

/* Is there a spec and plan with level x of axis a and level y of axis b? */
int numeric_can_meet(int a, int x, int b, int y);

#endif
