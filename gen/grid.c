/* grid.c - tables of texts to the points of a grid: every combination, checked, filtered, merged. */
#include "setting.h"
#include "spec_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fg_texts_free(fg_texts *texts) {
  for (int i = 0; i < texts->n; i++) free(texts->text[i]);
  free(texts->text);
  *texts = (fg_texts){0};
}

static fg_status texts_add(fg_texts *texts, const char *text, size_t n) {
  while (n && isspace((unsigned char)*text)) text++, n--;
  while (n && isspace((unsigned char)text[n - 1])) n--;
  char **grown = realloc(texts->text, sizeof *grown * (size_t)(texts->n + 1));
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for a list of values");
  texts->text = grown;
  if (!(grown[texts->n] = strndup(text, n))) return fg_fail(FG_EMEMORY, "no memory for a value");
  texts->n++;
  return FG_OK;
}

fg_status fg_texts_split(const fg_field *field, const char *value, fg_texts *texts) {
  if (field->kind == FG_DIMS && value[0] != '[') return texts_add(texts, value, strlen(value));
  int depth = 0;
  const char *start = value, *at = value;
  for (; *at; at++) {
    if (strchr("([{", *at)) depth++;
    if (strchr(")]}", *at)) depth--;
    if (*at != ',' || depth > 0) continue;
    TRY(texts_add(texts, start, (size_t)(at - start)));
    start = at + 1;
  }
  return texts_add(texts, start, (size_t)(at - start));
}

/* One table on its way to points: where it is, for messages, and who answers its `when`. */
typedef struct {
  fg_spec_file *file; /* NULL: words only */
  fg_table *table;
  fg_limits *limits;
} source;

typedef struct {
  fg_grid *grid;
  fg_report errors;
  int *slot, slots; /* hash of points: index + 1, 0 = free; a power of two */
  bool bias_used;                /* by some combination */
  const char *bias_field;        /* given, and of use only with a bias */
} builder;

static void place_text(const source *s, size_t size, char *text) {
  if (s->file)
    snprintf(text, size, "%s: table %d: ", fg_spec_file_path(s->file), s->table->number);
  else *text = 0;
}

/* Checks every text of the table once, and fills the plan restrictions. */
static int check_texts(builder *b, const source *s) {
  char where[512];
  int before = b->errors.lines;
  place_text(s, sizeof where, where);
  for (int i = 0; i < FG_FIELDS; i++) {
    const fg_field *field = &fg_fields[i];
    const fg_texts *texts = &s->table->field[i];
    if (!texts->n && !field->plan && !field->fallback)
      fg_report_add(&b->errors, "%s%s: missing; it must be given", where, field->name);
    for (int j = 0; j < texts->n; j++) {
      fg_point scratch;
      int value = 0, p = i - FG_SPEC_FIELDS;
      if (fg_field_read(field, texts->text[j], &scratch, &value) != FG_OK)
        fg_report_add(&b->errors, "%s%s", where, fg_error());
      else if (field->plan && s->limits->n[p] == FG_LIMIT_MAX)
        fg_report_add(&b->errors, "%s%s: more than %d values", where, field->name, FG_LIMIT_MAX);
      else if (field->plan) s->limits->value[p][s->limits->n[p]++] = value;
    }
  }
  return b->errors.lines - before;
}

static size_t hash_point(const fg_point *point) {
  uint64_t h = XXH3_64bits(point, sizeof *point);
  return (size_t)h;
}

/* The slot of an equal point, or the free one where it belongs; slots hold index + 1. */
static int *find_slot(const builder *b, const fg_point *point) {
  size_t mask = (size_t)b->slots - 1, i = hash_point(point) & mask;
  while (b->slot[i] && !fg_point_equal(&b->grid->point[b->slot[i] - 1], point)) i = (i + 1) & mask;
  return &b->slot[i];
}

/* Room for twice the points: arrays, and a table of slots at most half full. */
static fg_status grow(builder *b) {
  fg_grid *g = b->grid;
  int capacity = b->slots ? b->slots : 64;
  fg_point *points = realloc(g->point, sizeof *points * (size_t)capacity);
  if (points) g->point = points;
  const fg_limits **limits = realloc(g->limits, sizeof *limits * (size_t)capacity);
  if (limits) g->limits = limits;
  int *slot = calloc((size_t)capacity * 2, sizeof *slot);
  if (!points || !limits || !slot) {
    free(slot);
    return fg_fail(FG_EMEMORY, "no memory for %d points", capacity);
  }
  free(b->slot);
  b->slot = slot;
  b->slots = 2 * capacity;
  for (int i = 0; i < g->n; i++) *find_slot(b, &g->point[i]) = i + 1;
  return FG_OK;
}

static fg_status keep_point(builder *b, const source *s, const fg_point *point) {
  fg_grid *g = b->grid;
  if (2 * g->n >= b->slots) TRY(grow(b));
  int *slot = find_slot(b, point);
  if (*slot) {
    g->merged++;
    return FG_OK;
  }
  g->point[g->n] = *point;
  g->limits[g->n++] = s->limits;
  *slot = g->n;
  return FG_OK;
}

static int choices(const fg_table *t, int field) {
  return t->field[field].n ? t->field[field].n : 1;
}

static const char *choice(const fg_table *t, int field, int i) {
  return t->field[field].n ? t->field[field].text[i] : fg_fields[field].fallback;
}

static fg_status count_points(const source *s, int64_t *count) {
  int64_t limit = fg_setting_number(FG_SET_MAX_POINTS), n = 1;
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    n *= choices(s->table, i);
    if (n <= limit) continue;
    char where[512];
    place_text(s, sizeof where, where);
    return fg_fail(FG_ESPEC, "%sthe grid has more than %lld combinations (%s raises the limit)",
                   where, (long long)limit, fg_settings[FG_SET_MAX_POINTS].name);
  }
  *count = n;
  return FG_OK;
}

/* Every combination of the table's texts, the last field fastest. */
static fg_status expand_table(builder *b, const source *s) {
  int index[FG_SPEC_FIELDS] = {0};
  int64_t n = 0;
  TRY(count_points(s, &n));
  b->grid->combinations += n;
  for (int64_t c = 0; c < n; c++) {
    fg_point point = {0};
    bool keep;
    for (int i = 0; i < FG_SPEC_FIELDS; i++)
      TRY(fg_field_read(&fg_fields[i], choice(s->table, i, index[i]), &point, NULL));
    fg_point_settle(&point);
    b->bias_used |= point.bias != FG_BIAS_OFF;
    if (s->file) {
      if (fg_spec_file_when(s->file, s->table, &point, &keep) != FG_OK)
        return fg_fail_in(FG_ESPEC, "%s: table %d: when", fg_spec_file_path(s->file),
                          s->table->number);
      if (!keep) b->grid->rejected++;
      else TRY(keep_point(b, s, &point));
    } else {
      TRY(keep_point(b, s, &point));
    }
    for (int i = FG_SPEC_FIELDS - 1; i >= 0 && ++index[i] == choices(s->table, i); i--) index[i] = 0;
  }
  return FG_OK;
}

/* A word replaces its field; several words of one field are an error, not a silent last-wins. */
static void read_words(int n_words, const char *const *words, fg_table *over, fg_report *errors) {
  for (int i = 0; i < n_words; i++) {
    const char *equals = strchr(words[i], '=');
    char name[64];
    if (!equals || equals == words[i]) {
      fg_report_add(errors, "\"%.64s\": expected field=value or a spec file", words[i]);
      continue;
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - words[i]), words[i]);
    const fg_field *field = fg_field_find(name);
    if (!field) {
      const char *near = fg_field_nearest(name);
      fg_report_add(errors, "unknown field \"%s\"%s%s%s", name, near ? " (did you mean \"" : "",
                    near ? near : "", near ? "\"?)" : "");
      continue;
    }
    fg_texts *texts = &over->field[field - fg_fields];
    if (texts->n) fg_report_add(errors, "%s: given twice; a list is %s=a,b", name, name);
    else if (fg_texts_split(field, equals + 1, texts) != FG_OK)
      fg_report_add(errors, "%s", fg_error());
  }
}

/* The first field given that only a bias gives a meaning. */
static const char *bias_field(const fg_table *t) {
  static const char *const names[] = {"bias_dims", "bias_dtype", "grad_dtype"};
  for (int i = 0; i < 3; i++)
    if (t->field[fg_field_find(names[i]) - fg_fields].n) return names[i];
  return NULL;
}

/* The source's table under the words that replace its fields. */
static fg_status add_table(builder *b, source s, const fg_table *words) {
  fg_table table = *s.table;
  for (int i = 0; i < FG_FIELDS; i++)
    if (words->field[i].n) table.field[i] = words->field[i];
  s.table = &table;
  if (!b->bias_field) b->bias_field = bias_field(&table);
  return check_texts(b, &s) ? FG_OK : expand_table(b, &s);
}

static fg_status add_tables(builder *b, fg_spec_file *file, const fg_table *over) {
  for (int i = 0; i < fg_spec_file_tables(file); i++) {
    source s = {file, fg_spec_file_table(file, i), &b->grid->table_limits[b->grid->n_tables++]};
    TRY(add_table(b, s, over));
  }
  return FG_OK;
}

/* The grid of the tables of all files; without files, of one table that is all words. */
static fg_status build(builder *b, int n_files, fg_spec_file **files, const fg_table *over) {
  int tables = n_files == 0;
  for (int i = 0; i < n_files; i++) tables += files[i] ? fg_spec_file_tables(files[i]) : 0;
  b->grid->table_limits = calloc((size_t)tables + 1, sizeof *b->grid->table_limits);
  if (!b->grid->table_limits) return fg_fail(FG_EMEMORY, "no memory for a grid");
  if (!n_files) {
    fg_table empty = {0};
    source s = {NULL, &empty, &b->grid->table_limits[b->grid->n_tables++]};
    TRY(add_table(b, s, over));
  }
  for (int i = 0; i < n_files; i++)
    if (files[i]) TRY(add_tables(b, files[i], over));
  if (b->bias_field && !b->bias_used && !b->errors.lines)
    fg_report_add(&b->errors, "%s: given, but bias is false everywhere", b->bias_field);
  if (!b->errors.lines && !b->grid->n)
    fg_report_add(&b->errors, "the grid is empty: `when` rejected all %lld combinations",
                  (long long)b->grid->combinations);
  return FG_OK;
}

static fg_status finish(builder *b, fg_status status, fg_grid **grid) {
  if (status == FG_OK && b->errors.lines)
    status = fg_fail(FG_ESPEC, "%s", b->errors.text ? b->errors.text : "no memory for errors");
  if (status == FG_OK) *grid = b->grid;
  else fg_grid_free(b->grid);
  fg_report_free(&b->errors);
  free(b->slot);
  return status;
}

fg_status fg_grid_read(int n_files, const char *const *files, int n_words,
                       const char *const *words, fg_grid **grid) {
  builder b = {.grid = calloc(1, sizeof(fg_grid))};
  fg_table over = {0};
  fg_spec_file **open = calloc((size_t)n_files + 1, sizeof *open);
  fg_status status = FG_OK;
  if (!b.grid || !open) {
    status = fg_fail(FG_EMEMORY, "no memory for a grid");
    goto out;
  }
  read_words(n_words, words, &over, &b.errors);
  for (int i = 0; i < n_files; i++) {
    fg_status read = fg_spec_file_open(files[i], &b.errors, &open[i]);
    if (read == FG_EMEMORY) TRY_OUT(read);
    if (read != FG_OK) fg_report_add(&b.errors, "%s", fg_error());
  }
  TRY_OUT(build(&b, n_files, open, &over));
out:
  status = finish(&b, status, grid);
  for (int i = 0; i < n_files && open; i++) fg_spec_file_free(open[i]);
  for (int i = 0; i < FG_FIELDS; i++) fg_texts_free(&over.field[i]);
  free(open);
  return status;
}

fg_status fg_grid_from_spec(const fg_spec *spec, fg_grid **grid) {
  builder b = {.grid = calloc(1, sizeof(fg_grid))};
  fg_table over = {0};
  fg_status status = FG_OK;
  if (!b.grid) {
    status = fg_fail(FG_EMEMORY, "no memory for a grid");
    goto out;
  }
  for (int i = 0; i < FG_FIELDS; i++) {
    const char *text = NULL;
    if (fg_fields[i].text + sizeof text <= spec->size)
      memcpy(&text, (const char *)spec + fg_fields[i].text, sizeof text);
    if (text) TRY_OUT(fg_texts_split(&fg_fields[i], text, &over.field[i]));
  }
  TRY_OUT(build(&b, 0, NULL, &over));
out:
  status = finish(&b, status, grid);
  for (int i = 0; i < FG_FIELDS; i++) fg_texts_free(&over.field[i]);
  return status;
}

void fg_grid_free(fg_grid *grid) {
  if (!grid) return;
  free(grid->point);
  free(grid->limits);
  free(grid->table_limits);
  free(grid);
}
