/* numeric_plans.c - which specs of the numeric suites' design have which plans. */
#include "numeric_axes.h"

#include "kernel_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtypes[] = {"bf16", "f16"};
static const char *const dims[] = {"8",       "40",    "64",  "72",      "128",   "256",
                                   "192/128", "32/96", "264", "576/512", "64/320"};
static const int widths[] = {16, 80, 128, 144, 256, 512, 320, 128, 528, 1088, 384}; /* d + dv */
static const char *const masks[] = {"full", "causal", "window(20,3)", "chunked(48)"};
static const char *const biases[] = {"false",
                                     "true",
                                     "true bias_dims=[b,h,k]",
                                     "grad",
                                     "grad bias_dims=[]",
                                     "grad bias_dims=[b,k]",
                                     "grad bias_dims=[h,q,k]",
                                     "grad bias_dims=[q]",
                                     "grad bias_dims=[k]",
                                     "grad bias_dims=[h]",
                                     "grad bias_dims=[b,q]"};
static const char *const elems[] = {"spec", "f32"};
static const char *const sinks[] = {"false", "true", "grad"};
static const char *const orders[] = {"false", "true"}; /* deterministic; forward always is */
/* Those of keys alone that have no backward come last. */
static const char *const layouts[] = {"",
                                      " q_layout=packed kv_layout=packed",
                                      " q_layout=packed",
                                      " kv_layout=packed",
                                      " kv_layout=paged",
                                      " q_layout=packed kv_layout=cached"};
enum { BACKWARD_LAYOUTS = 4 };

int numeric_levels[AXES] = {
    [DTYPE] = COUNT(dtypes), [DIMS] = COUNT(dims),       [MASK] = COUNT(masks),
    [BIAS] = COUNT(biases),  [BIAS_ELEM] = COUNT(elems), [GRAD_ELEM] = COUNT(elems),
    [O_ELEM] = COUNT(elems), [SINK] = COUNT(sinks)};

static const char *family, *pass;
static fg_gen *gen;

/* The family's plans for any spec, by their words. What plans a spec has depends on the first seven
 * of these axes (results in float32 take none away): of dense sequences `fits`, by their levels. Of
 * another layout a spec may have those of them that the head dims have there, if the family takes
 * the bias there; `lacks` has those that were looked for in vain. */
enum { DECIDE = 8 };
static const enum axis decide[DECIDE] = {DTYPE, DIMS, ORDER, MASK, BIAS, BIAS_ELEM, LAYOUT, PLAN};
static char plans[LEVELS][96];
static unsigned char fits[COUNT(dtypes)][COUNT(dims)][COUNT(orders)][COUNT(masks)][COUNT(biases)]
                         [COUNT(elems)][LEVELS];
static unsigned char has_plan[COUNT(layouts)][COUNT(dims)][LEVELS];
static unsigned char takes_bias[COUNT(layouts)][COUNT(biases)][COUNT(orders)];
static unsigned char lacks[COUNT(layouts)][COUNT(dtypes)][COUNT(dims)][COUNT(orders)][COUNT(masks)]
                          [COUNT(biases)][COUNT(elems)][LEVELS];

/* Pairs of levels of two of these axes that some spec and plan have. */
static unsigned char can[DECIDE][LEVELS][DECIDE][LEVELS];

/* Check takes assertions in a test only, and the design is made before the first. */
static void need(int good) {
  if (good) return;
  fprintf(stderr, "no design: %s\n", fg_error());
  exit(EXIT_FAILURE);
}

static int find_plan(const fg_plan *plan) {
  char words[96];
  size_t n = 0;
  for (int i = 1; i < FG_FIELDS - FG_SPEC_FIELDS; i++)
    n += (size_t)snprintf(words + n, sizeof words - n, " %s=%d", fg_fields[FG_SPEC_FIELDS + i].name,
                          plan->value[i] ? plan->value[i] : 1);
  for (int i = 0; i < numeric_levels[PLAN]; i++)
    if (!strcmp(plans[i], words)) return i;
  need(numeric_levels[PLAN] < LEVELS);
  strcpy(plans[numeric_levels[PLAN]], words);
  return numeric_levels[PLAN]++;
}

void numeric_spec_words(const row *r, size_t size, char *words) {
  const int *l = r->level;
  int biased = l[BIAS] > 0;
  int graded = !strncmp(biases[l[BIAS]], "grad", 4) && !strcmp(pass, "backward");
  size_t n = (size_t)snprintf(
      words, size,
      "pass=%s dtype=%s head_dim=%s mask=%s bias=%s sink=%s deterministic=%s family=%s%s "
      "o_dtype=%s dqkv_dtype=%s",
      pass, dtypes[l[DTYPE]], dims[l[DIMS]], masks[l[MASK]], biases[l[BIAS]], sinks[l[SINK]],
      orders[l[ORDER]], family, layouts[l[LAYOUT]], elems[l[O_ELEM]], elems[l[DQKV_ELEM]]);
  if (biased) n += (size_t)snprintf(words + n, size - n, " bias_dtype=%s", elems[l[BIAS_ELEM]]);
  if (graded) snprintf(words + n, size - n, " grad_dtype=%s", elems[l[GRAD_ELEM]]);
}

/* The plans of the row's spec; NULL: the family leaves the spec to others. The caller frees them.
 */
static fg_plan *list_plans(const row *r, int *n) {
  char words[384], *rest;
  const char *word[16];
  fg_grid *grid;
  fg_plan *list = NULL;
  int n_words = 0;
  *n = 0;
  numeric_spec_words(r, sizeof words, words);
  for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
    word[n_words++] = w;
  need(fg_grid_read(0, NULL, n_words, word, &grid) == FG_OK);
  if (fg_gen_plans(gen, grid->point, kernel_device()->arch, grid->limits[0], &list, n) != FG_ESPEC)
    need(list != NULL);
  fg_grid_free(grid);
  return list;
}

static void find_plans(row *r) {
  const int *l = r->level;
  int n;
  fg_plan *list = list_plans(r, &n);
  for (int i = 0; i < n; i++)
    fits[l[DTYPE]][l[DIMS]][l[ORDER]][l[MASK]][l[BIAS]][l[BIAS_ELEM]][find_plan(&list[i])] = 1;
  free(list);
}

/* What a layout leaves of the plans and biases, each by itself. */
static void find_layouts(void) {
  enum { DIMS_64 = 2 };
  int n;
  row r = {0};
  for (r.level[LAYOUT] = 0; r.level[LAYOUT] < numeric_levels[LAYOUT]; r.level[LAYOUT]++) {
    for (r.level[DIMS] = 0; r.level[DIMS] < numeric_levels[DIMS]; r.level[DIMS]++) {
      fg_plan *list = list_plans(&r, &n);
      for (int i = 0; i < n; i++) has_plan[r.level[LAYOUT]][r.level[DIMS]][find_plan(&list[i])] = 1;
      free(list);
    }
    r.level[DIMS] = DIMS_64;
    for (r.level[BIAS] = 0; r.level[BIAS] < numeric_levels[BIAS]; r.level[BIAS]++)
      for (r.level[ORDER] = 0; r.level[ORDER] < numeric_levels[ORDER]; r.level[ORDER]++) {
        free(list_plans(&r, &n));
        takes_bias[r.level[LAYOUT]][r.level[BIAS]][r.level[ORDER]] = n > 0;
      }
    r.level[BIAS] = r.level[ORDER] = 0;
  }
}

int numeric_fits(const row *r) {
  const int *l = r->level, layout = l[LAYOUT];
  return fits[l[DTYPE]][l[DIMS]][l[ORDER]][l[MASK]][l[BIAS]][l[BIAS_ELEM]][l[PLAN]] &&
         (!layout || (has_plan[layout][l[DIMS]][l[PLAN]] && takes_bias[layout][l[BIAS]][l[ORDER]]));
}

/* Calls `each` for every row of the axes of `decide` from number `at` on. */
static void for_each_spec(row *r, int at, int end, void (*each)(row *)) {
  if (at == end) {
    each(r);
    return;
  }
  for (int i = 0; i < numeric_levels[decide[at]]; i++) {
    r->level[decide[at]] = i;
    for_each_spec(r, at + 1, end, each);
  }
  r->level[decide[at]] = 0;
}

/* Is the row's plan there, where the layout is not dense? What is not is remembered. */
bool numeric_has_plan(const row *r) {
  const int *l = r->level;
  int n;
  bool found = !l[LAYOUT];
  if (found) return true;
  fg_plan *list = list_plans(r, &n);
  for (int i = 0; i < n; i++) found |= find_plan(&list[i]) == l[PLAN];
  free(list);
  lacks[l[LAYOUT]][l[DTYPE]][l[DIMS]][l[ORDER]][l[MASK]][l[BIAS]][l[BIAS_ELEM]][l[PLAN]] = !found;
  return found;
}

static void mark_pairs(row *r) {
  if (!numeric_fits(r)) return;
  for (int a = 0; a < DECIDE; a++)
    for (int b = 0; b < DECIDE; b++) can[a][r->level[decide[a]]][b][r->level[decide[b]]] = 1;
}

void numeric_find_plans(const char *of_family, const char *of_pass) {
  enum { OF_DENSE = DECIDE - 2 };
  row r = {0};
  family = of_family, pass = of_pass;
  const bool backward = !strcmp(pass, "backward");
  numeric_levels[ORDER] = backward ? COUNT(orders) : 1;
  numeric_levels[DQKV_ELEM] = backward ? COUNT(elems) : 1;
  numeric_levels[LAYOUT] = backward ? BACKWARD_LAYOUTS : COUNT(layouts);
  need(fg_gen_new(NULL, &gen) == FG_OK);
  for_each_spec(&r, 0, OF_DENSE, find_plans);
  find_layouts();
  for_each_spec(&r, 0, DECIDE, mark_pairs);
}

void numeric_forget_plans(void) { fg_gen_free(gen); }

int numeric_width(const row *r) { return widths[r->level[DIMS]]; }
const char *numeric_plan_words(const row *r) { return plans[r->level[PLAN]]; }

int numeric_can_meet(int a, int x, int b, int y) {
  int i = 0, j = 0;
  while (i < DECIDE && (int)decide[i] != a) i++;
  while (j < DECIDE && (int)decide[j] != b) j++;
  if ((i < DECIDE && !can[i][x][i][x]) || (j < DECIDE && !can[j][y][j][y])) return 0;
  return i == DECIDE || j == DECIDE || can[i][x][j][y];
}
