/* global.c - the primitives of global memory: each access lies in elements of one tensor, which
 * permits it, and is ordered with those of other threads: of other blocks by fences and atomics
 * alone. */
#include "block.h"
#include "cluster.h"
#include "memory.h"

#include <stdio.h>

/* What an access is called, and whether it writes, whether what it meets must have been written,
 * and whether what it leaves has been. */
static const struct {
  const char *verb;
  int writes, reads, stores;
} act[FGH_ACCESSES] = {{"load", 0, 1, 0},         {"store", 1, 0, 1},
                       {"atomic add", 1, 1, 0},   {"compare and swap", 1, 0, 0},
                       {"load_acquire", 0, 1, 0}, {"store_release", 1, 0, 1}};

/* ---- where an access lies ---- */

static inline u32 bits_at(const u8 *bits, size_t at) {
  u64 word;
  memcpy(&word, bits + at / 8, 8);
  return (u32)(word >> at % 8);
}

static inline int is_size(int bytes) {
  return bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

/* The tensor's first element in an access of whole existing elements, counted from `low`. */
static inline int holds(const fgh_tensor *t, const void *p, int bytes, size_t *first) {
  size_t offset = (size_t)((const u8 *)p - t->low), at = offset >> t->shift;
  u32 need = (1u << ((unsigned)bytes >> t->shift)) - 1;
  if (at >= (size_t)t->span || offset % (unsigned)t->is.elem || !need) return 0;
  *first = at;
  return (bits_at(t->exists, at) & need) == need;
}

static inline int permits(const fgh_tensor *t, fgh_access k, size_t first, int bytes) {
  u32 need = (1u << ((unsigned)bytes >> t->shift)) - 1;
  if (act[k].writes && !t->records) return 0;
  return !act[k].reads || !t->stored || (bits_at(t->stored, first) & need) == need;
}

static inline void mark_stored(const fgh_tensor *t, size_t first, int bytes) {
  u64 word, mark = (1u << ((unsigned)bytes >> t->shift)) - 1;
  memcpy(&word, t->stored + first / 8, 8);
  word |= mark << first % 8;
  memcpy(t->stored + first / 8, &word, 8);
}

/* ---- faults ---- */

/* Appends ", element [0,1,5,3]" of a tensor's element; nothing when the strides leave it in doubt.
 */
static void append_index(const fgh_tensor *t, size_t element, char *text, size_t size) {
  i64 index[4] = {0}, rest = (i64)element;
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

/* "byte 64 of tensor o, element [0,0,2,0]", the byte counted from the tensor's base. */
typedef struct words {
  char text[160];
} words;

static words element(const fgh_tensor *t, size_t at) {
  words w;
  long byte = (long)(t->low - (u8 *)t->is.base) + (long)(at << t->shift);
  snprintf(w.text, sizeof w.text, "byte %ld of tensor %s", byte, t->name);
  append_index(t, at, w.text, sizeof w.text);
  return w;
}

void fgh_global_place(const void *p, char *text, size_t size) {
  size_t first;
  for (int i = 0; i < fgh_memory->n; i++)
    if (holds(&fgh_memory->tensors[i], p, fgh_memory->tensors[i].is.elem, &first)) {
      snprintf(text, size, "%s", element(&fgh_memory->tensors[i], first).text);
      return;
    }
  fgh_memory_place(p, text, size);
}

/* No tensor has the elements: says how the access misses the nearest one. */
__attribute__((noreturn)) static void miss(fgh_access k, const void *p, int bytes) {
  const fgh_tensor *t = fgh_memory_nearest(p);
  if (!t) fgh_fault("%s of %d bytes outside of all tensors, at %p", act[k].verb, bytes, p);
  i64 at = (const u8 *)p - t->low, all = fgh_span_bytes(t);
  if (at < 0)
    fgh_fault("%s before the start of tensor %s: %lld bytes before", act[k].verb, t->name, -at);
  if (at + bytes > all)
    fgh_fault("%s past the end of tensor %s: byte %lld of %lld", act[k].verb, t->name,
              at < all ? all : at, all);
  if (bytes < t->is.elem || at % t->is.elem)
    fgh_fault("%s of part of an element of tensor %s: %d bytes at byte %lld, elements have %d",
              act[k].verb, t->name, bytes, at, t->is.elem);
  fgh_fault("%s touches a gap between rows of tensor %s: %d bytes at byte %lld", act[k].verb,
            t->name, bytes, at);
}

/* Some tensor has the elements, none permits the access; or none has them. */
__attribute__((noreturn, noinline)) static void refuse(fgh_access k, const void *p, int bytes) {
  size_t first;
  for (int i = 0; i < fgh_memory->n; i++) {
    const fgh_tensor *t = &fgh_memory->tensors[i];
    if (!holds(t, p, bytes, &first)) continue;
    if (act[k].writes && !t->records)
      fgh_fault("%s to a read-only tensor: %s", act[k].verb, element(t, first).text);
    while (bits_at(t->stored, first) & 1) first++;
    fgh_fault("%s of an element never written: %s", act[k].verb, element(t, first).text);
  }
  miss(k, p, bytes);
}

__attribute__((noreturn, noinline)) static void refuse_form(fgh_access k, const void *p,
                                                            int bytes) {
  char place[160];
  if (!is_size(bytes)) fgh_fault("%s of %d bytes: there are 2, 4, 8 and 16", act[k].verb, bytes);
  fgh_memory_place(p, place, sizeof place);
  fgh_fault("%s misaligned: %d bytes at %s", act[k].verb, bytes, place);
}

/* The element that an access begins with, and its tensor. */
static inline fgh_tensor *find(fgh_access k, const void *p, int bytes, size_t *first) {
  fgh_tensor *t = fgh_memory->last_hit[k];
  if (fgh_grid_waits && !fgh_self->grid_seen) fgh_grid_check(act[k].verb);
  if (!is_size(bytes) || (uintptr_t)p % (unsigned)bytes) refuse_form(k, p, bytes);
  if (t && holds(t, p, bytes, first) && permits(t, k, *first, bytes)) return t;
  for (int i = 0; i < fgh_memory->n; i++) {
    t = &fgh_memory->tensors[i];
    if (!holds(t, p, bytes, first) || !permits(t, k, *first, bytes)) continue;
    return fgh_memory->last_hit[k] = t;
  }
  refuse(k, p, bytes);
}

/* ---- races ---- */

/* Records know a thread by its seat too. */
static inline u16 in_seat(u32 thread) { return (u16)(fgh_seat * FGH_SEAT_THREADS + thread); }

static inline int of_this_block(u32 thread, u32 stamp) {
  return thread / FGH_SEAT_THREADS == fgh_seat && stamp >= fgh_block_start;
}

static inline int of_another_block(u32 thread, u32 stamp) {
  return stamp >= fgh_launch_start && !of_this_block(thread, stamp);
}

__attribute__((noreturn, noinline)) static void race(fgh_access k, const fgh_tensor *t, size_t at,
                                                     u32 thread, u32 stamp, const char *did) {
  words place = element(t, at);
  if (of_another_block(thread, stamp))
    fgh_fault("race: %s at %s, which another block %s: nothing orders blocks", act[k].verb,
              place.text, did);
  thread %= FGH_SEAT_THREADS;
  fgh_fault("race: %s at %s, which thread %u %s: no %s orders the two", act[k].verb, place.text,
            thread, did, thread / 32 == fgh_self->warp ? "warp_sync or barrier" : "barrier");
}

static inline int ordered(u32 thread, u32 stamp) {
  if (stamp < fgh_launch_start) return 1;
  if (!of_this_block(thread, stamp)) return fgh_handed_over(thread, stamp);
  return fgh_ordered(thread % FGH_SEAT_THREADS, stamp, fgh_self->id);
}

static inline void judge(fgh_access k, const fgh_tensor *t, size_t at, const fgh_trace *x,
                         const char *did) {
  for (int i = 0; i < 2; i++)
    if (!ordered(x->thread[i], x->stamp[i])) race(k, t, at, x->thread[i], x->stamp[i], did);
}

/* What another block did stays in the second place until this thread knows of it: a store to come
 * may not. */
static inline void add(fgh_trace *x, u32 stamp) {
  if (!ordered(x->thread[0], x->stamp[0]) &&
      (!of_another_block(x->thread[1], x->stamp[1]) || ordered(x->thread[1], x->stamp[1]))) {
    x->thread[1] = x->thread[0];
    x->stamp[1] = x->stamp[0];
  }
  x->thread[0] = in_seat(fgh_self->id);
  x->stamp[0] = stamp;
}

static inline void note(fgh_access k, const fgh_tensor *t, size_t at, int bytes) {
  u32 stamp = fgh_clocks[fgh_self->warp].stamp[fgh_self->lane];
  for (size_t end = at + ((unsigned)bytes >> t->shift); at < end; at++) {
    fgh_record *r = &t->records[at];
    if (!ordered(r->thread, r->stamp)) race(k, t, at, r->thread, r->stamp, "stores to");
    if (k < FGH_ATOMIC) judge(k, t, at, &r->atomics, "adds to");
    if (act[k].writes) judge(k, t, at, &r->loads, "loads");
    if (k == FGH_LOAD) add(&r->loads, stamp);
    if (k >= FGH_ATOMIC) add(&r->atomics, stamp);
    if (k == FGH_STORE) {
      r->thread = in_seat(fgh_self->id);
      r->stamp = stamp;
    }
  }
}

/* ---- two proxies: what threads wrote is not TMA's to read before a fence of who asks for it ----
 */

enum { FENCES_MAX = 0xffff }; /* from there on nothing is said */
static u32 fences;            /* of the launch, those with writes before them; from 1 */
static int written_since;

void fgh_global_launch(void) {
  fences = 1;
  written_since = 0;
}

void fgh_fence_async_global(void) {
  FGH_ENTER();
  if (written_since && fences < FENCES_MAX) fences++;
  written_since = 0;
  fgh_self->global_fence = fences;
}

static void write_by(const fgh_tensor *t, size_t at, int bytes, u32 proxy_fences) {
  for (size_t end = at + ((unsigned)bytes >> t->shift); at < end; at++)
    t->records[at].written = (u16)proxy_fences;
}

static void check_fenced(const fgh_tensor *t, size_t at, int bytes) {
  for (size_t end = at + ((unsigned)bytes >> t->shift); at < end; at++) {
    const fgh_record *r = &t->records[at];
    if (r->written < fgh_self->global_fence || !r->written ||
        (r->stamp < fgh_launch_start && r->atomics.stamp[0] < fgh_launch_start))
      continue;
    fgh_fault("TMA reads %s, which a thread of this grid wrote, and this one called no "
              "fence_async_global since",
              element(t, at).text);
  }
}

/* ---- accesses ---- */

fgh_tensor *fgh_global_touch(fgh_access k, const void *p, int bytes) {
  size_t at;
  fgh_tensor *t = find(k, p, bytes, &at);
  if (t->records) note(k, t, at, bytes);
  if (act[k].writes) {
    write_by(t, at, bytes, fences < FENCES_MAX ? fences : 0);
    written_since = 1;
  }
  if (act[k].stores && t->stored) mark_stored(t, at, bytes);
  return t;
}

void fgh_global_mark(const fgh_tensor *t, const void *p, int bytes) {
  if (t->stored) mark_stored(t, (size_t)((const u8 *)p - t->low) >> t->shift, bytes);
}

int fgh_global_fetch(const void *from, void *value, int bytes) {
  const fgh_tensor *t = fgh_global_touch(FGH_LOAD, from, bytes);
  if (t->records) check_fenced(t, (size_t)((const u8 *)from - t->low) >> t->shift, bytes);
  fgh_copy(value, from, bytes);
  return t->records != NULL;
}

void fgh_global_deliver(void *to, const void *value, int bytes) {
  const fgh_tensor *t = fgh_global_touch(FGH_STORE, to, bytes);
  write_by(t, (size_t)((u8 *)to - t->low) >> t->shift, bytes, 0);
  fgh_copy(to, value, bytes);
}

void fgh_global_unchanged(const void *from, const void *value, int bytes, const char *what) {
  size_t first;
  const fgh_tensor *t = find(FGH_LOAD, from, bytes, &first);
  const size_t end = first + ((unsigned)bytes >> t->shift);
  for (size_t at = first; t->records && at < end; at++) {
    const fgh_record *r = &t->records[at];
    if (!ordered(r->thread, r->stamp)) race(FGH_LOAD, t, at, r->thread, r->stamp, "stores to");
  }
  if (memcmp(from, value, (size_t)bytes))
    fgh_fault("race: %s was stored to while a %s of the thread was reading it",
              element(t, first).text, what);
}

int fgh_global_read(const void *from, void *value, int bytes) {
  fgh_preempt();
  const fgh_tensor *t = fgh_global_touch(FGH_LOAD, from, bytes);
  fgh_copy(value, from, bytes);
  return t->records != NULL;
}

void fgh_global_load(const void *from, void *value, int bytes) {
  FGH_ENTER();
  fgh_global_read(from, value, bytes);
}

void fgh_global_store(void *to, const void *value, int bytes) {
  FGH_ENTER();
  fgh_preempt();
  fgh_global_touch(FGH_STORE, to, bytes);
  fgh_copy(to, value, bytes);
}
