/* bulk.c - copies of plain bytes by the asynchronous proxy: from global memory to shared memory.
 *
 * A bulk_load is a TMA load without a box: it lands as late as the waits allow and completes on its
 * mbarrier. Its source is checked and read at the issue, and must still be the same at the landing.
 */
#include "block.h"
#include "mbarrier.h"
#include "memory.h"
#include "shadow.h"
#include "tma.h"

enum { UNIT = 16 };

static void check(const void *from, int bytes, const char *what) {
  char place[160];
  if (bytes < UNIT || bytes % UNIT)
    fgh_fault("%s of %d bytes: want a multiple of %d", what, bytes, UNIT);
  if ((uintptr_t)from % UNIT == 0) return;
  fgh_memory_place(from, place, sizeof place);
  fgh_fault("%s misaligned: its source is %s", what, place);
}

void fgh_bulk_load(u32 to, const void *from, int bytes, u32 bar) {
  static const char what[] = "bulk_load";
  FGH_ENTER();
  fgh_preempt();
  check(from, bytes, what);
  fgh_load load = {.what = what,
                   .granule = fgh_region(to, (u32)bytes, UNIT, what),
                   .bytes = (u32)bytes,
                   .slot = fgh_mbarrier_find(bar, what),
                   .thread = fgh_self->id,
                   .pc = fgh_self->pc};
  u8 *data = fgh_load_data(load.granule);
  for (int i = 0; i < bytes; i += UNIT)
    if (fgh_global_fetch((const u8 *)from + i, data + i, UNIT)) load.from = from;
  fgh_load_issue(load);
}

/* Faults are the issuing thread's, at its call. */
void fgh_bulk_check(const fgh_load *load) {
  fgh_thread *running = fgh_self;
  fgh_self = &fgh_threads[load->thread];
  void *pc = fgh_self->pc;
  fgh_self->pc = load->pc;
  for (u32 i = 0; i < load->bytes; i += UNIT)
    fgh_global_unchanged(load->from + i, fgh_load_data(load->granule) + i, UNIT, load->what);
  fgh_self->pc = pc;
  fgh_self = running;
}
