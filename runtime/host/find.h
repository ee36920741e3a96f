/* find.h - where an access to global memory lies: in which tensor, and whether that permits it. */
#ifndef FG_HOST_FIND_H
#define FG_HOST_FIND_H

#include "block.h"
#include "cluster.h"
#include "memory.h"

/* What an access is called, and whether it writes, whether what it meets must have been written,
 * and whether what it leaves has been. */
typedef struct fgh_act {
  const char *verb;
  int writes, reads, stores;
} fgh_act;

extern const fgh_act fgh_acts[FGH_ACCESSES];

/* "byte 64 of tensor o, element [0,0,2,0]", the byte counted from the tensor's base. */
typedef struct fgh_words {
  char text[160];
} fgh_words;

fgh_words fgh_element(const fgh_tensor *t, size_t at);

/* No tensor permits the access; or nothing could, as it is formed: says why. */
__attribute__((noreturn)) void fgh_refuse(fgh_access k, const void *p, int bytes);
__attribute__((noreturn)) void fgh_refuse_form(fgh_access k, const void *p, int bytes);

static inline u32 fgh_bits_at(const u8 *bits, size_t at) {
  u64 word;
  memcpy(&word, bits + at / 8, 8);
  return (u32)(word >> at % 8);
}

static inline int fgh_is_size(int bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

/* The tensor's first element in an access of whole existing elements, counted from `low`. */
static inline int fgh_holds(const fgh_tensor *t, const void *p, int bytes, size_t *first) {
  size_t offset = (size_t)((const u8 *)p - t->low), at = offset >> t->shift;
  u32 need = (1u << ((unsigned)bytes >> t->shift)) - 1;
  if (at >= (size_t)t->span || offset % (unsigned)t->is.elem || !need) return 0;
  *first = at;
  return (fgh_bits_at(t->exists, at) & need) == need;
}

static inline int fgh_permits(const fgh_tensor *t, fgh_access k, size_t first, int bytes) {
  u32 need = (1u << ((unsigned)bytes >> t->shift)) - 1;
  if (fgh_acts[k].writes && !t->records) return 0;
  return !fgh_acts[k].reads || !t->stored || (fgh_bits_at(t->stored, first) & need) == need;
}

static inline void fgh_mark_stored(const fgh_tensor *t, size_t first, int bytes) {
  u64 word, mark = (1u << ((unsigned)bytes >> t->shift)) - 1;
  memcpy(&word, t->stored + first / 8, 8);
  word |= mark << first % 8;
  memcpy(t->stored + first / 8, &word, 8);
}

/* The element that an access begins with, and its tensor. */
static inline fgh_tensor *fgh_find(fgh_access k, const void *p, int bytes, size_t *first) {
  fgh_tensor *t = fgh_memory->last_hit[k];
  if (fgh_grid_waits && !fgh_self->grid_seen) fgh_grid_check(fgh_acts[k].verb);
  if (!fgh_is_size(bytes) || (uintptr_t)p % (unsigned)bytes) fgh_refuse_form(k, p, bytes);
  if (t && fgh_holds(t, p, bytes, first) && fgh_permits(t, k, *first, bytes)) return t;
  for (int i = 0; i < fgh_memory->n; i++) {
    t = &fgh_memory->tensors[i];
    if (!fgh_holds(t, p, bytes, first) || !fgh_permits(t, k, *first, bytes)) continue;
    return fgh_memory->last_hit[k] = t;
  }
  fgh_refuse(k, p, bytes);
}

#endif
