/* async.c - cp.async: copies from global to shared memory that land as late as the waits allow.
 *
 * A copy lands when its thread waits for its group, never earlier: the wait that leaves at most n
 * groups in flight lands all older ones, in order, and none that is not committed. The source is
 * checked, and read, at issue; what can change until the copy lands is read again then, and must be
 * the same. A thread that ends must have waited for all its copies: hardware allows it, but a tile
 * that nobody can have used was fetched for nothing. */
#include "block.h"
#include "memory.h"
#include "shadow.h"

/* Known by the first granule it fills: no two in flight share one. Places in lists are granules
 * counted from 1, 0 is their end. */
typedef struct copy {
  u8 value[16];
  const void *from;     /* NULL: nothing that can change */
  const fgh_path *path; /* of the issue */
  u32 group, next;
  int bytes, read;
} copy;

typedef struct queue {
  u32 first, last; /* the thread's copies in flight, oldest first */
  u32 committed;   /* groups; the next copy belongs to the one with this number */
} queue;

static copy all_copies[FGH_MAX_BLOCKS * FGH_GRANULES], *copies = all_copies;
static queue all_queues[FGH_MAX_SEATS][FGH_MAX_THREADS], *queues = all_queues[0];

void fgh_async_seat(u32 seat) {
  copies = all_copies + seat * fgh_cluster_blocks * FGH_GRANULES;
  queues = all_queues[seat];
}

/* Copies that are left belong to a launch that ended in a fault. */
void fgh_async_block(void) {
  for (int i = 0; i < FGH_MAX_THREADS; i++) {
    for (u32 at = queues[i].first; at; at = copies[at - 1].next)
      fgh_shared_abandon(at - 1, copies[at - 1].bytes);
    queues[i] = (queue){0};
  }
}

void fgh_async_return(void) {
  u32 at = queues[fgh_self->id].first;
  if (!at) return;
  fgh_self->path = copies[at - 1].path;
  fgh_fault("the thread ends with a cp.async to shared byte %u in flight: it never waits for it",
            fgh_byte_of(at - 1));
}

static void check(const void *from, int bytes, int read) {
  char place[160];
  if ((bytes != 4 && bytes != 16) || read < 0 || read > bytes || read % 2)
    fgh_fault("cp.async of %d bytes that reads %d: want 4 or 16, and an even number of them", bytes,
              read);
  if ((uintptr_t)from % (unsigned)bytes == 0) return;
  fgh_memory_place(from, place, sizeof place);
  fgh_fault("cp.async misaligned: %d bytes at %s", bytes, place);
}

/* Returns whether the source can change. Part of a copy is read in elements of 2 bytes. */
static int read_source(const void *from, u8 *value, int bytes, int read) {
  int changes = 0;
  if (read == bytes) return fgh_global_read(from, value, bytes);
  for (int i = 0; i < read; i += 2) changes |= fgh_global_read((const u8 *)from + i, value + i, 2);
  return changes;
}

void fgh_cp_async(u32 to, const void *from, int bytes, int read) {
  FGH_ENTER();
  check(from, bytes, read);
  u8 value[16] = {0};
  int changes = read_source(from, value, bytes, read);
  u32 granule = fgh_shared_issue(to, bytes);
  queue *q = &queues[fgh_self->id];
  copy *c = &copies[granule];
  c->from = changes ? from : NULL;
  c->path = fgh_place(fgh_self);
  c->group = q->committed;
  c->next = 0;
  c->bytes = bytes;
  c->read = read;
  memcpy(c->value, value, sizeof value);
  if (q->first)
    copies[q->last - 1].next = granule + 1;
  else
    q->first = granule + 1;
  q->last = granule + 1;
}

void fgh_cp_async_commit(void) {
  FGH_ENTER();
  queues[fgh_self->id].committed++;
}

static void read_again(const copy *c) {
  u8 value[16] = {0};
  char place[160];
  read_source(c->from, value, c->bytes, c->read);
  if (!memcmp(value, c->value, (size_t)c->bytes)) return;
  fgh_memory_place(c->from, place, sizeof place);
  fgh_fault("race: %s was stored to while a cp.async of the thread was reading it", place);
}

void fgh_cp_async_wait(int in_flight) {
  FGH_ENTER();
  fgh_preempt();
  queue *q = &queues[fgh_self->id];
  while (q->first) {
    u32 granule = q->first - 1;
    const copy *c = &copies[granule];
    if (c->group + (u32)in_flight >= q->committed) break;
    if (c->from) read_again(c);
    q->first = c->next;
    fgh_shared_land(granule, c->value, c->bytes);
  }
}
