/* grid.c - tables of texts to the points of a grid: every combination, checked, filtered, merged.
 */
#include "grid.h"
#include "base/setting.h"
#include "grid_former.h"
#include "grid_formula.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields that mean something only where a bias is at least `level`. A spec that gives one and has
 * no such point is wrong. */
static const struct {
  const char *field;
  int level;
  const char *unused;
} bias_fields[] = {{"bias_dims", FG_BIAS_ON, "no point has a bias"},
                   {"bias_dtype", FG_BIAS_ON, "no point has a bias"},
                   {"grad_dtype", FG_BIAS_GRAD, "no backward point has bias=grad"}};
enum { BIAS_FIELDS = sizeof bias_fields / sizeof *bias_fields };

#define NO_FIELD "it is a number of the launch, not of the spec"

typedef struct {
  const fg_spec_reader *reader;
  fg_grid *grid;
  fg_report errors;
  fg_table words; /* each of its fields replaces that of every table */
  int *slot;      /* hash of points: index + 1, 0 = free */
  size_t slots;   /* a power of two */
  int bias_level; /* the highest of any combination */
  bool given[BIAS_FIELDS];
  bool belongs[FG_FIELD_ROWS];   /* to a kernel of some table */
  bool is_number[FG_FIELD_ROWS]; /* a table whose kernels lack the field declares a number so */
} builder;

/* A table under the words that replace its fields: where it is, and who answers its `when`. */
typedef struct {
  fg_spec_file *file; /* NULL: words only */
  fg_table *own;
  const fg_texts *field[FG_FIELD_ROWS];
  fg_grid_formulas formulas;
  const fg_limits *limits;
  char where[512];
} source;

/* Reports each text that is no value of the field. Expressions are judged elsewhere, with their
 * inputs. */
static void check_values(fg_report *errors, const char *where, const fg_field *field,
                         const fg_texts *texts) {
  fg_point scratch;
  int value;
  if (field->plan && texts->n > FG_LIMIT_MAX)
    fg_report_add(errors, "%s%s: more than %d values", where, field->name, FG_LIMIT_MAX);
  for (int i = 0; i < texts->n && !field->type->is_expression; i++)
    if (fg_field_read(field, texts->text[i], &scratch, &value) != FG_OK)
      fg_report_add(errors, "%s%s", where, fg_error());
}

/* Has one of the table's kernels the field? A name that is no kernel counts as having it: that
 * error has a sentence of its own. */
static bool has_field(const source *s, const fg_field *field) {
  const fg_texts *kernels = s->field[FG_FIELD_KERNEL];
  const char *const *usual = &fg_fields[FG_FIELD_KERNEL].fallback;
  for (int i = 0; i < (kernels->n ? kernels->n : 1); i++) {
    const fg_kind *kind = fg_kind_find(kernels->n ? kernels->text[i] : *usual);
    if (!kind || field->plan || fg_kind_has_spec_field(kind, field)) return true;
  }
  return false;
}

/* Does a table declare a number of that name, n bytes long? */
static bool find_number(const fg_names *inputs, const char *name, size_t n) {
  for (int i = 0; i < inputs->n; i++)
    if (strlen(inputs->pair[i].name) == n && !strncmp(inputs->pair[i].name, name, n))
      return !strchr(inputs->pair[i].value, '[');
  return false;
}

/* A field that none of the table's kernels has is a mistake where the table gives it; where words
 * give it to many tables, one must have it. */
static void check_field(builder *b, source *s, int i) {
  const fg_field *field = &fg_fields[i];
  const fg_texts *texts = s->field[i];
  const bool own = texts == &s->own->field[i], has = has_field(s, field);
  if (has && !texts->n && !texts->bad && !field->plan && !field->fallback)
    fg_report_add(&b->errors, "%s%s: missing; it must be given", s->where, field->name);
  if (!has && own && texts->n)
    fg_report_add(&b->errors, "%s%s: kernel=%s has no such field", s->where, field->name,
                  s->field[FG_FIELD_KERNEL]->text[0]);
  if (own) check_values(&b->errors, s->where, field, texts);
  if (texts == &b->words.field[i] && has && !b->belongs[i])
    check_values(&b->words.errors, "", field, texts);
  b->belongs[i] |= has;
  b->is_number[i] |= !has && find_number(&s->formulas.inputs, field->name, strlen(field->name));
}

/* Finds what is wrong with the table, besides with the words. */
static bool check_table(builder *b, source *s) {
  int64_t before = b->errors.lines;
  fg_report_append(&b->errors, &s->own->errors);
  fg_grid_take_former(s->field, b->words.field, s->where, &b->errors);
  for (int i = 0; i < FG_FIELD_ROWS; i++) check_field(b, s, i);
  fg_grid_formulas_check(&s->formulas, s->field, s->own, s->where, &b->errors);
  return b->errors.lines == before;
}

static size_t hash_point(const fg_point *point) {
  uint64_t h = XXH3_64bits(point, sizeof *point);
  return (size_t)h;
}

static bool same(const builder *b, int i, const fg_point *point, const fg_limits *limits) {
  const fg_limits *other = b->grid->limits[i];
  return fg_point_equal(&b->grid->point[i], point) && !memcmp(other, limits, sizeof *other);
}

/* The slot of an equal point, or the free one where it belongs; slots hold index + 1. */
static int *find_slot(const builder *b, const fg_point *point, const fg_limits *limits) {
  size_t mask = b->slots - 1, i = hash_point(point) & mask;
  while (b->slot[i] && !same(b, b->slot[i] - 1, point, limits)) i = (i + 1) & mask;
  return &b->slot[i];
}

/* Room for twice the points: arrays, and a table of slots at most half full. */
static fg_status grow(builder *b) {
  fg_grid *g = b->grid;
  size_t capacity = b->slots ? b->slots : 64;
  fg_point *points = realloc(g->point, sizeof *points * capacity);
  if (points) g->point = points;
  const fg_limits **limits = realloc(g->limits, sizeof *limits * capacity);
  if (limits) g->limits = limits;
  int *slot = calloc(capacity * 2, sizeof *slot);
  if (!points || !limits || !slot) {
    free(slot);
    return fg_fail(FG_EMEMORY, "no memory for %zu points", capacity);
  }
  free(b->slot);
  b->slot = slot;
  b->slots = 2 * capacity;
  for (int i = 0; i < g->n; i++) *find_slot(b, &g->point[i], g->limits[i]) = i + 1;
  return FG_OK;
}

/* Adds the point unless an equal one with equal restrictions is there. */
static fg_status keep_point(builder *b, const source *s, const fg_point *point) {
  fg_grid *g = b->grid;
  if (2 * (size_t)g->n >= b->slots) TRY(grow(b));
  int *slot = find_slot(b, point, s->limits);
  if (*slot) {
    g->merged++;
    return FG_OK;
  }
  g->point[g->n] = *point;
  g->limits[g->n++] = s->limits;
  *slot = g->n;
  return FG_OK;
}

static int choices(const source *s, int field) {
  if (fg_fields[field].type->is_list || !has_field(s, &fg_fields[field])) return 1;
  return s->field[field]->n ? s->field[field]->n : 1;
}

static const char *choice(const source *s, int field, int i) {
  return s->field[field]->n ? s->field[field]->text[i] : fg_fields[field].fallback;
}

/* The combinations of the table; more than the limit are an error before anything is expanded. */
static fg_status count_points(const source *s, int64_t *count) {
  int64_t limit = fg_setting_number(FG_SET_MAX_POINTS), n = 1;
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    n *= choices(s, i);
    if (n > limit)
      return fg_fail(FG_ESPEC, "%sthe grid has more than %lld combinations (%s raises the limit)",
                     s->where, (long long)limit, fg_settings[FG_SET_MAX_POINTS].name);
  }
  *count = n;
  return FG_OK;
}

/* The point of one combination: index[i] is the value of spec field i. */
static fg_status add_point(builder *b, source *s, const int *index) {
  fg_point point = {0};
  bool keep = true;
  for (int i = 0; i < FG_SPEC_FIELDS; i++)
    if (!fg_fields[i].type->is_expression && fg_field_belongs(&fg_fields[i], &point))
      TRY(fg_field_read(&fg_fields[i], choice(s, i, index[i]), &point, NULL));
  TRY(fg_grid_formulas_set(&s->formulas, choice(s, FG_FIELD_MASK, index[FG_FIELD_MASK]),
                           choice(s, FG_FIELD_SCORE, index[FG_FIELD_SCORE]), &point));
  fg_point_settle(&point);
  fg_status status = fg_point_check_parts(&point);
  if (status == FG_OK) status = fg_point_check_dtype(&point);
  if (status == FG_OK) status = fg_point_check_widths(&point);
  if (status == FG_OK) status = fg_point_check_layout(&point);
  if (status != FG_OK) return fg_fail(status, "%s%s", s->where, fg_error());
  if (b->bias_level < point.bias) b->bias_level = point.bias;
  if (s->file) {
    status = b->reader->when(s->file, s->own, &point, &keep);
    if (status != FG_OK) return fg_fail_in(status, "%swhen", s->where);
  }
  if (keep) return keep_point(b, s, &point);
  b->grid->rejected++;
  return FG_OK;
}

/* Every combination of the table's texts, the last field fastest. */
static fg_status expand_table(builder *b, source *s) {
  int index[FG_SPEC_FIELDS] = {0};
  int64_t n = 0;
  TRY(count_points(s, &n));
  b->grid->combinations += n;
  for (int64_t c = 0; c < n; c++) {
    TRY(add_point(b, s, index));
    for (int i = FG_SPEC_FIELDS - 1; i >= 0 && ++index[i] == choices(s, i); i--) index[i] = 0;
  }
  return FG_OK;
}

/* The table's restrictions on plans, kept in the grid. Its values are known to be good. */
static fg_status read_limits(builder *b, source *s) {
  fg_grid *g = b->grid;
  fg_limits **grown = realloc(g->table_limits, sizeof *grown * (size_t)(g->n_tables + 1));
  if (grown) g->table_limits = grown;
  fg_limits *limits = calloc(1, sizeof *limits);
  if (!grown || !limits) {
    free(limits);
    return fg_fail(FG_EMEMORY, "no memory for a table");
  }
  grown[g->n_tables++] = limits;
  s->limits = limits;
  for (int p = 0; p < FG_PLAN_FIELDS; p++) {
    const fg_texts *texts = s->field[FG_SPEC_FIELDS + p];
    for (int i = 0; i < texts->n; i++)
      TRY(fg_field_read(&fg_fields[FG_SPEC_FIELDS + p], texts->text[i], NULL,
                        &limits->value[p][limits->n[p]++]));
  }
  return FG_OK;
}

/* Reports, among words whose name is no field, those that would set a number which the table
 * declares; the others are left. */
static void check_unknown(fg_table *words, const fg_names *inputs) {
  int left = 0;
  for (int i = 0; i < words->unknown.n; i++) {
    char *word = words->unknown.text[i], *end;
    size_t n = strcspn(word, "=");
    if (!find_number(inputs, word, n)) {
      words->unknown.text[left++] = word;
      continue;
    }
    if (word[n + 1] && (strtod(word + n + 1, &end), !*end))
      fg_report_add(&words->errors, "%.*s: " NO_FIELD, (int)n, word);
    else
      fg_report_add(&words->errors, "%.*s: \"%.64s\" is no number", (int)n, word, word + n + 1);
    free(word);
  }
  words->unknown.n = left;
}

/* A table of a file, or (file NULL) the empty one of the words. Its errors are reported; only what
 * is no mistake of a spec fails. */
static fg_status add_table(builder *b, fg_spec_file *file, fg_table *own) {
  source s = {.file = file, .own = own};
  if (file) snprintf(s.where, sizeof s.where, "%s: table %d: ", b->reader->path(file), own->number);
  for (int i = 0; i < FG_FIELD_ROWS; i++)
    s.field[i] = b->words.field[i].n ? &b->words.field[i] : &own->field[i];
  for (int i = 0; i < BIAS_FIELDS; i++)
    b->given[i] |= s.field[fg_field_find(bias_fields[i].field) - fg_fields]->n > 0;
  fg_status status = FG_OK;
  TRY_OUT(fg_grid_formulas_new(own, &b->words, &s.formulas));
  check_unknown(&b->words, &s.formulas.inputs);
  if (!check_table(b, &s) || b->words.errors.lines || b->words.unknown.n) goto out;
  TRY_OUT(read_limits(b, &s));
  TRY_OUT(expand_table(b, &s));
  fg_grid_formulas_unused(&s.formulas, s.where, &b->errors);
out:
  if (status == FG_ESPEC) fg_report_add(&b->errors, "%s", fg_error());
  fg_grid_formulas_free(&s.formulas);
  return status == FG_ESPEC ? FG_OK : status;
}

/* Mistakes in the file are reported; the status is for what is no mistake of a spec. */
static fg_status add_file(builder *b, const char *path) {
  fg_spec_file *file = NULL;
  fg_status status = b->reader->open(path, &file);
  if (status == FG_ESPEC) fg_report_add(&b->errors, "%s", fg_error());
  if (status != FG_OK) return status == FG_ESPEC ? FG_OK : status;
  for (int i = 0; i < b->reader->tables(file) && status == FG_OK; i++)
    status = add_table(b, file, b->reader->table(file, i));
  b->reader->free(file);
  return status;
}

/* Mistakes that show only in all points together. */
static void check_whole(builder *b) {
  if (b->errors.lines || b->words.errors.lines || b->words.unknown.n) return;
  for (int i = 0; i < FG_FIELDS; i++) {
    if (!b->words.field[i].n || b->belongs[i]) continue;
    if (b->is_number[i])
      b->grid->launch_number = fg_fields[i].name;
    else
      fg_report_add(&b->errors, "%s: no kernel of the spec has such a field", fg_fields[i].name);
  }
  for (int i = 0; i < BIAS_FIELDS; i++)
    if (b->given[i] && b->bias_level < bias_fields[i].level)
      fg_report_add(&b->errors, "%s: given, but %s", bias_fields[i].field, bias_fields[i].unused);
  if (!b->errors.lines && !b->grid->n)
    fg_report_add(&b->errors, "the grid is empty: `when` rejected all %lld combinations",
                  (long long)b->grid->combinations);
}

/* All that is wrong, with the words first. */
static fg_status raise_errors(const builder *b) {
  fg_report whole = {0};
  for (int i = 0; i < b->words.unknown.n; i++) {
    const char *word = b->words.unknown.text[i];
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    fg_report_unknown(&whole, "", name);
  }
  fg_report_append(&whole, &b->words.errors);
  fg_report_append(&whole, &b->errors);
  fg_status status = fg_report_raise(&whole);
  fg_report_free(&whole);
  return status;
}

/* The grid of all files' tables under b->words; without files, of one table that is all words. */
static fg_status build(builder *b, int n_files, const char *const *files, fg_grid **grid) {
  fg_table empty = {0};
  fg_status status = FG_OK;
  if (!(b->grid = calloc(1, sizeof *b->grid))) {
    status = fg_fail(FG_EMEMORY, "no memory for a grid");
    goto out;
  }
  if (!n_files) TRY_OUT(add_table(b, NULL, &empty));
  for (int i = 0; i < n_files; i++) TRY_OUT(add_file(b, files[i]));
  check_whole(b);
  TRY_OUT(raise_errors(b));
  *grid = b->grid;
  b->grid = NULL;
out:
  fg_grid_free(b->grid);
  fg_report_free(&b->errors);
  fg_table_free(&b->words);
  free(b->slot);
  return status;
}

fg_status fg_grid_read_with(const fg_spec_reader *reader, int n_files, const char *const *files,
                            int n_words, const char *const *words, fg_grid **grid) {
  builder b = {.reader = reader};
  fg_table_read_words(&b.words, n_words, words);
  return build(&b, n_files, files, grid);
}

fg_status fg_grid_without_launch(const fg_grid *grid) {
  const char *name = grid->launch_number;
  return name ? fg_fail(FG_ESPEC, "%s: " NO_FIELD, name) : FG_OK;
}

fg_status fg_grid_from_spec(const fg_spec *spec, fg_grid **grid) {
  builder b = {0};
  for (int i = 0; i < FG_FIELD_ROWS; i++) {
    const char *text = NULL;
    if (fg_fields[i].text + sizeof text <= spec->size)
      memcpy(&text, (const char *)spec + fg_fields[i].text, sizeof text);
    fg_status status = text ? fg_texts_split(&fg_fields[i], text, &b.words.field[i]) : FG_OK;
    if (status == FG_OK) continue;
    fg_table_free(&b.words);
    return status;
  }
  fg_grid *made = NULL;
  fg_status status = build(&b, 0, NULL, &made);
  if (status == FG_OK) status = fg_grid_without_launch(made);
  if (status != FG_OK)
    fg_grid_free(made);
  else
    *grid = made;
  return status;
}

void fg_grid_free(fg_grid *grid) {
  if (!grid) return;
  for (int i = 0; i < grid->n_tables; i++) free(grid->table_limits[i]);
  free(grid->point);
  free(grid->limits);
  free(grid->table_limits);
  free(grid);
}
