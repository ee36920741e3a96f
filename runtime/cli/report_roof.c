/* report_roof.c - the fastest plan of each cell against what the device can do at most: the rate
 * of its matrix units, and that of its memory times the operations for each byte. */
#include "report.h"

#include <math.h>
#include <string.h>

/* The picture: a plane of two logarithmic axes, x in FLOP/byte, y in TFLOP/s. */
enum { WIDTH = 880, HEIGHT = 470, LEFT = 62, RIGHT = 18, TOP = 22, BOTTOM = 52 };
typedef struct {
  double x0, x1, y0, y1; /* log10 */
} plane;

static double at_x(const plane *p, double value) {
  return LEFT + (log10(value) - p->x0) / (p->x1 - p->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const plane *p, double value) {
  return HEIGHT - BOTTOM - (log10(value) - p->y0) / (p->y1 - p->y0) * (HEIGHT - TOP - BOTTOM);
}

static double intensity(const report_cell *c) { return c->flops / c->bytes; }

static bool is_shown(const report_spec *s, const report_cell *c, const char *device) {
  return c->best && c->flops > 0 && c->bytes > 0 && !strcmp(s->like->device, device);
}

/* Calls `each` with the cells of a device that can be placed. */
typedef void visit(void *context, const report_spec *s, const report_cell *c);
static void each_cell(const report *r, const char *device, visit *each, void *context) {
  for (int i = 0; i < r->n_specs; i++)
    for (int c = 0; c < r->spec[i].n_cells; c++)
      if (is_shown(&r->spec[i], &r->spec[i].cell[c], device))
        each(context, &r->spec[i], &r->spec[i].cell[c]);
}

static void widen(void *context, const report_spec *s, const report_cell *c) {
  plane *p = context;
  (void)s;
  p->x0 = fmin(p->x0, log10(intensity(c)) - 0.15), p->x1 = fmax(p->x1, log10(intensity(c)) + 0.15);
  p->y0 = fmin(p->y0, log10(report_tflops(c)) - 0.15);
  p->y1 = fmax(p->y1, log10(report_tflops(c)) + 0.15);
}

/* Lines at powers of 10, and at 2 and 5 times one where there are few. */
static void grid(const plane *p, bool vertical) {
  const double from = vertical ? p->x0 : p->y0, to = vertical ? p->x1 : p->y1;
  for (int power = (int)floor(from); power <= (int)ceil(to); power++)
    for (int i = 0; i < (to - from < 4 ? 3 : 1); i++) {
      const double value = pow(10, power) * (i == 0 ? 1 : i == 1 ? 2 : 5);
      char text[32];
      if (log10(value) < from || log10(value) > to) continue;
      snprintf(text, sizeof text, "%.10g", value);
      const double x = vertical ? at_x(p, value) : LEFT, y = vertical ? TOP : at_y(p, value);
      printf("<path class=\"grid\" d=\"M%.1f %.1f%s\"/>\n", x, y,
             vertical ? "V418" : "H862"); /* HEIGHT - BOTTOM, WIDTH - RIGHT */
      if (vertical)
        page_label(x, HEIGHT - BOTTOM + 16, "middle", text);
      else
        page_label(LEFT - 8, y + 4, "end", text);
    }
}

/* A label that ends at x; where the page's edge would cut it, it begins there, above the line. */
static void before_or_above(double x, double y, const char *text) {
  if (x - page_width(text) > LEFT)
    page_label(x, y, "end", text);
  else
    page_label(LEFT + 6, y - 12, "start", text);
}

static void roofs(const plane *p, const cli_rates *rates) {
  const double ridge = rates->matrix / rates->copy, left = pow(10, p->x0), low = pow(10, p->y0);
  double from = fmax(left, low / rates->copy), to = fmin(pow(10, p->x1), ridge);
  char text[96];
  if (from < to)
    printf("<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", at_x(p, from),
           at_y(p, from * rates->copy), at_x(p, to), at_y(p, to * rates->copy));
  if (ridge < pow(10, p->x1))
    printf("<path class=\"roof\" d=\"M%.1f %.1fH%d\"/>\n", at_x(p, fmax(ridge, left)),
           at_y(p, rates->matrix), WIDTH - RIGHT);
  snprintf(text, sizeof text, "matrix products: %g TFLOP/s", rates->matrix);
  before_or_above(at_x(p, fmax(ridge, left)) - 10, at_y(p, rates->matrix) + 4, text);
  snprintf(text, sizeof text, "copies: %g TB/s", rates->copy);
  if (from < to) before_or_above(at_x(p, to / 8) - 12, at_y(p, to / 8 * rates->copy), text);
}

static void point(void *context, const report_spec *s, const report_cell *c) {
  const plane *p = context;
  const double x = at_x(p, intensity(c)), y = at_y(p, report_tflops(c));
  const char *open = report_is_square(&c->shape) ? "" : " open", *pass = report_pass(s->like);
  printf("<g><title>");
  page_text(c->best->name);
  printf(" at ");
  page_shape(&c->shape);
  printf(": %.4g ms, %.4g TFLOP/s, %.3g TB/s, %.3g FLOP/byte</title>", c->best->ms,
         report_tflops(c), report_tbs(c), intensity(c));
  if (*pass == 'f')
    printf("<circle class=\"%s%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/></g>\n", pass, open, x, y);
  else
    printf("<path class=\"%s%s\" d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\"/></g>\n", pass, open, x, y - 5);
}

static void legend(void) {
  printf("<ul class=\"legend\">\n"
         "<li><svg width=\"12\" height=\"12\"><circle class=\"forward\" cx=\"6\" cy=\"6\" "
         "r=\"4\"/></svg>forward</li>\n"
         "<li><svg width=\"12\" height=\"12\"><path class=\"backward\" "
         "d=\"M6 1l5 5l-5 5l-5 -5z\"/></svg>backward</li>\n"
         "<li><svg width=\"12\" height=\"12\"><circle class=\"forward open\" cx=\"6\" cy=\"6\" "
         "r=\"4\"/></svg>open: other rows than keys, as in decoding</li>\n</ul>\n");
}

/* Shares of the roof, of cells of one pass and layout: how many, geometric mean, the least and
 * where. */
typedef struct {
  const cli_rates *rates;
  const char *pass;
  fg_layout layout;
  bool is_square;
  int n;
  double sum, least, most;
  const report_cell *worst;
} share;

static void add_share(void *context, const report_spec *s, const report_cell *c) {
  share *x = context;
  const fg_layout layout = fg_point_layout(&s->point);
  if (strcmp(report_pass(s->like), x->pass) || report_is_square(&c->shape) != x->is_square ||
      layout.q != x->layout.q || layout.kv != x->layout.kv || layout.slices != x->layout.slices ||
      layout.shard != x->layout.shard)
    return;
  double of = report_tflops(c) / fmin(x->rates->matrix, x->rates->copy * intensity(c));
  x->n++;
  x->sum += log(of);
  x->most = fmax(x->most, of);
  if (!x->worst || of < x->least) x->least = of, x->worst = c;
}

/* "forward, packed, rows = keys", "forward, packed rows, paged, other lengths". */
static void share_row(const share *x) {
  const char *q = fg_layout_words[x->layout.q], *kv = fg_layout_words[x->layout.kv];
  printf("<tr><td class=\"l\">%s", x->pass);
  if (x->layout.q != FG_DENSE && x->layout.q != x->layout.kv) printf(", %s rows", q);
  if (x->layout.kv != FG_DENSE) printf(", %s", kv);
  printf(", %s</td><td>%d</td><td>%.0f %%</td><td>%.0f %%</td><td>%.0f %%</td><td class=\"l\">"
         "<span class=\"name\">",
         x->is_square ? "rows = keys" : "other lengths", x->n, 100 * exp(x->sum / x->n),
         100 * x->most, 100 * x->least);
  page_text(x->worst->best->name);
  printf("</span> ");
  page_shape(&x->worst->shape);
  printf("</td></tr>\n");
}

static void shares(const report *r, const char *device, const cli_rates *rates) {
  printf("<div class=\"scroll\"><table>\n<caption>Share of the roof above a cell. The matrix rate "
         "is that of a bf16 product of 8192³ by cuBLAS, the copy rate counts bytes read and "
         "written (%s).</caption>\n<thead><tr><th class=\"l\">cells</th><th>n</th><th>mean</th>"
         "<th>best</th><th>least</th><th class=\"l\">least at</th></tr></thead>\n<tbody>\n",
         rates->source);
  for (int backward = 0; backward < 2; backward++)
    for (int q = FG_DENSE; q <= FG_PACKED; q++)
      for (int kv = 0; kv < FG_LAYOUTS; kv++)
        for (int other = 0; other < 2; other++) {
          share x = {.rates = rates,
                     .pass = backward ? "backward" : "forward",
                     .layout = {q, kv},
                     .is_square = !other};
          each_cell(r, device, add_share, &x);
          if (x.n) share_row(&x);
        }
  printf("</tbody></table></div>\n");
}

static void device(const report *r, const char *name) {
  const cli_rates *rates = cli_rates_of(name);
  plane p = {INFINITY, -INFINITY, INFINITY, -INFINITY};
  each_cell(r, name, widen, &p);
  printf("<h3>");
  page_text(name);
  printf("</h3>\n");
  if (!isfinite(p.x0)) {
    printf("<p>No cell has a time that counts and operations that are known.</p>\n");
    return;
  }
  if (rates) p.y1 = fmax(p.y1, log10(rates->matrix) + 0.12);
  if (rates) p.x0 = fmin(p.x0, log10(rates->matrix / rates->copy) - 0.3);
  page_picture("TFLOP/s of the fastest plans over operations for each byte", WIDTH, HEIGHT);
  grid(&p, true), grid(&p, false);
  if (rates) roofs(&p, rates);
  each_cell(r, name, point, &p);
  page_label((WIDTH + LEFT - RIGHT) / 2.0, HEIGHT - 12, "middle",
             "operations for each byte that must move, FLOP/byte");
  page_label(LEFT, 13, "middle", "TFLOP/s");
  page_picture_end();
  legend();
  if (rates)
    shares(r, name, rates);
  else
    printf("<p>What this device reaches at most is not known: there is no roof.</p>\n");
}

void report_roofs(const report *r) {
  page_section("roofs", "Speed against the device",
               "Each point is the fastest plan of a cell. Bytes are those of the tensors that some "
               "row needs, each moved once. The lines are what cuBLAS and a copy reach on this "
               "device, not what a data sheet says.");
  page_kinds(r, true);
  for (int i = 0; i < r->n_specs; i++) {
    bool seen = false;
    for (int j = 0; j < i; j++) seen |= !strcmp(r->spec[j].like->device, r->spec[i].like->device);
    if (!seen) device(r, r->spec[i].like->device);
  }
  printf("</section>\n");
}
