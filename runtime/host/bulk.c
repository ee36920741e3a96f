/* bulk.c - copies of plain bytes by the asynchronous proxy: from global memory to shared memory,
 * and from one block's to another's.
 *
 * They land as TMA loads do: as late as the waits allow, and then complete on their mbarrier. The
 * source is checked and read at the issue. Global memory must still be the same at the landing;
 * shared memory nobody may store to before it, nor after it who was not told by a thread that has
 * waited for the copy. Of two copies that read one place the later is known alone. */
#include "block.h"
#include "mbarrier.h"
#include "memory.h"
#include "shadow.h"
#include "tma.h"

enum { UNIT = 16 };

static void check_bytes(int bytes, const char *what) {
  if (bytes < UNIT || bytes % UNIT)
    fgh_fault("%s of %d bytes: want a multiple of %d", what, bytes, UNIT);
}

static void check_source(const void *from, const char *what) {
  char place[160];
  if ((uintptr_t)from % UNIT == 0) return;
  fgh_memory_place(from, place, sizeof place);
  fgh_fault("%s misaligned: its source is %s", what, place);
}

/* Faults are the issuing thread's, at its call. */
static void check_unchanged(const fgh_load *load) {
  fgh_thread *running = fgh_self;
  fgh_self = &fgh_threads[load->thread];
  const fgh_path *path = fgh_place(fgh_self);
  fgh_self->path = load->path;
  for (u32 i = 0; i < load->bytes; i += UNIT)
    fgh_global_unchanged(load->from + i, fgh_load_data(load->granule) + i, UNIT, load->what);
  fgh_self->path = path;
  fgh_self = running;
}

/* The source can change only where the launch may write. */
void fgh_bulk_load(u32 to, const void *from, int bytes, u32 bar) {
  static const char what[] = "bulk_load";
  FGH_ENTER();
  fgh_preempt();
  check_bytes(bytes, what);
  check_source(from, what);
  fgh_load load = {.what = what,
                   .granule = fgh_region(to, (u32)bytes, UNIT, what),
                   .bytes = (u32)bytes,
                   .slot = fgh_mbarrier_find(bar, what),
                   .from = from,
                   .thread = fgh_self->id,
                   .path = fgh_place(fgh_self)};
  u8 *data = fgh_load_data(load.granule);
  for (int i = 0; i < bytes; i += UNIT)
    if (fgh_global_fetch((const u8 *)from + i, data + i, UNIT))
      load.about_to_land = check_unchanged;
  fgh_load_issue(load);
}

/* The running block's addresses stand for the same places of the other block. */
void fgh_bulk_copy_remote(u32 to, u32 from, int bytes, u32 bar, int rank) {
  static const char what[] = "bulk_copy_remote";
  FGH_ENTER();
  fgh_preempt();
  check_bytes(bytes, what);
  if (rank < 0 || (u32)rank >= fgh_cluster_blocks)
    fgh_fault("%s: there is no block %d in the cluster", what, rank);
  u32 own = fgh_self->rank, there = (u32)rank, slot = fgh_mbarrier_find(bar, what);
  fgh_load load = {.what = what,
                   .granule = fgh_region_in(there, fgh_region(to, (u32)bytes, UNIT, what)),
                   .bytes = (u32)bytes,
                   .slot = there == own ? slot : fgh_mbarrier_twin(slot, there, what),
                   .reads_shared = 1,
                   .source = fgh_region(from, (u32)bytes, UNIT, what)};
  fgh_copy_read_begin(load.source, load.bytes, what);
  memcpy(fgh_load_data(load.granule), fgh_shared + load.source * FGH_GRANULE, load.bytes);
  fgh_load_issue(load);
}
