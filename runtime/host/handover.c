/* handover.c - what blocks of a grid give each other by words of memory. Nothing else orders
 * blocks.
 *
 * Who releases gives what it knows of: of its own block, and all gifts that it has got. Who
 * acquires a word gets the gifts of all releases on it since it was last stored to. A release is
 * one access (red_release_u32), or an atomic behind a fence_device; an acquire is one access, or an
 * atomic before a fence_device. A word orders threads of one block too.
 *
 * A block gives more of TMA's stores than it may: a store of which the read alone was waited for.
 */
#include "block.h"
#include "gift.h"
#include "memory.h"

#include <stdlib.h>

typedef struct word {
  const void *at;
  u32 gifts;
} word;

typedef struct fence {
  u32 thread;
  fgh_release what; /* the thread knew of */
} fence;

typedef struct seat {
  fence *fences;
  u32 n_fences, room_fences;
  u32 pending[FGH_MAX_THREADS]; /* gifts of words that the thread's atomics have met: its next fence
                                   gets them */
} seat;

static word *words; /* of the launch */
static u32 n_words, room_words;
static seat seats[FGH_MAX_SEATS], *here = seats;

static void *grown(void *list, u32 n, u32 *room, size_t size) {
  if (n < *room) return list;
  *room = 2 * n + 8;
  list = realloc(list, *room * size);
  if (!list) fgh_fault("no memory for what blocks give each other");
  return list;
}

void fgh_handover_launch(void) {
  n_words = 0;
  fgh_gifts_launch();
}

void fgh_handover_block(void) {
  here->n_fences = 0;
  memset(here->pending, 0, sizeof here->pending);
}

void fgh_handover_seat(u32 number) { here = &seats[number]; }

static word *word_at(const void *at) {
  for (u32 i = 0; i < n_words; i++)
    if (words[i].at == at) return &words[i];
  words = grown(words, n_words, &room_words, sizeof *words);
  words[n_words] = (word){at, 0};
  return &words[n_words++];
}

static fence *fence_of(u32 thread) {
  for (u32 i = 0; i < here->n_fences; i++)
    if (here->fences[i].thread == thread) return &here->fences[i];
  return NULL;
}

/* The running lane gets a set of gifts. */
static void get(u32 gifts) {
  u32 known = fgh_clock_gifts();
  if (fgh_gifts_join(known, gifts) == known) return;
  fgh_clock_learn(gifts);
  fgh_gifts_join_own(gifts);
}

/* The thread gets what its atomics have met since its last fence, and its atomics to come give what
 * it knows of now. */
void fgh_fence_device(void) {
  FGH_ENTER();
  fgh_preempt();
  fence *f = fence_of(fgh_self->id);
  if (!f) {
    here->fences = grown(here->fences, here->n_fences, &here->room_fences, sizeof *here->fences);
    f = &here->fences[here->n_fences++];
    f->thread = fgh_self->id;
  }
  get(here->pending[fgh_self->id]);
  here->pending[fgh_self->id] = 0;
  memset(&f->what, 0, sizeof f->what);
  fgh_clock_release_lane(&f->what);
}

/* An atomic that is neither acquire nor release by itself. */
void fgh_handover(const void *at, int writes) {
  word *w = word_at(at);
  u32 *pending = &here->pending[fgh_self->id];
  *pending = fgh_gifts_join(*pending, w->gifts);
  const fence *f = fence_of(fgh_self->id);
  if (f && writes) w->gifts = fgh_gifts_join(w->gifts, fgh_gift_new(&f->what));
}

void fgh_handover_acquire(const void *at) { get(word_at(at)->gifts); }

void fgh_handover_release(const void *at, int stores) {
  fgh_release what = {0};
  word *w = word_at(at);
  fgh_clock_release_lane(&what);
  w->gifts = fgh_gifts_join(stores ? 0 : w->gifts, fgh_gift_new(&what));
}

int fgh_handed_over(u32 thread, u32 stamp) {
  return fgh_gifts_have(fgh_clock_gifts(), thread / FGH_SEAT_THREADS, thread % FGH_SEAT_THREADS,
                        stamp);
}
