/* report_page.c - the page's markup: head, contents, sections, pictures, and text that means
 * itself.
 *
 * It is HTML and XML at once, so that any reader of XML can look through it. Whatever comes out of
 * a file goes through page_text. */
#include "report.h"
#include "work.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

extern const char fg_report_style[]; /* report.css */

/* Text -------------------------------------------------------------------------------------- */

/* Bytes of the character of UTF-8 here; 0: it is none, or one that XML does not have. */
static int character(const unsigned char *c) {
  int n = *c < 0x80 ? 1 : *c >> 5 == 6 ? 2 : *c >> 4 == 14 ? 3 : *c >> 3 == 30 ? 4 : 0;
  uint32_t code = n == 1 ? *c : *c & (0xffu >> (n + 1));
  static const uint32_t least[] = {0, 0x20, 0x80, 0x800, 0x10000};
  for (int i = 1; i < n; i++) {
    if (c[i] >> 6 != 2) return 0;
    code = code << 6 | (c[i] & 0x3fu);
  }
  bool none = code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
              (code >= 0x7f && code < 0xa0) || code == 0xfffe || code == 0xffff;
  return n && !none ? n : 0;
}

void page_text(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c;) {
    const char *mark = *c == '&' ? "&amp;" : *c == '<' ? "&lt;" : *c == '>' ? "&gt;" : NULL;
    if (*c == '"') mark = "&quot;";
    int n = character(c);
    if (mark)
      fputs(mark, stdout);
    else if (n)
      printf("%.*s", n, (const char *)c);
    else
      fputs("\xef\xbf\xbd", stdout); /* the replacement character */
    c += n ? n : 1;
  }
}

void page_shape_text(const fg_shape *s, char text[REPORT_SHAPE]) {
  char brief[FG_BRIEF_MAX];
  int n = 0;
  fg_shape_brief(s, sizeof brief, brief);
  for (const char *c = brief; *c; c++)
    n = fg_append(REPORT_SHAPE, text, n, *c == 'x' ? "×" : "%c", *c);
  if (s->align && s->align != 16) fg_append(REPORT_SHAPE, text, n, " align %" PRId64, s->align);
}

void page_shape(const fg_shape *s) {
  char text[REPORT_SHAPE];
  page_shape_text(s, text);
  fputs(text, stdout);
}

void page_length(int64_t n) {
  if (n >= 1024 && n % 1024 == 0)
    printf("%" PRId64 " K", n / 1024);
  else
    printf("%" PRId64, n);
}

/* Sections ---------------------------------------------------------------------------------- */

void page_section(const char *id, const char *title, const char *lead) {
  printf("<section id=\"%s\">\n<h2>%s</h2>\n<p>%s</p>\n", id, title, lead);
}

/* Days of the measurements, "2026-11-20". */
static void print_days(const fg_measured_list *list) {
  int64_t first = 0, last = 0;
  char days[2][32] = {"", ""};
  for (int i = 0; i < list->n; i++) {
    const int64_t when = list->item[i]->when;
    if (when && (!first || when < first)) first = when;
    if (when > last) last = when;
  }
  for (int i = 0; i < 2; i++) {
    time_t when = (time_t)(i ? last : first);
    struct tm day;
    if (gmtime_r(&when, &day)) strftime(days[i], sizeof days[i], "%Y-%m-%d", &day);
  }
  if (!first || !last) return;
  printf(", measured %s", days[0]);
  if (strcmp(days[0], days[1])) printf(" to %s", days[1]);
}

static void print_devices(const report *r) {
  for (int i = 0; i < r->n_specs; i++) {
    bool seen = false;
    for (int j = 0; j < i; j++) seen |= !strcmp(r->spec[j].like->device, r->spec[i].like->device);
    if (seen) continue;
    if (i) printf(", ");
    page_text(r->spec[i].like->device);
  }
}

static void contents(const report *r) {
  printf("<nav aria-label=\"Contents\"><ol>\n"
         "<li><a href=\"#overview\">Overview</a></li>\n"
         "<li><a href=\"#roofs\">Speed against the device</a></li>\n"
         "<li><a href=\"#regret\">Dispatch regret</a></li>\n"
         "<li><a href=\"#compiled\">Compile times and registers</a></li>\n"
         "<li><a href=\"#failures\">Failures</a></li>\n"
         "<li><a href=\"#specs\">Spec by spec</a>\n<ol>\n");
  for (int i = 0; i < r->n_specs; i++) {
    printf("<li><a href=\"#spec-%d\">", i + 1);
    page_text(r->spec[i].name);
    printf("</a></li>\n");
  }
  printf("</ol></li>\n<li><a href=\"#files\">Files and words</a></li>\n</ol></nav>\n");
}

/* Has the shape extents that only some layouts of sequences have? */
static bool has_layout(const fg_shape *s) { return s->tokens_q || s->tokens_k || s->pages; }

void page_kinds(const report *r, bool operations) {
  bool told[FG_KINDS] = {false}, has_layouts = false;
  printf("<p>");
  for (int i = 0; i < r->n_specs; i++) {
    const fg_point *point = &r->spec[i].point;
    if (!r->spec[i].known || told[point->kernel]) continue;
    const cli_work *work = cli_work_of(point);
    printf("%s ", operations ? work->operation_words : work->shape_words);
    told[point->kernel] = true;
  }
  for (int i = 0; i < r->n_specs; i++)
    for (int c = 0; c < r->spec[i].n_cells; c++)
      has_layouts |= has_layout(&r->spec[i].cell[c].shape);
  if (has_layouts && !operations)
    printf("Packed sequences have tokens_q and tokens_k tokens in all, paged ones so many pages "
           "of so many keys; pages without page are caches. Rows and keys are those of the longest "
           "sequence.");
  printf("</p>\n");
}

void page_start(const report *r) {
  printf("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
         "<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<meta name=\"generator\" content=\"flashgen %s\"/>\n<title>flashgen report: ",
         FG_VERSION);
  print_devices(r);
  printf("</title>\n<style>\n%s</style>\n</head>\n<body>\n", fg_report_style);
  contents(r);
  printf("<main>\n<header>\n<h1>Kernels on ");
  print_devices(r);
  printf("</h1>\n<p class=\"soft\">What was measured, which plan is fastest where, and how good "
         "choices between them are%s",
         r->n_files ? "" : "; the wisdom that comes with flashgen");
  print_days(&r->list);
  printf(".</p>\n</header>\n");
}

void page_end(void) {
  printf(
      "<footer>Made by <code>flashgen report</code>, flashgen %s. The page is one file and loads "
      "nothing.</footer>\n</main>\n</body>\n</html>\n",
      FG_VERSION);
}

/* Pictures ---------------------------------------------------------------------------------- */

void page_picture(const char *label, double width, double height) {
  printf("<div class=\"scroll\"><svg role=\"img\" aria-label=\"");
  page_text(label);
  printf("\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
         "xmlns=\"http://www.w3.org/2000/svg\">\n",
         width, height, width, height);
}

void page_picture_end(void) { printf("</svg></div>\n"); }

void page_label(double x, double y, const char *anchor, const char *text) {
  printf("<text class=\"soft\" x=\"%.1f\" y=\"%.1f\"%s%s%s>", x, y,
         strcmp(anchor, "start") ? " text-anchor=\"" : "", strcmp(anchor, "start") ? anchor : "",
         strcmp(anchor, "start") ? "\"" : "");
  page_text(text);
  printf("</text>\n");
}

double page_mono_width(const char *name) { return 6.7 * (double)strlen(name); } /* 11 px */
double page_width(const char *label) { return 6.5 * (double)strlen(label); }

double page_step(double range, int marks) {
  double step = pow(10, floor(log10(range / marks)));
  if (range / step > 5 * marks) return 10 * step;
  if (range / step > 2 * marks) return 5 * step;
  return range / step > marks ? 2 * step : step;
}
