/* support.c - which families compute which specs, pass by pass and arch by arch. */
#include "support.h"

#include "base/setting.h"
#include "base/text.h"
#include "help.h"

#include <stdlib.h>
#include <string.h>

enum { ARCHS = 16 };

/* One spec: on each arch a set of families, bit i for choice i of the field. */
typedef struct {
  const fg_kind *kind;
  const char *label;
  int pass;
  unsigned families[ARCHS];
} row;

typedef struct {
  fg_gen *gen;
  const fg_field *family;
  row *list;
  int n, columns;
  int column_of[ARCHS]; /* archs that are equal in every row share a column, that of the first one
                         */
} matrix;

/* What families know of an arch (gen/expand/plans.c) is equal in both. */
static bool is_like(const fg_arch *a, const fg_arch *b) {
  return a->block_kb == b->block_kb && a->shared_kb == b->shared_kb && a->features == b->features;
}

static fg_status ask(const matrix *m, const fg_point *point, row *r) {
  fg_plan *plans;
  int n;
  for (int a = 0; a < fg_n_archs && !cli_interrupted; a++) {
    int like = 0;
    while (!is_like(&fg_archs[like], &fg_archs[a])) like++;
    r->families[a] = r->families[like]; /* 0 where it is the first of its like */
    if (like < a) continue;
    fg_status status = fg_gen_plans(m->gen, point, fg_archs[a].name, NULL, &plans, &n);
    if (status == FG_ESPEC) continue; /* no family computes it there */
    TRY(status);
    for (int i = 0; i < n; i++) r->families[a] |= 1u << plans[i].value[0]; /* the family */
    free(plans);
  }
  return FG_OK;
}

static fg_status add(matrix *m, const fg_kind *kind, const char *label, const fg_point *point) {
  row *grown = realloc(m->list, sizeof *grown * (size_t)(m->n + 1));
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d rows", m->n + 1);
  m->list = grown;
  m->list[m->n] = (row){.kind = kind, .label = label, .pass = point->pass};
  return ask(m, point, &m->list[m->n++]);
}

static void merge_columns(matrix *m) {
  for (int a = 0; a < fg_n_archs; a++) {
    int same = 0;
    for (; same < a; same++) {
      int r = 0;
      while (r < m->n && m->list[r].families[a] == m->list[r].families[same]) r++;
      if (r == m->n) break;
    }
    m->column_of[a] = same;
    m->columns += same == a;
  }
}

static void list_families(const matrix *m, unsigned set, size_t size, char *text) {
  int n = 0;
  snprintf(text, size, "-");
  for (int f = 0; m->family->choices[f]; f++)
    if (set >> f & 1) n = fg_append(size, text, n, "%s%s", n ? " " : "", m->family->choices[f]);
}

/* The heads of columns: in Markdown those of a table, in text a row. */
static void print_heads(cli_page *page, const matrix *m) {
  static char names[ARCHS][128];
  cli_column columns[CLI_PAGE_CELLS] = {{"`spec", 34}, {"pass", 8}};
  const char *cells[CLI_PAGE_CELLS] = {"spec", "pass"};
  int n = 2;
  for (int a = 0; a < fg_n_archs; a++) {
    if (m->column_of[a] != a) continue;
    int at = 0;
    for (int b = a; b < fg_n_archs; b++)
      if (m->column_of[b] == a)
        at = fg_append(sizeof names[a], names[a], at, "%s%s", at ? " " : "", fg_archs[b].name);
    columns[n] = (cli_column){names[a], at > 22 ? at : 22};
    cells[n++] = names[a];
  }
  cli_page_table(page, n, columns);
  if (!page->markdown) cli_page_row(page, cells);
}

static void print_row(cli_page *page, const matrix *m, const row *r) {
  static const char *const passes[] = {"forward", "backward"};
  char text[ARCHS][64];
  const char *cells[CLI_PAGE_CELLS] = {r->label, passes[r->pass]};
  int n = 2;
  for (int a = 0; a < fg_n_archs; a++) {
    if (m->column_of[a] != a) continue;
    list_families(m, r->families[a], sizeof text[a], text[a]);
    cells[n++] = text[a];
  }
  cli_page_row(page, cells);
}

/* A table a kind. */
static void print_matrix(cli_page *page, const matrix *m) {
  for (int r = 0; r < m->n; r++) {
    if (!r || m->list[r].kind != m->list[r - 1].kind) {
      if (r) cli_page_end(page);
      cli_page_title(page, 2, "kernel=%s", m->list[r].kind->name);
      print_heads(page, m);
    }
    print_row(page, m, &m->list[r]);
  }
  cli_page_end(page);
}

static fg_status add_cases(matrix *m, int n, const cli_case *cases) {
  for (int i = 0; i < n && !cli_interrupted; i++)
    for (int p = 0; p < CLI_PASSES; p++)
      if (cases[i].has[p]) TRY(add(m, cases[i].kind, cases[i].label, &cases[i].at[p]));
  return FG_OK;
}

/* The names of points are the labels of their rows. */
static fg_status add_points(matrix *m, int n, const fg_point *point, char (*names)[FG_NAME_MAX]) {
  for (int i = 0; i < n && !cli_interrupted; i++) {
    fg_point_name(&point[i], sizeof names[i], names[i]);
    TRY(add(m, fg_point_kind(&point[i]), names[i], &point[i]));
  }
  return FG_OK;
}

fg_status cli_support_print(cli_page *page, int n, const fg_point *point) {
  matrix m = {.family = fg_field_find("family")};
  cli_case *cases = NULL;
  int n_cases = 0;
  char(*names)[FG_NAME_MAX] = malloc(sizeof *names * (size_t)(n + 1));
  fg_status status = FG_OK;
  if (!names) TRY_OUT(fg_fail(FG_EMEMORY, "no memory for %d names", n));
  TRY_OUT(fg_gen_new(fg_setting_text(FG_SET_TEMPLATES, NULL), &m.gen));
  if (!n) TRY_OUT(cli_cases_make(&cases, &n_cases));
  TRY_OUT(n ? add_points(&m, n, point, names) : add_cases(&m, n_cases, cases));
  merge_columns(&m);
  if (m.columns > CLI_PAGE_CELLS - 2)
    TRY_OUT(fg_fail(FG_EBUG, "%d kinds of archs do not fit in a table", m.columns));
  print_matrix(page, &m);
out:
  fg_gen_free(m.gen);
  free(m.list), free(cases), free(names);
  return status;
}

static fg_status print_topic(cli_page *page, const cli *c, int i) {
  (void)c, (void)i;
  cli_page_title(page, 1, "Support matrix");
  cli_page_text(page,
                "The families that compute each spec, by pass and arch; - means none. A row is "
                "the plainest spec of its kernel with one field changed. Every family "
                "computes every mask and score. flashgen list --support prints the same for "
                "specs of your own.");
  return cli_support_print(page, 0, NULL);
}

const cli_topic cli_topic_support = {
    .name = "support", .line = "which families compute what, on which archs", .print = print_topic};
