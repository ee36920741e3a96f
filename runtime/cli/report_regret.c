/* report_regret.c - what is lost by choosing a plan without having measured the shape: the time of
 * the choice over the least time. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The picture: a line for each spec that has shapes held out, regret from 1 on. */
enum { AXIS = 520, RIGHT = 24, TOP = 40, LINE = 22 };

/* For one spec, or all. */
typedef struct {
  const report_spec *spec; /* NULL: all */
  int number, n, right[2]; /* right: times that the fastest plan was taken */
  double sum[2], worst[2]; /* by wisdom, by the model; sum of logarithms */
} row;

typedef struct {
  const fg_contest *contest;
  int row;
  double regret[2];
} choice;

typedef struct {
  row *row, all;
  choice *choice;
  int n_rows, n_choices;
  double most, left; /* left: where the axis begins, behind the longest name */
} regrets;

static const fg_measured *of(const report *r, const fg_contest *c) {
  return r->judge->trial[c->first].m;
}

static int row_of(const report *r, regrets *x, const fg_measured *m) {
  for (int i = 0; i < x->n_rows; i++)
    if (fg_measured_kin(x->row[i].spec->like, m)) return i;
  row *added = &x->row[x->n_rows++];
  *added = (row){0};
  for (int i = 0; i < r->n_specs && !added->spec; i++)
    if (fg_measured_kin(r->spec[i].like, m)) added->spec = &r->spec[i], added->number = i + 1;
  return x->n_rows - 1;
}

static void add_to(row *r, const double regret[2]) {
  r->n++;
  for (int i = 0; i < 2; i++) {
    r->sum[i] += log(regret[i]);
    r->worst[i] = fmax(r->worst[i], regret[i]);
    r->right[i] += regret[i] <= 1;
  }
}

static fg_status judge(const report *r, regrets *x) {
  const fg_judge *j = r->judge;
  x->row = calloc((size_t)r->n_specs, sizeof *x->row);
  x->choice = calloc((size_t)j->n_contests + 1, sizeof *x->choice);
  if (!x->row || !x->choice) return fg_fail(FG_EMEMORY, "no memory for %d choices", j->n_contests);
  for (int i = 0; i < j->n_contests; i++) {
    const fg_contest *c = &j->contest[i];
    double ms;
    if (!c->held_out) continue;
    TRY(fg_judge_wisdom(j, c, &ms));
    choice *made = &x->choice[x->n_choices++];
    *made = (choice){c, row_of(r, x, of(r, c)), {ms / c->best, fg_judge_model(j, c) / c->best}};
    add_to(&x->row[made->row], made->regret);
    add_to(&x->all, made->regret);
  }
  x->left = 206; /* the axis's title */
  for (int i = 0; i < x->n_rows; i++)
    x->left = fmax(x->left, page_mono_width(x->row[i].spec->name) + 20);
  x->most = fmax(1.01, fmax(x->all.worst[0], x->all.worst[1]));
  return FG_OK;
}

static double at_x(const regrets *x, double regret) {
  return x->left + (regret - 1) / (x->most - 1) * AXIS;
}

static void axes(const regrets *x) {
  const double step = page_step(x->most - 1, 6);
  const int bottom = TOP + LINE * x->n_rows;
  for (int i = 0; 1 + i * step <= x->most + 1e-9; i++) {
    char text[32];
    snprintf(text, sizeof text, "%.*f", step < 0.01 ? 3 : 2, 1 + i * step);
    printf("<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", at_x(x, 1 + i * step), TOP - 6, bottom);
    page_label(at_x(x, 1 + i * step), TOP - 12, "middle", text);
  }
  page_label(x->left - 36, TOP - 12, "end", "time of the choice / least time");
  for (int i = 0; i < x->n_rows; i++) {
    printf("<text class=\"mono\" x=\"%.1f\" y=\"%d\" text-anchor=\"end\">", x->left - 12,
           TOP + LINE * i + 15);
    page_text(x->row[i].spec->name);
    printf("</text>\n");
  }
}

/* By wisdom above, by the model below. */
static void mark(const report *r, const regrets *x, const choice *c, int by) {
  const double at = at_x(x, c->regret[by]);
  const int y = TOP + LINE * c->row + (by ? 15 : 7);
  printf("<g><title>");
  page_text(x->row[c->row].spec->name);
  printf(" at ");
  page_shape(&of(r, c->contest)->shape);
  printf(": %.3f by %s</title>", c->regret[by], by ? "the model" : "wisdom");
  if (by)
    printf("<path class=\"c1 dot\" d=\"M%.1f %dl4 4l-4 4l-4 -4z\"/></g>\n", at, y - 4);
  else
    printf("<circle class=\"c0 dot\" cx=\"%.1f\" cy=\"%d\" r=\"3.5\"/></g>\n", at, y);
}

static void picture(const report *r, const regrets *x) {
  page_picture("Time of the choice over the least time, of shapes held out", x->left + AXIS + RIGHT,
               TOP + LINE * x->n_rows + 8);
  axes(x);
  for (int i = 0; i < x->n_choices; i++)
    for (int by = 0; by < 2; by++) mark(r, x, &x->choice[i], by);
  page_picture_end();
  printf("<ul class=\"legend\">\n"
         "<li><svg width=\"12\" height=\"12\"><circle class=\"c0 dot\" cx=\"6\" cy=\"6\" "
         "r=\"4\"/></svg>by wisdom of the spec's other shapes</li>\n"
         "<li><svg width=\"12\" height=\"12\"><path class=\"c1 dot\" "
         "d=\"M6 1l5 5l-5 5l-5 -5z\"/></svg>by the cost model alone</li>\n</ul>\n");
}

static void print_row(const row *r) {
  printf("<tr%s><td class=\"l\">", r->spec ? "" : " class=\"sum\"");
  if (r->spec) {
    printf("<a class=\"name\" href=\"#spec-%d\">", r->number);
    page_text(r->spec->name);
    printf("</a>");
  } else {
    printf("all");
  }
  printf("</td><td>%d</td>", r->n);
  for (int by = 0; by < 2; by++)
    printf("<td>%d</td><td>%.3f</td><td>%.3f</td>", r->right[by], exp(r->sum[by] / r->n),
           r->worst[by]);
  printf("</tr>\n");
}

static void table(const regrets *x) {
  printf("<div class=\"scroll\"><table>\n<thead><tr><th class=\"l\" rowspan=\"2\">spec</th>"
         "<th rowspan=\"2\">shapes</th><th colspan=\"3\">by wisdom</th><th colspan=\"3\">by the "
         "model</th></tr>\n<tr><th>fastest taken</th><th>mean</th><th>worst</th><th>fastest "
         "taken</th><th>mean</th><th>worst</th></tr></thead>\n<tbody>\n");
  for (int i = 0; i < x->n_rows; i++) print_row(&x->row[i]);
  print_row(&x->all);
  printf("</tbody></table></div>\n");
}

fg_status report_regret(const report *r) {
  regrets x = {0};
  fg_status status = FG_OK;
  TRY_OUT(judge(r, &x));
  page_section("regret", "Dispatch regret",
               "What is lost at shapes that were not measured. Every third shape of a spec is held "
               "out; dispatch then chooses by the shapes that are left, or, without wisdom, by the "
               "cost model, whose constants may have been fitted to these very shapes. 1.00 is the "
               "fastest plan. Means are geometric.");
  if (x.n_choices) {
    picture(r, &x);
    table(&x);
  } else {
    printf("<p>There is nothing to hold out: no spec has two shapes with times of two plans that "
           "exist.</p>\n");
  }
  printf("</section>\n");
out:
  free(x.row);
  free(x.choice);
  return status;
}
