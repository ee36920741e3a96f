/* handover.c - what blocks of a grid give each other by a word of memory: who has fenced gives, by
 * its next atomics on a word, what it knew of at the fence; whose atomic on the word comes later
 * takes it, by the next fence. Nothing else orders blocks. A block gives what is its own, not what
 * it has taken; and of TMA's stores more than it may, those whose reads alone have been waited for.
 */
#include "block.h"
#include "memory.h"

#include <stdlib.h>

typedef struct given {
  const void *word;
  u32 begin; /* the first stamp of the blocks that gave it */
  fgh_release what;
} given;

typedef struct fence {
  u32 thread;
  fgh_release what; /* the thread knew of */
} fence;

typedef struct taken {
  u32 thread, stamp; /* of the fence behind the atomic; 0: there has been none */
  const void *word;
  int n; /* of what the launch's blocks had given by then */
} taken;

static given *gifts; /* of the launch */
static fence *fences;
static taken *takes; /* these of the block, or of a cluster's */
static int n_gifts, n_fences, n_takes, room_gifts, room_fences, room_takes;

/* The list with room for one more. */
static void *grown(void *list, int n, int *room, size_t size) {
  if (n < *room) return list;
  *room = 2 * *room + 8;
  list = realloc(list, (size_t)*room * size);
  if (!list) fgh_fault("no memory for what blocks give each other");
  return list;
}

void fgh_handover_launch(void) { n_gifts = 0; }

void fgh_handover_block(void) { n_fences = n_takes = 0; }

static fence *fence_of(u32 thread) {
  for (int i = 0; i < n_fences; i++)
    if (fences[i].thread == thread) return fences + i;
  return NULL;
}

void fgh_fence_device(void) {
  FGH_ENTER();
  fgh_preempt();
  fence *f = fence_of(fgh_self->id);
  if (!f) {
    fences = grown(fences, n_fences, &room_fences, sizeof *fences);
    f = fences + n_fences++;
    f->thread = fgh_self->id;
  }
  memset(&f->what, 0, sizeof f->what);
  fgh_clock_release_lane(&f->what);
  for (int i = 0; i < n_takes; i++)
    if (takes[i].thread == fgh_self->id && !takes[i].stamp)
      takes[i].stamp = fgh_clocks[fgh_self->warp].stamp[fgh_self->lane];
}

void fgh_handover(const void *word, int writes) {
  takes = grown(takes, n_takes, &room_takes, sizeof *takes);
  takes[n_takes++] = (taken){fgh_self->id, 0, word, n_gifts};
  const fence *f = fence_of(fgh_self->id);
  if (!f || !writes) return;
  gifts = grown(gifts, n_gifts, &room_gifts, sizeof *gifts);
  gifts[n_gifts++] = (given){word, fgh_block_start, f->what};
}

static int knew(const given *g, u32 thread, u32 stamp) {
  const u32 warp = thread / 32;
  if (stamp < g->begin) return 0;
  return stamp < g->what.all[warp] ||
         (warp < FGH_MAX_WARPS && stamp < g->what.lanes[warp][thread % 32]);
}

int fgh_handed_over(u32 thread, u32 stamp) {
  for (int i = 0; i < n_takes; i++) {
    const taken *t = takes + i;
    if (!t->stamp || !fgh_ordered(t->thread, t->stamp, fgh_self->id)) continue;
    for (int j = 0; j < t->n; j++)
      if (gifts[j].word == t->word && knew(gifts + j, thread, stamp)) return 1;
  }
  return 0;
}
