/* find.c - the cold half of find.h: places in tensors, and why an access is refused. */
#include "find.h"

#include <stdio.h>

const fgh_act fgh_acts[FGH_ACCESSES] = {{"load", 0, 1, 0},         {"store", 1, 0, 1},
                                        {"atomic add", 1, 1, 0},   {"compare and swap", 1, 0, 0},
                                        {"load_acquire", 0, 1, 0}, {"store_release", 1, 0, 1}};

/* Appends ", element [0,1,5,3]" of a tensor's element; nothing when the strides leave it in doubt.
 */
static void append_index(const fgh_tensor *t, size_t element, char *text, size_t size) {
  i64 index[FG_HOST_AXES] = {0}, rest = (i64)element;
  const fg_host_tensor *is = &t->is;
  u32 left = (1u << is->rank) - 1;
  while (left) { /* the longest step first */
    int axis = -1;
    i64 longest = -1;
    for (int i = 0; i < is->rank; i++) {
      i64 step = is->stride[i] < 0 ? -is->stride[i] : is->stride[i];
      if (!(left >> i & 1) || step <= longest) continue;
      axis = i;
      longest = step;
    }
    left &= ~(1u << axis);
    if (longest == 0 || is->extent[axis] == 1) continue;
    i64 i = rest / longest < is->extent[axis] ? rest / longest : is->extent[axis] - 1;
    rest -= i * longest;
    index[axis] = is->stride[axis] < 0 ? is->extent[axis] - 1 - i : i;
  }
  if (rest) return;
  size_t used = strlen(text);
  for (int i = 0; i < is->rank && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%lld%s", i ? "," : ", element [",
                             index[i], i == is->rank - 1 ? "]" : "");
}

fgh_words fgh_element(const fgh_tensor *t, size_t at) {
  fgh_words w;
  long byte = (long)(t->low - (u8 *)t->is.base) + (long)(at << t->shift);
  snprintf(w.text, sizeof w.text, "byte %ld of tensor %s", byte, t->name);
  append_index(t, at, w.text, sizeof w.text);
  return w;
}

void fgh_global_place(const void *p, char *text, size_t size) {
  size_t first;
  for (int i = 0; i < fgh_memory->n; i++)
    if (fgh_holds(&fgh_memory->tensors[i], p, fgh_memory->tensors[i].is.elem, &first)) {
      snprintf(text, size, "%s", fgh_element(&fgh_memory->tensors[i], first).text);
      return;
    }
  fgh_memory_place(p, text, size);
}

/* No tensor has the elements: says how the access misses the nearest one. */
__attribute__((noreturn)) static void miss(fgh_access k, const void *p, int bytes) {
  const fgh_tensor *t = fgh_memory_nearest(p);
  if (!t) fgh_fault("%s of %d bytes outside of all tensors, at %p", fgh_acts[k].verb, bytes, p);
  i64 at = (const u8 *)p - t->low, all = fgh_span_bytes(t);
  if (at < 0)
    fgh_fault("%s before the start of tensor %s: %lld bytes before", fgh_acts[k].verb, t->name,
              -at);
  if (at + bytes > all)
    fgh_fault("%s past the end of tensor %s: byte %lld of %lld", fgh_acts[k].verb, t->name,
              at < all ? all : at, all);
  if (bytes < t->is.elem || at % t->is.elem)
    fgh_fault("%s of part of an element of tensor %s: %d bytes at byte %lld, elements have %d",
              fgh_acts[k].verb, t->name, bytes, at, t->is.elem);
  fgh_fault("%s touches a gap between rows of tensor %s: %d bytes at byte %lld", fgh_acts[k].verb,
            t->name, bytes, at);
}

/* Some tensor has the elements, none permits the access; or none has them. */
void fgh_refuse(fgh_access k, const void *p, int bytes) {
  size_t first;
  for (int i = 0; i < fgh_memory->n; i++) {
    const fgh_tensor *t = &fgh_memory->tensors[i];
    if (!fgh_holds(t, p, bytes, &first)) continue;
    if (fgh_acts[k].writes && !t->records)
      fgh_fault("%s to a read-only tensor: %s", fgh_acts[k].verb, fgh_element(t, first).text);
    while (fgh_bits_at(t->stored, first) & 1) first++;
    fgh_fault("%s of an element never written: %s", fgh_acts[k].verb, fgh_element(t, first).text);
  }
  miss(k, p, bytes);
}

void fgh_refuse_form(fgh_access k, const void *p, int bytes) {
  char place[160];
  if (!fgh_is_size(bytes))
    fgh_fault("%s of %d bytes: there are 2, 4, 8 and 16", fgh_acts[k].verb, bytes);
  fgh_memory_place(p, place, sizeof place);
  fgh_fault("%s misaligned: %d bytes at %s", fgh_acts[k].verb, bytes, place);
}
