/* region.c - the asynchronous proxy's accesses to shared memory: TMA fills regions, wgmma and TMA's
 * stores read them. While one goes on every access that it forbids is a fault; so is a generic
 * store that no fence_async has made visible to it. */
#include "block.h"
#include "mbarrier.h"
#include "shadow.h"

u32 fgh_region(u32 address, u32 bytes, u32 align, const char *what) {
  u32 base = fgh_self->shared_base, at = address - base, size = fgh_shared_bytes;
  if (address >> 24 != base >> 24 || address < base || at > size || bytes > size - at)
    fgh_fault("%s out of bounds: shared bytes %d to %d of %u", what, (int)at, (int)(at + bytes) - 1,
              size);
  if (address % align)
    fgh_fault("%s misaligned: shared byte %u, address %u, not a multiple of %u", what, at, address,
              align);
  return fgh_self->rank * FGH_GRANULES + at / FGH_GRANULE;
}

u32 fgh_region_in(u32 rank, u32 granule) { return rank * FGH_GRANULES + granule % FGH_GRANULES; }

/* The writer is a thread that has not fenced since: what it stored is not the other proxy's yet. */
static inline int unfenced(u32 granule) {
  u32 thread = fgh_writers[granule].thread;
  return fgh_writers[granule].stamp >= fgh_block_start && thread < FGH_MAX_THREADS &&
         (u16)fgh_threads[thread].fences == fgh_fenced[granule];
}

__attribute__((noreturn)) static void refuse_unfenced(const char *what, u32 granule) {
  fgh_fault("%s at shared byte %u, which thread %u stored without a fence_async after it", what,
            fgh_byte_of(granule), fgh_threads[fgh_writers[granule].thread].local);
}

/* ---- fills ---- */

/* Whether nothing but judging will tell: as doubtful in shadow.c, but ended wgmmas of warps that
 * have arrived since, at mbarriers lane by lane, are the common case. */
static inline u32 doubtful(u32 granule, const u32 *seen, const u32 *any) {
  const u32 *reader = &fgh_readers[granule * fgh_shared_warps];
  fgh_writer w = fgh_writers[granule];
  u32 doubt = (w.stamp >= seen[w.thread / 32]) | (w.stamp - 1 < FGH_MBARRIER);
  for (u32 i = 0; i < fgh_shared_warps; i++) {
    u32 stamp = reader[i] / 64;
    doubt |= stamp >= seen[i] && (reader[i] % 64 != FGH_WHOLE_WARP || stamp >= any[i]);
  }
  return doubt | fgh_copy_reads(granule);
}

void fgh_fill_issue(u32 granule, u32 bytes, u32 slot, const char *what) {
  const fgh_clock *clock = &fgh_clocks[fgh_self->warp];
  for (u32 g = granule, end = granule + bytes / FGH_GRANULE; g < end; g++) {
    if (doubtful(g, clock->seen, clock->any)) fgh_judge_store(g, what);
    if (unfenced(g)) refuse_unfenced(what, g);
    fgh_writers[g] = (fgh_writer){FGH_IN_FLIGHT, (FGH_MAX_WARPS + slot) * 32};
  }
  memset(fgh_shared + granule * FGH_GRANULE, 0xff, bytes);
}

void fgh_fill_land(u32 granule, u32 bytes, const void *data, u32 slot, u32 stamp) {
  for (u32 g = granule, end = granule + bytes / FGH_GRANULE; g < end; g++)
    fgh_writers[g] = (fgh_writer){stamp, (FGH_MAX_WARPS + slot) * 32};
  memcpy(fgh_shared + granule * FGH_GRANULE, data, bytes);
}

/* ---- reads ---- */

/* The granules are written, known to the running thread, and fenced. */
static void judge_read(u32 granule, u32 bytes, const char *what) {
  const fgh_clock *clock = &fgh_clocks[fgh_self->warp];
  for (u32 g = granule, end = granule + bytes / FGH_GRANULE; g < end; g++) {
    fgh_writer w = fgh_writers[g];
    if (w.stamp < fgh_block_start || w.stamp >= clock->seen[w.thread / 32]) fgh_judge_load(g, what);
    if (unfenced(g)) refuse_unfenced(what, g);
  }
}

void fgh_async_read_begin(u32 granule, u32 bytes, const char *what) {
  judge_read(granule, bytes, what);
  fgh_async_read_again(granule, bytes);
}

void fgh_async_read_again(u32 granule, u32 bytes) {
  u32 *reader = &fgh_readers[granule * fgh_shared_warps + fgh_self->warp];
  for (u32 n = bytes / FGH_GRANULE; n; n--, reader += fgh_shared_warps) *reader = FGH_READING;
}

void fgh_async_read_end(u32 granule, u32 bytes, u32 stamp, u32 reader_is) {
  u32 *reader = &fgh_readers[granule * fgh_shared_warps + fgh_self->warp];
  for (u32 n = bytes / FGH_GRANULE; n; n--, reader += fgh_shared_warps)
    *reader = stamp * 64 + reader_is;
}

static void mark(u32 granule, u32 bytes, u32 read) {
  for (u32 g = granule, end = granule + bytes / FGH_GRANULE; g < end; g++) fgh_copied[g] = read;
}

void fgh_copy_read_begin(u32 granule, u32 bytes, const char *what) {
  judge_read(granule, bytes, what);
  fgh_copies_made = 1;
  mark(granule, bytes, FGH_READING);
}

void fgh_copy_read_again(u32 granule, u32 bytes) { mark(granule, bytes, FGH_READING); }

void fgh_copy_read_end(u32 granule, u32 bytes, u32 stamp, u32 slot) {
  mark(granule, bytes, stamp * 64 + slot);
}
