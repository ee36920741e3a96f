/* report_winners.c - who wins where: the fastest plan of a spec, by heads and length. */
#include "report.h"

#include "recipe/extent.h"
#include "shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAP_LEFT = 190, MAP_TOP = 24, BOX_W = 42, BOX_H = 30, LINES_MAX = 256, COLOURS = 6 };
enum { LABEL = 192 }; /* bytes of a line's label */

/* A line has the cells of so many heads and one layout, whose rows are as many as keys, or a
 * number. */
typedef struct {
  int64_t h, hk, nq;              /* nq: -1 = nk */
  int64_t page;                   /* keys of each; 0: no pages */
  int64_t has_q, has_k, has_pool; /* packed rows, packed keys, a number of caches: 0 or 1 */
  int64_t varies;                 /* 1: sequences are of many lengths */
} line;

typedef struct {
  line line[LINES_MAX];
  int64_t length[LINES_MAX];
  int n_lines, n_lengths;
  double left; /* where the boxes begin, behind the longest label */
} map;

static int line_of(map *m, const fg_shape *s) {
  const fg_shape mean = fg_shape_typical(s);
  const line x = {.h = s->h,
                  .hk = s->hk,
                  .nq = report_is_square(s) ? -1 : s->nq,
                  .page = s->page,
                  .has_q = s->tokens_q > 0,
                  .has_k = s->tokens_k > 0,
                  .has_pool = s->pages > 0 && !s->page,
                  .varies = mean.nq < s->nq || mean.nk < s->nk};
  int i = 0;
  while (i < m->n_lines && memcmp(&m->line[i], &x, sizeof x)) i++;
  if (i == LINES_MAX) return -1;
  if (i == m->n_lines) m->line[m->n_lines++] = x;
  return i;
}

/* The extent by which shapes of the form are put in order: keys, rows. */
static const fg_extent_row *length_extent(const fg_shape *s) {
  return fg_extent_of(fg_shape_form_of(s)->length);
}

static int length_of(map *m, const fg_shape *s) {
  const int64_t length = fg_extent_get(length_extent(s), s);
  int i = 0;
  while (i < m->n_lengths && m->length[i] != length) i++;
  if (i == LINES_MAX) return -1;
  if (i == m->n_lengths) m->length[m->n_lengths++] = length;
  return i;
}

/* Heads that share no keys first, then whole sequences before few rows, then dense ones, packed
 * ones, and small pages before large ones. */
static int by_line(const void *left, const void *right) {
  enum { ORDER = 10 };
  const line *a = left, *b = right;
  const int64_t x[ORDER] = {a->h != a->hk, a->nq >= 0, a->h,        a->hk,   a->nq,
                            a->has_q,      a->has_k,   a->has_pool, a->page, a->varies},
                y[ORDER] = {b->h != b->hk, b->nq >= 0, b->h,        b->hk,   b->nq,
                            b->has_q,      b->has_k,   b->has_pool, b->page, b->varies};
  for (int i = 0; i < ORDER; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}

static int by_length(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

/* "32 on 8 heads, 1 row, pages of 16", "32 on 8 heads, packed, many lengths". A kind of kernel
 * without heads has one line, without a label. */
static void line_label(const line *x, char text[LABEL]) {
  char on[32] = "", rows[48] = "", pages[48] = "";
  if (x->hk) snprintf(on, sizeof on, " on %" PRId64, x->hk);
  if (x->nq >= 0) snprintf(rows, sizeof rows, ", %" PRId64 " row%s", x->nq, cli_s(x->nq));
  if (x->page) snprintf(pages, sizeof pages, ", pages of %" PRId64, x->page);
  *text = 0;
  if (x->h)
    snprintf(text, LABEL, "%" PRId64 "%s heads%s%s%s%s%s", x->h, on, rows,
             x->has_q && x->has_k ? ", packed"
             : x->has_q           ? ", rows packed"
             : x->has_k           ? ", keys packed"
                                  : "",
             pages, x->has_pool ? ", pool of caches" : "", x->varies ? ", many lengths" : "");
}

static void map_new(const report_spec *s, map *m) {
  char text[LABEL];
  m->n_lines = m->n_lengths = 0;
  for (int c = 0; c < s->n_cells; c++) {
    line_of(m, &s->cell[c].shape);
    length_of(m, &s->cell[c].shape);
  }
  qsort(m->line, (size_t)m->n_lines, sizeof *m->line, by_line);
  qsort(m->length, (size_t)m->n_lengths, sizeof *m->length, by_length);
  m->left = MAP_LEFT;
  for (int i = 0; i < m->n_lines; i++) {
    line_label(&m->line[i], text);
    m->left = fmax(m->left, page_width(text) + 16);
  }
}

static const report_plan *winner_of(const report_spec *s, const report_cell *c) {
  char name[REPORT_PLAN];
  if (!c->best) return NULL;
  report_plan_name(c->best->name, name);
  for (int p = 0; p < s->n_plans; p++)
    if (!strcmp(s->plan[p].name, name)) return &s->plan[p];
  return NULL;
}

/* "A" to "Z", then "+". */
static void letter(int rank, char text[2]) {
  text[0] = rank < 26 ? (char)('A' + rank) : '+';
  text[1] = 0;
}

/* Cells of one line and length, of several batches, share a box. */
static void box(const report_spec *s, map *m, int cell) {
  const report_cell *x = &s->cell[cell];
  const int l = line_of(m, &x->shape), k = length_of(m, &x->shape);
  int n = 0, at = 0;
  char text[2] = "-", class[16] = "none";
  if (l < 0 || k < 0) return;
  for (int c = 0; c < s->n_cells; c++) {
    const fg_shape *other = &s->cell[c].shape;
    if (line_of(m, other) != l || length_of(m, other) != k) continue;
    at += c < cell, n++;
  }
  const report_plan *winner = winner_of(s, x);
  const double width = (BOX_W - 2.0) / n, left = m->left + k * BOX_W + at * width;
  if (winner) {
    letter(winner->rank, text);
    snprintf(class, sizeof class, "w%d", winner->rank < COLOURS ? winner->rank : COLOURS);
  }
  printf("<g class=\"%s\"><title>", class);
  page_shape(&x->shape);
  printf(": ");
  page_text(winner ? winner->name : "no plan has a time that counts");
  if (winner) printf(", %.4g ms", x->best->ms);
  if (winner && x->next) printf("; the next takes %.3f times that", x->next->ms / x->best->ms);
  printf("</title><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\"/><text "
         "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text></g>\n",
         left, MAP_TOP + l * BOX_H, width - (n > 1 ? 1 : 0), BOX_H - 2, left + width / 2,
         MAP_TOP + l * BOX_H + 18, text);
}

/* Of sequences of many lengths the longest counts. */
static void map_axes(const map *m, const fg_extent_row *length) {
  char text[LABEL];
  bool varies = false;
  for (int i = 0; i < m->n_lines; i++) {
    line_label(&m->line[i], text);
    if (*text) page_label(m->left - 8, MAP_TOP + i * BOX_H + 18, "end", text);
    varies |= m->line[i].varies;
  }
  for (int i = 0; i < m->n_lengths; i++) {
    printf("<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
           m->left + i * BOX_W + BOX_W / 2.0 - 1, MAP_TOP - 8);
    page_length(m->length[i]);
    printf("</text>\n");
  }
  snprintf(text, sizeof text, "%s%s", varies ? "longest " : "", length->title);
  page_label(m->left - 8, MAP_TOP - 8, "end", text);
}

static void legend(const report_spec *s) {
  printf("<ul class=\"legend\">\n");
  for (int rank = 0; rank < s->n_winners; rank++)
    for (int p = 0; p < s->n_plans; p++) {
      char text[2];
      if (s->plan[p].rank != rank) continue;
      letter(rank, text);
      printf("<li><svg width=\"18\" height=\"18\"><g class=\"w%d\"><rect width=\"18\" "
             "height=\"18\" rx=\"2\"/><text x=\"9\" y=\"13\" text-anchor=\"middle\">%s</text></g>"
             "</svg><span class=\"name\">",
             rank < COLOURS ? rank : COLOURS, text);
      page_text(s->plan[p].name);
      printf("</span> %d of %d</li>\n", s->plan[p].wins, s->n_cells);
    }
  printf("</ul>\n");
}

void report_winners(const report_spec *s) {
  static map m; /* large */
  map_new(s, &m);
  printf("<h4>Fastest plan, by heads and length</h4>\n");
  page_picture("The fastest plan, by heads and length", m.left + m.n_lengths * BOX_W,
               MAP_TOP + m.n_lines * BOX_H);
  map_axes(&m, length_extent(&s->cell[0].shape));
  for (int c = 0; c < s->n_cells; c++) box(s, &m, c);
  page_picture_end();
  legend(s);
}
