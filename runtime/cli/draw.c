/* draw.c - `flashgen draw`: the pairs of a query and a key that a mask shows. */
#include "draw.h"

#include "base/text.h"
#include "reference/npy.h"
#include "reference/oracle_row.h"
#include "spec/point_formula.h"
#include "work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, MOST = 256 }; /* the usual lengths, and the longest that a picture has */

/* A mask, its declared inputs, and their numbers. */
typedef struct {
  const fg_point *point;
  fg_formula formula;
  oracle_input input[ORACLE_INPUTS];
  double *values[ORACLE_INPUTS];
  int n;
} drawn;

static void drawn_free(drawn *d) {
  for (int i = 0; i < d->n; i++) free(d->values[i]);
  fg_formula_free(&d->formula);
}

/* Words that are numbers of a tensor, "ids=0,0,1", are no fields of the spec. */
static void take_lists(cli *c, int *n, const char **list) {
  int kept = 0;
  *n = 0;
  for (int i = 0; i < c->n_words; i++) {
    const char *word = c->words[i], *value = strchr(word, '=') + 1;
    char name[FG_INPUT_NAME];
    snprintf(name, sizeof name, "%.*s", (int)(value - word) - 1, word);
    const bool is_list = strchr(value, ',') && !value[strspn(value, "+-.,0123456789eE")];
    if (is_list && !strchr(name, '.') && !fg_field_find(name))
      list[(*n)++] = word;
    else
      c->words[kept++] = word;
  }
  c->n_words = kept;
}

/* One axis of a declared input. */
static fg_status read_extent(const char *text, const fg_shape *shape, int64_t *extent) {
  const fg_extent_row *row = fg_extent_of_axis(text, strlen(text));
  fg_expr expr;
  if (row) return *extent = fg_extent_get(row, shape), FG_OK;
  TRY(fg_expr_compile(text, fg_shape_forms[FG_FORM_PAIRS].letters, &expr));
  return fg_expr_eval(&expr, shape, extent);
}

static fg_status read_extents(const fg_input *input, const fg_shape *shape, oracle_input *made,
                              int64_t *count) {
  *count = 1;
  for (int a = 0; a < input->rank; a++) {
    TRY(read_extent(input->extent[a], shape, &made->extent[a]));
    if (made->extent[a] < 0) made->extent[a] = 0;
    *count *= made->extent[a];
  }
  return FG_OK;
}

/* The numbers of "ids=0,0,1", in row-major order. */
static fg_status read_list(const char *word, int64_t count, double *values) {
  const int name = (int)strcspn(word, "=");
  int64_t n = 0;
  for (const char *at = word + name; *at; n++) {
    char *end;
    const double value = strtod(at + 1, &end);
    if (end == at + 1 || (*end && *end != ','))
      return fg_fail(FG_EARGUMENT, "%s: expected numbers between commas", word);
    if (n < count) values[n] = value;
    at = end;
  }
  if (n == count) return FG_OK;
  return fg_fail(FG_EARGUMENT, "%.*s: %" PRId64 " numbers are given; it has %" PRId64, name, word,
                 n, count);
}

static fg_status read_file(const char *name, const char *path, int64_t count, double *values) {
  fg_array file;
  TRY(fg_npy_read(name, path, &file));
  for (int64_t i = 0; i < count && count == file.count; i++)
    values[i] = file.integer ? (double)file.integer[i] : (double)file.real[i];
  const int64_t n = file.count;
  fg_array_free(&file);
  if (n == count) return FG_OK;
  return fg_fail(FG_EARGUMENT, "--in %s: %s has %" PRId64 " numbers; it has %" PRId64, name, path,
                 n, count);
}

/* A tensor's numbers: of a word or of a file. */
static fg_status read_tensor(const cli *c, const char *name, int n_lists, const char *const *lists,
                             int64_t count, double *values) {
  const size_t length = strlen(name);
  for (int i = 0; i < n_lists; i++)
    if (!strncmp(lists[i], name, length) && lists[i][length] == '=')
      return read_list(lists[i], count, values);
  for (int i = 0; i < c->n_in; i++)
    if (!strcmp(c->in[i].name, name)) return read_file(name, c->in[i].path, count, values);
  return fg_fail(FG_EARGUMENT,
                 "the mask reads the tensor %s: give its %" PRId64
                 " numbers as %s=0,0,1,... or --in %s=FILE.npy",
                 name, count, name, name);
}

static fg_status read_inputs(const cli *c, int n_lists, const char *const *lists,
                             const fg_shape *shape, drawn *d) {
  for (; d->n < d->formula.n_inputs; d->n++) {
    const fg_input *input = &d->formula.input[d->n];
    const cli_number *number = cli_number_find(c, input->name);
    oracle_input *made = &d->input[d->n];
    int64_t count = 0;
    *made = (oracle_input){.name = input->name,
                           .is_int = input->type == FG_TYPE_INT,
                           .rank = input->tensor ? input->rank : -1,
                           .number = number ? number->value : 0};
    if (!input->tensor && !number)
      return fg_fail(FG_EARGUMENT, "the mask reads the number %s: give %s=N", input->name,
                     input->name);
    if (!input->tensor) continue;
    TRY(read_extents(input, shape, made, &count));
    made->values = d->values[d->n] = calloc((size_t)count + 1, sizeof(double));
    if (!made->values) return d->n++, fg_fail(FG_EMEMORY, "no memory for %s", input->name);
    fg_status status = read_tensor(c, input->name, n_lists, lists, count, d->values[d->n]);
    if (status != FG_OK) return d->n++, status;
  }
  return FG_OK;
}

/* Each pair is asked of the oracle. */
static fg_status look(const drawn *d, cli_picture *picture) {
  const fg_shape *s = &picture->shape;
  oracle_formula *mask =
      d->point->mask ? oracle_formula_new(d->point->mask, d->n, d->input, NULL) : NULL;
  const oracle_problem problem = {.h = s->h, .hk = s->hk, .nq = s->nq, .nk = s->nk, .mask = mask};
  fg_status status = FG_OK;
  if (d->point->mask && !mask)
    return fg_fail(FG_EBUG, "the oracle cannot read \"%.200s\"", d->point->mask);
  picture->is_causal = true;
  for (int64_t row = 0; row < s->b * s->h * s->nq; row++) {
    const int64_t h = row / s->nq % s->h, q = row % s->nq;
    const oracle_place at = {.b = row / s->nq / s->h, .h = h, .q = q, .kv = h / (s->h / s->hk)};
    for (int64_t k = 0; k < s->nk; k++) {
      const bool visible = oracle_is_visible(&problem, at, k);
      picture->visible[row * s->nk + k] = visible;
      picture->seen += visible;
      picture->is_causal &= !visible || k <= q + s->nk - s->nq;
    }
  }
  const char *fault = mask ? oracle_formula_fault(mask) : NULL;
  if (fault) status = fg_fail(FG_ESPEC, "mask: an index leaves its tensor: %s", fault);
  oracle_formula_free(mask);
  return status;
}

/* A length that no word gives is the usual one, whatever the other is. */
static fg_status read_shape(const cli *c, const fg_point *point, fg_shape *shape) {
  static const fg_shape usual = {
      .size = sizeof usual, .b = 1, .h = 1, .hk = 1, .nq = SIDE, .nk = SIDE};
  cli words = *c;
  if (strcmp(fg_point_kind(point)->name, "attention"))
    return fg_fail(FG_EARGUMENT, "kernel=%s has no mask", fg_point_kind(point)->name);
  if (words.arguments.shape.nq < 0) words.arguments.shape.nq = SIDE;
  if (words.arguments.shape.nk < 0) words.arguments.shape.nk = SIDE;
  TRY(cli_shape_fill(&words, point, &usual, shape));
  if (shape->nq > MOST || shape->nk > MOST || shape->b * shape->h > MOST)
    return fg_fail(FG_EARGUMENT,
                   "a picture has at most %d queries and keys, and %d batches and heads", MOST,
                   MOST);
  return FG_OK;
}

/* The one spec that the words give. Its head dim does not count. */
static fg_status read_grid(const cli *c, fg_grid **grid) {
  static const char *const any = "head_dim=64";
  bool is_whole = c->n_files > 0;
  for (int i = 0; i < c->n_words; i++)
    is_whole |= !strncmp(c->words[i], "head_dim=", 9) || !strncmp(c->words[i], "kernel=", 7);
  TRY(cli_grid_read(c, !is_whole, &any, grid));
  if ((*grid)->n == 1) return cli_numbers_check(c, 1, (*grid)->point);
  return fg_fail(FG_EARGUMENT, "%d specs: give one mask to draw", (*grid)->n);
}

fg_status cli_picture_new(const cli *c, cli_picture *out) {
  cli own = *c;
  const char *lists[CLI_LIST_MAX];
  int n_lists;
  fg_grid *grid = NULL;
  drawn d = {0};
  cli_picture picture = {0};
  fg_status status = FG_OK;
  take_lists(&own, &n_lists, lists);
  TRY_OUT(read_grid(&own, &grid));
  fg_point point = grid->point[0];
  point.bias = FG_BIAS_OFF; /* it is no part of the mask */
  d.point = &point;
  TRY_OUT(read_shape(&own, &point, &picture.shape));
  TRY_OUT(fg_point_formula(&point, &d.formula));
  TRY_OUT(read_inputs(&own, n_lists, lists, &picture.shape, &d));
  const fg_shape *s = &picture.shape;
  picture.mask = fg_field_text(&fg_fields[FG_FIELD_MASK], &point);
  picture.visible = calloc((size_t)(s->b * s->h * s->nq * s->nk) + 1, sizeof(bool));
  if (!picture.visible) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for a picture"));
  TRY_OUT(look(&d, &picture));
  *out = picture;
  picture.visible = NULL;
out:
  free(picture.visible);
  drawn_free(&d);
  fg_grid_free(grid);
  return status;
}

void cli_picture_free(cli_picture *picture) {
  free(picture->visible);
  *picture = (cli_picture){0};
}

/* SVG where the file's name says so. */
static int run(cli *c) {
  cli_picture picture;
  fg_status status = cli_picture_new(c, &picture);
  if (status != FG_OK) return cli_fail(status);
  const size_t n = c->result ? strlen(c->result) : 0;
  if (n > 4 && !strcmp(c->result + n - 4, ".svg"))
    cli_picture_svg(&picture, stdout);
  else
    cli_picture_text(&picture, stdout);
  cli_picture_free(&picture);
  return CLI_OK;
}

const cli_command cli_draw = {
    .name = "draw",
    .line = "a picture of a mask",
    .usage = "[SPEC.lua] [WORD ...]",
    .options = " help picture in ",
    .examples =
        "  flashgen draw mask=causal\n"
        "  flashgen draw 'mask=window(3, 0)' nq=8 nk=12 -o window.svg\n"
        "  flashgen draw 'mask=k <= p && p - k < width' inputs.width=int width=3\n"
        "  flashgen draw 'mask=document(ids)' 'inputs.ids=i32[b,k]' ids=0,0,0,1,1,1,1,2\n"
        "other words: nq= nk= are 8 unless they are given, b= h= hk= 1; NAME=X sets a declared "
        "number,\n"
        "NAME=X,X,... or --in NAME=FILE the numbers of a declared tensor\n",
    .takes_arguments = 1,
    .run = run};
