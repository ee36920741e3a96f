/* verify_wrong.c - which element of an output is wrong. */
#include "verify_wrong.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool verify_wrong_swapped(const fg_recipe *recipe, int tensor, const fg_shape *shape,
                          int64_t extent[FG_AXES_MAX]) {
  const fg_recipe_tensor *t = &recipe->tensor[tensor];
  for (int a = 0; a < FG_AXES_MAX; a++) extent[a] = 1;
  for (int a = 0; t->axes[a]; a++) extent[a] = fg_recipe_extent(recipe, t->axes[a], shape);
  return t->slot < 0 && t->axes[1] != 'b' && (t->axes[2] == 'h' || t->axes[2] == 'g');
}

/* "o[0, 3, 1, 5]" of an index in the oracle's order. */
static int print_place(const fg_recipe *recipe, int tensor, const fg_shape *shape, int64_t index,
                       size_t size, char *text) {
  const fg_recipe_tensor *t = &recipe->tensor[tensor];
  int64_t extent[FG_AXES_MAX], at[FG_AXES_MAX];
  const bool swapped = verify_wrong_swapped(recipe, tensor, shape, extent);
  const int order[FG_AXES_MAX] = {0, swapped ? 2 : 1, swapped ? 1 : 2, 3, 4};
  for (int a = FG_AXES_MAX - 1; a >= 0; a--) {
    at[order[a]] = index % extent[order[a]];
    index /= extent[order[a]];
  }
  int n = snprintf(text, size, "%s[", t->name);
  for (int a = 0; t->axes[a]; a++) n = fg_append(size, text, n, "%s%" PRId64, a ? ", " : "", at[a]);
  return fg_append(size, text, n, "]");
}

static void print_value(double x, char text[32]) {
  snprintf(text, 32, isnan(x) ? "NaN" : "%.6g", x);
}

void verify_wrong_tell(const fg_recipe *recipe, int tensor, const fg_shape *shape, const double *x,
                       const double *ref, size_t size, char *text) {
  const int64_t count = fg_tensor_count(recipe, &recipe->tensor[tensor], shape);
  int64_t unlike = 0, first = -1, furthest = 0, zeros = 0;
  double most = -1;
  for (int64_t i = 0; i < count; i++) {
    const double off = fabs(x[i] - ref[i]);
    const bool alike = x[i] >= ref[i] && x[i] <= ref[i];
    zeros += x[i] >= 0 && x[i] <= 0;
    if (!isfinite(x[i]) && !alike) {
      if (!unlike++) first = i;
    } else if (off > most) {
      most = off, furthest = i;
    }
  }
  char is[32], should[32];
  const int64_t at = unlike ? first : furthest;
  int n = print_place(recipe, tensor, shape, at, size, text);
  print_value(x[at], is);
  print_value(ref[at], should);
  n = fg_append(size, text, n, " is %s, expected %s", is, should);
  if (unlike)
    fg_append(size, text, n,
              ", the first of %" PRId64 " of %" PRId64 " elements that are not finite", unlike,
              count);
  else
    fg_append(size, text, n, ", the furthest off of %" PRId64 " elements%s", count,
              zeros == count ? ", which are all 0" : "");
}

bool verify_wrong_blank(int64_t n, fg_elem elem, const double *x, const double *ref,
                        const double *rss) {
  const double least = elem == FG_ELEM_F16 ? 0x1p-14 : 0x1p-100; /* it has as a normal number */
  double largest = 0, norm = 0, terms = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(x[i] >= 0 && x[i] <= 0)) return false;
    largest = fmax(largest, fabs(ref[i]));
    norm += ref[i] * ref[i];
    terms += rss[i] * rss[i];
  }
  return largest > least && norm > 1e-10 * terms;
}
