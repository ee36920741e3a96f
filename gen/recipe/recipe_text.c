/* recipe_text.c - a recipe as text; recipe_parse.c reads it back. */
#include "recipe_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fg_lines_add(fg_lines *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(l->text + l->n, l->size - (size_t)l->n, format, args);
  va_end(args);
  if (n >= 0 && (size_t)n < l->size - (size_t)l->n) {
    l->n += n;
  } else {
    l->full = true;
    l->text[l->n] = 0;
  }
}

void fg_recipe_shape_print(const fg_recipe *r, const char *axes, size_t size, char *text) {
  fg_lines l = {text, size, 0, false};
  for (int i = 0; axes[i]; i++) {
    const char *separator = i ? ", " : "[";
    char own[256];
    if (axes[i] != '1' && fg_recipe_has_width(r, axes[i])) {
      fg_lines_add(&l, "%s%d", separator, (int)fg_recipe_extent(r, axes[i], NULL));
    } else if (axes[i] >= 'A' && axes[i] < 'A' + FG_EXTENT_MAX) {
      fg_expr_print(&r->extent[axes[i] - 'A'], sizeof own, own);
      fg_lines_add(&l, "%s%s", separator, own);
    } else
      fg_lines_add(&l, "%s%s", separator, fg_axis_name(axes[i]));
  }
  fg_lines_add(&l, "]");
}

enum { EXPR = 768 };

static void print_zero(fg_lines *l, const fg_recipe *r, const fg_step *s) {
  fg_lines_add(l, "zero");
  for (int i = 0; i < s->regions; i++) fg_lines_add(l, " %s", r->region[s->region + i].name);
  fg_lines_add(l, "\n");
}

static void print_launch(fg_lines *all, const fg_step *s) {
  char text[FG_RECIPE_LINE], expr[EXPR];
  fg_lines l = {text, sizeof text, 0, false};
  fg_lines_add(&l, "launch %s grid", s->entry);
  for (int a = 0; a < 3; a++) {
    fg_expr_print(&s->grid[a], sizeof expr, expr);
    fg_lines_add(&l, "%s %s", a ? "," : "", expr);
  }
  fg_expr_print(&s->work, sizeof expr, expr);
  fg_lines_add(&l, " threads %d shared %d registers %d", s->threads, s->shared_bytes, s->registers);
  if (s->cluster > 1) fg_lines_add(&l, " cluster %d", s->cluster);
  if (s->resident) fg_lines_add(&l, " resident %d", s->resident);
  fg_lines_add(all, "%s%s work %s\n", text, s->early ? " early" : "", expr);
}

static void print_map(fg_lines *l, const fg_recipe *r, const fg_map *m) {
  char blocks[16] = "";
  if (m->blocks) snprintf(blocks, sizeof blocks, " %d", m->blocks);
  fg_lines_add(l, "map %s %s %d %d%s swizzle %d%s\n", m->name, fg_map_of(r, m), m->columns, m->rows,
               blocks, m->swizzle, m->ragged ? " ragged" : "");
}

int fg_recipe_print(const fg_recipe *r, size_t size, char *text) {
  fg_lines l = {text, size, 0, false};
  char buffer[EXPR], widths[FG_WIDTHS_MAX + 1];
  if (r->kernel) fg_lines_add(&l, "kernel %s\n", fg_recipe_kind(r)->name);
  const char *more = r->layout.slices ? " slices" : r->layout.shard ? " shard" : "";
  const char *latent = r->layout.latent ? " latent" : "";
  if (r->layout.q || r->layout.kv || *more || *latent)
    fg_lines_add(&l, "layout %s %s%s%s\n", fg_layout_words[r->layout.q],
                 fg_layout_words[r->layout.kv], more, latent);
  fg_lines_add(&l, "%s", fg_recipe_kind(r)->width_field);
  for (size_t i = 0; i < strlen(fg_kind_widths(fg_recipe_kind(r), widths)); i++)
    fg_lines_add(&l, " %d", r->width[i]);
  fg_lines_add(&l, "\nalign %d\n", r->align);
  if (r->generation > 1) fg_lines_add(&l, "generation %d\n", r->generation);
  if (r->whole.n) {
    fg_expr_print(&r->whole, sizeof buffer, buffer);
    fg_lines_add(&l, "whole %s\n", buffer);
  }
  for (int i = 0; i < r->n_tensors; i++) {
    const fg_recipe_tensor *t = &r->tensor[i];
    fg_recipe_shape_print(r, t->axes, sizeof buffer, buffer);
    if (t->slot >= 0)
      fg_lines_add(&l, "input %d ", t->slot);
    else
      fg_lines_add(&l, "tensor ");
    bool may = t->optional && !t->argument->optional;
    fg_lines_add(&l, "%s %s", t->name, t->kept ? "inout" : t->output ? "out" : "in");
    if (t->unless)
      fg_lines_add(&l, "|%s", r->tensor[t->unless - 1].name);
    else if (may)
      fg_lines_add(&l, "?");
    fg_lines_add(&l, " %s %s\n", fg_elem_name(t->elem), *t->axes ? buffer : "[]");
  }
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++)
    if (r->takes >> i & 1) fg_lines_add(&l, "takes %s\n", fg_launch_numbers[i].name);
  for (int i = 0; i < r->n_numbers; i++)
    fg_lines_add(&l, "number %d %s %s\n", r->number[i].slot, r->number[i].name,
                 r->number[i].real ? "float" : "int");
  for (int i = 0; i < r->n_regions; i++) {
    fg_expr_print(&r->region[i].count, sizeof buffer, buffer);
    char width[16] = "";
    if (r->region[i].width) snprintf(width, sizeof width, " %d", r->region[i].width);
    fg_lines_add(&l, "region %s %s%s: %s\n", r->region[i].name, fg_elem_name(r->region[i].elem),
                 width, buffer);
  }
  for (int i = 0; i < r->n_maps; i++) print_map(&l, r, &r->map[i]);
  for (int i = 0; i < r->n_steps; i++) {
    if (r->step[i].kind == FG_STEP_ZERO)
      print_zero(&l, r, &r->step[i]);
    else
      print_launch(&l, &r->step[i]);
  }
  return l.n;
}
