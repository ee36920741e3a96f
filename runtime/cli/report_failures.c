/* report_failures.c - what has no time, and why; and the files that all of it is from. */
#include "report.h"

#include <string.h>

static const char *const what[FG_MEASURED_KINDS] = {
    [FG_MEASURED_WRONG] = "wrong numbers",
    [FG_MEASURED_REFUSED] = "refused",
    [FG_MEASURED_FAULT] = "broke at launch",
};

static bool alike(const fg_measured *a, const fg_measured *b) {
  return a->status == b->status && !strcmp(a->name, b->name) && !strcmp(a->reason, b->reason);
}

/* One row for what failed in the same way at several shapes. */
static void row(const fg_measured_list *list, int i) {
  const fg_measured *m = list->item[i];
  int shapes = 0;
  for (int k = 0; k < i; k++)
    if (alike(list->item[k], m)) return;
  printf("<tr><td class=\"l\">%s</td><td class=\"l name\">", what[m->status]);
  page_text(m->name);
  printf("</td><td class=\"l wrap\">");
  if (m->error > 0) printf("error %.3g times what counts as right; ", m->error);
  page_text(*m->reason ? m->reason : "no reason is given");
  printf("</td><td class=\"l wrap\">");
  for (int k = i; k < list->n; k++) {
    if (!alike(list->item[k], m)) continue;
    if (shapes++) printf(", ");
    page_shape(&list->item[k]->shape);
  }
  printf("</td></tr>\n");
}

void report_failures(const report *r) {
  int n[FG_MEASURED_KINDS] = {0}, failed = 0;
  for (int i = 0; i < r->list.n; i++) {
    n[r->list.item[i]->status]++;
    failed += fg_measured_failed(r->list.item[i]);
  }
  page_section(
      "failures", "Failures",
      "Plans that cannot win: their numbers break the accuracy rule, the compiler refuses "
      "them or spills registers, the shape is too much for them, or they break at launch.");
  if (!failed) {
    printf("<p>None: all %d measurements have a time.</p>\n</section>\n", r->list.n);
    return;
  }
  printf("<p>%d of %d measurements: %d with wrong numbers, %d refused, %d broke at launch.</p>\n",
         failed, r->list.n, n[FG_MEASURED_WRONG], n[FG_MEASURED_REFUSED], n[FG_MEASURED_FAULT]);
  printf("<div class=\"scroll\"><table>\n<thead><tr><th class=\"l\">what</th><th class=\"l\">"
         "variant</th><th class=\"l\">reason</th><th class=\"l\">at</th></tr></thead>\n<tbody>\n");
  for (int i = 0; i < r->list.n; i++)
    if (fg_measured_failed(r->list.item[i])) row(&r->list, i);
  printf("</tbody></table></div>\n</section>\n");
}

/* Files ------------------------------------------------------------------------------------ */

static void file_row(const report_file *f) {
  printf("<tr><td class=\"l name\">");
  page_text(f->path);
  printf("</td><td>%d</td><td>%d</td><td>%d</td><td class=\"l wrap\">", f->lines.good,
         f->lines.newer, f->lines.bad);
  if (f->lines.bad) {
    printf("line %d: ", f->lines.first_bad);
    page_text(f->lines.why);
  }
  printf("</td></tr>\n");
}

static void words(void) {
  static const char *const list[][2] = {
      {"plan", "family, then rows (q) and keys (k) of a tile, stages (s) in flight, warps (w) of a "
               "block, warps that share keys (p)"},
      {"share", "the time of the cell's fastest plan over this plan's, in percent"},
      {"ok", "timed by the whole protocol, its numbers verified against the float64 oracle"},
      {"slow", "clearly slower than another plan: timed with few launches"},
      {"bold", "its numbers are verified, at this shape or another: it may win"},
      {"W, R, B", "wrong numbers, refused, broke at launch; see Failures"},
      {"next best", "the time of the second plan that was verified over that of the first"}};
  printf("<h3>Words</h3>\n<div class=\"scroll\"><table><tbody>\n");
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    printf("<tr><td class=\"l\">%s</td><td class=\"wrap\">%s</td></tr>\n", list[i][0], list[i][1]);
  printf("</tbody></table></div>\n");
}

void report_files(const report *r) {
  page_section("files", "Files and words",
               "Of two lines for one variant, shape, device and generation the later one counts.");
  if (r->n_files) {
    printf("<div class=\"scroll\"><table>\n<thead><tr><th class=\"l\">file</th><th>lines</th>"
           "<th>of a newer flashgen</th><th>bad</th><th class=\"l\">the first of those</th></tr>"
           "</thead>\n<tbody>\n");
    for (int i = 0; i < r->n_files; i++) file_row(&r->file[i]);
    printf("</tbody></table></div>\n");
  }
  words();
  printf("</section>\n");
}
