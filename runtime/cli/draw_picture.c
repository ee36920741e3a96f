/* draw_picture.c - a mask's picture as text and as SVG. */
#include "draw.h"

#include <inttypes.h>

/* One batch and head of a picture. */
static const bool *panel(const cli_picture *p, int64_t i) {
  return p->visible + i * p->shape.nq * p->shape.nk;
}

/* "36 of 64 pairs are visible, none behind the query's place: causal" */
static void caption(const cli_picture *p, FILE *to) {
  const fg_shape *s = &p->shape;
  fprintf(to, "%" PRId64 " of %" PRId64 " pairs are visible%s", p->seen,
          s->b * s->h * s->nq * s->nk, p->is_causal ? "; causal: no key after its query" : "");
}

/* The last digit of a key stands above its column. */
static void text_head(const cli_picture *p, FILE *to) {
  fprintf(to, "  q \\ k ");
  for (int64_t k = 0; k < p->shape.nk; k++) fprintf(to, " %d", (int)(k % 10));
  fputc('\n', to);
}

void cli_picture_text(const cli_picture *p, FILE *to) {
  const fg_shape *s = &p->shape;
  fprintf(to, "mask=%s\n", p->mask);
  for (int64_t i = 0; i < s->b * s->h; i++) {
    if (s->b * s->h > 1) fprintf(to, "b=%" PRId64 " h=%" PRId64 "\n", i / s->h, i % s->h);
    text_head(p, to);
    for (int64_t q = 0; q < s->nq; q++) {
      fprintf(to, "  %5" PRId64 " ", q);
      for (int64_t k = 0; k < s->nk; k++)
        fprintf(to, " %c", panel(p, i)[q * s->nk + k] ? '#' : '.');
      fputc('\n', to);
    }
  }
  caption(p, to);
  fputc('\n', to);
}

enum { CELL = 20, GAP = 2, LEFT = 34, TOP = 34, BETWEEN = 16 };

static void svg_panel(const cli_picture *p, int64_t i, FILE *to) {
  const fg_shape *s = &p->shape;
  const int64_t x0 = LEFT + i * (s->nk * CELL + BETWEEN);
  if (s->b * s->h > 1)
    fprintf(to, "<text x=\"%" PRId64 "\" y=\"12\">b=%" PRId64 " h=%" PRId64 "</text>\n", x0,
            i / s->h, i % s->h);
  for (int64_t k = 0; k < s->nk; k++)
    fprintf(to, "<text class=\"n\" x=\"%" PRId64 "\" y=\"%d\">%" PRId64 "</text>\n",
            x0 + k * CELL + CELL / 2 - GAP / 2, TOP - 6, k);
  for (int64_t q = 0; q < s->nq; q++)
    for (int64_t k = 0; k < s->nk; k++)
      fprintf(to, "<rect class=\"%s\" x=\"%" PRId64 "\" y=\"%" PRId64 "\"/>\n",
              panel(p, i)[q * s->nk + k] ? "v" : "h", x0 + k * CELL, TOP + q * CELL);
}

static void put_text(const char *text, FILE *to) {
  for (; *text; text++) {
    const char *mark = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "";
    if (*mark)
      fputs(mark, to);
    else
      fputc(*text, to);
  }
}

/* Colours that are seen on white and on black. */
void cli_picture_svg(const cli_picture *p, FILE *to) {
  const fg_shape *s = &p->shape;
  const int64_t width = LEFT + s->b * s->h * (s->nk * CELL + BETWEEN), height = TOP + s->nq * CELL;
  fprintf(to,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%" PRId64 "\" height=\"%" PRId64
          "\" viewBox=\"0 0 %" PRId64 " %" PRId64 "\">\n<title>",
          width, height, width, height);
  put_text(p->mask, to);
  fputs(": ", to);
  caption(p, to);
  fprintf(to,
          "</title>\n<style>rect{width:%dpx;height:%dpx}.v{fill:#3b82c4}.h{fill:#888;fill-opacity:"
          ".18}text{font:12px sans-serif;fill:#888}.n{text-anchor:middle}</style>\n",
          CELL - GAP, CELL - GAP);
  fprintf(to, "<text x=\"2\" y=\"%d\">q \\ k</text>\n", TOP - 6);
  for (int64_t q = 0; q < s->nq; q++)
    fprintf(to, "<text class=\"n\" x=\"18\" y=\"%" PRId64 "\">%" PRId64 "</text>\n",
            TOP + q * CELL + 13, q);
  for (int64_t i = 0; i < s->b * s->h; i++) svg_panel(p, i, to);
  fputs("</svg>\n", to);
}
