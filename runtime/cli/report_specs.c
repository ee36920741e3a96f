/* report_specs.c - a section for each spec: what it is, its maps, and the fastest plans in figures.
 */
#include "report.h"

#include <string.h>

/* "pass=forward, head_dim=64, mask=causal": what is not as usual. */
static void words(const report_spec *s) {
  bool any = false;
  for (int i = 0; i < FG_SPEC_FIELDS && s->known; i++) {
    const fg_field *field = &fg_fields[i];
    if (!fg_field_belongs(field, &s->point)) continue;
    const bool formula = i >= FG_FIELD_MASK && i <= FG_FIELD_DEFINE;
    char text[64];
    if (!formula) fg_field_print(field, &s->point, sizeof text, text);
    const char *value = formula ? fg_field_text(field, &s->point) : text;
    const bool usual = field->fallback && !strcmp(value, field->fallback);
    const bool always = i == FG_FIELD_MASK || strstr(" pass dtype ", field->name);
    if (!*value || (usual && !always)) continue;
    printf("%s%s=", any ? ", " : "", field->name);
    page_text(value);
    any = true;
  }
  if (!s->known) page_text(*s->like->expression ? s->like->expression : "no spec of this flashgen");
}

static void share(double value, int digits, double of) {
  if (of > 0)
    printf("<td>%.*g</td><td>%.0f %%</td>", digits, value, 100 * value / of);
  else
    printf("<td>%.*g</td><td></td>", digits, value);
}

static void row(const report_cell *c, const cli_rates *rates) {
  printf("<tr><td class=\"l\">");
  page_shape(&c->shape);
  printf("</td>");
  if (!c->best) {
    printf(
        "<td class=\"l\">none</td><td></td><td></td><td></td><td></td><td></td><td></td></tr>\n");
    return;
  }
  char plan[REPORT_PLAN];
  report_plan_name(c->best->name, plan);
  printf("<td class=\"l name\">");
  page_text(plan);
  printf("</td><td>%.4f</td>", c->best->ms);
  if (c->flops > 0)
    share(report_tflops(c), 4, rates ? rates->matrix : 0);
  else
    printf("<td></td><td></td>");
  if (c->bytes > 0)
    share(report_tbs(c), 3, rates ? rates->copy : 0);
  else
    printf("<td></td><td></td>");
  if (c->next)
    printf("<td>%.3f</td></tr>\n", c->next->ms / c->best->ms);
  else
    printf("<td></td></tr>\n");
}

static void table(const report_spec *s) {
  printf("<h4>The fastest plans in figures</h4>\n<div class=\"scroll\"><table>\n<thead><tr>"
         "<th class=\"l\">shape</th><th class=\"l\">fastest plan</th><th>ms</th><th>TFLOP/s</th>"
         "<th>of matrix</th><th>TB/s</th><th>of copy</th><th>next best</th></tr></thead>\n"
         "<tbody>\n");
  for (int c = 0; c < s->n_cells; c++) row(&s->cell[c], cli_rates_of(s->like->device));
  printf("</tbody></table></div>\n");
}

static void spec(const report_spec *s, int number) {
  printf("<section id=\"spec-%d\">\n<h3 class=\"name\">", number);
  page_text(s->name);
  printf("</h3>\n<p class=\"soft\">");
  words(s);
  printf("; on ");
  page_text(s->like->device);
  printf("</p>\n<div class=\"pair\">\n<div>\n");
  report_winners(s);
  printf("</div>\n<div>\n");
  table(s);
  printf("</div>\n</div>\n");
  report_heat(s);
  printf("</section>\n");
}

void report_specs(const report *r) {
  page_section("specs", "Spec by spec",
               "Plans are sorted by their mean share over the shapes, the fastest first. Bold: its "
               "numbers are verified, so that it may win. What is clearly slower than another plan "
               "is timed with few launches, and not verified for its own sake.");
  for (int i = 0; i < r->n_specs; i++) spec(&r->spec[i], i + 1);
  printf("</section>\n");
}
