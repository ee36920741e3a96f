/* work.c - the rows of work.h, and what follows from them. */
#include "work.h"

#include "measure.h"

#include "recipe/extent.h"

#include <string.h>

/* In the order of fg_kinds. */
static const cli_work *const rows[FG_KINDS] = {&cli_work_attention, &cli_work_logsoftmax,
                                               &cli_work_combine, &cli_work_append,
                                               &cli_work_layernorm, &cli_work_linear};

const cli_work *cli_work_of(const fg_point *point) { return rows[point->kernel]; }

double cli_flops(const cli *c, const fg_point *p, const fg_shape *s) {
  return cli_work_of(p)->flops(c, p, s);
}

bool cli_flops_known(const cli *c, const fg_point *p) { return cli_work_of(p)->flops_known(c, p); }

double cli_bytes(const cli *c, const fg_point *point, const fg_recipe *recipe,
                 const fg_shape *shape) {
  const cli_work *work = cli_work_of(point);
  const double seen = work->seen_keys ? work->seen_keys(c, point, shape) : 1;
  const double written = work->written ? work->written(shape) : 1;
  double bytes = 0;
  for (int i = 0; i < recipe->n_tensors; i++) {
    const fg_recipe_tensor *t = &recipe->tensor[i];
    const fg_recipe_tensor *other = t->unless ? &recipe->tensor[t->unless - 1] : NULL;
    if (cli_leaves_out(c, t->name)) continue;
    if (other && !cli_leaves_out(c, other->name)) continue; /* that one is read in its place */
    const bool by_keys = !t->output && strpbrk(t->axes, "kty");
    bytes += (double)fg_tensor_count(recipe, t, shape) * (double)fg_elem_size(t->elem) *
             (t->kept   ? written
              : by_keys ? seen
                        : 1);
  }
  return bytes;
}

/* The extent that words give under its own name or its fellow's; -1: neither. */
static int64_t given(const fg_shape *words, const fg_extent_row *extent) {
  const int64_t own = fg_extent_get(extent, words);
  return own >= 0 || !extent->fellow ? own : fg_extent_get(fg_extent_of(extent->fellow), words);
}

fg_status cli_shape_fill(const cli *c, const fg_point *point, const fg_shape *usual,
                         fg_shape *shape) {
  const fg_shape *words = &c->arguments.shape;
  const fg_kind *kind = fg_point_kind(point);
  *shape = (fg_shape){.size = usual->size};
  for (int i = 0; i < FG_EXTENTS; i++) {
    const fg_extent_row *extent = &fg_extents[i];
    const int64_t word = given(words, extent), other = fg_extent_get(extent, usual);
    if (fg_form_has(kind->form, extent->letter))
      fg_extent_set(extent, shape, word >= 0 ? word : extent->letter == 'b' ? 1 : other);
    else if (fg_extent_get(extent, words) >= 0)
      return fg_fail(FG_EARGUMENT, "%s: kernel=%s has no such extent", extent->name, kind->name);
  }
  return fg_shape_check_of(kind, shape);
}

/* The layout's tokens go with a length that is not given. */
static void take_mean(const cli *c, const fg_shape *s, int64_t tokens, const char *name,
                      int64_t *length) {
  const int64_t word = given(&c->arguments.shape, fg_extent_find(name));
  if (word < 0 && tokens && s->b) *length = (tokens + s->b - 1) / s->b;
}

fg_status cli_shape_lay_out(const cli *c, const fg_point *point, fg_shape *s) {
  const fg_layout layout = fg_point_layout(point);
  char letters[FG_LAYOUT_EXTENTS + 1];
  fg_layout_extents(layout, letters);
  for (const char *x = fg_point_kind(point)->form->layout; *x; x++) {
    const fg_extent_row *extent = fg_extent_of(*x);
    if (strchr(letters, *x)) continue;
    if (fg_extent_get(extent, &c->arguments.shape) > 0)
      return fg_fail(FG_EARGUMENT,
                     "%s: a spec with q_layout=%s, kv_layout=%s, slices=%s has no such extent",
                     extent->name, fg_layout_words[layout.q], fg_layout_words[layout.kv],
                     layout.slices ? "true" : "false");
    fg_extent_set(extent, s, 0);
  }
  take_mean(c, s, s->tokens_q, "nq", &s->nq);
  take_mean(c, s, s->tokens_k, "nk", &s->nk);
  if (layout.kv == FG_PAGED && !s->page) s->page = 16;
  if (layout.slices && !s->slices) s->slices = s->b;
  if (layout.slices && s->b) s->nq *= s->b, s->nk *= s->b, s->b = 1;
  fg_layout_fill(layout, s);
  return fg_shape_check_of(fg_point_kind(point), s);
}
