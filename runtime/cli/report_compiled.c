/* report_compiled.c - what compiling said of the variants: seconds, registers, spills; as tune
 * wrote it down when it had them compiled. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The picture: a line for each family and pass, seconds on the left, registers on the right. */
enum { LEFT = 120, PANEL = 350, GAP = 40, TOP = 34, LINE = 58, KINDS = 16, WIDTH = 890 };

typedef struct {
  const report_spec *spec;
  const report_plan *plan;
  int kind, registers, spill;
  double seconds; /* 0: the cache had it, each time */
} compiled;

/* A family and pass. */
typedef struct {
  char name[REPORT_PLAN + 16];
  int n;
} kind;

typedef struct {
  compiled *item;
  kind kind[KINDS];
  int n, n_kinds;
  double most; /* seconds */
} job;

static int kind_of(job *j, const report_spec *s, const report_plan *p) {
  char family[REPORT_PLAN], name[REPORT_PLAN + 16];
  int k = 0;
  report_family(p->name, family);
  snprintf(name, sizeof name, "%s %s", family, report_pass(s->like));
  while (k < j->n_kinds && strcmp(j->kind[k].name, name)) k++;
  if (k == KINDS) return KINDS - 1; /* names of no flashgen */
  if (k == j->n_kinds) strcpy(j->kind[j->n_kinds++].name, name);
  return k;
}

/* A variant is the same at all shapes: what one of them knows. */
static void add(job *j, const report_spec *s, int plan) {
  compiled *x = &j->item[j->n];
  *x = (compiled){.spec = s, .plan = &s->plan[plan]};
  for (int c = 0; c < s->n_cells; c++) {
    const fg_measured *m = s->table[plan * s->n_cells + c];
    if (!m || m->status == FG_MEASURED_REFUSED) continue;
    if (m->registers > x->registers) x->registers = m->registers;
    if (m->spill > x->spill) x->spill = m->spill;
    if (m->compile > x->seconds && m->compile < 1e6) x->seconds = m->compile;
  }
  if (!x->registers && x->seconds <= 0) return;
  x->kind = kind_of(j, s, x->plan);
  j->kind[x->kind].n++;
  j->most = fmax(j->most, x->seconds);
  j->n++;
}

static double at_seconds(const job *j, double s) { return LEFT + s / j->most * PANEL; }
static double at_registers(double n) { return LEFT + PANEL + GAP + n / 256 * PANEL; }

static void axes(const job *j) {
  const int bottom = TOP + LINE * j->n_kinds;
  const double step = page_step(j->most, 7);
  char text[64];
  for (int i = 0; i * step <= j->most * 1.001; i++) {
    snprintf(text, sizeof text, "%g", i * step);
    printf("<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", at_seconds(j, i * step), TOP - 4, bottom);
    page_label(at_seconds(j, i * step), TOP - 9, "middle", text);
  }
  for (int n = 0; n <= 256; n += 32) {
    snprintf(text, sizeof text, "%d", n);
    printf("<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", at_registers(n), TOP - 4, bottom);
    page_label(at_registers(n), TOP - 9, "middle", text);
  }
  printf("<text class=\"title\" x=\"%d\" y=\"11\">compile time, s</text>\n", LEFT);
  printf("<text class=\"title\" x=\"%.0f\" y=\"11\">registers of a thread</text>\n",
         at_registers(0));
  for (int k = 0; k < j->n_kinds; k++)
    page_label(LEFT - 12, TOP + LINE * k + LINE / 2 + 4, "end", j->kind[k].name);
}

/* Dots of a line are spread by the golden section, which is even and needs no chance. */
static void dots(const job *j) {
  int seen[KINDS] = {0};
  for (int i = 0; i < j->n; i++) {
    const compiled *x = &j->item[i];
    const double spread = fmod(0.618034 * ++seen[x->kind], 1);
    const double y = TOP + LINE * x->kind + 8 + spread * (LINE - 16);
    char family[REPORT_PLAN];
    report_family(x->plan->name, family);
    const int colour = !strcmp(family, "wgmma")    ? 0
                       : !strcmp(family, "mma")    ? 1
                       : !strcmp(family, "decode") ? 3
                                                   : 2;
    printf("<g class=\"c%d dot\"><title>", colour);
    page_text(x->spec->name);
    printf(".");
    page_text(x->plan->name);
    if (x->seconds > 0) printf(": %.2f s", x->seconds);
    printf("%s%d registers%s</title>", x->seconds > 0 ? ", " : ": ", x->registers,
           x->spill ? ", spills" : "");
    if (x->seconds > 0)
      printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", at_seconds(j, x->seconds), y);
    if (x->registers)
      printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", at_registers(x->registers), y);
    printf("</g>\n");
  }
}

/* Rows ------------------------------------------------------------------------------------- */

static int by_number(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* Least, median and most of n numbers, cells of a row. */
static void spread(double *value, int n, int digits) {
  if (!n) {
    printf("<td>-</td><td>-</td><td>-</td>");
    return;
  }
  qsort(value, (size_t)n, sizeof *value, by_number);
  const double median = n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
  printf("<td>%.*f</td><td>%.*f</td><td>%.*f</td>", digits, value[0], digits, median, digits,
         value[n - 1]);
}

static void row(const job *j, int k, double *value) {
  int seconds = 0, registers = 0, spills = 0;
  printf("<tr><td class=\"l\">");
  page_text(j->kind[k].name);
  printf("</td><td>%d</td>", j->kind[k].n);
  for (int i = 0; i < j->n; i++)
    if (j->item[i].kind == k && j->item[i].seconds > 0) value[seconds++] = j->item[i].seconds;
  printf("<td>%d</td>", seconds);
  spread(value, seconds, 2);
  for (int i = 0; i < j->n; i++) {
    if (j->item[i].kind != k) continue;
    if (j->item[i].registers) value[registers++] = j->item[i].registers;
    spills += j->item[i].spill > 0;
  }
  spread(value, registers, 0);
  printf("<td>%d</td></tr>\n", spills);
}

static void table(const job *j, double *value) {
  printf("<div class=\"scroll\"><table>\n<thead><tr><th class=\"l\" rowspan=\"2\">family, pass</th>"
         "<th rowspan=\"2\">variants</th><th rowspan=\"2\">timed</th><th colspan=\"3\">compile "
         "time, s</th><th colspan=\"3\">registers</th><th rowspan=\"2\">spill</th></tr>\n<tr>"
         "<th>least</th><th>median</th><th>most</th><th>least</th><th>median</th><th>most</th>"
         "</tr></thead>\n<tbody>\n");
  for (int k = 0; k < j->n_kinds; k++) row(j, k, value);
  printf("</tbody></table></div>\n");
}

static int count_plans(const report *r) {
  int n = 0;
  for (int i = 0; i < r->n_specs; i++) n += r->spec[i].n_plans;
  return n;
}

void report_compiled(const report *r) {
  const int plans = count_plans(r);
  job j = {.item = calloc((size_t)plans + 1, sizeof *j.item), .most = 0.01};
  double *value = calloc((size_t)plans + 1, sizeof *value);
  page_section("compiled", "Compile times and registers",
               "As it was when the measurements were made: the time of the compiler alone, in one "
               "of as many processes as there were cores; a variant that the cache had has none. "
               "Registers are the most of a variant's entry points; 255 is all that a thread can "
               "have.");
  for (int i = 0; i < r->n_specs && j.item && value; i++)
    for (int p = 0; p < r->spec[i].n_plans; p++) add(&j, &r->spec[i], p);
  if (j.n) {
    page_picture("Compile times and registers of the variants, by family and pass", WIDTH,
                 TOP + LINE * j.n_kinds + 6);
    axes(&j), dots(&j);
    page_picture_end();
    table(&j, value);
  } else {
    printf("<p>The files say nothing of it.</p>\n");
  }
  printf("</section>\n");
  free(j.item);
  free(value);
}
