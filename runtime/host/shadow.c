/* shadow.c - every access to shared memory is in bounds, reads what was written, and is ordered.
 *
 * A granule is 4 bytes. Its writer is known exactly. Of its readers each warp keeps the last stamp
 * and the lane, or "several lanes" when lanes that nothing orders have read: then a later store by
 * the same warp is judged only if its lane took part in no warp_sync of some lanes meanwhile, so
 * that no alarm is false. Records older than the block count as none (clock.h); the fast path of
 * loads takes a copy in flight for one of those, and the slow path tells them apart. */
#include "shadow.h"

#include "block.h"

enum { GRANULE = FGH_GRANULE, SEVERAL = 32 };

typedef struct writer {
  u32 stamp, thread;
} writer;

static u8 memory[FGH_SHARED_MAX] __attribute__((aligned(16)));
static writer writers[FGH_GRANULES];
/* [granule][warp], dense in the block's warps: stamp * 64 + lane. A launch with another number of
 * warps finds records of other granules here, too old to matter. */
static u32 readers[FGH_GRANULES * FGH_MAX_WARPS];
static u32 base, size, warps, era;

void fgh_shared_block(u32 bytes, u32 block_warps) {
  if (era != fgh_era) {
    memset(writers, 0, sizeof writers);
    memset(readers, 0, sizeof readers);
    era = fgh_era;
  }
  base = 1024 + 16 * fgh_random_below(64);
  size = bytes;
  warps = block_warps;
  memset(memory, 0xff, bytes);
}

u32 fgh_shared_base(void) { return base; }

__attribute__((noreturn, noinline)) static void misplaced(u32 address, int bytes,
                                                          const char *what) {
  u32 at = address - base, n = (u32)bytes;
  if (n != 4 && n != 8 && n != 16)
    fgh_fault("shared %s of %d bytes: there are 4, 8 and 16", what, bytes);
  if (address < base)
    fgh_fault("shared %s out of bounds: %u bytes before the first", what, base - address);
  if (at >= size || n > size - at)
    fgh_fault("shared %s out of bounds: bytes %u to %u of %u", what, at, at + n - 1, size);
  fgh_fault("shared %s misaligned: %u bytes at byte %u, address %u", what, n, at, address);
}

/* The first granule of an access. */
static inline u32 place(u32 address, int bytes, const char *what) {
  u32 at = address - base, n = (u32)bytes;
  if ((n != 4 && n != 8 && n != 16) || at >= size || n > size - at || address & (n - 1))
    misplaced(address, bytes, what);
  return at / GRANULE;
}

__attribute__((noreturn)) static void race(const char *what, u32 granule, const char *did,
                                           u32 other) {
  u32 me = fgh_self->id;
  const char *order = other / 32 == me / 32 ? "warp_sync or barrier" : "barrier";
  fgh_fault("race: shared %s at byte %u, which thread %u %s: no %s orders the two", what,
            granule * GRANULE, other, did, order);
}

__attribute__((noreturn)) static void still_filling(const char *what, u32 granule, u32 thread) {
  fgh_fault("shared %s at byte %u while a cp.async of thread %u is still filling it", what,
            granule * GRANULE, thread);
}

/* ---- loads ---- */

__attribute__((noinline)) static void judge_loads(u32 granule, u32 end) {
  for (; granule < end; granule++) {
    writer w = writers[granule];
    if (w.stamp == FGH_IN_FLIGHT) still_filling("load", granule, w.thread);
    if (w.stamp < fgh_block_start)
      fgh_fault("shared load at byte %u, which was never written", granule * GRANULE);
    if (!fgh_ordered(w.thread, w.stamp, fgh_self->id)) race("load", granule, "wrote", w.thread);
  }
}

/* The warp has read here since its lanes last met: keeps who has, as far as there is room. */
__attribute__((noinline)) static u32 merge_reader(u32 old, u32 now) {
  u32 lane = old % 64, stamp = old / 64;
  u32 thread = fgh_self->warp * 32 + lane;
  if (lane != SEVERAL && fgh_ordered(thread, stamp, fgh_self->id)) return now;
  return (stamp > now / 64 ? stamp : now / 64) * 64 + SEVERAL;
}

void fgh_shared_read(u32 address, void *value, int bytes) {
  fgh_preempt();
  u32 first = place(address, bytes, "load"), end = first + (u32)bytes / GRANULE, doubt = 0;
  u32 id = fgh_self->id, warp = id / 32, lane = id % 32;
  const fgh_clock *clock = &fgh_clocks[warp];
  u32 now = clock->stamp[lane] * 64 + lane, met = clock->seen[warp] * 64;
  for (u32 g = first; g < end; g++) {
    writer w = writers[g];
    doubt |=
        (w.stamp < fgh_block_start) | ((w.stamp >= clock->seen[w.thread / 32]) & (w.thread != id));
  }
  if (doubt) judge_loads(first, end);
  u32 *reader = &readers[first * warps + warp];
  for (u32 g = first; g < end; g++, reader += warps) {
    if (*reader < met)
      *reader = now;
    else if (*reader != now && *reader != now - lane + SEVERAL)
      *reader = merge_reader(*reader, now);
  }
  fgh_copy(value, memory + first * GRANULE, bytes);
}

void fgh_shared_load(u32 address, void *value, int bytes) {
  FGH_ENTER();
  fgh_shared_read(address, value, bytes);
}

/* ---- stores ---- */

__attribute__((noinline)) static void judge_store(u32 granule, const char *what) {
  u32 me = fgh_self->id, warp = me / 32;
  writer w = writers[granule];
  if (w.stamp == FGH_IN_FLIGHT) still_filling(what, granule, w.thread);
  if (!fgh_ordered(w.thread, w.stamp, me)) race(what, granule, "wrote", w.thread);
  for (u32 i = 0; i < warps; i++) {
    u32 reader = readers[granule * warps + i], lane = reader % 64, stamp = reader / 64;
    if (lane != SEVERAL) {
      if (!fgh_ordered(i * 32 + lane, stamp, me)) race(what, granule, "reads", i * 32 + lane);
    } else if (stamp >= fgh_clocks[warp].seen[i] &&
               (i != warp || !(fgh_clocks[warp].parted >> me % 32 & 1)))
      fgh_fault(
          "race: shared %s at byte %u, which several lanes of warp %u read: no %s orders them",
          what, granule * GRANULE, i, i == warp ? "warp_sync or barrier" : "barrier");
  }
}

/* 0 if all that touched the granule lies before what the whole warp sees: the common case. */
static inline u32 doubtful(u32 granule, const u32 *seen, u32 id) {
  const u32 *reader = &readers[granule * warps];
  writer w = writers[granule];
  u32 doubt = ((w.stamp >= seen[w.thread / 32]) & (w.thread != id)) | (w.stamp == FGH_IN_FLIGHT);
  for (u32 i = 0; i < warps; i++) doubt |= reader[i] / 64 >= seen[i];
  return doubt;
}

/* Makes the running thread the writer of the granules. Returns the first. */
static inline u32 take(u32 address, int bytes, const char *what) {
  u32 first = place(address, bytes, what), end = first + (u32)bytes / GRANULE;
  u32 id = fgh_self->id;
  const fgh_clock *clock = &fgh_clocks[id / 32];
  for (u32 g = first; g < end; g++) {
    if (doubtful(g, clock->seen, id)) judge_store(g, what);
    writers[g] = (writer){clock->stamp[id % 32], id};
  }
  return first;
}

void fgh_shared_store(u32 address, const void *value, int bytes) {
  FGH_ENTER();
  fgh_preempt();
  u32 first = take(address, bytes, "store");
  fgh_copy(memory + first * GRANULE, value, bytes);
}

/* ---- asynchronous copies ---- */

static void stamp(u32 granule, int bytes, u32 at) {
  for (u32 end = granule + (u32)bytes / GRANULE; granule < end; granule++)
    writers[granule].stamp = at;
}

u32 fgh_shared_issue(u32 address, int bytes) {
  u32 first = take(address, bytes, "cp.async");
  stamp(first, bytes, FGH_IN_FLIGHT);
  return first;
}

void fgh_shared_land(u32 granule, const void *value, int bytes) {
  stamp(granule, bytes, fgh_clocks[fgh_self->warp].stamp[fgh_self->lane]);
  fgh_copy(memory + granule * GRANULE, value, bytes);
}

void fgh_shared_abandon(u32 granule, int bytes) { stamp(granule, bytes, 0); }
