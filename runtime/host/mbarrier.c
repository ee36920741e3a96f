/* mbarrier.c - barriers in shared memory: phases that end when all arrivals and bytes have come. */
#include "mbarrier.h"

#include "block.h"
#include "shadow.h"

enum { BYTES = 8, COUNT_MAX = (1 << 20) - 1 };

typedef struct mbarrier {
  u32 rank;           /* of the block that it lies in */
  int count, pending; /* arrivals of a phase; those that are still to come */
  int bytes;          /* that are still to come; below 0: they came before they were expected */
  u32 phase;          /* the current one, from 0 */
  u32 maker, made;    /* the thread that made it, and its stamp then */
  int fenced;         /* since it was made */
  const fgh_path *guest_path;
  u32 guest, guest_at;   /* the last arrival from another block: its thread and stamp; 0: none */
  fgh_release now, done; /* what arrivals of all phases gave; of those before the current one */
  u32 waits[FGH_MAX_WARPS], joined[FGH_MAX_WARPS]; /* lanes: wait for the current phase's end;
                                                      have seen the end of the one before */
} mbarrier;

static mbarrier lists[FGH_MAX_SEATS][FGH_MAX_MBARRIERS], *list = lists[0];
static u32 numbers[FGH_MAX_SEATS], *n = numbers;

void fgh_mbarrier_seat(u32 seat) {
  list = lists[seat];
  n = &numbers[seat];
}

/* Records with the stamp of an mbarrier are not old by themselves. */
void fgh_mbarrier_block(void) {
  for (u32 i = 0; i < *n; i++)
    for (u32 g = 0; g < BYTES / FGH_GRANULE; g++)
      fgh_writers[fgh_mbarrier_at[i] + g] = (fgh_writer){0, 0};
  *n = 0;
}

/* Where seats lie depends on the blocks of a cluster: the next launch may have others. */
void fgh_mbarrier_launch(void) {
  for (u32 seat = 0; seat < FGH_MAX_SEATS; seat++) {
    fgh_shared_seat(seat);
    fgh_mbarrier_seat(seat);
    fgh_mbarrier_block();
  }
}

u32 fgh_mbarrier_find(u32 bar, const char *what) {
  u32 granule = fgh_region(bar, BYTES, BYTES, what);
  fgh_writer w = fgh_writers[granule];
  if (w.stamp != FGH_MBARRIER || fgh_mbarrier_at[w.thread] != granule)
    fgh_fault("%s: there is no mbarrier at shared byte %u", what, fgh_byte_of(granule));
  const mbarrier *b = &list[w.thread];
  if (!fgh_ordered(b->maker, b->made, fgh_self->id))
    fgh_fault("race: %s at shared byte %u, where thread %u made an mbarrier: no barrier orders the "
              "two",
              what, fgh_byte_of(granule), fgh_threads[b->maker].local);
  return w.thread;
}

u32 fgh_mbarrier_twin(u32 slot, u32 rank, const char *what) {
  u32 granule = fgh_region_in(rank, fgh_mbarrier_at[slot]);
  fgh_writer w = fgh_writers[granule];
  if (!fgh_alive[rank])
    fgh_fault("%s at shared byte %u of block %u of the cluster, which has ended", what,
              fgh_byte_of(granule), rank);
  if (w.stamp != FGH_MBARRIER ||
      !fgh_ordered(list[w.thread].maker, list[w.thread].made, fgh_self->id))
    fgh_fault("%s: there is no mbarrier at shared byte %u of block %u of the cluster, or no "
              "cluster_sync since it was made",
              what, fgh_byte_of(granule), rank);
  return w.thread;
}

void fgh_mbarrier_init(u32 bar, int count) {
  FGH_ENTER();
  u32 granule = fgh_region(bar, BYTES, BYTES, "mbarrier_init");
  if (count < 1 || count > COUNT_MAX) fgh_fault("mbarrier_init for %d arrivals", count);
  if (fgh_writers[granule].stamp == FGH_MBARRIER)
    fgh_fault("mbarrier_init at shared byte %u, where there is one", fgh_byte_of(granule));
  if (*n == FGH_MAX_MBARRIERS) fgh_fault("more than %d mbarriers", FGH_MAX_MBARRIERS);
  fgh_shared_take(bar, BYTES, "mbarrier_init");
  mbarrier *b = &list[*n];
  fgh_release_clear(&b->now);
  fgh_release_clear(&b->done);
  memset(b->waits, 0, sizeof b->waits);
  memset(b->joined, 0, sizeof b->joined);
  fgh_mbarrier_at[*n] = granule;
  b->rank = fgh_self->rank;
  b->count = b->pending = count;
  b->bytes = 0;
  b->phase = 0;
  b->fenced = 0;
  b->guest_at = 0;
  b->maker = fgh_self->id;
  b->made = fgh_writers[granule].stamp;
  for (u32 g = 0; g < BYTES / FGH_GRANULE; g++)
    fgh_writers[granule + g] = (fgh_writer){FGH_MBARRIER, *n};
  (*n)++;
}

void fgh_fence_barrier_init(void) {
  FGH_ENTER();
  for (u32 i = 0; i < *n; i++)
    if (list[i].maker == fgh_self->id) list[i].fenced = 1;
}

void fgh_mbarrier_async(u32 slot) {
  if (!list[slot].fenced)
    fgh_fault("TMA completes on the mbarrier at shared byte %u, whose maker, thread %u, called no "
              "fence_barrier_init after it",
              fgh_byte_of(fgh_mbarrier_at[slot]), fgh_threads[list[slot].maker].local);
}

/* ---- phases ---- */

static void end_phase(mbarrier *b) {
  if (b->pending || b->bytes) return;
  b->phase++;
  b->pending = b->count;
  b->done = b->now;
  fgh_progress++;
  for (u32 w = 0; w < FGH_MAX_WARPS; w++) {
    fgh_wake(w, b->waits[w]);
    b->waits[w] = b->joined[w] = 0;
  }
}

static void arrive(u32 slot, int bytes, const char *what) {
  mbarrier *b = &list[slot];
  if (!b->pending)
    fgh_fault("%s at shared byte %u: all %d arrivals of its phase %u have come, %d bytes have not",
              what, fgh_byte_of(fgh_mbarrier_at[slot]), b->count, b->phase, b->bytes);
  if (bytes < 0 || b->bytes + bytes > COUNT_MAX)
    fgh_fault("%s at shared byte %u of %d bytes, %d more are expected already: at most %d", what,
              fgh_byte_of(fgh_mbarrier_at[slot]), bytes, b->bytes, COUNT_MAX);
  if (b->rank != fgh_self->rank) {
    b->guest = fgh_self->id;
    b->guest_path = fgh_place(fgh_self);
    b->guest_at = fgh_clocks[fgh_self->warp].stamp[fgh_self->lane];
  }
  fgh_clock_release_lane(&b->now);
  b->bytes += bytes;
  b->pending--;
  end_phase(b);
}

u32 fgh_mbarrier_complete(u32 slot, u32 bytes) {
  mbarrier *b = &list[slot];
  u32 stamp = fgh_clock_fill(slot, &b->now);
  b->bytes -= (int)bytes;
  end_phase(b);
  return stamp;
}

void fgh_mbarrier_arrive(u32 bar) {
  FGH_ENTER();
  fgh_preempt();
  arrive(fgh_mbarrier_find(bar, "mbarrier_arrive"), 0, "mbarrier_arrive");
}

void fgh_mbarrier_arrive_remote(u32 bar, int rank) {
  static const char what[] = "mbarrier_arrive_remote";
  FGH_ENTER();
  fgh_preempt();
  if (rank < 0 || (u32)rank >= fgh_cluster_blocks)
    fgh_fault("%s: there is no block %d in the cluster", what, rank);
  arrive(fgh_mbarrier_twin(fgh_mbarrier_find(bar, what), (u32)rank, what), 0, what);
}

void fgh_mbarrier_expect(u32 bar, int bytes) {
  FGH_ENTER();
  fgh_preempt();
  arrive(fgh_mbarrier_find(bar, "mbarrier_expect"), bytes, "mbarrier_expect");
}

/* Some thread of the running one's block knows of the arrival. */
static int known_here(const mbarrier *b) {
  u32 first = fgh_self->id - fgh_self->local;
  for (u32 i = first; i < first + fgh_table.block_dim.x; i++)
    if (fgh_ordered(b->guest, b->guest_at, i)) return 1;
  return 0;
}

void fgh_mbarrier_block_end(void) {
  for (u32 i = 0; i < *n; i++) {
    const mbarrier *b = &list[i];
    if (b->rank != fgh_self->rank || !b->guest_at || known_here(b)) continue;
    fgh_self->path = b->guest_path;
    fgh_fault(
        "the block ends, and nothing makes it wait for block %u, which arrives at its mbarrier "
        "at shared byte %u",
        fgh_threads[b->guest].rank, fgh_byte_of(fgh_mbarrier_at[i]));
  }
}

/* ---- waits ---- */

/* The phase with that parity has ended: what its arrivals gave is the lane's from here on. */
static void join(mbarrier *b) {
  u32 *joined = &b->joined[fgh_self->warp];
  fgh_clock_join_lane(&b->done);
  *joined |= 1u << fgh_self->lane;
  if (*joined == ~0u) fgh_clock_join_warp(&b->done);
}

static mbarrier *find_to_wait(u32 bar, int parity, const char *what) {
  mbarrier *b = &list[fgh_mbarrier_find(bar, what)];
  if (parity != 0 && parity != 1) fgh_fault("%s for parity %d", what, parity);
  return b;
}

void fgh_mbarrier_wait(u32 bar, int parity) {
  FGH_ENTER();
  fgh_preempt();
  mbarrier *b = find_to_wait(bar, parity, "mbarrier_wait");
  fgh_self->call = (fgh_call){.kind = FGH_MBARRIER_WAIT,
                              .id = (int)fgh_byte_of(fgh_mbarrier_at[b - list]),
                              .threads = parity};
  while ((b->phase & 1) == (u32)parity) {
    b->waits[fgh_self->warp] |= 1u << fgh_self->lane;
    fgh_wait();
  }
  join(b);
}

/* A lane that asks again and again lets others run, TMA among them. */
int fgh_mbarrier_try(u32 bar, int parity) {
  FGH_ENTER();
  fgh_yield();
  mbarrier *b = find_to_wait(bar, parity, "mbarrier_try");
  if ((b->phase & 1) == (u32)parity) {
    if (fgh_random_below(8) == 0) fgh_land();
    return 0;
  }
  join(b);
  return 1;
}

void fgh_fence_async(void) {
  FGH_ENTER();
  fgh_self->fences++;
}

void fgh_mbarrier_report(void) {
  for (u32 i = 0; i < *n; i++) {
    const mbarrier *b = &list[i];
    fgh_report("\n  mbarrier at byte %u", fgh_byte_of(fgh_mbarrier_at[i]));
    if (fgh_cluster_blocks > 1) fgh_report(" of block %u", b->rank);
    fgh_report(": phase %u, %d of %d arrivals have come", b->phase, b->count - b->pending,
               b->count);
    if (b->bytes) fgh_report(", %d bytes have not", b->bytes);
  }
}
