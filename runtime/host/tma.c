/* tma.c - TMA: boxes of a tensor to shared memory, where they land as late as the waits allow, and
 * back, when the thread that stored them waits.
 *
 * A load's numbers are read at its issue and lie where they will land, swizzled, but in another
 * memory; from the issue on nobody may touch the place. It lands when no thread can run (or, of
 * every third launch, at random), and then completes on its mbarrier. A store is read, and written,
 * when its thread waits: until then nobody may change its source. The source of a box that is
 * loaded may change unseen; that of bulk_load (bulk.c) may not. */
#include "tma.h"

#include "block.h"
#include "mbarrier.h"
#include "memory.h"
#include "shadow.h"

enum { LOADS = 4096, STORES = 64, AXES = 5, UNIT = 16, ALIGN = 128 };

typedef struct store {
  tensor_map map;
  int at[AXES];
  u32 thread, group, from, granule, bytes;
  const fgh_path *path;
} store;

typedef struct seat {
  fgh_load loads[LOADS];
  store stores[STORES]; /* oldest first */
  u32 n_loads, n_stores;
  u32 committed[FGH_MAX_THREADS]; /* groups of stores */
} seat;

static seat seats[FGH_MAX_SEATS], *here = seats;
static u8 all_landing[FGH_MAX_BLOCKS * FGH_SHARED_MAX], *landing = all_landing;

void fgh_tma_seat(u32 number) {
  here = &seats[number];
  landing = all_landing + number * fgh_cluster_blocks * FGH_SHARED_MAX;
}

void fgh_tma_block(void) {
  here->n_loads = here->n_stores = 0;
  memset(here->committed, 0, sizeof here->committed);
}

/* ---- boxes ---- */

static const tensor_map *check_map(const tensor_map *map, int rank, const char *what) {
  if ((uintptr_t)map % 64 || map->encoded != 1)
    fgh_fault("%s: its map is none, or not aligned to 64 bytes", what);
  if (map->rank != rank) fgh_fault("%s of rank %d by a map of rank %d", what, rank, map->rank);
  return map;
}

static u32 box_bytes(const tensor_map *m) {
  u32 bytes = m->elem;
  for (int i = 0; i < m->rank; i++) bytes *= m->box[i];
  return bytes;
}

/* The 16 bytes' place among those of its 8 rows depends on the address's bits above. */
static u32 swizzled(u32 address, u32 row) {
  return address ^ ((address >> 7 & (row / 16 - 1)) << 4);
}

/* Part of a row of the box, 16 bytes of it in shared memory: what of them is inside the tensor. */
static void copy_unit(const tensor_map *m, u8 *global, int first, u8 *shared, int out) {
  int elem = m->elem, from = first < 0 ? -first : 0, to = (int)m->extent[0] - first;
  if (to > UNIT / elem) to = UNIT / elem;
  if (!out) memset(shared, 0, UNIT);
  if (from == 0 && to == UNIT / elem && (uintptr_t)global % UNIT == 0) {
    out ? fgh_global_deliver(global, shared, UNIT) : (void)fgh_global_fetch(global, shared, UNIT);
    return;
  }
  for (int i = from; i < to; i++) {
    u8 *g = global + i * elem, *s = shared + i * elem;
    out ? fgh_global_deliver(g, s, elem) : (void)fgh_global_fetch(g, s, elem);
  }
}

/* Rows of the box, in order; those outside of the tensor are zeros, or not stored. `shared` is what
 * lies at the block's first byte. */
static void copy_box(const tensor_map *m, const int *at, u32 address, u8 *shared, int out) {
  u32 row = (u32)m->box[0] * m->elem, rows = box_bytes(m) / row;
  for (u32 r = 0; r < rows; r++, address += row) {
    u64 offset = (u64)at[0] * m->elem; /* wraps, as a GPU's does */
    u32 rest = r, inside = 1, none = 0;
    for (int i = 1; i < m->rank; i++) {
      i64 place = (i64)at[i] + rest % m->box[i];
      rest /= m->box[i];
      none |= m->extent[i] == 0;
      inside &= place >= 0 && place < (m->extent[i] ? m->extent[i] : 1);
      offset += (u64)place * (u64)m->stride[i - 1];
    }
    if (inside && none)
      fgh_fault("TMA at the first row of a tensor without elements: a GPU's map cannot say that it "
                "has none");
    for (u32 i = 0; i < row; i += UNIT) {
      u32 a = m->swizzle ? swizzled(address + i, m->swizzle) : address + i;
      u8 *s = shared + (a - fgh_self->shared_base);
      u8 *g = (u8 *)((uintptr_t)m->base + (uintptr_t)(offset + i));
      if (inside)
        copy_unit(m, g, at[0] + (int)i / m->elem, s, out);
      else if (!out)
        memset(s, 0, UNIT);
    }
  }
}

/* ---- loads ---- */

static void check_policy(u64 policy) {
  static const u64 known[] = {0x1000000000000000u, 0x12f0000000000000u, 0x14f0000000000000u};
  for (int i = 0; i < 3; i++)
    if (known[i] == policy) return;
  fgh_fault("tma_load by the policy %#llx, which is none", policy);
}

u8 *fgh_load_data(u32 granule) { return landing + granule * FGH_GRANULE; }

void fgh_load_issue(fgh_load load) {
  fgh_mbarrier_async(load.slot);
  if (here->n_loads == LOADS) fgh_fault("more than %d TMA loads in flight", LOADS);
  fgh_fill_issue(load.granule, load.bytes, load.slot, load.reads_shared ? load.what : "TMA load");
  here->loads[here->n_loads++] = load;
}

void fgh_tma_load(u32 to, const tensor_map *map, const int *at, int rank, u32 bar, u64 policy,
                  int ranks) {
  static const char what[] = "tma_load";
  FGH_ENTER();
  fgh_preempt();
  const tensor_map *m = check_map(map, rank, what);
  u32 bytes = box_bytes(m), granule = fgh_region(to, bytes, ALIGN, what);
  u32 slot = fgh_mbarrier_find(bar, what), own = fgh_self->rank;
  if (ranks >> fgh_cluster_blocks)
    fgh_fault("tma_load to the blocks %#x of a cluster of %u", (u32)ranks, fgh_cluster_blocks);
  check_policy(policy);
  copy_box(m, at, to, landing + own * FGH_SHARED_MAX, 0);
  for (u32 r = 0; r < fgh_cluster_blocks; r++) {
    if (ranks ? !(ranks >> r & 1) : r != own) continue;
    fgh_load there = {.granule = fgh_region_in(r, granule), .bytes = bytes, .what = what};
    there.slot = r == own ? slot : fgh_mbarrier_twin(slot, r, what);
    fgh_load_issue(there);
    if (r != own) memcpy(fgh_load_data(there.granule), fgh_load_data(granule), bytes);
  }
}

/* Other copies may still read the same. */
static void end_read(const fgh_load *l, u32 stamp) {
  fgh_copy_read_end(l->source, l->bytes, stamp, l->slot);
  for (u32 i = 0; i < here->n_loads; i++)
    if (here->loads[i].reads_shared)
      fgh_copy_read_again(here->loads[i].source, here->loads[i].bytes);
}

/* Any of them: the order in which copies land is nobody's to count on. */
int fgh_tma_land(void) {
  if (!here->n_loads) return 0;
  u32 i = fgh_random_below(here->n_loads);
  fgh_load l = here->loads[i];
  here->loads[i] = here->loads[--here->n_loads];
  if (l.about_to_land) l.about_to_land(&l);
  u32 stamp = fgh_mbarrier_complete(l.slot, l.bytes);
  fgh_fill_land(l.granule, l.bytes, fgh_load_data(l.granule), l.slot, stamp);
  if (l.reads_shared) end_read(&l, stamp);
  return 1;
}

void fgh_tma_prefetch(const tensor_map *map) {
  FGH_ENTER();
  check_map(map, map->rank, "tma_prefetch");
}

/* ---- stores ---- */

void fgh_tma_store(const tensor_map *map, const int *at, int rank, u32 from) {
  static const char what[] = "tma_store";
  FGH_ENTER();
  fgh_preempt();
  if (here->n_stores == STORES) fgh_fault("more than %d TMA stores in flight", STORES);
  for (int i = 0; i < rank; i++) /* an H200 does; loads may begin there */
    if (at[i] < 0) fgh_fault("tma_store to coordinate %d: a GPU stops at one below 0", at[i]);
  store *s = &here->stores[here->n_stores];
  *s = (store){.map = *check_map(map, rank, what),
               .thread = fgh_self->id,
               .group = here->committed[fgh_self->id],
               .from = from,
               .path = fgh_place(fgh_self)};
  s->bytes = box_bytes(&s->map);
  s->granule = fgh_region(from, s->bytes, ALIGN, what);
  memcpy(s->at, at, (size_t)rank * sizeof *at);
  fgh_async_read_begin(s->granule, s->bytes, what);
  here->n_stores++;
}

void fgh_tma_store_commit(void) {
  FGH_ENTER();
  here->committed[fgh_self->id]++;
}

static void finish(const store *s) {
  u32 lane = fgh_self->lane;
  copy_box(&s->map, s->at, s->from, fgh_shared + fgh_self->rank * FGH_SHARED_MAX, 1);
  fgh_async_read_end(s->granule, s->bytes, fgh_clocks[fgh_self->warp].stamp[lane], lane);
}

/* What has been read is written too: nothing in the launch can tell when. */
void fgh_tma_store_wait(int in_flight, int read) {
  u32 kept = 0, me = fgh_self->id;
  FGH_ENTER();
  (void)read;
  fgh_preempt();
  for (u32 i = 0; i < here->n_stores; i++) {
    if (here->stores[i].thread == me &&
        here->stores[i].group + (u32)in_flight < here->committed[me])
      finish(&here->stores[i]);
    else
      here->stores[kept++] = here->stores[i];
  }
  here->n_stores = kept;
}

/* ---- ends ---- */

void fgh_tma_return(void) {
  for (u32 i = 0; i < here->n_stores; i++) {
    if (here->stores[i].thread != fgh_self->id) continue;
    fgh_self->path = here->stores[i].path;
    fgh_fault(
        "the thread ends with a tma_store from shared byte %u in flight: it never waits for it",
        fgh_byte_of(here->stores[i].granule));
  }
}

/* Neither what the block gets nor what it sends may be in flight. */
void fgh_tma_block_end(void) {
  for (u32 i = 0; i < here->n_loads; i++) {
    const fgh_load *l = &here->loads[i];
    if (l->granule / FGH_GRANULES == fgh_self->rank)
      fgh_fault("the block ends with a %s to shared byte %u in flight: nobody waits for it",
                l->what, fgh_byte_of(l->granule));
    if (l->reads_shared && l->source / FGH_GRANULES == fgh_self->rank)
      fgh_fault("the block ends with a %s from shared byte %u in flight: nothing makes it wait for "
                "the one that gets it",
                l->what, fgh_byte_of(l->source));
  }
}
