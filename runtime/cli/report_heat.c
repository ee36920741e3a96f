/* report_heat.c - how near each plan of a spec comes to the fastest one, at each shape. */
#include "report.h"

#include <math.h>
#include <string.h>

enum { CELL_W = 40, CELL_H = 22, MEAN_W = 54 };

/* Where the cells begin: behind the longest name of a plan, below the longest shape. */
typedef struct {
  int left, top;
} place;

/* The least share of each shade; what is less has the last one. */
static const double shades[] = {0.995, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5};
enum { SHADES = sizeof shades / sizeof *shades };

static int shade_of(double share) {
  int i = 0;
  while (i < SHADES && share < shades[i]) i++;
  return i;
}

static void heat_title(const report_cell *c, const fg_measured *m, double share) {
  printf("<title>");
  page_text(m->name);
  printf(" at ");
  page_shape(&c->shape);
  if (fg_measured_has_time(m)) printf(": %.4g ms", m->ms);
  if (share > 0) printf(", %.3f times the best", 1 / share);
  if (m->status != FG_MEASURED_OK) printf(", %s", fg_measured_words[m->status]);
  if (m->registers) printf(", %d registers", m->registers);
  printf("</title>");
}

static void heat_cell(const report_spec *s, place at, int plan, int cell) {
  const fg_measured *m = s->table[plan * s->n_cells + cell];
  const double share = m ? report_share(&s->cell[cell], m) : 0;
  const int x = at.left + MEAN_W + cell * CELL_W, y = at.top + plan * CELL_H;
  static const char *const marks[FG_MEASURED_KINDS] = {"?", "?", "W", "R", "B"};
  char text[8] = "", class[16] = "none";
  if (share > 0) {
    snprintf(class, sizeof class, "h%d", shade_of(share));
    snprintf(text, sizeof text, "%.0f", share < 9.99 ? 100 * share : 999);
  } else if (m) {
    strcpy(class, fg_measured_failed(m) ? "fail" : "none");
    strcpy(text, marks[m->status]);
  }
  printf("<g class=\"%s\">", class);
  if (m) heat_title(&s->cell[cell], m, share);
  printf("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", x, y, CELL_W - 2, CELL_H - 2);
  if (*text)
    printf("<text%s x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>",
           m && fg_measured_counts(m) ? " class=\"ok\"" : "", x + CELL_W / 2 - 1, y + 14, text);
  printf("</g>\n");
}

static void heat_axes(const report_spec *s, place at) {
  for (int c = 0; c < s->n_cells; c++) {
    const int x = at.left + MEAN_W + c * CELL_W + CELL_W / 2 + 3, y = at.top - 6;
    printf("<text x=\"%d\" y=\"%d\" transform=\"rotate(-90 %d %d)\">", x, y, x, y);
    page_shape(&s->cell[c].shape);
    printf("</text>\n");
  }
  page_label(at.left + MEAN_W / 2.0, at.top - 6, "middle", "mean");
  for (int p = 0; p < s->n_plans; p++) {
    const int y = at.top + p * CELL_H + 14;
    printf("<text class=\"mono\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", at.left - 8, y);
    page_text(s->plan[p].name);
    printf("</text>\n<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
           at.left + MEAN_W / 2.0, y);
    printf(s->plan[p].share > 0 ? "%.0f</text>\n" : "-</text>\n", 100 * s->plan[p].share);
  }
}

static void heat_legend(void) {
  printf("<ul class=\"legend\"><li>percent of the fastest plan's speed:</li>\n");
  for (int i = 0; i <= SHADES; i++) {
    printf("<li><svg width=\"18\" height=\"14\"><g class=\"h%d\"><rect width=\"18\" "
           "height=\"14\"/></g></svg>",
           i);
    if (i < SHADES)
      printf("from %g</li>\n", 100 * shades[i]);
    else
      printf("less</li>\n");
  }
  printf("</ul>\n");
}

void report_heat(const report_spec *s) {
  double names = 0, shapes = 0;
  for (int p = 0; p < s->n_plans; p++) names = fmax(names, page_mono_width(s->plan[p].name));
  for (int c = 0; c < s->n_cells; c++) {
    char text[REPORT_SHAPE];
    page_shape_text(&s->cell[c].shape, text);
    shapes = fmax(shapes, page_width(text));
  }
  const place at = {(int)names + 12, (int)shapes + 12};
  printf("<h4>Every plan at every shape</h4>\n");
  page_picture("Percent of the fastest plan's speed, of every plan at every shape",
               at.left + MEAN_W + s->n_cells * CELL_W, at.top + s->n_plans * CELL_H);
  heat_axes(s, at);
  for (int p = 0; p < s->n_plans; p++)
    for (int c = 0; c < s->n_cells; c++) heat_cell(s, at, p, c);
  page_picture_end();
  heat_legend();
}
