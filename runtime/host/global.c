/* global.c - the primitives of global memory: each access lies in elements of one tensor, which
 * permits it, and is ordered with those of other threads: of other blocks by fences and atomics
 * alone. */
#include "block.h"
#include "find.h"

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
  fgh_words place = fgh_element(t, at);
  if (of_another_block(thread, stamp))
    fgh_fault("race: %s at %s, which another block %s: nothing orders blocks", fgh_acts[k].verb,
              place.text, did);
  thread %= FGH_SEAT_THREADS;
  fgh_fault("race: %s at %s, which thread %u %s: no %s orders the two", fgh_acts[k].verb,
            place.text, thread, did,
            thread / 32 == fgh_self->warp ? "warp_sync or barrier" : "barrier");
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

/* Judges the access against the last ones, and takes its place among them. */
static inline void note(fgh_access k, const fgh_tensor *t, size_t at, int bytes) {
  u32 stamp = fgh_clocks[fgh_self->warp].stamp[fgh_self->lane];
  for (size_t end = at + ((unsigned)bytes >> t->shift); at < end; at++) {
    fgh_record *r = &t->records[at];
    if (!ordered(r->thread, r->stamp)) race(k, t, at, r->thread, r->stamp, "stores to");
    if (k < FGH_ATOMIC) judge(k, t, at, &r->atomics, "adds to");
    if (fgh_acts[k].writes) judge(k, t, at, &r->loads, "loads");
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
static u32 fences; /* of the launch, from 1; a fence counts if a write came since the last one */
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

/* A fence of the running thread lies behind the last write to each element. */
static void check_fenced(const fgh_tensor *t, size_t at, int bytes) {
  for (size_t end = at + ((unsigned)bytes >> t->shift); at < end; at++) {
    const fgh_record *r = &t->records[at];
    if (r->written < fgh_self->global_fence || !r->written ||
        (r->stamp < fgh_launch_start && r->atomics.stamp[0] < fgh_launch_start))
      continue;
    fgh_fault("TMA reads %s, which a thread of this grid wrote, and this one called no "
              "fence_async_global since",
              fgh_element(t, at).text);
  }
}

/* ---- accesses ---- */

fgh_tensor *fgh_global_touch(fgh_access k, const void *p, int bytes) {
  size_t at;
  fgh_tensor *t = fgh_find(k, p, bytes, &at);
  if (t->records) note(k, t, at, bytes);
  if (fgh_acts[k].writes) {
    write_by(t, at, bytes, fences < FENCES_MAX ? fences : 0);
    written_since = 1;
  }
  if (fgh_acts[k].stores && t->stored) fgh_mark_stored(t, at, bytes);
  return t;
}

void fgh_global_mark(const fgh_tensor *t, const void *p, int bytes) {
  if (t->stored) fgh_mark_stored(t, (size_t)((const u8 *)p - t->low) >> t->shift, bytes);
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

/* The value is what it was, and no store has come that the thread does not know of. */
void fgh_global_unchanged(const void *from, const void *value, int bytes, const char *what) {
  size_t first;
  const fgh_tensor *t = fgh_find(FGH_LOAD, from, bytes, &first);
  const size_t end = first + ((unsigned)bytes >> t->shift);
  for (size_t at = first; t->records && at < end; at++) {
    const fgh_record *r = &t->records[at];
    if (!ordered(r->thread, r->stamp)) race(FGH_LOAD, t, at, r->thread, r->stamp, "stores to");
  }
  if (memcmp(from, value, (size_t)bytes))
    fgh_fault("race: %s was stored to while a %s of the thread was reading it",
              fgh_element(t, first).text, what);
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
