/* shadow.c - every access to shared memory is in bounds, reads what was written, and is ordered.
 *
 * A granule is 4 bytes. Its writer is known exactly. Of its readers each warp keeps the last stamp
 * and the lane, or "several lanes" when lanes that nothing orders have read: then a later store by
 * the same warp is judged only if its lane took part in no warp_sync of some lanes meanwhile, so
 * that no alarm is false. Records older than the block count as none (clock.h); the fast path of
 * loads takes a copy in flight for one of those, and the slow path tells them apart. */
#include "shadow.h"

#include "block.h"

#include <stdio.h>

enum { GRANULE = FGH_GRANULE, SEVERAL = FGH_SEVERAL };

static u8 shared[FGH_MAX_BLOCKS * FGH_SHARED_MAX] __attribute__((aligned(16)));
static fgh_writer writers[FGH_MAX_BLOCKS * FGH_GRANULES];
static u32 mbarrier_at[FGH_MAX_SEATS][FGH_MAX_MBARRIERS];
static u16 fenced[FGH_MAX_BLOCKS * FGH_GRANULES];
/* A launch with another number of warps finds records of other granules here, too old to matter. */
static u32 readers[FGH_MAX_BLOCKS * FGH_GRANULES * FGH_MAX_WARPS];
static u32 copied[FGH_MAX_BLOCKS * FGH_GRANULES];
static u32 era;

u8 *fgh_shared = shared;
fgh_writer *fgh_writers = writers;
u32 *fgh_mbarrier_at = mbarrier_at[0];
u16 *fgh_fenced = fenced;
u32 *fgh_readers = readers;
u32 *fgh_copied = copied;
int fgh_copies_made;
u32 fgh_shared_bytes, fgh_shared_warps;

void fgh_shared_seat(u32 seat) {
  u32 block = seat * fgh_cluster_blocks;
  fgh_shared = shared + block * FGH_SHARED_MAX;
  fgh_writers = writers + block * FGH_GRANULES;
  fgh_mbarrier_at = mbarrier_at[seat];
  fgh_fenced = fenced + block * FGH_GRANULES;
  fgh_readers = readers + block * FGH_GRANULES * fgh_shared_warps;
  fgh_copied = copied + block * FGH_GRANULES;
}

/* Stamps of another era mean nothing: their records are cleared. */
void fgh_shared_launch(u32 bytes, u32 warps) {
  fgh_shared_bytes = bytes;
  fgh_shared_warps = warps;
  if (fgh_copies_made) memset(copied, 0, sizeof copied);
  fgh_copies_made = 0;
  if (era == fgh_era) return;
  memset(writers, 0, sizeof writers);
  memset(readers, 0, sizeof readers);
  era = fgh_era;
}

/* In a cluster the rank lies above the 24 bits of an address in a block. */
void fgh_shared_block(void) {
  u32 base = 1024 + 16 * fgh_random_below(64);
  for (u32 i = 0; i < fgh_shared_warps * 32; i++)
    fgh_threads[i].shared_base = base | fgh_threads[i].rank << 24;
  for (u32 rank = 0; rank < fgh_cluster_blocks; rank++)
    memset(fgh_shared + rank * FGH_SHARED_MAX, 0xff, fgh_shared_bytes);
}

/* Accesses that went on have stamps that never grow old. */
void fgh_shared_forget(void) {
  u32 granules = fgh_shared_bytes / GRANULE;
  for (u32 block = 0; block < FGH_MAX_BLOCKS && granules; block++) {
    memset(writers + block * FGH_GRANULES, 0, granules * sizeof *writers);
    memset(readers + block * FGH_GRANULES * fgh_shared_warps, 0,
           granules * fgh_shared_warps * sizeof *readers);
  }
}

u32 fgh_shared_base(void) { return fgh_self->shared_base; }

__attribute__((noreturn, noinline)) static void misplaced(u32 address, int bytes,
                                                          const char *what) {
  u32 base = fgh_self->shared_base, at = address - base, n = (u32)bytes, size = fgh_shared_bytes;
  if (n != 4 && n != 8 && n != 16)
    fgh_fault("shared %s of %d bytes: there are 4, 8 and 16", what, bytes);
  if (address >> 24 != base >> 24)
    fgh_fault("shared %s at an address of block %u of the cluster", what, address >> 24);
  if (address < base)
    fgh_fault("shared %s out of bounds: %u bytes before the first", what, base - address);
  if (at >= size || n > size - at)
    fgh_fault("shared %s out of bounds: bytes %u to %u of %u", what, at, at + n - 1, size);
  fgh_fault("shared %s misaligned: %u bytes at byte %u, address %u", what, n, at, address);
}

/* The first granule of an access. */
static inline u32 place(u32 address, int bytes, const char *what) {
  u32 at = address - fgh_self->shared_base, n = (u32)bytes;
  if ((n != 4 && n != 8 && n != 16) || at >= fgh_shared_bytes || n > fgh_shared_bytes - at ||
      address & (n - 1))
    misplaced(address, bytes, what);
  return fgh_self->rank * FGH_GRANULES + at / GRANULE;
}

typedef struct words {
  char text[64];
} words;

/* "thread 5", or "TMA for the mbarrier at byte 64". */
static words name(u32 thread) {
  words w;
  if (thread < FGH_MAX_THREADS)
    snprintf(w.text, sizeof w.text, "thread %u", fgh_threads[thread].local);
  else
    snprintf(w.text, sizeof w.text, "TMA for the mbarrier at byte %u",
             fgh_byte_of(fgh_mbarrier_at[thread / 32 - FGH_MAX_WARPS]));
  return w;
}

__attribute__((noreturn)) static void race(const char *what, u32 granule, const char *did,
                                           u32 other) {
  u32 me = fgh_self->id;
  const char *order = other / 32 == me / 32      ? "warp_sync or barrier"
                      : other >= FGH_MAX_THREADS ? "wait for it"
                                                 : "barrier";
  fgh_fault("race: shared %s at byte %u, which %s %s: no %s orders the two", what,
            fgh_byte_of(granule), name(other).text, did, order);
}

/* Numbers of stamps that stand for a state, not for a time. */
static void judge_state(const char *what, u32 granule, fgh_writer w) {
  u32 byte = fgh_byte_of(granule);
  if (w.stamp == FGH_MBARRIER)
    fgh_fault("shared %s at byte %u, which belongs to an mbarrier", what, byte);
  if (w.stamp == FGH_IN_FLIGHT && w.thread < FGH_MAX_THREADS)
    fgh_fault("shared %s at byte %u while a cp.async of %s is still filling it", what, byte,
              name(w.thread).text);
  if (w.stamp == FGH_IN_FLIGHT)
    fgh_fault("shared %s at byte %u while %s is still filling it", what, byte, name(w.thread).text);
}

/* ---- loads ---- */

__attribute__((noinline)) void fgh_judge_load(u32 granule, const char *what) {
  fgh_writer w = fgh_writers[granule];
  judge_state(what, granule, w);
  if (w.stamp < fgh_block_start)
    fgh_fault("shared %s at byte %u, which was never written", what, fgh_byte_of(granule));
  if (!fgh_ordered(w.thread, w.stamp, fgh_self->id)) race(what, granule, "wrote", w.thread);
}

/* The warp has read here since its lanes last met: keeps who has, as far as there is room. */
__attribute__((noinline)) static u32 merge_reader(u32 old, u32 now) {
  u32 lane = old % 64, stamp = old / 64;
  u32 thread = fgh_self->warp * 32 + lane;
  if (old == FGH_READING) return old;
  if (lane == FGH_WHOLE_WARP) return now;
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
    fgh_writer w = fgh_writers[g];
    doubt |=
        (w.stamp < fgh_block_start) | ((w.stamp >= clock->seen[w.thread / 32]) & (w.thread != id));
  }
  for (u32 g = first; doubt && g < end; g++) fgh_judge_load(g, "load");
  u32 *reader = &fgh_readers[first * fgh_shared_warps + warp];
  for (u32 g = first; g < end; g++, reader += fgh_shared_warps) {
    if (*reader < met)
      *reader = now;
    else if (*reader != now && *reader != now - lane + SEVERAL)
      *reader = merge_reader(*reader, now);
  }
  fgh_copy(value, fgh_shared + first * GRANULE, bytes);
}

void fgh_shared_load(u32 address, void *value, int bytes) {
  FGH_ENTER();
  fgh_shared_read(address, value, bytes);
}

/* ---- stores ---- */

/* All lanes of a warp that have read, and which are not told apart: each must be seen. */
static int several_seen(const fgh_clock *clock, u32 warp, u32 stamp) {
  for (int lane = 0; lane < 32; lane++)
    if (clock->known[warp][lane] <= stamp) return 0;
  return 1;
}

static void judge_reader(const char *what, u32 granule, u32 warp, u32 reader) {
  u32 me = fgh_self->id, lane = reader % 64, stamp = reader / 64;
  const fgh_clock *clock = &fgh_clocks[me / 32];
  int own = warp == me / 32;
  if (stamp < clock->seen[warp] || stamp < clock->lane_actors[me % 32][warp]) return;
  if (reader == FGH_READING)
    fgh_fault("race: shared %s at byte %u, which a wgmma or a TMA store of warp %u still reads",
              what, fgh_byte_of(granule), warp);
  if (lane == FGH_WHOLE_WARP && !own && stamp >= clock->any[warp])
    fgh_fault(
        "race: shared %s at byte %u, which a wgmma of warp %u read: no barrier orders the two",
        what, fgh_byte_of(granule), warp);
  if (lane < SEVERAL && !fgh_ordered(warp * 32 + lane, stamp, me))
    race(what, granule, "reads", warp * 32 + lane);
  if (lane == SEVERAL &&
      (own ? !(clock->parted >> me % 32 & 1) : !several_seen(clock, warp, stamp)))
    fgh_fault("race: shared %s at byte %u, which several lanes of warp %u read: no %s orders them",
              what, fgh_byte_of(granule), warp, own ? "warp_sync or barrier" : "barrier");
}

/* What is ordered is forgotten. */
static void judge_copy(const char *what, u32 granule) {
  u32 read = fgh_copied[granule], slot = read % 64, byte = fgh_byte_of(granule);
  if (read == FGH_READING)
    fgh_fault("race: shared %s at byte %u, which a bulk_copy_remote still reads", what, byte);
  if (read / 64 >= fgh_block_start &&
      !fgh_ordered((FGH_MAX_WARPS + slot) * 32, read / 64, fgh_self->id))
    fgh_fault(
        "race: shared %s at byte %u, which a bulk_copy_remote has read: nobody who waited for "
        "it has told this thread",
        what, byte);
  fgh_copied[granule] = 0;
}

__attribute__((noinline)) void fgh_judge_store(u32 granule, const char *what) {
  fgh_writer w = fgh_writers[granule];
  judge_state(what, granule, w);
  if (!fgh_ordered(w.thread, w.stamp, fgh_self->id)) race(what, granule, "wrote", w.thread);
  for (u32 i = 0; i < fgh_shared_warps; i++)
    judge_reader(what, granule, i, fgh_readers[granule * fgh_shared_warps + i]);
  if (fgh_copy_reads(granule)) judge_copy(what, granule);
}

/* 0 if all that touched the granule lies before what the whole warp sees: the common case. */
static inline u32 doubtful(u32 granule, const u32 *seen, u32 id) {
  const u32 *reader = &fgh_readers[granule * fgh_shared_warps];
  fgh_writer w = fgh_writers[granule];
  u32 doubt = ((w.stamp >= seen[w.thread / 32]) & (w.thread != id)) | (w.stamp - 1 < FGH_MBARRIER);
  for (u32 i = 0; i < fgh_shared_warps; i++) doubt |= reader[i] / 64 >= seen[i];
  return doubt | fgh_copy_reads(granule);
}

/* Makes the running thread the writer of the granules. Returns the first. */
static inline u32 take(u32 address, int bytes, const char *what) {
  u32 first = place(address, bytes, what), end = first + (u32)bytes / GRANULE;
  u32 id = fgh_self->id;
  const fgh_clock *clock = &fgh_clocks[id / 32];
  for (u32 g = first; g < end; g++) {
    if (doubtful(g, clock->seen, id)) fgh_judge_store(g, what);
    fgh_writers[g] = (fgh_writer){clock->stamp[id % 32], id};
    fgh_fenced[g] = (u16)fgh_self->fences;
  }
  return first;
}

u32 fgh_shared_take(u32 address, int bytes, const char *what) { return take(address, bytes, what); }

void fgh_shared_write(u32 address, const void *value, int bytes, const char *what) {
  fgh_preempt();
  u32 first = take(address, bytes, what);
  fgh_copy(fgh_shared + first * GRANULE, value, bytes);
}

void fgh_shared_store(u32 address, const void *value, int bytes) {
  FGH_ENTER();
  fgh_shared_write(address, value, bytes, "store");
}

/* ---- asynchronous copies ---- */

static void stamp(u32 granule, int bytes, u32 at) {
  for (u32 end = granule + (u32)bytes / GRANULE; granule < end; granule++)
    fgh_writers[granule].stamp = at;
}

u32 fgh_shared_issue(u32 address, int bytes) {
  u32 first = take(address, bytes, "cp.async");
  stamp(first, bytes, FGH_IN_FLIGHT);
  return first;
}

void fgh_shared_land(u32 granule, const void *value, int bytes) {
  stamp(granule, bytes, fgh_clocks[fgh_self->warp].stamp[fgh_self->lane]);
  fgh_copy(fgh_shared + granule * GRANULE, value, bytes);
}

void fgh_shared_abandon(u32 granule, int bytes) { stamp(granule, bytes, 0); }
