/* layout.c - axes and extents of layouts of sequences. */
#include "layout.h"

#include <string.h>

const char *const fg_layout_words[FG_LAYOUTS + 1] = {"dense", "packed", "cached", "paged", NULL};

const char *fg_layout_extents(fg_layout layout, char letters[FG_LAYOUT_EXTENTS + 1]) {
  static const char *const of_keys[FG_LAYOUTS] = {"", "t", "y", "yz"};
  strcpy(letters, layout.q == FG_PACKED ? "s" : "");
  strcat(letters, of_keys[layout.kv]);
  return strcat(letters, layout.slices ? "l" : "");
}

/* The letter that stands for an axis of queries (q) or keys (k), or for the batch beside them. */
static char laid_out_axis(int layout, char axis) {
  if (layout == FG_PACKED) return axis == 'q' ? 's' : axis == 'k' ? 't' : '1';
  if (layout == FG_DENSE) return axis;
  if (axis == 'b') return 'y';
  return layout == FG_PAGED ? 'z' : axis;
}

void fg_layout_axes(fg_layout layout, const char *axes, char *laid_out) {
  const bool has_q = strchr(axes, 'q'), has_k = strchr(axes, 'k');
  const int own = has_q ? layout.q : has_k ? layout.kv : FG_DENSE;
  int n = 0;
  for (const char *at = axes; *at; at++) {
    const int of = *at == 'k' ? layout.kv : layout.q;
    char axis = *at;
    if (has_q && has_k)
      axis = strchr("qk", axis) && of == FG_PACKED ? laid_out_axis(of, axis) : axis;
    else if (strchr("bqk", axis))
      axis = laid_out_axis(own, axis);
    if (axis != '1') laid_out[n++] = axis;
  }
  laid_out[n] = 0;
}

bool fg_layout_fill(fg_layout layout, fg_shape *s) {
  const bool is_paged = layout.kv == FG_PAGED, has_caches = is_paged || layout.kv == FG_CACHED;
  if ((s->tokens_q && layout.q != FG_PACKED) || (s->tokens_k && layout.kv != FG_PACKED) ||
      (s->pages && !has_caches) || is_paged != (s->page > 0) || (s->slices && !layout.slices))
    return false;
  if (layout.q == FG_PACKED && !s->tokens_q) s->tokens_q = s->b * s->nq;
  if (layout.kv == FG_PACKED && !s->tokens_k) s->tokens_k = s->b * s->nk;
  if (is_paged && !s->pages) s->pages = s->b * ((s->nk + s->page - 1) / s->page);
  return true;
}
