/* report_overview.c - the page's first section: the figures in short, and a row for each spec. */
#include "report.h"

#include <string.h>

static void fact(const char *title, const char *unit, const char *format, double value) {
  printf("<div><dt>%s</dt><dd>", title);
  printf(format, value);
  printf(" <small>%s</small></dd></div>\n", unit);
}

/* The cell with the most TFLOP/s of all, or of one spec. */
static const report_cell *fastest(const report_spec *spec, int n) {
  const report_cell *most = NULL;
  for (int i = 0; i < n; i++)
    for (int c = 0; c < spec[i].n_cells; c++) {
      const report_cell *cell = &spec[i].cell[c];
      if (report_tflops(cell) > (most ? report_tflops(most) : 0)) most = cell;
    }
  return most;
}

static int count(const fg_measured_list *list, bool (*is)(const fg_measured *)) {
  int n = 0;
  for (int i = 0; i < list->n; i++) n += is(list->item[i]);
  return n;
}

static int count_variants(const report *r) {
  int n = 0;
  for (int i = 0; i < r->n_specs; i++) n += r->spec[i].n_plans;
  return n;
}

static void facts(const report *r) {
  const report_cell *most = fastest(r->spec, r->n_specs);
  const int won = count(&r->list, fg_measured_counts);
  char unit[96];
  printf("<dl class=\"facts\">\n");
  snprintf(unit, sizeof unit, "%d verified", won);
  fact("Measurements", unit, "%.0f", r->list.n);
  snprintf(unit, sizeof unit, "at %d cells", r->n_cells);
  fact("Specs", unit, "%.0f", r->n_specs);
  fact("Variants", "spec and plan", "%.0f", count_variants(r));
  fact("Failures", "", "%.0f", count(&r->list, fg_measured_failed));
  if (most) {
    const cli_rates *rates = cli_rates_of(most->best->device);
    snprintf(unit, sizeof unit, "TFLOP/s");
    if (rates)
      snprintf(unit, sizeof unit, "TFLOP/s, %.0f %% of cuBLAS",
               100 * report_tflops(most) / rates->matrix);
    fact("Fastest", unit, "%.0f", report_tflops(most));
  }
  printf("</dl>\n");
}

/* How often each family wins, forward and backward. */
enum { FAMILIES = 8 };
typedef struct {
  char name[REPORT_PLAN];
  int wins[2];
} family;

static int count_families(const report *r, family list[FAMILIES]) {
  char name[REPORT_PLAN];
  int n = 0, f;
  for (int i = 0; i < r->n_specs; i++)
    for (int p = 0; p < r->spec[i].n_plans; p++) {
      report_family(r->spec[i].plan[p].name, name);
      for (f = 0; f < n && strcmp(list[f].name, name); f++) continue;
      if (f == FAMILIES) continue;
      if (f == n) strcpy(list[n++].name, name);
      list[f].wins[*report_pass(r->spec[i].like) == 'b'] += r->spec[i].plan[p].wins;
    }
  return n;
}

/* "wgmma in 182 of 194 cells, mma in 12": the most frequent first. */
static void print_families(const family *list, int n, int pass) {
  int cells = 0, last = -1;
  for (int f = 0; f < n; f++) cells += list[f].wins[pass];
  for (int k = 0; k < n; k++) {
    int next = -1;
    for (int f = 0; f < n; f++) {
      const int wins = list[f].wins[pass], before = last < 0 ? cells : list[last].wins[pass];
      const bool behind = last < 0 || wins < before || (wins == before && f > last);
      if (behind && (next < 0 || wins > list[next].wins[pass])) next = f;
    }
    if (next < 0 || !list[next].wins[pass]) break;
    printf("%s<span class=\"name\">", k      ? ", "
                                      : pass ? "Backward, it is "
                                             : "Forward, the fastest "
                                               "plan is of the family ");
    page_text(list[next].name);
    printf(k ? "</span> in %d" : "</span> in %d of %d cells", list[next].wins[pass], cells);
    last = next;
  }
  if (cells) printf(".\n");
}

static void families(const report *r) {
  family list[FAMILIES] = {{.wins = {0}}};
  const int n = count_families(r, list);
  printf("<p>");
  print_families(list, n, 0);
  print_families(list, n, 1);
  printf("</p>\n");
}

static const report_plan *first_winner(const report_spec *s) {
  for (int p = 0; p < s->n_plans; p++)
    if (s->plan[p].rank == 0) return &s->plan[p];
  return NULL;
}

static bool has_one_device(const report *r) {
  for (int i = 1; i < r->n_specs; i++)
    if (strcmp(r->spec[0].like->device, r->spec[i].like->device) != 0) return false;
  return true;
}

static void small_line(const char *text) {
  printf("<span class=\"expression\">");
  page_text(text);
  printf("</span>");
}

/* A spec that was measured on several devices has a row for each, which names it. */
static void spec_row(const report_spec *s, int number, bool with_device) {
  const report_cell *most = fastest(s, 1);
  const report_plan *winner = first_winner(s);
  const cli_rates *rates = cli_rates_of(s->like->device);
  printf("<tr><td class=\"l\"><a class=\"name\" href=\"#spec-%d\">", number);
  page_text(s->name);
  printf("</a>");
  if (*s->like->expression) small_line(s->like->expression);
  if (with_device) small_line(s->like->device);
  printf("</td><td>%d</td><td>%d</td><td class=\"l name\">", s->n_cells, s->n_plans);
  page_text(winner ? winner->name : "none");
  printf("</td><td>%d</td>", winner ? winner->wins : 0);
  if (most) {
    printf("<td>%.0f</td><td>", report_tflops(most));
    if (rates) printf("%.0f %%", 100 * report_tflops(most) / rates->matrix);
    printf("</td><td class=\"l\">");
    page_shape(&most->shape);
    printf("</td></tr>\n");
  } else {
    printf("<td>-</td><td></td><td class=\"l\"></td></tr>\n");
  }
}

void report_overview(const report *r) {
  page_section("overview", "Overview",
               "A spec is what a kernel computes, a plan how; a cell is a spec at a shape.");
  page_kinds(r, false);
  facts(r);
  families(r);
  printf("<div class=\"scroll\"><table>\n<thead><tr><th class=\"l\">spec</th><th>shapes</th>"
         "<th>plans</th><th class=\"l\">most often fastest</th><th>at</th><th>best TFLOP/s</th>"
         "<th>of matrix rate</th><th class=\"l\">at shape</th></tr></thead>\n<tbody>\n");
  const bool with_device = !has_one_device(r);
  for (int i = 0; i < r->n_specs; i++) spec_row(&r->spec[i], i + 1, with_device);
  printf("</tbody></table></div>\n</section>\n");
}
