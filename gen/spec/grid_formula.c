/* grid_formula.c - the expressions of a table. */
#include "grid_formula.h"

#include <stdlib.h>
#include <string.h>

static void free_names(fg_names *x) {
  free(x->text);
  free(x->pair);
  free(x->unused);
  *x = (fg_names){0};
}

void fg_grid_formulas_free(fg_grid_formulas *f) {
  free_names(&f->inputs);
  free_names(&f->definitions);
}

/* Pairs of the words replace the table's pairs of the same name; returns how many are left. */
static int replace(const fg_names *x, int own) {
  int kept = own;
  for (int i = own; i < x->n; i++) {
    int same = 0;
    while (same < own && strcmp(x->pair[same].name, x->pair[i].name)) same++;
    x->pair[same < own ? same : kept++] = x->pair[i];
  }
  return kept;
}

/* The pairs of the table and of the words, where a name of the words replaces that of the table. */
static fg_status join(const fg_texts *own, const fg_texts *words, fg_names *out) {
  int n = own->n + words->n;
  size_t bytes = 1;
  char **text = calloc((size_t)n + 1, sizeof *text);
  if (!text) return fg_fail(FG_EMEMORY, "no memory for inputs");
  for (int i = 0; i < n; i++) {
    text[i] = i < own->n ? own->text[i] : words->text[i - own->n];
    bytes += strlen(text[i]) + 1;
  }
  *out =
      (fg_names){malloc(bytes), calloc((size_t)n + 1, sizeof *out->pair), malloc((size_t)n + 1), n};
  fg_status status = FG_OK;
  if (!out->text || !out->pair || !out->unused)
    status = fg_fail(FG_EMEMORY, "no memory for inputs");
  else
    status = fg_pairs_split(text, n, out->text, out->pair);
  if (status == FG_OK) {
    out->n = replace(out, own->n);
    memset(out->unused, true, (size_t)n + 1);
  }
  free(text);
  return status;
}

fg_status fg_grid_formulas_new(const fg_table *own, const fg_table *words, fg_grid_formulas *out) {
  fg_grid_formulas f = {0};
  fg_status status = join(&own->field[FG_FIELD_INPUTS], &words->field[FG_FIELD_INPUTS], &f.inputs);
  if (status == FG_OK)
    status = join(&own->field[FG_FIELD_DEFINE], &words->field[FG_FIELD_DEFINE], &f.definitions);
  *out = f;
  return status;
}

static fg_formula_texts texts_of(const fg_grid_formulas *f, const char *mask, const char *score) {
  return (fg_formula_texts){.mask = mask,
                            .score = score,
                            .n_inputs = f->inputs.n,
                            .input = f->inputs.pair,
                            .n_definitions = f->definitions.n,
                            .definition = f->definitions.pair};
}

/* Reads each mask, or score, beside the plain other one, so that an error names what is wrong. */
static void check_list(const fg_grid_formulas *f, const fg_texts *list, bool mask,
                       const char *where, fg_report *errors) {
  for (int i = 0; i < list->n; i++) {
    const char *text = list->text[i];
    fg_formula_texts texts = mask ? texts_of(f, text, NULL) : texts_of(f, NULL, text);
    fg_point point = {0};
    if (fg_point_set_formula(&point, &texts, NULL) == FG_OK) continue;
    /* a text of the words is in every table, and wrong once */
    if (*where || !errors->text || !strstr(errors->text, fg_error()))
      fg_report_add(errors, "%s%s", where, fg_error());
  }
}

void fg_grid_formulas_check(const fg_grid_formulas *f, const fg_texts *const *field,
                            const fg_table *own, const char *where, fg_report *errors) {
  fg_formula_texts texts = texts_of(f, NULL, NULL);
  if (fg_formula_check(&texts) != FG_OK) {
    fg_report_add(errors, "%s%s", where, fg_error());
    return;
  }
  const char *place[2];
  for (int i = 0; i < 2; i++)
    place[i] = field[FG_FIELD_MASK + i] == &own->field[FG_FIELD_MASK + i] ? where : "";
  check_list(f, field[FG_FIELD_MASK], true, place[0], errors);
  check_list(f, field[FG_FIELD_SCORE], false, place[1], errors);
}

/* Most points share mask and score with the one before. */
fg_status fg_grid_formulas_set(fg_grid_formulas *f, const char *mask, const char *score,
                               fg_point *point) {
  fg_formula_texts texts = texts_of(f, mask, score);
  texts.forward = point->pass == FG_PASS_FORWARD;
  if (f->mask != mask || f->score != score || f->last.pass != point->pass) {
    f->last = (fg_point){.pass = point->pass};
    f->mask = NULL;
    TRY(fg_point_set_formula(&f->last, &texts, f->inputs.unused));
    f->mask = mask, f->score = score;
  }
  point->mask = f->last.mask, point->score = f->last.score, point->inputs = f->last.inputs;
  return FG_OK;
}

void fg_grid_formulas_unused(const fg_grid_formulas *f, const char *where, fg_report *errors) {
  for (int i = 0; i < f->inputs.n; i++)
    if (f->inputs.unused[i])
      fg_report_add(errors, "%sinputs.%s: declared, but no point uses it", where,
                    f->inputs.pair[i].name);
}
