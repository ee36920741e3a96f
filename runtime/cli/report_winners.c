/* report_winners.c - who wins where: the fastest plan of a spec, by heads and length. */
#include "report.h"

#include "recipe/extent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAP_LEFT = 190, MAP_TOP = 24, BOX_W = 42, BOX_H = 30, LINES_MAX = 256, COLOURS = 6 };

/* A line has the cells of so many heads, whose rows are as many as keys, or a number. */
typedef struct {
  int64_t h, hk, nq; /* nq: -1 = nk */
} line;

typedef struct {
  line line[LINES_MAX];
  int64_t length[LINES_MAX];
  int n_lines, n_lengths;
} map;

static int line_of(map *m, const fg_shape *s) {
  const line x = {s->h, s->hk, s->nq == s->nk ? -1 : s->nq};
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

/* Heads that share no keys first, then whole sequences before few rows. */
static int by_line(const void *left, const void *right) {
  const line *a = left, *b = right;
  const int64_t x[] = {a->h != a->hk, a->nq >= 0, a->h, a->hk, a->nq},
                y[] = {b->h != b->hk, b->nq >= 0, b->h, b->hk, b->nq};
  for (int i = 0; i < 5; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}

static int by_length(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static void map_new(const report_spec *s, map *m) {
  m->n_lines = m->n_lengths = 0;
  for (int c = 0; c < s->n_cells; c++) {
    line_of(m, &s->cell[c].shape);
    length_of(m, &s->cell[c].shape);
  }
  qsort(m->line, (size_t)m->n_lines, sizeof *m->line, by_line);
  qsort(m->length, (size_t)m->n_lengths, sizeof *m->length, by_length);
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
  const double width = (BOX_W - 2.0) / n, left = MAP_LEFT + k * BOX_W + at * width;
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

static void map_axes(const map *m, const fg_extent_row *length) {
  char text[64];
  for (int i = 0; i < m->n_lines; i++) {
    const line *x = &m->line[i];
    if (!x->h) continue; /* a kind of kernel without heads has one line */
    int n = snprintf(text, sizeof text, "%" PRId64 " on %" PRId64 " heads", x->h, x->hk);
    if (x->nq >= 0)
      snprintf(text + n, sizeof text - (size_t)n, ", %" PRId64 " row%s", x->nq,
               x->nq == 1 ? "" : "s");
    page_label(MAP_LEFT - 8, MAP_TOP + i * BOX_H + 18, "end", text);
  }
  for (int i = 0; i < m->n_lengths; i++) {
    printf("<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
           MAP_LEFT + i * BOX_W + BOX_W / 2.0 - 1, MAP_TOP - 8);
    page_length(m->length[i]);
    printf("</text>\n");
  }
  page_label(MAP_LEFT - 8, MAP_TOP - 8, "end", length->title);
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
  page_picture("The fastest plan, by heads and length", MAP_LEFT + m.n_lengths * BOX_W,
               MAP_TOP + m.n_lines * BOX_H);
  map_axes(&m, length_extent(&s->cell[0].shape));
  for (int c = 0; c < s->n_cells; c++) box(s, &m, c);
  page_picture_end();
  legend(s);
}
